"""A policy that moves one pod into the room of another."""

from __future__ import annotations

from collections.abc import Iterator

from podium.cluster.pods import PodRecord
from podium.framework.rescheduling.policy import Picture, Proposal, Relocation


class Swap:
    """The pod of `first` should be on the node `b`, where that of `second` is."""

    name = "Swap"

    def objective(self, picture: Picture) -> float:
        return sum(2.0 for pod in picture.cluster.placed.values() if _is_of(pod, "first") and _on(picture, pod) != "b")

    def proposals(self, picture: Picture) -> Iterator[Proposal]:
        pods = {name: pod for pod in picture.movable_pods() for name in ("first", "second") if _is_of(pod, name)}
        if len(pods) == 2 and _on(picture, pods["first"]) != "b":
            yield Proposal(tuple(Relocation(pods[name]) for name in ("first", "second")), "first belongs on b")


def _is_of(pod: PodRecord, name: str) -> bool:
    return pod.labels.get("app") == name


def _on(picture: Picture, pod: PodRecord) -> str:
    return "" if pod.row < 0 else picture.node_name(pod.row)
