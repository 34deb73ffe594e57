"""Controllers that evict pods and create or remove nodes, before an API server with simulated kubelets."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import count
from typing import Any

from podium.api.meta import Raw
from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.times import parse_time
from podium.apirequests.actions import carry_out
from podium.apirequests.observations import observation_of
from podium.apirequests.router import Router
from podium.controllers.actions import (
    Action,
    Bind,
    CreateObject,
    DeleteObject,
    Evict,
    PatchObject,
    Record,
)
from podium.controllers.controller import Controller, is_watched_kind
from podium.controllers.observations import ActionFinished, Changed, Observation, Problem, Tick
from podium.decide.autoscaling import GROUP_LABEL
from podium.store.store import Store
from tests.pod_statuses import set_pod_status
from tests.store import objects

SECOND = objects.SECOND
MINUTE = 60 * SECOND
# 2026-01-01T00:00:00Z
START_NS = 1_767_225_600 * SECOND
# Carried out all the same.
LOST = Problem(0, "Timeout", "no answer came")
UNSENT = Problem(0, "Timeout", "no connection was made")
BROKEN = Problem(500, "InternalError", "the API server stumbled")
READY = {"type": "Ready", "status": "True"}
_MANY = 20_000

Fault = Callable[[Action], Problem | None]


def crash_after(actions: int) -> Fault:
    """Return the fault of a component that crashes: its later actions are not sent."""
    done = count(1)
    return lambda action: UNSENT if next(done) > actions else None


class Rig:
    """Controllers of nodes; ``log`` are their writes as `seconds what`, ``events`` their Events as `reason pod:
    message`.

    Terminating pods are removed after their grace period. ``fault`` says how an action fails. While ``lags``, no
    observation is delivered.
    """

    def __init__(self, *make: Callable[[], Controller], seed: int = 0) -> None:
        self.store = Store(seed=seed)
        self.now = START_NS
        self.lags = False
        self.fault: Fault = lambda action: None
        self.log: list[str] = []
        self.events: list[str] = []
        self._make = make
        self.machines = [one() for one in make]
        self._inboxes: list[deque[Observation]] = [deque() for _ in make]
        self._version = 0

    # What people, kubelets and schedulers do

    def apply(self, *given: Raw) -> None:
        """Create objects, and let everybody act."""
        for raw in given:
            self.store.create(raw, now=self.now)
        self.settle()

    def patch(self, kind: str, key: str, patch: Raw, *, status: bool = False) -> None:
        """Change an object by a merge patch."""
        self.store.patch(kind, key, patch, "merge", "status" if status else "")
        self.settle()

    def delete(self, kind: str, key: str, *, grace: int | None = None) -> None:
        """Delete an object."""
        self.store.delete(kind, key, now=self.now, grace_seconds=grace)
        self.settle()

    def bind(self, name: str, node: str) -> None:
        """Bind a pod, as a scheduler; it runs at once."""
        self.store.bind(f"default/{name}", node, now=self.now)
        set_pod_status(self.store, f"default/{name}", {"phase": "Running"}, [READY], now=self.now)
        self.settle()

    def allow(self, name: str, disruptions: int) -> None:
        """Let a budget allow so many more disruptions."""
        self.patch("PodDisruptionBudget", f"default/{name}", {"status": allowing(disruptions)}, status=True)

    # What is there

    def nodes(self) -> dict[str, Node]:
        """All nodes by name."""
        return {one.key: one.object for one in self.store.objects("Node") if isinstance(one.object, Node)}

    def pods(self) -> dict[str, Pod]:
        """All pods by name."""
        found = (one.object for one in self.store.objects("Pod"))
        return {one.metadata.name: one for one in found if isinstance(one, Pod)}

    def taints(self, node: str) -> list[str]:
        """Return the keys of a node's taints."""
        return [taint.key for taint in self.nodes()[node].spec.taints]

    # Time and faults

    @property
    def seconds(self) -> float:
        """The time since the start."""
        return (self.now - START_NS) / SECOND

    def pass_to(self, seconds: float) -> None:
        """Let time pass, with a tick whenever a machine wants one."""
        end = START_NS + round(seconds * SECOND)
        while (next_ns := self._next_ns()) is not None and next_ns <= end:
            self.now = max(self.now, next_ns)
            self.settle()
        self.now = end

    def rest(self, seconds: float = 100_000) -> None:
        """Let time pass until all are settled, as a simulation without an end does; ``seconds`` at most."""
        end = START_NS + round(seconds * SECOND)
        while any(machine.deadline().keeps_alive for machine in self.machines) or self._ends():
            next_ns = self._next_ns()
            if next_ns is None:
                return
            assert next_ns <= end, "they do not come to rest"
            self.now = max(self.now, next_ns)
            self.settle()

    def restart(self, index: int = 0) -> None:
        """Restart a controller after a crash: it lists all objects."""
        self._pump()
        self.machines[index] = self._make[index]()
        self._inboxes[index].clear()
        for resource in self.store.resources.all():
            if not is_watched_kind(resource.name, self.machines[index].watches):
                continue
            for stored in self.store.objects(resource.name):
                self._inboxes[index].append(Changed(stored.object, stored.raw))
        self.settle()

    def miss(self) -> None:
        """Drop the observation of the last write: a watch may omit steps."""
        self._pump()
        for inbox in self._inboxes:
            inbox.clear()

    def settle(self) -> None:
        """Let everybody act until nothing is left to do at this time."""
        for _ in range(_MANY):
            self._pump()
            self._end_pods()
            if self.lags or not (self._show() or self._tick()):
                return
        raise AssertionError("they act without end, and no time passes")

    # Within

    def _ends(self) -> list[int]:
        """Return when terminating pods are gone; a finalizer can keep one beyond that."""
        ends = (_end_ns(pod) for pod in self.pods().values() if pod.is_terminating)
        return [end for end in ends if end > self.now]

    def _next_ns(self) -> int | None:
        deadlines = [machine.deadline().time_ns for machine in self.machines]
        return min((time for time in [*deadlines, *self._ends()] if time is not None), default=None)

    def _end_pods(self) -> None:
        for pod in self.pods().values():
            if pod.is_terminating and _end_ns(pod) <= self.now:
                self.store.delete("Pod", pod.key, now=self.now, grace_seconds=0)
                self._pump()

    def _pump(self) -> None:
        for event in self.store.events_since(self._version):
            self._version = event.version
            for machine, inbox in zip(self.machines, self._inboxes, strict=True):
                if is_watched_kind(event.stored.kind, machine.watches):
                    inbox.append(observation_of(event))

    def _show(self) -> bool:
        for index, inbox in enumerate(self._inboxes):
            if inbox:
                self._handle(index, inbox.popleft())
                return True
        return False

    def _tick(self) -> bool:
        for index, machine in enumerate(self.machines):
            deadline = machine.deadline().time_ns
            if deadline is not None and deadline <= self.now:
                self._handle(index, Tick())
                return True
        return False

    def _handle(self, index: int, observation: Observation) -> None:
        for action in self.machines[index].handle(observation, self.now):
            problem = self.fault(action)
            if problem is None or problem is LOST:
                problem = self._carry_out(action) or problem
            self._tell(action, problem)
            self._pump()
            self._inboxes[index].append(ActionFinished(action, problem))

    def _carry_out(self, action: Action) -> Problem | None:
        if isinstance(action, Record):
            self.events.append(f"{action.reason} {action.pod.removeprefix('default/')}: {action.message}")
            return None
        problem = carry_out(Router(self.store, takes_history=True).answer, action, self.now).problem
        if problem is None and isinstance(action, Bind):
            set_pod_status(self.store, action.pod, {"phase": "Running"}, [READY], now=self.now)
        return problem

    def _tell(self, action: Action, problem: Problem | None) -> None:
        what = _reported(action)
        if what:
            self.log.append(f"{self.seconds:g} {what}{f' ({problem.code})' if problem else ''}")


def _end_ns(pod: Pod) -> int:
    """Return when a terminating pod is gone."""
    return parse_time(pod.metadata.deletion_timestamp or "")


def _reported(action: Action) -> str:
    match action:
        case CreateObject():
            return f"create {action.raw['metadata']['name']}"
        case PatchObject():
            return f"patch {action.key}: {action.message}"
        case DeleteObject():
            return f"delete {action.key.removeprefix('default/')}"
        case Evict():
            return f"evict {action.pod.removeprefix('default/')}"
    return ""


def allowing(disruptions: int) -> Raw:
    """Return the status of a budget that has been looked at and allows so many disruptions."""
    return {"observedGeneration": 1, "disruptionsAllowed": disruptions, "currentHealthy": 1, "desiredHealthy": 1}


def budget(name: str, disruptions: int, **labels: str) -> Raw:
    """Return a PodDisruptionBudget over pods with these labels that allows so many disruptions."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}},
        "status": allowing(disruptions),
    }


def pod(name: str, *, owner: str = "ReplicaSet/web", **more: Any) -> Raw:
    """Return a pod as `objects.pod`, with a controller ("" for none), running and ready if it has a node."""
    raw = objects.pod(name, **more)
    if owner:
        kind, _, owner_name = owner.partition("/")
        reference = {"apiVersion": "apps/v1", "kind": kind, "name": owner_name, "uid": owner, "controller": True}
        raw["metadata"]["ownerReferences"] = [reference]
    if more.get("node") and "status" not in raw:
        raw["status"] = {"phase": "Running", "conditions": [READY]}
    return raw


def in_group(name: str, group: str = "pool", **more: Any) -> Raw:
    """Return a node as `objects.node`, of a group."""
    raw = objects.node(name, **more)
    raw["metadata"]["labels"][GROUP_LABEL] = group
    return raw
