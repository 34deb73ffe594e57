"""Which disruptions components have asked for: known from their actions, before anything is written."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from podium.api.disruption_policy import SCHEDULER
from podium.api.pod import PodCondition
from podium.machines.actions import Action, DeleteObject, Evict, ReportStatus
from podium.machines.grounds import GANG_RELEASE, Grounds
from podium.machines.observations import Problem

_TARGET = "DisruptionTarget"
# What was asked for and refused for good leaves an entry until its pod is gone; the oldest go first.
_MOST = 10_000


DISRUPTING = (DeleteObject, Evict, ReportStatus)
"""The actions by which pods may be made to end."""


@dataclass(frozen=True, slots=True)
class Announcement:
    """Who wants a pod to go, as which component ("" for none), for which pod (its key, "" for none), and why.

    ``is_outsider``: it is a person, or a program that is no component of the cluster.
    """

    by: str
    component: str = ""
    whom: str = ""
    grounds: Grounds | None = None
    is_outsider: bool = False


class Announced:
    """What was asked for, by the uid of the pod that is to go."""

    def __init__(self) -> None:
        self._found: OrderedDict[str, Announcement] = OrderedDict()

    def __len__(self) -> int:
        return len(self._found)

    def asked(self, action: Action, by: str) -> None:
        """An action is about to be carried out; ``by`` is who asks for it where the action does not say."""
        if isinstance(action, ReportStatus):
            if action.kind == "Pod" and action.conditions and _marks(action.conditions):
                self._put(action.uid, action.cause or by, "", by, action.grounds)
        elif isinstance(action, Evict):
            self._put(action.uid, action.cause or by, action.component, by, action.grounds)
        elif isinstance(action, DeleteObject) and self._is_first_word(action):
            self._put(action.uid, action.cause or by, "", by, None)

    def answered(self, action: Action, problem: Problem | None) -> None:
        """How that ended: who was refused an eviction disrupts nobody."""
        if problem is not None and problem.code and isinstance(action, Evict):
            self._found.pop(action.uid, None)

    def refused(self, uid: str) -> None:
        """What somebody outside wanted last of a pod was refused."""
        found = self._found.get(uid)
        if found is not None and found.is_outsider:
            del self._found[uid]

    def take(self, uid: str) -> Announcement | None:
        """Who wanted the pod to go; None where nobody has said so."""
        return self._found.pop(uid, None)

    def forget(self, uid: str) -> None:
        """The pod is gone."""
        if self._found:
            self._found.pop(uid, None)

    def put(self, uid: str, announcement: Announcement) -> None:
        """A pod is wanted to go."""
        self._found[uid] = announcement
        self._found.move_to_end(uid)
        if len(self._found) > _MOST:
            self._found.popitem(last=False)

    def _is_first_word(self, action: DeleteObject) -> bool:
        """Whether nothing was said of a pod before it is deleted; a kubelet that ends a deletion says nothing."""
        return action.kind == "Pod" and action.grace_seconds != 0 and action.uid not in self._found

    def _put(self, uid: str, cause: str, component: str, by: str, grounds: Grounds | None) -> None:
        # A preemptor is named by its key; workloads are named with their kind.
        is_pod = "/" in cause and " " not in cause and component in ("", SCHEDULER)
        who = (by if by != cause else "") or SCHEDULER
        if cause == GANG_RELEASE:
            self.put(uid, Announcement(who, GANG_RELEASE, "", grounds))
            return
        self.put(uid, Announcement(who if is_pod else cause, component, cause if is_pod else "", grounds))


def _marks(conditions: tuple[PodCondition, ...]) -> bool:
    return _TARGET in [condition.type for condition in conditions if condition.status == "True"]
