"""Specs that pods share."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert

from podium.api import objects
from podium.api.input.codec import decode
from podium.api.objects import SharedSpec, shared_spec
from podium.api.pod import PodSpec
from podium.api.policy import POLICY_ANNOTATION
from podium.store.admission.pod_admission import _DEFAULTS as DEFAULTS
from podium.store.errors import StoreError
from podium.store.store import Store
from podium.store.stored import reread
from podium.store.verbs import readings
from tests.store.json_values import OBJECTS
from tests.store.objects import Raw, pod, priority_class
from tests.store.refusals import refusal


def test_pods_of_one_sort_share_what_was_read_and_what_is_written() -> None:
    store = Store()
    one, other = (store.create(pod(name, cpu="1500m"), now=0) for name in ("a", "b"))

    assert one.raw["spec"] is other.raw["spec"]
    assert one.object.spec is other.object.spec  # type: ignore[attr-defined]
    assert store.create(pod("c", cpu="1501m"), now=0).raw["spec"] != one.raw["spec"]


def test_numbers_booleans_and_text_are_distinguished() -> None:
    specs: list[Raw] = [{"x": value} for value in (1, 1.0, True, "1", None, float("inf"))]
    found = [shared_spec(spec) for spec in specs]

    assert [repr(one.raw) for one in found if one is not None] == [repr(spec) for spec in specs]


@pytest.mark.parametrize(
    "spec", [None, [], "x", {"containers": 1}, {"containers": [{"name": 1}]}, {"restartPolicy": "No"}]
)
def test_invalid_specs_are_not_shared(spec: object) -> None:
    assert shared_spec(spec) is None
    store = Store()

    for _ in range(2):
        refusal(store, lambda: store.create({**pod("a"), "spec": spec}, now=0))


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1])
def test_a_number_that_cannot_be_packed_is_read_by_itself(number: int) -> None:
    assert shared_spec({"x": number}) is None
    assert Store().create(pod("a", spec={"x": number}), now=0).raw["spec"]["x"] == number


@given(spec=OBJECTS)
def test_shared_specs_equal_the_given_ones(spec: Raw) -> None:
    found = shared_spec(spec)
    if found is not None:
        assert found.raw == spec
        assert found.spec == convert(spec, PodSpec)


def test_specs_that_are_not_json_are_not_shared() -> None:
    spec = {"x": {1, 2}}

    assert shared_spec({"x": [1, 2]}) is not None
    assert shared_spec(spec) is None


KEYS = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "matchLabelKeys": ["app"]}
SPECS: list[Raw] = [
    {},
    {"priorityClassName": "high"},
    {"priorityClassName": "annotated"},
    {"priority": 5},
    {"tolerations": [{"operator": "Exists"}]},
    {"runtimeClassName": "sandbox"},
    {"topologySpreadConstraints": [{**KEYS, "labelSelector": {"matchLabels": {"a": "b"}}}]},
]
RANGE: Raw = {"limits": [{"type": "Container", "default": {"cpu": "2"}}]}
SURROUNDINGS: list[Raw] = [
    priority_class("high", 1_000),
    priority_class("usual", 7, globalDefault=True),
    {**priority_class("annotated", 3), "metadata": {"name": "annotated", "annotations": {POLICY_ANNOTATION: "Never"}}},
    {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "sandbox"},
        "handler": "x",
        "overhead": {"podFixed": {"cpu": "100m"}},
    },
    {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "r", "namespace": "default"}, "spec": RANGE},
]
# A pod with its specification and the value of a label, or something around it that comes or goes.
STEPS = st.lists(st.tuples(st.integers(0, 6), st.sampled_from("xy")) | st.integers(0, 4), max_size=12)


def played(steps: list[tuple[int, str] | int], *, forgets: bool) -> list[Raw | str]:
    """Return what becomes of the pods; with `forgets` nothing is remembered from one to the next."""
    store = Store()
    found: list[Raw | str] = []
    for number, step in enumerate(steps):
        if forgets:
            objects._known.cache_clear()
        if isinstance(step, int):
            raw = SURROUNDINGS[step]
            key = "/".join(filter(None, (raw["metadata"].get("namespace"), raw["metadata"]["name"])))
            if store.find(raw["kind"], key) is None:
                store.create(raw, now=0)
            else:
                store.delete(raw["kind"], key, now=0)
            continue
        index, label = step
        try:
            stored = store.create(pod(f"p{number}", spec=SPECS[index], labels={"app": label}), now=0)
        except StoreError as error:
            found.append(str(error))
        else:
            assert stored.object == decode(stored.raw)
            found.append(stored.raw)
    return found


@given(steps=STEPS)
def test_cached_admission_equals_admission_of_each_pod(
    steps: list[tuple[int, str] | int],
) -> None:
    assert played(steps, forgets=False) == played(steps, forgets=True)


def test_pods_on_different_nodes_share_all_but_the_nodes_name() -> None:
    store = Store()
    one, other = (store.create(pod(f"on-{node}", cpu="1502m", node=node), now=0) for node in ("n1", "n2"))

    assert (one.raw["spec"]["nodeName"], other.raw["spec"]["nodeName"]) == ("n1", "n2")
    assert one.raw["spec"]["containers"] is other.raw["spec"]["containers"]
    assert one.object.spec.containers is other.object.spec.containers  # type: ignore[attr-defined]


def test_a_specification_with_a_node_is_read_as_any_other() -> None:
    spec = {"nodeName": "n1", "containers": [{"name": "main"}]}
    found = shared_spec(spec)

    assert found is not None
    assert (found.raw, found.spec) == (spec, convert(spec, PodSpec))
    assert list(found.raw) == list(spec)
    assert shared_spec({**spec, "nodeName": 1}) is None


def test_a_bound_pod_that_has_all_defaults_is_looked_up_once_and_keeps_the_reading_of_its_status(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    complete = Store().create(pod("a", node="n1", status={"phase": "Running", "podIP": "10.0.0.1"}), now=0).raw
    written = {**complete, "spec": dict(reversed(complete["spec"].items()))}
    reading = decode(written)
    looked_up: list[Any] = []

    def counted(raw: Any) -> SharedSpec | None:
        looked_up.append(raw)
        return shared_spec(raw)

    monkeypatch.setattr(readings, "shared_spec", counted)

    stored = Store().create(written, now=0, reading=reading)

    assert len(looked_up) == 1
    assert stored.raw["spec"] == complete["spec"]
    assert list(stored.raw["spec"]) == [*DEFAULTS, *(name for name in written["spec"] if name not in DEFAULTS)]
    assert stored.object == decode(stored.raw)
    assert stored.object.status is reading.status  # type: ignore[attr-defined,union-attr]


def test_a_section_is_read_again_unless_it_is_a_copy() -> None:
    raw: Raw = {**pod("a", node="n1"), "status": {"phase": "Running", "podIP": "10.0.0.1"}}
    reading = decode(raw)
    assert reading is not None

    assert reread(reading, raw, {**raw, "status": dict(reversed(raw["status"].items()))}) is reading
    for status in ({"phase": "Running"}, {**raw["status"], "hostIP": "1"}, {**raw["status"], "podIP": "10.0.0.2"}):
        after = {**raw, "status": status}
        assert reread(reading, raw, after) == decode(after)
