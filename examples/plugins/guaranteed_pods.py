"""A preemption of its own: teams take back what they are guaranteed, whatever the priorities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from podium.plugin import (
    Arguments,
    Cluster,
    CycleState,
    Handle,
    Outcome,
    PluginContext,
    PodRecord,
    PostFilterResult,
    Status,
    read_arguments,
    unschedulable,
)

TEAM = "team"
SYSTEM_PRIORITY = 2_000_000_000


class GuaranteedPodsArgs(Arguments, frozen=True, kw_only=True):
    """Arguments: how many running pods each team is guaranteed; 0 for a team that is not named."""

    guaranteed: Mapping[str, int] = {}


class GuaranteedPods:
    """Lets a team that has fewer pods than it is guaranteed preempt the newest pods of teams that have more."""

    name = "GuaranteedPods"

    def __init__(self, context: PluginContext) -> None:
        self._guaranteed = read_arguments(context.args, GuaranteedPodsArgs, self.name).guaranteed

    def post_filter(
        self, state: CycleState, pod: PodRecord, handle: Handle, cluster: Cluster, outcome: Outcome
    ) -> PostFilterResult:
        """Propose the node with the fewest victims, of several the first by name."""
        if self._awaits_victims(pod, cluster):
            return PostFilterResult(unschedulable("the victims have not ended yet"))
        extra = self._extra(pod, cluster)
        team = pod.labels.get(TEAM, "")
        if extra[team] >= 0:
            return PostFilterResult(unschedulable(f"team {team or 'none'} has all pods that it is guaranteed"))
        found: dict[str, tuple[PodRecord, ...]] = {}
        for node, row in sorted(cluster.nodes.row_of.items()):
            if outcome.is_resolvable(row):
                victims = self._victims(state, pod, handle, cluster.pods_on(row), node, Counter(extra))
                if victims:
                    found[node] = victims
        if not found:
            return PostFilterResult(unschedulable("no team could give back enough on one node"), nominated_node="")
        node = min(found, key=lambda name: (len(found[name]), name))
        return PostFilterResult(Status(), node, found[node])

    def holds_room(self, nominated: PodRecord, pod: PodRecord) -> bool:
        """Keep the room that others gave back for the pod that it was given back for."""
        return pod.priority < SYSTEM_PRIORITY

    def _awaits_victims(self, pod: PodRecord, cluster: Cluster) -> bool:
        row = cluster.nodes.row_of.get(pod.nominated_node_name)
        return row is not None and any(other.terminating for other in cluster.pods_on(row))

    def _extra(self, pod: PodRecord, cluster: Cluster) -> Counter[str]:
        """Return how many pods each team has beyond what it is guaranteed; less than 0 if it has fewer."""
        placed = [other for other in cluster.placed.values() if not other.terminating]
        promised = [other for other, _ in cluster.nominations.all() if other.uid != pod.uid]
        extra = Counter(other.labels.get(TEAM, "") for other in (*placed, *promised))
        extra.subtract(self._guaranteed)
        return extra

    def _victims(
        self,
        state: CycleState,
        pod: PodRecord,
        handle: Handle,
        on_node: list[PodRecord],
        node: str,
        extra: Counter[str],
    ) -> tuple[PodRecord, ...]:
        """Return the newest extra pods on a node without which the pod fits; () if it does not fit without them."""
        victims: list[PodRecord] = []
        for other in sorted(on_node, key=lambda other: (-other.start_ns, other.key)):
            team = other.labels.get(TEAM, "")
            if other.terminating or extra[team] <= 0:
                continue
            extra[team] -= 1
            victims.append(other)
            if handle.fits_without(state, pod, node, victims):
                return tuple(victims)
        return ()
