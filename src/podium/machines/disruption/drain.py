"""Draining a node: cordon it, evict its pods as their budgets allow, and wait until they are gone.

Source: kubectl pkg/drain; controlled-rescheduling.md, Node drain.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

from podium.api.meta import Kubernetes, Raw
from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.policy import PodDisruptionBudget
from podium.api.workloads import DaemonSet
from podium.decide.drain import DrainOptions, DrainPlan, Fate, PodFate, PodOnNode, plan_drain
from podium.decide.local_storage import has_empty_dir
from podium.machines.actions import Action, PatchObject
from podium.machines.disruption.evictions import STUCK_AFTER, Evictions, EvictionSettings
from podium.machines.observations import Answered, Changed, Gone, Observation, Tick
from podium.machines.parts.deadlines import NEVER, Deadline, earliest

_DRAIN = "drain"
_SECOND = 10**9
_CORDON: Raw = {"spec": {"unschedulable": True}}

DrainState = Literal["running", "blocked", "drained", "refused", "timed-out", "withdrawn"]
PodState = Literal["waiting", "terminating", "gone", "left", "refused"]

_STATES: dict[Fate, PodState] = {"evict": "waiting", "wait": "terminating", "leave": "left", "refuse": "refused"}


@dataclass(frozen=True, slots=True)
class DrainSettings(DrainOptions):
    """How a node is drained.

    ``grace_seconds`` stands in for the pods' own grace periods. ``disable_eviction`` deletes pods past their budgets.
    ``timeout_ns`` after it began the drain gives up, None: never. A refused eviction is repeated after ``retry_ns``.
    """

    grace_seconds: int | None = None
    disable_eviction: bool = False
    timeout_ns: int | None = None
    retry_ns: int = 5 * _SECOND


@dataclass(frozen=True, slots=True)
class PodReport:
    """How far the drain is with one pod: ``reason`` why it stays, or the last answer; ``tries`` asked for so often."""

    pod: str
    uid: str
    state: PodState
    reason: str
    tries: int


@dataclass(frozen=True, slots=True)
class DrainReport:
    """How far the drain is. ``pods`` are by key, those that are gone last; ``message`` says why it ended."""

    node: str
    state: DrainState
    message: str
    pods: tuple[PodReport, ...]


class Drain:
    """Drains one node, once. Several nodes are drained by as many machines.

    What it has to know stands in the API: started anew, it goes on with what it finds there. It is over when no pod is
    left that had to go, when some pod may not be evicted (then none is), or when its time is up; the node stays
    cordoned in any case. It is over, too, when somebody uncordons the node: whoever wants pods there is not fought, and
    those that come are let be. Blocked is what it is while every pod left was refused several times; it goes on trying.
    """

    watches = frozenset(("DaemonSet", "Node", "Pod", "PodDisruptionBudget"))

    def __init__(self, node: str, settings: DrainSettings = DrainSettings()) -> None:
        self._name = node
        self._settings = settings
        self._node: Node | None = None
        self._uid = ""
        self._was_seen = False
        self._is_cordoned = False
        # Whether the API has shown the cordon, and whether it has shown the end of it after that.
        self._was_cordoned = False
        self._is_withdrawn = False
        self._cordon_ns: int | None = 0
        self._cordon_failures = 0
        self._pods: dict[str, PodOnNode] = {}
        self._daemon_sets: set[str] = set()
        # How many pods of the node there are in each namespace, whose budgets matter.
        self._namespaces: Counter[str] = Counter()
        self._gone: list[PodReport] = []
        self._plan = DrainPlan(())
        self._evictions = Evictions(
            EvictionSettings(_DRAIN, settings.retry_ns, settings.grace_seconds, settings.disable_eviction)
        )
        # The report of how it ended, once it has.
        self._end: DrainReport | None = None
        self._give_up_ns: int | None = None
        self._next_ns: int | None = 0
        # Whether what is left to do was not refused again and again.
        self._expects_progress = True

    def handle(self, observation: Observation, now: int) -> list[Action]:
        """Take in an observation at ``now`` and say what to do."""
        match observation:
            case Changed(object=object_, raw=raw):
                self._changed(object_, raw)
            case Gone(object=object_):
                self._vanished(object_)
            case Answered():
                self._answered(observation, now)
            case Tick() if self._end is None:
                return self._work(now)
        return []

    @property
    def is_over(self) -> bool:
        """Whether it has come to its end."""
        return self._end is not None

    def deadline(self) -> Deadline:
        """When something is to be done for some pod; that what was refused again and again is tried is no news."""
        return NEVER if self._end else Deadline(self._next_ns, self._next_ns == 0 or self._expects_progress)

    def report(self) -> DrainReport:
        """How far the drain is; once it is over, how it ended."""
        return self._end or self._report("blocked" if self._is_blocked() else "running", "")

    # What the API shows

    def _changed(self, object_: Kubernetes, raw: Raw) -> None:
        match object_:
            case Node() if object_.metadata.name == self._name:
                self._node_changed(object_)
            case Pod():
                self._pod_changed(object_, raw)
            case PodDisruptionBudget():
                self._budget_changed(object_)
            case DaemonSet() if object_.key not in self._daemon_sets:
                self._daemon_sets.add(object_.key)
                self._next_ns = 0

    def _vanished(self, object_: Kubernetes) -> None:
        match object_:
            case Node() if self._node is not None and object_.metadata.uid == self._node.metadata.uid:
                self._node = None
                self._next_ns = 0
            case Pod():
                self._pod_left(object_.key, object_.metadata.uid)
            case PodDisruptionBudget():
                self._budget_changed(object_)
            case DaemonSet():
                self._daemon_sets.discard(object_.key)
                self._next_ns = 0

    def _node_changed(self, node: Node) -> None:
        if node.metadata.uid != self._uid:
            # Another machine has the name: nothing has been done about it yet.
            self._uid, self._cordon_ns = node.metadata.uid, 0
            self._is_cordoned = self._was_cordoned = False
        self._node, self._was_seen = node, True
        if node.spec.unschedulable:
            self._is_cordoned = self._was_cordoned = True
        elif self._was_cordoned:
            self._is_withdrawn = True
        self._next_ns = 0

    def _pod_changed(self, pod: Pod, raw: Raw) -> None:
        before = self._pods.get(pod.key)
        if before is not None and before.pod.metadata.uid != pod.metadata.uid:
            # A namesake has taken the pod's place.
            self._pod_left(pod.key, before.pod.metadata.uid)
            before = None
        if pod.spec.node_name != self._name:
            return
        came_late = self._is_cordoned if before is None else before.came_late
        self._pods[pod.key] = PodOnNode(pod, has_empty_dir(raw), came_late)
        self._namespaces[pod.metadata.namespace] += before is None
        self._next_ns = 0

    def _pod_left(self, key: str, uid: str) -> None:
        bound = self._pods.get(key)
        if bound is None or bound.pod.metadata.uid != uid:
            return
        del self._pods[key]
        self._namespaces[bound.pod.metadata.namespace] -= 1
        self._gone.append(PodReport(key, uid, "gone", "", self._evictions.of(uid).tries))
        self._evictions.forget([uid])
        self._evictions.forget_refusals()
        self._next_ns = 0

    def _budget_changed(self, budget: PodDisruptionBudget) -> None:
        if self._namespaces[budget.metadata.namespace]:
            self._evictions.forget_refusals()
            self._expects_progress = not self._is_stuck()

    def _answered(self, answered: Answered, now: int) -> None:
        if isinstance(answered.action, PatchObject):
            if answered.problem is None:
                self._is_cordoned = True
            else:
                self._cordon_ns = now + self._settings.retry_ns
                self._cordon_failures += 1
        self._evictions.answered(answered, now)
        self._next_ns = 0

    # What follows from it

    def _work(self, now: int) -> list[Action]:
        """Do what is due, and find out when the next is; or find that the drain is over."""
        if self._give_up_ns is None and self._settings.timeout_ns is not None:
            self._give_up_ns = now + self._settings.timeout_ns
        self._plan = plan_drain(self._pods.values(), self._daemon_sets, self._settings, now)
        end = None if self._needs_cordon() else self._found_end()
        if end is None and self._give_up_ns is not None and self._give_up_ns <= now:
            end = ("timed-out", "the time for the drain is up")
        if end is not None:
            self._end = self._report(*end)
            return []
        actions = self._cordon(now) if self._needs_cordon() else self._evict(now)
        self._next_ns = self._next()
        self._expects_progress = not self._is_stuck()
        return actions

    def _needs_cordon(self) -> bool:
        return self._node is not None and not self._is_cordoned

    def _found_end(self) -> tuple[DrainState, str] | None:
        if not self._was_seen:
            return "refused", f"there is no node {self._name}"
        if self._is_withdrawn:
            return "withdrawn", "the node was uncordoned; drain it again to go on"
        if self._plan.is_refused:
            return "refused", "some pods may not be evicted"
        if not self._plan.of("evict") and not self._plan.of("wait"):
            return "drained", ""
        return None

    def _cordon(self, now: int) -> list[Action]:
        """Cordon the node; its pods are evicted once that is done, or they would come back."""
        if self._node is None or self._cordon_ns is None or self._cordon_ns > now:
            return []
        self._cordon_ns = None
        return [PatchObject("Node", self._name, self._node.metadata.uid, _CORDON, _DRAIN, message="cordoned")]

    def _evict(self, now: int) -> list[Action]:
        found = (self._evictions.ask(fate.pod.key, fate.pod.metadata.uid, now) for fate in self._plan.of("evict"))
        return [action for actions in found for action in actions]

    def _next(self) -> int | None:
        times = [self._give_up_ns, *(fate.recheck_ns for fate in self._plan.fates)]
        if self._needs_cordon():
            times.append(self._cordon_ns)
        else:
            times += [self._evictions.of(fate.pod.metadata.uid).next_ns for fate in self._plan.of("evict")]
        return earliest(times)

    def _is_stuck(self) -> bool:
        """Whether all that is left to do was refused again and again."""
        if self._give_up_ns is not None:
            return False
        if not self._is_cordoned:
            return self._cordon_failures >= STUCK_AFTER
        return all(
            self._evictions.of(fate.pod.metadata.uid).is_stuck or self._was_let_go(fate)
            for fate in self._plan.of("evict")
        )

    def _was_let_go(self, pod_fate: PodFate) -> bool:
        """Whether an eviction is on its way or granted, so that only its effect is to be seen."""
        return self._evictions.of(pod_fate.pod.metadata.uid).next_ns is None

    def _is_blocked(self) -> bool:
        left = self._plan.of("evict")
        return bool(left) and all(self._evictions.of(fate.pod.metadata.uid).is_stuck for fate in left)

    def _report(self, state: DrainState, message: str) -> DrainReport:
        staying = tuple(self._pod_report(fate) for fate in self._plan.fates if fate.pod.key in self._pods)
        return DrainReport(self._name, state, message, (*staying, *self._gone))

    def _pod_report(self, pod_fate: PodFate) -> PodReport:
        uid = pod_fate.pod.metadata.uid
        attempts = self._evictions.of(uid)
        return PodReport(
            pod_fate.pod.key, uid, _STATES[pod_fate.fate], attempts.message or pod_fate.reason, attempts.tries
        )
