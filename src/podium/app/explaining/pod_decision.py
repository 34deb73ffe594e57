"""The decision about one pod: the verdict of every node, the scores, and what preemption would do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from podium.api.basis import Caveat
from podium.api.meta import plain
from podium.api.resource_claims import AllocationResult, ResourceClaim
from podium.app.explaining.gang import GangDecision, arrangement_caveat, gang_caveat, search_dict
from podium.app.explaining.limited_search import LimitedSearch, limited_candidates_of
from podium.cluster.pods import PodRecord
from podium.decide.preempting.preemption_plan import PreemptionCandidate, PreemptionPlan
from podium.framework.plugin import PostFilterResult
from podium.framework.pre_filters import LEFT_OUT
from podium.framework.runner import Runner
from podium.framework.verdicts import Status
from podium.plugins.dynamic_resources.fitting import IN_MEMORY
from podium.plugins.dynamic_resources.plugin import DynamicResources
from podium.sim.results.disruption_state import DisruptionState

SCHEMA_VERSION = 1
"""The version of the JSON of explanations; it grows when a key is removed or changes its meaning."""

OutcomeName = Literal["schedulable", "preempts", "unschedulable", "not-eligible", "gated", "error", "placed"]
Claims = list[tuple[ResourceClaim, AllocationResult]]


@dataclass(frozen=True, slots=True)
class DeviceFindings:
    """What the DynamicResources plugin found.

    ``claims`` has by feasible node the claims without devices, with what they would get. ``post_filter`` is the
    plugin's answer if no node is feasible; None for pods without claims. ``releases`` are the claims that it then
    deallocates.
    """

    claims: Mapping[str, Claims] = field(default_factory=dict)
    post_filter: Status | None = None
    releases: tuple[str, ...] = ()


NO_DEVICES = DeviceFindings()


@dataclass(frozen=True, slots=True)
class PendingPreemptor:
    """A pending pod that may preempt a placed one; `is_chosen`: it would preempt it now."""

    pod: PodRecord
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class PlacedPodFacts:
    """A pod on its node: why it is there as far as that can be known, and which pods could preempt it.

    `then` is the outcome of the decision if it were evicted, `then_node` its node then. `by` is what placed it: a
    scheduler (or whatever set the node's name), or the kubelet whose static pod it mirrors. `controller` replaces it,
    "" for none. `rank` is its node's place by score among the feasible ones, None if the node is not feasible now.
    `preemptors` are by priority; about `not_asked` pending pods it was not decided.
    """

    node: str
    then: OutcomeName
    then_node: str
    by: Literal["scheduler", "kubelet"]
    since_ns: int | None
    controller: str
    rank: int | None
    preemptors: tuple[PendingPreemptor, ...]
    not_asked: int
    budgets: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, repr=False)
class PodDecision:
    """The whole decision about one pod.

    ``outcome`` is what would happen, ``node`` the node that the pod gets or is nominated to ("" for none). ``nodes``
    holds each node's verdict, ``scores`` the weighted scores by node and plugin of the feasible nodes, ``totals`` their
    sums and ``best`` the nodes with the highest total. ``plan`` is None unless no node is feasible. ``pre_filter`` is a
    rejection before any node was looked at, ``pre_enqueue`` what keeps the pod out of the queue; nothing else is
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
        """Whether some node is feasible for the pod, and it waits for the others of its gang."""
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
            return limited_candidates_of(self.runner, plan)
        return self.search if self.outcome == "schedulable" else None

    @property
    def caveats(self) -> tuple[Caveat, ...]:
        """What the decision could not know, and what it did not look at."""
        search = None if self.plan is None else self.plan.search
        if self.gang is not None:
            of_plan = None if self.gang.plan is None else gang_caveat(self.gang.plan)
            of_gang = (arrangement_caveat(self.gang.placement), of_plan)
            return (*self.caveats_found(), *(caveat for caveat in of_gang if caveat is not None))
        if search is None or search.is_complete:
            limited = self.limited_search
            return (*self.caveats_found(), *(() if limited is None else (limited.caveat(),)))
        what = f"{search.left_out:,} nodes were not looked at" if search.left_out else "there may be cheaper ones"
        message = f"the search for victims was cut at maxSearchSteps, {search.most_steps:,}: {what}"
        return (*self.caveats_found(), Caveat("search-cut", message, search.left_out))

    def decision(self) -> dict[str, Any]:
        """Return the decision as plain values, in the form of the conformance cases.

        Nodes that a PreFilter excluded have the plugin's name "PreFilter" and no reason of their own.
        """
        found: dict[str, Any] = {"pod": self.pod, "outcome": self.outcome, "node": self.node}
        if self.pre_enqueue is not None:
            found["preEnqueue"] = status_dict(self.pre_enqueue)
        if self.error:
            found["error"] = self.error
        if self.pre_filter is not None:
            found["preFilter"] = status_dict(self.pre_filter)
        found["nodes"] = {name: _verdict(status) for name, status in self.nodes.items()}
        if self.best:
            found |= {"scores": dict(self.scores.items()), "totals": dict(self.totals.items()), "best": list(self.best)}
        claims = {node: shown for node, some in self.devices.claims.items() if (shown := claims_dict(some))}
        if claims:
            found["claims"] = claims
        if self.plan is not None:
            found["preemption"] = _plan(self.plan)
        if self.is_bound_early:
            found["isBoundEarly"] = True
        if self.gang is not None:
            found["gang"] = self.gang.to_dict()
        return found | self._post_filters()

    def _post_filters(self) -> dict[str, Any]:
        """Return the answers of PostFilter plugins other than DefaultPreemption, and the successful one's proposal."""
        proposal = self.proposal
        if proposal is None:
            status = self.devices.post_filter
            return {} if status is None else {"postFilter": {DynamicResources.name: status_dict(status)}}
        found: dict[str, Any] = {"postFilter": {answer.plugin: status_dict(answer) for answer in proposal.answers}}
        if self.node:
            victims = [victim.key for victim in proposal.victims]
            found["proposal"] = {"plugin": proposal.status.plugin, "node": self.node, "victims": victims}
        return found


def _verdict(status: Status) -> dict[str, Any]:
    return status_dict(Status(status.code, plugin=status.plugin) if status.plugin == LEFT_OUT else status)


def status_dict(status: Status) -> dict[str, Any]:
    """Return the JSON form of a verdict."""
    found: dict[str, Any] = {"status": status.code.value}
    if status.plugin:
        found["plugin"] = status.plugin
    if status.reasons:
        found["reasons"] = list(status.reasons)
    return found


def _plan(plan: PreemptionPlan) -> dict[str, Any]:
    found: dict[str, Any] = {"eligible": plan.eligible}
    if plan.is_exchange:
        found["isExchange"] = True
    if plan.reason:
        found["reason"] = plan.reason
    found["candidates"] = {name: _candidate(plan, candidate) for name, candidate in sorted(plan.candidates.items())}
    if plan.rejected:
        found["rejected"] = {name: status_dict(status) for name, status in sorted(plan.rejected.items())}
    found["selected"] = list(plan.selected)
    if plan.put_off is not None:
        found["putOff"] = plan.put_off.to_dict()
    if plan.held_back is not None:
        found["heldBack"] = plan.held_back.to_dict()
    if plan.error:
        found["error"] = plan.error
    if plan.search is not None:
        found["search"] = search_dict(plan.search, "nodesLeftOut")
    if plan.chosen is not None and plan.chosen.reasons:
        key_of = {victim.uid: victim.key for victim in plan.chosen.victims}
        found["reasons"] = {key_of[uid]: reason for uid, reason in plan.chosen.reasons.items()}
    return found


def _candidate(plan: PreemptionPlan, candidate: PreemptionCandidate) -> dict[str, Any]:
    """Return the victims, their cost by stated criteria, and the nodes of victims elsewhere."""
    found: dict[str, Any] = {
        "victims": [victim.key for victim in candidate.victims],
        "pdbViolations": candidate.budget_violations,
    }
    if candidate.elsewhere:
        found["elsewhere"] = {victim.key: victim.node_name for victim in candidate.elsewhere}
    if plan.criteria:
        costs = zip(plan.criteria, candidate.cost, strict=True)
        found["costs"] = {criterion.name: criterion.shown(value) for criterion, value in costs}
    return found


def claims_dict(claims: Claims) -> dict[str, Any]:
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
            entry["nodeSelector"] = plain(allocation.node_selector)
    return found
