"""The conditions of a Job: which end it is coming to, and whether it has come to it.

Source: pkg/controller/job/job_controller.go (syncJob, enactJobFinished).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from podium.api.meta import Raw
from podium.api.times import parse_time
from podium.api.workloads import Job
from podium.machines.workloads.jobs.progress import Progress
from podium.store.conditions import with_condition

_SECOND = 10**9
_FINAL: Mapping[str, str] = {"FailureTarget": "Failed", "SuccessCriteriaMet": "Complete"}


@dataclass(frozen=True, slots=True)
class Target:
    """The end that a Job is coming to: FailureTarget or SuccessCriteriaMet, and why."""

    type: str
    reason: str = ""
    message: str = ""

    @property
    def is_failure(self) -> bool:
        """Whether the Job fails."""
        return self.type == "FailureTarget"


def is_finished(job: Job) -> bool:
    """Whether a Job has come to its end."""
    return any(condition.type in _FINAL.values() and condition.status == "True" for condition in job.status.conditions)


def target_of(job: Job) -> Target | None:
    """The end that the status says the Job is coming to."""
    for condition in job.status.conditions:
        if condition.type in _FINAL and condition.status == "True":
            return Target(condition.type, condition.reason, condition.message)
    return None


def failure_of(job: Job, progress: Progress, restarts: int, now: int) -> Target | None:
    """Why a Job has to fail now, None if it has not; ``restarts`` are those of containers that count as failures."""
    limit = job.spec.backoff_limit
    if progress.ends_job:
        return Target("FailureTarget", "PodFailurePolicy", progress.ends_job)
    if progress.failures > limit:
        message = f"{progress.failures} pods have failed; backoffLimit is {limit}"
        return Target("FailureTarget", "BackoffLimitExceeded", message)
    if restarts and restarts >= limit:
        message = f"containers were restarted {restarts} times; backoffLimit is {limit}"
        return Target("FailureTarget", "BackoffLimitExceeded", message)
    deadline = deadline_ns(job)
    if deadline is not None and deadline <= now:
        message = f"it was active for {job.spec.active_deadline_seconds} s, its activeDeadlineSeconds"
        return Target("FailureTarget", "DeadlineExceeded", message)
    return None


def deadline_ns(job: Job) -> int | None:
    """When a Job that runs must have come to its end; None for any time."""
    seconds, start = job.spec.active_deadline_seconds, job.status.start_time
    return None if seconds is None or start is None or job.spec.suspend else parse_time(start) + seconds * _SECOND


def with_target(conditions: list[Raw], target: Target | None, now: int, *, is_reached: bool) -> list[Raw]:
    """The conditions with a Job's target, and with its end where that ``is_reached``."""
    if target is None:
        return conditions
    said = {"reason": target.reason, "message": target.message}
    fields = {name: text for name, text in said.items() if text}
    if not any(condition.get("type") == target.type and condition.get("status") == "True" for condition in conditions):
        conditions = with_condition(conditions, {"type": target.type, "status": "True", **fields}, now)
    if is_reached:
        conditions = with_condition(conditions, {"type": _FINAL[target.type], "status": "True", **fields}, now)
    return conditions


def with_suspension(conditions: list[Raw], now: int, *, is_suspended: bool) -> list[Raw]:
    """The conditions with what there is to say about a Job's suspension."""
    was_suspended = any(
        condition.get("type") == "Suspended" and condition.get("status") == "True" for condition in conditions
    )
    if was_suspended == is_suspended:
        return conditions
    status, reason = ("True", "JobSuspended") if is_suspended else ("False", "JobResumed")
    return with_condition(conditions, {"type": "Suspended", "status": status, "reason": reason}, now)
