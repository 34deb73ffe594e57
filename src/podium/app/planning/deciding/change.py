"""One change that may let pods find nodes, and what comes of it, found by deciding again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from podium.api.errors import InputError
from podium.api.meta import Kubernetes
from podium.api.pod import Pod
from podium.app.planning.deciding.decisions import Decisions
from podium.app.planning.deciding.fates import Kind, Settled, kind_of
from podium.cluster.pods import PodRecord

SORTS = (
    "gate",
    "scheduler",
    "claim",
    "cordon",
    "label",
    "taint",
    "toleration",
    "request",
    "pod",
    "quota",
    "budget",
    "cap",
    "policy",
    "priority",
    "node",
)
"""Of what sorts changes are; of those that help equally and touch as many objects, the one named first is told."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change to the cluster, or to how pods are written.

    `sort` says of what sort it is (node, taint, request, ...), `text` what is to be done. `to_cluster` makes it among
    decisions whose changes are taken back. `to_pod` is how each pod of `kinds` would be written then. `kinds` are the
    pods that it may help, None for any. `objects` is how many objects are changed: the fewer the better. With
    `preempts` the pods may preempt others. `written` are the objects that `to_cluster` stands for, where these are not
    those that it supposes; none, where it cannot be written.
    """

    sort: str
    text: str
    to_cluster: Callable[[Decisions], object] | None = None
    to_pod: Callable[[Pod], Pod] | None = None
    kinds: frozenset[Kind] | None = None
    objects: int = 1
    preempts: bool = False
    written: Callable[[Decisions], Sequence[Kubernetes]] | None = None

    def helps(self, pod: PodRecord) -> bool:
        """Whether the change may do something for the pod."""
        return self.kinds is None or kind_of(pod) in self.kinds

    def applied(self, decisions: Decisions, pods: Sequence[PodRecord]) -> list[PodRecord] | None:
        """Make the change, which is taken back with what is supposed; the pods as they are then.

        None where no API server would take it.
        """
        try:
            if self.to_cluster is not None:
                self.to_cluster(decisions)
            if self.to_pod is None:
                return list(pods)
            return [decisions.changed(pod, self.to_pod) if self.helps(pod) else pod for pod in pods]
        except (InputError, msgspec.ValidationError):
            return None


@dataclass(frozen=True, slots=True)
class Verified:
    """A change, and the pods that get nodes with it of those that wait without it; `settled` says where, and how."""

    change: Change
    settled: Settled

    @property
    def freed(self) -> int:
        """How many pods get a node."""
        return len(self.settled.fates)

    @property
    def preempted(self) -> int:
        """How many pods have to go for that."""
        return len(self.settled.victims)

    @property
    def order(self) -> tuple[int, int, int, int, str]:
        """The change that frees the most pods, and preempts the fewest, comes first; of equal ones the smallest."""
        change = self.change
        return self.preempted - self.freed, self.preempted, change.objects, SORTS.index(change.sort), change.text


def verify(decisions: Decisions, change: Change, waiting: Sequence[PodRecord]) -> Verified:
    """What the change does for pods that wait, decided again; then it is taken back."""
    with decisions.supposing():
        pods = change.applied(decisions, waiting)
        if pods is None:
            return Verified(change, Settled((), tuple(waiting)))
        return Verified(change, decisions.settle(pods, preempts=change.preempts))
