"""Write the manual pages of the commands, from their help, into `deploy/man`; the wheel installs them.

Run `.venv/bin/python -m tools.man` after a change of commands or options.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import click

from podium.app.console.command import FOR_KUBECTL, KUBECTL_PLUGIN, SUBCOMMANDS, podium

FOLDER = Path(__file__).parents[1] / "deploy" / "man"
# Options that more questions than this have are listed once.
_MOST_OWNERS = 2


class ManFormatter(click.HelpFormatter):
    """Formats the help of a command for groff, with the macros of man(7)."""

    def __init__(self, heading: str = ".SH") -> None:
        super().__init__()
        self._heading = heading

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        if self._heading == ".SH":
            self.write_heading("Synopsis")
        self.write(f".B {_escaped(prog)}\n{_escaped(args)}\n")

    def write_heading(self, heading: str) -> None:
        self.write(f'{self._heading} "{_escaped(heading.upper() if self._heading == ".SH" else heading)}"\n')

    def write_paragraph(self) -> None:
        pass

    def write_text(self, text: str) -> None:
        for paragraph in filter(None, text.split("\n\n")):
            self.write("\n".join((".PP", *map(_escaped, paragraph.splitlines()), "")))

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        for term, text in rows:
            self.write(f".TP\n.B {_escaped(term)}\n{_escaped(text)}\n")

    def write(self, string: str) -> None:
        """Write a request, or a command line, which starts with spaces and stays as it is."""
        if string.startswith(" "):
            string = f".PP\n.nf\n{_escaped(string.rstrip())}\n.fi\n"
        super().write(string)


def _escaped(text: str) -> str:
    """Return one line of text for groff: no escape sequences, no hyphens for minus signs, no requests."""
    text = " ".join(text.split()) if not text.startswith(" ") else text
    text = text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    return f"\\&{text}" if text[:1] in (".", "'") else text


def pages() -> dict[str, str]:
    """Return the text of each page, by file name."""
    root = _root("podium")
    found = {"podium.1": _page(podium, root, [name for name in SUBCOMMANDS if name not in FOR_KUBECTL])}
    for name in SUBCOMMANDS:
        root = _root(KUBECTL_PLUGIN if name in FOR_KUBECTL else "podium")
        _, command, _ = podium.resolve_command(root, [name])
        if command is None:
            raise LookupError(f"{name} is listed and not there")
        context = click.Context(command, info_name=name, parent=root)
        found[f"{context.command_path.replace(' ', '-')}.1"] = _page(command, context, [])
    return found


def _root(name: str) -> click.Context:
    return click.Context(podium, info_name=name, **podium.context_settings)


def _page(command: click.Command, context: click.Context, others: Sequence[str]) -> str:
    name = context.command_path.replace(" ", "-")
    about, formatter = command.get_short_help_str(200).rstrip("."), ManFormatter()
    # click keeps the first one, which a context without our settings may have made.
    command._help_option = None
    command.format_usage(context, formatter)
    formatter.write_heading("Description")
    command.format_help_text(context, formatter)
    command.format_options(context, formatter)
    if command.epilog:
        formatter.write_heading("Examples")
        command.format_epilog(context, formatter)
    questions = _questions(command, context) if isinstance(command, click.Group) and not others else ()
    related = ", ".join(f".BR {_escaped(f'podium-{other}')} (1)" for other in others) or ".BR podium (1)"
    return "".join(
        (
            f'.TH "{_escaped(name.upper())}" "1" "" "Podium" "Podium"\n',
            f".SH NAME\n{_escaped(name)} \\- {_escaped(about)}\n",
            formatter.getvalue(),
            *questions,
            ".SH SEE ALSO\n" + related.replace(", ", " ,\n") + "\n",
        )
    )


def _questions(group: click.Group, context: click.Context) -> Iterator[str]:
    """Yield a section for each subcommand with its own options, then one with those that several share."""
    commands = [group.commands[name] for name in group.list_commands(context)]
    owners = Counter(each.name for command in commands for each in command.params)
    shared = {each.name: each for command in commands for each in command.params if owners[each.name] > _MOST_OWNERS}
    for command in commands:
        own = [each for each in command.params if each.name not in shared]
        inner = click.Context(command, info_name=command.name, parent=context)
        formatter = ManFormatter(".SS")
        formatter.write_usage(inner.command_path, " ".join(command.collect_usage_pieces(inner)))
        command.format_help_text(inner, formatter)
        click.Command(command.name, params=own, add_help_option=False).format_options(inner, formatter)
        yield f'.SH "{_escaped(inner.command_path.upper())}"\n{formatter.getvalue()}'
    formatter = ManFormatter()
    formatter.write_heading("Shared options")
    options = [each.get_help_record(context) for each in shared.values()]
    formatter.write_dl([record for record in options if record is not None])
    yield formatter.getvalue()


def main(arguments: Sequence[str]) -> int:
    """Write the pages, or list outdated ones."""
    FOLDER.mkdir(exist_ok=True)
    wanted = pages()
    known = {file.name: file.read_text() for file in FOLDER.iterdir()}
    for name in known.keys() - wanted.keys():
        (FOLDER / name).unlink()
    for name, text in wanted.items():
        if known.get(name) != text:
            (FOLDER / name).write_text(text)
            print(f"deploy/man/{name}: written")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
