"""How many pods a Job wants now."""

from __future__ import annotations

from podium.api.meta import Kubernetes, Narrow, Raw
from podium.api.pod import PodCondition
from podium.api.reading import read
from podium.api.workloads import Job


class JobStatus(Narrow, frozen=True, kw_only=True):
    """How far a Job had come before the simulation."""

    succeeded: int = 0
    failed: int = 0
    conditions: tuple[PodCondition, ...] = ()


class JobProgress(Kubernetes, frozen=True, kw_only=True):
    """The part of a Job that says how far it has come."""

    status: JobStatus = JobStatus()


def active_wanted(job: Job, raw: Raw, active: int, succeeded: int, failed: int) -> int:
    """How many pods should be active, given how many are, and how many have succeeded and failed.

    The rules of pkg/controller/job (manageJob); a pod that was deleted counts as neither.
    A Job without completions runs `parallelism` pods until one succeeds, then lets the rest end. One that has finished,
    is suspended, or has failed more often than `backoffLimit` wants none. What its status counts, counts too.
    """
    status = read(raw, JobProgress).status
    finished = any(one.type in ("Complete", "Failed") and one.status == "True" for one in status.conditions)
    if finished or job.spec.suspend or max(failed, status.failed) > job.spec.backoff_limit:
        return 0
    succeeded = max(succeeded, status.succeeded)
    completions = job.spec.completions
    if completions is None and "parallelism" in raw.get("spec", {}):
        return active if succeeded else job.spec.parallelism
    return max(0, min(job.spec.parallelism, (1 if completions is None else completions) - succeeded))
