"""Kubelets and the controllers of failed nodes, before an API server.

Each machine sees each kind of object by a watch of its own. Nothing happens by itself but what the machines do.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from podium.api.pod import PodCondition
from podium.api.times import parse_time
from podium.apirequests.actions import carry_out
from podium.apirequests.observations import observation_of
from podium.apirequests.router import Router
from podium.controllers.actions import (
    Action,
    DeleteObject,
    PatchObject,
    ReportStatus,
)
from podium.controllers.controller import Controller, is_watched_kind
from podium.controllers.observations import (
    ActionFinished,
    Changed,
    HeartbeatsResumed,
    HeartbeatsStopped,
    NodeStarted,
    NodeStopped,
    Observation,
    Problem,
    Tick,
)
from podium.store.store import Store
from podium.store.watch_log import WatchEvent
from tests.store.objects import SECOND, Raw

START_NS = parse_time("2026-01-01T12:00:00Z")
# Carried out all the same.
LOST = Problem(0, "Timeout", "no answer came")
BROKEN = Problem(500, "InternalError", "the API server stumbled")
CONFLICT = Problem(409, "Conflict", "it is not as you think")
# The machine that asked for the action crashes before it is carried out, or right after.
CRASH_BEFORE = Problem(0, "Crash", "")
CRASH_AFTER = Problem(0, "Crash", "")
_MANY = 10_000

Fault = Callable[[Action], Problem | None]


@dataclass
class _Place:
    """A controller and the observations that it has not received yet."""

    make: Callable[[], Controller]
    controller: Controller
    inbox: deque[Observation] = field(default_factory=deque)
    unseen: dict[str, deque[WatchEvent]] = field(default_factory=dict)


class Rig:
    """Controllers and an API server; ``log`` are the effective writes as `seconds verb object`, ``actions`` all
    requests.

    ``fault`` says how an action fails. While a kind is in ``held``, changes of its objects are not observed.
    """

    def __init__(self, *make: Callable[[], Controller]) -> None:
        self.store = Store()
        self.now = START_NS
        self.fault: Fault = lambda action: None
        self.held: set[str] = set()
        self.log: list[str] = []
        self.actions: list[Action] = []
        self.after_each: Callable[[], None] = lambda: None
        self.down: dict[str, int] = {}
        self.places = [_Place(one, one()) for one in make]
        self._version = 0

    @property
    def seconds(self) -> float:
        elapsed = (self.now - START_NS) / SECOND
        return int(elapsed) if elapsed.is_integer() else elapsed

    # What people do

    def apply(self, *objects: Raw) -> None:
        """Create objects, and let everybody act."""
        for raw in objects:
            self.store.create(raw, now=self.now)
        self.settle()

    def patch(self, kind: str, name: str, patch: Raw, *, status: bool = False) -> None:
        """Change an object by a merge patch."""
        self.store.patch(kind, _key(kind, name), patch, "merge", "status" if status else "")
        self.settle()

    def condition(self, node: str, type_: str, status: str) -> None:
        """Set a condition of a node, as another client."""
        uid, condition = self.store.get("Node", node).uid, PodCondition(type=type_, status=status)
        report = ReportStatus("Node", node, uid, "somebody", (condition,))
        carry_out(Router(self.store, takes_history=True).answer, report, self.now)
        self.settle()

    def delete(self, kind: str, name: str, *, grace: int | None = None) -> None:
        """Delete an object."""
        self.store.delete(kind, _key(kind, name), now=self.now, grace_seconds=grace)
        self.settle()

    def fail(self, *nodes: str) -> None:
        """Stop the machines of nodes at once."""
        for name in nodes:
            self.down[name] = self.now
            self._tell(NodeStopped(name), HeartbeatsStopped(name, self.now))
        self.settle()

    def recover(self, *nodes: str) -> None:
        """Start the machines of nodes again."""
        for name in nodes:
            del self.down[name]
            self._tell(NodeStarted(name), HeartbeatsResumed(name))
        self.settle()

    def fail_once(self, kind: type[Action], problem: Problem, number: int = 0) -> list[Action]:
        """Of the actions of a kind from now on the one with that number fails; all of them, as they come."""
        asked: list[Action] = []

        def fault(action: Action) -> Problem | None:
            if not isinstance(action, kind):
                return None
            asked.append(action)
            return problem if len(asked) == number + 1 else None

        self.fault = fault
        return asked

    def restart(self) -> None:
        """All machines crash, and begin anew with what the API shows."""
        for place in self.places:
            self._begin(place)
        self.settle()

    # What there is

    def pod(self, name: str) -> Raw:
        return self.store.get("Pod", f"default/{name}").raw

    def pods(self) -> dict[str, str]:
        """Return the phase of each pod, and whether it is being deleted."""
        found = {}
        for one in self.store.objects("Pod"):
            ending = " terminating" if "deletionTimestamp" in one.raw["metadata"] else ""
            found[one.raw["metadata"]["name"]] = one.raw["status"]["phase"] + ending
        return found

    def pod_condition(self, name: str, type_: str) -> Raw:
        return _condition(self.pod(name), type_)

    def node_condition(self, name: str, type_: str) -> Raw:
        return _condition(self.store.get("Node", name).raw, type_)

    def taints(self, name: str) -> list[str]:
        found = self.store.get("Node", name).raw.get("spec", {}).get("taints", [])
        return [f"{one['key'].removeprefix('node.kubernetes.io/')}:{one['effect']}" for one in found]

    def is_at_rest(self) -> bool:
        return all(place.controller.deadline().time_ns is None for place in self.places)

    def is_settled(self) -> bool:
        return not any(place.controller.deadline().keeps_alive for place in self.places)

    # How time passes

    def pass_to(self, seconds: float) -> None:
        """Let time pass up to so many seconds after the start."""
        end = START_NS + round(seconds * SECOND)
        while (due := self._next_time()) is not None and due <= end:
            self.now = max(self.now, due)
            self.settle()
        self.now = end
        self.settle()

    def settle(self) -> None:
        """Let everybody see what happened and do what is due, until all is quiet."""
        for _ in range(_MANY):
            self._watch()
            place = next((one for one in self.places if one.inbox or self._shown(one) or self._is_due(one)), None)
            if place is None:
                return
            shown = self._shown(place)
            if place.inbox:
                observation = place.inbox.popleft()
            elif shown:
                observation = observation_of(place.unseen[shown].popleft())
            else:
                observation = Tick()
            self._do(place, place.controller.handle(observation, self.now))
        raise AssertionError("it goes on for ever")

    def hold(self, *kinds: str) -> None:
        """Delay observations of these kinds until `release`."""
        self.held |= set(kinds)

    def skip(self) -> None:
        """Drop the observations since all was last quiet: the next change replaces them."""
        self._watch()
        for place in self.places:
            place.unseen.clear()

    def release(self) -> None:
        """Everybody sees what has happened."""
        self.held.clear()
        self.settle()

    @contextmanager
    def holding(self, *kinds: str) -> Iterator[None]:
        """Delay observations of these kinds within the block."""
        self.hold(*kinds)
        yield
        self.release()

    def _next_time(self) -> int | None:
        times = [place.controller.deadline().time_ns for place in self.places]
        return min((time for time in times if time is not None), default=None)

    def _is_due(self, place: _Place) -> bool:
        deadline = place.controller.deadline().time_ns
        return deadline is not None and deadline <= self.now

    def _shown(self, place: _Place) -> str:
        return next((kind for kind, events in place.unseen.items() if events and kind not in self.held), "")

    def _watch(self) -> None:
        for event in self.store.events_since(self._version):
            self._version = event.version
            for place in self.places:
                if is_watched_kind(event.stored.kind, place.controller.watches):
                    place.unseen.setdefault(event.stored.kind, deque()).append(event)

    def _begin(self, place: _Place) -> None:
        self._watch()
        place.controller = place.make()
        place.inbox.clear()
        place.unseen.clear()
        place.inbox.extend(NodeStopped(name) for name in self.down)
        place.inbox.extend(HeartbeatsStopped(name, since_ns) for name, since_ns in self.down.items())
        for kind in ("Pod", "Node"):
            place.inbox.extend(Changed(one.object, one.raw) for one in self.store.objects(kind))

    def _tell(self, *observations: Observation) -> None:
        for place in self.places:
            place.inbox.extend(observations)

    # What the API server does

    def _do(self, place: _Place, actions: list[Action]) -> None:
        for action in actions:
            self.actions.append(action)
            problem = self.fault(action)
            if problem is None or problem is LOST or problem is CRASH_AFTER:
                problem = self._try(action) or problem
            self.after_each()
            if problem is CRASH_BEFORE or problem is CRASH_AFTER:
                self._begin(place)
                return
            place.inbox.append(ActionFinished(action, problem))

    def _try(self, action: Action) -> Problem | None:
        version = self.store.version
        problem = carry_out(Router(self.store, takes_history=True).answer, action, self.now).problem
        if problem is None and self.store.version != version:
            self.log.append(f"{self.seconds} {_what(action)}")
        return problem


def _what(action: Action) -> str:
    match action:
        case ReportStatus(kind="Node", conditions=(condition,)):
            return f"{condition.type} {condition.status} {action.key}"
        case ReportStatus(fields={"phase": phase}):
            ready = next((one.status for one in action.conditions if one.type == "Ready"), "")
            what = action.fields.get("reason") or phase + (" ready" if ready == "True" else "")
            return f"{what} {_name(action.key)}"
        case ReportStatus(conditions=(condition,)):
            return f"{condition.reason} {_name(action.key)}"
        case DeleteObject(cause="kubelet"):
            return f"gone {_name(action.key)}"
        case DeleteObject(message=""):
            return f"delete {_name(action.key)}"
        case DeleteObject():
            return f"delete {_name(action.key)}: {action.message}"
        case PatchObject():
            return f"{_name(action.key)}: {action.message.replace('node.kubernetes.io/', '')}"
    raise AssertionError(f"nobody here asks for {action}")


def _condition(raw: Raw, type_: str) -> Raw:
    conditions = raw["status"].get("conditions", [])
    return next((one for one in conditions if one["type"] == type_), {"status": ""})


def _name(key: str) -> str:
    return key.removeprefix("default/")


def _key(kind: str, name: str) -> str:
    return name if kind == "Node" else f"default/{name}"
