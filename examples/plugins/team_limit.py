"""A filter with a state of its own: at most so many pods of one team in each topology domain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta

from podium.plugin import (
    NO_ROW,
    SKIP,
    SUCCESS,
    ActionType,
    Arguments,
    Cluster,
    CycleState,
    EventResource,
    EventToRegister,
    NodeView,
    PluginContext,
    PodRecord,
    Status,
    read_arguments,
    unresolvable,
    unschedulable,
)


class TeamLimitArgs(Arguments, frozen=True, kw_only=True):
    """Arguments: at most ``maxPods`` pods with one value of ``label`` in a domain of ``topologyKey``."""

    max_pods: Annotated[int, Meta(ge=1)] = 1
    label: str = "team"
    topology_key: str = "kubernetes.io/hostname"


class TeamPods(Counter[str]):
    """The pods of one team in each domain."""

    def clone(self) -> TeamPods:
        """Return a copy for one trial of preemption."""
        return TeamPods(self)


class TeamLimit:
    """Refuses the domains that have enough pods of the pod's team."""

    name = "TeamLimit"

    def __init__(self, context: PluginContext) -> None:
        self._args = read_arguments(context.args, TeamLimitArgs, self.name)

    def pre_filter(self, state: CycleState, pod: PodRecord, cluster: Cluster) -> Status:
        """Count the team's pods; skip pods without a team."""
        if self._args.label not in pod.labels:
            return SKIP
        team = [placed for placed in cluster.placed.values() if placed.row != NO_ROW and self._same_team(pod, placed)]
        labels = (cluster.nodes.node(placed.row).metadata.labels for placed in team)
        state[self.name] = TeamPods(one.get(self._args.topology_key, "") for one in labels)
        return SUCCESS

    def filter(self, state: CycleState, pod: PodRecord, node: NodeView) -> Status:
        """Refuse nodes without the topology label, and those whose domain is full."""
        domain = node.labels.get(self._args.topology_key)
        if domain is None:
            return unresolvable(f"node(s) had no label {self._args.topology_key}")
        full = state[self.name][domain] >= self._args.max_pods
        return unschedulable("node(s) had enough pods of the team") if full else SUCCESS

    def add_pod(self, state: CycleState, pod: PodRecord, added: PodRecord, node: NodeView) -> None:
        """One pod more on ``node``."""
        state[self.name][node.labels.get(self._args.topology_key, "")] += self._same_team(pod, added)

    def remove_pod(self, state: CycleState, pod: PodRecord, removed: PodRecord, node: NodeView) -> None:
        """One pod less on ``node``."""
        state[self.name][node.labels.get(self._args.topology_key, "")] -= self._same_team(pod, removed)

    def events_to_register(self) -> Sequence[EventToRegister]:
        """Return changes of the team's pods, new nodes, and changes of nodes' domains."""
        return (
            EventToRegister(
                EventResource.ASSIGNED_POD,
                ActionType.DELETE | ActionType.UPDATE_POD_LABEL,
                lambda pod, event: self._same_team(pod, event.old),
            ),
            EventToRegister(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL),
        )

    def _same_team(self, pod: PodRecord, other: PodRecord) -> bool:
        return pod.labels[self._args.label] == other.labels.get(self._args.label)
