"""The progress of a Job: the counts in its status, and what its pods add.

Source: pkg/controller/job/job_controller.go (trackJobStatusAndRemoveFinalizers).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from podium.api.meta import Raw
from podium.api.times import parse_time, time_of
from podium.api.workloads import Job, PodFailurePolicy, PodFailurePolicyRule
from podium.controllers.workloads.job_pods import (
    JobState,
    Outcome,
    failures_before,
    index_of,
    is_tracked,
    outcome_of,
    read_indexes,
    waits_for_failure,
    write_indexes,
)
from podium.controllers.workloads.owned_pods import OwnedPod
from podium.store.conditions import is_true, with_condition


@dataclass(slots=True)
class Progress:
    """The next status of a Job.

    A pod is counted in steps, so that it counts once even if the controller restarts: its uid is added to ``uncounted``
    in the status; its finalizer is removed; the number in ``finished`` grows and the uid is removed. ``indexes`` need
    no steps; ``counted`` are those in the status. ``released`` are pods to release, ``doubtful`` ones may have been
    counted before, and ``ended`` are all that have ended. ``ends_job`` is why the Job fails by its failure policy.
    ``failed`` are the indexes with more failures than allowed.
    """

    finished: dict[Outcome, int]
    counted: frozenset[int]
    indexes: set[int]
    uncounted: dict[Outcome, list[str]] = field(default_factory=lambda: {"succeeded": [], "failed": []})
    released: list[OwnedPod] = field(default_factory=list)
    doubtful: list[OwnedPod] = field(default_factory=list)
    ended: list[tuple[OwnedPod, Outcome]] = field(default_factory=list)
    ends_job: str = ""
    failed: set[int] = field(default_factory=set)

    def successes(self, job: Job) -> int:
        """Return the number of succeeded pods or indexes."""
        return len(self.indexes) if _is_indexed(job) else self.number("succeeded")

    def status(self, job: Job) -> Raw:
        is_same = len(self.indexes) == len(self.counted)
        return {
            "succeeded": len(self.indexes) if _is_indexed(job) else self.finished["succeeded"],
            "failed": self.finished["failed"],
            "completedIndexes": job.status.completed_indexes if is_same else write_indexes(self.indexes),
            "failedIndexes": None if job.spec.backoff_limit_per_index is None else write_indexes(self.failed),
            "uncountedTerminatedPods": {name: uids for name, uids in self.uncounted.items() if uids},
        }

    def number(self, outcome: Outcome) -> int:
        """Return the number of pods that ended so, without failed ones that the failure policy ignores."""
        return self.finished[outcome] + len(self.uncounted[outcome])


def progress_of(
    job: Job,
    state: JobState,
    known: Mapping[str, OwnedPod],
    *,
    is_failing: bool,
    older_than_ns: int,
    missing: frozenset[str],
) -> Progress:
    """Return the progress of a Job.

    ``known`` are all of its pods. ``is_failing``: deleted pods have failed. A pod created until ``older_than_ns`` may
    have been counted by an earlier instance, and is doubtful unless checked. ``missing`` are uids that were waited for
    long enough.
    """
    status, counted = job.status, state.completed_indexes(job)
    uncounted: dict[Outcome, Sequence[str]] = {
        "succeeded": status.uncounted_terminated_pods.succeeded,
        "failed": status.uncounted_terminated_pods.failed,
    }
    progress = Progress({"succeeded": status.succeeded, "failed": status.failed}, counted, set(counted))
    if status.failed_indexes:
        progress.failed = read_indexes(status.failed_indexes, job.spec.completions or 0)
    if status.start_time is None and not (status.succeeded or status.failed or status.conditions):
        _take_over(job, known, progress)
    for outcome, uids in uncounted.items():
        for uid in uids:
            if uid in state.ended:
                progress.released.append(state.ended[uid])
            # The others are released, and count now.
            is_held = is_tracked(known[uid]) if uid in known else uid not in state.gone and uid not in missing
            if is_held:
                progress.uncounted[outcome].append(uid)
            else:
                progress.finished[outcome] += 1
    waits = waits_for_failure(job.spec) and not is_failing
    written = {uid for uids in uncounted.values() for uid in uids}
    for uid, pod in state.ended.items():
        found = outcome_of(pod, waits=waits)
        if found is not None:
            progress.ended.append((pod, found))
            if uid not in written:
                is_doubtful = pod.created_ns <= older_than_ns and uid not in state.checked
                _enter(job, pod, found, progress, is_doubtful=is_doubtful)
    return progress


def _is_indexed(job: Job) -> bool:
    return job.spec.completion_mode == "Indexed"


def _enter(job: Job, pod: OwnedPod, outcome: Outcome, progress: Progress, *, is_doubtful: bool) -> None:
    """Add an ended pod to those to be counted, or release it if it does not count."""
    index = index_of(pod.pod, job.spec.completions or 0) if _is_indexed(job) else None
    if _is_indexed(job) and (index is None or (outcome == "succeeded" and index in progress.counted)):
        progress.released.append(pod)
        return
    if outcome == "succeeded" and index is not None:
        progress.indexes.add(index)
        return
    failure = judged(job.spec.pod_failure_policy, pod)
    if outcome == "failed" and not failure.counts:
        progress.released.append(pod)
    elif is_doubtful:
        progress.doubtful.append(pod)
    else:
        progress.uncounted[outcome].append(pod.uid)
        if outcome == "failed":
            progress.ends_job = progress.ends_job or failure.ends_job
            limit = job.spec.backoff_limit_per_index
            if limit is not None and index is not None and (failure.ends_index or (failures_before(pod) or 0) >= limit):
                progress.failed.add(index)


def _take_over(job: Job, known: Mapping[str, OwnedPod], progress: Progress) -> None:
    """Count the pods that ended before any controller wrote the Job's status, without the finalizer."""
    for pod in known.values():
        if pod.pod.is_terminal and not is_tracked(pod):
            outcome: Outcome = "succeeded" if pod.pod.status.phase == "Succeeded" else "failed"
            if _is_indexed(job) and outcome == "succeeded":
                index = index_of(pod.pod, job.spec.completions or 0)
                progress.indexes |= set() if index is None else {index}
            else:
                progress.finished[outcome] += 1


_SECOND = 10**9


@dataclass(frozen=True, slots=True)
class PodFailure:
    """Whether a failure counts towards the limit and ends its index; ``ends_job`` is why it ends the Job, or ""."""

    counts: bool = True
    ends_job: str = ""
    ends_index: bool = False


def judged(policy: PodFailurePolicy | None, pod: OwnedPod) -> PodFailure:
    """Return the result of a failure by the first matching rule."""
    for index, rule in enumerate(policy.rules if policy is not None else ()):
        matched = _matched(rule, pod)
        if matched and rule.action == "FailJob":
            return PodFailure(ends_job=f"{matched}, which rule {index} of the podFailurePolicy takes to be final")
        if matched:
            return PodFailure(counts=rule.action != "Ignore", ends_index=rule.action == "FailIndex")
    return PodFailure()


def restarts_of(pods: Iterable[OwnedPod]) -> int:
    """Return the container restarts in pods that have not ended (pastBackoffLimitOnFailure)."""
    return sum(
        count
        for pod in pods
        if pod.pod.status.phase in ("Pending", "Running")
        for field in ("containerStatuses", "initContainerStatuses")
        for status in pod.status.get(field, ())
        if isinstance(count := status.get("restartCount", 0), int)
    )


def finished_ns(pod: OwnedPod) -> int:
    """Return when a pod ended: the end of its last container, of readiness, its deletion, or its creation."""
    ends = [time_of(state.get("finishedAt")) or 0 for _, state in _terminated(pod, "containerStatuses")]
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
    """Return what a rule matches, in words; "" for nothing."""
    codes = rule.on_exit_codes
    if codes is not None:
        ended = (each for field in ("containerStatuses", "initContainerStatuses") for each in _terminated(pod, field))
        for name, state in ended:
            code = state.get("exitCode")
            is_failure = isinstance(code, int) and code and codes.container_name in (None, name)
            if is_failure and (code in codes.values) == (codes.operator == "In"):
                return f"container {name} of pod {pod.pod.key} has exited with code {code}"
        return ""
    meant = {(condition.type, condition.status) for condition in rule.on_pod_conditions}
    found = (condition.type for condition in pod.pod.status.conditions if (condition.type, condition.status) in meant)
    return next((f"pod {pod.pod.key} has condition {type_}" for type_ in found), "")


def _terminated(pod: OwnedPod, field: str) -> Iterator[tuple[str, Raw]]:
    for status in pod.status.get(field, ()):
        state = status.get("state", {}).get("terminated")
        if state is not None:
            yield status.get("name", ""), state


_FINAL: Mapping[str, str] = {"FailureTarget": "Failed", "SuccessCriteriaMet": "Complete"}


@dataclass(frozen=True, slots=True)
class JobEnd:
    """The end that a Job approaches: FailureTarget or SuccessCriteriaMet, and why."""

    type: str
    reason: str = ""
    message: str = ""

    @property
    def is_failure(self) -> bool:
        return self.type == "FailureTarget"


def is_finished(job: Job) -> bool:
    """Return whether a Job is finished."""
    return any(condition.type in _FINAL.values() and condition.status == "True" for condition in job.status.conditions)


def target_of(job: Job) -> JobEnd | None:
    """Return the end that the status announces."""
    for condition in job.status.conditions:
        if condition.type in _FINAL and condition.status == "True":
            return JobEnd(condition.type, condition.reason, condition.message)
    return None


def failure_of(job: Job, progress: Progress, restarts: int, now: int) -> JobEnd | None:
    """Return why a Job fails now, or None; ``restarts`` count as failures."""
    limit, failures = job.spec.backoff_limit, progress.number("failed")
    if progress.ends_job:
        return JobEnd("FailureTarget", "PodFailurePolicy", progress.ends_job)
    if failures > limit:
        message = f"{failures} pods have failed; backoffLimit is {limit}"
        return JobEnd("FailureTarget", "BackoffLimitExceeded", message)
    if restarts and restarts >= limit:
        message = f"containers were restarted {restarts} times; backoffLimit is {limit}"
        return JobEnd("FailureTarget", "BackoffLimitExceeded", message)
    if job.spec.max_failed_indexes is not None and len(progress.failed) > job.spec.max_failed_indexes:
        message = f"{len(progress.failed)} indexes have failed; maxFailedIndexes is {job.spec.max_failed_indexes}"
        return JobEnd("FailureTarget", "MaxFailedIndexesExceeded", message)
    deadline = deadline_ns(job)
    if deadline is not None and deadline <= now:
        message = f"it was active for {job.spec.active_deadline_seconds} s, its activeDeadlineSeconds"
        return JobEnd("FailureTarget", "DeadlineExceeded", message)
    return None


def success_of(job: Job, progress: Progress) -> JobEnd | None:
    """Return why a Job succeeds by its success policy, or None (matchSuccessPolicy)."""
    policy = job.spec.success_policy
    for number, rule in enumerate(policy.rules if policy is not None else ()):
        named = read_indexes(rule.succeeded_indexes, job.spec.completions or 0)
        succeeded = progress.indexes & named if rule.succeeded_indexes else progress.indexes
        if len(succeeded) >= (len(named) if rule.succeeded_count is None else rule.succeeded_count):
            return JobEnd("SuccessCriteriaMet", "SuccessPolicy", f"Matched rules at index {number}")
    return None


def completion_of(job: Job, progress: Progress, completions: int | None) -> JobEnd | None:
    """Return how a Job ends of which no pod is active, or None; ``completions`` None needs one success."""
    if progress.successes(job) + len(progress.failed) < (1 if completions is None else completions):
        return None
    if progress.failed:
        return JobEnd("FailureTarget", "FailedIndexes", "Job has failed indexes")
    return JobEnd("SuccessCriteriaMet", "CompletionsReached", "Reached expected number of succeeded pods")


def deadline_ns(job: Job) -> int | None:
    """Return when a running Job must be finished; None for any time."""
    seconds, start = job.spec.active_deadline_seconds, job.status.start_time
    return None if seconds is None or start is None or job.spec.suspend else parse_time(start) + seconds * _SECOND


def expiry_ns(job: Job, conditions: list[Raw]) -> int | None:
    """Return when a finished Job is to be deleted; None for never. Source: pkg/controller/ttlafterfinished."""
    seconds = job.spec.ttl_seconds_after_finished
    ends = [one for one in conditions if one.get("type") in _FINAL.values() and one.get("status") == "True"]
    finished = time_of(ends[0].get("lastTransitionTime")) if ends else None
    return None if seconds is None or finished is None else finished + seconds * _SECOND


def with_target(conditions: list[Raw], target: JobEnd | None, now: int, *, is_reached: bool) -> list[Raw]:
    """Return the conditions with a Job's target, and with its end if that ``is_reached``."""
    if target is None:
        return conditions
    said = {"reason": target.reason, "message": target.message}
    fields = {name: text for name, text in said.items() if text}
    if not is_true(conditions, target.type):
        conditions = with_condition(conditions, {"type": target.type, "status": "True", **fields}, now)
    if is_reached:
        conditions = with_condition(conditions, {"type": _FINAL[target.type], "status": "True", **fields}, now)
    return conditions
