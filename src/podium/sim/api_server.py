"""The store as the simulated components reach it: their actions, carried out and told with who did them."""

from __future__ import annotations

from collections.abc import Callable

from podium.api.pod import Pod
from podium.machines.actions import Action, DeleteObject, PatchObject, Record, ReportStatus
from podium.machines.ledger.ledger import DisruptionLedger
from podium.machines.observations import Problem
from podium.requests.actions import carry_out
from podium.requests.router import Router
from podium.sim.history import History
from podium.sim.scenario.changes import SCENARIO
from podium.store.controllers.garbage import GarbageCollector, is_alone
from podium.store.controllers.namespace_contents import NamespaceCleaner
from podium.store.log.watch_event import WatchEvent
from podium.store.store import Store

_COLLECTOR = "garbage-collector"
_NAMESPACES = "namespace-controller"
_TELLING = frozenset((ReportStatus, PatchObject, DeleteObject))
# So many writes of which nothing follows the collectors may be behind.
_MOST_BEHIND = 1_000


class APIServer:
    """Carries out what components ask for, and hands every committed event on at once.

    `on_event` gets the event, the time, who made the write, and a message for people. The `ledger` is told what is
    asked for, and how that ends.
    """

    def __init__(
        self,
        store: Store,
        history: History,
        on_event: Callable[[WatchEvent, int, str, str], None],
        ledger: DisruptionLedger,
    ) -> None:
        self.store = store
        self.written = 0
        """How many events were handed on."""
        self._ledger = ledger
        self._router = Router(store, takes_history=True)
        self._history = history
        self._on_event = on_event
        # A cluster may be known in part: an owner that was never seen may be alive.
        garbage = GarbageCollector(store, absent_is_gone=False)
        self._cleaner = NamespaceCleaner(store)
        # Who does it without being asked, each with the name under which it does.
        self._collectors = ((garbage.collect, _COLLECTOR), (self._cleaner.clean, _NAMESPACES))
        # Whether something was written since they looked that may concern them; and what was written then.
        self._may_collect = True
        self._looked_at = 0

    def carry_out(self, action: Action, now: int, by: str = "") -> Problem | None:
        """Do what a component asks for; the problem when it is refused.

        ``by`` names the component where the action does not say who does it; "" stands for the pod's scheduler.
        """
        if type(action) is Record:
            self._ledger.asked(action, by)
            if self._history.tells(action):
                self._history.record(action, by or self.scheduler_of(action), now)
            return None
        version = self.store.version
        who = by or self.scheduler_of(action)
        by = getattr(action, "cause", "") or who
        if by == SCENARIO and isinstance(action, DeleteObject) and action.kind == "Pod":
            self._ledger.wanted(action.uid, by)
        else:
            self._ledger.asked(action, who)
        try:
            problem = carry_out(self._router.answer, action, now)
            self._ledger.answered(action, problem)
            return problem
        finally:
            self._hand_on(version, now, by, _told(action))

    def edit(self, edit: Callable[[Store], object], by: str, now: int) -> None:
        """Change what the store holds in somebody's name. Raises StoreError."""
        version = self.store.version
        try:
            with self.store.transaction():
                edit(self.store)
        finally:
            self._hand_on(version, now, by, "")

    def collect_garbage(self, now: int) -> bool:
        """Let objects go whose owners are gone, or whose namespace is going; whether there were any."""
        if not self._may_collect and self.written - self._looked_at < _MOST_BEHIND:
            return False
        self._may_collect, self._looked_at = False, self.written
        count = 0
        version = self.store.version
        for collect, by in self._collectors:
            steps = collect(now)
            if steps:
                count += steps
                self._hand_on(version, now, by, "")
                version = self.store.version
        return count > 0

    def scheduler_of(self, action: Action) -> str:
        """The scheduler that is responsible for the action's pod, "" where there is none."""
        pod = getattr(action, "pod", "")
        stored = self.store.find("Pod", pod) if pod else None
        return stored.object.spec.scheduler_name if stored and isinstance(stored.object, Pod) else ""

    def _hand_on(self, version: int, now: int, by: str, message: str) -> None:
        if version != self.store.version:
            for event in self.store.events_since(version):
                self.written += 1
                self._may_collect = self._may_collect or self._concerns_collectors(event)
                self._on_event(event, now, by, message)

    def _concerns_collectors(self, event: WatchEvent) -> bool:
        stored, before = event.stored, event.previous
        return (
            event.type == "DELETED"
            or not is_alone(stored)
            or (before is not None and not is_alone(before))
            or stored.resource.name == "Namespace"
            or self._cleaner.has_work
        )


def _told(action: Action) -> str:
    """What history says about an action, "" for those that speak for themselves."""
    return getattr(action, "message", "") if type(action) in _TELLING else ""
