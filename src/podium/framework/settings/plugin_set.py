"""Which plugins a profile enables where: as written, merged with the defaults, and in the order of an extension point.

Source: pkg/scheduler/apis/config/v1/default_plugins.go and, for the order, expandMultiPointPlugins of
pkg/scheduler/framework/runtime/framework.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import msgspec
from msgspec import Meta

from podium.framework.settings.strict import Strict

ALL = "*"

USUAL_WEIGHTS = {"NodePreferAvoidPods": 10_000}
"""What plugins weigh that are enabled without a weight, where that is not 1: more than all others together."""


class PluginEntry(Strict, frozen=True, kw_only=True):
    """A plugin by name. ``weight`` counts at score alone; None means the plugin's usual weight."""

    name: str
    weight: Annotated[int, Meta(ge=1, le=2**31 - 1)] | None = None


class PluginSet(Strict, frozen=True, kw_only=True):
    """What is enabled beside the defaults, and which defaults are disabled (``*``: all of them)."""

    enabled: tuple[PluginEntry, ...] = ()
    disabled: tuple[PluginEntry, ...] = ()

    def names(self) -> list[str]:
        """The names of the enabled plugins in their order."""
        return [entry.name for entry in self.enabled]

    def merged_with(self, custom: PluginSet) -> PluginSet:
        """This set of defaults as ``custom`` changes it.

        A default that is disabled goes; one that is enabled again is replaced in its place, weight and all; what else
        is enabled comes behind.
        """
        disabled = {entry.name for entry in (*self.disabled, *custom.disabled)}
        entries = {entry.name: entry for entry in self.enabled if not disabled & {ALL, entry.name}}
        entries.update((entry.name, entry) for entry in custom.enabled)
        return PluginSet(enabled=tuple(entries.values()), disabled=(*custom.disabled, *self.disabled))

    def expanded(self, multi_point: PluginSet, takes_part: Callable[[str], bool]) -> list[str]:
        """The plugins of one extension point in order, this being its own set.

        A plugin of ``multi_point`` is in if it ``takes_part`` and is not disabled here. First come those of them that
        are also enabled here, in the order given here; then the others; then what is enabled here alone.
        """
        own = self.names()
        disabled = {entry.name for entry in self.disabled}
        if ALL in disabled:
            return own
        spread = [name for name in multi_point.names() if name not in disabled and takes_part(name)]
        again = [name for name in own if name in spread]
        return again + [name for name in spread if name not in own] + [name for name in own if name not in spread]


class Plugins(Strict, frozen=True, kw_only=True):
    """The plugin sets of all extension points."""

    pre_enqueue: PluginSet = PluginSet()
    queue_sort: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    pre_score: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()
    multi_point: PluginSet = PluginSet()

    def sets(self) -> dict[str, PluginSet]:
        """All sets by the name that the configuration has for their extension point, multiPoint among them."""
        return {point: getattr(self, field) for point, field in FIELDS.items()}

    def merged_with(self, custom: Plugins) -> Plugins:
        """These defaults as ``custom`` changes them, set by set."""
        return Plugins(**{field: getattr(self, field).merged_with(getattr(custom, field)) for field in FIELDS.values()})

    def names(self) -> list[str]:
        """The name of every plugin that is enabled anywhere, once; those of multiPoint first."""
        return list(dict.fromkeys(name for some in (self.multi_point, *self.sets().values()) for name in some.names()))

    def score_weight(self, name: str) -> int:
        """The weight of a plugin at score; what is said at score comes before what is said at multiPoint.

        A plugin for which no weight is given weighs 1, unless `USUAL_WEIGHTS` says otherwise.
        """
        entry = next(each for each in (*self.score.enabled, *self.multi_point.enabled) if each.name == name)
        return entry.weight or USUAL_WEIGHTS.get(name, 1)


FIELDS = {field.encode_name: field.name for field in msgspec.structs.fields(Plugins)}
"""The fields of `Plugins` (and, but for multiPoint, of a profile) by the names of the extension points."""


def _default_plugins() -> Plugins:
    weights = {
        "SchedulingGates": None,
        "PrioritySort": None,
        "NodeUnschedulable": None,
        "NodeName": None,
        "TaintToleration": 3,
        "NodeAffinity": 2,
        "NodePorts": None,
        "NodeResourcesFit": 1,
        "VolumeRestrictions": None,
        "NodeVolumeLimits": None,
        "VolumeBinding": None,
        "VolumeZone": None,
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
        # Before DefaultPreemption: better take devices from a claim that nobody uses than evict a pod.
        "DynamicResources": 2,
        "DefaultPreemption": None,
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
        "NodePreferAvoidPods": USUAL_WEIGHTS["NodePreferAvoidPods"],
        "DefaultBinder": None,
        "NodeDeclaredFeatures": None,
    }
    entries = tuple(PluginEntry(name=name, weight=weight) for name, weight in weights.items())
    return Plugins(multi_point=PluginSet(enabled=entries))


DEFAULT_PLUGINS = _default_plugins()
"""Those of v1.36. GangScheduling is not among them, as its feature gates are off there by default.

NodePreferAvoidPods, which kube-scheduler has no more, has nothing to say where no node has an avoid list.
"""
