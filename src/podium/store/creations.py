"""The creation of objects and of their dependent objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

from msgspec.structs import replace

from podium.api import disruption_policy, policy, resource_requests, times, workloads
from podium.api.meta import Kubernetes, Raw, key_of
from podium.api.node import REGION_LABEL, ZONE_LABEL
from podium.api.pod import Pod
from podium.api.versions.apis import as_kept
from podium.api.versions.gates import Gate
from podium.api.versions.release import DEFAULT_RELEASE, Behavior, Release
from podium.store.admission import admission_control, defaults, priorities, quotas
from podium.store.api_resources import BUILT_IN, APIResource, APIResources
from podium.store.custom_kinds import DEFINITION, DEFINITION_FINALIZER, CustomKinds
from podium.store.errors import StoreError, already_exists, bad_request, forbidden, invalid, not_found
from podium.store.field_ownership import FieldWriter
from podium.store.listing import ReadableStore
from podium.store.revisions import NO_OBJECTS, Revisions
from podium.store.stored import EMPTY, SET_BY_SERVER, Stored, reread
from podium.store.verbs import deletion
from podium.store.verbs.readings import decoded, identity, rereading, shared_spec_of, with_generated_selector
from podium.store.webhook_calls import WebhookCalls

_TOPOLOGY = (REGION_LABEL, ZONE_LABEL)
# The kinds whose creation also creates other objects or a kind.
_BRINGING = frozenset(("DisruptionPolicy", "Namespace", DEFINITION))


def with_topology(
    raw: Raw, pod: Pod, node: Stored | None, marks: Mapping[str, Mapping[str, str]] = {}
) -> tuple[Raw, Pod]:
    """Return both forms of the pod with the labels of its node's zone and region, if the node exists and has them.

    Before that it gets further `labels` and `annotations`, its `marks`. Source: plugin/pkg/admission/podtopologylabels.
    """
    of_node = {} if node is None else node.object.metadata.labels
    topology = {key: of_node[key] for key in _TOPOLOGY if key in of_node}
    added = {**marks, "labels": {**marks.get("labels", {}), **topology}}
    changed = {name: {**getattr(pod.metadata, name), **entries} for name, entries in added.items() if entries}
    if all(getattr(pod.metadata, name) == entries for name, entries in changed.items()):
        return raw, pod
    metadata = replace(pod.metadata, **changed)
    return {**raw, "metadata": {**raw["metadata"], **changed}}, replace(pod, metadata=metadata)


class WritableStore(ReadableStore):
    """Read, write and create access to objects; with `require_namespaces`, only in existing namespaces."""

    def __init__(self, resources: APIResources, revisions: Revisions, *, require_namespaces: bool) -> None:
        super().__init__(resources, revisions)
        self.serve_as(DEFAULT_RELEASE)
        self._quotas = quotas.QuotaAccounting(revisions)
        self.webhooks = WebhookCalls(self)
        self.definitions = CustomKinds(revisions, resources, self.webhooks)
        self.definitions.follow()
        for definition in self.objects(DEFINITION):
            if kind := self.definitions.kind_of(definition):
                self.definitions.complete(kind)
        self._require_namespaces = require_namespaces
        self._writer: FieldWriter | None = None
        self._admit: Callable[[Raw], Raw] | None = None

    def serve_as(self, release: Release) -> None:
        """Follow the rules of the API server of a version from now on."""
        self.resources.serve_as(release)
        by_condition = release.has(Behavior.EVICTION_CAUSE_BY_CONDITION)
        self._disruptions = deletion.DisruptionAccounting(self._revisions, by_condition=by_condition)
        self._admission = admission_control.Admission(self._revisions, release)
        self._clears_nominations = release.enabled(Gate.CLEARED_NOMINATION)
        self._labels_pods = release.enabled(Gate.TOPOLOGY_LABELS)
        self._release = release

    def transaction(self, *, dry_run: bool = False) -> AbstractContextManager[None]:
        """Publish the writes within together, or none of them after an error.

        A dry run performs them, so that they raise and return what they would, and then undoes them.
        """
        return self._revisions.transaction(dry_run=dry_run)

    def has_any(self, kinds: Iterable[str]) -> bool:
        """Return whether there are objects of any of these kinds."""
        return any(self._objects.get(kind) for kind in kinds)

    @contextmanager
    def admitted_by(self, admit: Callable[[Raw], Raw]) -> Iterator[None]:
        """Let `admit` change the object that is written within, before it is checked."""
        self._admit = admit
        try:
            yield
        finally:
            self._admit = None

    def _admitted(self, raw: Raw) -> Raw:
        """Return an object as the admission of its request changes it; only the first object of a request is."""
        admit, self._admit = self._admit, None
        return raw if admit is None else admit(raw)

    @contextmanager
    def waking_later(self) -> Iterator[None]:
        """Call the waiters of watches at the end only, because the writes within happen on another thread."""
        self._revisions.holds_wakes = True
        try:
            yield
        finally:
            self._revisions.holds_wakes = False
            self._revisions.wake()

    @contextmanager
    def written_by(self, writer: FieldWriter) -> Iterator[None]:
        """Maintain the managed fields of the object that is written within."""
        self._writer = writer
        try:
            yield
        finally:
            self._writer = None

    def note_unadmitted(self, raw: Raw) -> None:
        """Keep a new object as it is before admission adds to it, for the managed fields."""
        if self._writer is not None and self._writer.unadmitted is None:
            self._writer.unadmitted = raw

    def commit(self, resource: APIResource, previous: Stored | None, raw: Raw, object_: Kubernetes) -> Stored:
        """Write `raw`, whose reading is `object_`, at the next version.

        Return the previous object if nothing changes. An object of a custom kind is stored in its storage version.
        """
        metadata, is_gone = raw["metadata"], False
        if "deletionTimestamp" in metadata:
            has_contents = resource.name == "Namespace" and bool(raw.get("spec", {}).get("finalizers"))
            is_gone = previous is not None and deletion.is_due(metadata) and not has_contents
        writer = self._writer
        if resource.is_custom and previous is not None:
            previous = self.get(resource.name, previous.key)
        if writer is not None and not writer.is_done and resource.name == writer.resource.name:
            seen = previous.served_as(raw["apiVersion"]) if previous is not None and resource.is_custom else previous
            raw = writer.recorded(None if seen is None else seen.raw, raw)
        if resource.is_custom and not (writer is None and previous and previous.raw["apiVersion"] == raw["apiVersion"]):
            resource, raw, object_ = self.definitions.in_storage_version(resource, raw, object_)
        if resource.type is policy.ResourceQuota and isinstance(object_, policy.ResourceQuota) and not is_gone:
            # A status that a client writes is kept until something counts again.
            if previous is not None and previous.raw.get("status") != raw.get("status"):
                return self._revisions.write(resource, previous, raw, object_, is_gone=False)
            counted = self._quotas.counted(Stored(raw, object_, 0, resource, object_.key), object_)
            raw, object_ = counted, rereading(resource, object_, raw, counted)
        if previous is not None and not is_gone and raw == previous.raw:
            return previous
        if not self._objects.get("ResourceQuota") and not (is_gone and resource.is_custom):
            return self._revisions.write(resource, previous, raw, object_, is_gone=is_gone)
        with self.transaction():
            self._quotas.charge(previous, None if is_gone else Stored(raw, object_, 0, resource, object_.key))
            stored = self._revisions.write(resource, previous, raw, object_, is_gone=is_gone)
            if is_gone and resource.is_custom:
                self._remove_definition(resource)
            return stored

    def terminate(self, previous: Stored, raw: Raw, grace_seconds: int | None, now: int) -> Stored | None:
        """Write `raw` as deleted; return None if that removes the object."""
        metadata = deletion.deletion_metadata(previous.object, raw["metadata"], grace_seconds, now)
        after = {**raw, "metadata": metadata}
        object_ = rereading(previous.resource, previous.object, previous.raw, after)
        committed = self.commit(previous.resource, previous, after, object_)
        return self.find(previous.kind, previous.key) and committed

    def _expect(self, kind: str, key: str, uid: str, resource_version: str = "") -> Stored:
        stored = self.get(kind, key)
        if uid or resource_version:
            deletion.check_preconditions(stored, uid, resource_version)
        return stored

    def _precondition(self, raw: Raw) -> Stored:
        resource = self.resources.of(raw)
        return self._expect(resource.name, *identity(resource, raw))

    def _remove_definition(self, resource: APIResource) -> None:
        """Remove the terminating definition of a kind when the last object of the kind is gone."""
        definition = self.definitions.of_kind(resource)
        if definition is None or self.objects(resource.name):
            return
        finalizers = definition.object.metadata.finalizers
        if DEFINITION_FINALIZER not in finalizers or definition.object.metadata.deletion_timestamp is None:
            return
        left = [finalizer for finalizer in finalizers if finalizer != DEFINITION_FINALIZER]
        raw = {**definition.raw, "metadata": {**definition.raw["metadata"], "finalizers": left}}
        object_ = rereading(definition.resource, definition.object, definition.raw, raw)
        self.commit(definition.resource, definition, raw, object_)

    def create(
        self, raw: Raw, *, now: int, reading: Kubernetes | None = None, is_new: bool = False, was_there: bool = False
    ) -> Stored:
        """Create an object.

        Objects may come from dumps: a uid, times and a status are kept, except for an object that `is_new`, as API
        clients create them. An object with a uid, or that `was_there`, existed before: budgets that are stricter than
        allowed are then accepted. `reading` is the typed reading of `raw` if the caller has it. A DisruptionPolicy also
        creates the PriorityClasses that its levels lack. Raises StoreError 409 for a key that is taken, and what
        admission and validation raise.
        """
        resource = self.resources.of(raw)
        if resource.name in _BRINGING:
            with self.transaction():
                stored = self._create(resource, raw, now, reading, is_new=is_new, was_there=was_there)
                self._complete_levels(stored)
                if is_new and stored.kind == "Namespace":
                    self.create(deletion.default_service_account(stored.key), now=now, is_new=True)
                return stored
        identities = self._revisions.identities
        mark = identities.mark()
        try:
            return self._create(resource, raw, now, reading, is_new=is_new, was_there=was_there)
        except BaseException:
            identities.rewind(mark)
            raise

    def _create(
        self, resource: APIResource, raw: Raw, now: int, reading: Kubernetes | None, *, is_new: bool, was_there: bool
    ) -> Stored:
        """Create only the object itself. Identities that are drawn for it are not reused if the creation fails."""
        raw = self._admitted(as_new(raw, resource) if is_new else raw)
        named = with_metadata(raw, resource, now, self._free_name)
        if resource.is_custom or resource.name in (*_BRINGING, *defaults.TAINTING):
            named = self._shaped(resource, named, is_new=is_new)
        shared = shared_spec_of(resource, named)
        problems = self.definitions.problems(resource, named)
        if reading is None or is_new or problems:
            object_ = decoded(resource, named, shared, is_new=is_new, more=problems)
        else:
            object_ = rereading(resource, reading, raw, named)
        if resource.name == DEFINITION:
            named = self.definitions.with_status(resource, named, None, now)
        key, uid = object_.key, object_.metadata.uid
        self._check_free(resource, object_)
        if is_new:
            self._admission.check_new(named, object_)
        raw, object_ = self._admission.admit(resource, named, object_, shared, was_there=was_there)
        if is_new:
            self._admission.check_admin_access(resource, object_)
            raw, object_ = with_first_status(raw, object_, self._release)
            if self._labels_pods and isinstance(object_, Pod) and object_.spec.node_name:
                raw, object_ = with_topology(raw, object_, self.find("Node", object_.spec.node_name))
        if not uid:
            raw, object_ = with_uid(raw, object_, self._revisions.identities.uid(key if resource.name == "Pod" else ""))
        elif not self._revisions.identities.give(uid):
            raise _uid_used(resource, key, uid)
        return self.commit(resource, None, raw, object_)

    def create_alike(self, made: Callable[[str], Raw], object_: Kubernetes, like: Stored) -> Stored:
        """Create an object from a dump that differs from another one only in its own values; `made` is its wire form.

        What `create` completed and checked in the other one, `like`, has the same result for this one. Raises
        StoreError as `create` does.
        """
        identities, resource, uid = self._revisions.identities, like.resource, object_.metadata.uid
        self._check_free(resource, object_)
        mark = identities.mark()
        try:
            if not identities.give(uid):
                raise _uid_used(resource, object_.key, uid)
            if self._objects.get("ResourceQuota"):
                return self.commit(resource, None, made(""), object_)
            return self._revisions.write(resource, None, made, object_, is_gone=False)
        except BaseException:
            identities.rewind(mark)
            raise

    def _check_free(self, resource: APIResource, object_: Kubernetes) -> None:
        """Raise StoreError if the object cannot be created in its namespace, or if its key is taken.

        404 if the namespace has to exist and does not; 403 with cause NamespaceTerminating if it is terminating.
        """
        key, name = object_.key, object_.metadata.namespace
        namespace = self.find("Namespace", name) if resource.namespaced else None
        if namespace is not None and namespace.object.metadata.deletion_timestamp is not None:
            problem = f"the namespace {name} is being deleted, and nothing new can be created in it"
            raise forbidden(resource, key, problem, "NamespaceTerminating")
        if namespace is None and resource.namespaced and self._require_namespaces:
            raise not_found(BUILT_IN["", "Namespace"], name)
        if key in self._objects.get(resource.name, NO_OBJECTS):
            raise already_exists(resource, key)

    def _shaped(self, resource: APIResource, named: Raw, *, is_new: bool) -> Raw:
        """Return an object to be created, with the defaults of its kind alone. Raises StoreError."""
        if resource.is_custom:
            definition = self.definitions.of_kind(resource)
            if definition is not None and definition.object.metadata.deletion_timestamp is not None:
                problem = "create not allowed while custom resource definition is terminating"
                raise StoreError(405, "MethodNotAllowed", problem)
            return self.definitions.shaped(resource, named)
        if resource.name in defaults.TAINTING:
            return defaults.with_taint_times(named, {}, named["metadata"]["creationTimestamp"])
        return deletion.as_new_namespace(named) if is_new and resource.name == "Namespace" else named

    def _complete_levels(self, stored: Stored) -> None:
        """Create the PriorityClasses that a DisruptionPolicy lacks, and check the classes that its rules name."""
        if isinstance(stored.object, disruption_policy.DisruptionPolicy):
            created = times.parse_time(stored.raw["metadata"]["creationTimestamp"])
            for raw in priorities.missing_classes(stored.object, self._admission.priority_classes()):
                self.create(raw, now=created)
            priorities.check_rule_classes(stored.object, self._admission.priority_classes())

    def _free_name(self, kind: str, namespace: str, base: str) -> str:
        while True:
            name = self._revisions.identities.name(base)
            if self.find(kind, key_of({"namespace": namespace, "name": name})) is None:
                return name


def _uid_used(resource: APIResource, key: str, uid: str) -> StoreError:
    return invalid(resource, key, f"the uid {uid} was used before", "metadata.uid")


# The client that registers a node reports its status in the same request.
_REPORTED_AT_CREATION = frozenset(("Node",))
_GATED = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "observedGeneration": 1,
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}
# The status of new objects: what Go writes for an unset one.
_STATUSES: Mapping[str, Raw] = {
    **{kind: {} for kind in ("CertificateSigningRequest", "CronJob", "Deployment", "Job")},
    **{kind: {} for kind in ("ResourceClaim", "ResourceQuota")},
    **{kind: {"loadBalancer": {}} for kind in ("Ingress", "Service")},
    **{kind: {"replicas": 0} for kind in ("ReplicaSet", "ReplicationController")},
    "DaemonSet": dict.fromkeys(
        ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady"), 0
    ),
    "HorizontalPodAutoscaler": {"desiredReplicas": 0},
    **{kind: {"phase": "Pending"} for kind in ("PersistentVolume", "PersistentVolumeClaim")},
    "PodDisruptionBudget": {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0},
    "StatefulSet": {"replicas": 0, "availableReplicas": 0},
}


def as_new(raw: Raw, resource: APIResource) -> Raw:
    """Return the object without fields that clients cannot set on creation: identity, times and status."""
    metadata = raw.get("metadata")
    if isinstance(metadata, dict):
        raw = {**raw, "metadata": {name: value for name, value in metadata.items() if name not in SET_BY_SERVER}}
    if resource.has_status and resource.name not in _REPORTED_AT_CREATION:
        raw = {name: value for name, value in raw.items() if name != "status"}
    return raw


def with_first_status(raw: Raw, object_: Kubernetes, release: Release) -> tuple[Raw, Kubernetes]:
    """Return both forms of a new object with its initial status.

    Source: the strategies of pkg/registry/core (pod, persistentvolume, persistentvolumeclaim).
    """
    if raw["kind"] in _STATUSES:
        status = _STATUSES[raw["kind"]]
    elif isinstance(object_, Pod):
        status = {**raw["status"], "qosClass": resource_requests.qos_class(object_.spec)}
        if not object_.spec.scheduling_gates:
            return {**raw, "status": status}, object_
        status["conditions"] = [_GATED]
    else:
        return raw, object_
    after = as_kept({**raw, "status": status}, raw["kind"], release)
    return after, reread(object_, raw, after)


def with_uid(raw: Raw, object_: Kubernetes, uid: str) -> tuple[Raw, Kubernetes]:
    """Return both forms of an object with its uid; a Job also gets the selector that follows from the uid.

    The object's metadata must come from `with_metadata`.
    """
    raw["metadata"]["uid"] = uid
    object_ = replace(object_, metadata=replace(object_.metadata, uid=uid))
    if isinstance(object_, workloads.Job):
        selecting = with_generated_selector(raw, object_.metadata.name, uid)
        return selecting, reread(object_, raw, selecting)
    return raw, object_


def with_metadata(raw: Raw, resource: APIResource, now: int, free_name: Callable[[str, str, str], str]) -> Raw:
    """Return the object with creationTimestamp, name, and, if its kind needs them, namespace and generation.

    `free_name` generates a name from the kind, the namespace and the base. Raises StoreError 400 for malformed
    metadata.
    """
    given = raw.get("metadata", {})
    if not isinstance(given, dict):
        raise bad_request("metadata is not an object")
    metadata: Raw = {"creationTimestamp": times.format_time(now)}
    metadata |= {name: value for name, value in given.items() if value not in EMPTY}
    if resource.has_generation:
        metadata.setdefault("generation", 1)
    if resource.namespaced:
        metadata["namespace"] = given.get("namespace") or "default"
    if not metadata.get("name"):
        base = metadata.get("generateName")
        if isinstance(base, str) and base:
            metadata["name"] = free_name(resource.name, str(metadata.get("namespace", "")), base)
    return {**raw, "metadata": metadata}
