"""Validation of pods and pod templates (core/validation, ValidatePodCreate and ValidatePodTemplateSpec)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import msgspec
from msgspec.structs import replace

from podium.api import meta, policy, resource_requests
from podium.api.checks import check as refuse
from podium.api.checks import check_amounts
from podium.api.names import label_key_problem, label_name_problem, subdomain_problem
from podium.api.pod import MIRROR_ANNOTATION, PodSpec
from podium.api.quantity import CPU, format_quantity, is_pod_level, milli_value
from podium.api.validation import rules
from podium.api.validation.amounts import amount, check_requirements, pod_resource_problem
from podium.api.validation.findings import Findings, Place, too_long
from podium.api.validation.volumes import Volumes

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"

_GRACE_SECONDS = 30
_MAX_SEARCH_CHARACTERS = 2_048
_MAX_INT32 = 2**31 - 1
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,9})")
_MAX_ANNOTATIONS_BYTES = 262_144
_CACHE = 1_024
_ANY = "any"
_ACCESS = "kube-api-access-"
_ANY_VOLUME = b'"kube-api-access-any"'
_LABEL_KEYS = b"atchLabelKeys"
_OF_WINDOWS = frozenset(("runAsNonRoot", "windowsOptions"))

rules.declare(
    f"""\
AppArmorProfile SeccompProfile: @profile
HostAlias: ip::ip hostnames:subdomain
Pod: @pod status
PodDNSConfig: @dns nameservers:ip searches:search-domain
PodOS: name!:linux|windows
PodReadinessGate: conditionType::key
PodResourceClaim: ^resourceClaimName|resourceClaimTemplateName resourceClaimName:subdomain
  resourceClaimTemplateName:subdomain
PodSecurityContext: runAsUser:id runAsGroup:id fsGroup:id @pod_security fsGroupChangePolicy:Always|OnRootMismatch
  supplementalGroupsPolicy:Merge|Strict seLinuxChangePolicy:MountOption|Recursive seccompProfile appArmorProfile
  sysctls
PodSpec: volumes#name resourceClaims#name @containers @ephemeral @host_network @pod_resources
  overhead:container-amounts* securityContext @host_users os @system restartPolicy:Always|OnFailure|Never*
  preemptionPolicy:{"|".join(policy.PREEMPTION_POLICIES)}* activeDeadlineSeconds:1..{_MAX_INT32}
  serviceAccountName:subdomain nodeName:subdomain priorityClassName:subdomain runtimeClassName:subdomain
  hostname:label hostnameOverride:subdomain subdomain:label nodeSelector:labels affinity tolerations @spread
  topologySpreadConstraints schedulingGates @gates readinessGates @nameservers dnsConfig hostAliases
  dnsPolicy:ClusterFirst|ClusterFirstWithHostNet|Default|None
PodStatus: phase:Pending|Running|Succeeded|Failed|Unknown*
SecurityContext: runAsUser:id runAsGroup:id seccompProfile appArmorProfile procMount:Default|Unmasked @escalation
Sysctl: name!:sysctl
""",
    """\
ObjectMeta: annotations:annotations
Pod: spec
PodSpec: containers:..1000 initContainers:..1000 containers initContainers resources tolerations:..1000
  topologySpreadConstraints:..1000 volumes:..1000 schedulingGates:..1000
PodStatus: startTime:time @observed
PodTemplateSpec: metadata spec
""",
)


class PodContext(msgspec.Struct, frozen=True):
    """The context of a spec's validation: the pod's name and labels, and whether it is a pod or a template.

    A template has no name, and its labels have no effect. Fields that a pod gets in a cluster, such as a node or
    ephemeral containers, are not allowed for a new one. The `volumes` are at first those that a StatefulSet adds.
    `check_pod_spec` adds those of the spec, and the other values on which containers depend.
    """

    name: str = ""
    labels: Mapping[str, str] = {}
    is_template: bool = False
    is_new: bool = True
    volumes: Volumes = {}
    claims: frozenset[str] = frozenset()
    grace_seconds: int = _GRACE_SECONDS
    restart_policy: str = "Always"


def check_pod_spec(spec: Place, context: PodContext) -> None:
    """Check a pod's spec (ValidatePodSpec)."""
    own = {volume.text("name"): volume.value for volume in reversed(spec.objects("volumes"))}
    grace_seconds = spec.number("terminationGracePeriodSeconds")
    spec.findings.context = replace(
        context,
        labels={} if context.is_template else context.labels,
        volumes={**context.volumes, **own},
        claims=frozenset(claim.text("name") for claim in spec.objects("resourceClaims")),
        grace_seconds=_GRACE_SECONDS if grace_seconds is None else grace_seconds,
        restart_policy=spec.text("restartPolicy", "Always"),
    )
    rules.check_type(spec, "PodSpec")


@rules.check
def _pod(pod: Place) -> None:
    """Check a pod; one with a uid comes from a cluster."""
    metadata, spec = pod.child_or_empty("metadata"), pod.child_or_empty("spec")
    check_pod_annotations(metadata, spec)
    context = PodContext(_ANY, is_new=not metadata.text("uid"))
    if not _equals_a_valid_pod(spec.value, metadata.value, context):
        labels = meta.object_at(metadata.value, "labels")
        check_pod_spec(spec, replace(context, name=metadata.text("name"), labels=labels))


def check_template(workload: Place, added_volumes: Iterable[str] = ()) -> Place:
    """Check the template of a workload, and return it; `added_volumes` are additional ones of its pods."""
    template = workload.child("template")
    if template is None:
        workload.required("template")
        return workload.child_or_empty("template")
    metadata, spec = template.child_or_empty("metadata"), template.child_or_empty("spec")
    rules.check_labels(metadata, "labels")
    check_annotations(metadata)
    check_pod_annotations(metadata, spec)
    context = PodContext(is_template=True, volumes=_claims(added_volumes))
    if not _equals_a_valid_pod(spec.value, metadata.value, context):
        check_pod_spec(spec, context)
    return template


@rules.check
def check_annotations(metadata: Place) -> None:
    """Check the keys of the annotations, whose prefixes may have capital letters, and the total size."""
    size = 0
    for key, value in metadata.text_mapping("annotations").items():
        problem = label_key_problem(key.lower())
        if problem is not None:
            metadata.child_or_empty("annotations").check(key, problem)
        size += len(key.encode()) + len(value.encode())
    if size > _MAX_ANNOTATIONS_BYTES:
        metadata.report(too_long(metadata.path("annotations"), _MAX_ANNOTATIONS_BYTES))


def check_pod_annotations(metadata: Place, spec: Place) -> None:
    """Check the annotations with a meaning for pods (ValidatePodSpecificAnnotations)."""
    annotations = metadata.value.get("annotations")
    if not isinstance(annotations, dict):
        return
    place = metadata.child_or_empty("annotations")
    mirror = annotations.get(MIRROR_ANNOTATION)
    if mirror is not None and not spec.text("nodeName"):
        place.invalid(MIRROR_ANNOTATION, mirror, "must set spec.nodeName if mirror pod annotation is set")
    cost = annotations.get(DELETION_COST)
    # GetDeletionCostFromPodAnnotations.
    if isinstance(cost, str) and not (_INTEGER.fullmatch(cost) and -_MAX_INT32 - 1 <= int(cost) <= _MAX_INT32):
        place.invalid(DELETION_COST, cost, "must be a 32bit integer")


def _equals_a_valid_pod(spec: Mapping[str, Any], metadata: Mapping[str, Any], context: PodContext) -> bool:
    """Return whether the spec differs from a valid one only in pod-specific names.

    `context` is that of the spec, without labels. A cluster has many pods of few classes. The pod-specific names are
    those of the node, of the host, and of the volume for API access.
    """
    common = dict(spec)
    for name, problem in (("nodeName", subdomain_problem), ("hostname", label_name_problem)):
        own = common.get(name)
        if own:
            if not isinstance(own, str) or problem(own) is not None:
                return False
            common[name] = _ANY
    volumes = common.get("volumes", ())
    # The claim of an ephemeral volume is named by the pod.
    if not isinstance(volumes, list | tuple) or any(type(each) is not dict or "ephemeral" in each for each in volumes):
        return False
    try:
        encoded = msgspec.json.encode(common)
        # Nothing else in a spec depends on the labels, and a template's spec depends on none.
        depends_on_labels = not context.is_template and _LABEL_KEYS in encoded
        encoded = b"[%b,%b]" % (encoded, msgspec.json.encode(metadata.get("labels") if depends_on_labels else None))
    except (TypeError, ValueError, OverflowError):
        return False
    accesses = [volume["name"] for volume in volumes if str(volume.get("name")).startswith(_ACCESS)]
    if accesses and label_name_problem(accesses[-1]) is None:
        if _ANY_VOLUME in encoded:
            return False
        encoded = encoded.replace(f'"{accesses[-1]}"'.encode(), _ANY_VOLUME)
    return _is_valid(encoded, context.name, context.is_new, context.is_template, tuple(context.volumes))


@lru_cache(maxsize=_CACHE)
def _is_valid(encoded: bytes, name: str, is_new: bool, is_template: bool, volumes: tuple[str, ...]) -> bool:
    spec, labels = msgspec.json.decode(encoded)
    findings = Findings()
    known = labels if isinstance(labels, dict) else {}
    check_pod_spec(Place(spec, findings), PodContext(name, known, is_template, is_new, _claims(volumes)))
    return not findings


def _claims(names: Iterable[str]) -> Volumes:
    """Return volumes of these names for claims."""
    return {name: {"persistentVolumeClaim": {}} for name in names}


@rules.check
def _observed(status: Place) -> None:
    """Refuse a nominated node and reported amounts that cannot be read, whatever the resources' names."""
    if node := status.text("nominatedNodeName"):
        refuse(subdomain_problem(node), status.path("nominatedNodeName"))
    statuses = (*status.objects("containerStatuses"), *status.objects("initContainerStatuses"))
    for place in (*statuses, status):
        if place.has("resources") or place.has("allocatedResources"):
            for amounts in (place.child_or_empty("resources").child("requests"), place.child("allocatedResources")):
                if amounts is not None:
                    check_amounts(amounts.value, amounts.path())


@rules.check
def _ephemeral(spec: Place) -> None:
    if spec.context.is_new and spec.objects("ephemeralContainers"):
        of_template = "ephemeral containers not allowed in pod template"
        spec.forbidden("ephemeralContainers", of_template if spec.context.is_template else "cannot be set on create")


@rules.check
def _pod_resources(spec: Place) -> None:
    """Check the pod-level resources, which containers share."""
    resources = spec.child("resources")
    if resources is None:
        return
    if resources.has("claims"):
        resources.forbidden("claims", "claims cannot be set for Resources at pod-level")
    check_requirements(spec, pod_resource_problem)
    requests, limits = resources.child_or_empty("requests"), resources.child_or_empty("limits")
    for name, needed in _needed_milli(spec).items():
        requested = requests.value.get(name, 0)
        # With limits, unset requests default to what the containers need.
        if not is_pod_level(name) or (limits.value and name not in requests.value) or amount(requested) is None:
            continue
        if milli_value(requested) < needed:
            shown = format_quantity(needed if name == CPU else -(-needed // 1_000), name)
            requests.invalid(
                name, requested, f"must be greater than or equal to aggregate container requests of {shown}"
            )
    for container in spec.objects("containers"):
        of_container = container.child_or_empty("resources", "limits")
        for name, value in of_container.value.items():
            most, limit = amount(limits.value.get(name)), amount(value)
            if most is not None and limit is not None and limit > most:
                of_container.invalid(name, value, f"must be less than or equal to pod limits of {limits.value[name]}")


def _needed_milli(spec: Place) -> Mapping[str, int]:
    """Return the total requests of the containers; empty if unreadable, which is reported elsewhere."""
    try:
        return resource_requests.container_requests(msgspec.convert(spec.value, PodSpec))
    except (msgspec.ValidationError, ValueError):
        return {}


@rules.check
def _nameservers(spec: Place) -> None:
    if spec.text("dnsPolicy") == "None" and not spec.child_or_empty("dnsConfig").entries("nameservers"):
        detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        spec.child_or_empty("dnsConfig").required("nameservers", detail)


@rules.check
def _dns(settings: Place) -> None:
    searches = settings.texts("searches")
    for option in settings.objects("options"):
        if not option.text("name"):
            option.required("", "must not be empty")
    for name, most, what in (("nameservers", 3, "nameservers"), ("searches", 32, "search paths")):
        if len(settings.texts(name)) > most:
            settings.invalid(name, [], f"must not have more than {most} {what}")
    if len(" ".join(place.value for place in searches)) > _MAX_SEARCH_CHARACTERS:
        detail = f"must not have more than {_MAX_SEARCH_CHARACTERS} characters (including spaces) in the search list"
        settings.invalid("searches", [], detail)


@rules.check
def _escalation(context: Place) -> None:
    """Check that only a pod with users of its own unmasks /proc, and that privileges agree with their escalation."""
    if context.text("procMount") == "Unmasked" and context.owner.owner.value.get("hostUsers") is not False:
        context.invalid("procMount", "Unmasked", "`hostUsers` must be false to use `Unmasked`")
    if context.value.get("allowPrivilegeEscalation") is not False:
        return
    if context.flag("privileged"):
        context.invalid("", {}, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true")
    added = context.child_or_empty("capabilities").texts("add")
    if any(place.value == "CAP_SYS_ADMIN" for place in added):
        context.invalid("", {}, "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN")


@rules.check
def _host_users(spec: Place) -> None:
    for name in ("hostNetwork", "hostPID", "hostIPC") if spec.value.get("hostUsers") is False else ():
        if spec.flag(name):
            spec.forbidden(name, "when `pod.Spec.HostUsers` is false")


@rules.check
def _pod_security(context: Place) -> None:
    for group in context.entries("supplementalGroups"):
        if type(group.value) is int:
            group.check("", rules.id_problem(group.value))
    spec = context.owner
    if spec.flag("shareProcessNamespace") and spec.flag("hostPID"):
        spec.invalid("shareProcessNamespace", True, "ShareProcessNamespace and HostPID cannot both be enabled")
    sysctls = context.objects("sysctls")
    rules.report_repeats((place for place in sysctls if rules.sysctl_problem(place.text("name")) is None), "name")


@rules.check
def _profile(profile: Place) -> None:
    """Check a seccomp or AppArmor profile: its type, and its file for type Localhost."""
    name, type_, file = profile.field, profile.text("type"), profile.text("localhostProfile")
    if not type_:
        profile.required("type", f"type is required when {name} is set")
        return
    rules.check_alternatives(profile, "type", ("Localhost", "RuntimeDefault", "Unconfined"))
    if type_ != "Localhost":
        if profile.has("localhostProfile"):
            profile.invalid("localhostProfile", file, f"can only be set when {name} type is Localhost")
    elif not file:
        profile.required("localhostProfile", f"must be set when {name} type is Localhost")
    elif name == "seccompProfile":
        profile.check("localhostProfile", rules.descending_problem(file))


@rules.check
def _system(spec: Place) -> None:
    """Check for fields that are not allowed for the pod's operating system."""
    name = spec.child_or_empty("os").text("name")
    containers = [container for part in ("containers", "initContainers") for container in spec.objects(part)]
    contexts = [place.child_or_empty("securityContext") for place in (spec, *containers)]
    if name == "linux":
        for context in contexts:
            _forbid(context, ("windowsOptions",), "a linux pod")
    elif name == "windows":
        _forbid(spec, ("hostPID", "hostIPC", "hostUsers", "shareProcessNamespace"), "a windows pod")
        for context in contexts:
            _forbid(context, sorted(context.value.keys() - _OF_WINDOWS), "a windows pod")


def _forbid(place: Place, names: Iterable[str], pod: str) -> None:
    for name in place.fields_set(*names):
        if place.value[name] is not False:
            place.forbidden(name, f"cannot be set for {pod}")
