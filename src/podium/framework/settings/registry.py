"""Where plugins come from: the table of those in Podium, classes that the configuration names, and entry points.

Code is loaded for names in the configuration alone, never for anything that stands in a manifest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from podium.framework.errors import PluginError
from podium.framework.plugin import Plugin, PluginContext, PodChangePlugin
from podium.framework.settings.classes import find_class, maker_of, methods_of, properties_of, require_name
from podium.framework.settings.profile import EXTENSION_POINTS

Factory = Callable[[PluginContext], Plugin]

ENTRY_POINT_GROUP = "podium.plugins"

PROTOCOLS = (*(protocol for protocols in EXTENSION_POINTS.values() for protocol in protocols), PodChangePlugin)
"""What a plugin can be; that of pod changes comes on top of PreFilter."""


class Registry:
    """Finds the factory of a plugin by its name in the configuration.

    ``in_tree`` comes first, then the ``classes`` that a program handed over. A name like ``package.module:Class`` is a
    class in an importable module; any other is looked up among the entry points of the group ``podium.plugins``. The
    constructor of a class found in either way takes a `PluginContext` or nothing; a class without a ``name`` is given
    its own as an attribute.
    """

    def __init__(self, in_tree: Mapping[str, Factory], classes: Iterable[tuple[str, type[Any]]] = ()) -> None:
        self._in_tree = dict(in_tree)
        self._classes = dict(classes)

    def __contains__(self, name: str) -> bool:
        return name in self._in_tree

    def resolve(self, name: str) -> Factory:
        """The factory of a plugin. Raises PluginError for an unknown name, and for code that cannot be used."""
        known = self._in_tree.get(name)
        if known is not None:
            return known
        handed_over = self._classes.get(name)
        if handed_over is not None:
            return _factory(handed_over)
        return _factory(find_class(name, "plugin", ENTRY_POINT_GROUP, (*self._in_tree, *self._classes)))

    def with_classes(self, classes: Iterable[tuple[str, type[Any]]]) -> Registry:
        """This registry, which knows these classes too."""
        return Registry(self._in_tree, (*self._classes.items(), *classes))


def _factory(made: type[Any]) -> Factory:
    """What makes an instance of a class that is written as a plugin."""
    methods = [method for protocol in PROTOCOLS for method in methods_of(protocol)]
    if not any(hasattr(made, method) for method in methods):
        raise PluginError(f"class {made.__name__} is no plugin: it has none of the methods {', '.join(methods)}")
    return maker_of(made, Plugin)


def require_whole(plugin: Plugin) -> None:
    """Raise PluginError for a plugin without a proper name, or with some but not all members of a protocol.

    Such a plugin would not take part where its author thinks it does, and nobody would notice.
    """
    require_name(plugin)
    for protocol in PROTOCOLS:
        has = [method for method in methods_of(protocol) if hasattr(plugin, method)]
        lacks = [member for member in (*methods_of(protocol), *properties_of(protocol)) if not hasattr(plugin, member)]
        if has and lacks:
            raise PluginError(
                f"plugin {plugin.name} has {' and '.join(has)} but no {' and '.join(lacks)}; "
                f"{protocol.__name__} needs all of them"
            )
