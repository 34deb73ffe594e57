"""What a PostFilter plugin may ask of the scheduler that calls it.

Source: staging/src/k8s.io/kube-scheduler/framework/interface.go (Handle, PluginsRunner).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from podium.cluster.arrays import Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.cluster.worlds import Worlds
from podium.framework.cycle_state import CycleState
from podium.framework.reach import Reaches
from podium.framework.verdicts import Outcome

if TYPE_CHECKING:
    from podium.framework.extenders import Extenders
    from podium.framework.kept.row_filters import RowFilters


class Handle(Protocol):
    """The cluster, and the profile's Filters for clusters that might be.

    Whoever looks for a way out needs no more of `podium.framework.runner.Runner`, and gets no more.
    """

    @property
    def cluster(self) -> Cluster:
        """The cluster as it is; not to be changed."""
        ...

    def extenders_of(self, pod: PodRecord) -> Extenders | None:
        """The extenders where any of them is asked about the pod, else None."""
        ...

    def filter_worlds(self, state: CycleState, pod: PodRecord, worlds: Worlds, own_uid: str) -> Outcome:
        """The Filters' answer for each world, with regard to nominated pods but for the one of ``own_uid``."""
        ...

    def for_known_nodes(self, state: CycleState) -> CycleState:
        """The same attempt for nodes that those Filters have let in whose answers hang on the node object alone."""
        ...

    def feasible_rows(self, pod: PodRecord) -> Int64s:
        """The rows that the Filters would let another pod like ``pod`` onto, as things are."""
        ...

    def is_row_local(self, state: CycleState) -> bool:
        """Whether every Filter that has something to say about the pod answers for a row from that row alone."""
        ...

    def reaches(self, state: CycleState, pod: PodRecord) -> Reaches:
        """On which pods of other nodes the answers hang of those Filters that have something to say about the pod."""
        ...

    def row_filters(self, state: CycleState, pod: PodRecord, rows: int = 1) -> RowFilters | None:
        """The Filters for one row at a time, to be asked about so many; None where arrays are needed, or quicker."""
        ...
