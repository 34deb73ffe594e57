"""The observations that the runtime passes to controllers: changes in the API, answers to actions, and ticks."""

from __future__ import annotations

from enum import Enum
from typing import final

import msgspec

from podium.api.meta import Kubernetes, Raw
from podium.api.use import Use
from podium.controllers.actions import Action, CreateObject, DeleteObject, Evict
from podium.store.stored import Stored


@final
class Changed(msgspec.Struct, frozen=True):
    """An object was added or changed; ``wire`` is its wire form, or has it as an attribute ``raw``."""

    object: Kubernetes
    wire: Raw | Stored = msgspec.field(default_factory=dict)

    @property
    def raw(self) -> Raw:
        """Return the wire form, from which controllers write objects without losing fields that Podium does not read.

        Pods of a dump have none before that is read: few controllers look at the wire form of pods that do not change.
        """
        wire = self.wire
        return wire if isinstance(wire, dict) else wire.raw


@final
class Deleted(msgspec.Struct, frozen=True):
    """An object was deleted; ``object`` is its last state."""

    object: Kubernetes


class Problem(msgspec.Struct, frozen=True):
    """Why an action failed: the HTTP code, the Status reason (such as Conflict) and the message.

    Code 0 means no answer: the action may or may not have been carried out. ``retry_after_ns`` is None if the server
    names no wait. ``cause`` is the reason of the first cause in the Status, such as NamespaceTerminating.
    """

    code: int
    reason: str
    message: str
    retry_after_ns: int | None = None
    cause: str = ""


@final
class ActionFinished(msgspec.Struct, frozen=True):
    """The end of an action; ``problem`` is None if it was carried out.

    ``written`` is the object of the action in its current version. It is None if the server does not return it, as for
    bindings, evictions and deletions, and if the object is gone.
    """

    action: Action
    problem: Problem | None = None
    written: Raw | None = None

    @property
    def answer(self) -> Answer:
        """Return what the answer means for the controller.

        A Conflict answers a precondition. A deletion has only the uid, so its object was replaced. A write may have
        been based on an old version, or another write came first.
        """
        action, problem = self.action, self.problem
        if problem is None:
            return Answer.DONE
        code = problem.code
        if code in _UNKNOWN:
            return Answer.UNKNOWN
        if code == 404:
            return Answer.GONE
        if code == 409:
            is_replaced = problem.reason == "AlreadyExists" or isinstance(action, _DELETIONS)
            return Answer.REPLACED if is_replaced else Answer.STALE
        is_exceeded = code == 403 and isinstance(action, CreateObject) and _EXCEEDED in problem.message
        if is_exceeded or (code == 429 and isinstance(action, Evict)):
            return Answer.FULL
        return Answer.REFUSED if 400 <= code < 500 and code not in _PASSING else Answer.PASSING

    @property
    def wait_ns(self) -> int:
        """Return how long the server asks to wait before a retry; 0 if it does not say."""
        return (self.problem.retry_after_ns or 0) if self.problem is not None else 0


@final
class Tick(msgspec.Struct, frozen=True):
    """The controller's deadline has come."""


class NodeStopped(msgspec.Struct, frozen=True):
    """A node's machine has stopped with everything that ran there; the API does not show it.

    The machine stays down until `NodeStarted`, whatever happens to the node in the API. A restarted controller gets
    this again before anything else.
    """

    node: str


class NodeStarted(msgspec.Struct, frozen=True):
    """A stopped machine runs again: its kubelet restarts, and restarts the pods that ran there."""

    node: str


class ContainersExited(msgspec.Struct, frozen=True):
    """A pod's containers have exited with success; no effect if they do not run."""

    node: str
    uid: str


class HeartbeatsStopped(msgspec.Struct, frozen=True):
    """A node's kubelet has sent no heartbeats since ``since_ns``.

    This replaces writes of leases. It holds until `HeartbeatsResumed`; a restarted controller gets it again.
    """

    node: str
    since_ns: int


class HeartbeatsResumed(msgspec.Struct, frozen=True):
    """A silent node's kubelet sends heartbeats again."""

    node: str


class Measured(msgspec.Struct, frozen=True):
    """The current use of pods (by key) and nodes (by name); others were not measured."""

    pods: dict[str, Use]
    nodes: dict[str, Use]


NodeObservation = NodeStopped | NodeStarted | HeartbeatsStopped | HeartbeatsResumed
Observation = Changed | Deleted | ActionFinished | Tick | NodeObservation | ContainersExited | Measured


_DELETIONS = (DeleteObject, Evict)
# No answer, or that of a gateway without one.
_UNKNOWN = (0, 504)
# Temporary answers of servers and proxies: request timeout, gone watches, too early.
_PASSING = (408, 410, 425, 429)
# Quota admission sets no cause; its message contains this.
_EXCEEDED = "exceeded quota"


class Answer(Enum):
    """The kinds of answers, by what the controller can do about them."""

    DONE = "carried out"
    GONE = "the object does not exist"
    REPLACED = "another object has its name"
    STALE = "the object has changed: read it and retry"
    FULL = "a quota, a budget, a rate or a cap is exhausted"
    REFUSED = "refused until something changes"
    PASSING = "refused for now; a retry may succeed"
    UNKNOWN = "no answer: it may or may not have been carried out"

    @property
    def is_over(self) -> bool:
        """Return whether nothing is left to request; REPLACED is retried until the API shows the replacement."""
        return self in (Answer.DONE, Answer.GONE)

    @property
    def lasts(self) -> bool:
        """Return whether a retry gets the same answer until something else changes."""
        return self in (Answer.FULL, Answer.REFUSED)
