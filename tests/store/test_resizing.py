"""What a resize of a pod in place may change: ValidatePodResize, LimitRanger and PodResizeValidator of Kubernetes."""

from __future__ import annotations

from typing import Any

import pytest

from podium.store.errors import StoreError
from podium.store.store import Store
from podium.store.stored import Stored
from podium.store.verbs.updates import with_resources
from tests.store.objects import Raw, node, pod


def sized(requests: Raw | None = None, limits: Raw | None = None, **fields: Any) -> Raw:
    resources = {name: amounts for name, amounts in (("requests", requests), ("limits", limits)) if amounts}
    return {"name": "main", "image": "app:1", "resources": resources, **fields}


def stored(store: Store, *containers: Raw, **spec: Any) -> Stored:
    raw = pod("web")
    raw["spec"] |= {"containers": list(containers), **spec}
    return store.create(raw, now=0)


def resized(store: Store, *containers: Raw, **spec: Any) -> Stored:
    raw = store.get("Pod", "default/web").raw
    changed = {**raw["spec"], "containers": list(containers), **spec}
    return store.update_part({**raw, "spec": changed}, with_resources)


def problems(before: list[Raw], after: list[Raw], was: Raw | None = None, now: Raw | None = None) -> list[str]:
    """Return the field and the text of each cause of a refusal."""
    store = Store()
    stored(store, *before, **(was or {}))
    with pytest.raises(StoreError) as caught:
        resized(store, *after, **(now or {}))
    assert caught.value.code == 422
    return [f"{cause['field']}: {cause['message']}" for cause in caught.value.details["causes"]]


ONE = {"cpu": "1", "memory": "1Gi"}
TWO = {"cpu": "2", "memory": "2Gi"}
CLASS = "Pod QOS Class may not change as a result of resizing"


def test_a_resize_changes_cpu_and_memory_and_nothing_else() -> None:
    store = Store()
    stored(store, sized(ONE, TWO))

    after = resized(store, sized(TWO, {"cpu": "4", "memory": "4Gi"}, image="other:1"), terminationGracePeriodSeconds=7)

    [main] = after.raw["spec"]["containers"]
    assert main["resources"] == {"requests": TWO, "limits": {"cpu": "4", "memory": "4Gi"}}
    assert main["image"] == "app:1"
    assert after.raw["spec"]["terminationGracePeriodSeconds"] == 30


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ([sized()], [sized(ONE)], [f'spec: Invalid value: "Burstable": {CLASS}']),
        ([sized(ONE, TWO)], [sized(TWO, TWO)], [f'spec: Invalid value: "Guaranteed": {CLASS}']),
        (
            [sized(ONE, ONE)],
            [sized(ONE)],
            [
                f'spec: Invalid value: "Burstable": {CLASS}',
                "spec.containers[0].resources.limits: Forbidden: resource limits cannot be removed",
            ],
        ),
        (
            [sized(ONE)],
            [sized({"cpu": "1"})],
            ["spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed"],
        ),
        (
            [sized({"cpu": "1", "ephemeral-storage": "1"})],
            [sized({"cpu": "1", "ephemeral-storage": "3"})],
            ["spec: Forbidden: only cpu and memory resources are mutable"],
        ),
        (
            [sized(ONE, resizePolicy=[{"resourceName": "cpu", "restartPolicy": "NotRequired"}])],
            [sized(ONE, resizePolicy=[{"resourceName": "cpu", "restartPolicy": "RestartContainer"}])],
            ["spec: Forbidden: only cpu and memory resources are mutable"],
        ),
        (
            [sized(ONE), sized(ONE, name="side")],
            [sized(ONE, name="side"), sized(ONE)],
            [
                f"spec.containers[{index}].name: Forbidden: containers may not be renamed or reordered on resize"
                for index in (0, 1)
            ],
        ),
        (
            [sized(ONE)],
            [sized(ONE), sized(ONE, name="new")],
            ["spec.containers: Forbidden: containers may not be added or removed on resize"],
        ),
    ],
)
def test_a_resize_is_refused_with_each_field_that_it_may_not_change(
    before: list[Raw], after: list[Raw], said: list[str]
) -> None:
    assert problems(before, after) == said


def test_init_containers_restart_for_no_resize_unless_they_are_sidecars() -> None:
    policy = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
    setup = sized({"cpu": "1"}, name="setup", resizePolicy=policy)
    changed = sized({"cpu": "2"}, name="setup", resizePolicy=policy)

    said = problems([sized(ONE)], [sized(ONE)], {"initContainers": [setup]}, {"initContainers": [changed]})

    text = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
    assert said == [f"spec.initContainers[0]: Forbidden: {text}"]


def test_pod_level_resources_are_not_removed() -> None:
    whole = {"resources": {"requests": ONE, "limits": TWO}}

    said = problems([sized()], [sized()], whole, {"resources": {"requests": ONE}})

    assert said == ["spec.resources.limits: Forbidden: pod-level resource limits cannot be removed"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}}, "static pods cannot be resized"),
        ({"spec": {"os": {"name": "windows"}}}, "windows pods cannot be resized"),
    ],
)
def test_static_and_windows_pods_are_not_resized(change: Raw, said: str) -> None:
    store = Store()
    raw = pod("web", cpu=1, node="n1")
    store.create({**raw, **{name: raw[name] | fields for name, fields in change.items()}}, now=0)

    with pytest.raises(StoreError, match=said):
        resized(store, sized({"cpu": "2"}))


def test_a_container_that_runs_without_reported_resources_is_not_resized() -> None:
    """Its node does not support that."""
    store = Store()
    stored(store, sized(ONE))
    running = {"name": "main", "ready": True, "restartCount": 0, "image": "", "imageID": ""}
    running |= {"state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}
    raw = store.get("Pod", "default/web").raw
    store.update_status({**raw, "status": {**raw["status"], "containerStatuses": [running]}})

    with pytest.raises(StoreError, match="Pod running on node without support for resize"):
        resized(store, sized(TWO))


def test_a_resize_stays_within_the_limit_ranges() -> None:
    store = Store()
    stored(store, sized(ONE))
    limits = [{"type": "Container", "min": {"memory": "512Mi"}}]
    store.create(
        {
            "apiVersion": "v1",
            "kind": "LimitRange",
            "metadata": {"name": "a", "namespace": "default"},
            "spec": {"limits": limits},
        },
        now=0,
    )

    with pytest.raises(StoreError, match="minimum memory usage per Container is 512Mi, but request is 256Mi") as caught:
        resized(store, sized({"cpu": "1", "memory": "256Mi"}))

    assert caught.value.code == 403


@pytest.mark.parametrize(
    ("node_name", "cpu", "problem", "causes"),
    [
        (
            "n1",
            "5",
            "node didn't have enough allocatable resources: cpu, requested: 5000, allocatable: 4000",
            "NodeCapacity",
        ),
        ("w1", "2", 'pod resize is only supported on linux nodes, node "w1" is "windows"', "UnsupportedPlatform"),
        ("gone", "2", 'node "gone" not found', ""),
    ],
)
def test_a_node_must_exist_run_linux_and_hold_a_resized_pod(
    node_name: str, cpu: str, problem: str, causes: str
) -> None:
    store = Store()
    store.create(node("n1", cpu=4), now=0)
    windows = {"metadata": {"name": "w1", "labels": {"kubernetes.io/os": "windows"}}}
    store.create({**node("w1", cpu=4), **windows}, now=0)
    stored(store, sized({"cpu": "1"}), nodeName=node_name)

    with pytest.raises(StoreError) as caught:
        resized(store, sized({"cpu": cpu}))

    assert caught.value.code == 403
    assert problem in str(caught.value)
    assert [cause["reason"] for cause in caught.value.details.get("causes", ())] == ([causes] if causes else [])
