"""What the failure of a pod means to its Job.

Source: pkg/controller/job (pod_failure_policy.go, backoff_utils.go).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from podium.api.meta import Raw
from podium.api.times import parse_time
from podium.api.workloads import PodFailurePolicy, PodFailurePolicyOnExitCodes, PodFailurePolicyRule
from podium.machines.workloads.owned_pods import OwnedPod, time_or_zero

_SECOND = 10**9


@dataclass(frozen=True, slots=True)
class PodFailure:
    """``counts``: towards the Job's limit. ``ends_job`` says why the Job fails with it, "" if it does not."""

    counts: bool = True
    ends_job: str = ""


def judged(policy: PodFailurePolicy | None, pod: OwnedPod) -> PodFailure:
    """The failure of a pod under a policy: that of the first rule that matches.

    FailIndex counts, as Count does: limits for each index are not kept.
    """
    for index, rule in enumerate(policy.rules if policy is not None else ()):
        matched = _matched(rule, pod)
        if matched and rule.action == "FailJob":
            return PodFailure(ends_job=f"{matched}, which rule {index} of the podFailurePolicy takes to be final")
        if matched:
            return PodFailure(counts=rule.action != "Ignore")
    return PodFailure()


def restarts_of(pods: Iterable[OwnedPod]) -> int:
    """How often containers were started again, in pods that have not ended (pastBackoffLimitOnFailure)."""
    return sum(
        count
        for pod in pods
        if pod.pod.status.phase in ("Pending", "Running")
        for field in ("containerStatuses", "initContainerStatuses")
        for status in pod.status.get(field, ())
        if isinstance(count := status.get("restartCount", 0), int)
    )


def finished_ns(pod: OwnedPod) -> int:
    """When a pod has ended, by the first of these that is known.

    The end of its last container, the end of its readiness, the begin of its deletion, its creation.
    """
    ends = [time_or_zero(state.get("finishedAt")) for _, state in _terminated(pod, "containerStatuses")]
    if all(ends) and len(ends) == len(pod.status.get("containerStatuses", ())) > 0:
        return max(ends)
    condition = pod.pod.status.condition("Ready")
    if condition is not None and condition.status == "False" and (since := pod.condition_since_ns("Ready")):
        return since
    meta = pod.pod.metadata
    if meta.deletion_timestamp is not None:
        return parse_time(meta.deletion_timestamp) - (meta.deletion_grace_period_seconds or 0) * _SECOND
    return pod.created_ns


def _matched(rule: PodFailurePolicyRule, pod: OwnedPod) -> str:
    """What a rule matches, in words; "" for nothing."""
    if rule.on_exit_codes is not None:
        for name, code in _exits(pod):
            if _is_meant(rule.on_exit_codes, name, code):
                return f"container {name} of pod {pod.pod.key} has exited with code {code}"
        return ""
    for condition in pod.pod.status.conditions:
        if any(
            (condition.type, condition.status) == (on_pod_condition.type, on_pod_condition.status)
            for on_pod_condition in rule.on_pod_conditions
        ):
            return f"pod {pod.pod.key} has condition {condition.type}"
    return ""


def _is_meant(codes: PodFailurePolicyOnExitCodes, container_name: str, code: int) -> bool:
    if code == 0 or codes.container_name not in (None, container_name):
        return False
    return (code in codes.values) == (codes.operator == "In")


def _exits(pod: OwnedPod) -> Iterator[tuple[str, int]]:
    """Names and exit codes of the containers that have ended."""
    for field in ("containerStatuses", "initContainerStatuses"):
        for name, state in _terminated(pod, field):
            code = state.get("exitCode")
            if isinstance(code, int):
                yield name, code


def _terminated(pod: OwnedPod, field: str) -> Iterator[tuple[str, Raw]]:
    for status in pod.status.get(field, ()):
        state = status.get("state", {}).get("terminated")
        if state is not None:
            yield status.get("name", ""), state
