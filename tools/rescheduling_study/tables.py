"""The results of the runs as tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tools.rescheduling_study.cluster_state import LARGE_GPUS
from tools.rescheduling_study.machines import RULES, Sample
from tools.rescheduling_study.study import Run

_HEADS = (
    "setup",
    "GPUs held",
    "places",
    "lost to fragments",
    "nodes in use",
    "8-GPU pods wait",
    "longest",
    "all pods wait",
    "evicted",
    "of Jobs",
    "work lost",
)


@dataclass(frozen=True, slots=True)
class Waits:
    """How long pods waited for a node, in minutes; pending pods until the end."""

    mean: float
    longest: float


def summary(runs: Sequence[Run]) -> str:
    """Return a row for each run."""
    return _table(_HEADS, [_row(run) for run in runs])


def would_evict(run: Run) -> str:
    """Return what descheduler's rules would evict in the states of a run without evictions."""
    rows = []
    for name in RULES:
        found = [sample.would_evict[name] for sample in run.samples]
        acting = sum(number > 0 for number in found)
        rows.append((name, f"{len(found)}", f"{acting}", f"{_mean(found):.1f}", f"{max(found)}"))
    return _table(("rule", "looks", "with evictions", "pods, mean", "most"), rows)


def _row(run: Run) -> tuple[str, ...]:
    samples = run.samples
    large = waits(run.result.pods, run.result.summary["end"], run.large)
    every = waits(run.result.pods, run.result.summary["end"], None)
    # Evicted pods of Jobs fail; those of ReplicaSets end like other deleted pods.
    jobs = [pod for pod in run.result.pods if pod["phase"] == "Failed"]
    lost = sum((pod["endedAt"] - pod["startedAt"]) for pod in jobs if pod["startedAt"] is not None) / 3600
    return (
        run.name,
        f"{_mean([sample.gpus_held for sample in samples]):.1f}",
        f"{_mean([sample.places for sample in samples]):.2f}",
        f"{100 * _mean([_fragments(sample) for sample in samples]):.0f} %",
        f"{_mean([sample.nodes_in_use for sample in samples]):.1f}",
        f"{large.mean:.0f} min",
        f"{large.longest / 60:.1f} h",
        f"{every.mean:.1f} min",
        f"{sum(run.result.summary['disruptions'].values())}",
        f"{len(jobs)}",
        f"{lost:.1f} h",
    )


def waits(pods: Sequence[dict[str, Any]], end: float, owners: frozenset[str] | None) -> Waits:
    """Return how long the pods of some workloads, or all pods, waited."""
    found = [
        ((end if pod["scheduledAt"] is None else pod["scheduledAt"]) - pod["createdAt"]) / 60
        for pod in pods
        if owners is None or _owner(pod) in owners
    ]
    return Waits(_mean(found), max(found, default=0.0))


def _fragments(sample: Sample) -> float:
    """Return the share of the free GPUs of large nodes that no pod with 8 GPUs could use."""
    return 1 - LARGE_GPUS * sample.places / sample.gpus_free if sample.gpus_free else 0.0


def _owner(pod: dict[str, Any]) -> str:
    name: str = pod["pod"].partition("/")[2]
    return name.rpartition("-")[0]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(heads) + " |", "|---" + "|--:" * (len(heads) - 1) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"
