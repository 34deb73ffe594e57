"""Manifests of `deploy/`: restricted pod security, valid objects, existing options."""

from __future__ import annotations

import shutil
import subprocess
from typing import Any

import click
import msgspec
import pytest
import yaml

from podium.api.disruption_policy import DisruptionPolicySpec, DisruptionPolicyStatus
from podium.api.input.codec import load_text
from podium.api.kinds import KINDS
from podium.app.console.command import podium
from podium.framework.rescheduling.configuration import parse_rescheduler
from podium.framework.rescheduling.settings import Steering
from podium.framework.settings.configuration import read_configuration
from tests.deploy.manifests import DEPLOY, Raw, base, chart, chart_of_rescheduler, documents, of_kind

KUBECTL = shutil.which("kubectl")
ALLOWED_VOLUMES = {
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "persistentVolumeClaim",
    "projected",
    "secret",
}
each_scheduler = pytest.mark.parametrize(
    "objects", [base(), chart(), chart(preemption=False)], ids=["kustomize", "helm", "no-preemption"]
)
each_rescheduler = pytest.mark.parametrize(
    "objects",
    [base("rescheduler"), chart_of_rescheduler(), chart_of_rescheduler(evict=True)],
    ids=["kustomize", "helm", "evicting"],
)
each = pytest.mark.parametrize(
    "objects",
    [base(), chart(), chart(preemption=False), base("rescheduler"), chart_of_rescheduler(evict=True)],
    ids=["kustomize", "helm", "no-preemption", "rescheduler-kustomize", "rescheduler-helm"],
)


def pod_spec(objects: list[Raw]) -> Raw:
    (deployment,) = of_kind(objects, "Deployment")
    found: Raw = deployment["spec"]["template"]["spec"]
    return found


@each
def test_pods_are_what_the_restricted_level_of_pod_security_asks_for(objects: list[Raw]) -> None:
    spec = pod_spec(objects)
    (container,) = spec["containers"]
    security = container["securityContext"]

    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["runAsUser"] > 0
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert security["allowPrivilegeEscalation"] is False
    assert security["privileged"] is False
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert not {"hostNetwork", "hostPID", "hostIPC", "hostUsers"} & set(spec)
    assert not any("hostPort" in port for port in container.get("ports", ()))
    assert {name for volume in spec["volumes"] for name in volume if name != "name"} <= ALLOWED_VOLUMES


@each
def test_nothing_is_written_but_into_memory_and_resources_are_bounded(objects: list[Raw]) -> None:
    spec = pod_spec(objects)
    (container,) = spec["containers"]

    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert [volume["emptyDir"]["medium"] for volume in spec["volumes"] if "emptyDir" in volume] == ["Memory"]
    assert set(container["resources"]) == {"requests", "limits"}
    assert "memory" in container["resources"]["limits"]


@each_scheduler
def test_objects_are_right_in_every_field(objects: list[Raw]) -> None:
    (configuration,) = of_kind(objects, "ConfigMap")
    text = configuration["data"]["scheduler.yaml"]
    known = {name for _, name in KINDS}

    load_text(yaml.safe_dump_all([raw for raw in objects if raw["kind"] in known]), "deploy", "strict")
    (document,) = load_text(text, "scheduler.yaml")
    profiles = read_configuration(document.raw, "scheduler.yaml").profiles
    assert [profile.scheduler_name for profile in profiles] == ["podium"]


@each_rescheduler
def test_the_manifests_of_the_rescheduler_are_valid(objects: list[Raw]) -> None:
    (configuration,) = of_kind(objects, "ConfigMap")
    known = {name for _, name in KINDS}

    load_text(yaml.safe_dump_all([raw for raw in objects if raw["kind"] in known]), "deploy", "strict")
    settings = parse_rescheduler(configuration["data"]["config.yaml"], "config.yaml").settings
    assert settings.steering is Steering.SOFT_TAINT
    assert configuration["data"]["paused"] == "false"
    (container,) = pod_spec(objects)["containers"]
    assert f"--rescheduler-config-map=$(NAMESPACE)/{configuration['metadata']['name']}" in container["args"]


def test_a_rescheduler_moves_pods_only_where_that_is_asked_for() -> None:
    def arguments(objects: list[Raw]) -> list[str]:
        return list(pod_spec(objects)["containers"][0]["args"])

    assert "--evict" not in arguments(base("rescheduler"))
    assert "--evict" not in arguments(chart_of_rescheduler())
    assert "--evict" in arguments(chart_of_rescheduler(evict=True))
    assert not [raw for raw in chart() if "rescheduler" in raw["metadata"]["name"]]


@each
def test_the_program_knows_its_options(objects: list[Raw]) -> None:
    (container,) = pod_spec(objects)["containers"]
    context = click.Context(podium, **podium.context_settings)

    name, command, rest = podium.resolve_command(context, list(container["args"]))

    assert command is not None
    command.make_context(name, rest, parent=context)
    assert not any(argument.startswith("--bind-address") for argument in rest)


def test_the_image_runs_locked_packages_as_an_unprivileged_user() -> None:
    text = (DEPLOY / "Containerfile").read_text()
    lines = text.splitlines()

    assert "USER 65532:65532" in lines
    assert "--require-hashes --only-binary :all: -r requirements/run.txt" in text
    assert lines[-2:] == ['ENTRYPOINT ["podium"]', 'CMD ["scheduler"]']
    assert not any(line.startswith(("ADD ", "VOLUME ", "EXPOSE ")) for line in lines)


def test_the_definition_of_disruption_policies_has_the_fields_that_are_read() -> None:
    (definition,) = documents((DEPLOY / "crds" / "disruptionpolicies.yaml").read_text())
    (version,) = definition["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]["properties"]
    kind = KINDS["podium.dev", "DisruptionPolicy"]

    assert (definition["spec"]["names"]["plural"], version["name"]) == (kind.plural, kind.version)
    assert definition["metadata"]["name"] == f"{kind.plural}.{kind.group}"
    assert fields_of(schema["spec"]) == struct_fields(DisruptionPolicySpec)
    assert fields_of(schema["status"]) == struct_fields(DisruptionPolicyStatus)


def fields_of(schema: Raw) -> Any:
    """Return the names of an object's fields, each with those within it."""
    within = schema.get("items", schema)
    return {name: fields_of(part) for name, part in within.get("properties", {}).items()}


def struct_fields(type_: Any) -> Any:
    """Return the same of what Podium reads."""
    found = {}
    for field in msgspec.inspect.type_info(type_).fields:  # type: ignore[attr-defined]
        inner = getattr(field.type, "item_type", field.type)
        is_struct = isinstance(inner, msgspec.inspect.StructType)
        found[field.encode_name] = struct_fields(inner.cls) if is_struct else {}
    return found


@pytest.mark.skipif(KUBECTL is None, reason="needs kubectl")
@pytest.mark.parametrize(
    ("folder", "namespace", "lease", "profile"),
    [
        ("base", "podium", "podium-scheduler", "podium"),
        ("replacement", "kube-system", "kube-scheduler", "default-scheduler"),
    ],
)
def test_kustomize_makes_a_scheduler_of_it(folder: str, namespace: str, lease: str, profile: str) -> None:
    objects = kustomized(folder)
    bindings = of_kind(objects, "ClusterRoleBinding") + of_kind(objects, "RoleBinding")
    (role,), (configuration,) = of_kind(objects, "Role"), of_kind(objects, "ConfigMap")

    assert {subject["namespace"] for binding in bindings for subject in binding["subjects"]} == {namespace}
    assert {raw["metadata"].get("namespace", namespace) for raw in objects} == {namespace}
    assert role["rules"][1]["resourceNames"] == [lease]
    assert f"--leader-elect-resource-name={lease}" in pod_spec(objects)["containers"][0]["args"]
    assert configuration["data"]["scheduler.yaml"].rstrip().endswith(f"schedulerName: {profile}")
    assert [raw["metadata"]["name"] for raw in of_kind(objects, "Namespace")] == ["podium"] * (folder == "base")


@pytest.mark.skipif(KUBECTL is None, reason="needs kubectl")
def test_kustomize_makes_a_rescheduler_of_it_that_says_or_does_what_it_would() -> None:
    says, does = kustomized("rescheduler"), kustomized("rescheduler-evicting")
    bindings = of_kind(does, "ClusterRoleBinding") + of_kind(does, "RoleBinding")

    assert {subject["namespace"] for binding in bindings for subject in binding["subjects"]} == {"podium"}
    arguments = [pod_spec(objects)["containers"][0]["args"] for objects in (says, does)]
    assert arguments[1] == [*arguments[0], "--evict"]


@pytest.mark.skipif(KUBECTL is None, reason="needs kubectl")
def test_the_others_are_kustomizations_too() -> None:
    assert [raw["kind"] for raw in kustomized("reader")] == ["ClusterRole"]
    assert [raw["kind"] for raw in kustomized("avoid-lists")] == ["ClusterRole", "ClusterRoleBinding"]
    assert [raw["kind"] for raw in kustomized("rescheduler-guidance")] == ["ClusterRole", "ClusterRoleBinding"]
    assert [raw["kind"] for raw in kustomized("crds")] == ["CustomResourceDefinition"]


def kustomized(folder: str) -> list[Raw]:
    assert KUBECTL is not None
    made = subprocess.run([KUBECTL, "kustomize", str(DEPLOY / folder)], capture_output=True, text=True, check=True)
    return documents(made.stdout)
