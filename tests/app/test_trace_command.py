from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

import podium
from podium.app.console.command import podium as command

NODES = "sn,cpu_milli,memory_mib,gpu,model\nn1,4000,8192,2,T4\n"
PODS = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,creation_time,deletion_time,scheduled_time
late,1000,64,0,0,,BE,90,100,90
first,1000,64,1,500,T4,LS,5,65,5
second,1000,64,0,0,,Burstable,7,20,7
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, ...]:
    (tmp_path / "nodes.csv").write_text(NODES)
    (tmp_path / "pods.csv").write_text(PODS)
    return "--trace", str(tmp_path / "nodes.csv"), "--trace", str(tmp_path / "pods.csv")


def openb(*args: str, save: str = "-") -> str:
    result = CliRunner().invoke(command, ["simulate", *args, "--save", save], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_trace_is_simulated_as_its_saved_file_is(files: tuple[str, ...], tmp_path: Path) -> None:
    openb(*files, save=str(tmp_path / "trace.json"))

    played = CliRunner().invoke(command, ["simulate", *files, "-o", "json"], catch_exceptions=False)
    again = CliRunner().invoke(command, ["simulate", "-f", str(tmp_path / "trace.json"), "-o", "json"])

    assert played.exit_code == 0
    assert played.stdout == again.stdout


def test_a_written_trace_can_be_simulated(files: tuple[str, ...], tmp_path: Path) -> None:
    openb(*files, save=str(tmp_path / "trace.json"))

    result = podium.simulate(tmp_path / "trace.json")

    assert [(one["pod"], one["node"], one["phase"]) for one in result.pods] == [
        ("default/first", "n1", "Succeeded"),
        ("default/late", "n1", "Succeeded"),
        ("default/second", "n1", "Succeeded"),
    ]


def test_a_file_gets_what_standard_output_does(files: tuple[str, ...], tmp_path: Path) -> None:
    assert openb(*files, save=str(tmp_path / "trace.json")) == ""
    assert openb(*files) == (tmp_path / "trace.json").read_text()


@pytest.mark.parametrize("limit", [0, 1, 2, 3, 9])
def test_a_limit_leaves_the_pods_that_come_first(limit: int, files: tuple[str, ...]) -> None:
    lines = openb(*files, "--trace-limit", str(limit)).splitlines()

    steps = msgspec.json.decode(lines[-1])["spec"]["steps"]
    names = [pod["metadata"]["name"] for step in steps for pod in step["apply"]]
    assert names == ["first", "second", "late"][:limit]
    assert [msgspec.json.decode(line)["kind"] for line in lines] == [*["PriorityClass"] * 3, "Node", "Scenario"]


def test_trace_options_scale_nodes_and_speed_up_arrivals(files: tuple[str, ...]) -> None:
    lines = openb(*files, "--trace-nodes", "0.5", "--speed", "5", "--trace-devices", "--trace-owners").splitlines()

    documents = [msgspec.json.decode(line) for line in lines]
    assert [document["kind"] for document in documents if document["kind"] != "PriorityClass"] == [
        "Node",
        "DeviceClass",
        "ResourceSlice",
        "ResourceClaimTemplate",
        "Scenario",
    ]
    steps = documents[-1]["spec"]["steps"]
    assert [step["at"] for step in steps] == ["1s", "18s"]
    assert {raw["kind"] for step in steps for raw in step["apply"]} == {"Job"}


@pytest.mark.parametrize("option", [("--trace-nodes", "0"), ("--trace-nodes", "1.5"), ("--speed", "-1")])
def test_no_node_and_no_time_are_refused(option: tuple[str, str], files: tuple[str, ...]) -> None:
    result = CliRunner().invoke(command, ["simulate", *files, *option])

    assert result.exit_code == 1
    assert "is not in the range" in result.stderr


def test_a_trace_error_names_file_line_and_column(files: tuple[str, ...]) -> None:
    Path(files[3]).write_text(PODS.replace("late,1000", "late,much"))

    result = CliRunner().invoke(command, ["simulate", *files])

    assert (result.exit_code, result.stdout) == (1, "")
    assert f'{files[3]}: line 2, column cpu_milli: "much" is not a whole number' in result.stderr


@pytest.mark.parametrize("option", [("--save", "-"), ("--trace-limit", "1"), ("--trace-owners",)])
def test_options_of_a_trace_need_one(option: tuple[str, ...], tmp_path: Path) -> None:
    result = CliRunner().invoke(command, ["simulate", "-f", str(tmp_path / "none.json"), *option])

    assert (result.exit_code, "trace" in result.stderr) == (1, True)
