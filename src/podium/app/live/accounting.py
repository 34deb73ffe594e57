"""The account of what a program at a cluster disrupts, and of what it sees others disrupt."""

from __future__ import annotations

from collections.abc import Callable

from podium.api.pod import Pod
from podium.machines.actions import Action
from podium.machines.ledger.causes import is_disrupted
from podium.machines.ledger.disruption import Disruption
from podium.machines.ledger.ledger import DisruptionLedger
from podium.machines.ledger.tallies import Tallies
from podium.machines.machine import UNMOVED, Machine
from podium.machines.observations import Answered, Changed, Observation, Tick
from podium.machines.parts.deadlines import Deadline, soonest
from podium.plane.ledger_file import LedgerFile
from podium.store.stored import Stored

_SECOND = 10**9
_WRITTEN_EACH_NS = _SECOND


class LiveAccount:
    """A ledger in a file, and what is counted of it; ``find`` gives an object as the API server last showed it."""

    def __init__(self, path: str, find: Callable[[str, str], Stored | None], on_problem: Callable[[str], None]) -> None:
        """Raises InputError for a file that cannot be used."""
        self.file = LedgerFile(path, on_problem)
        self.tallies = Tallies(self.file.last_id)
        self._find = find

    def of(self, machine: Machine, name: str) -> AccountedMachine:
        """The machine, with its deeds accounted for. Of what an earlier life of it did nothing more is learnt."""
        ledger = DisruptionLedger(self._keep, self._pod, last_id=self.tallies.last_id)
        return AccountedMachine(machine, name, ledger, self.file)

    def close(self) -> None:
        """Write down what there is, and let go of the file."""
        self.file.close()

    def _keep(self, record: Disruption) -> None:
        self.file.put(record)
        self.tallies.put(record)

    def _pod(self, key: str) -> Pod | None:
        stored = self._find("Pod", key)
        return stored.object if stored is not None and isinstance(stored.object, Pod) else None


class AccountedMachine:
    """A machine that looks at pods, and beside it the ledger, which is shown the same and told what the machine wants.

    A pod that ends when it is shown for the first time, before anything was due, has begun to end before there was an
    account.
    """

    def __init__(self, machine: Machine, name: str, ledger: DisruptionLedger, file: LedgerFile) -> None:
        self.machine = machine
        self._name = name
        self._ledger = ledger
        self._file = file
        # The uids of pods that did not end when they were shown first; None once something was due.
        self._shown: set[str] | None = set()
        # When what has been recorded is to be written down, None for nothing.
        self._due_ns: int | None = None

    @property
    def watches(self) -> frozenset[str]:
        """See `Machine`."""
        return self.machine.watches

    def deadline(self) -> Deadline:
        """See `Machine`; that something is written down is no news."""
        own = self.machine.deadline()
        return own if self._due_ns is None else soonest(own, Deadline(self._due_ns, False))

    def handle(self, observation: Observation, now: int) -> list[Action]:
        """See `Machine`."""
        if isinstance(observation, Tick) and self._writes(now) and not _is_due(self.machine.deadline(), now):
            return []
        # The ledger is told before the machine: who is preempted for whom is known from what there was.
        had_waited = self._due_ns is not None
        self._show(observation, now)
        actions = self.machine.handle(observation, now)
        for action in actions:
            self._ledger.asked(action, self._name)
        if self._due_ns is None and self._file.has_waiting:
            self._due_ns = now + _WRITTEN_EACH_NS
        # Whoever is unmoved is not asked for its deadline.
        return [] if actions is UNMOVED and self._due_ns is not None and not had_waited else actions

    def _show(self, observation: Observation, now: int) -> None:
        if isinstance(observation, Tick):
            self._shown = None
        elif isinstance(observation, Answered):
            self._ledger.answered(observation.action, observation.problem)
        elif isinstance(observation, Changed) and isinstance(observation.object, Pod):
            if self._shown is not None:
                self._show_first(observation.object, self._shown)
            self._ledger.changed(observation.object, now)
        else:
            self._ledger.handle(observation, now)

    def _show_first(self, pod: Pod, shown: set[str]) -> None:
        if pod.metadata.uid not in shown and is_disrupted(pod):
            self._ledger.known(pod)
        else:
            shown.add(pod.metadata.uid)

    def _writes(self, now: int) -> bool:
        """Write down what has been recorded, if it is time to; whether it was."""
        if self._due_ns is None or self._due_ns > now:
            return False
        self._file.flush(now)
        # What a disk does not take is tried again.
        self._due_ns = now + _WRITTEN_EACH_NS if self._file.has_waiting else None
        return True


def _is_due(deadline: Deadline, now: int) -> bool:
    return deadline.time_ns is not None and deadline.time_ns <= now
