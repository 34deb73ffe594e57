"""The echo of a scheduler's own writes: the API shows a pod where it is assumed already, or nominated as was asked for.

Then next to nothing is new.
"""

from __future__ import annotations

from weakref import ref

from podium.api.pod import Pod
from podium.cluster.cluster import Cluster
from podium.cluster.pod_class import PodClass
from podium.cluster.pods import (
    PodRecord,
    differs_by_node_alone,
    differs_by_nomination_alone,
    is_plainly_of_one_class,
)


class BindingEchoes:
    """What the API last showed of pending pods, so that what differs little from that need not be read all anew."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._shown: dict[str, tuple[Pod, PodRecord]] = {}

    def expect(self, pod: Pod, record: PodRecord) -> None:
        """A pending pod was shown, and read as ``record``."""
        self._shown[record.uid] = (pod, record)

    def take(self, pod: Pod) -> PodRecord | None:
        """The record that is assumed on the node on which a pod is shown; None where it has to be read anew.

        The pod is one that has not started there yet.
        """
        uid = pod.metadata.uid or pod.key
        shown = self._shown.pop(uid, None)
        if shown is None:
            return None
        before, record = shown
        is_assumed_there = self._cluster.placed.get(uid) is record and record.node_name == pod.spec.node_name
        if not is_assumed_there or not differs_by_node_alone(before, pod):
            return None
        record.read_from = ref(pod.spec)
        return record

    def nominated(self, pod: Pod) -> PodRecord | None:
        """The record of a pod of which nothing but its nomination may be another; None where it has to be read anew.

        Pods of a group, and those that may be the replacement of an evicted one, are known to others by each reading.
        """
        shown = self._shown.get(pod.metadata.uid or pod.key)
        if shown is None or self._cluster.replacements.awaited:
            return None
        before, record = shown
        if record.node_name or record.pod_class.pod_group or not differs_by_nomination_alone(before, pod):
            return None
        return record

    def class_of(self, pod: Pod) -> PodClass | None:
        """The class of a pod that is shown again, where it need not be read for that; else None."""
        shown = self._shown.get(pod.metadata.uid or pod.key)
        return shown[1].pod_class if shown is not None and is_plainly_of_one_class(shown[0], pod) else None

    def forget(self, uid: str) -> None:
        """A pod is pending no more."""
        self._shown.pop(uid, None)
