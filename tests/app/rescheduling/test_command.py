"""`podium reschedule`, for files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from podium.app.console.command import podium as command
from tests.app.rescheduling.clusters import CONFIGURATION, scaled_up, written


def reschedule(*arguments: str) -> Result:
    return CliRunner().invoke(command, ["reschedule", *arguments], catch_exceptions=False)


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    return written(tmp_path, *scaled_up())


@pytest.fixture
def configuration(tmp_path: Path) -> str:
    return written(tmp_path, {**CONFIGURATION, "policies": [{"name": "MoveToUnderusedNodes"}]}, name="rescheduler.yaml")


def test_files_are_planned_for_once_in_words(cluster: str, configuration: str) -> None:
    result = reschedule("-f", cluster, "--rescheduler", configuration)
    assert result.exit_code == 0
    assert "1 pod would be moved" in result.stdout
    assert "default/web-0  old-1  -> new-1" in result.stdout


def test_json_says_the_same_plan(cluster: str, configuration: str) -> None:
    found = json.loads(reschedule("-f", cluster, "--rescheduler", configuration, "-o", "json").stdout)
    assert found["version"] == 1
    assert [move["to"] for planned in found["planned"] for move in planned["moves"]] == ["new-1"]


def test_without_a_configuration_the_usual_policies_look_at_the_cluster(cluster: str) -> None:
    result = reschedule("-f", cluster)
    assert result.exit_code == 0
    assert "MoveToUnderusedNodes" in result.stdout


def test_rescheduling_from_files_evicts_no_pod(cluster: str) -> None:
    result = reschedule("-f", cluster, "--evict")
    assert result.exit_code == 1
    assert "Pods in files cannot be evicted" in result.output


def test_an_invalid_configuration_is_reported_with_its_place(cluster: str, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(yaml.safe_dump({**CONFIGURATION, "treshold": 3}))
    result = reschedule("-f", cluster, "--rescheduler", str(wrong))
    assert result.exit_code == 1
    assert f'podium: error: {wrong}: there is no field "treshold"; did you mean threshold?' in result.output


def test_a_scheduler_configuration_given_to_the_rescheduler_is_rejected(cluster: str, tmp_path: Path) -> None:
    other = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    result = reschedule("-f", cluster, "--rescheduler", written(tmp_path, other, name="scheduler.yaml"))
    assert result.exit_code == 1
    assert ".kind: is " in result.output


def test_a_config_map_is_for_programs_that_run_on(cluster: str) -> None:
    result = reschedule("-f", cluster, "--rescheduler-config-map", "podium/rescheduler")
    assert result.exit_code == 1
    assert "A ConfigMap is read while this runs" in result.output


@pytest.mark.parametrize("name", ["rescheduler", "/rescheduler", "podium/", "a/b/c"])
def test_a_config_map_is_named_with_its_namespace(name: str) -> None:
    result = reschedule("--rescheduler-config-map", name)
    assert result.exit_code == 1
    assert "write NAMESPACE/NAME" in result.output


def test_a_plan_has_a_certificate_within_its_limits_and_without_them(cluster: str, configuration: str) -> None:
    found = json.loads(reschedule("-f", cluster, "--rescheduler", configuration, "-o", "json").stdout)["certificate"]
    assert found["covered"] == ["MoveToUnderusedNodes"]
    assert found["uncovered"] == []
    assert found["moves"] == 1
    assert found["ever"]["bound"] <= found["withinLimits"]["bound"] <= found["after"] <= found["now"]
    assert found["relaxed"][0]["policy"] == ""
    text = reschedule("-f", cluster, "--rescheduler", configuration).stdout
    assert "Certificate  the plan is within" in text
    assert "The bound ignores: parts of pods that arrive" in text


def test_policies_without_a_bound_are_named_and_not_counted(cluster: str, tmp_path: Path) -> None:
    chosen = {**CONFIGURATION, "policies": [{"name": "MoveToUnderusedNodes"}, {"name": "LeavePoorService"}]}
    configuration = written(tmp_path, chosen, name="two.yaml")
    assert (
        "Without a bound, and not counted: LeavePoorService."
        in reschedule("-f", cluster, "--rescheduler", configuration).stdout
    )
