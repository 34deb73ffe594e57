"""When a replacement is placed: while those that are to leave are still there, or once they are gone.

A ReplicaSet makes a new pod as soon as one is to end, and a StatefulSet once it has ended; a pod that is asked to end
takes its time, and until then it holds its room.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from msgspec.structs import replace

from podium.cluster.pods import NO_ROW, PodRecord
from podium.decide.scratch import Scratch
from podium.framework.rescheduling.policy import Relocation

_AFTER_THE_END = ("StatefulSet",)


@dataclass(frozen=True, slots=True, eq=False)
class Leaver:
    """A pod that is moved, and the row that it leaves."""

    relocation: Relocation
    row: int

    @property
    def pod(self) -> PodRecord:
        """The pod as it is before."""
        return self.relocation.pod

    @property
    def ends_first(self) -> bool:
        """Whether its replacement is made once it is gone."""
        controller = self.pod.controller
        return controller is not None and controller.kind in _AFTER_THE_END


@dataclass(frozen=True, slots=True, eq=False)
class Arrival:
    """A replacement, and the row to which it comes."""

    leaver: Leaver
    pod: PodRecord
    row: int


@contextmanager
def still_there(scratch: Scratch, leaving: Iterable[Leaver]) -> Iterator[None]:
    """The cluster with pods that are about to end, and not gone yet."""
    mark = scratch.mark()
    for leaver in leaving:
        scratch.place(replace(leaver.pod, terminating=True, row=NO_ROW, slot=-1), leaver.row)
    try:
        yield
    finally:
        scratch.roll_back(mark)
