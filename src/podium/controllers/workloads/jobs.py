"""The controller of Jobs.

Source: pkg/controller/job.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from podium.api.meta import Kubernetes, Raw
from podium.api.pod import Pod
from podium.api.times import SECOND, format_time, parse_time, time_of
from podium.api.versions.gates import Gate
from podium.api.versions.release import DEFAULT_RELEASE, Release
from podium.api.workloads import JOB_TRACKING, Job
from podium.controllers.actions import Action, CreateObject, PatchObject, versioned_patch
from podium.controllers.observations import ActionFinished
from podium.controllers.workloads import job_pods
from podium.controllers.workloads.job_pods import JobState, Progress, index_of, is_tracked
from podium.controllers.workloads.owned_pods import OwnedPod, OwnedPodChange, WorkloadObject, first_to_go, status_with
from podium.controllers.workloads.workload_controller import WorkloadController
from podium.store.stored import is_true, with_conditions

_Workload = WorkloadObject[Job]
_CONTROLLER = "job-controller"
# How long a missing object is waited for, because kinds may be observed out of order.
_PATIENCE_NS = 60 * SECOND
_ALWAYS = ("ready", "terminating", "uncountedTerminatedPods")


class Jobs(WorkloadController[Job]):
    """Creates pods, counts how they end, and removes their finalizers.

    Counts exist only in the Job's status; pods keep a finalizer until they are counted. Pods of a Job that is gone or
    unknown are released; adopted pods get the finalizer. The ``release`` decides whether a Job that is suspended loses
    its start time. With ``adopts``, Jobs adopt and release pods.
    """

    watches = WorkloadController.watches | {"Job", "Pod"}
    claim_finalizer = JOB_TRACKING

    def __init__(self, release: Release = DEFAULT_RELEASE, *, adopts: bool = False) -> None:
        super().__init__(Job, adopts=(Pod,) if adopts else ())
        self._forgets_start = release.enabled(Gate.MUTABLE_JOB_DIRECTIVES)
        self._states: dict[str, JobState] = {}
        # An earlier instance of this controller may have counted before this time.
        self._begin_ns: int | None = None

    def _state(self, uid: str) -> JobState:
        return self._states.setdefault(uid, JobState())

    def _put(self, workload: _Workload) -> None:
        super()._put(workload)
        self._state(workload.uid).missed_since = None

    def _remove(self, uid: str) -> None:
        state = self._states.pop(uid, None)
        if state is not None and uid in self._workloads and self._pods.of(uid).all:
            state.is_gone = True
            self._states[uid] = state
        super()._remove(uid)
        if uid in self._states:
            self._queue.add(uid)

    def _see_pod(self, change: OwnedPodChange, now: int) -> None:
        uid = change.owner_uid
        if self._begin_ns is None:
            self._begin_ns = now
        self._state(uid).see(change)
        super()._see_pod(change, now)
        if uid not in self._workloads and not self._pods.of(uid).all:
            del self._states[uid]

    def _ended_at_once(self, uid: str, pod: OwnedPod, now: int) -> None:
        if not is_tracked(pod):
            super()._ended_at_once(uid, pod, now)

    def _on_finished(self, finished: ActionFinished, now: int) -> list[Action]:
        action = finished.action
        if not isinstance(action, PatchObject) or "ownerReferences" in action.patch.get("metadata", {}):
            return super()._on_finished(finished, now)
        self._take_key(action)
        known = self._pods.named(action.key)
        owner = known.pod.metadata.controller if known is not None and known.uid == action.uid else None
        if owner is not None:
            state = self._states[owner.uid]
            if finished.problem is not None:
                state.requested.pop(action.uid, None)
                self._queue.answer(owner.uid, finished, now)
            elif "finalizers" not in action.patch["metadata"]:
                state.check(action.uid)
                self._queue.add(owner.uid)
        return []

    def _may_own(self, workload: _Workload, object_: Kubernetes) -> bool:
        """Return whether the Job is not finished, and this controller manages it."""
        return not is_finished(workload.object) and _is_managed(workload.object)

    def _sync_unknown(self, uid: str, now: int) -> list[Action]:
        state, pods = self._states.get(uid), self._pods.of(uid).all.values()
        if state is None or not pods:
            return []
        if state.is_gone:
            return _release(state, pods, _CONTROLLER)
        state.missed_since = now if state.missed_since is None else state.missed_since
        if now >= state.missed_since + _PATIENCE_NS:
            return _release(state, state.ended.values(), _CONTROLLER)
        self._times.append(state.missed_since + _PATIENCE_NS)
        return []

    def _sync(self, workload: _Workload, now: int) -> list[Action]:
        job, uid, pods = workload.object, workload.uid, self._pods.of(workload.uid)
        if not _is_managed(job):
            return []
        state = self._state(uid)
        if is_finished(job) or workload.is_deleted:
            state.failures = 0
            # A surplus pod comes from a request that was carried out without an answer.
            surplus = list(pods.active.values()) if is_finished(job) else []
            actions = _release(state, state.ended.values(), workload.label)
            return actions + self._give_up(workload, state, surplus, now) + self._expire(workload, now)
        target = target_of(job)
        progress = self._progress(workload, state, target, now)
        state.note_ends((pod, job_pods.finished_ns(pod), outcome) for pod, outcome in progress.ended)
        actions = _release(state, progress.released, workload.label)
        if progress.doubtful:
            # A patch without changes fails unless the pod is unchanged.
            doubtful = (pod.pod for pod in progress.doubtful if state.ask(pod))
            return actions + [versioned_patch(pod, {}, workload.label) for pod in doubtful]
        # Restarts count towards the backoff limit with restart policy OnFailure.
        is_counted = job.spec.template.spec.restart_policy == "OnFailure"
        restarts = job_pods.restarts_of(pods.all.values()) if is_counted else 0
        target = target or failure_of(job, progress, restarts, now) or success_of(job, progress)
        is_ready = self._expectations.are_met(uid)
        if is_ready and target is not None and target.is_failure:
            # Other than surplus pods, these are counted.
            actions += [self._delete(workload, pod.pod, now) for pod in pods.active.values()]
        elif is_ready and target is not None:
            actions += self._give_up(workload, state, list(pods.active.values()), now)
        elif is_ready:
            actions += self._manage(workload, state, progress, now)
        actions += self._track(workload, state)
        if target is None and (deadline := deadline_ns(job)) is not None:
            self._times.append(deadline)
        expected = self._expectations.get(uid)
        active = len(pods.active) + (expected.creations if expected is not None else 0)
        if target is None and not active:
            target = completion_of(job, progress, completions_of(workload))
        return actions + self._write_status(workload, self._status(workload, state, progress, target, active, now))

    def _progress(self, workload: _Workload, state: JobState, target: JobEnd | None, now: int) -> Progress:
        job, known = workload.object, self._pods.of(workload.uid).all
        uncounted = job.status.uncounted_terminated_pods
        uids = (*uncounted.succeeded, *uncounted.failed)
        state.gone = {uid: None for uid in uids if uid in state.gone}
        state.missed = {uid: state.missed.get(uid, now) for uid in uids if uid not in known and uid not in state.gone}
        due = {uid: since + _PATIENCE_NS for uid, since in state.missed.items()}
        self._times.extend(time for time in due.values() if time > now)
        return job_pods.progress_of(
            job,
            state,
            known,
            is_failing=target is not None and target.is_failure,
            older_than_ns=self._begin_ns or 0,
            missing=frozenset(uid for uid, time in due.items() if time <= now),
        )

    def _track(self, workload: _Workload, state: JobState) -> list[Action]:
        """Add the finalizer to active pods without it, except those that are being deleted."""
        expected = self._expectations.get(workload.uid)
        going = expected.changes if expected is not None else {}
        kept = (pod for pod in state.untracked.values() if pod.uid not in going and state.ask(pod))
        return [job_pods.finalizers_patch(pod, workload.label, tracked=True) for pod in kept]

    def _expire(self, workload: _Workload, now: int) -> list[Action]:
        """Delete a finished Job after its time to live. A simulation does not go on only for that."""
        due_ns = expiry_ns(workload.object, workload.conditions)
        if due_ns is None or workload.is_deleted or not self._expectations.are_met(workload.uid):
            return []
        if now < due_ns:
            self._retry_times.append(due_ns)
            return []
        return [self._delete(workload, workload.object, now)]

    def _give_up(self, workload: _Workload, state: JobState, surplus: list[OwnedPod], now: int) -> list[Action]:
        """Delete surplus pods; their finalizers are removed first, so that they are not counted."""
        if not self._expectations.are_met(workload.uid):
            return []
        released = _release(state, surplus, workload.label)
        return [*released, *(self._delete(workload, pod.pod, now) for pod in surplus)]

    def _manage(self, workload: _Workload, state: JobState, progress: Progress, now: int) -> list[Action]:
        job, uid = workload.object, workload.uid
        active = self._pods.of(uid).active
        wanted = wanted_pods(workload, progress, len(active))
        # Surplus are the pods without a unique index, then those beyond the wanted number.
        odd = _without_own_index(job, active.values(), now) if job.spec.completion_mode == "Indexed" else []
        odd_uids = {pod.uid for pod in odd}
        rest = [pod for pod in active.values() if pod.uid not in odd_uids] if odd else active.values()
        if odd or len(rest) > wanted:
            surplus = [*odd, *first_to_go(rest, max(len(rest) - wanted, 0), None, now)]
            return self._give_up(workload, state, surplus, now)
        ending = state.terminating if job_pods.waits_for_failure(job.spec) else {}
        missing = wanted - len(active) - len(ending)
        if missing <= 0:
            return []
        until = job_pods.backoff_end_ns(state.last_failure_ns, state.failures)
        if job.spec.backoff_limit_per_index is None and until > now:
            (self._retry_times if state.is_hopeless else self._times).append(until)
            return []
        if not self._may_create(workload, now):
            return []
        count = 1 if uid in self._waits.refused else missing
        return self._make(workload, state, new_indexes(job, progress, (*active.values(), *ending.values()), count), now)

    def _make(self, workload: _Workload, state: JobState, indexes: Iterable[int | None], now: int) -> list[Action]:
        """Create pods; those for indexes with limited failures come after a backoff of their own."""
        spec = workload.object.spec
        actions: list[Action] = []
        for index in indexes:
            last, failures, until = None if index is None else state.last_failed.get(index), (0, 0), 0
            if last is not None:
                failures = job_pods.failures_after(last, spec.pod_failure_policy)
                until = job_pods.backoff_end_ns(job_pods.finished_ns(last), sum(failures))
            if until > now:
                self._times.append(until)
            else:
                counted = None if spec.backoff_limit_per_index is None else failures
                actions.append(CreateObject(job_pods.new_job_pod(workload, index, counted), workload.label))
        self._expectations.expect_creations(workload.uid, len(actions), now)
        return actions

    def _status(
        self, workload: _Workload, state: JobState, progress: Progress, target: JobEnd | None, active: int, now: int
    ) -> Raw:
        job, listed = workload.object, workload.conditions
        is_counting = any(progress.uncounted.values())
        is_reached = target is not None and not (active or state.ended or state.terminating or is_counting)
        conditions = listed
        if is_true(listed, "Suspended") != job.spec.suspend:
            status, reason = ("True", "JobSuspended") if job.spec.suspend else ("False", "JobResumed")
            conditions = with_conditions(listed, ({"type": "Suspended", "status": status, "reason": reason},), now)
        start = job.status.start_time
        if (start is None or conditions is not listed) and not job.spec.suspend:
            start = format_time(now)
        elif job.spec.suspend and conditions is not listed and self._forgets_start:
            start = None
        fields = {
            **progress.status(job),
            "active": active,
            "ready": len(self._pods.of(workload.uid).ready),
            "terminating": len(state.terminating),
            "startTime": start,
            "conditions": with_target(conditions, target, now, is_reached=is_reached),
        }
        if is_reached and target is not None and not target.is_failure:
            fields["completionTime"] = format_time(now)
        always = _ALWAYS if job.spec.backoff_limit_per_index is None else (*_ALWAYS, "failedIndexes")
        return status_with(workload.status, fields, always=always)


def _is_managed(job: Job) -> bool:
    """Return whether no other controller manages the Job."""
    return job.spec.managed_by in (None, f"kubernetes.io/{_CONTROLLER}")


def _release(state: JobState, pods: Iterable[OwnedPod], cause: str) -> list[Action]:
    return [job_pods.finalizers_patch(pod, cause, tracked=False) for pod in pods if is_tracked(pod) and state.ask(pod)]


def completions_of(workload: _Workload) -> int | None:
    """Return the completions of a Job; None if any success completes it. A Job without settings runs one pod."""
    if workload.object.spec.completions is None and "parallelism" not in workload.spec:
        return 1
    return workload.object.spec.completions


def wanted_pods(workload: _Workload, progress: Progress, active: int) -> int:
    """Return how many pods should be active; without completions, none start after a success."""
    job, completions = workload.object, completions_of(workload)
    if job.spec.suspend:
        return 0
    succeeded = progress.successes(job)
    if completions is None:
        return active if succeeded else job.spec.parallelism
    return max(0, min(job.spec.parallelism, completions - succeeded - len(progress.failed)))


def _without_own_index(job: Job, active: Iterable[OwnedPod], now: int) -> list[OwnedPod]:
    """Return pods without an index, and all but the last to go of those with the same one."""
    by_index: dict[int | None, list[OwnedPod]] = {}
    for pod in active:
        by_index.setdefault(index_of(pod.pod, job.spec.completions or 0), []).append(pod)
    odd = by_index.pop(None, [])
    return [*odd, *(pod for pods in by_index.values() for pod in first_to_go(pods, len(pods) - 1, None, now))]


def new_indexes(job: Job, progress: Progress, others: Iterable[OwnedPod], count: int) -> list[int | None]:
    """Return the indexes of ``count`` new pods, fewer if none are free; None each for a Job without indexes."""
    if job.spec.completion_mode != "Indexed":
        return [None] * count
    completions = job.spec.completions or 0
    taken = {index for pod in others if (index := index_of(pod.pod, completions)) is not None}
    return list(job_pods.free_indexes(count, completions, taken | progress.indexes | progress.failed))


_FINAL: Mapping[str, str] = {"FailureTarget": "Failed", "SuccessCriteriaMet": "Complete"}


class JobEnd(Struct, frozen=True):
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
    found = (one for one in job.status.conditions if one.type in _FINAL and one.status == "True")
    return next((JobEnd(one.type, one.reason, one.message) for one in found), None)


def failure_of(job: Job, progress: Progress, restarts: int, now: int) -> JobEnd | None:
    """Return why a Job fails now, or None; ``restarts`` count as failures."""
    limit, most_indexes = job.spec.backoff_limit, job.spec.max_failed_indexes
    if progress.ends_job:
        return JobEnd("FailureTarget", "PodFailurePolicy", progress.ends_job)
    if progress.number("failed") > limit or (restarts and restarts >= limit):
        return JobEnd("FailureTarget", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    deadline = deadline_ns(job)
    if deadline is not None and deadline <= now:
        return JobEnd("FailureTarget", "DeadlineExceeded", "Job was active longer than specified deadline")
    if most_indexes is not None and len(progress.failed) > most_indexes:
        message = "Job has exceeded the specified maximal number of failed indexes"
        return JobEnd("FailureTarget", "MaxFailedIndexesExceeded", message)
    if progress.failed and progress.successes(job) + len(progress.failed) >= (job.spec.completions or 0):
        return JobEnd("FailureTarget", "FailedIndexes", "Job has failed indexes")
    return None


def success_of(job: Job, progress: Progress) -> JobEnd | None:
    """Return why a Job succeeds by its success policy, or None (matchSuccessPolicy)."""
    policy = job.spec.success_policy
    for number, rule in enumerate(policy.rules if policy is not None else ()):
        named = job_pods.read_indexes(rule.succeeded_indexes, job.spec.completions or 0)
        succeeded = progress.indexes & named if rule.succeeded_indexes else progress.indexes
        if len(succeeded) >= (len(named) if rule.succeeded_count is None else rule.succeeded_count):
            return JobEnd("SuccessCriteriaMet", "SuccessPolicy", f"Matched rules at index {number}")
    return None


def completion_of(job: Job, progress: Progress, completions: int | None) -> JobEnd | None:
    """Return how a Job ends of which no pod is active, or None; ``completions`` None needs one success."""
    if progress.successes(job) < (1 if completions is None else completions):
        return None
    return JobEnd("SuccessCriteriaMet", "CompletionsReached", "Reached expected number of succeeded pods")


def deadline_ns(job: Job) -> int | None:
    """Return when a running Job must be finished; None for any time."""
    seconds, start = job.spec.active_deadline_seconds, job.status.start_time
    return None if seconds is None or start is None or job.spec.suspend else parse_time(start) + seconds * SECOND


def expiry_ns(job: Job, conditions: list[Raw]) -> int | None:
    """Return when a finished Job is to be deleted; None for never. Source: pkg/controller/ttlafterfinished."""
    seconds = job.spec.ttl_seconds_after_finished
    ends = [one for one in conditions if one.get("type") in _FINAL.values() and one.get("status") == "True"]
    finished = time_of(ends[0].get("lastTransitionTime")) if ends else None
    return None if seconds is None or finished is None else finished + seconds * SECOND


def with_target(conditions: list[Raw], target: JobEnd | None, now: int, *, is_reached: bool) -> list[Raw]:
    """Return the conditions with a Job's target, and with its end if that ``is_reached``."""
    if target is None:
        return conditions
    texts = {"reason": target.reason, "message": target.message}
    fields = {name: text for name, text in texts.items() if text}
    types = [] if is_true(conditions, target.type) else [target.type]
    types += [_FINAL[target.type]] if is_reached else []
    return with_conditions(conditions, [{"type": type_, "status": "True", **fields} for type_ in types], now)
