"""The plugins of the default profile."""

from __future__ import annotations

import pytest

from podium.cluster.cluster import Cluster
from podium.framework.plugin import PluginContext
from podium.framework.settings.configuration import API_VERSION, FIELDS, KIND, default_configuration, read_configuration
from podium.framework.settings.registry import EXTENSION_POINTS, PREPARING, Profile, Registry, build_profiles
from podium.plugins.registry import IN_TREE

DEFAULT_ORDER = {
    "preEnqueue": ["SchedulingGates", "DynamicResources"],
    "queueSort": ["PrioritySort"],
    "preFilter": [
        "NodeAffinity",
        "NodePorts",
        "NodeResourcesFit",
        "VolumeRestrictions",
        "NodeVolumeLimits",
        "VolumeBinding",
        "VolumeZone",
        "PodTopologySpread",
        "InterPodAffinity",
        "DynamicResources",
        "NodeDeclaredFeatures",
    ],
    "filter": [
        "NodeUnschedulable",
        "NodeName",
        "TaintToleration",
        "NodeAffinity",
        "NodePorts",
        "NodeResourcesFit",
        "VolumeRestrictions",
        "NodeVolumeLimits",
        "VolumeBinding",
        "VolumeZone",
        "PodTopologySpread",
        "InterPodAffinity",
        "DynamicResources",
        "NodeDeclaredFeatures",
    ],
    "postFilter": ["DynamicResources", "DefaultPreemption"],
    "preScore": [
        "TaintToleration",
        "NodeAffinity",
        "NodeResourcesFit",
        "PodTopologySpread",
        "InterPodAffinity",
        "NodeResourcesBalancedAllocation",
    ],
    "score": [
        "TaintToleration",
        "NodeAffinity",
        "NodeResourcesFit",
        "PodTopologySpread",
        "InterPodAffinity",
        "DynamicResources",
        "NodeResourcesBalancedAllocation",
        "ImageLocality",
    ],
    "reserve": ["VolumeBinding", "DynamicResources"],
    "permit": [],
    "preBind": ["VolumeBinding", "DynamicResources"],
    "bind": ["DefaultBinder"],
    "postBind": [],
}
"""What kube-scheduler runs by default, but for GangScheduling, VolumeBinding's score, which stands
behind a feature gate that is off, and DefaultPreemption's preEnqueue.
"""


OURS = {
    "preFilter": ["NodeName", "NodePreferAvoidPods"],
    "filter": ["NodePreferAvoidPods"],
    "preScore": ["DynamicResources", "NodePreferAvoidPods"],
    "score": ["NodePreferAvoidPods"],
}
"""Where our plugins stand and kube-scheduler's do not: NodeName skips its filter for pods that name no node, and
NodePreferAvoidPods its filter and its score where no node has a list of pods to avoid; DynamicResources skips its score
for pods whose claims name no alternatives, as the measured decisions have it.
"""


def default_profile() -> Profile:
    (profile,) = build_profiles(default_configuration(), Registry(IN_TREE), Cluster()).values()
    return profile


def order(profile: Profile, point: str) -> list[str]:
    found = getattr(profile, FIELDS[point])
    return [plugin.name for plugin in ([found] if point == "queueSort" else found)]


@pytest.mark.parametrize("point", [point for point in EXTENSION_POINTS if point not in PREPARING])
def test_the_default_configuration_has_kube_schedulers_plugins_in_its_order(point: str) -> None:
    found = [name for name in order(default_profile(), point) if name not in OURS.get(point, ())]
    assert found == DEFAULT_ORDER[point]


@pytest.mark.parametrize("point", PREPARING)
def test_plugins_prepare_in_kube_schedulers_order(point: str) -> None:
    found = [name for name in order(default_profile(), point) if name not in OURS.get(point, ())]
    assert found == [name for name in DEFAULT_ORDER[point] if name in found]


@pytest.mark.parametrize("point", EXTENSION_POINTS)
def test_every_default_plugin_can_be_listed_where_kube_scheduler_runs_it(point: str) -> None:
    enabled = [{"name": name} for name in DEFAULT_ORDER[point]]
    profile = {"plugins": {point: {"disabled": [{"name": "*"}], "enabled": enabled}}}
    raw = {"apiVersion": API_VERSION, "kind": KIND, "profiles": [profile]}
    (made,) = build_profiles(read_configuration(raw, ""), Registry(IN_TREE), Cluster()).values()
    ours = OURS.get(point, ())
    assert order(made, point) == [name for name in order(default_profile(), point) if name not in ours]


def test_the_default_configuration_has_kube_schedulers_weights() -> None:
    assert default_profile().weights == {
        "TaintToleration": 3,
        "NodeAffinity": 2,
        "NodeResourcesFit": 1,
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
        "DynamicResources": 2,
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
        "NodePreferAvoidPods": 10_000,
    }


def test_every_plugin_goes_by_its_name_in_the_table() -> None:
    made = {name: factory(PluginContext({}, Cluster())).name for name, factory in IN_TREE.items()}
    assert made == {name: name for name in IN_TREE}


def test_every_plugin_but_gang_scheduling_is_on_by_default() -> None:
    assert {plugin.name for plugin in default_profile().plugins()} == set(IN_TREE) - {"GangScheduling"}
