"""What workloads are told of pods that could not be made.

Source: pkg/controller/controller_utils.go (createPods, FailedCreatePodReason).
"""

from __future__ import annotations

from podium.api.meta import Kubernetes
from podium.machines.actions import Action, Record
from podium.machines.answers import Answer
from podium.machines.observations import Answered
from podium.machines.workloads.workload import Workload

FAILED_CREATE = "FailedCreate"
"""The reason of Events about pods that could not be made."""

_GOING = "NamespaceTerminating"
# Answers that say nothing of why a pod was not made, or that it may have been.
_SILENT = (Answer.DONE, Answer.UNKNOWN)


class FailedCreations:
    """Tells once at a time that pods are refused, however many are, and not that it is because the namespace goes."""

    def __init__(self) -> None:
        # By uid, when the workload was told last, and what.
        self._told: dict[str, tuple[int, str]] = {}

    def told(self, workload: Workload[Kubernetes], answered: Answered, now: int) -> list[Action]:
        """The Event about a creation that has ended, if there is something to tell."""
        problem = answered.problem
        if problem is None or answered.answer in _SILENT or problem.cause == _GOING:
            return []
        message = f"Error creating: {problem.message}"
        if self._told.get(workload.uid) == (now, message):
            return []
        self._told[workload.uid] = now, message
        return [Record("", workload.uid, "Warning", FAILED_CREATE, message, workload=workload.label)]

    def forget(self, uid: str) -> None:
        """The workload is gone."""
        self._told.pop(uid, None)
