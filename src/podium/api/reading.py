"""The conversion of plain dictionaries and lists to the typed readings of this package.

msgspec converts; this module rewords its errors for users.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar

import msgspec

from podium.api.errors import InputError, MalformedError, field_path, shown, suggestion
from podium.api.times import parse_duration

T = TypeVar("T")

Text = Annotated[str, msgspec.Meta(min_length=1)]
"""Text that is not empty."""


DURATION_SCHEMA = {"type": ["string", "number"], "description": "As Go writes it, 1h30m; a bare number counts seconds."}
"""The JSON Schema of a duration."""

if TYPE_CHECKING:
    # Code may use any whole number of nanoseconds.
    Duration = int
    Interval = int
else:

    class Duration(int):
        """A duration in nanoseconds, written as in "1h30m"; a bare number counts seconds.

        Like any type with `from_written`, which raises ValueError, it can be the type of a field of a struct.
        """

        LEAST: ClassVar[int] = 0
        SCHEMA: ClassVar[dict[str, Any]] = DURATION_SCHEMA

        @classmethod
        def from_written(cls, written: Any) -> int:
            """Return the duration that a field holds. Raises ValueError."""
            duration_ns = parse_duration(written)
            if duration_ns < cls.LEAST:
                right = "more than 0s" if cls.LEAST else "0s or more"
                raise ValueError(f"{shown(written)} is too short; write {right}")
            return cls(duration_ns)

    class Interval(Duration):
        """A duration of more than 0s."""

        LEAST = 1


_PLACE = re.compile(r"(?P<problem>.*?)(?: - at (?P<key>`key` in )?`\$(?P<path>[^`]*)`)?", re.DOTALL)
_STEP = re.compile(r"\.(?P<field>\w+)|\[(?P<index>\d+)\]|(?P<any>\[\.\.\.\])")
_MISSING = re.compile(r"Object missing required field `(\w+)`")
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_EXPECTED = re.compile(r"Expected `([^`]+)`, got `(\w+)`")
_LIMITED = re.compile(r"Expected `(?:int|float)` (.+)")
_EMPTY = "Expected `str` of length >= 1"
_WORDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
}
_TYPE_NAMES = {str: "str", bool: "bool", int: "int", float: "float", list: "array", dict: "object"}


def read(raw: dict[str, Any], type_: type[T]) -> T:
    """Return the object as that type. Raises InputError with the field's path and the expected value.

    It is a MalformedError, except for a missing field or a value that is not in its list.
    """
    try:
        return msgspec.convert(raw, type_, dec_hook=lambda own_type, written: own_type.from_written(written))
    except msgspec.ValidationError as error:
        raise _explained(str(error), raw, type_) from None


def _explained(message: str, raw: dict[str, Any], type_: type[Any]) -> InputError:
    match = _PLACE.fullmatch(message)
    problem, steps = (message, "") if match is None else (match["problem"], match["path"] or "")
    named = _UNKNOWN.fullmatch(message)
    if named and named[1] in raw:
        # The name of a field of the object itself may look like a location.
        problem, steps = message, ""
    expected = _EXPECTED.fullmatch(problem)
    path, value, rest = _found(raw, steps, expected[2] if expected else "")
    unknown = _UNKNOWN.fullmatch(problem)
    if unknown:
        struct: msgspec.inspect.StructType = _with_parts(_type_at(type_, steps))
        known = suggestion(unknown[1], (field.encode_name for field in struct.fields))
        problem = f"there is no field {shown(unknown[1])}; {known}"
        return InputError(problem, path=path + rest)
    if rest:
        return MalformedError(problem, path=path + rest)
    missing = _MISSING.fullmatch(problem)
    if missing:
        return InputError("is missing, and must be given", path=f"{path}.{missing[1]}")
    if expected:
        advice = "; put it in quotes" if expected[1] == "str" and expected[2] in ("int", "float", "bool") else ""
        return MalformedError(f"{shown(value)} is not {_in_words(expected[1])}{advice}", path=path)
    if problem.startswith("Invalid enum value"):
        allowed = ", ".join(shown(value) for value in _allowed(type_, steps))
        return InputError(f"{shown(value)} is not one of {allowed}", path=path)
    limited = _LIMITED.fullmatch(problem)
    if limited:
        return MalformedError(f"{shown(value)} is out of range; it must be {limited[1]}", path=path)
    if problem == _EMPTY:
        return MalformedError("is empty; text is needed", path=path)
    return InputError(problem, path=path)


def _in_words(types: str) -> str:
    words = [_WORDS[name] for name in types.split(" | ") if name != "null"]
    # "a whole number or a number" means the same as "a number".
    if _WORDS["float"] in words:
        words = [word for word in words if word != _WORDS["int"]]
    return " or ".join(words)


def _found(raw: Any, steps: str, got: str) -> tuple[str, Any, str]:
    """Return the path of the value at msgspec's steps, that value, and the steps that are ambiguous.

    msgspec writes `[...]` for "some entry of this object": it is the first entry of the reported type if the entry
    itself is wrong; otherwise it is unknown.
    """
    path, value = "", raw
    for step in _STEP.finditer(steps):
        if step["field"]:
            key = step["field"]
        elif step["index"]:
            path, value = f"{path}[{step['index']}]", value[int(step["index"])]
            continue
        else:
            wrong = [key for key, entry in value.items() if _TYPE_NAMES.get(type(entry), "null") == got]
            if not wrong or step.end() < len(steps):
                return path, value, steps[step.start() :]
            key = wrong[0]
        path, value = field_path(path, key), value[key]
    return path, value, ""


def _allowed(type_: type[Any], steps: str) -> tuple[object, ...]:
    """Return the allowed values of the field at the end of the steps."""
    allowed: list[object] = []
    for each in _members(_type_at(type_, steps)):
        if isinstance(each, msgspec.inspect.LiteralType):
            allowed += each.values
        elif isinstance(each, msgspec.inspect.EnumType):
            allowed += sorted(member.value for member in each.cls)
    return tuple(allowed)


def _type_at(type_: type[Any], steps: str) -> Any:
    """Return the type at the end of the steps."""
    node: Any = msgspec.inspect.type_info(type_)
    for step in _STEP.finditer(steps):
        node = _with_parts(node)
        if isinstance(node, msgspec.inspect.StructType):
            node = next(field.type for field in node.fields if field.encode_name == step["field"])
        else:
            node = node.value_type if isinstance(node, msgspec.inspect.DictType) else node.item_type
    return node


def _members(node: Any) -> list[Any]:
    """Return the types of a union without None; another type alone."""
    types = node.types if isinstance(node, msgspec.inspect.UnionType) else (node,)
    return [type_ for type_ in types if not isinstance(type_, msgspec.inspect.NoneType)]


def _with_parts(node: Any) -> Any:
    """Return the member of a union that has parts: a list or an object."""
    plain = (msgspec.inspect.LiteralType, msgspec.inspect.BoolType)
    return next(type_ for type_ in _members(node) if not isinstance(type_, plain))
