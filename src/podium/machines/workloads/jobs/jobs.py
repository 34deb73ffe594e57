"""The controller of Jobs: pods until enough have succeeded, or too many have failed.

Source: pkg/controller/job. Limits for each index and success policies are left out.
"""

from __future__ import annotations

from collections.abc import Iterable

from podium.api.meta import Raw
from podium.api.times import format_time
from podium.api.workloads import Job
from podium.machines.actions import Action, CreateObject, PatchObject
from podium.machines.observations import Answered
from podium.machines.workloads.jobs.completion_indexes import read_indexes
from podium.machines.workloads.jobs.conditions import (
    Target,
    deadline_ns,
    failure_of,
    is_finished,
    target_of,
    with_suspension,
    with_target,
)
from podium.machines.workloads.jobs.failure_waits import FailureWaits
from podium.machines.workloads.jobs.pod_failures import restarts_of
from podium.machines.workloads.jobs.pods import (
    JobPods,
    check_patch,
    finalizers_patch,
    is_check,
    is_tracked,
    new_job_pod,
    waits_for_failure,
)
from podium.machines.workloads.jobs.progress import Progress, progress_of
from podium.machines.workloads.jobs.scale import completions_of, new_indexes, surplus_pods, wanted_pods
from podium.machines.workloads.owned_pods import OwnedPod, Sighting
from podium.machines.workloads.status_writes import status_with
from podium.machines.workloads.workload import Workload
from podium.machines.workloads.workload_controller import WorkloadController, Write

_CONTROLLER = "job-controller"
_SECOND = 10**9
# How long what is not there is waited for, before it is taken to be gone: kinds of objects may be seen out of step.
_PATIENCE_NS = 60 * _SECOND
_ALWAYS = ("ready", "terminating", "uncountedTerminatedPods")


class Jobs(WorkloadController[Job]):
    """Makes pods, counts how they end, and lets go of them.

    What is counted is in the Job's status alone. Pods have a finalizer until they are counted. Pods of a Job that is
    gone, or is nowhere to be seen, are let go; those that somebody else gave a Job get the finalizer.
    """

    watches = WorkloadController.watches | {"Job", "Pod"}

    def __init__(self) -> None:
        super().__init__(Job)
        self._job_pods: dict[str, JobPods] = {}
        self._failures = FailureWaits()
        # By Job, its completed indexes as a text and read.
        self._indexes: dict[str, tuple[str, frozenset[int]]] = {}
        # When Jobs that pods belong to were first missed.
        self._missed: dict[str, int] = {}
        # Jobs that are known to be gone, while they have pods.
        self._gone: dict[str, None] = {}
        # Before it, an earlier life of this controller may have counted.
        self._begin_ns: int | None = None

    # What the API shows

    def _put(self, workload: Workload[Job]) -> None:
        super()._put(workload)
        self._missed.pop(workload.uid, None)

    def _remove(self, uid: str) -> None:
        if uid in self._workloads and self._pods.of(uid).all:
            self._gone[uid] = None
            self._queue.add(uid)
        else:
            self._job_pods.pop(uid, None)
        super()._remove(uid)
        self._failures.forget(uid)
        self._indexes.pop(uid, None)

    def _see_pod(self, sighting: Sighting, now: int) -> None:
        uid = sighting.owner_uid
        if self._begin_ns is None:
            self._begin_ns = now
        self._job_pods.setdefault(uid, JobPods()).see(sighting)
        super()._see_pod(sighting, now)
        if uid not in self._workloads and not self._pods.of(uid).all:
            for forgotten in (self._job_pods, self._missed, self._gone):
                forgotten.pop(uid, None)

    def _is_replaced_at_once(self, pod: OwnedPod) -> bool:
        return not is_tracked(pod)

    def _take_answer(self, action: Write, answered: Answered, now: int) -> None:
        if not isinstance(action, PatchObject):
            super()._take_answer(action, answered, now)
            return
        known = self._pods.named(action.key)
        owner = known.pod.metadata.controller if known is not None and known.uid == action.uid else None
        if owner is None:
            return
        pods = self._job_pods[owner.uid]
        if answered.problem is not None:
            pods.asked.pop(action.uid, None)
            self._queue.answer(owner.uid, answered, now)
        elif is_check(action):
            pods.check(action.uid)
            self._queue.add(owner.uid)

    # Pods without a Job

    def _sync_unknown(self, uid: str, now: int) -> list[Action]:
        pods = self._pods.of(uid).all.values()
        if uid in self._gone:
            return self._release(uid, pods, _CONTROLLER)
        since = self._missed.setdefault(uid, now)
        if not pods:
            del self._missed[uid]
        elif now < since + _PATIENCE_NS:
            self._times.append(since + _PATIENCE_NS)
        else:
            return self._release(uid, self._job_pods[uid].ended.values(), _CONTROLLER)
        return []

    # Pods of a Job

    def _sync(self, workload: Workload[Job], now: int) -> list[Action]:
        job, uid = workload.object, workload.uid
        if job.spec.managed_by not in (None, f"kubernetes.io/{_CONTROLLER}"):
            return []
        pods = self._job_pods.setdefault(uid, JobPods())
        if is_finished(job) or workload.is_deleted:
            self._failures.forget(uid)
            # A pod that is there for no purpose was made by a request that nobody knew had been carried out.
            surplus = list(self._pods.of(uid).active.values()) if is_finished(job) else []
            return self._release(uid, pods.ended.values(), workload.label) + self._give_up(workload, surplus, now)
        target = target_of(job)
        progress = self._progress(workload, pods, target, now)
        self._failures.note(uid, [(pod, how) for pod, how in progress.ended if pod.uid not in pods.noted])
        pods.noted.update(dict.fromkeys(pod.uid for pod, _ in progress.ended))
        actions = self._release(uid, progress.released, workload.label)
        if progress.doubtful:
            return actions + [check_patch(pod, workload.label) for pod in progress.doubtful if pods.ask(pod)]
        target = target or failure_of(job, progress, self._restarts(job, uid), now)
        if self._expectations.are_met(uid):
            actions += self._end_all(workload, now) if target else self._manage(workload, pods, progress, now)
        actions += self._track(uid, pods.untracked.values(), workload.label)
        if target is None and (deadline := deadline_ns(job)) is not None:
            self._times.append(deadline)
        if target is None and self._is_complete(workload, progress):
            target = Target("SuccessCriteriaMet")
        return actions + self._statuses.write(workload, self._status(workload, pods, progress, target, now))

    def _progress(self, workload: Workload[Job], pods: JobPods, target: Target | None, now: int) -> Progress:
        job = workload.object
        known = self._pods.of(workload.uid).all
        uncounted = job.status.uncounted_terminated_pods
        uids = (*uncounted.succeeded, *uncounted.failed)
        pods.gone = {uid: None for uid in uids if uid in pods.gone}
        pods.missed = {uid: pods.missed.get(uid, now) for uid in uids if uid not in known and uid not in pods.gone}
        due = {uid: since + _PATIENCE_NS for uid, since in pods.missed.items()}
        self._times.extend(time for time in due.values() if time > now)
        return progress_of(
            job,
            pods,
            known,
            self._completed(workload),
            is_failing=target is not None and target.is_failure,
            older_than_ns=self._begin_ns or 0,
            missing=frozenset(uid for uid, time in due.items() if time <= now),
        )

    def _restarts(self, job: Job, uid: str) -> int:
        """The restarts that count towards the limit of failures: those of pods whose containers are started again."""
        is_counted = job.spec.template.spec.restart_policy == "OnFailure"
        return restarts_of(self._pods.of(uid).all.values()) if is_counted else 0

    def _completed(self, workload: Workload[Job]) -> frozenset[int]:
        """The indexes that the Job's status has."""
        text, completions = workload.object.status.completed_indexes, workload.object.spec.completions or 0
        if not text:
            return frozenset()
        known = self._indexes.get(workload.uid)
        if known is None or known[0] != text:
            known = self._indexes[workload.uid] = text, frozenset(read_indexes(text, completions))
        return known[1]

    def _release(self, uid: str, pods: Iterable[OwnedPod], cause: str) -> list[Action]:
        asked = self._job_pods[uid]
        return [finalizers_patch(pod, cause, tracked=False) for pod in pods if is_tracked(pod) and asked.ask(pod)]

    def _track(self, uid: str, pods: Iterable[OwnedPod], cause: str) -> list[Action]:
        asked, are_going = self._job_pods[uid], self._expectations.is_expected
        kept = (pod for pod in pods if not are_going(uid, pod.uid) and asked.ask(pod))
        return [finalizers_patch(pod, cause, tracked=True) for pod in kept]

    # How many pods

    def _give_up(self, workload: Workload[Job], surplus: list[OwnedPod], now: int) -> list[Action]:
        """Delete pods that the Job does without; they are let go before, so that they are not counted."""
        if not self._expectations.are_met(workload.uid):
            return []
        released = self._release(workload.uid, surplus, workload.label)
        return [*released, *(self._delete(workload, pod, now) for pod in surplus)]

    def _end_all(self, workload: Workload[Job], now: int) -> list[Action]:
        """Delete the active pods, which are counted."""
        return [self._delete(workload, pod, now) for pod in self._pods.of(workload.uid).active.values()]

    def _manage(self, workload: Workload[Job], pods: JobPods, progress: Progress, now: int) -> list[Action]:
        job, uid = workload.object, workload.uid
        active = self._pods.of(uid).active
        wanted = wanted_pods(workload, progress, len(active))
        if surplus := surplus_pods(job, active.values(), wanted, now):
            return self._give_up(workload, surplus, now)
        ending = pods.terminating if waits_for_failure(job.spec) else {}
        missing = wanted - len(active) - len(ending)
        if missing <= 0:
            return []
        until = self._failures.until(uid)
        if until > now:
            (self._retry_times if self._failures.is_hopeless(uid) else self._times).append(until)
            return []
        if not self._may_create(workload, now):
            return []
        count = 1 if self._waits.is_refused(uid, job.metadata.namespace) else missing
        indexes = new_indexes(job, progress, (*active.values(), *ending.values()), count)
        self._expectations.expect_creations(uid, len(indexes), now)
        return [CreateObject(new_job_pod(workload, index), workload.label) for index in indexes]

    def _active(self, uid: str) -> int:
        """How many pods are active, or about to be."""
        return len(self._pods.of(uid).active) + self._expectations.creations(uid)

    def _is_complete(self, workload: Workload[Job], progress: Progress) -> bool:
        completions, succeeded = completions_of(workload), progress.successes(workload.object)
        return succeeded >= (1 if completions is None else completions) and not self._active(workload.uid)

    def _status(
        self, workload: Workload[Job], pods: JobPods, progress: Progress, target: Target | None, now: int
    ) -> Raw:
        job, active = workload.object, self._active(workload.uid)
        is_reached = target is not None and not (active or pods.ended or pods.terminating or progress.is_counting)
        listed: list[Raw] = workload.status.get("conditions", [])
        conditions = with_suspension(listed, now, is_suspended=job.spec.suspend)
        start = job.status.start_time
        if (start is None or conditions is not listed) and not job.spec.suspend:
            start = format_time(now)
        fields = {
            **progress.status(job),
            "active": active,
            "ready": len(self._pods.of(workload.uid).ready),
            "terminating": len(pods.terminating),
            "startTime": start,
            "conditions": with_target(conditions, target, now, is_reached=is_reached),
        }
        if is_reached and target is not None and not target.is_failure:
            fields["completionTime"] = format_time(now)
        return status_with(workload.status, fields, always=_ALWAYS)
