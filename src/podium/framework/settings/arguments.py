"""A plugin's own arguments, from ``pluginConfig`` of the configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from podium.api.errors import InputError, shown
from podium.framework.settings.strict import Strict, read_strictly

T = TypeVar("T")


class Arguments(Strict, frozen=True, kw_only=True):
    """The base of a plugin's arguments: give every field its default, as upstream's defaults.go does.

    A ``__post_init__`` that raises ValueError says what a type cannot.
    """


def read_arguments(args: Mapping[str, Any], type_: type[T], plugin: str) -> T:
    """The arguments of ``plugin`` as a value of ``type_``, best a subclass of `Arguments`.

    Where they say by their ``kind`` what they are, it has to be the plugin's name with Args. Raises InputError that
    names the plugin and the field's path within the arguments.
    """
    kind = args.get("kind", f"{plugin}Args")
    if kind != f"{plugin}Args":
        problem = f"is {shown(kind)}; {plugin}Args is needed"
        raise InputError(problem, object=f"plugin {plugin}", path=".kind")
    own = {key: value for key, value in args.items() if key not in ("apiVersion", "kind")}
    try:
        return read_strictly(own, type_)
    except InputError as error:
        raise error.located(object=f"plugin {plugin}") from None
