"""Defaults and refusals of LimitRanges (plugin/pkg/admission/limitranger)."""

from __future__ import annotations

from typing import Any

import pytest

from podium.store.admission.pod_admission import ANNOTATION
from podium.store.errors import StoreError
from podium.store.store import Store
from tests.store.objects import Raw, pod


def limit_range(*limits: Raw, namespace: str = "default", name: str = "limits") -> Raw:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": {"limits": list(limits)}}


def of(type_: str, **parts: Raw) -> Raw:
    return {"type": type_, **parts}


def pod_of(*resources: Raw, **spec: Any) -> Raw:
    containers = [{"name": f"c{n}", "image": "a", "resources": one} for n, one in enumerate(resources)]
    return pod("web", spec={"containers": containers, **spec})


def created(raw: Raw, *ranges: Raw) -> Raw:
    store = Store()
    for one in ranges:
        store.create(one, now=0)
    return store.create(raw, now=0).raw


def refusal(raw: Raw, *ranges: Raw) -> str:
    with pytest.raises(StoreError) as caught:
        created(raw, *ranges)
    assert (caught.value.code, caught.value.reason) == (403, "Forbidden")
    return caught.value.message


CPU = of("Container", default={"cpu": "500m"}, defaultRequest={"cpu": "100m"})


@pytest.mark.parametrize(
    ("limits", "given", "requests", "limited"),
    [
        (CPU, {}, {"cpu": "100m"}, {"cpu": "500m"}),
        (CPU, {"requests": {"cpu": "200m"}}, {"cpu": "200m"}, {"cpu": "500m"}),
        # A limit of its own is the container's request too.
        (CPU, {"limits": {"cpu": "300m"}}, {}, {"cpu": "300m"}),
        (CPU, {"requests": {"memory": 1}}, {"cpu": "100m", "memory": 1}, {"cpu": "500m"}),
        # Without a default request the default limit, without that the maximum, and the minimum at last.
        (of("Container", default={"cpu": 1}), {}, {"cpu": 1}, {"cpu": 1}),
        (of("Container", max={"cpu": 2}), {}, {"cpu": 2}, {"cpu": 2}),
        (of("Container", min={"cpu": "50m"}), {}, {"cpu": "50m"}, {}),
    ],
)
def test_containers_get_what_they_leave_open(limits: Raw, given: Raw, requests: Raw, limited: Raw) -> None:
    raw = created(pod_of(given), limit_range(limits))

    resources = raw["spec"]["containers"][0]["resources"]
    assert (resources.get("requests", {}), resources.get("limits", {})) == (requests, limited)


def test_a_pod_says_what_was_filled_in() -> None:
    raw = created(pod_of({}, initContainers=[{"name": "i", "image": "a"}]), limit_range(CPU))

    assert raw["metadata"]["annotations"][ANNOTATION] == (
        "LimitRanger plugin set: cpu request for container c0; cpu limit for container c0; "
        "cpu request for init container i; cpu limit for init container i"
    )


def test_existing_requests_and_limits_are_kept() -> None:
    dumped = pod_of({}, nodeName="n1")
    assert created(dumped, limit_range(CPU))["spec"]["containers"] == dumped["spec"]["containers"]
    dumped = pod_of({})
    dumped["metadata"]["uid"] = "1"
    assert created(dumped, limit_range(CPU))["spec"]["containers"] == dumped["spec"]["containers"]
    assert created(pod_of({}), limit_range(CPU, namespace="other"))["spec"]["containers"][0]["resources"] == {}


BOUNDS = of("Container", min={"cpu": "100m"}, max={"cpu": 2}, default={"cpu": 1})
RATIO = of("Container", maxLimitRequestRatio={"cpu": 2})


@pytest.mark.parametrize(
    ("limits", "resources", "problem"),
    [
        (BOUNDS, {"requests": {"cpu": "50m"}}, "minimum cpu usage per Container is 100m, but request is 50m"),
        (BOUNDS, {"limits": {"cpu": 3}}, "maximum cpu usage per Container is 2, but limit is 3"),
        (RATIO, {"requests": {"cpu": 1}, "limits": {"cpu": 3}}, "is 2, but provided ratio is 3.000000"),
        (RATIO, {}, "cpu max limit to request ratio per Container is 2, but no request is specified or request is 0"),
        (of("Pod", max={"cpu": 1}), {"limits": {"cpu": "600m"}}, "maximum cpu usage per Pod is 1, but limit is 1200m"),
        (of("Pod", max={"cpu": 1}), {"requests": {"cpu": 1}}, "maximum cpu usage per Pod is 1.  No limit is specified"),
        (of("Pod", min={"memory": "1Gi"}), {}, "minimum memory usage per Pod is 1Gi.  No request is specified"),
    ],
)
def test_a_pod_beyond_the_bounds_is_refused(limits: Raw, resources: Raw, problem: str) -> None:
    assert problem in refusal(pod_of(resources, resources), limit_range(limits))


def test_every_violated_bound_is_reported() -> None:
    message = refusal(pod_of({"requests": {"cpu": "50m"}}, {"limits": {"cpu": 3}}), limit_range(BOUNDS))
    assert "[minimum cpu usage per Container is 100m, but request is 50m, maximum cpu" in message


def test_a_pod_within_the_bounds_is_admitted() -> None:
    resources = {"requests": {"cpu": "500m"}, "limits": {"cpu": 1}}
    both = limit_range(BOUNDS, of("Pod", max={"cpu": 2}), of("PersistentVolumeClaim", max={"storage": 1}))
    assert created(pod_of(resources, resources), both)


@pytest.mark.parametrize(
    ("size", "problem"),
    [
        ("1Gi", "minimum storage usage per PersistentVolumeClaim is 2Gi, but request is 1Gi"),
        ("9Gi", "maximum storage usage per PersistentVolumeClaim is 8Gi, but request is 9Gi"),
        ("4Gi", ""),
    ],
)
def test_a_claim_stays_within_the_bounds(size: str, problem: str) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    metadata = {"name": "data", "namespace": "default"}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}
    bounds = limit_range(of("PersistentVolumeClaim", min={"storage": "2Gi"}, max={"storage": "8Gi"}))
    if problem:
        assert problem in refusal(claim, bounds)
    else:
        assert created(claim, bounds)
