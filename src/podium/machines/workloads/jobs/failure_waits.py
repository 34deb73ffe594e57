"""How long Jobs wait after failures before they make new pods.

Source: pkg/controller/job/backoff_utils.go. It is forgotten in a crash, as it is upstream.
"""

from __future__ import annotations

from collections.abc import Iterable

from podium.machines.workloads.jobs.pod_failures import finished_ns
from podium.machines.workloads.jobs.pods import Outcome
from podium.machines.workloads.owned_pods import OwnedPod

_SECOND = 10**9
_FIRST_NS = 10 * _SECOND
_LONGEST_NS = 600 * _SECOND


class FailureWaits:
    """By Job's uid, how many pods have failed since one succeeded, and when the last one did.

    After the last failure a Job waits 10 s, doubled with each failure before it, up to 10 minutes.
    """

    def __init__(self) -> None:
        self._failures: dict[str, tuple[int, int]] = {}

    def note(self, uid: str, ended: Iterable[tuple[OwnedPod, Outcome]]) -> None:
        """Take note of pods that have just been seen to have ended."""
        for end_ns, outcome in sorted((finished_ns(pod), outcome) for pod, outcome in ended):
            if outcome == "succeeded":
                self._failures.pop(uid, None)
            else:
                count, last_ns = self._failures.get(uid, (0, 0))
                self._failures[uid] = count + 1, max(last_ns, end_ns)

    def until(self, uid: str) -> int:
        """When the Job may make new pods."""
        count, last_ns = self._failures.get(uid, (0, 0))
        return last_ns + _wait_ns(count) if count else 0

    def is_hopeless(self, uid: str) -> bool:
        """Whether a pod has failed again after the Job had waited for as long as Jobs do."""
        count, _ = self._failures.get(uid, (0, 0))
        return count > 1 and _wait_ns(count - 1) == _LONGEST_NS

    def forget(self, uid: str) -> None:
        """The Job has come to its end, or is gone."""
        self._failures.pop(uid, None)


def _wait_ns(count: int) -> int:
    return min(_FIRST_NS << min(count - 1, 16), _LONGEST_NS)
