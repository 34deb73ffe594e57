"""Converting the DLRM trace to a cluster and a scenario: instances of applications on supposed nodes."""

import io
from collections import Counter
from pathlib import Path

import pytest

from podium.api.errors import InputError
from podium.api.input.codec import load_text, read_input
from podium.api.meta import Raw
from podium.sim.results.result import Result, result_of
from podium.sim.run import caveats_of, simulation_of
from podium.sim.run_options import RunOptions
from podium.sim.trace_import import Trace, read_trace, with_devices, with_fewer_nodes, with_owners

HEADER = (
    "instance_sn,role,app_name,cpu_request,cpu_limit,gpu_request,gpu_limit,rdma_request,rdma_limit,memory_request,"
    "memory_limit,disk_request,disk_limit,max_instance_per_node,creation_time,scheduled_time,deletion_time\n"
)
VALUES = {
    **{"instance_sn": "instance_1", "role": "HN", "app_name": "app_1", "cpu": "12", "gpu": "1", "rdma": "25"},
    **{"memory": "120.0", "disk": "680.0", "max_instance_per_node": "-1"},
    **{"creation_time": "10.0", "scheduled_time": "12.0", "deletion_time": "100.0"},
}


def instance(**values: str | float) -> str:
    row = {**VALUES, **{column: str(value) for column, value in values.items()}}
    for name in ("cpu", "gpu", "rdma", "memory", "disk"):
        amount = row.pop(name)
        row = {f"{name}_request": amount, f"{name}_limit": amount, **row}
    return ",".join(row[column] for column in HEADER.strip().split(","))


def trace(tmp_path: Path, *rows: str, header: str = HEADER) -> Trace:
    (tmp_path / "dlrm.csv").write_text(header + "".join(f"{row}\n" for row in rows))
    return read_trace(tmp_path / "dlrm.csv")


def only(tmp_path: Path, **values: str | float) -> tuple[int, Raw]:
    (arrival,) = trace(tmp_path, instance(**values)).arrivals
    return arrival


def nodes(read: Trace) -> Counter[str]:
    return Counter(raw["metadata"]["labels"]["podium.dev/role"] for raw in read.objects if raw["kind"] == "Node")


def played(read: Trace) -> Result:
    stream = io.BytesIO()
    read.write(stream)
    options = RunOptions()
    found = load_text(stream.getvalue(), "dlrm.json")
    simulation = simulation_of(found, options)
    while simulation.step():
        pass
    return result_of(simulation)


def test_an_instance_requests_cpu_memory_disk_gpus_and_rdma(tmp_path: Path) -> None:
    _, pod = only(tmp_path, memory="937.5", disk="850.0")

    requests = {"cpu": "12000m", "memory": "960000Mi", "ephemeral-storage": "870400Mi"}
    extended = {"podium.dev/gpu-milli": 1000, "podium.dev/rdma-percent": 25}
    (container,) = pod["spec"]["containers"]
    assert container["resources"] == {"requests": {**requests, **extended}, "limits": {**requests, **extended}}
    assert pod["metadata"]["name"] == "instance-1"
    assert pod["metadata"]["labels"] == {"podium.dev/app": "app_1"}
    assert pod["spec"]["nodeSelector"] == {"podium.dev/role": "HN"}


def test_an_instance_without_gpus_requests_none(tmp_path: Path) -> None:
    _, pod = only(tmp_path, role="CN", gpu=0)

    assert "podium.dev/gpu-milli" not in str(pod)


@pytest.mark.parametrize(
    ("created", "scheduled", "deleted", "arrives", "duration"),
    [
        ("10.0", "12.0", "100.0", 10, "88s"),
        ("10.0", "", "100.0", 10, "90s"),
        ("", "", "75.0", 0, "75s"),
        ("2029855.0000000002", "2029855.0000000002", "", 2029855, None),
        ("", "", "", 0, None),
    ],
)
def test_an_instance_arrives_when_it_was_created_and_stays_as_long_as_it_ran(
    tmp_path: Path, created: str, scheduled: str, deleted: str, arrives: int, duration: str | None
) -> None:
    time, pod = only(tmp_path, creation_time=created, scheduled_time=scheduled, deletion_time=deleted)

    assert (time, pod["metadata"]["annotations"].get("podium.dev/duration")) == (arrives, duration)


@pytest.mark.parametrize("most", [1, 2, 3])
def test_no_node_has_more_instances_of_an_application_than_it_may(tmp_path: Path, most: int) -> None:
    # Seven instances on two nodes, where there is room for all of them. A spread constraint that counts from the node
    # with the fewest would let all of them in.
    rows = [
        instance(instance_sn=f"instance_{index}", cpu=1, memory=1, max_instance_per_node=most, deletion_time="")
        for index in range(7)
    ]
    others = [
        instance(instance_sn=f"other_{index}", app_name="app_2", cpu=1, memory=1, rdma=1, disk=1, deletion_time="")
        for index in range(6)
    ]
    read = trace(tmp_path, *rows, *others)
    assert nodes(read) == {"HN": 3}
    read = with_fewer_nodes(read, 0.6)
    assert nodes(read) == {"HN": 2}

    placed = played(read).pods

    by_node = Counter(pod["node"] for pod in placed if pod["pod"].startswith("default/instance"))
    assert by_node == Counter({"hn-0": most, "hn-1": most, None: 7 - 2 * most})
    assert all(pod["node"] for pod in placed if pod["pod"].startswith("default/other"))


def test_supposed_nodes_hold_the_busiest_time_with_a_fifth_to_spare(tmp_path: Path) -> None:
    # At 50 s three instances request 3 * 96 of 192 cores; at no other time is it more.
    times = [(0, 60), (10, 70), (50, 90), (60, 80)]
    rows = [
        instance(
            instance_sn=f"instance_{begin}",
            role="CN",
            gpu=0,
            cpu=96,
            creation_time=begin,
            scheduled_time=begin,
            deletion_time=end,
        )
        for begin, end in times
    ]

    assert nodes(trace(tmp_path, *rows)) == {"CN": 2}
    assert nodes(trace(tmp_path, *rows, instance())) == {"CN": 2, "HN": 1}


def test_the_answer_says_that_nodes_are_supposed(tmp_path: Path) -> None:
    file = tmp_path / "dlrm.json"
    with file.open("wb") as stream:
        trace(tmp_path, instance()).write(stream)
    found = read_input([file])
    simulation = simulation_of(found.documents, RunOptions())

    (caveat,) = caveats_of(found, simulation, RunOptions())

    assert (caveat.about, caveat.names) == ("nodes-supposed", ("hn-0",))
    assert caveat.message.startswith("1 node supposed: the DLRM trace states none")


def test_workloads_keep_the_application_and_those_without_an_end_are_services(tmp_path: Path) -> None:
    rows = [
        instance(instance_sn="long", deletion_time=""),
        instance(instance_sn="hours", deletion_time="9000"),
        instance(instance_sn="short"),
    ]

    owned = with_owners(trace(tmp_path, *rows))

    kinds = {raw["metadata"]["name"]: raw["kind"] for _, raw in owned.arrivals}
    assert kinds == {"long": "ReplicaSet", "hours": "ReplicaSet", "short": "Job"}
    assert {raw["metadata"]["labels"]["podium.dev/app"] for _, raw in owned.arrivals} == {"app_1"}
    phases = {pod["pod"].split("/")[1].rpartition("-")[0]: pod["phase"] for pod in played(owned).pods}
    assert phases == {"long": "Running", "hours": "Terminated", "short": "Succeeded"}


def test_gpus_of_supposed_nodes_can_be_devices(tmp_path: Path) -> None:
    read = with_devices(trace(tmp_path, instance(), instance(instance_sn="cpu", role="CN", gpu=0)))

    assert "podium.dev/gpu-milli" not in str(read.arrivals) + str(
        [raw for raw in read.objects if raw["kind"] == "Node"]
    )
    assert all(pod["node"] for pod in played(read).pods)


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({"instance_sn": "_"}, 'column instance_sn: "-" is not a valid name'),
        ({"role": "GPU"}, 'column role: "GPU" is not one of CN, HN'),
        ({"app_name": ""}, "column app_name: a name is empty"),
        ({"app_name": "an app"}, 'column app_name: "an app" is not a valid label value'),
        ({"cpu": "many"}, 'column cpu_request: "many" is not a number of 0 or more'),
        ({"memory": "-1.0"}, 'column memory_request: "-1.0" is not a number of 0 or more'),
        ({"memory": "NaN"}, 'column memory_request: "NaN" is not a number of 0 or more'),
        ({"disk": "1e9"}, 'column disk_request: "1e9" is not a number of 0 or more'),
        ({"rdma": "9" * 16}, 'column rdma_request: "9999999999999999" is not a number of 0 or more'),
        ({"gpu": "0.5"}, 'column gpu_request: "0.5" is not a whole number of 0 or more'),
        ({"max_instance_per_node": 0}, "column max_instance_per_node: 0 is not -1, for no limit, or from 1 to"),
        ({"max_instance_per_node": 2**31}, "column max_instance_per_node: 2147483648 is not -1, for no limit"),
        ({"max_instance_per_node": -2}, 'column max_instance_per_node: "-2" is not a whole number'),
        ({"creation_time": "-5.0"}, 'column creation_time: "-5.0" is not a number of 0 or more'),
        ({"creation_time": "13"}, "column scheduled_time: 12 is before creation_time, 13"),
        ({"deletion_time": "11"}, "column deletion_time: 11 is before scheduled_time, 12"),
        (
            {"deletion_time": "9" * 12},
            'column deletion_time: "999999999999" is not a number of 0 or more, of at most 9 digits',
        ),
    ],
)
def test_an_error_names_file_line_and_column(tmp_path: Path, values: dict[str, str], error: str) -> None:
    with pytest.raises(InputError) as caught:
        trace(tmp_path, instance(instance_sn="first"), instance(**values))

    assert f"dlrm.csv: line 3, {error}" in str(caught.value)


def test_names_that_differ_only_in_what_a_pod_may_not_be_called_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match='line 3, column instance_sn: "a-1" is given twice, first in line 2'):
        trace(tmp_path, instance(instance_sn="a_1"), instance(instance_sn="a-1"))


def test_huge_requests_make_no_more_nodes_than_there_are_instances(tmp_path: Path) -> None:
    rows = [instance(instance_sn=f"instance_{index}", cpu="9" * 9, deletion_time="") for index in range(3)]

    assert nodes(trace(tmp_path, *rows)) == {"HN": 3}


@pytest.mark.parametrize(
    ("header", "error"),
    [
        (
            HEADER.replace(",disk_request", ""),
            "line 1: the column disk_request is missing; needed are instance_sn, role",
        ),
        ("name,cpu_milli,memory_mib\n", "line 1: the column num_gpu is missing; needed are name, cpu_milli"),
        ("a,b\n", "line 1: the column sn is missing; needed are sn, cpu_milli, memory_mib, gpu, model; or name, cpu_m"),
    ],
)
def test_the_columns_say_what_a_file_is(tmp_path: Path, header: str, error: str) -> None:
    with pytest.raises(InputError) as caught:
        trace(tmp_path, header=header)

    assert f"dlrm.csv: {error}" in str(caught.value)


@pytest.mark.parametrize(
    "files", [("nodes",), ("pods",), ("dlrm", "nodes"), ("dlrm", "dlrm"), ("nodes", "nodes", "pods")]
)
def test_files_that_are_no_whole_trace_are_an_error(tmp_path: Path, files: tuple[str, ...]) -> None:
    headers = {
        "nodes": "sn,cpu_milli,memory_mib,gpu,model\n",
        "pods": "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,creation_time,deletion_time,scheduled_time\n",
        "dlrm": HEADER,
    }
    for name, header in headers.items():
        (tmp_path / name).write_text(header)

    with pytest.raises(InputError, match="not a whole trace: openb has two files, nodes and pods; DLRM has one"):
        read_trace(*(tmp_path / name for name in files))


def test_the_files_of_openb_can_come_in_any_order(tmp_path: Path) -> None:
    nodes, pods = tmp_path / "n.csv", tmp_path / "p.csv"
    nodes.write_text("sn,cpu_milli,memory_mib,gpu,model\nn1,1000,64,0,\n")
    pods.write_text(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,creation_time,deletion_time,scheduled_time\n"
        "p,1,1,0,0,,LS,0,5,0\n"
    )

    assert read_trace(pods, nodes) == read_trace(nodes, pods)
