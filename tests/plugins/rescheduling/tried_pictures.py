"""Pictures of small clusters for tests of policies, and moves that are tried in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from podium.api.meta import Kubernetes
from podium.api.pod import Pod
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.decide.scratch import Scratch
from podium.framework.plugin import PluginContext
from podium.framework.rescheduling.picture import Picture
from podium.framework.rescheduling.policy import Policy, Proposal
from podium.framework.rescheduling.signals import Signals, replacement
from tests.builders import DAY_ONE_NS, cluster_of, plain_runner

SECOND = 10**9


def picture_of(
    *objects: Kubernetes,
    signals: Signals = Signals(),  # noqa: B008 - an immutable value
    closed: Iterable[str] = (),
    fixed: Iterable[str] = (),
    now: int = DAY_ONE_NS,
) -> Picture:
    """The picture of a cluster. Pods without a node wait, ``closed`` nodes take none, ``fixed`` pods stay."""
    cluster = cluster_of(*objects)
    waiting = [cluster.read(item) for item in objects if isinstance(item, Pod) and not item.spec.node_name]
    return picture_on(cluster, waiting, signals=signals, closed=closed, fixed=fixed, now=now)


def picture_on(
    cluster: Cluster,
    waiting: Sequence[PodRecord] = (),
    *,
    signals: Signals = Signals(),  # noqa: B008 - an immutable value
    closed: Iterable[str] = (),
    fixed: Iterable[str] = (),
    now: int = DAY_ONE_NS,
) -> Picture:
    """The same for a cluster that is there."""
    runner = plain_runner(cluster)
    targets = cluster.nodes.present[: cluster.nodes.count].copy()
    targets[[cluster.nodes.row_of[name] for name in closed]] = False
    kept = frozenset(fixed)
    in_order = sorted(waiting, key=lambda pod: (-pod.priority, pod.key))
    return Picture(
        cluster=cluster,
        runners={"default-scheduler": runner},
        kubelet=runner,
        now=now,
        signals=signals,
        targets=targets,
        waiting=in_order,
        is_movable=lambda pod: pod.name not in kept and not pod.terminating,
    )


def made(policy: Callable[[PluginContext], Policy], picture: Picture, **args: Any) -> Policy:
    """A policy with some arguments."""
    return policy(PluginContext(args, picture.cluster))


def first(policy: Policy, picture: Picture) -> Proposal:
    """What it proposes first."""
    return next(iter(policy.proposals(picture)))


def leaving(proposals: Iterable[Proposal]) -> list[list[str]]:
    """The names of the pods of each proposal."""
    return [[relocation.pod.name for relocation in proposal.relocations] for proposal in proposals]


def scratch_of(picture: Picture) -> Scratch:
    """Changes to the cluster of a picture, to be taken back."""
    return Scratch(picture.cluster, dict(picture.runners))


def move(picture: Picture, scratch: Scratch, moves: Mapping[str, str]) -> None:
    """Let replacements of pods, by name, be on other nodes."""
    taken = {name: _replaced(scratch.take_off(_uid(picture, name)), picture.now) for name in moves}
    for name, node in moves.items():
        scratch.place(taken[name], picture.cluster.nodes.row_of[node])


def gain(policy: Policy, picture: Picture, moves: Mapping[str, str]) -> float:
    """By how much its objective falls with some moves."""
    before = policy.objective(picture)
    with scratch_of(picture) as scratch:
        move(picture, scratch, moves)
        after = policy.objective(picture)
    assert policy.objective(picture) == before
    return before - after


def names(picture: Picture, rows: Any) -> set[str]:
    """The names of the nodes in rows that are marked."""
    return {picture.node_name(int(row)) for row in np.flatnonzero(rows)}


def _uid(picture: Picture, name: str) -> str:
    return next(uid for uid, pod in picture.cluster.placed.items() if pod.name == name)


def _replaced(pod: PodRecord, now: int) -> PodRecord:
    return replace(pod, uid=replacement(pod.uid), created_ns=now, start_ns=now)
