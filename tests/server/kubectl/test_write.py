"""kubectl creates, changes and deletes objects."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.server.kubectl.command import Kubectl
from tests.server.kubectl.objects import config_map, deployment, pod

NeedsVersion = Callable[[int], None]

# Each generator, and what kubectl says then.
GENERATORS = {
    "clusterrole NAME --verb=get --resource=pods": "clusterrole.rbac.authorization.k8s.io/NAME",
    "clusterrolebinding NAME --clusterrole=view --user=anna": "clusterrolebinding.rbac.authorization.k8s.io/NAME",
    "configmap NAME --from-literal=a=b": "configmap/NAME",
    "cronjob NAME --image=web:1 --schedule=@hourly": "cronjob.batch/NAME",
    "deployment NAME --image=web:1 --replicas=2 --port=80": "deployment.apps/NAME",
    "ingress NAME --rule=example.com/*=web:80": "ingress.networking.k8s.io/NAME",
    "job NAME --image=web:1 -- true": "job.batch/NAME",
    "namespace NAME": "namespace/NAME",
    "poddisruptionbudget NAME --selector=app=web --min-available=1": "poddisruptionbudget.policy/NAME",
    "priorityclass NAME --value=1000 --description=important": "priorityclass.scheduling.k8s.io/NAME",
    "quota NAME --hard=pods=3,requests.cpu=2": "resourcequota/NAME",
    "role NAME --verb=get,list --resource=pods": "role.rbac.authorization.k8s.io/NAME",
    "rolebinding NAME --role=reader --serviceaccount=default:robot": "rolebinding.rbac.authorization.k8s.io/NAME",
    "secret docker-registry NAME --docker-username=u --docker-password=p": "secret/NAME",
    "secret generic NAME --from-literal=a=b": "secret/NAME",
    "service clusterip NAME --tcp=80:8080": "service/NAME",
    "service externalname NAME --external-name=example.com": "service/NAME",
    "service loadbalancer NAME --tcp=80": "service/NAME",
    "service nodeport NAME --tcp=80": "service/NAME",
    "serviceaccount NAME": "serviceaccount/NAME",
}
# Before, these kinds were in versions that Kubernetes serves no longer.
YOUNGER_KINDS = ("cronjob", "poddisruptionbudget")
CLUSTER_WIDE = ("clusterrole", "namespace", "priorityclass")


def data(kubectl: Kubectl, name: str = "c") -> dict[str, str]:
    found: dict[str, str] = kubectl.read("configmap", name).get("data", {})
    return found


@pytest.mark.parametrize("generator", GENERATORS)
def test_every_generator_creates(kubectl: Kubectl, needs_version: NeedsVersion, generator: str) -> None:
    if generator.startswith(YOUNGER_KINDS):
        needs_version(21)
    name = f"{kubectl.namespace}-made"
    said = GENERATORS[generator].replace("NAME", name)
    assert kubectl("create", *generator.replace("NAME", name).split()).strip() == f"{said} created"
    if said.startswith(CLUSTER_WIDE):
        kubectl("delete", said, "--wait=false")


def test_a_name_can_be_given_once(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "c")
    assert 'configmaps "c" already exists' in kubectl.fails("create", "configmap", "c")


def test_generated_objects_match_the_request(kubectl: Kubectl) -> None:
    kubectl("create", "secret", "generic", "s", "--from-literal=a=b")
    assert kubectl.read("secret", "s")["data"] == {"a": "Yg=="}
    kubectl("create", "quota", "q", "--hard=pods=3,requests.cpu=2", "--scopes=NotTerminating")
    assert kubectl.read("quota", "q")["spec"] == {
        "hard": {"pods": "3", "requests.cpu": "2"},
        "scopes": ["NotTerminating"],
    }
    kubectl("create", "deployment", "d", "--image=web:1", "--replicas=0")
    spec = kubectl.read("deployment", "d")["spec"]
    assert (spec["replicas"], spec["selector"]) == (0, {"matchLabels": {"app": "d"}})


def test_a_token_is_made_for_an_account(kubectl: Kubectl, needs_version: NeedsVersion) -> None:
    needs_version(24)
    kubectl("create", "serviceaccount", "robot")
    assert kubectl("create", "token", "robot").count(".") == 2


def test_a_pod_is_run(kubectl: Kubectl) -> None:
    said = kubectl("run", "p", "--image=web:1", "--labels=app=web", "--annotations=podium.dev/termination=0s")
    assert said.strip() == "pod/p created"
    kubectl.wait("pod/p", "condition=Ready")
    assert kubectl.read("pod", "p")["spec"]["containers"][0]["image"] == "web:1"


def test_a_pod_is_debugged_by_a_container_or_a_copy(kubectl: Kubectl, needs_version: NeedsVersion) -> None:
    needs_version(27)
    kubectl("run", "p", "--image=web:1")
    kubectl("debug", "p", "--image=busybox", "--attach=false", "-c", "debugger")
    assert [one["name"] for one in kubectl.read("pod", "p")["spec"]["ephemeralContainers"]] == ["debugger"]
    kubectl("debug", "p", "--copy-to=q", "--image=busybox", "--attach=false", "-c", "debugger")
    assert [one["name"] for one in kubectl.read("pod", "q")["spec"]["containers"]] == ["p", "debugger"]


def test_a_node_is_debugged_by_a_pod(kubectl: Kubectl, needs_version: NeedsVersion) -> None:
    needs_version(27)
    [node] = kubectl("get", "nodes", "-o", "name").split()[:1]
    kubectl("debug", node, "--image=busybox", "--attach=false")
    [name] = kubectl("get", "pods", "-o", "name").split()
    spec = kubectl.read(name)["spec"]
    assert (spec["nodeName"], spec["hostPID"], spec["volumes"][0]["hostPath"]["path"]) == (node[5:], True, "/")


def test_apply_creates_changes_and_leaves_alone(kubectl: Kubectl) -> None:
    assert kubectl.apply(config_map("c", a="1", b="1")).strip() == "configmap/c created"
    assert kubectl.apply(config_map("c", a="1", b="1")).strip() == "configmap/c unchanged"
    kubectl("patch", "configmap", "c", "-p", '{"data":{"others":"1"}}')
    assert kubectl.apply(config_map("c", a="2")).strip() == "configmap/c configured"
    assert data(kubectl) == {"a": "2", "others": "1"}


def test_apply_merges_lists_by_their_keys(kubectl: Kubectl) -> None:
    kubectl.apply(deployment(replicas=0))
    sidecar = {"name": "sidecar", "image": "proxy:1"}
    patch = {"spec": {"template": {"spec": {"containers": [sidecar]}}}}
    kubectl("patch", "deployment", "web", "-p", json.dumps(patch))
    kubectl.apply(deployment(replicas=0, image="web:2"))
    containers = kubectl.read("deployment", "web")["spec"]["template"]["spec"]["containers"]
    assert {one["name"]: one["image"] for one in containers} == {"main": "web:2", "sidecar": "proxy:1"}


def test_apply_prunes_objects_that_are_no_longer_given(kubectl: Kubectl) -> None:
    labelled = [{**config_map(name), "metadata": {"name": name, "labels": {"set": "x"}}} for name in ("a", "b")]
    kubectl.apply(*labelled)
    arguments = ("apply", "--prune", "-l", "set=x", "--prune-allowlist=core/v1/ConfigMap")
    old = ("apply", "--prune", "-l", "set=x", "--prune-whitelist=core/v1/ConfigMap")
    code, _, _ = kubectl.run([*arguments, "-f", "-"], json.dumps(labelled[0]))
    if code:
        kubectl.apply(labelled[0], arguments=old)
    assert "configmap/b" not in kubectl("get", "configmap", "-o", "name").split()


def test_a_dry_run_changes_nothing(kubectl: Kubectl, needs_version: NeedsVersion) -> None:
    needs_version(27)
    said = kubectl.apply(config_map("c"), arguments=("apply", "--dry-run=server"))
    assert said.strip() == "configmap/c created (server dry run)"
    assert kubectl("create", "configmap", "d", "--dry-run=client", "-o", "name").strip() == "configmap/d"
    names = kubectl("get", "configmap", "-o", "name").split()
    assert not {"configmap/c", "configmap/d"} & set(names)


def test_unknown_fields_are_refused_warned_of_or_taken(kubectl: Kubectl, needs_version: NeedsVersion) -> None:
    needs_version(27)
    wrong = {**config_map("c"), "datas": {}}
    refused = kubectl.fails("create", "--validate=strict", "-f", "-", stdin=json.dumps(wrong))
    assert 'unknown field "datas"' in refused
    _, _, warned = kubectl.run(["create", "--validate=warn", "-f", "-"], json.dumps(wrong))
    assert 'Warning: unknown field "datas"' in warned
    kubectl("delete", "configmap", "c")
    kubectl("create", "--validate=ignore", "-f", "-", stdin=json.dumps(wrong))


def test_invalid_fields_are_rejected_by_name(kubectl: Kubectl) -> None:
    refused = kubectl.fails("create", "deployment", "Web", "--image=web:1")
    assert "is invalid: metadata.name" in refused
    wrong = pod("p")
    wrong["spec"]["containers"][0]["image"] = 7
    assert "image" in kubectl.fails("apply", "--validate=false", "-f", "-", stdin=json.dumps(wrong))


def test_three_sorts_of_patches_change(kubectl: Kubectl) -> None:
    kubectl.apply(config_map("c", a="1"))
    kubectl("patch", "configmap", "c", "-p", '{"data":{"b":"1"}}')
    kubectl("patch", "configmap", "c", "--type=merge", "-p", '{"data":{"a":null,"c":"1"}}')
    kubectl("patch", "configmap", "c", "--type=json", "-p", '[{"op":"replace","path":"/data/b","value":"2"}]')
    assert data(kubectl) == {"b": "2", "c": "1"}
    assert "no change" in kubectl("patch", "configmap", "c", "-p", '{"data":{"b":"2"}}')


def test_labels_and_annotations_come_and_go(kubectl: Kubectl) -> None:
    kubectl.apply(config_map("c"))
    kubectl("label", "configmap", "c", "a=1", "b=1")
    assert "--overwrite" in kubectl.fails("label", "configmap", "c", "a=2")
    kubectl("label", "configmap", "c", "a=2", "b-", "--overwrite")
    kubectl("annotate", "configmap", "c", "note=x")
    metadata = kubectl.read("configmap", "c")["metadata"]
    assert metadata["labels"] == {"a": "2"}
    assert metadata["annotations"]["note"] == "x"


def test_replace_takes_the_place_of_what_was_there(kubectl: Kubectl) -> None:
    kubectl.apply(config_map("c", a="1"), arguments=("create",))
    kubectl.apply(config_map("c", b="1"), arguments=("replace",))
    assert data(kubectl) == {"b": "1"}
    stale = kubectl.read("configmap", "c")
    kubectl.apply(config_map("c", b="2"), arguments=("replace",))
    assert "the object has been modified" in kubectl.fails("replace", "-f", "-", stdin=json.dumps(stale)).lower()
    kubectl.apply(config_map("c", d="1"), arguments=("replace", "--force"))
    assert data(kubectl) == {"d": "1"}


def test_diff_shows_what_apply_would_change(kubectl: Kubectl, needs_version: NeedsVersion) -> None:
    needs_version(27)
    kubectl.apply(config_map("c", a="1"))
    code, out, _ = kubectl.run(["diff", "-f", "-"], json.dumps(config_map("c", a="2")))
    assert code == 1
    assert '-  a: "1"' in out
    assert '+  a: "2"' in out
    assert kubectl.run(["diff", "-f", "-"], json.dumps(config_map("c", a="1")))[0] == 0


def test_edit_opens_what_is_there_and_takes_what_is_saved(kubectl: Kubectl) -> None:
    kubectl.apply(config_map("c", a="old"))
    assert kubectl("edit", "configmap", "c", environment={"KUBE_EDITOR": "sed -i s/old/new/g"})
    assert data(kubectl) == {"a": "new"}


@pytest.mark.parametrize("cascade", ["background", "foreground", "orphan"])
def test_delete_removes_dependents(kubectl: Kubectl, cascade: str) -> None:
    kubectl.apply(deployment())
    kubectl("rollout", "status", "deployment/web")
    kubectl("delete", "deployment", "web", f"--cascade={cascade}")
    if cascade == "orphan":
        assert len(kubectl.rows("get", "replicasets")) == 1
        assert len(kubectl.rows("get", "pods")) == 2
        kubectl("delete", "replicaset", "--all")
    for kind in ("replicasets", "pods"):
        kubectl.until_gone(kind)


def test_deletions_take_names_labels_and_all(kubectl: Kubectl) -> None:
    kubectl.apply(*(pod(name, tier=name) for name in ("a", "b", "c", "d")))
    assert "deleted" in kubectl("delete", "pod", "a", "--now")
    kubectl("delete", "pods", "-l", "tier=b")
    kubectl("delete", "pod", "c", "--grace-period=0", "--force")
    kubectl("delete", "pods", "--all")
    assert kubectl("get", "pods", "-o", "name") == ""
    assert "NotFound" in kubectl.fails("delete", "pod", "a")
    assert kubectl("delete", "pod", "a", "--ignore-not-found") == ""


def test_a_namespace_is_deleted_with_all_that_is_in_it(kubectl: Kubectl) -> None:
    name = f"{kubectl.namespace}-other"
    kubectl("create", "namespace", name)
    kubectl("-n", name, "create", "configmap", "c")
    kubectl("delete", "namespace", name)
    assert "NotFound" in kubectl.fails("get", "namespace", name)


def test_certificate_requests_are_approved_and_denied(kubectl: Kubectl) -> None:
    spec = {"request": "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K", "signerName": "example.com/web"}
    for name, verb, condition in (("yes", "approve", "Approved"), ("no", "deny", "Denied")):
        unique = f"{kubectl.namespace}-{name}"
        kind = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest"}
        kubectl.apply({**kind, "metadata": {"name": unique}, "spec": {**spec, "usages": ["client auth"]}})

        kubectl("certificate", verb, unique)

        assert kubectl("get", "csr", unique, "-o", "jsonpath={.status.conditions[*].type}") == condition
