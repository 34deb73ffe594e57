"""Validation of containers: their ports, environment, mounts and probes (core/validation, validateContainers)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from podium.api.names import label_key_problem
from podium.api.validation import amounts, placement, rules
from podium.api.validation.findings import Place

_PROBES_AND_LIFECYCLE = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
_POD_FIELDS = tuple(
    """
    metadata.name metadata.namespace metadata.uid spec.nodeName spec.serviceAccountName status.hostIP status.hostIPs
    status.podIP status.podIPs
    """.split()
)
_FILE_FIELDS = ("metadata.name", "metadata.namespace", "metadata.labels", "metadata.annotations", "metadata.uid")
# An older field name that is still accepted.
_ALIASES = {"spec.host": "spec.nodeName"}
_RESOURCES = tuple(
    f"{part}.{name}" for part in ("limits", "requests") for name in ("cpu", "memory", "ephemeral-storage")
)
_HUGE_PAGES = ("requests.hugepages-", "limits.hugepages-")
_SUBSCRIPTED = re.compile(r"(metadata\.(?:labels|annotations))\['([^']*)'\]")

rules.declare(
    """\
ConfigMapEnvSource SecretEnvSource: name!:subdomain-or-prefix
ConfigMapKeySelector SecretKeySelector: name::subdomain key!:config-key
Container: @image terminationMessagePolicy:File|FallbackToLogsOnError imagePullPolicy:Always|IfNotPresent|Never
  ports##name ports env envFrom @mounts volumeMounts @devices volumeDevices @resources resizePolicy securityContext
ContainerPort: name:port-name containerPort!:port hostPort:port protocol:SCTP|TCP|UDP hostIP:ip
ContainerResizePolicy: resourceName!:cpu|memory restartPolicy!:NotRequired|RestartContainer @resize
ContainerRestartRule: action!:Restart|RestartAllContainers exitCodes!
ContainerRestartRuleOnExitCodes: operator!:In|NotIn values:..255
EnvFromSource: prefix:environment-name ^configMapRef|secretRef configMapRef secretRef
EnvVar: name!:environment-name valueFrom @value_source
EnvVarSource: ^fieldRef|resourceFieldRef|configMapKeyRef|secretKeyRef|fileKeyRef fieldRef resourceFieldRef
  configMapKeyRef secretKeyRef fileKeyRef
ExecAction: command!
FileKeySelector: volumeName!:label path!:path-without-backsteps key!:environment-name @environment_file
GRPCAction TCPSocketAction: port::port-or-name
HTTPGetAction: port::port-or-name scheme:HTTP|HTTPS httpHeaders
HTTPHeader: name::header
LifecycleHandler: @handler
ObjectFieldSelector: @field
Probe: @handler initialDelaySeconds:0.. timeoutSeconds:0.. periodSeconds:0.. successThreshold:0.. failureThreshold:0..
  terminationGracePeriodSeconds:1.. @probe
ResourceFieldSelector: @resource
VolumeDevice: name! devicePath!:path-without-backsteps
VolumeMount: name! mountPath! subPath:relative-path subPathExpr:relative-path
  mountPropagation:Bidirectional|HostToContainer|None recursiveReadOnly:Disabled|IfPossible|Enabled @mount
""",
    """\
Container: resources ports:..1000
ResourceRequirements: requests:amounts limits:amounts
""",
)


@rules.check
def _containers(spec: Place) -> None:
    """Check all containers of a pod: regular, init and ephemeral ones."""
    regular = spec.objects("containers")
    if not spec.value.get("containers"):
        spec.required("containers")
    names: set[str] = set()
    for container in regular:
        rules.check_own_name(container, names)
        rules.check_type(container, "Container")
        _check_running(container)
    _check_host_ports(regular)
    for container in spec.objects("initContainers"):
        rules.check_own_name(container, names)
        rules.check_type(container, "Container")
        if container.text("restartPolicy") == "Always":
            _check_running(container)
        else:
            for name in container.fields_set(*_PROBES_AND_LIFECYCLE):
                container.forbidden(name, "may not be set for init containers without restartPolicy=Always")
            _check_restarts(container)
        _check_host_ports([container])
    running = frozenset(names)
    for container in spec.objects("ephemeralContainers"):
        rules.check_own_name(container, names)
        rules.check_type(container, "Container")
        _check_ephemeral(container, running)


@rules.check
def _host_network(spec: Place) -> None:
    """Check that host ports equal container ports on the host network; unset ones default to these."""
    for container in spec.objects("containers") if spec.flag("hostNetwork") else ():
        for port in container.objects("ports"):
            on_host, inside = port.number("hostPort") or 0, port.number("containerPort") or 0
            if on_host != inside and on_host:
                port.invalid("hostPort", on_host, "must match `containerPort` when `hostNetwork` is true")


@rules.check
def _image(container: Place) -> None:
    if not (image := container.text("image")):
        container.required("image")
    elif not container.context.is_template and image != image.strip():
        container.invalid("image", image, "must not have leading or trailing whitespace")


def _check_running(container: Place) -> None:
    """Check the probes, lifecycle hooks and restarts of a container."""
    for probe in filter(None, map(container.child, _PROBES_AND_LIFECYCLE[1:])):
        rules.check_type(probe, "Probe")
    for handler in filter(None, map(container.child_or_empty("lifecycle").child, ("postStart", "preStop"))):
        rules.check_type(handler, "LifecycleHandler")
    _check_restarts(container)


def _check_ephemeral(container: Place, running: Iterable[str]) -> None:
    for name in filter(container.value.get, ("ports", "resources", "resizePolicy", *_PROBES_AND_LIFECYCLE)):
        container.forbidden(name, "cannot be set for an Ephemeral Container")
    if (target := container.text("targetContainerName")) and target not in running:
        container.not_found("targetContainerName", target)
    for mount in container.objects("volumeMounts"):
        for name in filter(mount.text, ("subPath", "subPathExpr")):
            mount.forbidden(name, "cannot be set for an Ephemeral Container")


def _check_restarts(container: Place) -> None:
    """Check the container's own restart policy, and its restart rules."""
    rules.check_alternatives(container, "restartPolicy", ("Always", "OnFailure", "Never"))
    restart_rules = container.objects("restartPolicyRules")
    if restart_rules and not container.text("restartPolicy"):
        container.required("restartPolicy", "must specify restartPolicy when restart rules are used")
    container.check_number("restartPolicyRules", 20)
    for rule in restart_rules:
        rules.check_type(rule, "ContainerRestartRule")


def _check_host_ports(containers: Iterable[Place]) -> None:
    """Check that no two containers use the same host port (AccumulateUniqueHostPorts)."""
    ports = [port for container in containers for port in container.objects("ports") if port.number("hostPort")]
    rules.report_repeats(
        ports,
        "hostPort",
        lambda port: f"{port.text('protocol', 'TCP')}/{port.text('hostIP')}/{port.number('hostPort')}",
    )


@rules.check
def _resources(container: Place) -> None:
    amounts.check_requirements(container, amounts.container_resource_problem, container.context.claims)
    rules.report_repeats(container.objects("resizePolicy"), "", lambda policy: policy.text("resourceName"))


@rules.check
def _resize(policy: Place) -> None:
    if policy.context.restart_policy == "Never" and policy.text("restartPolicy") == "RestartContainer":
        policy.invalid("restartPolicy", "RestartContainer", "must be 'NotRequired' when `restartPolicy` is 'Never'")


@rules.check
def _mounts(container: Place) -> None:
    """Check that mounts have volumes, and unique paths."""
    volumes, devices = container.context.volumes, container.objects("volumeDevices")
    device_names = {device.text("name") for device in devices}
    device_paths = {device.text("devicePath") for device in devices}
    paths: set[str] = set()
    for mount in container.objects("volumeMounts"):
        name, path = mount.text("name"), mount.text("mountPath")
        if name and name not in volumes:
            mount.not_found("name", name)
        if path in paths:
            mount.invalid("mountPath", path, "must be unique")
        paths.add(path)
        if name in device_names:
            mount.invalid("name", name, "must not already exist in volumeDevices")
        if path in device_paths:
            mount.invalid("mountPath", path, "must not already exist as a path in volumeDevices")


@rules.check
def _devices(container: Place) -> None:
    """Check that block devices have volumes for them, and unique names and paths."""
    volumes, devices = container.context.volumes, container.objects("volumeDevices")
    for number, device in enumerate(devices):
        for field in ("name", "devicePath"):
            if (value := device.text(field)) and value in (other.text(field) for other in devices[:number]):
                device.invalid(field, value, "must be unique")
        name = device.text("name")
        if name not in volumes:
            device.not_found("name", name)
        elif not {"persistentVolumeClaim", "ephemeral"} & set(volumes[name]):
            detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            device.invalid("name", name, detail)


@rules.check
def _mount(mount: Place) -> None:
    """Check what excludes each other: subPath and subPathExpr, image volumes, and forms of propagation."""
    for name in ("subPath", "subPathExpr"):
        if mount.text(name) and "image" in mount.context.volumes.get(mount.text("name"), ()):
            mount.invalid(name, mount.text(name), "not allowed in image volume sources")
    if mount.text("subPath") and mount.text("subPathExpr"):
        mount.invalid("subPathExpr", mount.text("subPathExpr"), "subPathExpr and subPath are mutually exclusive")
    propagation, container = mount.text("mountPropagation"), mount.owner
    if propagation == "Bidirectional" and not container.child_or_empty("securityContext").flag("privileged"):
        detail = "Bidirectional mount propagation is available only to privileged containers"
        mount.forbidden("mountPropagation", detail)
    if mount.text("recursiveReadOnly", "Disabled") == "Disabled":
        return
    if not mount.flag("readOnly"):
        mount.forbidden("recursiveReadOnly", "may only be specified when readOnly is true")
    if propagation not in ("", "None"):
        mount.forbidden("recursiveReadOnly", "may only be specified when mountPropagation is None or not specified")


@rules.check
def _value_source(variable: Place) -> None:
    source = variable.child_or_empty("valueFrom")
    if source.value and variable.text("value"):
        source.invalid("", "", "may not be specified when `value` is not empty")


@rules.check
def _environment_file(reference: Place) -> None:
    name, volumes = reference.text("volumeName"), reference.context.volumes
    if name not in volumes:
        reference.not_found("volumeName", name)
    elif volumes[name].keys() - {"name", "emptyDir"}:
        reference.invalid("volumeName", name, "referenced volume must be of type emptyDir")


@rules.check
def _field(reference: Place) -> None:
    """Check a reference to a field of the pod, or to one label or annotation (validateObjectFieldSelector)."""
    path, fields = reference.text("fieldPath"), _POD_FIELDS if reference.owner.field == "valueFrom" else _FILE_FIELDS
    if not path:
        reference.required("fieldPath")
    elif subscripted := _SUBSCRIPTED.fullmatch(path):
        key = subscripted[2]
        reference.check("", label_key_problem(key.lower() if "annotations" in subscripted[1] else key))
    elif _ALIASES.get(path, path) not in fields:
        reference.unsupported("fieldPath", path, fields)


@rules.check
def _resource(reference: Place) -> None:
    """Check a reference to a request or limit of a container (validateContainerResourceFieldSelector)."""
    resource = reference.text("resource")
    if reference.owner.field != "valueFrom" and not reference.text("containerName"):
        reference.required("containerName")
    elif not resource:
        reference.required("resource")
    elif resource not in _RESOURCES and not resource.startswith(_HUGE_PAGES):
        reference.unsupported("resource", resource, _RESOURCES)


@rules.check
def _probe(probe: Place) -> None:
    seconds, is_readiness = probe.number("terminationGracePeriodSeconds"), probe.field == "readinessProbe"
    if seconds is not None and seconds > 0 and is_readiness:
        probe.invalid("terminationGracePeriodSeconds", seconds, "must not be set for readinessProbes")
    if (successes := probe.number("successThreshold") or 1) > 1 and not is_readiness:
        probe.invalid("successThreshold", successes, "must be 1")


@rules.check
def _handler(place: Place) -> None:
    """Check that a probe or hook has one handler, and that one."""
    actions = {"exec": "ExecAction", "httpGet": "HTTPGetAction", "tcpSocket": "TCPSocketAction"}
    actions |= {"grpc": "GRPCAction"} if place.field.endswith("Probe") else {"grpc": "GRPCAction", "sleep": ""}
    given = place.fields_set(*actions)
    action = placement.only_one(place, given, "must specify a handler type", "may not specify more than 1 handler type")
    if action is not None and given[0] != "sleep":
        rules.check_type(action, actions[given[0]])
    elif action is not None:
        seconds, most = action.number("seconds") or 0, place.context.grace_seconds
        if not 0 <= seconds <= most:
            detail = f"must be non-negative and less than terminationGracePeriodSeconds ({most})"
            place.invalid("sleep", seconds, detail)
