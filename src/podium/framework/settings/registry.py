"""Where plugins come from: the table of those in Podium, classes that the configuration names, and entry points.

Code is loaded for names in the configuration alone, never for anything that stands in a manifest.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from podium.api.errors import shown
from podium.api.schemas.suggestion import suggestion
from podium.framework.errors import PluginError, is_failure
from podium.framework.plugin import Plugin, PluginContext, PodChangePlugin
from podium.framework.settings.profile import EXTENSION_POINTS

Factory = Callable[[PluginContext], Plugin]

ENTRY_POINT_GROUP = "podium.plugins"

PROTOCOLS = (*(protocol for protocols in EXTENSION_POINTS.values() for protocol in protocols), PodChangePlugin)
"""What a plugin can be; that of pod changes comes on top of PreFilter."""

_STARRED = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class Registry:
    """Finds the factory of a plugin by its name in the configuration.

    ``in_tree`` comes first. A name like ``package.module:Class`` is a class in an importable module; any other is
    looked up among the entry points of the group ``podium.plugins``. The constructor of a class found in either way
    takes a `PluginContext` or nothing; a class without a ``name`` is given its own as an attribute.
    """

    def __init__(self, in_tree: Mapping[str, Factory]) -> None:
        self._in_tree = dict(in_tree)

    def __contains__(self, name: str) -> bool:
        return name in self._in_tree

    def resolve(self, name: str) -> Factory:
        """The factory of a plugin. Raises PluginError for an unknown name, and for code that cannot be used."""
        known = self._in_tree.get(name)
        if known is not None:
            return known
        if ":" in name:
            return _factory(_class_at(name))
        installed = entry_points(group=ENTRY_POINT_GROUP)
        places = sorted({f"{point.module}:{point.attr}" for point in installed if point.name == name})
        if len(places) > 1:
            raise PluginError(f"several packages have a plugin {shown(name)}; write which: {' or '.join(places)}")
        if places:
            return _factory(_class_at(places[0]))
        names = [*self._in_tree, *sorted({point.name for point in installed})]
        raise PluginError(
            f"there is no plugin {shown(name)} ({suggestion(name, names)}); "
            "a class of your own is written package.module:Class"
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


def _factory(made: type[Any]) -> Factory:
    """What makes an instance of a class that is written as a plugin."""
    methods = [method for protocol in PROTOCOLS for method in _methods(protocol)]
    if not any(hasattr(made, method) for method in methods):
        raise PluginError(f"class {made.__name__} is no plugin: it has none of the methods {', '.join(methods)}")
    takes_context = _takes_context(made)
    # The name that a class may inherit from a protocol says nothing.
    if getattr(made, "name", Plugin.name) is Plugin.name:
        made.name = made.__name__

    def make(context: PluginContext) -> Plugin:
        plugin: Plugin = made(context) if takes_context else made()
        return plugin

    return make


def _takes_context(made: type[Any]) -> bool:
    """Whether the constructor has a place for the context. Raises PluginError when it needs more."""
    parameters = [each for each in inspect.signature(made).parameters.values() if each.kind not in _STARRED]
    takes_context = bool(parameters) and parameters[0].kind is not inspect.Parameter.KEYWORD_ONLY
    needed = [each.name for each in parameters[takes_context:] if each.default is inspect.Parameter.empty]
    if needed:
        raise PluginError(
            f"the constructor of {made.__name__} needs {', '.join(needed)}; it is given a PluginContext, or nothing"
        )
    return takes_context


def require_whole(plugin: Plugin) -> None:
    """Raise PluginError for a plugin without a proper name, or with some but not all members of a protocol.

    Such a plugin would not take part where its author thinks it does, and nobody would notice.
    """
    name: object = plugin.name
    if not isinstance(name, str) or not name:
        raise PluginError(f"the name of a {type(plugin).__name__} is {shown(name)}; text is needed")
    for protocol in PROTOCOLS:
        has = [method for method in _methods(protocol) if hasattr(plugin, method)]
        lacks = [member for member in (*_methods(protocol), *_properties(protocol)) if not hasattr(plugin, member)]
        if has and lacks:
            raise PluginError(
                f"plugin {name} has {' and '.join(has)} but no {' and '.join(lacks)}; "
                f"{protocol.__name__} needs all of them"
            )


@cache
def _methods(protocol: type) -> tuple[str, ...]:
    return tuple(
        name for name, value in vars(protocol).items() if inspect.isfunction(value) and not name.startswith("_")
    )


@cache
def _properties(protocol: type) -> tuple[str, ...]:
    return tuple(name for name, value in vars(protocol).items() if isinstance(value, property))
