"""The controller of endpoints: the EndpointSlices and the Endpoints of each Service with a selector.

Source: pkg/controller/endpointslice, staging/src/k8s.io/endpointslice (reconciler.go, utils.go), and
pkg/controller/endpoint.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import count
from typing import Any, NamedTuple

from podium.api.meta import Kubernetes, Raw
from podium.api.node import ZONE_LABEL, Node
from podium.api.pod import Pod
from podium.api.selectors import selector_from_labels
from podium.api.workloads import Service
from podium.controllers.actions import Action, CreateObject, DeleteObject, PatchObject, owner_reference
from podium.controllers.controller import NO_CHANGE, PLACED, Reconciler
from podium.controllers.indexes import LabelIndex, SelectorIndex, exchange
from podium.controllers.observations import Changed

SERVICE_NAME = "kubernetes.io/service-name"
"""Label of an EndpointSlice: its Service."""

MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
_MANAGER = "endpointslice-controller.k8s.io"
_ENDPOINTS_MANAGED_BY = {"endpoints.kubernetes.io/managed-by": "endpoint-controller"}
_HEADLESS = {"service.kubernetes.io/headless": ""}
_SLICE, _ENDPOINTS = "EndpointSlice", "Endpoints"
_MOST_IN_SLICE = 100
_MOST_IN_ENDPOINTS = 1_000
# A Service with many pods is written less often, so that the work grows with the number of changes alone.
_WAIT_NS_PER_POD = 1_000_000


class ServiceEndpoints(Reconciler[str]):
    """Writes the addresses of the pods that each Service selects.

    An endpoint stays in its slice. Names of slices follow from the Service's uid and a number, so that none is created
    twice.
    """

    watches = frozenset(("Service", "Pod", "Node", "EndpointSlice", "Endpoints"))
    pod_aspects = PLACED
    awaits_answers = True

    def __init__(self) -> None:
        super().__init__()
        self._services: dict[str, tuple[Service, Raw]] = {}
        self._selectors: SelectorIndex[str] = SelectorIndex()
        # The pods with addresses by key.
        self._pods: dict[str, tuple[Pod, Raw]] = {}
        self._labels: LabelIndex[str] = LabelIndex()
        self._zones: dict[str, str] = {}
        # By Service, its own slices by name; and Endpoints by key.
        self._slices: dict[str, dict[str, Raw]] = {}
        self._endpoints: dict[str, Raw] = {}
        # By Service, when it may be written again.
        self._next_ns: dict[str, int] = {}

    def _observe(self, object_: Kubernetes, shown: Changed | None, now: int) -> list[Action]:
        raw = None if shown is None else shown.raw
        key, name = object_.key, object_.metadata.name
        if isinstance(object_, Pod):
            services = self._pod_changed(object_, raw)
            for service in services:
                self._due(service, now)
            return [] if services else NO_CHANGE
        if isinstance(object_, Node):
            exchange(self._zones, name, None if raw is None else object_.metadata.labels.get(ZONE_LABEL))
            return NO_CHANGE
        if isinstance(object_, Service):
            self._service_changed(object_, raw, now)
        elif object_.kind == _ENDPOINTS:
            exchange(self._endpoints, key, raw)
            self._due(key, now)
        elif service := _service_of(object_):
            slices = self._slices.setdefault(service, {})
            exchange(slices, name, raw)
            if not slices:
                del self._slices[service]
            self._due(service, now)
        return []

    def _service_changed(self, service: Service, raw: Raw | None, now: int) -> None:
        key, known, selector = service.key, self._services.pop(service.key, None), service.spec.selector
        is_selecting = raw is not None and _is_selecting(service, raw)
        if not is_selecting:
            self._selectors.remove(key)
        elif known is None or known[0].spec.selector != selector:
            self._selectors.put(key, selector_from_labels(selector), service.metadata.namespace)
        if raw is not None:
            self._services[key] = service, raw
            if is_selecting:
                self._due(key, now)
            return
        self._next_ns.pop(key, None)
        self._forget(key)
        if key in self._endpoints:
            self._queue.add(key)

    def _pod_changed(self, pod: Pod, raw: Raw | None) -> list[str]:
        """Take in or forget a pod; return the Services whose endpoints that changes."""
        key, namespace, labels = pod.key, pod.metadata.namespace, pod.metadata.labels
        known = self._pods.pop(key, None)
        before = None if known is None else known[0].metadata.labels
        if raw is None or pod.is_terminal or not _address_of(raw):
            self._labels.remove(key)
            return [] if before is None else self._selectors.matching(before, namespace)
        self._pods[key] = pod, raw
        if before != labels:
            self._labels.put(key, labels, namespace)
        if known is not None and before == labels and _state_of(*known) == _state_of(pod, raw):
            return []
        found = self._selectors.matching(labels, namespace)
        return found if before in (None, labels) else found + self._selectors.matching(before, namespace)

    def _due(self, key: str, now: int) -> None:
        """Queue a Service, unless it was written a short time ago."""
        next_ns = self._next_ns.get(key, 0)
        if key not in self._services:
            return
        if next_ns > now:
            self._queue.add_by(key, next_ns)
        else:
            self._queue.add(key)

    def _reconcile(self, key: str, now: int) -> list[Action]:
        known, cause = self._services.get(key), f"Service {key}"
        if known is None:
            endpoints = self._endpoints.get(key)
            return [] if endpoints is None else [_deletion(_ENDPOINTS, endpoints, cause)]
        service, raw = known
        if not _is_selecting(service, raw) or service.metadata.deletion_timestamp is not None:
            return []
        selector = selector_from_labels(service.spec.selector)
        pods = [self._pods[pod] for pod in sorted(self._labels.matching(selector, service.metadata.namespace))]
        self._next_ns[key] = now + len(pods) * _WAIT_NS_PER_POD
        wanted = self._desired_endpoints(service, raw, pods)
        actions = _slice_actions(service, raw, wanted, self._slices.get(key, {}), cause)
        return [*actions, *_endpoints_actions(service, raw, wanted, self._endpoints.get(key), cause)]

    def _desired_endpoints(self, service: Service, raw: Raw, pods: Iterable[tuple[Pod, Raw]]) -> _Wanted:
        """Return the endpoints of pods with equal ports, without those that a pod does not name."""
        publishes = raw["spec"].get("publishNotReadyAddresses") is True
        listed: list[Raw] = raw["spec"].get("ports") or []
        needs_no_ports = not listed and raw["spec"].get("clusterIP") == "None"
        wanted: _Wanted = {}
        for pod, pod_raw in pods:
            meta, spec = pod.metadata, pod_raw.get("spec", {})
            numbers = ((port, _port_number(port, spec)) for port in listed)
            ports = tuple(_Port.of(port, number) for port, number in numbers if number is not None)
            if not ports and not needs_no_ports:
                continue
            serving, terminating = pod.is_ready, pod.is_terminating
            is_usable = publishes or (serving and not terminating)
            endpoint: Raw = {
                "addresses": [_address_of(pod_raw)],
                "conditions": {"ready": is_usable, "serving": serving, "terminating": terminating},
                "targetRef": {"kind": "Pod", "namespace": meta.namespace, "name": meta.name, "uid": meta.uid},
                "nodeName": pod.spec.node_name,
            }
            if zone := self._zones.get(pod.spec.node_name):
                endpoint["zone"] = zone
            if spec.get("hostname") and spec.get("subdomain") == service.metadata.name:
                endpoint["hostname"] = spec["hostname"]
            wanted.setdefault(ports, {})[meta.uid] = endpoint
        return wanted


class _Port(NamedTuple):
    """A port of endpoints."""

    name: str
    protocol: str
    port: int
    app_protocol: str

    @classmethod
    def of(cls, raw: Raw, number: int) -> _Port:
        """Return the port with that number; Services and slices have the other fields under the same names."""
        return cls(raw.get("name") or "", raw.get("protocol") or "TCP", number, raw.get("appProtocol") or "")

    def raw(self) -> Raw:
        written = {"name": self.name, "protocol": self.protocol, "port": self.port}
        return {**written, **({"appProtocol": self.app_protocol} if self.app_protocol else {})}


_Ports = tuple[_Port, ...]
_Wanted = dict[_Ports, dict[str, Raw]]
"""By the ports, the endpoints by the uid of their pod."""


def _is_selecting(service: Service, raw: Raw) -> bool:
    """Return whether this controller writes the endpoints of the Service."""
    return bool(service.spec.selector) and raw.get("spec", {}).get("type") != "ExternalName"


def _service_of(slice_: Kubernetes) -> str:
    """Return the key of the Service of a slice of this controller; "" for another slice."""
    meta = slice_.metadata
    name = meta.labels.get(SERVICE_NAME, "")
    return f"{meta.namespace}/{name}" if name and meta.labels.get(MANAGED_BY) == _MANAGER else ""


def _address_of(pod: Raw) -> str:
    return pod.get("status", {}).get("podIP") or ""


def _state_of(pod: Pod, raw: Raw) -> tuple[object, ...]:
    return pod.metadata.uid, _address_of(raw), pod.spec.node_name, pod.is_ready, pod.is_terminating


def _port_number(port: Raw, pod: Raw) -> int | None:
    """Return the container port that a Service's port names; None if there is none (FindPort)."""
    target, protocol = port.get("targetPort") or port["port"], port.get("protocol", "TCP")
    if isinstance(target, int):
        return target
    sidecars = [one for one in pod.get("initContainers") or () if one.get("restartPolicy") == "Always"]
    for container in (*(pod.get("containers") or ()), *sidecars):
        for named in container.get("ports") or ():
            if named.get("name") == target and named.get("protocol", "TCP") == protocol:
                number: int = named["containerPort"]
                return number
    return None


def _labels_of(service: Service, raw: Raw) -> dict[str, str]:
    """Return the labels that endpoints take over from their Service."""
    is_headless = raw.get("spec", {}).get("clusterIP") == "None"
    return {**service.metadata.labels, **(_HEADLESS if is_headless else {})}


def _slice_actions(service: Service, raw: Raw, wanted: _Wanted, known: dict[str, Raw], cause: str) -> Iterator[Action]:
    """Yield the writes of slices; a Service without endpoints has an empty one."""
    labels = {**_labels_of(service, raw), SERVICE_NAME: service.metadata.name, MANAGED_BY: _MANAGER}
    kept, new = _assigned(wanted, known)
    if not wanted and not kept:
        new = [((), [])]
    taken, meta = set(known), service.metadata
    for ports, endpoints in new:
        name = _free_name(service, taken)
        taken.add(name)
        names = {"name": name, "generateName": f"{meta.name}-", "namespace": meta.namespace}
        metadata = {**names, "labels": labels, "ownerReferences": [owner_reference(service)]}
        made = {"apiVersion": "discovery.k8s.io/v1", "kind": _SLICE, "metadata": metadata, "addressType": "IPv4"}
        yield CreateObject({**made, "endpoints": endpoints, "ports": [port.raw() for port in ports]}, cause)
    for name, endpoints in kept.items():
        slice_ = known[name]
        if not endpoints and (wanted or name != min(kept)):
            yield _deletion(_SLICE, slice_, cause)
            continue
        patch: Raw = {} if endpoints == (slice_.get("endpoints") or []) else {"endpoints": endpoints}
        if not endpoints and slice_.get("ports"):
            patch["ports"] = []
        yield from _update(_SLICE, slice_, patch, labels, cause)


def _assigned(wanted: _Wanted, known: dict[str, Raw]) -> tuple[dict[str, list[Raw]], list[tuple[_Ports, list[Raw]]]]:
    """Return the endpoints of each known slice by name, and ports and endpoints of new slices.

    Known endpoints stay in place, and others fill up slices with their ports.
    """
    left = {ports: dict(endpoints) for ports, endpoints in wanted.items()}
    kept: dict[str, list[Raw]] = {}
    waiting: dict[str, dict[str, Raw]] = {}
    for name, slice_ in sorted(known.items()):
        ports = tuple(_Port.of(port, port.get("port") or 0) for port in slice_.get("ports") or ())
        uids = [endpoint.get("targetRef", {}).get("uid") for endpoint in slice_.get("endpoints") or ()]
        mine = waiting[name] = left.get(ports, {})
        kept[name] = [mine.pop(uid) for uid in uids if uid in mine]
    # The fullest slices come first.
    for name in sorted(kept, key=lambda name: (-len(kept[name]), name)):
        more = waiting[name]
        for uid in list(more)[: max(0, _MOST_IN_SLICE - len(kept[name]))]:
            kept[name].append(more.pop(uid))
    new = [
        (ports, list(endpoints.values())[start : start + _MOST_IN_SLICE])
        for ports, endpoints in sorted(left.items())
        for start in range(0, len(endpoints), _MOST_IN_SLICE)
    ]
    return kept, new


def _free_name(service: Service, taken: set[str]) -> str:
    """Return the first free name of a slice."""
    digests = (blake2b(f"{service.metadata.uid} {number}".encode(), digest_size=3) for number in count())
    names = (f"{service.metadata.name}-{digest.hexdigest()[:5]}" for digest in digests)
    return next(name for name in names if name not in taken)


def _endpoints_actions(service: Service, raw: Raw, wanted: _Wanted, known: Raw | None, cause: str) -> Iterator[Action]:
    """Yield the write of the Endpoints, which list ready and other pods, none of them terminating."""
    subsets, room = [], _MOST_IN_ENDPOINTS
    for ports, by_uid in sorted(wanted.items()):
        shown = [one for one in by_uid.values() if one["conditions"]["ready"] or not one["conditions"]["terminating"]]
        shown, room = shown[:room], room - min(room, len(shown))
        groups = {
            "addresses": _subset_addresses(one for one in shown if one["conditions"]["ready"]),
            "notReadyAddresses": _subset_addresses(one for one in shown if not one["conditions"]["ready"]),
            "ports": [{name: value for name, value in port.raw().items() if value != ""} for port in ports],
        }
        if shown:
            subsets.append({name: group for name, group in groups.items() if group})
    labels, meta = {**_labels_of(service, raw), **_ENDPOINTS_MANAGED_BY}, service.metadata
    if known is None:
        metadata = {"name": meta.name, "namespace": meta.namespace, "labels": labels}
        content = {"subsets": subsets} if subsets else {}
        yield CreateObject({"apiVersion": "v1", "kind": _ENDPOINTS, "metadata": metadata, **content}, cause)
        return
    patch: Raw = {} if subsets == (known.get("subsets") or []) else {"subsets": subsets or None}
    yield from _update(_ENDPOINTS, known, patch, labels, cause)


def _subset_addresses(endpoints: Iterable[Raw]) -> list[Raw]:
    found = [
        {
            "ip": endpoint["addresses"][0],
            **{name: endpoint[name] for name in ("hostname", "nodeName", "targetRef") if endpoint.get(name)},
        }
        for endpoint in endpoints
    ]
    return sorted(found, key=lambda address: (address["ip"], address["targetRef"]["uid"]))


def _key(raw: Raw) -> str:
    meta: Any = raw["metadata"]
    return f"{meta['namespace']}/{meta['name']}"


def _update(kind: str, known: Raw, patch: Raw, labels: dict[str, str], cause: str) -> Iterator[PatchObject]:
    """Yield a patch, unless it is empty and the labels are these; it fails with Conflict if the object has changed."""
    meta, before = known["metadata"], known["metadata"].get("labels", {})
    if patch or before != labels:
        changed = {} if before == labels else {"labels": {**dict.fromkeys(before), **labels}}
        patch = {**patch, "metadata": {"resourceVersion": meta["resourceVersion"], **changed}}
        yield PatchObject(kind, _key(known), meta["uid"], patch, cause)


def _deletion(kind: str, known: Raw, cause: str) -> DeleteObject:
    return DeleteObject(kind, _key(known), known["metadata"]["uid"], cause)
