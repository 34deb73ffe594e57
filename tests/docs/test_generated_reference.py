"""The pages of docs/reference are up to date with the code."""

from __future__ import annotations

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
def test_every_command_below_podium_has_its_heading_and_every_option_a_row(name: str) -> None:
    report = PAGES["commands.md"]
    program = KUBECTL_PLUGIN if name in FOR_KUBECTL else "podium"
    _, command, _ = podium.resolve_command(click.Context(podium, info_name=program), [name])
    assert command is not None
    commands = {f"## {program} {name}": command}
    if isinstance(command, click.Group):
        commands |= {f"### {program} {name} {below}": each for below, each in command.commands.items()}

    for heading, each in commands.items():
        assert f"{heading}\n" in report
        options = [parameter for parameter in each.params if isinstance(parameter, click.Option)]
        assert [option.opts for option in options if f"| `{option.opts[0]}`" not in report] == []
