"""Saved plans: a question with its answer, and the cluster that it was asked about, to ask it again later."""

from __future__ import annotations

import gzip
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from typing import Any

import click
import msgspec
from msgspec.structs import replace

from podium.api.basis import Caveat
from podium.api.errors import InputError, os_error_as, shown
from podium.api.input.codec import Input
from podium.api.input.documents import API_VERSION
from podium.api.input.files import files_of, read_bytes
from podium.api.times import format_time
from podium.api.versions.release import own_version
from podium.app.answers import Renderable
from podium.app.console.cells import counted, listed, text_of
from podium.app.console.output import write_private
from podium.app.console.page import Cell, Page, Part
from podium.app.planning.answer import PlanAnswer, diff_line

KIND = "SavedPlan"
SCHEMA_VERSION = 1
"""The version of `PlanCheck.to_dict`; it grows when a field is removed or changes its meaning."""

FILES = ("manifests", "patch_files", "overrides", "config", "rescheduler_file", "before_files", "after_files")
"""The parameters of questions that name files of a change, which are saved with their contents."""

# The parameters that name the cluster, or the form of the answer and where it goes: those of the check count.
_NOT_ASKED = frozenset(
    "files context kubeconfig allows_exec_plugins form opens save fail_on timeline pods all_nodes".split()
)
_MOST_NAMES, _MOST_LINES = 3, 20
_SIGNS = {"added": "+", "removed": "-", "changed": "~"}

Contents = dict[str, str]
"""The texts of a file or a folder, by path; the first part of every path is the name of the file or the folder."""


class SavedPlan(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A question as it was asked, with its answer.

    ``arguments`` are those of the question, as written on the command line, by parameter; ``files`` are the contents of
    the files that it names. ``cluster`` has a digest of each object by kind and key, ``answer`` the lines of each part.
    """

    api_version: str
    kind: str
    podium: str
    kubernetes: str
    saved_at: str
    question: str
    arguments: dict[str, str | bool | list[str]]
    files: dict[str, list[Contents]]
    cluster: dict[str, dict[str, str]]
    answer: dict[str, list[str]]

    def words(self, command: click.Command, folder: Path) -> list[str]:
        """Return the words of the question's command line, with the saved files written into a folder.

        Raises InputError for a parameter that the question does not have or take from a file.
        """
        known = {each.name: each for each in command.params if each.name not in _NOT_ASKED}
        options, names = list[str](), list[str]()
        for name, value in {**self.arguments, **self._written(folder)}.items():
            parameter = known.get(name)
            if parameter is None or (name in FILES) is not (name in self.files):
                raise InputError(f"plan {self.question} takes no {shown(name)} from a saved plan", path=".arguments")
            texts = value if isinstance(value, list) else [value]
            if isinstance(parameter, click.Option):
                flag = parameter.opts[-1]
                options += [flag if text is True else f"{flag}={text}" for text in texts if text is not False]
            else:
                names += map(str, texts)
        return [*options, "--", *names]

    def _written(self, folder: Path) -> dict[str, list[str]]:
        """Write the files, and return their paths by parameter. Raises InputError for a path outside of the folder."""
        found: dict[str, list[str]] = {}
        written = ((name, contents) for name, given in self.files.items() for contents in given)
        for number, (name, contents) in enumerate(written):
            place, paths = folder / str(number), [PurePosixPath(path).parts for path in contents]
            is_inside = all(each and each[0] != "/" and ".." not in each for each in paths)
            if not is_inside or "\0" in "".join(contents) or len({each[0] for each in paths}) != 1:
                raise InputError(f"{shown(list(contents))} do not have one common name", path=f".files.{name}")
            for path, text in contents.items():
                target = place / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text, encoding="utf-8")
            found.setdefault(name, []).append(str(place / paths[0][0]))
        return found


def read_plan(file: str) -> SavedPlan:
    """Return the saved plan in a file. Raises InputError for anything else."""
    try:
        found = msgspec.json.decode(read_bytes(file), type=SavedPlan)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"is not a plan that --save has written: {error}", source=file) from None
    if (found.api_version, found.kind) != (API_VERSION, KIND):
        raise InputError(f"is not a {KIND} of {API_VERSION}", source=file)
    return found


def plan_of(
    context: click.Context,
    words: Sequence[str],
    overrides: Sequence[str],
    answer: PlanAnswer,
    read: Input,
    kubernetes: str,
) -> SavedPlan:
    """Return the plan to save, from the context and words of a question, all its overrides, and the answer.

    Raises InputError for standard input.
    """
    command = context.command
    given = command.make_parser(context).parse_args(list(words))[0]
    arguments: dict[str, Any] = {
        name: list(value) if isinstance(value, list | tuple) else value
        for name, value in given.items()
        if name not in _NOT_ASKED and value and isinstance(value, str | bool | list | tuple)
    }
    named = {**{name: arguments.pop(name, ()) for name in FILES}, "overrides": overrides}
    files = {
        name: [_contents(each) for each in ([names] if isinstance(names, str) else names)]
        for name, names in named.items()
        if names
    }
    return SavedPlan(
        api_version=API_VERSION,
        kind=KIND,
        podium=own_version(),
        kubernetes=kubernetes,
        saved_at=format_time(time.time_ns()),
        question=command.name or "",
        arguments=arguments,
        files=files,
        cluster=_digests(read),
        answer=_lines_of(answer),
    )


def write_plan(file: str, plan: SavedPlan) -> None:
    """Write a file that only its owner may read: manifests may hold Secrets."""
    with os_error_as("cannot be written", file):
        write_private(Path(file), gzip.compress(msgspec.json.encode(plan), mtime=0))


def _contents(name: str) -> Contents:
    if name == "-":
        raise InputError("--save: standard input cannot be read again; give the change as a file")
    base = Path(os.path.abspath(name)).parent
    found = {}
    for file in files_of(name)[0]:
        try:
            text = read_bytes(file).decode()
        except UnicodeDecodeError:
            raise InputError("--save: is not in UTF-8", source=str(file)) from None
        found[Path(os.path.abspath(file)).relative_to(base).as_posix()] = text
    return found


def _lines_of(answer: PlanAnswer) -> dict[str, list[str]]:
    parts = {
        "answer": [line for line in (answer.summary, answer.headline) if line],
        "findings": [f"{each.code}: {each.message}" for each in answer.findings],
        "impact": [diff_line(each) for each in answer.impact],
        "nodes": [f"{each.node}: {each.change}" for each in answer.nodes],
    }
    for section in answer.sections:
        parts[section.title] = ["  ".join(filter(None, map(text_of, row))) for row in section.rows]
    return {name: lines for name, lines in parts.items() if lines}


def _digests(read: Input) -> dict[str, dict[str, str]]:
    """Return a digest of what Podium reads of each object: versions, which heartbeats also change, do not count."""
    found: dict[str, dict[str, str]] = {}
    for item in (document.object for document in read.documents):
        if item is not None:
            lasting = replace(item, metadata=replace(item.metadata, resource_version="", generation=0))
            digest = blake2b(msgspec.json.encode(lasting), digest_size=6)
            found.setdefault(type(item).__name__, {})[item.key] = digest.hexdigest()
    return found


@dataclass(frozen=True, repr=False)
class PlanCheck(Renderable):
    """A saved plan beside the same question about the cluster as it is now, with the caveats of the new answer."""

    file: str
    saved: SavedPlan
    now: SavedPlan
    caveats: tuple[Caveat, ...]

    @property
    def is_same(self) -> bool:
        return self.saved.answer == self.now.answer

    @property
    def headline(self) -> str:
        number = sum(len(keys) for found in self.objects.values() for keys in found.values())
        cluster = f"{counted(number, 'object')} changed" if number else "the cluster has not changed"
        return f"{'same answer' if self.is_same else 'the answer has changed'}; {cluster}"

    @cached_property
    def objects(self) -> Mapping[str, Mapping[str, list[str]]]:
        """The keys of objects that were added, removed and changed, by kind."""
        found = {}
        for kind in sorted({*self.saved.cluster, *self.now.cluster}):
            old, new = self.saved.cluster.get(kind, {}), self.now.cluster.get(kind, {})
            if old != new:
                found[kind] = {
                    "added": sorted(new.keys() - old),
                    "removed": sorted(old.keys() - new),
                    "changed": sorted(key for key in old.keys() & new if old[key] != new[key]),
                }
        return found

    @cached_property
    def lines(self) -> Mapping[str, Mapping[str, list[str]]]:
        """The lines that are gone and those that have come, by the part of the answer."""
        found = {}
        for name in dict.fromkeys((*self.saved.answer, *self.now.answer)):
            old, new = self.saved.answer.get(name, []), self.now.answer.get(name, [])
            if old != new:
                found[name] = {
                    "before": [line for line in old if line not in new],
                    "after": [line for line in new if line not in old],
                }
        return found

    def _caveats(self) -> list[Caveat]:
        saved, now, text = self.saved, self.now, "the saved answer is that of {} {}, the new one that of {}"
        versions = (("Podium", saved.podium, now.podium), ("Kubernetes", saved.kubernetes, now.kubernetes))
        found = [text.format(name, shown(before), shown(after)) for name, before, after in versions if before != after]
        return [*(Caveat("version", each, 1) for each in found), *self.caveats]

    def to_dict(self) -> dict[str, Any]:
        return {
            "schemaVersion": SCHEMA_VERSION,
            "headline": self.headline,
            "question": self.saved.question,
            "savedAt": self.saved.saved_at,
            "sameAnswer": self.is_same,
            "sameCluster": not self.objects,
            "objects": self.objects,
            "answer": self.lines,
            "caveats": [caveat.to_dict() for caveat in self._caveats()],
        }

    def write(self, page: Page) -> None:
        """Write what has changed: the objects by kind, and the lines of the answer."""
        page.paragraph(Cell(self.headline, "bold" if self.is_same else "warn"), hanging=2)
        page.line(f"plan {self.saved.question}, saved at {self.saved.saved_at} in {self.file}", indent=2)
        if self.objects:
            page.title("Cluster", "objects that have changed since")
            rows = list[tuple[Part, ...]]()
            for kind, found in self.objects.items():
                keys = [f"{_SIGNS[what]} {key}" for what, some in found.items() for key in some]
                rows.append((kind, *map(len, found.values()), listed(keys, _MOST_NAMES)))
            page.table(rows, ("kind", *_SIGNS, "first"))
        for name, found in self.lines.items():
            lines = [(f"- {line}", "bad") for line in found["before"]]
            lines += [(f"+ {line}", "good") for line in found["after"]]
            page.title(name.capitalize(), "" if lines else "in another order")
            for text, style in lines[:_MOST_LINES]:
                page.paragraph(Cell(text, style), indent=2, hanging=2)
            page.more(len(lines) - _MOST_LINES, "line")
        page.caveats(self._caveats())
