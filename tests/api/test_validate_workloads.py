"""Validation of workloads."""

from typing import Any

import pytest

from podium.api.errors import InputError
from podium.api.input.codec import decode
from podium.api.workloads import DaemonSet, Deployment, Job, StatefulSet

TEMPLATE: dict[str, Any] = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main"}]}}
NEVER = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}


def manifest(kind: str, spec: dict[str, Any], **parts: Any) -> dict[str, Any]:
    group = "batch/v1" if kind == "Job" else "apps/v1"
    filled = {**({} if kind == "Job" else {"selector": {"matchLabels": {"app": "web"}}}), "template": TEMPLATE, **spec}
    return {"apiVersion": group, "kind": kind, "metadata": {"name": "web"}, "spec": filled, **parts}


def error_of(kind: str, spec: dict[str, Any], **parts: Any) -> str:
    with pytest.raises(InputError) as caught:
        decode(manifest(kind, spec, **parts))
    return f"{caught.value.path}: {caught.value.problem}"


def read(kind: str, **spec: Any) -> Any:
    return decode(manifest(kind, spec))


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"])
def test_a_workload_must_select_the_pods_that_it_makes(kind: str) -> None:
    spec = {"selector": {"matchLabels": {"app": "db"}}}

    assert error_of(kind, spec).startswith(".spec.selector: does not select the pods of the template")
    negative = ".spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0"
    assert error_of(kind, {"minReadySeconds": -1}) == negative


def rolling(**rolling: Any) -> dict[str, Any]:
    return {"strategy": {"rollingUpdate": rolling}}


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        (rolling(maxSurge=-1), ".spec.strategy.rollingUpdate.maxSurge: -1 is negative"),
        (rolling(maxSurge="x%"), '.spec.strategy.rollingUpdate.maxSurge: "x%" is neither a number nor a percentage'),
        (rolling(maxUnavailable="101%"), '.spec.strategy.rollingUpdate.maxUnavailable: "101%" is neither a number'),
        (
            rolling(maxSurge=0, maxUnavailable="0%"),
            '.spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "0%": may not be 0 when `maxSurge` is 0',
        ),
        ({"strategy": {"type": "BlueGreen"}}, '.spec.strategy.type: "BlueGreen" is not one of'),
        ({"revisionHistoryLimit": -1}, ".spec.revisionHistoryLimit: Invalid value: -1"),
    ],
)
def test_a_deployment_must_be_able_to_roll_out(spec: dict[str, Any], error: str) -> None:
    assert error_of("Deployment", spec).startswith(error)


def test_surge_may_be_more_than_all() -> None:
    assert read("Deployment", **rolling(maxSurge="200%", maxUnavailable=0)) is not None


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ({"ordinals": {"start": -1}}, ".spec.ordinals.start: Invalid value: -1"),
        (
            {"updateStrategy": {"rollingUpdate": {"partition": -1}}},
            ".spec.updateStrategy.rollingUpdate.partition: Invalid value: -1",
        ),
        (
            {"volumeClaimTemplates": [{"metadata": {"name": "A"}}]},
            '.spec.volumeClaimTemplates[0].metadata.name: "A" is not a valid name',
        ),
        ({"podManagementPolicy": "Random"}, '.spec.podManagementPolicy: "Random" is not one of'),
        ({"revisionHistoryLimit": -1}, ".spec.revisionHistoryLimit: Invalid value: -1"),
    ],
)
def test_a_stateful_set_makes_sense(spec: dict[str, Any], error: str) -> None:
    assert error_of("StatefulSet", spec).startswith(error)


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        (
            {"updateStrategy": {"rollingUpdate": {"maxUnavailable": "x"}}},
            '.spec.updateStrategy.rollingUpdate.maxUnavailable: "x" is neither',
        ),
        ({"revisionHistoryLimit": -1}, ".spec.revisionHistoryLimit: Invalid value: -1"),
        ({"template": {**TEMPLATE, "spec": {"restartPolicy": "x"}}}, ".spec.template.spec.restartPolicy"),
    ],
)
def test_a_daemon_set_makes_sense(spec: dict[str, Any], error: str) -> None:
    assert error_of("DaemonSet", spec).startswith(error)


def policy(*rules: Any, **spec: Any) -> dict[str, Any]:
    return {"template": NEVER, "podFailurePolicy": {"rules": rules}, **spec}


CODES = {"operator": "In", "values": [1]}


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ({"completionMode": "Indexed"}, ".spec.completions: Required value: when completion mode is Indexed"),
        (
            {"completionMode": "Indexed", "completions": 1_000_001},
            ".spec.completions: Invalid value: 1000001: must be less than or equal to 1000000 when Indexed",
        ),
        ({"activeDeadlineSeconds": -1}, ".spec.activeDeadlineSeconds: Invalid value: -1"),
        (
            {"podFailurePolicy": {}},
            ".spec.podFailurePolicy: Invalid value: an object: only podTemplate's restartPolicy=Never is supported",
        ),
        (
            policy(podReplacementPolicy="TerminatingOrFailed"),
            '.spec.podReplacementPolicy: Invalid value: "TerminatingOrFailed": TerminatingOrFailed is not supported',
        ),
        (
            policy({"action": "Count"}),
            ".spec.podFailurePolicy.rules[0]: Invalid value: a list: exactly one of `onExitCodes`",
        ),
        (
            policy({"action": "Count", "onExitCodes": CODES, "onPodConditions": [{"type": "x"}]}),
            ".spec.podFailurePolicy.rules[0]: Invalid value: a list: exactly one of `onExitCodes`",
        ),
        (
            policy({"action": "Count", "onExitCodes": {**CODES, "values": []}}),
            ".spec.podFailurePolicy.rules[0].onExitCodes.values: Invalid value: a list: at least one value is required",
        ),
        (
            policy({"action": "Count", "onExitCodes": {**CODES, "values": [0]}}),
            ".spec.podFailurePolicy.rules[0].onExitCodes.values[0]: Invalid value: 0: must not be 0 for the In",
        ),
        (
            policy({"action": "Retry", "onExitCodes": CODES}),
            '.spec.podFailurePolicy.rules[0].action: "Retry" is not one of',
        ),
        (policy(*[{"action": "Count", "onExitCodes": CODES}] * 21), ".spec.podFailurePolicy.rules: Too many: 21"),
    ],
)
def test_a_job_makes_sense(spec: dict[str, Any], error: str) -> None:
    assert error_of("Job", spec).startswith(error)


def test_the_start_of_a_job_is_a_time() -> None:
    assert error_of("Job", {}, status={"startTime": "yesterday"}).startswith('.status.startTime: "yesterday"')


def test_omitted_fields_are_validated_with_their_defaults() -> None:
    deployment: Deployment = read("Deployment")
    stateful_set: StatefulSet = read("StatefulSet", updateStrategy={"type": "RollingUpdate"})
    daemon_set: DaemonSet = read("DaemonSet")
    job: Job = read("Job")

    assert (deployment.spec.replicas, deployment.spec.strategy.type) == (1, "RollingUpdate")
    assert stateful_set.spec.pod_management_policy == "OrderedReady"
    assert stateful_set.spec.update_strategy.rolling_update.partition == 0
    assert daemon_set.spec.update_strategy.rolling_update.max_unavailable == 1
    assert (job.spec.completion_mode, job.spec.backoff_limit) == ("NonIndexed", 6)
