"""The first steps of the README work, as written, at an API server."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from podium.testing import ControlPlane
from tests.docs.blocks import ROOT, blocks_of
from tests.docs.shell import Shell

CONTEXT = "production"
DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": "web", "resources": {"requests": {"cpu": "1"}}}]},
        },
    },
}


def commands() -> list[str]:
    """Return the commands of the README about the cluster of a context."""
    lines = [line for block in blocks_of(ROOT / "README.md", "sh") for line in block.text.splitlines()]
    return [line for line in lines if f"--context {CONTEXT}" in line]


def test_each_command_answers_and_writes_nothing_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deployed = {**DEPLOYMENT, "metadata": {"name": "web-2"}}
    (tmp_path / "web.yaml").write_text(yaml.safe_dump(deployed))
    shell = Shell(monkeypatch, tmp_path)

    with ControlPlane(nodes=3) as cluster:
        cluster.apply(DEPLOYMENT)
        cluster.patch("Node", "node-2", {"metadata": {"labels": {"topology.kubernetes.io/zone": "b"}}})
        cluster.advance("1m")
        with cluster.serve() as served:
            kubeconfig = yaml.safe_load(served.kubeconfig.read_text())
            kubeconfig["contexts"][0]["name"] = CONTEXT
            (tmp_path / "kubeconfig").write_text(yaml.safe_dump(kubeconfig))
            (tmp_path / "kubeconfig").chmod(0o600)
            monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
            before = versions(cluster)
            answers = {shlex.join(shlex.split(line)[1:3]): shell.run(line) for line in commands()}

            assert versions(cluster) == before

    assert answers.keys() == {"plan drain", "plan deploy", "plan fail", "explain deploy/web"}
    assert "\ndrain of node-3 takes " in answers["plan drain"]
    assert "\ndeploying Deployment default/web-2: all 2 pods find a node" in answers["plan deploy"]
    assert "\nfailure of node-2: " in answers["plan fail"]
    assert answers["explain deploy/web"].startswith("Deployment default/web: 2 of 2 wanted have a node")


def versions(cluster: ControlPlane) -> list[str]:
    """Return which objects there are, each in its version."""
    return [
        f"{kind} {each['metadata']['name']} {each['metadata']['resourceVersion']}"
        for kind in ("Node", "Deployment", "ReplicaSet", "Pod", "Event")
        for each in cluster.objects(kind)
    ]
