"""What is kept of the nodes that a class fits, against a look at all of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import event, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule
from msgspec.structs import replace as changed

from podium.api.pod import Pod
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.decide.placement import place
from podium.decide.ties import lot
from podium.framework.cycle_state import CycleState
from podium.framework.plugin import Plugin
from podium.framework.runner import Runner
from tests.builders import plain_runner
from tests.cluster.changing_cluster import NAMES, ChangingCluster
from tests.decide.test_kept_answers import ByTheNodeKept, ByThePodsKept
from tests.fuzzing import long_runs
from tests.generators import EVERYTHING, Traits, targets

UNNOMINATED = replace(EVERYTHING, nominated=False)
PLAIN = Traits(ports=True, terminating=True, tolerations=True, images=True)
NEAR = Traits(affinity=True, preferences=True, terminating=True)
SPREAD = Traits(spread=True, soft_spread=True, terminating=True)


def ranking_runner(cluster: Cluster, *extra: Plugin) -> Runner:
    """A runner that keeps a ranking as soon as it can."""
    runner = plain_runner(cluster, extra=extra)
    runner.rankings.patience = 0
    return runner


def same_row(runner: Runner, record: PodRecord) -> bool:
    """Whether a pod was found a node by ranking; fails where that is not the node that a look at all finds."""
    state = CycleState()
    before = runner.pre_filter(state, record)
    found = None
    if before.status.is_success and before.rows is None:
        found = runner.rankings.best(state, record, lot(record.uid, 0))
    expected = place(runner, record, nominated_first=False).row
    assert found in (None, expected)
    assert place(runner, record, detailed=False).row == expected
    return found is not None


class RankedCluster(ChangingCluster):
    """The same pods are decided about after every change, and some of them are placed where they were decided to go."""

    traits = UNNOMINATED

    def __init__(self) -> None:
        super().__init__()
        self.runner = ranking_runner(self.cluster)
        self.targets: list[Pod] = []
        self.records: list[PodRecord] = []

    @initialize(data=st.data())
    def choose_targets(self, data: st.DataObject) -> None:
        self.targets = [data.draw(targets(NAMES, self.traits)) for _ in range(2)]
        self.records = [self.cluster.read(target) for target in self.targets]
        for name in NAMES:
            self.put_node(name, data)

    @precondition(lambda self: self.targets)
    @rule(number=st.integers(0, 1))
    def place_target(self, number: int) -> None:
        """One more pod of the target's class goes where it is decided to go."""
        row = place(self.runner, self.records[number], detailed=False).row
        if row is None:
            return
        target, name = self.targets[number], f"placed-{next(self._numbers)}"
        made = changed(
            target,
            metadata=changed(target.metadata, name=name, uid=name),
            spec=changed(target.spec, node_name=self.cluster.nodes.name(row)),
        )
        self.placed[name] = made
        self.cluster.add_pod(self.cluster.read(made))

    @invariant()
    def a_ranking_finds_what_a_look_at_all_nodes_finds(self) -> None:
        for record in self.records:
            ranked = [same_row(self.runner, replace(record, uid=uid)) for uid in ("a", "b", "c")]
            event("ranked" if ranked[-1] else "not ranked")


class RankedPlainly(RankedCluster):
    """Pods that only look at nodes and at what is on them."""

    traits = PLAIN


class RankedNear(RankedCluster):
    """Pods with affinity to others."""

    traits = NEAR


class RankedApart(RankedCluster):
    """Pods that are spread."""

    traits = SPREAD


class RankedSimply(RankedCluster):
    """With plugins in the simple form that state their scope."""

    traits = PLAIN

    def __init__(self) -> None:
        super().__init__()
        self.runner = ranking_runner(self.cluster, ByTheNodeKept(), ByThePodsKept())


MACHINES = [RankedCluster, RankedPlainly, RankedNear, RankedApart, RankedSimply]
for machine in MACHINES:
    machine.TestCase.settings = settings(max_examples=15, stateful_step_count=25)
TestAllPods = RankedCluster.TestCase
TestPlainPods = RankedPlainly.TestCase
TestPodsNearOthers = RankedNear.TestCase
TestSpreadPods = RankedApart.TestCase
TestSimpleForm = RankedSimply.TestCase


@pytest.mark.fuzz
@pytest.mark.parametrize("machine", MACHINES)
def test_rankings_stay_right_over_long_runs(machine: type[RankedCluster]) -> None:
    long_runs(machine)
