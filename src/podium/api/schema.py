"""The fields that Kubernetes' own kinds have at v1.36, and what belongs in each.

Where the structs of this package read what Podium needs, this says what there is: so that a field which no schema
knows can be told, and so that whatever is read from an object's wire form is of the type that it must have. The fields
stand as text in `podium.api.schemas`, taken from the API reference (k8s.io/api v0.36), in this form:

    PodSpec
      nodeName priority:int tolerations:[Toleration] volumes:[Volume]#name

A type, then its fields: text where nothing is said, else `int` (32 bits), `long` (64), `bool`, `float`, `time`,
`quantity`, `share` (a number or text), `any`, the name of a type, `[...]` for a list and `{...}` for an object with
whatever keys. `#name` marks a list that strategic merge patch merges by that field of its items, `#` one that it merges
as a set, `!` an object that it replaces as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from podium.api.kinds import KINDS
from podium.api.schemas import devices, meta, nodes, pods, policies, storage, volumes, workloads

_SUBJECTS = (meta, pods, volumes, nodes, workloads, policies, storage, devices)
_LEAVES = frozenset(("any", "bool", "float", "int", "long", "quantity", "share", "str", "time"))


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
    """One field: what belongs in it, and how strategic merge patch treats it.

    `merge_key` None is a field that is patched like any other, "" a list that is merged as a set.
    """

    type: Type
    merge_key: str | None = None
    is_replaced: bool = False


Fields = Mapping[str, Field]


def schema_of(group: str, kind: str) -> Object | None:
    """The type of a kind's objects in the version that Podium knows; None for kinds whose fields are not known here."""
    return Object(kind) if (group, kind) in KINDS and kind in _types() else None


def is_type(name: str) -> bool:
    """Whether there is a type of that name: a kind, or what is in one."""
    return name in _types()


@cache
def fields_of(name: str) -> Fields:
    """The fields of a type by name. Raises KeyError for a type that there is not."""
    return dict(map(_field, _types()[name]))


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
    is_replaced = rest.endswith("!")
    name, _, type_ = rest.removesuffix("!").partition(":")
    return name, Field(_type(type_ or "str"), key if hash_ else None, is_replaced)


def _type(written: str) -> Type:
    if written.startswith("["):
        return ListOf(_type(written[1:-1]))
    if written.startswith("{"):
        return MapOf(_type(written[1:-1]))
    return Leaf(written) if written in _LEAVES else Object(written)
