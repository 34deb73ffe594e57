"""The containers of a pod (core/validation, validateContainers and validateInitContainers)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from podium.api.validation import finding
from podium.api.validation.amounts import check_requirements, container_resource_problem
from podium.api.validation.environment import check_environment
from podium.api.validation.formats import ip_problem, port_name_problem, port_problem
from podium.api.validation.metadata import check_own_name
from podium.api.validation.mounts import check_mounts
from podium.api.validation.place import Place
from podium.api.validation.probes import check_lifecycle, check_probes
from podium.api.validation.security import check_container_security
from podium.api.validation.volumes import Volumes

PROTOCOLS = ("SCTP", "TCP", "UDP")
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_RESIZABLE = ("cpu", "memory")
_RESIZE_POLICIES = ("NotRequired", "RestartContainer")
_MAX_RESTART_RULES = 20
_MAX_EXIT_CODES = 255
_PROBES_AND_LIFECYCLE = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
_NOT_EPHEMERAL = ("ports", "resources", "resizePolicy", *_PROBES_AND_LIFECYCLE)


@dataclass(frozen=True, slots=True)
class PodContext:
    """What containers share in their pod: volumes, resource claims, the time to end, and how the pod restarts."""

    volumes: Volumes
    claims: frozenset[str]
    grace_seconds: int
    restart_policy: str
    is_template: bool


def check_containers(spec: Place, context: PodContext) -> None:
    """All containers of a pod: those that run side by side, those before them, and those that debug them."""
    containers, before = spec.objects("containers"), spec.objects("initContainers")
    if not spec.value.get("containers"):
        spec.required("containers")
    names: set[str] = set()
    for container in containers:
        _check_container(container, context, names)
        _check_running(container, context)
    _check_host_ports(containers)
    for container in before:
        _check_container(container, context, names)
        _check_before(container, context)
        _check_host_ports([container])
    running = frozenset(names)
    for container in spec.objects("ephemeralContainers"):
        _check_container(container, context, names)
        _check_ephemeral(container, running)


def check_host_network_ports(spec: Place) -> None:
    """On the node's network the port of the container is the node's; what is left open is filled in."""
    for container in spec.objects("containers"):
        for port in container.objects("ports"):
            on_host, inside = port.number("hostPort") or 0, port.number("containerPort") or 0
            if on_host != inside and on_host:
                port.invalid("hostPort", on_host, "must match `containerPort` when `hostNetwork` is true")


def _check_container(container: Place, context: PodContext, names: set[str]) -> None:
    """What holds for containers of every sort; `names` are those of the pod's containers before it."""
    check_own_name(container, names)
    _check_image(container, context.is_template)
    container.check_one_of("terminationMessagePolicy", _MESSAGE_POLICIES)
    container.check_one_of("imagePullPolicy", _PULL_POLICIES)
    _check_ports(container)
    check_environment(container)
    check_mounts(container, context.volumes)
    check_requirements(container, "resources", container_resource_problem, context.claims)
    _check_resize_policy(container, context.restart_policy)
    check_container_security(container)


def _check_image(container: Place, is_template: bool) -> None:
    image = container.text("image")
    if not image:
        container.required("image")
    elif not is_template and image != image.strip():
        container.invalid("image", image, "must not have leading or trailing whitespace")


def _check_running(container: Place, context: PodContext) -> None:
    """A container that runs as long as the pod."""
    check_probes(container, context.grace_seconds)
    check_lifecycle(container, context.grace_seconds)
    _check_restarts(container)


def _check_before(container: Place, context: PodContext) -> None:
    """An init container: only one that restarts always runs on."""
    if container.text("restartPolicy") == "Always":
        _check_running(container, context)
        return
    for name in _PROBES_AND_LIFECYCLE:
        if container.has(name):
            container.forbidden(name, "may not be set for init containers without restartPolicy=Always")
    _check_restarts(container)


def _check_ephemeral(container: Place, running: Iterable[str]) -> None:
    for name in _NOT_EPHEMERAL:
        if container.value.get(name):
            container.forbidden(name, "cannot be set for an Ephemeral Container")
    target = container.text("targetContainerName")
    if target and target not in running:
        container.not_found("targetContainerName", target)
    for mount in container.objects("volumeMounts"):
        for name in ("subPath", "subPathExpr"):
            if mount.text(name):
                mount.forbidden(name, "cannot be set for an Ephemeral Container")


def _check_restarts(container: Place) -> None:
    """The container's own restart policy, and the exit codes for which it does not count."""
    container.check_one_of("restartPolicy", _RESTART_POLICIES)
    rules = container.objects("restartPolicyRules")
    if rules and not container.text("restartPolicy"):
        container.required("restartPolicy", "must specify restartPolicy when restart rules are used")
    if len(rules) > _MAX_RESTART_RULES:
        container.report(finding.too_many(container.path("restartPolicyRules"), rules, _MAX_RESTART_RULES))
    for rule in rules:
        rule.require("action")
        rule.check_one_of("action", ("Restart", "RestartAllContainers"))
        codes = rule.child("exitCodes")
        if codes is None:
            rule.required("exitCodes", "must be specified")
            continue
        codes.require("operator")
        codes.check_one_of("operator", ("In", "NotIn"))
        if len(codes.entries("values")) > _MAX_EXIT_CODES:
            codes.report(finding.too_many(codes.path("values"), codes.entries("values"), _MAX_EXIT_CODES))


def _check_ports(container: Place) -> None:
    names: set[str] = set()
    for port in container.objects("ports"):
        name = port.text("name")
        if name:
            problem = port_name_problem(name)
            port.check("name", problem)
            if problem is None and name in names:
                port.duplicate("name", name)
            names.add(name)
        number = port.number("containerPort")
        if not number:
            port.required("containerPort")
        else:
            port.check("containerPort", port_problem(number))
        on_host = port.number("hostPort")
        if on_host:
            port.check("hostPort", port_problem(on_host))
        port.check_one_of("protocol", PROTOCOLS)
        if port.text("hostIP"):
            port.check("hostIP", ip_problem(port.text("hostIP")))


def _check_host_ports(containers: Iterable[Place]) -> None:
    """No two of the containers want the same port of the node (AccumulateUniqueHostPorts)."""
    seen: set[str] = set()
    for container in containers:
        for port in container.objects("ports"):
            number = port.number("hostPort")
            if not number:
                continue
            key = f"{port.text('protocol', 'TCP')}/{port.text('hostIP')}/{number}"
            if key in seen:
                port.duplicate("hostPort", key)
            seen.add(key)


def _check_resize_policy(container: Place, restart_policy: str) -> None:
    seen: set[str] = set()
    for place in container.objects("resizePolicy"):
        resource, policy = place.text("resourceName"), place.text("restartPolicy")
        if resource in seen:
            place.duplicate("", resource)
        seen.add(resource)
        place.require("resourceName", "restartPolicy")
        place.check_one_of("resourceName", _RESIZABLE)
        place.check_one_of("restartPolicy", _RESIZE_POLICIES)
        if restart_policy == "Never" and policy == "RestartContainer":
            place.invalid("restartPolicy", policy, "must be 'NotRequired' when `restartPolicy` is 'Never'")
