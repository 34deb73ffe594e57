"""How a class that people wrote is found by its name in a configuration, and made.

Code is loaded for names in the configuration alone, never for anything that stands in a manifest.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from podium.api.errors import shown
from podium.api.schemas.suggestion import suggestion
from podium.framework.errors import PluginError, is_failure
from podium.framework.plugin import PluginContext

_STARRED = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def find_class(name: str, noun: str, group: str, in_tree: Iterable[str]) -> type[Any]:
    """The class that a name stands for which is not in the table: one in a module, or one of an installed package.

    A name like ``package.module:Class`` is a class in an importable module; any other is looked up among the entry
    points of ``group``. ``noun`` says in errors what is looked for, and ``in_tree`` which names there are besides.
    Raises PluginError for an unknown name, and for code that does not load.
    """
    if ":" in name:
        return _class_at(name)
    installed = entry_points(group=group)
    places = sorted({f"{point.module}:{point.attr}" for point in installed if point.name == name})
    if len(places) > 1:
        raise PluginError(f"several packages have a {noun} {shown(name)}; write which: {' or '.join(places)}")
    if places:
        return _class_at(places[0])
    names = [*in_tree, *sorted({point.name for point in installed})]
    raise PluginError(
        f"there is no {noun} {shown(name)} ({suggestion(name, names)}); a class of your own is written "
        "package.module:Class"
    )


def _class_at(place: str) -> type[Any]:
    """The class that ``package.module:Class`` stands for."""
    module_name, _, class_name = place.partition(":")
    if not all(part.isidentifier() for part in (*module_name.split("."), class_name)):
        raise PluginError(f"{shown(place)} is no place of a class; write it as in package.module:Class")
    try:
        module = import_module(module_name)
    except BaseException as error:
        if not is_failure(error):
            raise
        raise PluginError(
            f"module {module_name} does not load: {type(error).__name__}: {error} "
            "(is it installed, or its folder on PYTHONPATH?)"
        ) from error
    found = getattr(module, class_name, None)
    if not isinstance(found, type):
        classes = [name for name, value in vars(module).items() if isinstance(value, type)]
        raise PluginError(f"module {module_name} has no class {class_name}; {suggestion(class_name, classes)}")
    return found


def takes_context(made: type[Any]) -> bool:
    """Whether a class's constructor has a place for a PluginContext. Raises PluginError when it needs more."""
    parameters = [each for each in inspect.signature(made).parameters.values() if each.kind not in _STARRED]
    takes = bool(parameters) and parameters[0].kind is not inspect.Parameter.KEYWORD_ONLY
    needed = [each.name for each in parameters[takes:] if each.default is inspect.Parameter.empty]
    if needed:
        raise PluginError(
            f"the constructor of {made.__name__} needs {', '.join(needed)}; it is given a PluginContext, or nothing"
        )
    return takes


def maker_of(made: type[Any], protocol: type[Any]) -> Callable[[PluginContext], Any]:
    """What makes an instance of a class that people wrote: with the context, if its constructor has a place for one.

    A class that has no name but the one that it may inherit from its protocol, which says nothing, is given its own.
    """
    has_context = takes_context(made)
    if getattr(made, "name", protocol.name) is protocol.name:
        made.name = made.__name__
    return lambda context: made(context) if has_context else made()


def require_name(instance: Any) -> None:
    """Raise PluginError for an instance of such a class that has no proper name."""
    name: object = instance.name
    if not isinstance(name, str) or not name:
        raise PluginError(f"the name of a {type(instance).__name__} is {shown(name)}; text is needed")


@cache
def methods_of(protocol: type) -> tuple[str, ...]:
    """The methods that a protocol itself asks for."""
    return tuple(
        name for name, value in vars(protocol).items() if inspect.isfunction(value) and not name.startswith("_")
    )


@cache
def properties_of(protocol: type) -> tuple[str, ...]:
    """The properties that a protocol itself asks for."""
    return tuple(name for name, value in vars(protocol).items() if isinstance(value, property))
