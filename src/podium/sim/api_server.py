"""The API server of simulated components: it processes actions and records their authors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from podium.api.pod import Pod
from podium.apirequests.actions import carry_out, cleanup_by_requests
from podium.apirequests.request import Request, Response
from podium.apirequests.router import Router
from podium.controllers.actions import Action, DeleteObject, PatchObject, Record, ReportStatus
from podium.controllers.ledger.ledger import DISRUPTING, DisruptionLedger
from podium.controllers.observations import ActionFinished
from podium.controlplane.component_names import GARBAGE_COLLECTOR, NAMESPACE_CONTROLLER
from podium.sim.history import EventHistory
from podium.sim.scenario.steps import SCENARIO
from podium.store.cleanup import GarbageCollector, NamespaceCleaner, Step, StepRunner
from podium.store.store import Store
from podium.store.watch_log import WatchEvent

# Actions whose own message the history uses.
_OWN_MESSAGE = frozenset((ReportStatus, PatchObject, DeleteObject))
MOST_BEHIND = 1_000
"""The collectors may lag by so many writes without consequences."""


@dataclass(eq=False)
class APIServer:
    """Processes requests and passes on every committed event at once.

    `on_event` receives the event, time, author and message. The `ledger` receives requests and their results. `written`
    counts the events passed on. `may_collect`: a write since the last collection may require another.
    """

    store: Store
    history: EventHistory
    on_event: Callable[[WatchEvent, int, str, str], None]
    ledger: DisruptionLedger
    written: int = 0
    may_collect: bool = True
    # At this number of writes a collection takes place in any case.
    _look_at: int = MOST_BEHIND

    def __post_init__(self) -> None:
        self._log = self.store.log
        self._router = Router(self.store, takes_history=True)
        # An owner that was never seen may exist, since a cluster may be known in part.
        self._garbage = GarbageCollector(self.store, self._stepping(GARBAGE_COLLECTOR), absent_is_gone=False)
        self._cleaner = NamespaceCleaner(self.store, self._stepping(NAMESPACE_CONTROLLER))

    def carry_out(self, action: Action, now: int, by: str = "") -> ActionFinished:
        """Process an action and return the answer; ``by`` names the component, "" stands for the pod's scheduler."""
        if type(action) is Record:
            self.ledger.on_action(action, by)
            # The store's log reports bindings better: it includes those whose answer was lost.
            if action.reason != "Scheduled":
                self.history.record(action, by or self.scheduler_of(action), now)
            return ActionFinished(action)
        type_, author = type(action), by or self.scheduler_of(action)
        by = getattr(action, "cause", "") or author
        if by == SCENARIO and isinstance(action, DeleteObject) and action.kind == "Pod":
            self.ledger.on_client_request(action.uid, by)
        elif type_ in DISRUPTING:
            self.ledger.on_action(action, author)
        version = self._log.version
        try:
            finished = carry_out(self._router.answer, action, now)
            if finished.problem is not None:
                self.ledger.on_result(action, finished.problem)
            return finished
        finally:
            self._pass_on(version, now, by, getattr(action, "message", "") if type_ in _OWN_MESSAGE else "")

    def ask(self, request: Request, by: str, now: int) -> Response:
        """Process a request that does not come from a component."""
        version = self._log.version
        try:
            return self._router.answer(request, now)
        finally:
            self._pass_on(version, now, by, "")

    def collect_garbage(self, now: int) -> bool:
        """Collect objects without owners, and contents of terminating namespaces; return whether there were any."""
        if not self.may_collect:
            return False
        self.may_collect, self._look_at = False, self.written + MOST_BEHIND
        count = self._garbage.collect(now) + self._cleaner.collect(now)
        if self._cleaner.terminating:
            # Every write may matter to it.
            self._look_at = self.written
        return count > 0

    def scheduler_of(self, action: Action) -> str:
        """Return the scheduler responsible for the action's pod, or ""."""
        pod = getattr(action, "pod", "")
        stored = self.store.find("Pod", pod) if pod else None
        return stored.object.spec.scheduler_name if stored and isinstance(stored.object, Pod) else ""

    def _stepping(self, by: str) -> StepRunner:
        """Return a function that carries out a step of an internal controller and passes on its events at once."""
        do = cleanup_by_requests(self._router.answer)

        def carry_out(step: Step, now: int) -> None:
            version = self._log.version
            try:
                do(step, now)
            finally:
                self._pass_on(version, now, by, "")

        return carry_out

    def _pass_on(self, version: int, now: int, by: str, message: str) -> None:
        """Pass on the events since a version."""
        for event in self._log.since(version):
            self.written += 1
            stored, before = event.stored, event.previous
            metadata = stored.object.metadata
            had_owner = before is not None and before.object.metadata.owner_references
            is_ending = metadata.deletion_timestamp is not None or event.type == "DELETED"
            if metadata.owner_references or had_owner or is_ending or stored.resource.name == "Namespace":
                self.may_collect = True
            self.may_collect |= self.written >= self._look_at
            self.on_event(event, now, by, message)
