"""Validation of ResourceQuotas."""

from typing import Any

import pytest

from podium.api.errors import InputError, MalformedError
from podium.api.input.codec import decode
from podium.api.policy import ResourceQuota, ScopeRequirement


def quota(hard: Any, **spec: Any) -> dict[str, Any]:
    metadata = {"name": "all", "namespace": "shop"}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard, **spec}}


def selecting(**requirement: Any) -> dict[str, Any]:
    return {"scopeSelector": {"matchExpressions": [requirement]}}


def refused(raw: dict[str, Any]) -> InputError:
    with pytest.raises(InputError) as caught:
        decode(raw)
    return caught.value


@pytest.mark.parametrize(
    "name",
    [
        "pods",
        "cpu",
        "requests.cpu",
        "limits.memory",
        "requests.storage",
        "requests.example.com/gpu",
        "hugepages-2Mi",
        "requests.hugepages-1Gi",
        "count/jobs.batch",
        "gold.storageclass.storage.k8s.io/requests.storage",
    ],
)
def test_resources_limited_by_a_quota_are_known_by_name(name: str) -> None:
    assert isinstance(decode(quota({name: "2"})), ResourceQuota)


@pytest.mark.parametrize("name", ["gpu", "requests.gpu", "limits.pods", "-cpu", "requests."])
def test_other_names_are_refused(name: str) -> None:
    assert refused(quota({name: 1})).path.startswith(".spec.hard")


@pytest.mark.parametrize(("name", "amount"), [("pods", "1500m"), ("count/pods", "0.5"), ("requests.cpu", -1)])
def test_amounts_are_not_negative_and_what_is_counted_is_whole(name: str, amount: Any) -> None:
    error = refused(quota({name: amount}))

    assert not isinstance(error, MalformedError)
    assert error.path.startswith(".spec.hard")


def test_b10_an_invalid_quota_quantity_is_malformed() -> None:
    assert isinstance(refused(quota({"requests.cpu": "1 core"})), MalformedError)


@pytest.mark.parametrize(
    ("hard", "spec", "path"),
    [
        ({"pods": 1}, {"scopes": ["Best"]}, ".spec.scopes"),
        ({"pods": 1}, {"scopes": ["BestEffort", "NotBestEffort"]}, ".spec.scopes"),
        ({"pods": 1}, {"scopes": ["Terminating", "NotTerminating"]}, ".spec.scopes"),
        ({"cpu": 1}, {"scopes": ["BestEffort"]}, ".spec.scopes"),
        ({"services": 1}, {"scopes": ["PriorityClass"]}, ".spec.scopes"),
        ({"pods": 1}, selecting(scopeName="Best", operator="Exists"), "[0].scopeName"),
        ({"pods": 1}, selecting(scopeName="PriorityClass", operator="Is"), "[0].operator"),
        ({"pods": 1}, selecting(scopeName="PriorityClass", operator="In"), "[0].values"),
        ({"pods": 1}, selecting(scopeName="PriorityClass", operator="Exists", values=["a"]), "[0].values"),
        ({"pods": 1}, selecting(scopeName="Terminating", operator="DoesNotExist"), "[0].operator"),
        ({"secrets": 1}, selecting(scopeName="PriorityClass", operator="Exists"), ".matchExpressions"),
    ],
)
def test_scopes_that_make_no_sense_are_refused(hard: Any, spec: Any, path: str) -> None:
    assert refused(quota(hard, **spec)).path.endswith(path)


def test_scopes_and_selector_must_all_hold() -> None:
    raw = quota({"pods": 1}, scopes=["BestEffort"], **selecting(scopeName="PriorityClass", operator="In", values=["a"]))
    read = decode(raw)

    assert isinstance(read, ResourceQuota)
    assert read.requirements == (
        ScopeRequirement(scope_name="BestEffort", operator="Exists"),
        ScopeRequirement(scope_name="PriorityClass", operator="In", values=("a",)),
    )
