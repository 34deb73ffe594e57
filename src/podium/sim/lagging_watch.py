"""A machine whose watches lag behind the API server, or repeat themselves."""

from __future__ import annotations

from collections import deque
from random import Random
from typing import Protocol

from podium.machines.actions import Action
from podium.machines.machine import Machine
from podium.machines.observations import Answered, Changed, Gone, Observation, Tick
from podium.sim.faults import DrawnFaults, Fault


class Settling(Machine, Protocol):
    """A machine that says whether it still has work."""

    def is_settled(self) -> bool: ...


class LaggingWatch:
    """Stands before a machine and hands it what it watches, late or twice, as the faults have it.

    Each kind of object has a watch of its own, which keeps its order; watches of different kinds may overtake one
    another. Answers to actions pass at once.
    """

    def __init__(self, machine: Settling, faults: DrawnFaults, seed: int) -> None:
        self._machine = machine
        self._faults = faults
        self._random = Random(f"watch:{seed}")
        # By kind, what is on its way: when it arrives, and a number that grows.
        self._coming: dict[str, deque[tuple[int, int, Changed | Gone]]] = {}
        self._number = 0

    def handle(self, observation: Observation, now: int) -> list[Action]:
        """As the machine does, once it gets to know."""
        match observation:
            case Changed() | Gone():
                self._send(observation, now)
                return self._deliver(now)
            case Answered():
                return self._machine.handle(observation, now)
            case Tick():
                actions = self._deliver(now)
                deadline = self._machine.next_deadline()
                if deadline is not None and deadline <= now:
                    actions += self._machine.handle(observation, now)
                return actions

    def next_deadline(self) -> int | None:
        """When something arrives, or the machine wants to go on."""
        arrivals = [coming[0][0] for coming in self._coming.values() if coming]
        deadline = self._machine.next_deadline()
        return min([*arrivals, *([] if deadline is None else [deadline])], default=None)

    def is_settled(self) -> bool:
        """Whether nothing is on its way, and the machine is settled."""
        return not any(self._coming.values()) and self._machine.is_settled()

    def _send(self, observation: Changed | Gone, now: int) -> None:
        coming = self._coming.setdefault(observation.object.kind, deque())
        arrival = now + self._faults.delay_ns(Fault.WATCH_LATE, self._random)
        if coming:
            arrival = max(arrival, coming[-1][0])
        for _ in range(1 + self._faults.happens(Fault.WATCH_TWICE, self._random)):
            self._number += 1
            coming.append((arrival, self._number, observation))

    def _deliver(self, now: int) -> list[Action]:
        """Hand on what has arrived, the earliest first."""
        actions: list[Action] = []
        while True:
            first = min(
                (coming[0] for coming in self._coming.values() if coming), key=lambda one: one[:2], default=None
            )
            if first is None or first[0] > now:
                return actions
            observation = self._coming[first[2].object.kind].popleft()[2]
            actions += self._machine.handle(observation, now)
