"""The shipped schemas equal those of Podium's answers and inputs."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

import podium
from podium.api.errors import PodiumError
from podium.api.input.codec import load_files
from podium.app.console.command import podium as command
from podium.app.explaining.on_node import answer_on
from podium.app.schemas.command import schema as schema_command
from podium.app.schemas.schemas import SCHEMAS
from podium.sim.scenario.actions import STEP_NAMES
from tests.app.schemas.schema_check import problems

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))


def reported(name: str, value: Any, *, is_strict: bool = False) -> list[str]:
    schema = SCHEMAS[name]()
    return list(problems(json.loads(json.dumps(value)), schema, schema, is_strict=is_strict))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_explanations_have_exactly_the_keys_of_the_schema(example: Path) -> None:
    cluster = podium.load(example)
    nodes = sorted(
        found.object.metadata.name for found in load_files([example]) if found.object and found.object.kind == "Node"
    )
    placed = [
        found.object.key
        for found in load_files([example])
        if found.object is not None and found.object.kind == "Pod" and found.object.key not in cluster.pending
    ]
    for pod in [*cluster.pending[:3], *placed[:3]]:
        try:
            explanation = cluster.explain(pod)
        except PodiumError:
            continue
        assert reported("explain", explanation.to_dict(), is_strict=True) == []
        assert reported("explain", answer_on(explanation, nodes[0]).to_dict(), is_strict=True) == []


def test_the_answer_about_a_workload_matches_its_schema() -> None:
    documents = [found for found in load_files([ROOT / "examples/drain.yaml"]) if found.object is not None]
    workload = next(found.object for found in documents if found.object and found.object.kind == "Deployment")

    answer = podium.load(ROOT / "examples/drain.yaml").ask(
        f"deploy/{workload.metadata.name}", workload.metadata.namespace
    )

    assert reported("explain", answer.to_dict(), is_strict=True) == []


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_simulation_results_have_exactly_the_keys_of_the_schema(example: Path) -> None:
    assert reported("simulate", podium.simulate(example, until="10m").to_dict(), is_strict=True) == []


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_scenarios_that_are_taken_are_what_the_schema_takes(example: Path) -> None:
    for found in yaml.safe_load_all(example.read_text()):
        if found is not None and found.get("kind") == "Scenario":
            assert reported("scenario", found) == []


SCENARIO = {"apiVersion": "podium.dev/v1alpha1", "kind": "Scenario", "spec": {"steps": []}}


@pytest.mark.parametrize(
    "step",
    [
        {},
        {"at": "0s"},
        {"at": "0s", "cordon": {"name": "a"}, "uncordon": {"name": "a"}},
        {"at": "0s", "cordon": {"nmae": "a"}},
        {"at": "0s", "apply": [{"apiVersion": "v1", "kind": "Pod", "spec": {"containres": []}}]},
        {"at": "0s", "patch": {"kind": "Pod", "name": "a", "type": "apply", "patch": {"a": 1}}},
        {"at": [], "cordon": {"name": "a"}},
    ],
)
def test_inputs_that_are_rejected_fail_the_schema_too(step: dict[str, Any]) -> None:
    scenario: dict[str, Any] = deepcopy(SCENARIO)
    scenario["spec"]["steps"].append(step)

    assert reported("scenario", scenario)


def test_every_step_is_in_the_schema() -> None:
    assert {*SCHEMAS["scenario"]()["$defs"]["Step"]["properties"]} == {"at", "repeat", *STEP_NAMES}


def test_every_named_schema_type_exists() -> None:
    for name in SCHEMAS:
        schema = SCHEMAS[name]()
        named = {part.split('"')[0] for part in json.dumps(schema).split("#/$defs/")[1:]}
        assert named <= schema["$defs"].keys()


def test_a_schema_is_printed_as_json() -> None:
    assert [*schema_command.params[0].type.choices] == [*SCHEMAS]  # type: ignore[attr-defined]
    for name in SCHEMAS:
        result = CliRunner().invoke(command, ["schema", name], catch_exceptions=False)
        assert json.loads(result.stdout) == json.loads(json.dumps(SCHEMAS[name]()))


PLAN = ROOT / "examples" / "plan"
COOKBOOK = ROOT / "examples" / "cookbook"


@pytest.mark.parametrize(
    "asked",
    [
        ["drain", "node-1", "-f", f"{ROOT}/examples/budget.yaml"],
        ["fail", "node-1", "-f", f"{ROOT}/examples/budget.yaml"],
        ["change", "deploy/web", "replicas=5", "-f", f"{COOKBOOK}/change.yaml"],
        ["deploy", f"{COOKBOOK}/deploy-checkout.yaml", "-f", f"{COOKBOOK}/deploy.yaml"],
        ["nodes", "--add", "1", "--like", "aks-general-31415926-vmss000000", "-f", f"{COOKBOOK}/nodes.yaml"],
        ["reschedule", "-f", f"{COOKBOOK}/reschedule.yaml"],
        ["upgrade", "--to", "1.36", "-f", f"{COOKBOOK}/upgrade.yaml"],
        ["pending", "-f", f"{PLAN}/cluster.yaml", "-f", f"{PLAN}/waiting.yaml"],
        ["fit", f"{COOKBOOK}/fit-pod.yaml", "-f", f"{COOKBOOK}/fit.yaml", "--preempt"],
        ["fit", f"{PLAN}/checkout.yaml", "-f", f"{PLAN}/cluster.yaml", "--replicas", "5", "--preempt"],
        ["survive", "deploy/analytics/report", "-f", f"{COOKBOOK}/survive.yaml"],
        ["diff", "-f", f"{COOKBOOK}/compare.yaml", "--after", f"{COOKBOOK}/compare-after.yaml"],
    ],
    ids=lambda asked: asked[0],
)
def test_plans_have_exactly_the_keys_of_the_schema(asked: list[str]) -> None:
    answer = json.loads(CliRunner().invoke(command, ["plan", *asked, "-o", "json"], catch_exceptions=False).stdout)

    assert reported("plan", answer, is_strict=True) == []


def test_plans_of_a_rescheduler_have_exactly_the_keys_of_the_schema() -> None:
    asked = ["reschedule", "-f", f"{COOKBOOK}/reschedule.yaml", "-o", "json"]

    answer = json.loads(CliRunner().invoke(command, asked, catch_exceptions=False).stdout)

    assert answer["planned"]
    assert reported("reschedule", answer, is_strict=True) == []
