"""Rescheduling plans for a cluster in files or read once, their text and JSON, and their caveats."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from msgspec.structs import replace as changed

from podium.api import clock_inference, errors, times
from podium.api.basis import MOST_NAMES, Basis, Caveat
from podium.api.input.codec import Document, Input, refuse_empty_pods
from podium.api.input.documents import snapshots_of
from podium.api.pod import Pod
from podium.api.policy import PodDisruptionBudget
from podium.api.versions.choice import CLUSTER_RELEASE, ReleaseChoice
from podium.api.versions.release import Release, is_podium
from podium.app.cluster_session import with_budget_statuses
from podium.app.console.cells import NODES, PODS, by_key
from podium.app.console.page import Cell, Name, Page, Part, counted, listed
from podium.app.forking import forked
from podium.app.rescheduling.certificates import (
    PlanCertificate,
    certified,
    lower_bounds_of,
    number_text,
    write_certificate,
)
from podium.cluster.pods import PodRecord
from podium.controllers.observations import Changed, Tick
from podium.controllers.rescheduling.rescheduler import Rescheduler
from podium.controlplane.population import create_objects
from podium.decide.rescheduling import round_robin
from podium.decide.rescheduling.certificate import Certificate
from podium.decide.rescheduling.replacement_placement import AVOIDING
from podium.framework.extenders import without_extenders
from podium.framework.rescheduling.configuration import ReschedulerConfiguration
from podium.framework.rescheduling.policy import MonthlyCost
from podium.framework.rescheduling.settings import Guidance, MoveCriteria, ReschedulerSettings, Steering
from podium.framework.settings.configuration import DEFAULT_PLUGINS, Configuration, PluginEntry, upstream_departures
from podium.store.store import Store

DAY_NS = 86_400 * 10**9
"""The age of objects that state no creation time."""
# A certificate for so many objects takes less time than a process.
_MOST_ALONE = 2_000

Shared = tuple[tuple[Certificate, Certificate], round_robin.ExcludedPods]
"""What a copy of the process finds out beside the first plan: its bounds, and the pods that may not be moved."""


@dataclass(frozen=True, slots=True)
class PlanSettings:
    """The configurations of the rescheduler and the schedulers, and the options of a plan.

    ``honors_avoid_lists``: whether the schedulers honor avoid lists; None: only those of Podium's own API server do.

    Extenders are not called: a configuration with extenders is rejected unless they are ignored. With ``forks``, the
    certificate of a large cluster is made in a forked copy of this process, beside the plan.
    """

    rescheduling: ReschedulerConfiguration
    configuration: Configuration
    honors_avoid_lists: bool | None = None
    ignores_extenders: bool = False
    release: ReleaseChoice = CLUSTER_RELEASE
    forks: bool = False


def plan_once(read: Input, question: PlanSettings) -> PlanReport:
    """Plan moves for a cluster as it was read, at the newest time in it.

    Objects without a creation time count as one day old, so that no pod is exempt as too young for lack of an age.
    Raises InputError for objects that every API server rejects, and for invalid policies.
    """
    with ObservedPlans(read, question) as observed:
        rescheduler, now = observed.rescheduler(only_plans=True), observed.report.now
        for change in _changes(observed.objects, rescheduler.watches, now, observed.release):
            rescheduler.handle(change, now)
        rescheduler.handle(Tick(), max(now, rescheduler.deadline().time_ns or 0))
    return observed.report


class ObservedPlans(ExitStack):
    """A context that observes the plans of a rescheduler of a cluster.

    ``made`` are the plans with their times, and ``report`` is that of the first one; before it, without a plan. While
    this process makes the first plan for a large cluster, a copy of it looks for the bounds. Raises InputError for
    objects that every API server rejects.
    """

    def __init__(self, read: Input, question: PlanSettings) -> None:
        super().__init__()
        given, settings = question.configuration, question.rescheduling.settings
        further = [
            *question.rescheduling.caveats,
            *without_extenders(given, ignore=question.ignores_extenders),
            *upstream_departures(given),
        ]
        refuse_empty_pods(read.documents)
        self.release, of_release = question.release.for_documents(read.documents)
        further += (*of_release, *question.release.dropped(read.documents, self.release))
        self.objects = [document for document in read.documents if document.object is not None]
        now = clock_inference.current_time(read.documents, self.objects)
        snapshots = [snapshot for snapshot, _ in snapshots_of(read.documents)]
        is_own = any(is_podium(snapshot.server_version) for snapshot in snapshots)
        honors = is_own if question.honors_avoid_lists is None else question.honors_avoid_lists
        schedulers = effective_schedulers(given, honors_avoid_lists=honors)
        pods = (document.object for document in self.objects if isinstance(document.object, Pod))
        further += of_schedulers(settings, schedulers, pods)
        names = [profile.scheduler_name for profile in schedulers.profiles]
        caveats = Basis(read, names, simulates=False, further=further).caveats()
        cluster = ", ".join(snapshot.context for snapshot in snapshots if snapshot.context)
        plan = round_robin.ReschedulingPlan((), (), {}, {}, 0, is_cut=False)
        self.report = PlanReport(plan, settings, now, cluster, caveats, schedulers=schedulers)
        self.made: list[tuple[int, round_robin.ReschedulingPlan]] = []
        self._source = question.rescheduling.source
        self._is_shared = question.forks and len(self.objects) > _MOST_ALONE
        self._finish: Callable[[None], Shared | None] = lambda _: None

    def rescheduler(self, *, only_plans: bool = False, seed: int = 0) -> Rescheduler:
        """Return a new rescheduler, which works even if its configuration pauses it. Raises InputError for policies.

        If another one was made before, it is another sample: only its later plans are new.
        """
        settings = replace(self.report.settings, is_paused=False)
        with errors.locating(source=self._source):
            made = Rescheduler(settings, self.report.schedulers, seed=seed, release=self.release, only_plans=only_plans)
        made.before_plan, made.on_plan = partial(self._begin, made), partial(self._on_plan, made)
        return made

    def _begin(self, rescheduler: Rescheduler, now: int) -> None:
        if self._is_shared and not self.made:
            self._finish = self.enter_context(forked(lambda *_: _beside_plan(rescheduler, now)))(None)

    def _on_plan(self, rescheduler: Rescheduler, plan: round_robin.ReschedulingPlan, now: int) -> None:
        if not self.made:
            bounds, untouched = self._finish(None) or _beside_plan(rescheduler, now)
            self.report = replace(self.report, plan=plan, untouched=untouched, certificate=certified(plan, bounds))
            self.close()
        if not self.made or now > self.made[-1][0]:
            self.made.append((now, plan))


def _beside_plan(rescheduler: Rescheduler, now: int) -> Shared:
    return lower_bounds_of(rescheduler, now), rescheduler.untouched(now)


def _changes(objects: Sequence[Document], kinds: frozenset[str], now: int, release: Release) -> Iterator[Changed]:
    """Yield the objects as an API server would store them, pods last."""
    store = Store()
    store.serve_as(release)
    create_objects(store, objects, now - DAY_NS)
    budgets = {each.key: each for each in with_budget_statuses(objects) if isinstance(each, PodDisruptionBudget)}
    for kind in sorted(kinds, key=lambda kind: (kind == "Pod", kind)):
        for stored in store.objects(kind):
            object_ = budgets.get(stored.key, stored.object) if kind == "PodDisruptionBudget" else stored.object
            yield Changed(object_, stored.raw)


VERSION = 1
_DIGITS = 4


@dataclass(frozen=True, slots=True)
class PlanReport:
    """A plan made at ``now``, its settings and caveats.

    ``cluster`` names the cluster, ``untouched`` are the pods that may not be moved. ``certificate`` bounds how far the
    plan is from the best one. ``schedulers`` are those whose choices it predicts.
    """

    plan: round_robin.ReschedulingPlan
    settings: ReschedulerSettings
    now: int
    cluster: str = ""
    caveats: tuple[Caveat, ...] = ()
    untouched: round_robin.ExcludedPods = round_robin.NONE_EXCLUDED
    certificate: PlanCertificate | None = None
    schedulers: Configuration | None = None

    @property
    def moves(self) -> tuple[round_robin.PlannedMove, ...]:
        """The moves in order, without those of pods that have ended."""
        return tuple(move for planned in self.plan.planned for move in planned.moves if not move.has_ended)

    def objectives(self) -> list[tuple[str, float, float]]:
        """Return the name of each policy and its objective before and after the plan."""
        return [(name, before, self.plan.after.get(name, before)) for name, before in self.plan.before.items()]

    def to_dict(self) -> dict[str, Any]:
        plan, untouched = self.plan, self.untouched
        return {
            "version": VERSION,
            "time": times.format_exact_time(self.now),
            "cluster": self.cluster,
            "planned": [_planned(planned) for planned in plan.planned],
            "leftAlone": [{"policy": left.policy, "pod": left.pod, "why": left.why} for left in plan.left_alone],
            "untouched": {
                "pods": untouched.pods,
                "of": untouched.of,
                "reasons": [{"why": why, "pods": number} for why, number in untouched.reasons],
                "others": untouched.others,
            },
            "objectives": [
                {"policy": name, "before": _rounded(before), "after": _rounded(after)}
                for name, before, after in self.objectives()
            ],
            "monthlyCost": None
            if plan.costs is None
            else {"before": plan.costs[0].amount, "after": plan.costs[1].amount, "unpriced": plan.costs[1].unpriced},
            "certificate": None if self.certificate is None else self.certificate.to_dict(),
            "trials": plan.trials,
            "isCut": plan.is_cut,
            "stopped": plan.stopped,
            "errors": list(plan.errors),
            "caveats": [caveat.to_dict() for caveat in self.caveats],
        }


def same_moves(plan: round_robin.ReschedulingPlan, other: round_robin.ReschedulingPlan) -> bool:
    """Return whether two plans have the same moves and the same rejected proposals."""
    moves, others = (
        [(each.policy, each.reason, [(move.pod.uid, move.source, move.target) for move in each.moves]) for each in made]
        for made in (plan.planned, other.planned)
    )
    rest = (plan.left_alone, plan.stopped, plan.errors)
    return moves == others and rest == (other.left_alone, other.stopped, other.errors)


def _planned(planned: round_robin.PlannedMoves) -> dict[str, Any]:
    return {
        "policy": planned.policy,
        "reason": planned.reason,
        "gain": _rounded(planned.gain),
        "partOf": None
        if planned.part_of is None
        else {"pods": planned.part_of.pods, "gain": _rounded(planned.part_of.gain)},
        "moves": [
            {
                "pod": move.pod.key,
                "uid": move.pod.uid,
                "controller": _controller(move.pod, ""),
                "from": move.source,
                "to": move.target,
                "isSure": move.is_sure,
                "hasEnded": move.has_ended,
            }
            for move in planned.moves
        ],
    }


def _controller(pod: PodRecord, otherwise: str) -> str:
    return otherwise if pod.controller is None else f"{pod.controller.kind} {pod.controller.name}"


def _rounded(value: float) -> float:
    return round(value, _DIGITS)


_MAX_REASONS = 20
_MAX_PODS = 3


def write_plan(page: Page, report: PlanReport) -> None:
    """Write the plan."""
    plan, moves = report.plan, report.moves
    where = f"In {report.cluster}, " if report.cluster else ""
    if moves:
        what, style = f"{where}{counted(len(moves), 'pod')} would be moved", "good"
    else:
        what, style = f"{where}nothing would be moved", "bold"
    page.paragraph(Cell(f"{what[0].upper()}{what[1:]}  ({times.format_time(report.now)})", style), hanging=2)
    for planned in plan.planned:
        page.title(planned.policy, _gain(planned))
        page.paragraph(planned.reason, indent=2, hanging=2)
        page.columns([_row(move) for move in planned.moves], indent=4)
    if objectives := report.objectives():
        page.title("Objectives", "0 is the best possible, 1 the cost of one badly placed pod")
        body = [(name, number_text(before), number_text(after)) for name, before, after in objectives]
        page.table(body, ("policy", "now", "then"), right=(1, 2))
    if plan.costs is not None:
        page.title("Nodes in use", _cost(*plan.costs))
    _write_left_alone(page, plan)
    untouched = report.untouched
    if untouched.pods:
        page.title("May not be moved", f"{untouched.pods:,} of {counted(untouched.of, 'pod')}")
        kept = [(f"{number:,}", why) for why, number in untouched.reasons]
        kept += [(f"{untouched.others:,}", "for other reasons")] if untouched.others else []
        page.columns(kept, indent=2, right=[0])
    if report.certificate is not None:
        write_certificate(page, report.certificate)
    for problem in plan.errors:
        page.line("")
        page.paragraph(Cell(problem, "bad"), hanging=2)
    page.caveats(report.caveats)


def _cost(before: MonthlyCost, after: MonthlyCost) -> str:
    saved = before.amount - after.amount
    change = f"{saved:,.2f} less, once the free nodes are removed" if saved > 0 else f"{abs(saved):,.2f} more"
    unpriced = f"; {counted(after.unpriced, 'node')} in use without a price" if after.unpriced else ""
    return f"{before.amount:,.2f} a month now, {after.amount:,.2f} then: {change}{unpriced}"


def _gain(planned: round_robin.PlannedMoves) -> str:
    if any(move.has_ended for move in planned.moves):
        return "keeps pods off a node"
    if planned.part_of is None:
        return f"improves the objective by {number_text(planned.gain)}"
    pods = counted(planned.part_of.pods, "move")
    return f"part of {pods} that together improve it by {number_text(planned.part_of.gain)}"


def _row(move: round_robin.PlannedMove) -> list[Part]:
    pod = Name(move.pod.key, PODS)
    if move.has_ended:
        who = _controller(move.pod, "its controller")
        return [pod, Name(move.source, NODES, before=f"has ended and is deleted; {who} avoids ")]
    if move.target is None:
        return [pod, Name(move.source, NODES, before="leaves ", after="; its target is not planned")]
    doubt = "" if move.is_sure else "or to another node with the same score"
    return [pod, Name(move.source, NODES), Name(move.target, NODES, before="-> "), doubt]


def _write_left_alone(page: Page, plan: round_robin.ReschedulingPlan) -> None:
    if not plan.left_alone and not plan.stopped and not plan.is_cut:
        return
    page.title("Left alone")
    groups = by_key(((left.policy, left.why), left.pod) for left in plan.left_alone)
    for (policy, why), pods in list(groups.items())[:_MAX_REASONS]:
        page.paragraph(f"{listed(pods, _MAX_PODS)} ({policy}): {why}", indent=2, hanging=2)
    more = sum(len(pods) for pods in list(groups.values())[_MAX_REASONS:])
    if more:
        page.paragraph(f"{counted(more, 'more pod')}, for {len(groups) - _MAX_REASONS:,} other reasons", indent=2)
    if plan.stopped:
        page.paragraph(f"No other pods were examined: {plan.stopped}", indent=2, hanging=2)
    if plan.is_cut:
        page.paragraph(
            f"Planning stopped after {plan.trials} trials (maxTrials); more moves may be possible.", indent=2, hanging=2
        )


def effective_schedulers(configuration: Configuration, *, honors_avoid_lists: bool) -> Configuration:
    """Return the schedulers, without the plugin for avoid lists if they do not honor these.

    A profile that names the plugin belongs to Podium: other schedulers reject such a configuration.
    """
    if honors_avoid_lists:
        return configuration
    profiles = []
    for profile in configuration.profiles:
        everywhere = profile.plugins.multi_point
        if AVOIDING not in profile.plugins.names():
            everywhere = changed(everywhere, disabled=(*everywhere.disabled, PluginEntry(name=AVOIDING)))
        profiles.append(changed(profile, plugins=changed(profile.plugins, multi_point=everywhere)))
    return changed(configuration, profiles=tuple(profiles))


def ignoring_avoid_lists(configuration: Configuration) -> tuple[str, ...]:
    """Return the schedulers of a configuration (`effective_schedulers`) that ignore avoid lists."""
    return tuple(
        profile.scheduler_name
        for profile in configuration.profiles
        if AVOIDING not in DEFAULT_PLUGINS.merged_with(profile.plugins).names()
    )


_SHOWN = 3


def of_schedulers(settings: ReschedulerSettings, schedulers: Configuration, pods: Iterable[Pod]) -> Iterator[Caveat]:
    """Yield the schedulers that do not keep replacements off the nodes that pods left, and unknown schedulers."""
    names = ignoring_avoid_lists(schedulers)
    if names and settings.judgement is MoveCriteria.PLACEMENT and settings.guidance is not Guidance.BIND:
        message = f"avoid lists are assumed to be ignored by {_listed(names)}: {_WITHOUT_LISTS[settings.steering]}"
        yield Caveat("avoid-lists", message, len(names), names[:MOST_NAMES])
    known = {profile.scheduler_name for profile in schedulers.profiles}
    unknown = tuple(sorted({pod.spec.scheduler_name for pod in pods} - known))
    if unknown:
        message = (
            f"not in the configuration (--config): {_listed(unknown)}; targets for its pods are judged only by what "
            "every kubelet enforces, so that few of these pods are moved"
        )
        yield Caveat("unknown-schedulers", message, len(unknown), unknown[:MOST_NAMES])


_WITHOUT_LISTS = {
    Steering.AVOID_LIST: (
        "a pod is moved only if its scheduler's own scores place its replacement elsewhere; steering: SoftTaint does "
        f"more there; if they honor avoid lists, set --scheduler-honors-avoid-lists, or {AVOIDING} in the configuration"
    ),
    Steering.SOFT_TAINT: (
        "a node that a pod is moved from has the taint podium.dev/moving-pods-away (PreferNoSchedule) for the time of "
        "the move"
    ),
    Steering.SCORES_ALONE: "a pod is moved only if its scheduler's own scores place its replacement elsewhere",
}


def _listed(names: Sequence[str]) -> str:
    return listed([errors.shown(name) for name in names], _SHOWN)
