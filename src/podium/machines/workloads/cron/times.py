"""For which time a CronJob is to begin a Job now, and when it has to be looked at next.

Source: pkg/controller/cronjob/utils.go (mostRecentScheduleTime, nextScheduleTimeDuration).
"""

from __future__ import annotations

from dataclasses import dataclass

from podium.api.cron import Every, Schedule

_SECOND = 10**9
_MANY_MISSED = 100


@dataclass(frozen=True, slots=True)
class Due:
    """``time_ns`` is the newest time that has come since the last, None for none; ``missed`` is how many have come.

    The number is a guess from the first two, as upstream's is. ``next_ns`` is when to look again, None for never.
    """

    time_ns: int | None
    missed: int
    next_ns: int | None

    @property
    def is_many(self) -> bool:
        """Whether so many times were missed that somebody should be told."""
        return self.missed > _MANY_MISSED


def due_times(schedule: Schedule | Every, earliest_ns: int, now: int) -> Due:
    """What is due at ``now`` of the times after ``earliest_ns``."""
    first = schedule.next_ns(earliest_ns)
    second = None if first is None else schedule.next_ns(first)
    if first is None or now < first:
        return Due(None, 0, first)
    if second is None or now < second:
        return Due(first, 1, second)
    apart = second - first
    missed = (now - first) // apart + 1
    # The times may lie at uneven distances: the last of them is found from a bit before where it should be.
    newest, time = None, schedule.next_ns(first + (missed - 2) * apart)
    while time is not None and time <= now:
        newest, time = time, schedule.next_ns(time)
    return Due(newest, missed, schedule.next_ns(now if newest is None else newest))


def earliest_ns(created_ns: int, last_ns: int | None, deadline_seconds: int | None, now: int) -> int:
    """The time after which a CronJob's times count: the last for which a Job was begun, or else its creation.

    What is beyond the deadline is passed over.
    """
    since = created_ns if last_ns is None else last_ns
    return since if deadline_seconds is None else max(since, now - deadline_seconds * _SECOND)
