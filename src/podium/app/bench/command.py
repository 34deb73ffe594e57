"""`podium bench`: the costs of decisions, simulations, the loading of dumps and the API on this machine."""

from __future__ import annotations

import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from resource import struct_rusage
from time import perf_counter_ns
from typing import Any

import click
import msgspec

from podium.api.collector import collector_paused
from podium.api.versions.choice import ReleaseChoice
from podium.app.bench import clusters, measurement, scheduling
from podium.app.bench.eks_cluster import PODS_PER_NODE, EKSCluster
from podium.app.bench.simulating import SimulationInput, measure_simulation
from podium.app.cluster import Cluster
from podium.app.console.command import Command, option
from podium.app.console.options import Source, original_source_options, output_option, release_options
from podium.app.console.output import in_json, new_page, show, show_page
from podium.app.console.progress import ProgressBar
from podium.app.explaining.workload import WorkloadExplanation
from podium.app.inputs import DecisionSettings, read_objects
from podium.app.library import load
from podium.plugins.rescheduling.registry import IN_TREE

QUESTIONS = 50
"""The maximum number of questions about a loaded dump."""

_COUNTED_NODES = 10
_REQUESTS = {"cpu": "500m", "memory": "1Gi"}
_POD_SPEC = {"containers": [{"name": "main", "image": "new", "resources": {"requests": _REQUESTS}}]}
_POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "new", "namespace": "shop"}, "spec": _POD_SPEC}
_LABELS = {"app": "new"}
_DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "new", "namespace": "shop"},
    "spec": {
        "replicas": 200,
        "selector": {"matchLabels": _LABELS},
        "template": {"metadata": {"labels": _LABELS}, "spec": _POD_SPEC},
    },
}
_RESCHEDULER = {
    "apiVersion": "podium.dev/v1alpha1",
    "kind": "ReschedulerConfiguration",
    "aggressiveness": "Bold",
    "policies": [{"name": name} for name in sorted(IN_TREE)],
    # All pods of the dump have just started.
    "scope": {"minimumAge": "0s"},
}
_FAILED = "topology.kubernetes.io/zone=eu-west-1a"
_JSON = ("-o", "json")


def _snapshot(dump: str) -> str:
    run_command(*_snapshotting(dump))
    return _snapshotting(dump)[-1]


def _snapshotting(dump: str) -> list[str]:
    return ["snapshot", "-f", dump, "--save", f"{dump}.podium"]


def _written(dump: str, manifest: object) -> str:
    file = Path(f"{dump}.new.json")
    file.write_bytes(msgspec.json.encode(manifest))
    return str(file)


COMMANDS: dict[str, Callable[[EKSCluster, str], list[str]]] = {
    "load": lambda cluster, dump: ["explain", cluster.pending[-1], "-f", dump, *_JSON],
    "snapshot": lambda _, dump: _snapshotting(dump),
    "up": lambda _, dump: ["up", "-f", _snapshot(dump), "--", "true"],
    "pending": lambda _, dump: ["plan", "pending", "-f", dump, *_JSON],
    "fit": lambda _, dump: ["plan", "fit", _written(dump, _POD), "-f", _snapshot(dump), *_JSON],
    "plan-drain": lambda cluster, dump: ["plan", "drain", cluster.nodes[0], "-f", dump, *_JSON],
    "plan-deploy": lambda _, dump: ["plan", "deploy", _written(dump, _DEPLOYMENT), "-f", dump, *_JSON],
    "plan-fail": lambda _, dump: ["plan", "fail", "-l", _FAILED, "-f", dump, *_JSON],
    "reschedule": lambda _, dump: ["reschedule", "--rescheduler", _written(dump, _RESCHEDULER), "-f", dump, *_JSON],
}
"""The arguments of the workloads that run a command on the dump of an EKS-like cluster."""


def measure_command(workload: str, nodes: int) -> measurement.Measurement:
    """Measure a command on an EKS-like cluster, in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="podium-bench-") as folder:
        cluster, file = _dumped(folder, nodes)
        answer, usage = run_command(*COMMANDS[workload](cluster, str(file)))
        counts, counted = {"bytes": file.stat().st_size}, None
        if workload == "load":
            small, small_file = _dumped(folder, min(nodes, _COUNTED_NODES))
            steps = measurement.operations(lambda: load(small_file).explain(small.pending[-1]).to_dict()).total()
            counted = steps / small.pod_count
    if workload.startswith("plan-"):
        impact = msgspec.json.decode(answer)["impact"]
        counts["disrupted"] = sum(sum(each["disruptions"].values()) for each in impact)
        counts["missing"] = sum(each["missing"] for each in impact)
    elif workload == "reschedule":
        plan = msgspec.json.decode(answer)
        counts |= {"moved": sum(len(each["moves"]) for each in plan["planned"]), "tried": plan["trials"]}
    seconds = usage.ru_utime + usage.ru_stime
    pods = cluster.pod_count
    return measurement.measured(
        workload, pods, seconds, nodes=nodes, counts=counts, usage=usage, operations_per_pod=counted
    )


def _dumped(folder: str, nodes: int) -> tuple[EKSCluster, Path]:
    cluster, file = EKSCluster(nodes), Path(folder) / f"cluster-{nodes}.json"
    cluster.write(file)
    return cluster, file


@collector_paused()
def measure_questions(nodes: int, release: ReleaseChoice) -> measurement.Measurement:
    """Measure questions about Deployments of a loaded dump; the first question is not counted."""
    watch = measurement.Stopwatch()
    with tempfile.TemporaryDirectory(prefix="podium-bench-") as folder:
        generated, file = _dumped(folder, nodes)
        watch.lap()
        cluster = Cluster(read_objects(file), DecisionSettings(release=release))

    def ask(target: str) -> str:
        answer = cluster.ask(f"deployment/{target}")
        answer.to_dict()
        return answer.explanation.outcome if isinstance(answer, WorkloadExplanation) else answer.outcome

    first, *others = [target for target, _ in generated.deployments[: QUESTIONS + 1]]
    ask(first)
    load_seconds, times, outcomes = watch.lap(), [], Counter[str]()
    for target in others:
        began = perf_counter_ns()
        outcomes[ask(target)] += 1
        times.append(perf_counter_ns() - began)
    return measurement.measured(
        "question",
        len(others),
        watch.lap(),
        counts=dict(sorted(outcomes.items())),
        nodes=nodes,
        placed=generated.pod_count,
        load_seconds=load_seconds,
        times_ns=times,
        operations_per_pod=measurement.operations(lambda: ask(first)).total(),
    )


def run_command(*arguments: str) -> tuple[bytes, struct_rusage]:
    """Run a command of Podium in a process of its own; return its output and usage. Raises RuntimeError."""
    command = [sys.executable, "-m", "podium", *arguments]
    with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, stdout=printed, stderr=errors)  # noqa: S603 - this very program
        _, status, usage = os.wait4(process.pid, 0)
        # The child is reaped: this is for the object alone, which would look for it otherwise.
        process.returncode = os.waitstatus_to_exitcode(status)
        printed.seek(0)
        errors.seek(0)
        if process.returncode:
            message = errors.read().decode()
            raise RuntimeError(f"podium {arguments[0]} ended with {process.returncode}: {message}")
        return printed.read(), usage


class WorkloadSize(msgspec.Struct, frozen=True):
    """A workload by name, with its numbers of nodes and pods; None for the default ones."""

    workload: str
    nodes: int | None = None
    pods: int | None = None


class WorkloadSpec(msgspec.Struct, frozen=True):
    """A workload of any size, and its default size; EKS-like clusters determine their number of pods."""

    description: str
    nodes: int
    pods: int = 0


WORKLOADS: dict[str, WorkloadSpec] = {
    "basic": WorkloadSpec("pods of 100m on empty nodes of 4 cores", 5000, 5000),
    "preemption": WorkloadSpec("nodes full of low-priority pods; every pod needs victims", 5000, 1000),
    "preemption-across": WorkloadSpec("the same, and in each rack pods on four other nodes are in the way", 5000, 20),
    "preemption-gangs": WorkloadSpec("nodes full of low-priority pods; gangs of 16 pods with one plan each", 5000, 320),
    "affinity": WorkloadSpec("required pod affinity within a zone", 5000, 3000),
    "antiaffinity": WorkloadSpec("required pod anti-affinity between nodes", 5000, 3000),
    "spread": WorkloadSpec("hard topology spread over three zones", 5000, 3000),
    "unschedulable": WorkloadSpec("a fifth of the pods never fit", 5000, 3000),
    "mixed-churn": WorkloadSpec("pods of several kinds while pods end and nodes change", 5000, 3000),
    "simulation": WorkloadSpec("controllers create the pods of such a cluster; then its answer as JSON", 1000),
    "load": WorkloadSpec("podium explain on a dump of an EKS-like cluster, to the first answer", 3000),
    "question": WorkloadSpec("one more question about such a dump, once it is loaded", 3000),
    "snapshot": WorkloadSpec("podium snapshot of that dump", 3000),
    "up": WorkloadSpec("podium up from a snapshot of that cluster, until its API answers", 3000),
    "pending": WorkloadSpec("podium plan pending on that dump", 3000),
    "fit": WorkloadSpec("podium plan fit on a snapshot of that cluster, to the answer", 3000),
    "plan-drain": WorkloadSpec("podium plan drain of a node of an EKS-like cluster", 3000),
    "plan-deploy": WorkloadSpec("podium plan deploy of 200 pods there", 3000),
    "plan-fail": WorkloadSpec("podium plan fail of a third of its nodes, a zone", 3000),
    "reschedule": WorkloadSpec("podium reschedule with all policies there, one plan", 3000),
    "scale": WorkloadSpec("a large cluster with ten pods a node", 100_000, 1000),
}

_SCHEDULING = (
    WorkloadSize("basic", 500),
    WorkloadSize("basic"),
    WorkloadSize("basic", 100_000),
    WorkloadSize("preemption"),
    WorkloadSize("preemption", 100_000, 300),
    *map(WorkloadSize, ("preemption-across", "preemption-gangs", "affinity", "antiaffinity", "spread")),
    *map(WorkloadSize, ("unschedulable", "mixed-churn")),
)
USUAL = (
    *_SCHEDULING,
    *(WorkloadSize(name, 300) for name in ("simulation", *COMMANDS, "question")),
)
"""What runs when no workload is named: about two minutes."""

FULL = (
    *_SCHEDULING,
    *map(WorkloadSize, ("simulation", *COMMANDS, "question", "scale")),
)
"""All workloads at their own sizes: some minutes."""


def measure(wanted: WorkloadSize, files: tuple[str, ...], release: ReleaseChoice) -> list[measurement.Measurement]:
    """Generate a workload and measure it; a simulation plays the files instead, if any are given."""
    name, spec = wanted.workload, WORKLOADS[wanted.workload]
    nodes = wanted.nodes or spec.nodes
    pods = wanted.pods or spec.pods or nodes * PODS_PER_NODE
    if name in clusters.BUILDERS:
        return [scheduling.measure_scheduling(name, nodes, pods, release)]
    if name == "question":
        return [measure_questions(nodes, release)]
    if name == "simulation":
        return measure_simulation(SimulationInput(files, nodes), release)
    return [measure_command(name, nodes)]


_EPILOG = """
\b
Example: two workloads, then the same again, beside what was measured first
  podium bench basic@1000 preemption --nodes 500 --pods 500 --save before.json
  podium bench basic@1000 preemption --nodes 500 --pods 500 --compare before.json
"""
_MOST_NODES, _MOST_PODS = 1_000_000, 10_000_000
_WANTED = re.compile(r"(?P<workload>[^@]+)(?:@(?P<nodes>[1-9]\d{0,7})(?:/(?P<pods>[1-9]\d{0,8}))?)?", re.ASCII)


class _WantedText(click.ParamType[WorkloadSize]):
    """A workload by name, with its numbers of nodes and pods unless default: `basic@500`, `basic@500/1000`."""

    name = "workload"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> WorkloadSize:
        """Convert the text. Raises BadParameter for a wrong one."""
        found = _WANTED.fullmatch(value)
        if found is None or found["workload"] not in WORKLOADS:
            known = ", ".join(WORKLOADS)
            self.fail(f"{value!r} is none of {known}, alone or as NAME@NODES or NAME@NODES/PODS", param, ctx)
        nodes, pods = (None if found[part] is None else int(found[part]) for part in ("nodes", "pods"))
        if (nodes or 0) > _MOST_NODES or (pods or 0) > _MOST_PODS:
            self.fail(f"{value!r} has more than {_MOST_NODES} nodes or {_MOST_PODS} pods", param, ctx)
        return WorkloadSize(found["workload"], nodes, pods)


@click.command(cls=Command, epilog=_EPILOG)
@click.argument("workloads", metavar="[WORKLOAD[@NODES[/PODS]]]...", nargs=-1, type=_WantedText())
@option("--nodes", "The number of nodes, unless given with @.", type=click.IntRange(1, _MOST_NODES))
@option("--pods", "The number of pods, unless given with @.", type=click.IntRange(1, _MOST_PODS))
@option("--full", "All workloads at their full sizes; some minutes.", is_flag=True)
@original_source_options
@option("--save", "A file to write the measurements to as well, as JSON.", metavar="FILE")
@option("--compare", "An earlier run, as --save or -o json wrote it: shows the ratios to it.", metavar="FILE")
@release_options
@output_option
def bench(
    *,
    workloads: tuple[WorkloadSize, ...],
    nodes: int | None,
    pods: int | None,
    full: bool,
    source: Source,
    save: str | None,
    compare: str | None,
    release: ReleaseChoice,
    form: str,
) -> None:
    """Measure CPU seconds, operations and peak memory of decisions, simulations and loading.

    Workloads: basic, preemption, preemption-across, preemption-gangs, affinity, antiaffinity, spread, unschedulable,
    mixed-churn, scale (decisions of a scheduler alone, without a cluster); simulation; load, question, snapshot, up,
    pending, fit, plan-drain, plan-deploy, plan-fail, reschedule (commands on an EKS-like cluster). Without any named,
    all but scale run, in about two minutes. Each has a process of its own.

    simulation plays what -f and --context give, if anything, such as a trace that podium simulate --save has written; a
    cluster is read once, before anything is measured.
    """
    earlier = None if compare is None else measurement.read_run(compare)
    chosen = [
        msgspec.structs.replace(wanted, nodes=nodes if wanted.nodes is None else wanted.nodes, pods=wanted.pods or pods)
        for wanted in workloads or (FULL if full else USUAL)
    ]
    with _files(source) as files:
        run = measurement.run_of(list(_measured(chosen, files, release)))
    if save is not None:
        Path(save).write_text(in_json(msgspec.to_builtins(run)), encoding="ascii")
    _show(run, earlier, form)


@contextmanager
def _files(source: Source) -> Iterator[tuple[str, ...]]:
    """Yield the files to simulate; the first is a temporary snapshot of the cluster, if one is given."""
    if source.cluster is None:
        yield source.files
        return
    from podium.app.snapshots.cluster import keep_cluster, snapshot_file

    with tempfile.TemporaryDirectory(prefix="podium-bench-") as folder:
        target = str(Path(folder) / "cluster.podium")
        with snapshot_file(target) as file:
            file.end(keep_cluster(file, source.cluster))
        yield (target, *source.files)


def _measured(
    chosen: list[WorkloadSize], files: tuple[str, ...], release: ReleaseChoice
) -> Iterator[measurement.Measurement]:
    """Yield the measurement of each workload, each in its own process, so that its memory is measured separately."""
    with ProgressBar("measuring") as bar:
        for place, wanted in enumerate(chosen):
            bar.update(
                place / len(chosen), partial("{}: {}".format, wanted.workload, WORKLOADS[wanted.workload].description)
            )
            with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
                yield from pool.submit(measure, wanted, files, release).result()


def _show(run: measurement.BenchRun, earlier: measurement.BenchRun | None, form: str) -> None:
    ratios = None if earlier is None else measurement.ratios_to(earlier, run.measurements)
    if form == "text":
        page = new_page()
        measurement.write_measurements(page, run.measurements, ratios)
        show_page(page)
        return
    value = msgspec.to_builtins(run)
    if ratios is not None:
        for entry, compared in zip(value["measurements"], ratios, strict=True):
            entry["compared"] = compared
    show(value, form)
