"""How replacements are shown to their places, where more is wanted than that they keep off their former ones.

With a hint the place stands on the avoid list before the replacement is there, for schedulers that look at it; for
others it is written to the replacement as its nomination. With a binding the replacement is bound there, if it still
fits, and else left to its scheduler, who may be faster in any case.

Source: controlled-rescheduling.md, Rescheduler ("It does not force the pod to reschedule to any particular node").
"""

from __future__ import annotations

from podium.cluster.pods import PodRecord
from podium.framework.rescheduling.settings import Guidance, Steering
from podium.machines.actions import Action, Bind, Nominate
from podium.machines.parts.deadlines import AT_ONCE, NEVER, Deadline
from podium.machines.rescheduling.moves import Move, Moves
from podium.machines.rescheduling.names import RESCHEDULER
from podium.machines.rescheduling.planning import Planners


class Guide:
    """Binds or nominates the replacements of moves under way, each once."""

    def __init__(self, moves: Moves, planners: Planners) -> None:
        self._moves = moves
        self._planners = planners
        self._guided: set[str] = set()
        self._is_due = False

    def seen(self, pod: PodRecord) -> None:
        """The API shows a pod as it is now."""
        if self._planners.settings.guidance is Guidance.EVICT or pod.node_name or pod.terminating:
            return
        self._is_due |= pod.uid not in self._guided and self._moves.expects(pod.owner_uid)

    def deadline(self) -> Deadline:
        """When there is somebody to guide."""
        return AT_ONCE if self._is_due else NEVER

    def work(self, now: int) -> list[Action]:
        """Guide those who are there."""
        self._is_due = False
        self._moves.look(now, self._planners.settings.move_timeout_ns)
        under_way = self._moves.under_way()
        self._guided &= {move.replacement.uid for move in under_way if move.replacement is not None}
        return [action for move in under_way if (action := self._guidance(move)) is not None]

    def _guidance(self, move: Move) -> Action | None:
        pod = move.replacement
        if pod is None or not move.target or pod.node_name or pod.gates or pod.uid in self._guided:
            return None
        settings = self._planners.settings
        if settings.guidance is Guidance.BIND and not _needs_its_scheduler(pod):
            action: Action = Bind(pod.key, pod.uid, move.target)
        elif settings.steering is not Steering.AVOID_LIST or not self._planners.knows(pod.scheduler_name):
            action = Nominate(pod.key, pod.uid, move.target, RESCHEDULER)
        else:
            return None
        if not self._planners.fits(pod, move.target):
            return None
        self._guided.add(pod.uid)
        return action


def _needs_its_scheduler(pod: PodRecord) -> bool:
    """Whether volumes or devices are chosen with the node, which no binding does."""
    volumes = pod.spec.volumes
    return bool(pod.spec.resource_claims) or any(
        volume.persistent_volume_claim is not None or volume.ephemeral is not None for volume in volumes
    )
