"""Pods, and the templates that they are made from (core/validation, ValidatePodCreate and ValidatePodTemplateSpec)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import msgspec

from podium.api.names import label_key_problem, label_name_problem, subdomain_problem
from podium.api.pod import PodSpec
from podium.api.policy import PREEMPTION_POLICIES
from podium.api.quantity import format_quantity, milli_value
from podium.api.resource_requests import container_requests
from podium.api.resources import CPU, is_pod_level
from podium.api.validation.affinity import check_affinity
from podium.api.validation.amounts import amount, check_overhead, check_requirements, pod_resource_problem
from podium.api.validation.containers import PodContext, check_containers, check_host_network_ports
from podium.api.validation.finding import Finding
from podium.api.validation.formats import ip_problem, search_domain_problem
from podium.api.validation.metadata import check_annotations, check_own_name, check_pod_annotations
from podium.api.validation.place import Place
from podium.api.validation.placement import check_gates, check_spread, check_tolerations
from podium.api.validation.security import check_pod_security
from podium.api.validation.selectors import check_labels
from podium.api.validation.volumes import check_volumes

RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")
_PHASES = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
_GRACE_SECONDS = 30
_MAX_NAMESERVERS, _MAX_SEARCHES, _MAX_SEARCH_CHARACTERS = 3, 32, 2_048
_MAX_DEADLINE_SECONDS = 2**31 - 1
_CACHE = 1_024
_OWN_NAMES = (("nodeName", subdomain_problem), ("hostname", label_name_problem))
_ANY = "any"
_ACCESS = "kube-api-access-"
_ANY_VOLUME = b'"kube-api-access-any"'


@dataclass(frozen=True, slots=True)
class Owner:
    """What a specification belongs to: the pod's name and labels, and whether it is a pod at all.

    A template has no name; `volumes` are those that a StatefulSet adds to its pods. What a pod that was in a cluster
    came to have there, such as a node or containers for debugging, a new one cannot ask for.
    """

    name: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    is_template: bool = False
    is_new: bool = True
    volumes: tuple[str, ...] = ()


def check_pod(pod: Place) -> None:
    """A pod; one with a uid has been in a cluster."""
    metadata, spec = pod.child_or_empty("metadata"), pod.child_or_empty("spec")
    check_pod_annotations(metadata, spec)
    is_new = not metadata.text("uid")
    sort = Owner(_ANY, is_new=is_new)
    if not _is_like_one_that_is_right(spec.value, metadata.value, sort):
        check_pod_spec(spec, replace(sort, name=metadata.text("name"), labels=_labels(metadata)))
    pod.child_or_empty("status").check_one_of("phase", _PHASES)


def check_template(workload: Place, name: str = "template", volumes: tuple[str, ...] = ()) -> Place:
    """The template in a field, which is returned; `volumes` are those that its pods get beside its own."""
    template = workload.child(name)
    if template is None:
        workload.required(name)
        return workload.child_or_empty(name)
    metadata, spec = template.child_or_empty("metadata"), template.child_or_empty("spec")
    check_labels(metadata, "labels")
    check_annotations(metadata)
    check_pod_annotations(metadata, spec)
    sort = Owner(is_template=True, volumes=volumes)
    if not _is_like_one_that_is_right(spec.value, metadata.value, sort):
        check_pod_spec(spec, replace(sort, labels=_labels(metadata)))
    return template


def check_pod_spec(spec: Place, owner: Owner) -> None:
    """All of a pod's specification (ValidatePodSpec)."""
    volumes: dict[str, Mapping[str, Any]] = {name: {"persistentVolumeClaim": {}} for name in owner.volumes}
    volumes.update(check_volumes(spec, owner.name))
    claims = _check_claims(spec)
    grace_seconds = spec.number("terminationGracePeriodSeconds")
    context = PodContext(
        volumes,
        claims,
        _GRACE_SECONDS if grace_seconds is None else grace_seconds,
        spec.text("restartPolicy", "Always"),
        owner.is_template,
    )
    check_containers(spec, context)
    if owner.is_new and spec.objects("ephemeralContainers"):
        detail = "ephemeral containers not allowed in pod template" if owner.is_template else "cannot be set on create"
        spec.forbidden("ephemeralContainers", detail)
    if spec.flag("hostNetwork"):
        check_host_network_ports(spec)
    _check_own_resources(spec)
    check_overhead(spec)
    check_pod_security(spec)
    _check_life(spec)
    _check_names(spec)
    _check_placement(spec, owner)
    _check_network(spec)


def _is_like_one_that_is_right(spec: Mapping[str, Any], metadata: Mapping[str, Any], sort: Owner) -> bool:
    """Whether the specification differs from one that is right in nothing but names that each pod has for itself.

    ``sort`` is what it belongs to, but for the labels. A cluster has many pods of few sorts. Those names are of its
    node, of its host, and of the volume through which it reaches the API server.
    """
    common = dict(spec)
    for name, problem in _OWN_NAMES:
        own = common.get(name)
        if own:
            if not isinstance(own, str) or problem(own) is not None:
                return False
            common[name] = _ANY
    volumes = common.get("volumes", ())
    if not isinstance(volumes, list | tuple) or not all(map(_is_named_by_itself, volumes)):
        return False
    try:
        encoded = msgspec.json.encode((common, metadata.get("labels")))
    except (TypeError, ValueError, OverflowError):
        return False
    accesses = [volume["name"] for volume in volumes if str(volume.get("name")).startswith(_ACCESS)]
    if accesses and label_name_problem(accesses[-1]) is None:
        if _ANY_VOLUME in encoded:
            return False
        encoded = encoded.replace(f'"{accesses[-1]}"'.encode(), _ANY_VOLUME)
    return _is_right(encoded, sort.name, sort.is_new, sort.is_template, sort.volumes)


def _is_named_by_itself(volume: Any) -> bool:
    """Whether nothing about the volume has to do with the name of its pod."""
    return isinstance(volume, dict) and "ephemeral" not in volume


@lru_cache(maxsize=_CACHE)
def _is_right(encoded: bytes, name: str, is_new: bool, is_template: bool, volumes: tuple[str, ...]) -> bool:
    spec, labels = msgspec.json.decode(encoded)
    findings: list[Finding] = []
    known = labels if isinstance(labels, dict) else {}
    check_pod_spec(Place(spec, findings), Owner(name, known, is_template, is_new, volumes))
    return not findings


def _labels(metadata: Place) -> Mapping[str, str]:
    labels = metadata.value.get("labels")
    return labels if isinstance(labels, dict) else {}


def _check_life(spec: Place) -> None:
    """How long the pod lives, and what is more important."""
    spec.check_one_of("restartPolicy", RESTART_POLICIES)
    spec.check_one_of("preemptionPolicy", PREEMPTION_POLICIES)
    spec.check_range("activeDeadlineSeconds", 1, _MAX_DEADLINE_SECONDS)


def _check_names(spec: Place) -> None:
    """The names of other objects, and those that the pod itself is known by."""
    for name in ("serviceAccountName", "nodeName", "priorityClassName", "runtimeClassName"):
        if spec.text(name):
            spec.check(name, subdomain_problem(spec.text(name)))
    for name in ("hostname", "subdomain"):
        if spec.text(name):
            spec.check(name, label_name_problem(spec.text(name)))


def _check_placement(spec: Place, owner: Owner) -> None:
    check_labels(spec, "nodeSelector")
    check_affinity(spec, {} if owner.is_template else owner.labels)
    check_tolerations(spec)
    check_spread(spec, {} if owner.is_template else owner.labels)
    check_gates(spec, owner.is_new)
    for gate in spec.objects("readinessGates"):
        gate.check("conditionType", label_key_problem(gate.text("conditionType")))


def _check_claims(spec: Place) -> frozenset[str]:
    """The resource claims of a pod; returns their names."""
    names: set[str] = set()
    for claim in spec.objects("resourceClaims"):
        name = check_own_name(claim, names)
        given = [reference for reference in ("resourceClaimName", "resourceClaimTemplateName") if claim.has(reference)]
        if len(given) > 1:
            detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            claim.invalid("", name, detail)
        elif not given:
            claim.invalid("", name, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")
        for reference in given:
            claim.check(reference, subdomain_problem(claim.text(reference)))
    return frozenset(names)


def _check_own_resources(spec: Place) -> None:
    """The resources of the pod as a whole, which its containers share."""
    resources = spec.child("resources")
    if resources is None:
        return
    if resources.has("claims"):
        resources.forbidden("claims", "claims cannot be set for Resources at pod-level")
    check_requirements(spec, "resources", pod_resource_problem)
    requests, limits = resources.child_or_empty("requests"), resources.child_or_empty("limits")
    for name, needed in _needed_milli(spec).items():
        asked = requests.value.get(name, 0)
        # Where there are limits, what is not requested becomes what the containers need.
        if not is_pod_level(name) or (limits.value and name not in requests.value) or amount(asked) is None:
            continue
        if milli_value(asked) < needed:
            shown = format_quantity(needed if name == CPU else -(-needed // 1_000), name)
            requests.invalid(name, asked, f"must be greater than or equal to aggregate container requests of {shown}")
    for container in spec.objects("containers"):
        for name, value in container.child_or_empty("resources").child_or_empty("limits").value.items():
            most, limit = amount(limits.value.get(name)), amount(value)
            if most is not None and limit is not None and limit > most:
                detail = f"must be less than or equal to pod limits of {limits.value[name]}"
                container.child_or_empty("resources").child_or_empty("limits").invalid(name, value, detail)


def _needed_milli(spec: Place) -> Mapping[str, int]:
    """What the containers request together; nothing where that cannot be read, which is a problem of its own."""
    try:
        return container_requests(msgspec.convert(spec.value, PodSpec))
    except (msgspec.ValidationError, ValueError):
        return {}


def _check_network(spec: Place) -> None:
    """Names that the pod's containers look up."""
    policy, settings = spec.text("dnsPolicy"), spec.child("dnsConfig")
    spec.check_one_of("dnsPolicy", _DNS_POLICIES)
    if policy == "None" and not spec.child_or_empty("dnsConfig").entries("nameservers"):
        detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        spec.child_or_empty("dnsConfig").required("nameservers", detail)
    if settings is not None:
        _check_dns(settings)
    for alias in spec.objects("hostAliases"):
        alias.check("ip", ip_problem(alias.text("ip")))
        for name in alias.texts("hostnames"):
            name.check("", subdomain_problem(name.value))


def _check_dns(settings: Place) -> None:
    servers, searches = settings.texts("nameservers"), settings.texts("searches")
    if len(servers) > _MAX_NAMESERVERS:
        settings.invalid("nameservers", [], f"must not have more than {_MAX_NAMESERVERS} nameservers")
    for server in servers:
        server.check("", ip_problem(server.value))
    if len(searches) > _MAX_SEARCHES:
        settings.invalid("searches", [], f"must not have more than {_MAX_SEARCHES} search paths")
    if len(" ".join(place.value for place in searches)) > _MAX_SEARCH_CHARACTERS:
        detail = f"must not have more than {_MAX_SEARCH_CHARACTERS} characters (including spaces) in the search list"
        settings.invalid("searches", [], detail)
    for search in searches:
        search.check("", search_domain_problem(search.value))
    for option in settings.objects("options"):
        if not option.text("name"):
            option.required("", "must not be empty")
