"""A trace under pressure: fewer nodes, faster arrivals, GPUs as devices, and owners for its pods."""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from podium.api.input.codec import load_text
from podium.api.meta import Raw
from podium.sim.results.result import Result, result_of
from podium.sim.run import simulation_of
from podium.sim.run_options import RunOptions
from podium.sim.trace_import import Trace, read_trace, sped_up, with_devices, with_fewer_nodes, with_owners

HEADER = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,creation_time,deletion_time,scheduled_time\n"
NODES = "sn,cpu_milli,memory_mib,gpu,model\n"


def trace(tmp_path: Path, *pods: str, nodes: str = "n1,32000,262144,2,T4\n") -> Trace:
    (tmp_path / "nodes.csv").write_text(NODES + nodes)
    (tmp_path / "pods.csv").write_text(HEADER + "".join(f"{pod}\n" for pod in pods))
    return read_trace(tmp_path / "nodes.csv", tmp_path / "pods.csv")


def names(pressed: Trace) -> list[str]:
    return [raw["metadata"]["name"] for raw in pressed.objects if raw["kind"] == "Node"]


def played(pressed: Trace, **options: Any) -> Result:
    stream = io.BytesIO()
    pressed.write(stream)
    return played_from(list(load_text(stream.getvalue(), "trace.json")), **options)


def played_from(documents: Any, **options: Any) -> Result:
    simulation = simulation_of(documents, RunOptions(**options))
    while simulation.step():
        pass
    return result_of(simulation)


def nodes_of(**kinds: int) -> str:
    sizes = {"large": "96000,393216,8,G2", "small": "16000,65536,2,P100", "plain": "32000,65536,0,"}
    return "".join(f"{kind}-{number},{sizes[kind]}\n" for kind, count in kinds.items() for number in range(count))


@pytest.mark.parametrize(
    ("share", "kept"),
    [(1, (10, 6, 3)), (0.5, (5, 3, 2)), (0.3, (3, 2, 1)), (0.1, (1, 1, 0)), (0.01, (1, 0, 0))],
)
def test_a_share_of_the_nodes_has_its_share_of_each_kind(
    share: float, kept: tuple[int, int, int], tmp_path: Path
) -> None:
    whole = trace(tmp_path, nodes=nodes_of(large=10, small=6, plain=3))

    found = Counter(name.partition("-")[0] for name in names(with_fewer_nodes(whole, share)))

    assert (found["large"], found["small"], found["plain"]) == kept


def test_the_first_nodes_of_each_kind_are_kept(tmp_path: Path) -> None:
    whole = trace(tmp_path, nodes=nodes_of(large=4))

    assert names(with_fewer_nodes(whole, 0.5)) == ["large-0", "large-1"]


@pytest.mark.parametrize(("factor", "times"), [(1, [0, 5, 90]), (4, [0, 1, 22]), (0.5, [0, 10, 180])])
def test_pods_come_faster_and_run_as_long(factor: float, times: list[int], tmp_path: Path) -> None:
    pods = [f"p{at},1000,64,0,0,,LS,{at},{at + 60},{at}" for at in (0, 5, 90)]

    pressed = sped_up(trace(tmp_path, *pods), factor)

    assert [time for time, _ in pressed.arrivals] == times
    assert {raw["metadata"]["annotations"]["podium.dev/duration"] for _, raw in pressed.arrivals} == {"60s"}


def test_gpus_are_devices_that_pods_share(tmp_path: Path) -> None:
    pods = ["a,1000,64,1,460,,LS,0,60,0", "b,1000,64,1,1000,,LS,0,60,0", "c,1000,64,2,1000,,LS,0,60,0"]

    pressed = with_devices(trace(tmp_path, *pods))

    kinds: dict[str, list[Raw]] = {}
    for raw in pressed.objects:
        kinds.setdefault(raw["kind"], []).append(raw)
    assert len(kinds["ResourceSlice"][0]["spec"]["devices"]) == 2
    assert [raw["metadata"]["name"] for raw in kinds["ResourceClaimTemplate"]] == ["gpu-460m", "gpus-1", "gpus-2"]
    assert "podium.dev/gpu-milli" not in str(kinds["Node"]) + str(pressed.arrivals)


def test_shares_that_fit_into_the_sum_of_a_nodes_gpus_wait_where_none_of_the_gpus_has_room(tmp_path: Path) -> None:
    pods = [f"p{number},1000,64,1,600,,LS,{number},1000,{number}" for number in range(3)]
    whole = trace(tmp_path, *pods)

    def waiting(of: Trace) -> list[str]:
        return [pod["pod"] for pod in played(of, until_ns=500 * 10**9).pods if not pod["node"]]

    assert waiting(whole) == []
    assert waiting(with_devices(whole)) == ["default/p2"]


def test_a_pod_that_wants_all_gpus_waits_for_the_last_share(tmp_path: Path) -> None:
    pods = ["share,1000,64,1,100,,BE,0,40,0", "all,1000,64,2,1000,,LS,1,61,1"]

    result = played(with_devices(trace(tmp_path, *pods)))

    started = {event.pod: event.time for event in result.events if event.reason == "Started"}
    assert started == {"default/share": 0, "default/all": 40}


def test_services_are_replica_sets_that_go_at_their_time_and_all_else_are_jobs(tmp_path: Path) -> None:
    pods = [
        "service,1000,64,0,0,,LS,0,7200,0",
        "short,1000,64,0,0,,LS,0,60,0",
        "batch,1000,64,0,0,,BE,0,7200,0",
    ]

    owned = with_owners(trace(tmp_path, *pods))

    assert {raw["metadata"]["name"]: raw["kind"] for _, raw in owned.arrivals} == {
        "service": "ReplicaSet",
        "short": "Job",
        "batch": "Job",
    }
    phases = {pod["pod"].split("/")[1].rpartition("-")[0]: pod["phase"] for pod in played(owned).pods}
    assert phases == {"batch": "Succeeded", "service": "Terminated", "short": "Succeeded"}


def test_a_service_that_is_evicted_comes_again_and_goes_at_the_time_at_which_it_would_have_gone(tmp_path: Path) -> None:
    pressed = with_devices(trace(tmp_path, "service,1000,64,1,460,,LS,100,7300,100", nodes=nodes_of(large=2)))
    *objects, story = with_owners(pressed).documents()
    story["spec"]["steps"].append({"at": "200s", "evict": {"kind": "ReplicaSet", "name": "service"}})
    text = b"\n".join(map(msgspec.json.encode, [*objects, story]))

    result = played_from(list(load_text(text, "trace.json")))

    started = [event.time for event in result.events if event.reason == "Started"]
    assert started == [100, 200]
    assert max(event.time for event in result.events) == 7330


def test_a_pressed_part_of_the_trace_is_played(openb: Path) -> None:
    read = read_trace(openb / "nodes.csv", openb / "pods.csv")
    part = Trace(read.name, read.objects, sorted(read.arrivals, key=lambda arrival: arrival[0])[1000:1080])

    pressed = with_owners(with_devices(sped_up(with_fewer_nodes(part, 0.01), 100)))

    assert len(names(pressed)) == 15
    result = played(pressed)
    assert result.summary["pods"]["pending"] == 0
