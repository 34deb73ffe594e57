"""Whether the store grants an eviction, and what that uses of the budgets."""

from typing import Any

import pytest

from podium.api.pod import Pod
from podium.api.versions.release import read_version
from podium.store.revisions import JournalContent
from podium.store.store import Store
from podium.store.stored import Stored
from tests.pod_statuses import set_pod_status
from tests.store.objects import SECOND, Raw, budget, disruption_policy, pod, running
from tests.store.refusals import answer, everything, refusal

POD, BUDGET = "default/web-0", "default/web"


def cluster(*objects: Raw) -> Store:
    store = Store()
    for one in objects:
        store.create(one, now=0)
    return store


def status(store: Store, key: str = BUDGET) -> Raw:
    found: Raw = store.get("PodDisruptionBudget", key).raw["status"]
    return found


def cause(error: Any) -> tuple[str, int]:
    """Return what is used up, and how long to wait."""
    (only,) = error.details["causes"]
    return only["reason"], error.details["retryAfterSeconds"]


def condition(stored: Stored | None) -> tuple[str, str]:
    assert stored is not None
    assert isinstance(stored.object, Pod)
    found = stored.object.status.condition("DisruptionTarget")
    return (found.status, found.reason) if found else ("", "")


def phase(name: str) -> Raw:
    return running("web-0", status={"phase": name, "conditions": []})


class Kept:
    """A journal of objects that an API server took long ago."""

    def __init__(self, *objects: Raw) -> None:
        dated = [
            {
                **one,
                "metadata": {"generation": 1, "uid": f"u{version}", "resourceVersion": str(version), **one["metadata"]},
            }
            for version, one in enumerate(objects, 1)
        ]
        self.saved = JournalContent(len(objects), [(one["kind"], one) for one in dated], [], 0, [])

    def load(self) -> JournalContent:
        return self.saved

    def append(self, events: object, identities: object) -> None:
        """Nothing is kept."""


POLICIES = pytest.mark.parametrize("policy", [None, "IfHealthyBudget", "AlwaysAllow"])


def of_policy(policy: str | None, **more: Any) -> Raw:
    spec = {} if policy is None else {"unhealthyPodEvictionPolicy": policy}
    return budget(spec={**spec, **more.pop("spec", {})}, **more)


# The cases of TestEviction.


@pytest.mark.upstream(54)
@pytest.mark.parametrize("policy", [None, "IfHealthyBudget"])
@pytest.mark.parametrize("selector", [{"matchLabels": {"app": "web"}}, {}], ids=["labels", "everything"])
def test_a_running_pod_needs_a_budget_that_allows_it(policy: str | None, selector: Raw) -> None:
    store = cluster(phase("Running"), of_policy(policy, allowed=0, spec={"selector": selector}))

    error = refusal(store, lambda: store.evict(POD, now=0))

    assert answer(error) == (429, "TooManyRequests")
    assert cause(error) == ("DisruptionBudget", 0)
    assert "The disruption budget web needs 0 healthy pods and has 0 currently" in error.message


@pytest.mark.upstream(49, 54)
@POLICIES
@pytest.mark.parametrize("name", ["Pending", "Succeeded", "Failed"])
def test_a_pod_that_has_not_started_or_has_ended_needs_no_budget(policy: str | None, name: str) -> None:
    store = cluster(phase(name), of_policy(policy, allowed=0))
    before = status(store)

    assert store.evict(POD, now=0, grace_seconds=0) is None
    assert store.find("Pod", POD) is None
    assert status(store) == before


@pytest.mark.upstream(54)
@POLICIES
def test_a_budget_that_allows_a_disruption_permits_the_eviction(policy: str | None) -> None:
    store = cluster(running("web-0"), of_policy(policy, allowed=1))

    assert store.evict(POD, now=0, grace_seconds=0) is None
    assert status(store)["disruptionsAllowed"] == 0


@pytest.mark.upstream(54)
@POLICIES
def test_a_budget_over_other_pods_does_not_matter(policy: str | None) -> None:
    other = {"selector": {"matchLabels": {"app": "db"}}}
    store = cluster(running("web-0"), of_policy(policy, allowed=0, spec=other))

    assert store.evict(POD, now=0, grace_seconds=0) is None


def test_a_budget_of_another_namespace_does_not_matter() -> None:
    elsewhere = budget(allowed=0)
    elsewhere["metadata"]["namespace"] = "default-2"
    store = cluster(running("web-0"), elsewhere)

    assert store.evict(POD, now=0) is not None


def test_a_budget_without_a_selector_covers_nothing() -> None:
    none = budget(allowed=0)
    del none["spec"]["selector"]
    store = cluster(running("web-0"), none)

    assert store.evict(POD, now=0) is not None


def test_b26_a_budget_whose_selector_no_longer_parses_covers_nothing() -> None:
    broken = {"matchExpressions": [{"key": "app", "operator": "In", "values": []}]}
    store = Store(journal=Kept(running("web-0"), budget(allowed=0, spec={"selector": broken})))

    assert store.evict(POD, now=0) is not None


def test_a_pod_without_labels_is_covered_by_the_budget_over_everything() -> None:
    store = cluster(running("web-0", labels={}), budget(allowed=0, spec={"selector": {}}))

    assert answer(refusal(store, lambda: store.evict(POD, now=0))) == (429, "TooManyRequests")


def test_a_pod_that_is_not_there_cannot_be_evicted() -> None:
    store = cluster()

    assert answer(refusal(store, lambda: store.evict(POD, now=0))) == (404, "NotFound")


# The cases of TestEvictionIgnorePDB.


@pytest.mark.upstream(54)
def test_a_pod_that_starts_before_the_request_is_carried_out_needs_a_budget() -> None:
    store = cluster(phase("Pending"), budget(allowed=0))
    seen = store.get("Pod", POD)
    set_pod_status(store, POD, {"phase": "Running"}, [], now=0)

    error = refusal(store, lambda: store.evict(POD, now=0, uid=seen.uid))
    stale = refusal(store, lambda: store.evict(POD, now=0, resource_version=str(seen.version)))

    assert answer(error) == (429, "TooManyRequests")
    assert answer(stale) == (409, "Conflict")


@pytest.mark.upstream(54)
@POLICIES
def test_a_terminating_pod_needs_no_budget(policy: str | None) -> None:
    store = cluster(running("web-0"), of_policy(policy, allowed=0))
    store.delete("Pod", POD, now=0, grace_seconds=300)
    before = status(store)

    terminating = store.evict(POD, now=SECOND, grace_seconds=300)

    assert terminating is not None
    assert terminating.object.metadata.deletion_timestamp == "1970-01-01T00:05:00Z"
    assert status(store) == before


@pytest.mark.upstream(54)
@POLICIES
def test_a_ready_pod_is_not_evicted_because_others_are_unready(policy: str | None) -> None:
    store = cluster(running("web-0"), of_policy(policy, allowed=0, status={"currentHealthy": 2, "desiredHealthy": 2}))

    error = refusal(store, lambda: store.evict(POD, now=0))

    assert "needs 2 healthy pods and has 2 currently" in error.message


@pytest.mark.upstream(54)
@POLICIES
def test_a_ready_pod_is_debited(policy: str | None) -> None:
    store = cluster(running("web-0"), of_policy(policy, allowed=1, status={"currentHealthy": 3, "desiredHealthy": 3}))

    store.evict(POD, now=90 * SECOND)

    assert status(store)["disruptionsAllowed"] == 0
    assert status(store)["disruptedPods"] == {"web-0": "1970-01-01T00:01:30Z"}


@pytest.mark.upstream(54)
@pytest.mark.failure(70)
@POLICIES
def test_an_unready_pod_goes_without_a_debit_while_enough_others_are_healthy(policy: str | None) -> None:
    enough = {"currentHealthy": 2, "desiredHealthy": 2}
    store = cluster(running("web-0", ready=False), of_policy(policy, allowed=0, status=enough))
    before = status(store)

    assert store.evict(POD, now=0, grace_seconds=0) is None
    assert status(store) == before


@pytest.mark.upstream(52, 54)
@pytest.mark.failure(70)
def test_always_allow_evicts_an_unready_pod_at_any_status() -> None:
    out_of_hand = {"observedGeneration": 0, "disruptedPods": {f"pod-{n}": "2026-01-01T00:00:00Z" for n in range(2_001)}}
    store = cluster(running("web-0", ready=False), of_policy("AlwaysAllow", allowed=-1, status=out_of_hand))
    before = status(store)

    assert store.evict(POD, now=0, grace_seconds=0) is None
    assert status(store) == before


@pytest.mark.parametrize("policy", [None, "IfHealthyBudget"])
@pytest.mark.parametrize(("healthy", "desired"), [(1, 2), (0, 0), (3, 0)])
def test_an_unready_pod_needs_the_budget_while_others_are_missing(
    policy: str | None, healthy: int, desired: int
) -> None:
    short = {"currentHealthy": healthy, "desiredHealthy": desired}
    store = cluster(running("web-0", ready=False), of_policy(policy, allowed=0, status=short))

    assert cause(refusal(store, lambda: store.evict(POD, now=0))) == ("DisruptionBudget", 0)

    store.update_status(
        {**store.get("PodDisruptionBudget", BUDGET).raw, "status": {**status(store), "disruptionsAllowed": 1}}
    )
    store.evict(POD, now=0)
    assert status(store)["disruptionsAllowed"] == 0


@pytest.mark.failure(69)
def test_a_stale_status_does_not_prove_enough_healthy_pods() -> None:
    old = {"currentHealthy": 2, "desiredHealthy": 2, "observedGeneration": 0}
    store = cluster(running("web-0", ready=False), budget(allowed=0, status=old))

    assert cause(refusal(store, lambda: store.evict(POD, now=0))) == ("DisruptionBudget", 10)


@pytest.mark.failure(69)
def test_a_status_that_could_not_be_computed_does_not_prove_enough_healthy_pods() -> None:
    failed = [{"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed"}]
    old = {"currentHealthy": 2, "desiredHealthy": 2, "conditions": failed}
    store = cluster(running("web-0", ready=False), budget(allowed=0, status=old))

    assert answer(refusal(store, lambda: store.evict(POD, now=0))) == (429, "TooManyRequests")


# What the status must be like.


def test_a_budget_that_was_changed_must_be_looked_at_by_its_controller_first() -> None:
    store = cluster(running("web-0"), budget(allowed=5))
    store.patch("PodDisruptionBudget", BUDGET, {"spec": {"minAvailable": 3}}, "merge")

    error = refusal(store, lambda: store.evict(POD, now=0))

    assert answer(error) == (429, "TooManyRequests")
    assert cause(error) == ("DisruptionBudget", 10)
    assert "still being processed" in error.message


@pytest.mark.parametrize("seen", [{}, {"disruptedPods": {f"pod-{n}": "2026-01-01T00:00:00Z" for n in range(2_001)}}])
def test_a_status_that_is_out_of_hand_forbids_evictions(seen: Raw) -> None:
    store = cluster(running("web-0"), budget(allowed=5 if seen else -1, status=seen))

    error = refusal(store, lambda: store.evict(POD, now=0))

    assert answer(error) == (403, "Forbidden")
    assert error.details["kind"] == "poddisruptionbudgets"


def test_two_thousand_disruptions_may_wait_for_the_controller() -> None:
    seen = {"disruptedPods": {f"pod-{n}": "2026-01-01T00:00:00Z" for n in range(2_000)}}
    store = cluster(running("web-0"), budget(allowed=1, status=seen))

    assert store.evict(POD, now=0) is not None


# TestEvictionPDBStatus.


@pytest.mark.upstream(54)
@pytest.mark.parametrize(("allowed", "reason"), [(1, "InsufficientPods"), (3, "SufficientPods")])
def test_the_condition_changes_when_nothing_more_is_allowed(allowed: int, reason: str) -> None:
    allows = {"type": "DisruptionAllowed", "status": "True", "reason": "SufficientPods"}
    store = cluster(running("web-0"), budget(allowed=allowed, status={"conditions": [allows]}))

    store.evict(POD, now=0)

    assert [one["reason"] for one in status(store)["conditions"]] == [reason]
    assert status(store)["disruptionsAllowed"] == allowed - 1


def test_a_debit_leaves_the_rest_of_the_status_alone() -> None:
    more = {"expectedPods": 3, "disruptedPods": {"web-9": "2026-01-01T00:00:00Z"}, "somethingNew": [1]}
    store = cluster(running("web-0"), budget(allowed=2, status=more))

    store.evict(POD, now=0)

    after = status(store)
    assert after["disruptedPods"] == {"web-9": "2026-01-01T00:00:00Z", "web-0": "1970-01-01T00:00:00Z"}
    assert (after["expectedPods"], after["somethingNew"]) == (3, [1])


# The pod itself.


@pytest.mark.upstream(51)
def test_an_evicted_pod_says_why_and_its_finalizers_keep_it() -> None:
    store = cluster(running("web-0", metadata={"finalizers": ["example.com/a"]}), budget())

    kept = store.evict(POD, now=0, grace_seconds=0)

    assert condition(kept) == ("True", "EvictionByEvictionAPI")
    assert condition(store.find("Pod", POD)) == ("True", "EvictionByEvictionAPI")


def test_the_condition_of_an_eviction_names_the_generation_of_the_pod_that_it_is_about() -> None:
    store = cluster(running("web-0", metadata={"finalizers": ["example.com/a"], "generation": 4}), budget())

    kept = store.evict(POD, now=0)

    assert kept is not None
    (target,) = [one for one in kept.raw["status"]["conditions"] if one["type"] == "DisruptionTarget"]
    assert target["observedGeneration"] == 4


def test_versions_without_observed_generations_of_pods_write_none_into_conditions() -> None:
    store = cluster(running("web-0", metadata={"finalizers": ["example.com/a"]}), budget())
    store.serve_as(read_version("1.32"))

    evicted = store.evict(POD, now=0)
    gated = store.create(pod("gated", spec={"schedulingGates": [{"name": "quota"}]}), now=0, is_new=True)

    assert evicted is not None
    for stored, type_ in ((evicted, "DisruptionTarget"), (gated, "PodScheduled")):
        (written,) = [one for one in stored.raw["status"]["conditions"] if one["type"] == type_]
        assert "observedGeneration" not in written


@pytest.mark.upstream(51)
def test_a_dry_run_says_what_would_be_and_leaves_no_trace() -> None:
    store = cluster(running("web-0", metadata={"finalizers": ["example.com/a"]}), budget(rate="1/1h"))
    before = everything(store)

    would_be = store.evict(POD, now=0, dry_run=True)

    assert would_be is not None
    assert would_be.object.metadata.deletion_timestamp is not None
    assert everything(store) == before
    assert store.evict(POD, now=0) is not None


def test_a_dry_run_of_what_is_refused_is_refused() -> None:
    store = cluster(running("web-0"), budget(allowed=0))

    assert answer(refusal(store, lambda: store.evict(POD, now=0, dry_run=True))) == (429, "TooManyRequests")


def test_debit_reason_and_deletion_are_one_step() -> None:
    store = cluster(running("web-0"), budget())
    before = store.version

    store.evict(POD, now=0)

    events = store.events_since(before)
    assert [event.stored.kind for event in events] == ["PodDisruptionBudget", "Pod"]
    assert condition(events[1].stored) == ("True", "EvictionByEvictionAPI")
    assert events[1].stored.object.metadata.deletion_timestamp is not None


def test_a_pod_without_grace_is_gone_and_its_last_state_says_why() -> None:
    store = cluster(running("web-0"), budget())
    before = store.version

    assert store.evict(POD, now=0, grace_seconds=0) is None

    assert [event.type for event in store.events_since(before)] == ["MODIFIED", "DELETED"]
    assert condition(store.events_since(before)[1].stored) == ("True", "EvictionByEvictionAPI")


def test_an_evicted_pod_gets_its_own_grace_period_or_the_one_that_is_asked_for() -> None:
    store = cluster(running("web-0"), running("web-1"))

    own, asked = store.evict(POD, now=0), store.evict("default/web-1", now=0, grace_seconds=7)

    graces = [one and one.object.metadata.deletion_grace_period_seconds for one in (own, asked)]
    assert graces == [30, 7]


def test_a_pod_that_goes_for_another_reason_keeps_that_reason() -> None:
    store = cluster(running("web-0"))
    preempted = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    set_pod_status(store, POD, {}, [preempted], now=0)
    store.delete("Pod", POD, now=0)

    assert condition(store.evict(POD, now=SECOND)) == ("True", "PreemptionByScheduler")


def test_a_second_eviction_changes_nothing() -> None:
    store = cluster(running("web-0"), budget(allowed=2))
    store.evict(POD, now=0)
    before = everything(store)

    assert store.evict(POD, now=SECOND) is not None
    assert everything(store) == before


@pytest.mark.upstream(53)
@pytest.mark.failure(75)
def test_b40_preconditions_must_hold() -> None:
    store = cluster(running("web-0"), budget(allowed=5))
    stored = store.get("Pod", POD)

    wrong_uid = refusal(store, lambda: store.evict(POD, now=0, uid="someone-else"))
    wrong_version = refusal(store, lambda: store.evict(POD, now=0, resource_version="77"))

    assert answer(wrong_uid) == answer(wrong_version) == (409, "Conflict")
    assert store.evict(POD, now=0, uid=stored.uid, resource_version=str(stored.version)) is not None
    assert status(store)["disruptionsAllowed"] == 4


@pytest.mark.failure(75)
def test_a_namesake_that_came_later_is_not_evicted() -> None:
    store = cluster(running("web-0"), budget(allowed=5))
    seen = store.get("Pod", POD)
    store.delete("Pod", POD, now=0, grace_seconds=0)
    store.create(running("web-0"), now=0)

    assert answer(refusal(store, lambda: store.evict(POD, now=0, uid=seen.uid))) == (409, "Conflict")


# Several budgets.


def two_budgets(**policy: Any) -> Store:
    ours, theirs = budget("web", allowed=2), budget("all", allowed=2, spec={"selector": {}})
    return cluster(running("web-0"), ours, theirs, *([disruption_policy(**policy)] if policy else []))


@pytest.mark.failure(72)
@pytest.mark.parametrize("policy", [{}, {"severalBudgets": "Refuse"}])
def test_a_pod_with_two_budgets_is_refused_as_kubernetes_refuses_it(policy: Raw) -> None:
    store = two_budgets(**policy)

    error = refusal(store, lambda: store.evict(POD, now=0))

    assert answer(error) == (500, "")
    assert error.message.startswith("This pod has more than one PodDisruptionBudget (all, web)")


@pytest.mark.failure(72)
def test_all_required_budgets_are_debited_once() -> None:
    store = two_budgets(severalBudgets="RequireAll")

    assert store.evict(POD, now=0) is not None

    for key in ("default/web", "default/all"):
        assert status(store, key)["disruptionsAllowed"] == 1
        assert list(status(store, key)["disruptedPods"]) == ["web-0"]


@pytest.mark.parametrize("exhausted", ["web", "all"])
def test_one_of_all_required_budgets_can_refuse(exhausted: str) -> None:
    store = two_budgets(severalBudgets="RequireAll")
    patch = {"status": {"disruptionsAllowed": 0}}
    store.patch("PodDisruptionBudget", f"default/{exhausted}", patch, "merge", "status")

    error = refusal(store, lambda: store.evict(POD, now=0))

    assert answer(error) == (429, "TooManyRequests")
    assert f"The disruption budget {exhausted} needs" in error.message


def test_an_eviction_debits_only_budgets_without_always_allow_for_an_unready_pod() -> None:
    tolerant = budget("all", allowed=0, spec={"selector": {}, "unhealthyPodEvictionPolicy": "AlwaysAllow"})
    policy = disruption_policy(severalBudgets="RequireAll")
    store = cluster(running("web-0", ready=False), budget("web", allowed=1), tolerant, policy)

    assert store.evict(POD, now=0) is not None

    assert status(store, "default/web")["disruptionsAllowed"] == 0
    assert "disruptedPods" not in status(store, "default/all")


def test_a_pod_that_needs_no_budget_may_have_several() -> None:
    store = cluster(phase("Pending"), budget("a", allowed=0), budget("b", allowed=0))

    assert store.evict(POD, now=0, grace_seconds=0) is None


# End to end.


@pytest.mark.upstream(58)
def test_an_eviction_waits_until_the_budget_allows_it() -> None:
    store = cluster(running("web-0"), budget(allowed=0, status={"currentHealthy": 1, "desiredHealthy": 1}))
    assert answer(refusal(store, lambda: store.evict(POD, now=0))) == (429, "TooManyRequests")

    store.patch("PodDisruptionBudget", BUDGET, {"spec": {"minAvailable": 0}}, "merge")
    assert cause(refusal(store, lambda: store.evict(POD, now=0))) == ("DisruptionBudget", 10)

    seen = {"observedGeneration": 2, "disruptionsAllowed": 1, "currentHealthy": 1, "desiredHealthy": 0}
    store.patch("PodDisruptionBudget", BUDGET, {"status": seen}, "merge", "status")
    assert store.evict(POD, now=0) is not None


def test_a_pod_outside_of_any_budget_goes() -> None:
    store = cluster(pod("alone", node="n1", status={"phase": "Running"}))

    assert store.evict("default/alone", now=0) is not None
