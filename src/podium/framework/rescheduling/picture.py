"""What a rescheduling policy looks at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from podium.cluster.arrays import Bools
from podium.cluster.cluster import Cluster
from podium.cluster.pods import NO_ROW, PodRecord
from podium.framework.rescheduling.signals import Signals
from podium.framework.runner import Runner


@dataclass(frozen=True, slots=True)
class Picture:
    """The cluster as it would be with the moves that are planned so far, and how all fare.

    ``cluster`` is not to be changed by who looks at it. It changes from question to question, as moves are tried; what
    a policy keeps by row it brings up to date by `cluster.nodes.changes`. ``runners`` are the profiles of the
    schedulers that are known, by name, and ``kubelet`` what every kubelet enforces, which judges the pods of all other
    schedulers. ``now`` is in nanoseconds.

    ``targets`` says for each row whether its node may take in pods that move: it is ready, schedulable, and nobody
    drains or empties it. ``waiting`` are the pods that were found unschedulable, by priority, then key. ``is_movable``
    says of a pod whether it may be touched at all; no other needs to be proposed.
    """

    cluster: Cluster
    runners: Mapping[str, Runner]
    kubelet: Runner
    now: int
    signals: Signals
    targets: Bools
    waiting: Sequence[PodRecord]
    is_movable: Callable[[PodRecord], bool]

    def runner_of(self, pod: PodRecord) -> Runner:
        """The profile by which a pod's scheduler decides; what kubelets enforce, where that scheduler is not known."""
        return self.runners.get(pod.scheduler_name, self.kubelet)

    def movable_pods(self) -> Iterator[PodRecord]:
        """The pods that may be touched, by key, then uid."""
        placed = self.cluster.placed.values()
        movable = (pod for pod in placed if pod.row != NO_ROW and self.is_movable(pod))
        yield from sorted(movable, key=lambda pod: (pod.key, pod.uid))

    def node_name(self, row: int) -> str:
        """The name of the node in a row."""
        return self.cluster.nodes.name(row)
