"""Plugins that a program hands over as classes, beside what its configuration says."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

import msgspec

from podium.api.errors import InputError, shown
from podium.framework.settings.configuration import Configuration, ProfileConfiguration
from podium.framework.settings.plugin_set import PluginEntry, PluginSet


def with_plugins(configuration: Configuration, plugins: Iterable[type[Any]], taken: Collection[str]) -> Configuration:
    """The configuration, by which these classes decide as well.

    Profiles know a class by its ``name``, or else that of the class. One that no profile enables or disables under that
    name is enabled in all of them at multiPoint, behind all others; so weights, arguments, and the points where it
    takes part are the configuration's to say. Raises InputError for what is no class, for two of one name, and for a
    name that is ``taken``.
    """
    classes = dict(configuration.classes)
    added: list[str] = []
    for place, made in enumerate(plugins):
        path = f"plugins[{place}]"
        if not isinstance(made, type):
            raise InputError(f"{shown(made)} is no class; the class itself is needed", path=path)
        name = _name_of(made)
        if name in taken:
            raise InputError(f"{made.__name__} has the name of Podium's own plugin {name}; choose another", path=path)
        if name in classes:
            raise InputError(f"two plugins are called {shown(name)}; choose another name", path=path)
        classes[name] = made
        added.append(name)
    profiles = tuple(_enabling(profile, added) for profile in configuration.profiles)
    return replace(configuration, profiles=profiles, classes=tuple(classes.items()))


def _name_of(made: type[Any]) -> str:
    stated: object = getattr(made, "name", None)
    # What a class may inherit from a protocol is a property, and no name.
    return stated if isinstance(stated, str) and stated else made.__name__


def _enabling(profile: ProfileConfiguration, names: Iterable[str]) -> ProfileConfiguration:
    plugins = profile.plugins
    known = {entry.name for each in plugins.sets().values() for entry in (*each.enabled, *each.disabled)}
    further = tuple(PluginEntry(name=name) for name in names if name not in known)
    multi_point = PluginSet(enabled=(*plugins.multi_point.enabled, *further), disabled=plugins.multi_point.disabled)
    return msgspec.structs.replace(profile, plugins=msgspec.structs.replace(plugins, multi_point=multi_point))
