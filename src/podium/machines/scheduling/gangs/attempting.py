"""What the scheduler does with a pod of a group as with any other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from podium.cluster.pods import PodRecord
from podium.framework.cycle_state import CycleState
from podium.framework.runner import Runner
from podium.machines.actions import Action
from podium.machines.scheduling.binding.cycle import FailedBinding, StepResult
from podium.machines.scheduling.queue.queued_pod import QueuedPod


class Attempting(Protocol):
    """The scheduler, for those who decide about several of its pods at once."""

    seed: int
    cursor: int

    def begins(self, queued: QueuedPod, runner: Runner) -> None:
        """An attempt at a pod is about to be made."""
        ...

    def goes_to(
        self,
        node_name: str,
        queued: QueuedPod,
        runner: Runner,
        state: CycleState,
        now: int,
        *,
        is_together: bool = False,
    ) -> list[Action]:
        """Begin to bind a pod to its node; if ``is_together``, not before enough of its gang are ready."""
        ...

    def not_scheduled(
        self, queued: QueuedPod, plugins: Sequence[str], message: str, now: int, *, error: bool = False
    ) -> list[Action]:
        """Put a pod back after an attempt that came to nothing, and report what is new about it."""
        ...

    def on_its_way(self, uid: str, result: StepResult, now: int) -> list[Action]:
        """The actions of a step of a binding cycle; one that failed puts its pod back."""
        ...

    def put_back(self, failure: FailedBinding, now: int, *, is_error: bool = True) -> list[Action]:
        """Put the pod of a binding cycle that came to nothing back; its room is there for others."""
        ...

    def call_back(
        self, preemptor: PodRecord, victims: Iterable[PodRecord], now: int
    ) -> tuple[list[PodRecord], list[Action]]:
        """Call back to the queue those victims that are still on the way to their node; returns the others."""
        ...
