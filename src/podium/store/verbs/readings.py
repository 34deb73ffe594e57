"""The typed readings of written objects, and their validation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from podium.api.disruption_policy import DisruptionPolicy
from podium.api.errors import InputError, MalformedError, shown
from podium.api.meta import Kubernetes, Raw, key_of, object_at, objects_at, value_at
from podium.api.objects import SharedSpec, shared_spec
from podium.api.pod import TERMINAL_PHASES, Pod
from podium.api.pod_group import PodGroup
from podium.api.reading import read
from podium.api.schemas import schema
from podium.api.validation.findings import Finding, Findings, Place, forbidden
from podium.api.validation.objects import check_usable, find_problems, refuse_metadata, validate
from podium.api.validation.workloads import job_status_findings
from podium.store.admission.pod_admission import readmit_pod
from podium.store.admission.priorities import readmit_group
from podium.store.api_resources import APIResource
from podium.store.errors import StoreError, bad_request, invalid_fields, unreadable
from podium.store.stored import EMPTY, SET_BY_SERVER, Reading, Stored, is_copy, reread, status_type
from podium.store.verbs.deletion import preconditions_of

_KEPT = ("name", "generateName", "namespace", *SET_BY_SERVER, "managedFields")
_DEVICE = ("driver", "pool", "device", "shareID")
_NO_CONTENT = ("apiVersion", "kind", "metadata")
_UID, _NAME = "controller-uid", "job-name"
_BATCH = "batch.kubernetes.io/"
_OWN = (f"{_BATCH}{_UID}", f"{_BATCH}{_NAME}", _UID, _NAME)


def shared_spec_of(resource: APIResource, raw: Raw) -> SharedSpec | None:
    """Return the shared specification of a valid pod; None for an invalid pod and for other kinds."""
    return shared_spec(raw["spec"]) if resource.type is Pod and "spec" in raw else None


def decoded(
    resource: APIResource,
    raw: Raw,
    shared: SharedSpec | None,
    previous: Raw | None = None,
    *,
    is_new: bool = False,
    more: Sequence[Finding] = (),
) -> Kubernetes:
    """Return the validated reading of an object; a pod with a `shared` specification uses it.

    A new object (`is_new`) is refused for everything that kube-apiserver refuses; one that replaces `previous`, for
    everything that was valid before; any other, such as from a dump, only for what makes it unusable. All are refused
    for `more`, the problems that the schema of a custom kind finds.

    Raises StoreError: 400 if a value cannot be read as its field's type, 422 if the object breaks a rule.
    """
    try:
        object_: Kubernetes
        if shared is None:
            object_ = read(raw, resource.type)
        else:
            rest = {name: value for name, value in raw.items() if name != "spec"}
            object_ = msgspec.structs.replace(read(rest, Pod), spec=shared.spec)
        custom = resource.namespaced if resource.type is Kubernetes else None
        if findings := [*_findings(raw, previous, is_new, custom), *more]:
            raise _refusal(resource, object_.key, raw, findings)
        if resource.type is Kubernetes:
            refuse_metadata(object_, resource.namespaced)
        elif shared is not None and isinstance(object_, Pod):
            refuse_metadata(object_, resource.namespaced)
            _check_status(object_, raw)
        else:
            validate(object_, raw)
    except InputError as error:
        raise unreadable(resource, key_of(object_at(raw, "metadata")), error) from None
    return object_


def filled_in(
    resource: APIResource, object_: Kubernetes, old: Raw, new: Raw, before: SharedSpec | None = None
) -> tuple[Raw, Kubernetes]:
    """Return both forms of an object after admission; `object_` is the reading of `old`.

    `before` is the shared specification of `old`, if there is one. A pod of a dump has all defaults, and keeps it.

    Raises StoreError as `decoded` does for unreadable values.
    """
    has_all = before is not None and "nodeName" in before.raw and is_copy(new["spec"], before.raw)
    shared = before if has_all else shared_spec_of(resource, new)
    if shared is None:
        return new, rereading(resource, object_, old, new)
    if not has_all:
        new = {**new, "spec": shared.raw}
    old = {**old, "spec": new["spec"]}
    return new, rereading(resource, msgspec.structs.replace(object_, spec=shared.spec), old, new)


def rereading(resource: APIResource, object_: Reading, old: Raw, new: Raw) -> Reading:
    """Return the result of `reread`; raises StoreError as `decoded` does."""
    try:
        return reread(object_, old, new)
    except msgspec.ValidationError:
        try:
            return read(new, type(object_))
        except InputError as error:
            raise unreadable(resource, object_.key, error) from None


def with_status(previous: Stored, updated: Raw) -> Kubernetes:
    """Return the reading of an object whose status was replaced.

    Raises StoreError: 400 for an unreadable status, 422 for one that its kind does not have or that breaks its rules.
    """
    before = after = previous.object
    if previous.resource.is_custom:
        return before
    type_ = status_type(type(before))
    if not isinstance(before, Pod):
        _check_shape(previous, updated["status"])
    try:
        if type_ is not None:
            after = msgspec.structs.replace(before, status=msgspec.convert(updated["status"], type_))
    except msgspec.ValidationError:
        _check_shape(previous, updated["status"])
        after = rereading(previous.resource, before, previous.raw, updated)
    try:
        if previous.resource.type is not Kubernetes:
            _check_status(after, updated)
    except InputError as error:
        raise unreadable(previous.resource, previous.key, error) from None
    if found := list(_status_findings(previous, updated)):
        raise invalid_fields(previous.resource, previous.key, found)
    return after


def _status_findings(previous: Stored, raw: Raw) -> Iterator[Finding]:
    """Yield what the status of a kind with rules of its own breaks.

    Only an allocated claim is reserved, and it reports only about its devices (ValidateResourceClaimStatusUpdate).
    """
    match previous.resource.name:
        case "Job":
            spec, old, new = object_at(raw, "spec"), object_at(previous.raw, "status"), raw["status"]
            found = job_status_findings(spec, old, new)
            known = job_status_findings(spec, old, old) if found else ()
            yield from (finding for finding in found if finding not in known)
        case "Pod":
            phase = value_at(previous.raw, "status", "phase")
            if phase in TERMINAL_PHASES and value_at(raw, "status", "phase") != phase:
                yield Finding("status.phase", "FieldValueInvalid", f"it has ended; its phase stays {phase}")
        case "ResourceClaim":
            if objects_at(raw, "status", "reservedFor") and not value_at(raw, "status", "allocation"):
                yield forbidden("status.reservedFor", "may not be specified when `allocated` is not set")
            results = objects_at(raw, "status", "allocation", "devices", "results")
            allocated = [[one.get(field) for field in _DEVICE] for one in results]
            for index, one in enumerate(objects_at(raw, "status", "devices")):
                if [one.get(field) for field in _DEVICE] not in allocated:
                    problem = "must be an allocated device in the claim"
                    yield Finding(f"status.devices[{index}]", "FieldValueInvalid", problem)


def _check_status(object_: Kubernetes, raw: Raw) -> None:
    """Raise InputError for a status that cannot be processed; the rest of the object is right."""
    place = Place(raw, Findings())
    if isinstance(object_, DisruptionPolicy):
        validate(object_, raw)
    elif not isinstance(object_, Pod):
        check_usable(place, raw["kind"], "status")
    elif (status := place.child("status")) is not None:
        check_usable(status, "PodStatus")


def _check_shape(previous: Stored, status: Any) -> None:
    """Raise StoreError 400 for a status that is not an object, and for conditions that are not a list of objects."""
    if not isinstance(status, dict):
        raise bad_request(f"{previous.kind} {previous.key}: .status: {shown(status)} is not an object")
    conditions = status.get("conditions")
    are_objects = isinstance(conditions, list) and all(isinstance(condition, dict) for condition in conditions)
    if conditions is not None and not are_objects:
        problem = f"{shown(conditions)} is not a list of objects"
        raise bad_request(f"{previous.kind} {previous.key}: .status.conditions: {problem}")


def _findings(raw: Raw, previous: Raw | None, is_new: bool, custom: bool | None) -> Sequence[Finding]:
    """Return the relevant problems of an object."""
    if is_new:
        return find_problems(raw, custom)
    if previous is None or {**raw, "status": None} == {**previous, "status": None}:
        return ()
    found = find_problems(raw, custom)
    known = frozenset(find_problems(previous, custom)) if found else frozenset()
    return [finding for finding in found if finding not in known]


def _refusal(resource: APIResource, key: str, raw: Raw, findings: Sequence[Finding]) -> StoreError:
    """Return the refusal of an object that breaks rules or has a value of the wrong type."""
    for malformed in schema.findings(raw, advises=False):
        if not malformed.is_unknown:
            error = MalformedError(malformed.message, path=malformed.path)
            return bad_request(str(error.located(object=f"{resource.kind} {key}")))
    return invalid_fields(resource, key, findings)


def replaced(previous: Stored, raw: Raw) -> Raw:
    """Return the object of an update: `raw`, except for the status and fields that only the server writes.

    The generation, if the kind has one, counts the changes of everything except metadata and status.
    """
    kept = previous.raw["metadata"]
    metadata = {name: value for name, value in raw["metadata"].items() if name not in _KEPT and value not in EMPTY}
    metadata |= {name: kept[name] for name in _KEPT if name in kept}
    updated = {**raw, "metadata": metadata}
    if previous.resource.has_status:
        updated.pop("status", None)
        if "status" in previous.raw:
            updated["status"] = previous.raw["status"]
    if previous.resource.name == "Pod":
        updated = readmit_pod(updated, previous.raw)
    elif previous.resource.name == "Job":
        updated = with_kept_selector(updated, previous.raw)
    elif previous.resource.type is PodGroup:
        updated = readmit_group(updated, previous.raw)
    if previous.resource.has_generation and _content(previous, updated) != _content(previous, previous.raw):
        metadata["generation"] = metadata.get("generation", 0) + 1
    return updated


# The built-in kinds whose status updates change no metadata, and those where they keep this field (PrepareForUpdate of
# the status strategies).
_STATUS_ALONE = frozenset(
    """
    APIService DeviceTaintRule DisruptionPolicy FlowSchema PodGroup
    PriorityLevelConfiguration ResourceClaim ServiceCIDR ValidatingAdmissionPolicy VolumeAttachment
    """.split()
)
_KEPT_IN_STATUS = {"Deployment": "labels", "Pod": "ownerReferences"}
_OPEN_IN_STATUS = ("annotations", "finalizers", "labels", "ownerReferences")


def open_in_status(resource: APIResource) -> Sequence[str]:
    """Return the metadata fields that a status update of the kind may change."""
    if resource.is_custom or resource.name in _STATUS_ALONE:
        return ()
    return [name for name in _OPEN_IN_STATUS if name != _KEPT_IN_STATUS.get(resource.name)]


def metadata_of_status(previous: Stored, given: Raw | None) -> Raw:
    """Return the metadata after a status update with this metadata; None changes nothing."""
    kept: Raw = previous.raw["metadata"]
    fields = open_in_status(previous.resource)
    if given is None or given is kept or all((given.get(name) or None) == (kept.get(name) or None) for name in fields):
        return kept
    metadata = {name: value for name, value in kept.items() if name not in fields}
    return metadata | {name: given[name] for name in fields if given.get(name)}


def identity(resource: APIResource, raw: Raw) -> tuple[str, str, str]:
    """Return the key of an object to update, and its uid and version as preconditions; "" matches any.

    Without a namespace, a namespaced object is in `default`. Raises StoreError 400 for an object without a name.
    """
    metadata = raw.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str) or not metadata["name"]:
        raise bad_request("metadata.name is missing: an update names its object")
    if resource.namespaced and not metadata.get("namespace"):
        metadata = {**metadata, "namespace": "default"}
    return key_of(metadata), *preconditions_of(metadata)


def _content(previous: Stored, raw: Raw) -> Raw:
    without = (*_NO_CONTENT, "status") if previous.resource.has_status else _NO_CONTENT
    return {name: value for name, value in raw.items() if name not in without}


def with_generated_selector(job: Raw, name: str, uid: str) -> Raw:
    """Return a new Job that selects its pods by its uid, unless it has a manual selector."""
    spec = job.get("spec") or {}
    if spec.get("manualSelector"):
        return job
    selector = spec.get("selector") or {}
    matched = {_OWN[0]: uid, **(selector.get("matchLabels") or {})}
    return _selecting(job, {**selector, "matchLabels": matched}, dict(zip(_OWN, (uid, name, uid, name), strict=True)))


def with_kept_selector(job: Raw, previous: Raw) -> Raw:
    """Return an updated Job; a selector and labels that the update omits keep their generated values.

    The Job has not been validated yet: a malformed one is returned unchanged, for validation to report.
    """
    selector = (previous.get("spec") or {}).get("selector")
    path = ("spec", "template", "metadata", "labels")
    within = (value_at(job, *path[:depth]) for depth in range(1, len(path) + 1))
    has_place = all(part is None or isinstance(part, dict) for part in within)
    if not selector or not has_place or (job.get("spec") or {}).get("selector"):
        return job
    given = object_at(previous, *path)
    return _selecting(job, selector, {name: given[name] for name in _OWN if name in given})


def _selecting(job: Raw, selector: Raw, labels: Mapping[str, str]) -> Raw:
    spec = job.get("spec") or {}
    template = spec.get("template") or {}
    metadata = {**(template.get("metadata") or {}), "labels": {**labels, **object_at(template, "metadata", "labels")}}
    return {**job, "spec": {**spec, "template": {**template, "metadata": metadata}, "selector": selector}}
