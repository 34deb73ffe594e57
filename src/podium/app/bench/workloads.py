"""The workloads of `podium bench`: what each measures, in which size, and which of them run by default."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from resource import struct_rusage
from time import perf_counter_ns

import msgspec

from podium.api.collector import collector_paused
from podium.api.versions.choice import ReleaseChoice
from podium.app.bench.clusters import BUILDERS
from podium.app.bench.eks_cluster import PODS_PER_NODE, EKSCluster
from podium.app.bench.measurement import Measurement, Stopwatch, measured, operations
from podium.app.bench.scheduling import measure_explaining, measure_rescheduling, measure_scheduling
from podium.app.bench.simulating import SCORES, Story, measure_score, measure_simulation
from podium.app.cluster import Cluster
from podium.app.explaining.workload import WorkloadExplanation
from podium.app.inputs import DecisionSettings, read_objects
from podium.app.library import load

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
_FAILED = "topology.kubernetes.io/zone=eu-west-1a"


def _explain(cluster: EKSCluster, dump: str) -> list[str]:
    return ["explain", cluster.pending[-1], "-f", dump]


def _fit(_: EKSCluster, dump: str) -> list[str]:
    snapshot = f"{dump}.podium"
    run_command("snapshot", "-f", dump, "-o", snapshot)
    return ["plan", "fit", "--cluster", snapshot, "-f", _written(dump, _POD)]


def _deploy(_: EKSCluster, dump: str) -> list[str]:
    return ["plan", "deploy", "--cluster", dump, "-f", _written(dump, _DEPLOYMENT)]


def _written(dump: str, manifest: object) -> str:
    """Write a manifest beside a dump, and return the file's name."""
    file = Path(f"{dump}.new.json")
    file.write_bytes(msgspec.json.encode(manifest))
    return str(file)


COMMANDS: dict[str, Callable[[EKSCluster, str], list[str]]] = {
    "load": _explain,
    "fit": _fit,
    "plan-drain": lambda cluster, dump: ["plan", "drain", cluster.nodes[0], "-f", dump],
    "plan-deploy": _deploy,
    "plan-fail": lambda _, dump: ["plan", "fail", "-l", _FAILED, "-f", dump],
}
"""The arguments of the workloads that run a command on the dump of an EKS-like cluster."""


def measure_command(workload: str, nodes: int) -> Measurement:
    """Run a command in a process of its own on an EKS-like cluster: seconds and memory are that process's."""
    with tempfile.TemporaryDirectory(prefix="podium-bench-") as folder:
        cluster, file = _dumped(folder, nodes)
        answer, usage = run_command(*COMMANDS[workload](cluster, str(file)), "-o", "json")
        counts, counted = {"bytes": file.stat().st_size}, None
        if workload == "load":
            small, small_file = _dumped(folder, min(nodes, _COUNTED_NODES))
            steps = operations(lambda: load(small_file).explain(small.pending[-1]).to_dict()).total()
            counted = steps / small.pod_count
    if workload.startswith("plan-"):
        impact = msgspec.json.decode(answer)["impact"]
        counts["disrupted"] = sum(sum(each["disruptions"].values()) for each in impact)
        counts["missing"] = sum(each["missing"] for each in impact)
    seconds = usage.ru_utime + usage.ru_stime
    pods = cluster.pod_count
    return measured(workload, pods, seconds, nodes=nodes, counts=counts, usage=usage, operations_per_pod=counted)


def _dumped(folder: str, nodes: int) -> tuple[EKSCluster, Path]:
    """Generate a cluster and write its dump."""
    cluster, file = EKSCluster(nodes), Path(folder) / f"cluster-{nodes}.json"
    cluster.write(file)
    return cluster, file


@collector_paused()
def measure_questions(nodes: int, release: ReleaseChoice) -> Measurement:
    """Load a dump, ask about one Deployment, and then about others: these questions are measured."""
    watch = Stopwatch()
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
    load_seconds = watch.lap()
    times, outcomes = [], Counter[str]()
    for target in others:
        began = perf_counter_ns()
        outcomes[ask(target)] += 1
        times.append(perf_counter_ns() - began)
    seconds = watch.lap()
    return measured(
        "question",
        len(others),
        seconds,
        nodes=nodes,
        placed=generated.pod_count,
        counts=dict(sorted(outcomes.items())),
        load_seconds=load_seconds,
        times_ns=times,
        operations_per_pod=operations(lambda: ask(first)).total(),
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


@dataclass(frozen=True, slots=True)
class Wanted:
    """A workload by name, of so many nodes and pods; None for its own numbers."""

    workload: str
    nodes: int | None = None
    pods: int | None = None


@dataclass(frozen=True, slots=True)
class WorkloadSpec:
    """A workload that can be made in any size, with its default size; the EKS-like clusters set the number of pods."""

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
    "explain": WorkloadSpec("explanations on a cluster with ten pods a node; a third fit, a third preempt", 5000, 60),
    "simulation": WorkloadSpec(
        "GPU fleets and jobs that come and end, with all controllers; then its answer as JSON", 1500, 8000
    ),
    "score": WorkloadSpec("a simulation with a score in the simple form, and without", 1500, 8000),
    "score-unscoped": WorkloadSpec("the same with a score that does not state its scope", 1500, 8000),
    "load": WorkloadSpec("podium explain on a dump of an EKS-like cluster, to the first answer", 3000),
    "question": WorkloadSpec("one more question to such a dump that is loaded", 3000),
    "fit": WorkloadSpec("podium plan fit on a snapshot of that cluster, to the answer", 3000),
    "plan-drain": WorkloadSpec("podium plan drain of a node of an EKS-like cluster", 3000),
    "plan-deploy": WorkloadSpec("podium plan deploy of 200 pods there", 3000),
    "plan-fail": WorkloadSpec("podium plan fail of a third of its nodes, a zone", 3000),
    "reschedule": WorkloadSpec("a rescheduler with all policies looks at a cluster that has drifted", 5000),
    "apiserver": WorkloadSpec("pods created, updated, listed and watched over HTTP", 0, 10_000),
    "live": WorkloadSpec("pods created and bound over HTTP, each party a process", 5000, 5000),
    "scale": WorkloadSpec("a large cluster with ten pods a node", 100_000, 1000),
}

_SCHEDULING = (
    Wanted("basic", 500),
    Wanted("basic"),
    Wanted("basic", 100_000),
    Wanted("preemption"),
    Wanted("preemption", 100_000, 300),
    *map(Wanted, ("preemption-across", "preemption-gangs", "affinity", "antiaffinity", "spread", "unschedulable")),
    *map(Wanted, ("mixed-churn", "explain")),
)
USUAL = (
    *_SCHEDULING,
    Wanted("simulation", 1500, 2000),
    *(Wanted(name, 1500, 500) for name in SCORES),
    *(Wanted(name, 300) for name in (*COMMANDS, "question")),
    Wanted("reschedule"),
    Wanted("apiserver", 0, 2000),
    Wanted("live", 5000, 2000),
)
"""What runs when no workload is named: about a minute and a half."""

FULL = (
    *_SCHEDULING,
    *map(Wanted, ("simulation", *SCORES, *COMMANDS, "question", "reschedule", "apiserver", "live", "scale")),
)
"""All workloads at their own sizes: some minutes."""


def measure(wanted: Wanted, files: tuple[str, ...], release: ReleaseChoice) -> list[Measurement]:
    """Generate a workload and measure it; simulations play the files instead, if there are some."""
    name, spec = wanted.workload, WORKLOADS[wanted.workload]
    nodes = wanted.nodes or spec.nodes
    pods = wanted.pods or spec.pods or nodes * PODS_PER_NODE
    if name == "explain":
        return [measure_explaining(nodes, pods, release)]
    if name in BUILDERS:
        return [measure_scheduling(name, nodes, pods, release)]
    if name in COMMANDS:
        return [measure_command(name, nodes)]
    if name == "question":
        return [measure_questions(nodes, release)]
    if name == "reschedule":
        return [measure_rescheduling(nodes, pods)]
    if name == "simulation":
        return measure_simulation(Story(files, nodes, pods), release)
    if name in SCORES:
        return [measure_score(name, Story(files, nodes, pods), release)]
    # What speaks HTTP is imported by the workloads that need it: the memory that it takes is measured, too.
    from podium.app.bench.api_server import measure_api_server, measure_live

    return measure_api_server(pods) if name == "apiserver" else [measure_live(nodes, pods)]
