"""A controller before a store that carries out its requests unless a test says otherwise.

The controller sees each kind of object by a watch of its own, which a test may hold back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from podium.api.times import parse_time
from podium.apirequests.actions import carry_out
from podium.apirequests.observations import observation_of
from podium.apirequests.router import Router
from podium.controllers.actions import (
    Action,
    Record,
)
from podium.controllers.controller import Controller, is_watched_kind
from podium.controllers.observations import ActionFinished, Changed, Problem, Tick
from podium.store.api_resources import APIResource
from podium.store.errors import StoreError
from podium.store.store import Store
from podium.store.watch_log import WatchEvent
from tests.sim.objects import owned, workload
from tests.store.objects import SECOND, Raw, serving
from tests.store.objects import pod as plain_pod

START_NS = parse_time("2026-01-01T12:00:00Z")
NO_ANSWER = Problem(0, "", "no answer came")
CONFLICT = Problem(409, "Conflict", "it is not as you think")
UNAVAILABLE = Problem(503, "ServiceUnavailable", "the API server stumbled")

READY: Raw = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
UNREADY: Raw = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}
WEB = {"app": "web"}


def pod(name: str, *, ready: bool = True, owner: Raw | None = None, **more: Any) -> Raw:
    """Return a pod labelled app=web that runs on a node; `more` as for the pods of the store's tests."""
    status = READY if ready else UNREADY
    raw = plain_pod(name, node="n1", **{"labels": WEB, "status": status, **more})
    return raw if owner is None else owned(raw, owner)


def replica_set(name: str, replicas: int) -> Raw:
    """Return a ReplicaSet whose uid is its name."""
    return workload("ReplicaSet", name, replicas, uid=name)


class Rig:
    """A controller at a store; ``log`` are its requests in order, with their results.

    Kinds in ``held`` are not observed. The next writes fail with ``problems``, None for success; NO_ANSWER is carried
    out without an answer. ``before_write`` is called before each write.
    """

    def __init__(self, make: Callable[[], Controller], *objects: Raw, custom: Iterable[APIResource] = ()) -> None:
        self.make = make
        self.store = Store(resources=serving(*custom))
        self.now = START_NS
        self.held: set[str] = set()
        self.problems: list[Problem | None] = []
        self.before_write: Callable[[], object] = lambda: None
        self.log: list[tuple[Action, Problem | None]] = []
        self.put(*objects)
        self.restart()

    # What others do

    def put(self, *objects: Raw) -> None:
        """Create or update objects with their status, as another client."""
        for raw in objects:
            meta = raw["metadata"]
            key = f"{meta['namespace']}/{meta['name']}" if "namespace" in meta else meta["name"]
            found = self.store.find(self.store.resources.of(raw).name, key)
            if found is None:
                self.store.create(raw, now=self.now)
                continue
            kept = found.raw["metadata"]
            new = {**raw, "metadata": {**meta, "uid": kept["uid"]}}
            self.store.update(new)
            if "status" in raw:
                self.store.update_status(new)

    def delete(self, kind: str, name: str, grace_seconds: int | None = 0) -> None:
        """Delete an object, as another client."""
        self.store.delete(kind, f"default/{name}", now=self.now, grace_seconds=grace_seconds)

    def evict(self, name: str, grace_seconds: int | None = None) -> bool:
        """Evict a pod, as another client; return whether that was allowed."""
        try:
            self.store.evict(f"default/{name}", now=self.now, grace_seconds=grace_seconds)
        except StoreError as error:
            if error.code != 429:
                raise
            return False
        return True

    # What the controller sees and does

    def restart(self) -> None:
        """Restart the controller: it observes all existing objects."""
        self.controller = self.make()
        self._coming: list[WatchEvent] = []
        self._version = self.store.version
        for resource in self.store.resources.all():
            if not is_watched_kind(resource.name, self.controller.watches):
                continue
            for one in self.store.objects(resource.name):
                self.carry_out(self.controller.handle(Changed(one.object, one.raw), self.now))

    def see(self) -> None:
        """Watches show what has happened, but for those that are held back."""
        self._coming += self.store.events_since(self._version)
        self._version = self.store.version
        shown = [event for event in self._coming if event.stored.kind not in self.held]
        self._coming = [event for event in self._coming if event.stored.kind in self.held]
        self._show(shown)

    def see_held(self, count: int) -> None:
        """Deliver the next observation of the held kinds."""
        shown, self._coming = self._coming[:count], self._coming[count:]
        self._show(shown)

    def settle(self) -> None:
        """Let the controller see and do all that it can at this time."""
        for _ in range(1_000):
            self.see()
            deadline = self.controller.deadline().time_ns
            if deadline is None or deadline > self.now:
                return
            self.carry_out(self.controller.handle(Tick(), self.now))
        raise AssertionError("it never comes to rest")

    def wait(self, seconds: float) -> None:
        """Let time pass, with a tick whenever the controller wants one."""
        end = self.now + round(seconds * SECOND)
        self.settle()
        while (deadline := self.controller.deadline().time_ns) is not None and deadline <= end:
            self.now = deadline
            self.settle()
        self.now = end

    def sync(self, *objects: Raw) -> None:
        """Put objects, and let the controller act on them."""
        self.put(*objects)
        self.settle()

    def get(self, kind: str, name: str) -> Raw:
        """Return the wire form of an object."""
        return self.store.get(kind, f"default/{name}").raw

    def names(self, kind: str) -> list[str]:
        """Return the names of all objects of a kind."""
        return [one.raw["metadata"]["name"] for one in self.store.objects(kind)]

    @property
    def writes(self) -> list[tuple[Action, Problem | None]]:
        """Return what the controller asked for beside Events."""
        return [pair for pair in self.log if not isinstance(pair[0], Record)]

    def events(self) -> list[tuple[str, str]]:
        """Return the Events that the controller recorded: reason and pod."""
        return [(one.reason, one.pod) for one, _ in self.log if isinstance(one, Record)]

    def carry_out(self, actions: list[Action]) -> None:
        """Do what the controller asks for, and answer."""
        for action in actions:
            problem = None if isinstance(action, Record) else self._write(action)
            self.log.append((action, problem))
            self.carry_out(self.controller.handle(ActionFinished(action, problem), self.now))

    def _show(self, events: Iterable[WatchEvent]) -> None:
        for event in events:
            if is_watched_kind(event.stored.kind, self.controller.watches):
                self.carry_out(self.controller.handle(observation_of(event), self.now))

    def _write(self, action: Action) -> Problem | None:
        self.before_write()
        problem = self.problems.pop(0) if self.problems else None
        if problem is not None and problem.code:
            return problem
        refused = carry_out(Router(self.store, takes_history=True).answer, action, self.now).problem
        return problem or refused
