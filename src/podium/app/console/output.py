"""Printing answers: as text for people, as JSON, or as YAML."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from itertools import islice
from typing import Any

import click
import msgspec
import yaml

from podium.app.console.page import WIDTH, Page

_NARROWEST = 40
_INDENT = 2
# Entries of a list that are written at a time.
_AT_A_TIME = 10_000
_LIST_OPENS, _LIST_ENDS = '{\n  "": [', "\n  ]\n}"
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


# What `json` escapes and msgspec does not: all that is no printable ASCII.
_NOT_PLAIN = re.compile(r"[^\0-~]")


def in_json(value: Any) -> str:
    """The value as JSON, in plain ASCII."""
    return "".join(json_parts(value))


def json_parts(value: Any) -> Iterator[str]:
    """The value as `in_json` gives it, a long list in an object part by part, so that no large text is in memory."""
    if not isinstance(value, dict) or not any(map(_is_long, value.values())):
        yield f"{_indented(value)}\n"
        return
    opening = "{"
    for key, entry in value.items():
        for part in _member(key, entry):
            yield opening + part
            opening = ""
        opening = ","
    yield "\n}\n"


def _is_long(value: Any) -> bool:
    return isinstance(value, list) and len(value) > _AT_A_TIME


def _member(key: Any, value: Any) -> Iterator[str]:
    """A member of an object, from the line before it to its last character."""
    if not _is_long(value):
        yield _indented({key: value})[1:-2]
        return
    yield _indented({key: []})[1:-3]
    entries, between = iter(value), ""
    while part := list(islice(entries, _AT_A_TIME)):
        yield between + _indented({"": part})[len(_LIST_OPENS) : -len(_LIST_ENDS)]
        between = ","
    yield "\n  ]"


def _indented(value: Any) -> str:
    try:
        text = msgspec.json.format(msgspec.json.encode(value), indent=_INDENT).decode()
    except (OverflowError, UnicodeEncodeError):
        # Numbers of more than 64 bits, and halves of surrogate pairs.
        return json.dumps(value, indent=_INDENT)
    return text if text.isascii() and "\x7f" not in text else _NOT_PLAIN.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1]


def in_json_line(value: Any) -> str:
    """The value as JSON on one line, in plain ASCII."""
    return json.dumps(value, separators=(",", ":"))


def in_yaml(value: Any) -> str:
    """The value as YAML, keys in their order."""
    return str(yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=False, width=WIDTH))


def new_page() -> Page:
    """A page for standard output.

    For a terminal it is as wide as that, and in colour unless NO_COLOR is set; for all else names in it stay whole.
    """
    if not sys.stdout.isatty():
        return Page()
    columns = shutil.get_terminal_size((WIDTH, 24)).columns
    return Page(max(columns, _NARROWEST), coloured=not os.environ.get("NO_COLOR"), shortened=True)


def show(value: Any, form: str) -> None:
    """Print the value of an answer in a form for programs: "json" or "yaml"."""
    for part in json_parts(value) if form == "json" else [in_yaml(value)]:
        click.echo(part, nl=False)


def show_page(page: Page) -> None:
    """Print a page, with the colours that it has."""
    click.echo(page.text, nl=False, color=True)
