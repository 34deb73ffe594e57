"""Pods of few kinds, each of which is validated once."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.api.errors import InputError, Validation
from podium.api.objects import ReadObject, plain_pod, read_closely, read_object
from tests.app.manifests import CONTAINER, POD_SPEC

Raw = dict[str, Any]
CONTAINERS = {"containers": [{"name": "main", "image": "x"}]}
UNSAID = object()


def pod(name: Any = "a", spec: Any = UNSAID, **metadata: Any) -> Raw:
    given = CONTAINERS if spec is UNSAID else spec
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata}, "spec": copy.deepcopy(given)}


def outcome(read: Callable[[Raw, Validation | None], ReadObject], raw: object, validation: Validation | None) -> object:
    try:
        return read(raw, validation)  # type: ignore[arg-type]
    except InputError as error:
        return str(error)


def test_pods_of_one_sort_share_their_specification() -> None:
    first, second = (plain_pod(pod(name, spec=POD_SPEC, labels={"app": "x"})) for name in ("a", "b"))

    assert first is not None
    assert second is not None
    assert first[0]["spec"] is second[0]["spec"]
    assert first[1].spec is second[1].spec
    assert (first[1].key, second[1].key) == ("default/a", "default/b")


VOLUME = {"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}}
METADATA: list[Raw] = [
    {},
    {"name": ""},
    {"name": 7},
    {"name": "No"},
    {"namespace": "n"},
    {"namespace": ""},
    {"namespace": "No"},
    {"namespace": 3},
    {"labels": {"a": "b"}},
    {"labels": {"a": "not right"}},
    {"labels": {"a": 1}},
    {"labels": []},
    {"annotations": {"podium.dev/duration": "1s"}},
    {"annotations": {"a b": "x"}},
    {"annotations": {"a": 1}},
    {"annotations": {"a": "x" * 300_000}},
    {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "1"}},
    {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "one"}},
    {"annotations": {"kubernetes.io/config.mirror": "x"}},
    {"annotations": ["a"]},
    {"annotations": {1: "a"}},
    {"uid": "u"},
    {"creationTimestamp": "2026-01-01T00:00:00Z"},
    {"finalizers": ["x"]},
    {"generateName": "a"},
    {"ownerReferences": [{"kind": "Job"}]},
    {"other": 1},
]
SPECS: list[Any] = [
    {"containers": [{"name": "main", "image": "x"}]},
    {},
    None,
    [],
    {"containers": []},
    {"containers": [{"name": "Main", "image": "x"}]},
    {"containers": [CONTAINER]},
    {"containers": [{**CONTAINER, "resources": {"requests": {"memory": "400m"}}}]},
    {"containers": [{**CONTAINER, "resources": {"requests": {"cpu": "lots"}}}]},
    {"containers": [{"name": "main", "image": "x"}], "nodeSelecter": {"a": "b"}},
    {"containers": [{"name": "main", "image": "x"}], "priority": "high"},
    {"containers": [{"name": "main", "image": "x"}], "volumes": [VOLUME]},
    {"containers": [{"name": "main", "image": "x"}], "volumes": "none"},
    POD_SPEC,
]
REST: list[Raw] = [{}, {"status": {"phase": "Running"}}, {"kind": "Node"}, {"apiVersion": "v2"}, {"spex": {}}]


@given(
    metadata=st.sampled_from(METADATA),
    more=st.sampled_from(METADATA),
    spec=st.sampled_from(SPECS),
    rest=st.sampled_from(REST),
    validation=st.sampled_from((None, "strict", "warn", "ignore")),
)
def test_a_pod_in_a_dump_is_read_as_if_it_were_alone(
    metadata: Raw, more: Raw, spec: Any, rest: Raw, validation: Validation | None
) -> None:
    raw = {**pod(**{"spec": spec, **metadata, **more}), **rest}

    assert outcome(read_object, raw, validation) == outcome(read_closely, copy.deepcopy(raw), validation)


@pytest.mark.parametrize("raw", [{}, {"kind": "Pod"}, {**pod(), "metadata": []}, {**pod(), "spec": 1}])
def test_objects_that_are_not_plain_pods_take_the_full_parser(raw: Raw) -> None:
    assert plain_pod(raw) is None
