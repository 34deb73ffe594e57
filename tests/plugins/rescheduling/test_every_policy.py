"""Rules for every built-in policy: its objective depends only on the cluster, and moves end."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from podium.api.pod import Pod
from podium.cluster.cluster import Cluster
from podium.cluster.pods import NO_ROW
from podium.decide.transaction import ClusterTransaction
from podium.framework.rescheduling.policy import (
    NodeSignals,
    Picture,
    PodSignals,
    Policy,
    Signals,
    predecessor,
    replacement,
)
from podium.plugins.rescheduling.registry import IN_TREE
from tests.builders import DAY_ONE_NS, cluster_of, node, pod, spread_over, term
from tests.fuzzing import Effort, efforts, usual
from tests.generators import EVERYTHING, Objects, clusters
from tests.plugins.rescheduling.pictures import ARGS, again, carry_out, picture_on, policy_of, scratch_of, shake

MINUTE = 60 * 10**9
OWNERS = ("ReplicaSet/web", "ReplicaSet/db", "StatefulSet/queue", "DaemonSet/agent", "")


@pytest.mark.parametrize("name", sorted(IN_TREE))
@settings(max_examples=usual(30))
@given(seed=st.integers(0, 2**32))
def test_cached_policy_state_equals_a_recomputation(name: str, seed: int) -> None:
    draw = Random(seed)
    cluster, waiting = Cluster(), list[Pod]()
    _change(draw, cluster, 8)
    picture = _picture(draw, cluster, waiting)
    kept = _made(name)
    for _ in range(6):
        if draw.random() < 0.5:
            _change(draw, cluster, draw.randint(1, 6))
            picture = _picture(draw, cluster, waiting)
        _same(kept, name, picture)
        with scratch_of(picture) as transaction:
            for _ in range(draw.randint(1, 4)):
                mark = transaction.savepoint()
                _try(draw, cluster, transaction)
                if cluster.nodes.count and draw.random() < 0.1:
                    _outrun_the_log(cluster)
                _same(kept, name, picture)
                if draw.random() < 0.5:
                    transaction.roll_back(mark)
                    _same(kept, name, picture)
        _same(kept, name, picture)


@pytest.mark.parametrize("name", sorted(IN_TREE))
@settings(max_examples=usual(30))
@given(seed=st.integers(0, 2**32))
def test_policies_propose_only_movable_pods_without_changing_state(name: str, seed: int) -> None:
    draw = Random(seed)
    cluster = Cluster()
    _change(draw, cluster, 12)
    picture = _picture(draw, cluster, [])
    policy = _made(name)
    before = policy.objective(picture)
    assert before >= 0
    proposals = list(policy.proposals(picture))
    for proposal in proposals:
        uids = [relocation.pod.uid for relocation in proposal.relocations]
        assert uids
        assert len(set(uids)) == len(uids)
        assert all(picture.is_movable(relocation.pod) for relocation in proposal.relocations)
        assert proposal.reason
    assert policy.objective(picture) == before
    once_more = list(_made(name).proposals(picture))
    assert [_words(proposal) for proposal in once_more] == [_words(proposal) for proposal in proposals]


@efforts(12)
@pytest.mark.parametrize("name", sorted(IN_TREE))
def test_cached_state_equals_a_recomputation_in_feature_rich_clusters(effort: Effort, name: str) -> None:
    @effort
    @given(clusters(EVERYTHING), st.randoms(use_true_random=False))
    def check(objects: Objects, chance: Any) -> None:
        seen = picture_on(cluster_of(*objects.surroundings), is_movable=lambda pod: True)
        asked = _made(name)
        for _ in range(4):
            assert asked.objective(seen) == _made(name).objective(again(seen))
            shake(seen, chance, 3)

    check()


@efforts(12)
@pytest.mark.parametrize("name", sorted(IN_TREE))
def test_worthwhile_moves_end(effort: Effort, name: str) -> None:
    @effort
    @given(clusters(EVERYTHING))
    def check(objects: Objects) -> None:
        seen = picture_on(cluster_of(*objects.surroundings), is_movable=lambda pod: True)
        asked = _made(name)
        first = asked.objective(seen)
        assert first >= 0
        for _ in range(100):
            before = asked.objective(seen)
            moved = carry_out(asked, seen)
            assert asked.objective(seen) <= before - 0.5 * len(moved) + 1e-6
            if not moved:
                return
        raise AssertionError("the moves do not come to an end")

    check()


def _words(proposal: Any) -> tuple[str, list[str]]:
    return proposal.reason, [relocation.pod.uid for relocation in proposal.relocations]


def _same(kept: Policy, name: str, picture: Picture) -> None:
    assert kept.objective(picture) == _made(name).objective(picture)


def _made(name: str) -> Policy:
    return policy_of(name, **ARGS.get(name, {}))


def _picture(draw: Random, cluster: Cluster, waiting: list[Pod]) -> Picture:
    if draw.random() < 0.5:
        waiting[:] = [_pod(draw, f"waits-{number}", "") for number in range(draw.randint(0, 3))]
    names = sorted(cluster.nodes.row_of)
    return picture_on(
        cluster,
        [cluster.read(waits) for waits in waiting],
        signals=_signals(draw, cluster),
        is_movable=lambda record: not record.terminating,
        closed=[name for name in names if draw.random() < 0.2],
        fixed=[record.name for record in cluster.placed.values() if draw.random() < 0.2],
        now=DAY_ONE_NS + draw.randint(0, 20) * MINUTE,
    )


def _signals(draw: Random, cluster: Cluster) -> Signals:
    return Signals(
        pods={uid: _pod_signals(draw) for uid in sorted(cluster.placed) if draw.random() < 0.6},
        nodes={
            name: NodeSignals(
                maintenance_ns=draw.choice([None, DAY_ONE_NS + draw.randint(0, 60) * MINUTE]),
                cpu_used_milli=draw.choice([None, draw.randint(0, 4_000)]),
            )
            for name in sorted(cluster.nodes.row_of)
            if draw.random() < 0.6
        },
        turned_away={
            (owner, name): dict.fromkeys(map(str, range(draw.randint(1, 4))), cluster.read(pod("rejected")))
            for owner in OWNERS
            for name in sorted(cluster.nodes.row_of)
            if draw.random() < 0.1
        },
    )


def _pod_signals(draw: Random) -> PodSignals:
    return PodSignals(
        restarts=draw.choice([0, 1, 5, 20]),
        out_of_memory_kills=draw.choice([0, 0, 5]),
        is_crash_looping=draw.random() < 0.4,
        failure_ns=draw.choice([None, DAY_ONE_NS + draw.randint(0, 20) * MINUTE]),
        cpu_used_milli=draw.choice([None, draw.randint(0, 3_000)]),
        cpu_pressure=draw.choice([None, draw.random()]),
    )


def _change(draw: Random, cluster: Cluster, times: int) -> None:
    for _ in range(times):
        name = f"node-{draw.randrange(6)}"
        match draw.randrange(6):
            case 0 if name in cluster.nodes.row_of:
                cluster.remove_node(name)
            case 1 | 2:
                zone, taints = draw.choice("ab"), draw.choice([[], [], ["x:PreferNoSchedule"], ["y:NoSchedule"]])
                cluster.put_node(node(name, cpu=str(draw.randint(1, 6)), zone=zone, taints=taints))
            case 3 if cluster.placed:
                cluster.remove_pod(draw.choice(sorted(cluster.placed)))
            case _:
                comes = _pod(draw, f"pod-{draw.randrange(10**6)}", name)
                if comes.metadata.uid not in cluster.placed:
                    cluster.add_pod(cluster.read(comes))


def _pod(draw: Random, name: str, on: str) -> Pod:
    labels = {"app": draw.choice(["web", "db"])}
    extra: dict[str, Any] = draw.choice(
        [
            {},
            {},
            {"node_selector": {"topology.kubernetes.io/zone": draw.choice("ab")}},
            {"apart": [term("app=db")]},
            {"dislikes": [(50, term("app=web"))]},
            {"likes": [(50, term("app=web", "topology.kubernetes.io/zone"))]},
            {"spread": [spread_over("topology.kubernetes.io/zone", "app=web", soft=draw.random() < 0.5)]},
        ]
    )
    return pod(
        name,
        on=on,
        cpu=draw.choice(["100m", "500m", "1", "2"]),
        labels=labels,
        owner=draw.choice(OWNERS),
        priority=draw.choice([0, 0, 100]),
        created=draw.randint(0, 600),
        started=draw.randint(0, 600),
        ready=draw.random() < 0.7,
        terminating=draw.random() < 0.1,
        **extra,
    )


def _outrun_the_log(cluster: Cluster) -> None:
    """Make more changes than the change log holds."""
    log = cluster.nodes.changes
    position = log.position
    for _ in range(10_000):
        log.touch(0)
    assert log.entries_since(position) is None


def _try(draw: Random, cluster: Cluster, transaction: ClusterTransaction) -> None:
    if not cluster.placed:
        return
    uid = draw.choice(sorted(cluster.placed))
    row = cluster.placed[uid].row
    left = record = transaction.take_off(uid)
    if draw.random() < 0.5 and predecessor(uid) == uid and replacement(uid) not in cluster.placed:
        record = replace(record, uid=replacement(uid), created_ns=DAY_ONE_NS + 60 * MINUTE)
        if row != NO_ROW and draw.random() < 0.5:
            transaction.place(replace(left, terminating=True, row=NO_ROW, slot=-1), row)
    names = sorted(cluster.nodes.row_of)
    if names and draw.random() < 0.8:
        transaction.place(record, cluster.nodes.row_of[draw.choice(names)])
