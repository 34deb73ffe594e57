"""Pods that were to be disrupted, and that nobody has deleted since.

Source: pkg/controller/disruption/disruption.go (syncStalePodDisruption).
"""

from __future__ import annotations

from dataclasses import dataclass

from podium.api.meta import Raw
from podium.api.pod import Pod
from podium.api.times import parse_time
from podium.machines.actions import Action, ReplaceStatus
from podium.machines.observations import Answered
from podium.machines.parts.deadlines import Deadline, Deadlines, soonest
from podium.machines.parts.work_queue import WorkQueue
from podium.store.conditions import with_condition

STALE_AFTER_NS = 120 * 10**9
"""How long a pod may be the target of a disruption without being deleted."""

_TARGET = "DisruptionTarget"


@dataclass(slots=True)
class _Target:
    """A pod that is to be disrupted; ``written_version`` is the version from which its status was written last."""

    pod: Pod
    raw: Raw
    written_version: str = ""


class StaleDisruptions:
    """Sets the condition DisruptionTarget of such pods to False.

    The kubelet's own disruptions are never stale: a pod that it ends may take any time to end, and is not deleted.
    """

    def __init__(self, cause: str) -> None:
        self._cause = cause
        self._targets: dict[str, _Target] = {}
        self._deadlines: Deadlines[str] = Deadlines()
        self._queue: WorkQueue[str] = WorkQueue()

    @property
    def is_empty(self) -> bool:
        """Whether no pod is to be looked at."""
        return not self._targets

    def put(self, pod: Pod, raw: Raw) -> bool:
        """Take in a pod as it is now; whether it is, or was, one to look at."""
        if not _is_target(pod):
            if not self._targets or pod.key not in self._targets:
                return False
            self._forget(pod.key)
            return True
        known = self._targets.get(pod.key)
        if known is None:
            self._targets[pod.key] = _Target(pod, raw)
        else:
            known.pod, known.raw = pod, raw
        self._deadlines.set(pod.key, _since_ns(raw) + STALE_AFTER_NS)
        return True

    def remove(self, pod: Pod) -> None:
        """Forget a pod that is gone."""
        known = self._targets.get(pod.key)
        if known is not None and known.pod.metadata.uid == pod.metadata.uid:
            self._forget(pod.key)

    def answered(self, action: ReplaceStatus, answered: Answered, now: int) -> None:
        """A write has ended; one that failed is made anew from the pod as it is then."""
        metadata = action.raw["metadata"]
        key = f"{metadata['namespace']}/{metadata['name']}"
        target = self._targets.get(key)
        if target is not None:
            self._queue.answer(key, answered, now)
            if answered.problem is not None:
                target.written_version = ""

    def due(self, now: int) -> list[Action]:
        """What to write now."""
        while (late := self._deadlines.take_due(now)) is not None:
            self._queue.add(late)
        actions: list[Action] = []
        while (key := self._queue.take(now)) is not None:
            target = self._targets.get(key)
            if target is None or target.written_version == target.pod.metadata.resource_version:
                continue
            if _since_ns(target.raw) + STALE_AFTER_NS <= now:
                target.written_version = target.pod.metadata.resource_version
                actions.append(ReplaceStatus(_without_target(target.raw, now), self._cause))
        return actions

    def deadline(self) -> Deadline:
        """When there is something to write; that it is refused once more is no news."""
        return soonest(self._deadlines.deadline(), self._queue.deadline())

    def _forget(self, key: str) -> None:
        self._targets.pop(key, None)
        self._deadlines.set(key, None)
        self._queue.forget(key)


def _is_target(pod: Pod) -> bool:
    condition = pod.status.condition(_TARGET)
    if condition is None or pod.is_terminating or pod.is_terminal:
        return False
    return condition.status == "True" and condition.reason != "TerminationByKubelet"


def _since_ns(raw: Raw) -> int:
    """Since when the pod is a target, 0 where it does not say in a way that can be read."""
    condition = next(listed for listed in raw["status"]["conditions"] if listed["type"] == _TARGET)
    try:
        return parse_time(condition.get("lastTransitionTime") or "")
    except (TypeError, ValueError):
        return 0


def _without_target(raw: Raw, now: int) -> Raw:
    status = raw["status"]
    conditions = with_condition(status["conditions"], {"type": _TARGET, "status": "False"}, now)
    return {**raw, "status": {**status, "conditions": conditions}}
