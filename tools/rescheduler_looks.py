"""The time of one look of a rescheduler at a large cluster, by policy, in CPU seconds.

`python -m tools.rescheduler_looks [FILE]`, or the cluster of `podium bench reschedule` with 5,000 nodes. A look makes a
plan: at first, then with nothing changed, then after a pod was removed and came back.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from podium.api.input.codec import Input, read_input
from podium.api.pod import Pod
from podium.api.times import parse_time
from podium.app.bench.eks_cluster import EKSCluster
from podium.cluster.cluster import Cluster
from podium.decide.rescheduling.guards import PlanInputs
from podium.decide.rescheduling.planner import Planner
from podium.decide.transaction import ClusterTransaction
from podium.framework.rescheduling.policy import PolicyRegistry, kubelet_runner, make_policies
from podium.framework.rescheduling.settings import DEFAULT_POLICIES, PolicySettings, ReschedulerSettings
from podium.framework.runner import Runner
from podium.framework.settings.configuration import default_configuration
from podium.framework.settings.registry import Registry, build_profiles
from podium.plugins.registry import IN_TREE
from podium.plugins.rescheduling.registry import IN_TREE as POLICIES

_NOW = parse_time("2027-02-01T00:00:00Z")


def main(file: str) -> None:
    """Print a line for each policy, and one for the default policies together."""
    cluster = Cluster()
    for item in (each.object for each in _read(file).documents if each.object is not None):
        if not isinstance(item, Pod):
            cluster.put(item)
        elif item.spec.node_name and not item.is_terminal:
            cluster.add_pod(cluster.read(item))
    profiles = build_profiles(default_configuration(), Registry(IN_TREE), cluster)
    runners = {name: Runner(profile, cluster) for name, profile in profiles.items()}
    kubelet = kubelet_runner(cluster, Registry(IN_TREE))
    print(f"{'policy':32} {'first':>7} {'same':>7} {'changed':>7}  trials")
    for names in (*((name,) for name in sorted(POLICIES)), DEFAULT_POLICIES):
        settings = ReschedulerSettings(tuple(PolicySettings(name, args=_ARGS.get(name, {})) for name in names))
        planner = Planner(make_policies(settings.policies, PolicyRegistry(POLICIES), cluster), settings)
        taken, trials = list[float](), 0
        for look in range(3):
            if look == 2:
                pod = next(iter(cluster.placed.values()))
                cluster.remove_pod(pod.uid)
                cluster.add_pod(pod)
            began = time.process_time()
            inputs = PlanInputs((), cluster.budgets)
            picture = planner.picture(cluster, runners, kubelet, _NOW, inputs=inputs)
            with ClusterTransaction(cluster, runners) as scratch:
                found = planner.plan(scratch, picture, inputs)
            taken.append(time.process_time() - began)
            trials = found.trials
        name = names[0] if len(names) == 1 else "the default policies"
        print(f"{name:32} " + " ".join(f"{each:7.2f}" for each in taken) + f"  {trials}", flush=True)


def _read(file: str) -> Input:
    """Return the input in a file; "" is a generated cluster."""
    if file:
        return read_input([file])
    with TemporaryDirectory() as folder:
        generated = Path(folder) / "cluster.json"
        EKSCluster(5_000).write(generated)
        return read_input([str(generated)])


_ARGS = {"ReplaceOldPods": {"maxAge": "9000h"}}

if __name__ == "__main__":
    main("".join(sys.argv[1:2]))
