"""Converting the openb trace to a cluster and a scenario."""

import io
from pathlib import Path

import pytest

from podium.api.clock_inference import start_time
from podium.api.errors import InputError
from podium.api.input.codec import load_text
from podium.api.meta import Raw
from podium.runtime.runtime import Component
from podium.sim.results.result import result_of
from podium.sim.scenario.scenario import Scenario, split_documents
from podium.sim.scenario.steps import Apply
from podium.sim.simulation import Simulation, SimulationSettings
from podium.sim.trace_import import Trace, read_trace
from tests.sim.first_fit import FirstFit

NODES = "sn,cpu_milli,memory_mib,gpu,model\nn1,32000,262144,0,\nn2,96000,786432,8,G2\n"
HEADER = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
)


def trace(tmp_path: Path, *pods: str, nodes: str = NODES) -> Trace:
    (tmp_path / "nodes.csv").write_text(nodes)
    (tmp_path / "pods.csv").write_text(HEADER + "".join(f"{pod}\n" for pod in pods))
    return read_trace(tmp_path / "nodes.csv", tmp_path / "pods.csv")


def only(tmp_path: Path, pod: str) -> Raw:
    ((_, raw),) = trace(tmp_path, pod).arrivals
    return raw


def reread(read: Trace) -> tuple[list[Raw], Scenario]:
    """Return the trace written to a file and read again."""
    stream = io.BytesIO()
    read.write(stream)
    objects, scenario = split_documents(load_text(stream.getvalue(), "openb.json"))
    return [one.raw for one in objects], scenario


def test_nodes_offer_cpu_memory_and_a_thousand_for_each_gpu(tmp_path: Path) -> None:
    plain, with_gpus = trace(tmp_path).objects[-2:]

    assert plain["status"]["allocatable"] == {"cpu": "32000m", "memory": "262144Mi", "pods": 110}
    assert with_gpus["status"]["allocatable"]["podium.dev/gpu-milli"] == 8000
    assert with_gpus["metadata"]["labels"] == {"kubernetes.io/hostname": "n2", "podium.dev/gpu-model": "G2"}


@pytest.mark.parametrize(
    ("qos", "name", "value"),
    [
        ("LS", "production", 100_000),
        ("Guaranteed", "production", 100_000),
        ("Burstable", "mid", 50_000),
        ("BE", "best-effort", 0),
    ],
)
def test_the_service_level_decides_the_priority(tmp_path: Path, qos: str, name: str, value: int) -> None:
    read = trace(tmp_path, f"p,1000,10,0,0,,{qos},Running,0,5,0")

    assert read.arrivals[0][1]["spec"]["priorityClassName"] == name
    values = {one["metadata"]["name"]: one["value"] for one in read.objects if one["kind"] == "PriorityClass"}
    assert values[name] == value


@pytest.mark.parametrize(("gpus", "share", "asked"), [(0, 0, None), (1, 460, 460), (1, 1000, 1000), (4, 1000, 4000)])
def test_gpus_are_asked_for_in_thousandths(tmp_path: Path, gpus: int, share: int, asked: int | None) -> None:
    resources = only(tmp_path, f"p,1000,10,{gpus},{share},,LS,Running,0,5,0")["spec"]["containers"][0]["resources"]

    assert resources["requests"].get("podium.dev/gpu-milli") == asked
    assert resources["requests"]["cpu"] == "1000m"
    assert resources.get("limits", {}).get("podium.dev/gpu-milli") == asked


def test_the_gpu_models_allowed_are_a_required_node_affinity(tmp_path: Path) -> None:
    spec = only(tmp_path, "p,1000,10,1,500,V100M16|V100M32,LS,Running,0,5,0")["spec"]

    required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert required["nodeSelectorTerms"][0]["matchExpressions"] == [
        {"key": "podium.dev/gpu-model", "operator": "In", "values": ["V100M16", "V100M32"]}
    ]


@pytest.mark.parametrize(("scheduled", "duration"), [("30", "70s"), ("", "90s")])
def test_a_pod_lasts_from_its_scheduling_or_else_its_creation_to_its_end(
    tmp_path: Path, scheduled: str, duration: str
) -> None:
    raw = only(tmp_path, f"p,1000,10,0,0,,LS,Running,10,100,{scheduled}")

    assert raw["metadata"]["annotations"] == {"podium.dev/duration": duration}


def test_pods_come_at_their_time_those_of_one_time_in_one_step(tmp_path: Path) -> None:
    read = trace(tmp_path, *(f"{name},1,1,0,0,,LS,Running,{at},99,{at}" for name, at in (("b", 7), ("a", 3), ("c", 7))))

    _, scenario = reread(read)

    arrivals = [
        (step.at_ns // 10**9, step.change.object.key) for step in scenario.steps if isinstance(step.change, Apply)
    ]
    assert arrivals == [(3, "default/a"), (7, "default/b"), (7, "default/c")]


@pytest.mark.parametrize(
    ("pod", "error"),
    [
        ("P_1,1,1,0,0,,LS,Running,0,5,0", 'line 2, column name: "P_1" is not a valid name'),
        ("p,x,1,0,0,,LS,Running,0,5,0", 'line 2, column cpu_milli: "x" is not a whole number'),
        ("p,1,1,1,0,,LS,Running,0,5,0", "line 2, column gpu_milli: 0 is not a share of one GPU"),
        ("p,1,1,1,2000,,LS,Running,0,5,0", "line 2, column gpu_milli: 2000 is not a share of one GPU"),
        ("p,1,1,1,5,A||B,LS,Running,0,5,0", "line 2, column gpu_spec: a name is empty"),
        ("p,1,1,1,5,A b,LS,Running,0,5,0", 'line 2, column gpu_spec: "A b" is not a valid label value'),
        ("p,1,1,0,0,,Gold,Running,0,5,0", 'line 2, column qos: "Gold" is not one of LS, Guaranteed, Burstable, BE'),
        ("p,1,1,0,0,,LS,Running,0,5,9", "line 2, column deletion_time: 5 is before scheduled_time, 9"),
    ],
)
def test_a_pod_table_error_names_file_line_and_column(tmp_path: Path, pod: str, error: str) -> None:
    with pytest.raises(InputError) as caught:
        trace(tmp_path, pod)

    assert f"pods.csv: {error}" in str(caught.value)


def test_a_name_that_is_given_twice_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r'nodes\.csv: line 4, column sn: "n1" is given twice, first in line 2'):
        trace(tmp_path, nodes=NODES + "n1,1,1,0,\n")


def test_the_whole_trace_is_read(openb: Path) -> None:
    objects, scenario = reread(read_trace(openb / "nodes.csv", openb / "pods.csv"))

    assert sum(raw["kind"] == "Node" for raw in objects) == 1_523
    assert len(scenario.steps) == 8_152


def test_the_first_pods_of_the_trace_are_played_to_their_end(openb: Path) -> None:
    read = read_trace(openb / "nodes.csv", openb / "pods.csv")
    stream = io.BytesIO()
    Trace("openb", read.objects[:30], read.arrivals[:60]).write(stream)
    objects, scenario = split_documents(load_text(stream.getvalue(), "openb.json"))
    simulation = Simulation(
        objects,
        scenario,
        settings=SimulationSettings(start_ns=start_time(objects)),
        components=[Component("scheduler", FirstFit, waits=True)],
    )

    while simulation.step():
        pass

    summary = result_of(simulation).summary
    assert summary["pods"]["total"] == 60
    assert summary["pods"]["succeeded"] == summary["bindings"]
    assert summary["pods"]["succeeded"] + summary["pods"]["pending"] == 60
