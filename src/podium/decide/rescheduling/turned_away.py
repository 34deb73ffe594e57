"""Controllers whose pods a node's kubelet turns away again and again: they are put on the node's avoid list.

Such pods run nowhere, so that there is nothing to move, and their scheduler, which does not see what the kubelet sees,
sends the next one there again. One of those that have ended is evicted, which frees nothing and disrupts nobody: it is
how a controller comes on the avoid list.

Source: controlled-rescheduling.md, Example use cases ("repeated attempts by the scheduler to schedule the pod onto some
node, but it is rejected by Kubelet admission control due to incomplete scheduler knowledge").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from podium.api.avoid_list import PREFER_AVOID_PODS, avoid_entries
from podium.cluster.pods import PodRecord
from podium.decide.rescheduling.landing import AVOIDING
from podium.decide.rescheduling.limits import Leaving, MoveLimits
from podium.decide.rescheduling.plan import LeftAlone, Move, PlannedMoves
from podium.decide.rescheduling.policy_errors import CallingPolicy, PolicyError
from podium.framework.rescheduling.picture import Picture
from podium.framework.rescheduling.policy import Avoidance, AvoidingPolicy, Policy
from podium.framework.rescheduling.settings import ReschedulerSettings, Steering

_MOST = 1_000


class KeepingOff:
    """Plans who is to keep off which node. ``why_ended`` says why a pod that has ended is not touched, "" if it may be.

    It counts against the limits as moves do. Each owner comes on the list of a node once: while it stands there nothing
    more is to be done.
    """

    def __init__(
        self,
        picture: Picture,
        settings: ReschedulerSettings,
        limits: MoveLimits,
        why_ended: Callable[[PodRecord, int], str],
    ) -> None:
        self._picture = picture
        self._settings = settings
        self._limits = limits
        self._why_ended = why_ended
        self.planned: list[PlannedMoves] = []
        self.left_alone: list[LeftAlone] = []
        self.errors: list[str] = []

    def plan(self, policies: Sequence[Policy]) -> None:
        """Take in what some policies propose, the first one's first."""
        if self._settings.steering is not Steering.AVOID_LIST:
            return
        for policy in policies:
            if isinstance(policy, AvoidingPolicy):
                self._plan(policy)

    def _plan(self, policy: AvoidingPolicy) -> None:
        try:
            with CallingPolicy(policy.name, "avoidances"):
                found = list(policy.avoidances(self._picture))[:_MOST]
            for avoidance in found:
                if not isinstance(avoidance, Avoidance):
                    raise PolicyError(policy.name, "what it wants to be avoided is no Avoidance")
                self._look_at(policy.name, avoidance)
        except PolicyError as error:
            self.errors.append(str(error))

    def _look_at(self, policy: str, avoidance: Avoidance) -> None:
        pod = avoidance.pod
        row = self._picture.cluster.nodes.row_of.get(pod.node_name)
        if row is None or self._is_listed(pod, row) or not self._is_heeded(pod):
            return
        leaving = [Leaving.of(pod, has_budget=True)]
        why = self._why_ended(pod, row) or self._limits.why(leaving)
        if why:
            self.left_alone.append(LeftAlone(policy, pod.key, why))
            return
        self._limits.take(leaving)
        move = Move(pod, pod.node_name, None, has_ended=True)
        self.planned.append(PlannedMoves(policy, avoidance.reason, (move,), 0.0, avoidance.avoid_for_ns))

    def _is_listed(self, pod: PodRecord, row: int) -> bool:
        """Whether the pod's controller is on the avoid list of a node, by an eviction of this plan or before."""
        if any((move.pod.owner_uid, move.source) == (pod.owner_uid, pod.node_name) for move in self._moves()):
            return True
        text = self._picture.cluster.nodes.node(row).metadata.annotations.get(PREFER_AVOID_PODS, "")
        return any(entry.controller.uid == pod.owner_uid for entry in avoid_entries(text)) if text else False

    def _moves(self) -> list[Move]:
        return [move for planned in self.planned for move in planned.moves]

    def _is_heeded(self, pod: PodRecord) -> bool:
        """Whether the pod's scheduler heeds avoid lists, as far as is known."""
        runner = self._picture.runners.get(pod.scheduler_name)
        return runner is not None and runner.profile.weights.get(AVOIDING, 0) > 0
