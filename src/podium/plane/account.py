"""The account of a control plane's disruptions: what its components and clients ask for, and what becomes of pods."""

from __future__ import annotations

from podium.api.meta import Kubernetes, Raw
from podium.api.pod import Pod
from podium.machines.actions import Action
from podium.machines.ledger.disruption import Disruption, Trail
from podium.machines.ledger.ledger import DisruptionLedger
from podium.machines.ledger.tallies import Tallies
from podium.machines.ledger.transitions import since
from podium.machines.observations import Problem
from podium.plane.ledger_file import LedgerFile
from podium.requests.answering.rules import Rules
from podium.requests.options import COMPONENT
from podium.requests.request import Request, Response
from podium.store.log.watch_event import WatchEvent
from podium.store.store import Store

_POD, _EVENT = "Pod", "Event"


class PlaneAccount:
    """Shows a ledger what happens, and writes down in a file what it records."""

    def __init__(self, store: Store, file: LedgerFile, rules: Rules, now: int) -> None:
        """Go on with what the file says was yet to come. Raises InputError for a file that is damaged."""
        self._store = store
        self._file = file
        self._rules = rules
        self._ledger = DisruptionLedger(self._keep, self._find, last_id=file.last_id)
        self.tallies = Tallies(file.last_id)
        pods = self._pods()
        for pod in pods:
            self._ledger.known(pod)
        earlier = file.earlier()
        for record, _ in earlier.followed:
            self.tallies.known(record)
        self._ledger.resume(earlier, pods, self._since, now)

    def requested(self, request: Request) -> None:
        """A client is about to be answered: it may want a pod to go."""
        is_eviction = _is_eviction(request)
        if is_eviction or self._is_deletion(request):
            stored = self._store.find(_POD, request.key)
            if stored is not None:
                self._ledger.wanted(stored.uid, request.user, _component(request.body) if is_eviction else "")

    def responded(self, request: Request, response: Response) -> None:
        """How the client was answered: what is refused disrupts nobody, and a collection is known when it is gone."""
        if response.error is not None:
            if _is_eviction(request) or self._is_deletion(request):
                stored = self._store.find(_POD, request.key)
                if stored is not None:
                    self._ledger.refused(stored.uid)
        elif self._is_deletion(request) and not request.key and response.page is not None:
            for stored in response.page.items:
                self._ledger.wanted(stored.uid, request.user)

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
            if event.stored.kind == _EVENT and event.type == "ADDED":
                self._observe_told(event.stored.raw)
            return
        if event.type == "DELETED":
            self._ledger.gone(pod, now)
        else:
            self._ledger.changed(pod, now, is_added=event.type == "ADDED")

    def _observe_told(self, raw: Raw) -> None:
        """A scheduler that runs elsewhere says for whom it has preempted a pod."""
        victim, preemptor = raw.get("involvedObject"), raw.get("related")
        if raw.get("reason") != "Preempted" or not isinstance(victim, dict) or not isinstance(preemptor, dict):
            return
        uid, namespace, name = victim.get("uid"), preemptor.get("namespace"), preemptor.get("name")
        if isinstance(uid, str) and isinstance(namespace, str) and isinstance(name, str):
            room = str(raw.get("message") or "").partition(" on node ")[2]
            self._ledger.benefits(uid, f"{namespace}/{name}", room)

    def catch_up(self, now: int) -> None:
        """More was written at once than can be told one by one."""
        self._ledger.catch_up(self._pods(), self._since, now)

    def flush(self, now: int) -> None:
        """Write down what has come."""
        self._file.flush(now)

    def close(self) -> None:
        """Nothing more comes."""
        self._file.close()

    def _is_deletion(self, request: Request) -> bool:
        """Whether somebody who is no component of the cluster wants pods deleted."""
        if request.kind != _POD or request.verb not in ("delete", "deletecollection") or request.subresource:
            return False
        return not _is_dry(request) and self._rules.is_person(request)

    def _keep(self, record: Disruption, trail: Trail | None) -> None:
        self._file.put(record, trail)
        self.tallies.put(record)

    def _pods(self) -> list[Pod]:
        return [stored.object for stored in self._store.objects(_POD) if isinstance(stored.object, Pod)]

    def _since(self, pod: Pod, condition: str) -> int | None:
        stored = self._store.find(_POD, pod.key)
        return None if stored is None else since(stored.raw, condition)

    def _find(self, kind: str, key: str) -> Kubernetes | None:
        stored = self._store.find(kind, key)
        return None if stored is None else stored.object


def _is_eviction(request: Request) -> bool:
    is_one = request.kind == _POD and request.verb == "create" and request.subresource == "eviction"
    return is_one and bool(request.key) and not _is_dry(request)


def _is_dry(request: Request) -> bool:
    """Whether nothing comes of a request, as it says or its options do."""
    body = request.body if isinstance(request.body, dict) else {}
    options = body.get("deleteOptions")
    found = options if isinstance(options, dict) else body
    return request.dry_run or bool(found.get("dryRun"))


def _component(body: object) -> str:
    """The component that an Eviction says it is; what else there is wrong with it others say."""
    metadata = body.get("metadata") if isinstance(body, dict) else None
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    found = annotations.get(COMPONENT) if isinstance(annotations, dict) else None
    return found if isinstance(found, str) else ""
