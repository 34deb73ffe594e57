"""The workloads of `podium bench`: what there is to choose from, and what runs unless some are chosen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from podium.app.bench.dump import PODS_PER_NODE
from podium.app.bench.loading import measure_loading, measure_questions
from podium.app.bench.measurement import Measurement
from podium.app.bench.rescheduling import measure_rescheduling
from podium.app.bench.scheduling import measure_explaining, measure_scheduling
from podium.app.bench.simulating import Story, measure_score, measure_simulation
from podium.framework.settings.feature_gates import FeatureGates


@dataclass(frozen=True, slots=True)
class Wanted:
    """A workload by name, of so many nodes and pods; None for its own numbers."""

    workload: str
    nodes: int | None = None
    pods: int | None = None


@dataclass(frozen=True, slots=True)
class Given:
    """What a workload is made of: its size, and the files that are played in place of a made story."""

    nodes: int
    pods: int
    files: tuple[str, ...]
    feature_gates: FeatureGates


@dataclass(frozen=True, slots=True)
class WorkloadSpec:
    """A workload that can be made in any size, with those that it has unless told otherwise.

    ``pods`` None stands for as many to a node as dumps have.
    """

    description: str
    nodes: int
    pods: int | None
    measure: Callable[[Given], list[Measurement]]


def _scheduling(name: str, given: Given) -> list[Measurement]:
    return [measure_scheduling(name, given.nodes, given.pods, given.feature_gates)]


def _explaining(given: Given) -> list[Measurement]:
    return [measure_explaining(given.nodes, given.pods, given.feature_gates)]


def _simulation(given: Given) -> list[Measurement]:
    return measure_simulation(_story(given), given.feature_gates)


def _score(name: str, given: Given) -> list[Measurement]:
    return [measure_score(name, _story(given), given.feature_gates)]


def _story(given: Given) -> Story:
    return Story(given.files, given.nodes, given.pods)


def _loading(given: Given) -> list[Measurement]:
    return [measure_loading(given.nodes, given.pods)]


def _questions(given: Given) -> list[Measurement]:
    return [measure_questions(given.nodes, given.pods, given.feature_gates)]


def _rescheduling(given: Given) -> list[Measurement]:
    return [measure_rescheduling(given.nodes, given.pods)]


# What speaks HTTP is imported by those that are about it: the memory that others take is told, too.


def _api_server(given: Given) -> list[Measurement]:
    from podium.app.bench.api_server import measure_api_server

    return measure_api_server(given.pods)


def _live(given: Given) -> list[Measurement]:
    from podium.app.bench.live import measure_live

    return [measure_live(given.nodes, given.pods)]


def _spec(name: str, description: str, nodes: int, pods: int) -> WorkloadSpec:
    return WorkloadSpec(description, nodes, pods, partial(_scheduling, name))


WORKLOADS: dict[str, WorkloadSpec] = {
    "basic": _spec("basic", "pods of 100m on empty nodes of 4 cores", 5000, 5000),
    "preemption": _spec("preemption", "nodes full of low-priority pods; every pod needs victims", 5000, 1000),
    "preemption-across": _spec(
        "preemption-across", "the same, and in each rack pods on four other nodes are in the way", 5000, 20
    ),
    "preemption-gangs": _spec(
        "preemption-gangs", "nodes full of low-priority pods; gangs of 16 pods with one plan each", 5000, 320
    ),
    "affinity": _spec("affinity", "required pod affinity within a zone", 5000, 3000),
    "antiaffinity": _spec("antiaffinity", "required pod anti-affinity between nodes", 5000, 3000),
    "spread": _spec("spread", "hard topology spread over three zones", 5000, 3000),
    "unschedulable": _spec("unschedulable", "a fifth of the pods never fit", 5000, 3000),
    "mixed-churn": _spec("mixed-churn", "pods of several kinds while pods end and nodes change", 5000, 3000),
    "explain": WorkloadSpec(
        "explanations on a cluster with ten pods a node; a third fit, a third preempt", 5000, 60, _explaining
    ),
    "simulation": WorkloadSpec(
        "GPU fleets and jobs that come and end, with all controllers; then its answer as JSON", 1500, 8000, _simulation
    ),
    "score": WorkloadSpec(
        "a simulation with a score in the simple form, and without", 1500, 8000, partial(_score, "score")
    ),
    "score-unscoped": WorkloadSpec(
        "the same with a score that does not state its scope", 1500, 8000, partial(_score, "score-unscoped")
    ),
    "load": WorkloadSpec("podium explain on a dump, to the first answer", 5000, None, _loading),
    "question": WorkloadSpec("one more question to a dump that is loaded", 5000, None, _questions),
    "reschedule": WorkloadSpec(
        "a rescheduler with all policies looks at a cluster that has drifted", 5000, None, _rescheduling
    ),
    "apiserver": WorkloadSpec("pods created, updated, listed and watched over HTTP", 0, 10_000, _api_server),
    "live": WorkloadSpec("pods created and bound over HTTP, each party a process", 5000, 5000, _live),
    "scale": _spec("scale", "a large cluster with ten pods a node", 100_000, 1000),
}

_SCHEDULING = (
    Wanted("basic", 500),
    Wanted("basic"),
    Wanted("basic", 100_000),
    Wanted("preemption"),
    Wanted("preemption", 100_000, 300),
    Wanted("preemption-across"),
    Wanted("preemption-gangs"),
    *map(Wanted, ("affinity", "antiaffinity", "spread", "unschedulable", "mixed-churn", "explain")),
)
USUAL = (
    *_SCHEDULING,
    Wanted("simulation", 1500, 2000),
    *(Wanted(name, 1500, 500) for name in ("score", "score-unscoped")),
    *(Wanted(name, 500) for name in ("load", "question")),
    Wanted("reschedule"),
    Wanted("apiserver", 0, 2000),
    Wanted("live", 5000, 2000),
)
"""What runs when no workload is named: about a minute."""

FULL = (
    *_SCHEDULING,
    *map(
        Wanted,
        ("simulation", "score", "score-unscoped", "load", "question", "reschedule", "apiserver", "live", "scale"),
    ),
)
"""All workloads at their own sizes: some minutes."""


def measure(wanted: Wanted, files: tuple[str, ...], feature_gates: FeatureGates) -> list[Measurement]:
    """Make a workload and measure it."""
    spec = WORKLOADS[wanted.workload]
    nodes = wanted.nodes or spec.nodes
    pods = wanted.pods or spec.pods or nodes * PODS_PER_NODE
    return spec.measure(Given(nodes, pods, files, feature_gates))
