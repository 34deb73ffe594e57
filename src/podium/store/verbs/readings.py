"""The typed readings of objects that are written, and what validation makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from podium.api.errors import InputError, MalformedError, shown
from podium.api.meta import Kubernetes, Raw
from podium.api.pod import TERMINAL_PHASES, Pod, PodSpec, PodStatus
from podium.api.pod_specs import SharedSpec, shared_spec
from podium.api.reading import read
from podium.api.schemas import structure
from podium.api.soundness.objects import check_metadata, validate
from podium.api.soundness.pod import check_pod_status
from podium.api.validation.finding import Finding
from podium.api.validation.objects import find_problems
from podium.store.api_resource import APIResource
from podium.store.errors import StoreError, bad_request, invalid, invalid_fields, unreadable
from podium.store.stored import Stored, reread, status_type

Reading = TypeVar("Reading", bound=Kubernetes)


def shared_spec_of(resource: APIResource, raw: Raw) -> SharedSpec | None:
    """The specification of a pod that is right; None for any other, and for other objects."""
    return shared_spec(raw["spec"]) if resource.type is Pod and "spec" in raw else None


def decoded(
    resource: APIResource,
    raw: Raw,
    shared: SharedSpec | None,
    previous: Raw | None = None,
    *,
    is_new: bool = False,
) -> Kubernetes:
    """The reading of an object, validated, which has the `shared` specification where it is a pod with one.

    Of one that `is_new`, all is refused that kube-apiserver refuses; of one that takes the place of `previous`, what
    was not wrong with that one; of any other, such as from a dump, only what nothing can be done with.

    Raises StoreError: 400 where a value cannot be read as what its field holds, 422 where the object breaks a rule.
    """
    try:
        object_ = read(raw, resource.type) if shared is None else _read_pod(raw, shared.spec)
        custom = resource.namespaced if resource.type is Kubernetes else None
        findings = _findings(raw, previous, is_new, custom)
        if findings:
            raise _refusal(resource, object_.key, raw, findings)
        if resource.type is Kubernetes:
            check_metadata(object_, resource.namespaced)
        elif shared is not None and isinstance(object_, Pod):
            check_metadata(object_, resource.namespaced)
            check_pod_status(object_.status)
        else:
            validate(object_)
    except InputError as error:
        raise unreadable(resource, _label(raw), error) from None
    return object_


def filled_in(resource: APIResource, object_: Kubernetes, old: Raw, new: Raw) -> tuple[Raw, Kubernetes]:
    """Both forms of an object with what admission filled in, where `object_` is the reading of `old`.

    Raises StoreError as `decoded` does for what cannot be read.
    """
    shared = shared_spec_of(resource, new)
    if shared is None:
        return new, rereading(resource, object_, old, new)
    new, old = {**new, "spec": shared.raw}, {**old, "spec": shared.raw}
    return new, rereading(resource, msgspec.structs.replace(object_, spec=shared.spec), old, new)


def rereading(resource: APIResource, object_: Reading, old: Raw, new: Raw) -> Reading:
    """As `reread`, and raises StoreError as `decoded` does for what cannot be read."""
    try:
        return reread(object_, old, new)
    except msgspec.ValidationError:
        try:
            return read(new, type(object_))
        except InputError as error:
            raise unreadable(resource, object_.key, error) from None


def with_status(previous: Stored, updated: Raw) -> Kubernetes:
    """The reading of an object of which the status alone is another.

    Raises StoreError: 400 for a status that cannot be read, 422 for one that its kind does not have, and for another
    phase of a pod that has ended.
    """
    object_ = previous.object
    if isinstance(object_, Pod):
        return _pod_with_status(previous, object_, updated)
    if previous.resource.is_custom:
        return object_
    _check_shape(previous, updated["status"])
    type_ = status_type(type(object_))
    if type_ is not None:
        try:
            object_ = msgspec.structs.replace(object_, status=msgspec.convert(updated["status"], type_))
        except msgspec.ValidationError:
            object_ = rereading(previous.resource, object_, previous.raw, updated)
    if previous.resource.type is not Kubernetes:
        try:
            validate(object_)
        except InputError as error:
            raise unreadable(previous.resource, previous.key, error) from None
    return object_


def _pod_with_status(previous: Stored, pod: Pod, updated: Raw) -> Pod:
    try:
        status = msgspec.convert(updated["status"], PodStatus)
    except msgspec.ValidationError:
        _check_shape(previous, updated["status"])
        status = rereading(previous.resource, pod, previous.raw, updated).status
    try:
        check_pod_status(status)
    except InputError as error:
        raise unreadable(previous.resource, previous.key, error) from None
    before = pod.status.phase
    if before in TERMINAL_PHASES and status.phase != before:
        raise invalid(previous.resource, previous.key, f"it has ended; its phase stays {before}", "status.phase")
    return msgspec.structs.replace(pod, status=status)


def _read_pod(raw: Raw, spec: PodSpec) -> Pod:
    """The reading of a pod with this specification. Raises InputError."""
    rest = {name: value for name, value in raw.items() if name != "spec"}
    return msgspec.structs.replace(read(rest, Pod), spec=spec)


def _check_shape(previous: Stored, status: Any) -> None:
    """Raise StoreError 400 for a status that is no object, and for conditions that are no list of objects."""
    if not isinstance(status, dict):
        raise bad_request(f"{previous.kind} {previous.key}: .status: {shown(status)} is not an object")
    conditions = status.get("conditions")
    if conditions is not None and not (
        isinstance(conditions, list) and all(isinstance(condition, dict) for condition in conditions)
    ):
        problem = f"{shown(conditions)} is not a list of objects"
        raise bad_request(f"{previous.kind} {previous.key}: .status.conditions: {problem}")


def _findings(raw: Raw, previous: Raw | None, is_new: bool, custom: bool | None) -> Sequence[Finding]:
    """What is wrong with an object, as far as it counts."""
    if is_new:
        return find_problems(raw, custom)
    if previous is None or _without_status(raw) == _without_status(previous):
        return ()
    found = find_problems(raw, custom)
    known = frozenset(find_problems(previous, custom)) if found else frozenset()
    return [finding for finding in found if finding not in known]


def _refusal(resource: APIResource, key: str, raw: Raw, findings: Sequence[Finding]) -> StoreError:
    """The object breaks rules; or it has a value that its field cannot hold, which nobody reads any further."""
    for malformed in structure.findings(raw, advises=False):
        if not malformed.is_unknown:
            error = MalformedError(malformed.message, path=malformed.path)
            return bad_request(str(error.located(object=f"{resource.kind} {key}")))
    return invalid_fields(resource, key, findings)


def _without_status(raw: Raw) -> Raw:
    return {**raw, "status": None}


def _label(raw: Raw) -> str:
    metadata = raw.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    name, namespace = metadata.get("name", ""), metadata.get("namespace")
    return f"{namespace}/{name}" if namespace else str(name)
