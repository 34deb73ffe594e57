"""GangScheduling: the pods of a PodGroup are scheduled all or none.

In profiles with this plugin the scheduler makes one attempt for all pods of a group
(`podium.controllers.scheduling.gangs`); the plugin itself holds pods until there are enough of them. It is enabled by
the feature gate GangScheduling, or GenericWorkload since v1.37, or by a configuration.

Source: pkg/scheduler/framework/plugins/gangscheduling/gangscheduling.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta

from podium.api.reading import Duration, Interval
from podium.cluster.pods import PodRecord
from podium.framework.events import ActionType, ClusterEvent, EventResource, EventToRegister
from podium.framework.plugin import PluginContext
from podium.framework.settings.arguments import Arguments, read_arguments
from podium.framework.verdicts import SUCCESS, Status, unresolvable

NAME = "GangScheduling"
TOO_FEW = "waiting for minCount pods from a gang to appear in scheduling queue"


class GangSchedulingArgs(Arguments, frozen=True, kw_only=True):
    """Arguments, which are Podium's own.

    ``preemption``: whether a group that does not fit may preempt, with one plan for all its pods. ``scheduleTimeout``:
    how long pods of a gang wait for each other between decision and binding, unless their group says. ``releaseAfter``:
    if fewer than minCount pods of a gang have nodes and others find none for so long, the pods with nodes are evicted;
    ``0s`` keeps them. ``maxArrangementSteps``: the limit of the search for other arrangements if too few pods fit one
    after the other; 0 is for none, as in kube-scheduler.
    """

    preemption: bool = True
    schedule_timeout_ns: Interval = 300 * 10**9
    release_after_ns: Duration = 300 * 10**9
    max_arrangement_steps: Annotated[int, Meta(ge=0, le=100_000_000)] = 0


class GangScheduling:
    """Holds a group's pods until the group exists and has enough pods."""

    name = NAME

    def __init__(self, context: PluginContext) -> None:
        args = read_arguments(context.args, GangSchedulingArgs, self.name)
        self._cluster = context.cluster
        context.cluster.pod_groups.are_scheduled = True
        self.preempts = args.preemption
        self.most_arrangement_steps = args.max_arrangement_steps
        self.schedule_timeout_ns = args.schedule_timeout_ns
        self.release_after_ns = args.release_after_ns or None

    def pre_enqueue(self, pod: PodRecord) -> Status:
        """Reject a pod whose group does not exist or does not have enough pods yet."""
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
        # Nodes that may add a domain. The scheduler itself asks again when the group or its pods change.
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
