"""The overhead and scheduling fields that a RuntimeClass adds to a pod (plugin/pkg/admission/runtimeclass)."""

from __future__ import annotations

from typing import Any

import pytest

from podium.store.admission.pod_admission import merge_tolerations
from podium.store.errors import StoreError
from podium.store.store import Store
from tests.store.objects import Raw, pod

GPU = {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}


def runtime_class(**fields: Any) -> Raw:
    return {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "kata"},
        "handler": "k",
        **fields,
    }


def created(raw: Raw, **fields: Any) -> Raw:
    store = Store()
    store.create(runtime_class(**fields), now=0)
    spec: Raw = store.create(raw, now=0).raw["spec"]
    return spec


def of_class(**spec: Any) -> Raw:
    return pod("web", spec={"runtimeClassName": "kata", **spec})


def refusal(raw: Raw, **fields: Any) -> str:
    with pytest.raises(StoreError) as caught:
        created(raw, **fields)
    assert caught.value.code == 403
    return caught.value.message


def test_a_pod_takes_what_its_class_takes() -> None:
    assert created(of_class(), overhead={"podFixed": {"cpu": "250m"}})["overhead"] == {"cpu": "250m"}
    assert created(of_class(overhead={"cpu": "0.25"}), overhead={"podFixed": {"cpu": "250m"}})
    assert "overhead" not in created(of_class())


def test_an_overhead_other_than_the_class_s_is_refused() -> None:
    message = refusal(of_class(overhead={"cpu": 1}), overhead={"podFixed": {"cpu": "250m"}})
    assert "Pod's Overhead doesn't match RuntimeClass's defined Overhead" in message


def test_a_class_that_does_not_exist_is_refused() -> None:
    message = refusal(pod("web", spec={"runtimeClassName": "other"}))
    assert 'pod rejected: RuntimeClass "other" not found' in message


def test_a_pod_goes_where_its_class_can_run() -> None:
    spec = created(
        of_class(nodeSelector={"zone": "a"}), scheduling={"nodeSelector": {"kata": "yes"}, "tolerations": [GPU]}
    )
    assert spec["nodeSelector"] == {"zone": "a", "kata": "yes"}
    assert GPU in spec["tolerations"]


def test_a_pod_that_wants_to_be_elsewhere_is_refused() -> None:
    message = refusal(of_class(nodeSelector={"kata": "no"}), scheduling={"nodeSelector": {"kata": "yes"}})
    assert "conflict: runtimeClass.scheduling.nodeSelector[kata] = yes; pod.spec.nodeSelector[kata] = no" in message


def test_a_pod_of_a_dump_is_what_its_class_made_of_it() -> None:
    dumped = of_class()
    dumped["metadata"]["uid"] = "1"
    assert "overhead" not in created(dumped, overhead={"podFixed": {"cpu": 1}})
    assert Store().create(dumped, now=0)


ALL = {"operator": "Exists"}
EQUAL = {"key": "a", "operator": "Equal", "value": "b", "effect": "NoExecute"}


@pytest.mark.parametrize(
    ("first", "second", "merged"),
    [
        ([GPU], [GPU], [GPU]),
        ([GPU], [ALL], [ALL]),
        ([ALL], [GPU], [ALL]),
        ([GPU], [{**GPU, "effect": "NoExecute"}], [GPU, {**GPU, "effect": "NoExecute"}]),
        ([{**EQUAL, "tolerationSeconds": 5}], [EQUAL], [EQUAL]),
        ([EQUAL], [{**EQUAL, "tolerationSeconds": 5}], [EQUAL]),
        ([{**EQUAL, "tolerationSeconds": 5}], [{**EQUAL, "tolerationSeconds": 9}], [{**EQUAL, "tolerationSeconds": 9}]),
        ([EQUAL], [{**EQUAL, "value": "c"}], [EQUAL, {**EQUAL, "value": "c"}]),
    ],
)
def test_the_wider_of_two_tolerations_is_kept(first: list[Raw], second: list[Raw], merged: list[Raw]) -> None:
    assert merge_tolerations(first, second) == merged
