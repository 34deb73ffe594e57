"""The pods that a rescheduler never moves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from podium.api.node import Node
from podium.api.pod import PersistentVolumeClaimVolumeSource, Pod, PodResourceClaim, Volume
from podium.api.selectors import compile_label_selector
from podium.api.times import format_time
from podium.cluster.replacements import WORKLOAD_DISRUPTED_AT
from podium.decide.rescheduling.guards import OFF_DUTY_TAINTS, Guards, PastMove, RowsOnDuty
from podium.framework.rescheduling.settings import ReschedulingScope
from tests.builders import at, node, pod, selector
from tests.decide.rescheduling.planning import (
    NOW,
    SECOND,
    free_settings,
    given,
    unready,
    web,
    with_annotations,
)
from tests.pod_groups import gang, of_gang

MINUTE = 60 * SECOND


def guard(pod_: Pod, node_: Node | None = None, *, scope: Mapping[str, Any] | None = None, **inputs: Any) -> str:
    """Why a pod on node a is left alone."""
    here = given(node("a") if node_ is None else node_, pod_)
    settings = free_settings(scope=ReschedulingScope(**(scope or {})))
    guards = Guards(here.cluster, settings, here.inputs(**inputs), NOW)
    (record,) = here.cluster.placed.values()
    return guards.why(record)


def job(**annotations: str) -> Pod:
    """Return a pod of a Job; underscores in annotations' names stand for slashes and dashes of `podium.dev/...`."""
    named = {f"podium.dev/{name.replace('_', '-')}": text for name, text in annotations.items()}
    return with_annotations(web("w", "a", owner="Job/train"), named)


def moved(**fields: Any) -> PastMove:
    """Return a move of a pod of the ReplicaSet web, one minute ago, that is not over."""
    usual: dict[str, Any] = {
        "namespace": "default",
        "owner_uid": "ReplicaSet/web",
        "source": "b",
        "evicted_ns": NOW - MINUTE,
        "is_in_flight": True,
        "has_budget": False,
    }
    return PastMove(**{**usual, **fields})


def test_a_ready_pod_of_a_controller_may_be_moved() -> None:
    assert guard(web("w", "a")) == ""


@pytest.mark.parametrize("name", ["kubernetes.io/config.mirror", "kubernetes.io/config.source"])
def test_a_static_pod_stays(name: str) -> None:
    assert guard(with_annotations(web("w", "a"), {name: "file"})) == "it is a static pod"


@pytest.mark.parametrize("kind", ["DaemonSet", "Node"])
def test_a_pod_that_comes_and_goes_with_its_node_stays(kind: str) -> None:
    assert guard(web("w", "a", owner=f"{kind}/x")) == f"it belongs to a {kind}, and comes and goes with its node"


@pytest.mark.parametrize(("group", "stays"), [("red", True), ("blue", False)])
def test_a_pod_of_a_group_that_is_there_stays(group: str, stays: bool) -> None:
    here = given(node("a"), gang(group), of_gang(web("w", "a"), "red"))
    guards = Guards(here.cluster, free_settings(), here.inputs(), NOW)
    (record,) = here.cluster.placed.values()

    assert guards.why(record) == ("it belongs to a PodGroup, whose pods are placed together" if stays else "")


def test_only_pods_below_a_priority_go_where_that_is_set() -> None:
    below = {"priority_below": 1_000}

    assert guard(web("w", "a", priority=999), scope=below) == ""
    assert guard(web("w", "a", priority=1_000), scope=below) == (
        "its priority is 1000, not below scope.priorityBelow, 1000"
    )


def test_pods_of_owners_with_few_pods_stay_where_that_is_set() -> None:
    alone = web("w", "a")

    assert guard(alone, scope={"minimum_replicas": 1}) == ""
    assert guard(alone, scope={"minimum_replicas": 2}) == "its owner has fewer pods than scope.minimumReplicas, 2"


def test_claims_of_volumes_and_devices_are_spared_where_that_is_set() -> None:
    plain = web("w", "a")
    volumes = Volume(name="data", persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name="data"))
    stores = replace(plain, spec=replace(plain.spec, volumes=(volumes,)))
    computes = replace(plain, spec=replace(plain.spec, resource_claims=(PodResourceClaim(name="gpu"),)))

    assert guard(stores) == guard(computes) == ""
    assert (
        guard(stores, scope={"spare": ("PodsWithVolumeClaims",)})
        == "it has claims of volumes; scope.spare names PodsWithVolumeClaims"
    )
    assert (
        guard(computes, scope={"spare": ("PodsWithDeviceClaims",)})
        == "it has claims of devices; scope.spare names PodsWithDeviceClaims"
    )
    assert guard(plain, scope={"spare": ("PodsWithVolumeClaims", "PodsWithDeviceClaims")}) == ""


def test_a_pod_of_system_critical_priority_stays_unless_that_is_allowed() -> None:
    critical = web("w", "a", priority=2_000_000_000)

    assert guard(critical) == "its priority is system-critical; scope.allow does not name SystemCriticalPods"
    assert guard(critical, scope={"allow": ("SystemCriticalPods",)}) == ""
    assert guard(web("w", "a", priority=1_999_999_999)) == ""


def test_a_pod_without_a_controller_stays_unless_that_is_allowed() -> None:
    bare = pod("w", on="a", ready=True)

    assert guard(bare) == "it has no controller that replaces it; scope.allow does not name PodsWithoutController"
    assert guard(bare, scope={"allow": ("PodsWithoutController",)}) == ""


def test_a_pod_that_keeps_data_on_its_node_stays_unless_that_is_allowed() -> None:
    assert (
        guard(web("w", "a"), keeps_data={"default/w"})
        == "it keeps data on its node; scope.allow does not name LocalStorage"
    )
    assert guard(web("w", "a"), keeps_data={"default/w"}, scope={"allow": ("LocalStorage",)}) == ""


def test_a_pod_that_is_going_stays_alone() -> None:
    assert guard(web("w", "a", terminating=True)) == "it is terminating"


def test_a_pod_on_a_node_that_is_not_known_stays() -> None:
    assert guard(web("w", "elsewhere")) == "its node is unknown"


@pytest.mark.parametrize(
    ("fields", "is_young"),
    [
        ({"started": 86_400 - 299}, True),
        ({"started": 86_400 - 300}, False),
        ({"created": 0, "started": 86_400 - 10}, True),
        ({"created": 86_400 - 10, "started": None}, True),
        ({"created": None, "started": None}, False),
    ],
)
def test_a_pod_stays_until_it_has_run_for_some_time(fields: Mapping[str, Any], is_young: bool) -> None:
    assert guard(web("w", "a", **fields)) == ("it is younger than scope.minimumAge, 5m" if is_young else "")


def test_a_long_pending_but_recently_placed_pod_stays() -> None:
    assert guard(web("w", "a", created=0, started=None, ready=False)) == "it has not started yet"


@pytest.mark.parametrize("policy", ["NonPreemptible", "NonPreemptiblePreemptNever"])
def test_a_pod_that_is_not_preemptible_stays(policy: str) -> None:
    assert guard(web("w", "a", policy=policy)) == f"its preemption policy is {policy}"


def test_no_priority_class_is_needed() -> None:
    assert guard(web("w", "a", priority=None, policy=None)) == ""


# Marks that others heed


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cluster-autoscaler.kubernetes.io/safe-to-evict", "false"),
        ("karpenter.sh/do-not-disrupt", "true"),
        ("karpenter.sh/do-not-evict", "true"),
    ],
)
def test_a_pod_that_declares_itself_busy_stays(name: str, value: str) -> None:
    assert guard(with_annotations(web("w", "a"), {name: value})) == f"it is annotated {name}: {value}"
    assert guard(with_annotations(web("w", "a"), {name: {"true": "false", "false": "true"}[value]})) == ""


@pytest.mark.parametrize("value", ["", "true", "false"])
def test_a_pod_excluded_from_the_descheduler_stays_for_every_value(value: str) -> None:
    name = "descheduler.alpha.kubernetes.io/prefer-no-eviction"

    assert guard(with_annotations(web("w", "a"), {name: value})) == f"it is annotated {name}"


# Scope


def test_pods_of_namespaces_that_are_excluded_or_not_included_stay() -> None:
    shop = web("w", "a", namespace="shop")

    assert guard(web("w", "a", namespace="kube-system")) == "scope.namespaces excludes the namespace kube-system"
    assert guard(shop, scope={"included": frozenset({"shop"})}) == ""
    assert guard(shop, scope={"included": frozenset({"web"})}) == "scope.namespaces does not include the namespace shop"


def test_pods_and_nodes_that_the_selectors_do_not_match_stay() -> None:
    chosen = compile_label_selector(selector("tier=web"))

    assert guard(web("w", "a"), scope={"pods": chosen}) == 'its labels do not match scope.podSelector "tier=web"'
    assert guard(web("w", "a", labels={"tier": "web"}), scope={"pods": chosen}) == ""
    assert (
        guard(web("w", "a"), scope={"nodes": chosen})
        == 'the labels of its node do not match scope.nodeSelector "tier=web"'
    )
    assert guard(web("w", "a"), node("a", labels={"tier": "web"}), scope={"nodes": chosen}) == ""


# Nodes


@pytest.mark.parametrize("key", sorted(OFF_DUTY_TAINTS))
@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute", "PreferNoSchedule"])
def test_pods_on_nodes_that_others_drain_or_empty_stay(key: str, effect: str) -> None:
    left = node("a", taints=[f"{key}=x:{effect}"])

    assert guard(web("w", "a"), left) == f"its node is left to others: {OFF_DUTY_TAINTS[key]}"


def test_pods_on_nodes_that_are_cordoned_not_ready_or_deleted_stay() -> None:
    deleted = replace(node("a"), metadata=replace(node("a").metadata, deletion_timestamp=at(0)))

    assert guard(web("w", "a"), node("a", unschedulable=True)) == "its node is left to others: it is cordoned"
    assert guard(web("w", "a"), unready(node("a"))) == "its node is left to others: it is not ready"
    assert guard(web("w", "a"), deleted) == "its node is left to others: it is being deleted"


def test_a_taint_that_reserves_a_node_protects_no_pod_there() -> None:
    assert guard(web("w", "a"), node("a", taints=["team=ml:NoSchedule"])) == ""


def test_nodes_that_are_off_duty_are_no_targets_from_when_they_are_until_they_are_no_more() -> None:
    here = given(node("a"), node("b"))
    nodes = here.cluster.nodes
    on_duty = RowsOnDuty()
    before = on_duty.of(nodes)

    here.cluster.put_node(node("b", unschedulable=True))
    cordoned = on_duty.of(nodes)
    here.cluster.put_node(node("b"))

    assert before.tolist() == [True, True]
    assert cordoned.tolist() == [True, False]
    assert on_duty.of(nodes).tolist() == [True, True]
    here.cluster.remove_node("a")
    assert on_duty.of(nodes).tolist() == [False, True]


# Work in progress


def test_a_jobs_pod_stays_unless_it_says_what_a_move_costs() -> None:
    assert guard(job()) == "its work is in progress, at no stated cost; scope.allow does not name WorkInProgress"
    assert guard(job(), scope={"allow": ("WorkInProgress",)}) == ""
    assert guard(job(work_in_progress="false")) == ""


def test_a_busy_pod_stays_whatever_its_owner() -> None:
    at_work = with_annotations(web("w", "a"), {"podium.dev/work-in-progress": "true"})

    assert guard(at_work) == "its work is in progress, at no stated cost; scope.allow does not name WorkInProgress"


@pytest.mark.parametrize(
    ("annotations", "lost"),
    [
        ({"checkpoint_interval": "10m"}, ""),
        ({"checkpoint_interval": "11m"}, "11m"),
        ({"checkpoint_time": format_time(NOW - 10 * MINUTE)}, ""),
        ({"checkpoint_time": format_time(NOW - 12 * MINUTE)}, "12m"),
        # A checkpoint that was made is a fact, and the interval a promise.
        ({"checkpoint_time": format_time(NOW - 12 * MINUTE), "checkpoint_interval": "1m"}, "12m"),
        ({"checkpoint_time": format_time(NOW - MINUTE), "checkpoint_interval": "1h"}, ""),
        # A clock that is ahead.
        ({"checkpoint_time": format_time(NOW + MINUTE)}, ""),
        ({"checkpoint_interval": "2000h"}, "24h"),
    ],
)
def test_a_jobs_pod_may_lose_so_much_work_and_no_more(annotations: Mapping[str, str], lost: str) -> None:
    words = f"it would lose {lost} of work, more than scope.maxLostWork, 10m" if lost else ""

    assert guard(job(**annotations)).replace("24h0m0s", "24h") == words


@pytest.mark.parametrize(
    ("annotations", "right"),
    [
        (
            {"checkpoint_interval": "often"},
            'podium.dev/checkpoint-interval is "often"; it must be a time such as "10m"',
        ),
        (
            {"checkpoint_time": "noon"},
            'podium.dev/checkpoint-time is "noon"; it must be a time such as 2026-01-31T08:00:00Z',
        ),
        ({"work_in_progress": "yes"}, 'podium.dev/work-in-progress is "yes"; it must be "true" or "false"'),
        ({"checkpoint_interval": "\x1b[31m" * 99}, "it must be a time"),
    ],
)
def test_a_pod_with_an_unreadable_protection_stays(annotations: Mapping[str, str], right: str) -> None:
    assert right in guard(job(**annotations))
    assert "\x1b" not in guard(job(**annotations))


# What became of the last moves


def test_pods_whose_kind_came_back_to_their_node_stay_for_a_while() -> None:
    why = "the last moved pod of its controller came back to this node, which has to cool down"
    owner = "ReplicaSet/web"

    assert guard(web("w", "a"), cooling={(owner, "a")}) == why
    assert guard(web("w", "a"), cooling={(owner, "b")}) == ""
    assert guard(web("w", "a", owner="ReplicaSet/other"), cooling={(owner, "a")}) == ""


def test_pods_of_a_recently_disrupted_workload_stay_if_the_scope_requires_it() -> None:
    why = "its workload was disrupted less than scope.undisturbedFor, 1h, ago"
    report = web("told", "a")
    report = replace(report, metadata=replace(report.metadata, annotations={WORKLOAD_DISRUPTED_AT: at(86_400 - 1_800)}))
    here = given(node("a"), web("w", "a"), web("x", "a", owner="ReplicaSet/other"))
    here.cluster.disrupted.remember(7_200 * 10**9)
    here.cluster.disrupted.see(report)

    def kept(name: str, undisturbed_seconds: int) -> str:
        (record,) = (each for each in here.cluster.placed.values() if each.name == name)
        settings = free_settings(scope=ReschedulingScope(undisturbed_for_ns=undisturbed_seconds * 10**9))
        return Guards(here.cluster, settings, here.inputs(), NOW).why(record)

    assert (kept("w", 3_600), kept("w", 1_800), kept("w", 0), kept("x", 3_600)) == (why, "", "", "")


def test_a_replacement_stays_until_it_is_ready() -> None:
    why = "it replaces a moved pod, and is not ready yet"
    scope = {"minimum_age_ns": 0}
    made = {"created": 86_400 - 60, "started": 86_400 - 30}

    assert guard(web("w", "a", ready=False, **made), scope=scope, past=[moved()]) == why
    assert guard(web("w", "a", ready=True, **made), scope=scope, past=[moved()]) == ""
    assert guard(web("w", "a", ready=False), scope=scope, past=[moved()]) == ""
    assert guard(web("w", "a", ready=False, **made), scope=scope, past=[moved(is_in_flight=False)]) == ""
    assert guard(web("w", "a", ready=False, **made), scope=scope, past=[moved(owner_uid="x")]) == ""


def test_a_replacement_that_is_known_stays_until_it_is_ready_though_clocks_disagree() -> None:
    here = given(node("a"), web("w", "a", ready=False))
    (record,) = here.cluster.placed.values()
    inputs = here.inputs(past=[moved(waiting=record)])
    guards = Guards(here.cluster, free_settings(), inputs, NOW)

    assert guards.why(record) == "it replaces a moved pod, and is not ready yet"


def test_a_pod_that_is_not_ready_for_other_reasons_may_be_moved() -> None:
    assert guard(web("w", "a", ready=False)) == ""
