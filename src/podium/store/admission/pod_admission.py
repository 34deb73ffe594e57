"""Admission of new pods, defaults and refusals; the limits of LimitRanges for pods and claims.

For a pod that was in a cluster before (it has a uid), the values from there are kept. Source: plugin/pkg/admission
(priority, runtimeclass, defaulttolerationseconds, limitranger).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec.structs import replace

from podium.api.meta import Raw
from podium.api.node import RuntimeClass, RuntimeScheduling
from podium.api.pod import Container, PodSpec, ResourceList, ResourceRequirements
from podium.api.policy import POLICY_ANNOTATION, SYSTEM_CLASSES, LimitRange, LimitRangeItem, PriorityClass
from podium.api.quantity import CPU, exact_quantity, is_pod_level, milli_value
from podium.api.resource_requests import container_requests, in_milli, pod_level_requests, requests_of
from podium.api.schemas.schema import defaults_of
from podium.api.versions.apis import as_kept
from podium.api.versions.gates import Gate
from podium.api.versions.release import DEFAULT_RELEASE, Release
from podium.store.admission.priorities import NO_RULES, PriorityRules, default_class, differs_from_class, unknown_class
from podium.store.api_resources import POD, APIResource
from podium.store.errors import forbidden

# The defaults that every pod has, including those of simulations.
_DEFAULTS: Raw = {name: defaults_of("PodSpec")[name] for name in ("schedulerName", "terminationGracePeriodSeconds")}
_PREEMPT = "PreemptLowerPriority"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

ANNOTATION = "kubernetes.io/limit-ranger"
"""The pod annotation that lists the defaults that were filled in."""

_SORTS = (("containers", "container"), ("initContainers", "init container"))
_Milli = Mapping[str, int]


def admit_pod(
    raw: Raw,
    key: str,
    classes: Mapping[str, PriorityClass],
    limit_ranges: Sequence[LimitRange] = (),
    runtime_classes: Mapping[str, RuntimeClass] = MappingProxyType({}),
    rules: PriorityRules = NO_RULES,
    *,
    release: Release = DEFAULT_RELEASE,
) -> Raw:
    """Return the pod with all defaults filled in: resources, priority, policy, grace period, tolerations and more.

    `classes` are the cluster's PriorityClasses by name, `runtime_classes` its RuntimeClasses, and `limit_ranges` those
    of the pod's namespace. A new pod loses the fields that the `release` does not know. A policy that an annotation of
    the class names becomes an annotation of the pod, which keeps it even if the class changes. The `rules` assign a
    class to a new pod by its properties, after its resources are filled in.

    Raises StoreError 403 for a class that does not exist, for a priority or policy that differs from that of the class,
    for a class that a rule refuses, and for resources that a limit range does not allow. Upstream also refuses an
    overhead without a class; here it is accepted.
    """
    raw = {**raw, "spec": {**_DEFAULTS, **raw.get("spec", {})}}
    is_new = not raw["metadata"].get("uid")
    if is_new:
        # A pod that is bound to a node keeps its resources and the values from its runtime class.
        is_placed = bool(raw["spec"].get("nodeName"))
        if limit_ranges and not is_placed:
            raw = with_default_resources(raw, limit_ranges)
            check_pod_limits(POD, key, msgspec.convert(raw["spec"], PodSpec), limit_ranges)
        labels, of_constraints = raw["metadata"].get("labels", {}), release.enabled(Gate.SPREAD_KEYS_MERGED)
        spec = merge_label_keys(as_kept(raw, "Pod", release)["spec"], labels, of_constraints=of_constraints)
        given = _tolerations(spec)
        lacking = [one for one in DEFAULT_TOLERATIONS if not any(_matches(each, one) for each in given)]
        spec = _with_tolerations(spec, lacking)
        raw = {**raw, "spec": spec if is_placed else _with_runtime(key, spec, runtime_classes)}
        if rules:
            raw = rules.apply(raw, key)
    metadata, spec = raw["metadata"], raw["spec"]
    if is_new or "priority" not in spec:
        metadata, spec = _with_class(metadata, spec, key, classes)
    return {**raw, "metadata": metadata, "spec": spec, "status": {"phase": "Pending", **raw.get("status", {})}}


def readmit_pod(raw: Raw, previous: Raw) -> Raw:
    """Return the updated pod; fields that the update omits keep the values from admission."""
    given = raw.get("spec", {})
    if not isinstance(given, dict):
        return raw
    spec: Raw = {**_DEFAULTS, **given}
    for field in ("priority", "preemptionPolicy"):
        if field in previous["spec"]:
            spec.setdefault(field, previous["spec"][field])
    # An update cannot remove the default tolerations.
    kept, keys = _tolerations(previous["spec"]), {toleration.get("key") for toleration in _tolerations(spec)}
    left_out = [one for one in DEFAULT_TOLERATIONS if one in kept and one["key"] not in keys]
    return {**raw, "spec": _with_tolerations(spec, left_out)}


def _with_class(metadata: Raw, spec: Raw, key: str, classes: Mapping[str, PriorityClass]) -> tuple[Raw, Raw]:
    """Return a pod's metadata and spec with what follows from its class (plugin/pkg/admission/priority).

    Priority 0 if it names no class and there is no default. The policy from an annotation of the class is added to the
    pod's annotations.
    """
    name = spec.get("priorityClassName", "")
    if not name and "priority" in spec:
        return metadata, {**spec, "preemptionPolicy": spec.get("preemptionPolicy", _PREEMPT)}
    found = classes.get(name) if name else default_class(classes.values())
    if found is None and name and name not in SYSTEM_CLASSES:
        raise unknown_class(POD, key, name, classes)
    filled: Raw = {"priority": SYSTEM_CLASSES.get(name, 0), "preemptionPolicy": _PREEMPT}
    if found is not None:
        filled = {"priority": found.value, "preemptionPolicy": found.preemption_policy}
    if found is not None and (policy := found.metadata.annotations.get(POLICY_ANNOTATION)) is not None:
        annotations = metadata.get("annotations", {})
        given = annotations.get(POLICY_ANNOTATION, policy)
        if name and given != policy:
            raise differs_from_class(POD, key, f"annotation {POLICY_ANNOTATION}", given, name, policy)
        metadata = {**metadata, "annotations": {**annotations, POLICY_ANNOTATION: given}}
    if not name:
        chosen = {} if found is None else {"priorityClassName": found.metadata.name}
        policy_stated = spec.get("preemptionPolicy", filled["preemptionPolicy"])
        return metadata, {**spec, **chosen, **filled, "preemptionPolicy": policy_stated}
    for field in filled:
        if field in spec and spec[field] != filled[field]:
            raise differs_from_class(POD, key, field, spec[field], name, filled[field])
    return metadata, {**spec, **filled}


TOLERATION_SECONDS = 300
"""The seconds for which a pod tolerates a node that is not ready or unreachable."""

DEFAULT_TOLERATIONS: tuple[Raw, ...] = tuple(
    {
        "key": f"node.kubernetes.io/{name}",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": TOLERATION_SECONDS,
    }
    for name in ("not-ready", "unreachable")
)


def _with_tolerations(spec: Raw, added: Sequence[Raw]) -> Raw:
    given = spec.get("tolerations") or ()
    # Validation reports a value that is not a list.
    return {**spec, "tolerations": [*given, *added]} if added and isinstance(given, list | tuple) else spec


def _tolerations(spec: Raw) -> list[Raw]:
    """Return the well-formed tolerations of a spec that may not have been validated yet."""
    given: Any = spec.get("tolerations")
    return [one for one in given if isinstance(one, dict)] if isinstance(given, list | tuple) else []


def _matches(toleration: Raw, default: Raw) -> bool:
    """Return whether a toleration matches the taint of a default toleration, for any duration."""
    return toleration.get("key", "") in ("", default["key"]) and toleration.get("effect", "") in ("", "NoExecute")


def merge_label_keys(spec: Raw, labels: Mapping[str, str], *, of_constraints: bool = True) -> Raw:
    """Return the pod spec with the pod's values of matchLabelKeys in its selectors; `spec` itself if it has none.

    Those of spread constraints count only if they are merged ``of_constraints``.
    """
    found = dict(spec)
    if of_constraints and spec.get("topologySpreadConstraints"):
        found["topologySpreadConstraints"] = [_merged(one, labels) for one in spec["topologySpreadConstraints"]]
    if spec.get("affinity"):
        found["affinity"] = {
            name: given if name == "nodeAffinity" else _merged_affinity(given, labels)
            for name, given in spec["affinity"].items()
        }
    return spec if found == spec else found


def _merged_affinity(affinity: Raw, labels: Mapping[str, str]) -> Raw:
    found = dict(affinity)
    if _REQUIRED in affinity:
        found[_REQUIRED] = [_merged(term, labels) for term in affinity[_REQUIRED]]
    if _PREFERRED in affinity:
        preferred = affinity[_PREFERRED]
        found[_PREFERRED] = [{**one, "podAffinityTerm": _merged(one["podAffinityTerm"], labels)} for one in preferred]
    return found


def _merged(term: Raw, labels: Mapping[str, str]) -> Raw:
    """Return the affinity term or spread constraint with its keys in its selector; a missing selector stays missing."""
    selector = term.get("labelSelector")
    fields = (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
    named = ((key, operator) for field, operator in fields for key in term.get(field, ()) if key in labels)
    added = [{"key": key, "operator": operator, "values": [labels[key]]} for key, operator in named]
    if selector is None or not added:
        return term
    expressions = [*selector.get("matchExpressions", ()), *added]
    return {**term, "labelSelector": {**selector, "matchExpressions": expressions}}


def _with_runtime(key: str, spec: Raw, classes: Mapping[str, RuntimeClass]) -> Raw:
    """Return the spec of a new pod with the additions of its RuntimeClass; `spec` itself for a pod without a class.

    Raises StoreError 403 for a class that does not exist or that contradicts the pod.
    """
    name = spec.get("runtimeClassName")
    if not name:
        return spec
    found = classes.get(name)
    if found is None:
        raise forbidden(POD, key, f'pod rejected: RuntimeClass "{name}" not found')
    if found.overhead is not None:
        stated, fixed = spec.get("overhead"), found.overhead.pod_fixed
        if stated is not None and in_milli(stated) != in_milli(fixed):
            raise forbidden(POD, key, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
        spec = {**spec, "overhead": fixed}
    return spec if found.scheduling is None else _scheduled(key, spec, found.scheduling)


def merge_tolerations(first: Sequence[Raw], second: Sequence[Raw]) -> list[Raw]:
    """Return both lists without tolerations that another one covers (pkg/util/tolerations, MergeTolerations)."""
    every = [*first, *second]
    merged: list[Raw] = []
    for index, one in enumerate(every):
        later = (other for other in every[index + 1 :] if other != one)
        if not any(_covers_toleration(other, one) for other in (*merged, *later)):
            merged.append(one)
    return merged


def _scheduled(key: str, spec: Raw, scheduling: RuntimeScheduling) -> Raw:
    selector = dict(spec.get("nodeSelector", {}))
    for label, value in scheduling.node_selector.items():
        if selector.setdefault(label, value) != value:
            conflict = f"runtimeClass.scheduling.nodeSelector[{label}] = {value}"
            problem = f"conflict: {conflict}; pod.spec.nodeSelector[{label}] = {selector[label]}"
            raise forbidden(POD, key, problem)
    added: list[Raw] = msgspec.to_builtins(scheduling.tolerations)
    merged = {"nodeSelector": selector, "tolerations": merge_tolerations(spec.get("tolerations", ()), added)}
    return {**spec, **{name: value for name, value in merged.items() if value or name in spec}}


def _covers_toleration(one: Raw, other: Raw) -> bool:
    """Return whether a toleration tolerates everything that the other tolerates (isSuperset)."""
    if one == other:
        return True
    operator = one.get("operator") or "Equal"
    if other.get("key", "") != one.get("key", "") and (one.get("key") or operator != "Exists"):
        return False
    if one.get("effect") and other.get("effect") != one["effect"]:
        return False
    seconds, others = one.get("tolerationSeconds"), other.get("tolerationSeconds")
    if one.get("effect") == "NoExecute" and seconds is not None and (others is None or others > seconds):
        return False
    if operator == "Equal":
        return other.get("operator") == "Equal" and other.get("value", "") == one.get("value", "")
    return bool(operator == "Exists")


def with_default_resources(raw: Raw, ranges: Iterable[LimitRange]) -> Raw:
    """Return the pod with default limits and requests for its containers; `raw` itself if nothing is added.

    A container's limit is also its request if it states no request.
    """
    notes: list[str] = []
    spec = raw["spec"]
    for limit_range in ranges:
        limits: ResourceList = {}
        requests: ResourceList = {}
        for item in limit_range.spec.limits:
            limits |= item.default_limits
            requests |= item.default_requests
        for field, sort in _SORTS:
            if (limits or requests) and spec.get(field):
                spec = {**spec, field: [_filled(one, limits, requests, sort, notes) for one in spec[field]]}
    if not notes:
        return raw
    metadata = raw["metadata"]
    annotations = {**metadata.get("annotations", {}), ANNOTATION: f"LimitRanger plugin set: {'; '.join(notes)}"}
    return {**raw, "metadata": {**metadata, "annotations": annotations}, "spec": spec}


def check_pod_limits(resource: APIResource, key: str, spec: PodSpec, ranges: Iterable[LimitRange]) -> None:
    """Raise StoreError 403 if a container, or the pod as a whole, violates a bound of the limit ranges."""
    items = [item for limit_range in ranges for item in limit_range.spec.limits]
    containers = [container.resources for container in (*spec.containers, *spec.init_containers)]
    problems: list[str] = []
    for item in items:
        if item.type == "Container":
            for container in containers:
                problems += _problems(item, in_milli(requests_of(container)), in_milli(container.limits))
        elif item.type == "Pod":
            # The limits of the containers are summed like requests; pod-level limits take precedence.
            own = in_milli(spec.resources.limits) if spec.resources is not None else {}
            limits = container_requests(replace(with_limits_as_requests(spec), resources=None))
            limits = {**limits, **{name: amount for name, amount in own.items() if is_pod_level(name)}}
            problems += _problems(item, {**container_requests(spec), **pod_level_requests(spec)}, limits)
    _refuse(resource, key, problems)


def check_claim_limits(resource: APIResource, key: str, requests: ResourceList, ranges: Iterable[LimitRange]) -> None:
    """Raise StoreError 403 for a claim that requests more or less storage than the limit ranges allow."""
    problems: list[str] = []
    amounts = in_milli(requests)
    for item in (item for one in ranges for item in one.spec.limits):
        if item.type == "PersistentVolumeClaim":
            problems += _problems(replace(item, max_limit_request_ratio={}), amounts, amounts, "request")
    _refuse(resource, key, problems)


def _filled(container: Raw, limits: ResourceList, requests: ResourceList, sort: str, notes: list[str]) -> Raw:
    resources = container.get("resources", {})
    own_limits = resources.get("limits", {})
    own_requests = {**own_limits, **resources.get("requests", {})}
    new_limits = {name: amount for name, amount in limits.items() if name not in own_limits}
    new_requests = {name: amount for name, amount in requests.items() if name not in own_requests}
    for added, part in ((new_requests, "request"), (new_limits, "limit")):
        if added:
            notes.append(f"{', '.join(sorted(added))} {part} for {sort} {container.get('name', '')}")
    if not new_limits and not new_requests:
        return container
    filled = {"requests": {**own_requests, **new_requests}, "limits": {**own_limits, **new_limits}}
    return {**container, "resources": {**resources, **{name: part for name, part in filled.items() if part}}}


def _problems(item: LimitRangeItem, requests: _Milli, limits: _Milli, part: str = "limit") -> Iterator[str]:
    """Yield a message for each violated bound, worded as by the admission plugin; `part` is what has a maximum."""
    # The first of the stated amounts is the one that must be stated; it is reported if both are beyond the bound.
    request, limit = ("request", requests), (part, limits)
    for words, bounds, sign, stated in (
        ("minimum", item.min, -1, (request, limit)),
        ("maximum", item.max, 1, (limit, request)),
    ):
        for name, bound in sorted(bounds.items()):
            most = sign * milli_value(bound)
            beyond = [(what, of[name]) for what, of in stated if name in of and sign * of[name] > most]
            if name not in stated[0][1]:
                yield f"{words} {name} usage per {item.type} is {bound}.  No {stated[0][0]} is specified"
            elif beyond:
                what, milli = beyond[0]
                amount = exact_quantity(milli if name == CPU else -(-milli // 1_000), name)
                yield f"{words} {name} usage per {item.type} is {bound}, but {what} is {amount}"
    for name, bound in sorted(item.max_limit_request_ratio.items()):
        problem = f"{name} max limit to request ratio per {item.type} is {bound}, but"
        unset = [what for what, of in (("request", requests), ("limit", limits)) if not of.get(name)]
        if unset:
            yield f"{problem} no {unset[0]} is specified or {unset[0]} is 0"
        elif limits[name] * 1_000 > milli_value(bound) * requests[name]:
            yield f"{problem} provided ratio is {limits[name] / requests[name]:f}"


def with_limits_as_requests(spec: PodSpec) -> PodSpec:
    """Return the spec in which each container requests its limits."""

    def limited(containers: tuple[Container, ...]) -> tuple[Container, ...]:
        return tuple(
            replace(container, resources=ResourceRequirements(requests=container.resources.limits))
            for container in containers
        )

    return replace(spec, containers=limited(spec.containers), init_containers=limited(spec.init_containers))


def _refuse(resource: APIResource, key: str, problems: list[str]) -> None:
    if problems:
        raise forbidden(resource, key, problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
