"""Converting a DeschedulerPolicy; everything that is not converted is reported."""

from __future__ import annotations

from typing import Any

import pytest

from podium.api.errors import InputError
from podium.cluster.cluster import Cluster
from podium.framework.rescheduling.configuration import ReschedulerConfiguration, read_rescheduler
from podium.framework.rescheduling.descheduler import COUNTERPARTS
from podium.framework.rescheduling.policy import PolicyRegistry, make_policies
from podium.framework.rescheduling.settings import MoveLimitSettings
from podium.plugins.rescheduling.registry import IN_TREE

MINUTE = 60 * 10**9


def read(*configured: tuple[str, dict[str, Any]], point: str = "deschedule", **fields: Any) -> ReschedulerConfiguration:
    """Return a policy of one profile that enables these plugins, with their arguments."""
    profile = {
        "name": "p",
        "pluginConfig": [{"name": name, "args": args} for name, args in configured],
        "plugins": {point: {"enabled": [name for name, _ in configured if name != "DefaultEvictor"]}},
    }
    return whole({"profiles": [profile], **fields})


def whole(fields: dict[str, Any]) -> ReschedulerConfiguration:
    raw = {"apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy", **fields}
    return read_rescheduler(raw, "descheduler.yaml")


def policies(found: ReschedulerConfiguration) -> dict[str, dict[str, Any]]:
    return {policy.name: dict(policy.args) for policy in found.settings.policies}


def notes(found: ReschedulerConfiguration) -> list[str]:
    return [caveat.message.removeprefix("DeschedulerPolicy, ") for caveat in found.caveats]


def noted(found: ReschedulerConfiguration, text: str) -> bool:
    return any(text in note for note in notes(found))


def refusal(*configured: tuple[str, dict[str, Any]], **fields: Any) -> str:
    with pytest.raises(InputError) as refused:
        read(*configured, **fields)
    return str(refused.value)


def test_low_node_utilization_moves_onto_underused_nodes() -> None:
    args = {
        "thresholds": {"cpu": 20, "pods": 10},
        "targetThresholds": {"cpu": 50, "pods": 60},
        "numberOfNodes": 2,
        "useDeviationThresholds": True,
        "metricsUtilization": {"source": "KubernetesMetrics"},
        "evictableNamespaces": {"exclude": ["kube-system", "infra"]},
        "evictionLimits": {"node": 3},
    }
    found = read(("LowNodeUtilization", args), point="balance", maxNoOfPodsToEvictPerNode=9)
    assert policies(found) == {
        "MoveToUnderusedNodes": {
            "thresholds": {"cpu": 20.0, "pods": 10.0},
            "targetThresholds": {"cpu": 50.0, "pods": 60.0},
            "numberOfNodes": 2,
            "useDeviationThresholds": True,
            "useMetrics": True,
        }
    }
    assert found.settings.scope.excluded == {"kube-system", "infra"}
    assert found.settings.in_flight.node == 3


def test_high_node_utilization_frees_nodes() -> None:
    found = read(("HighNodeUtilization", {"thresholds": {"cpu": 20, "memory": 30}, "numberOfNodes": 4}))
    assert policies(found) == {"Consolidate": {"utilizationThreshold": 0.2, "forWaitingPods": False}}
    assert noted(found, "HighNodeUtilization, thresholds: the lowest of them, 20 %, counts for all resources")
    assert noted(found, "HighNodeUtilization, numberOfNodes: has no counterpart")


@pytest.mark.parametrize(
    ("plugin", "args", "expected"),
    [
        ("RemoveDuplicates", {"excludeOwnerKinds": ["Job"]}, {"SpreadDuplicates": {"excludeOwnerKinds": ["Job"]}}),
        ("RemovePodsViolatingInterPodAntiAffinity", {}, {"RepairViolations": {}}),
        (
            "RemovePodsViolatingNodeAffinity",
            {"nodeAffinityType": ["requiredDuringSchedulingIgnoredDuringExecution"]},
            {"RepairViolations": {}},
        ),
        (
            "RemovePodsViolatingNodeAffinity",
            {"nodeAffinityType": ["preferredDuringSchedulingIgnoredDuringExecution"]},
            {"SatisfyPreferences": {"nodeAffinity": 1.0}},
        ),
        (
            "RemovePodsViolatingNodeTaints",
            {"includePreferNoSchedule": True},
            {"RepairViolations": {}, "SatisfyPreferences": {"taints": 1.0}},
        ),
        (
            "RemovePodsViolatingTopologySpreadConstraint",
            {"constraints": ["ScheduleAnyway"]},
            {"SatisfyPreferences": {"topologySpread": 1.0}},
        ),
        ("RemovePodsHavingTooManyRestarts", {"podRestartThreshold": 7}, {"LeavePoorService": {"minRestarts": 7}}),
        ("PodLifeTime", {"maxPodLifeTimeSeconds": 86400}, {"ReplaceOldPods": {"maxAge": "86400s"}}),
    ],
)
def test_each_plugin_has_its_counterpart(plugin: str, args: dict[str, Any], expected: dict[str, Any]) -> None:
    found = policies(read((plugin, args)))
    assert found.keys() == expected.keys()
    for name, wanted in expected.items():
        assert wanted.items() <= found[name].items()


def test_preferences_that_were_not_asked_for_count_nothing() -> None:
    found = read(("RemovePodsViolatingNodeTaints", {"includePreferNoSchedule": True}))
    assert policies(found)["SatisfyPreferences"] == {
        "nodeAffinity": 0.0,
        "podAffinity": 0.0,
        "topologySpread": 0.0,
        "taints": 1.0,
    }


def test_the_policies_that_come_of_it_can_be_made() -> None:
    given: dict[str, dict[str, Any]] = {
        "LowNodeUtilization": {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}},
        "PodLifeTime": {"maxPodLifeTimeSeconds": 60},
        "RemovePodsViolatingNodeAffinity": {"nodeAffinityType": ["preferredDuringSchedulingIgnoredDuringExecution"]},
    }
    found = read(*((name, given.get(name, {})) for name in COUNTERPARTS))
    made = make_policies(found.settings.policies, PolicyRegistry(IN_TREE), Cluster())
    assert len(made) == len(found.settings.policies)


@pytest.mark.parametrize(
    ("configured", "says"),
    [
        (("RemoveFailedPods", {}), "RemoveFailedPods: has no counterpart: pods that have ended are left"),
        (("TheirOwn", {}), "TheirOwn: has no counterpart: it is not known here"),
        (("PodLifeTime", {"states": ["Pending"]}), "PodLifeTime, states: has no counterpart, and is ignored"),
        (("PodLifeTime", {}), "PodLifeTime: without maxPodLifeTimeSeconds no pod is too old"),
        (("RemovePodsViolatingNodeTaints", {"excludedTaints": ["a"]}), "excludedTaints: has no counterpart"),
        (
            ("LowNodeUtilization", {"metricsUtilization": {"source": "Prometheus"}}),
            "Podium does not query Prometheus",
        ),
        (("RemovePodsHavingTooManyRestarts", {}), "only if others of its owner do well"),
        (("RemovePodsViolatingNodeTaints", {}), "also repairs violations of inter-pod anti-affinity, node affinity"),
        (("DefaultEvictor", {"evictDaemonSetPods": True}), "moving pods of DaemonSets is never done here"),
        (("DefaultEvictor", {"nodeFit": False}), "a pod is moved only if its replacement fits somewhere"),
        (("DefaultEvictor", {"evictFailedBarePods": True}), "evicting pods that have ended is never done"),
        (("DefaultEvictor", {"somethingNewer": 1}), "DefaultEvictor, somethingNewer: has no counterpart"),
    ],
)
def test_unsupported_descheduler_plugins_are_named(configured: tuple[str, dict[str, Any]], says: str) -> None:
    assert noted(read(configured), says)


def test_fields_of_the_policy_without_a_counterpart_are_named() -> None:
    found = whole({"gracePeriodSeconds": 5, "metricsProviders": [{"source": "KubernetesMetrics"}]})
    assert notes(found) == [
        "the policy, gracePeriodSeconds: has no counterpart, and is ignored",
        "the policy, metricsProviders: has no counterpart, and is ignored",
    ]
    assert found.settings.policies == ()


def test_arguments_of_a_plugin_that_is_not_enabled_are_named() -> None:
    profile = {"pluginConfig": [{"name": "PodLifeTime", "args": {"maxPodLifeTimeSeconds": 5}}]}
    found = whole({"profiles": [profile]})
    assert "PodLifeTime: has arguments, and is not enabled" in notes(found)
    assert found.settings.policies == ()


def test_plugins_that_filter_and_sort_are_named() -> None:
    plugins = {"filter": {"enabled": ["DefaultEvictor", "Theirs"]}, "presort": {"enabled": ["Sorter"]}, "odd": {}}
    found = whole({"profiles": [{"plugins": plugins}]})
    assert "Theirs, plugins.filter: has no counterpart at this extension point" in notes(found)
    assert "Sorter, plugins.presort: has no counterpart at this extension point" in notes(found)
    assert "the policy, plugins.odd: there is no such extension point" in notes(found)


def test_the_evictor_says_which_pods_may_be_touched() -> None:
    args = {
        "nodeSelector": "pool=web",
        "labelSelector": {"matchLabels": {"app": "web"}},
        "evictLocalStoragePods": True,
        "priorityThreshold": {"value": 1000},
        "minPodAge": "90m",
        "minReplicas": 2,
        "ignorePvcPods": True,
        "podProtections": {
            "defaultDisabled": ["SystemCriticalPods"],
            "extraEnabled": ["PodsWithResourceClaims", "PodsWithoutPDB"],
        },
    }
    found = read(("DefaultEvictor", args), ("PodLifeTime", {"maxPodLifeTimeSeconds": 5}), nodeSelector="zone in (a,b)")
    scope = found.settings.scope
    assert str(scope.nodes) == "pool=web,zone in (a,b)"
    assert str(scope.pods) == "app=web"
    assert scope.allow == ("LocalStorage", "SystemCriticalPods")
    assert scope.spare == ("PodsWithDeviceClaims", "PodsWithVolumeClaims")
    assert (scope.priority_below, scope.minimum_replicas, scope.minimum_age_ns) == (1_000, 2, 90 * MINUTE)
    assert found.settings.without_budget == MoveLimitSettings(total=0)
    assert not noted(found, "select different pods")


def test_one_scope_holds_for_all_and_none_of_them_goes_beyond_it() -> None:
    found = read(
        ("PodLifeTime", {"maxPodLifeTimeSeconds": 5, "namespaces": {"include": ["a", "b"]}}),
        ("RemoveDuplicates", {"namespaces": {"include": ["b", "c"]}}),
        ("RemovePodsViolatingNodeTaints", {"namespaces": {"exclude": ["d"]}}),
    )
    assert found.settings.scope.included == {"b"}
    assert found.settings.scope.excluded == {"d"}
    assert noted(found, "plugins select different namespaces")
    assert "no namespace in common" in refusal(
        ("PodLifeTime", {"namespaces": {"include": ["a"]}}), ("RemoveDuplicates", {"namespaces": {"include": ["c"]}})
    )


def test_several_profiles_allow_what_all_of_them_allow() -> None:
    def profile(**args: Any) -> dict[str, Any]:
        return {"pluginConfig": [{"name": "DefaultEvictor", "args": args}]}

    found = whole({"profiles": [profile(evictLocalStoragePods=True, minPodAge="1h"), profile(minPodAge="2h")]})
    assert "LocalStorage" not in found.settings.scope.allow
    assert found.settings.scope.minimum_age_ns == 120 * MINUTE
    assert noted(found, "its profiles are merged")


def test_unspecified_descheduler_settings_are_cautious() -> None:
    cautious = read_rescheduler({"apiVersion": "podium.dev/v1alpha1", "kind": "ReschedulerConfiguration"}, "").settings
    found = read(("PodLifeTime", {"maxPodLifeTimeSeconds": 5})).settings
    assert (found.threshold, found.in_flight, found.hourly) == (cautious.threshold, cautious.in_flight, cautious.hourly)
    assert (found.budget_reserve, found.budget_reserve_share) == (
        cautious.budget_reserve,
        cautious.budget_reserve_share,
    )
    assert found.scope == cautious.scope


def test_limits_that_are_said_hold() -> None:
    found = read(maxNoOfPodsToEvictPerNode=7, maxNoOfPodsToEvictPerNamespace=8, maxNoOfPodsToEvictTotal=9)
    assert found.settings.in_flight == MoveLimitSettings(total=9, node=7, namespace=8, owner=1)


@pytest.mark.parametrize(
    ("configured", "says"),
    [
        (
            ("LowNodeUtilization", {"thresholds": {"cpu": "x"}}),
            'descheduler.yaml, .profiles[0].pluginConfig[0].args.thresholds.cpu: "x" is not a number',
        ),
        (
            ("LowNodeUtilization", {"thresholds": {"cpu": 101}}),
            ".thresholds.cpu: 101 is not a percentage from 0 to 100",
        ),
        (("PodLifeTime", {"maxPodLifeTimeSeconds": 0}), ".args.maxPodLifeTimeSeconds: 0 is out of range"),
        (("PodLifeTime", {"namespaces": {"includes": []}}), 'there is no field "includes"; did you mean include'),
        (("DefaultEvictor", {"nodeSelector": "a=(b"}), "label selector"),
        (("DefaultEvictor", {"priorityThreshold": {"name": "mine"}}), "write value: in its place"),
        (("DefaultEvictor", {"priorityThreshold": {"name": "a", "value": 1}}), "has a name and a value"),
        (("DefaultEvictor", {"podProtections": {"extraEnabled": ["PodsOfNewKind"]}}), "without it pods might be moved"),
        (("DefaultEvictor", {"minPodAge": "soon"}), '"soon" is not a duration'),
    ],
)
def test_descheduler_policy_errors_name_their_place(configured: tuple[str, dict[str, Any]], says: str) -> None:
    assert says in refusal(configured)


def test_another_version_is_refused() -> None:
    with pytest.raises(InputError, match="descheduler/v1alpha2 is needed"):
        read_rescheduler({"apiVersion": "descheduler/v1alpha1", "kind": "DeschedulerPolicy"}, "")
