"""What disruptions use besides a budget: its rate and a component's cap; and the avoid list of the node."""

import json
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from podium.api.avoid_list import (
    PREFER_AVOID_PODS,
    AwaitedPod,
    EvictionHints,
    avoid_list,
)
from podium.store.errors import StoreError
from podium.store.store import Store
from tests.pod_statuses import set_pod_status
from tests.store.objects import SECOND, Raw, budget, disruption_policy, node, pod, running
from tests.store.refusals import answer, everything, refusal

HOUR = 3_600 * SECOND
BUDGET = "default/web"
PREEMPTED = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}


def cluster(*objects: Raw, pods: int = 4, **more: Any) -> Store:
    """Return a store of these objects and some ready pods of the app `web`."""
    store = Store()
    for one in (*objects, *(running(f"web-{number}", **more) for number in range(pods))):
        store.create(one, now=0)
    return store


def rate_of(store: Store) -> Raw:
    found: Raw = store.get("PodDisruptionBudget", BUDGET).raw["status"]["disruptionRate"]
    return found


def caps_of(store: Store) -> dict[str, str]:
    status = store.get("DisruptionPolicy", "default").raw.get("status", {})
    return {cap["component"]: cap["fullTime"] for cap in status.get("caps", [])}


def waits(error: Any) -> tuple[str, int]:
    (only,) = error.details["causes"]
    return only["reason"], error.details["retryAfterSeconds"]


# Rates.


def test_a_budget_with_a_rate_allows_that_many_evictions_and_then_one_by_one() -> None:
    store = cluster(budget(allowed=9, rate="2/1h"))
    store.evict("default/web-0", now=0)
    store.evict("default/web-1", now=0)
    assert rate_of(store) == {
        "max": "2/1h",
        "available": 0,
        "lastDisruptions": [f"pod web-{number} was evicted at 1970-01-01T00:00:00Z" for number in range(2)],
        "fullTime": "1970-01-01T01:00:00Z",
    }

    early = refusal(store, lambda: store.evict("default/web-2", now=HOUR // 2 - 1))

    assert answer(early) == (429, "TooManyRequests")
    assert waits(early) == ("DisruptionRate", 1)
    assert "the disruption budget web allows 2/1h disruptions" in early.message
    assert "used up (pod web-0 was evicted at 1970-01-01T00:00:00Z; pod web-1 was evicted at " in early.message
    assert "the next is allowed at 1970-01-01T00:30:00Z, in 1s" in early.message
    assert store.evict("default/web-2", now=HOUR // 2) is not None
    assert waits(refusal(store, lambda: store.evict("default/web-3", now=HOUR // 2))) == ("DisruptionRate", 1_800)


def test_the_token_is_taken_with_the_debit() -> None:
    store = cluster(budget(allowed=9, rate="2/1h"))
    before = store.version

    store.evict("default/web-0", now=0)

    assert [event.stored.kind for event in store.events_since(before)] == ["PodDisruptionBudget", "Pod"]


def test_an_exhausted_budget_refuses_before_its_rate() -> None:
    store = cluster(budget(allowed=1, rate="1/1h"))
    store.evict("default/web-0", now=0)

    assert waits(refusal(store, lambda: store.evict("default/web-1", now=0))) == ("DisruptionBudget", 0)


def test_operations_that_debit_no_budget_take_no_token() -> None:
    store = cluster(budget(allowed=9, rate="1/1h", spec={"unhealthyPodEvictionPolicy": "AlwaysAllow"}), ready=False)
    before = store.get("PodDisruptionBudget", BUDGET)

    store.evict("default/web-0", now=0)

    assert store.get("PodDisruptionBudget", BUDGET) is before


@pytest.mark.parametrize("grace_seconds", [None, 0])
def test_deleting_a_ready_pod_counts_as_disruption_when_its_grace_begins(grace_seconds: int | None) -> None:
    store = cluster(budget(allowed=9, rate="2/1h"))
    before = store.version

    store.delete("Pod", "default/web-0", now=0, grace_seconds=grace_seconds)

    assert rate_of(store)["available"] == 1
    assert [event.stored.kind for event in store.events_since(before)] == ["PodDisruptionBudget", "Pod"]
    assert store.get("PodDisruptionBudget", BUDGET).raw["status"]["disruptionsAllowed"] == 9


def test_a_pod_is_disrupted_once() -> None:
    store = cluster(budget(allowed=9, rate="3/1h"))

    for grace_seconds in (None, 20, 5, 0):
        store.delete("Pod", "default/web-0", now=0, grace_seconds=grace_seconds)

    assert rate_of(store)["available"] == 2


def test_a_deletion_is_never_refused_and_takes_nothing_where_nothing_is_left() -> None:
    store = cluster(budget(allowed=9, rate="1/1h"))
    store.delete("Pod", "default/web-0", now=0)
    before = store.get("PodDisruptionBudget", BUDGET)

    assert store.delete("Pod", "default/web-1", now=SECOND) is not None
    assert store.get("PodDisruptionBudget", BUDGET) is before
    assert waits(refusal(store, lambda: store.evict("default/web-2", now=SECOND))) == ("DisruptionRate", 3_599)


@pytest.mark.parametrize(
    "status",
    [
        {"conditions": []},
        {"conditions": [{"type": "Ready", "status": "False"}]},
        {"phase": "Pending"},
        {"phase": "Failed"},
    ],
)
def test_deleting_a_pod_that_is_not_healthy_takes_no_token(status: Raw) -> None:
    store = cluster(budget(allowed=9, rate="1/1h"), status=status)
    before = store.get("PodDisruptionBudget", BUDGET)

    store.delete("Pod", "default/web-0", now=0)

    assert store.get("PodDisruptionBudget", BUDGET) is before


def test_the_deletion_of_a_covered_pod_leaves_a_budget_without_a_rate_alone() -> None:
    store = cluster(budget(allowed=9), budget("other", rate="1/1h", spec={"selector": {"matchLabels": {"app": "db"}}}))
    before = store.objects("PodDisruptionBudget")

    store.delete("Pod", "default/web-0", now=0)

    assert store.objects("PodDisruptionBudget") == before


def test_an_unobserved_budget_counts_deletions_too() -> None:
    unseen = budget(rate="2/1h")
    del unseen["status"]
    store = cluster(unseen)

    store.delete("Pod", "default/web-0", now=0)

    assert rate_of(store)["available"] == 1


def test_a_rolled_back_deletion_takes_no_token() -> None:
    store = cluster(budget(allowed=9, rate="1/1h"))
    before = everything(store)

    with store.transaction(dry_run=True):
        store.delete("Pod", "default/web-0", now=0)

    assert everything(store) == before


def test_an_annotation_that_is_changed_counts_from_then_on() -> None:
    store = cluster(budget(allowed=9, rate="1/24h"))
    store.evict("default/web-0", now=0)

    annotation = {"metadata": {"annotations": {"podium.dev/max-disruptions": "2/1h"}}}
    store.patch("PodDisruptionBudget", BUDGET, annotation, "merge")

    assert waits(refusal(store, lambda: store.evict("default/web-1", now=0))) == ("DisruptionRate", 1_800)
    assert store.evict("default/web-1", now=HOUR // 2) is not None


def test_a_status_of_the_controllers_making_keeps_the_tokens() -> None:
    store = cluster(budget(allowed=9, rate="1/1h"))
    seen = store.get("PodDisruptionBudget", BUDGET)
    store.evict("default/web-0", now=0)

    stale = {**seen.raw, "status": {**seen.raw["status"], "disruptionsAllowed": 9}}

    assert answer(refusal(store, lambda: store.update_status(stale))) == (409, "Conflict")


# Caps.


def capped(**caps: str) -> Raw:
    return disruption_policy(caps=[{"component": name, "max": rate} for name, rate in caps.items()])


def test_a_component_with_a_cap_evicts_so_many_pods_that_have_a_budget() -> None:
    store = cluster(budget(allowed=9), capped(drain="1/1h", autoscaler="1/1h"))
    store.evict("default/web-0", now=0, component="drain")

    error = refusal(store, lambda: store.evict("default/web-1", now=SECOND, component="drain"))

    assert answer(error) == (429, "TooManyRequests")
    assert waits(error) == ("DisruptionCap", 3_599)
    assert "drain may disrupt 1/1h pods" in error.message
    for number, other in enumerate(("autoscaler", "descheduler", ""), 1):
        assert store.evict(f"default/web-{number}", now=SECOND, component=other) is not None


def test_the_cap_is_debited_with_the_budget() -> None:
    store = cluster(budget(allowed=9), capped(drain="2/1h"))
    before = store.version

    store.evict("default/web-0", now=0, component="drain")

    kinds = [event.stored.kind for event in store.events_since(before)]
    assert kinds == ["DisruptionPolicy", "PodDisruptionBudget", "Pod"]
    assert caps_of(store) == {"drain": "1970-01-01T00:30:00Z"}


def test_an_eviction_takes_one_token_for_any_number_of_budgets() -> None:
    policy = capped(drain="2/1h")
    policy["spec"]["severalBudgets"] = "RequireAll"
    store = cluster(budget(allowed=9), budget("other", allowed=9), policy)

    store.evict("default/web-0", now=0, component="drain")

    assert caps_of(store) == {"drain": "1970-01-01T00:30:00Z"}


def test_disruptions_that_debit_no_budget_are_not_capped() -> None:
    store = cluster(capped(drain="1/1h"))

    for number in range(4):
        store.evict(f"default/web-{number}", now=0, component="drain")

    assert caps_of(store) == {}


def test_an_eviction_that_a_budget_refuses_takes_nothing_of_the_cap() -> None:
    store = cluster(budget(allowed=0), capped(drain="1/1h"))

    assert waits(refusal(store, lambda: store.evict("default/web-0", now=0, component="drain"))) == (
        "DisruptionBudget",
        0,
    )


def test_an_eviction_that_the_cap_refuses_takes_nothing_of_the_budget() -> None:
    store = cluster(budget(allowed=9, rate="9/1h"), capped(drain="1/1h"))
    store.evict("default/web-0", now=0, component="drain")
    before = store.get("PodDisruptionBudget", BUDGET)

    refusal(store, lambda: store.evict("default/web-1", now=0, component="drain"))

    assert store.get("PodDisruptionBudget", BUDGET) is before


def test_a_preemption_takes_of_the_schedulers_cap_and_is_never_refused() -> None:
    store = cluster(budget(), capped(scheduler="1/1h"))
    for number in range(3):
        set_pod_status(store, f"default/web-{number}", {}, [PREEMPTED], now=0)

    assert store.delete("Pod", "default/web-0", now=0) is not None
    assert caps_of(store) == {"scheduler": "1970-01-01T01:00:00Z"}
    assert store.delete("Pod", "default/web-1", now=0) is not None
    assert caps_of(store) == {"scheduler": "1970-01-01T01:00:00Z"}


@pytest.mark.parametrize("target", [None, {**PREEMPTED, "status": "False"}, {**PREEMPTED, "reason": "DeletionByPodGC"}])
def test_other_deletions_take_nothing_of_the_schedulers_cap(target: Raw | None) -> None:
    store = cluster(budget(), capped(scheduler="1/1h"))
    if target is not None:
        set_pod_status(store, "default/web-0", {}, [target], now=0)

    store.delete("Pod", "default/web-0", now=0)

    assert caps_of(store) == {}


def test_a_preemption_of_a_pod_without_a_budget_takes_nothing() -> None:
    store = cluster(capped(scheduler="1/1h"))
    set_pod_status(store, "default/web-0", {}, [PREEMPTED], now=0)

    store.delete("Pod", "default/web-0", now=0)

    assert caps_of(store) == {}


def in_each_namespace(*objects: Raw, component: str | None = None) -> Store:
    """Two namespaces with two pods and a budget each, and a cap of one an hour on each."""
    named = {} if component is None else {"component": component}
    policy = disruption_policy(caps=[{**named, "max": "1/1h", "per": "Namespace"}])
    pods = [
        {**made, "metadata": {**made["metadata"], "namespace": name}}
        for name in ("red", "blue")
        for made in (budget(allowed=9), running("web-0"), running("web-1"))
    ]
    return cluster(policy, *pods, *objects, pods=0)


def test_a_cap_on_each_namespace_counts_all_components_there_and_none_elsewhere() -> None:
    store = in_each_namespace()
    store.evict("red/web-0", now=0, component="drain")

    for component in ("drain", "descheduler", ""):
        error = refusal(store, partial(store.evict, "red/web-1", now=SECOND, component=component))
        assert waits(error) == ("DisruptionCap", 3_599)
        assert "all components together may disrupt 1/1h pods with a budget in namespace red" in error.message
    assert store.evict("blue/web-0", now=SECOND, component="drain") is not None
    written = store.get("DisruptionPolicy", "default").raw["status"]["caps"]
    assert [cap["namespace"] for cap in written] == ["blue", "red"]


def test_a_components_cap_on_each_namespace_leaves_other_components_alone() -> None:
    store = in_each_namespace(component="drain")
    store.evict("red/web-0", now=0, component="drain")

    error = refusal(store, lambda: store.evict("red/web-1", now=0, component="drain"))

    assert (
        "drain may disrupt 1/1h pods with a budget in namespace red, and has done so; the next is allowed at "
        in error.message
    )
    assert store.evict("red/web-1", now=0, component="descheduler") is not None


def test_a_preemption_takes_of_the_cap_on_its_namespace() -> None:
    store = in_each_namespace()
    set_pod_status(store, "red/web-0", {}, [PREEMPTED], now=0)

    store.delete("Pod", "red/web-0", now=0)

    assert waits(refusal(store, lambda: store.evict("red/web-1", now=0))) == ("DisruptionCap", 3_600)


def test_a_policy_that_is_changed_keeps_what_was_used() -> None:
    store = cluster(budget(allowed=9), capped(drain="1/1h", autoscaler="1/1h", gone="1/1h"))
    for number, component in enumerate(("drain", "autoscaler", "gone")):
        store.evict(f"default/web-{number}", now=0, component=component)

    store.update(capped(drain="1/1h", autoscaler="4/4h"))

    assert caps_of(store) == {"autoscaler": "1970-01-01T04:00:00Z", "drain": "1970-01-01T01:00:00Z"}
    error = refusal(store, lambda: store.evict("default/web-3", now=0, component="autoscaler"))
    assert waits(error) == ("DisruptionCap", 3_600)


def test_writing_a_policy_again_changes_nothing() -> None:
    store = cluster(budget(allowed=9), capped(drain="1/1h"))
    store.evict("default/web-0", now=0, component="drain")
    before = everything(store)

    store.update(capped(drain="1/1h"))

    assert everything(store) == before


# Avoid lists.


def owned(name: str, **owner: Any) -> Raw:
    controller = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u1", "controller": True}
    return running(name, metadata={"ownerReferences": [{**controller, **owner}]})


def on_node(*pods: Raw, policy: Raw | None = None) -> Store:
    store = Store()
    for one in (node("n1"), *pods, *([policy] if policy else [])):
        store.create(one, now=0)
    return store


def avoided(store: Store) -> list[tuple[str, str | None, str]]:
    annotations = store.get("Node", "n1").object.metadata.annotations
    entries = avoid_list(annotations.get(PREFER_AVOID_PODS, "")).entries
    return [(one.controller.uid, one.eviction_time, one.reason) for one in entries]


def test_an_eviction_can_ask_that_the_node_be_avoided() -> None:
    store = on_node(owned("web-0"))
    before = store.version

    store.evict("default/web-0", now=90 * SECOND, component="descheduler", hints=EvictionHints(avoid_node=True))

    assert avoided(store) == [("u1", "1970-01-01T00:01:30Z", "descheduler")]
    assert [event.stored.kind for event in store.events_since(before)] == ["Node", "Pod"]
    (entry,) = json.loads(store.get("Node", "n1").raw["metadata"]["annotations"][PREFER_AVOID_PODS])["preferAvoidPods"]
    assert entry["podSignature"]["podController"] == {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": "web",
        "uid": "u1",
        "controller": True,
    }


def test_an_eviction_that_does_not_ask_leaves_the_node_alone() -> None:
    store = on_node(owned("web-0"))
    before = store.get("Node", "n1")

    store.evict("default/web-0", now=0)

    assert store.get("Node", "n1") is before


@pytest.mark.parametrize(
    "one",
    [running("web-0"), owned("web-0", controller=False), {**owned("web-0"), "spec": {}}],
    ids=["nobody's", "owned", "pending"],
)
def test_without_a_controller_or_a_node_nothing_is_avoided(one: Raw) -> None:
    store = on_node(one)
    before = store.get("Node", "n1")

    store.evict("default/web-0", now=0, hints=EvictionHints(avoid_node=True))

    assert store.get("Node", "n1") is before


def test_a_node_that_is_gone_is_not_avoided() -> None:
    store = Store()
    store.create(owned("web-0"), now=0)

    assert store.evict("default/web-0", now=0, hints=EvictionHints(avoid_node=True)) is not None


def test_a_refused_eviction_leaves_the_node_alone() -> None:
    store = on_node(owned("web-0"), budget(allowed=0))

    refusal(store, lambda: store.evict("default/web-0", now=0, hints=EvictionHints(avoid_node=True)))


def test_the_list_is_bounded_and_what_has_expired_goes() -> None:
    policy = disruption_policy(avoidLists={"maxEntries": 2, "expireAfter": "10m"})
    store = on_node(*(owned(f"web-{number}", uid=f"u{number}") for number in range(4)), policy=policy)

    for number in range(3):
        store.evict(f"default/web-{number}", now=number * SECOND, hints=EvictionHints(avoid_node=True))
    assert [uid for uid, _, _ in avoided(store)] == ["u1", "u2"]

    store.evict("default/web-3", now=601 * SECOND, hints=EvictionHints(avoid_node=True))
    assert [uid for uid, _, _ in avoided(store)] == ["u2", "u3"]


def test_a_list_that_cannot_be_read_is_replaced_and_other_annotations_stay() -> None:
    store = on_node(owned("web-0"))
    annotations = {PREFER_AVOID_PODS: "{broken", "example.com/owner": "me"}
    store.patch("Node", "n1", {"metadata": {"annotations": annotations}}, "merge")

    store.evict("default/web-0", now=0, hints=EvictionHints(avoid_node=True))

    assert [uid for uid, _, _ in avoided(store)] == ["u1"]
    assert store.get("Node", "n1").object.metadata.annotations["example.com/owner"] == "me"


def test_a_dry_run_leaves_node_and_cap_alone() -> None:
    store = on_node(owned("web-0"), budget(allowed=1), policy=capped(drain="1/1h"))
    before = everything(store)

    assert (
        store.evict("default/web-0", now=0, component="drain", hints=EvictionHints(avoid_node=True), dry_run=True)
        is not None
    )
    assert everything(store) == before


def lasting(store: Store) -> list[tuple[str | None, str | None]]:
    """Return the own lifetime of each entry, and the pod that it waits for."""
    entries = avoid_list(store.get("Node", "n1").object.metadata.annotations.get(PREFER_AVOID_PODS, "")).entries
    return [(one.expire_after, one.until_scheduled.name if one.until_scheduled else None) for one in entries]


def test_the_eviction_states_how_long_the_node_is_avoided() -> None:
    store = on_node(owned("web-0"), pod("big"))
    for_a_day = EvictionHints(avoid_node=True, avoid_for_ns=24 * 3600 * SECOND)

    store.evict("default/web-0", now=0, hints=for_a_day, dry_run=True)
    assert lasting(store) == []
    store.evict("default/web-0", now=0, hints=for_a_day)
    assert lasting(store) == [("24h", None)]


def test_a_node_can_be_avoided_until_a_pod_is_scheduled_that_is_pending() -> None:
    store = on_node(*(owned(f"web-{number}", uid=f"u{number}") for number in range(3)), pod("big"), running("there"))

    store.evict("default/web-0", now=0, hints=EvictionHints(avoid_node=True, until_scheduled="default/big"))
    store.evict("default/web-1", now=0, hints=EvictionHints(avoid_node=True, until_scheduled="default/there"))
    assert lasting(store) == [(None, "big")]

    with pytest.raises(StoreError, match="Pod default/nobody not found"):
        store.evict("default/web-2", now=0, hints=EvictionHints(avoid_node=True, until_scheduled="default/nobody"))
    assert not store.get("Pod", "default/web-2").object.metadata.deletion_timestamp


def test_a_node_can_be_avoided_until_a_known_pod_is_replaced() -> None:
    def waiting_for(name: str, uid: str = "") -> EvictionHints:
        return EvictionHints(avoid_node=True, until_replaced=AwaitedPod(namespace="default", name=name, uid=uid))

    store = on_node(*(owned(f"web-{number}", uid=f"u{number}") for number in range(3)), running("there"))

    with pytest.raises(StoreError, match="Pod default/nobody not found"):
        store.evict("default/web-0", now=0, hints=waiting_for("nobody"))
    found = []
    for name, awaited in (("web-0", waiting_for("there")), ("web-1", waiting_for("gone", "u-gone"))):
        store.evict(f"default/{name}", now=0, hints=awaited)
        entry = avoid_list(store.get("Node", "n1").object.metadata.annotations[PREFER_AVOID_PODS]).entries[-1]
        assert entry.until_replaced is not None
        found.append((entry.until_replaced.key, entry.until_replaced.uid))

    assert found == [("default/there", store.get("Pod", "default/there").uid), ("default/gone", "u-gone")]


def test_a_lifetime_of_its_own_outlasts_that_of_the_policy() -> None:
    policy = disruption_policy(avoidLists={"expireAfter": "10m"})
    store = on_node(*(owned(f"web-{number}", uid=f"u{number}") for number in range(3)), policy=policy)

    store.evict("default/web-0", now=0, hints=EvictionHints(avoid_node=True, avoid_for_ns=3600 * SECOND))
    store.evict("default/web-1", now=0, hints=EvictionHints(avoid_node=True))
    store.evict("default/web-2", now=601 * SECOND, hints=EvictionHints(avoid_node=True))

    assert [uid for uid, _, _ in avoided(store)] == ["u0", "u2"]


# What is left for replacements


FIRST = EvictionHints(first=True, node_name="n2")


def left_for(store: Store) -> list[tuple[str, bool, str, str]]:
    annotations = store.get("Node", "n1").object.metadata.annotations
    found = avoid_list(annotations.get(PREFER_AVOID_PODS, "")).replacements
    return [(one.evicted_pod.name, one.first, one.node_name, one.expire_after) for one in found]


def test_an_eviction_leaves_what_is_asked_for_in_the_transaction_that_evicts() -> None:
    store = on_node(owned("web-0"), owned("web-1"), budget(allowed=1))

    store.evict("default/web-0", now=0, hints=replace(FIRST, avoid_node=True), grace_seconds=60)
    refusal(store, lambda: store.evict("default/web-1", now=0, hints=replace(FIRST, avoid_node=True)))

    assert left_for(store) == [("web-0", True, "n2", "11m")]
    assert [uid for uid, _, _ in avoided(store)] == ["u1"]


def test_the_replacement_may_get_something_though_the_node_is_not_avoided() -> None:
    store = on_node(owned("web-0"))

    store.evict("default/web-0", now=0, hints=EvictionHints(first=True))

    assert left_for(store) == [("web-0", True, "", "10m30s")]
    assert avoided(store) == []


def test_an_eviction_that_is_asked_for_twice_leaves_it_once() -> None:
    store = on_node(owned("web-0"))
    store.evict("default/web-0", now=0, hints=FIRST)
    before = store.get("Node", "n1")

    store.evict("default/web-0", now=5 * SECOND, hints=FIRST)

    assert left_for(store) == [("web-0", True, "n2", "10m30s")]
    assert store.get("Node", "n1") is before
