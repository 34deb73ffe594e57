"""The status of disruption budgets: rows 56 and 57 of the scenarios, invariants F1 and F2, failure 73."""

from typing import Any

import msgspec
import pytest

from podium.api.policy import PodDisruptionBudget
from podium.controllers.actions import Record
from podium.controllers.disruption.budget import TrackedBudget
from podium.controllers.disruption.disruption_controller import DisruptionController
from podium.controllers.observations import Changed, Deleted, Tick
from podium.store.api_resources import APIResource
from podium.store.errors import StoreError
from tests.controllers.store_rig import UNREADY, WEB, Rig, pod, replica_set
from tests.sim.objects import budget, job, owned, workload
from tests.store.objects import SECOND, Raw, disruption_policy


def rig_of(*objects: Raw, **fields: Any) -> Rig:
    rig = Rig(DisruptionController, *objects, **fields)
    rig.settle()
    return rig


def status(rig: Rig, name: str = "pdb") -> Raw:
    found: Raw = rig.get("PodDisruptionBudget", name)["status"]
    return found


def sums(rig: Rig, name: str = "pdb") -> tuple[int, int, int, int]:
    """Return (allowed, healthy, desired, expected), as in upstream's tests."""
    found = status(rig, name)
    return (found["disruptionsAllowed"], found["currentHealthy"], found["desiredHealthy"], found["expectedPods"])


def condition(rig: Rig) -> Raw:
    found: Raw = next(one for one in status(rig)["conditions"] if one["type"] == "DisruptionAllowed")
    return found


def controller(kind: str, name: str, replicas: int) -> Raw:
    """Return a workload whose uid is its name."""
    raw = workload(kind, name, replicas, uid=name)
    if kind == "ReplicationController":
        return {**raw, "apiVersion": "v1", "spec": {**raw["spec"], "selector": WEB}}
    return raw


# How many pods are expected


@pytest.mark.upstream(56)
def test_a_whole_number_to_be_available_counts_the_pods_that_there_are() -> None:
    rig = rig_of(budget("pdb", minAvailable=3))

    for number in range(4):
        assert sums(rig) == (0, number, 3, number)
        rig.sync(pod(f"yo-{number}"))
    assert sums(rig) == (1, 4, 3, 4)
    rig.sync(pod("yo-0", ready=False))

    assert sums(rig) == (0, 3, 3, 4)


@pytest.mark.upstream(56)
@pytest.mark.failure(73)
@pytest.mark.parametrize("spec", [{"maxUnavailable": 1}, {"maxUnavailable": "50%"}, {"minAvailable": "28%"}])
def test_pods_without_controller_are_not_expected_and_cause_one_warning(spec: Raw) -> None:
    rig = rig_of(budget("pdb", **spec))
    assert sums(rig) == (0, 0, 0, 0)

    rig.sync(pod("naked"))
    rig.sync(pod("other"))

    assert sums(rig) == (0, 2, 0, 0)
    assert condition(rig)["reason"] == "InsufficientPods"
    assert "write minAvailable as a number" in condition(rig)["message"]
    assert rig.events() == [("UnmanagedPods", "default/naked")]


def test_the_status_reports_pods_without_controller_while_they_exist() -> None:
    rig = rig_of(budget("pdb", maxUnavailable=1), replica_set("rs", 1), pod("owned", owner=replica_set("rs", 1)))
    assert condition(rig)["message"] == ""

    rig.sync(pod("naked"))
    assert "write minAvailable as a number" in condition(rig)["message"]
    rig.delete("Pod", "naked")
    rig.settle()

    assert condition(rig)["message"] == ""


@pytest.mark.upstream(56)
@pytest.mark.parametrize(
    ("spec", "before", "after"),
    [
        ({"maxUnavailable": 2}, (0, 1, 5, 7), (0, 1, 3, 5)),
        ({"maxUnavailable": "30%"}, (0, 1, 4, 7), (0, 1, 3, 5)),
        ({"minAvailable": "30%"}, (0, 1, 3, 7), (0, 1, 2, 5)),
    ],
)
def test_the_status_follows_the_scale_of_the_workload(spec: Raw, before: Any, after: Any) -> None:
    rig = rig_of(budget("pdb", **spec), replica_set("rs", 7), pod("a", owner=replica_set("rs", 7)))

    assert sums(rig) == before
    rig.sync(replica_set("rs", 5))

    assert sums(rig) == after


@pytest.mark.upstream(56)
@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet", "ReplicationController"])
def test_a_share_is_of_what_the_controller_wants_rounded_up(kind: str) -> None:
    owner = controller(kind, "owner", 3)
    rig = rig_of(budget("pdb", minAvailable="34%"), owner)
    assert sums(rig) == (0, 0, 0, 0)

    for number, expected in enumerate([(0, 1, 2, 3), (0, 2, 2, 3), (1, 3, 2, 3)]):
        rig.sync(pod(f"web-{number}", owner=owner))
        assert sums(rig) == expected
    rig.sync(pod("rogue"))

    assert sums(rig) == (2, 4, 2, 3)


@pytest.mark.upstream(56)
def test_pods_of_two_controllers_share_a_budget() -> None:
    first, deployment = controller("ReplicationController", "first", 11), controller("Deployment", "second", 11)
    second = owned(controller("ReplicaSet", "second-1", 2), deployment)
    rig = rig_of(budget("pdb", minAvailable="28%"), first)

    rig.sync(*(pod(f"one-{number}", owner=first, ready=number >= 6) for number in range(11)))
    assert sums(rig) == (1, 5, 4, 11)
    rig.sync(deployment, second)
    assert sums(rig) == (1, 5, 4, 11)
    rig.sync(*(pod(f"two-{number}", owner=second, ready=number >= 7) for number in range(11)))
    assert sums(rig) == (2, 9, 7, 22)

    for allowed, changed in ((1, pod("one-10", owner=first, ready=False)), (0, pod("one-9", owner=first, ready=False))):
        rig.sync(changed)
        assert sums(rig) == (allowed, 7 + allowed, 7, 22)
    rig.sync(pod("one-10", owner=first))
    assert sums(rig) == (1, 8, 7, 22)


@pytest.mark.upstream(56)
def test_pods_may_get_another_controller() -> None:
    rig = rig_of(budget("pdb", minAvailable="1%"), pod("a"), pod("b"))
    assert sums(rig) == (0, 2, 0, 0)

    for name in ("rc-1", "rc-2"):
        owner = controller("ReplicationController", name, 1)
        rig.sync(owner, pod("a", owner=owner), pod("b", owner=owner))
        assert sums(rig) == (1, 2, 1, 1)


@pytest.mark.upstream(57)
def test_custom_resources_scale_by_their_replicas() -> None:
    kind = APIResource(group="example.com", kind="Crd", plural="crds", namespaced=True, is_custom=True)
    raw = {**workload("Crd", "resource", 4, uid="crd"), "apiVersion": "example.com/v1"}
    pods = (pod(f"web-{number}", owner=raw) for number in range(4))
    rig = rig_of(budget("pdb", maxUnavailable=2), raw, *pods, custom=[kind])

    assert sums(rig) == (2, 4, 2, 4)
    rig.sync({**raw, "spec": {**raw["spec"], "replicas": 6}})
    assert sums(rig) == (0, 4, 4, 6)


@pytest.mark.parametrize("replicas", [None, "4", True])
def test_custom_resources_without_a_number_of_replicas_have_no_scale(replicas: Any) -> None:
    kind = APIResource(group="example.com", kind="Crd", plural="crds", namespaced=True, is_custom=True)
    raw = {**workload("Crd", "resource", 4, uid="crd"), "apiVersion": "example.com/v1"}
    rig = rig_of(budget("pdb", maxUnavailable=2), raw, pod("a", owner=raw), custom=[kind])

    rig.sync({**raw, "spec": {"replicas": replicas}})

    assert condition(rig)["reason"] == "SyncFailed"


def test_the_replica_sets_of_a_deployment_count_once() -> None:
    deployment = controller("Deployment", "web", 3)
    old, new = (owned(controller("ReplicaSet", f"web-{number}", 2), deployment) for number in (1, 2))

    rig = rig_of(budget("pdb", maxUnavailable=1), deployment, old, new, pod("a", owner=old), pod("b", owner=new))

    assert sums(rig) == (0, 2, 2, 3)


def test_a_replica_set_of_something_else_counts_by_itself() -> None:
    rollout = {**controller("Rollout", "web", 9), "apiVersion": "example.com/v1"}
    owner = owned(controller("ReplicaSet", "web-1", 2), rollout)

    assert sums(rig_of(budget("pdb", maxUnavailable=1), owner, pod("a", owner=owner))) == (0, 1, 1, 2)


def test_the_replica_set_of_a_deployment_that_is_not_there_has_no_scale() -> None:
    deployment = controller("Deployment", "web", 3)
    owner = owned(controller("ReplicaSet", "web-1", 2), deployment)

    rig = rig_of(budget("pdb", maxUnavailable=2), owner, pod("a", owner=owner), pod("b", owner=owner))
    assert condition(rig)["reason"] == "SyncFailed"
    rig.sync(deployment)
    assert sums(rig) == (1, 2, 1, 3)
    rig.delete("Deployment", "web")
    rig.settle()
    assert (sums(rig), condition(rig)["reason"]) == ((0, 2, 1, 3), "SyncFailed")


def test_a_controller_counts_as_long_as_it_has_covered_pods() -> None:
    one, two = replica_set("one", 2), replica_set("two", 3)
    rig = rig_of(budget("pdb", maxUnavailable=1), one, two, pod("a", owner=one), pod("b", owner=two))
    assert sums(rig) == (0, 2, 4, 5)

    rig.sync(pod("b", owner=two, labels={}))
    assert sums(rig) == (0, 1, 1, 2)
    rig.delete("Pod", "a")
    rig.settle()

    assert sums(rig) == (0, 0, 0, 0)


def test_a_workload_that_a_namesake_has_replaced_has_no_scale() -> None:
    owner = replica_set("rs", 2)
    rig = rig_of(budget("pdb", maxUnavailable=1), owner, pod("a", owner=owner), pod("b", owner=owner))
    rig.held = {"ReplicaSet"}
    rig.delete("ReplicaSet", "rs")
    rig.put({**owner, "metadata": {**owner["metadata"], "uid": "another"}})
    new = rig.store.get("ReplicaSet", "default/rs")

    rig.controller.handle(Changed(new.object, new.raw), rig.now)
    rig.settle()

    assert condition(rig)["reason"] == "SyncFailed"


# What cannot be known


@pytest.mark.upstream(56)
@pytest.mark.failure(73)
@pytest.mark.parametrize("spec", [{"maxUnavailable": 1}, {"minAvailable": "28%"}])
@pytest.mark.parametrize(
    "owner",
    [
        {**job("sum"), "metadata": {"name": "sum", "namespace": "default", "uid": "sum"}},
        {**workload("TestWorkload", "sum", 1, uid="sum"), "apiVersion": "apps.test.io/v1"},
    ],
)
def test_a_controller_without_scale_allows_no_disruptions(spec: Raw, owner: Raw) -> None:
    objects = [owner] if owner["kind"] == "Job" else []
    rig = rig_of(budget("pdb", **spec), *objects)
    seen = status(rig)["observedGeneration"]
    rig.put(budget("pdb", **spec, unhealthyPodEvictionPolicy="AlwaysAllow"))

    rig.sync(pod("a", owner=owner))

    found = condition(rig)
    assert sums(rig) == (0, 0, 0, 0)
    assert (found["status"], found["reason"]) == ("False", "SyncFailed")
    assert found["message"].startswith(f"the scale of {owner['kind']} default/sum, which controls covered")
    assert status(rig)["observedGeneration"] == seen < rig.get("PodDisruptionBudget", "pdb")["metadata"]["generation"]
    assert rig.events() == [("CalculateExpectedPodCountFailed", "default/a")]


def test_a_budget_in_whole_numbers_needs_no_scale() -> None:
    owner = {**job("sum"), "metadata": {"name": "sum", "namespace": "default", "uid": "sum"}}

    assert sums(rig_of(budget("pdb", minAvailable=1), owner, pod("a", owner=owner), pod("b"))) == (1, 2, 1, 2)


def test_a_scale_that_comes_back_lifts_the_ban() -> None:
    owner = replica_set("rs", 2)
    rig = rig_of(budget("pdb", maxUnavailable=1), owner, pod("a", owner=owner), pod("b", owner=owner))

    rig.delete("ReplicaSet", "rs")
    rig.settle()
    assert condition(rig)["reason"] == "SyncFailed"
    assert sums(rig) == (0, 2, 1, 2)
    other = replica_set("rs", 3)
    other["metadata"]["uid"] = "another"
    rig.sync(other)
    assert condition(rig)["reason"] == "SyncFailed"

    rig.sync(pod("a", owner=other), pod("b", owner=other))
    assert sums(rig) == (0, 2, 2, 3)
    assert condition(rig)["reason"] == "InsufficientPods"


def told_directly(spec: Raw, annotations: Raw | None = None) -> Raw:
    """Return the status that a controller writes for a budget that today's API server would not take."""
    raw = budget("pdb", **spec)
    raw["metadata"] |= {"uid": "pdb", "resourceVersion": "1", "generation": 1, "annotations": annotations or {}}
    machine = DisruptionController()
    machine.handle(Changed(msgspec.convert(raw, PodDisruptionBudget), raw), 0)
    (write,) = machine.handle(Tick(), 0)
    found: Raw = write.raw["status"]  # type: ignore[union-attr]
    return found


@pytest.mark.parametrize(
    ("spec", "annotations", "problem"),
    [
        ({"minAvailable": 3, "selector": {"matchLabels": {"a/b/c": "x"}}}, {}, "not a valid label selector"),
        ({"minAvailable": "some"}, {}, '"some" is neither a number of pods nor a percentage'),
        ({"maxUnavailable": "-5%"}, {}, '"-5%" is neither a number of pods nor a percentage'),
        ({"minAvailable": 1}, {"podium.dev/max-disruptions": "often"}, '"often" is not a rate'),
    ],
)
def test_an_invalid_budget_allows_nothing_and_states_the_reason(spec: Raw, annotations: Raw, problem: str) -> None:
    found = told_directly(spec, annotations)

    assert found["conditions"][0]["reason"] == "SyncFailed"
    assert problem in found["conditions"][0]["message"]
    numbers = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
    assert [found[name] for name in numbers] == [0, 0, 0, 0]
    assert "observedGeneration" not in found


# The pods of a budget


@pytest.mark.upstream(57)
def test_the_empty_selector_covers_the_namespace_and_a_missing_one_nothing() -> None:
    everything, nothing = budget("pdb", selector={}, minAvailable=0), budget("none", minAvailable=0)
    del nothing["spec"]["selector"]

    rig = rig_of(pod("a"), pod("b", labels={}), pod("c", namespace="other"), everything, nothing)

    assert sums(rig) == (2, 2, 0, 2)
    assert sums(rig, "none") == (0, 0, 0, 0)


@pytest.mark.upstream(57)
@pytest.mark.parametrize("selector", [{}, {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}])
def test_pods_without_labels_can_be_selected(selector: Raw) -> None:
    rig = rig_of(budget("pdb", selector=selector, minAvailable=1))
    assert sums(rig) == (0, 0, 1, 0)

    rig.sync(pod("a", labels={}))

    assert sums(rig) == (0, 1, 1, 1)


@pytest.mark.upstream(57)
def test_a_selector_that_is_replaced_or_patched_counts_as_it_is_then() -> None:
    rig = rig_of(budget("pdb", minAvailable=0), pod("a"), pod("b", labels={"tier": "front"}), pod("c", labels={}))
    assert sums(rig) == (1, 1, 0, 1)

    patch = {"spec": {"selector": {"matchLabels": {"app": None, "tier": "front"}}}}
    rig.store.patch("PodDisruptionBudget", "default/pdb", patch, "merge")
    rig.settle()
    assert sums(rig) == (1, 1, 0, 1)
    rig.sync(pod("a", ready=False), pod("a"))
    assert sums(rig) == (1, 1, 0, 1)
    rig.sync(pod("b", labels=WEB))
    assert sums(rig) == (0, 0, 0, 0)
    rig.sync(budget("pdb", selector={}, minAvailable=0))
    assert sums(rig) == (3, 3, 0, 3)


def test_every_budget_over_a_pod_counts_it() -> None:
    rig = rig_of(budget("one", minAvailable=0), budget("two", selector={}, minAvailable=0), pod("a"), pod("b"))

    rig.delete("Pod", "a")
    rig.settle()

    assert sums(rig, "one") == sums(rig, "two") == (1, 1, 0, 1)


def test_pods_that_are_not_ready_terminating_or_gone_are_not_healthy() -> None:
    rig = rig_of(budget("pdb", minAvailable=1), pod("a"), pod("b"), pod("c", ready=False), pod("d"))
    assert sums(rig) == (2, 3, 1, 4)

    rig.delete("Pod", "a", grace_seconds=30)
    rig.settle()
    assert sums(rig) == (1, 2, 1, 4)
    rig.delete("Pod", "a", grace_seconds=0)
    rig.delete("Pod", "b", grace_seconds=0)
    rig.settle()
    assert sums(rig) == (0, 1, 1, 2)


# What the status says besides


def test_the_condition_moves_when_its_status_does_and_others_stay() -> None:
    other = {
        "type": "Existing",
        "status": "True",
        "reason": "Test",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    rig = rig_of({**budget("pdb", minAvailable=1), "status": {"conditions": [other]}})
    first = condition(rig)
    assert (first["status"], first["reason"], first["observedGeneration"]) == ("False", "InsufficientPods", 1)
    assert first["lastTransitionTime"] == "2026-01-01T12:00:00Z"

    rig.wait(10)
    rig.sync(pod("a"))
    assert condition(rig) == first
    rig.sync(pod("b"))

    assert status(rig)["conditions"][0] == other
    assert (condition(rig)["status"], condition(rig)["reason"]) == ("True", "SufficientPods")
    assert condition(rig)["lastTransitionTime"] == "2026-01-01T12:00:10Z"


def test_the_status_says_which_spec_it_is_about() -> None:
    rig = rig_of(budget("pdb", minAvailable=1))

    rig.sync(budget("pdb", minAvailable=0))

    assert status(rig)["observedGeneration"] == condition(rig)["observedGeneration"] == 2


def test_a_budget_without_numbers_allows_nothing() -> None:
    assert sums(rig_of(budget("pdb"), pod("a"))) == (0, 1, 0, 0)


# The rate


def recorded(rig: Rig) -> list[Record]:
    return [action for action, _ in rig.log if isinstance(action, Record)]


def rated(rate: str) -> Raw:
    raw = budget("pdb", minAvailable=0)
    raw["metadata"]["annotations"] = {"podium.dev/max-disruptions": rate}
    return raw


def test_the_status_shows_what_a_rate_has_left_as_tokens_come_back() -> None:
    rig = rig_of(rated("2/1h"), *(pod(f"web-{number}") for number in range(4)))
    assert status(rig)["disruptionRate"] == {"max": "2/1h", "available": 2}

    assert rig.evict("web-0")
    assert rig.evict("web-1")
    assert not rig.evict("web-2")
    rig.settle()
    assert status(rig)["disruptionRate"]["available"] == 0
    assert not rig.controller.deadline().keeps_alive

    rig.wait(30 * 60 - 1)
    assert status(rig)["disruptionRate"]["available"] == 0
    rig.wait(1)
    assert status(rig)["disruptionRate"] == {
        "max": "2/1h",
        "available": 1,
        "lastDisruptions": ["pod web-1 was evicted at 2026-01-01T12:00:00Z"],
        "fullTime": "2026-01-01T13:00:00Z",
    }
    rig.wait(30 * 60)
    assert status(rig)["disruptionRate"]["available"] == 2
    assert rig.controller.deadline().time_ns is None


def test_an_event_about_the_budget_names_the_pods_that_used_its_rate_up() -> None:
    rig = rig_of(rated("2/1h"), *(pod(f"web-{number}") for number in range(4)))
    assert rig.evict("web-0")
    rig.settle()
    assert not [record for record in recorded(rig) if record.reason == "DisruptionRateUsedUp"]

    rig.store.delete("Pod", "default/web-1", now=rig.now)
    rig.settle()

    (event,) = [record for record in recorded(rig) if record.reason == "DisruptionRateUsedUp"]
    assert event.workload == "PodDisruptionBudget default/pdb"
    assert event.message == (
        "the rate of 2/1h disruptions is used up: pod web-0 was evicted at 2026-01-01T12:00:00Z; pod web-1 was deleted "
        "at 2026-01-01T12:00:00Z; evictions are refused until one comes back"
    )


def test_a_rate_is_a_limit_of_its_own() -> None:
    rig = rig_of(rated("1/1h"), pod("web-0"), pod("web-1"))

    assert rig.evict("web-0")
    rig.settle()

    assert status(rig)["disruptionRate"]["available"] == 0
    assert sums(rig) == (1, 1, 0, 2)
    assert not rig.evict("web-1")


def test_a_rate_comes_and_goes_and_changes_with_its_annotation() -> None:
    rig = rig_of(budget("pdb", minAvailable=0), *(pod(f"web-{number}") for number in range(4)))
    assert "disruptionRate" not in status(rig)

    rig.sync(rated("2/1h"))
    assert status(rig)["disruptionRate"] == {"max": "2/1h", "available": 2}
    assert rig.evict("web-0")
    rig.settle()
    rig.sync(rated("4/1h"))
    assert status(rig)["disruptionRate"] == {
        "max": "4/1h",
        "available": 2,
        "lastDisruptions": ["pod web-0 was evicted at 2026-01-01T12:00:00Z"],
        "fullTime": "2026-01-01T12:30:00Z",
    }
    rig.sync(budget("pdb", minAvailable=0))

    assert "disruptionRate" not in status(rig)
    assert rig.controller.deadline().time_ns is None


# What it costs


def test_a_pods_change_costs_the_budgets_over_it(monkeypatch: pytest.MonkeyPatch) -> None:
    others = [budget(f"other-{number}", selector={"matchLabels": {"app": f"{number}"}}) for number in range(20)]
    rig = rig_of(budget("pdb", minAvailable=0), *others, pod("a"), *(pod(f"{number}") for number in range(20)))
    judged: list[str] = []
    compute = TrackedBudget.status

    def spied(one: TrackedBudget, *args: Any) -> Raw:
        judged.append(one.object.metadata.name)
        return compute(one, *args)

    monkeypatch.setattr(TrackedBudget, "status", spied)
    rig.put({**pod("a"), "status": UNREADY})
    rig.see()
    rig.controller.handle(Tick(), rig.now)

    assert judged == ["pdb"]


def test_unrelated_events_cause_no_work() -> None:
    counting = budget("other", selector={"matchLabels": {"app": "other"}}, maxUnavailable=1)
    owner = replica_set("rs", 1)
    rig = rig_of(budget("pdb", minAvailable=0), counting, pod("a", owner=owner), owner)
    written = len(rig.log)

    rig.put(replica_set("rs", 2))
    rig.put(pod("b", labels={}))
    rig.see()

    assert rig.controller.deadline().time_ns is None
    assert len(rig.log) == written


def test_a_status_is_due_when_the_first_of_its_debits_expires() -> None:
    accepted = {"disruptedPods": {"a": "2026-01-01T12:00:30Z", "b": "2026-01-01T12:00:00Z"}}
    rig = rig_of({**budget("pdb", minAvailable=0), "status": accepted}, pod("a"), pod("b"))

    assert rig.controller.deadline().time_ns == rig.now + 120 * SECOND


def test_a_budget_that_goes_is_forgotten() -> None:
    rate = {"max": "1/1h", "available": 0, "fullTime": "2026-01-01T12:10:00Z"}
    accepted = {"disruptedPods": {"a": "2026-01-01T12:00:00Z"}, "disruptionRate": rate}
    rig = rig_of({**rated("1/1h"), "status": accepted}, pod("a"))
    assert rig.controller.deadline().time_ns == rig.now + 120 * SECOND

    rig.delete("PodDisruptionBudget", "pdb")
    rig.settle()

    assert rig.controller.deadline().time_ns is None
    rig.sync(pod("a", ready=False))
    assert len(rig.log) == 1


def test_a_replaced_budget_is_not_confused_with_its_namesake() -> None:
    rig = rig_of(budget("pdb", minAvailable=0), pod("a"))
    old = rig.store.get("PodDisruptionBudget", "default/pdb").object
    rig.delete("PodDisruptionBudget", "pdb")
    rig.sync(budget("pdb", minAvailable=1))

    rig.controller.handle(Deleted(old), rig.now)
    rig.sync(pod("b"))

    assert sums(rig) == (1, 2, 1, 2)


# Bounds on budgets


def test_an_existing_budget_beyond_the_bound_is_reported() -> None:
    pods = [pod(f"web-{number}") for number in range(3)]
    rig = rig_of(budget("pdb", minAvailable=3), *pods)
    assert sums(rig) == (0, 3, 3, 3)

    rig.sync(disruption_policy(budgetBounds=[{"minDisruptions": 1}]))

    assert sums(rig) == (1, 3, 2, 3)
    assert condition(rig)["message"] == (
        "the budget is stricter than the DisruptionPolicy allows: 2 pods must be up, not 3"
    )
    report = [(action.reason, action.pod) for action, _ in rig.log if isinstance(action, Record)]
    assert report == [("BudgetBounded", "default/web-0")]


def test_a_bound_follows_the_least_important_of_the_pods_and_ends_with_the_policy() -> None:
    bounds = [{"minPriority": 10, "minRate": "1/1h"}, {"minDisruptions": 1}]
    rig = rig_of(disruption_policy(budgetBounds=bounds), pod("web-0", priority=10), pod("web-1", priority=10))
    rig.sync(budget("pdb", minAvailable=2))
    assert sums(rig) == (0, 2, 2, 2)

    rig.sync(pod("web-2", priority=0))
    assert sums(rig) == (1, 3, 2, 3)
    rig.delete("Pod", "web-2")
    rig.sync()
    assert sums(rig) == (0, 2, 2, 2)
    assert condition(rig)["message"] == ""


def test_a_rate_that_is_too_low_is_raised_for_the_api_server_too() -> None:
    rate = {"annotations": {"podium.dev/max-disruptions": "1/24h"}}
    made = budget("pdb", minAvailable=0)
    strict = {**made, "metadata": {**made["metadata"], **rate, "uid": "was-there"}}
    pods = [pod(f"web-{number}") for number in range(3)]
    rig = rig_of(disruption_policy(budgetBounds=[{"minRate": "2/1h"}]), strict, *pods)

    assert status(rig)["disruptionRate"] == {"max": "2/1h", "available": 2, "atLeast": "2/1h"}
    for number in (0, 1):
        rig.store.evict(f"default/web-{number}", now=rig.now)
        rig.settle()
    with pytest.raises(StoreError, match="allows 2/1h disruptions, and they are used up"):
        rig.store.evict("default/web-2", now=rig.now)
