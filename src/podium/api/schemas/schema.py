"""The fields that Kubernetes' own kinds have at v1.36, and what belongs in each.

Where the structs of this package read what Podium needs, this says what there is: so that a field which no schema
knows can be told, and so that whatever is read from an object's wire form is of the type that it must have. The fields
stand as text in `podium.api.schemas`, taken from the API reference (k8s.io/api v0.36), in this form:

    PodSpec
      nodeName priority:int tolerations:[Toleration] volumes:[Volume]#name

A type, then its fields: text where nothing is said, else `int` (32 bits), `long` (64), `bool`, `float`, `time`,
`quantity`, `share` (a number or text), `bytes` (in base64), `any`, the name of a type, `[...]` for a list and `{...}`
for an object with whatever keys. Then what else is to be known, in this order: `!` marks an object that strategic merge
patch replaces as a whole, `^` a field that no update changes in the object of a kind or in its spec, `=value` what the
API server fills in and the store does too, `#name` a list that strategic merge patch merges by that field of its items,
and `#` one that it merges as a set.

This is the one place that says so; custom kinds join with the schemas of their definitions
(`podium.api.schemas.schema_registry`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from podium.api.kinds import SERVED_KINDS
from podium.api.pod_group_forms import OLDER_VERSION
from podium.api.schemas import (
    access,
    configuration,
    devices,
    extension,
    meta,
    network,
    nodes,
    pods,
    policies,
    storage,
    volumes,
    workloads,
)

_SUBJECTS = (
    meta,
    pods,
    volumes,
    nodes,
    workloads,
    policies,
    storage,
    devices,
    access,
    configuration,
    network,
    extension,
)
_OLDER_FORMS = {(OLDER_VERSION, "PodGroup"): "SchedulerPluginsPodGroup"}
_LEAVES = frozenset(("any", "bool", "bytes", "float", "int", "long", "quantity", "share", "str", "time"))


@dataclass(frozen=True, slots=True)
class Leaf:
    """A single value of one of the types above."""

    type: str


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list of such items."""

    item: Type


@dataclass(frozen=True, slots=True)
class MapOf:
    """An object with whatever keys and such values."""

    value: Type


@dataclass(frozen=True, slots=True)
class Object:
    """An object of a type that has a name, which is where its fields are found."""

    name: str


Type = Leaf | ListOf | MapOf | Object


@dataclass(frozen=True, slots=True)
class Field:
    """One field: what belongs in it, what it is when nobody says, and how updates and strategic merge patch treat it.

    `merge_key` None is a field that is patched like any other, "" a list that is merged as a set. `default` None is a
    field that stays open.
    """

    type: Type
    merge_key: str | None = None
    is_replaced: bool = False
    is_immutable: bool = False
    default: Any = None


Fields = Mapping[str, Field]


def schema_of(group: str, kind: str) -> Object | None:
    """The type of a kind's objects in the version that Podium knows; None for kinds whose fields are not known here."""
    return Object(kind) if (group, kind) in SERVED_KINDS and kind in _types() else None


def older_form_of(api_version: str, kind: str) -> Object | None:
    """The type of a kind's objects in another version, where those of that version have a type here; else None."""
    name = _OLDER_FORMS.get((api_version, kind))
    return None if name is None else Object(name)


def is_type(name: str) -> bool:
    """Whether there is a type of that name: a kind, or what is in one."""
    return name in _types()


@cache
def fields_of(name: str) -> Fields:
    """The fields of a type by name. Raises KeyError for a type that there is not."""
    return dict(map(_field, _types()[name]))


@cache
def immutable_paths(group: str, kind: str) -> tuple[tuple[str, ...], ...]:
    """The fields of a kind, and of its spec, that no update changes."""
    schema = schema_of(group, kind)
    if schema is None:
        return ()
    fields = fields_of(schema.name)
    spec = fields["spec"].type if "spec" in fields else None
    inner = fields_of(spec.name) if isinstance(spec, Object) else {}
    own = [(name,) for name, field in fields.items() if field.is_immutable]
    return (*own, *(("spec", name) for name, field in inner.items() if field.is_immutable))


@cache
def defaults_of(name: str) -> Mapping[str, Any]:
    """What the fields of a type are when nobody says. Raises KeyError for a type that there is not."""
    return {field: one.default for field, one in fields_of(name).items() if one.default is not None}


@cache
def _types() -> dict[str, list[str]]:
    """The fields of every type, as they are written."""
    found: dict[str, list[str]] = {}
    for subject in _SUBJECTS:
        name = ""
        for line in subject.FIELDS.strip().splitlines():
            if not line.startswith(" "):
                name = line
                if name in found:
                    raise AssertionError(f"the type {name} is told twice")
                found[name] = []
            else:
                found[name].extend(line.split())
    return found


def _field(written: str) -> tuple[str, Field]:
    rest, hash_, key = written.partition("#")
    rest, _, default = rest.partition("=")
    is_immutable = rest.endswith("^")
    rest = rest.removesuffix("^")
    is_replaced = rest.endswith("!")
    name, _, type_ = rest.removesuffix("!").partition(":")
    found = _type(type_ or "str")
    return name, Field(found, key if hash_ else None, is_replaced, is_immutable, _default(default, found))


def _default(written: str, type_: Type) -> Any:
    if not written:
        return None
    if type_ in (Leaf("int"), Leaf("long")):
        return int(written)
    return written == "true" if type_ == Leaf("bool") else written


def _type(written: str) -> Type:
    if written.startswith("["):
        return ListOf(_type(written[1:-1]))
    if written.startswith("{"):
        return MapOf(_type(written[1:-1]))
    return Leaf(written) if written in _LEAVES else Object(written)
