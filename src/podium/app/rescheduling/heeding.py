"""Which schedulers heed avoid lists, and what they are like that do not.

kube-scheduler v1.36 knows no avoid lists, Podium's schedulers do unless they are configured otherwise. Nothing in a
cluster says which of the two decides; only of Podium's own API server it is taken for granted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from msgspec.structs import replace as changed

from podium.framework.settings.configuration import Configuration, ProfileConfiguration
from podium.framework.settings.plugin_set import DEFAULT_PLUGINS, PluginEntry, PluginSet

AVOIDING = "NodePreferAvoidPods"
"""The plugin that keeps pods off nodes whose avoid lists name their controllers."""


def as_they_are(configuration: Configuration, *, heeds_avoid_lists: bool) -> Configuration:
    """The schedulers as they decide: where they do not heed avoid lists, without the plugin that does.

    A profile that names the plugin is one of Podium's: no other scheduler would take the configuration.
    """
    if heeds_avoid_lists:
        return configuration
    profiles = tuple(
        profile if _names_it(profile) else changed(profile, plugins=_without(profile))
        for profile in configuration.profiles
    )
    return replace(configuration, profiles=profiles)


def heedless(configuration: Configuration) -> tuple[str, ...]:
    """The schedulers of a configuration (`as_they_are`) that do not heed avoid lists."""
    return tuple(_heedless(configuration))


def _heedless(configuration: Configuration) -> Iterator[str]:
    for profile in configuration.profiles:
        if AVOIDING not in DEFAULT_PLUGINS.merged_with(profile.plugins).names():
            yield profile.scheduler_name


def _names_it(profile: ProfileConfiguration) -> bool:
    return AVOIDING in profile.plugins.names()


def _without(profile: ProfileConfiguration) -> object:
    everywhere = profile.plugins.multi_point
    disabled = (*everywhere.disabled, PluginEntry(name=AVOIDING))
    return changed(profile.plugins, multi_point=PluginSet(enabled=everywhere.enabled, disabled=disabled))
