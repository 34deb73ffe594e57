"""How many pods a Job is to have at once, and which of them it does without.

Source: pkg/controller/job/job_controller.go (manageJob, activePodsForRemoval), indexed_job_utils.go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from podium.api.workloads import Job
from podium.machines.workloads.jobs.completion_indexes import free_indexes, index_of
from podium.machines.workloads.jobs.progress import Progress
from podium.machines.workloads.owned_pods import OwnedPod
from podium.machines.workloads.pod_ranking import first_to_go
from podium.machines.workloads.workload import Workload


def completions_of(workload: Workload[Job]) -> int | None:
    """How many successes complete the Job; None where any does. A Job that says nothing at all runs one pod once."""
    if workload.object.spec.completions is None and "parallelism" not in workload.spec:
        return 1
    return workload.object.spec.completions


def wanted_pods(workload: Workload[Job], progress: Progress, active: int) -> int:
    """How many pods should be active, where so many are; where any success completes the Job, none start after it."""
    job, completions = workload.object, completions_of(workload)
    if job.spec.suspend:
        return 0
    succeeded = progress.successes(job)
    if completions is None:
        return active if succeeded else job.spec.parallelism
    return max(0, min(job.spec.parallelism, completions - succeeded))


def surplus_pods(job: Job, active: Collection[OwnedPod], wanted: int, now: int) -> list[OwnedPod]:
    """The active pods to do without: in a Job with indexes those that have none of their own, then those too many."""
    odd = _without_own_index(job, active) if job.spec.completion_mode == "Indexed" else []
    uids = {pod.uid for pod in odd}
    rest = [pod for pod in active if pod.uid not in uids] if odd else active
    return [*odd, *first_to_go(rest, len(rest) - wanted, (), now)] if len(rest) > wanted else odd


def _without_own_index(job: Job, active: Collection[OwnedPod]) -> list[OwnedPod]:
    """Pods without an index, or with that of an older one."""
    indexes = [index_of(pod.pod, job.spec.completions or 0) for pod in active]
    if None not in indexes and len(set(indexes)) == len(indexes):
        return []
    odd: list[OwnedPod] = []
    taken: set[int] = set()
    for pod, index in sorted(zip(active, indexes, strict=True), key=lambda item: (item[0].created_ns, item[0].uid)):
        if index is None or index in taken:
            odd.append(pod)
        else:
            taken.add(index)
    return odd


def new_indexes(job: Job, progress: Progress, others: Iterable[OwnedPod], count: int) -> list[int | None]:
    """The indexes of ``count`` new pods beside ``others``, fewer where none are free; None where there are none."""
    if job.spec.completion_mode != "Indexed":
        return [None] * count
    completions = job.spec.completions or 0
    taken = {index for pod in others if (index := index_of(pod.pod, completions)) is not None}
    return list(free_indexes(count, completions, taken | progress.indexes))
