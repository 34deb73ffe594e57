"""The workloads of `podium bench`: any size, the same each time, and their results."""

from __future__ import annotations

import gc
import json
import resource
import tempfile
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Self

import msgspec
import pytest
from click.testing import CliRunner, Result

from podium.api.input.codec import load_files
from podium.api.versions.choice import CLUSTER_RELEASE
from podium.app.bench import command, scheduling
from podium.app.bench.clusters import BUILDERS
from podium.app.bench.command import (
    COMMANDS,
    FULL,
    USUAL,
    WORKLOADS,
    WorkloadSize,
    measure,
    measure_command,
    run_command,
)
from podium.app.bench.eks_cluster import EKSCluster
from podium.app.bench.measurement import (
    BenchRun,
    Measurement,
    operations,
    ratios_to,
    run_of,
    write_measurements,
)
from podium.app.bench.scheduling import WorkloadRun, measure_scheduling
from podium.app.bench.simulating import SimulationInput, measure_simulation
from podium.app.console.command import podium
from podium.app.console.page import Page
from podium.app.library import load
from podium.sim.trace_import import Trace, node_object, pod_object
from tests.app.snapshots.fake_api_server import FakeAPIServer, serving

RELEASE = CLUSTER_RELEASE
# Of a gang all pods are decided about in one attempt.
SCHEDULED = sorted(set(BUILDERS) - {"scale", "preemption-gangs"})


@pytest.fixture(autouse=True)
def existing_objects_stay_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the collector ignore what there is, as in all tests; each collection would examine it from now on."""
    monkeypatch.setattr(gc, "unfreeze", lambda: None)


def settled(measurement: Measurement) -> tuple[object, ...]:
    """Return what does not depend on the machine. What is kept for good takes operations where it comes up first."""
    return *measurement.subject, measurement.counts, pytest.approx(measurement.operations_per_pod, rel=0.01)


@pytest.mark.parametrize("name", SCHEDULED)
def test_a_workload_gives_the_same_decisions_each_time(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduling, "COUNTED_PODS", 6)
    first, again = (measure_scheduling(name, 12, 8, RELEASE) for _ in range(2))

    assert settled(first) == settled(again)
    assert first.pods == 8
    assert first.counts["attempts"] >= 8


def test_preemption_across_takes_blocking_pods_and_those_in_its_room() -> None:
    workload = BUILDERS["preemption-across"](3 * 20, 2)
    play = WorkloadRun(workload, RELEASE)

    play.show(workload.pods)
    play.run()

    # Four in the rack, and on the pod's node three more.
    assert (len(play.driver.bound), play.driver.preempted) == (2, 2 * (4 + 3))


def test_every_gang_preempts_by_one_plan_and_is_bound_whole() -> None:
    workload = BUILDERS["preemption-gangs"](20, 24)
    play = WorkloadRun(workload, RELEASE)

    play.show(workload.pods)
    play.run()

    # One attempt to plan for each of the two gangs, one to bind it; two pods of a core go for each member.
    assert len(play.driver.attempt_ns) == 4
    assert (len(play.driver.bound), play.driver.preempted) == (24, 48)


def test_every_pod_of_preemption_needs_victims() -> None:
    counts = measure_scheduling("preemption", 10, 4, RELEASE).counts

    assert counts == {"bound": 4, "preempted": 4 * 3, "attempts": 8}


def test_counted_attempts_are_not_among_the_timed_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    timed: list[int] = []

    def note(*_: object, times_ns: tuple[int, ...], counts: dict[str, int], **__: object) -> None:
        timed.extend((len(times_ns), counts["attempts"]))

    monkeypatch.setattr(scheduling, "measured", note)
    measure_scheduling("basic", 5, 5, RELEASE)

    assert timed == [5, 5]


def test_a_simulation_benchmark_is_repeatable_and_written() -> None:
    (first, written), (again, _) = (measure_simulation(SimulationInput((), 8), RELEASE) for _ in range(2))

    assert settled(first) == settled(again)
    # All but the one that fits nowhere.
    assert (first.nodes, first.pods, first.counts["bound"]) == (8, 81, 80)
    assert (written.workload, written.pods) == ("simulation-json", 81)
    assert written.counts["bytes"] > 1000


def small_trace() -> Trace:
    """Return a trace of three nodes and four pods that end."""
    nodes = [node_object(f"n{number}", {}, {"cpu": "8", "memory": "8Gi"}) for number in range(3)]
    pods = [pod_object(f"p{number}", {}, {"cpu": "1"}, {}, seconds=60) for number in range(4)]
    return Trace("gpu-trace", nodes, list(enumerate(pods)))


def test_a_story_from_files_is_played_in_place_of_the_made_one(tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    with file.open("wb") as stream:
        small_trace().write(stream)

    (measured, _) = measure_simulation(SimulationInput((str(file),), 8), RELEASE)

    assert (measured.nodes, measured.pods, measured.counts["bound"]) == (3, 4, 4)


def test_a_loaded_dump_is_asked_further_questions() -> None:
    (asked,) = measure(WorkloadSize("question", 30), (), RELEASE)

    assert (asked.nodes, asked.placed) == (30, 3 * 30 + 7 * 30 + 1)
    assert asked.pods == sum(asked.counts.values()) > 2
    assert asked.counts["schedulable"] > 0


def run_here(*arguments: str) -> tuple[bytes, resource.struct_rusage]:
    """Run a command of Podium in this process: one of its own takes long to start."""
    result = CliRunner().invoke(podium, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    return result.stdout_bytes, resource.getrusage(resource.RUSAGE_SELF)


@pytest.mark.parametrize("name", [name for name in COMMANDS if name.startswith("plan-")])
def test_a_plan_for_an_eks_cluster_is_the_same_each_time(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first = measure_command(name, 12)
    monkeypatch.setattr(command, "run_command", run_here)
    again = measure_command(name, 12)

    assert (first.subject, first.counts) == (again.subject, again.counts)
    assert (first.nodes, first.pods) == (12, 3 * 12 + 7 * 12 + 1)
    assert (first.counts["disrupted"] > 0) == (name != "plan-deploy")


def test_a_rescheduler_with_all_policies_plans_moves_of_an_eks_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "run_command", run_here)
    first, again = (measure_command("reschedule", 60) for _ in range(2))

    assert (first.subject, first.counts) == (again.subject, again.counts)
    assert first.counts["moved"] > 0
    assert first.counts["tried"] > first.counts["moved"]


def test_a_failing_command_is_not_a_measurement() -> None:
    with pytest.raises(RuntimeError, match="podium plan ended with 1: podium: error: no-such-file"):
        run_command("plan", "drain", "n1", "-f", "no-such-file")


def test_default_benchmarks_are_known() -> None:
    assert {wanted.workload for wanted in FULL} == set(WORKLOADS)
    assert {wanted.workload for wanted in USUAL} == set(WORKLOADS) - {"scale"}


def test_operations_are_lines_and_calls_and_turns_of_loops_that_call_nothing() -> None:
    def turns(count: int) -> int:
        return operations(lambda: [one + 1 for one in range(count)]).total()

    def calls(count: int) -> int:
        return operations(lambda: [abs(one) for one in range(count)])["abs"]

    assert turns(200) - turns(100) >= 100
    assert calls(7) == 7


def bench(*args: str) -> Result:
    return CliRunner().invoke(podium, ["bench", *args])


class InThisProcess:
    """A pool of processes without one: a process takes long to start."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, act: Callable[..., Any], *args: object) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(act(*args))
        return done


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "ProcessPoolExecutor", InThisProcess)


@pytest.mark.usefixtures("in_this_process")
def test_a_run_is_kept_and_compared_with(tmp_path: Path) -> None:
    kept = str(tmp_path / "before.json")

    first = bench("basic@5/6", "unschedulable", "--nodes", "4", "--pods", "5", "--save", kept, "-o", "json")
    again = bench("basic@5/6", "spread@3/3", "--compare", kept, "-o", "json")

    assert first.exit_code == again.exit_code == 0
    assert json.loads(first.stdout) == json.loads(Path(kept).read_bytes())
    assert [(one["workload"], one["nodes"], one["pods"]) for one in json.loads(first.stdout)["measurements"]] == [
        ("basic", 5, 6),
        ("unschedulable", 4, 5),
    ]
    basic, spread = json.loads(again.stdout)["measurements"]
    assert basic["compared"]["operations_per_pod"] == 1.0
    assert spread["compared"] is None


@pytest.mark.usefixtures("in_this_process")
def test_a_cluster_is_played_in_place_of_the_made_story_and_nothing_of_it_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "left").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "left"))
    *objects, scenario = small_trace().documents()
    story = tmp_path / "story.json"
    story.write_text(json.dumps(scenario))
    server = FakeAPIServer({**raw, "metadata": {**raw["metadata"], "uid": raw["metadata"]["name"]}} for raw in objects)

    with serving(server, tmp_path) as file:
        result = bench(
            "simulation", "--kubeconfig", file, "--context", "test", "-f", str(story), "--nodes", "9", "-o", "json"
        )

    assert result.exit_code == 0, result.output
    simulated = json.loads(result.stdout)["measurements"][0]
    assert (simulated["nodes"], simulated["pods"], simulated["counts"]["bound"]) == (3, 4, 4)
    assert list((tmp_path / "left").iterdir()) == []


MEASURED = Measurement(
    workload="basic",
    nodes=5000,
    placed=0,
    pods=1000,
    counts={},
    load_seconds=0.5,
    seconds=0.25,
    pods_per_second=4000.0,
    peak_memory_mib=50.0,
    attempt_us={"p50": 200.0, "p99": 300.0},
    operations_per_pod=2000.0,
)


def earlier(**figures: float) -> BenchRun:
    return run_of([msgspec.structs.replace(MEASURED, **figures)])


def test_ratios_are_this_run_s_figures_over_the_earlier_ones() -> None:
    now = [MEASURED, msgspec.structs.replace(MEASURED, pods=7)]

    assert ratios_to(earlier(pods_per_second=1000.0, operations_per_pod=4000.0), now) == [
        {"pods_per_second": 4.0, "operations_per_pod": 0.5, "peak_memory_mib": 1.0},
        None,
    ]


def test_people_get_a_table_with_the_ratios_at_its_end() -> None:
    other = msgspec.structs.replace(MEASURED, workload="load", attempt_us=None)

    page = Page()
    write_measurements(page, [MEASURED, other], ratios_to(earlier(pods_per_second=1000.0), [MEASURED, other]))

    assert page.text.splitlines() == [
        "workload  nodes   pods  CPU s  pods/s  ops/pod  p50 us  p99 us  load s  peak MiB  x pods/s  x ops  x peak",
        "basic     5,000  1,000   0.25   4,000    2,000     200     300    0.50        50      4.00   1.00    1.00",
        "load      5,000  1,000   0.25   4,000    2,000                    0.50        50",
    ]


@pytest.mark.parametrize("content", ["[]", "no json", '{"measurements": []}'])
def test_a_file_that_is_no_benchmark_run_is_rejected(content: str, tmp_path: Path) -> None:
    file = tmp_path / "other.json"
    file.write_text(content)

    result = bench("basic@2/2", "--compare", str(file))

    assert result.exit_code == 1
    assert f"{file}: is not a run of podium bench" in result.stderr


@pytest.mark.parametrize("workload", ["basics", "basic@", "basic@0", "basic@5/", "basic@5/x", "basic@2000000", "@5"])
def test_an_unknown_workload_or_size_is_rejected(workload: str) -> None:
    result = bench(workload)

    assert result.exit_code == 1
    assert workload in result.stderr


def test_an_eks_cluster_of_any_size_is_valid_and_the_same_each_time(tmp_path: Path) -> None:
    cluster, again = EKSCluster(40), EKSCluster(40)
    file, second = tmp_path / "cluster.json", tmp_path / "again.json"

    cluster.write(file)
    again.write(second)

    documents = load_files([str(file)], "strict")
    assert file.read_bytes() == second.read_bytes()
    assert not [warning for document in documents for warning in document.warnings]
    kinds = Counter(document.raw["kind"] for document in documents)
    assert (kinds["Node"], kinds["DaemonSet"], kinds["Namespace"]) == (40, 3, 12)
    assert kinds["Pod"] == cluster.pod_count == 3 * 40 + 7 * 40 + 1


def test_the_pods_of_an_eks_cluster_run_where_they_fit_and_one_fits_nowhere(tmp_path: Path) -> None:
    cluster = EKSCluster(40)
    file = tmp_path / "cluster.json"

    cluster.write(file)

    loaded = load(file)
    assert loaded.pending == sorted(cluster.pending)
    assert loaded.explain(cluster.pending[-1]).outcome == "unschedulable"
    free = Counter[str]()
    for raw in EKSCluster(40).objects():
        if raw["kind"] == "Node":
            free[raw["metadata"]["name"]] += cpu_milli(raw["status"]["allocatable"])
        elif raw["kind"] == "Pod" and "nodeName" in raw["spec"]:
            free[raw["spec"]["nodeName"]] -= cpu_milli(raw["spec"]["containers"][0]["resources"]["requests"])
    assert min(free.values()) >= 0


def test_no_controller_replaces_a_pod_of_an_eks_cluster(tmp_path: Path) -> None:
    EKSCluster(40).write(tmp_path / "cluster.json")

    played = load(tmp_path / "cluster.json").simulate(until="10m")

    killed = {(event.by or "").partition(" ")[0] for event in played.events if event.reason == "Killing"}
    assert not killed & {"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"}


def test_no_two_pods_of_a_large_eks_cluster_have_the_same_name() -> None:
    pods = [raw["metadata"] for raw in EKSCluster(3000).objects() if raw["kind"] == "Pod"]

    assert len({(pod["namespace"], pod["name"]) for pod in pods}) == len(pods)


def cpu_milli(amounts: dict[str, str]) -> int:
    return int(amounts["cpu"].removesuffix("m"))


@pytest.mark.parametrize("workload", ["load", "up"])
def test_the_first_answer_about_an_eks_cluster_is_measured_in_a_process_of_its_own(workload: str) -> None:
    assert_measured(workload)


@pytest.mark.parametrize("workload", ["snapshot", "pending", "fit"])
def test_commands_on_an_eks_cluster_are_measured(workload: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "run_command", run_here)
    assert_measured(workload)


def assert_measured(workload: str) -> None:
    (measured,) = measure(WorkloadSize(workload, 20), (), RELEASE)

    assert measured.subject == (workload, 20, 0, 3 * 20 + 7 * 20 + 1)
    assert measured.counts["bytes"] > 0
    assert measured.seconds > 0
    assert measured.peak_memory_mib > 0
