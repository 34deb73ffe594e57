"""Custom policies, for tests that refer to them by module and class."""

from __future__ import annotations

from collections.abc import Iterator

from podium.cluster.pods import PodRecord
from podium.framework.rescheduling.policy import Picture, Proposal, Relocation

BAD = "bad"
PLACE = "tests.controllers.rescheduling.policies:LeaveBad"


class LeaveBad:
    """A policy that wants no pods on the node `bad`, or on nodes with that label."""

    name = "LeaveBad"

    def objective(self, picture: Picture) -> float:
        return float(sum(is_bad(picture, pod) for pod in picture.cluster.placed.values()))

    def proposals(self, picture: Picture) -> Iterator[Proposal]:
        for pod in list(picture.movable_pods()):
            if is_bad(picture, pod):
                yield Proposal((Relocation(pod),), f"{pod.node_name} is a bad node")


def is_bad(picture: Picture, pod: PodRecord) -> bool:
    if pod.row < 0:
        return False
    labels = picture.cluster.nodes.node(pod.row).metadata.labels
    return pod.node_name == BAD or labels.get(BAD) == "yes"
