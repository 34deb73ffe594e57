"""Errors and warnings for users, the safe display of text from their files, and suggestions for unknown names.

Errors end the reading of an input; a warning is something to know before trusting the answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any, Literal

_MAX_PART = 300
_MAX_PROBLEM = 1_000
_MAX_SHOWN = 80


def escape(text: str, limit: int) -> str:
    """Return the text on one line and at most about `limit` characters long.

    Characters that a terminal interprets (control characters, ANSI escapes, direction marks, lone surrogates) are
    escaped, so that a hostile file cannot colour, hide or forge output.
    """
    kept = text[:limit]
    if not kept.isprintable():
        kept = "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in kept)
    return kept if len(text) <= limit else f"{kept}…"


def shown(value: object) -> str:
    """Return a value of the input as errors quote it: text in double quotes, shortened; collections by kind."""
    if isinstance(value, str):
        return f'"{escape(value, _MAX_SHOWN)}"'
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, int) and value.bit_length() > 256:
        # Python refuses to format integers of thousands of digits, which would not help users either.
        return "a number of more than 77 digits"
    return escape(str(value), _MAX_SHOWN)


def field_path(parent: str, key: str) -> str:
    """Return the path of an object's entry: `.metadata.labels.app`, with unusual keys in brackets."""
    return f"{parent}.{key}" if key.isidentifier() else f"{parent}[{shown(key)}]"


def placed(source: str, document: int | None, object_: str, path: str, problem: str) -> str:
    """Return a problem after its location, on one line of bounded length; unknown parts of the location are omitted."""
    parts = (source, "" if document is None else f"document {document}", object_, path)
    place = ", ".join(escape(part, _MAX_PART) for part in parts if part)
    problem = escape(problem, _MAX_PROBLEM)
    return f"{place}: {problem}" if place else problem


class PodiumError(Exception):
    """The base of all errors for users; the message is complete without a traceback."""


class InputError(PodiumError):
    """An error in a user's file or argument.

    `source` is the file's name or "", `document` the 1-based number of the document in it or None, `object` names the
    object as in `Pod default/web` or is "", `path` is the field as in `.spec.containers[0].image` or "", and `problem`
    says what is wrong and what would be right. `str()` is one line of bounded length.
    """

    def __init__(
        self,
        problem: str,
        *,
        source: str = "",
        document: int | None = None,
        object: str = "",  # noqa: A002 - named as the attribute is
        path: str = "",
    ) -> None:
        super().__init__(problem)
        self.problem = problem
        self.source = source
        self.document = document
        self.object = object
        self.path = path

    def located(
        self,
        *,
        source: str = "",
        document: int | None = None,
        object: str = "",  # noqa: A002 - named as the attribute is
    ) -> InputError:
        """Return the same error with unknown parts of its location filled in."""
        return type(self)(self.problem, path=self.path, **_filled(self, source, document, object))

    def __str__(self) -> str:
        return placed(self.source, self.document, self.object, self.path, self.problem)


def _filled(item: InputError | InputWarning, source: str, document: int | None, object_: str) -> dict[str, Any]:
    """Return the location of an error or a warning, with unknown parts filled in."""
    number = document if item.document is None else item.document
    return {"source": item.source or source, "document": number, "object": item.object or object_}


@contextmanager
def locating(path: str = "", **location: Any) -> Iterator[None]:
    """Let an InputError of the block get the path before its own, and the unknown parts of its location filled in."""
    try:
        yield
    except InputError as error:
        found = error.located(**location)
        found.path = path + error.path
        raise found from error.__cause__


@contextmanager
def os_error_as(problem: str, source: str) -> Iterator[None]:
    """Raise an OSError of the block as an InputError with this problem and the system's reason."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{problem}: {error.strerror or error}", source=source) from None


class MalformedError(InputError):
    """An error for a value that cannot be parsed as its field's type: text for a number, "1 Gi" for a quantity."""


def suggestion(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return a suggestion for a name that is not among the known ones; if none is like it, the known ones or a text."""
    names = list(known)
    if near := likely(name, names):
        return f"did you mean {' or '.join(near)}?"
    return otherwise or f"known are: {', '.join(names) or 'none'}"


def nodes_named(name: str, nodes: Collection[str]) -> list[str]:
    """Return the nodes that a name means, in order; [] for none.

    It is a whole name, a pattern for names or names without their domain, such as `ip-10-0-1-*`, or a name without its
    domain that only one node has.
    """
    if name in nodes:
        return [name]
    if set(name) & set("*?["):
        return sorted(node for node in nodes if fnmatchcase(node, name) or fnmatchcase(node.partition(".")[0], name))
    short = [node for node in nodes if node.startswith(f"{name}.")]
    return short if len(short) == 1 else []


def node_hint(name: str, nodes: Collection[str]) -> str:
    """Return the end of an error about an unknown node: the nodes that may be meant; "" for none.

    A machine's name without its domain matches the nodes with that name.
    """
    near = sorted(node for node in nodes if node.startswith(f"{name}.")) or likely(name, sorted(nodes))
    return f"; did you mean {' or '.join(near[:3])}?" if near else ""


def likely(name: str, known: Iterable[str]) -> list[str]:
    """Return the probably intended names: one that differs only in case, else similar ones, best first."""
    names = list(known)
    same = [one for one in names if one.lower() == name.lower()]
    # The comparison takes quadratic time, and no valid name is longer than this.
    return same or get_close_matches(name[:100], names)


Validation = Literal["strict", "warn", "ignore"]
"""The treatment of unknown fields, and of problems for which kube-apiserver would refuse an object.

`strict` makes them errors, `warn` reports them, `ignore` does not look for them. The values are those of kubectl's
`--validate`."""

Reason = Literal["unknown-field", "invalid", "slip", "left-out"]
"""The reason of a warning.

`unknown-field`: no schema of Kubernetes has the field. `invalid`: kube-apiserver would refuse the object. `slip`: it is
valid, but hardly intended. `left-out`: a file or a folder was not read."""

REFUSED: tuple[Reason, ...] = ("unknown-field", "invalid")
"""The reasons for which `strict` makes a warning an error."""


@dataclass(frozen=True, slots=True)
class InputWarning:
    """A warning about an object or a file of the input.

    The location is that of an InputError: `source` is the file's name or "", `document` the 1-based number in it or
    None, `object` as in `Pod default/web` or "", `path` as in `.spec.nodeSelectors` or "".
    """

    message: str
    reason: Reason
    source: str = ""
    document: int | None = None
    object: str = ""
    path: str = ""

    def located(self, *, source: str, document: int | None, object: str) -> InputWarning:  # noqa: A002
        """Return the same warning with unknown parts of its location filled in."""
        return replace(self, **_filled(self, source, document, object))

    def __str__(self) -> str:
        return placed(self.source, self.document, self.object, self.path, self.message)
