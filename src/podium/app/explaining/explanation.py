"""The decision about one pod: verdicts, scores, preemption, and the limits of kube-scheduler's search."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np

from podium.api import errors, meta, policy, times
from podium.api.basis import Caveat
from podium.api.devices import AllocationResult, ResourceClaim
from podium.app.answers import Frame, Renderable, Value, filled, kinds
from podium.app.explaining.gang import GangDecision, search_dict
from podium.cluster.arrays import Int64s
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.decide.placement import Placement, enough_candidates, examine, nodes_to_find, rolled, splitmix, until_enough
from podium.decide.preempting.preemption_plan import PreemptionCandidate, PreemptionPlan
from podium.framework.plugin import PostFilterResult
from podium.framework.pre_filters import LEFT_OUT
from podium.framework.runner import Runner
from podium.framework.verdicts import Status
from podium.plugins.default_preemption import UPSTREAM_MINIMUM
from podium.plugins.dynamic_resources.fitting import IN_MEMORY
from podium.plugins.dynamic_resources.plugin import DynamicResources
from podium.sim.results.disruption_state import DisruptionState

if TYPE_CHECKING:
    from podium.app.console.page import Page
    from podium.app.explaining.on_node import NodeAnswer

SCHEMA_VERSION = 1
"""The version of the JSON of explanations; it grows when a key is removed or changes its meaning."""

_COLUMNS = kinds("node status plugin reasons", "total")
OutcomeName = Literal["schedulable", "preempts", "unschedulable", "not-eligible", "gated", "error", "placed"]
Claims = list[tuple[ResourceClaim, AllocationResult]]


@dataclass(frozen=True, slots=True)
class DeviceFindings:
    """The result of the DynamicResources plugin.

    ``claims`` has by feasible node the claims without devices, with what they would get. ``post_filter`` is the
    plugin's answer if no node is feasible; None for pods without claims. ``releases`` are the claims that it then
    deallocates.
    """

    claims: Mapping[str, Claims] = field(default_factory=dict)
    post_filter: Status | None = None
    releases: tuple[str, ...] = ()


NO_DEVICES = DeviceFindings()


class PlacedPodFacts(msgspec.Struct, frozen=True):
    """A pod on its node: why it is there as far as that can be known, and which pods could preempt it.

    `then` is the outcome of the decision if it were evicted, `then_node` its node then. `by` is what placed it: a
    scheduler (or another client that set the node's name), or the kubelet whose static pod it mirrors. `controller`
    replaces it, "" for none. `rank` is its node's place by score among the feasible ones, None if the node is not
    feasible now. `preemptors` are the pending pods that may preempt it, by priority, each with whether it would preempt
    it now; `not_asked` pending pods were not tried.
    """

    then: OutcomeName
    then_node: str
    by: Literal["scheduler", "kubelet"]
    since_ns: int | None
    controller: str
    rank: int | None
    preemptors: tuple[tuple[PodRecord, bool], ...]
    not_asked: int
    budgets: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, repr=False)
class Explanation(Renderable):
    """The whole decision about one pod.

    ``outcome`` is what would happen, ``node`` the node that the pod gets or is nominated to ("" for none). ``nodes``
    holds each node's verdict, ``scores`` the weighted scores by node and plugin of the feasible nodes, ``totals`` their
    sums and ``best`` the nodes with the highest total. ``plan`` is None unless no node is feasible. ``pre_filter`` is a
    rejection before any node was examined, ``pre_enqueue`` what keeps the pod out of the queue; nothing else is
    decided then. ``error`` is the failure of a plugin, which ends the attempt. ``record`` and ``runner`` are the pod
    and its profile on the live cluster, which may change later. For a ``placed`` pod, ``node`` is where it is, and all
    else is the decision if it were evicted now. ``as_decided`` is a context in which the cluster is as it was decided
    on: without the pod, with claims that do not exist yet. ``gang`` is the decision about the pod's group: ``nodes``
    are then as the pod finds them beside the members before it. ``proposal`` is the result of the PostFilter plugins
    if some are not Podium's own. ``is_bound_early``: the pod is bound to ``node`` at once, and its kubelet holds it
    until its victims are gone. ``search`` is kube-scheduler's limit on the search for a node, where it makes a
    difference. ``caveats_found`` and ``disruptions_found`` compute what `caveats` and `disruptions`
    start from.
    """

    pod: str
    outcome: OutcomeName
    record: PodRecord = field(repr=False, compare=False)
    runner: Runner = field(repr=False, compare=False)
    node: str = ""
    pre_filter: Status | None = None
    nodes: Mapping[str, Status] = field(default_factory=dict)
    scores: Mapping[str, dict[str, int]] = field(default_factory=dict)
    totals: Mapping[str, int] = field(default_factory=dict)
    best: tuple[str, ...] = ()
    plan: PreemptionPlan | None = None
    pre_enqueue: Status | None = None
    caveats_found: Callable[[], tuple[Caveat, ...]] = field(default=tuple, repr=False, compare=False)
    disruptions_found: Callable[[], DisruptionState] = field(default=DisruptionState, repr=False, compare=False)
    error: str = ""
    devices: DeviceFindings = NO_DEVICES
    placed: PlacedPodFacts | None = None
    as_decided: Callable[[], AbstractContextManager[None]] = field(default=nullcontext, repr=False, compare=False)
    gang: GangDecision | None = None
    proposal: PostFilterResult | None = None
    is_bound_early: bool = False
    search: LimitedSearch | None = field(default=None, repr=False, compare=False)

    @property
    def victims(self) -> tuple[PodRecord, ...]:
        """The pods that this one preempts, whichever PostFilter plugin proposes them."""
        if self.proposal is not None:
            return self.proposal.victims
        return () if self.plan is None or self.plan.chosen is None else self.plan.chosen.victims

    @property
    def pending_outcome(self) -> OutcomeName:
        """The outcome for a pending pod: of a placed one, if it were evicted."""
        return self.outcome if self.placed is None else self.placed.then

    @property
    def pending_node(self) -> str:
        """The node of a pending pod: of a placed one, if it were evicted."""
        return self.node if self.placed is None else self.placed.then_node

    @property
    def awaits_others(self) -> bool:
        """Return whether some node is feasible for the pod, and it waits for the others of its gang."""
        member = None if self.gang is None else self.gang.member(self.record.uid)
        return self.outcome != "schedulable" and member is not None and member.fits

    @property
    def disruptions(self) -> DisruptionState:
        """The budgets that cover pods of this decision, and all caps, quotas and avoid lists.

        These pods are the victims, the victims of other candidates, and the pod itself if it has a node.
        """
        found = self.disruptions_found()
        plan = self.plan
        pods = [*self.victims, *(() if self.placed is None else (self.record,))]
        for candidate in () if plan is None else plan.candidates.values():
            pods += candidate.victims
        if plan is not None and plan.held_back is not None:
            pods += plan.held_back.victims
        covering = {budget.key for budget in self.runner.cluster.budgets.covering(pod.pod_class for pod in pods)}
        return msgspec.structs.replace(found, budgets=tuple(each for each in found.budgets if each.budget in covering))

    @property
    def limited_search(self) -> LimitedSearch | None:
        """The search for a node or a candidate if kube-scheduler ends it early, else None."""
        plan = self.plan
        if plan is not None and plan.chosen is not None and self.proposal is None:
            return _limited_candidates(self.runner, plan)
        return self.search if self.outcome == "schedulable" else None

    @property
    def caveats(self) -> tuple[Caveat, ...]:
        """The caveats of the decision: unknown input, and parts that it does not cover."""
        search, limited = None if self.plan is None else self.plan.search, self.limited_search
        found = list(self.caveats_found())
        if self.gang is not None:
            found += self.gang.caveats()
        elif search is not None and not search.is_complete:
            what = f"{search.left_out:,} nodes were not examined" if search.left_out else "there may be cheaper ones"
            message = f"the search for victims was cut at maxSearchSteps, {search.most_steps:,}: {what}"
            found.append(Caveat("search-cut", message, search.left_out))
        elif limited is not None:
            found.append(limited.caveat())
        return tuple(found)

    def decision(self) -> dict[str, Any]:
        """Return the decision as plain values, in the form of the conformance cases.

        Nodes that a PreFilter excluded have the plugin's name "PreFilter" and no reason of their own.
        """
        claims = {node: shown for node, some in self.devices.claims.items() if (shown := _claims_dict(some))}
        found: dict[str, Any] = {
            **{"pod": self.pod, "outcome": self.outcome, "node": self.node},
            **filled(
                preEnqueue=self.pre_enqueue and status_dict(self.pre_enqueue),
                error=self.error,
                preFilter=self.pre_filter and status_dict(self.pre_filter),
            ),
            "nodes": {
                name: status_dict(Status(status.code, plugin=status.plugin) if status.plugin == LEFT_OUT else status)
                for name, status in self.nodes.items()
            },
        }
        if self.best:
            found |= {"scores": dict(self.scores.items()), "totals": dict(self.totals.items()), "best": list(self.best)}
        found |= filled(
            claims=claims,
            preemption=self.plan and _plan(self.plan),
            isBoundEarly=self.is_bound_early,
            gang=self.gang and self.gang.to_dict(),
        )
        # The answers of PostFilter plugins other than DefaultPreemption, and what the successful one proposes.
        proposal, status = self.proposal, self.devices.post_filter
        if proposal is not None:
            found["postFilter"] = {answer.plugin: status_dict(answer) for answer in proposal.answers}
            if self.node:
                victims = [victim.key for victim in proposal.victims]
                found["proposal"] = {"plugin": proposal.status.plugin, "node": self.node, "victims": victims}
        elif status is not None:
            found["postFilter"] = {DynamicResources.name: status_dict(status)}
        return found

    @property
    def headline(self) -> str:
        """The outcome for the pod, in one line."""
        from podium.app.explaining.text import headline_of

        return headline_of(self)

    def on_node(self, node: str) -> NodeAnswer:
        """Return every plugin's verdict on one node: "why not there?". Raises PodiumError for an unknown node."""
        from podium.app.explaining.on_node import answer_on

        return answer_on(self, node)

    def write(self, page: Page) -> None:
        from podium.app.explaining.text import write_explanation

        write_explanation(page, self)

    def frame(self, name: str = "nodes") -> Frame:
        """Return a table of the explanation: `nodes`, the only one. Raises PodiumError for another.

        A row for each node, by name: `node`, `status` as kube-scheduler names it, the `plugin` that rejected it, its
        `reasons`; the `total` score and the weighted one of each plugin, as `score.PLUGIN`, if the pod fits; and if
        preemption was tried the number of `victims`, and of these those that violate a budget.
        """
        if name != "nodes":
            raise errors.PodiumError(f"an explanation has no table {name}; it has: nodes")
        return Frame.of_rows("nodes", [self._row(node) for node in self.nodes], _COLUMNS)

    def _row(self, node: str) -> dict[str, Value]:
        status = self.nodes[node]
        row: dict[str, Value] = {
            "node": node,
            "status": status.code.value,
            "plugin": status.plugin or None,
            "reasons": ", ".join(status.reasons) or None,
            "total": self.totals.get(node),
        }
        row |= {f"score.{plugin}": score for plugin, score in self.scores.get(node, {}).items()}
        candidate = None if self.plan is None else self.plan.candidates.get(node)
        if candidate is not None:
            row |= {"victims": len(candidate.victims), "pdbViolations": candidate.budget_violations}
        return row

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values: the decision, equal outcomes, what would have to change, the caveats."""
        from podium.app.explaining.outcomes import outcomes_dict, outcomes_of
        from podium.app.explaining.remedies import remedies_dict

        record, outcomes = self.record, outcomes_of(self)
        found = {"schemaVersion": SCHEMA_VERSION, **self.decision(), "priority": record.priority}
        if policy.PRIORITY_RULE_ANNOTATION in record.annotations:
            found["priorityRule"] = record.annotations[policy.PRIORITY_RULE_ANNOTATION]
        found |= filled(nominatedNode=record.nominated_node_name, gates=list(record.gates))
        if self.plan is not None and self.plan.criterion:
            found["preemption"] = {**found["preemption"], "decidedBy": self.plan.criterion}
        if sum(len(outcome.victims) for outcome in outcomes) > 1:
            found |= outcomes_dict(outcomes)
        return {
            **found,
            **filled(
                remedies=remedies_dict(self),
                placed=self.placed and _placed_dict(self.placed),
                disruptions=self.disruptions and self.disruptions.to_dict(),
            ),
            "caveats": [caveat.to_dict() for caveat in self.caveats],
        }


def status_dict(status: Status) -> dict[str, Any]:
    """Return the JSON form of a verdict."""
    return {"status": status.code.value, **filled(plugin=status.plugin, reasons=list(status.reasons))}


def _plan(plan: PreemptionPlan) -> dict[str, Any]:
    chosen = plan.chosen
    keys = {} if chosen is None else {victim.uid: victim.key for victim in chosen.victims}
    return {
        "eligible": plan.eligible,
        **filled(isExchange=plan.is_exchange, reason=plan.reason),
        "candidates": {name: _candidate(plan, candidate) for name, candidate in sorted(plan.candidates.items())},
        **filled(rejected={name: status_dict(status) for name, status in sorted(plan.rejected.items())}),
        "selected": list(plan.selected),
        **filled(
            putOff=plan.put_off and plan.put_off.to_dict(),
            heldBack=plan.held_back and plan.held_back.to_dict(),
            error=plan.error,
            search=plan.search and search_dict(plan.search, "nodesLeftOut"),
            reasons=chosen and {keys[uid]: reason for uid, reason in chosen.reasons.items()},
        ),
    }


def _candidate(plan: PreemptionPlan, candidate: PreemptionCandidate) -> dict[str, Any]:
    """Return the victims, their cost by stated criteria, and the nodes of victims elsewhere."""
    costs = zip(plan.criteria, candidate.cost, strict=True) if plan.criteria else ()
    return {
        "victims": [victim.key for victim in candidate.victims],
        "pdbViolations": candidate.budget_violations,
        **filled(
            elsewhere={victim.key: victim.node_name for victim in candidate.elsewhere},
            costs={criterion.name: criterion.shown(value) for criterion, value in costs},
        ),
    }


def _placed_dict(placed: PlacedPodFacts) -> dict[str, Any]:
    return {
        "placedBy": placed.by,
        "since": None if placed.since_ns is None else times.format_time(placed.since_ns),
        "rank": placed.rank,
        "ifEvicted": {"outcome": placed.then, "node": placed.then_node, "replacedBy": placed.controller or None},
        "preemptors": [{"pod": pod.key, "priority": pod.priority, "now": now} for pod, now in placed.preemptors],
        "preemptorsNotAsked": placed.not_asked,
        "budgets": [{"budget": name, "allowed": allowed} for name, allowed in placed.budgets],
    }


def _claims_dict(claims: Claims) -> dict[str, Any]:
    """Return what a pod's own claims would get on one node, by name, in the form of the conformance cases."""
    found: dict[str, Any] = {}
    for claim, allocation in claims:
        if claim.metadata.name == IN_MEMORY:
            continue
        devices = [
            f"{result.request}={result.driver}/{result.pool}/{result.device}" for result in allocation.devices.results
        ]
        found[claim.metadata.name] = entry = {"devices": devices}
        if allocation.node_selector is not None:
            entry["nodeSelector"] = meta.plain(allocation.node_selector)
    return found


DRAWS = 500
"""The maximum number of sampled searches."""

Chances = Mapping[str, float]
"""The share of the searches that choose a node, by its name."""


class LimitedSearch(msgspec.Struct, frozen=True):
    """A search that ends when it has found ``wanted`` of ``fitting`` nodes, out of ``number``.

    ``chances`` draws where it may begin; ``best`` are the nodes that are equally good if all are examined.
    """

    number: int
    fitting: int
    wanted: int
    best: int
    preempts: bool
    chances: Callable[[], Chances]

    def caveat(self) -> Caveat:
        """Return the consequence of the limit for the decision."""
        examined = min(round(self.number * self.wanted / self.fitting), self.number)
        tie = f"; these {self.best:,} tie, and any may be taken" if self.best > 1 else ""
        what = "tries preemption on" if self.preempts else "examines"
        found = "candidates" if self.preempts else "nodes that fit"
        message = (
            f"kube-scheduler {what} about {examined:,} of {self.number:,} nodes, until it has {self.wanted:,} {found}: "
            f"the best of all {self.fitting:,} may not be among them{tie}"
        )
        return Caveat("nodes-examined", message, self.number - examined)


def limited_search(runner: Runner, placement: Placement, best: int) -> LimitedSearch | None:
    """Return the limit of the search for a node; None if it finds all feasible nodes, or with extenders."""
    profile, rows = runner.profile, placement.rows
    order = runner.cluster.nodes.tree_order()
    order = order if len(rows) >= len(order) else order[np.isin(order, rows)]
    wanted = nodes_to_find(profile.percentage_of_nodes_to_score or 0, len(order))
    if not profile.examines_all or len(placement.feasible) <= wanted or runner.extenders_of(placement.pod) is not None:
        return None
    outcome = placement.outcome

    def chances() -> Chances:
        starts = np.unique(np.linspace(0, len(order) - 1, min(DRAWS, len(order)), dtype=np.int64)).tolist()
        found: defaultdict[str, float] = defaultdict(float)
        for start in starts:
            feasible = examine(rolled(order, start), outcome, rows, wanted).feasible
            view = View(runner.cluster, feasible)
            runner.scoring.prepare(placement.state, placement.pod, view)
            totals = runner.scoring.totals(placement.state, placement.pod, view)
            _share(found, runner, feasible[np.flatnonzero(totals == totals.max())], 1 / len(starts))
        return found

    return LimitedSearch(len(order), len(placement.feasible), wanted, best, preempts=False, chances=chances)


def _limited_candidates(runner: Runner, plan: PreemptionPlan) -> LimitedSearch | None:
    """Return the limit of the search for candidates; None if it finds all of them."""
    tried = len(plan.candidates) + len(plan.rejected)
    enough = enough_candidates(UPSTREAM_MINIMUM, tried)
    if not runner.profile.examines_all or len(plan.candidates) <= enough or plan.search is not None:
        return None

    def chances() -> Chances:
        nodes, found = runner.cluster.nodes, defaultdict[str, float](float)
        rows = np.array([nodes.row_of[name] for name in plan.candidates], dtype=np.int64)
        violates = np.array([each.budget_violations > 0 for each in plan.candidates.values()])
        costs = np.array([each.cost for each in plan.candidates.values()], dtype=np.int64)
        ranks = np.unique(costs, axis=0, return_inverse=True)[1].reshape(-1)
        for draw in range(DRAWS):
            order = np.argsort(splitmix(nodes.name_hash[rows] + np.uint64(draw)), kind="stable")
            kept = until_enough(order, violates, enough)
            _share(found, runner, rows[kept[ranks[kept] == ranks[kept].min()]], 1 / DRAWS)
        return found

    return LimitedSearch(tried, len(plan.candidates), enough, len(plan.selected), preempts=True, chances=chances)


def _share(found: defaultdict[str, float], runner: Runner, rows: Int64s, chance: float) -> None:
    """Add the chance of a search, divided among the rows that are equally good."""
    for row in rows.tolist():
        found[runner.cluster.nodes.name(row)] += chance / len(rows)
