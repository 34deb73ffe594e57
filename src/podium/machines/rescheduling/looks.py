"""When a rescheduler looks at the cluster next, and whether something new is to be expected of that."""

from __future__ import annotations

from collections.abc import Iterable

from podium.cluster.pods import NOT_STARTED_NS, PodRecord
from podium.machines.parts.deadlines import Deadline, earliest, soonest


class Looks:
    """An interval after something has changed; when time alone may have changed what can be moved; and all the time.

    The last is no news: most often nothing comes of it, and what policies find bad by the time alone goes on for ever.
    """

    def __init__(self) -> None:
        self._look_ns: int | None = None
        self._is_curious = False
        self._wake_ns: int | None = None
        self._idle_ns: int | None = None

    @property
    def has_begun(self) -> bool:
        """Whether anything has been seen of the cluster."""
        return self._idle_ns is not None

    def soon(self, now: int, interval_ns: int) -> None:
        """Something has changed: look after an interval, with all that happens until then."""
        if self._look_ns is None:
            self._look_ns = now + interval_ns
        self._is_curious = True
        if self._idle_ns is None:
            self._idle_ns = self._look_ns

    def anew(self) -> None:
        """What is looked for has changed: look as soon as that would be done in any case."""
        if self._idle_ns is not None:
            self._look_ns, self._is_curious = self._idle_ns, True

    def begin(self) -> None:
        """The cluster is being looked at, with all that has changed until now."""
        self._look_ns, self._is_curious = None, False

    def end(self, now: int, interval_ns: int, wake_ns: int | None) -> None:
        """It was looked at. At ``wake_ns`` time alone may have changed what can be moved."""
        self._idle_ns, self._wake_ns = now + interval_ns, wake_ns

    def deadline(self) -> Deadline:
        """When the next look is due."""
        return soonest(
            Deadline(self._look_ns, self._is_curious),
            Deadline(self._wake_ns, self._wake_ns is not None),
            Deadline(self._idle_ns, False),
        )


def next_of_age(pods: Iterable[PodRecord], minimum_age_ns: int, now: int) -> int | None:
    """When the next pod on a node is old enough to be moved, None where all are."""
    since = (pod.created_ns if pod.start_ns == NOT_STARTED_NS else pod.start_ns for pod in pods if pod.node_name)
    return earliest(since_ns + minimum_age_ns for since_ns in since if since_ns + minimum_age_ns > now)
