"""Small clusters for policies, moves in them, and a plain planner."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from podium.api.meta import Kubernetes
from podium.api.pod import Pod
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.decide.transaction import ClusterTransaction
from podium.framework.plugin import PluginContext
from podium.framework.rescheduling.policy import Picture, Policy, Proposal, Signals, replacement
from podium.plugins.rescheduling.registry import IN_TREE
from tests.builders import DAY_ONE_NS, cluster_of, plain_runner

# Arguments with which a policy has something to do in small clusters.
ARGS: dict[str, dict[str, Any]] = {
    "Consolidate": {"for": {"requests": {"cpu": 3}, "places": 2}},
    "ReplaceOldPods": {"maxAge": "2m"},
}


def policy_of(name: str, **args: Any) -> Policy:
    """Return a policy that comes with Podium, with these arguments."""
    return IN_TREE[name](PluginContext(args, Cluster()))


def is_owned(pod: PodRecord) -> bool:
    """Return what may be moved in most tests: the pods of controllers that are not going."""
    return pod.controller is not None and not pod.terminating


def picture_of(*objects: Kubernetes, **reported: Any) -> Picture:
    """Return the picture of a cluster with these objects; pods without a node are pending. ``report`` is passed to
    `picture_on`.
    """
    cluster = cluster_of(*objects)
    waiting = [cluster.read(item) for item in objects if isinstance(item, Pod) and not item.spec.node_name]
    return picture_on(cluster, waiting, **reported)


def picture_on(
    cluster: Cluster,
    waiting: Sequence[PodRecord] = (),
    *,
    signals: Signals = Signals(),  # noqa: B008 - an immutable value
    closed: Iterable[str] = (),
    fixed: Iterable[str] = (),
    is_movable: Callable[[PodRecord], bool] = is_owned,
    now: int = DAY_ONE_NS,
) -> Picture:
    """Return the picture of a cluster. The nodes ``closed`` take in no pods, and the pods ``fixed``, by name, stay."""
    targets = cluster.nodes.present[: cluster.nodes.count].copy()
    targets[[cluster.nodes.row_of[name] for name in closed]] = False
    kept = frozenset(fixed)
    return Picture(
        cluster=cluster,
        runners={"default-scheduler": plain_runner(cluster)},
        kubelet=plain_runner(cluster, "NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit"),
        now=now,
        signals=signals,
        targets=targets,
        waiting=sorted(waiting, key=lambda pod: (-pod.priority, pod.key)),
        is_movable=lambda pod: pod.name not in kept and is_movable(pod),
    )


def again(seen: Picture) -> Picture:
    """Return the same picture as one with other profiles, for which policies begin again."""
    return dataclasses.replace(seen, runners={**seen.runners, "unused": seen.kubelet})


def scratch_of(seen: Picture) -> ClusterTransaction:
    """Return the cluster of a picture, to be changed until that is taken back."""
    return ClusterTransaction(seen.cluster, {**seen.runners, "": seen.kubelet})


def places(seen: Picture) -> dict[str, str]:
    """Return the node of each pod, by the pod's name."""
    return {pod.name: pod.node_name for pod in seen.cluster.placed.values()}


def names(seen: Picture, rows: Any) -> set[str]:
    """Return the names of the nodes in rows that are marked."""
    return {seen.node_name(int(row)) for row in np.flatnonzero(rows)}


# What is proposed


def first(policy: Policy, seen: Picture) -> Proposal:
    """Return what it proposes first."""
    return next(iter(policy.proposals(seen)))


def leaving(proposals: Iterable[Proposal]) -> list[list[str]]:
    """Return the names of the pods of each proposal."""
    return [[relocation.pod.name for relocation in proposal.relocations] for proposal in proposals]


def reported(proposals: Iterable[Proposal]) -> list[str]:
    """Return the names of the first pods of proposals."""
    return [pods[0] for pods in leaving(proposals)]


# What becomes of it


def move(seen: Picture, key: str, node: str) -> None:
    """Let a pod be on another node, for good."""
    cluster = seen.cluster
    (pod,) = [found for found in cluster.placed.values() if found.key == key]
    record = cluster.remove_pod(pod.uid)
    cluster.add_pod(replace(record, node_name=node, row=-1, slot=-1))


def replace_pods(seen: Picture, changes: ClusterTransaction, moves: Mapping[str, str]) -> None:
    """Let replacements of pods, by name, be on other nodes."""
    taken = {name: _replaced(changes.take_off(_uid(seen, name)), seen.now) for name in moves}
    for name, node in moves.items():
        changes.place(taken[name], seen.cluster.nodes.row_of[node])


def gain(policy: Policy, seen: Picture, moves: Mapping[str, str]) -> float:
    """By how much its objective falls with some moves."""
    before = policy.objective(seen)
    with scratch_of(seen) as changes:
        replace_pods(seen, changes, moves)
        after = policy.objective(seen)
    assert policy.objective(seen) == before
    return before - after


def carry_out(policy: Policy, seen: Picture, threshold: float = 0.5, limit: int = 1000) -> list[tuple[str, str, str]]:
    """Make the moves of proposals by which the objective falls enough, each to the best place there is.

    Returns pod, node left, and node reached, in order.
    """
    made: list[tuple[str, str, str]] = []
    changes = scratch_of(seen)
    for proposal in policy.proposals(seen):
        before, mark = policy.objective(seen), changes.savepoint()
        steps = _relocate(policy, seen, changes, proposal)
        if steps and before - policy.objective(seen) >= threshold * len(steps) - 1e-9:
            made += steps
        else:
            changes.roll_back(mark)
        assert len(made) <= limit, "the moves do not come to an end"
    return made


def _relocate(
    policy: Policy, seen: Picture, changes: ClusterTransaction, proposal: Proposal
) -> list[tuple[str, str, str]]:
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
        row = min(rows.tolist(), key=lambda row: (_tried(policy, seen, changes, pod, row), seen.node_name(row)))
        changes.place(pod, row)
        steps.append((pod.name, source, seen.node_name(row)))
    return steps


def _tried(policy: Policy, seen: Picture, changes: ClusterTransaction, pod: PodRecord, row: int) -> float:
    mark = changes.savepoint()
    changes.place(pod, row)
    found = policy.objective(seen)
    changes.roll_back(mark)
    return round(found, 9)


def shake(seen: Picture, chance: Any, steps: int) -> None:
    """Take pods off and put them elsewhere, at random; some of it is taken back."""
    changes = scratch_of(seen)
    rows = np.flatnonzero(seen.cluster.nodes.present[: seen.cluster.nodes.count]).tolist()
    for _ in range(steps):
        if not seen.cluster.placed or not rows:
            return
        mark = changes.savepoint()
        pod = changes.take_off(chance.choice(sorted(seen.cluster.placed)))
        changes.place(pod, chance.choice(rows))
        if chance.random() < 0.5:
            changes.roll_back(mark)


def _uid(seen: Picture, name: str) -> str:
    return next(uid for uid, pod in seen.cluster.placed.items() if pod.name == name)


def _replaced(pod: PodRecord, now: int) -> PodRecord:
    return replace(pod, uid=replacement(pod.uid), created_ns=now, start_ns=now)
