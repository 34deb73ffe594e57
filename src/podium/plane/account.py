"""The account of a control plane's disruptions: what its components and clients ask for, and what becomes of pods."""

from __future__ import annotations

from podium.api.pod import Pod
from podium.machines.actions import Action
from podium.machines.ledger.disruption import Disruption
from podium.machines.ledger.ledger import DisruptionLedger
from podium.machines.ledger.tallies import Tallies
from podium.machines.observations import Problem
from podium.plane.ledger_file import LedgerFile
from podium.requests.options import COMPONENT
from podium.requests.request import Request
from podium.store.log.watch_event import WatchEvent
from podium.store.store import Store

_POD = "Pod"


class PlaneAccount:
    """Shows a ledger what happens, and writes down in a file what it records."""

    def __init__(self, store: Store, file: LedgerFile) -> None:
        self._store = store
        self._file = file
        self._ledger = DisruptionLedger(self._keep, self._find, last_id=file.last_id)
        self.tallies = Tallies(file.last_id)
        for stored in store.objects(_POD):
            if isinstance(stored.object, Pod):
                self._ledger.known(stored.object)

    def requested(self, request: Request) -> None:
        """A client is about to be answered: it may want a pod to go."""
        if request.kind != _POD or request.dry_run or not request.key:
            return
        is_eviction = request.verb == "create" and request.subresource == "eviction"
        if not is_eviction and (request.verb != "delete" or request.subresource):
            return
        stored = self._store.find(_POD, request.key)
        if stored is not None:
            self._ledger.wanted(stored.uid, request.user, _component(request.body) if is_eviction else "")

    def asked(self, action: Action, by: str) -> None:
        """An action of a component is about to be carried out."""
        self._ledger.asked(action, by)

    def answered(self, action: Action, problem: Problem | None) -> None:
        """How that ended."""
        self._ledger.answered(action, problem)

    def observe(self, event: WatchEvent, now: int) -> None:
        """Take in a write."""
        pod = event.stored.object
        if not isinstance(pod, Pod):
            return
        if event.type == "DELETED":
            self._ledger.gone(pod, now)
        else:
            self._ledger.changed(pod, now, is_added=event.type == "ADDED")

    def flush(self, now: int) -> None:
        """Write down what has come."""
        self._file.flush(now)

    def close(self) -> None:
        """Nothing more comes."""
        self._file.close()

    def _keep(self, record: Disruption) -> None:
        self._file.put(record)
        self.tallies.put(record)

    def _find(self, key: str) -> Pod | None:
        stored = self._store.find(_POD, key)
        return stored.object if stored is not None and isinstance(stored.object, Pod) else None


def _component(body: object) -> str:
    """The component that an Eviction says it is; what else there is wrong with it others say."""
    metadata = body.get("metadata") if isinstance(body, dict) else None
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    found = annotations.get(COMPONENT) if isinstance(annotations, dict) else None
    return found if isinstance(found, str) else ""
