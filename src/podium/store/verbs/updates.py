"""Updates: immutable fields (the ValidateUpdate functions of pkg/apis), and the parts that subresources write.

The schemas of the kinds list immutable fields (`podium.api.schemas.schema`), except for those with special rules. The
subresource scale has the desired and actual replicas of a workload (autoscaling/v1 Scale).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from podium.api.meta import Raw, object_at, objects_at, value_at
from podium.api.pod import MIRROR_ANNOTATION, PodSpec
from podium.api.quantity import CPU, MEMORY, parse_quantity
from podium.api.resource_requests import qos_class
from podium.api.schemas.schema import immutable_paths
from podium.api.selectors import compile_label_selector, selector_from_labels
from podium.api.times import format_time
from podium.api.validation import findings
from podium.api.validation.findings import Finding, forbidden
from podium.api.validation.volumes import sources
from podium.api.versions.gates import Gate
from podium.api.versions.release import Release
from podium.api.workloads import Replicated, ReplicationController
from podium.store.admission.defaults import with_defaults
from podium.store.api_resources import APIResource
from podium.store.errors import StoreError, bad_request, invalid, invalid_fields, unknown_kind
from podium.store.stored import Stored, is_true
from podium.store.verbs.readings import decoded

_DIRECTING = ("nodeSelector", "tolerations", "schedulingGates")
_IMMUTABLE = "field is immutable"
_CLAIM = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
_SEALED = ("ConfigMap", "Secret")
_SEALED_FIELDS = ("immutable", "data", "binaryData")
_FORBIDDEN_POD_CHANGE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
SCALE = APIResource(group="autoscaling", kind="Scale", plural="scales", namespaced=True)
_IN_SCALES = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def check_job_update(previous: Stored, raw: Raw, release: Release) -> None:
    """Raise StoreError 422 for an update of a Job that changes immutable fields.

    The template is immutable. In that of a suspended Job that never started, scheduling directives may change; with the
    gates of the release also if it had started and no pod is active, and then also the containers' resources.
    """
    old, new = _specs(previous, raw)
    is_changed = (previous.raw.get("spec") or {}).get("completions") != (raw.get("spec") or {}).get("completions")
    if is_changed and old.get("completions") != new.get("completions"):
        # Those of an indexed Job may change together with its parallelism.
        if new.get("completionMode") != "Indexed":
            raise _invalid(previous, "spec.completions", _IMMUTABLE)
        if new.get("completions") != new.get("parallelism"):
            raise _invalid(previous, "spec.completions", "can only be modified in tandem with spec.parallelism")
    status, is_suspended = previous.raw.get("status", {}), old.get("suspend") is True
    is_unstarted = is_suspended and not status.get("startTime")
    has_stopped = is_unstarted or is_true(status.get("conditions"), "Suspended")
    is_at_rest = is_suspended and not status.get("active") and has_stopped
    is_open = is_at_rest if release.enabled(Gate.MUTABLE_JOB_DIRECTIVES) else is_unstarted
    has_open_resources = is_at_rest and release.enabled(Gate.MUTABLE_JOB_RESOURCES)
    fixed = [
        _fixed_part(spec.get("template"), is_open=is_open, has_open_resources=has_open_resources) for spec in (old, new)
    ]
    if fixed[0] != fixed[1]:
        raise _invalid(previous, "spec.template", _IMMUTABLE)


def _fixed_part(template: Any, *, is_open: bool, has_open_resources: bool) -> Any:
    """Return the immutable part of a template.

    If it `is_open`, placement, labels and annotations may change; resources if it `has_open_resources`.
    """
    if not (is_open or has_open_resources) or not isinstance(template, dict):
        return template
    metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
    if has_open_resources:
        names = [name for name in ("containers", "initContainers") if name in spec]
        spec = spec | {name: [{**container, "resources": None} for container in spec[name]] for name in names}
    if not is_open:
        return metadata, spec
    affinity = {name: value for name, value in (spec.get("affinity") or {}).items() if name != "nodeAffinity" and value}
    kept = {name: value for name, value in spec.items() if name not in (*_DIRECTING, "affinity")}
    marks = {name: value for name, value in metadata.items() if name not in ("annotations", "labels") and value}
    return marks, affinity, kept


def _check_volume(previous: Stored, raw: Raw) -> None:
    """Raise StoreError 422 for a change of a volume's source."""
    old, new = _specs(previous, raw)
    if any(old.get(source) != new.get(source) for source in sources("PersistentVolumeSource")):
        path = "spec.persistentvolumesource"
        raise _forbidden(previous, path, f"{path} is immutable after creation")


def _check_claim(previous: Stored, raw: Raw) -> None:
    """Raise StoreError 422 for an update of a claim that changes immutable fields.

    Volume and default class are set once; a bound claim can request more storage, and other attributes.
    """
    old, new = _specs(previous, raw)
    open_fields = [name for name in ("volumeName", "storageClassName") if not old.get(name)]
    status = previous.raw.get("status") or {}
    if status.get("phase") == "Bound":
        open_fields += ["resources", "volumeAttributesClassName"]
    for field in _changed(old, new, {*old, *new} - set(open_fields)):
        raise _forbidden(previous, "spec", f"{_CLAIM}; this one changes {field}")
    # The claim has been validated, so the quantities parse.
    before, after = (parse_quantity(object_at(spec, "resources", "requests").get("storage", 0)) for spec in (old, new))
    had = (status.get("capacity") or {}).get("storage")
    if after < before and had is not None and after <= parse_quantity(had):
        raise _forbidden(previous, "spec.resources.requests.storage", "field can not be less than status.capacity")


def _specs(previous: Stored, raw: Raw) -> tuple[Raw, Raw]:
    """Return both specs with defaults filled in, so that an unset field equals its default."""
    kind = previous.kind
    old, new = (with_defaults(kind, {"spec": given.get("spec", {})})["spec"] for given in (previous.raw, raw))
    return old, new


def _changed(old: Raw, new: Raw, fields: Iterable[str]) -> list[str]:
    """Return the changed fields by name; an absent value, an empty list and an empty object are equal to Kubernetes."""
    return [field for field in sorted(fields) if (old.get(field) or None) != (new.get(field) or None)]


def _differ(old: Raw, new: Raw, path: tuple[str, ...]) -> bool:
    return (value_at(old, *path) or None) != (value_at(new, *path) or None)


def check_update(previous: Stored, raw: Raw, release: Release) -> None:
    """Raise StoreError 422 for an update that changes immutable fields; an unset field equals its default."""
    resource, kind = previous.resource, previous.kind
    for path in immutable_paths(resource.group, resource.kind):
        is_changed = _differ(previous.raw, raw, path)
        if is_changed and _differ(with_defaults(kind, previous.raw), with_defaults(kind, raw), path):
            raise _invalid(previous, ".".join(path), _IMMUTABLE)
    if previous.raw.get("immutable") is True and resource.name in _SEALED:
        for field in _SEALED_FIELDS:
            if previous.raw.get(field) != raw.get(field):
                raise _forbidden(previous, field, "field is immutable when `immutable` is set")
    if (check := _CHECKS.get(resource.name)) is not None:
        check(previous, raw)
    elif resource.name == "Job":
        check_job_update(previous, raw, release)
    check_finalizers(previous, raw)


def _check_cron_job(previous: Stored, raw: Raw) -> None:
    """Check the schedule if it changes: the existing one was admitted by a cluster, whatever it is."""
    if _differ(previous.raw, raw, ("spec", "schedule")) or _differ(previous.raw, raw, ("spec", "timeZone")):
        decoded(previous.resource, {**raw, "metadata": {**raw["metadata"], "uid": ""}}, None, previous.raw)


def _check_priority_class(previous: Stored, raw: Raw) -> None:
    if (previous.raw.get("value") or 0) != (raw.get("value") or 0):
        raise _forbidden(previous, "value", "may not be changed in an update.")


def _check_address(previous: Stored, raw: Raw) -> None:
    """Check that the address of a Service is unchanged; type ExternalName has none (ValidateServiceUpdate)."""
    before, after = object_at(previous.raw, "spec"), object_at(raw, "spec")
    if "ExternalName" in (before.get("type"), after.get("type")) or not before.get("clusterIP"):
        return
    if before["clusterIP"] != after.get("clusterIP"):
        raise _invalid(previous, "spec.clusterIPs[0]", "may not change once set")


def _check_node(previous: Stored, raw: Raw) -> None:
    """Check that node fields that were once set are unchanged (ValidateNodeUpdate)."""
    before, after = object_at(previous.raw, "spec"), object_at(raw, "spec")
    for field in ("podCIDR", "podCIDRs", "providerID"):
        if before.get(field) and before[field] != after.get(field):
            raise _forbidden(previous, f"spec.{field}", f'node updates may not change {field} except from "" to valid')


def check_finalizers(previous: Stored, raw: Raw) -> None:
    """Raise StoreError 422 for an update that adds finalizers to a terminating object."""
    before = previous.object.metadata
    if before.deletion_timestamp is None:
        return
    added = [finalizer for finalizer in raw["metadata"].get("finalizers", ()) if finalizer not in before.finalizers]
    if added:
        problem = f"an object that is being deleted takes no new finalizers, such as {added[0]}"
        raise _invalid(previous, "metadata.finalizers", problem, "FieldValueForbidden")


def _check_pod(previous: Stored, raw: Raw) -> None:
    """Raise StoreError 422 for a spec that changes immutable fields.

    An update can change images, shorten the active deadline, add tolerations, and remove scheduling gates. While there
    are gates, it can narrow down the nodes that the pod may run on.
    """
    if raw["spec"] == previous.raw["spec"]:
        return
    old, spec = _specs(previous, raw)
    _check_containers(previous, old, spec)
    before, after = old.get("activeDeadlineSeconds"), spec.get("activeDeadlineSeconds")
    is_shorter = type(after) is int and 0 <= after <= (2**31 - 1 if before is None else before)
    if before != after and not is_shorter:
        most = "the deadline that it had" if before is not None else "2147483647"
        problem = f"must be a whole number of seconds, and at most {most}"
        raise _invalid(previous, "spec.activeDeadlineSeconds", problem)
    given = [{**one, "tolerationSeconds": None} for one in spec.get("tolerations", ())]
    if any({**one, "tolerationSeconds": None} not in given for one in old.get("tolerations", ())):
        problem = "existing tolerations stay as they are, but for their tolerationSeconds"
        raise _forbidden(previous, "spec.tolerations", problem)
    gates = {gate["name"] for gate in old.get("schedulingGates", ())}
    added = [gate["name"] for gate in spec.get("schedulingGates", ()) if gate["name"] not in gates]
    if added:
        problem = f"only deletion is allowed, but found new scheduling gate {added[0]}"
        raise _forbidden(previous, "spec.schedulingGates", problem)
    allowed = {"activeDeadlineSeconds", "tolerations", "schedulingGates", *CONTAINERS}
    if old.get("schedulingGates"):
        _check_narrowing(previous, old, spec)
        allowed |= {"nodeSelector", "affinity"}
    if old.get("terminationGracePeriodSeconds", 0) < 0 and spec.get("terminationGracePeriodSeconds") == 1:
        allowed.add("terminationGracePeriodSeconds")
    for field in _changed(old, spec, {*old, *spec} - allowed):
        raise _forbidden(previous, "spec", f"{_FORBIDDEN_POD_CHANGE}; this one changes `spec.{field}`")


def _check_containers(previous: Stored, old: Raw, spec: Raw) -> None:
    for field in CONTAINERS:
        before, after = old.get(field, ()), spec.get(field, ())
        if len(before) != len(after):
            raise _forbidden(previous, f"spec.{field}", "pod updates may not add or remove containers")
        for index, (one, other) in enumerate(zip(before, after, strict=True)):
            if {**one, "image": ""} != {**other, "image": ""}:
                raise _forbidden(previous, "spec", f"{_FORBIDDEN_POD_CHANGE}; this one changes `spec.{field}[{index}]`")


def _check_narrowing(previous: Stored, old: Raw, spec: Raw) -> None:
    """Check that a gated pod's node selector and required node affinity keep all their conditions."""
    selector = spec.get("nodeSelector", {})
    if any(selector.get(key) != value for key, value in old.get("nodeSelector", {}).items()):
        raise _forbidden(previous, "spec.nodeSelector", "only additions are allowed, no mutations or deletions")
    before, after = dict(old.get("affinity", {})), dict(spec.get("affinity", {}))
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    had, terms = (
        affinity.pop("nodeAffinity", {}).get(required, {}).get("nodeSelectorTerms", ()) for affinity in (before, after)
    )
    pairs, fields = zip(had, terms, strict=False), ("matchExpressions", "matchFields")
    kept = ((term.get(field, ()), other.get(field, ())) for term, other in pairs for field in fields)
    is_narrowed = not had or (len(had) == len(terms) and all(one in others for ones, others in kept for one in ones))
    if not is_narrowed or before != after:
        problem = "of a gated pod, conditions can be added to required node affinity, and preferred ones changed"
        raise _forbidden(previous, "spec.affinity", problem)


def _invalid(previous: Stored, path: str, problem: str, cause: str = "FieldValueInvalid") -> StoreError:
    return invalid(previous.resource, previous.key, problem, path, cause)


def _forbidden(previous: Stored, path: str, problem: str) -> StoreError:
    return _invalid(previous, path, f"Forbidden: {problem}", "FieldValueForbidden")


_CHECKS: Mapping[str, Callable[[Stored, Raw], None]] = {
    "CronJob": _check_cron_job,
    "Node": _check_node,
    "PersistentVolume": _check_volume,
    "PersistentVolumeClaim": _check_claim,
    "Pod": _check_pod,
    "PriorityClass": _check_priority_class,
    "Service": _check_address,
}


RESIZED = ("resources", "resizePolicy")
"""The container fields that a resize changes."""

CONTAINERS = ("containers", "initContainers")
"""The lists of containers that a resize changes."""

EPHEMERAL = "ephemeralContainers"
"""The list of containers that are added while a pod runs."""

_AMOUNTS = ("requests", "limits")


def with_resources(previous: Stored, raw: Raw) -> Raw:
    """Return the pod with only the resources from `raw`: per container, and of the pod as a whole.

    Raises StoreError 422 with everything that a resize may not change (ValidatePodResize).
    """
    before, after = previous.raw["spec"], object_at(raw, "spec")
    spec = {**before, **({"resources": after["resources"]} if "resources" in after else {})}
    found, parts = [], [("spec", before, spec)]
    for field in CONTAINERS:
        old, new = objects_at(before, field), objects_at(after, field)
        if len(old) != len(new):
            found.append(forbidden(f"spec.{field}", f"{field} may not be added or removed on resize"))
        elif old:
            spec[field] = []
            for index, (container, other) in enumerate(zip(old, new, strict=True)):
                path, change = f"spec.{field}[{index}]", {name: other[name] for name in RESIZED if name in other}
                if container.get("name") != other.get("name"):
                    found.append(forbidden(f"{path}.name", f"{field} may not be renamed or reordered on resize"))
                spec[field].append({**container, "resources": {}, **change})
                parts.append((path, container, spec[field][-1]))
    if not found:
        pod = decoded(previous.resource, {**previous.raw, "spec": spec}, None, previous.raw)
        specs: list[PodSpec] = [each.spec for each in (previous.object, pod)]  # type: ignore[attr-defined]
        was_class, new_class = map(qos_class, specs)
        if was_class != new_class:
            found.append(findings.invalid("spec", new_class, "Pod QOS Class may not change as a result of resizing"))
        found += [*_resize_obstacles(previous), *(each for part in parts for each in _resize_findings(*part))]
    if found:
        raise invalid_fields(previous.resource, previous.key, found)
    return {**previous.raw, "spec": spec}


def _resize_obstacles(previous: Stored) -> Iterator[Finding]:
    """Yield why a pod cannot be resized at all."""
    if MIRROR_ANNOTATION in previous.object.metadata.annotations:
        yield forbidden("", "static pods cannot be resized")
    if value_at(previous.raw, "spec", "os", "name") == "windows":
        yield forbidden("", "windows pods cannot be resized")
    statuses = objects_at(previous.raw, "status", "containerStatuses")
    running = next((status for status in statuses if value_at(status, "state", "running") is not None), {})
    if running and "resources" not in running:
        yield forbidden("spec", "Pod running on node without support for resize")


def _resize_findings(path: str, old: Raw, new: Raw) -> Iterator[Finding]:
    """Yield why the resources of a container, or of a whole pod, cannot become others."""
    was, now = object_at(old, "resources"), object_at(new, "resources")
    is_pod, is_init = path == "spec", "init" in path
    for kind in _AMOUNTS:
        if object_at(was, kind).keys() - object_at(now, kind).keys():
            what = "pod-level resource" if is_pod else "resource"
            yield forbidden(f"{path}.resources.{kind}", f"{what} {kind} cannot be removed")
    if _not_resizable(was) != _not_resizable(now) or old.get("resizePolicy") != new.get("resizePolicy"):
        of, at = " for init or sidecar containers" if is_init else "", " at pod-level" if is_pod else ""
        yield forbidden(path if is_init else "spec", f"only cpu and memory resources{of} are mutable{at}")
    policies = {policy.get("restartPolicy") for policy in objects_at(old, "resizePolicy")}
    if is_init and old.get("restartPolicy") != "Always" and was != now and "RestartContainer" in policies:
        message = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
        yield forbidden(path, message)


def _not_resizable(resources: Raw) -> Raw:
    """Return the part of resources that a resize may not change."""
    amounts = {kind: object_at(resources, kind).items() for kind in _AMOUNTS}
    fixed = {
        kind: {name: parse_quantity(most) for name, most in of if name not in (CPU, MEMORY)}
        for kind, of in amounts.items()
    }
    return {**{name: value for name, value in resources.items() if value}, **fixed}


def with_ephemeral_containers(previous: Stored, raw: Raw) -> Raw:
    """Return the pod with only the ephemeral containers from `raw`.

    Existing ephemeral containers must be unchanged; otherwise raises StoreError 422.
    """
    before = previous.raw["spec"].get(EPHEMERAL, [])
    after = object_at(raw, "spec").get(EPHEMERAL) or []
    names = {container.get("name"): container for container in objects_at(raw, "spec", EPHEMERAL)}
    if any(names.get(container.get("name")) != container for container in before):
        problem = "existing ephemeral containers may not be removed or changed"
        raise _forbidden(previous, f"spec.{EPHEMERAL}", problem)
    return {**previous.raw, "spec": {**previous.raw["spec"], EPHEMERAL: after}}


PARTS: Mapping[str, Callable[[Stored, Raw], Raw]] = {
    "ephemeralcontainers": with_ephemeral_containers,
    "resize": with_resources,
}
"""By subresource: the function that returns a pod with that part taken from another."""


_DECISIONS = ("Approved", "Denied")
_FINAL_CONDITIONS = (*_DECISIONS, "Failed")


def approved(previous: Stored, raw: Raw, now: int) -> Raw:
    """Return a certificate request as a client approves or denies it: only conditions change, and get their times.

    Source: pkg/registry/certificates/certificates/strategy.go, pkg/apis/certificates/validation. Raises StoreError 422.
    """
    before = {condition.get("type"): condition for condition in objects_at(previous.raw, "status", "conditions")}
    conditions, time = [], format_time(now)
    for condition in objects_at(raw, "status", "conditions"):
        old = before.get(condition.get("type"), {})
        is_same = old.get("status") == condition.get("status")
        since = old.get("lastTransitionTime", time) if is_same else time
        conditions.append({"lastUpdateTime": time, "lastTransitionTime": since, **condition})
    _check_request(previous, conditions)
    return {**raw, "status": {**previous.raw.get("status", {}), "conditions": conditions}}


def signed(previous: Stored, status: Any) -> Any:
    """Return the status of a certificate request as a signer writes it, which cannot approve or deny the request.

    Existing approvals and denials stay as they are. Raises StoreError 422 for new ones, and for another certificate.
    """
    conditions, path = objects_at(status, "conditions"), "status.conditions"
    before = {str(one.get("type")): one for one in objects_at(previous.raw, "status", "conditions")}
    decided = {type_: before[type_] for type_ in _DECISIONS if type_ in before}
    _check_request(previous, conditions)
    for condition in conditions:
        if condition.get("type") in _DECISIONS and condition["type"] not in decided:
            raise _forbidden(previous, path, f'updates may not add a condition of type "{condition["type"]}"')
    issued = value_at(previous.raw, "status", "certificate")
    if issued and value_at(status, "certificate") != issued:
        raise _forbidden(previous, "status.certificate", "updates may not modify existing certificate content")
    if not decided:
        return status
    return {**status, "conditions": [decided.get(str(one.get("type")), one) for one in conditions]}


def _check_request(previous: Stored, conditions: list[Raw]) -> None:
    """Raise StoreError 422 for conditions that a certificate request cannot have, or no longer lack."""
    path, types = "status.conditions", [condition.get("type") for condition in conditions]
    for index, condition in enumerate(conditions):
        if condition.get("type") in _FINAL_CONDITIONS and condition.get("status") != "True":
            problem = f'Unsupported value: "{condition.get("status", "")}": supported values: "True"'
            raise _invalid(previous, f"{path}[{index}].status", problem, "FieldValueNotSupported")
    before = {condition.get("type") for condition in objects_at(previous.raw, "status", "conditions")}
    for type_ in _FINAL_CONDITIONS:
        if type_ in before and type_ not in types:
            raise _forbidden(previous, path, f'updates may not remove a condition of type "{type_}"')
    if "Approved" in types and "Denied" in types:
        raise _invalid(previous, path, "Approved and Denied conditions are mutually exclusive")


def scale_of(stored: Stored) -> Raw:
    """Return the scale of a workload. Raises StoreError 404 for a kind that has none."""
    workload, selector = stored.object, ""
    if (paths := stored.resource.scale_paths) is not None:
        selector = value_at(stored.raw, *paths.label_selector) if paths.label_selector else ""
        replicas, current = value_at(stored.raw, *paths.spec_replicas), value_at(stored.raw, *paths.status_replicas)
    elif isinstance(workload, Replicated):
        selects = selector_from_labels if isinstance(workload, ReplicationController) else compile_label_selector
        selector = str(selects(workload.spec.selector))  # type: ignore[arg-type]
        replicas, current = workload.spec.replicas, value_at(stored.raw, "status", "replicas")
    else:
        raise unknown_kind(f"{stored.kind}/scale")
    metadata = stored.raw["metadata"]
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: metadata[name] for name in _IN_SCALES if name in metadata},
        "spec": {"replicas": replicas or 0},
        "status": {"replicas": current or 0, **({"selector": selector} if selector else {})},
    }


def replicas_path(stored: Stored) -> tuple[str, ...]:
    """Return the path of a workload's desired replicas. Raises StoreError 404 for a kind without a scale."""
    if not stored.resource.has_scale:
        raise unknown_kind(f"{stored.kind}/scale")
    paths = stored.resource.scale_paths
    return ("spec", "replicas") if paths is None else paths.spec_replicas


def with_value(raw: Raw, path: tuple[str, ...], value: Any) -> Raw:
    """Return the object with a value at a path of fields."""
    name, *rest = path
    return {**raw, name: with_value(object_at(raw, name), tuple(rest), value) if rest else value}


def nested(path: tuple[str, ...], value: Any) -> Raw:
    """Return an object with a value at a path of fields and nothing else; an empty object for None."""
    return {} if value is None else with_value({}, path, value)


def scaled(stored: Stored, scale: Raw) -> Raw:
    """Return the workload with the replicas of the scale; a scale without replicas means 0.

    Raises StoreError: 400 for a malformed scale or that of another object, 422 for a negative number.
    """
    metadata, spec = scale.get("metadata"), scale.get("spec", {})
    if scale.get("kind") != "Scale" or not isinstance(metadata, dict) or not isinstance(spec, dict):
        raise bad_request("an autoscaling/v1 Scale with metadata is expected")
    for name in ("name", "namespace"):
        if metadata.get(name, "") not in ("", stored.raw["metadata"].get(name)):
            raise bad_request(f"the scale is that of another object: metadata.{name} differs")
    replicas = spec.get("replicas", 0)
    if type(replicas) is not int or replicas > 2**31 - 1:
        raise bad_request("spec.replicas of a scale is a whole number")
    if replicas < 0:
        raise invalid(stored.resource, stored.key, "must be greater than or equal to 0", "spec.replicas")
    required = {name: metadata.get(name, "") for name in ("uid", "resourceVersion")}
    raw = {**stored.raw, "metadata": {**stored.raw["metadata"], **required}}
    return with_value(raw, replicas_path(stored), replicas)
