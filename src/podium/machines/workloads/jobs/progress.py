"""How far a Job has come: what its status has counted, and what its pods add to it.

Source: pkg/controller/job/job_controller.go (trackJobStatusAndRemoveFinalizers).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from podium.api.meta import Raw
from podium.api.workloads import Job
from podium.machines.workloads.jobs.completion_indexes import index_of, write_indexes
from podium.machines.workloads.jobs.pod_failures import judged
from podium.machines.workloads.jobs.pods import JobPods, Outcome, is_tracked, outcome_of, waits_for_failure
from podium.machines.workloads.owned_pods import OwnedPod


@dataclass(slots=True)
class Progress:
    """What a Job's status is to say next, and what follows from what it says already.

    A pod is counted in steps, so that each is counted once whenever the controller crashes: its uid goes into the
    status among those ``uncounted``; then the pod is released from its finalizer; then the number grows and the uid
    goes. An index among ``indexes`` needs no such steps. ``counted`` are those that the status has already.
    """

    succeeded: int
    failed: int
    indexes: set[int]
    counted: frozenset[int]
    uncounted: dict[Outcome, list[str]] = field(default_factory=lambda: {"succeeded": [], "failed": []})
    # Pods to release, pods that may be known from before they were counted, and all that have ended.
    released: list[OwnedPod] = field(default_factory=list)
    doubtful: list[OwnedPod] = field(default_factory=list)
    ended: list[tuple[OwnedPod, Outcome]] = field(default_factory=list)
    # Why the Job fails by its failure policy.
    ends_job: str = ""

    def successes(self, job: Job) -> int:
        """How many pods, or indexes, have succeeded."""
        if job.spec.completion_mode == "Indexed":
            return len(self.indexes)
        return self.succeeded + len(self.uncounted["succeeded"])

    @property
    def failures(self) -> int:
        """How many pods have failed, not counting those that the failure policy ignores."""
        return self.failed + len(self.uncounted["failed"])

    @property
    def is_counting(self) -> bool:
        """Whether there are pods that are not counted to the end."""
        return bool(self.uncounted["succeeded"] or self.uncounted["failed"])

    def status(self, job: Job) -> Raw:
        """The fields of the status."""
        is_indexed = job.spec.completion_mode == "Indexed"
        is_same = len(self.indexes) == len(self.counted)
        return {
            "succeeded": len(self.indexes) if is_indexed else self.succeeded,
            "failed": self.failed,
            "completedIndexes": job.status.completed_indexes if is_same else write_indexes(self.indexes),
            "uncountedTerminatedPods": {name: uids for name, uids in self.uncounted.items() if uids},
        }


def progress_of(
    job: Job,
    pods: JobPods,
    known: Mapping[str, OwnedPod],
    counted: frozenset[int],
    *,
    is_failing: bool,
    older_than_ns: int,
    missing: frozenset[str],
) -> Progress:
    """The progress of a Job.

    ``known`` are all of its pods, ``counted`` the indexes that its status has. ``is_failing``: pods that were deleted
    have failed. What an earlier life of the controller may have counted already, because it was created until
    ``older_than_ns``, is doubtful while not checked. ``missing`` are uids that were waited for long enough.
    """
    status = job.status
    progress = Progress(status.succeeded, status.failed, set(counted), counted)
    if _is_untouched(job):
        _take_over(job, known, progress)
    _settle(job, pods, known, progress, missing)
    waits = waits_for_failure(job.spec) and not is_failing
    written = {*status.uncounted_terminated_pods.succeeded, *status.uncounted_terminated_pods.failed}
    for uid, pod in pods.ended.items():
        outcome = outcome_of(pod, waits=waits)
        if outcome is None:
            continue
        progress.ended.append((pod, outcome))
        if uid not in written:
            is_doubtful = pod.created_ns <= older_than_ns and uid not in pods.checked
            _enter(job, pod, outcome, progress, is_doubtful=is_doubtful)
    return progress


def _settle(
    job: Job, pods: JobPods, known: Mapping[str, OwnedPod], progress: Progress, missing: frozenset[str]
) -> None:
    """Release the pods that the status is about to count, and count those that are released."""
    uncounted = job.status.uncounted_terminated_pods
    for uid in uncounted.succeeded:
        if _stays(uid, pods, known, progress, missing):
            progress.uncounted["succeeded"].append(uid)
        else:
            progress.succeeded += 1
    for uid in uncounted.failed:
        if _stays(uid, pods, known, progress, missing):
            progress.uncounted["failed"].append(uid)
        else:
            progress.failed += 1


def _stays(uid: str, pods: JobPods, known: Mapping[str, OwnedPod], progress: Progress, missing: frozenset[str]) -> bool:
    """Whether a pod has its finalizer, or may have it; one that has it is to be released once its end is seen."""
    if uid in pods.ended:
        progress.released.append(pods.ended[uid])
    if uid in known:
        return is_tracked(known[uid])
    return uid not in pods.gone and uid not in missing


def _enter(job: Job, pod: OwnedPod, outcome: Outcome, progress: Progress, *, is_doubtful: bool) -> None:
    """Put a pod that has ended among those to be counted, or release it where it does not count."""
    is_indexed = job.spec.completion_mode == "Indexed"
    index = index_of(pod.pod, job.spec.completions or 0) if is_indexed else None
    if is_indexed and (index is None or (outcome == "succeeded" and index in progress.counted)):
        progress.released.append(pod)
    elif outcome == "succeeded" and index is not None:
        progress.indexes.add(index)
    else:
        failure = judged(job.spec.pod_failure_policy, pod)
        if outcome == "failed" and not failure.counts:
            progress.released.append(pod)
        elif is_doubtful:
            progress.doubtful.append(pod)
        else:
            progress.uncounted[outcome].append(pod.uid)
            if outcome == "failed":
                progress.ends_job = progress.ends_job or failure.ends_job


def _is_untouched(job: Job) -> bool:
    """Whether no controller has ever written the Job's status."""
    return job.status.start_time is None and not (job.status.succeeded or job.status.failed or job.status.conditions)


def _take_over(job: Job, known: Mapping[str, OwnedPod], progress: Progress) -> None:
    """Count the pods that ended before there was a controller, and so without the finalizer."""
    for pod in known.values():
        if pod.pod.is_terminal and not is_tracked(pod):
            if job.spec.completion_mode == "Indexed" and pod.pod.status.phase == "Succeeded":
                index = index_of(pod.pod, job.spec.completions or 0)
                progress.indexes |= set() if index is None else {index}
            elif pod.pod.status.phase == "Succeeded":
                progress.succeeded += 1
            else:
                progress.failed += 1
