"""Invariants of a rescheduler's evictions under faults.

The letters are those of the list of invariants that the project holds to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from podium.api.avoid_list import PREFER_AVOID_PODS, avoid_list
from podium.api.meta import Raw
from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.policy import PodDisruptionBudget
from podium.api.selectors import compile_label_selector
from podium.api.times import parse_time
from podium.controllers.actions import Action, Evict
from podium.controllers.observations import ActionFinished
from podium.controllers.rescheduling.rescheduler import Rescheduler
from podium.controlplane.component_names import RESCHEDULER
from podium.decide.kubelet import CRITICAL_PRIORITY, has_local_storage
from podium.decide.rescheduling.guards import off_duty
from podium.decide.rescheduling.round_robin import ROUNDING, ReschedulingPlan
from podium.framework.rescheduling.settings import MoveCriteria, MoveLimitSettings, ReschedulerSettings
from podium.runtime.runtime import Component
from podium.sim.simulation import Simulation
from tests.store.objects import HOUR, SECOND

SEEN_WITHIN_NS = 30 * SECOND
"""How long it takes at most until a rescheduler has seen what happens, through watches that are late and break."""


@dataclass(slots=True)
class Moved:
    """A pod that the rescheduler evicted; ``known`` are the uids of the owner's pods at that time."""

    uid: str
    owner: str
    namespace: str
    node: str
    evicted_ns: int
    known: frozenset[str]
    is_over: bool = False


class ReschedulerChecker:
    """Looks at each eviction when it is carried out; raises AssertionError.

    What nodes tell of goes with them: where ``nodes_go``, only a rescheduler that has not crashed is held to limits.
    """

    def __init__(self, simulation: Simulation, component: Component, *, is_faulty: bool, nodes_go: bool) -> None:
        assert simulation.scenario.rescheduling is not None
        self.simulation = simulation
        self.store = simulation.store
        self.settings: ReschedulerSettings = simulation.scenario.rescheduling
        self.component = component
        self.is_faulty = is_faulty
        self.nodes_go = nodes_go
        self.moved: list[Moved] = []
        # By owner and node: the pod that came back there last, and when.
        self.returned: dict[tuple[str, str], tuple[str, int]] = {}
        self.seen_back: set[str] = set()
        self._watch()

    def after_step(self) -> None:
        """Take note of what has become of the moves."""
        machine = self.component.controller
        if isinstance(machine, Rescheduler):
            machine.on_plan = self._check_plan
        pods = self._pods()
        taken: set[str] = set()
        for move in self.moved:
            made = [one for one in pods if _owner(one) == move.owner and one.metadata.uid not in move.known]
            for pod in made:
                # A pod that comes an hour later replaces another one.
                is_late = self.simulation.now - move.evicted_ns >= HOUR
                if pod.spec.node_name == move.node and not is_late and pod.metadata.uid not in self.seen_back:
                    self.seen_back.add(pod.metadata.uid)
                    self.returned[move.owner, move.node] = pod.metadata.uid, self.simulation.now
            if move.is_over:
                continue
            free = [one for one in made if one.metadata.uid not in taken and not one.is_terminating]
            if free:
                replacement = min(free, key=lambda one: (one.metadata.creation_timestamp or "", one.key))
                taken.add(replacement.metadata.uid)
                has_left = all(one.metadata.uid != move.uid for one in pods)
                move.is_over = _is_ready(replacement) and has_left

    def _watch(self) -> None:
        server = self.simulation.server
        carry_out = server.carry_out

        def checked(action: Action, now: int, by: str = "") -> ActionFinished:
            if not isinstance(action, Evict) or action.cause != RESCHEDULER:
                return carry_out(action, now, by)
            stored = self.store.find("Pod", action.pod)
            is_there = stored is not None and stored.uid == action.uid and not _pod(stored.object).is_terminating
            before = (_pod(stored.object), stored.raw) if stored is not None and is_there else None
            if before is not None and before[0].is_terminal:
                self._check_ended(before[0])
            elif before is not None:
                self._check_time(before[0], now)
            budgets = [] if before is None else self._budgets_over(before[0])
            finished = carry_out(action, now, by)
            if before is not None and finished.problem is None:
                self._check(before[0], before[1], budgets, now)
            return finished

        server.carry_out = checked  # type: ignore[method-assign]

    def _check_plan(self, plan: ReschedulingPlan, now: int) -> None:
        """G3: each pod has somewhere else to go, and what is bad falls by the threshold for each."""
        gained = 0.0
        for planned in plan.planned:
            if all(move.has_ended for move in planned.moves):
                assert (planned.gain, [move.target for move in planned.moves]) == (0, [None]), planned.reason
                continue
            if planned.part_of is not None:
                whole = planned.part_of
                assert whole.gain >= self.settings.threshold * whole.pods - ROUNDING, planned.reason
                assert len(planned.moves) < whole.pods, planned.reason
                assert planned.gain >= -ROUNDING, planned.reason
                gained += planned.gain
                continue
            assert planned.gain >= self.settings.threshold * len(planned.moves) - ROUNDING, planned.reason
            gained += planned.gain
            for move in planned.moves:
                assert (move.target is None) is (self.settings.judgement is MoveCriteria.BLIND), move.pod.key
                assert move.target != move.source == move.pod.node_name, move.pod.key
        assert sum(plan.after.values()) <= sum(plan.before.values()) - gained + ROUNDING * (1 + len(plan.planned))
        assert not plan.errors, plan.errors

    # At an eviction

    def _check_time(self, pod: Pod, now: int) -> None:
        """G1, G5: check that no evicted pod is younger than the minimum age, which includes new replacements."""
        began = pod.status.start_time or pod.metadata.creation_timestamp
        age_ns = now - (parse_time(began) if began else 0)
        assert age_ns >= self.settings.scope.minimum_age_ns, f"{pod.key} is {age_ns / SECOND:g} s old"

    def _check_ended(self, pod: Pod) -> None:
        """Check that ended pods are evicted only to put a controller on a list that lacks it."""
        if self.is_faulty:
            return
        assert pod.status.phase == "Failed", pod.key
        node = self.store.get("Node", pod.spec.node_name).object
        listed = avoid_list(node.metadata.annotations.get(PREFER_AVOID_PODS, "")).entries
        assert _owner(pod) not in [entry.controller.uid for entry in listed], pod.key

    def _check(self, pod: Pod, raw: Raw, budgets: list[PodDisruptionBudget], now: int) -> None:
        if not pod.is_terminal:
            self._check_kind(pod, raw)
        self._check_place(pod)
        if not self.is_faulty:
            for budget in budgets:
                allowed = budget.status.disruptions_allowed
                assert not _is_ready(pod) or allowed > self.settings.budget_reserve, f"{pod.key}: {allowed}"
        move = Moved(
            pod.metadata.uid,
            _owner(pod),
            pod.metadata.namespace,
            pod.spec.node_name,
            now,
            frozenset(one.metadata.uid for one in self._pods() if _owner(one) == _owner(pod)),
            pod.is_terminal,
        )
        self._check_return(move, now)
        self.after_step()
        self.moved.append(move)
        if not self.nodes_go or self.component.life == 1:
            self._check_limits(now)

    def _check_kind(self, pod: Pod, raw: Raw) -> None:
        """G1"""
        controller = pod.metadata.controller
        assert controller is not None, pod.key
        assert controller.kind not in ("DaemonSet", "Node", "Job"), pod.key
        assert pod.priority < CRITICAL_PRIORITY, pod.key
        assert not has_local_storage(raw), pod.key
        assert pod.metadata.namespace != "kube-system"

    def _check_place(self, pod: Pod) -> None:
        """Nodes that others drain or empty are left to them, as far as is seen."""
        stored = self.store.find("Node", pod.spec.node_name)
        if not self.is_faulty and stored is not None and isinstance(stored.object, Node):
            assert not off_duty(stored.object), pod.spec.node_name

    def _check_return(self, move: Moved, now: int) -> None:
        """G4: check that the owner of a returned replacement is left alone on that node for a while."""
        uid, time = self.returned.get((move.owner, move.node), ("", 0))
        if uid and any(one.metadata.uid == uid for one in self._pods()):
            since_ns = now - time
            is_cool = since_ns < SEEN_WITHIN_NS * self.is_faulty or since_ns >= self.settings.cool_down_ns
            assert is_cool, f"{move.owner} came back to {move.node} {since_ns / SECOND:g} s ago"

    def _check_limits(self, now: int) -> None:
        """G2"""
        under_way = [
            move for move in self.moved if not move.is_over and now - move.evicted_ns < self.settings.move_timeout_ns
        ]
        _check_limits(under_way, self.settings.in_flight, "under way")
        of_late = [move for move in self.moved if now - move.evicted_ns < HOUR]
        _check_limits(of_late, self.settings.hourly, "within an hour")

    def _budgets_over(self, pod: Pod) -> list[PodDisruptionBudget]:
        found = [one.object for one in self.store.objects("PodDisruptionBudget", pod.metadata.namespace)]
        return [
            one
            for one in found
            if isinstance(one, PodDisruptionBudget)
            and compile_label_selector(one.spec.selector).matches(pod.metadata.labels)
        ]

    def _pods(self) -> list[Pod]:
        return [_pod(one.object) for one in self.store.objects("Pod") if not _pod(one.object).is_terminal]


def _check_limits(moves: Iterable[Moved], limits: MoveLimitSettings, what: str) -> None:
    moves = list(moves)
    assert limits.total is None or len(moves) <= limits.total, f"{len(moves)} are {what}"
    for most, counted in (
        (limits.node, Counter(move.node for move in moves)),
        (limits.namespace, Counter(move.namespace for move in moves)),
        (limits.owner, Counter(move.owner for move in moves)),
    ):
        for whose, number in counted.items():
            assert most is None or number <= most, f"{number} of {whose} are {what}"


def _pod(object_: object) -> Pod:
    assert isinstance(object_, Pod)
    return object_


def _owner(pod: Pod) -> str:
    controller = pod.metadata.controller
    return pod.metadata.uid if controller is None else controller.uid


def _is_ready(pod: Pod) -> bool:
    ready = pod.status.condition("Ready")
    return ready is not None and ready.status == "True"
