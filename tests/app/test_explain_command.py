import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

import podium
from podium.app.console.command import podium as command
from podium.app.console.output import in_json

MANIFESTS = """
apiVersion: v1
kind: Node
metadata: {name: small}
status: {allocatable: {cpu: 2, pods: 10}}
---
apiVersion: v1
kind: Node
metadata: {name: large}
status: {allocatable: {cpu: 8, pods: 10}}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop}
spec:
  containers: [{name: main, image: i, resources: {requests: {cpu: 1}}}]
"""
PACKING = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
- schedulerName: packing
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "cluster.yaml"
    path.write_text(MANIFESTS)
    return str(path)


def explain(*args: str) -> str:
    result = CliRunner().invoke(command, ["explain", *args], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_json_and_yaml_are_the_explanation_of_the_function(file: str) -> None:
    expected = podium.explain(file, "shop/web").to_dict()

    assert explain("shop/web", "-f", file, "-o", "json") == in_json(expected)
    assert yaml.load(explain("shop/web", "-f", file, "-o", "yaml"), yaml.CSafeLoader) == expected
    assert list(json.loads(explain("shop/web", "-f", file, "-o", "json"))) == [
        "schemaVersion",
        "pod",
        "outcome",
        "node",
        "nodes",
        "scores",
        "totals",
        "best",
        "priority",
        "caveats",
    ]


def test_the_namespace_is_that_of_a_pod_given_without_one(file: str) -> None:
    assert explain("web", "-n", "shop", "-f", file) == explain("shop/web", "-f", file)


def test_files_directories_and_standard_input_add_up(file: str, tmp_path: Path) -> None:
    spec = {"containers": [{"name": "main", "image": "a"}]}
    pod = json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "more"}, "spec": spec})

    result = CliRunner().invoke(command, ["explain", "more", "-f", str(tmp_path), "-f", "-"], input=pod)

    assert result.stdout.startswith("default/more fits: node ")


def test_the_profile_that_decides_is_the_pod_s_own_or_the_one_named(file: str, tmp_path: Path) -> None:
    config = tmp_path / "scheduler.conf"
    config.write_text(PACKING)

    assert explain("shop/web", "-f", file, "--config", str(config)).startswith("shop/web fits: node large\n")
    packed = explain("shop/web", "-f", file, "--config", str(config), "--scheduler", "packing")
    assert packed.startswith("shop/web fits: node small\n")


POLICIES = """
apiVersion: v1
kind: Node
metadata: {name: node}
status: {allocatable: {cpu: 1, pods: 10}}
---
apiVersion: v1
kind: Pod
metadata: {name: batch}
spec:
  nodeName: node
  priority: 1
  containers: [{name: main, image: i, resources: {requests: {cpu: 1}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  priority: 2
  preemptionPolicy: Never
  containers: [{name: main, image: i, resources: {requests: {cpu: 1}}}]
"""


@pytest.mark.parametrize(
    ("gates", "outcome"),
    [([], "not-eligible"), (["--feature-gates", "NonPreemptingPriority=false"], "preempts")],
)
def test_without_its_feature_gate_no_preemption_policy_counts(gates: list[str], outcome: str, tmp_path: Path) -> None:
    file = tmp_path / "policies.yaml"
    file.write_text(POLICIES)

    assert json.loads(explain("web", "-f", str(file), "-o", "json", *gates))["outcome"] == outcome
    assert podium.explain(file, "web", feature_gates="".join(gates[1:])).outcome == outcome


def test_an_unknown_feature_gate_is_wrong_usage(file: str) -> None:
    result = CliRunner().invoke(command, ["explain", "web", "-f", file, "--feature-gates", "Gang=true"])

    assert result.exit_code == 1
    assert "unrecognized feature gate: Gang" in result.stderr


def test_explain_tells_why_a_running_pod_is_there_and_where_it_would_go(file: str) -> None:
    Path(file).write_text(MANIFESTS.replace("spec:\n", "spec:\n  nodeName: small\n"))

    report = explain("shop/web", "-f", file)

    assert report.startswith("shop/web is on node small\n")
    assert "it is number 2 by total of 2 nodes that can take it" in report
    assert "no controller replaces it; a pod like it goes to large\n" in report

    Path(file).write_text(MANIFESTS.replace("spec:\n", "spec:\n  nodeName: small\n  nodeSelector: {disk: none}\n"))
    assert "no controller replaces it; a pod like it finds no node\n" in explain("shop/web", "-f", file)


def test_text_that_is_piped_has_no_colours(file: str) -> None:
    assert "\x1b" not in explain("shop/web", "-f", file)


def test_ignored_extenders_are_reported(file: str, tmp_path: Path) -> None:
    config = tmp_path / "scheduler.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "extenders: [{urlPrefix: 'http://rater:80', filterVerb: filter}]\n"
    )

    for question in (["explain", "shop/web"], ["simulate"]):
        arguments = [*question, "-f", file, "--config", str(config)]
        refused = CliRunner().invoke(command, arguments)
        report = CliRunner().invoke(command, [*arguments, "--ignore-extenders"])

        assert (refused.exit_code, report.exit_code) == (1, 0)
        assert "--ignore-extenders" in refused.stderr
        assert "decided without the configuration's extenders, which may refuse nodes" in report.stdout
