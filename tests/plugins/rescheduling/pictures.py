"""Pictures for policies to look at, and a planner as plain as can be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from podium.cluster.arrays import Bools
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.decide.scratch import Scratch
from podium.framework.plugin import PluginContext
from podium.framework.rescheduling.picture import Picture
from podium.framework.rescheduling.policy import Policy, Proposal
from podium.framework.rescheduling.signals import Signals
from podium.framework.runner import Runner
from podium.plugins.rescheduling.registry import IN_TREE
from tests.builders import cluster_of, plain_runner

# Arguments with which a policy has something to do in small clusters.
ARGS: dict[str, dict[str, Any]] = {
    "Consolidate": {"for": {"requests": {"cpu": 3}, "places": 2}},
    "ReplaceOldPods": {"maxAge": "2m"},
}


def policy(name: str, **args: Any) -> Policy:
    """A policy that comes with Podium, with these arguments."""
    return IN_TREE[name](PluginContext(args, Cluster()))


def is_owned(pod: PodRecord) -> bool:
    """What may be moved in most tests: the pods of controllers."""
    return pod.controller is not None


def picture_of(
    cluster: Cluster,
    *,
    closed: Iterable[str] = (),
    signals: Signals | None = None,
    is_movable: Callable[[PodRecord], bool] = is_owned,
    runners: Mapping[str, Runner] | None = None,
) -> Picture:
    """A picture of a cluster; all nodes but those ``closed`` take in pods."""
    targets: Bools = cluster.nodes.present[: cluster.nodes.count].copy()
    for name in closed:
        targets[cluster.nodes.row_of[name]] = False
    runner = plain_runner(cluster)
    return Picture(
        cluster=cluster,
        runners={"default-scheduler": runner} if runners is None else runners,
        kubelet=plain_runner(cluster, "NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit"),
        now=0,
        signals=signals or Signals(),
        targets=targets,
        waiting=(),
        is_movable=is_movable,
    )


def picture(*objects: Any, **told: Any) -> Picture:
    """A picture of a cluster with these objects."""
    return picture_of(cluster_of(*objects), **told)


def again(seen: Picture) -> Picture:
    """The same picture to somebody who has never seen it."""
    return replace(seen)


def scratch(seen: Picture) -> Scratch:
    """The cluster of a picture, to be changed."""
    return Scratch(seen.cluster, {**seen.runners, "": seen.kubelet})


def move(seen: Picture, key: str, node: str) -> None:
    """Let a pod be on another node."""
    cluster = seen.cluster
    (pod,) = [found for found in cluster.placed.values() if found.key == key]
    record = cluster.remove_pod(pod.uid)
    cluster.add_pod(replace(record, node_name=node, row=-1, slot=-1))


def places(seen: Picture) -> dict[str, str]:
    """The node of each pod, by the pod's name."""
    return {pod.name: pod.node_name for pod in seen.cluster.placed.values()}


def told(proposals: Iterable[Proposal]) -> list[str]:
    """The names of the first pods of proposals."""
    return [proposal.relocations[0].pod.name for proposal in proposals]


def carry_out(policy_: Policy, seen: Picture, threshold: float = 0.5, limit: int = 1000) -> list[tuple[str, str, str]]:
    """Make the moves of proposals by which the objective falls enough, each to the best place there is.

    Returns pod, node left, and node reached, in order.
    """
    made: list[tuple[str, str, str]] = []
    changes = scratch(seen)
    for proposal in policy_.proposals(seen):
        before, mark = policy_.objective(seen), changes.mark()
        steps = _relocate(policy_, seen, changes, proposal)
        if steps and before - policy_.objective(seen) >= threshold * len(steps) - 1e-9:
            made += steps
        else:
            changes.roll_back(mark)
        assert len(made) <= limit, "the moves do not come to an end"
    return made


def _relocate(policy_: Policy, seen: Picture, changes: Scratch, proposal: Proposal) -> list[tuple[str, str, str]]:
    """Take all pods off, then place each where the objective is lowest; nothing where some pod has no place."""
    sources = [relocation.pod.node_name for relocation in proposal.relocations]
    pods = [changes.take_off(relocation.pod.uid) for relocation in proposal.relocations]
    steps = []
    for relocation, source, pod in zip(proposal.relocations, sources, pods, strict=True):
        rows = changes.fitting(pod)
        rows = rows[seen.targets[rows] & (rows != seen.cluster.nodes.row_of[source])]
        if relocation.targets is not None:
            rows = rows[relocation.targets[rows]]
        if not len(rows):
            return []
        row = min(rows.tolist(), key=lambda row: (_tried(policy_, seen, changes, pod, row), seen.node_name(row)))
        changes.place(pod, row)
        steps.append((pod.name, source, seen.node_name(row)))
    return steps


def _tried(policy_: Policy, seen: Picture, changes: Scratch, pod: PodRecord, row: int) -> float:
    mark = changes.mark()
    changes.place(pod, row)
    found = policy_.objective(seen)
    changes.roll_back(mark)
    return round(found, 9)


def shake(seen: Picture, chance: Any, steps: int) -> None:
    """Take pods off and put them elsewhere, at random; some of it is taken back."""
    changes = scratch(seen)
    rows = np.flatnonzero(seen.cluster.nodes.present[: seen.cluster.nodes.count]).tolist()
    for _ in range(steps):
        if not seen.cluster.placed or not rows:
            return
        mark = changes.mark()
        pod = changes.take_off(chance.choice(sorted(seen.cluster.placed)))
        changes.place(pod, chance.choice(rows))
        if chance.random() < 0.5:
            changes.roll_back(mark)
