"""Fields and kinds that a Kubernetes version does not keep are dropped."""

from __future__ import annotations

from podium.api.meta import Raw
from podium.api.versions.apis import as_kept, dropped_from, gates_of_fields, is_served
from podium.api.versions.gates import letters
from podium.api.versions.release import read_version

SLICE: Raw = {"spec": {"devices": [{"name": "a", "taints": [{"key": "k"}]}, {"name": "b"}], "sharedCounters": []}}


def test_fields_of_gates_that_are_off_are_left_out_and_the_object_stays_as_it_is() -> None:
    kept = as_kept(SLICE, "ResourceSlice", read_version("1.35"))
    assert kept == {"spec": {"devices": [{"name": "a"}, {"name": "b"}]}}
    assert SLICE["spec"]["devices"][0]["taints"]


def test_an_object_without_such_fields_is_returned_itself() -> None:
    plain: Raw = {"spec": {"devices": [{"name": "a"}]}}
    assert as_kept(plain, "ResourceSlice", read_version("1.35")) is plain
    assert as_kept(SLICE, "ResourceSlice", read_version("1.36")) is SLICE


def test_fields_of_a_pod_are_left_out_of_templates_too() -> None:
    template: Raw = {"spec": {"template": {"spec": {"resources": {"requests": {"cpu": "1"}}}}}}
    assert as_kept(template, "Deployment", read_version("1.33")) == {"spec": {"template": {"spec": {}}}}
    assert list(dropped_from(template, "Deployment", read_version("1.33"))) == ["spec.template.spec.resources"]


def test_1_34_keeps_distinct_attributes_by_mistake() -> None:
    claim: Raw = {"spec": {"devices": {"constraints": [{"distinctAttribute": "a"}]}}}
    assert as_kept(claim, "ResourceClaim", read_version("1.34")) is claim
    assert as_kept(claim, "ResourceClaim", read_version("1.35")) == {"spec": {"devices": {"constraints": [{}]}}}


def test_kinds_of_devices_are_served_from_1_34_on() -> None:
    served = [is_served("ResourceClaim", read_version(version)) for version in ("1.33", "1.34", "1.36")]
    assert served == [False, True, True]
    assert is_served("Pod", read_version("1.31"))


def test_every_gate_of_a_field_is_known() -> None:
    assert gates_of_fields() <= letters().keys()
