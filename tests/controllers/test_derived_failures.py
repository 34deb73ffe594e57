"""Derived failures: what follows from the rows that changed is what an attempt on a new scheduler comes to."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant

from podium.api.pod import Pod, TopologySpreadConstraint
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.controllers.scheduling.known_failures import DerivedFailures, KnownFailure, KnownFailures
from podium.controllers.scheduling.pod_reports import fit_error
from podium.decide.placement import Placement, place, rejecting_plugins
from podium.decide.post_filter import ask_post_filters
from podium.framework.plugin import PostFilterResult
from podium.framework.runner import Runner
from tests.builders import ZONE, cluster_of, node, plain_runner, pod, spread_over
from tests.cluster.changing_cluster import NAMES, ChangingCluster
from tests.fuzzing import long_runs, usual
from tests.generators import EVERYTHING, Traits, targets

ROW_LOCAL = Traits(heavy_target=True, ports=True, tolerations=True, nominated=True, budgets=True)


def attempt(runner: Runner, record: PodRecord) -> tuple[Placement, PostFilterResult, KnownFailure] | None:
    """Return an attempt in vain and its failure; None if the pod fits somewhere, or preempts."""
    placement = place(runner, record, detailed=False)
    if placement.row is not None or placement.error:
        return None
    result = ask_post_filters(runner, placement)
    if result.nominated_node or result.victims or result.plan is None or result.retry_ns is not None:
        return None
    message = fit_error(placement, len(runner.cluster.nodes), result.status.message)
    return placement, result, KnownFailure(tuple(sorted({*rejecting_plugins(placement), *result.waits_for})), message)


class Derived:
    """A scheduler that derives what it can, with the number of times that it did."""

    def __init__(self, cluster: Cluster) -> None:
        self.runner = plain_runner(cluster)
        runners = {"default-scheduler": self.runner}
        self.derived = DerivedFailures(cluster, runners)
        self.known = KnownFailures(runners)
        self.hits = 0

    def fails(self, record: PodRecord) -> KnownFailure | None:
        """Return the failure of an attempt, derived if possible; None if it does not fail in vain."""
        if self.known.likeness(record) is None:
            return None
        found = self.derived.derive(self.runner, record)
        if found is not None:
            self.hits += 1
            return found
        made = attempt(self.runner, record)
        if made is None:
            return None
        placement, result, failure = made
        self.derived.keep(self.runner, placement, result, failure)
        return failure


class FailingCluster(ChangingCluster):
    """The same pods are decided about after every change, by a scheduler that derives failures, and by a new one."""

    traits = ROW_LOCAL
    idle = 8

    def __init__(self) -> None:
        super().__init__()
        self.derived = Derived(self.cluster)
        self.targets: list[Pod] = []
        # A failure lasts as long as the class, which ends with its last pod.
        self.records: list[PodRecord] = []

    @initialize(data=st.data())
    def choose_targets(self, data: st.DataObject) -> None:
        self.targets = [data.draw(targets(NAMES, self.traits)) for _ in range(3)]

    @invariant()
    def a_new_scheduler_fails_alike(self) -> None:
        cluster = cluster_of(*self.objects)
        cluster.pass_time(self.now)
        runner = plain_runner(cluster)
        self.records = [self.cluster.read(target) for target in self.targets]
        for target, record in zip(self.targets, self.records, strict=True):
            if self.derived.known.likeness(record) is not None:
                made = attempt(runner, cluster.read(target))
                assert self.derived.fails(record) == (None if made is None else made[2])


class FailingWidely(FailingCluster):
    """As before, with pods whose affinity and spreading look at all nodes."""

    traits = replace(EVERYTHING, heavy_target=True, same_sizes=True)


FailingCluster.TestCase.settings = settings(max_examples=usual(20), stateful_step_count=25)
TestRowLocalPods = FailingCluster.TestCase
FailingWidely.TestCase.settings = settings(max_examples=usual(20), stateful_step_count=25)
TestAllPods = FailingWidely.TestCase


@pytest.mark.fuzz
@pytest.mark.parametrize("machine", [FailingCluster, FailingWidely])
def test_derived_failures_stay_correct_over_long_runs(machine: type[FailingCluster]) -> None:
    long_runs(machine)


def full_cluster() -> Cluster:
    """Three zones with a full node each, and an empty one that is too small."""
    nodes = [node(f"n{number}", cpu=2, zone=f"z{number}") for number in range(3)]
    return cluster_of(
        *nodes, node("small", cpu=1, zone="z0"), *(pod(f"p{n}", uid=f"p{n}", cpu=2, on=f"n{n}") for n in range(3))
    )


@pytest.mark.parametrize("priority", [0, 5])
@pytest.mark.parametrize("spread", [(), (spread_over(ZONE, "app=web"),)])
def test_a_changed_row_changes_the_counts_of_a_derived_failure(
    priority: int, spread: tuple[TopologySpreadConstraint, ...]
) -> None:
    cluster = full_cluster()
    derived = Derived(cluster)
    waiting = pod("w", cpu=3, priority=priority, labels={"app": "web"}, spread=list(spread))
    record = cluster.read(waiting)
    assert derived.fails(record) is not None

    cluster.put_node(node("n1", cpu=2, zone="z1", taints=["down=yes:NoExecute"]))
    failure = derived.fails(record)

    assert derived.hits == 1
    assert failure is not None
    assert "1 node(s) had untolerated taint" in failure.message
    made = attempt(plain_runner(cluster), record)
    assert made is not None
    assert failure == made[2]


def test_a_tainted_row_is_examined_again_once_its_taints_no_longer_keep_the_pod_off() -> None:
    cluster = full_cluster()
    cluster.put_node(node("n1", cpu=2, zone="z1", taints=["down=yes:NoSchedule"]))
    derived = Derived(cluster)
    record = cluster.read(pod("w", cpu=2))
    assert derived.fails(record) is not None

    cluster.remove_pod("p1")
    cluster.put_node(node("n1", cpu=2, zone="z1", taints=["down=yes:NoSchedule", "gone=yes:NoExecute"]))
    failure = derived.fails(record)

    assert derived.hits == 1
    assert failure is not None
    assert "1 node(s) had untolerated taint" in failure.message
    cluster.put_node(node("n1", cpu=2, zone="z1"))
    assert derived.fails(record) is None
    assert derived.hits == 1


def test_no_failure_is_derived_once_a_row_accepts_the_pod() -> None:
    cluster = full_cluster()
    derived = Derived(cluster)
    record = cluster.read(pod("w", cpu=2))
    assert derived.fails(record) is not None

    cluster.remove_pod("p1")

    assert derived.fails(record) is None
    assert derived.hits == 0
