"""The JSON Schemas that ship with Podium, by name, made from structs, tables of fields, and Kubernetes' kinds.

The tables are in the text file `answers.txt`, by command, which is in brackets: a line for each type, with its name
and its fields, `name:type`; indented lines continue it. A field without a type is text; other types are `int`,
`number`, `bool`, `any`, `[...]` for a list, `{...}` for an object with any keys, the name of a type, and alternatives
separated by `|`. `?` behind the name marks an optional field, `~` behind the type one that may be null.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from typing import Any

import msgspec

from podium.api.kinds import KINDS
from podium.api.reading import DURATION_SCHEMA
from podium.api.schemas.schema import Leaf, ListOf, MapOf, Object, Type, fields_of, is_type
from podium.api.times import format_duration
from podium.controllers.ledger.disruption import Disruption, UsageEntry
from podium.sim.history import SimEvent
from podium.sim.results.disruption_state import DisruptionState
from podium.sim.results.result import FinalNode
from podium.sim.scenario.actions import STEP_NAMES
from podium.sim.scenario.scenario import WrittenScenario

_ANSWERS = resources.files("podium.app.schemas").joinpath("answers.txt").read_text(encoding="utf-8")
_TABLES = dict(part.split("]\n", 1) for part in _ANSWERS.removeprefix("[").split("\n["))

Schema = dict[str, Any]
DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TEXT_OR_NUMBER: Schema = {"type": ["string", "number"]}
_TYPES: dict[str, Schema] = {
    "any": {},
    "bool": {"type": "boolean"},
    "bytes": {"type": "string"},
    "float": {"type": "number"},
    "int": {"type": "integer"},
    "intOrString": _TEXT_OR_NUMBER,
    "long": {"type": "integer"},
    "microtime": {"type": "string"},
    "number": {"type": "number"},
    "quantity": _TEXT_OR_NUMBER,
    "str": {"type": "string"},
    "time": {"type": "string"},
}
"""The single values of tables and of the catalogue."""


def reference(name: str) -> Schema:
    """Return a reference to a type."""
    return {"$ref": f"#/$defs/{name}"}


def definitions(table: str) -> dict[str, Schema]:
    """Return the types of a table by name; indented lines continue the one before."""
    lines = (line.partition(": ") for line in table.replace("\n  ", " ").splitlines())
    return {name: _object(fields.split()) for name, _, fields in lines}


def document(title: str, root: Schema, defined: dict[str, Schema]) -> Schema:
    """Return a complete schema of ``root``."""
    return {"$schema": DIALECT, "title": title, **root, "$defs": dict(sorted(defined.items()))}


def _object(fields: list[str]) -> Schema:
    properties: dict[str, Schema] = {}
    required: list[str] = []
    for written in fields:
        name, _, type_ = written.partition(":")
        if not name.endswith("?"):
            required.append(name)
        properties[name.removesuffix("?")] = _table_type(type_ or "str")
    found: Schema = {"type": "object", "properties": properties}
    if required:
        found["required"] = required
    return found


def _table_type(written: str) -> Schema:
    if written.endswith("~"):
        return {"anyOf": [_table_type(written[:-1]), {"type": "null"}]}
    if written.startswith("["):
        return {"type": "array", "items": _table_type(written[1:-1])}
    if written.startswith("{"):
        return {"type": "object", "additionalProperties": _table_type(written[1:-1])}
    if "|" in written:
        return {"enum": written.split("|")}
    return dict(_TYPES[written]) if written in _TYPES else reference(written)


def scenario_schema() -> Schema:
    """Return the schema of a Scenario: each step has exactly one action, each applied object the fields of its kind."""
    (root,), defined = msgspec.json.schema_components(
        [WrittenScenario],
        schema_hook=lambda type_: {**type_.SCHEMA},  # type: ignore[attr-defined]
        ref_template="#/$defs/{name}",
    )
    for type_ in defined.values():
        for field in type_["properties"].values():
            if field.get("description") == DURATION_SCHEMA["description"] and "default" in field:
                field["default"] = format_duration(field["default"])
    defined["Step"]["oneOf"] = [{"required": [name]} for name in STEP_NAMES]
    defined["ScenarioObject"] = {
        "type": "object",
        "required": ["apiVersion", "kind"],
        "properties": {"kind": {"enum": kinds()}},
        "allOf": [{"if": {"properties": {"kind": {"const": kind}}}, "then": reference(kind)} for kind in kinds()],
    }
    objects = object_schemas()
    if defined.keys() & objects.keys():
        raise AssertionError(f"types are defined twice: {', '.join(sorted(defined.keys() & objects.keys()))}")
    return document("A Scenario of podium simulate", root, defined | objects)


def kinds() -> list[str]:
    """Return the kinds with known fields that a scenario may apply, by name."""
    return sorted({kind.name for kind in KINDS.values() if is_type(kind.name)})


def object_schemas() -> dict[str, Schema]:
    """Return the types of all those kinds and of their fields, by name. A field may be null, as in manifests."""
    found: dict[str, Schema] = {}
    waiting = kinds()
    versions = {kind.name: kind.api_version for kind in KINDS.values()}
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        fields = fields_of(name)
        properties = {field: _field_type(each.type, waiting) for field, each in fields.items()}
        found[name] = {"type": ["object", "null"], "properties": properties, "additionalProperties": False}
        if name in versions and "kind" in fields:
            found[name]["required"] = ["apiVersion", "kind"]
            properties |= {"kind": {"const": name}, "apiVersion": {"type": "string"}}
    return found


def _field_type(type_: Type, named: list[str]) -> Schema:
    """Return the schema of a field's type; the types that it refers to are added to ``named``."""
    match type_:
        case Leaf():
            types = _TYPES[type_.type].get("type", [])
            return {"type": [*([types] if isinstance(types, str) else types), "null"]} if types else {}
        case ListOf():
            return {"type": ["array", "null"], "items": _field_type(type_.item, named)}
        case MapOf():
            return {"type": ["object", "null"], "additionalProperties": _field_type(type_.value, named)}
        case Object():
            named.append(type_.name)
            return reference(type_.name)


def _answer_schema(tables: Sequence[str], *roots: str, structs: Sequence[type[msgspec.Struct]] = ()) -> Schema:
    """Return the schema of what a command answers, by the last of these tables. Additional keys are allowed.

    An answer has all fields of the ``structs``, and those that the tables add to them.
    """
    states: dict[str, Schema] = msgspec.json.schema(DisruptionState)["$defs"]
    root = {"anyOf": [reference(name) for name in roots]} if len(roots) > 1 else reference(roots[0])
    found = definitions("".join(_TABLES[name] for name in ("common", *tables)))
    for name, derived in msgspec.json.schema_components(structs, ref_template="#/$defs/{name}")[1].items():
        properties = {**derived["properties"], **found.get(name, {}).get("properties", {})}
        found[name] = {"type": "object", "properties": properties, "required": list(properties)}
    return document(f"What podium {tables[-1]} -o json answers", root, found | states)


def _plan_schema() -> Schema:
    # The questions import all that they decide with.
    from podium.app.planning.deciding.protection import PriorityClassThreat
    from podium.app.planning.impact import NodeImpact, PlanFinding, WorkloadImpact
    from podium.app.planning.outcomes import WorkloadLoss
    from podium.app.planning.questions.deploy import PlannedPreemption

    structs = (NodeImpact, PlanFinding, PlannedPreemption, PriorityClassThreat, WorkloadImpact, WorkloadLoss)
    return _answer_schema(("simulate", "reschedule", "plan"), "PlanAnswer", structs=_RESULT + structs)


_RESULT = (Disruption, FinalNode, SimEvent, UsageEntry)
_EXPLAIN_ROOTS = ("Explanation", "WorkloadExplanation", "NodeAnswer")
SCHEMAS: Mapping[str, Callable[[], Schema]] = {
    "explain": lambda: _answer_schema(["explain"], *_EXPLAIN_ROOTS),
    "simulate": lambda: _answer_schema(["simulate"], "Result", structs=_RESULT),
    "plan": _plan_schema,
    "reschedule": lambda: _answer_schema(["reschedule"], "Rescheduling"),
    "scenario": scenario_schema,
}
"""The function that makes each schema."""
