"""The disruption account of a control plane: the requests of components and clients, and the fate of pods."""

from __future__ import annotations

from podium.api.meta import object_at, value_at
from podium.api.pod import Pod
from podium.apirequests.context import RequestRules
from podium.apirequests.request import COMPONENT, Request, Response
from podium.controllers.ledger.disruption import Consumption, since
from podium.controllers.ledger.ledger import DisruptionLedger
from podium.controlplane.ledger_file import LedgerFile
from podium.store.store import Store
from podium.store.watch_log import WatchEvent

_POD, _EVENT = "Pod", "Event"
_USAGE_PERIOD_NS = 60 * 10**9


class DisruptionAccount:
    """An adapter that feeds a disruption ledger with events, and writes its records to a file."""

    def __init__(self, store: Store, file: LedgerFile, rules: RequestRules, now: int) -> None:
        """Continue with the open records in the file. Raises InputError for a damaged file."""
        self._store = store
        self._file = file
        self._rules = rules
        self._ledger = DisruptionLedger(file.put, store.reading, last_id=file.last_id)
        # They take an action of a component before it is carried out, and the problem with it.
        self.on_action = self._ledger.on_action
        self.on_result = self._ledger.on_result
        self.tallies = file.tallies
        self._consumption = Consumption()
        self._usage_due_ns = now + _USAGE_PERIOD_NS
        pods = self._store.typed(Pod)
        for pod in pods:
            self._ledger.known(pod)
            self._consumption.on_update(pod, now)
        self._ledger.resume(file.earlier(), pods, self._since, now)

    def on_request(self, request: Request) -> None:
        """Record a client's request before it is answered, if it deletes or evicts a pod."""
        is_eviction = _is_eviction(request)
        if is_eviction or self._is_deletion(request):
            stored = self._store.find(_POD, request.key)
            if stored is not None:
                # The component that an Eviction states; other problems of it are reported elsewhere.
                found = value_at(request.body, "metadata", "annotations", COMPONENT) if is_eviction else None
                self._ledger.on_client_request(stored.uid, request.user, found if isinstance(found, str) else "")

    def on_response(self, request: Request, response: Response) -> None:
        """Record the response: a refused request disrupts nothing; the pods of a deleted collection are known now."""
        if response.error is not None:
            if _is_eviction(request) or self._is_deletion(request):
                stored = self._store.find(_POD, request.key)
                if stored is not None:
                    self._ledger.on_refused(stored.uid)
        elif self._is_deletion(request) and not request.key and response.page is not None:
            for stored in response.page.items:
                self._ledger.on_client_request(stored.uid, request.user)

    def observe(self, event: WatchEvent, now: int) -> None:
        pod = event.stored.object
        if not isinstance(pod, Pod):
            if event.stored.kind == _EVENT and event.type == "ADDED" and event.stored.raw.get("reason") == "Preempted":
                # A scheduler in another process states the preemptor in its Event.
                raw = event.stored.raw
                uid, namespace = value_at(raw, "involvedObject", "uid"), value_at(raw, "related", "namespace")
                name, room = value_at(raw, "related", "name"), str(raw.get("message") or "").partition(" on node ")[2]
                if isinstance(uid, str) and isinstance(namespace, str) and isinstance(name, str):
                    self._ledger.benefits(uid, f"{namespace}/{name}", room)
            return
        if event.type == "DELETED":
            self._ledger.on_delete(pod, now)
            self._consumption.remove(pod.metadata.uid, now)
        else:
            self._consumption.on_update(pod, now)
            self._ledger.on_update(pod, now, is_added=event.type == "ADDED")

    def catch_up(self, now: int) -> None:
        """Compare all pods, after more writes than can be processed one by one."""
        pods = self._store.typed(Pod)
        self._ledger.catch_up(pods, self._since, now)
        self._consumption.catch_up(pods, now)

    def flush(self, now: int) -> None:
        """Write new records, and once a minute the usage of namespaces."""
        if now >= self._usage_due_ns:
            self._usage_due_ns = now + _USAGE_PERIOD_NS
            self._file.put_usage(self._consumption.take(now))
        self._file.flush(now)

    def close(self, now: int) -> None:
        """Write everything, and close the file."""
        self._file.put_usage(self._consumption.take(now))
        self._file.close()

    def _is_deletion(self, request: Request) -> bool:
        """Return whether a person, and not a component of the cluster, deletes pods."""
        if request.kind != _POD or request.verb not in ("delete", "deletecollection") or request.subresource:
            return False
        return not _is_dry(request) and self._rules.is_person(request)

    def _since(self, pod: Pod, condition: str) -> int | None:
        stored = self._store.find(_POD, pod.key)
        return None if stored is None else since(stored.raw, condition)


def _is_eviction(request: Request) -> bool:
    is_one = request.kind == _POD and request.verb == "create" and request.subresource == "eviction"
    return is_one and bool(request.key) and not _is_dry(request)


def _is_dry(request: Request) -> bool:
    """Return whether a request is a dry run, by its parameters or its options."""
    options = object_at(request.body, "deleteOptions") or request.body
    return request.dry_run or bool(value_at(options, "dryRun"))
