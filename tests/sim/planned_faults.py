"""Faults that follow a plan."""

from collections.abc import Sequence

from podium.controllers.actions import Action, Bind
from podium.sim.faults import FaultOutcome
from tests.sim.faults import CARRIED_OUT, WatchDelivery, WatchFaults


class NoFaults(WatchFaults):
    """All goes well; for what differs to be overridden."""

    def outcome(self, component: str, action: Action) -> FaultOutcome:
        return CARRIED_OUT

    def outage_ns(self, component: str, action: Action, *, is_done: bool) -> int | None:
        return None

    def delivery(self, component: str, kind: str) -> WatchDelivery:
        return WatchDelivery()

    def list_lag(self, component: str) -> int:
        return 0


class BindFates(NoFaults):
    """The outcomes of the first bindings."""

    def __init__(self, *fates: FaultOutcome) -> None:
        self.fates: Sequence[FaultOutcome] = fates

    def outcome(self, component: str, action: Action) -> FaultOutcome:
        if not self.fates or not isinstance(action, Bind):
            return CARRIED_OUT
        outcome, *self.fates = self.fates
        return outcome
