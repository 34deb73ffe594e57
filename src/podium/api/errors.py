"""Errors for users, and the safe display of text from their files."""

from __future__ import annotations

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
        return type(self)(
            self.problem,
            source=self.source or source,
            document=document if self.document is None else self.document,
            object=self.object or object,
            path=self.path,
        )

    def __str__(self) -> str:
        return placed(self.source, self.document, self.object, self.path, self.problem)


class MalformedError(InputError):
    """An error for a value that cannot be parsed as its field's type: text for a number, "1 Gi" for a quantity."""
