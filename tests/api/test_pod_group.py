"""Both forms of PodGroups, and what kube-apiserver refuses in them."""

from __future__ import annotations

from typing import Any

import pytest

from podium.api.errors import InputError
from podium.api.meta import Raw
from podium.api.objects import read_object
from podium.api.pod import Pod
from podium.api.pod_group import PodGroup, from_older_form, group_of_pod, to_older_form
from podium.api.validation.objects import find_problems

NEWER, OLDER = "scheduling.k8s.io/v1alpha2", "scheduling.x-k8s.io/v1alpha1"


def group(spec: Any, api_version: str = NEWER, **annotations: str) -> Raw:
    metadata: Raw = {"name": "g", "namespace": "default", "uid": "1"}
    if annotations:
        metadata["annotations"] = {f"podium.dev/{name.replace('_', '-')}": text for name, text in annotations.items()}
    return {"apiVersion": api_version, "kind": "PodGroup", "metadata": metadata, "spec": spec}


def read(raw: Raw) -> PodGroup:
    found = read_object(raw).object
    assert isinstance(found, PodGroup)
    return found


GANG: Raw = {"schedulingPolicy": {"gang": {"minCount": 3}}}
FULL: Raw = {**GANG, "schedulingConstraints": {"topology": [{"key": "rack"}]}, "disruptionMode": "PodGroup"}


def test_a_group_says_how_many_are_placed_together_and_where() -> None:
    found = read(group(FULL))

    assert (found.is_gang, found.min_count, found.topology_key, found.is_one_victim) == (True, 3, "rack", True)


def test_a_group_that_is_not_a_gang_places_its_pods_one_by_one() -> None:
    found = read(group({"schedulingPolicy": {"basic": {}}}))

    assert (found.is_gang, found.min_count, found.topology_key) == (False, 1, "")


def test_the_older_form_is_read_into_the_same() -> None:
    found = read(group({"minMember": 3, "scheduleTimeoutSeconds": 20}, OLDER, topology_key="rack"))

    assert (found.min_count, found.topology_key, found.schedule_timeout_ns) == (3, "rack", 20 * 10**9)
    assert found.api_version == NEWER


@pytest.mark.parametrize("raw", [group(GANG), group(FULL), group(GANG, schedule_timeout_seconds="20")])
def test_nothing_is_lost_on_the_way_to_the_older_form_and_back(raw: Raw) -> None:
    assert from_older_form(to_older_form(raw)) == raw


@pytest.mark.parametrize("spec", [None, [], "text", {"minMember": "three"}, {"schedulingPolicy": 3}])
def test_no_form_is_too_odd_to_be_converted(spec: Any) -> None:
    to_older_form(group(spec))
    from_older_form(group(spec, OLDER))


@pytest.mark.parametrize(
    ("spec", "path"),
    [({"minMember": -3}, ".spec.minMember"), ({"minMember": 3, "minMembers": 3}, ".spec.minMembers")],
)
def test_errors_in_older_pod_groups_use_their_own_field_names(spec: Raw, path: str) -> None:
    (warning,) = read_object({**group(spec, OLDER), "status": {"phase": "Running"}}).warnings

    assert warning.path == path


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        (group({"minMember": "three"}, OLDER), ".spec.minMember"),
        (group({"minMember": 3}, OLDER, disruption_mode="All"), ".metadata.annotations[podium.dev/disruption-mode]"),
    ],
)
def test_an_unreadable_older_pod_group_is_reported_with_its_own_field_names(raw: Raw, path: str) -> None:
    with pytest.raises(InputError) as refused:
        read_object(raw)

    assert refused.value.path == path


@pytest.mark.parametrize("text", ["", "0", "-1", "soon", "1e9", "²", "9" * 20])
def test_an_invalid_timeout_is_ignored(text: str) -> None:
    assert read(group(GANG, schedule_timeout_seconds=text)).schedule_timeout_ns is None


@pytest.mark.parametrize(
    ("labels", "spec", "expected"),
    [
        ({}, {}, ""),
        ({}, {"schedulingGroup": {"podGroupName": "g"}}, "ns/g"),
        ({"scheduling.x-k8s.io/pod-group": "g"}, {}, "ns/g"),
        ({"scheduling.x-k8s.io/pod-group": "other"}, {"schedulingGroup": {"podGroupName": "g"}}, "ns/g"),
    ],
)
def test_a_pod_names_its_group_in_its_field_or_by_a_label(labels: Raw, spec: Raw, expected: str) -> None:
    raw = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": labels}, "spec": spec}
    pod = read_object({**raw, "spec": {**spec, "containers": [{"name": "c", "image": "i"}]}}).object
    assert isinstance(pod, Pod)

    assert group_of_pod("ns", pod.metadata.labels, pod.spec) == expected


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({}, ".spec.schedulingPolicy"),
        ({"schedulingPolicy": {}}, ".spec.schedulingPolicy"),
        ({"schedulingPolicy": {"basic": {}, "gang": {"minCount": 1}}}, ".spec.schedulingPolicy"),
        ({"schedulingPolicy": {"gang": {}}}, ".spec.schedulingPolicy.gang.minCount"),
        ({"schedulingPolicy": {"gang": {"minCount": -1}}}, ".spec.schedulingPolicy.gang.minCount"),
        ({**GANG, "disruptionMode": "Some"}, ".spec.disruptionMode"),
        ({**GANG, "priority": 2_000_000_000}, ".spec.priority"),
        ({**GANG, "schedulingConstraints": {"topology": [{}]}}, ".spec.schedulingConstraints.topology[0].key"),
        ({**GANG, "schedulingConstraints": {"topology": [{"key": "a"}] * 2}}, ".spec.schedulingConstraints.topology"),
        ({**GANG, "podGroupTemplateRef": {}}, ".spec.podGroupTemplateRef"),
        ({**GANG, "resourceClaims": [{"name": "c"}]}, ".spec.resourceClaims[0]"),
    ],
)
def test_pod_groups_that_kube_apiserver_rejects_are_reported(spec: Raw, path: str) -> None:
    assert [problem.path for problem in find_problems(group(spec))] == [path]


def test_a_group_that_is_right_has_no_problems() -> None:
    reference = {"workload": {"workloadName": "job.example", "podGroupTemplateName": "workers"}}

    assert find_problems(group({**FULL, "podGroupTemplateRef": reference, "priority": 5})) == ()


def test_a_workload_has_templates_of_different_names() -> None:
    template = {"name": "workers", **GANG}
    raw = {"apiVersion": NEWER, "kind": "Workload", "metadata": {"name": "w", "namespace": "default"}}

    assert find_problems({**raw, "spec": {"podGroupTemplates": [template]}}) == ()
    assert [each.path for each in find_problems({**raw, "spec": {}})] == [".spec.podGroupTemplates"]
    twice = find_problems({**raw, "spec": {"podGroupTemplates": [template, template]}})
    assert [each.path for each in twice] == [".spec.podGroupTemplates[1].name"]
