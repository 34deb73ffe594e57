"""Objects in other API versions than the stored one: PodGroups and Workloads of 1.37, devices before 1.34."""

from __future__ import annotations

from typing import Any

import pytest

from podium.api.errors import InputError
from podium.api.forms import form_of
from podium.api.meta import Raw
from podium.api.objects import read_object
from podium.api.pod_group import PodGroup

NEWER = ["scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha3"]
CONDITION: Raw = {"type": "PodGroupScheduled", "status": "True", "reason": "Scheduled"}


def object_in(api_version: str, kind: str, spec: Any, **rest: Any) -> Raw:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a", "namespace": "b"}, "spec": spec, **rest}


def there(raw: Raw, api_version: str) -> Raw:
    form = form_of(api_version, raw["kind"])
    assert form is not None
    return form.from_stored(raw)


def and_back(raw: Raw, api_version: str) -> Raw:
    form = form_of(api_version, raw["kind"])
    assert form is not None
    return form.to_stored(there(raw, api_version))


def group(**spec: Any) -> Raw:
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}, **spec}
    return object_in("scheduling.k8s.io/v1alpha2", "PodGroup", spec, status={"conditions": [CONDITION]})


@pytest.mark.parametrize("version", NEWER)
def test_a_newer_pod_group_has_other_names_for_the_same(version: str) -> None:
    reference = {"workload": {"workloadName": "w", "podGroupTemplateName": "t"}}
    raw = group(disruptionMode="PodGroup", podGroupTemplateRef=reference, priorityClassName="high")

    newer = there(raw, version)

    assert newer["spec"] == {
        "schedulingPolicy": {"gang": {"minCount": 2}},
        "disruptionMode": {"all": {}},
        "workloadRef": {"workloadName": "w", "templateName": "t"},
        "priorityClassName": "high",
    }
    assert newer["status"]["conditions"] == [{**CONDITION, "type": "PodGroupInitiallyScheduled"}]
    assert and_back(raw, version) == raw


def test_a_newer_pod_group_without_a_mode_has_that_of_single_pods() -> None:
    assert there(group(), NEWER[0])["spec"]["disruptionMode"] == {"single": {}}


@pytest.mark.parametrize("version", NEWER)
def test_newer_pod_groups_are_read(version: str) -> None:
    spec = {
        "schedulingPolicy": {"gang": {"minCount": 2}},
        "disruptionMode": {"all": {}},
        "preemptionPolicy": "Never",
    }

    read = read_object(object_in(version, "PodGroup", spec))

    assert isinstance(read.object, PodGroup)
    assert (read.object.min_count, read.object.is_one_victim) == (2, True)
    assert read.raw["apiVersion"] == "scheduling.k8s.io/v1alpha2"
    assert not read.warnings


def test_unknown_fields_of_newer_pod_groups_are_reported_by_their_own_names() -> None:
    spec = {"schedulingPolicy": {"basic": {}}, "workloadRef": {"workloadName": "w", "templatName": "t"}}

    with pytest.raises(InputError, match=r"\.spec\.workloadRef\.templatName"):
        read_object(object_in(NEWER[0], "PodGroup", spec), "strict")


def test_workloads_have_the_modes_in_their_templates() -> None:
    template = {"name": "t", "schedulingPolicy": {"basic": {}}, "disruptionMode": "Pod"}
    raw = object_in("scheduling.k8s.io/v1alpha2", "Workload", {"podGroupTemplates": [template]})

    newer = there(raw, NEWER[0])

    assert newer["spec"]["podGroupTemplates"] == [{**template, "disruptionMode": {"single": {}}}]
    assert and_back(raw, NEWER[0]) == raw


EXACT: Raw = {"deviceClassName": "gpu", "count": 2, "allocationMode": "ExactCount"}
ALTERNATIVES: Raw = {"name": "either", "firstAvailable": [{"name": "a", "deviceClassName": "gpu"}]}


def test_requests_of_older_claims_have_the_fields_of_exactly_in_themselves() -> None:
    requests = [{"name": "one", "exactly": EXACT}, ALTERNATIVES]
    raw = object_in("resource.k8s.io/v1", "ResourceClaim", {"devices": {"requests": requests}})

    older = there(raw, "resource.k8s.io/v1beta1")

    assert older["spec"]["devices"]["requests"] == [{"name": "one", **EXACT}, ALTERNATIVES]
    assert and_back(raw, "resource.k8s.io/v1beta1") == raw


def test_devices_of_older_slices_have_their_fields_in_basic() -> None:
    device = {"name": "d", "attributes": {"a": {"int": 1}}, "capacity": {"memory": {"value": "1Gi"}}}
    raw = object_in("resource.k8s.io/v1", "ResourceSlice", {"driver": "x", "devices": [device]})

    older = there(raw, "resource.k8s.io/v1alpha3")["spec"]["devices"]

    assert older == [{"name": "d", "basic": {"attributes": {"a": {"int": 1}}, "capacity": {"memory": "1Gi"}}}]
    assert and_back(raw, "resource.k8s.io/v1alpha3") == and_back(raw, "resource.k8s.io/v1beta1") == raw


@pytest.mark.parametrize("spec", [None, [], "text", {"devices": 3}, {"disruptionMode": {"all": {}, "single": {}}}])
@pytest.mark.parametrize("kind", ["PodGroup", "Workload", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"])
def test_no_form_is_too_odd_to_be_converted(kind: str, spec: Any) -> None:
    group = "scheduling" if kind in ("PodGroup", "Workload") else "resource"
    and_back(object_in("v1", kind, spec), f"{group}.k8s.io/v1beta1")
