"""A plugin's arguments, from ``pluginConfig`` of the configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

import msgspec

from podium.api.errors import InputError, locating, shown
from podium.api.reading import read


def _wire_name(name: str) -> str:
    first, *others = name.removesuffix("_ns").split("_")
    return first + "".join(map(str.capitalize, others))


class Strict(msgspec.Struct, frozen=True, kw_only=True, rename=_wire_name, forbid_unknown_fields=True):
    """The base of configuration structs: immutable, unknown fields refused, and camelCase on the wire without `_ns`."""


def read_strictly(raw: Mapping[str, Any], type_: type[T]) -> T:
    """Return a document of dicts, lists and scalars, without nulls, as a value of ``type_``.

    Raises InputError with the field's path, what is wrong with it and what would be right.
    """
    value: T = read(dict(raw), cast("Any", type_))
    return value


T = TypeVar("T")


class Arguments(Strict, frozen=True, kw_only=True):
    """The base of a plugin's arguments: every field has a default, as in upstream's defaults.go.

    A ``__post_init__`` that raises ValueError checks what a type cannot express.
    """


def read_arguments(args: Mapping[str, Any], type_: type[T], plugin: str) -> T:
    """Return the arguments of ``plugin`` as a value of ``type_``, preferably a subclass of `Arguments`.

    A ``kind`` in them must be the plugin's name with Args. Raises InputError that names the plugin and the field's path
    within the arguments.
    """
    kind = args.get("kind", f"{plugin}Args")
    if kind != f"{plugin}Args":
        problem = f"is {shown(kind)}; {plugin}Args is needed"
        raise InputError(problem, object=f"plugin {plugin}", path=".kind")
    own = {key: value for key, value in args.items() if key not in ("apiVersion", "kind")}
    with locating(object=f"plugin {plugin}"):
        return read_strictly(own, type_)
