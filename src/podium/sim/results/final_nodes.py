"""How nodes are at the end of a run, those that went in it included."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from podium.api.pod import Pod
from podium.api.resize import effective_spec
from podium.api.resource_requests import pod_requests
from podium.sim.results.measures import Measures
from podium.sim.results.pod_states import NodeStates
from podium.sim.sim_event import seconds
from podium.store.store import Store


@dataclass(frozen=True, slots=True)
class FinalNode:
    """A node: what is unusual about it (down, not ready, cordoned, gone), its pods, and what they request.

    `pods_before` and `pods` are not of DaemonSets; amounts are cpu in milli, all else in units. `added_seconds` is None
    for a node that was there before the run, `gone_seconds` for one that is there at its end.
    """

    name: str
    marks: tuple[str, ...]
    pods_before: int
    pods: int
    added_seconds: int | float | None
    gone_seconds: int | float | None
    requested: dict[str, int]

    @property
    def was_emptied(self) -> bool:
        """Whether all pods have left it."""
        return bool(self.pods_before) and not self.pods and self.gone_seconds is None

    def to_dict(self) -> dict[str, Any]:
        """The node as JSON shows it."""
        return {
            "node": self.name,
            "marks": list(self.marks),
            "podsBefore": self.pods_before,
            "pods": self.pods,
            "addedAt": self.added_seconds,
            "goneAt": self.gone_seconds,
            "requested": self.requested,
        }


def final_nodes(store: Store, measures: Measures, is_down: Callable[[str], bool]) -> tuple[FinalNode, ...]:
    """The nodes by name."""
    states = NodeStates(store, is_down)
    requested: dict[str, dict[str, int]] = {}
    for stored in store.objects("Pod"):
        pod = stored.object
        if isinstance(pod, Pod) and pod.spec.node_name and not pod.is_terminal:
            sums = requested.setdefault(pod.spec.node_name, {})
            for name, amount in pod_requests(effective_spec(pod)).items():
                sums[name] = sums.get(name, 0) + amount
    return tuple(
        FinalNode(
            life.name,
            states.marks(life.name),
            life.pods_before,
            life.pods,
            None if life.was_there else seconds(life.added_ns - measures.start_ns),
            None if life.gone_ns is None else seconds(life.gone_ns - measures.start_ns),
            dict(sorted(requested.get(life.name, {}).items())),
        )
        for life in measures.nodes
    )
