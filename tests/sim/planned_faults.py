"""Faults by plan."""

from collections.abc import Sequence

from podium.machines.actions import Action, Bind
from podium.sim.faulty.faults import CARRIED_OUT, Delivery, Fate


class NoFaults:
    """All goes well; for what differs to be overridden."""

    def fate(self, component: str, action: Action) -> Fate:
        return CARRIED_OUT

    def outage_ns(self, component: str, action: Action, *, is_done: bool) -> int | None:
        return None

    def delivery(self, component: str, kind: str) -> Delivery:
        return Delivery()

    def list_lag(self, component: str) -> int:
        return 0


class BindFates(NoFaults):
    """What becomes of the first bindings."""

    def __init__(self, *fates: Fate) -> None:
        self.fates: Sequence[Fate] = fates

    def fate(self, component: str, action: Action) -> Fate:
        if not self.fates or not isinstance(action, Bind):
            return CARRIED_OUT
        fate, *self.fates = self.fates
        return fate
