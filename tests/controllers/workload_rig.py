"""Workload controllers before an API server, with simulated kubelets and switchable faults."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from podium.api.meta import Raw
from podium.api.pod import Pod
from podium.apirequests.actions import carry_out
from podium.apirequests.observations import observation_of
from podium.apirequests.router import Router
from podium.controllers.actions import Action, CreateObject, DeleteObject, Record
from podium.controllers.controller import Controller, is_watched_kind
from podium.controllers.observations import ActionFinished, Changed, Deleted, Problem, Tick
from podium.store.cleanup import GarbageCollector
from podium.store.store import Store
from podium.store.watch_log import WatchEvent
from tests.pod_statuses import set_pod_status
from tests.store.collecting import steps_at

SECOND = 10**9
# 2026-01-01T00:00:00Z
START_NS = 1_767_225_600 * SECOND
LOST = Problem(0, "Timeout", "no answer came")
UNSENT = Problem(0, "Timeout", "no connection was made")
CRASH = Problem(0, "Crash", "the controller crashed before this action")
_READY = {"type": "Ready", "status": "True"}
_MANY = 20_000

Fault = Callable[[Action], Problem | None]


class Rig:
    """Controllers of workloads; ``log`` are the requested actions, those on pods as `seconds verb pod`.

    With ``runs`` all pods are bound to the node n1 and ready as soon as they exist, and gone as soon as they are
    deleted. While ``lags``, controllers see only what `show` lets through; with ``repeats`` they see it twice, with
    ``merges`` not what is out of date. ``fault`` says how an action fails: LOST is carried out all the same, and at a
    CRASH the controller starts anew.
    """

    def __init__(self, *make: Callable[[], Controller], runs: bool = True, seed: int = 0) -> None:
        self.store = Store(seed=seed)
        self.now = START_NS
        self.runs = runs
        self.lags = self.repeats = self.merges = False
        self.fault: Fault = lambda action: None
        self.log: list[str] = []
        self.actions: list[Action] = []
        self.recorded: list[str] = []
        self.after_each: Callable[[], None] = lambda: None
        self._make = make
        self.machines = [one() for one in make]
        # What each machine has yet to see, by kind, and what it has yet to be answered.
        self.unseen: list[dict[str, deque[WatchEvent]]] = [{} for _ in make]
        self._answers: list[deque[ActionFinished]] = [deque() for _ in make]
        self._version = 0
        self._garbage = GarbageCollector(self.store, steps_at(self.store), absent_is_gone=False)

    # What people do

    def apply(self, *objects: Raw) -> None:
        """Create objects, or replace what they have been, and let things settle."""
        for raw in objects:
            name = raw["metadata"]["name"]
            namespace = raw["metadata"].get("namespace")
            known = self.store.find(raw["kind"], f"{namespace}/{name}" if namespace else name)
            if known is None:
                self.store.create(raw, now=self.now)
            else:
                self.store.update({**raw, "metadata": {**known.raw["metadata"], **raw["metadata"]}})
        self.settle()

    def scale(self, kind: str, name: str, replicas: int) -> None:
        """Change `spec.replicas`."""
        self.patch(kind, name, {"spec": {"replicas": replicas}})

    def patch(self, kind: str, name: str, patch: Raw, *, status: bool = False) -> None:
        """Change an object by a merge patch."""
        self.store.patch(kind, f"default/{name}", patch, "merge", "status" if status else "")
        self.settle()

    def delete(self, kind: str, name: str, **options: Any) -> None:
        """Delete an object."""
        self.store.delete(kind, f"default/{name}", now=self.now, **options)
        self.settle()

    # What kubelets do

    def start(self, name: str, node: str) -> None:
        """Bind a pod to a node and make it ready; no controller acts yet."""
        key = f"default/{name}"
        if not self.pods()[name].spec.node_name:
            self.store.bind(key, node, now=self.now)
        set_pod_status(self.store, key, {"phase": "Running"}, [_READY], now=self.now)

    def run_all(self) -> None:
        """All pods that wait start, and all that were deleted are gone."""
        for name, pod in self.pods().items():
            if pod.is_terminating:
                if pod.metadata.deletion_grace_period_seconds or not pod.is_terminal:
                    self.remove(pod)
            elif pod.status.phase == "Pending":
                self.start(name, "n1")

    def run(self, *names: str, node: str = "n1") -> None:
        """Pods are bound to a node and become ready."""
        for name in names:
            self.start(name, node)
        self.settle()

    def end(self, *names: str, phase: str = "Failed", condition: str = "", exit_code: int | None = None) -> None:
        """Pods end; ``condition`` is one that they have got then, such as DisruptionTarget."""
        for name in names:
            conditions = [{"type": "Ready", "status": "False"}]
            conditions += [{"type": condition, "status": "True"}] if condition else []
            fields: Raw = {"phase": phase}
            if exit_code is not None:
                terminated = {"terminated": {"exitCode": exit_code}}
                fields["containerStatuses"] = [{"name": "main", "restartCount": 0, "state": terminated}]
            set_pod_status(self.store, f"default/{name}", fields, conditions, now=self.now)
        self.settle()

    def unready(self, name: str) -> None:
        """Make a running pod unready."""
        set_pod_status(self.store, f"default/{name}", {}, [{"type": "Ready", "status": "False"}], now=self.now)
        self.settle()

    def finish(self, *names: str) -> None:
        """End the containers of deleted pods."""
        for name in names:
            self.remove(self.pods()[name])
        self.settle()

    def remove(self, pod: Pod) -> None:
        """Do what a kubelet does when the containers of a deleted pod have ended: report the end, then delete."""
        if not pod.is_terminal:
            set_pod_status(self.store, pod.key, {"phase": "Failed"}, [], now=self.now)
        self.store.delete("Pod", pod.key, now=self.now, grace_seconds=0)

    # What is there

    def get(self, kind: str, name: str) -> Raw:
        """Return an object's wire form."""
        return self.store.get(kind, f"default/{name}").raw

    def names(self, kind: str) -> list[str]:
        """Return the names of a kind's objects."""
        return [one.object.metadata.name for one in self.store.objects(kind)]

    def pods(self) -> dict[str, Pod]:
        """All pods by name."""
        found = (one.object for one in self.store.objects("Pod"))
        return {one.metadata.name: one for one in found if isinstance(one, Pod)}

    def active(self) -> list[str]:
        """Return the names of the pods that have not ended and were not deleted."""
        return [name for name, one in self.pods().items() if not one.is_terminal and not one.is_terminating]

    # Time and faults

    @property
    def seconds(self) -> float:
        """The time since the start."""
        return (self.now - START_NS) / SECOND

    def pass_to(self, seconds: float) -> None:
        """Let time pass, with a tick whenever a controller wants one."""
        end = START_NS + round(seconds * SECOND)
        while (deadline := self._next_deadline()) is not None and deadline <= end:
            self.now = max(self.now, deadline)
            self.settle()
        self.now = end

    def skip(self) -> None:
        """Let time pass until a controller is due; none if one is due already."""
        deadline = self._next_deadline()
        assert deadline is not None, "no controller wants to do anything"
        self.now = max(self.now, deadline)
        self.settle()

    def rest(self, seconds: float = 10_000) -> None:
        """Let time pass until no controller has anything left to do, ``seconds`` at most."""
        end = START_NS + round(seconds * SECOND)
        self.settle()
        while (deadline := self._next_deadline()) is not None:
            assert deadline <= end, f"they do not come to rest; deadline {(deadline - START_NS) / SECOND} s"
            self.now = max(self.now, deadline)
            self.settle()

    def restart(self, index: int = 0, behind: int = 0) -> None:
        """Restart a controller after a crash: it observes all objects as they are, or as they were ``behind`` writes
        ago.
        """
        self._start_anew(index, behind)
        self.settle()

    def _start_anew(self, index: int, behind: int) -> None:
        self._pump()
        self.machines[index] = self._make[index]()
        self.unseen[index] = {}
        self._answers[index].clear()
        kinds = (resource.name for resource in self.store.resources.all())
        found = {(one.kind, one.key): one for kind in kinds for one in self.store.objects(kind)}
        missed = self.store.events_since(max(0, self.store.version - behind))
        for event in reversed(missed):
            place = event.stored.kind, event.stored.key
            found.pop(place, None)
            if event.previous is not None:
                found[place] = event.previous
        for event in missed:
            self.unseen[index].setdefault(event.stored.kind, deque()).append(event)
        for _, stored in sorted(found.items(), key=lambda item: item[0]):
            if is_watched_kind(stored.kind, self.machines[index].watches):
                self._handle(index, Changed(stored.object, stored.raw))

    def show(self, kind: str | None = None, count: int = _MANY, index: int = 0) -> None:
        """Deliver the next changes of a kind (None: of all kinds) to a controller, and the answers that are due."""
        self._pump()
        for name, events in sorted(self.unseen[index].items()):
            for _ in range(count if kind in (None, name) else 0):
                if not events:
                    break
                event = events.popleft()
                is_old = self.merges and any(event.stored.key == later.stored.key for later in events)
                for _ in range(0 if is_old else 1 + self.repeats):
                    self._see(index, event)
        while self._answers[index]:
            self._handle(index, self._answers[index].popleft())

    def settle(self) -> None:
        """Let everybody act until nothing is left to do at this time."""
        for _ in range(_MANY):
            self._pump()
            if self.runs:
                self.run_all()
            if not self.lags:
                for index in range(len(self.machines)):
                    self.show(index=index)
            self._garbage.collect(self.now)
            if not self.tick() and (self.lags or not self._is_anything_unseen()):
                return
        raise AssertionError("they act without end, and no time passes")

    def tick(self) -> bool:
        """Let the due controllers act; return whether any did."""
        did = False
        for index, machine in enumerate(self.machines):
            deadline = machine.deadline().time_ns
            if deadline is not None and deadline <= self.now:
                did = True
                self._handle(index, Tick())
        return did

    # Within

    def _next_deadline(self) -> int | None:
        deadlines = (machine.deadline().time_ns for machine in self.machines)
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def _is_anything_unseen(self) -> bool:
        self._pump()
        return any(any(kinds.values()) for kinds in self.unseen) or any(self._answers)

    def _pump(self) -> None:
        """Put what was written into what the controllers have yet to see."""
        for event in self.store.events_since(self._version):
            self._version = event.version
            for kinds in self.unseen:
                kinds.setdefault(event.stored.kind, deque()).append(event)

    def _see(self, index: int, event: WatchEvent) -> None:
        if is_watched_kind(event.stored.kind, self.machines[index].watches):
            self._handle(index, observation_of(event))

    def _handle(self, index: int, observation: Changed | Deleted | ActionFinished | Tick) -> None:
        for action in self.machines[index].handle(observation, self.now):
            if isinstance(action, Record):
                self.recorded.append(f"{self.seconds:g} {action.reason} {action.workload}: {action.message}")
                continue
            problem = self.fault(action)
            if problem is CRASH:
                self._start_anew(index, 0)
                return
            if problem is None or problem is LOST:
                refused = self._carry_out(action)
                problem = problem or refused
            self.actions.append(action)
            self._tell(action, problem)
            self._answers[index].append(ActionFinished(action, problem))
            self.after_each()

    def _carry_out(self, action: Action) -> Problem | None:
        return carry_out(Router(self.store, takes_history=True).answer, action, self.now).problem

    def _tell(self, action: Action, problem: Problem | None) -> None:
        seconds = self.seconds
        time = int(seconds) if seconds.is_integer() else seconds
        outcome = f" ({problem.reason})" if problem else ""
        if isinstance(action, CreateObject):
            metadata = action.raw["metadata"]
            self.log.append(f"{time} create {metadata.get('name') or metadata['generateName']}{outcome}")
        elif isinstance(action, DeleteObject):
            self.log.append(f"{time} delete {action.key.removeprefix('default/')}{outcome}")


def workload(kind: str, name: str, spec: Raw, **metadata: Any) -> Raw:
    """Return a workload of pods labelled app=web, with a uid that is its name."""
    group = {"Job": "batch/v1", "ReplicationController": "v1"}.get(kind, "apps/v1")
    selector: Raw = {"app": "web"} if kind == "ReplicationController" else {"matchLabels": {"app": "web"}}
    filled = {**({} if kind == "Job" else {"selector": selector}), "template": template(), **spec}
    return {
        "apiVersion": group,
        "kind": kind,
        "metadata": {"name": name, "namespace": "default", "uid": name, "generation": 1, **metadata},
        "spec": filled,
    }


def template(**spec: Any) -> Raw:
    """Return a pod template with label app=web and one container."""
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main"}], **spec}}


def owned_by(owner: Raw, name: str, *, status: Raw | None = None, **spec: Any) -> Raw:
    """Return a pod of a workload; with ``nodeName`` in its spec it runs and is ready, unless its status says
    otherwise.
    """
    metadata = owner["metadata"]
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": metadata["name"]}
    running = {"phase": "Running", "conditions": [_READY]} if "nodeName" in spec else {"phase": "Pending"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "labels": {"app": "web"},
            "ownerReferences": [{**reference, "uid": metadata["uid"], "controller": True}],
        },
        "spec": {"containers": [{"name": "main"}], **spec},
        "status": running if status is None else status,
    }


def failing(kind: type, problem: Problem, times: int = 1) -> Fault:
    """Return the first actions of a kind fail."""
    left = [problem] * times

    def fault(action: Action) -> Problem | None:
        return left.pop() if left and isinstance(action, kind) else None

    return fault
