"""Deletions of pods whose status has to say why first."""

from __future__ import annotations

from podium.machines.actions import DeleteObject, ReportStatus
from podium.machines.observations import Answered


class PodDeletions:
    """Asks for the next step of each deletion: first the status is written, then, once that is done, the pod deleted.

    No step is asked for again while one is under way, nor once the deletion was carried out.
    """

    def __init__(self) -> None:
        self._under_way: set[str] = set()
        self._marked: set[str] = set()

    def step(self, mark: ReportStatus | None, delete: DeleteObject) -> list[ReportStatus | DeleteObject]:
        """The next step; ``mark`` is None where the status says why already."""
        if delete.uid in self._under_way:
            return []
        self._under_way.add(delete.uid)
        return [delete if mark is None or delete.uid in self._marked else mark]

    def answered(self, answered: Answered) -> bool | None:
        """Take in an answer: whether the next step can follow, or None where there is none that could.

        False: a step has failed and is to be tried again, from the pod as it is then. A mark that was refused may have
        come too late, for a pod that had ended by itself.
        """
        action = answered.action
        if not isinstance(action, ReportStatus | DeleteObject):
            raise TypeError(f"{action} is no step of a deletion")
        is_marked = answered.problem is None and isinstance(action, ReportStatus)
        if answered.answer.is_over and not is_marked:
            return None
        if is_marked:
            self._marked.add(action.uid)
        self._under_way.discard(action.uid)
        return is_marked

    def forget(self, uid: str) -> None:
        """The pod is gone."""
        self._under_way.discard(uid)
        self._marked.discard(uid)
