"""Values of devices, device classes and claims that kube-apiserver refuses, one rule per row, and values that it
accepts.
"""

from __future__ import annotations

from typing import Any

import pytest

from podium.api.validation.objects import find_problems
from tests.api.manifests import GONE, changed, paths_of
from tests.devices import DRIVER, attributes, claim, device, device_class, devices_of, first_of, request, resource_slice
from tests.store.objects import Raw

OPAQUE = {"opaque": {"driver": DRIVER, "parameters": {"a": 1}}}
CLASS = device_class(extendedResourceName="example.com/gpu", config=[OPAQUE])
TERM = {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}
TAINTED = {"name": "d", "taints": [{"key": "k", "effect": "NoSchedule"}]}
CLAIM = claim("c", request("r", "true", tolerations=[{"key": "a", "operator": "Exists"}]), first_of("s", request("t")))
DEVICES = CLAIM["spec"]["devices"]
DEVICES |= {"constraints": [{"requests": ["r", "s/t"], "matchAttribute": f"{DRIVER}/model"}]}
DEVICES |= {"config": [{"requests": ["s"], **OPAQUE}]}
TEMPLATE = {**CLAIM, "kind": "ResourceClaimTemplate", "spec": {"spec": CLAIM["spec"]}}
TAINT = {"key": "a", "effect": "NoSchedule"}
SLICE = devices_of("n1", device("a", taints=[TAINT], **attributes(model="x")), device("b"))
COUNTERS = resource_slice("s", allNodes=True, sharedCounters=[{"name": "x", "counters": {"slots": {"value": 1}}}])
RULE: Raw = {
    "apiVersion": "resource.k8s.io/v1beta2",
    "kind": "DeviceTaintRule",
    "metadata": {"name": "r"},
    "spec": {"deviceSelector": {"driver": DRIVER}, "taint": TAINT},
}
VALID = [CLASS, CLAIM, TEMPLATE, SLICE, COUNTERS, RULE]


def problems(raw: Raw) -> list[str]:
    return [str(one) for one in find_problems(raw)]


FIRST = "spec.devices.requests.0"
EXACTLY = f"{FIRST}.exactly"
CONSTRAINT = "spec.devices.constraints.0"


@pytest.mark.parametrize("raw", VALID, ids=lambda raw: raw["kind"])
def test_valid_contents_have_no_findings(raw: Raw) -> None:
    assert problems(raw) == []


@pytest.mark.parametrize(
    "name", ["cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "gpu", "kubernetes.io/gpu", "requests.a/b", "a/b c"]
)
def test_an_extended_resource_has_a_domain_that_is_not_kubernetes_own(name: str) -> None:
    raw = device_class(extendedResourceName=name)

    problem = f'.spec.extendedResourceName: Invalid value: "{name}": must be a valid extended resource name'
    assert problems(raw) == [problem]


@pytest.mark.parametrize(
    ("raw", "changes", "problem"),
    [
        (CLASS, {"metadata.namespace": "a"}, ".metadata.namespace: Forbidden"),
        (CLASS, {"spec.selectors": [{}]}, ".spec.selectors[0].cel: Required value"),
        (CLASS, {"spec.config": [{}]}, ".spec.config[0].opaque: Required value"),
        (CLASS, {"spec.config.0.opaque.driver": "a b"}, ".opaque.driver: Invalid value"),
        (CLASS, {"spec.config.0.opaque.driver": "a" * 64}, "must be no more than 63 characters"),
        (CLASS, {"spec.config.0.opaque.parameters": GONE}, ".opaque.parameters: Required value"),
        (CLAIM, {f"{FIRST}.name": "R"}, ".spec.devices.requests[0].name: Invalid value"),
        (CLAIM, {f"{FIRST}.name": GONE}, ".spec.devices.requests[0].name: Required value"),
        (CLAIM, {f"{FIRST}.name": "s"}, '.spec.devices.requests[1].name: Duplicate value: "s"'),
        (CLAIM, {EXACTLY: GONE}, ".spec.devices.requests[0]: Required value: exactly one of `exactly`"),
        (
            CLAIM,
            {f"{FIRST}.firstAvailable": DEVICES["requests"][1]["firstAvailable"]},
            ".requests[0]: Invalid value: a list:",
        ),
        (CLAIM, {f"{EXACTLY}.deviceClassName": ""}, ".exactly.deviceClassName: Required value"),
        (CLAIM, {f"{EXACTLY}.deviceClassName": "A"}, ".exactly.deviceClassName: Invalid value"),
        (CLAIM, {f"{EXACTLY}.allocationMode": "Some"}, '.exactly.allocationMode: Unsupported value: "Some"'),
        (CLAIM, {f"{EXACTLY}.allocationMode": "All"}, ".exactly.count: Invalid value: 1: must not be specified when"),
        (CLAIM, {f"{EXACTLY}.count": -1}, ".exactly.count: Invalid value: -1: must be greater than"),
        (CLAIM, {f"{EXACTLY}.selectors.0.cel": GONE}, ".selectors[0].cel: Required value"),
        (CLAIM, {f"{EXACTLY}.tolerations.0.value": "x"}, "value must be empty when `operator`"),
        (CLAIM, {f"{EXACTLY}.tolerations.0.operator": "Is"}, '.operator: Unsupported value: "Is"'),
        (CLAIM, {f"{EXACTLY}.tolerations.0.effect": "Odd"}, '.effect: Unsupported value: "Odd"'),
        (CLAIM, {"spec.devices.requests.1.firstAvailable.0.deviceClassName": GONE}, "[0].deviceClassName: Required"),
        (CLAIM, {f"{CONSTRAINT}.requests": ["x"]}, '.constraints[0].requests[0]: Invalid value: "x": must be the name'),
        (CLAIM, {f"{CONSTRAINT}.requests": ["r/t"]}, '.requests[0]: Invalid value: "r/t": must be the name'),
        (CLAIM, {f"{CONSTRAINT}.requests": ["r", "r"]}, '.requests[1]: Duplicate value: "r"'),
        (CLAIM, {f"{CONSTRAINT}.matchAttribute": "model"}, "must be a domain and a name separated by a slash"),
        (CLAIM, {f"{CONSTRAINT}.matchAttribute": f"{DRIVER}/1"}, ".matchAttribute: Invalid value"),
        (CLAIM, {f"{CONSTRAINT}.matchAttribute": GONE}, ".constraints[0]: Required value: exactly one of"),
        (CLAIM, {"spec.devices.config.0.requests": ["x"]}, ".config[0].requests[0]: Invalid value"),
        (TEMPLATE, {"spec.spec.devices.requests.0.exactly": GONE}, ".spec.spec.devices.requests[0]: Required value"),
        (SLICE, {"spec.driver": GONE}, ".spec.driver: Required value"),
        (SLICE, {"spec.pool.name": GONE}, ".spec.pool.name: Required value"),
        (SLICE, {"spec.pool.name": "a/B"}, ".spec.pool.name: Invalid value"),
        (SLICE, {"spec.pool.generation": -1}, ".spec.pool.generation: Invalid value: -1"),
        (SLICE, {"spec.pool.resourceSliceCount": GONE}, ".resourceSliceCount: Invalid value: 0: must be greater than"),
        (SLICE, {"spec.nodeName": GONE}, ".spec: Required value: exactly one of `nodeName`, `nodeSelector`"),
        (
            SLICE,
            {"spec.nodeName": GONE, "spec.nodeSelector": {"nodeSelectorTerms": [TERM, TERM]}},
            ".spec.nodeSelector.nodeSelectorTerms: Invalid value: a list: must have exactly one node selector term",
        ),
        (SLICE, {"spec.devices": [{"name": f"d{n}"} for n in range(129)]}, ".spec.devices: Too many: 129"),
        (SLICE, {"spec.devices": [TAINTED, *({"name": f"d{n}"} for n in range(64))]}, ".spec.devices: Too many: 65"),
        (SLICE, {"spec.allNodes": True}, "but multiple fields are set"),
        (SLICE, {"spec.nodeName": "A"}, ".spec.nodeName: Invalid value"),
        (COUNTERS, {"spec.allNodes": False}, ".spec.allNodes: Invalid value: false"),
        (COUNTERS, {"spec.devices": [device("a")]}, "only one of `sharedCounters` or `devices` is allowed"),
        (COUNTERS, {"spec.sharedCounters.0.counters": GONE}, ".sharedCounters[0].counters: Required value"),
        (SLICE, {"spec.devices.0.name": "b"}, '.spec.devices[1].name: Duplicate value: "b"'),
        (SLICE, {"spec.devices.0.nodeName": "n1"}, "can only be set if `perDeviceNodeSelection` is set to true"),
        (SLICE, {"spec.nodeName": GONE, "spec.perDeviceNodeSelection": True}, ".spec.devices[0]: Required value"),
        (SLICE, {"spec.devices.0.attributes.model": {}}, ".attributes.model: Invalid value: a list: exactly one"),
        (SLICE, {"spec.devices.0.attributes": {"1x": {"int": 1}}}, '.attributes["1x"]: Invalid value: "1x"'),
        (SLICE, {"spec.devices.0.capacity": {"a b/x": {"value": 1}}}, '.capacity["a b/x"]: Invalid value'),
        (SLICE, {"spec.devices.0.consumesCounters": [{"counterSet": "A"}]}, ".consumesCounters[0].counterSet: Invalid"),
        (SLICE, {"spec.devices.0.taints.0.effect": GONE}, ".taints[0].effect: Required value"),
        (SLICE, {"spec.devices.0.taints.0.key": "a b"}, ".taints[0].key: Invalid value"),
        (RULE, {"spec.taint": GONE}, ".spec.taint.key: Required value"),
        (RULE, {"spec.deviceSelector.driver": "a b"}, ".spec.deviceSelector.driver: Invalid value"),
    ],
)
def test_contents_that_kube_apiserver_rejects_are_found_with_their_place(
    raw: Raw, changes: dict[str, Any], problem: str
) -> None:
    assert any(problem in one for one in problems(changed(raw, changes)))


@pytest.mark.parametrize("raw", VALID, ids=lambda raw: raw["kind"])
@pytest.mark.parametrize("junk", [5, "x", [5], [[]], {"x": 5}], ids=str)
def test_junk_in_any_field_is_reported_without_a_traceback(raw: Raw, junk: Any) -> None:
    for path in paths_of(raw):
        if path.count("/") > 1 and "." not in path:
            problems(changed(raw, {path[1:]: junk}))


def test_an_attribute_may_have_an_empty_text() -> None:
    assert problems(changed(SLICE, {"spec.devices.0.attributes.model": {"string": ""}})) == []
