import json
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
        ("memory", "400m", '"400m" is not a whole number of bytes; did you mean 400Mi?'),
        ("ephemeral-storage", "1500m", '"1500m" is not a whole number of bytes; did you mean 1500Mi?'),
        ("memory", 400, "400 is 400 bytes; did you mean 400Mi?"),
        ("memory", "512", '"512" is 512 bytes; did you mean 512Mi?'),
        ("cpu", 500, "500 is 500 whole cores; did you mean 500m?"),
        ("cpu", "250", '"250" is 250 whole cores; did you mean 250m?'),
    ],
)
def test_a_likely_typo_in_a_quantity_is_reported_with_a_suggestion(resource: str, amount: Any, message: str) -> None:
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
def test_common_notations_of_amounts_are_not_typos(resource: str, amount: Any) -> None:
    assert warnings_of(resource, amount) == []


def test_likely_typos_in_templates_are_reported() -> None:
    text = """
    {apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {selector: {matchLabels: {a: b}}, template: {
      metadata: {labels: {a: b}}, spec:
      {initContainers: [{name: a, image: b, resources: {limits: {memory: 1m}}}], containers: [{name: b, image: b}]}}}}
    """

    ((warning,),) = (one.warnings for one in load_text(text, "in"))

    assert warning.path == ".spec.template.spec.initContainers[0].resources.limits.memory"


POLICY = "podium.dev/preemption-policy"


def annotated(kind: str, annotations: dict[str, str]) -> dict[str, Any]:
    """Return an object of the kind with annotations, on its template if it has one."""
    metadata = {"name": "web", "annotations": annotations}
    spec = {"containers": [{"name": "main", "image": "web"}]}
    if kind == "PriorityClass":
        return {"apiVersion": "scheduling.k8s.io/v1", "kind": kind, "metadata": metadata, "value": 1}
    if kind == "Pod":
        return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec}
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels, "annotations": annotations}, "spec": spec}
    workload = {"selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web"}, "spec": workload}


@pytest.mark.parametrize("kind", ["Pod", "Deployment"])
@pytest.mark.parametrize(
    ("annotations", "message"),
    [
        (
            {POLICY: "NonPreemptable"},
            '"NonPreemptable" is not a preemption policy, and ignored; write NonPreemptible',
        ),
        ({POLICY: "x"}, '"x" is not a preemption policy, and ignored; write PreemptLowerPriority or Never or '),
        ({"podium.dev/preemtion-policy": "Never"}, f"is not an annotation that Podium reads; did you mean {POLICY}?"),
    ],
)
@pytest.mark.parametrize("is_listed", [False, True])
def test_a_misspelt_preemption_policy_is_reported_where_it_is_read(
    kind: str, annotations: dict[str, str], message: str, is_listed: bool
) -> None:
    raw = annotated(kind, annotations)
    text = {"apiVersion": "v1", "kind": "List", "items": [raw]} if is_listed else raw

    (document,) = load_text(json.dumps(text), "in")

    (warning,) = document.warnings
    place = ".spec.template.metadata" if kind == "Deployment" else ".metadata"
    assert warning.path == f'{place}.annotations["{next(iter(annotations))}"]'
    assert warning.message.startswith(message)


@pytest.mark.parametrize(
    "annotations",
    [{POLICY: "NonPreemptible"}, {"podium.dev/priority-rule": "a"}, {"podium.dev/duration": "5m"}, {"a/policy": "x"}],
)
def test_right_policies_and_other_annotations_are_no_slips(annotations: dict[str, str]) -> None:
    (document,) = load_text(json.dumps(annotated("Pod", annotations)), "in")

    assert document.warnings == ()


def test_a_misspelt_annotation_of_a_class_is_reported() -> None:
    (document,) = load_text(json.dumps(annotated("PriorityClass", {"podium.dev/premption-policy": "Never"})), "in")

    (warning,) = document.warnings
    assert warning.message == f"is not an annotation that Podium reads; did you mean {POLICY}?"


def test_likely_typos_in_templates_of_cron_jobs_are_reported() -> None:
    pod = "{containers: [{name: b, image: b, resources: {limits: {memory: 1m}}}], restartPolicy: Never}"
    job = f"{{schedule: '@daily', jobTemplate: {{spec: {{template: {{spec: {pod}}}}}}}}}"
    text = f"{{apiVersion: batch/v1, kind: CronJob, metadata: {{name: c}}, spec: {job}}}"

    ((warning,),) = (one.warnings for one in load_text(text, "in"))

    assert warning.path == ".spec.jobTemplate.spec.template.spec.containers[0].resources.limits.memory"
