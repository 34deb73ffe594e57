"""A scheduler with caches against a scheduler that has just started."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant

from podium.api.pod import Pod
from podium.cluster import view as view_module
from podium.cluster.arrays import Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.cluster.view import NodeView, View
from podium.framework.handle import CycleState
from podium.framework.plugin import Scope
from podium.framework.runner import Runner
from podium.framework.scoring import default_normalize
from podium.framework.verdicts import SUCCESS, Status, unresolvable, unschedulable
from podium.plugins.default_preemption import DefaultPreemption
from tests.builders import cluster_of, configuration, plain_runner, runner_on
from tests.cluster.changing_cluster import NAMES, ChangingCluster
from tests.decide.answers import answers
from tests.fuzzing import long_runs, usual
from tests.generators import EVERYTHING, Traits, targets

# Nothing that reaches beyond a node: what is kept of a row then stands until the row changes.
ROW_LOCAL = Traits(heavy_target=True, ports=True, terminating=True, nominated=True, budgets=True)
EQUALS = Traits(equals=True, terminating=True, nominated=True, budgets=True)
FAIR = configuration({"DefaultPreemption": {"equalPriorityPreemption": True}})


@contextmanager
def in_small_pieces() -> Iterator[None]:
    """Compute everything about all rows two rows at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(view_module, "PIECE_ROWS", 2)
        yield


class DecidingCluster(ChangingCluster):
    """The same pods are decided about after every change, by a scheduler that has been there all the time.

    It asks about few rows one by one and about more in arrays, of all rows in small pieces; one that has just started
    asks in arrays of all.
    """

    traits = ROW_LOCAL
    idle = 8

    def __init__(self) -> None:
        super().__init__()
        self.runner = self.runner_on(self.cluster)
        self.targets: list[Pod] = []

    def runner_on(self, cluster: Cluster) -> Runner:
        return plain_runner(cluster)

    def new_runner_on(self, cluster: Cluster) -> Runner:
        return self.runner_on(cluster)

    @initialize(data=st.data())
    def choose_targets(self, data: st.DataObject) -> None:
        self.targets = [data.draw(targets(NAMES, self.traits)) for _ in range(2)]
        self.runner.kept.few_rows = data.draw(st.sampled_from([0, 1, 16]))

    @invariant()
    def a_new_scheduler_would_decide_the_same(self) -> None:
        cluster = cluster_of(*self.objects)
        cluster.pass_time(self.now)
        runner = self.new_runner_on(cluster)
        runner.kept.few_rows = 0
        for target in self.targets:
            with in_small_pieces():
                kept = answers(self.runner, self.cluster.read(target))
            assert kept == answers(runner, cluster.read(target))
        fresh = {pod.uid: pod for pod, _ in cluster.nominations.all()}
        for pod, _ in self.cluster.nominations.all():
            assert answers(self.runner, pod) == answers(runner, fresh[pod.uid])


class DecidingWidely(DecidingCluster):
    """The same with pods whose affinity and spreading read all nodes.

    All nodes report the same size of an image: the size of the first node counts, and a new scheduler may see another
    one first.
    """

    traits = replace(EVERYTHING, same_sizes=True)

    def __init__(self) -> None:
        super().__init__()
        for plugin in self.runner.profile.post_filter:
            if isinstance(plugin, DefaultPreemption):
                plugin._trials.worth_parting = 0


class DecidingFairly(DecidingCluster):
    """With pods of one priority and several owners, which take room from one another."""

    traits = EQUALS

    @initialize(data=st.data())
    def crowd(self, data: st.DataObject) -> None:
        for _ in range(9):
            self.add_pod(data)

    def runner_on(self, cluster: Cluster) -> Runner:
        return runner_on(cluster, FAIR)


class ByTheNode:
    """A plugin in the simple form that looks at the node alone."""

    name = "ByTheNode"

    def filter(self, state: CycleState, pod: PodRecord, node: NodeView) -> Status:
        if node.node.spec.unschedulable:
            return unresolvable("closed")
        return unschedulable(f"{node.allocatable['cpu']} is odd") if node.allocatable["cpu"] % 2 else SUCCESS

    def score(self, state: CycleState, pod: PodRecord, node: NodeView) -> int:
        return node.allocatable["cpu"] % 7 + len(node.labels) + node.allocatable["never/heard-of"]


class ByThePods:
    """A plugin in the simple form that looks at anything of the pods on the node."""

    name = "ByThePods"

    def filter(self, state: CycleState, pod: PodRecord, node: NodeView) -> Status:
        marked = sum(bool(one.annotations) or one.terminating for one in node.pods)
        return unschedulable(f"{marked} are marked") if marked > 1 else SUCCESS

    def score(self, state: CycleState, pod: PodRecord, node: NodeView) -> int:
        marked = sum(bool(one.annotations) or one.ready or one.preempted for one in node.pods)
        return min(100, 10 * marked + node.requested["cpu"] // 500 + len(node.requested))


class Fewest(ByThePods):
    """The same, scaled to what the others on the list have."""

    name = "Fewest"

    def normalize(self, state: CycleState, pod: PodRecord, scores: Int64s, feasible: View) -> Int64s:
        return default_normalize(scores, reverse=True)


class ByTheNodeKept(ByTheNode):
    scope = "node"


class ByThePodsKept(ByThePods):
    scope = Scope.ROW


class FewestKept(Fewest):
    scope = "row"


class DecidingSimply(DecidingCluster):
    """With plugins in the simple form: what is kept of them must be what they would say."""

    def runner_on(self, cluster: Cluster) -> Runner:
        return plain_runner(cluster, extra=[ByTheNodeKept(), ByThePodsKept(), FewestKept()])

    def new_runner_on(self, cluster: Cluster) -> Runner:
        return plain_runner(cluster, extra=[ByTheNode(), ByThePods(), Fewest()])


DecidingCluster.TestCase.settings = settings(max_examples=usual(25), stateful_step_count=25)
DecidingWidely.TestCase.settings = settings(max_examples=usual(12), stateful_step_count=20)
TestRowLocalPods = DecidingCluster.TestCase
TestAllPods = DecidingWidely.TestCase
DecidingFairly.TestCase.settings = settings(max_examples=usual(6), stateful_step_count=15)
TestFairShares = DecidingFairly.TestCase
DecidingSimply.TestCase.settings = settings(max_examples=usual(10), stateful_step_count=20)
TestSimpleForm = DecidingSimply.TestCase


@pytest.mark.fuzz
@pytest.mark.parametrize("machine", [DecidingCluster, DecidingWidely, DecidingFairly, DecidingSimply])
def test_cached_answers_stay_correct_over_long_runs(machine: type[DecidingCluster]) -> None:
    long_runs(machine)
