"""The scale of a workload."""

from typing import Any

import pytest

from podium.store.patching import patched
from podium.store.store import Store
from podium.store.verbs.updates import SCALE, scale_of, scaled
from tests.store.objects import Raw, pod
from tests.store.refusals import answer, refusal

WORKLOADS = [
    ("apps/v1", "Deployment"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
    ("v1", "ReplicationController"),
]


def workload(api_version: str = "apps/v1", kind: str = "ReplicaSet", **spec: Any) -> Raw:
    selector = {"app": "web"}
    template = {"metadata": {"labels": selector}, "spec": pod("web")["spec"]}
    written = {"selector": selector if api_version == "v1" else {"matchLabels": selector}, "template": template, **spec}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "web"}, "spec": written}


@pytest.mark.parametrize(("api_version", "kind"), WORKLOADS)
def test_the_scale_contains_wanted_and_existing_pods_and_the_selector(api_version: str, kind: str) -> None:
    store = Store()
    stored = store.create({**workload(api_version, kind, replicas=3), "status": {"replicas": 2}}, now=0)

    scale = scale_of(store.get(kind, "default/web"))

    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert scale["spec"] == {"replicas": 3}
    assert scale["status"] == {"replicas": 2, "selector": "app=web"}
    assert scale["metadata"]["uid"] == stored.uid
    assert scale["metadata"]["resourceVersion"] == "1"


@pytest.mark.parametrize(("api_version", "kind"), WORKLOADS)
def test_a_scale_that_is_put_changes_the_replicas_alone(api_version: str, kind: str) -> None:
    store = Store()
    before = store.create(workload(api_version, kind), now=0)
    scale = scale_of(store.get(kind, "default/web"))

    after = store.update(scaled(store.get(kind, "default/web"), {**scale, "spec": {"replicas": 5}}))

    assert after.raw["spec"] == {**before.raw["spec"], "replicas": 5}
    assert after.object.metadata.generation == 2


def test_kubectl_scales_by_a_merge_patch() -> None:
    store = Store()
    before = store.create(workload(), now=0)

    scale = patched(SCALE, scale_of(before), {"spec": {"replicas": 4}}, "merge")

    assert store.update(scaled(before, scale)).raw["spec"]["replicas"] == 4


def test_b40_a_scale_of_an_old_version_conflicts() -> None:
    store = Store()
    store.create(workload(), now=0)
    scale = scale_of(store.get("ReplicaSet", "default/web"))
    store.patch("ReplicaSet", "default/web", {"spec": {"replicas": 4}}, "merge")

    error = refusal(store, lambda: store.update(scaled(store.get("ReplicaSet", "default/web"), scale)))
    assert answer(error) == (409, "Conflict")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"spec": {"replicas": -1}}, 422),
        ({"spec": {"replicas": "2"}}, 400),
        ({"spec": {"replicas": 2**40}}, 400),
        ({"spec": []}, 400),
        ({"metadata": {"name": "other"}}, 400),
        ({"kind": "Pod"}, 400),
    ],
)
def test_an_invalid_scale_is_rejected(change: Raw, code: int) -> None:
    store = Store()
    store.create(workload(), now=0)
    scale = {**scale_of(store.get("ReplicaSet", "default/web")), **change}

    assert refusal(store, lambda: store.update(scaled(store.get("ReplicaSet", "default/web"), scale))).code == code


def test_other_kinds_have_no_scale() -> None:
    store = Store()
    store.create(pod("web"), now=0)

    assert answer(refusal(store, lambda: scale_of(store.get("Pod", "default/web")))) == (404, "NotFound")
