"""What of the rescheduler's rules does not hold on a cluster, said once when it begins to run there."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from podium.api.basis import MOST_NAMES, Caveat
from podium.api.errors import shown
from podium.api.pod import Pod
from podium.app.console.page import listed
from podium.app.live.caveats import absent_kinds, of_access
from podium.app.rescheduling.heeding import AVOIDING, heedless
from podium.app.rescheduling.settings import ReschedulingSettings
from podium.client.access.cluster_access import ClusterAccess
from podium.framework.rescheduling.settings import Guidance, Judgement, ReschedulerSettings, Steering
from podium.framework.settings.configuration import Configuration
from podium.framework.settings.departures import departures

_SHOWN = 3


def live_caveats(
    access: ClusterAccess,
    settings: ReschedulingSettings,
    schedulers: Configuration,
    absent: Collection[str],
    pods: Iterable[Pod],
    *,
    knows_ours: bool,
) -> list[Caveat]:
    """What is not known or does not hold.

    ``schedulers`` are as they are thought to decide (`as_they_are`). ``knows_ours``: the API server is Podium's own;
    ``absent`` are the kinds that it does not have, ``pods`` those that run.
    """
    return [
        *settings.rescheduling.caveats,
        *departures(schedulers),
        *of_access(access),
        *absent_kinds(absent),
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
