"""The power state of nodes, and the components that observe it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from weakref import WeakSet

from msgspec import Struct, field

from podium.api.node import READY, Node, condition_status
from podium.api.times import SECOND, format_micro_time
from podium.apirequests.request import Request, Response
from podium.controllers.observations import HeartbeatsResumed, HeartbeatsStopped, NodeStarted, NodeStopped, Observation
from podium.controlplane.component_names import KUBELET, NODE_LIFECYCLE
from podium.store.errors import StoreError
from podium.store.listing import Watch
from podium.store.store import Store

POWER = "podium.dev/power"
"""An annotation of Nodes: `off` stops the machine and everything on it, until the value changes or is removed."""

_OFF = "off"

News = list[tuple[str, Observation]]
"""Observations that do not come from the API, each with the component's name."""

NAMESPACE = "kube-node-lease"
_LEASE = "Lease"
_RENEWED_EACH_NS = 10 * SECOND
_DURATION_SECONDS = 40
_READS = ("get", "list", "watch")


class NodePower:
    """The stopped machines by node name, with the time since when they are down.

    Of the initial ``nodes``, those with an unknown state and those with the annotation are down from the start.
    Without kubelets, nodes that come later are down until a client posts that they are ready or not.
    """

    def __init__(self, nodes: Iterable[Node], start_ns: int, *, has_kubelets: bool = True) -> None:
        nodes = list(nodes)
        self._has_kubelets = has_kubelets
        self._given = frozenset(node.metadata.name for node in nodes)
        # The nodes that are down because of their annotation.
        self._switched_off = {node.metadata.name for node in nodes if node.metadata.annotations.get(POWER) == _OFF}
        self._down = {
            node.metadata.name: start_ns
            for node in nodes
            if condition_status(node, READY) == "Unknown" or node.metadata.name in self._switched_off
        }

    def is_down(self, node: str) -> bool:
        return node in self._down

    def change(self, node: str, now: int, *, is_up: bool) -> News:
        """Stop or start a node's machine.

        Return observations for its kubelet and its observers, none without a change.
        """
        if is_up is (node not in self._down):
            return []
        if is_up:
            del self._down[node]
            return [(KUBELET, NodeStarted(node)), (NODE_LIFECYCLE, HeartbeatsResumed(node))]
        self._down[node] = now
        return [(KUBELET, NodeStopped(node)), (NODE_LIFECYCLE, HeartbeatsStopped(node, now))]

    def observe(self, node: Node, now: int, *, is_gone: bool) -> News:
        """Stop or start the machine of an observed node if its annotation says so.

        A node that comes after a deleted one of its name is a different machine.
        """
        name, power = node.metadata.name, node.metadata.annotations.get(POWER)
        if power == _OFF and not is_gone:
            self._switched_off.add(name)
            return self.change(name, now, is_up=False)
        if power is None and name not in self._switched_off and not is_gone:
            if self._has_kubelets or name in self._given:
                return []
            return self.change(name, now, is_up=condition_status(node, READY) not in ("", "Unknown"))
        self._switched_off.discard(name)
        return self.change(name, now, is_up=True)

    def news(self, component: str) -> list[Observation]:
        """Return the observations that a component gets first when it begins again."""
        if component == KUBELET:
            return [NodeStopped(node) for node in self._down]
        if component == NODE_LIFECYCLE:
            return [HeartbeatsStopped(node, since_ns) for node, since_ns in self._down.items()]
        return []


class NodeLeases(Struct, eq=False):
    """The Leases of nodes whose machines run; ``is_down`` says whether a node's machine is stopped."""

    store: Store
    is_down: Callable[[str], bool]
    _watches: WeakSet[Watch] = field(default_factory=WeakSet)
    # The time of the last renewal, by node.
    _renewed: dict[str, int] = {}
    _due_ns: int | None = None

    def on_request(self, request: Request, now: int) -> None:
        """Renew the Leases that a request is about to read."""
        if request.kind != _LEASE or request.verb not in _READS:
            return
        namespace, _, name = request.key.partition("/")
        if name and namespace == NAMESPACE:
            self._renew(name, now)
        elif not request.key and request.namespace in ("", NAMESPACE):
            self.renew_all(now)

    def on_response(self, request: Request, response: Response, now: int) -> None:
        """Record an answered request; a watch of Leases makes them due on time."""
        if response.watch is not None and request.kind == _LEASE and request.namespace in ("", NAMESPACE):
            self._watches.add(response.watch)
            self._due_ns = self._due_ns or now + _RENEWED_EACH_NS

    def next_time(self) -> int | None:
        """Return the time when Leases are due, None without watches."""
        if not self._watches:
            self._due_ns = None
        return self._due_ns

    def work(self, now: int) -> None:
        """Renew the Leases that are due."""
        due_ns = self.next_time()
        if due_ns is not None and due_ns <= now:
            self._due_ns = now + _RENEWED_EACH_NS
            self.renew_all(now)

    def renew_all(self, now: int) -> None:
        """Renew all Leases that were not renewed recently."""
        names = [node.object.metadata.name for node in self.store.objects("Node")]
        for name in names:
            self._renew(name, now)
        if len(self._renewed) > len(names):
            there = frozenset(names)
            self._renewed = {name: time_ns for name, time_ns in self._renewed.items() if name in there}

    def _renew(self, name: str, now: int) -> None:
        node = self.store.find("Node", name)
        if node is None or self.is_down(name):
            return
        known = self.store.find(_LEASE, f"{NAMESPACE}/{name}")
        if known is not None and now < self._renewed.get(name, 0) + _RENEWED_EACH_NS:
            return
        self._renewed[name] = now
        try:
            time = format_micro_time(now)
            spec = {"holderIdentity": name, "leaseDurationSeconds": _DURATION_SECONDS, "renewTime": time}
            if known is None:
                owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node.uid}
                metadata = {"name": name, "namespace": NAMESPACE, "ownerReferences": [owner]}
                lease = {"apiVersion": "coordination.k8s.io/v1", "kind": _LEASE, "metadata": metadata, "spec": spec}
                self.store.create(lease, now=now, is_new=True)
            else:
                self.store.update({**known.raw, "spec": spec})
        except StoreError:
            # The write is refused, such as in a terminating namespace; the next read retries it.
            return
