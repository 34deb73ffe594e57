"""GangScheduling: pods of a PodGroup are scheduled all or none.

The scheduler makes one attempt for all pods of a group (`podium.machines.scheduling.gangs`) in profiles that enable
this plugin; the plugin itself holds pods out of the queue until there are enough of them. It is not enabled by default,
as the feature gates GenericWorkload and GangScheduling are not.

Source: pkg/scheduler/framework/plugins/gangscheduling/gangscheduling.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta

from podium.api.times import parse_duration
from podium.cluster.pods import PodRecord
from podium.framework.events import ActionType, ClusterEvent, EventResource, EventToRegister
from podium.framework.plugin import PluginContext
from podium.framework.settings.arguments import Arguments, read_arguments
from podium.framework.status import SUCCESS, Status, unresolvable

NAME = "GangScheduling"
TOO_FEW = "waiting for minCount pods from a gang to appear in scheduling queue"


class GangSchedulingArgs(Arguments, frozen=True, kw_only=True):
    """Arguments, which are Podium's own.

    ``preemption``: whether a group of which too few pods fit may have other pods go, by one plan for all of them.
    ``scheduleTimeout``: how long pods of a gang wait for one another between their decision and their bindings, where
    their group does not say. ``releaseAfter``: a gang of which fewer pods than minCount have a node, while others of it
    find none for so long, gives its nodes back: those pods are evicted. ``0s`` keeps them. ``maxArrangementSteps``:
    where too few pods of a group fit one after the other, other ways to place them are looked for within so many steps;
    0 is for none, as in kube-scheduler.
    """

    preemption: bool = True
    schedule_timeout: str = "5m"
    release_after: str = "5m"
    max_arrangement_steps: Annotated[int, Meta(ge=0, le=100_000_000)] = 0

    def __post_init__(self) -> None:
        if parse_duration(self.schedule_timeout) <= 0:
            raise ValueError(f"scheduleTimeout is {self.schedule_timeout}; it must be more than 0s")
        if parse_duration(self.release_after) < 0:
            raise ValueError(f"releaseAfter is {self.release_after}; it must be 0s or more")


class GangScheduling:
    """Holds pods of a group out of the queue until the group is there, and as many pods as it wants at least."""

    name = NAME

    def __init__(self, context: PluginContext) -> None:
        args = read_arguments(context.args, GangSchedulingArgs, self.name)
        self._cluster = context.cluster
        context.cluster.pod_groups.are_scheduled = True
        self.preempts = args.preemption
        self.most_arrangement_steps = args.max_arrangement_steps
        self.schedule_timeout_ns = parse_duration(args.schedule_timeout)
        self.release_after_ns = parse_duration(args.release_after) or None

    def pre_enqueue(self, pod: PodRecord) -> Status:
        """Refuse a pod whose group is not there, or does not have enough pods that could be scheduled together."""
        key = pod.pod_class.pod_group
        if not key:
            return SUCCESS
        group = self._cluster.pod_groups.by_key.get(key)
        if group is None:
            return unresolvable(f'waiting for pod\'s pod group "{key.partition("/")[2]}" to appear in scheduling queue')
        if not group.is_gang or self._cluster.pod_groups.live(key) >= group.min_count:
            return SUCCESS
        return unresolvable(TOO_FEW)

    def events_to_register(self) -> Sequence[EventToRegister]:
        """A node may bring a domain, for pods whose group asks for one.

        When pods of the group, or the group, come or change the scheduler itself asks again.
        """
        return (
            EventToRegister(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL, self._comes_into_domain),
        )

    def _comes_into_domain(self, pod: PodRecord, event: ClusterEvent) -> bool:
        group = self._cluster.pod_groups.of(pod)
        if group is None or not group.topology_key:
            return False
        before, after = (
            None if node is None else node.metadata.labels.get(group.topology_key) for node in (event.old, event.new)
        )
        return after is not None and after != before
