"""What a driver tells a machine: what it saw in the API, how actions ended, and that time has passed."""

from __future__ import annotations

from typing import final

import msgspec

from podium.api.meta import Kubernetes, Raw
from podium.api.use import Use
from podium.machines.actions import Action
from podium.machines.answers import Answer, classify


@final
class Changed(msgspec.Struct, frozen=True):
    """An object was added or changed; ``object`` is its typed reading after the change.

    ``raw`` is its wire form, from which machines make other objects, and write it back without losing what Podium does
    not read.
    """

    object: Kubernetes
    raw: Raw = msgspec.field(default_factory=dict)


@final
class Gone(msgspec.Struct, frozen=True):
    """An object that was shown is no more; ``object`` is its last known reading."""

    object: Kubernetes


class Problem(msgspec.Struct, frozen=True):
    """Why an action failed: the HTTP code, the Status reason (such as Conflict) and the message.

    Code 0 means that no answer came: the action may or may not have been carried out. ``retry_after_ns`` is how long
    the server asks to wait before another try, None where it does not say. ``cause`` is the reason of the first cause
    in the Status, such as NamespaceTerminating.
    """

    code: int
    reason: str
    message: str
    retry_after_ns: int | None = None
    cause: str = ""


@final
class Answered(msgspec.Struct, frozen=True):
    """An action has ended; ``problem`` None means that it was carried out.

    ``written`` is the object that the action is about, as the API server says that it is then: with the version that
    was written, or with the one that was found where nothing had to be. None where the server does not say, as of
    bindings, evictions and deletions, and where there is no such object any more.
    """

    action: Action
    problem: Problem | None = None
    written: Raw | None = None

    @property
    def answer(self) -> Answer:
        """What the answer means to whoever asked."""
        problem = self.problem
        if problem is None:
            return Answer.DONE
        return classify(self.action, problem.code, problem.reason, problem.message)

    @property
    def wait_ns(self) -> int:
        """How long the server asks to wait before another try; 0 where it does not say."""
        return (self.problem.retry_after_ns or 0) if self.problem is not None else 0


@final
class Tick(msgspec.Struct, frozen=True):
    """The machine's deadline has come."""


class NodeStopped(msgspec.Struct, frozen=True):
    """A node's machine has stopped, with all that ran there; the API is told nothing.

    It stays down until it is started, whatever becomes of the node in the API. A machine that starts anew is told so
    again, before anything else.
    """

    node: str


class NodeStarted(msgspec.Struct, frozen=True):
    """A node's machine that had stopped runs again: its kubelet begins anew, and restarts the pods that ran there."""

    node: str


class ContainersExited(msgspec.Struct, frozen=True):
    """A pod's containers have exited by themselves, with success; nothing where they do not run."""

    node: str
    uid: str


class NodeSilent(msgspec.Struct, frozen=True):
    """A node's machine has stopped: nothing has been heard from its kubelet since ``since_ns``.

    It stands for the heartbeats (leases) that stay away, so that a cluster in which all is well has nothing to write.
    The node, by name, is silent until it is heard; a machine that starts anew is told so again.
    """

    node: str
    since_ns: int


class NodeHeard(msgspec.Struct, frozen=True):
    """A silent node's kubelet sends heartbeats again."""

    node: str


class Measured(msgspec.Struct, frozen=True):
    """What pods (by key) and nodes (by name) use at the moment; who is in neither was not measured."""

    pods: dict[str, Use]
    nodes: dict[str, Use]


Observation = (
    Changed | Gone | Answered | Tick | NodeStopped | NodeStarted | ContainersExited | NodeSilent | NodeHeard | Measured
)
