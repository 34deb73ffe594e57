"""Pod security admission: the Pod Security Standards that the labels of namespaces name.

Source: staging/src/k8s.io/pod-security-admission (admission/admission.go, policy/check_*.go, api/helpers.go).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from podium.api.errors import shown
from podium.api.meta import Raw, object_at, objects_at, value_at
from podium.api.validation.findings import Finding, invalid
from podium.api.workloads import POD_PATHS
from podium.apirequests.admission.policies import AdmissionAttributes
from podium.apirequests.request import Request
from podium.store.errors import forbidden, invalid_fields
from podium.store.store import Store

PREFIX = "pod-security.kubernetes.io/"
"""The prefix of the labels, and of the annotations of audit Events."""

_LEVELS = ("privileged", "baseline", "restricted")
_PRIVILEGED, _BASELINE, _RESTRICTED = _LEVELS
_MODES = ("enforce", "audit", "warn")
_VERSION, _LATEST = re.compile(r"latest|v1\.(0|[1-9][0-9]*)"), "latest"
_MOST_PODS = 3_000
_NAMESPACE, _POD = "Namespace", "Pod"
_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
_CAPABILITIES = """
AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID KILL MKNOD NET_BIND_SERVICE SETFCAP SETGID SETPCAP SETUID SYS_CHROOT
"""
# The sysctls that pods may set, by the first minor version of the standards that allows them.
_SYSCTLS = """
0 kernel.shm_rmid_forced net.ipv4.ip_local_port_range net.ipv4.ip_unprivileged_port_start net.ipv4.ping_group_range
0 net.ipv4.tcp_syncookies
27 net.ipv4.ip_local_reserved_ports
29 net.ipv4.tcp_fin_timeout net.ipv4.tcp_keepalive_intvl net.ipv4.tcp_keepalive_probes net.ipv4.tcp_keepalive_time
32 net.ipv4.tcp_rmem net.ipv4.tcp_wmem
"""
_SE_LINUX = ("", "container_t", "container_init_t", "container_kvm_t")
_VOLUMES = "configMap csi downwardAPI emptyDir ephemeral image persistentVolumeClaim projected secret".split()
_PROFILES = (None, "Localhost", "RuntimeDefault")
_APP_ARMOR, _SECCOMP = "container.apparmor.security.beta.kubernetes.io/", "seccomp.security.alpha.kubernetes.io/"
_PROBES = (("livenessProbe",), ("readinessProbe",), ("startupProbe",))
_HANDLERS = (*_PROBES, ("lifecycle", "postStart"), ("lifecycle", "preStop"))


class Standard(NamedTuple):
    """A level of the standards, in one version (`latest` or `v1.34`)."""

    level: str = _PRIVILEGED
    version: str = _LATEST

    def __str__(self) -> str:
        return f"{self.level}:{self.version}"


class _Pod(NamedTuple):
    """The annotations and the specification of a pod, and the minor version of the standards."""

    annotations: Mapping[str, str]
    spec: Raw
    minor: int

    @property
    def containers(self) -> list[Raw]:
        return [each for field in _CONTAINERS for each in objects_at(self.spec, field)]

    def values(self, path: str) -> dict[str, Any]:
        """Return the values in the security contexts of the pod ("") and of each container, None for unset ones."""
        holders = {"": self.spec, **{each["name"]: each for each in self.containers}}
        return {name: value_at(each, "securityContext", *path.split(".")) for name, each in holders.items()}


# The reason and the detail of a violation.
_Violation = tuple[str, str]
_Control = Callable[[_Pod], _Violation | None]


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _plural(noun: str, found: Collection[object]) -> str:
    return noun if len(found) == 1 else f"{noun}s"


def _named(noun: str, names: Collection[str]) -> str:
    return f"{_plural(noun, names)} {_quoted(names)}"


def _setters(names: Iterable[str]) -> str:
    """Return the pod ("") and the containers as text."""
    containers = [name for name in names if name]
    pod = ["pod"] if "" in names else []
    return " and ".join([*pod, _named("container", containers)] if containers else pod)


def _users(noun: str, used: Mapping[str, Iterable[str]], what: str, form: Callable[[list[str]], str]) -> str:
    """Return who uses what; ``used`` is it by user."""
    found = sorted({one for ones in used.values() for one in ones})
    return f"{_named(noun, used)} {'uses' if len(used) == 1 else 'use'} {_plural(what, found)} {form(found)}"


def _field(
    reason: str, path: str, is_bad: Callable[[Any], bool], problem: str, required: str = "", *, of_pod: bool = True
) -> _Control:
    """Return a control of a field in security contexts.

    The path and the bad values replace `{}` in the problem. Containers may omit a ``required`` field if the pod has it.
    """

    def check(pod: _Pod) -> _Violation | None:
        values = pod.values(path)
        bad = {name: value for name, value in values.items() if (name or of_pod) and is_bad(value)}
        if bad:
            listed = _quoted(sorted({str(value) for value in bad.values()}))
            return reason, f"{_setters(bad)} {problem.format(f'securityContext.{path}', listed)}"
        lacking = [name for name, value in values.items() if name and value is None]
        is_lacking = required and values[""] is None and lacking
        return (reason, f"pod or {_setters(lacking)} must set securityContext.{path}{required}") if is_lacking else None

    return check


def _unless(path: Sequence[str], value: object, since: int, control: _Control) -> _Control:
    """Return a control with which pods comply that have a value at a path, from a minor version of the standards."""
    return lambda pod: None if pod.minor >= since and value_at(pod.spec, *path) == value else control(pod)


def _annotated(pod: _Pod, names: Iterable[str], *allowed: str) -> list[str]:
    """Return the annotations with other profiles than the allowed ones and those of the node."""
    found = ((name, pod.annotations[name]) for name in sorted(names) if name in pod.annotations)
    return [
        f"{name}={shown(value)}" for name, value in found if not (value in allowed or value.startswith("localhost/"))
    ]


def _app_armor(pod: _Pod) -> _Violation | None:
    bad = {name: type_ for name, type_ in pod.values("appArmorProfile.type").items() if type_ not in _PROFILES}
    annotations = _annotated(pod, filter(re.compile(_APP_ARMOR).match, pod.annotations), "", "runtime/default")
    if not bad and not annotations:
        return None
    listed = [*sorted({*bad.values()}), *annotations]
    setters = " and ".join(filter(None, (_setters(bad), _plural("annotation", annotations) if annotations else "")))
    detail = f"{setters} must not set AppArmor profile type to {_quoted(listed)}"
    return _plural("forbidden AppArmor profile", listed), detail


def _capabilities(reason: str, allowed: Collection[str], *, drops_all: bool = False) -> _Control:
    def check(pod: _Pod) -> _Violation | None:
        added = {name: {*(names or ())} - {*allowed} for name, names in pod.values("capabilities.add").items()}
        bad, listed = [name for name in added if added[name]], _quoted(sorted(set().union(*added.values())))
        drops = pod.values("capabilities.drop").items() if drops_all else ()
        keeping = [name for name, names in drops if name and "ALL" not in (names or ())]
        details = [f'{_setters(keeping)} must set securityContext.capabilities.drop=["ALL"]'] if keeping else []
        details += [f"{_setters(bad)} must not include {listed} in securityContext.capabilities.add"] if bad else []
        return (reason, "; ".join(details)) if details else None

    return check


def _host_namespaces(pod: _Pod) -> _Violation | None:
    found = [f"{name}=true" for name in ("hostNetwork", "hostPID", "hostIPC") if pod.spec.get(name)]
    return ("host namespaces", ", ".join(found)) if found else None


def _host_paths(pod: _Pod) -> _Violation | None:
    names = [volume["name"] for volume in objects_at(pod.spec, "volumes") if "hostPath" in volume]
    return ("hostPath volumes", _named("volume", names)) if names else None


def _used(what: str, find: Callable[[Raw], list[str]], form: Callable[[list[str]], str]) -> _Control:
    """Return a control of what no container may use."""

    def check(pod: _Pod) -> _Violation | None:
        used = {each["name"]: found for each in pod.containers if (found := find(each))}
        return (what, _users("container", used, what, form)) if used else None

    return check


def _host_ports(container: Raw) -> list[str]:
    return [str(port["hostPort"]) for port in objects_at(container, "ports") if port.get("hostPort")]


def _hosts(container: Raw) -> list[str]:
    paths = ((*path, sort, "host") for path in _HANDLERS for sort in ("httpGet", "tcpSocket"))
    return [host for path in paths if (host := value_at(container, *path))]


def _se_linux(pod: _Pod) -> _Violation | None:
    allowed = (*_SE_LINUX, "container_engine_t") if pod.minor >= 31 else _SE_LINUX
    options = {name: value or {} for name, value in pod.values("seLinuxOptions").items()}
    bad = {name: each for name, each in options.items() if each.get("type", "") not in allowed}
    types = sorted({each["type"] for each in bad.values()})
    problems = [_named("type", types)] if types else []
    for part in ("user", "role"):
        setters = {name: each for name, each in options.items() if each.get(part)}
        problems += [f"{part} may not be set"] if setters else []
        bad |= setters
    detail = f"{_setters(bad)} set forbidden securityContext.seLinuxOptions: {'; '.join(problems)}"
    return ("seLinuxOptions", detail) if bad else None


def _seccomp_annotations(pod: _Pod) -> _Violation | None:
    names = (f"{_SECCOMP}pod", *(f"container.{_SECCOMP}{each['name']}" for each in pod.containers))
    found = _annotated(pod, names, "docker/default", "runtime/default")
    return ("seccompProfile", f"forbidden {_plural('annotation', found)} {', '.join(found)}") if found else None


def _sysctls(pod: _Pod) -> _Violation | None:
    rows = (row.split() for row in _SYSCTLS.strip().splitlines())
    allowed = {name for since, *names in rows if int(since) <= pod.minor for name in names}
    names = [each["name"] for each in objects_at(pod.spec, "securityContext", "sysctls") if each["name"] not in allowed]
    return ("forbidden sysctls", ", ".join(names)) if names else None


def _volumes(pod: _Pod) -> _Violation | None:
    used = {each["name"]: [*(each.keys() - {"name"})] or ["unknown"] for each in objects_at(pod.spec, "volumes")}
    used = {name: types for name, types in used.items() if types[0] not in _VOLUMES}
    what = "restricted volume type"
    return (f"{what}s", _users("volume", used, what, _quoted)) if used else None


_ESCALATION = "allowPrivilegeEscalation"
_WINDOWS, _OWN_USERS = (("os", "name"), "windows", 25), (("hostUsers",), False, 35)
_proc_mount = _field("procMount", "procMount", lambda value: value not in (None, "Default"), "must not set {} to {}")
_escalation = _field(
    f"{_ESCALATION} != false", _ESCALATION, lambda value: value is not False, "must set {}=false", of_pod=False
)
_non_root = _field("runAsNonRoot != true", "runAsNonRoot", lambda one: one is False, "must not set {}=false", "=true")
_non_zero = _field("runAsUser=0", "runAsUser", lambda user: user == 0, "must not set runAsUser=0")
_seccomp = ("seccompProfile", "seccompProfile.type", lambda value: value not in _PROFILES, "must not set {} to {}")
_required_seccomp = _field(*_seccomp, ' to "RuntimeDefault" or "Localhost"')
_few = _capabilities("unrestricted capabilities", ("NET_BIND_SERVICE",), drops_all=True)

# The controls: level, name, first minor version, and control. A later one replaces an earlier one of its name.
_CONTROLS: Sequence[tuple[str, str, int, _Control]] = (
    (_BASELINE, "appArmorProfile", 0, _app_armor),
    (_BASELINE, "capabilities", 0, _capabilities("non-default capabilities", _CAPABILITIES.split())),
    (_BASELINE, "hostNamespaces", 0, _host_namespaces),
    (_BASELINE, "volumes", 0, _host_paths),
    (_BASELINE, "hostPorts", 0, _used("hostPort", _host_ports, ", ".join)),
    (_BASELINE, "hosts", 34, _used("probe or lifecycle host", _hosts, _quoted)),
    (_BASELINE, "privileged", 0, _field("privileged", "privileged", bool, "must not set {}=true")),
    (_BASELINE, "procMount", 0, _unless(*_OWN_USERS, _proc_mount)),
    (_BASELINE, "seLinuxOptions", 0, _se_linux),
    (_BASELINE, "seccompProfile", 0, _seccomp_annotations),
    (_BASELINE, "seccompProfile", 19, _field(*_seccomp)),
    (_BASELINE, "sysctls", 0, _sysctls),
    (_BASELINE, "hostProcess", 0, _field("hostProcess", "windowsOptions.hostProcess", bool, "must not set {}=true")),
    (_RESTRICTED, "allowPrivilegeEscalation", 8, _unless(*_WINDOWS, _escalation)),
    (_RESTRICTED, "capabilities", 22, _unless(*_WINDOWS, _few)),
    (_RESTRICTED, "procMount", 35, _proc_mount),
    (_RESTRICTED, "volumes", 0, _volumes),
    (_RESTRICTED, "runAsNonRoot", 0, _unless(*_OWN_USERS, _non_root)),
    (_RESTRICTED, "runAsUser", 23, _unless(*_OWN_USERS, _non_zero)),
    (_RESTRICTED, "seccompProfile", 19, _unless(*_WINDOWS, _required_seccomp)),
)


def violations(standard: Standard, pod: Raw, newest: int) -> list[_Violation]:
    """Return what a pod, or a template, violates of a standard; ``newest`` is the latest minor version of standards."""
    minor = newest if standard.version == _LATEST else min(newest, int(standard.version.partition(".")[2]))
    levels, kept = _LEVELS[: _LEVELS.index(standard.level) + 1], dict[str, _Control]()
    for level, name, since, control in _CONTROLS:
        if level in levels and since <= minor:
            kept.pop(name, None)
            kept[name] = control
    about = _Pod(object_at(pod, "metadata", "annotations"), object_at(pod, "spec"), minor)
    return [found for control in kept.values() if (found := control(about)) is not None]


def _standards(labels: Mapping[str, str]) -> tuple[dict[str, Standard], list[Finding]]:
    """Return the standards that a namespace enforces, audits, and warns about, and what is wrong with its labels.

    An unknown level enforces `restricted`, and neither audits nor warns.
    """
    found, findings = dict[str, Standard](), list[Finding]()
    for mode in _MODES:
        level = labels.get(f"{PREFIX}{mode}", _PRIVILEGED)
        version = labels.get(f"{PREFIX}{mode}-version", _LATEST)
        if level not in _LEVELS:
            problem = f"must be one of {', '.join(_LEVELS)}"
            findings.append(invalid(f".metadata.labels[{PREFIX}{mode}]", level, problem))
            level = _RESTRICTED if mode == "enforce" else _PRIVILEGED
        if not _VERSION.fullmatch(version):
            findings.append(invalid(f".metadata.labels[{PREFIX}{mode}-version]", version, 'must be "latest" or "v1.x"'))
            version = _LATEST
        found[mode] = Standard(level, version)
    return found, findings


class PodSecurity:
    """The standards of the namespaces of a store; ``newest`` is the latest minor version of the standards."""

    def __init__(self, store: Store, newest: int) -> None:
        self._store = store
        self._newest = newest

    def concerns(self, request: Request) -> bool:
        """Return whether a write is compared with standards."""
        if request.kind not in POD_PATHS or request.subresource == "status":
            return request.kind == _NAMESPACE
        namespace = request.key.rpartition("/")[0] if request.key else request.namespace
        namespace = namespace or value_at(request.body, "metadata", "namespace") or "default"
        return any(name.startswith(PREFIX) for name in self._labels(namespace))

    def validate(self, attributes: AdmissionAttributes, warnings: list[str], audited: dict[str, str]) -> None:
        """Append warnings, and add annotations of the audit Event. Raises StoreError for what is not allowed."""
        raw, kind = attributes.object, attributes.resource.name
        if kind == _NAMESPACE and raw is not None and not attributes.subresource:
            self._validate_namespace(attributes, raw, warnings)
        if kind not in POD_PATHS or raw is None or attributes.subresource not in ("", "ephemeralcontainers"):
            return
        if kind == _POD and attributes.old is not None and _mutable_part(attributes.old) == _mutable_part(raw):
            return
        standards, findings = _standards(self._labels(attributes.namespace))
        if not findings and all(standard.level == _PRIVILEGED for standard in standards.values()):
            return
        pod = object_at(raw, *POD_PATHS[kind])
        found = {
            mode: ", ".join(f"{reason} ({detail})" for reason, detail in violations(standard, pod, self._newest))
            for mode, standard in standards.items()
        }
        problem = {mode: f'violate PodSecurity "{standards[mode]}": {text}' for mode, text in found.items() if text}
        if findings:
            audited[f"{PREFIX}error"] = f"Failed to parse policy: {'; '.join(map(str, findings))}"
        if kind == _POD:
            audited[f"{PREFIX}enforce-policy"] = str(standards["enforce"])
        if "audit" in problem:
            audited[f"{PREFIX}audit-violations"] = f"would {problem['audit']}"
        if kind == _POD and "enforce" in problem:
            raise forbidden(attributes.resource, attributes.key, problem["enforce"].replace("violate", "violates", 1))
        if "warn" in problem:
            warnings.append(f"would {problem['warn']}")

    def _labels(self, namespace: str) -> Mapping[str, str]:
        stored = self._store.find(_NAMESPACE, namespace)
        return {} if stored is None else stored.object.metadata.labels

    def _validate_namespace(self, attributes: AdmissionAttributes, raw: Raw, warnings: list[str]) -> None:
        """Warn about existing pods if a stricter level is enforced. Raises StoreError 422 for invalid labels."""
        standards, findings = _standards(object_at(raw, "metadata", "labels"))
        before, known = _standards(object_at(attributes.old, "metadata", "labels"))
        if findings and (attributes.old is None or findings != known):
            raise invalid_fields(attributes.resource, attributes.key, findings)
        new, old = standards["enforce"], before["enforce"]
        is_relaxed = new.version == old.version and _LEVELS.index(new.level) <= _LEVELS.index(old.level)
        if attributes.old is None or new.level == _PRIVILEGED or is_relaxed:
            return
        pods = self._store.objects(_POD, attributes.key)
        names: dict[str, list[str]] = {}
        for stored in pods[:_MOST_PODS]:
            if found := violations(new, stored.raw, self._newest):
                names.setdefault(", ".join(reason for reason, _ in found), []).append(stored.object.metadata.name)
        if len(pods) > _MOST_PODS:
            checked = f"the first {_MOST_PODS} of {len(pods)} existing pods"
            warnings.append(f"new PodSecurity enforce level only checked against {checked}")
        if names:
            violated = f'violate the new PodSecurity enforce level "{new}"'
            warnings.append(f'existing pods in namespace "{attributes.key}" {violated}')
        warnings += sorted(f"{min(each)}{_others(len(each) - 1)}: {reasons}" for reasons, each in names.items())


def _others(count: int) -> str:
    return f" (and {count} other {'pod' if count == 1 else 'pods'})" if count else ""


def _mutable_part(pod: Raw) -> object:
    """Return what a pod's updates can change of what the standards are about."""
    spec, annotations = object_at(pod, "spec"), object_at(pod, "metadata", "annotations")
    images = [{each["name"]: each.get("image") for each in objects_at(spec, field)} for field in _CONTAINERS]
    return images, {name: value for name, value in annotations.items() if _SECCOMP in name}
