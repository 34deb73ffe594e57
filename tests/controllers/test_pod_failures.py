"""The effect of a pod failure on its Job."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from podium.api.pod import Container, PodCondition
from podium.api.workloads import PodFailurePolicy
from podium.controllers.workloads.job_pods import PodFailure, failure_result, finished_ns
from podium.controllers.workloads.owned_pods import OwnedPod
from tests import builders
from tests.builders import DAY_ONE_NS, at, owned_pod

SECOND = 10**9


def failed(*conditions: str, **exit_codes: int) -> OwnedPod:
    made = builders.pod("p", on="n1", created=5)
    status = replace(
        made.status, phase="Failed", conditions=tuple(PodCondition(type=one, status="True") for one in conditions)
    )
    containers = [{"name": name, "state": {"terminated": {"exitCode": code}}} for name, code in exit_codes.items()]
    return owned_pod(replace(made, status=status), {"containerStatuses": containers})


def policy(*rules: Any) -> PodFailurePolicy:
    return msgspec.convert({"rules": rules}, PodFailurePolicy)


def on_codes(action: str, operator: str, *values: int, **more: str) -> Any:
    return {"action": action, "onExitCodes": {"operator": operator, "values": values, **more}}


def on_condition(action: str, type_: str) -> Any:
    return {"action": action, "onPodConditions": [{"type": type_}]}


COUNTS, DOES_NOT_COUNT = PodFailure(), PodFailure(counts=False)


def test_without_a_policy_every_failure_counts() -> None:
    assert failure_result(None, failed("DisruptionTarget")) == COUNTS


def test_a_disruption_can_be_ignored() -> None:
    rules = policy(on_condition("Ignore", "DisruptionTarget"))

    assert failure_result(rules, failed("DisruptionTarget")) == DOES_NOT_COUNT
    assert failure_result(rules, failed("Other")) == COUNTS


@pytest.mark.parametrize(
    ("operator", "values", "code", "expected"),
    [
        ("In", (1, 42), 42, DOES_NOT_COUNT),
        ("In", (1, 42), 7, COUNTS),
        ("NotIn", (1, 42), 7, DOES_NOT_COUNT),
        ("NotIn", (1, 42), 1, COUNTS),
        ("NotIn", (1, 42), 0, COUNTS),
    ],
)
def test_exit_codes_are_matched(operator: str, values: tuple[int, ...], code: int, expected: PodFailure) -> None:
    assert failure_result(policy(on_codes("Ignore", operator, *values)), failed(main=code)) == expected


def test_a_container_can_be_named() -> None:
    rules = policy(on_codes("Ignore", "In", 42, containerName="main"))

    assert failure_result(rules, failed(main=42, helper=1)) == DOES_NOT_COUNT
    assert failure_result(rules, failed(main=1, helper=42)) == COUNTS


def test_the_first_rule_that_matches_decides() -> None:
    rules = policy(on_codes("Count", "In", 1), on_codes("Ignore", "In", 1, 2), on_codes("FailJob", "In", 1, 2, 3))

    assert failure_result(rules, failed(main=1)) == COUNTS
    assert failure_result(rules, failed(main=2)) == DOES_NOT_COUNT
    assert failure_result(rules, failed(main=3)).ends_job == (
        "container main of pod default/p has exited with code 3, which rule 2 of the podFailurePolicy takes to be final"
    )


def test_a_failure_can_end_its_index() -> None:
    found = failure_result(policy(on_condition("FailIndex", "DisruptionTarget")), failed("DisruptionTarget"))

    assert found == PodFailure(counts=True, ends_index=True)


def test_codes_of_init_containers_count_too() -> None:
    status = {"initContainerStatuses": [{"name": "setup", "state": {"terminated": {"exitCode": 42}}}]}

    assert failure_result(policy(on_codes("Ignore", "In", 42)), owned_pod(failed().pod, status)) == DOES_NOT_COUNT


def test_a_pod_has_ended_when_its_last_container_has() -> None:
    ends = [{"name": str(one), "state": {"terminated": {"finishedAt": at(one)}}} for one in (20, 30)]

    assert finished_ns(owned_pod(failed().pod, {"containerStatuses": ends})) == DAY_ONE_NS + 30 * SECOND


def test_a_sidecar_ends_after_the_containers_and_a_setup_before_them() -> None:
    def end(name: str, second: int) -> Any:
        return {"name": name, "state": {"terminated": {"finishedAt": at(second)}}}

    pod = failed().pod
    spec = replace(pod.spec, init_containers=(Container(name="setup"), Container(name="log", restart_policy="Always")))
    status = {"containerStatuses": [end("main", 20)], "initContainerStatuses": [end("setup", 50), end("log", 25)]}

    assert finished_ns(owned_pod(replace(pod, spec=spec), status)) == DAY_ONE_NS + 25 * SECOND


def test_a_pod_without_container_times_finished_when_it_became_unready() -> None:
    made = builders.pod("p", created=5)
    made = replace(made, status=replace(made.status, conditions=(PodCondition(type="Ready", status="False"),)))
    status = {
        "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": at(20)}],
        "containerStatuses": [{"name": "main", "state": {"running": {}}}],
    }

    assert finished_ns(owned_pod(made, status)) == DAY_ONE_NS + 20 * SECOND


def test_a_pod_without_end_times_finished_at_its_deletion_or_creation() -> None:
    made = builders.pod("p", created=5)
    deleted = replace(
        made, metadata=replace(made.metadata, deletion_timestamp=at(60), deletion_grace_period_seconds=30)
    )

    assert finished_ns(owned_pod(deleted, {})) == DAY_ONE_NS + 30 * SECOND
    assert finished_ns(owned_pod(made, {})) == DAY_ONE_NS + 5 * SECOND
