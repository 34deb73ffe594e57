"""The study of GPU sharing on the openb trace: the policies' rules, the runs and the upper bound."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples.openb.__main__ import main
from examples.openb.bound import upper_bound
from examples.openb.gpu_sharing import WHOLE, GpuPolicy, Nodes, Request, best_fit
from examples.openb.policies import FGD, BestFit, DotProd, GpuClustering, GpuPacking
from examples.openb.report import Result, read_published, table
from examples.openb.runs import PERCENTAGES, POLICIES, Run, arguments_for
from examples.openb.workload import Node, Task, Workload, mixes, read_workload, requested_milli

from podium.cluster.cluster import Cluster
from podium.plugin import InputError, PluginContext
from tests.app.forked_workers import fork_spawned

EXCERPT = Path(__file__).parents[2] / "examples/openb/excerpt"
HALF, ONE, TWO = Task(4000, 1024, 1, 500), Task(4000, 1024, 1, WHOLE), Task(8000, 1024, 2, WHOLE)
EXPECTED = [{"cpuMilli": 4000, "gpus": 1, "gpuMilli": milli, "share": 0.5} for milli in (WHOLE, 500)]


def nodes(*given: tuple[int, list[int]], kinds: list[list[int]] | None = None) -> Nodes:
    """Return nodes with free thousandths of cores and of each of two GPUs."""
    cpu, free = np.array([cpu for cpu, _ in given]), np.array([free for _, free in given])
    count = len(given)
    held = np.array(kinds if kinds is not None else [[0, 0, 0]] * count)
    return Nodes(cpu, free, np.full(count, 2), np.zeros(count, dtype=np.int64), held)


def rates(policy: type[GpuPolicy], task: Task, given: Nodes, **arguments: Any) -> list[int]:
    plugin = policy(PluginContext(arguments, Cluster()))
    rated: list[int] = plugin.rate(Request(task.cpu_milli, task.gpus, task.gpu_milli), given).tolist()
    return rated


def workload(*tasks: Task, gpus: int = 2, count: int = 1) -> Workload:
    given = [Node(f"node-{number}", 64_000, 262_144, gpus, "G2") for number in range(count)]
    return Workload("made", tuple(given), tasks)


def run_of(given: Workload, policy: str, seed: int = 42) -> Run:
    return Run(given, policy, arguments_for(policy, given), seed)


def test_a_pod_gets_parts_of_single_gpus_only() -> None:
    run = run_of(workload(gpus=2), "BestFit")

    assert run.arrive(0, Task(1000, 1024, 1, 600))
    assert run.arrive(1, Task(1000, 1024, 1, 600))
    # 800 thousandths are free, in two parts of 400.
    assert not run.arrive(2, HALF)
    assert run.arrive(3, Task(1000, 1024, 1, 400))


def test_whole_gpus_are_unused_ones() -> None:
    run = run_of(workload(gpus=2), "BestFit")

    assert run.arrive(0, Task(1000, 1024, 1, 100))
    assert not run.arrive(1, TWO)
    assert run.arrive(2, ONE)


def test_a_task_goes_to_models_that_it_accepts() -> None:
    mixed = Workload("made", (Node("a", 64_000, 262_144, 2, "G2"), Node("b", 64_000, 262_144, 2, "T4")), ())
    run = run_of(mixed, "BestFit")

    assert run.arrive(0, TWO._replace(models=("T4",)))
    assert not run.arrive(1, HALF._replace(models=("T4", "P100")))
    assert run.arrive(2, HALF._replace(models=("T4", "G2")))


def test_the_gpu_with_the_least_left_that_suffices_is_chosen() -> None:
    assert best_fit(Request(0, 1, 500), [1000, 400, 600, 600]) == (2,)
    assert best_fit(Request(0, 2, 1000), [1000, 400, 1000, 1000]) == (0, 2)
    assert best_fit(Request(0, 1, 700), [600, 400]) == ()


def test_best_fit_leaves_least_of_cpu_and_gpu() -> None:
    # (1 - (28000/128000 + 1000/8000) / 2) * 100 = 82.8, and (1 - (4000/128000 + 0) / 2) * 100 = 98.4.
    assert rates(BestFit, ONE, nodes((32_000, [1000, 1000]), (8_000, [1000, 0]))) == [82, 98]


def test_the_dot_product_prefers_nodes_that_offer_little_of_what_is_needed() -> None:
    # 1 - (0.25 * 0.03125 + 0.25 * 0.125) / 2 = 0.980, and 1 - (1 * 0.03125 + 0.125 * 0.125) / 2 = 0.977.
    assert rates(DotProd, ONE, nodes((32_000, [1000, 1000]), (128_000, [1000, 0]))) == [98, 97]


def test_packing_prefers_shared_gpus_to_free_ones_and_those_to_empty_nodes() -> None:
    given = nodes((64_000, [600, 1000]), (64_000, [400, 1000]), (64_000, [1000, 1000]))

    assert rates(GpuPacking, HALF, given) == [100 - 60 // 10, 50 - 1, 33 - 2]


def test_clustering_prefers_nodes_with_pods_of_the_kind_alone() -> None:
    given = nodes(
        *((64_000, [1000, 500]), (64_000, [1000, 0]), (64_000, [500, 0]), (64_000, [1000, 1000])),
        kinds=[[1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 0]],
    )

    assert rates(GpuClustering, HALF, given) == [75 + 20, 0 + 21, 50 + 23, 25 + 18]


def test_fragmentation_descent_fills_a_part_that_few_can_use() -> None:
    # Half of the expected tasks need a whole GPU, half need half of one. On the first node the half goes to the part
    # that is used already, and the fragmentation falls from 250 to 0; on the second it rises from 0 to 250.
    rated = rates(FGD, HALF, nodes((64_000, [1000, 500]), (64_000, [1000, 1000])), typical=EXPECTED)

    assert rated == [int(100 / (1 + np.exp(-0.25))), int(100 / (1 + np.exp(0.25)))]


def test_fragmentation_descent_chooses_the_gpu_by_the_same_rule() -> None:
    run = run_of(workload(ONE, HALF, gpus=2), "FGD")
    assert run.arrive(0, HALF)
    assert run.arrive(1, HALF)

    assert run.arrive(2, ONE)


def test_scarcity_gives_up_the_part_that_is_worth_least() -> None:
    run = run_of(workload(HALF, ONE, gpus=2), "Scarcity")
    assert run.arrive(0, HALF)

    assert run.arrive(1, HALF)
    assert run.arrive(2, ONE)


@pytest.mark.parametrize("claimed", ["G2", "T4"])
def test_scarcity_spares_the_model_that_other_tasks_claim(claimed: str) -> None:
    nodes = tuple(Node(f"node-{model}", 64_000, 262_144, 2, model) for model in ("G2", "T4"))
    given = Workload("made", nodes, (ONE,))
    run = Run(given, "Scarcity", arguments_for("Scarcity", given) | {"claims": {claimed: 0.5}}, seed=42)

    assert run.arrive(0, ONE)
    assert not run.pods["task-0"].spec.node_name.endswith(claimed)


def test_claims_are_shares_of_the_gpus_that_a_task_accepts() -> None:
    nodes = tuple(Node(f"node-{model}", 64_000, 262_144, 4, model) for model in ("G2", "P100", "T4"))
    # Six GPUs are requested of twelve, so that each task counts twice.
    tasks = (ONE, ONE, ONE, TWO._replace(models=("P100", "T4")), ONE._replace(models=("T4", "unknown")))

    claims = Workload("made", nodes, tasks).claims()

    assert claims == {"G2": 0, "P100": pytest.approx(0.5), "T4": pytest.approx(1.0)}


def test_a_sample_is_the_whole_list_and_then_draws_until_130_percent_are_requested() -> None:
    given = read_workload(EXCERPT)
    sample = given.sample(42)

    assert Counter(sample[: len(given.tasks)]) == Counter(given.tasks)
    assert 1.2 < requested_milli(sample) / given.capacity_milli <= 1.3
    assert sample == given.sample(42)
    assert sample != given.sample(43)


def test_a_list_that_requests_more_than_130_percent_loses_tasks() -> None:
    given = workload(*[ONE] * 10, gpus=2)

    assert given.sample(42) == [ONE] * 2


def test_nodes_are_ordered_by_a_number_of_the_seed() -> None:
    given = read_workload(EXCERPT)
    named = given.named(1)

    assert [node.name[:4] for node in named] == [f"{number:04}" for number in range(len(given.nodes))]
    assert sorted(node.name[5:] for node in named) == sorted(node.name for node in given.nodes)
    assert named != given.named(2)


@pytest.mark.parametrize("mix", mixes(EXCERPT))
@pytest.mark.parametrize("policy", POLICIES)
def test_no_policy_exceeds_the_bound_or_the_capacity(mix: str, policy: str) -> None:
    given = read_workload(EXCERPT, mix)
    tasks = given.sample(42)
    run = run_of(given, policy)

    marks = run.play(tasks)

    most = upper_bound(given.nodes, tasks[: len(tasks)]).total_milli
    assert [mark.requested for mark in marks] == list(PERCENTAGES)
    assert run.allocated_milli <= most + 1e-6
    assert most <= given.capacity_milli + 1e-6
    columns = run.scheduler.cluster.nodes
    assert (columns.requested[:, : columns.count] <= columns.allocatable[:, : columns.count]).all()
    _check_gpus(run)


def _check_gpus(run: Run) -> None:
    """Check that each pod has its GPUs, and no GPU more than a thousand thousandths."""
    used = Counter[tuple[int, int]]()
    for pod in run.scheduler.cluster.placed.values():
        task, devices = run.placed[pod.uid], run.gpus.devices.get(pod.uid, ())
        assert len(set(devices)) == task.gpus
        assert all(device < run.gpus.count(pod.row) for device in devices)
        used.update({(pod.row, device): task.gpu_milli for device in devices})
    assert max(used.values()) <= WHOLE


def test_a_running_task_moves_for_one_that_fits_nowhere() -> None:
    run = run_of(workload(HALF, ONE, gpus=1, count=2), "Scarcity+moves")
    assert run.arrive(0, HALF)
    assert run.arrive(1, HALF._replace(gpu_milli=600))
    assert run.arrive(2, HALF._replace(gpu_milli=400))
    run.end("task-1")

    # One GPU has 500 free, the other 600.
    assert run.arrive(3, ONE)
    assert run.moves == 1
    assert {uid for uid in run.placed if uid.endswith("-m")} in ({"task-0-m"}, {"task-2-m"})


def test_no_task_moves_if_that_does_not_help() -> None:
    run = run_of(workload(HALF, ONE, gpus=1, count=1), "Scarcity+moves")
    assert run.arrive(0, HALF)

    assert not run.arrive(1, ONE)
    assert (run.moves, list(run.placed)) == (0, ["task-0"])


def test_the_bound_knows_what_fits_a_gpu() -> None:
    # Two of 600 do not fit one GPU; with one of 400 each, they fill both.
    large, small = Task(1000, 1024, 1, 600), Task(1000, 1024, 1, 400)

    assert upper_bound(workload(gpus=2).nodes, [large] * 4).total_milli == pytest.approx(1200)
    assert upper_bound(workload(gpus=2).nodes, [large] * 4 + [small] * 4).total_milli == pytest.approx(2000)
    assert upper_bound(workload(gpus=2).nodes, [ONE._replace(models=("T4",))]).total_milli == pytest.approx(0)


def test_the_bound_knows_the_cpus_of_a_model() -> None:
    assert upper_bound(workload(gpus=2).nodes, [Task(48_000, 1, 1, WHOLE)] * 2).total_milli == pytest.approx(4000 / 3)


def test_worth_of_a_free_part_is_what_would_fill_it() -> None:
    large, small = Task(1000, 1024, 1, 600), Task(1000, 1024, 1, 400)
    worth = upper_bound(workload(gpus=2).nodes, [large] * 8 + [small] * 8).worth["G2"]

    assert worth[399] == pytest.approx(0)
    assert worth[WHOLE] == pytest.approx(1000)


def test_the_command_says_what_the_folder_must_contain(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gpu_nodes\.csv: does not exist; the folder of the openb trace must contain"):
        read_workload(tmp_path)


def test_the_table_compares_with_what_was_published() -> None:
    results = [Result("default", "FGD", seed, 100, allocated, 3) for seed, allocated in ((42, 95.0), (43, 96.0))]

    lines = table(results, {("default", "FGD"): 95.25})

    assert lines[-1] == "| default | FGD | 2 | 95.50 % | 95.00, 96.00 | 95.25 | +0.25 | 3 |"


def play(out: Path, *options: str) -> int:
    return main(["--data", str(EXCERPT), "--policies", "BestFit,Bound", "--out", str(out), *options])


def test_two_processes_make_the_table_that_one_makes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fork_spawned(monkeypatch.setattr)
    assert play(tmp_path / "one", "--seeds", "2") == 0
    assert play(tmp_path / "two", "--seeds", "2", "--processes", "2") == 0

    for name in ("table.md", "allocated-default.svg"):
        assert (tmp_path / "one" / name).read_text() == (tmp_path / "two" / name).read_text()


def test_results_of_several_processes_and_machines_count_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert play(tmp_path, "--seeds", "1") == 0
    assert play(tmp_path, "--seeds", "1", "--first-seed", "43") == 0
    file, table_before = tmp_path / "results.csv", (tmp_path / "table.md").read_text()
    header, *rows = file.read_text().splitlines(keepends=True)
    assert header == "mix,policy,seed,requested,allocated,moves\n"
    # Two that began together have both written the header, and both played the first run.
    file.write_text("".join([header, header, *rows, header, *rows[:5]]))
    capsys.readouterr()

    assert play(tmp_path, "--seeds", "2") == 0

    assert capsys.readouterr().err == ""
    assert (tmp_path / "table.md").read_text() == table_before


@pytest.mark.parametrize(
    ("row", "error"),
    [
        ("default,BestFit,42,100,much,0\n", 'line 2, column allocated: "much" is not a number'),
        ("default,Best,42,100,90.1,0\n", "line 2, column policy: there is no policy Best; there are Random"),
        ("default,BestFit,42\n", "line 2: 3 values where the header has 6 columns"),
    ],
)
def test_a_broken_line_of_results_is_an_error(
    row: str, error: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "results.csv").write_text("mix,policy,seed,requested,allocated,moves\n" + row)

    assert play(tmp_path) == 1
    assert f"results.csv: {error}" in capsys.readouterr().err


def test_published_figures_and_the_trace_are_read(openb: Path) -> None:
    given = read_workload(openb)

    assert (len(given.nodes), len(given.tasks), given.capacity_milli) == (1213, 8152, 6_212_000)
    assert read_published(openb / "published-allocation.csv")["default", "FGD"] == pytest.approx(95.227)
    assert len(mixes(openb)) == 9
    for mix in mixes(openb):
        assert len(read_workload(openb, mix).tasks) > 7_000


def test_tasks_of_a_mix_without_models_accept_all(tmp_path: Path) -> None:
    (tmp_path / "variants").mkdir()
    (tmp_path / "gpu_nodes.csv").write_text("sn,cpu_milli,memory_mib,gpu,model\nn1,64000,262144,8,T4\n")
    tasks = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np1,6000,12288,1,460\np2,8000,8192,2,1000\n"
    (tmp_path / "variants" / "pods_multi.csv").write_text(tasks)

    found = read_workload(tmp_path, "multi").tasks

    assert found == (Task(6000, 12288, 1, 460), Task(8000, 8192, 2, 1000))
