"""The drain of a node: cordon, evictions within budgets, and the end of the pods.

Source: kubectl pkg/drain; controlled-rescheduling.md, Node drain.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from msgspec import Struct

from podium.api.meta import Raw
from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.policy import PodDisruptionBudget
from podium.api.times import SECOND
from podium.api.workloads import DaemonSet
from podium.controllers.actions import Action, DeleteObject, Evict, PatchObject
from podium.controllers.controller import NO_CHANGE, Backoff
from podium.controllers.deadlines import NEVER, Deadline, earliest
from podium.controllers.observations import ActionFinished, Answer, Changed, Deleted, Observation, Tick
from podium.decide.evictions import DrainAction, DrainOptions, DrainPlan, PodOnNode, plan_drain
from podium.decide.kubelet import has_empty_dir

_DRAIN = "drain"
_CORDON: Raw = {"spec": {"unschedulable": True}}

DrainState = Literal["running", "blocked", "drained", "refused", "timed-out", "withdrawn"]
PodState = Literal["waiting", "terminating", "gone", "left", "refused"]

_STATES: dict[DrainAction, PodState] = {"evict": "waiting", "wait": "terminating", "leave": "left", "refuse": "refused"}


@dataclass(frozen=True, slots=True)
class DrainSettings(DrainOptions):
    """Settings of a drain.

    ``grace_seconds`` replaces the pods' grace periods. ``disable_eviction`` deletes pods regardless of budgets. The
    drain ends after ``timeout_ns``; None: never. A refused eviction is retried after ``retry_ns``.
    """

    grace_seconds: int | None = None
    disable_eviction: bool = False
    timeout_ns: int | None = None
    retry_ns: int = 5 * SECOND


class PodReport(Struct, frozen=True):
    """The progress with a pod: why it stays or the last answer, and the number of requests."""

    pod: str
    uid: str
    state: PodState
    reason: str
    tries: int


class DrainReport(Struct, frozen=True):
    """The progress of a drain. ``pods`` are by key, those that are gone last; ``message`` says why it ended."""

    node: str
    state: DrainState
    message: str
    pods: tuple[PodReport, ...]


class NodeDrain:
    """Drains one node, once.

    Its state is in the API, so that it continues after a restart. It ends when no pod to evict is left, when a pod must
    not be evicted (then none is), or after its timeout; the node stays cordoned. It also ends when the node is
    uncordoned by another client. It is blocked while every remaining pod was refused several times; it continues to
    retry.
    """

    watches = frozenset(("DaemonSet", "Node", "Pod", "PodDisruptionBudget"))

    def __init__(self, node: str, settings: DrainSettings = DrainSettings()) -> None:
        self._name = self.pods_on = node
        self._settings = settings
        self._node: Node | None = None
        self._uid = ""
        self._is_cordoned = False
        # Whether the API has shown the cordon, and then its end.
        self._was_cordoned = False
        self._is_withdrawn = False
        self._cordon_ns: int | None = 0
        self._cordon_failures = 0
        self._pods: dict[str, PodOnNode] = {}
        self._daemon_sets: set[str] = set()
        self._gone: list[PodReport] = []
        self._plan = DrainPlan(())
        self._evictions = EvictionRetries(_DRAIN, settings.retry_ns, settings.grace_seconds, settings.disable_eviction)
        # The final report.
        self._end: DrainReport | None = None
        self._give_up_ns: int | None = None
        self._next_ns: int | None = 0
        # Whether the remaining work was not refused repeatedly.
        self._expects_progress = True

    def handle(self, observation: Observation, now: int) -> list[Action]:
        match observation:
            case Changed(object=Pod() as pod, raw=raw):
                return [] if self._pod_changed(pod, raw) else NO_CHANGE
            case Changed(object=Node() as node) if node.metadata.name == self._name:
                self._node_changed(node)
            case Deleted(object=Node() as node) if (
                self._node is not None and node.metadata.uid == self._node.metadata.uid
            ):
                self._node, self._next_ns = None, 0
            case Deleted(object=Pod() as pod):
                self._pod_left(pod.key, pod.metadata.uid)
            case Changed(object=PodDisruptionBudget() as budget) | Deleted(object=PodDisruptionBudget() as budget):
                self._budget_changed(budget)
            case Changed(object=DaemonSet(key=key)) if key not in self._daemon_sets:
                self._daemon_sets.add(key)
                self._next_ns = 0
            case Deleted(object=DaemonSet(key=key)):
                self._daemon_sets.discard(key)
                self._next_ns = 0
            case ActionFinished():
                self._on_finished(observation, now)
            case Tick() if self._end is None:
                return self._work(now)
        return []

    @property
    def is_over(self) -> bool:
        return self._end is not None

    def deadline(self) -> Deadline:
        """Return when something is due; repeated refusals do not keep a simulation running."""
        return NEVER if self._end else Deadline(self._next_ns, self._next_ns == 0 or self._expects_progress)

    def report(self) -> DrainReport:
        """Return the progress, or the final report."""
        left = self._plan.of("evict")
        is_blocked = bool(left) and all(self._evictions.of(action.pod.metadata.uid).is_stuck for action in left)
        return self._end or self._report("blocked" if is_blocked else "running", "")

    # Observations

    def _node_changed(self, node: Node) -> None:
        if node.metadata.uid != self._uid:
            # Another node has the name: it is not cordoned yet.
            self._uid, self._cordon_ns = node.metadata.uid, 0
            self._is_cordoned = self._was_cordoned = False
        self._node = node
        if node.spec.unschedulable:
            self._is_cordoned = self._was_cordoned = True
        elif self._was_cordoned:
            self._is_withdrawn = True
        self._next_ns = 0

    def _pod_changed(self, pod: Pod, raw: Raw) -> bool:
        """Take in a pod; return whether it is or was on the node."""
        before = self._pods.get(pod.key)
        if before is None and pod.spec.node_name != self._name:
            return False
        if before is not None and before.pod.metadata.uid != pod.metadata.uid:
            # Another pod has the name.
            self._pod_left(pod.key, before.pod.metadata.uid)
            before = None
        if pod.spec.node_name != self._name:
            return True
        came_late = self._is_cordoned if before is None else before.came_late
        self._pods[pod.key] = PodOnNode(pod, has_empty_dir(raw), came_late)
        self._next_ns = 0
        return True

    def _pod_left(self, key: str, uid: str) -> None:
        bound = self._pods.get(key)
        if bound is None or bound.pod.metadata.uid != uid:
            return
        del self._pods[key]
        self._gone.append(PodReport(key, uid, "gone", "", self._evictions.of(uid).tries))
        self._evictions.forget([uid])
        self._evictions.forget_refusals()
        self._next_ns = 0

    def _budget_changed(self, budget: PodDisruptionBudget) -> None:
        namespace = budget.metadata.namespace
        if any(bound.pod.metadata.namespace == namespace for bound in self._pods.values()):
            self._evictions.forget_refusals()
            self._expects_progress = not self._is_stuck()

    def _on_finished(self, finished: ActionFinished, now: int) -> None:
        if isinstance(finished.action, PatchObject):
            if finished.problem is None:
                self._is_cordoned = True
            else:
                self._cordon_ns = now + self._settings.retry_ns
                self._cordon_failures += 1
        self._evictions.on_finished(finished, now)
        self._next_ns = 0

    # Actions

    def _work(self, now: int) -> list[Action]:
        """Do what is due and compute the next deadline; or end the drain."""
        if self._give_up_ns is None and self._settings.timeout_ns is not None:
            self._give_up_ns = now + self._settings.timeout_ns
        self._plan = plan_drain(self._pods.values(), self._daemon_sets, self._settings, now)
        end = None if self._needs_cordon() else self._found_end()
        if end is None and self._give_up_ns is not None and self._give_up_ns <= now:
            end = ("timed-out", "the timeout has passed")
        if end is not None:
            self._end = self._report(*end)
            return []
        actions: list[Action] = []
        if self._node is not None and self._needs_cordon():
            # The pods are evicted only after that.
            if self._cordon_ns is not None and self._cordon_ns <= now:
                self._cordon_ns = None
                uid = self._node.metadata.uid
                actions = [PatchObject("Node", self._name, uid, _CORDON, _DRAIN, message="cordoned")]
        else:
            pods = (action.pod for action in self._plan.of("evict"))
            actions = [action for pod in pods for action in self._evictions.ask(pod.key, pod.metadata.uid, now)]
        times = [self._give_up_ns, *(action.recheck_ns for action in self._plan.actions)]
        if self._needs_cordon():
            times.append(self._cordon_ns)
        else:
            times += [self._evictions.of(action.pod.metadata.uid).next_ns for action in self._plan.of("evict")]
        self._next_ns = earliest(times)
        self._expects_progress = not self._is_stuck()
        return actions

    def _needs_cordon(self) -> bool:
        return self._node is not None and not self._is_cordoned

    def _found_end(self) -> tuple[DrainState, str] | None:
        if not self._uid:
            return "refused", f"there is no node {self._name}"
        if self._is_withdrawn:
            return "withdrawn", "the node was uncordoned; drain it again to continue"
        if self._plan.of("refuse"):
            return "refused", "some pods may not be evicted"
        if not self._plan.of("evict") and not self._plan.of("wait"):
            return "drained", ""
        return None

    def _is_stuck(self) -> bool:
        """Return whether everything left was refused repeatedly."""
        if self._give_up_ns is not None:
            return False
        if not self._is_cordoned:
            return self._cordon_failures >= STUCK_AFTER
        attempts = (self._evictions.of(action.pod.metadata.uid) for action in self._plan.of("evict"))
        # Evictions without a next time are pending or granted.
        return all(each.is_stuck or each.next_ns is None for each in attempts)

    def _report(self, state: DrainState, message: str) -> DrainReport:
        pods: list[PodReport] = []
        for action in self._plan.actions:
            key, uid = action.pod.key, action.pod.metadata.uid
            if key in self._pods:
                attempts, progress = self._evictions.of(uid), _STATES[action.action]
                pods.append(PodReport(key, uid, progress, attempts.message or action.reason, attempts.tries))
        return DrainReport(self._name, state, message, (*pods, *self._gone))


# After so many refusals without changes, a retry is not expected to succeed.
STUCK_AFTER = 2


class EvictionAttempts(Struct):
    """The eviction attempts for a pod. ``refusals`` counts those in a row since something changed.

    ``next_ns`` is the next attempt; None while an answer is pending and after success.
    """

    tries: int = 0
    refusals: int = 0
    message: str = ""
    next_ns: int | None = 0

    @property
    def is_stuck(self) -> bool:
        """Return whether the eviction was refused repeatedly."""
        return self.refusals >= STUCK_AFTER


@dataclass(eq=False)
class EvictionRetries:
    """The pods that a component evicts, by uid.

    ``component`` is the cause, and its cap counts. An eviction that a budget refuses is retried after ``retry_ns``,
    unless the answer names a time. ``grace_seconds`` None is the pod's own period. ``deletes`` deletes pods instead,
    regardless of budgets.
    """

    component: str
    retry_ns: int
    grace_seconds: int | None = None
    deletes: bool = False
    _attempts: dict[str, EvictionAttempts] = field(default_factory=dict)
    _backoff: Backoff[str] = field(default_factory=lambda: Backoff(SECOND, 60 * SECOND))

    def ask(self, pod: str, uid: str, now: int, grace_seconds: int | None = None) -> list[Action]:
        """Evict the pod if it is due; ``grace_seconds`` applies if there is none for all pods."""
        attempts = self._attempts.setdefault(uid, EvictionAttempts())
        if attempts.next_ns is None or attempts.next_ns > now:
            return []
        attempts.tries += 1
        attempts.next_ns = None
        grace = grace_seconds if self.grace_seconds is None else self.grace_seconds
        if self.deletes:
            return [DeleteObject("Pod", pod, uid, self.component, grace)]
        return [Evict(pod, uid, self.component, self.component, grace)]

    def on_finished(self, finished: ActionFinished, now: int) -> None:
        """Handle the answer to an action of this component.

        A pod that is not found or replaced is retried until the API shows that.
        """
        action, problem = finished.action, finished.problem
        if not isinstance(action, Evict | DeleteObject):
            return
        attempts = self._attempts.get(action.uid)
        if attempts is None or problem is None or action.cause != self.component:
            return
        attempts.refusals += 1
        attempts.message = problem.message
        if finished.answer is Answer.FULL:
            # Without a time in the answer, the server would be asked without end.
            attempts.next_ns = now + (finished.wait_ns or self.retry_ns)
        else:
            self._backoff.fail(action.uid, now)
            attempts.next_ns = now + finished.wait_ns if finished.wait_ns else self._backoff.until(action.uid, now)

    def of(self, uid: str) -> EvictionAttempts:
        return self._attempts.get(uid) or EvictionAttempts()

    def forget_refusals(self) -> None:
        """Forget refusals after a change that may affect the answers."""
        for attempts in self._attempts.values():
            attempts.refusals = 0
        self._backoff.clear()

    def forget(self, uids: Iterable[str]) -> None:
        """Forget pods that are gone, or need not be evicted."""
        for uid in uids:
            self._attempts.pop(uid, None)
            self._backoff.forget(uid)
