"""Saved plans: a question with its answer, and the cluster that it was asked about, to ask it again later."""

from __future__ import annotations

import gzip
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from typing import Any

import click
import msgspec

from podium.api.basis import Caveat
from podium.api.errors import InputError, shown
from podium.api.input.codec import Input
from podium.api.input.files import read_bytes
from podium.api.input.folders import files_of
from podium.api.meta import Kubernetes
from podium.api.snapshot import API_VERSION
from podium.api.times import format_time
from podium.app.answers import Shown
from podium.app.console.cells import counted, listed, text_of
from podium.app.console.output import own_version
from podium.app.console.page import Cell, Page, Part
from podium.app.planning.answer import PlanAnswer
from podium.app.planning.review import diff_line

KIND = "SavedPlan"
SCHEMA_VERSION = 1
"""The version of `PlanCheck.to_dict`; it grows when a field is removed or changes its meaning."""

FILES = ("manifests", "overrides", "config", "rescheduler_file", "before_files", "after_files")
"""The parameters of questions that name files of a change, which are saved with their contents."""

# The parameters that name the cluster, or the form of the answer and where it goes: those of the check count.
_NOT_ASKED = frozenset(
    (
        *("files", "cluster_files", "context", "kubeconfig", "allows_exec_plugins"),
        *("form", "save", "scenario_file", "fail_on", "timeline", "pods", "all_nodes"),
    )
)
_DIGEST_BYTES = 6
_MOST_NAMES, _MOST_LINES = 3, 20
_GONE, _COME, _CHANGED = "-", "+", "~"

Contents = dict[str, str]
"""The texts of a file or a folder, by path; the first part of every path is the name of the file or the folder."""

Fingerprint = dict[str, dict[str, str]]
"""A digest of each object, by kind and key."""


class SavedPlan(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A file of `--save`.

    ``arguments`` are those of the question, as written on the command line, by parameter; ``files`` are the contents of
    the files that it names. ``cluster`` is the cluster's fingerprint, ``answer`` has the lines of each part.
    """

    api_version: str
    kind: str
    podium: str
    kubernetes: str
    saved_at: str
    question: str
    arguments: dict[str, str | bool | list[str]]
    files: dict[str, list[Contents]]
    cluster: Fingerprint
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
        number = 0
        for name, given in self.files.items():
            for contents in given:
                number += 1
                place = folder / str(number)
                parts = {path: PurePosixPath(path).parts for path in contents}
                if len({each[:1] for each in parts.values()}) != 1 or not all(map(_is_inside, parts)):
                    raise InputError(f"{shown(list(parts))} are no files of one name", path=f".files.{name}")
                for path, text in contents.items():
                    target = place / path
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_text(text, encoding="utf-8")
                found.setdefault(name, []).append(str(place / next(iter(parts.values()))[0]))
        return found


def _is_inside(path: str) -> bool:
    parts = PurePosixPath(path).parts
    return bool(parts) and not path.startswith("/") and ".." not in parts and "\0" not in path


def read_plan(file: str) -> SavedPlan:
    """Return the saved plan in a file. Raises InputError for anything else."""
    try:
        found = msgspec.json.decode(read_bytes(file), type=SavedPlan)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"is not a plan that --save has written: {error}", source=file) from None
    if (found.api_version, found.kind) != (API_VERSION, KIND):
        raise InputError(f"is not a {KIND} of {API_VERSION}", source=file)
    return found


def write_plan(
    file: str, question: click.Context, words: Sequence[str], overrides: Sequence[str], answer: SavedAnswer
) -> None:
    """Save the question of a command line with its answer; only the owner may read the file.

    ``overrides`` are those of the question and of the group before it. Raises InputError for standard input.
    """
    command = question.command
    given = command.make_parser(question).parse_args(list(words))[0]
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
    plan = SavedPlan(
        api_version=API_VERSION,
        kind=KIND,
        podium=own_version(),
        kubernetes=answer.kubernetes,
        saved_at=format_time(time.time_ns()),
        question=command.name or "",
        arguments=arguments,
        files=files,
        cluster=answer.cluster,
        answer=answer.parts,
    )
    target = Path(file)
    # Created for its owner alone: manifests may hold Secrets.
    descriptor, part = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(gzip.compress(msgspec.json.encode(plan), mtime=0))
        Path(part).replace(target)
    finally:
        Path(part).unlink(missing_ok=True)


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


@dataclass(frozen=True, slots=True)
class SavedAnswer:
    """An answer as it is saved: its parts as lines, the cluster's fingerprint, and the version that decided.

    The ``caveats`` are not saved.
    """

    parts: dict[str, list[str]]
    cluster: Fingerprint
    kubernetes: str
    caveats: tuple[Caveat, ...]

    @classmethod
    def of(cls, answer: PlanAnswer, read: Input, kubernetes: str) -> SavedAnswer:
        parts = {
            "answer": [line for line in (answer.summary, answer.headline) if line],
            "findings": [f"{each.code}: {each.message}" for each in answer.findings],
            "impact": [diff_line(each) for each in answer.impact],
            "nodes": [f"{each.node}: {each.change}" for each in answer.nodes],
        }
        for section in answer.sections:
            parts[section.title] = ["  ".join(filter(None, map(text_of, row))) for row in section.rows]
        said = {name: lines for name, lines in parts.items() if lines}
        return cls(said, _fingerprint(read), kubernetes, answer.caveats)


def _fingerprint(read: Input) -> Fingerprint:
    """Return a digest of what Podium reads of each object: versions, which heartbeats also change, do not count."""
    found: Fingerprint = {}
    for document in read.documents:
        item = document.object
        if item is not None:
            digest = blake2b(msgspec.json.encode(_lasting(item)), digest_size=_DIGEST_BYTES)
            found.setdefault(type(item).__name__, {})[item.key] = digest.hexdigest()
    return found


def _lasting(item: Kubernetes) -> Kubernetes:
    metadata = msgspec.structs.replace(item.metadata, resource_version="", generation=0)
    return msgspec.structs.replace(item, metadata=metadata)


@dataclass(frozen=True, slots=True, repr=False)
class PlanCheck(Shown):
    """A saved plan beside the same question about the cluster as it is now."""

    file: str
    saved: SavedPlan
    now: SavedAnswer

    @property
    def is_same(self) -> bool:
        return self.saved.answer == self.now.parts

    @property
    def headline(self) -> str:
        objects = sum(map(len, self._objects().values()))
        cluster = f"{counted(objects, 'object')} changed" if objects else "the cluster is the one that was planned on"
        return f"{'same answer' if self.is_same else 'the answer has changed'}; {cluster}"

    def _objects(self) -> dict[str, list[tuple[str, str]]]:
        """Return the objects that differ by kind, each with what happened to it, in the order of their keys."""
        before, after = self.saved.cluster, self.now.cluster
        found = {}
        for kind in sorted({*before, *after}):
            old, new = before.get(kind, {}), after.get(kind, {})
            signs = [
                (_COME if key not in old else _GONE if key not in new else _CHANGED, key)
                for key in sorted({*old, *new})
                if old.get(key) != new.get(key)
            ]
            if signs:
                found[kind] = signs
        return found

    def _lines(self) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        """Yield the parts of the answer that differ, with their lines that are gone, and those that have come."""
        before, after = self.saved.answer, self.now.parts
        for name in dict.fromkeys((*before, *after)):
            old, new = before.get(name, []), after.get(name, [])
            if old != new:
                yield (
                    name,
                    [
                        *((_GONE, line) for line in old if line not in new),
                        *((_COME, line) for line in new if line not in old),
                    ],
                )

    def _caveats(self) -> list[Caveat]:
        made, now = (self.saved.podium, self.saved.kubernetes), (own_version(), self.now.kubernetes)
        versions = [
            f"the saved answer is that of {name} {shown(before)}, the new one that of {shown(after)}"
            for name, before, after in zip(("Podium", "Kubernetes"), made, now, strict=True)
            if before != after
        ]
        return [*(Caveat("version", text, 1) for text in versions), *self.now.caveats]

    def to_dict(self) -> dict[str, Any]:
        objects = {
            kind: {
                what: [key for found, key in signs if found == sign]
                for what, sign in (("added", _COME), ("removed", _GONE), ("changed", _CHANGED))
            }
            for kind, signs in self._objects().items()
        }
        answer = {
            name: {
                what: [line for found, line in lines if found == sign]
                for what, sign in (("before", _GONE), ("after", _COME))
            }
            for name, lines in self._lines()
        }
        return {
            "schemaVersion": SCHEMA_VERSION,
            "headline": self.headline,
            "question": self.saved.question,
            "savedAt": self.saved.saved_at,
            "sameAnswer": self.is_same,
            "sameCluster": not objects,
            "objects": objects,
            "answer": answer,
            "caveats": [caveat.to_dict() for caveat in self._caveats()],
        }

    def write(self, page: Page) -> None:
        """Write what has changed: the objects by kind, and the lines of the answer."""
        page.paragraph(Cell(self.headline, "bold" if self.is_same else "warn"), hanging=2)
        page.line(f"plan {self.saved.question}, saved at {self.saved.saved_at} in {self.file}", indent=2)
        rows = list[tuple[Part, ...]]()
        for kind, signs in self._objects().items():
            numbers = [sum(found == sign for found, _ in signs) for sign in (_COME, _GONE, _CHANGED)]
            rows.append((kind, *numbers, listed([f"{sign} {key}" for sign, key in signs], _MOST_NAMES)))
        if rows:
            page.title("Cluster", "objects that differ from those planned on")
            page.table(rows, ("kind", "added", "removed", "changed", "first"))
        for name, lines in self._lines():
            page.title(name.capitalize(), "" if lines else "in another order")
            for sign, line in lines[:_MOST_LINES]:
                page.paragraph(Cell(f"{sign} {line}", "bad" if sign == _GONE else "good"), indent=2, hanging=2)
            page.more(len(lines) - _MOST_LINES, "line")
        page.caveats(self._caveats())
