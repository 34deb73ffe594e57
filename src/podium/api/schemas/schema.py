"""The catalogue of Kubernetes' types at v1.36, and the check of an object's wire form against it.

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

The check finds unknown fields and values of a wrong type. The typed reading covers only what Podium needs; this covers
everything, since controllers also read and pass on the wire form. A wrong type is always an error for kube-apiserver;
an unknown field only with strict validation. Quantities in requests become text in the canonical form, as
kube-apiserver returns them even if they are written as numbers. Source: apimachinery (pkg/api/resource/quantity.go,
UnmarshalJSON and MarshalJSON).
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, NamedTuple

import msgspec

from podium.api import forms, pod_group, quantity, times
from podium.api.errors import field_path, likely, shown
from podium.api.kinds import SERVED_KINDS, group_of
from podium.api.meta import Int32, Int64, Raw
from podium.api.schemas import core_types, group_types
from podium.api.versions.apis import served_versions

META_VERSION = "meta/v1"
"""The section of the types that all API groups share."""

# The types of kinds in other versions than the one that is stored.
_OTHER_FORMS = {
    (pod_group.OLDER_VERSION, "PodGroup"): "SchedulerPluginsPodGroup",
    **{
        (f"scheduling.k8s.io/{version}", kind): f"scheduling.k8s.io/v1beta1.{kind}"
        for version in ("v1beta1", "v1alpha3")
        for kind in ("PodGroup", "Workload")
    },
}
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


class Field(msgspec.Struct, frozen=True):
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
    if name is None and forms.form_of(api_version, kind) is None:
        known = SERVED_KINDS.get((group_of(api_version), kind))
        changing = served_versions().get((group_of(api_version), kind), ())
        is_other = known is not None and api_version != known.api_version
        if is_other and api_version in {of.api_version for of in changing}:
            name = kind
    return None if name is None else Object(name)


def type_in(api_version: str, name: str) -> Object | None:
    """Return the type with that name in an API version, or None."""
    found = (key for key in (f"{api_version}.{name}", name) if key in _types())
    return next((Object(key) for key in found if _types()[key].api_version == api_version), None)


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
                fields = [*(_OBJECT if kind else ()), *rest.replace(":*", f":{name}").split()]
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


def bytes_of(text: str) -> bytes:
    """Return the bytes of a text in base64. Line breaks within the text are ignored (encoding/base64).

    Raises ValueError for invalid base64, without quoting the text: it may be secret.
    """
    try:
        return b64decode(text.replace("\r", "").replace("\n", ""), validate=True)
    except ValueError:
        raise ValueError("the text is not in base64") from None


# The groups in which versions differ in the type of a field.
_RESHAPED = ("resource.k8s.io",)

_TIME = Annotated[str, msgspec.Meta(pattern=times.PLAIN_TIME)]
_QUANTITIES = Annotated[str, msgspec.Meta(pattern=quantity.PLAIN_QUANTITY)] | Int64
# By type: with which type msgspec recognizes its usual values, its name in messages, and its complete parser.
_LEAVES: dict[str, tuple[Any, str, Callable[[Any], object] | None]] = {
    "any": (Any, "", None),
    "bool": (bool, "true or false", None),
    "bytes": (bytes, "text in base64", bytes_of),
    "float": (float, "a number", None),
    "int": (Int32, "a whole number of 32 bits", None),
    "intOrString": (int | str, "a whole number or text", None),
    "long": (Int64, "a whole number of 64 bits", None),
    "microtime": (_TIME, "a time such as 2026-01-31T09:30:00.000000Z", times.parse_time),
    "quantity": (_QUANTITIES, 'an amount such as 2 or "500m"', quantity.parse_quantity),
    "str": (str, "text", None),
    "time": (_TIME, "a time such as 2026-01-31T09:30:00Z", times.parse_time),
}


class SchemaFinding(msgspec.Struct, frozen=True):
    """A problem at a path; `is_unknown` means that the field itself is unknown."""

    path: str
    message: str
    is_unknown: bool


def findings(raw: Raw, *, advises: bool = True) -> list[SchemaFinding]:
    """Return all deviations from the schema of the object's kind, in the object's order; none for unknown kinds.

    With `advises`, an unknown field comes with the probably intended one, which is expensive to find.

    If the object's version differs from the schema's and has no schema, unknown fields are accepted; known ones must
    have the same types.
    """
    version, kind = raw["apiVersion"], raw["kind"]
    group = group_of(version)
    other = other_form_of(version, kind)
    schema = other or schema_of(group, kind)
    is_other = other is None and schema is not None and version != SERVED_KINDS[group, kind].api_version
    if schema is None or (is_other and group in _RESHAPED) or fits(raw, schema):
        return []
    return [finding for finding in _wrong(raw, schema, "", advises) if not (is_other and finding.is_unknown)]


def without_unknown(raw: Raw) -> Raw:
    """Return the object without fields that are not in its schema; the object itself if there are none.

    An object of a kind or version without a known schema is returned unchanged.
    """
    group = group_of(raw["apiVersion"])
    kind = SERVED_KINDS.get((group, raw["kind"]))
    schema = schema_of(group, raw["kind"]) if kind is not None and kind.api_version == raw["apiVersion"] else None
    return raw if schema is None or fits(raw, schema) else _pruned(raw, schema)


def _parts(value: Any, type_: Type) -> list[tuple[Any, Any, Type | None]] | None:
    """Return the parts of a list or an object by key, with their types, None for unknown fields; None for others."""
    match type_:
        case ListOf(item) if isinstance(value, list):
            return [(index, part, item) for index, part in enumerate(value)]
        case MapOf(item) if isinstance(value, dict):
            return [(key, part, item) for key, part in value.items()]
        case Object(name) if isinstance(value, dict):
            fields = fields_of(name)
            return [(key, part, fields[key].type if key in fields else None) for key, part in value.items()]
    return None


def _pruned(value: Any, type_: Type) -> Any:
    parts = _parts(value, type_)
    if parts is None:
        return value
    kept = {key: _pruned(part, of) for key, part, of in parts if of is not None}
    return list(kept.values()) if isinstance(value, list) else kept


def fits(value: Any, type_: Type) -> bool:
    """Return whether the value is certainly valid, by a cheap test that most values pass."""
    try:
        msgspec.convert(value, _python_type(type_))
    except msgspec.ValidationError:
        return False
    return True


@cache
def _python_type(type_: Type) -> Any:
    """Return the type with which msgspec accepts exactly the valid values."""
    match type_:
        case Leaf(name):
            return _LEAVES[name][0]
        case ListOf(item):
            return list[_python_type(item)]  # type: ignore[misc]
        case MapOf(value):
            return dict[str, _python_type(value)]  # type: ignore[misc]
        case Object(name):
            fields = [(field, _python_type(one.type), None) for field, one in fields_of(name).items()]
            return msgspec.defstruct(name, fields, forbid_unknown_fields=True, gc=False)


def _wrong(value: Any, type_: Type, path: str, advises: bool) -> Iterator[SchemaFinding]:
    """Yield the problems of a value that does not fit its type."""
    parts = _parts(value, type_)
    if parts is None:
        problem = _problem(value, type_)
        if problem:
            yield SchemaFinding(path, problem, is_unknown=False)
        return
    for key, part, of in parts:
        place = f"{path}[{key}]" if isinstance(key, int) else field_path(path, key)
        if of is None:
            near = likely(key, fields_of(type_.name)) if advises and isinstance(type_, Object) else []
            advice = f"; did you mean {' or '.join(near)}?" if near else ""
            yield SchemaFinding(place, f"there is no such field{advice}", is_unknown=True)
        elif not fits(part, of):
            yield from _wrong(part, of, place, advises)


def _problem(value: Any, type_: Type) -> str:
    """Return the problem of a value that does not fit its type; "" if it is valid in an unusual notation."""
    if not isinstance(type_, Leaf):
        return f"{shown(value)} is not {'a list' if isinstance(type_, ListOf) else 'an object'}"
    name = type_.type
    _, words, parse = _LEAVES[name]
    if parse is not None and (isinstance(value, str) or (name == "quantity" and isinstance(value, int | float))):
        try:
            parse(value)
        except ValueError as error:
            return str(error)
        return ""
    advice = "; put it in quotes" if name == "str" and isinstance(value, bool | int | float) else ""
    return f"{shown(value)} is not {words}{advice}"


_QUANTITY = Leaf("quantity")


def write_out_amounts(value: Any, type_: Type) -> None:
    """Write quantities in their canonical form, within a value of a type; the value is changed in place."""
    places: Iterable[tuple[Any, Type]] = ()
    match type_:
        case Object(name) if type(value) is dict:
            places = [place for place in _fields_with_amounts(name) if place[0] in value]
        case MapOf(inner) if type(value) is dict:
            places = dict.fromkeys(value, inner).items()
        case ListOf(inner) if type(value) is list:
            places = enumerate([inner] * len(value))
    for key, of in places:
        part = value[key]
        # The only single values here are quantities.
        if type(of) is not Leaf:
            write_out_amounts(part, of)
        elif isinstance(part, str | int | float):
            # Validation reports an invalid one.
            with suppress(ValueError):
                value[key] = quantity.canonical_quantity(part)


@cache
def _fields_with_amounts(name: str, within: frozenset[str] = frozenset()) -> tuple[tuple[str, Type], ...]:
    """Return the fields of a type that may contain quantities at any depth; `within` types are being visited."""
    found = []
    for field_name, field in fields_of(name).items() if name not in within else ():
        inner = field.type
        while isinstance(inner, ListOf | MapOf):
            inner = inner.item if isinstance(inner, ListOf) else inner.value
        if inner == _QUANTITY or (isinstance(inner, Object) and _fields_with_amounts(inner.name, within | {name})):
            found.append((field_name, field.type))
    return tuple(found)
