"""Certificates of many small random clusters, held against the exact solver.

`.venv/bin/python -m tools.exact_bounds --seeds 10000` prints the seeds of the clusters whose bound exceeds the cost of
a placement that can be reached. The bounds of every other cluster are found as those of large ones: by few states at a
time. It needs the solver: `pip install 'podium[exact]'`.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

from msgspec import Struct

from podium.api.meta import Raw
from podium.cluster.budgets import Budgets
from podium.cluster.cluster import Cluster
from podium.decide.rescheduling import certificate
from podium.decide.rescheduling.certificate import MoveLimit, lower_bounds
from podium.decide.rescheduling.guards import PlanInputs
from podium.decide.rescheduling.planner import Planner
from podium.framework.plugin import PluginContext
from podium.framework.rescheduling.policy import Picture, Policy, kubelet_runner
from podium.framework.rescheduling.settings import MoveLimitSettings, ReschedulerSettings
from podium.framework.runner import Runner
from podium.framework.settings.configuration import default_configuration
from podium.framework.settings.registry import Registry, build_profiles
from podium.plugins.registry import IN_TREE as PLUGINS
from podium.plugins.rescheduling.registry import IN_TREE
from tests.exact.filter_rules import FILTER_RULES
from tests.exact.highs import Highs
from tests.exact.optimal import ExactPlanError, ExactQuestion, plan_optimal
from tools.exact_study import pod_of, put

ROUNDING = 1e-4
_FEW_STATES = certificate.FEW_STATES
_HOUR = 3_600 * 10**9
_MARKS = {"thresholds": {"cpu": 30, "memory": 30}, "targetThresholds": {"cpu": 60, "memory": 70}}

POLICIES: Sequence[tuple[str, Mapping[str, Any]]] = (
    ("Consolidate", {"utilizationThreshold": 1}),
    ("Consolidate", {"utilizationThreshold": 1, "for": {"requests": {"cpu": 3}, "places": 2}}),
    ("MoveToUnderusedNodes", _MARKS),
    ("RepairViolations", {}),
    ("SatisfyPreferences", {}),
    ("SpreadDuplicates", {}),
)


class Case(Struct, frozen=True):
    """A random cluster with weighted policies, the price of a move, and limits on moves."""

    picture: Picture
    policies: Sequence[tuple[Policy, float]]
    price: float
    limits: Sequence[MoveLimit]


def case_of(seed: int) -> Case:
    """Return the case of a seed: 2 to 5 nodes of two sizes, 3 to 12 pods of 2 to 5 owners, one or two policies."""
    chance = Random(f"bounds/{seed}")
    cluster, room = Cluster(), dict[str, list[int]]()
    for number in range(chance.randint(2, 5)):
        name, cpu = f"node-{number}", chance.choice((4, 8))
        labels = {"kubernetes.io/hostname": name, "disk": chance.choice(("ssd", "hdd")), "zone": f"zone-{number % 2}"}
        room[name] = [1000 * cpu, 4096 * cpu, 8]
        amounts = {"cpu": str(cpu), "memory": f"{4 * cpu}Gi", "pods": "8"}
        put(cluster, {"kind": "Node", "metadata": {"name": name, "labels": labels}, "status": amounts})
    owners = [_owner(number, chance) for number in range(chance.randint(2, 5))]
    for number in range(chance.randint(3, 12)):
        owner = chance.choice(owners)
        need = (*owner["size"], 1)
        fitting = [name for name, left in room.items() if all(map(int.__ge__, left, need))]
        if fitting:
            # Crowds on few nodes leave more to be gained.
            name = chance.choice(fitting[: chance.randint(1, len(fitting))])
            room[name] = [left - amount for left, amount in zip(room[name], need, strict=True)]
            put(cluster, pod_of(number, owner, name))
    picture = _picture(cluster)
    chosen = chance.sample(POLICIES, chance.choice((1, 1, 2)))
    policies = {
        name: (IN_TREE[name](PluginContext(dict(args), cluster)), chance.choice((1.0, 2.0))) for name, args in chosen
    }
    limits = [
        MoveLimit([pod.uid for pod in picture.movable_pods() if pod.owner_uid == owner["name"]], chance.randint(0, 3))
        for owner in owners
        if chance.random() < 0.6
    ]
    if chance.random() < 0.3:
        limits.append(MoveLimit([pod.uid for pod in picture.movable_pods()], chance.randint(0, 5)))
    return Case(picture, [*policies.values()], chance.choice((0.05, 0.1, 0.25, 0.5)), limits)


def _owner(number: int, chance: Random) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": "disk", "operator": "In", "values": [chance.choice(("ssd", "hdd"))]}]}
    apart = {"labelSelector": {"matchLabels": {"app": f"app-{number}"}}, "topologyKey": "kubernetes.io/hostname"}
    affinity: Raw = chance.choice(
        (
            {},
            {},
            {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}},
            {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "preference": term}]}},
            {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}},
            {
                "podAntiAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 9, "podAffinityTerm": apart}]
                }
            },
        )
    )
    return {
        "name": f"app-{number}",
        "size": chance.choice(((500, 1024), (1000, 4096), (2000, 4096))),
        "affinity": affinity,
    }


def _picture(cluster: Cluster) -> Picture:
    """Return the picture of a rescheduler without limits."""
    profiles = build_profiles(default_configuration(), Registry(PLUGINS), cluster)
    runners = {name: Runner(profile, cluster) for name, profile in profiles.items()}
    free = MoveLimitSettings()
    settings = ReschedulerSettings(policies=(), in_flight=free, hourly=free, without_budget=free)
    now = 1_767_225_600 * 10**9 + 24 * _HOUR
    return Planner([], settings).picture(
        cluster, runners, kubelet_runner(cluster, Registry(PLUGINS)), now, inputs=PlanInputs((), Budgets())
    )


def checked(seed: int) -> Iterator[tuple[str, float, float]]:
    """Yield the bound and the cost of the best placement found of each certificate of a case, with its name."""
    case = case_of(seed)
    names = {policy.name for policy, _ in case.policies}
    certificate.FEW_STATES = 0 if seed % 2 else _FEW_STATES
    within, ever = lower_bounds(case.picture, case.policies, case.price, case.limits)
    for name, limits, found in (("within limits", case.limits, within), ("ever", (), ever)):
        question = ExactQuestion(case.price, limits, rules=FILTER_RULES, most_rounds=6)
        best = plan_optimal(case.picture, case.policies, question, Highs(most_nodes=2_000))
        # Both count the same policies, and the certificate excludes no placement.
        if set(found.objectives) == names == set(best.weights) and not any(
            "plans within" in text for _, texts in found.relaxed for text in texts
        ):
            yield name, found.bound, best.cost


def main() -> None:
    """Print the number of certificates that were compared, how close they are, and the counterexamples."""
    parser = argparse.ArgumentParser(prog="python -m tools.exact_bounds", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1_000, help="so many clusters")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    args = parser.parse_args()
    seen, exact = Counter[str](), Counter[str]()
    for seed in range(args.first, args.first + args.seeds):
        try:
            for name, bound, cost in checked(seed):
                seen[name] += 1
                exact[name] += bound >= cost - 0.01 * max(cost, 1.0)
                if bound > cost + ROUNDING:
                    print(f"seed {seed}, {name}: the bound is {bound:.6f}, a placement costs {cost:.6f}", flush=True)
        except ExactPlanError as error:
            seen["not solved"] += 1
            print(f"seed {seed}: {error}", flush=True)
        if (seed + 1 - args.first) % 500 == 0:
            print(f"seeds to {seed}: compared {dict(seen)}, within 1 % {dict(exact)}", flush=True)
    print(f"{args.seeds} clusters: compared {dict(seen)}, within 1 % of the cost {dict(exact)}")


if __name__ == "__main__":
    main()
