"""The descheduler's rules from reproduced failures, as policies.

They choose the pods that it would have evicted, without checking where these would go: that was the failure. Source:
kubernetes-sigs/descheduler, in the named issues.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from podium.cluster.nodes import CPU
from podium.cluster.pods import PodRecord
from podium.framework.rescheduling.policy import Picture, Proposal, Relocation

UNDERUSED, OVERUSED = 0.2, 0.5


class Rule:
    """A policy that evicts the pods of ``chosen``. Its objective is their number, so that each eviction is an
    improvement.
    """

    name = "Rule"

    def chosen(self, picture: Picture, pods: list[PodRecord]) -> Iterable[PodRecord]:
        """Return the pods to evict among the placed pods, which are in the order of their keys."""
        raise NotImplementedError

    def objective(self, picture: Picture) -> float:
        return float(len(self._found(picture)))

    def proposals(self, picture: Picture) -> Iterator[Proposal]:
        for pod in self._found(picture)[:1]:
            if picture.is_movable(pod):
                yield Proposal((Relocation(pod),), f"a rule wants {pod.key} to go")

    def _found(self, picture: Picture) -> list[PodRecord]:
        placed = (pod for pod in picture.cluster.placed.values() if pod.row >= 0 and not pod.terminating)
        return list(self.chosen(picture, sorted(placed, key=lambda pod: (pod.key, pod.uid))))


class Duplicates(Rule):
    """RemoveDuplicates (#626, #252): each node's part is the number of pods by that of nodes, whichever they are."""

    name = "Duplicates"

    def chosen(self, picture: Picture, pods: list[PodRecord]) -> Iterator[PodRecord]:
        owners = Counter(pod.owner_uid for pod in pods)
        there: Counter[tuple[str, int]] = Counter()
        for pod in pods:
            there[pod.owner_uid, pod.row] += 1
            if there[pod.owner_uid, pod.row] > -(-owners[pod.owner_uid] // len(picture.cluster.nodes)):
                yield pod


class LowNodeUtilization(Rule):
    """LowNodeUtilization (#335, #424, #994, #1695): any pod leaves an over-used node while another is under-used."""

    name = "LowNodeUtilization"

    def chosen(self, picture: Picture, pods: list[PodRecord]) -> Iterator[PodRecord]:
        nodes = picture.cluster.nodes
        rows = nodes.all_rows()
        shares = nodes.requested[CPU, rows] / nodes.allocatable[CPU, rows]
        if (shares < UNDERUSED).any():
            yield from (pod for pod in pods if shares[pod.row] > OVERUSED)


class HighNodeUtilization(Rule):
    """HighNodeUtilization (#1461): all pods leave nodes that are hardly used, wherever they are sent."""

    name = "HighNodeUtilization"

    def chosen(self, picture: Picture, pods: list[PodRecord]) -> Iterator[PodRecord]:
        nodes = picture.cluster.nodes
        yield from (pod for pod in pods if nodes.requested[CPU, pod.row] < UNDERUSED * nodes.allocatable[CPU, pod.row])


class Spread(Rule):
    """RemovePodsViolatingTopologySpreadConstraint (#566, #785, #1219): each constraint by itself, over all nodes."""

    name = "Spread"

    def chosen(self, picture: Picture, pods: list[PodRecord]) -> Iterator[PodRecord]:
        keys = {constraint.topology_key for pod in pods for constraint in pod.spec.topology_spread_constraints}
        for key in sorted(keys):
            domains: defaultdict[int, list[PodRecord]] = defaultdict(list)
            codes = picture.cluster.nodes.labels(key).codes
            for row in picture.cluster.nodes.all_rows().tolist():
                domains[int(codes[row])] = []
            for pod in pods:
                if pod.spec.topology_spread_constraints:
                    domains[int(codes[pod.row])].append(pod)
            least, fullest = min(map(len, domains.values())), max(domains.values(), key=len)
            yield from fullest[least + 1 :]


class Preferred(Rule):
    """RemovePodsViolatingNodeAffinity, preferred (#1707, #1410): another node has the labels, and room."""

    name = "Preferred"

    def chosen(self, picture: Picture, pods: list[PodRecord]) -> Iterator[PodRecord]:
        nodes = picture.cluster.nodes
        for pod in pods:
            affinity = pod.spec.affinity
            terms = affinity.node_affinity.preferred if affinity and affinity.node_affinity else ()
            wanted = {
                (condition.key, value)
                for term in terms
                for condition in term.preference.match_expressions
                for value in condition.values
            }
            liked = {
                row
                for row in nodes.all_rows().tolist()
                if wanted and wanted <= set(nodes.node(row).metadata.labels.items())
            }
            room = nodes.allocatable[CPU] - nodes.requested[CPU]
            if liked and pod.row not in liked and any(room[row] >= pod.pod_class.requests[CPU] for row in liked):
                yield pod
