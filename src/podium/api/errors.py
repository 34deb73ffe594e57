"""The errors that people see, and how text from their files is shown in them."""

from __future__ import annotations

_MAX_PART = 300
_MAX_PROBLEM = 1_000
_MAX_SHOWN = 80


def escape(text: str, limit: int) -> str:
    """The text on one line and at most about `limit` characters long.

    What a terminal would act on (control characters, ANSI escapes, direction marks, lone surrogates) is
    written as an escape sequence, so that a hostile file cannot colour, hide or forge output.
    """
    kept = text[:limit]
    if not kept.isprintable():
        kept = "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in kept)
    return kept if len(text) <= limit else f"{kept}…"


def shown(value: object) -> str:
    """A value of the input as errors quote it: text in double quotes, shortened; collections by kind."""
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
        # Python refuses to write integers of thousands of digits, and nobody wants to read them.
        return "a number of more than 77 digits"
    return escape(str(value), _MAX_SHOWN)


def field_path(parent: str, key: str) -> str:
    """The path of an object's entry: `.metadata.labels.app`, with keys that are not plain words in brackets."""
    return f"{parent}.{key}" if key.isidentifier() else f"{parent}[{shown(key)}]"


def placed(source: str, document: int | None, object_: str, path: str, problem: str) -> str:
    """A problem behind its place, on one line of bounded length; parts of the place that are not known are left out."""
    parts = (source, "" if document is None else f"document {document}", object_, path)
    place = ", ".join(escape(part, _MAX_PART) for part in parts if part)
    problem = escape(problem, _MAX_PROBLEM)
    return f"{place}: {problem}" if place else problem


class PodiumError(Exception):
    """The base of all errors that are shown to people; the message stands for itself, without a traceback."""


class InputError(PodiumError):
    """Something that a person wrote, or a file that they gave, is wrong.

    `source` is the file's name or "", `document` the 1-based number of the document in it or None, `object`
    names the object as in `Pod default/web` or is "", `path` is the field as in `.spec.containers[0].image`
    or "", and `problem` says what is wrong and what would be right. `str()` is one line of bounded length.
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
        """The same error with the parts of its place filled in that are not known yet."""
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
    """A value cannot be read as what its field holds: text for a number, "1 Gi" for a quantity."""
