"""What of the rescheduler's rules does not hold on a cluster, said once when it begins to run there."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from msgspec.structs import replace as changed

from podium.api.basis import MOST_NAMES, Caveat
from podium.api.errors import shown
from podium.api.pod import Pod
from podium.app.console.page import listed
from podium.app.live.caveats import hidden_kinds, of_access
from podium.client.credentials import ClusterAccess
from podium.framework.rescheduling.settings import Guidance, Judgement, ReschedulerSettings, Steering
from podium.framework.settings.configuration import (
    DEFAULT_PLUGINS,
    Configuration,
    PluginEntry,
    PluginSet,
    ProfileConfiguration,
    upstream_departures,
)

if TYPE_CHECKING:
    from podium.app.rescheduling.live_rescheduler import ReschedulingSettings

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


_SHOWN = 3


def live_caveats(
    access: ClusterAccess,
    settings: ReschedulingSettings,
    schedulers: Configuration,
    hidden: Collection[str],
    pods: Iterable[Pod],
    *,
    knows_ours: bool,
) -> list[Caveat]:
    """What is not known or does not hold.

    ``schedulers`` are as they are thought to decide (`as_they_are`). ``knows_ours``: the API server is Podium's own;
    ``hidden`` are the kinds that it does not show to this program, ``pods`` those that run.
    """
    return [
        *settings.rescheduling.caveats,
        *upstream_departures(schedulers),
        *of_access(access),
        *hidden_kinds(hidden),
        *of_schedulers(settings.rescheduling.settings, schedulers, pods),
        *(() if knows_ours else _of_foreign_server(settings)),
    ]


def of_schedulers(settings: ReschedulerSettings, schedulers: Configuration, pods: Iterable[Pod]) -> Iterator[Caveat]:
    """Which schedulers do not keep replacements off the nodes that their predecessors left, and which are not known."""
    names = heedless(schedulers)
    if names and settings.judgement is Judgement.PLACEMENT and settings.guidance is not Guidance.BIND:
        message = f"avoid lists are not heeded, as far as is known, by {_listed(names)}: {_HEEDLESS[settings.steering]}"
        yield Caveat("avoid-lists", message, len(names), names[:MOST_NAMES])
    known = {profile.scheduler_name for profile in schedulers.profiles}
    unknown = tuple(sorted({pod.spec.scheduler_name for pod in pods} - known))
    if unknown:
        message = (
            f"not in the configuration (--config) is {_listed(unknown)}: where it would send a replacement is judged "
            "by what every kubelet enforces, so that few of its pods are moved"
        )
        yield Caveat("unknown-schedulers", message, len(unknown), unknown[:MOST_NAMES])


_HEEDLESS = {
    Steering.AVOID_LIST: (
        "a pod is moved only where its scheduler's own scores send its replacement elsewhere; steering: SoftTaint does "
        f"more there, and --scheduler-heeds-avoid-lists, or {AVOIDING} in the configuration, says that they are heeded"
    ),
    Steering.SOFT_TAINT: (
        "a node that a pod is moved from has the taint podium.dev/moving-pods-away (PreferNoSchedule) for the time of "
        "the move"
    ),
    Steering.SCORES_ALONE: "a pod is moved only where its scheduler's own scores send its replacement elsewhere",
}


def _listed(names: Sequence[str]) -> str:
    return listed([shown(name) for name in names], _SHOWN)


def _of_foreign_server(settings: ReschedulingSettings) -> Iterator[Caveat]:
    """What Podium's own API server does, and others do not."""
    if settings.counts_disruptions and not settings.dry_run:
        yield Caveat(
            "rates",
            "rates of budgets are counted here, in the budgets' annotation podium.dev/disruption-rate; where podium "
            "scheduler counts them already, use --no-count-disruptions",
            0,
        )
