"""The objects of a cluster under the API server's rules."""

from __future__ import annotations

from typing import Any

import msgspec

from podium.api.codec import decode
from podium.api.errors import InputError
from podium.api.kinds import KINDS, Kind, group_of
from podium.api.meta import Kubernetes
from podium.api.pod import Pod
from podium.api.policy import PriorityClass
from podium.api.times import format_time
from podium.store.admission import admit_pod
from podium.store.binding import binding_problem, bound
from podium.store.conditions import with_condition
from podium.store.deletion import deletion_metadata, is_due
from podium.store.errors import StoreError, already_exists, conflict, invalid, not_found
from podium.store.identity import Identities
from podium.store.stored import Raw, Stored, reread
from podium.store.watch_log import WatchEvent, WatchLog

_KEPT_METADATA = (
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)
"""What no update changes: the server alone writes it."""


class Store:
    """Objects of the kinds in `podium.api.kinds`, each at its newest version, and the log of what happened to them.

    Every write that changes something commits one version, the next number; one that changes nothing commits none. A
    refused write raises StoreError and changes nothing. Objects handed in and out are shared, and nobody changes them.
    Time comes in as `now`, in nanoseconds; identities follow from the seed.
    """

    def __init__(self, *, seed: int = 0, log_capacity: int = 100_000) -> None:
        self._objects: dict[str, dict[str, Stored]] = {kind.name: {} for kind in KINDS.values()}
        self._identities = Identities(seed)
        self._given_uids: set[str] = set()
        self._log = WatchLog(log_capacity)

    @property
    def version(self) -> int:
        """The last committed version; 0 before the first."""
        return self._log.version

    def get(self, kind: str, key: str) -> Stored:
        """The object. Raises StoreError 404."""
        stored = self.find(kind, key)
        if stored is None:
            raise not_found(kind, key)
        return stored

    def find(self, kind: str, key: str) -> Stored | None:
        """The object, or None."""
        return self._objects.get(kind, {}).get(key)

    def objects(self, kind: str) -> list[Stored]:
        """All objects of a kind, by key. Raises StoreError 404 for an unknown kind."""
        if kind not in self._objects:
            raise not_found("kind", kind)
        return [stored for _, stored in sorted(self._objects[kind].items())]

    def events_since(self, version: int) -> list[WatchEvent]:
        """What was committed after `version`, in order. Raises StoreError 410 and 504 as `WatchLog.since` does."""
        return self._log.since(version)

    def create(self, raw: Raw, *, now: int, reading: Kubernetes | None = None) -> Stored:
        """Add an object.

        Objects come from dumps too: a uid, times and a status that are given stay, where an API server would replace
        them. `reading` is the typed reading of `raw` where the caller has it. Raises StoreError 409 for a key or uid
        that is taken, and what admission and validation raise.
        """
        kind = _kind(raw)
        named = {**raw, "metadata": self._new_metadata(raw.get("metadata", {}), kind, now)}
        object_ = _decoded(named) if reading is None else _reread(reading, raw, named)
        key, uid = object_.key, object_.metadata.uid
        if key in self._objects[kind.name]:
            raise already_exists(kind.name, key)
        if uid in self._given_uids:
            raise invalid(kind.name, key, f"the uid {uid} was used before")
        admitted = admit_pod(named, key, self._priority_classes()) if kind.type is Pod else named
        if uid:
            self._given_uids.add(uid)
        else:
            admitted = {**admitted, "metadata": {**named["metadata"], "uid": self._identities.uid()}}
        return self._commit(None, admitted, _reread(object_, named, admitted))

    def update(self, raw: Raw) -> Stored:
        """Replace an object but for its status and what the server alone writes (`_KEPT_METADATA`).

        A `resourceVersion` in `raw` is a condition, and so is a `uid`. When the last finalizer of a deleted object
        goes, so does the object. Raises StoreError 404, 409 and 422.
        """
        previous = self._precondition(raw)
        metadata = {name: value for name, value in raw["metadata"].items() if name not in _KEPT_METADATA}
        metadata |= {
            name: previous.raw["metadata"][name] for name in _KEPT_METADATA if name in previous.raw["metadata"]
        }
        if raw.get("spec") != previous.raw.get("spec"):
            metadata["generation"] += 1
        updated = {**raw, "metadata": metadata}
        updated.pop("status", None)
        if "status" in previous.raw:
            updated["status"] = previous.raw["status"]
        object_ = _decoded(updated)
        if isinstance(object_, Pod) and object_.spec.node_name != _as_pod(previous).spec.node_name:
            raise invalid("Pod", previous.key, "spec.nodeName changes by binding alone")
        return self._commit(previous, updated, object_)

    def update_status(self, raw: Raw) -> Stored:
        """Replace an object's status and nothing else; conditions and errors as of `update`.

        A pod that has ended never changes its phase (422).
        """
        previous = self._precondition(raw)
        updated = {**previous.raw, "status": raw["status"]} if "status" in raw else previous.raw
        object_ = _reread(previous.object, previous.raw, updated)
        if isinstance(object_, Pod):
            _check_phase(_as_pod(previous), object_)
        return self._commit(previous, updated, object_)

    def patch_pod_status(self, key: str, fields: Raw, conditions: list[Raw], *, now: int, uid: str = "") -> Stored:
        """Set some fields of a pod's status and some of its conditions, in one version.

        A field whose value is None goes. `uid` is a precondition where given. Raises as `update_status` does.
        """
        previous = self._expect("Pod", key, uid)
        status = {**previous.raw["status"], **fields}
        listed = status.get("conditions", [])
        for condition in conditions:
            listed = with_condition(listed, condition, now)
        if listed:
            status["conditions"] = listed
        kept = {name: value for name, value in status.items() if value is not None}
        return self.update_status({**previous.raw, "status": kept})

    def delete(
        self, kind: str, key: str, *, now: int, grace_seconds: int | None = None, uid: str = ""
    ) -> Stored | None:
        """Delete an object; returns it while it is only terminating, None when it is gone.

        A bound pod that has not ended gets `grace_seconds`, or its own period for None; all else goes at once, but for
        what has finalizers. `uid` is a precondition where given. Raises StoreError 404 and 409.
        """
        previous = self._expect(kind, key, uid)
        metadata = deletion_metadata(previous.object, previous.raw["metadata"], grace_seconds, now)
        raw = {**previous.raw, "metadata": metadata}
        committed = self._commit(previous, raw, _reread(previous.object, previous.raw, raw))
        return self.find(kind, key) and committed

    def bind(self, key: str, node_name: str, *, now: int, uid: str = "") -> Stored:
        """Bind a pod to a node: nodeName, PodScheduled=True and no nomination, in one version (POST pods/binding).

        The node need not exist. Raises StoreError 404, and 409 for a pod that is bound, terminating, gated, or of
        another uid.
        """
        previous = self._expect("Pod", key, uid)
        pod = _as_pod(previous)
        problem = binding_problem(pod)
        if problem:
            raise conflict("Pod", key, problem)
        return self._commit(previous, *bound(pod, previous.raw, node_name, now))

    def _new_metadata(self, given: Any, kind: Kind, now: int) -> Raw:
        if not isinstance(given, dict):
            raise invalid(kind.name, "", "metadata is not an object")
        metadata = {"creationTimestamp": format_time(now), "generation": 1, **given}
        if kind.namespaced:
            metadata["namespace"] = given.get("namespace") or "default"
        base = metadata.get("generateName")
        if not metadata.get("name") and isinstance(base, str) and base:
            metadata["name"] = self._free_name(kind.name, metadata.get("namespace", ""), base)
        return metadata

    def _free_name(self, kind: str, namespace: str, base: str) -> str:
        while True:
            name = self._identities.name(base)
            if _key({"namespace": namespace, "name": name}) not in self._objects[kind]:
                return name

    def _priority_classes(self) -> dict[str, PriorityClass]:
        classes: dict[str, Any] = {name: stored.object for name, stored in self._objects["PriorityClass"].items()}
        return classes

    def _expect(self, kind: str, key: str, uid: str) -> Stored:
        stored = self.get(kind, key)
        if uid and uid != stored.uid:
            raise conflict(kind, key, f"has uid {stored.uid}, not {uid}; it was deleted and created again")
        return stored

    def _precondition(self, raw: Raw) -> Stored:
        metadata = raw["metadata"]
        kind, key = _kind(raw), _key(metadata)
        previous = self._expect(kind.name, key, metadata.get("uid", ""))
        version = metadata.get("resourceVersion")
        if version and version != str(previous.version):
            raise conflict(kind.name, key, f"is at version {previous.version}, not {version}; read it again")
        return previous

    def _commit(self, previous: Stored | None, raw: Raw, object_: Kubernetes) -> Stored:
        """Write `raw`, whose reading is `object_`, at the next version; the previous object when nothing changes."""
        if previous is not None and is_due(raw["metadata"]):
            stored = _at_version(self.version + 1, raw, object_)
            del self._objects[stored.kind][stored.key]
            self._log.append(WatchEvent("DELETED", stored, previous))
            return stored
        if previous is not None and raw == previous.raw:
            return previous
        stored = _at_version(self.version + 1, raw, object_)
        self._objects[stored.kind][stored.key] = stored
        self._log.append(WatchEvent("MODIFIED" if previous else "ADDED", stored, previous))
        return stored


def _at_version(version: int, raw: Raw, object_: Kubernetes) -> Stored:
    text = str(version)
    metadata = msgspec.structs.replace(object_.metadata, resource_version=text)
    return Stored(
        {**raw, "metadata": {**raw["metadata"], "resourceVersion": text}},
        msgspec.structs.replace(object_, metadata=metadata),
        version,
    )


def _kind(raw: Raw) -> Kind:
    kind = KINDS.get((group_of(raw.get("apiVersion", "")), raw.get("kind", "")))
    if kind is None:
        raise not_found("kind", f"{raw.get('apiVersion')} {raw.get('kind')}")
    return kind


def _key(metadata: Raw) -> str:
    return f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else str(metadata["name"])


def _decoded(raw: Raw) -> Kubernetes:
    try:
        object_ = decode(raw)
    except InputError as error:
        raise StoreError(422, "Invalid", str(error)) from None
    if object_ is None:
        raise TypeError(f"{raw['kind']} has no reading")
    return object_


def _reread(object_: Kubernetes, old: Raw, new: Raw) -> Kubernetes:
    try:
        return reread(object_, old, new)
    except msgspec.ValidationError as error:
        raise StoreError(422, "Invalid", f"{object_.kind} {object_.key} is invalid: {error}") from None


def _as_pod(stored: Stored) -> Pod:
    if not isinstance(stored.object, Pod):
        raise TypeError(f"{stored.kind} {stored.key} is not a Pod")
    return stored.object


def _check_phase(old: Pod, new: Pod) -> None:
    if old.is_terminal and new.status.phase != old.status.phase:
        raise invalid("Pod", old.key, f"it has ended; its phase stays {old.status.phase}")
