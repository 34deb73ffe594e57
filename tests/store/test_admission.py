"""Defaults and refusals at the creation of a pod or claim."""

from collections.abc import Callable

import pytest

from podium.api.policy import POLICY_ANNOTATION
from podium.store.errors import StoreError
from podium.store.store import Store
from tests.devices import claim, claim_template, request
from tests.store.objects import Raw, pod, priority_class


def admitted(raw: Raw, *classes: Raw) -> Raw:
    store = Store()
    for one in classes:
        store.create(one, now=0)
    return store.create(raw, now=0).raw


def priority_of(raw: Raw, *classes: Raw) -> tuple[int, str]:
    spec = admitted(raw, *classes)["spec"]
    return spec["priority"], spec["preemptionPolicy"]


def of_class(name: str, **spec: object) -> Raw:
    return pod("web", spec={"priorityClassName": name, **spec})


def test_a_pod_gets_namespace_grace_period_phase_and_scheduler() -> None:
    raw = admitted({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": pod("web")["spec"]})

    assert raw["metadata"]["namespace"] == "default"
    assert raw["spec"]["terminationGracePeriodSeconds"] == 30
    assert raw["spec"]["schedulerName"] == "default-scheduler"
    assert raw["status"]["phase"] == "Pending"


def test_priority_and_policy_come_from_the_class() -> None:
    high = priority_class("high", 1000, preemptionPolicy="Never")

    assert priority_of(of_class("high"), high) == (1000, "Never")


@pytest.mark.parametrize(
    ("name", "value"), [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)]
)
def test_every_cluster_has_the_system_classes(name: str, value: int) -> None:
    assert priority_of(of_class(name)) == (value, "PreemptLowerPriority")


def test_a_pod_without_a_class_has_the_default_class() -> None:
    raw = admitted(pod("web"), priority_class("usual", 50, globalDefault=True))

    assert raw["spec"]["priorityClassName"] == "usual"
    assert raw["spec"]["priority"] == 50


def test_the_lowest_of_several_default_classes_in_a_dump_is_used() -> None:
    classes = [priority_class(name, value, globalDefault=True) for name, value in (("b", 7), ("a", 9))]
    for one in classes:
        one["metadata"]["uid"] = one["metadata"]["name"]

    assert priority_of(pod("web"), *classes)[0] == 7


def test_without_any_class_the_priority_is_zero() -> None:
    assert priority_of(pod("web")) == (0, "PreemptLowerPriority")


def test_a_priority_without_a_class_is_kept() -> None:
    default = priority_class("usual", 50, globalDefault=True)

    assert priority_of(pod("web", priority=7, spec={"preemptionPolicy": "Never"}), default) == (7, "Never")


@pytest.mark.parametrize(("priority", "is_taken"), [(0, False), (7, False), (50, True)])
def test_clients_cannot_state_a_priority_that_no_class_gives(priority: int, is_taken: bool) -> None:
    store = Store()
    store.create(priority_class("usual", 50, globalDefault=True), now=0)
    raw = pod("web", priority=priority)

    if is_taken:
        assert store.create(raw, now=0, is_new=True).raw["spec"]["priority"] == priority
        return
    with pytest.raises(StoreError) as caught:
        store.create(raw, now=0, is_new=True)
    assert caught.value.status_message == (
        f'pods "web" is forbidden: the integer value of priority ({priority}) must not be provided in pod spec; '
        "priority admission controller computed 50 from the given PriorityClass name"
    )


def test_an_unknown_class_is_forbidden() -> None:
    with pytest.raises(StoreError, match="no PriorityClass with name high was found") as caught:
        admitted(of_class("high"))

    assert (caught.value.code, caught.value.reason) == (403, "Forbidden")


def test_a_level_of_a_policy_is_not_suggested_for_a_class_since_either_may_be_misspelled() -> None:
    level = priority_class("critcal", 1000, description="A level of DisruptionPolicy default")

    with pytest.raises(StoreError) as caught:
        admitted(of_class("critical"), level)
    assert "did you mean" not in caught.value.message
    assert caught.value.message.endswith(
        "; DisruptionPolicy default has the level critcal: correct the name that is misspelled"
    )

    with pytest.raises(StoreError, match=r"; did you mean critical-1\?$"):
        admitted(of_class("critical"), level, priority_class("critical-1", 500))


@pytest.mark.parametrize(("field", "value"), [("priority", 7), ("preemptionPolicy", "Never")])
def test_priorities_that_differ_from_the_class_are_forbidden(field: str, value: object) -> None:
    with pytest.raises(StoreError, match=f"{field} {value} is not that of PriorityClass high") as caught:
        admitted(of_class("high", **{field: value}), priority_class("high", 1000))

    assert caught.value.code == 403


def test_a_pod_from_a_dump_keeps_the_priority_it_was_given() -> None:
    raw = pod("web", metadata={"uid": "u1"}, priority=7, spec={"priorityClassName": "gone"})

    assert admitted(raw)["spec"]["priority"] == 7


SELECTOR = {"matchLabels": {"app": "web"}}
MERGED = {**SELECTOR, "matchExpressions": [{"key": "hash", "operator": "In", "values": ["x"]}]}


def spread(**fields: object) -> Raw:
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", **fields}
    return pod("web", labels={"hash": "x"}, spec={"topologySpreadConstraints": [constraint]})


def test_match_label_keys_of_a_spread_constraint_go_into_its_selector() -> None:
    raw = admitted(spread(labelSelector=SELECTOR, matchLabelKeys=["hash", "absent"]))

    assert raw["spec"]["topologySpreadConstraints"][0]["labelSelector"] == MERGED


def test_a_constraint_without_a_selector_gets_none() -> None:
    raw = admitted(spread(matchLabelKeys=["hash"]))

    assert "labelSelector" not in raw["spec"]["topologySpreadConstraints"][0]


def test_label_keys_of_a_pod_from_a_dump_were_merged_before() -> None:
    raw = spread(labelSelector=MERGED, matchLabelKeys=["hash"])
    raw["metadata"]["uid"] = "u1"

    assert admitted(raw)["spec"]["topologySpreadConstraints"][0]["labelSelector"] == MERGED


@pytest.mark.parametrize("kind", ["podAffinity", "podAntiAffinity"])
def test_label_keys_of_every_affinity_term_go_into_its_selector(kind: str) -> None:
    term = {"topologyKey": "zone", "labelSelector": SELECTOR, "matchLabelKeys": ["hash"]}
    other = {"topologyKey": "zone", "labelSelector": SELECTOR, "mismatchLabelKeys": ["hash"]}
    affinity = {
        "requiredDuringSchedulingIgnoredDuringExecution": [term],
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": other}],
    }

    merged = admitted(pod("web", labels={"hash": "x"}, spec={"affinity": {kind: affinity}}))["spec"]["affinity"][kind]

    required = merged["requiredDuringSchedulingIgnoredDuringExecution"][0]
    preferred = merged["preferredDuringSchedulingIgnoredDuringExecution"][0]["podAffinityTerm"]
    assert required["labelSelector"] == MERGED
    assert preferred["labelSelector"]["matchExpressions"] == [{"key": "hash", "operator": "NotIn", "values": ["x"]}]


def annotated(policy: str) -> Raw:
    return {"annotations": {POLICY_ANNOTATION: policy}}


def test_a_policy_that_an_annotation_of_the_class_names_becomes_the_pods_own() -> None:
    high = priority_class("high", 1000, metadata={"name": "high", **annotated("NonPreemptible")})

    raw = admitted({**of_class("high"), "metadata": {"name": "web", "annotations": {"a": "b"}}}, high)

    assert raw["metadata"]["annotations"] == {"a": "b", POLICY_ANNOTATION: "NonPreemptible"}
    assert raw["spec"]["preemptionPolicy"] == "PreemptLowerPriority"


def test_a_pod_may_write_down_the_annotation_of_its_class_and_no_other() -> None:
    high = priority_class("high", 1000, metadata={"name": "high", **annotated("NonPreemptible")})

    assert admitted(pod("web", spec={"priorityClassName": "high"}, **annotated("NonPreemptible")), high)
    with pytest.raises(StoreError, match="preemption-policy Never is not that of PriorityClass high") as caught:
        admitted(pod("web", spec={"priorityClassName": "high"}, **annotated("Never")), high)
    assert caught.value.code == 403


def test_a_pod_of_a_class_without_the_annotation_keeps_its_own() -> None:
    raw = admitted(pod("web", spec={"priorityClassName": "high"}, **annotated("Never")), priority_class("high", 1000))

    assert raw["metadata"]["annotations"] == {POLICY_ANNOTATION: "Never"}


@pytest.mark.parametrize(
    ("given", "policy"),
    [(pod("web"), "NonPreemptible"), (pod("web", **annotated("Never")), "Never"), (pod("web", priority=7), None)],
    ids=["plain", "with an annotation", "with a priority"],
)
def test_the_annotation_of_the_default_class_is_for_pods_that_say_nothing(given: Raw, policy: str | None) -> None:
    metadata = {"name": "usual", **annotated("NonPreemptible")}
    usual = priority_class("usual", 50, globalDefault=True, metadata=metadata)

    assert admitted(given, usual)["metadata"].get("annotations", {}).get(POLICY_ANNOTATION) == policy


def test_a_pod_from_a_dump_keeps_the_annotations_it_has() -> None:
    high = priority_class("high", 1000, metadata={"name": "high", **annotated("NonPreemptible")})

    raw = admitted(pod("web", metadata={"uid": "u1"}, priority=1000, spec={"priorityClassName": "high"}), high)

    assert "annotations" not in raw["metadata"]


def test_admitted_pods_keep_their_values_when_their_class_changes() -> None:
    store = Store()
    high = store.create(priority_class("high", 1000, metadata={"name": "high", **annotated("NonPreemptible")}), now=0)
    before = store.create(of_class("high"), now=0)

    changed = {**high.raw, "metadata": {**high.raw["metadata"], **annotated("Never")}, "description": "new"}
    store.update(changed)
    store.delete("PriorityClass", "high", now=0)

    assert store.get("Pod", before.key) is before
    updated = store.update({**before.raw, "metadata": {**before.raw["metadata"], "labels": {"a": "b"}}})
    assert updated.raw["spec"] == before.raw["spec"]
    assert updated.raw["metadata"]["annotations"] == before.raw["metadata"]["annotations"]


def test_a_missing_priority_class_is_reported_with_a_suggestion() -> None:
    """`Critical` is how people write it in a DisruptionPolicy, whose classes have small letters."""
    store = Store()
    for name in ("critical", "normal"):
        store.create(priority_class(name, 1), now=0)

    for name in ("Critical", "crtical"):
        with pytest.raises(StoreError, match="did you mean critical"):
            store.create(pod("a", spec={"priorityClassName": name}), now=0)


@pytest.mark.parametrize(("make", "place"), [(claim, "spec"), (claim_template, "spec.spec")])
def test_claims_of_administrators_need_a_label_of_their_namespace(make: Callable[..., Raw], place: str) -> None:
    store = Store()
    store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}, now=0)
    raw = make("c", request("one"), request("two", adminAccess=True))
    raw["metadata"].pop("uid", None)

    with pytest.raises(StoreError) as refused:
        store.create(raw, now=0, is_new=True)

    path = f"{place}.devices.requests[1].exactly.adminAccess"
    label = "resource.kubernetes.io/admin-access"
    assert refused.value.code == 422
    assert f"{path}: Forbidden: admin access to devices requires the `{label}: true` label" in str(refused.value)

    store.patch("Namespace", "default", {"metadata": {"labels": {label: "true"}}}, "merge")
    store.create(raw, now=0, is_new=True)
