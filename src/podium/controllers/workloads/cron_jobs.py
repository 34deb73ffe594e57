"""The controller of CronJobs.

Source: pkg/controller/cronjob (syncCronJob, cleanupFinishedJobs). A Job is created at its scheduled time, without
upstream's delay of 100 ms.
"""

from __future__ import annotations

from datetime import UTC, datetime

from podium.api.meta import Raw
from podium.api.times import SECOND, Every, Schedule, format_time, parse_schedule, parse_time, time_of, time_zone
from podium.api.workloads import CronJob, Job
from podium.controllers.actions import Action, DeleteObject, Record, owned_object
from podium.controllers.indexes import exchange
from podium.controllers.observations import ActionFinished, Answer
from podium.controllers.workloads import jobs, owned_pods, workload_controller
from podium.store.stored import is_true

SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp"
"""Annotation of a Job: its scheduled time."""

_Workload = owned_pods.WorkloadObject[CronJob]
_Job = owned_pods.WorkloadObject[Job]


class CronJobs(workload_controller.WorkloadController[CronJob]):
    """Creates Jobs, and deletes the oldest finished ones.

    A Job's name follows from its time, so that none is created twice. The status follows from existing Jobs; the time
    of a deleted one is remembered until the status has it.
    """

    watches = workload_controller.WorkloadController.watches | {"CronJob", "Job"}

    def __init__(self) -> None:
        super().__init__(CronJob, owns=Job)
        # By uid, the scheduled time of the last created Job.
        self._begun: dict[str, int] = {}
        # By uid, the last seen schedule with its time zone.
        self._schedules: dict[str, tuple[str, str | None]] = {}
        # By uid, the last event of each reason: its message, and the scheduled time that it is about.
        self._last_events: dict[str, dict[str, tuple[str, int | None]]] = {}

    def _remove(self, uid: str) -> None:
        super()._remove(uid)
        self._begun.pop(uid, None)
        self._schedules.pop(uid, None)
        self._last_events.pop(uid, None)

    def _on_created(self, workload: _Workload, raw: Raw, finished: ActionFinished, now: int) -> None:
        if finished.answer is Answer.DONE:
            time_ns = parse_time(raw["metadata"]["annotations"][SCHEDULED_AT])
            self._begun[workload.uid] = max(time_ns, self._begun.get(workload.uid, time_ns))
            self._queue.add(workload.uid)
        super()._on_created(workload, raw, finished, now)

    def _sync(self, workload: _Workload, now: int) -> list[Action]:
        owned = self._owned.of(workload.uid)
        # A Job whose annotation is missing or invalid is not one of the schedule.
        scheduled = [(time_of(job.object.metadata.annotations.get(SCHEDULED_AT)), job) for job in owned]
        unfinished = [(time, job) for time, job in scheduled if not jobs.is_finished(job.object)]
        active = [job for time, job in unfinished if time is not None]
        foreign = sorted(job.object.metadata.name for time, job in unfinished if time is None)
        # The latest scheduled time of a created Job.
        times = [time_of(workload.object.status.last_schedule_time), self._begun.get(workload.uid)]
        last_ns = max((time for time in (*times, *(time for time, _ in scheduled)) if time is not None), default=None)
        message = f"Saw a job that the controller did not create or forgot: {', '.join(foreign)}"
        actions = self._record(workload, "UnexpectedJob", message) if foreign else []
        if not workload.is_deleted and self._expectations.are_met(workload.uid):
            actions += self._begin(workload, active, last_ns, now)
            actions += self._forget_history(workload, owned, now)
        # A Job that is replaced is not active any more; it would be missed after its deletion.
        replaced = {action.uid for action in actions if isinstance(action, DeleteObject)}
        left = [job for job in active if job.uid not in replaced]
        return self._write_status(workload, _status(workload, owned, left, last_ns)) + actions

    def _begin(self, workload: _Workload, active: list[_Job], last_ns: int | None, now: int) -> list[Action]:
        """Create the Job that is due, if one may start; with another schedule, not before its next time."""
        spec = workload.object.spec
        given = spec.schedule, spec.time_zone
        is_changed = exchange(self._schedules, workload.uid, given) not in (None, given)
        if spec.suspend:
            return []
        try:
            schedule = parse_schedule(spec.schedule, spec.time_zone or "")
        except ValueError as error:
            return self._record(workload, "UnparseableSchedule", f'unparseable schedule: "{spec.schedule}" : {error}')
        # Times count after that of the last Job, or the creation; but only within the deadline.
        since = last_ns or time_of(workload.object.metadata.creation_timestamp) or now
        if spec.starting_deadline_seconds is not None:
            since = max(since, now - spec.starting_deadline_seconds * SECOND)
        due_ns, missed, next_ns = due_times(schedule, since, now)
        if next_ns is None and due_ns is None:
            return self._record(workload, "InvalidSchedule", f"invalid schedule: {spec.schedule} : it never comes")
        if next_ns is not None:
            # The schedule never ends.
            self._retry_times.append(max(next_ns, now + 1))
        actions = self._record(workload, "TooManyMissedTimes", _MISSED) if missed > _MANY_MISSED else []
        if is_changed or due_ns is None or (last_ns is not None and due_ns <= last_ns):
            return actions
        if active and spec.concurrency_policy == "Forbid":
            message = "Not starting job because prior execution is running and concurrency policy is Forbid"
            return actions + self._record(workload, "JobAlreadyActive", message, due_ns)
        if not self._may_create(workload, now):
            return actions
        if spec.concurrency_policy == "Replace":
            actions += [self._delete(workload, job.object, now) for job in active if not job.is_deleted]
        return [*actions, self._create_named(workload, _new_job(workload, due_ns), now)]

    def _forget_history(self, workload: _Workload, owned: list[_Job], now: int) -> list[Action]:
        """Delete the oldest Jobs beyond the limits, of the successful and of the failed ones, of any creator."""
        spec = workload.object.spec
        actions: list[Action] = []
        limits = {"Complete": spec.successful_jobs_history_limit, "Failed": spec.failed_jobs_history_limit}
        for end, most in limits.items():
            ended = [job for job in owned if is_true(job.conditions, end) and not job.is_deleted]
            ended.sort(key=lambda job: (job.object.status.start_time or "", job.object.metadata.name))
            actions += [self._delete(workload, job.object, now) for job in ended[: max(0, len(ended) - most)]]
        return actions

    def _record(self, workload: _Workload, reason: str, message: str, due_ns: int | None = None) -> list[Action]:
        """Return the event, unless it repeats the reason's last one; those about a scheduled time are no warnings."""
        type_ = "Warning" if due_ns is None else "Normal"
        known = self._last_events.setdefault(workload.uid, {})
        if exchange(known, reason, (message, due_ns)) == (message, due_ns):
            return []
        return [Record("", workload.uid, type_, reason, message, workload=workload.label)]


def _new_job(workload: _Workload, time_ns: int) -> Raw:
    """Return the Job for a time; its name contains the minutes since 1970."""
    meta, template = workload.object.metadata, workload.spec.get("jobTemplate", {})
    given = template.get("metadata", {})
    zone = time_zone(workload.object.spec.time_zone or "")
    written = format_time(time_ns) if zone is UTC else datetime.fromtimestamp(time_ns // SECOND, zone).isoformat()
    metadata = {
        "name": f"{meta.name}-{time_ns // (60 * SECOND)}",
        "labels": dict(given.get("labels") or {}),
        "annotations": {**(given.get("annotations") or {}), SCHEDULED_AT: written},
    }
    return owned_object(workload.object, Job, metadata, spec=template.get("spec", {}))


def _status(workload: _Workload, owned: list[_Job], active: list[_Job], last_ns: int | None) -> Raw:
    ends = [job.status.get("completionTime") for job in owned if is_true(job.conditions, "Complete")]
    known = [time for time in (*ends, workload.status.get("lastSuccessfulTime")) if isinstance(time, str)]
    fields = {
        "active": [
            {"apiVersion": "batch/v1", "kind": "Job", "name": meta.name, "namespace": meta.namespace, "uid": meta.uid}
            for meta in (job.object.metadata for job in active)
        ],
        "lastScheduleTime": None if last_ns is None else format_time(last_ns),
        "lastSuccessfulTime": max(known, default=None),
    }
    return owned_pods.status_with(workload.status, fields)


_MANY_MISSED = 100
"""With more missed times, an event is due."""

_MISSED = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"


def due_times(schedule: Schedule | Every, earliest_ns: int, now: int) -> tuple[int | None, int, int | None]:
    """Return the newest of the times from ``earliest_ns`` to ``now``, their number, and when to check again.

    The number is estimated from the first two, as upstream. The newest is None for none, the next check for never.
    """
    first = schedule.next_ns(earliest_ns)
    second = None if first is None else schedule.next_ns(first)
    if first is None or now < first:
        return None, 0, first
    if second is None or now < second:
        return first, 1, second
    apart = second - first
    missed = (now - first) // apart + 1
    # Times may be unevenly spaced: search from slightly before the expected last one.
    newest, time = None, schedule.next_ns(first + (missed - 2) * apart)
    while time is not None and time <= now:
        newest, time = time, schedule.next_ns(time)
    return newest, missed, schedule.next_ns(now if newest is None else newest)
