"""What becomes of all that is in a namespace that is deleted.

The rules of pkg/controller/namespace/deletion (namespaced_resources_deleter.go), with ordered deletion.
"""

from __future__ import annotations

from podium.store.controllers.garbage import OnRefusal
from podium.store.errors import StoreError
from podium.store.store import Store
from podium.store.stored import Stored
from podium.store.verbs.namespaces import FINALIZER, is_going

# What another writer did meanwhile shows in the next round.
_PASSING = frozenset(("NotFound", "Conflict"))


class NamespaceCleaner:
    """Empties the namespaces that are being deleted, and lets them go once they are empty.

    Pods go first, each with its own grace period, and all else when none is left: what they need stays for as long as
    they run. What has finalizers is waited for.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._version = 0
        self._changes = -1
        # By namespace that is going, whether something has happened to it or in it.
        self._going: dict[str, bool] = {}

    @property
    def has_work(self) -> bool:
        """Whether a namespace is going, and waits for what is in it."""
        return bool(self._going)

    def clean(self, now: int, on_refusal: OnRefusal | None = None) -> int:
        """Do what is to be done, and what follows from it; returns the number of steps.

        What is refused, and why, is told; without somebody to be told, the StoreError is raised.
        """
        count = 0
        while name := self._next():
            count += self._work_on(name, now, on_refusal)
        return count

    def look_again(self, name: str) -> None:
        """Look at a namespace once more, though nothing has happened there."""
        if name in self._going:
            self._going[name] = True

    def _next(self) -> str:
        """A namespace to look at, by name; "" for none."""
        changes = self._store.changes("Namespace")
        if self._going or changes != self._changes:
            if self._version != self._store.version:
                self._observe()
            self._changes = changes
        if not self._going:
            return ""
        return min((name for name, is_touched in self._going.items() if is_touched), default="")

    def _observe(self) -> None:
        try:
            # While no namespace goes, it matters neither what is in them nor how much was written since.
            events = self._store.events_since(self._version, "" if self._going else "Namespace")
        except StoreError as error:
            if error.reason != "Expired":
                raise
            self._going = {one.key: True for one in self._store.objects("Namespace") if is_going(one)}
            events = []
        for event in events:
            stored, is_gone = event.stored, event.type == "DELETED"
            if stored.kind != "Namespace":
                name = stored.object.metadata.namespace
                if name in self._going:
                    self._going[name] = True
            elif is_gone:
                self._going.pop(stored.key, None)
            elif is_going(stored):
                self._going[stored.key] = True
        self._version = self._store.version

    def _work_on(self, name: str, now: int, on_refusal: OnRefusal | None) -> int:
        self._going[name] = False
        namespace = self._store.find("Namespace", name)
        if namespace is None:
            return 0
        pods, others = self._contents(name)
        if not pods and not others:
            return self._let_go(namespace)
        deletable = [pod for pod in pods or others if pod.object.metadata.deletion_timestamp is None]
        for stored in deletable:
            try:
                self._store.delete(stored.kind, stored.key, now=now, uid=stored.uid)
            except StoreError as error:
                if error.reason in _PASSING:
                    continue
                if on_refusal is None:
                    raise
                on_refusal(stored, error)
        return len(deletable)

    def _contents(self, name: str) -> tuple[list[Stored], list[Stored]]:
        """The pods of a namespace, and all else in it, by kind and key."""
        pods: list[Stored] = []
        others: list[Stored] = []
        for resource in self._store.resources.all():
            if resource.namespaced:
                (pods if resource.name == "Pod" else others).extend(self._store.objects(resource.name, name))
        return pods, others

    def _let_go(self, namespace: Stored) -> int:
        spec = namespace.raw.get("spec", {})
        left = [finalizer for finalizer in spec.get("finalizers", []) if finalizer != FINALIZER]
        if left == spec.get("finalizers", []):
            return 0
        self._store.update({**namespace.raw, "spec": {**spec, "finalizers": left}})
        return 1
