"""The manifests of the webhook: its rights, its pod, and the configuration that API servers get."""

from __future__ import annotations

import shutil
import subprocess
from typing import Any

import pytest
import yaml

from podium.api.kinds import KINDS
from podium.app.admission.decision import KINDS as DECIDED
from podium.app.admission.webhook import PATH
from podium.app.live.command import admission
from podium.store.store import Store
from tests.deploy.manifests import DEPLOY, Raw, base, chart, of_kind
from tests.deploy.test_rbac import NEVER, granted
from tools import rbac
from tools.asked_rights import Right

KUBECTL = shutil.which("kubectl")


def of_chart() -> list[Raw]:
    objects = chart(admission={"enabled": True, "secret": "podium-admission"})
    return [raw for raw in objects if "-admission" in raw["metadata"]["name"]]


each = pytest.mark.parametrize("objects", [base("admission"), of_chart()], ids=["kustomize", "helm"])


@each
def test_the_role_reads_what_the_webhook_watches_and_nothing_else(objects: list[Raw]) -> None:
    rights = granted(objects, "-admission")
    assert rights == rbac.admission_rights()
    assert {right.verb for right in rights} == {"list", "watch"}
    assert not {(right.group, right.resource) for right in rights} & NEVER


@each
def test_it_may_change_its_own_configuration_alone(objects: list[Raw]) -> None:
    (webhook,) = of_kind(objects, "ValidatingWebhookConfiguration")
    (role,) = (role for role in of_kind(objects, "ClusterRole") if role["metadata"]["name"].endswith("-configuration"))
    (rule,) = role["rules"]
    assert rule["resourceNames"] == [webhook["metadata"]["name"]]
    group = "admissionregistration.k8s.io"
    assert granted(objects, "-configuration") == {
        Right(group, "validatingwebhookconfigurations", verb) for verb in ("get", "patch")
    }
    (deployment,) = of_kind(objects, "Deployment")
    assert f"--self-signed={webhook['metadata']['name']}" in arguments(deployment)


@each
def test_every_binding_gives_an_existing_role_to_the_account(objects: list[Raw]) -> None:
    (account,) = of_kind(objects, "ServiceAccount")
    bindings = of_kind(objects, "ClusterRoleBinding")
    roles = {role["metadata"]["name"] for role in of_kind(objects, "ClusterRole")}
    assert {binding["roleRef"]["name"] for binding in bindings} == roles
    subjects = [subject for binding in bindings for subject in binding["subjects"]]
    assert {subject["name"] for subject in subjects} == {account["metadata"]["name"]}


def arguments(deployment: Raw) -> list[str]:
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return list(container["args"])


@each
def test_the_pod_is_restricted_and_its_options_exist(objects: list[Raw]) -> None:
    (deployment,) = of_kind(objects, "Deployment")
    spec = deployment["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    command, *options = arguments(deployment)
    assert command == "admission"
    known = {name for parameter in admission.params for name in parameter.opts}
    assert {option.partition("=")[0] for option in options} <= known


def hook_of(objects: list[Raw]) -> Raw:
    (configuration,) = of_kind(objects, "ValidatingWebhookConfiguration")
    (hook,) = configuration["webhooks"]
    return dict(hook)


@each
def test_the_webhook_never_holds_up_requests_and_leaves_out_the_system(objects: list[Raw]) -> None:
    hook = hook_of(objects)
    assert (hook["failurePolicy"], hook["sideEffects"]) == ("Ignore", "None")
    assert hook["timeoutSeconds"] <= 2
    assert hook["clientConfig"]["service"]["path"] == PATH
    (service,) = of_kind(objects, "Service")
    assert hook["clientConfig"]["service"]["name"] == service["metadata"]["name"]
    assert service["spec"]["ports"][0]["port"] == 443
    (left_out,) = hook["namespaceSelector"]["matchExpressions"]
    assert left_out["operator"] == "NotIn"
    assert set(left_out["values"]) == {"kube-system", hook["clientConfig"]["service"]["namespace"]}


@each
def test_the_webhook_is_called_for_exactly_the_kinds_that_it_decides(objects: list[Raw]) -> None:
    asked = {
        (group, resource)
        for rule in hook_of(objects)["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    decided = [kind for kind in KINDS.values() if kind.name in DECIDED]
    scaled = {(kind.group, f"{kind.plural}/scale") for kind in decided if kind.has_scale}
    assert asked == scaled | {(kind.group, kind.plural) for kind in decided}
    assert all(rule["operations"] == ["CREATE", "UPDATE"] for rule in hook_of(objects)["rules"])


@each
def test_an_api_server_takes_the_configuration(objects: list[Raw]) -> None:
    (configuration,) = of_kind(objects, "ValidatingWebhookConfiguration")
    created = Store().create(configuration, now=0)
    assert created.raw["webhooks"][0]["matchConditions"][0]["name"] == "has-no-controller"


@pytest.mark.skipif(KUBECTL is None, reason="needs kubectl")
def test_with_cert_manager_it_only_reads() -> None:
    folder = str(DEPLOY / "admission-cert-manager")
    text = subprocess.run([str(KUBECTL), "kustomize", folder], capture_output=True, check=True, text=True).stdout
    objects: list[Any] = list(yaml.safe_load_all(text))
    assert not [raw for raw in objects if "-configuration" in raw["metadata"]["name"]]
    (deployment,) = of_kind(objects, "Deployment")
    options = {option.partition("=")[0] for option in arguments(deployment)}
    assert {"--tls-cert-file", "--tls-private-key-file"} <= options
    assert "--self-signed" not in options
    (configuration,) = of_kind(objects, "ValidatingWebhookConfiguration")
    (certificate,) = of_kind(objects, "Certificate")
    named = configuration["metadata"]["annotations"]["cert-manager.io/inject-ca-from"]
    assert named == f"{certificate['metadata']['namespace']}/{certificate['metadata']['name']}"
    service = configuration["webhooks"][0]["clientConfig"]["service"]
    assert certificate["spec"]["dnsNames"] == [f"{service['name']}.{service['namespace']}.svc"]
