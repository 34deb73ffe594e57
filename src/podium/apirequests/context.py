"""The context of an answer: the store, the rules, and the object in the request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import msgspec

from podium.api.checks import MAX_ENTRIES
from podium.api.disruption_policy import SCHEDULER
from podium.api.errors import field_path, shown
from podium.api.meta import Raw, key_of, list_at, object_at, value_at
from podium.api.node import NOT_READY
from podium.api.pod import MIRROR_ANNOTATION
from podium.api.pod_group import GROUP_PROTECTION
from podium.api.schemas.schema import findings, without_unknown
from podium.api.storage import CLAIM_PROTECTION, CLASS_PROTECTION, VOLUME_PROTECTION
from podium.api.structural.structural import TooLargeError, shaped
from podium.api.times import format_time
from podium.apirequests.request import Request, Response, check_name
from podium.store import api_resources, patching, version_conversion
from podium.store.admission import defaults, service_addresses
from podium.store.api_resources import POD, APIResource
from podium.store.errors import StoreError, bad_request, forbidden, invalid, too_large_object
from podium.store.field_ownership import FieldManager, FieldWriter, Operation, shape_of
from podium.store.store import Store
from podium.store.stored import Stored

_OPERATION = ("op", "path", "from", "value")
_ANYBODY = ("", "system:anonymous", "system:unsecured")
_COMPONENTS = ("kube-controller-manager", "kube-scheduler", "kubelet", "cloud-controller-manager")
_COMPONENT_USERS = ("system:kube-", "system:node:", "system:serviceaccount:kube-system:")

DELETE_ANNOTATION = "podium.dev/delete"
"""The pod annotation that says how its deletion is handled; `direct` means as in Kubernetes."""

DIRECT = "direct"


@dataclass(frozen=True, slots=True)
class RequestRules:
    """The administrator's choices for request handling, beyond what Kubernetes offers.

    `deletes_by_eviction`: a pod deletion by a person is treated as an eviction (controlled-rescheduling.md). It is
    checked and answered as an eviction, except with a grace period of 0 (`kubectl delete --force`) or for a pod with
    the annotation `podium.dev/delete: direct`. The components of a cluster, recognized by their names, delete as usual,
    such as a controller that scales down.

    `components` maps identities to components, whose caps count their evictions, regardless of what the requests state.
    For an identity that is not listed, the annotation of the Eviction counts. An identity is the name of a user, or if
    users are not distinguished, the field manager, which over HTTP is the program's name.

    `token_key` signs the tokens of service accounts; without it they are not accepted.
    """

    deletes_by_eviction: bool = False
    token_key: bytes = field(default=b"", repr=False)
    components: Mapping[str, str] = field(
        default_factory=lambda: MappingProxyType({"system:kube-scheduler": SCHEDULER, "kube-scheduler": SCHEDULER})
    )

    def is_person(self, request: Request) -> bool:
        """Return whether a person sent the request, and not a component of the cluster."""
        identity = identity_of(request)
        return bool(identity) and identity not in _COMPONENTS and not identity.startswith(_COMPONENT_USERS)


def identity_of(request: Request) -> str:
    """Return the identity behind a request; "" is a component in the same process."""
    return request.user if request.user not in _ANYBODY else request.field_manager or request.user


DEFAULT_RULES = RequestRules()


CREATED: Raw = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


class Context(msgspec.Struct, frozen=True):
    """The store that answers, and the rules by which it does.

    With `creates_new`, created objects are new, and clients cannot set the fields that only the server sets.
    """

    store: Store
    rules: RequestRules
    creates_new: bool

    def object_of(self, request: Request, now: int, *, completes: bool = True) -> Raw:
        """Return the object in the body, if its kind, name and namespace match the request.

        An object of a built-in kind is in its storage version, and `completes` fills in its defaults. Nulls in it mean
        absent fields. Raises StoreError 400 and 404.
        """
        raw = request.body
        if not isinstance(raw, dict):
            raise bad_request(f"{shown(raw)} is not an object")
        resource = self.store.resources.of(raw)
        if resource.name != request.kind:
            raise bad_request(f"the object is a {resource.name}, and the request is about a {request.kind}")
        raw = _in_place(raw, request)
        if not self.creates_new:
            return self.completed(resource, raw, now)
        version = request.api_version or str(raw["apiVersion"])
        if raw["apiVersion"] != version:
            problem = (
                f"the API version in the data ({shown(raw['apiVersion'])}) does not match the expected API version"
            )
            raise bad_request(f"{problem} ({version})")
        if resource.is_custom:
            return raw
        raw = version_conversion.as_stored(resource, patching.without_nulls(raw, raw), version)
        return self.completed(resource, raw, now) if completes else raw

    def completed(self, resource: APIResource, raw: Raw, now: int) -> Raw:
        """Return an object of a built-in kind with its defaults.

        A new one also gets the finalizer that protects it, the volume of its service account's token, or the taint of
        nodes that no controller has found ready yet.
        """
        if resource.name not in _DEPENDENT:
            return defaults.with_defaults(resource.name, raw) if self.creates_new else raw
        metadata = object_at(raw, "metadata")
        key = key_of({"namespace": "default", **metadata} if resource.namespaced else metadata)
        stored = self.store.find(resource.name, key)
        if stored is not None and resource.name in defaults.TAINTING:
            raw = defaults.with_taint_times(raw, stored.raw, format_time(now))
        if not self.creates_new:
            return raw
        given, raw = raw, defaults.with_defaults(resource.name, raw)
        if resource.name == "Pod":
            return self._with_token(given, raw) if stored is None else raw
        if resource.name == "Service":
            return self._with_allocations(resource, key, raw, stored)
        if resource.name == "Namespace" and stored is not None:
            return {**raw, "spec": object_at(stored.raw, "spec")}
        if stored is not None or resource.name not in _ADDED:
            return raw
        self.store.note_unadmitted(raw)
        section, name, added = _ADDED[resource.name]
        listed = list_at(raw, section, name)
        if any(one == added or (isinstance(one, dict) and added.items() <= one.items()) for one in listed):
            return raw
        return {**raw, section: {**object_at(raw, section), name: [*listed, added]}}

    def _with_token(self, given: Raw, raw: Raw) -> Raw:
        """Return a new pod that has its defaults with the volume of its token; a mirror pod as it is.

        Raises StoreError 403 if its service account is missing.
        """
        self.store.note_unadmitted(defaults.without_account(raw, given))
        metadata = object_at(raw, "metadata")
        if MIRROR_ANNOTATION in object_at(metadata, "annotations"):
            return raw
        name, namespace = object_at(raw, "spec").get("serviceAccountName"), metadata.get("namespace", "default")
        account = self.store.find("ServiceAccount", f"{namespace}/{name}")
        if account is None and self.store.requires_accounts and self.store.find("Namespace", namespace) is not None:
            problem = f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found'
            raise forbidden(POD, key_of({"namespace": namespace, **metadata}), problem)
        return defaults.with_token_volume(raw, {} if account is None else account.raw)

    def _with_allocations(self, resource: APIResource, key: str, raw: Raw, stored: Stored | None) -> Raw:
        """Return a Service with its addresses and ports; `stored` is its former version. Raises StoreError 422."""
        previous = None if stored is None else stored.raw
        others = [service.raw for service in self.store.objects("Service") if service is not stored]
        networks = service_addresses.service_networks(of.raw for of in self.store.objects("ServiceCIDR"))
        complete = service_addresses.with_addresses(raw, previous, others, networks)
        if stored is None:
            self.store.note_unadmitted(service_addresses.without_allocations(complete, raw))
        if found := service_addresses.allocation_problem(complete, previous, others, networks):
            path, problem = found
            raise invalid(resource, key, problem, path)
        return complete

    def writer(self, resource: APIResource, request: Request, operation: Operation, now: int) -> FieldWriter:
        api_version = request.api_version or resource.api_version
        version = api_version if operation == "Update" else ""
        manager = FieldManager(request.field_manager, operation, version, request.subresource)
        return FieldWriter(manager, resource, shape_of(self.store.resources, resource, api_version), api_version, now)


# What admission adds to new objects: taints and finalizers (plugin/pkg/admission: nodetaint, podgroupprotection,
# storage/storageobjectinuseprotection).
_ADDED: Mapping[str, tuple[str, str, Any]] = {
    "Node": ("spec", "taints", {"key": NOT_READY, "effect": "NoSchedule"}),
    "PersistentVolume": ("metadata", "finalizers", VOLUME_PROTECTION),
    "PersistentVolumeClaim": ("metadata", "finalizers", CLAIM_PROTECTION),
    "PodGroup": ("metadata", "finalizers", GROUP_PROTECTION),
    "VolumeAttributesClass": ("metadata", "finalizers", CLASS_PROTECTION),
}
# The kinds whose defaults depend on other objects or the time, or that admission changes when they are created.
_DEPENDENT = frozenset((*_ADDED, *defaults.TAINTING, "Namespace", "Pod", "Service"))


def object_response(stored: Stored) -> Response:
    """Return the response for a stored object."""
    return Response(object=stored.raw, stored=stored)


def _in_place(raw: Raw, request: Request) -> Raw:
    """Return the object with the request's name and namespace. Raises StoreError 400 if its own differ."""
    metadata = raw.get("metadata", {})
    if not isinstance(metadata, dict):
        return raw
    namespace, _, name = request.key.rpartition("/") if request.key else (request.namespace, "", "")
    if request.key:
        check_name(metadata, request.key)
    elif namespace and metadata.get("namespace") not in (None, "", namespace):
        problem = f"the namespace of the object ({shown(metadata['namespace'])}) does not match that of the request"
        raise bad_request(f"{problem} ({shown(namespace)})")
    wanted = {field: value for field, value in (("name", name), ("namespace", namespace)) if value}
    return raw if wanted.items() <= metadata.items() else {**raw, "metadata": {**metadata, **wanted}}


MOST_ENTRIES = 10_000
"""The maximum number of entries in a list or a map in an object."""

MOST_IN_ALL = 50_000
"""The maximum total number of entries in all lists and maps of an object."""

_ENCODER = msgspec.json.Encoder()
# Kinds whose size is limited only by that of the request body.
_HOLDERS = frozenset(("ConfigMap", "CustomResourceDefinition", "Secret"))
# Lists whose entries take long to validate.
_LONG_LISTS = """
containers ephemeralContainers imagePullSecrets initContainers nodeSelectorTerms resourceClaims schedulingGates
preferredDuringSchedulingIgnoredDuringExecution requiredDuringSchedulingIgnoredDuringExecution tolerations
topologySpreadConstraints volumes
"""
_LONG = frozenset(_LONG_LISTS.split())
# Maps whose entries are validated very quickly.
_QUICK = frozenset(("annotations", "labels"))


def check_size(resource: APIResource, key: str, body: Any) -> None:
    """Raise StoreError 422 for an object of a built-in kind, or a patch of one, with too many entries."""
    if resource.is_custom or resource.name in _HOLDERS:
        return
    with suppress(OverflowError, RecursionError, TypeError, ValueError):
        # The shortest list that is too long has two bytes per entry.
        if len(_ENCODER.encode(body)) <= 2 * MAX_ENTRIES:
            return

    def refused(problem: str, path: str) -> StoreError:
        name = key or str(object_at(body, "metadata").get("name", ""))
        return invalid(resource, name, f"Too many: {problem}", path, "FieldValueTooMany")

    left = MOST_IN_ALL
    # The number of operations of a JSON patch has a limit of its own; this check covers the values.
    operations = body if isinstance(body, list) else [{"value": body}]
    found: list[tuple[str, str, Any]] = [("", "", part.get("value")) for part in operations if isinstance(part, dict)]
    while found:
        path, name, value = found.pop()
        if not isinstance(value, dict | list):
            continue
        most = MAX_ENTRIES if name in _LONG and isinstance(value, list) else MOST_ENTRIES
        most = MOST_IN_ALL if name in _QUICK else most
        if len(value) > most:
            raise refused(f"{len(value)}: must have at most {most} items", path or "metadata")
        left -= len(value)
        if left < 0:
            raise refused(f"the object must have at most {MOST_IN_ALL} fields and items in all", path)
        if isinstance(value, dict):
            found += [
                (field_path(path, key_), key_, part) for key_, part in value.items() if isinstance(part, dict | list)
            ]
        else:
            found += [(f"{path}[{index}]", "", part) for index, part in enumerate(value) if part]


def checked_fields(resources: api_resources.APIResources, request: Request, raw: Raw) -> tuple[Raw, tuple[str, ...]]:
    """Return the object without unknown fields, and the warnings about unknown and repeated ones.

    An object is returned as it is if the request does not validate fields. Fields that the schema of a custom kind does
    not know are pruned on writing. Raises StoreError 400 for unknown and repeated fields in strict mode, for an invalid
    `fieldValidation`, and for a field whose value has the wrong type; and 500 as kube-apiserver does for an unknown
    field in an applied configuration.
    """
    mode = request.field_validation
    if not mode:
        return raw, ()
    raw, repeated = _without_repeated_owners(request, raw)
    if mode not in ("Ignore", "Warn", "Strict"):
        raise bad_request(f"fieldValidation: {shown(mode)} is not one of Ignore, Warn, Strict")
    structural = resources.structural(resources.of(raw), str(raw["apiVersion"]))
    if structural is not None:
        try:
            unknown = [] if mode == "Ignore" and not _applies(request) else shaped(raw, structural)[1]
        except TooLargeError:
            raise too_large_object() from None
    else:
        found = findings(raw, advises=False)
        for finding in found:
            if not finding.is_unknown:
                problem = f"{finding.path.removeprefix('.')}: {finding.message}"
                if request.verb == "patch" and not _applies(request):
                    raise StoreError(422, "Invalid", f'"" is invalid: patch: Invalid value: {problem}')
                raise bad_request(f"{_unhandled(raw)}: {problem}")
        unknown = [finding.path.removeprefix(".") for finding in found]
    warnings = _field_warnings(request, raw, unknown, is_typed=structural is None)
    return without_unknown(raw), (*warnings, *repeated)


def _without_repeated_owners(request: Request, raw: Raw) -> tuple[Raw, list[str]]:
    """Return the object with each owner once, and the warning about repeated ones (dedupOwnerReferences)."""
    owners = list_at(raw, "metadata", "ownerReferences")
    distinct, repeated = list[Any](), list[Any]()
    for owner in owners:
        (repeated if owner in distinct else distinct).append(owner)
    if not repeated:
        return raw, []
    when = " after mutating admission happens" if request.verb == "patch" else ""
    what = f".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+"
    uids = ", ".join(str(value_at(owner, "uid")) for owner in repeated)
    how = f"may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {uids}"
    return {**raw, "metadata": {**raw["metadata"], "ownerReferences": distinct}}, [f"{what}, and {how}"]


def _applies(request: Request) -> bool:
    return request.verb == "patch" and request.patch_type == "apply"


def _field_warnings(request: Request, raw: Raw, paths: list[str], *, is_typed: bool) -> tuple[str, ...]:
    """Return the warnings about the unknown fields at these paths, and about repeated ones.

    Those of a built-in kind in JSON come in the order in which they are written. Otherwise repeated fields come first,
    and unknown ones by path: upstream reads the object again without the repeated ones, from JSON with sorted keys.
    """
    mode, repeated = request.field_validation, request.repeated
    in_lines = "".join(f"\n  {problem}" for problem in repeated if problem.startswith("line "))
    lines = [f"yaml: unmarshal errors:{in_lines}"] if in_lines else []
    if _applies(request):
        if lines and mode == "Strict":
            raise _not_strict(f"error strict decoding YAML: error converting YAML to JSON: {lines[0]}")
        if paths:
            # The message of managedfields' structuredmerge.go.
            namespace, _, name = request.key.rpartition("/")
            undeclared = [f".{path}: field not declared in schema" for path in paths]
            listed = undeclared[0] if len(paths) == 1 else "".join(["errors:", *(f"\n  {one}" for one in undeclared)])
            of = f"{namespace}/{name}; {raw['apiVersion']}, Kind={raw['kind']}"
            message = f"failed to create typed patch object ({of}): {listed}"
            raise StoreError(500, "", message, status_message=message)
    is_as_written = is_typed and not lines and request.verb != "patch"
    unknown = [f'unknown field "{path}"' for path in (paths if is_as_written else sorted(paths))]
    if request.verb == "patch" and request.patch_type == "json":
        repeated = tuple(f"json patch {problem}" for problem in (*_unknown_in_operations(request.body), *repeated))
    found = _as_written(raw, frozenset(paths), repeated) if is_as_written and repeated else [*repeated, *unknown]
    if found and mode == "Strict":
        raise _not_strict(
            f"{_unhandled(raw)}: strict decoding error: {', '.join([*lines, *unknown] if lines else found)}"
        )
    return () if mode == "Ignore" else tuple(found)


def _unknown_in_operations(operations: list[Raw]) -> list[str]:
    """Return the problems of unknown fields in the operations of a JSON patch."""
    named = ((index, name) for index, each in enumerate(operations) for name in each if name not in _OPERATION)
    return [f'unknown field "[{index}].{name}"' for index, name in named]


def _as_written(value: Any, unknown: Set[str], repeated: Sequence[str], path: str = "") -> list[str]:
    """Return the problems of unknown and repeated fields in their written order, none of fields within unknown ones."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    problems: list[str] = []
    for key, inner in entries:
        place = f"{path}[{key}]" if isinstance(value, list) else field_path(path, str(key)).removeprefix(".")
        if place in unknown:
            problems.append(f'unknown field "{place}"')
            continue
        text = f'duplicate field "{place}"'
        problems += [text] if text in repeated else []
        problems += _as_written(inner, unknown, repeated, place)
    return problems


def _not_strict(problem: str) -> StoreError:
    """Return the refusal of unknown and repeated fields, which may have several lines."""
    return StoreError(400, "BadRequest", problem, status_message=problem)


def _unhandled(raw: Raw) -> str:
    version = shown(str(raw["apiVersion"]).rpartition("/")[2])
    return f"{raw['kind']} in version {version} cannot be handled as a {raw['kind']}"
