"""Help as rich-click draws it, for terminals."""

from __future__ import annotations

from typing import Any

import click
import rich_click
from rich.text import Text

from podium.app.console.command import FOR_DEVELOPERS, LazyGroup
from podium.app.console.page import WIDTH

# Marks a paragraph whose lines click does not rewrap.
_AS_IS = "\b\n"


class _Group(rich_click.RichGroup):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


def rich_help(command: click.Command, ctx: click.Context) -> str:
    """Return the command's help, in boxes, and in colour unless NO_COLOR is set."""
    paragraphs = [
        paragraph.removeprefix(_AS_IS) if paragraph.startswith(_AS_IS) else paragraph.replace("\n", " ")
        for paragraph in (command.epilog or "").strip().split("\n\n")
    ]
    # rich-click also accepts rich text.
    epilog = Text("\n\n".join(paragraphs)) if command.epilog else None
    parts: dict[str, Any] = {"params": command.params, "help": command.help, "epilog": epilog}
    shown = rich_click.RichCommand(command.name, **parts)
    if isinstance(command, click.Group):
        found = {name: command.get_command(ctx, name) for name in command.list_commands(ctx)}
        shown = _Group(
            name=command.name,
            commands={n: subcommand for n, subcommand in found.items() if subcommand is not None},
            **parts,
        )
    # Help has most of the line: names and values share a column.
    columns: Any = ["opt_long_metavar", "opt_short", "help"]
    sections: Any = ["help", "required", "range", "default"]
    settings = rich_click.RichHelpConfiguration(
        max_width=WIDTH,
        style_helptext="",
        options_table_column_types=columns,
        options_table_help_sections=sections,
        append_metavars_help_string="{}",
        padding_helptext_first_line=(0, 0, 1, 0),
        text_paragraph_linebreaks="\n\n",
    )
    if isinstance(command, LazyGroup):
        others = [name for name in command.list_commands(ctx) if name not in FOR_DEVELOPERS]
        groups = {"For users": others, "For developers": list(FOR_DEVELOPERS)}
        settings.command_groups = {ctx.command_path: [{"name": n, "commands": names} for n, names in groups.items()]}
    context = rich_click.RichContext(shown, parent=ctx.parent, info_name=ctx.info_name, rich_help_config=settings)
    context.help_option_names = ctx.help_option_names
    return shown.get_help(context)
