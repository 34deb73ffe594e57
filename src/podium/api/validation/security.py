"""Security contexts of pods and of their containers (core/validation, ValidateSecurityContext)."""

from __future__ import annotations

import re

from podium.api.validation.formats import descending_problem, id_problem
from podium.api.validation.place import Place

_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_SYSCTL = re.compile(r"(?:[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?", re.ASCII)
_MAX_SYSCTL = 253
_SYSTEMS = ("linux", "windows")
_NOT_WINDOWS_OF_POD = ("hostPID", "hostIPC", "hostUsers", "shareProcessNamespace")
_NOT_WINDOWS_SECURITY = (
    "appArmorProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "runAsGroup",
    "runAsUser",
    "seLinuxChangePolicy",
    "seLinuxOptions",
    "seccompProfile",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "sysctls",
)
_NOT_WINDOWS_CONTAINER = (
    "allowPrivilegeEscalation",
    "appArmorProfile",
    "capabilities",
    "privileged",
    "procMount",
    "readOnlyRootFilesystem",
    "runAsGroup",
    "runAsUser",
    "seLinuxOptions",
    "seccompProfile",
)


def check_container_security(container: Place) -> None:
    """The security context of a container."""
    context = container.child("securityContext")
    if context is None:
        return
    _check_ids(context, "runAsUser", "runAsGroup")
    _check_profile(context, "seccompProfile")
    _check_profile(context, "appArmorProfile")
    context.check_one_of("procMount", ("Default", "Unmasked"))
    if context.value.get("allowPrivilegeEscalation") is not False:
        return
    if context.flag("privileged"):
        container.invalid(
            "securityContext", {}, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        )
    added = context.child_or_empty("capabilities").texts("add")
    if any(place.value == "CAP_SYS_ADMIN" for place in added):
        detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
        container.invalid("securityContext", {}, detail)


def check_pod_security(spec: Place) -> None:
    """The security context of a pod, what it shares with its node, and its operating system."""
    context = spec.child("securityContext")
    if context is not None:
        _check_context(spec, context)
    if spec.value.get("hostUsers") is False:
        for name in ("hostPID", "hostIPC"):
            if spec.flag(name):
                spec.forbidden(name, "when `pod.Spec.HostUsers` is false")
    system = spec.child("os")
    if system is not None:
        _check_system(spec, system)


def _check_context(spec: Place, context: Place) -> None:
    _check_ids(context, "runAsUser", "runAsGroup", "fsGroup")
    for group in context.entries("supplementalGroups"):
        if type(group.value) is int:
            group.check("", id_problem(group.value))
    if spec.flag("shareProcessNamespace") and spec.flag("hostPID"):
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        spec.invalid("shareProcessNamespace", True, detail)
    context.check_one_of("fsGroupChangePolicy", ("Always", "OnRootMismatch"))
    context.check_one_of("supplementalGroupsPolicy", ("Merge", "Strict"))
    context.check_one_of("seLinuxChangePolicy", ("MountOption", "Recursive"))
    _check_profile(context, "seccompProfile")
    _check_profile(context, "appArmorProfile")
    _check_sysctls(context)


def _check_ids(context: Place, *names: str) -> None:
    for name in names:
        number = context.number(name)
        if number is not None:
            context.check(name, id_problem(number))


def _check_profile(context: Place, name: str) -> None:
    """A seccomp or AppArmor profile: its type, and its file where that is one of the node's."""
    profile = context.child(name)
    if profile is None:
        return
    type_ = profile.text("type")
    if not type_:
        profile.required("type", f"type is required when {name} is set")
        return
    profile.check_one_of("type", _PROFILES)
    file = profile.text("localhostProfile")
    if type_ != "Localhost":
        if profile.has("localhostProfile"):
            profile.invalid("localhostProfile", file, f"can only be set when {name} type is Localhost")
    elif not file:
        profile.required("localhostProfile", f"must be set when {name} type is Localhost")
    elif name == "seccompProfile":
        profile.check("localhostProfile", descending_problem(file))


def _check_sysctls(context: Place) -> None:
    seen: set[str] = set()
    for place in context.objects("sysctls"):
        name = place.text("name")
        if not name:
            place.required("name")
        elif len(name) > _MAX_SYSCTL or not _SYSCTL.fullmatch(name):
            place.invalid(
                "name", name, "must be words of lower-case letters, digits, '-' and '_', joined by '.' or '/'"
            )
        elif name in seen:
            place.duplicate("name", name)
        seen.add(name)


def _check_system(spec: Place, system: Place) -> None:
    """What pods for one operating system cannot ask for."""
    name = system.text("name")
    if not name:
        system.required("name", "cannot be empty")
    system.check_one_of("name", _SYSTEMS)
    containers = [container for part in ("containers", "initContainers") for container in spec.objects(part)]
    if name == "linux":
        for place in (spec, *containers):
            _forbid(place.child_or_empty("securityContext"), ("windowsOptions",), "a linux pod")
    elif name == "windows":
        _forbid(spec, _NOT_WINDOWS_OF_POD, "a windows pod")
        _forbid(spec.child_or_empty("securityContext"), _NOT_WINDOWS_SECURITY, "a windows pod")
        for container in containers:
            _forbid(container.child_or_empty("securityContext"), _NOT_WINDOWS_CONTAINER, "a windows pod")


def _forbid(place: Place, names: tuple[str, ...], pod: str) -> None:
    for name in names:
        if place.has(name) and place.value[name] is not False:
            place.forbidden(name, f"cannot be set for {pod}")
