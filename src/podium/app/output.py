"""Printing answers: as text for people, as JSON, or as YAML."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from typing import Any

import click
import yaml

from podium.app.page import WIDTH, Page

_NARROWEST = 60
# What other YAML readers than PyYAML take for numbers, times or booleans.
_AMBIGUOUS = re.compile(r"[-+.0-9].*|[yYnN]|[oO](?:n|N|ff|FF)", re.DOTALL)


class _Dumper(yaml.CSafeDumper):
    """Writes every value out where it stands, and quotes all text that some reader might take for something else."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = "'" if _AMBIGUOUS.fullmatch(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def in_json(value: Any) -> str:
    """The value as JSON, in plain ASCII."""
    return f"{json.dumps(value, indent=2)}\n"


def in_yaml(value: Any) -> str:
    """The value as YAML, keys in their order."""
    return str(yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=False, width=WIDTH))


def new_page() -> Page:
    """A page for standard output: as wide as the terminal, within limits, and in colour unless NO_COLOR is set."""
    if not sys.stdout.isatty():
        return Page()
    columns = shutil.get_terminal_size((WIDTH, 24)).columns
    return Page(min(max(columns, _NARROWEST), WIDTH), coloured=not os.environ.get("NO_COLOR"))


def show(value: Any, form: str) -> None:
    """Print the value of an answer in a form for programs: "json" or "yaml"."""
    click.echo(in_json(value) if form == "json" else in_yaml(value), nl=False)


def show_page(page: Page) -> None:
    """Print a page, with the colours that it has."""
    click.echo(page.text, nl=False, color=True)
