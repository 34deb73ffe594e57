"""How a cluster is kept up to date with what is observed of it: one observation in, what it changed out.

Schedulers, the autoscaler, and whoever asks about a cluster read it in this one way. What follows from a change is
theirs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from podium.api.meta import Kubernetes, OwnerReference
from podium.api.node import Node
from podium.api.pod import Pod
from podium.cluster.cluster import Cluster
from podium.cluster.pod_class import PodClass
from podium.cluster.pods import PodRecord, is_of_class_of
from podium.cluster.replacements import Candidate, candidate


class PodChange(NamedTuple):
    """What an observation of a pod changed.

    ``before`` is None for a pod that was not known, ``after`` for one that has ended or is gone. ``replaced`` is
    another pod of the same name that was known until then: nobody has seen it go, and it has.
    """

    before: PodRecord | None
    after: PodRecord | None
    replaced: PodRecord | None = None


class ObjectChange(NamedTuple):
    """What an observation of another object changed.

    ``before`` is None where it was not known, and for kinds of which the cluster does not keep objects; ``after`` for
    one that is gone.
    """

    before: Kubernetes | None
    after: Kubernetes | None


class Feed:
    """Takes in what is observed, for one cluster.

    ``pods`` are those that have not ended, by uid, as they were last seen; one without a uid is known by its key.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._replacements = cluster.replacements
        self._pod_groups = cluster.pod_groups
        self._pods: dict[str, PodRecord] = {}
        self._uid_of: dict[str, str] = {}
        self.pods: Mapping[str, PodRecord] = MappingProxyType(self._pods)

    def pod_changed(self, pod: Pod, known_class: PodClass | None = None) -> PodChange:
        """A pod was added or changed. The cluster learns its class; `settle` says where it is.

        ``known_class`` is as for `Cluster.read`.
        """
        key = pod.key
        uid = pod.metadata.uid or key
        namesake = self._uid_of.get(key)
        replaced = None if namesake is None or namesake == uid else self.forget(namesake)
        if pod.is_terminal:
            if self._replacements.awaited:
                self._note_ended(pod)
            return PodChange(self.forget(uid), None, replaced)
        before = self._pods.get(uid)
        if known_class is None and before is not None and is_of_class_of(before, pod):
            known_class = before.pod_class
        record = self._pods[uid] = self._cluster.read(pod, known_class)
        self._uid_of[key] = uid
        if record.pod_class.pod_group or (before is not None and before.pod_class.pod_group):
            self._pod_groups.put_pod(record)
        if self._replacements.awaited and record.controller is not None:
            self._replacements.put_pod(_candidate(record, record.controller), is_settled=bool(record.node_name))
        return PodChange(before, record, replaced)

    def pod_gone(self, pod: Pod) -> PodChange:
        """A pod is no more."""
        return PodChange(self.forget(pod.metadata.uid or pod.key), None)

    def forget(self, uid: str) -> PodRecord | None:
        """The pod of a uid is no more, or has ended; what was known of it, None for nothing."""
        record = self._pods.pop(uid, None)
        if record is None:
            return None
        if self._uid_of.get(record.key) == uid:
            del self._uid_of[record.key]
        if record.pod_class.pod_group:
            self._pod_groups.drop_pod(uid)
        if self._replacements.awaited and record.controller is not None:
            self._replacements.drop_pod(record.controller.uid, uid, is_settled=bool(record.node_name))
        return record

    def settle(self, change: PodChange) -> None:
        """Let the pod be where the API shows it: on its node, waiting for the one that it is nominated to, or nowhere.

        A scheduler does this by itself: it knows of pods on their way to a node before the API shows them there.
        """
        for gone in (change.replaced, change.before if change.after is None else None):
            if gone is not None:
                self._unsettle(gone.uid)
        record = change.after
        if record is None:
            return
        cluster, nominated = self._cluster, record.nominated_node_name
        if not record.node_name:
            if nominated:
                cluster.nominations.put(record, nominated)
            else:
                cluster.nominations.remove(record.uid)
            return
        cluster.nominations.remove(record.uid)
        record.nominated_node_name = ""
        if record.uid in cluster.placed:
            cluster.replace_pod(record)
        else:
            cluster.add_pod(record)

    def changed(self, item: Kubernetes) -> ObjectChange:
        """Any object but a pod was added or changed."""
        if isinstance(item, Node):
            before: Kubernetes | None = self.known_node(item.metadata.name)
            self._replacements.put_node(item, self._pods_of)
        else:
            before = self._cluster.find(item)
        self._cluster.put(item)
        return ObjectChange(before, item)

    def gone(self, item: Kubernetes) -> ObjectChange | None:
        """Any object but a pod is no more; None for a node that was not known."""
        if isinstance(item, Node):
            if item.metadata.name not in self._cluster.nodes.row_of:
                return None
            self._replacements.drop_node(item.metadata.name)
        self._cluster.remove(item)
        return ObjectChange(item, None)

    def known_node(self, name: str) -> Node | None:
        """The node as it was last taken in; None for one that is not known."""
        row = self._cluster.nodes.row_of.get(name)
        return None if row is None else self._cluster.nodes.node(row)

    def _note_ended(self, pod: Pod) -> None:
        """A pod that has ended may be the replacement of one that was evicted, and no other is then."""
        ended = candidate(pod)
        if ended is not None and pod.spec.node_name:
            self._replacements.put_pod(ended, is_settled=True)

    def _pods_of(self, since: Mapping[str, int]) -> Iterator[Candidate]:
        """The pods of some controllers that were created at a time or later."""
        for record in self._pods.values():
            controller = record.controller
            if controller is not None and record.created_ns >= since.get(controller.uid, record.created_ns + 1):
                yield _candidate(record, controller)

    def _unsettle(self, uid: str) -> None:
        self._cluster.nominations.remove(uid)
        if uid in self._cluster.placed:
            self._cluster.remove_pod(uid)


def _candidate(record: PodRecord, controller: OwnerReference) -> Candidate:
    return Candidate(record.created_ns, record.key, record.uid, controller.uid)
