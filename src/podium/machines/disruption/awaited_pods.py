"""The pods that entries of avoid lists wait for: those that are to have room, and replacements of evicted ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

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
        # The nodes whose entries wait for a pod, by its uid; and which of these pods wait no more.
        self._awaiting: dict[str, dict[str, None]] = {}
        self._placed: set[str] = set()
        self._pending: dict[str, Pod] = {}
        self._replacements = Replacements()

    def put_node(self, node: Node) -> None:
        """A node was added or changed, and with it what was left there for replacements."""
        self._replacements.put_node(node, self._pending_of)

    def drop_node(self, name: str) -> None:
        """A node is gone."""
        self._replacements.drop_node(name)

    def put_list(self, name: str, here: AvoidList) -> None:
        """A node has a list that it had not."""
        for uid in _uids(here):
            self._awaiting.setdefault(uid, {})[name] = None

    def drop_list(self, name: str, here: AvoidList) -> None:
        """A node does not have that list any more."""
        for uid in _uids(here):
            self._awaiting[uid].pop(name)
            if not self._awaiting[uid]:
                del self._awaiting[uid]
                self._placed.discard(uid)

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
        return [*nodes, *self._replacements.nodes_of(found.controller_uid)]

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
        return uid in self._placed

    def is_used(self, name: str, left: Replacement) -> bool:
        """Whether what was left on a node was for a pod that has a node."""
        return self._replacements.is_used(name, left)

    def _waits_no_more(self, uid: str) -> Iterable[str]:
        self._pending.pop(uid, None)
        if uid not in self._awaiting or uid in self._placed:
            return ()
        self._placed.add(uid)
        return list(self._awaiting[uid])

    def _pending_of(self, since: Mapping[str, int]) -> Iterator[Candidate]:
        """The pending pods of some controllers that were created at a time or later.

        Of those that have a node already nothing is kept: what one of them should have had goes with its time.
        """
        for pod in self._pending.values():
            found = candidate(pod)
            if found is not None and found.created_ns >= since.get(found.controller_uid, found.created_ns + 1):
                yield found


def _uids(here: AvoidList) -> set[str]:
    """The uids of the pods that are to have room."""
    return {entry.until_scheduled.uid for entry in here.entries if entry.until_scheduled is not None}
