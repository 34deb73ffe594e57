"""JSON Schemas out of tables of fields.

A table is text: the name of a type, then its fields, `name:type`. Text is what a field without a type holds; others are
`int`, `number`, `bool`, `any`, `[...]` for a list, `{...}` for an object with whatever keys, the name of a type, and
words with `|` between them, one of which it is. `?` behind the name marks a field that may not be there, `~` behind the
type one that may be null.
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]
DIALECT = "https://json-schema.org/draft/2020-12/schema"
_LEAVES: dict[str, Schema] = {
    "any": {},
    "bool": {"type": "boolean"},
    "int": {"type": "integer"},
    "number": {"type": "number"},
    "str": {"type": "string"},
}


def reference(name: str) -> Schema:
    """A type by its name."""
    return {"$ref": f"#/$defs/{name}"}


def definitions(table: str, *, is_closed: bool) -> dict[str, Schema]:
    """The types of a table by name. Those that are closed have no other fields."""
    fields: dict[str, list[str]] = {}
    name = ""
    for line in table.strip().splitlines():
        if line.startswith(" "):
            fields[name] += line.split()
        else:
            name = line
            fields[name] = []
    return {name: _object(written, is_closed=is_closed) for name, written in fields.items()}


def document(title: str, root: Schema, defined: dict[str, Schema]) -> Schema:
    """A schema that stands by itself; ``root`` is what it is about."""
    return {"$schema": DIALECT, "title": title, **root, "$defs": dict(sorted(defined.items()))}


def _object(fields: list[str], *, is_closed: bool) -> Schema:
    properties: dict[str, Schema] = {}
    required: list[str] = []
    for written in fields:
        name, _, type_ = written.partition(":")
        if not name.endswith("?"):
            required.append(name)
        properties[name.removesuffix("?")] = type_schema(type_ or "str")
    found: Schema = {"type": "object", "properties": properties}
    if required:
        found["required"] = required
    if is_closed:
        found["additionalProperties"] = False
    return found


def type_schema(written: str) -> Schema:
    """The schema of one type, as a table writes it."""
    if written.endswith("~"):
        return {"anyOf": [type_schema(written[:-1]), {"type": "null"}]}
    if written.startswith("["):
        return {"type": "array", "items": type_schema(written[1:-1])}
    if written.startswith("{"):
        return {"type": "object", "additionalProperties": type_schema(written[1:-1])}
    if "|" in written:
        return {"enum": written.split("|")}
    return dict(_LEAVES[written]) if written in _LEAVES else reference(written)
