"""What a rescheduler would do to a cluster that stands in files, or was read once: nothing is changed anywhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from podium.api.basis import basis_of
from podium.api.errors import InputError
from podium.api.input.codec import Document, Input, refuse_empty_pods
from podium.api.input.documents import snapshots_of
from podium.api.pod import Pod
from podium.api.policy import PodDisruptionBudget
from podium.api.present import present_time
from podium.api.versions.choice import CLUSTER_RELEASE, ReleaseChoice
from podium.api.versions.release import Release, is_podium
from podium.app.rescheduling.caveats import as_they_are, of_schedulers
from podium.app.rescheduling.plan_report import PlanReport
from podium.app.stage import with_budget_statuses
from podium.controllers.observations import Changed, Tick
from podium.controllers.rescheduling.rescheduler import Rescheduler
from podium.controlplane.assembly import create_objects
from podium.decide.rescheduling.round_robin import ExcludedPods, ReschedulingPlan
from podium.framework.extenders import without_extenders
from podium.framework.rescheduling.configuration import ReschedulerConfiguration
from podium.framework.rescheduling.settings import ReschedulerSettings
from podium.framework.settings.configuration import Configuration, upstream_departures
from podium.store.store import Store

if TYPE_CHECKING:
    from podium.app.rescheduling.exact import Comparison

_DAY_NS = 86_400 * 10**9


@dataclass(frozen=True, slots=True)
class Question:
    """How pods are moved, how the schedulers are configured, and whether they heed avoid lists.

    Without that being said, those do that are at an API server of Podium's, where the cluster was read from one.

    Extenders are not asked, so that a configuration with some is refused unless they are to be ignored. ``compares``:
    the plan is held against the best one, which takes a solver.
    """

    rescheduling: ReschedulerConfiguration
    configuration: Configuration
    heeds_avoid_lists: bool | None = None
    ignores_extenders: bool = False
    compares: bool = False
    release: ReleaseChoice = CLUSTER_RELEASE


def plan_once(read: Input, question: Question) -> PlanReport:
    """The plan for a cluster as it is read, at the newest time in it.

    Objects that do not say since when they are there have been there for a day: nobody is spared for being young who
    only has no age. Raises InputError for what no API server would have taken, and for policies that cannot be made.
    """
    given, settings = question.configuration, question.rescheduling.settings
    further = [
        *question.rescheduling.caveats,
        *without_extenders(given.extenders, given.source, ignore=question.ignores_extenders),
        *upstream_departures(given),
    ]
    refuse_empty_pods(read.documents)
    release, of_release = question.release.for_documents(read.documents)
    further += (*of_release, *question.release.dropped(read.documents, release))
    objects = [document for document in read.documents if document.object is not None]
    now = present_time(read.documents, objects)
    snapshots = [snapshot for snapshot, _ in snapshots_of(read.documents)]
    heeds = question.heeds_avoid_lists
    if heeds is None:
        heeds = any(is_podium(snapshot.server_version) for snapshot in snapshots)
    schedulers = as_they_are(given, heeds_avoid_lists=heeds)
    pods = (document.object for document in objects if isinstance(document.object, Pod))
    further += of_schedulers(settings, schedulers, pods)
    try:
        plan, kept, comparison = _plan(objects, settings, schedulers, now, release, compares=question.compares)
    except InputError as error:
        raise error.located(source=question.rescheduling.source) from None
    names = [profile.scheduler_name for profile in schedulers.profiles]
    caveats = basis_of(read, names, simulates=False, further=further).caveats()
    cluster = ", ".join(snapshot.context for snapshot in snapshots if snapshot.context)
    return PlanReport(plan, settings, now, cluster, caveats, kept, comparison)


def _plan(
    objects: Sequence[Document],
    settings: ReschedulerSettings,
    schedulers: Configuration,
    now: int,
    release: Release,
    *,
    compares: bool,
) -> tuple[ReschedulingPlan, ExcludedPods, Comparison | None]:
    """What a rescheduler finds that is shown the objects for the first time, though it be paused."""
    found: list[ReschedulingPlan] = []
    machine = Rescheduler(replace(settings, is_paused=False), schedulers, release=release, only_plans=True)
    machine.on_plan = lambda plan, _: found.append(plan)
    for shown in _shown(objects, machine.watches, now, release):
        machine.handle(shown, now)
    due_ns = machine.deadline().time_ns
    now = now if due_ns is None else max(now, due_ns)
    machine.handle(Tick(), now)
    plan = found[0] if found else ReschedulingPlan((), (), {}, {}, 0, is_cut=False)
    kept = machine.untouched(now)
    if not compares:
        return plan, kept, None
    from podium.app.rescheduling.exact import compared

    picture, policies, standing = machine.show(now)
    return plan, kept, compared(plan, picture, policies, settings, standing)


def _shown(objects: Sequence[Document], kinds: frozenset[str], now: int, release: Release) -> Iterator[Changed]:
    """All that a machine is to be shown, as an API server would have stored it: what others stand on first."""
    store = Store()
    store.serve_as(release)
    create_objects(store, objects, now - _DAY_NS)
    budgets = {each.key: each for each in with_budget_statuses(objects) if isinstance(each, PodDisruptionBudget)}
    for kind in sorted(kinds, key=lambda kind: (kind == "Pod", kind)):
        for stored in store.objects(kind):
            object_ = budgets.get(stored.key, stored.object) if kind == "PodDisruptionBudget" else stored.object
            yield Changed(object_, stored.raw)
