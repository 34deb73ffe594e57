"""kubectl with custom kinds, and with objects that have several owners."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from tests.server.kubectl.command import Kubectl
from tests.server.kubectl.objects import config_map, deployment
from tests.store.objects import Raw

NeedsVersion = Callable[[int], None]
APPLY = ("apply", "--server-side")
OTHER = (*APPLY, "--field-manager=other")


def definition(group: str) -> Raw:
    size = {"type": "string", "enum": ["small", "large"], "description": "How large it is."}
    replicas = {"type": "integer", "default": 1}
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "required": ["size"], "properties": {"size": size, "replicas": replicas}},
            "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
        },
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {
            "status": {},
            "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
        },
        "additionalPrinterColumns": [
            {"name": "Size", "type": "string", "jsonPath": ".spec.size"},
            {"name": "Wanted", "type": "integer", "jsonPath": ".spec.replicas", "priority": 1},
        ],
    }
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wd"], "categories": ["all"]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def widget(group: str, **spec: object) -> Raw:
    return {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec}


@pytest.fixture
def group(kubectl: Kubectl, needs_version: NeedsVersion) -> Iterator[str]:
    """Provide a group with a kind Widget of its own."""
    needs_version(27)
    group = f"{kubectl.namespace}.example.com"
    kubectl.apply(definition(group))
    kubectl.wait(f"crd/widgets.{group}", "condition=Established")
    yield group
    kubectl("delete", "crd", f"widgets.{group}", "--ignore-not-found")


def test_a_custom_kind_is_one_like_others(kubectl: Kubectl, group: str) -> None:
    assert kubectl.rows("api-resources", f"--api-group={group}") == [["widgets", "wd", f"{group}/v1", "true", "Widget"]]
    assert "How large it is." in kubectl("explain", "widgets.spec", f"--api-version={group}/v1")
    assert "created" in kubectl.apply(widget(group, size="small"))
    assert kubectl.rows("get", f"widgets.{group}") == [["w", "small"]]
    assert kubectl.rows("get", f"widgets.{group}", "-o", "wide") == [["w", "small", "1"]]
    assert "Size:      small" in kubectl("describe", f"widgets.{group}", "w")
    kubectl("scale", f"widgets.{group}", "w", "--replicas=3")
    kubectl("patch", f"widgets.{group}", "w", "--type=merge", "-p", '{"spec":{"size":"large"}}')
    assert kubectl.read(f"widgets.{group}", "w")["spec"] == {"size": "large", "replicas": 3}
    assert f"widget.{group}/w" in kubectl("get", "all", "-o", "name").split()


def test_objects_that_violate_their_schema_are_rejected(kubectl: Kubectl, group: str) -> None:
    def refused(**spec: object) -> str:
        return kubectl.fails("create", "-f", "-", stdin=json.dumps(widget(group, **spec)))

    assert 'unknown field "spec.colour"' in refused(size="small", colour="red")
    assert 'spec.size: Unsupported value: "huge"' in refused(size="huge")
    assert "spec.size: Required value" in refused(replicas=1)


def test_a_custom_kind_goes_with_its_objects(kubectl: Kubectl, group: str) -> None:
    kubectl.apply(widget(group, size="small"))
    kubectl("delete", "crd", f"widgets.{group}")
    code, _, refused = kubectl.run(["get", f"widgets.{group}"])
    assert code
    assert "the server could not find the requested resource" in refused or "doesn't have a resource type" in refused


def test_server_side_apply_tracks_field_owners(kubectl: Kubectl, needs_version: NeedsVersion) -> None:
    needs_version(27)
    assert "serverside-applied" in kubectl.apply(config_map("c", a="1"), arguments=APPLY)
    refused = kubectl.fails(*OTHER, "-f", "-", stdin=json.dumps(config_map("c", a="2")))
    assert 'conflict with "kubectl": .data.a' in refused
    kubectl.apply(config_map("c", a="2"), arguments=(*OTHER, "--force-conflicts"))
    assert kubectl.read("configmap", "c")["data"] == {"a": "2"}
    assert "other" in {entry["manager"] for entry in kubectl.managed("configmap", "c")}
    assert "managedFields" not in kubectl("get", "configmap", "c", "-o", "yaml")


def test_fields_that_an_applier_omits_are_removed(kubectl: Kubectl, needs_version: NeedsVersion) -> None:
    needs_version(27)
    kubectl.apply(config_map("c", a="1", b="1"), arguments=APPLY)
    kubectl.apply(config_map("c", a="1"), arguments=APPLY)
    assert kubectl.read("configmap", "c")["data"] == {"a": "1"}


def test_an_unapplied_replica_count_belongs_to_the_scaler(kubectl: Kubectl, needs_version: NeedsVersion) -> None:
    needs_version(27)
    raw = deployment(replicas=0)
    del raw["spec"]["replicas"]
    kubectl.apply(raw, arguments=APPLY)
    kubectl("scale", "deployment/web", "--replicas=0")
    kubectl.apply(raw, arguments=APPLY)
    assert kubectl.read("deployment", "web")["spec"]["replicas"] == 0
