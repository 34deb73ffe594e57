"""The pages of docs/reference are up to date with the code."""

from __future__ import annotations

import re

import click
import pytest

from podium.app.console.command import FOR_KUBECTL, KUBECTL_PLUGIN, SUBCOMMANDS, podium
from tools import reference, upstream_scope

PAGES = reference.pages()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_as_the_code_has_it(name: str) -> None:
    """If it is not, run `.venv/bin/python tools/reference.py`."""
    assert (reference.FOLDER / name).read_text() == PAGES[name]


def test_there_is_no_other_page() -> None:
    assert {file.name for file in reference.FOLDER.iterdir()} == {name for name in PAGES if "/" not in name}


def test_what_is_out_of_scope_has_a_reason_that_is_stated_once_and_each_reason_is_used() -> None:
    found = [*upstream_scope.rows(upstream_scope.E2E), *upstream_scope.rows(upstream_scope.TEST_CMD)]

    assert {reason for _, _, reason in found} == set(upstream_scope.REASONS)
    assert len({paths for paths, _, _ in found}) == len(found)


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_every_command_below_podium_has_its_heading_and_names_each_of_its_options(name: str) -> None:
    sections = dict(part.split("\n", 1) for part in re.split("^##+ ", PAGES["commands.md"], flags=re.MULTILINE))
    program = KUBECTL_PLUGIN if name in FOR_KUBECTL else "podium"
    _, command, _ = podium.resolve_command(click.Context(podium, info_name=program), [name])
    assert command is not None
    heading = f"{program} {name}"
    commands = {heading: command}
    if isinstance(command, click.Group):
        commands |= {f"{heading} {below}": each for below, each in command.commands.items()}

    for each in commands:
        # Options that a group's commands share are in the group's own section.
        shown = sections[heading] + sections[each]
        options = [option.opts for option in commands[each].params if isinstance(option, click.Option)]
        assert [names for names in options if not re.search(f"`{names[0]}[` ]", shown)] == []


def test_every_option_of_several_commands_is_below_the_heading_that_they_link_to() -> None:
    parts = re.split("^## ", PAGES["commands.md"], flags=re.MULTILINE)
    lists = {f"[{part.splitlines()[0]}]": part for part in parts}

    links = re.findall(r"^(\[[^]\n]+\])\(#[a-z-]+\): ((?:.|\n)+?)\n\n", PAGES["commands.md"], re.MULTILINE)
    assert {title for title, _ in links} == {"[Shared options]", "[Options of components]"}
    for title, named in links:
        assert [name for name in re.findall("`([^`]+)`", named) if f"\n- `{name}" not in lists[title]] == []
