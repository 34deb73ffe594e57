"""The pods that entries of avoid lists wait for: those that are to have room, and replacements of evicted ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set

from podium.api.avoid_list import AvoidList
from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.replacements import Replacement
from podium.cluster.replacements import Candidate, Replacements, candidate


class AwaitedPods:
    """Which of the pods that nodes' lists wait for have a node by now.

    What it returns are the nodes whose lists are to be looked at.
    """

    def __init__(self) -> None:
        self._scheduled = _Waiting()
        # By the uid of the pod that was evicted.
        self._replaced = _Waiting()
        self._pending: dict[str, Pod] = {}
        self._replacements = Replacements()

    def put_node(self, node: Node) -> None:
        """A node was added or changed, and with it what was left there for replacements."""
        self._replacements.put_node(node, self._pending_of)

    def drop_node(self, name: str) -> None:
        """A node is gone."""
        self._replacements.drop_node(name)

    def put_list(self, name: str, before: AvoidList, here: AvoidList) -> Iterable[str]:
        """A node has another list than before; `put_node` was told already."""
        self._scheduled.change(name, _scheduled_uids(before), _scheduled_uids(here))
        self._replaced.change(name, _replaced_uids(before), _replaced_uids(here))
        # What is not awaited any more is not awaited again, whoever took it off that list.
        left = (left.evicted_pod.uid for left in before.replacements)
        return [node for uid in left if not self._replacements.is_awaited(uid) for node in self._replaced.ended(uid)]

    def put_pod(self, pod: Pod) -> Iterable[str]:
        """A pod as it is now."""
        if pod.is_terminal and not pod.spec.node_name:
            return self.drop_pod(pod)
        found = candidate(pod) if self._replacements.awaited else None
        if not pod.spec.node_name:
            self._pending[pod.metadata.uid] = pod
            if found is not None:
                self._replacements.put_pod(found, is_settled=False)
            return ()
        nodes = self._waits_no_more(pod.metadata.uid)
        if found is None or found.controller_uid not in self._replacements.awaited:
            return nodes
        self._replacements.put_pod(found, is_settled=True)
        of_controller = self._replacements.nodes_of(found.controller_uid)
        left = self._replacements.by_pod.get(found.uid)
        return [*nodes, *of_controller, *(() if left is None else self._replaced.ended(left.evicted_pod.uid))]

    def drop_pod(self, pod: Pod) -> Iterable[str]:
        """A pod is gone, or has ended without a node."""
        found = candidate(pod) if self._replacements.awaited else None
        if found is not None:
            self._replacements.drop_pod(found.controller_uid, found.uid, is_settled=bool(pod.spec.node_name))
        return self._waits_no_more(pod.metadata.uid)

    def is_pending(self, uid: str) -> bool:
        """Whether a pod waits for a node."""
        return uid in self._pending

    def is_placed(self, uid: str) -> bool:
        """Whether a pod that a list waits for was seen to wait no more: it has a node, or is gone."""
        return uid in self._scheduled.over

    def is_replaced(self, uid: str) -> bool:
        """Whether the replacement of an evicted pod was awaited, and is no more: it has a node, or its time is over."""
        return uid in self._replaced.over

    def is_awaited(self, uid: str) -> bool:
        """Whether the replacement of an evicted pod is awaited."""
        return self._replacements.is_awaited(uid)

    def is_used(self, name: str, left: Replacement) -> bool:
        """Whether what was left on a node was for a pod that has a node."""
        return self._replacements.is_used(name, left)

    def _waits_no_more(self, uid: str) -> Iterable[str]:
        self._pending.pop(uid, None)
        return self._scheduled.ended(uid)

    def _pending_of(self, since: Mapping[str, int]) -> Iterator[Candidate]:
        """The pending pods of some controllers that were created at a time or later.

        Of those that have a node already nothing is kept: what one of them should have had goes with its time.
        """
        for pod in self._pending.values():
            found = candidate(pod)
            if found is not None and found.created_ns >= since.get(found.controller_uid, found.created_ns + 1):
                yield found


class _Waiting:
    """The nodes whose entries wait for something about a pod, by its uid; ``over`` is for whom they wait no more."""

    def __init__(self) -> None:
        self._nodes: dict[str, dict[str, None]] = {}
        self.over: set[str] = set()

    def change(self, node: str, before: Set[str], after: Set[str]) -> None:
        """The entries of a node wait for others than before."""
        for uid in after - before:
            self._nodes.setdefault(uid, {})[node] = None
        for uid in before - after:
            del self._nodes[uid][node]
            if not self._nodes[uid]:
                del self._nodes[uid]
                self.over.discard(uid)

    def ended(self, uid: str) -> list[str]:
        """A pod is not waited for any more; the nodes whose entries did until now."""
        if uid not in self._nodes or uid in self.over:
            return []
        self.over.add(uid)
        return list(self._nodes[uid])


def _scheduled_uids(here: AvoidList) -> Set[str]:
    """The uids of the pods that are to have room."""
    return {entry.until_scheduled.uid for entry in here.entries if entry.until_scheduled is not None}


def _replaced_uids(here: AvoidList) -> Set[str]:
    """The uids of the evicted pods whose replacements are to have room."""
    return {entry.until_replaced.uid for entry in here.entries if entry.until_replaced is not None}
