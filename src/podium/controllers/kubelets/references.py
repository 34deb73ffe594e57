"""The objects without which the containers of a pod do not start: contents of files and variables, and claims.

Source: pkg/volume (secret, configmap, projected), pkg/kubelet (kubelet_pods.go, volumemanager, cm/dra/manager.go).
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from podium.api.meta import Raw, object_at, objects_at, value_at
from podium.controllers.indexes import MultiMap, exchange

_CLAIM, _DEVICES = "PersistentVolumeClaim", "ResourceClaim"
REFERENCED = frozenset(("Secret", "ConfigMap", _CLAIM, _DEVICES))
"""The kinds of the objects."""

_Reference = tuple[str, str]
"""The kind and key of an object."""

# By field of a volume's, projection's or variable's source, the kind of the object there.
_FIELDS = {f"secret{form}": "Secret" for form in ("", "Ref", "KeyRef")}
_FIELDS |= {f"configMap{form}": "ConfigMap" for form in ("", "Ref", "KeyRef")}
_MOUNT = "FailedMount"
_IN_VOLUME, _IN_VARIABLE = "references non-existent {what} key: {key}", "couldn't find key {key} in {kind} {object}"


class StartObstacle(msgspec.Struct, frozen=True):
    """Why containers do not start: the object that they wait for, the Event's reason and message, and their state."""

    needed: _Reference
    reason: str
    message: str
    waiting: Raw = msgspec.field(default_factory=lambda: {"reason": "ContainerCreating"})


class References:
    """The objects that pods may refer to, and the pods that wait for one, by key."""

    def __init__(self) -> None:
        self._objects: dict[_Reference, Raw] = {}
        self._waiting: MultiMap[_Reference, str] = MultiMap()
        self._needed: dict[str, _Reference] = {}

    def show(self, kind: str, key: str, raw: Raw | None) -> list[str]:
        """Take in an object, None if it is gone; return the pods that waited for it."""
        exchange(self._objects, (kind, key), raw)
        return list(self._waiting.get((kind, key), ()))

    def note(self, pod: str, needed: _Reference | None) -> None:
        """Record the object that a pod waits for; None for none."""
        before = exchange(self._needed, pod, needed)
        self._waiting.replace(pod, filter(None, (before,)), filter(None, (needed,)))

    def obstacles(self, pod: Raw, *, is_restart: bool = False) -> Iterator[StartObstacle]:
        """Yield the obstacles to the start of a pod in order; restarted containers keep volumes and devices."""
        if not is_restart:
            yield from self._of_volumes(pod)
            yield from self._of_devices(pod)
        yield from self._of_variables(pod)

    def _of_volumes(self, pod: Raw) -> Iterator[StartObstacle]:
        meta = pod["metadata"]
        for volume in objects_at(pod, "spec", "volumes"):
            name, claim = volume["name"], value_at(volume, "persistentVolumeClaim", "claimName")
            for source in (volume, *objects_at(volume, "projected", "sources")):
                for needed, problem in self._lacking(meta["namespace"], source, _IN_VOLUME):
                    yield StartObstacle(needed, _MOUNT, f'MountVolume.SetUp failed for volume "{name}" : {problem}')
            if volume.get("ephemeral") is not None:
                claim = f"{meta['name']}-{name}"
            needed = _CLAIM, f"{meta['namespace']}/{claim}"
            if claim is not None and (problem := self._claim_problem(needed, claim)):
                lists = f"unmounted volumes=[{name}], unattached volumes=[], failed to process volumes=[{name}]"
                message = f"Unable to attach or mount volumes: {lists}: error processing PVC {needed[1]}: {problem}"
                yield StartObstacle(needed, _MOUNT, message)

    def _claim_problem(self, needed: _Reference, name: str) -> str:
        claim = self._objects.get(needed)
        if claim is None:
            return f'failed to fetch PVC from API server: persistentvolumeclaims "{name}" not found'
        if "deletionTimestamp" in claim["metadata"]:
            return "PVC is being deleted"
        return "" if value_at(claim, "status", "phase") == "Bound" else "PVC is not bound"

    def _of_devices(self, pod: Raw) -> Iterator[StartObstacle]:
        """Yield why device claims are not ready: they must be allocated, and reserved for the pod."""
        meta = pod["metadata"]
        made = {one["name"]: one.get("resourceClaimName") for one in objects_at(pod, "status", "resourceClaimStatuses")}
        for stated in objects_at(pod, "spec", "resourceClaims"):
            claim = stated.get("resourceClaimName") or made.get(stated["name"], "")
            # A pod that lacks the name of a claim waits for itself. None: the template's claim is not needed.
            needed = (_DEVICES if claim else "Pod"), f"{meta['namespace']}/{claim or meta['name']}"
            raw = self._objects.get(needed, {})
            users = [user["uid"] for user in objects_at(raw, "status", "reservedFor")]
            if claim is None or meta["uid"] in users:
                continue
            problem = f"pod {meta['name']} ({meta['uid']}) is not allowed to use ResourceClaim {claim}"
            if not claim:
                problem = f"pod claim {stated['name']}: ResourceClaim not created yet"
            elif not raw:
                problem = f'fetch ResourceClaim {claim}: resourceclaims "{claim}" not found'
            elif value_at(raw, "status", "allocation") is None:
                problem = f"ResourceClaim {claim}: claim not allocated"
            message = f"Failed to prepare dynamic resources: prepare dynamic resources: {problem}"
            yield StartObstacle(needed, "FailedPrepareDynamicResources", message)

    def _of_variables(self, pod: Raw) -> Iterator[StartObstacle]:
        spec, namespace = pod["spec"], pod["metadata"]["namespace"]
        for container in (*objects_at(spec, "initContainers"), *objects_at(spec, "containers")):
            values = (object_at(variable, "valueFrom") for variable in objects_at(container, "env"))
            for source in (*objects_at(container, "envFrom"), *values):
                for needed, problem in self._lacking(namespace, source, _IN_VARIABLE):
                    state = {"reason": "CreateContainerConfigError", "message": problem}
                    yield StartObstacle(needed, "Failed", f"Error: {problem}", state)

    def _lacking(self, namespace: str, source: Raw, lacks_key: str) -> Iterator[tuple[_Reference, str]]:
        """Yield the lacking object of a source, or one that lacks a key, with the problem; none if it is optional."""
        for kind, reference in [(kind, source[field]) for field, kind in _FIELDS.items() if source.get(field)]:
            if reference.get("optional"):
                continue
            name = reference.get("secretName") or reference.get("name", "")
            needed, what = (kind, f"{namespace}/{name}"), kind.lower()
            raw = self._objects.get(needed)
            if raw is None:
                yield needed, f'{what} "{name}" not found'
                continue
            keys = [one["key"] for one in (reference, *objects_at(reference, "items")) if "key" in one]
            for key in keys:
                if key not in object_at(raw, "data") and key not in object_at(raw, "binaryData"):
                    yield needed, lacks_key.format(key=key, kind=kind, object=needed[1], what=what.removesuffix("map"))
