"""The Leases by which simulated kubelets say that they are alive.

A kubelet renews its Lease each 10 s. For thousands of nodes that would be most of what happens in an idle cluster, so
here a Lease is renewed when somebody looks at it, and on time while somebody watches.

Source: k8s.io/component-helpers/apimachinery/lease/controller.go, pkg/kubelet/util/nodelease.go.
"""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakSet

from podium.api.meta import Raw
from podium.api.times import format_time
from podium.requests.request import Request, Response
from podium.store.errors import StoreError
from podium.store.reads.watch import Watch
from podium.store.store import Store

NAMESPACE = "kube-node-lease"
_LEASE = "Lease"
_SECOND = 10**9
_RENEWED_EACH_NS = 10 * _SECOND
_DURATION_SECONDS = 40
_READS = ("get", "list", "watch")


class NodeLeases:
    """Keeps the Leases of the nodes whose machines run; ``is_down`` says of which they do not."""

    def __init__(self, store: Store, is_down: Callable[[str], bool]) -> None:
        self._store = store
        self._is_down = is_down
        self._watches: WeakSet[Watch] = WeakSet()
        # By node, when its Lease was renewed.
        self._renewed: dict[str, int] = {}
        self._due_ns: int | None = None

    def asked(self, request: Request, now: int) -> None:
        """Somebody is about to read: bring what will be read up to date."""
        if request.kind != _LEASE or request.verb not in _READS:
            return
        namespace, _, name = request.key.partition("/")
        if name and namespace == NAMESPACE:
            self._renew(name, now)
        elif not request.key and request.namespace in ("", NAMESPACE):
            self.renew_all(now)

    def answered(self, request: Request, response: Response, now: int) -> None:
        """Somebody has an answer; of a watch of Leases, they wait for more."""
        if response.watch is not None and request.kind == _LEASE and request.namespace in ("", NAMESPACE):
            self._watches.add(response.watch)
            self._due_ns = self._due_ns or now + _RENEWED_EACH_NS

    def next_time(self) -> int | None:
        """When the Leases are due, None while nobody watches them."""
        if not self._watches:
            self._due_ns = None
        return self._due_ns

    def work(self, now: int) -> None:
        """Renew what is due."""
        due_ns = self.next_time()
        if due_ns is not None and due_ns <= now:
            self._due_ns = now + _RENEWED_EACH_NS
            self.renew_all(now)

    def renew_all(self, now: int) -> None:
        """Renew all Leases that were not renewed lately."""
        names = [node.object.metadata.name for node in self._store.objects("Node")]
        for name in names:
            self._renew(name, now)
        if len(self._renewed) > len(names):
            there = frozenset(names)
            self._renewed = {name: time_ns for name, time_ns in self._renewed.items() if name in there}

    def _renew(self, name: str, now: int) -> None:
        node = self._store.find("Node", name)
        if node is None or self._is_down(name):
            return
        known = self._store.find(_LEASE, f"{NAMESPACE}/{name}")
        if known is not None and now < self._renewed.get(name, 0) + _RENEWED_EACH_NS:
            return
        self._renewed[name] = now
        try:
            if known is None:
                self._store.create(_lease(name, node.uid, now), now=now, is_new=True)
            else:
                self._store.update({**known.raw, "spec": _spec(name, now)})
        except StoreError:
            # Nobody can write there just now, as in a namespace that is going; the next reader brings another try.
            return


def _lease(name: str, uid: str, now: int) -> Raw:
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": _LEASE,
        "metadata": {"name": name, "namespace": NAMESPACE, "ownerReferences": [owner]},
        "spec": _spec(name, now),
    }


def _spec(name: str, now: int) -> Raw:
    renewed = f"{format_time(now)[:-1]}.{now % _SECOND // 1000:06d}Z"
    return {"holderIdentity": name, "leaseDurationSeconds": _DURATION_SECONDS, "renewTime": renewed}
