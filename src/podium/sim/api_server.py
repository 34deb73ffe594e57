"""The store as the simulated components reach it: their actions, carried out and told with who did them."""

from __future__ import annotations

from collections.abc import Callable

from podium.api.pod import Pod
from podium.machines.actions import Action, DeleteObject, PatchObject, Record, ReportStatus
from podium.machines.ledger.announced import DISRUPTING
from podium.machines.ledger.ledger import DisruptionLedger
from podium.machines.observations import Answered
from podium.requests.actions import carry_out
from podium.requests.collecting import by_requests
from podium.requests.request import Request, Response
from podium.requests.router import Router
from podium.sim.history import History
from podium.sim.scenario.changes import SCENARIO
from podium.store.controllers.garbage import GarbageCollector
from podium.store.controllers.namespace_contents import NamespaceCleaner
from podium.store.controllers.steps import CarryOut, Step
from podium.store.log.watch_event import WatchEvent
from podium.store.store import Store

_COLLECTOR = "garbage-collector"
_NAMESPACES = "namespace-controller"
# Actions that history tells of in the words of those who ask for them; the others speak for themselves.
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
        self._log = store.log
        self._router = Router(store, takes_history=True)
        self._history = history
        self._on_event = on_event
        # A cluster may be known in part: an owner that was never seen may be alive.
        self._garbage = GarbageCollector(store, self._stepping(_COLLECTOR), absent_is_gone=False)
        self._cleaner = NamespaceCleaner(store, self._stepping(_NAMESPACES))
        self.may_collect = True
        """Whether something was written since the collectors looked that may concern them."""
        # At so many writes they look in any case.
        self._look_at = _MOST_BEHIND

    def carry_out(self, action: Action, now: int, by: str = "") -> Answered:
        """Do what a component asks for; how that ends.

        ``by`` names the component where the action does not say who does it; "" stands for the pod's scheduler.
        """
        if type(action) is Record:
            self._ledger.asked(action, by)
            if self._history.tells(action):
                self._history.record(action, by or self.scheduler_of(action), now)
            return Answered(action)
        type_, who = type(action), by or self.scheduler_of(action)
        by = getattr(action, "cause", "") or who
        if type_ in DISRUPTING:
            self._announce(action, who, by)
        version = self._log.version
        try:
            answered = carry_out(self._router.answer, action, now)
            if answered.problem is not None:
                self._ledger.answered(action, answered.problem)
            return answered
        finally:
            self._hand_on(version, now, by, getattr(action, "message", "") if type_ in _TELLING else "")

    def ask(self, request: Request, by: str, now: int) -> Response:
        """Do what somebody asks for who is no component."""
        version = self._log.version
        try:
            return self._router.answer(request, now)
        finally:
            self._hand_on(version, now, by, "")

    def collect_garbage(self, now: int) -> bool:
        """Let objects go whose owners are gone, or whose namespace is going; whether there were any."""
        if not self.may_collect:
            return False
        self.may_collect, self._look_at = False, self.written + _MOST_BEHIND
        count = self._garbage.collect(now) + self._cleaner.clean(now)
        if self._cleaner.has_work:
            # Every write concerns them.
            self._look_at = self.written
        return count > 0

    def scheduler_of(self, action: Action) -> str:
        """The scheduler that is responsible for the action's pod, "" where there is none."""
        pod = getattr(action, "pod", "")
        stored = self.store.find("Pod", pod) if pod else None
        return stored.object.spec.scheduler_name if stored and isinstance(stored.object, Pod) else ""

    def _stepping(self, by: str) -> CarryOut:
        """How a controller of the API server's own does a step. It is handed on at once: the log holds only so much."""
        do = by_requests(self._router.answer)

        def carry_out(step: Step, now: int) -> None:
            version = self._log.version
            try:
                do(step, now)
            finally:
                self._hand_on(version, now, by, "")

        return carry_out

    def _announce(self, action: Action, who: str, by: str) -> None:
        """Tell the ledger what may make a pod end."""
        if by == SCENARIO and isinstance(action, DeleteObject) and action.kind == "Pod":
            self._ledger.wanted(action.uid, by)
        else:
            self._ledger.asked(action, who)

    def _hand_on(self, version: int, now: int, by: str, message: str) -> None:
        """Tell of what was written since a version."""
        for event in self._log.since(version):
            self.written += 1
            stored, before = event.stored, event.previous
            metadata = stored.object.metadata
            if (
                metadata.owner_references
                or metadata.deletion_timestamp is not None
                or (before is not None and before.object.metadata.owner_references)
                or event.type == "DELETED"
                or self.written >= self._look_at
                or stored.resource.name == "Namespace"
            ):
                self.may_collect = True
            self._on_event(event, now, by, message)
