"""The observed cluster of a component that plans changes of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import UnionType
from typing import ClassVar

from podium.api.disruption_policy import POLICY_NAME, DisruptionPolicy
from podium.api.meta import Kubernetes, Raw
from podium.api.node import Namespace, Node
from podium.api.pod import Pod
from podium.api.policy import PodDisruptionBudget
from podium.api.versions.release import Release
from podium.cluster import budgets, cluster, storage
from podium.cluster.pods import PodRecord
from podium.decide.kubelet import has_local_storage


class ClusterView(ABC):
    """The placement of pods, the budgets, and which changes may affect a plan.

    ``unschedulable`` are pods that no node can take and that wait for none, ``keeps_data`` those that would lose data
    by a move; both by uid. Changes of objects of the types ``relevant`` may affect a plan.
    """

    relevant: ClassVar[UnionType] = storage.StorageObject | Namespace

    def __init__(self, release: Release) -> None:
        self.cluster = cluster.Cluster(release)
        self.budgets = budgets.Budgets()
        self.unschedulable: dict[str, PodRecord] = {}
        self.keeps_data: set[str] = set()
        self._updater = cluster.ClusterUpdater(self.cluster)
        self._policy = DisruptionPolicy()
        self._differences: dict[str, tuple[object, ...] | None] = {}

    @abstractmethod
    def _difference(self, pod: Pod, record: PodRecord) -> tuple[object, ...] | None:
        """Return the properties of a pod that affect a plan; None for a pod that affects none yet."""

    @abstractmethod
    def _node_changed(self, node: Node, raw: Raw) -> bool:
        """Take in a node; return whether it may affect a plan."""

    @abstractmethod
    def _node_gone(self, node: Node) -> bool:
        """Forget a node; return whether that may affect a plan."""

    def observe(self, object_: Kubernetes, raw: Raw | None) -> bool:
        """Take in an object, or without its wire form forget it; return whether that may affect a plan."""
        match object_:
            case Pod():
                if raw is not None:
                    return self._pod_changed(object_, raw)
                change = self._updater.pod_gone(object_)
                self._updater.settle(change)
                return self._forget_pod(change.before)
            case Node():
                return self._node_gone(object_) if raw is None else self._node_changed(object_, raw)
            case PodDisruptionBudget() if raw is None:
                self.budgets.remove(object_.key)
                return True
            case PodDisruptionBudget():
                return self.budgets.put(object_)
            case DisruptionPolicy() if object_.metadata.name == POLICY_NAME:
                before, self._policy = self._policy, DisruptionPolicy() if raw is None else object_
                self.budgets.requires_all = self._policy.spec.several_budgets == "RequireAll"
                return before.spec != self._policy.spec
        if raw is None:
            self._updater.delete_object(object_)
        else:
            self._updater.update_object(object_)
        return isinstance(object_, self.relevant)

    def _pod_changed(self, pod: Pod, raw: Raw) -> bool:
        change = self._updater.pod_changed(pod)
        record = change.after
        # This comes first, because settling takes the nomination from a pod that is on its node.
        difference = None if record is None else self._difference(pod, record)
        waits = record is not None and not (record.node_name or record.nominated_node_name or record.terminating)
        self._updater.settle(change)
        has_gone = self._forget_pod(change.replaced)
        if record is None:
            return self._forget_pod(change.before) or has_gone
        before = self._differences.get(record.uid)
        self._differences[record.uid] = difference
        if has_local_storage(raw):
            self.keeps_data.add(record.uid)
        else:
            self.keeps_data.discard(record.uid)
        if waits and pod.is_unschedulable:
            self.unschedulable[record.uid] = record
        else:
            self.unschedulable.pop(record.uid, None)
        return has_gone or difference != before

    def _forget_pod(self, record: PodRecord | None) -> bool:
        """Forget a pod that is gone; return whether that may affect a plan."""
        if record is None:
            return False
        self.unschedulable.pop(record.uid, None)
        self.keeps_data.discard(record.uid)
        return self._differences.pop(record.uid) is not None
