"""The account of a run's disruptions, kept in memory."""

from __future__ import annotations

from podium.api.meta import Kubernetes
from podium.api.pod import Pod
from podium.machines.ledger.disruption import Disruption, Trail
from podium.machines.ledger.ledger import DisruptionLedger
from podium.store.log.watch_event import WatchEvent
from podium.store.store import Store


class Account:
    """Shows a ledger every write, and keeps what it records. Who is disrupted before the start is not counted."""

    def __init__(self, store: Store, start_ns: int) -> None:
        self._store = store
        self._records: dict[int, Disruption] = {}
        self.ledger = DisruptionLedger(self._keep, self._find, start_ns=start_ns)

    @property
    def records(self) -> tuple[Disruption, ...]:
        """What is known of each disruption, in their order."""
        return tuple(self._records.values())

    def begin(self, event: WatchEvent) -> None:
        """Take in what was there before the run."""
        if isinstance(event.stored.object, Pod):
            self.ledger.known(event.stored.object)

    def observe(self, event: WatchEvent, now: int) -> None:
        """Take in a write."""
        pod = event.stored.object
        if not isinstance(pod, Pod):
            return
        if event.type == "DELETED":
            self.ledger.gone(pod, now)
        else:
            self.ledger.changed(pod, now, is_added=event.type == "ADDED")

    def _keep(self, record: Disruption, trail: Trail | None) -> None:
        self._records[record.id] = record

    def _find(self, kind: str, key: str) -> Kubernetes | None:
        stored = self._store.find(kind, key)
        return None if stored is None else stored.object
