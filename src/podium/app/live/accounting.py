"""The ledger of the disruptions that a program on a cluster causes or observes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

from podium.api.errors import InputError
from podium.api.meta import Kubernetes
from podium.api.pod import Pod
from podium.api.times import SECOND
from podium.controllers.actions import Action
from podium.controllers.controller import NO_CHANGE, Controller
from podium.controllers.deadlines import Deadline, soonest
from podium.controllers.ledger.disruption import since
from podium.controllers.ledger.ledger import DisruptionLedger, is_disrupted
from podium.controllers.observations import ActionFinished, Changed, Deleted, Observation, Tick
from podium.controlplane.ledger_file import LedgerFile
from podium.store.stored import Stored

_FLUSH_INTERVAL_NS = SECOND


class LiveAccount:
    """A ledger in a file, and the totals of its records.

    ``find`` returns a cached object by its kind and key; None if there is none.
    """

    def __init__(
        self,
        path: str,
        kept_seconds: float,
        find: Callable[[str, str], Stored | None],
        on_problem: Callable[[str], None],
    ) -> None:
        """Open the file. Raises InputError if it cannot be used."""
        self.file = LedgerFile(path, on_problem, kept_seconds=kept_seconds)
        try:
            self.file.earlier()
        except InputError:
            self.file.close()
            raise
        self.tallies = self.file.tallies
        self._find = find
        self._ledgers: list[DisruptionLedger] = []

    @property
    def expects_ends(self) -> bool:
        """Return whether a controller has disrupted a pod and has not observed its end yet."""
        return any(ledger.expects_ends for ledger in self._ledgers)

    def of(self, controller: Controller, name: str) -> AccountedController:
        """Return the controller, with its disruptions recorded. Follow-ups of its earlier runs are resumed."""
        find = partial(self._object, controller.watches)
        ledger = DisruptionLedger(self.file.put, find, hears_requests=False, last_id=self.tallies.last_id)
        self._ledgers.append(ledger)
        earlier = self.file.earlier()

        def resume(pods: Iterable[Pod], now: int) -> None:
            ledger.resume(earlier, pods, self._since, now)

        return AccountedController(controller, name, ledger, self.file, resume)

    def close(self) -> None:
        self.file.close()

    def _since(self, pod: Pod, condition: str) -> int | None:
        stored = self._find("Pod", pod.key)
        return None if stored is None else since(stored.raw, condition)

    def _object(self, kinds: frozenset[str], kind: str, key: str) -> Kubernetes | None:
        stored = self._find(kind, key) if kind in kinds else None
        return None if stored is None else stored.object


@dataclass(slots=True, eq=False)
class AccountedController:
    """A controller whose observations and actions a ledger also receives.

    A pod that is already terminating in the initial list was disrupted before the ledger started. ``resume`` gets all
    existing pods and the time: it goes on with the follow-ups of an earlier run.
    """

    controller: Controller
    name: str
    ledger: DisruptionLedger
    file: LedgerFile
    resume: Callable[[Iterable[Pod], int], None]
    # By uid, the pods of the initial list; None once the list is complete and the first deadline was due.
    _initial: dict[str, Pod] | None = field(default_factory=dict, init=False)
    # After the initial list, the uids of the existing pods: all others are created later.
    _existing: set[str] = field(default_factory=set, init=False)
    # When to flush the file; None if there is nothing to flush.
    _due_ns: int | None = field(default=None, init=False)

    @property
    def watches(self) -> frozenset[str]:
        return self.controller.watches

    def deadline(self) -> Deadline:
        """See `Controller`; a flush does not keep a simulation alive."""
        own = self.controller.deadline()
        due_ns = 0 if self._initial is not None else self._due_ns
        return own if due_ns is None else soonest(own, Deadline(due_ns, False))

    def handle(self, observation: Observation, now: int) -> list[Action]:
        if isinstance(observation, Tick):
            has_resumed = self._initial is not None
            if self._initial is not None:
                # The initial list is complete: follow-ups of an earlier run go on.
                self.resume(self._initial.values(), now)
                self._existing = {*self._initial}
                self._initial = None
                self._plan_flush(now)
            is_due = self._due_ns is not None and self._due_ns <= now
            if is_due:
                self.file.flush(now)
                # Records that could not be written are retried.
                self._due_ns = now + _FLUSH_INTERVAL_NS if self.file.waiting else None
            if is_due or has_resumed:
                time_ns = self.controller.deadline().time_ns
                if time_ns is None or time_ns > now:
                    return []
        # The ledger handles the observation first: it attributes preemptions by the state before them.
        deadline_read = self._due_ns is not None and self._initial is None
        self._record(observation, now)
        actions = self.controller.handle(observation, now)
        for action in actions:
            self.ledger.on_action(action, self.name)
        self._plan_flush(now)
        # The deadline of a controller that returns NO_CHANGE is not read again.
        has_deadline = self._due_ns is not None or self._initial is not None
        return [] if actions is NO_CHANGE and has_deadline and not deadline_read else actions

    def _plan_flush(self, now: int) -> None:
        if self._due_ns is None and self.file.waiting:
            self._due_ns = now + _FLUSH_INTERVAL_NS

    def _record(self, observation: Observation, now: int) -> None:
        if isinstance(observation, ActionFinished):
            self.ledger.on_result(observation.action, observation.problem)
        elif isinstance(observation, Changed) and isinstance(observation.object, Pod):
            pod, is_added = observation.object, None
            uid = pod.metadata.uid
            if self._initial is None:
                is_added = uid not in self._existing
                self._existing.add(uid)
            else:
                if uid not in self._initial and is_disrupted(pod):
                    self.ledger.known(pod)
                self._initial[uid] = pod
            self.ledger.on_update(pod, now, is_added=is_added)
        elif isinstance(observation, Deleted) and isinstance(observation.object, Pod):
            if self._initial is not None:
                self._initial.pop(observation.object.metadata.uid, None)
            self._existing.discard(observation.object.metadata.uid)
            self.ledger.on_delete(observation.object, now)
