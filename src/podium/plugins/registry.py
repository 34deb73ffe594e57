"""The plugins that come with Podium, by the names that a configuration knows them by."""

from __future__ import annotations

from collections.abc import Mapping

from podium.framework.settings.registry import Factory
from podium.plugins.default_binder import DefaultBinder
from podium.plugins.default_preemption import DefaultPreemption
from podium.plugins.dynamic_resources.plugin import DynamicResources
from podium.plugins.gang_scheduling import GangScheduling
from podium.plugins.image_locality import ImageLocality
from podium.plugins.node_affinity import NodeAffinity
from podium.plugins.node_declared_features import NodeDeclaredFeatures
from podium.plugins.node_name import NodeName
from podium.plugins.node_ports import NodePorts
from podium.plugins.node_prefer_avoid_pods import NodePreferAvoidPods
from podium.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from podium.plugins.node_resources_fit import NodeResourcesFit
from podium.plugins.node_unschedulable import NodeUnschedulable
from podium.plugins.pod_affinity.inter_pod_affinity import InterPodAffinity
from podium.plugins.priority_sort import PrioritySort
from podium.plugins.scheduling_gates import SchedulingGates
from podium.plugins.spreading.pod_topology_spread import PodTopologySpread
from podium.plugins.taint_toleration import TaintToleration
from podium.plugins.volumes.binding import VolumeBinding
from podium.plugins.volumes.limits import NodeVolumeLimits
from podium.plugins.volumes.restrictions import VolumeRestrictions
from podium.plugins.volumes.zone import VolumeZone

IN_TREE: Mapping[str, Factory] = {
    "SchedulingGates": SchedulingGates,
    "PrioritySort": PrioritySort,
    "NodeUnschedulable": NodeUnschedulable,
    "NodeName": NodeName,
    "TaintToleration": TaintToleration,
    "NodeAffinity": NodeAffinity,
    "NodePorts": NodePorts,
    "NodeResourcesFit": NodeResourcesFit,
    "VolumeRestrictions": VolumeRestrictions,
    "NodeVolumeLimits": NodeVolumeLimits,
    "VolumeBinding": VolumeBinding,
    "VolumeZone": VolumeZone,
    "PodTopologySpread": PodTopologySpread,
    "InterPodAffinity": InterPodAffinity,
    "DynamicResources": DynamicResources,
    "DefaultPreemption": DefaultPreemption,
    "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocation,
    "ImageLocality": ImageLocality,
    "NodePreferAvoidPods": NodePreferAvoidPods,
    "DefaultBinder": DefaultBinder,
    "NodeDeclaredFeatures": NodeDeclaredFeatures,
    "GangScheduling": GangScheduling,
}
