"""Quotas: the limits of a namespace at admission, and its usage."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from podium.api.policy import ResourceQuota
from podium.store.admission.quotas import is_counted
from podium.store.errors import StoreError
from podium.store.store import Store
from podium.store.stored import Stored
from tests.pod_statuses import set_pod_status
from tests.store.objects import Raw, pod, priority_class, quota
from tests.store.refusals import answer, refusal


def used(store: Store, name: str = "all") -> Raw:
    status: Raw = store.get("ResourceQuota", f"default/{name}").raw["status"]
    assert status["hard"] == store.get("ResourceQuota", f"default/{name}").raw["spec"]["hard"]
    amounts: Raw = status["used"]
    return amounts


def asking(name: str, requests: Raw, limits: Raw | None = None, **more: Any) -> Raw:
    container = {"name": "main", "resources": {"requests": requests, "limits": limits or {}}}
    return pod(name, **{**more, "spec": {"containers": [container], **more.get("spec", {})}})


def of_class(name: str, class_name: str, **more: Any) -> Raw:
    return pod(name, spec={"priorityClassName": class_name}, **more)


def by_priority(operator: str, *values: str) -> Raw:
    requirement = {"scopeName": "PriorityClass", "operator": operator}
    return {"matchExpressions": [{**requirement, "values": list(values)} if values else requirement]}


def store_with(*objects: Raw) -> Store:
    store = Store()
    for raw in (priority_class("high", 100), priority_class("low", 1), *objects):
        store.create(raw, now=0)
    return store


def test_a_new_quota_counts_what_is_there() -> None:
    store = store_with(pod("a"), pod("b", status={"phase": "Succeeded"}), pod("c", namespace="shop"))

    store.create(quota("all", {"pods": 1, "count/pods": 1, "requests.cpu": "500m", "resourcequotas": 2}), now=0)

    assert used(store) == {"count/pods": "2", "pods": "1", "requests.cpu": "1", "resourcequotas": "1"}
    store.update(quota("all", {"resourcequotas": 5}))
    assert used(store) == {"resourcequotas": "1"}


def test_a_pod_that_is_resized_uses_the_most_of_what_it_wants_and_was_given() -> None:
    given = {"name": "main", "resources": {"requests": {"cpu": 2}}, "allocatedResources": {"cpu": 2}}
    resized = asking("a", {"cpu": 1}, node="n1", status={"phase": "Running", "containerStatuses": [given]})

    store = store_with(resized, quota("all", {"requests.cpu": 9}))
    assert used(store) == {"requests.cpu": "2"}

    # What it gave back is free as soon as its kubelet says so.
    given = {"name": "main", "resources": {"requests": {"cpu": 1}}, "allocatedResources": {"cpu": 1}}
    set_pod_status(store, "default/a", {"phase": "Running", "containerStatuses": [given]}, [], now=0)
    assert used(store) == {"requests.cpu": "1"}


def test_a_pod_that_does_not_fit_is_forbidden_with_what_is_used_and_what_is_allowed() -> None:
    store = store_with(quota("all", {"requests.cpu": "1500m", "requests.memory": "1Gi", "pods": 5}))
    store.create(asking("a", {"cpu": 1, "memory": "512Mi"}), now=0)

    error = refusal(store, lambda: store.create(asking("b", {"cpu": "600m", "memory": "1Gi"}), now=0))

    assert answer(error) == (403, "Forbidden")
    assert error.message == (
        "Pod default/b is forbidden: exceeded quota: all, requested: requests.cpu=600m,requests.memory=1Gi, "
        "used: requests.cpu=1,requests.memory=512Mi, limited: requests.cpu=1500m,requests.memory=1Gi"
    )


def test_quota_usage_is_correct_at_every_version() -> None:
    store = store_with(quota("all", {"pods": 2}))

    store.create(pod("a"), now=0)

    # The quota comes first: no version shows a pod that is not counted.
    assert [event.stored.kind for event in store.events_since(3)] == ["ResourceQuota", "Pod"]
    assert used(store) == {"pods": "1"}


def test_a_pod_that_ends_releases_all_but_its_object() -> None:
    store = store_with(quota("all", {"pods": 1, "count/pods": 2, "cpu": 1}), pod("a", node="n1"))

    set_pod_status(store, "default/a", {"phase": "Failed"}, [], now=0)

    assert used(store) == {"count/pods": "1", "cpu": "0", "pods": "0"}
    store.create(pod("b"), now=0)
    assert used(store) == {"count/pods": "2", "cpu": "1", "pods": "1"}


def test_a_deleted_pod_releases_when_it_is_gone() -> None:
    store = store_with(quota("all", {"pods": 1}), pod("a", node="n1"))

    store.delete("Pod", "default/a", now=0)
    assert used(store) == {"pods": "1"}
    store.delete("Pod", "default/a", now=0, grace_seconds=0)
    assert used(store) == {"pods": "0"}


def test_binding_and_status_change_no_quota() -> None:
    store = store_with(quota("all", {"pods": 1, "cpu": 1}), pod("a"))
    before = store.get("ResourceQuota", "default/all")

    store.bind("default/a", "n1", now=0)
    set_pod_status(store, "default/a", {"phase": "Running"}, [], now=0)

    assert store.get("ResourceQuota", "default/all") is before


@pytest.mark.parametrize(
    ("selector", "counted"),
    [
        (by_priority("In", "high"), {"a-high"}),
        (by_priority("NotIn", "high"), {"a-low", "without"}),
        (by_priority("Exists"), {"a-high", "a-low"}),
        (by_priority("DoesNotExist"), {"without"}),
    ],
)
def test_a_quota_by_priority_counts_the_pods_of_its_classes(selector: Raw, counted: set[str]) -> None:
    store = store_with(quota("all", {"pods": 9}, scopeSelector=selector))

    for raw in (of_class("a-high", "high"), of_class("a-low", "low"), pod("without")):
        before = used(store)
        store.create(raw, now=0)
        assert (used(store) != before) == (raw["metadata"]["name"] in counted)


def test_a_quota_on_high_priority_leaves_low_priority_alone() -> None:
    store = store_with(quota("all", {"pods": 1}, scopeSelector=by_priority("In", "high")))
    store.create(of_class("a", "high"), now=0)

    assert answer(refusal(store, lambda: store.create(of_class("b", "high"), now=0))) == (403, "Forbidden")
    store.create(of_class("b", "low"), now=0)
    store.create(of_class("b", "high", namespace="shop"), now=0)


DEADLINE = {"activeDeadlineSeconds": 60}
ELSEWHERE = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}}
ELSEWHERE["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]["namespaces"] = ["shop"]  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("scope", "inside", "outside"),
    [
        ("BestEffort", asking("a", {}), asking("b", {"cpu": 1})),
        ("NotBestEffort", asking("a", {}, {"memory": "1Gi"}), asking("b", {})),
        ("Terminating", pod("a", spec=DEADLINE), pod("b")),
        ("NotTerminating", pod("a"), pod("b", spec=DEADLINE)),
        ("PriorityClass", of_class("a", "low"), pod("b")),
        ("CrossNamespacePodAffinity", pod("a", spec={"affinity": ELSEWHERE}), pod("b")),
    ],
)
def test_a_scope_limits_a_quota_to_some_pods(scope: str, inside: Raw, outside: Raw) -> None:
    exists = {"matchExpressions": [{"scopeName": scope, "operator": "Exists"}]}
    store = store_with(quota("all", {"pods": 1}, scopes=[scope]), quota("selecting", {"pods": 1}, scopeSelector=exists))

    store.create(outside, now=0)
    assert used(store) == used(store, "selecting") == {"pods": "0"}
    store.create(inside, now=0)
    assert used(store) == used(store, "selecting") == {"pods": "1"}


def test_a_deadline_that_is_added_moves_a_pod_to_another_quota() -> None:
    store = store_with(
        quota("all", {"pods": 1}, scopes=["Terminating"]), quota("long", {"pods": 9}, scopes=["NotTerminating"])
    )
    store.create(pod("a", spec=DEADLINE), now=0)
    store.create(pod("b"), now=0)
    patch = {"spec": DEADLINE}

    error = refusal(store, lambda: store.patch("Pod", "default/b", patch, "merge"))
    assert "exceeded quota: all" in error.message

    store.delete("Pod", "default/a", now=0)
    store.patch("Pod", "default/b", patch, "merge")
    assert (used(store), used(store, "long")) == ({"pods": "1"}, {"pods": "0"})


@pytest.mark.parametrize(
    ("hard", "raw", "missing"),
    [
        ({"requests.cpu": 9}, asking("a", {"memory": "1Gi"}), "requests.cpu for: main"),
        ({"cpu": 9, "limits.memory": "9Gi"}, asking("a", {}), "cpu for: main; limits.memory for: main"),
        ({"limits.cpu": 9}, asking("a", {"cpu": 1}), "limits.cpu for: main"),
    ],
)
def test_a_pod_names_what_a_quota_limits(hard: Raw, raw: Raw, missing: str) -> None:
    store = store_with(quota("all", hard))

    error = refusal(store, lambda: store.create(raw, now=0))

    assert error.message == f"Pod default/a is forbidden: failed quota: all: must specify {missing}"


def test_a_pod_that_was_there_before_a_quota_need_not_name_what_it_limits_when_it_is_updated() -> None:
    store = store_with(asking("a", {"memory": "1Gi"}))
    store.create(quota("all", {"requests.cpu": 9, "requests.memory": "9Gi"}), now=0)
    before = store.get("Pod", "default/a").raw

    tolerations = [*before["spec"]["tolerations"], {"operator": "Exists"}]
    store.update({**before, "spec": {**before["spec"], "tolerations": tolerations}})

    assert used(store) == {"requests.cpu": "0", "requests.memory": "1Gi"}


def test_a_limit_stands_for_a_request_and_pod_level_resources_for_all_containers() -> None:
    store = store_with(quota("all", {"requests.cpu": 9, "limits.cpu": 9}))

    store.create(asking("a", {}, {"cpu": 2}), now=0)
    whole = {"resources": {"requests": {"cpu": 1}, "limits": {"cpu": 3}}}
    store.create(asking("b", {}, spec=whole), now=0)

    assert used(store) == {"limits.cpu": "5", "requests.cpu": "3"}
    store.create(quota("memory", {"requests.memory": 9}), now=0)
    store.create(asking("c", {}, spec=whole), now=0)
    assert used(store, "memory") == {"requests.memory": "0"}
    assert refusal(store, lambda: store.create(asking("d", {"cpu": 1}, {"cpu": 1}), now=0)).code == 403


def test_limits_overhead_sidecars_and_devices_count_as_the_pod_uses_them() -> None:
    names = ["cpu", "limits.cpu", "memory", "requests.example.com/gpu", "requests.hugepages-2Mi", "hugepages-2Mi"]
    store = store_with(quota("all", dict.fromkeys(names, "64Gi")))
    sizes = {"cpu": "100m", "memory": "100Mi", "hugepages-2Mi": "4Mi", "example.com/gpu": 1}
    main = {"name": "main", "resources": {"requests": sizes, "limits": {**sizes, "cpu": "200m"}}}
    setup = {"name": "setup", "resources": {"requests": {"cpu": 1, "memory": "10Mi"}, "limits": {"cpu": 1}}}
    spec = {"containers": [main], "initContainers": [setup], "overhead": {"cpu": "50m", "memory": "10Mi"}}

    store.create(pod("a", spec=spec), now=0)

    assert used(store) == {
        "cpu": "1050m",
        "hugepages-2Mi": "4Mi",
        "limits.cpu": "1050m",
        "memory": "110Mi",
        "requests.example.com/gpu": "1",
        "requests.hugepages-2Mi": "4Mi",
    }


def claim(name: str, storage: str) -> Raw:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}


def test_any_kind_is_counted() -> None:
    hard = {"count/jobs.batch": 1, "persistentvolumeclaims": 2, "requests.storage": "3Gi", "secrets": 0}
    store = store_with(quota("all", hard))
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}

    store.create(job, now=0)
    store.create(claim("a", "1Gi"), now=0)

    assert used(store) == {
        "count/jobs.batch": "1",
        "persistentvolumeclaims": "1",
        "requests.storage": "1Gi",
        "secrets": "0",
    }
    for raw in ({**job, "metadata": {"name": "b"}}, claim("b", "2049Mi"), secret):
        assert "exceeded quota: all" in refusal(store, lambda raw=raw: store.create(raw, now=0)).message  # type: ignore[misc]


def test_a_lowered_quota_evicts_no_pod_and_admits_none() -> None:
    store = store_with(quota("all", {"pods": 3, "count/pods": 3}), pod("a"), pod("b"), pod("c", node="n1"))

    store.update(quota("all", {"pods": 1, "count/pods": 1}))
    assert used(store) == {"count/pods": "3", "pods": "3"}
    set_pod_status(store, "default/c", {"phase": "Failed"}, [], now=0)
    store.delete("Pod", "default/a", now=0)
    assert used(store) == {"count/pods": "2", "pods": "1"}

    assert answer(refusal(store, lambda: store.create(pod("d"), now=0))) == (403, "Forbidden")


def test_a_written_status_of_a_quota_stays_until_the_usage_is_counted_again() -> None:
    store = store_with(quota("all", {"pods": 2}), pod("a"))
    stored = store.get("ResourceQuota", "default/all")

    written = store.update_status({**stored.raw, "status": {"hard": {"pods": "9"}}})
    assert written.raw["status"] == {"hard": {"pods": "9"}}
    store.update(written.raw)
    assert used(store) == {"pods": "1"}


def test_a_quota_counts_node_ports_and_load_balancers() -> None:
    limits = {"services": 9, "services.nodeports": 3, "services.loadbalancers": 1}
    store = store_with(quota("all", limits))

    def service(name: str, type_: str, ports: int, **spec: Any) -> Raw:
        listed = [{"name": f"p{port}", "port": 80 + port, "protocol": "TCP"} for port in range(ports)]
        metadata = {"name": name, "namespace": "default"}
        return {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata,
            "spec": {"type": type_, "ports": listed, **spec},
        }

    store.create(service("plain", "ClusterIP", 2), now=0)
    store.create(service("ports", "NodePort", 2), now=0)
    store.create(service("balanced", "LoadBalancer", 5, allocateLoadBalancerNodePorts=False), now=0)

    assert used(store) == {"services": "3", "services.nodeports": "2", "services.loadbalancers": "1"}
    assert refusal(store, lambda: store.create(service("more", "NodePort", 2), now=0)).code == 403


def claimed(name: str, **spec: Any) -> Raw:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec},
    }


def test_a_quota_counts_claims_of_a_storage_class() -> None:
    gold = "gold.storageclass.storage.k8s.io"
    store = store_with(quota("all", {f"{gold}/persistentvolumeclaims": 2, f"{gold}/requests.storage": "5Gi"}))

    store.create(claimed("a", storageClassName="gold"), now=0)
    store.create(claimed("b", storageClassName="silver"), now=0)

    assert used(store) == {f"{gold}/persistentvolumeclaims": "1", f"{gold}/requests.storage": "1Gi"}


def test_a_quota_counts_devices_by_their_class() -> None:
    gpus = "gpu.deviceclass.resource.k8s.io/devices"
    store = store_with(quota("all", {gpus: 40}))
    requests = [
        {"name": "a", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2}},
        {"name": "b", "firstAvailable": [{"name": "c", "deviceClassName": "gpu", "count": 3}]},
    ]
    metadata = {"name": "a", "namespace": "default"}
    spec = {"devices": {"requests": requests}}

    claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata, "spec": spec}
    store.create(claim, now=0)

    assert used(store) == {gpus: "5"}


def test_devices_also_count_by_the_names_by_which_pods_request_them() -> None:
    by_name = "requests.deviceclass.resource.kubernetes.io/gpu"
    gpus = "gpu.deviceclass.resource.k8s.io/devices"
    store = store_with(quota("all", {gpus: 9, by_name: 9}))
    spec = {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "gpu", "count": 2}}]}}
    kind = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "spec": spec}

    store.create({**kind, "metadata": {"name": "a", "namespace": "default"}}, now=0)
    assert used(store) == {gpus: "2", by_name: "2"}

    asked = {by_name.removeprefix("requests."): 2}
    store.create(asking("b", asked, asked), now=0)
    annotations = {"resource.kubernetes.io/extended-resource-claim": "true"}
    store.create({**kind, "metadata": {"name": "b", "namespace": "default", "annotations": annotations}}, now=0)
    assert used(store) == {gpus: "4", by_name: "4"}


def test_a_quota_of_a_volume_attributes_class_counts_its_claims_alone() -> None:
    requirement = {"scopeName": "VolumeAttributesClass", "operator": "In", "values": ["fast"]}
    limited = quota("all", {"persistentvolumeclaims": 1}, scopeSelector={"matchExpressions": [requirement]})
    store = store_with(limited)

    store.create(claimed("a", volumeAttributesClassName="fast"), now=0)
    store.create(claimed("b", volumeAttributesClassName="slow"), now=0)
    store.create(pod("c"), now=0)

    assert used(store) == {"persistentvolumeclaims": "1"}
    assert refusal(store, lambda: store.create(claimed("d", volumeAttributesClassName="fast"), now=0)).code == 403


def test_several_quotas_must_all_have_room() -> None:
    store = store_with(quota("all", {"pods": 2}), quota("high", {"pods": 0}, scopeSelector=by_priority("In", "high")))

    assert "exceeded quota: high" in refusal(store, lambda: store.create(of_class("a", "high"), now=0)).message
    assert used(store) == {"pods": "0"}


class Tenants(RuleBasedStateMachine):
    """Pods come, end and go; the quotas' books must agree with a count from scratch."""

    @initialize()
    def begin(self) -> None:
        self.store = store_with(
            quota("all", {"pods": 4, "count/pods": 6, "requests.cpu": "2500m"}),
            quota("high", {"pods": 2}, scopeSelector=by_priority("In", "high")),
        )

    def attempt(self, change: Any) -> None:
        with suppress(StoreError):
            change()

    @rule(name=st.sampled_from("abcdefg"), cpu=st.sampled_from(["250m", "1", "1500m"]), high=st.booleans())
    def create(self, name: str, cpu: str, high: bool) -> None:
        raw = pod(name, cpu=cpu, spec={"priorityClassName": "high" if high else "low"}, node="n1")
        self.attempt(lambda: self.store.create(raw, now=0))

    @rule(name=st.sampled_from("abcdefg"))
    def end(self, name: str) -> None:
        self.attempt(lambda: set_pod_status(self.store, f"default/{name}", {"phase": "Failed"}, [], now=0))

    @rule(name=st.sampled_from("abcdefg"), grace=st.sampled_from([0, None]))
    def delete(self, name: str, grace: int | None) -> None:
        self.attempt(lambda: self.store.delete("Pod", f"default/{name}", now=0, grace_seconds=grace))

    @invariant()
    def books_agree_and_no_limit_is_exceeded(self) -> None:
        pods = [stored.raw for stored in self.store.objects("Pod")]
        alive = [raw for raw in pods if raw["status"]["phase"] != "Failed"]
        milli = {"250m": 250, "1": 1_000, "1500m": 1_500}
        cpu = sum(milli[raw["spec"]["containers"][0]["resources"]["requests"]["cpu"]] for raw in alive)
        high = [raw for raw in alive if raw["spec"]["priorityClassName"] == "high"]
        assert used(self.store, "high") == {"pods": str(len(high))}
        counted = used(self.store)
        assert (counted["pods"], counted["count/pods"]) == (str(len(alive)), str(len(pods)))
        assert counted["requests.cpu"] in (f"{cpu}m", str(cpu / 1_000).removesuffix(".0"))
        assert len(alive) <= 4
        assert len(pods) <= 6
        assert cpu <= 2_500
        assert len(high) <= 2


TestTenants = Tenants.TestCase


def test_a_pod_that_was_there_before_its_quota_may_be_changed_though_it_names_nothing() -> None:
    """Only new pods must name these fields."""
    store = store_with(pod("a", spec={"containers": [{"name": "main", "image": "i:1"}]}))
    store.create(quota("all", {"requests.cpu": 1, "pods": 5}), now=0)
    before = store.get("Pod", "default/a").raw

    store.update({**before, "spec": {**before["spec"], "activeDeadlineSeconds": 60}})
    with pytest.raises(StoreError, match=r"must specify requests\.cpu for: main"):
        store.create(pod("b", spec={"containers": [{"name": "main"}]}), now=0)

    assert used(store) == {"pods": "1", "requests.cpu": "0"}


def test_a_write_looks_at_the_quotas_of_its_own_namespace_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = [quota("all", {"pods": 5}) for _ in range(50)]
    for number, one in enumerate(elsewhere):
        one["metadata"] = {**one["metadata"], "namespace": f"team-{number}"}
    store = store_with(*elsewhere, quota("all", {"pods": 5}))
    looked_at: list[str] = []

    def counted(one: ResourceQuota, stored: Stored) -> bool:
        looked_at.append(one.key)
        return is_counted(one, stored)

    monkeypatch.setattr("podium.store.admission.quotas.is_counted", counted)
    store.create(pod("a"), now=0)

    assert looked_at == ["default/all"]
