"""What is said of the decision about one pod."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from podium.api.basis import Caveat
from podium.app.explaining.devices import NO_DEVICES, DeviceFindings, shown_claims
from podium.app.explaining.gang import GangDecision
from podium.app.explaining.gang_plan import arrangement_caveat, gang_caveat
from podium.app.shown import Shown
from podium.cluster.pods import PodRecord
from podium.decide.placement import LEFT_OUT
from podium.decide.preempting.preemption_plan import Candidate, PreemptionPlan
from podium.framework.runner import Runner
from podium.framework.status import Status
from podium.plugins.dynamic_resources.plugin import DynamicResources
from podium.sim.results.disruption_state import DisruptionState

if TYPE_CHECKING:
    from podium.app.console.page import Page
    from podium.app.explaining.on_node import NodeAnswer
    from podium.app.frames import Frame

SCHEMA_VERSION = 1
"""The version of the JSON of explanations: it grows when a key changes its meaning or goes, not when one is added."""

OutcomeName = Literal["schedulable", "preempts", "unschedulable", "not-eligible", "gated", "error", "placed"]


@dataclass(frozen=True, slots=True)
class Taker:
    """A pending pod for which a placed one may have to go; `is_chosen`: it would go for it now."""

    pod: PodRecord
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class Placed:
    """A pod on its node: why it is there as far as that can be known, and who could take its place.

    `then` is the outcome of the decision if it were evicted, `then_node` where it would go. `by` says who placed it:
    its scheduler, the kubelet of which it mirrors a static pod, or whoever wrote the node's name into it. `controller`
    is who makes it again, "" for nobody. `rank` is its node's place by score among those that could take it, None
    where it could not go there now. `takers` are by priority; `further` pending pods were not asked.
    """

    node: str
    then: OutcomeName
    then_node: str
    by: Literal["scheduler", "kubelet"]
    since_ns: int | None
    controller: str
    rank: int | None
    takers: tuple[Taker, ...]
    further: int
    budgets: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, repr=False)
class Explanation(Shown):
    """The whole decision about one pod.

    ``outcome`` is what would happen, ``node`` the node taken or nominated ("" where none). ``nodes`` holds each node's
    verdict, ``scores`` the weighted scores by node and plugin where several nodes fit or one does, ``best`` those with
    the highest total. ``plan`` is None unless no node fits. ``pre_filter`` is a rejection before any node was looked
    at, ``pre_enqueue`` what keeps the pod out of the queue: nothing else is asked then. ``devices`` is what
    DynamicResources found, and ``error`` says which plugin failed, which ends the attempt. ``record`` and ``runner``
    are the pod and what decided about it: the live cluster, which may go on to change. ``caveats_found``
    finds what ``rests_on`` tells, ``disruptions_found`` what ``disruptions`` does. Of a pod that is ``placed``,
    ``node`` is where it is, and all else is the decision if it were evicted now. ``as_decided`` is a context in which
    the cluster is as it was decided on: without the pod, with claims that are not there yet. ``gang`` is the decision
    about the pod's group, of which this pod's is a part: ``nodes`` are then seen beside the pods before it.
    """

    pod: str
    outcome: OutcomeName
    node: str
    pre_filter: Status | None
    nodes: Mapping[str, Status]
    scores: Mapping[str, dict[str, int]]
    totals: Mapping[str, int]
    best: tuple[str, ...]
    plan: PreemptionPlan | None
    record: PodRecord = field(repr=False, compare=False)
    runner: Runner = field(repr=False, compare=False)
    pre_enqueue: Status | None = None
    caveats_found: Callable[[], tuple[Caveat, ...]] = field(default=tuple, repr=False, compare=False)
    disruptions_found: Callable[[], DisruptionState] = field(default=DisruptionState, repr=False, compare=False)
    error: str = ""
    devices: DeviceFindings = NO_DEVICES
    placed: Placed | None = None
    as_decided: Callable[[], AbstractContextManager[None]] = field(default=nullcontext, repr=False, compare=False)
    gang: GangDecision | None = None

    @property
    def awaits_others(self) -> bool:
        """Whether some node would take the pod, and it waits for the others of its gang."""
        member = None if self.gang is None else self.gang.member(self.record.uid)
        return self.outcome != "schedulable" and member is not None and member.fits

    @property
    def headline(self) -> str:
        """What becomes of the pod, in a line."""
        from podium.app.explaining.text import headline_of

        return headline_of(self)

    def _in_a_line(self) -> str:
        return self.headline

    def on_node(self, node: str) -> NodeAnswer:
        """Why not there, or why there: what every plugin says of one node. Raises PodiumError for an unknown node."""
        from podium.app.explaining.on_node import answer_on

        return answer_on(self, node)

    def write(self, page: Page) -> None:
        """Write it as `podium explain` does."""
        from podium.app.explaining.text import write_explanation

        write_explanation(page, self)

    def frame(self, name: str = "nodes") -> Frame:
        """A table of the explanation: `nodes`, the only one. Raises PodiumError for another.

        A row for each node, by name: `node`, `status` as kube-scheduler names it, the `plugin` that refused it, its
        `reasons`; the `total` score and the weighted one of each plugin, as `score.PLUGIN`, where the pod fits; and
        where preemption was tried the number of `victims`, and of these those that a budget is violated by.
        """
        from podium.app.explaining.tables import frame_of

        return frame_of(self, name)

    @property
    def rests_on(self) -> tuple[Caveat, ...]:
        """What the decision could not know."""
        return self.caveats_found()

    @property
    def disruptions(self) -> DisruptionState:
        """The budgets, caps, quotas and avoid lists around the decision."""
        return self.disruptions_found()

    @property
    def caveats(self) -> tuple[Caveat, ...]:
        """What the decision rests on: what it could not know, and what was not looked at."""
        search = None if self.plan is None else self.plan.search
        if self.gang is not None:
            of_plan = None if self.gang.plan is None else gang_caveat(self.gang.plan)
            of_gang = (arrangement_caveat(self.gang.placement), of_plan)
            return (*self.rests_on, *(caveat for caveat in of_gang if caveat is not None))
        if search is None or search.is_complete:
            return self.rests_on
        what = f"{search.left_out:,} nodes were not looked at" if search.left_out else "there may be cheaper ones"
        message = f"the search for victims was cut at maxSearchSteps, {search.most_steps:,}: {what}"
        return (*self.rests_on, Caveat("search-cut", message, search.left_out))

    def to_dict(self) -> dict[str, Any]:
        """Everything that there is to say, as plain values: the decision, and what would have to change."""
        # What tells about explanations makes further ones.
        from podium.app.explaining.answer import answer_of

        return answer_of(self)

    def decision(self) -> dict[str, Any]:
        """The decision as plain values, in the form of the conformance cases.

        Nodes that a PreFilter left out say so by the plugin's name, "PreFilter", and give no reason of their own.
        """
        found: dict[str, Any] = {"pod": self.pod, "outcome": self.outcome, "node": self.node}
        if self.pre_enqueue is not None:
            found["preEnqueue"] = _status(self.pre_enqueue)
        if self.error:
            found["error"] = self.error
        if self.pre_filter is not None:
            found["preFilter"] = _status(self.pre_filter)
        found["nodes"] = {name: _verdict(status) for name, status in self.nodes.items()}
        if self.best:
            found |= {"scores": dict(self.scores.items()), "totals": dict(self.totals.items()), "best": list(self.best)}
        claims = {node: shown for node, some in self.devices.claims.items() if (shown := shown_claims(some))}
        if claims:
            found["claims"] = claims
        if self.plan is not None:
            found["preemption"] = _plan(self.plan)
        if self.gang is not None:
            found["gang"] = self.gang.to_dict()
        if self.devices.post_filter is not None:
            found["postFilter"] = {DynamicResources.name: _status(self.devices.post_filter)}
        return found


def _verdict(status: Status) -> dict[str, Any]:
    return _status(Status(status.code, plugin=status.plugin) if status.plugin == LEFT_OUT else status)


def _status(status: Status) -> dict[str, Any]:
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
        found["rejected"] = {name: _status(status) for name, status in sorted(plan.rejected.items())}
    found["selected"] = list(plan.selected)
    if plan.put_off is not None:
        found["putOff"] = plan.put_off.to_dict()
    if plan.error:
        found["error"] = plan.error
    if plan.search is not None:
        found["search"] = {
            "steps": plan.search.steps,
            "maxSteps": plan.search.most_steps,
            "nodesLeftOut": plan.search.left_out,
            "isComplete": plan.search.is_complete,
        }
    if plan.chosen is not None and plan.chosen.reasons:
        key_of = {victim.uid: victim.key for victim in plan.chosen.victims}
        found["reasons"] = {key_of[uid]: reason for uid, reason in plan.chosen.reasons.items()}
    return found


def _candidate(plan: PreemptionPlan, candidate: Candidate) -> dict[str, Any]:
    """Whom it takes, and at what cost by criteria that are stated; of victims on other nodes, where they are."""
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
