"""The objects of a cluster under the API server's rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from msgspec import convert
from msgspec.structs import replace

from podium.api.avoid_list import EvictionHints
from podium.api.disruption_policy import DisruptionPolicy
from podium.api.meta import Raw
from podium.api.pod import Pod, PodCondition
from podium.api.reading import read
from podium.api.times import format_time, parse_time
from podium.store import creations, errors, patching, stored, version_conversion, watch_log
from podium.store.api_resources import APIResources
from podium.store.custom_kinds import DEFINITION, as_terminating, is_established, register
from podium.store.revisions import Identities, Journal, Revisions
from podium.store.stored import Stored
from podium.store.verbs import deletion
from podium.store.verbs.readings import decoded, metadata_of_status, replaced, rereading, shared_spec_of, with_status
from podium.store.verbs.updates import check_finalizers, check_update, signed

_NOT_GIVEN = object()
_UNDELETABLE_NAMESPACES = ("default", "kube-public", "kube-system")
_CONDITIONS = tuple[PodCondition, ...]
_SCHEDULED = {"type": "PodScheduled", "status": "True"}
_READ_SCHEDULED = convert([_SCHEDULED], _CONDITIONS)


class Store(creations.WritableStore):
    """Objects of the kinds in `resources`, each at its newest version, and the log of their changes.

    Every write that changes something commits one version, the next number, and one more for each quota that counts it;
    a write that changes nothing commits none. A refused write raises StoreError and changes nothing. Objects passed in
    and out are shared and must not be mutated. Time is passed in as `now`, in nanoseconds; uids follow from the seed.

    With a `journal` the store starts from its content, and persists each write there first. `require_namespaces` allows
    the creation of objects only in existing namespaces. `log_capacity` is the number of events that are kept.
    `recorded_uids` are those that pods get, by key and in the order of creation.
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        log_capacity: int = 100_000,
        resources: APIResources | None = None,
        journal: Journal | None = None,
        require_namespaces: bool = False,
        recorded_uids: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        resources = resources or APIResources()
        revisions = revisions_of(journal, resources, Identities(seed, recorded_uids), log_capacity)
        super().__init__(resources, revisions, require_namespaces=require_namespaces)
        self.keeps_custom_objects = False
        """Whether custom objects outlive the first request to delete their definition."""
        self.requires_accounts = False
        """Whether new pods need an existing service account."""

    def update(self, raw: Raw) -> Stored:
        """Replace an object, except for its status and fields that only the server writes.

        A `resourceVersion` or a `uid` in `raw` is a precondition. An update that removes the last finalizer of a
        deleted object removes the object. A DisruptionPolicy also creates its missing PriorityClasses, as `create`
        describes, with the policy's own creation time. Raises StoreError 400, 404, 409 and 422.
        """
        return self._replace(self._precondition(raw), raw)

    def _replace(self, previous: Stored, raw: Raw) -> Stored:
        """Write `raw`, except for its status and fields that only the server writes."""
        resource = previous.resource
        if self._writer is not None:
            self._writer.given = raw["metadata"].get("managedFields")
        raw = self._admitted(raw)
        if resource.is_custom:
            given = self.definitions.shaped(resource, raw)
            seen = previous.served_as(given["apiVersion"])
        else:
            given, seen = self._admission.without_dropped_fields(previous, raw), previous
        updated = replaced(seen, given)
        problems = self.definitions.problems(resource, updated, seen.raw)
        object_ = decoded(resource, updated, shared_spec_of(resource, updated), seen.raw, more=problems)
        if resource.name == DEFINITION:
            created = parse_time(updated["metadata"]["creationTimestamp"])
            judged = self.definitions.with_status(resource, updated, previous.raw, created)
            return self.commit(resource, previous, judged, object_)
        check_update(seen, updated, self._release)
        self._admission.check_update(previous, object_)
        if not isinstance(object_, DisruptionPolicy) or not isinstance(previous.object, DisruptionPolicy):
            return self.commit(resource, previous, updated, object_)
        if previous.object.status.caps:
            # The usage of the caps is kept.
            given, updated = updated, {**updated, "status": object_.status_carried_over(previous.object)}
            object_ = rereading(resource, object_, given, updated)
        with self.transaction():
            stored = self.commit(resource, previous, updated, object_)
            self._complete_levels(stored)
            return stored

    def update_status(self, raw: Raw, *, approves: bool = False) -> Stored:
        """Replace an object's status, and for most kinds its metadata; preconditions and errors as of `update`.

        A pod that has ended cannot change its phase (422), and a certificate request is only decided if the request
        `approves` it (422). Kinds without a status have no such subresource (404).
        """
        previous = self._precondition(raw)
        seen = previous.served_as(raw["apiVersion"]) if previous.resource.is_custom else previous
        return self._replace_status(seen, raw.get("status", _NOT_GIVEN), raw["metadata"], approves=approves)

    def _replace_status(
        self, previous: Stored, status: Any, metadata: Raw | None = None, *, approves: bool = False
    ) -> Stored:
        """Write the status, if one is given, and the metadata that a status update of the kind may change.

        `previous` is in the version of the status.
        """
        resource = previous.resource
        if not resource.has_status:
            raise errors.unknown_kind(f"{resource.name}/status")
        updated, object_ = previous.raw, previous.object
        if status is not _NOT_GIVEN:
            status = self._admitted({**updated, "status": status}).get("status")
            if resource.name == "CertificateSigningRequest" and isinstance(status, dict) and not approves:
                status = signed(previous, status)
            updated = {**updated, "status": status}
            if resource.is_custom:
                updated = self.definitions.shaped(resource, updated)
                if problems := self.definitions.problems(resource, updated, previous.raw):
                    raise errors.invalid_fields(resource, previous.key, problems)
            else:
                updated = self._admission.without_dropped_fields(previous, updated)
            object_ = with_status(previous, updated)
        changed = metadata_of_status(previous, metadata)
        if changed != previous.raw["metadata"]:
            updated = {**updated, "metadata": changed}
            object_ = decoded(resource, updated, shared_spec_of(resource, updated), previous.raw)
            check_finalizers(previous, updated)
        return self.commit(resource, previous, updated, object_)

    def update_part(self, raw: Raw, part: Callable[[Stored, Raw], Raw]) -> Stored:
        """Replace a part of an object that no other update changes; `part` returns the object to write.

        Preconditions as of `update`. Raises StoreError 400, 404, 409 and 422.
        """
        previous = self._precondition(raw)
        updated = replaced(previous, part(previous, raw))
        object_ = decoded(previous.resource, updated, shared_spec_of(previous.resource, updated), previous.raw)
        self._admission.check_resize(previous, object_)
        return self.commit(previous.resource, previous, updated, object_)

    def patch(
        self,
        kind: str,
        key: str,
        patch: Any,
        type_: patching.PatchType,
        subresource: Literal["", "status"] = "",
        api_version: str = "",
        complete: Callable[[Raw], Raw] = lambda raw: raw,
    ) -> Stored:
        """Patch an object or its status; null means absent.

        The patch is in that version of the kind, "" for the storage version. `complete` transforms the result before it
        is written. Raises StoreError as `patched` and `complete` do, and as the update of the result does.
        """
        stored = self.get(kind, key)
        if subresource == "status" and isinstance(patch, patching.StatusPatch) and patch.before is stored.raw:
            return self._replace_status(stored, patch.after)
        seen = stored.served_as(api_version)
        result = patching.patched(stored.resource, seen.raw, patch, type_, subresource)
        if not stored.resource.is_custom:
            seen, result = stored, version_conversion.as_stored(stored.resource, result, api_version)
        deletion.check_preconditions(stored, *deletion.preconditions_of(result["metadata"]))
        if subresource == "status":
            return self._replace_status(seen, result.get("status", _NOT_GIVEN), result["metadata"])
        return self._replace(stored, complete(result))

    def delete(
        self,
        kind: str,
        key: str,
        *,
        now: int,
        grace_seconds: int | None = None,
        propagation: deletion.Propagation = "",
        uid: str = "",
        resource_version: str = "",
    ) -> Stored | None:
        """Delete an object; return it while it is terminating, None if it is gone.

        A bound pod that has not ended gets `grace_seconds`, or its own period if that is None; other objects are
        removed immediately unless they have finalizers. `uid` and `resource_version` are preconditions if given. The
        deletion of a pod counts against disruption rates and caps. Raises StoreError 404, 409, 422 for an unknown
        propagation, and 403 for a namespace that every cluster has.
        """
        previous = self._expect(kind, key, uid, resource_version)
        if kind == DEFINITION:
            return self._delete_definition(previous, now)
        raw = {**previous.raw, "metadata": deletion.with_propagation(previous.raw["metadata"], propagation, kind)}
        if deletion.is_pending(previous.object, grace_seconds):
            raw = previous.raw
        if previous.kind == "Namespace":
            if key in _UNDELETABLE_NAMESPACES:
                raise errors.forbidden(previous.resource, key, "this namespace may not be deleted")
            kinds = (resource.name for resource in self.resources.all() if resource.namespaced)
            is_empty = not any(self.objects(kind, previous.key) for kind in kinds)
            raw = deletion.as_terminating_namespace(raw, is_empty=is_empty)
        with self.transaction():
            if isinstance(previous.object, Pod):
                self._disruptions.count(previous.object, now)
            return self.terminate(previous, raw, grace_seconds, now)

    def evict(  # noqa: PLR0913 - one argument for each thing that a request can say
        self,
        key: str,
        *,
        now: int,
        uid: str = "",
        resource_version: str = "",
        grace_seconds: int | None = None,
        component: str = "",
        hints: EvictionHints = EvictionHints(),  # noqa: B008 - an immutable value
        dry_run: bool = False,
    ) -> Stored | None:
        """Delete a pod if its budgets allow it, and debit them (POST pods/eviction); return as `delete` does.

        `component` is the component whose disruption cap counts, "" for none. The node's avoid list records the
        `hints`. All of that happens together or not at all; a dry run leaves no trace.

        Raises StoreError: 404; 409 for a precondition that is not met; 429 for a budget, a rate or a cap that is
        exhausted, with the seconds to wait in `details["retryAfterSeconds"]`; 403 for a budget whose status is out of
        bounds; 500 for a pod with several budgets, unless the DisruptionPolicy requires them all.
        """
        with self.transaction(dry_run=dry_run):
            previous = self._expect("Pod", key, uid, resource_version)
            pod = _pod(previous)
            self._disruptions.grant(pod, component, now)
            if hints:
                self._disruptions.record_hints(pod, component, hints, grace_seconds, now)
            disrupted = deletion.with_disruption_target(previous.raw, pod, now)
            kept = self._admission.without_dropped_fields(previous, disrupted)
            return self.terminate(previous, kept, grace_seconds, now)

    def bind(
        self,
        key: str,
        node_name: str,
        *,
        now: int,
        uid: str = "",
        resource_version: str = "",
        target_kind: str = "Node",
        marks: Mapping[str, Mapping[str, str]] = {},
    ) -> Stored:
        """Bind a pod to a node: nodeName and PodScheduled=True, in one version (POST pods/binding).

        The pod gets the labels and annotations of the binding, its `marks`. Newer versions also end the pod's
        nomination, and copy the node's zone and region to its labels. The node need not exist. `uid` and
        `resource_version` are preconditions if given. Raises StoreError 404, 409, and as `check_binding` does.
        """
        previous = self.get("Pod", key)
        pod = _pod(previous)
        if uid != pod.metadata.uid or resource_version:
            deletion.check_preconditions(previous, uid, resource_version)
        check_binding(previous, pod, target_kind, node_name)
        written = bound(pod, previous.raw, node_name, now, clears_nomination=self._clears_nominations)
        node = self.find("Node", node_name) if self._labels_pods else None
        return self.commit(previous.resource, previous, *creations.with_topology(*written, node, marks))

    def _delete_definition(self, previous: Stored, now: int) -> Stored | None:
        """Delete a definition with all objects of its kind; return it while objects remain, None if it is gone.

        With `keeps_custom_objects` the objects stay until the definition is deleted again. Definitions of the same
        group whose names become free by that are established.
        """
        kind = self.definitions.kind_of(previous)
        is_first = previous.object.metadata.deletion_timestamp is None
        with self.transaction():
            for stored in self.objects(kind) if kind and not (is_first and self.keeps_custom_objects) else ():
                if stored.object.metadata.deletion_timestamp is None:
                    self.delete(kind, stored.key, now=now)
            has_objects = bool(kind and self.objects(kind))
            raw = as_terminating(previous.raw, now) if has_objects else previous.raw
            remaining = self.terminate(previous, raw, None, now)
        for stored in self.definitions.of_group(previous.raw["spec"]["group"]):
            if not is_established(stored.raw):
                raw = self.definitions.with_status(stored.resource, stored.raw, stored.raw, now)
                self.commit(stored.resource, stored, raw, stored.object)
        return remaining


def _pod(stored: Stored) -> Pod:
    if not isinstance(stored.object, Pod):
        raise TypeError(f"{stored.kind} {stored.key} is not a Pod")
    return stored.object


def check_binding(stored: Stored, pod: Pod, target_kind: str, node_name: str) -> None:
    """Raise StoreError for a pod that cannot be bound there (pkg/registry/core/pod/storage, setPodNodeAndMetadata).

    409 for a pod that is bound, terminating or gated; 500 for a target that is not a node, as the API server does.
    """
    if target_kind not in ("", "Node") or not node_name:
        raise errors.StoreError(500, "", f"a pod is bound to a Node with a name, not to {target_kind} {node_name}")
    problem = ""
    if pod.metadata.deletion_timestamp is not None:
        problem = "is being deleted, cannot be assigned to a host"
    elif pod.spec.node_name:
        problem = f"is already assigned to node {pod.spec.node_name}"
    elif pod.spec.scheduling_gates:
        problem = "has non-empty .spec.schedulingGates"
    if problem:
        raise errors.conflict(stored.resource, stored.key, problem)


def bound(pod: Pod, raw: Raw, node_name: str, now: int, *, clears_nomination: bool) -> tuple[Raw, Pod]:
    """Return both forms of the pod with its node and PodScheduled=True, and without its nomination if that ends."""
    spec, status = raw["spec"].copy(), raw["status"].copy()
    spec["nodeName"] = node_name
    if clears_nomination:
        status.pop("nominatedNodeName", None)
    read = _READ_SCHEDULED
    if before := status.get("conditions"):
        status["conditions"] = stored.with_conditions(before, (_SCHEDULED,), now)
        read = convert(status["conditions"], _CONDITIONS)
    else:
        status["conditions"] = [{**_SCHEDULED, "lastTransitionTime": format_time(now)}]
    # The changed fields are known, so nothing else is read again.
    on_node = replace(
        pod,
        spec=replace(pod.spec, node_name=node_name),
        status=replace(pod.status, nominated_node_name=status.get("nominatedNodeName", ""), conditions=read),
    )
    return {**raw, "spec": spec, "status": status}, on_node


def revisions_of(
    journal: Journal | None, resources: APIResources, identities: Identities, log_capacity: int
) -> Revisions:
    """Return the revisions that a journal holds, or those of an empty store; `identities` are new.

    Raises StoreError 404 for objects of kinds that are not in `resources`, InputError for unreadable objects.
    """
    if journal is None:
        return Revisions(watch_log.WatchLog(log_capacity), identities)
    saved = journal.load()
    for uid in saved.given_uids:
        identities.give(uid)
    identities.count = saved.identities
    revisions = Revisions(watch_log.WatchLog(log_capacity, saved.version), identities, journal)
    # Custom kinds are read after their definitions.
    made = {register(resources, raw) for name, raw in saved.objects if name == DEFINITION}
    for name, raw in saved.objects:
        revisions.put(_stored(name, raw, resources))
    for type_, name, raw in saved.events:
        if name == DEFINITION:
            made.add(register(resources, raw))
        stored = _stored(name, raw, resources)
        revisions.replay(watch_log.WatchEvent(type_, stored, revisions.of(name).get(stored.key)))
    defined = {register(resources, stored.raw) for stored in revisions.of(DEFINITION).values()}
    for name in sorted(made - defined - {""}):
        resources.remove(name)
    return revisions


def _stored(name: str, raw: Raw, resources: APIResources) -> Stored:
    resource = resources.named(name)
    object_ = read(raw, resource.type)
    return Stored(raw, object_, int(raw["metadata"]["resourceVersion"]), resource, object_.key)
