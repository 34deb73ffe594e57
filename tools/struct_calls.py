"""A mypy plugin: functions of `dataclasses` take dataclasses, those of `msgspec.structs` take structs.

mypy regards a `msgspec.Struct` as a dataclass: it accepts `dataclasses.replace(struct)`, which fails when it runs.
"""

from __future__ import annotations

from collections.abc import Callable

from mypy.plugin import FunctionContext, Plugin
from mypy.types import Instance, Type, TypeVarType, UnionType, get_proper_type

_STRUCT = "msgspec.Struct"
_TAKES_STRUCTS = {
    **dict.fromkeys((f"dataclasses.{name}" for name in ("replace", "fields", "asdict", "astuple")), False),
    **dict.fromkeys((f"msgspec.structs.{name}" for name in ("replace", "asdict", "astuple", "force_setattr")), True),
}


class StructCalls(Plugin):
    """Reports calls with an object of the wrong sort."""

    def get_function_hook(self, fullname: str) -> Callable[[FunctionContext], Type] | None:
        """Return the check of a function, None for one that takes any object."""
        takes_structs = _TAKES_STRUCTS.get(fullname)
        if takes_structs is None:
            return None

        def check(context: FunctionContext) -> Type:
            types = context.arg_types[0] if context.arg_types else ()
            if any(_is_struct(type_) not in (None, takes_structs) for type_ in types):
                sort = "dataclass" if takes_structs else "struct"
                context.api.fail(f"{fullname} does not take a {sort}", context.context)
            return context.default_return_type

        return check


def _is_struct(type_: Type) -> bool | None:
    """Return whether objects of a type are structs, None if that is not known."""
    proper = get_proper_type(type_)
    if isinstance(proper, TypeVarType):
        return _is_struct(proper.upper_bound)
    if isinstance(proper, UnionType):
        found = {_is_struct(item) for item in proper.items}
        return found.pop() if len(found) == 1 else None
    if not isinstance(proper, Instance):
        return None
    return any(base.fullname == _STRUCT for base in proper.type.mro)


def plugin(_version: str) -> type[StructCalls]:
    """Return the plugin for mypy."""
    return StructCalls
