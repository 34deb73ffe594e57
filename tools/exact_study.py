"""The distance of plans from the optimum on many small random clusters.

`.venv/bin/python -m tools.exact_study --seeds 200` prints the table of docs/rescheduling-study.md. It needs the solver:
`pip install 'podium[exact]'`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np

from podium.api.input.codec import decode
from podium.api.meta import Raw
from podium.cluster.budgets import Budgets
from podium.cluster.cluster import Cluster
from podium.decide.rescheduling.guards import PlanInputs
from podium.decide.rescheduling.planner import Planner
from podium.decide.rescheduling.round_robin import ReschedulingPlan
from podium.decide.transaction import ClusterTransaction
from podium.framework.plugin import PluginContext
from podium.framework.rescheduling.policy import Picture, kubelet_runner
from podium.framework.rescheduling.settings import Guidance, MoveLimitSettings, ReschedulerSettings
from podium.framework.runner import Runner
from podium.framework.settings.configuration import default_configuration
from podium.framework.settings.registry import Registry, build_profiles
from podium.plugins.registry import IN_TREE as PLUGINS
from podium.plugins.rescheduling.node_use import requested_shares
from podium.plugins.rescheduling.registry import IN_TREE, ConsolidateArgs
from tests.exact.filter_rules import FILTER_RULES
from tests.exact.highs import Highs
from tests.exact.optimal import ExactQuestion, OptimalPlan, plan_optimal

NODES, PODS, OWNERS = 10, 60, 15
_SIZES = ((500, 1024), (1000, 4096), (2000, 4096))
_MOST_ROUNDS = 30
_HOUR = 3_600 * 10**9


@dataclass(frozen=True, slots=True)
class Kind:
    """A policy with its arguments and suitable clusters: the number of nodes on which pods start.

    Neither plans nor optimum move pods of nodes of which ``held_from`` or more is requested at first. ``title``
    distinguishes variants of a policy.
    """

    policy: str
    args: Mapping[str, Any]
    crowded: int
    has_preferences: bool = False
    has_violations: bool = False
    held_from: float | None = None
    title: str = ""


KINDS = (
    Kind("MoveToUnderusedNodes", {}, crowded=5),
    Kind("Consolidate", {}, crowded=NODES),
    Kind(
        "Consolidate",
        {},
        crowded=NODES,
        held_from=ConsolidateArgs().utilization_threshold,
        title=", the best held to its threshold",
    ),
    Kind("Consolidate", {"utilizationThreshold": 1}, crowded=NODES, title=", `utilizationThreshold: 1`"),
    Kind("SpreadDuplicates", {}, crowded=6),
    Kind("SatisfyPreferences", {}, crowded=NODES, has_preferences=True),
    Kind("RepairViolations", {}, crowded=NODES, has_violations=True),
)


@dataclass(frozen=True, slots=True)
class Measured:
    """The result of one cluster: share of the possible gain, moves, CPU milliseconds, and whether it is optimal."""

    share: float
    moves: int
    best_moves: int
    gains: float
    plan_ms: float
    solve_ms: float
    is_proven: bool


def cluster_of(kind: Kind, seed: int) -> Cluster:
    """Return a cluster of 10 nodes and 60 pods of 15 owners, determined by the seed."""
    chance = Random(f"{kind.policy}/{seed}")
    cluster = Cluster()
    room = {}
    for number in range(NODES):
        labels = {"kubernetes.io/hostname": f"node-{number}", "disk": chance.choice(("ssd", "hdd"))}
        labels["zone"] = f"zone-{number % 3}"
        amounts = {"cpu": "16", "memory": "64Gi", "pods": "110"}
        room[f"node-{number}"] = [16_000, 65_536]
        put(cluster, {"kind": "Node", "metadata": {"name": f"node-{number}", "labels": labels}, "status": amounts})
    names = list(room)[: kind.crowded]
    owners = [_owner(kind, number, chance) for number in range(OWNERS)]
    for number in range(PODS):
        owner = owners[number % OWNERS]
        cpu, memory = owner["size"]
        fitting = [name for name in names if room[name][0] >= cpu and room[name][1] >= memory] or list(room)
        name = chance.choice(fitting)
        room[name][0] -= cpu
        room[name][1] -= memory
        put(cluster, pod_of(number, owner, name))
    return cluster


def _owner(kind: Kind, number: int, chance: Random) -> dict[str, Any]:
    affinity: dict[str, Any] = {}
    term = {"matchExpressions": [{"key": "disk", "operator": "In", "values": [chance.choice(("ssd", "hdd"))]}]}
    zone = {"matchExpressions": [{"key": "zone", "operator": "In", "values": [f"zone-{chance.randrange(3)}"]}]}
    if kind.has_preferences:
        preferred = [{"weight": chance.randrange(1, 100), "preference": one} for one in (term, zone)]
        affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    elif kind.has_violations and chance.random() < 0.5:
        required = {"nodeSelectorTerms": [term]}
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return {"name": f"app-{number}", "size": chance.choice(_SIZES), "affinity": affinity}


def pod_of(number: int, owner: Mapping[str, Any], node: str) -> Raw:
    cpu, memory = owner["size"]
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner["name"], "uid": owner["name"]}
    requests = {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}
    return {
        "kind": "Pod",
        "metadata": {
            "name": f"pod-{number:02}",
            "uid": f"pod-{number:02}",
            "labels": {"app": owner["name"]},
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "ownerReferences": [{**reference, "controller": True}],
        },
        "spec": {
            "nodeName": node,
            "containers": [{"name": "main", "image": "app", "resources": {"requests": requests}}],
            "affinity": owner["affinity"],
        },
        "status": {
            "phase": "Running",
            "startTime": "2026-01-01T00:00:00Z",
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def put(cluster: Cluster, raw: Raw) -> None:
    if raw["kind"] == "Node":
        amounts = raw["status"]
        raw = {**raw, "status": {"capacity": amounts, "allocatable": amounts}}
    raw = {"apiVersion": "v1", **raw, "metadata": {"namespace": "default", **raw["metadata"]}}
    if raw["kind"] == "Node":
        del raw["metadata"]["namespace"]
    item: Any = decode(raw)
    if raw["kind"] == "Pod":
        cluster.add_pod(cluster.read(item))
    else:
        cluster.put(item)


def _budgets() -> Budgets:
    """Return a budget that allows all disruptions; without one pods would be moved one after the other."""
    budgets = Budgets()
    status = {"disruptionsAllowed": PODS, "expectedPods": PODS, "currentHealthy": PODS}
    item: Any = decode(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "all", "namespace": "default"},
            "spec": {"maxUnavailable": "100%", "selector": {}},
            "status": status,
        }
    )
    budgets.put(item)
    return budgets


def measure(kind: Kind, seed: int, guidance: Guidance, threshold: float) -> Measured:
    """Plan until nothing more is found, and solve; CPU times in milliseconds."""
    cluster = cluster_of(kind, seed)
    runners = {
        name: Runner(profile, cluster)
        for name, profile in build_profiles(default_configuration(), Registry(PLUGINS), cluster).items()
    }
    kubelet = kubelet_runner(cluster, Registry(PLUGINS))
    policy = IN_TREE[kind.policy](PluginContext(dict(kind.args), cluster))
    free = MoveLimitSettings()
    settings = ReschedulerSettings(
        policies=(),
        threshold=threshold,
        in_flight=free,
        hourly=free,
        without_budget=free,
        guidance=guidance,
        budget_reserve=0,
        budget_reserve_share=0.0,
        max_trials=100_000,
    )
    now = 1_767_225_600 * 10**9 + 24 * _HOUR
    inputs = PlanInputs((), _budgets())
    planner = Planner([(policy, 1.0)], settings)
    picture = _held(kind, planner.picture(cluster, runners, kubelet, now, inputs=inputs))
    began = time.process_time()
    best = plan_optimal(picture, [(policy, 1.0)], ExactQuestion(threshold, rules=FILTER_RULES), Highs(most_nodes=2_000))
    solved = time.process_time()
    with ClusterTransaction(cluster, runners) as transaction:
        planned = time.process_time()
        plans = list(_plans(planner, transaction, picture, inputs))
        done = time.process_time()
        after = {policy.name: policy.objective(picture)}
    moves = sum(len(group.moves) for plan in plans for group in plan.planned)
    return _measured(best, after, moves, 1000 * (done - planned), 1000 * (solved - began))


def _held(kind: Kind, picture: Picture) -> Picture:
    """Return the picture with the pods held that must not move."""
    if kind.held_from is None:
        return picture
    nodes = picture.cluster.nodes
    held = np.flatnonzero(requested_shares(picture.cluster, nodes.all_rows()) >= kind.held_from)
    uids = frozenset(pod.uid for row in held.tolist() for pod in picture.cluster.pods_on(row))
    return replace(picture, is_movable=lambda pod: pod.uid not in uids and picture.is_movable(pod))


def _plans(
    planner: Planner, transaction: ClusterTransaction, picture: Picture, standing: PlanInputs
) -> Iterator[ReschedulingPlan]:
    """Yield plans, each on top of the earlier ones, until one is empty."""
    for _ in range(_MOST_ROUNDS):
        plan = planner.plan(transaction, replace(picture, now=picture.now + _HOUR), standing)
        if not plan.planned:
            return
        yield plan


def _measured(best: OptimalPlan, after: Mapping[str, float], moves: int, plan_ms: float, solve_ms: float) -> Measured:
    return Measured(
        best.share_of(after, moves),
        moves,
        len(best.moves),
        best.cost_before - best.cost,
        plan_ms,
        solve_ms,
        best.is_proven,
    )


def row(name: str, found: Sequence[Measured]) -> str:
    """Return a row of the table."""
    shares = sorted(100 * one.share for one in found)
    near = sum(share >= 95 for share in shares)
    parts = [
        f"{shares[len(shares) // 2]:.1f} %",
        f"{shares[len(shares) // 10]:.1f} %",
        f"{shares[0]:.1f} %",
        f"{100 * near / len(shares):.0f} %",
        f"{sum(one.moves for one in found) / len(found):.1f} / {sum(one.best_moves for one in found) / len(found):.1f}",
        f"{sorted(one.plan_ms for one in found)[len(found) // 2]:.0f} ms",
        f"{sorted(one.solve_ms for one in found)[len(found) // 2]:.0f} ms",
        f"{sum(one.is_proven for one in found)} of {len(found)}",
    ]
    return "| " + " | ".join((name, *parts)) + " |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tools.exact_study", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="so many clusters for each policy")
    parser.add_argument("--threshold", type=float, default=0.25, help="what a move must gain")
    parser.add_argument("--only", nargs="*", help="only these policies")
    parser.add_argument("--guidance", choices=[one.value for one in Guidance], default=Guidance.BIND.value)
    args = parser.parse_args()
    print("| policy | median | a tenth below | worst | within 5 % | moves / best | plan | solve | proven |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    for kind in KINDS:
        if not args.only or kind.policy in args.only:
            found = [measure(kind, seed, Guidance(args.guidance), args.threshold) for seed in range(args.seeds)]
            print(row(f"`{kind.policy}`{kind.title}", found), flush=True)


if __name__ == "__main__":
    main()
