"""Pod Security Standards: their controls, and what namespaces do about pods that violate them."""

from __future__ import annotations

from typing import Any

import pytest

from podium.api.versions.release import Release
from podium.apirequests.admission.pod_security import Standard, violations
from podium.apirequests.request import Response
from podium.apirequests.router import Router
from tests.apirequests.asking import API
from tests.store.objects import Raw

PREFIX = "pod-security.kubernetes.io/"
ALL = 99
STRICT: Raw = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
PROFILE: Raw = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}


def container(name: str = "c", **fields: Any) -> Raw:
    return {"name": name, "image": "i", **fields}


def pod(*containers: Raw, annotations: Raw | None = None, **spec: Any) -> Raw:
    metadata = {"name": "p", "namespace": "shop", "annotations": annotations or {}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [*containers], **spec}}


def context(**fields: Any) -> Raw:
    return pod(container(securityContext=fields))


def of_pod(**fields: Any) -> Raw:
    return pod(container(), securityContext=fields)


def strict(given: Raw | None = None, of_containers: Raw | None = None, **spec: Any) -> Raw:
    """Return a pod that complies with the level restricted, but for what is given."""
    security: Raw = {"securityContext": {**STRICT, **(of_containers or {})}}
    return pod(container(**security), **{"securityContext": {**PROFILE, **(given or {})}, **spec})


def without(raw: Raw, *names: str) -> Raw:
    kept = {name: value for name, value in raw["spec"]["securityContext"].items() if name not in names}
    return {**raw, "spec": {**raw["spec"], "securityContext": kept}}


def told(level: str, raw: Raw, minor: int = ALL) -> str:
    found = violations(Standard(level), raw, minor)
    return ", ".join(f"{reason} ({detail})" for reason, detail in found)


HOST_PATH: Raw = {"name": "v", "hostPath": {"path": "/"}}
APP_ARMOR, SECCOMP = "container.apparmor.security.beta.kubernetes.io/c", "seccomp.security.alpha.kubernetes.io/pod"
TWO = pod(container("a", securityContext={"privileged": True}), container("b", securityContext={"privileged": True}))
PROBE: Raw = {"httpGet": {"port": 80, "host": "10.0.0.1"}}
BASELINE: list[tuple[Raw, Raw, str]] = [
    (
        context(appArmorProfile={"type": "Localhost"}),
        pod(container(securityContext={"appArmorProfile": {"type": "Unconfined"}}), annotations={APP_ARMOR: "none"}),
        'forbidden AppArmor profiles (container "c" and annotation must not set AppArmor profile type to "Unconfined", '
        f'"{APP_ARMOR}="none"")',
    ),
    (
        pod(container(), annotations={APP_ARMOR: "runtime/default"}),
        of_pod(appArmorProfile={"type": "Unconfined"}),
        'forbidden AppArmor profile (pod must not set AppArmor profile type to "Unconfined")',
    ),
    (
        context(capabilities={"add": ["CHOWN"]}),
        context(capabilities={"add": ["SYS_TIME", "CHOWN", "NET_RAW"]}),
        'non-default capabilities (container "c" must not include "NET_RAW", "SYS_TIME" in '
        "securityContext.capabilities.add)",
    ),
    (
        pod(container(), hostNetwork=False),
        pod(container(), hostNetwork=True, hostPID=True, hostIPC=True),
        "host namespaces (hostNetwork=true, hostPID=true, hostIPC=true)",
    ),
    (
        pod(container(), volumes=[{"name": "v", "emptyDir": {}}]),
        pod(container(), volumes=[HOST_PATH]),
        'hostPath volumes (volume "v")',
    ),
    (
        pod(container(ports=[{"containerPort": 80}])),
        pod(container(ports=[{"containerPort": 80, "hostPort": 80}, {"containerPort": 8080, "hostPort": 8080}])),
        'hostPort (container "c" uses hostPorts 80, 8080)',
    ),
    (
        pod(container(livenessProbe={"httpGet": {"port": 80}})),
        pod(container("a", livenessProbe=PROBE), container("b", lifecycle={"preStop": PROBE})),
        'probe or lifecycle host (containers "a", "b" use probe or lifecycle host "10.0.0.1")',
    ),
    (context(privileged=False), TWO, 'privileged (containers "a", "b" must not set securityContext.privileged=true)'),
    (
        context(procMount="Default"),
        context(procMount="Unmasked"),
        'procMount (container "c" must not set securityContext.procMount to "Unmasked")',
    ),
    (
        of_pod(seLinuxOptions={"type": "container_engine_t", "level": "s0"}),
        pod(
            container(securityContext={"seLinuxOptions": {"type": "x", "user": "u"}}),
            securityContext={"seLinuxOptions": {"role": "r"}},
        ),
        'seLinuxOptions (pod and container "c" set forbidden securityContext.seLinuxOptions: type "x"; user may not be '
        "set; role may not be set)",
    ),
    (
        of_pod(seccompProfile={"type": "RuntimeDefault"}),
        pod(
            container(securityContext={"seccompProfile": {"type": "Unconfined"}}),
            securityContext={"seccompProfile": {"type": "Unconfined"}},
        ),
        'seccompProfile (pod and container "c" must not set securityContext.seccompProfile.type to "Unconfined")',
    ),
    (
        of_pod(sysctls=[{"name": "net.ipv4.tcp_rmem", "value": "1"}]),
        of_pod(sysctls=[{"name": "kernel.msgmax", "value": "1"}, {"name": "a", "value": "1"}]),
        "forbidden sysctls (kernel.msgmax, a)",
    ),
    (
        context(windowsOptions={"hostProcess": False}),
        of_pod(windowsOptions={"hostProcess": True}),
        "hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)",
    ),
]
RESTRICTED: list[tuple[Raw, Raw, str]] = [
    (
        strict(),
        strict(of_containers={"allowPrivilegeEscalation": None}),
        'allowPrivilegeEscalation != false (container "c" must set securityContext.allowPrivilegeEscalation=false)',
    ),
    (
        strict(of_containers={"capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}}),
        strict(of_containers={"capabilities": {"drop": ["CHOWN"], "add": ["CHOWN"]}}),
        'unrestricted capabilities (container "c" must set securityContext.capabilities.drop=["ALL"]; container "c" '
        'must not include "CHOWN" in securityContext.capabilities.add)',
    ),
    (
        strict(of_containers={"procMount": "Default"}),
        strict(of_containers={"procMount": "Unmasked"}, hostUsers=False),
        'procMount (container "c" must not set securityContext.procMount to "Unmasked")',
    ),
    (
        strict(volumes=[{"name": "v", "image": {"reference": "i"}}]),
        strict(volumes=[HOST_PATH, {"name": "w", "nfs": {"server": "s", "path": "/"}}]),
        'restricted volume types (volumes "v", "w" use restricted volume types "hostPath", "nfs")',
    ),
    (
        without(strict(of_containers={"runAsNonRoot": True}), "runAsNonRoot"),
        without(strict(), "runAsNonRoot"),
        'runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true)',
    ),
    (
        without(strict(hostUsers=False), "runAsNonRoot"),
        strict({"runAsNonRoot": False}, {"runAsNonRoot": False}),
        'runAsNonRoot != true (pod and container "c" must not set securityContext.runAsNonRoot=false)',
    ),
    (strict({"runAsUser": 1}), strict({"runAsUser": 0}), "runAsUser=0 (pod must not set runAsUser=0)"),
    (
        without(strict(of_containers={"seccompProfile": {"type": "Localhost"}}), "seccompProfile"),
        without(strict(), "seccompProfile"),
        'seccompProfile (pod or container "c" must set securityContext.seccompProfile.type to "RuntimeDefault" or '
        '"Localhost")',
    ),
    (
        strict(of_containers={"seccompProfile": {"type": "RuntimeDefault"}}),
        strict(of_containers={"seccompProfile": {"type": "Unconfined"}}),
        'seccompProfile (container "c" must not set securityContext.seccompProfile.type to "Unconfined")',
    ),
]


@pytest.mark.parametrize(("allowed", "refused", "text"), BASELINE, ids=lambda value: str(value)[:20])
def test_the_level_baseline_forbids_what_gives_pods_the_rights_of_the_node(
    allowed: Raw, refused: Raw, text: str
) -> None:
    assert told("baseline", allowed) == ""
    assert told("baseline", refused) == text
    assert told("privileged", refused) == ""
    assert told("restricted", refused) != ""


@pytest.mark.parametrize(("allowed", "refused", "text"), RESTRICTED, ids=lambda value: str(value)[:20])
def test_the_level_restricted_asks_for_hardened_pods(allowed: Raw, refused: Raw, text: str) -> None:
    assert told("restricted", allowed) == ""
    assert told("restricted", refused) == text


def test_init_and_ephemeral_containers_count_like_others() -> None:
    bad = {"securityContext": {"privileged": True}}
    raw = pod(
        container("c", **bad), initContainers=[container("i", **bad)], ephemeralContainers=[container("e", **bad)]
    )

    assert told("baseline", raw).startswith('privileged (containers "i", "c", "e" must not')


@pytest.mark.parametrize(
    ("raw", "level", "last_allowed", "first_refused"),
    [
        (pod(container(startupProbe={"tcpSocket": {"port": 1, "host": "h"}})), "baseline", 33, 34),
        (context(seccompProfile={"type": "Unconfined"}), "baseline", 18, 19),
        (strict({"runAsUser": 0}), "restricted", 22, 23),
        (of_pod(sysctls=[{"name": "net.ipv4.tcp_rmem", "value": "1"}]), "baseline", 32, 31),
        (of_pod(sysctls=[{"name": "net.ipv4.tcp_fin_timeout", "value": "1"}]), "baseline", 29, 28),
        (of_pod(sysctls=[{"name": "net.ipv4.ip_local_reserved_ports", "value": "1"}]), "baseline", 27, 26),
        (of_pod(seLinuxOptions={"type": "container_engine_t"}), "baseline", 31, 30),
        (pod(container(), annotations={SECCOMP: "unconfined"}), "baseline", 19, 18),
        (pod(container(securityContext={"procMount": "Unmasked"}), hostUsers=False), "baseline", 35, 34),
        (strict({"runAsUser": 0}, hostUsers=False), "restricted", 35, 34),
        (without(strict(hostUsers=False), "runAsNonRoot"), "restricted", 35, 34),
        (pod(container(), os={"name": "windows"}, securityContext={"runAsNonRoot": True}), "restricted", 25, 24),
    ],
    ids=lambda value: str(value)[-40:],
)
def test_a_control_belongs_to_versions_of_the_standards(
    raw: Raw, level: str, last_allowed: int, first_refused: int
) -> None:
    for newest in (last_allowed, ALL):
        assert violations(Standard(level, f"v1.{last_allowed}"), raw, newest) == []
    assert violations(Standard(level, f"v1.{first_refused}"), raw, ALL) != []
    # The server's own version is the latest one.
    assert violations(Standard(level), raw, first_refused) != []


def namespace(**labels: str) -> Raw:
    names = {f"{PREFIX}{mode.replace('_', '-')}": value for mode, value in labels.items()}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": names}}


def create(api: API, raw: Raw) -> Response:
    return api.ask("create", raw["kind"], namespace="shop", body=raw, field_manager="m")


def test_a_namespace_refuses_audits_and_warns_about_pods_below_its_levels() -> None:
    api = API(namespace(enforce="baseline", audit="restricted", audit_version="v1.25", warn="restricted"))

    refused = create(api, pod(container(), hostPID=True))
    created = create(api, pod(container()))

    text = 'violates PodSecurity "baseline:latest": host namespaces (hostPID=true)'
    assert (refused.code, refused.to_dict()["message"]) == (403, f'pods "p" is forbidden: {text}')
    assert (refused.to_dict()["reason"], refused.warnings) == ("Forbidden", ())
    problems = told("restricted", pod(container()))
    assert (created.code, created.warnings) == (201, (f'would violate PodSecurity "restricted:latest": {problems}',))
    assert created.audited == {
        f"{PREFIX}enforce-policy": "baseline:latest",
        f"{PREFIX}audit-violations": f'would violate PodSecurity "restricted:v1.25": {problems}',
    }
    assert set(refused.audited) == {f"{PREFIX}enforce-policy", f"{PREFIX}audit-violations"}


@pytest.mark.parametrize(
    ("kind", "version", "path"),
    [
        ("Deployment", "apps/v1", ("spec", "template")),
        ("Job", "batch/v1", ("spec", "template")),
        ("CronJob", "batch/v1", ("spec", "jobTemplate", "spec", "template")),
        ("PodTemplate", "v1", ("template",)),
    ],
)
def test_templates_of_pods_are_warned_about_but_never_refused(kind: str, version: str, path: tuple[str, ...]) -> None:
    api = API(namespace(enforce="baseline", warn="baseline"))
    labels = {"app": "a"}
    spec: Raw = {"containers": [container()], "hostPID": True, "restartPolicy": "Never"}
    spec = {**spec, "restartPolicy": "Always"} if kind == "Deployment" else spec
    raw: Raw = {"metadata": {"labels": labels}, "spec": spec}
    for name in reversed(path):
        raw = {name: raw}
    if kind == "Deployment":
        raw["spec"]["selector"] = {"matchLabels": labels}
    if kind == "CronJob":
        raw["spec"]["schedule"] = "@daily"

    response = create(api, {"apiVersion": version, "kind": kind, "metadata": {"name": "w", "namespace": "shop"}, **raw})

    assert (response.code, f"{PREFIX}enforce-policy" in response.audited) == (201, False)
    assert 'would violate PodSecurity "baseline:latest": host namespaces (hostPID=true)' in response.warnings


def test_only_updates_of_what_the_standards_look_at_are_checked_again() -> None:
    api = API(namespace(), pod(container(), hostPID=True))
    body = {"metadata": {"labels": namespace(enforce="baseline")["metadata"]["labels"]}}
    labelled = api.ask("patch", "Namespace", "shop", body=body)
    assert labelled.warnings == (
        'existing pods in namespace "shop" violate the new PodSecurity enforce level "baseline:latest"',
        "p: host namespaces",
    )

    label = api.ask("patch", "Pod", "shop/p", body={"metadata": {"labels": {"a": "b"}}})
    image = api.ask("patch", "Pod", "shop/p", body={"spec": {"containers": [{"name": "c", "image": "new"}]}})
    debugged = {"spec": {"ephemeralContainers": [container("d")]}}
    part = api.ask("patch", "Pod", "shop/p", subresource="ephemeralcontainers", body=debugged, patch_type="strategic")
    status = api.ask("patch", "Pod", "shop/p", subresource="status", body={"status": {"phase": "Running"}})

    assert [each.code for each in (label, image, part, status)] == [200, 403, 403, 200]
    assert api.raw("Pod", "shop/p")["spec"]["containers"][0]["image"] == "i"


def test_a_stricter_level_names_existing_pods_by_what_they_violate() -> None:
    pods = [{**pod(container(), hostPID=True), "metadata": {"name": f"p{n}", "namespace": "shop"}} for n in range(3)]
    port = pod(container(ports=[{"containerPort": 1, "hostPort": 1}]))
    api = API(namespace(enforce="restricted"), *pods, port)

    def patch(**labels: str) -> tuple[str, ...]:
        return api.ask("patch", "Namespace", "shop", body={"metadata": namespace(**labels)["metadata"]}).warnings

    assert patch(enforce="baseline") == ()
    assert patch(enforce="baseline", enforce_version="v1.30") == (
        'existing pods in namespace "shop" violate the new PodSecurity enforce level "baseline:v1.30"',
        "p0 (and 2 other pods): host namespaces",
        "p: hostPort",
    )
    assert patch(enforce="privileged") == ()


def test_labels_of_namespaces_must_be_valid_unless_they_were_there() -> None:
    api = API()
    wrong = namespace(enforce="strict", warn_version="1.30")

    refused = api.ask("create", "Namespace", body=wrong)

    assert (refused.code, refused.to_dict()["reason"]) == (422, "Invalid")
    enforce = (
        f'metadata.labels[{PREFIX}enforce]: Invalid value: "strict": must be one of privileged, baseline, restricted'
    )
    version = f'metadata.labels[{PREFIX}warn-version]: Invalid value: "1.30": must be "latest" or "v1.x"'
    assert refused.to_dict()["message"] == f'Namespace "shop" is invalid: [{enforce}, {version}]'

    api = API(wrong)
    assert api.ask("patch", "Namespace", "shop", body={"metadata": {"labels": {"a": "b"}}}).code == 200
    pods = create(api, pod(container()))
    assert (pods.code, f"{PREFIX}error" in pods.audited) == (403, True)
    assert 'violates PodSecurity "restricted:latest"' in pods.to_dict()["message"]


def test_the_latest_standards_are_those_of_the_servers_version() -> None:
    api = API(namespace(enforce="baseline"))
    api.router = Router(api.store, release=Release(33, 0))

    assert create(api, pod(container(livenessProbe=PROBE))).code == 201


def test_pods_of_recordings_are_as_they_were() -> None:
    api = API(namespace(enforce="restricted", warn="restricted"), takes_history=True)

    created = create(api, pod(container(), hostPID=True))

    assert (created.code, created.warnings) == (201, ())
