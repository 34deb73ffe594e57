"""An index of bound pods by node, and the base of the controllers that delete pods."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from podium.api.meta import Raw
from podium.api.pod import Pod
from podium.controllers.actions import Action, DeleteObject, ReportStatus
from podium.controllers.observations import Answered
from podium.controllers.reconciler import Reconciler


class BoundPod(NamedTuple):
    """The latest state of a pod, and its wire form."""

    pod: Pod
    raw: Raw


class BoundPods:
    """Bound pods by key; on each node in the order in which they came."""

    def __init__(self) -> None:
        self._pods: dict[str, BoundPod] = {}
        self._on: dict[str, dict[str, BoundPod]] = {}

    def put(self, pod: Pod, raw: Raw) -> None:
        """Take in a pod; one without a node still replaces another one with its key."""
        key, name = pod.key, pod.spec.node_name
        known = self._pods.get(key)
        if known is not None and (
            known.pod.metadata.uid != pod.metadata.uid or (name and known.pod.spec.node_name != name)
        ):
            self.remove(key)
        if name:
            pods_on_node = self._on.get(name)
            if pods_on_node is None:
                pods_on_node = self._on[name] = {}
            self._pods[key] = pods_on_node[key] = BoundPod(pod, raw)

    def remove(self, key: str) -> None:
        """Forget the pod with that key."""
        known = self._pods.pop(key, None)
        if known is not None:
            pods_on_node = self._on[known.pod.spec.node_name]
            del pods_on_node[key]
            if not pods_on_node:
                del self._on[known.pod.spec.node_name]

    def find(self, key: str) -> BoundPod | None:
        """Return the pod; None if it is gone or has no node."""
        return self._pods.get(key)

    def on(self, node: str) -> Collection[BoundPod]:
        """Return the pods of a node."""
        return self._on.get(node, {}).values()


class PodDeleter(Reconciler[str]):
    """A controller that deletes pods (by key) in two steps: it writes their status, then deletes them.

    No step is repeated while one is pending, nor after the deletion was carried out.
    """

    def __init__(self) -> None:
        super().__init__()
        self._pods = BoundPods()
        # By uid, the pods with a pending or successful deletion or pending mark, and the marked pods.
        self._under_way: set[str] = set()
        self._marked: set[str] = set()

    def _delete(self, mark: ReportStatus | None, delete: DeleteObject) -> list[Action]:
        """Return the next step; ``mark`` is None if the status is written already."""
        if delete.uid in self._under_way:
            return []
        self._under_way.add(delete.uid)
        return [delete if mark is None or delete.uid in self._marked else mark]

    def _answered(self, answered: Answered, now: int) -> list[Action]:
        action = answered.action
        if not isinstance(action, ReportStatus | DeleteObject):
            raise TypeError(f"{action} is no step of a deletion")
        is_marked = answered.problem is None and isinstance(action, ReportStatus)
        if is_marked or not answered.answer.is_over:
            # A failed step is retried with the pod's current state.
            self._under_way.discard(action.uid)
        super()._answered(answered, now)
        if is_marked and self._key_of(action) is not None:
            self._marked.add(action.uid)
            self._queue.add(action.key)
        return []

    def _key_of(self, action: Action) -> str | None:
        key = action.key if isinstance(action, ReportStatus | DeleteObject) else ""
        return None if self._pods.find(key) is None else key

    def _forget_deletion(self, uid: str) -> None:
        """Forget a pod that is gone, or need not be deleted any more."""
        self._under_way.discard(uid)
        self._marked.discard(uid)
