"""Requests in flight to the API server."""

from __future__ import annotations

from collections import Counter
from random import Random

from podium.api.times import MAX_TIME_NS, format_duration
from podium.controllers.actions import Action, Bind, BindClaim
from podium.controllers.deadlines import Agenda
from podium.runtime.runtime import RequestedAction

USUAL_LATENCY_NS = 5_000_000
"""The default duration of a scheduler's request, including the watch event that the scheduler acts on.

In recorded stories of kube-scheduler v1.36.2 a pod was bound 9 ms after its attempt (median; 5 ms first quartile), and
the first victim deleted after 21 and 14 ms, which takes two requests."""

# Controllers process a queue, and kubelets inspect containers, before they send a request.
_HOPS_OF_SCHEDULER, _HOPS_OF_OTHERS = 1, 2
# In the same stories a client created the objects of one step at intervals of 22 ms (first quartile) and 31 ms
# (median).
_HOPS_OF_STEP = 5
# Many steps of one time are closer together, as if from several clients.
_MOST_OF_STEPS_NS = 100_000_000
_VOLUME_CHECK_NS = 10**9


def step_times(steps_at_ns: list[int], latency_ns: int, until_ns: int | None) -> list[int]:
    """Return when steps are played, ascending: those of one time one after the other, but not after ``until_ns``."""
    times: list[int] = []
    for at_ns, number in Counter(steps_at_ns).items():
        apart_ns = min(_HOPS_OF_STEP * latency_ns, _MOST_OF_STEPS_NS // number)
        earliest_ns = max(at_ns, times[-1]) if times else at_ns
        latest_ns = MAX_TIME_NS if until_ns is None or at_ns > until_ns else until_ns
        times += [min(max(at_ns + index * apart_ns, earliest_ns), latest_ns) for index in range(number)]
    return times


def in_words(latency_ns: int, *, is_drawn: bool = False) -> str:
    """Return a sentence about the latencies of a run."""
    if not latency_ns:
        return "latencies: none; requests take no time"
    usual = format_duration(latency_ns * _HOPS_OF_SCHEDULER)
    others, steps = format_duration(latency_ns * _HOPS_OF_OTHERS), format_duration(latency_ns * _HOPS_OF_STEP)
    drawn = ", drawn around that" if is_drawn else ""
    return (
        f"latencies: {usual} for a scheduler's request, {others} for a controller's or kubelet's, {steps} between "
        f"steps of one time{drawn}; --latency sets them"
    )


class RequestsInFlight:
    """Requests by arrival time, then in the order in which they were sent.

    A component's requests arrive in order. With ``seed`` each duration is drawn, from half of the usual time up, on
    average the usual time; without it all take the usual time.
    """

    def __init__(self, latency_ns: int, seed: int | None = None) -> None:
        self._latency_ns = latency_ns
        self._random = None if seed is None else Random(f"latencies:{seed}")
        self._requests: Agenda[RequestedAction] = Agenda()
        self.next_time = self._requests.next_time
        """Returns when the next request arrives; None if none is in flight."""
        # By component place, when its last request arrives.
        self._last_ns: dict[int, int] = {}
        # By pod uid, when the last of its claims is bound to a volume.
        self._claims_bound_ns: dict[str, int] = {}

    @property
    def controller_ns(self) -> int:
        """Return the usual time from an event to the effect of a controller's request."""
        return self._latency_ns * _HOPS_OF_OTHERS

    def send(self, requested: RequestedAction, now: int) -> None:
        component, action = requested.component, requested.action
        usual_ns = self._latency_ns * (_HOPS_OF_SCHEDULER if component.waits else _HOPS_OF_OTHERS)
        arrives_ns = now + usual_ns
        if self._random is not None:
            drawn_ns = now + usual_ns // 2 + int(self._random.expovariate(2.0) * usual_ns)
            # Not before the component's earlier requests.
            arrives_ns = self._last_ns[component.place] = max(drawn_ns, self._last_ns.get(component.place, 0))
        if type(action) is BindClaim:
            self._claims_bound_ns[action.pod_uid] = arrives_ns
        self._requests.add(arrives_ns, requested)

    def take(self, now: int | None = None) -> RequestedAction | None:
        """Remove and return the next request if it has arrived by ``now`` (None: in any case), else None."""
        next_ns = self._requests.next_time() if now is None else now
        return None if next_ns is None else self._requests.take_due(next_ns)

    def volume_wait_ns(self, action: Action, now: int) -> int:
        """Return how long a binding waits for the next check of the pod's volumes, 0 for other requests.

        kube-scheduler checks a second after it has bound the claims, and every second from then on (`BindPodVolumes` of
        the VolumeBinding plugin).
        """
        if type(action) is not Bind or not self._claims_bound_ns:
            return 0
        bound_ns = self._claims_bound_ns.pop(action.uid, None)
        if bound_ns is None:
            return 0
        checks = max(1, -(-(now - bound_ns) // _VOLUME_CHECK_NS))
        return bound_ns + checks * _VOLUME_CHECK_NS - now + self._latency_ns

    def forget(self, uid: str) -> None:
        self._claims_bound_ns.pop(uid, None)
