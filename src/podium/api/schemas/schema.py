"""The catalogue of Kubernetes' types at v1.36: fields, types, defaults, merge keys and protobuf numbers.

Everything that depends on a type's fields follows from it: checks for unknown fields and wrong types, defaults,
strategic merge patch, field ownership, OpenAPI, and protobuf. The structs of this package read what Podium needs; the
catalogue is complete. It is text, taken from the API reference and the generated.proto files (k8s.io/api v0.36):

    [v1]
    kind Pod: spec:PodSpec status:PodStatus
    PodSpec: volumes:[Volume]%retainKeys#name nodeName@10 priority@25!:int ...

An API version, then its types. Types with the same fields are on one line, and `*` there stands for the name of each.
`kind` adds `apiVersion`, `kind` and `metadata`; `~` after the names marks objects that are atomic in server-side apply.
A field is a name, `@` and its protobuf number if it does not follow the one before (`-` for none), and its type; one
without a name has its fields inlined. `!` marks a field that JSON has even if it is 0, "" or empty. The default type is
text; others are `int` (32 bits), `long` (64), `bool`, `float`, `time`, `microtime`, `quantity`, `intOrString`, `bytes`
(in base64), `any`, the name of a type, `[...]` for a list and `{...}` for a map. Suffixes follow in this order:

    ^         the field of the object or its spec cannot be changed by updates
    ~ or +    server-side apply owns the map or object as a whole, or its fields, unlike others of the type
    %name     a patch strategy of strategic merge patch: replace, retainKeys
    =value    a default of the API server; nothing after `=` is "", and {} an empty object
    #name     strategic merge patch merges the list by that field of its items; without a name, as a set
    ##names   the same for server-side apply, if it differs; `-` for an atomic list

A name that an earlier version already has is prefixed with its version: `autoscaling/v1.HorizontalPodAutoscaler`.
The schemas of definitions are any JSON; only protobuf uses the types for them.
Custom kinds have the structural schemas of their definitions (`podium.api.structural`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from podium.api.forms import form_of
from podium.api.kinds import SERVED_KINDS, group_of
from podium.api.pod_group import OLDER_VERSION
from podium.api.schemas import core_types, group_types
from podium.api.versions.apis import served_versions

META_VERSION = "meta/v1"
"""The section of the types that all API groups share."""

# The types of kinds in other versions than the one that is stored.
_OTHER_FORMS = {
    (OLDER_VERSION, "PodGroup"): "SchedulerPluginsPodGroup",
    **{
        (f"scheduling.k8s.io/{version}", kind): f"scheduling.k8s.io/v1beta1.{kind}"
        for version in ("v1beta1", "v1alpha3")
        for kind in ("PodGroup", "Workload")
    },
}
_LEAVES = frozenset(
    ("any", "bool", "bytes", "float", "int", "intOrString", "long", "microtime", "quantity", "str", "time")
)
_OBJECT = ("apiVersion@-", "kind@-", "metadata:ObjectMeta")
_TYPE = re.compile(r"(kind )?([\w ]+)(~?):(.*)")
_FIELD = re.compile(
    r"(?P<name>[$\w-]*)(@(?P<number>\d+|-))?(?P<zero>!?)(:(?P<type>[\w\[\]{}]+))?(?P<immutable>\^?)(?P<atomic>[~+]?)"
    r"(%(?P<strategy>\w+))?(=(?P<default>[^#]*))?(#(?!#)(?P<merge_key>\w*))?(##(?P<list_keys>[\w,-]*))?"
)


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
    """A map with such values."""

    value: Type


@dataclass(frozen=True, slots=True)
class Object:
    """An object of a named type, by which its fields are found."""

    name: str


Type = Leaf | ListOf | MapOf | Object


@dataclass(frozen=True, slots=True)
class Field:
    """A field: its type, its default, and its behavior in updates, patches and protobuf.

    `merge_key` is for strategic merge patch: None means no special merge, "" a list that is merged as a set.
    `list_keys` is for server-side apply: None means an atomic list, () a set. `is_atomic` None means as the type is.
    `keeps_zero` means that JSON has the field even if it is 0, "" or empty. `number` None means no protobuf number.
    """

    type: Type
    merge_key: str | None = None
    list_keys: tuple[str, ...] | None = None
    is_atomic: bool | None = None
    strategy: str = ""
    is_immutable: bool = False
    default: Any = None
    number: int | None = None
    keeps_zero: bool = False


Fields = Mapping[str, Field]


class _Written(NamedTuple):
    """A type as written: its API version, whether it is atomic, and the texts of its fields."""

    api_version: str
    is_atomic: bool
    fields: list[str]


def schema_of(group: str, kind: str) -> Object | None:
    """Return the type of a kind's objects in the version that Podium knows; None for kinds with unknown fields."""
    return Object(kind) if (group, kind) in SERVED_KINDS and kind in _types() else None


def other_form_of(api_version: str, kind: str) -> Object | None:
    """Return the type of a kind's objects in another version, if it is defined here; otherwise None."""
    name = _OTHER_FORMS.get((api_version, kind))
    if name is None and form_of(api_version, kind) is None:
        known = SERVED_KINDS.get((group_of(api_version), kind))
        changing = served_versions().get((group_of(api_version), kind), ())
        if (
            known is not None
            and api_version != known.api_version
            and api_version in {of.api_version for of in changing}
        ):
            name = kind
    return None if name is None else Object(name)


def type_in(api_version: str, name: str) -> Object | None:
    """Return the type with that name in an API version, or None."""
    for key in (f"{api_version}.{name}", name):
        if key in _types() and _types()[key].api_version == api_version:
            return Object(key)
    return None


def is_type(name: str) -> bool:
    """Return whether a type of that name exists: a kind, or a nested type."""
    return name in _types()


def api_version_of(name: str) -> str:
    """Return the API version of a type. Raises KeyError for an unknown type."""
    return _types()[name].api_version


def is_atomic(name: str) -> bool:
    """Return whether server-side apply owns the objects of a type as a whole."""
    return _types()[name].is_atomic


@cache
def fields_of(name: str) -> Fields:
    """Return the fields of a type by name, including inlined ones. Raises KeyError for an unknown type."""
    found: dict[str, Field] = {}
    for field_name, field in own_fields(name):
        found |= {field_name: field} if field_name or not isinstance(field.type, Object) else fields_of(field.type.name)
    return found


@cache
def own_fields(name: str) -> tuple[tuple[str, Field], ...]:
    """Return the fields of a type with their names; "" for inlined ones. Raises KeyError for an unknown type."""
    written, number = _types()[name], 0
    found: list[tuple[str, Field]] = []
    for text in written.fields:
        field_name, field = _field(text, written.api_version, number + 1)
        number = field.number or number
        found.append((field_name, field))
    return tuple(found)


@cache
def immutable_paths(group: str, kind: str) -> tuple[tuple[str, ...], ...]:
    """Return the fields of a kind, and of its spec, that updates cannot change."""
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
    """Return the defaults of a type's fields. Raises KeyError for an unknown type."""
    return {field: one.default for field, one in fields_of(name).items() if one.default is not None}


@cache
def _types() -> dict[str, _Written]:
    """Return every type as written."""
    found: dict[str, _Written] = {}
    api_version = ""
    for line in f"{core_types.TYPES}{group_types.TYPES}".replace("\n ", "").splitlines():
        if line.startswith("["):
            api_version = line[1:-1]
        elif written := _TYPE.fullmatch(line):
            kind, names, atomic, rest = written.groups()
            for name in names.split():
                fields = [*(_OBJECT if kind else ()), *rest.replace("*", name).split()]
                key = f"{api_version}.{name}" if name in found else name
                if key in found:
                    raise AssertionError(f"the type {key} is defined twice")
                found[key] = _Written(api_version, bool(atomic), fields)
    return found


def _field(text: str, api_version: str, next_number: int) -> tuple[str, Field]:
    """Return a field with its name; ``next_number`` is its number if the text has none."""
    written = _FIELD.fullmatch(text)
    if written is None:
        raise AssertionError(f"the field {text} is malformed")
    type_ = _type(written["type"] or "str", api_version)
    key, keys = written["merge_key"], written["list_keys"]
    if keys is None:
        keys = "-" if key is None else key
    return written["name"], Field(
        type_,
        key,
        None if keys == "-" else tuple(keys.split(",")) if keys else (),
        written["atomic"] == "~" if written["atomic"] else None,
        written["strategy"] or "",
        bool(written["immutable"]),
        _default(written["default"], type_),
        None if written["number"] == "-" else int(written["number"] or next_number),
        bool(written["zero"]),
    )


def _default(written: str | None, type_: Type) -> Any:
    if not isinstance(type_, Leaf):
        return None if written is None else {}
    if written and (type_.type in ("int", "long") or (type_.type == "intOrString" and written.isdigit())):
        return int(written)
    return written == "true" if written and type_.type == "bool" else written


def _type(written: str, api_version: str) -> Type:
    if written.startswith("["):
        return ListOf(_type(written[1:-1], api_version))
    if written.startswith("{"):
        return MapOf(_type(written[1:-1], api_version))
    own = f"{api_version}.{written}"
    return Leaf(written) if written in _LEAVES else Object(own if own in _types() else written)
