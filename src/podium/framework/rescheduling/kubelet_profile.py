"""What every kubelet enforces, as a profile: by it the pods of schedulers that are not known are judged.

Where such a scheduler puts a pod nobody can tell. It cannot put it where the pod could not run, and it is taken to heed
cordons and taints, as every scheduler does.

Source: pkg/kubelet/lifecycle/predicate.go; controlled-rescheduling.md, Rescheduler (the "mandatory" predicates, "the
ones that constitute the Kubelet admission criteria").
"""

from __future__ import annotations

from podium.cluster.cluster import Cluster
from podium.framework.plugin import PluginContext
from podium.framework.runner import Runner
from podium.framework.settings.profile import Profile, takes_part
from podium.framework.settings.registry import Registry

KUBELET_FILTERS = (
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "VolumeBinding",
    "VolumeZone",
    "DynamicResources",
    "NodeDeclaredFeatures",
)
"""The plugins that filter in it; none rates nodes."""


def kubelet_runner(cluster: Cluster, registry: Registry) -> Runner:
    """That profile at work on a cluster. ``registry`` has the plugins that come with Podium."""
    plugins = [registry.resolve(name)(PluginContext({}, cluster)) for name in KUBELET_FILTERS]
    profile = Profile(
        scheduler_name="",
        pre_filter=[plugin for plugin in plugins if takes_part(plugin, "preFilter")],  # type: ignore[misc]
        filter=[plugin for plugin in plugins if takes_part(plugin, "filter")],  # type: ignore[misc]
    )
    return Runner(profile, cluster)
