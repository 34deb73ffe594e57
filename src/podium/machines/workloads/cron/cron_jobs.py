"""The controller of CronJobs: a Job for each time of the schedule.

Source: pkg/controller/cronjob (syncCronJob, cleanupFinishedJobs). A time's Job is made when the time has come, not a
tenth of a second later.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from podium.api.cron import parse_schedule, time_zone
from podium.api.meta import Kubernetes, Raw
from podium.api.times import format_time, parse_time
from podium.api.workloads import CronJob, Job
from podium.machines.actions import Action, DeleteObject, Record
from podium.machines.answers import Answer
from podium.machines.observations import Answered
from podium.machines.workloads.cron.times import due_times, earliest_ns
from podium.machines.workloads.jobs.conditions import is_finished
from podium.machines.workloads.owned_objects import ObjectSighting, OwnedObjects
from podium.machines.workloads.status_writes import status_with
from podium.machines.workloads.workload import Workload
from podium.machines.workloads.workload_controller import WorkloadController

SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp"
"""Annotation of a Job: the time of the schedule for which it was made."""

_SECOND = 10**9
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class CronJobs(WorkloadController[CronJob]):
    """Makes Jobs, and deletes the oldest of those that have ended.

    A Job's name follows from its time, so that none is made twice whatever goes wrong. What stands in the status is
    found in the Jobs that there are; the time of one that is gone is remembered until the status has it.
    """

    watches = WorkloadController.watches | {"CronJob", "Job"}

    def __init__(self) -> None:
        super().__init__(CronJob)
        self._jobs: OwnedObjects[Job] = OwnedObjects()
        # By uid, the time for which a Job was made last.
        self._begun: dict[str, int] = {}
        # By uid, what was told last, so that it is not told again.
        self._said: dict[str, str] = {}

    def _see(self, object_: Kubernetes, raw: Raw) -> None:
        if isinstance(object_, Job):
            self._see_jobs(self._jobs.see(Workload(object_, raw)))

    def _lose(self, object_: Kubernetes) -> None:
        if isinstance(object_, Job):
            self._see_jobs(self._jobs.lose(object_))

    def _see_jobs(self, sightings: Iterable[ObjectSighting[Job]]) -> None:
        for sighting in sightings:
            if sighting.is_gone:
                self._expectations.see(sighting.owner_uid, sighting.object.uid)
            else:
                self._see_named(sighting.owner_uid, "Job", sighting.object.object.metadata.name)
            if sighting.owner_uid in self._workloads:
                self._queue.add(sighting.owner_uid)

    def _remove(self, uid: str) -> None:
        super()._remove(uid)
        self._begun.pop(uid, None)
        self._said.pop(uid, None)

    def _created(self, workload: Workload[CronJob], raw: Raw, answered: Answered, now: int) -> None:
        if answered.answer is Answer.DONE:
            time_ns = parse_time(raw["metadata"]["annotations"][SCHEDULED_AT])
            self._begun[workload.uid] = max(time_ns, self._begun.get(workload.uid, time_ns))
            self._queue.add(workload.uid)
        super()._created(workload, raw, answered, now)

    def _sync(self, workload: Workload[CronJob], now: int) -> list[Action]:
        mine = [job for job in self._jobs.of(workload.uid) if _scheduled_ns(job) is not None]
        active = [job for job in mine if not is_finished(job.object) and not job.is_deleted]
        last_ns = self._last_ns(workload, mine)
        actions: list[Action] = []
        if not workload.is_deleted and self._expectations.are_met(workload.uid):
            if not workload.object.spec.suspend:
                actions += self._begin(workload, active, last_ns, now)
            actions += self._forget_history(workload, mine, now)
        return actions + self._statuses.write(workload, _status(workload, mine, active, last_ns))

    def _last_ns(self, workload: Workload[CronJob], mine: list[Workload[Job]]) -> int | None:
        """The newest time for which a Job was made."""
        said = workload.object.status.last_schedule_time
        times = [time for job in mine if (time := _scheduled_ns(job)) is not None]
        times += [parse_time(said)] if said else []
        times += [self._begun[workload.uid]] if workload.uid in self._begun else []
        return max(times, default=None)

    def _begin(
        self, workload: Workload[CronJob], active: list[Workload[Job]], last_ns: int | None, now: int
    ) -> list[Action]:
        """Make the Job that is due, if one is and may begin."""
        spec, meta = workload.object.spec, workload.object.metadata
        try:
            zone = spec.time_zone or ""
            schedule = parse_schedule(spec.schedule, zone)
        except ValueError as error:
            return self._tell(workload, "Warning", "UnparseableSchedule", f"unparseable schedule: {error}")
        created_ns = parse_time(meta.creation_timestamp) if meta.creation_timestamp else now
        since = earliest_ns(created_ns, last_ns, spec.starting_deadline_seconds, now)
        due = due_times(schedule, since, now)
        if due.next_ns is not None:
            # It comes again and again, whatever happens.
            self._retry_times.append(max(due.next_ns, now + 1))
        actions: list[Action] = []
        if due.is_many:
            problem = f"too many missed start times: {due.missed}"
            actions += self._tell(workload, "Warning", "TooManyMissedTimes", problem)
        if due.time_ns is None or (last_ns is not None and due.time_ns <= last_ns):
            return actions
        if active and spec.concurrency_policy == "Forbid":
            told = f"Not starting job for {format_time(due.time_ns)} because prior execution is running"
            return actions + self._tell(workload, "Normal", "JobAlreadyActive", told)
        if not self._may_create(workload, now):
            return actions
        if spec.concurrency_policy == "Replace":
            actions += [self._delete_job(workload, job, now) for job in active]
        return [*actions, self._create_named(workload, _new_job(workload, due.time_ns), now)]

    def _forget_history(self, workload: Workload[CronJob], mine: list[Workload[Job]], now: int) -> list[Action]:
        """Delete the oldest Jobs beyond those to keep, of those that succeeded and of those that failed."""
        spec = workload.object.spec
        actions: list[Action] = []
        limits = {"Complete": spec.successful_jobs_history_limit, "Failed": spec.failed_jobs_history_limit}
        for end, most in limits.items():
            ended = sorted((job for job in mine if _has_ended(job, end) and not job.is_deleted), key=_age)
            actions += [self._delete_job(workload, job, now) for job in ended[: max(0, len(ended) - most)]]
        return actions

    def _delete_job(self, workload: Workload[CronJob], job: Workload[Job], now: int) -> DeleteObject:
        self._expectations.expect(workload.uid, job.uid, now)
        return DeleteObject("Job", job.object.key, job.uid, workload.label)

    def _tell(self, workload: Workload[CronJob], type_: str, reason: str, message: str) -> list[Action]:
        if self._said.get(workload.uid) == message:
            return []
        self._said[workload.uid] = message
        return [Record("", workload.uid, type_, reason, message, workload=workload.label)]


def _new_job(workload: Workload[CronJob], time_ns: int) -> Raw:
    """The Job for a time: its name has the minutes since 1970."""
    meta, template = workload.object.metadata, workload.spec.get("jobTemplate", {})
    given = template.get("metadata", {})
    zone = time_zone(workload.object.spec.time_zone or "")
    local = (_EPOCH + timedelta(seconds=time_ns // _SECOND)).astimezone(zone)
    written = format_time(time_ns) if zone is UTC else local.isoformat()
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": f"{meta.name}-{time_ns // (60 * _SECOND)}",
            "namespace": meta.namespace,
            "labels": dict(given.get("labels") or {}),
            "annotations": {**(given.get("annotations") or {}), SCHEDULED_AT: written},
            "ownerReferences": [workload.reference()],
        },
        "spec": template.get("spec", {}),
    }


def _scheduled_ns(job: Workload[Job]) -> int | None:
    """The time for which a Job was made; None for one that somebody else made, or whose annotation is none."""
    try:
        return parse_time(job.object.metadata.annotations[SCHEDULED_AT])
    except (KeyError, ValueError):
        return None


def _has_ended(job: Workload[Job], end: str) -> bool:
    return any(condition.type == end and condition.status == "True" for condition in job.object.status.conditions)


def _age(job: Workload[Job]) -> tuple[str, str]:
    return job.object.status.start_time or "", job.object.metadata.name


def _status(
    workload: Workload[CronJob], mine: list[Workload[Job]], active: list[Workload[Job]], last_ns: int | None
) -> Raw:
    ends = [job.status.get("completionTime") for job in mine if _has_ended(job, "Complete")]
    known = [time for time in (*ends, workload.status.get("lastSuccessfulTime")) if isinstance(time, str)]
    fields = {
        "active": [_reference(job) for job in active],
        "lastScheduleTime": None if last_ns is None else format_time(last_ns),
        "lastSuccessfulTime": max(known, default=None),
    }
    return status_with(workload.status, fields)


def _reference(job: Workload[Job]) -> Raw:
    meta = job.object.metadata
    return {"apiVersion": "batch/v1", "kind": "Job", "name": meta.name, "namespace": meta.namespace, "uid": meta.uid}
