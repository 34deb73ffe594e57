"""Whether the pods of several nodes find room on others together, by what they request alone.

What is said here is a guide for proposals; the last word is that of the filters of the pods' schedulers.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from podium.cluster.arrays import Bools, Int64s
from podium.cluster.pods import PodRecord
from podium.framework.rescheduling.picture import Picture
from podium.framework.rescheduling.policy import Float64s
from podium.plugins.rescheduling.parts.rough_fit import rough_choice


class Packing:
    """The room that is left on some nodes, for pods that may move there.

    ``homes`` are the rows of the nodes, ``pods`` those who may move, in the order in which they find their places: the
    largest first, so that the small ones fill what these leave. A pod goes where most is requested, of equals to the
    first by the hash of the name.
    """

    def __init__(self, picture: Picture, homes: Int64s, pods: Sequence[PodRecord]) -> None:
        nodes = picture.cluster.nodes
        self._picture = picture
        self._pods = pods
        self.homes: Int64s = homes[np.argsort(nodes.name_hash[homes], kind="stable")]
        self._resources = sorted({resource for pod in pods for resource in pod.pod_class.requests})
        offered = nodes.allocatable[self._resources][:, self.homes]
        left = offered - nodes.requested[self._resources][:, self.homes]
        slots = nodes.allowed_pods[self.homes] - nodes.pod_count[self.homes]
        self._offered: Float64s = np.maximum(offered, 1).astype(np.float64)
        # What is left of each resource, and last how many more pods there may be.
        self.room: Int64s = np.vstack([left, slots])
        self._needs: dict[int, Int64s] = {}
        self._choices: dict[int, Bools] = {}

    def need(self, pod: PodRecord) -> Int64s:
        """What a pod takes of `room`."""
        pod_class = pod.pod_class
        if pod_class.id not in self._needs:
            amounts = [pod_class.requests.get(resource, 0) for resource in self._resources]
            self._needs[pod_class.id] = np.array([*amounts, 1], dtype=np.int64)
        return self._needs[pod_class.id]

    def places(self, emptied: Collection[int]) -> dict[str, int] | None:
        """A row for each pod on the ``emptied`` rows, by uid, with none of these rows; None where somebody finds none.

        Pods that stay where they are are not looked at.
        """
        is_open = ~np.isin(self.homes, np.fromiter(emptied, dtype=np.int64))
        room = self.room.copy()
        shares: Float64s = (1 - room[:-1] / self._offered).max(axis=0, initial=0.0)
        found: dict[str, int] = {}
        for pod in self._pods:
            if pod.row not in emptied:
                continue
            need = self.need(pod)
            fits = (room >= need[:, None]).all(axis=0) & is_open & self._choice(pod)
            home = int(np.where(fits, shares, -1.0).argmax())
            if not fits[home]:
                return None
            room[:, home] -= need
            shares[home] = (1 - room[:-1, home] / self._offered[:, home]).max(initial=0.0)
            found[pod.uid] = int(self.homes[home])
        return found

    def _choice(self, pod: PodRecord) -> Bools:
        """``[homes]``: the nodes that a pod may be on, whether they have room or not."""
        class_id = pod.pod_class.id
        if class_id not in self._choices:
            self._choices[class_id] = rough_choice(self._picture, pod, is_new=True)[self.homes]
        return self._choices[class_id]
