"""Printing answers, as text for people, as JSON, or as YAML; and writing files that only their owner can read."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import sys
import tempfile
import webbrowser
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import click
import msgspec

from podium.api.errors import escape
from podium.app.console.options import OPENS
from podium.app.console.page import WIDTH, Page

_NARROWEST = 40
_LONGEST = 2_000
# The beginnings of text that a spreadsheet takes for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_INDENT = 2
# Entries of a list that are written at a time.
_AT_A_TIME = 10_000
# What `json` escapes and msgspec does not: all that is no printable ASCII.
_NOT_PLAIN = re.compile(r"[^\0-~]")


def in_json(value: Any) -> str:
    """Return the value as JSON, in plain ASCII."""
    return "".join(json_parts(value))


def json_parts(value: Any) -> Iterator[str]:
    """Yield the text of `in_json`, long lists in parts, so that no large text is held in memory."""
    yield from _parts(value, "\n")
    yield "\n"


def _parts(value: Any, line: str) -> Iterator[str]:
    """Yield the text of a value after whose first line each begins with ``line``."""
    if not _is_long(value):
        yield _indented(value).replace("\n", line)
        return
    if isinstance(value, dict):
        before, within = "{", line + " " * _INDENT
        for key, entry in value.items():
            yield f"{before}{within}{_indented(str(key))}: "
            yield from _parts(entry, within)
            before = ","
        yield line + "}"
        return
    entries, before = iter(value), "["
    while part := list(islice(entries, _AT_A_TIME)):
        yield before + _indented(part).replace("\n", line)[1 : -len(line) - 1]
        before = ","
    yield line + "]"


def _is_long(value: Any) -> bool:
    """Return whether a value is a long list, or an object with one."""
    if isinstance(value, dict):
        return any(map(_is_long, value.values()))
    return isinstance(value, list) and len(value) > _AT_A_TIME


def _indented(value: Any) -> str:
    try:
        text = msgspec.json.format(msgspec.json.encode(value), indent=_INDENT).decode()
    except (OverflowError, UnicodeEncodeError):
        # Numbers of more than 64 bits, and halves of surrogate pairs.
        return json.dumps(value, indent=_INDENT, default=msgspec.to_builtins)
    is_plain = text.isascii() and "\x7f" not in text
    return text if is_plain else _NOT_PLAIN.sub(lambda found: json.dumps(found[0])[1:-1], text)


def in_json_line(value: Any) -> str:
    """Return the value as JSON on one line, in plain ASCII."""
    return json.dumps(value, separators=(",", ":"))


def in_yaml(value: Any) -> str:
    """Return the value as YAML, keys in their order."""
    # Late, since most answers are not in YAML.
    import yaml

    from podium.api.input.yaml import Dumper

    return str(yaml.dump(value, Dumper=Dumper, sort_keys=False, allow_unicode=False, width=WIDTH))


def in_csv(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table as CSV. Text that a spreadsheet would take for a formula gets a quote before it."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    for row in (columns, *rows):
        writer.writerow(f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell for cell in row)
    return stream.getvalue()


def new_page() -> Page:
    """Return a page for standard output.

    On a terminal it is as wide as that; elsewhere names stay whole. A terminal that is not dumb has colours, everything
    with FORCE_COLOR, and nothing with NO_COLOR.
    """
    is_terminal, environment = sys.stdout.isatty(), os.environ
    is_wanted = environment.get("FORCE_COLOR") or (is_terminal and environment.get("TERM") != "dumb")
    coloured = bool(is_wanted and not environment.get("NO_COLOR"))
    if not is_terminal:
        return Page(coloured=coloured)
    columns = shutil.get_terminal_size((WIDTH, 24)).columns
    return Page(max(columns, _NARROWEST), coloured=coloured, shortened=True)


def show(value: Any, form: str) -> None:
    """Print the value of an answer in a form for programs: "json" or "yaml"."""
    for part in json_parts(value) if form == "json" else [in_yaml(value)]:
        click.echo(part, nl=False)


def say(text: str) -> None:
    """Print a line about the work on standard error."""
    click.echo(f"podium: {escape(text, _LONGEST)}", err=True)


def show_page(page: Page) -> None:
    """Print a page, with the colours that it has."""
    click.echo(page.text, nl=False, color=True)


def show_answer(answer: Any, form: str, write: Callable[[Page], object] | None = None) -> None:
    """Print an answer as text, as JSON or YAML (its `to_dict`), as CSV (its `csv`), or as an HTML picture.

    ``write`` writes the text; without it, the answer's own `write` does.
    """
    if form == "html":
        # Pictures import all answers.
        from podium.app.reporting import report

        show_html(report(answer))
    elif form == "csv":
        click.echo(answer.csv(), nl=False)
    elif form == "text":
        page = new_page()
        (write or answer.write)(page)
        show_page(page)
    else:
        as_json = getattr(answer, "json_value", answer.to_dict)
        show(as_json() if form == "json" else answer.to_dict(), form)


def show_html(page: str) -> None:
    """Print an HTML page; with --open, show it in the browser instead. Raises ClickException without one."""
    if not click.get_current_context().meta.get(OPENS):
        click.echo(page, nl=False)
        return
    # Only its owner may read it, and it stays for as long as the browser may load it again.
    descriptor, file = tempfile.mkstemp(".html", "podium-")
    with open(descriptor, "w", encoding="utf-8") as written:  # noqa: PTH123
        written.write(page)
    if not webbrowser.open(Path(file).as_uri()):
        raise click.ClickException(f"no browser is known; the answer is in {file}")
    click.echo(f"the browser shows {file}", err=True)


def write_private(file: Path, content: str | bytes) -> None:
    """Write a file as `draft_of` does."""
    with draft_of(str(file)) as draft:
        draft.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def draft_of(name: str) -> Iterator[BinaryIO]:
    """Open what takes the place of a file at the end of the block, unless that fails; only its owner can read it.

    After a crash there is the old or the new content. A device, a pipe or the like is written itself.
    """
    file = Path(name)
    if file.exists() and not file.is_file():
        with file.open("wb") as stream:
            yield stream
        return
    target = file.resolve()
    descriptor, draft = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(descriptor)
        Path(draft).replace(target)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
