from typing import Any

import pytest

from podium.api.input.codec import load_text


def warnings_of(resource: str, amount: Any) -> list[str]:
    container = {
        "name": "main",
        "image": "web",
        "resources": {part: {resource: amount} for part in ("requests", "limits")},
    }
    raw = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"containers": [container]}}
    (document,) = load_text(str(raw), "in", "strict")
    assert all(one.reason == "slip" for one in document.warnings)
    return [f"{one.path}: {one.message}" for one in document.warnings]


@pytest.mark.parametrize(
    ("resource", "amount", "message"),
    [
        ("memory", "400m", '"400m" is no whole number of bytes; did you mean 400Mi?'),
        ("ephemeral-storage", "1500m", '"1500m" is no whole number of bytes; did you mean 1500Mi?'),
        ("memory", 400, "400 is 400 bytes; did you mean 400Mi?"),
        ("memory", "512", '"512" is 512 bytes; did you mean 512Mi?'),
        ("cpu", 500, "500 is 500 whole cores; did you mean 500m?"),
        ("cpu", "250", '"250" is 250 whole cores; did you mean 250m?'),
    ],
)
def test_a_request_that_looks_like_a_slip_is_told_with_what_may_be_meant(
    resource: str, amount: Any, message: str
) -> None:
    path = f'.spec.containers[0].resources.requests["{resource}"]' if "-" in resource else f"requests.{resource}"

    of_request, of_limit = warnings_of(resource, amount)

    assert path in of_request
    assert of_request.endswith(message)
    assert of_limit.endswith(message)


@pytest.mark.parametrize(
    ("resource", "amount"),
    [
        ("memory", "400Mi"),
        ("memory", "1e9"),
        ("memory", 2**30),
        ("memory", 0),
        ("memory", "512Ki"),
        ("cpu", "500m"),
        ("cpu", 128),
        ("cpu", "0.1"),
        ("example.com/gpu", 400),
    ],
)
def test_an_amount_that_people_write_is_no_slip(resource: str, amount: Any) -> None:
    assert warnings_of(resource, amount) == []


def test_slips_in_templates_are_told_too() -> None:
    text = """
    {apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {selector: {matchLabels: {a: b}}, template: {
      metadata: {labels: {a: b}}, spec:
      {initContainers: [{name: a, image: b, resources: {limits: {memory: 1m}}}], containers: [{name: b, image: b}]}}}}
    """

    ((warning,),) = (one.warnings for one in load_text(text, "in"))

    assert warning.path == ".spec.template.spec.initContainers[0].resources.limits.memory"
