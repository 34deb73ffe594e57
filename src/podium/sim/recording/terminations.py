"""How long the pods of a recorded cluster took to end, where they did not take all of their grace period.

What runs in a pod decides that, and nobody else knows; a simulation lets pods of which nothing is known take the whole
period.
"""

from __future__ import annotations

from collections import Counter

from podium.api.pod import Pod
from podium.machines.kubelets.pod_annotations import TERMINATION

_SECOND = 10**9
# Nobody watches a cluster more exactly than this.
_STEP_NS = _SECOND // 10
_LONGEST = 36_000


class Terminations:
    """Counts how long pods took from their deletion to their end."""

    def __init__(self) -> None:
        # By time, in tenths of a second; and those that took all the time that they had.
        self._took: Counter[int] = Counter()
        self._whole = 0

    def count(self, pod: Pod, took_ns: int) -> None:
        """A pod that ran when it was deleted is gone."""
        grace_ns = (pod.metadata.deletion_grace_period_seconds or 0) * _SECOND
        if not grace_ns or TERMINATION in pod.metadata.annotations or pod.metadata.finalizers:
            return
        steps = round(took_ns / _STEP_NS)
        if steps * _STEP_NS >= grace_ns or steps > _LONGEST:
            self._whole += 1
        else:
            self._took[steps] += 1

    @property
    def usual_ns(self) -> int | None:
        """How long half of them took at most; None where that is all of their period, or nobody ended."""
        half = (self._took.total() + self._whole + 1) // 2
        for steps, number in sorted(self._took.items()):
            half -= number
            if half <= 0:
                return steps * _STEP_NS
        return None
