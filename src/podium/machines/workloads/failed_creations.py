"""What workloads are told of pods and Jobs that could not be made.

Source: pkg/controller/controller_utils.go (createPods, FailedCreatePodReason).
"""

from __future__ import annotations

from podium.api.meta import Kubernetes
from podium.machines.actions import Action, CreateObject, Record
from podium.machines.answers import Answer
from podium.machines.observations import Answered
from podium.machines.workloads.workload import Workload

FAILED_CREATE = "FailedCreate"
"""The reason of Events about pods and Jobs that could not be made."""

# By what was to be made; of other objects nothing is told.
_MADE = {"Pod": "Error creating", "Job": "Error creating job"}
_GOING = "NamespaceTerminating"
# Answers that say nothing of why something was not made, or that it may have been.
_SILENT = (Answer.DONE, Answer.UNKNOWN)


class FailedCreations:
    """Tells once at a time that pods are refused, however many are, and not that it is because the namespace goes."""

    def __init__(self) -> None:
        # By uid, when the workload was told last, and what.
        self._told: dict[str, tuple[int, str]] = {}

    def told(self, workload: Workload[Kubernetes], answered: Answered, now: int) -> list[Action]:
        """The Event about a creation that has ended, if there is something to tell."""
        problem, action = answered.problem, answered.action
        what = _MADE.get(action.raw["kind"]) if isinstance(action, CreateObject) else None
        if what is None or problem is None or answered.answer in _SILENT or problem.cause == _GOING:
            return []
        message = f"{what}: {problem.message}"
        if self._told.get(workload.uid) == (now, message):
            return []
        self._told[workload.uid] = now, message
        return [Record("", workload.uid, "Warning", FAILED_CREATE, message, workload=workload.label)]

    def forget(self, uid: str) -> None:
        """The workload is gone."""
        self._told.pop(uid, None)
