"""The account of what a program at a cluster disrupts, and of what it sees others disrupt."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Protocol

from podium.api.errors import InputError
from podium.api.meta import Kubernetes
from podium.api.pod import Pod
from podium.controllers.actions import Action
from podium.controllers.controller import NO_CHANGE, Controller
from podium.controllers.deadlines import Deadline, soonest
from podium.controllers.ledger.causes import is_disrupted
from podium.controllers.ledger.disruption import Disruption, DisruptionTotals, FollowUp, since
from podium.controllers.ledger.ledger import DisruptionLedger
from podium.controllers.observations import Answered, Changed, Gone, Observation, Tick
from podium.controlplane.ledger_file import LedgerFile
from podium.store.stored import Stored

_SECOND = 10**9
_WRITTEN_EACH_NS = _SECOND


class Resume(Protocol):
    """Goes on with what an earlier life has left; `DisruptionLedger.resume`."""

    def __call__(self, *, pods: Iterable[Pod], now: int) -> None:
        """``pods`` are all that there are."""


class LiveAccount:
    """A ledger in a file, and what is counted of it.

    ``find`` gives an object of a kind that is watched, as the API server last showed it.
    """

    def __init__(
        self,
        path: str,
        kept_seconds: float,
        find: Callable[[str, str], Stored | None],
        on_problem: Callable[[str], None],
    ) -> None:
        """Raises InputError for a file that cannot be used."""
        self.file = LedgerFile(path, on_problem, kept_seconds=kept_seconds)
        try:
            self.file.earlier()
        except InputError:
            self.file.close()
            raise
        self.tallies = DisruptionTotals(self.file.last_id)
        self._find = find
        self._ledgers: list[DisruptionLedger] = []

    @property
    def expects_ends(self) -> bool:
        """Whether a machine has asked for a pod to go, and this is yet to be seen."""
        return any(ledger.expects_ends for ledger in self._ledgers)

    def of(self, machine: Controller, name: str) -> AccountedMachine:
        """The machine, with its deeds accounted for. What an earlier life of it did is followed further."""
        find = partial(self._object, machine.watches)
        ledger = DisruptionLedger(self._keep, find, hears_requests=False, last_id=self.tallies.last_id)
        self._ledgers.append(ledger)
        earlier = self.file.earlier()
        for record, _ in earlier.followed:
            self.tallies.known(record)
        resume = partial(ledger.resume, earlier, since=self._since)
        return AccountedMachine(machine, name, ledger, self.file, resume)

    def close(self) -> None:
        self.file.close()

    def _keep(self, record: Disruption, trail: FollowUp | None) -> None:
        self.file.put(record, trail)
        self.tallies.put(record)

    def _since(self, pod: Pod, condition: str) -> int | None:
        stored = self._find("Pod", pod.key)
        return None if stored is None else since(stored.raw, condition)

    def _object(self, kinds: frozenset[str], kind: str, key: str) -> Kubernetes | None:
        stored = self._find(kind, key) if kind in kinds else None
        return None if stored is None else stored.object


class AccountedMachine:
    """A machine that looks at pods, and beside it the ledger, which is shown the same and told what the machine wants.

    A pod that ends when it is shown for the first time, before anything was due, has begun to end before there was an
    account.
    """

    def __init__(
        self, machine: Controller, name: str, ledger: DisruptionLedger, file: LedgerFile, resume: Resume
    ) -> None:
        self.machine = machine
        self._name = name
        self._ledger = ledger
        self._file = file
        self._resume = resume
        # By uid, the pods that have been shown; None once all there are were, and something was due.
        self._shown: dict[str, Pod] | None = {}
        # By then, the uids of those that are there: whoever else is shown has come since, whatever clocks say.
        self._there: set[str] = set()
        # When what has been recorded is to be written down, None for nothing.
        self._due_ns: int | None = None

    @property
    def watches(self) -> frozenset[str]:
        return self.machine.watches

    def deadline(self) -> Deadline:
        """See `Controller`; that something is written down is no news."""
        own = self.machine.deadline()
        due_ns = 0 if self._shown is not None else self._due_ns
        return own if due_ns is None else soonest(own, Deadline(due_ns, False))

    def handle(self, observation: Observation, now: int) -> list[Action]:
        if isinstance(observation, Tick):
            is_own = self._begins(now)
            if self._writes(now) or is_own:
                time_ns = self.machine.deadline().time_ns
                if time_ns is None or time_ns > now:
                    return []
        # The ledger is told before the machine: who is preempted for whom is known from what there was.
        is_asked = self._due_ns is not None and self._shown is None
        self._show(observation, now)
        actions = self.machine.handle(observation, now)
        for action in actions:
            self._ledger.asked(action, self._name)
        self._plan_writing(now)
        # Whoever is unmoved is not asked for its deadline.
        has_deadline = self._due_ns is not None or self._shown is not None
        return [] if actions is NO_CHANGE and has_deadline and not is_asked else actions

    def _begins(self, now: int) -> bool:
        """All that there is has been shown: go on with what an earlier life has left; whether that was to be done."""
        if self._shown is None:
            return False
        self._resume(pods=self._shown.values(), now=now)
        self._there = {*self._shown}
        self._shown = None
        self._plan_writing(now)
        return True

    def _plan_writing(self, now: int) -> None:
        if self._due_ns is None and self._file.has_waiting:
            self._due_ns = now + _WRITTEN_EACH_NS

    def _show(self, observation: Observation, now: int) -> None:
        if isinstance(observation, Answered):
            self._ledger.answered(observation.action, observation.problem)
        elif isinstance(observation, Changed) and isinstance(observation.object, Pod):
            pod, is_added = observation.object, None
            uid = pod.metadata.uid
            if self._shown is None:
                is_added = uid not in self._there
                self._there.add(uid)
            else:
                if uid not in self._shown and is_disrupted(pod):
                    self._ledger.known(pod)
                self._shown[uid] = pod
            self._ledger.changed(pod, now, is_added=is_added)
        elif isinstance(observation, Gone) and isinstance(observation.object, Pod):
            if self._shown is not None:
                self._shown.pop(observation.object.metadata.uid, None)
            self._there.discard(observation.object.metadata.uid)
            self._ledger.gone(observation.object, now)

    def _writes(self, now: int) -> bool:
        """Write down what has been recorded, if it is time to; whether it was."""
        if self._due_ns is None or self._due_ns > now:
            return False
        self._file.flush(now)
        # What a disk does not take is tried again.
        self._due_ns = now + _WRITTEN_EACH_NS if self._file.has_waiting else None
        return True
