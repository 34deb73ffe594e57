"""The in-tree plugins by name, and the smallest of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from podium.api.versions.release import Behavior
from podium.cluster.arrays import Int64s
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.framework.events import ActionType, EventResource, EventToRegister
from podium.framework.handle import CycleState
from podium.framework.plugin import MAX_NODE_SCORE, PluginContext, Scope, StatelessPlugin
from podium.framework.settings.registry import Factory
from podium.framework.verdicts import SUCCESS, Status, unresolvable
from podium.plugins import node_filters
from podium.plugins.default_preemption import DefaultPreemption
from podium.plugins.dynamic_resources.plugin import DynamicResources
from podium.plugins.gang_scheduling import GangScheduling
from podium.plugins.inter_pod_affinity import InterPodAffinity
from podium.plugins.node_prefer_avoid_pods import NodePreferAvoidPods
from podium.plugins.node_resources_fit import NodeResourcesFit
from podium.plugins.pod_topology_spread import PodTopologySpread
from podium.plugins.resource_scores import NodeResourcesBalancedAllocation
from podium.plugins.volumes import binding, filters, limits


class DefaultBinder(StatelessPlugin):
    """Requests an ordinary binding."""

    name = "DefaultBinder"

    def bind(self, state: CycleState, pod: PodRecord, node_name: str) -> Status:
        """Return success, on which the scheduler posts the binding."""
        return SUCCESS


_MEGABYTE = 1024 * 1024
_MINIMUM_BYTES = 23 * _MEGABYTE


class ImageLocality:
    """Sums the sizes of a pod's images on a node, each in proportion to the share of nodes that have it."""

    name = "ImageLocality"
    scope = Scope.NODE

    def __init__(self, context: PluginContext) -> None:
        self._counts_volumes = context.cluster.release.has(Behavior.IMAGE_VOLUMES_SCORED)

    def score_rows(self, state: CycleState, pod: PodRecord, view: View) -> Int64s:
        """Score 0 up to 23 MB, 100 from 1000 MB for each container, and linearly in between."""
        containers = pod.spec.init_containers + pod.spec.containers
        nodes = view.cluster.nodes
        names = [container.image for container in containers]
        if self._counts_volumes:
            names += [volume.image.reference for volume in pod.spec.volumes if volume.image is not None]
        # A name without a tag means `latest`.
        tagged = [name if name.rfind(":") > name.rfind("/") else f"{name}:latest" for name in names]
        found = [nodes.images.find(name) for name in tagged]
        images = [image for image in found if image is not None]
        maximum = 1000 * _MEGABYTE * len(containers)
        if not images or maximum <= _MINIMUM_BYTES:
            return np.zeros(len(view), dtype=np.int64)
        sizes = np.zeros(nodes.capacity, dtype=np.int64)
        for image in images:
            sizes[list(image.rows)] += int(image.size_bytes * (len(image.rows) / len(nodes)))
        counted = np.clip(view.take(sizes), _MINIMUM_BYTES, maximum)
        scores: Int64s = MAX_NODE_SCORE * (counted - _MINIMUM_BYTES) // (maximum - _MINIMUM_BYTES)
        return scores


class SchedulingGates(StatelessPlugin):
    """Holds a pod until its last gate is removed."""

    name = "SchedulingGates"

    def pre_enqueue(self, pod: PodRecord) -> Status:
        if not pod.gates:
            return SUCCESS
        return unresolvable(f"waiting for scheduling gates: [{' '.join(pod.gates)}]")

    def events_to_register(self) -> Sequence[EventToRegister]:
        return (EventToRegister(EventResource.POD, ActionType.UPDATE_POD_SCHEDULING_GATES),)


class PrioritySort(StatelessPlugin):
    """Orders the active queue by falling priority, then time of entry."""

    name = "PrioritySort"

    def sort_key(self, pod: PodRecord, queued_ns: int) -> tuple[int, ...]:
        return (-pod.priority, queued_ns)


IN_TREE: Mapping[str, Factory] = {
    "SchedulingGates": SchedulingGates,
    "PrioritySort": PrioritySort,
    "NodeUnschedulable": node_filters.NodeUnschedulable,
    "NodeName": node_filters.NodeName,
    "TaintToleration": node_filters.TaintToleration,
    "NodeAffinity": node_filters.NodeAffinity,
    "NodePorts": node_filters.NodePorts,
    "NodeResourcesFit": NodeResourcesFit,
    "VolumeRestrictions": filters.VolumeRestrictions,
    "NodeVolumeLimits": limits.NodeVolumeLimits,
    "VolumeBinding": binding.volume_binding,
    "VolumeZone": filters.VolumeZone,
    "PodTopologySpread": PodTopologySpread,
    "InterPodAffinity": InterPodAffinity,
    "DynamicResources": DynamicResources,
    "DefaultPreemption": DefaultPreemption,
    "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocation,
    "ImageLocality": ImageLocality,
    "NodePreferAvoidPods": NodePreferAvoidPods,
    "DefaultBinder": DefaultBinder,
    "NodeDeclaredFeatures": node_filters.NodeDeclaredFeatures,
    "GangScheduling": GangScheduling,
}
