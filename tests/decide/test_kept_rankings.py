"""The cached ranking of the nodes that fit a class, against all nodes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import event, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule
from msgspec.structs import replace as changed

from podium.api.pod import GCEPersistentDisk, Pod, Volume
from podium.cluster.arrays import Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.decide import placement
from podium.decide.placement import lot, place
from podium.framework.cache.rankings import FEW_CHANGES, MOST_CHANGES
from podium.framework.handle import CycleState
from podium.framework.plugin import Plugin, Scope
from podium.framework.runner import Runner
from podium.framework.verdicts import PluginError, Verdicts, unschedulable
from podium.plugins.domain_counts import FEW_DOMAINS
from tests.builders import HOSTNAME, ZONE, cluster_of, node, node_term, plain_runner, pod, spread_over, term, tolerate
from tests.cluster.changing_cluster import NAMES, ChangingCluster
from tests.decide.test_kept_answers import ByTheNodeKept, ByThePodsKept
from tests.fuzzing import long_runs, usual
from tests.generators import EVERYTHING, Traits, targets

PLAIN = Traits(ports=True, terminating=True, tolerations=True, images=True)
NOMINATED = Traits(ports=True, heavy_target=True, nominated=True)
NEAR = Traits(affinity=True, preferences=True, terminating=True)
A = {"app": "a"}
SOFT_ON_NODES = spread_over(HOSTNAME, "app=a", soft=True)
SPREAD = Traits(spread=True, soft_spread=True, terminating=True, node_affinity=True, tolerations=True)


DISK = Volume(name="data", gce_persistent_disk=GCEPersistentDisk(pd_name="data"))


def ranking_runner(cluster: Cluster, *extra: Plugin) -> Runner:
    """Return a runner that keeps a ranking as soon as it can."""
    runner = plain_runner(cluster, extra=extra)
    runner.rankings.is_eager, runner.rankings.retry_after = True, 0
    return runner


def same_row(runner: Runner, record: PodRecord) -> bool:
    """Return whether a pod was found a node by ranking; fails where that is not the node that a look at all finds."""
    if runner.profile.is_sampling:
        return same_of_sample(runner, record)
    state = CycleState()
    before = runner.pre_filter(state, record)
    found = None
    if before.status.is_success and before.rows is None:
        found = runner.rankings.best(state, record, lambda: lot(record.uid, 0))
    expected = place(runner, record, nominated_first=False).row
    assert found in (None, expected)
    assert place(runner, record, nominated_first=False, detailed=False).row == expected
    return found is not None


def same_of_sample(runner: Runner, record: PodRecord) -> bool:
    """Return the same where the search for nodes ends early, from several starts, and with each recorded node."""
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(placement, "MINIMUM_NODES", 1)
        for recorded in (*runner.cluster.nodes.row_of, ""):
            patch.setattr(runner.cluster, "recorded_choice", (record.uid, recorded))
            for cursor in range(3):
                slow = place(runner, record, nominated_first=False, cursor=cursor)
                fast = place(runner, record, nominated_first=False, cursor=cursor, detailed=False)
                assert (fast.row, fast.cursor) == (slow.row, slow.cursor)
                found.append(fast.row is not None and not len(fast.rows))
    return found[-1]


def ranked(runner: Runner, *records: PodRecord) -> list[bool]:
    """Return which of some pods are found a node by ranking, each asked about twice before."""
    return [[same_row(runner, record) for _ in range(3)][-1] for record in records]


@pytest.mark.parametrize(
    "target",
    [
        pod("p", cpu=1),
        pod("p", cpu=1, ports=(80,), tolerations=[tolerate("gpu")], likes_nodes=[(3, node_term("disk"))]),
        pod("p", labels={"app": "a"}, near=[term("app=a", ZONE)]),
        pod("p", labels={"app": "a"}, apart=[term("app=a", HOSTNAME)], likes=[(2, term("app=b", ZONE))]),
        pod("p", labels=A, spread=[spread_over(ZONE, "app=a"), SOFT_ON_NODES]),
        pod("p", labels=A, node_selector={"disk": "x"}, spread=[spread_over(ZONE, "app=a"), SOFT_ON_NODES]),
        pod("p", labels=A, node_selector={"disk": "x"}, spread=[spread_over(ZONE, "app=a", soft=True), SOFT_ON_NODES]),
    ],
    ids=["plain", "choosy", "near", "apart", "spread", "spread-choosy", "softly-spread-choosy"],
)
def test_the_second_pod_of_a_class_is_placed_by_what_the_first_left(target: Pod) -> None:
    disks = ["x"] * 7 + ["y"] * 2
    nodes = (node(f"n{n}", cpu=4, labels={ZONE: f"z{n % 3}", HOSTNAME: f"n{n}", "disk": disks[n]}) for n in range(9))
    cluster = cluster_of(*nodes, pod("q", on="n1", labels={"app": "b"}))
    runner = ranking_runner(cluster)
    record = cluster.read(target)
    assert ranked(runner, record) == [True]
    for number in range(6):
        row = place(runner, record, detailed=False).row
        assert row is not None
        name = cluster.nodes.name(row)
        cluster.add_pod(changed(record, name=f"p{number}", uid=f"p{number}", node_name=name))

        assert same_row(runner, record)


def test_all_nodes_are_looked_at_where_disks_count() -> None:
    cluster = cluster_of(*(node(f"n{n}") for n in range(3)))
    mounting, plain = (cluster.read(one) for one in (pod("m", spec={"volumes": (DISK,)}), pod("p")))

    assert ranked(ranking_runner(cluster), plain, mounting) == [True, False]


def test_a_sample_of_nodes_is_ranked_if_the_score_depends_on_rows_alone() -> None:
    nodes = (node(f"n{n}", labels={ZONE: f"z{n % 3}"}) for n in range(6))
    cluster = cluster_of(*nodes)
    runner = sampling_runner(cluster)
    plain, spread = (cluster.read(pod("p", spread=one)) for one in ((), [spread_over(ZONE, "app=a")]))

    assert ranked(runner, plain, spread) == [True, False]


def sampling_runner(cluster: Cluster) -> Runner:
    runner = Runner(replace(plain_runner(cluster).profile, percentage_of_nodes_to_score=40), cluster)
    runner.rankings.is_eager, runner.rankings.retry_after = True, 0
    return runner


def test_room_of_nominated_pods_is_seen_by_pods_of_no_higher_priority() -> None:
    cluster = cluster_of(node("n", cpu=2), node("full", cpu=2), pod("q", on="full", cpu=2))
    waiting = cluster.read(pod("w", cpu=2, priority=1))
    runner = ranking_runner(cluster)
    higher, equal = (cluster.read(pod("p", cpu=1, priority=priority)) for priority in (2, 1))
    apart = cluster.read(pod("p", cpu=1, labels={"app": "a"}, apart=[term("app=a", HOSTNAME)]))
    assert ranked(runner, higher, equal, apart) == [True, True, True]

    cluster.nominations.put(waiting, "n")

    assert ranked(runner, higher, equal, apart, waiting) == [True, False, False, False]
    assert [place(runner, one, detailed=False).row for one in (higher, equal)] == [cluster.nodes.row_of["n"], None]
    cluster.nominations.remove(waiting.uid)
    assert ranked(runner, equal, apart) == [True, True]


class OddRows:
    """A filter and score of scope ROW from outside, in the array form alone."""

    name = "OddRows"
    scope = Scope.ROW

    def __init__(self, highest: int = 100) -> None:
        self.highest = highest

    def filter_rows(self, state: CycleState, pod: PodRecord, view: View) -> Verdicts:
        return Verdicts.where(view.pod_count() > 2, unschedulable("full enough"))

    def score_rows(self, state: CycleState, pod: PodRecord, view: View) -> Int64s:
        return np.where(view.pod_count() % 2 == 1, self.highest, 0)


def test_a_plugin_that_does_not_know_of_single_rows_is_asked_in_arrays() -> None:
    cluster = cluster_of(*(node(f"n{n}") for n in range(5)))
    runner = ranking_runner(cluster, OddRows())
    record = cluster.read(pod("p", cpu="100m"))
    assert ranked(runner, record) == [True]
    for number in range(15):
        row = place(runner, record, detailed=False).row
        assert row is not None
        name = cluster.nodes.name(row)
        cluster.add_pod(changed(record, name=f"p{number}", uid=f"p{number}", node_name=name))

        assert same_row(runner, record) == (number < 14)


def test_a_score_out_of_range_is_an_error_by_ranking_too() -> None:
    cluster = cluster_of(node("n"), node("m"), pod("q", on="m"))
    runner = ranking_runner(cluster, OddRows(101))
    record = cluster.read(pod("p"))

    for _ in range(3):
        with pytest.raises(PluginError, match="they must be within 0 and 100"):
            place(runner, record, detailed=False)


def test_a_new_resource_moves_columns_and_keeps_rankings_complete() -> None:
    cluster = cluster_of(*(node(f"n{n}") for n in range(5)))
    runner = ranking_runner(cluster)
    record = cluster.read(pod("p", cpu=1, memory="1Gi"))
    assert ranked(runner, record) == [True]

    cluster.add_pod(cluster.read(pod("q", on="n1", cpu=1, example_com__gpu=1)))

    assert ranked(runner, record) == [True]


def test_a_plugin_that_may_look_at_the_whole_cluster_is_asked_about_all_nodes() -> None:
    class Anywhere(OddRows):
        name = "Anywhere"
        scope = Scope.CLUSTER

    cluster = cluster_of(node("n"), node("m"))
    runner = ranking_runner(cluster, Anywhere())

    assert ranked(runner, cluster.read(pod("p"))) == [False]


def test_a_ranking_is_built_at_the_second_decision_about_a_class_and_dropped_when_much_has_changed() -> None:
    cluster = cluster_of(*(node(f"n{n}") for n in range(3)))
    runner = plain_runner(cluster)
    runner.rankings.few_nodes = 0
    record, other = cluster.read(pod("p", cpu=1)), cluster.read(pod("q", on="n1"))

    def looks_at() -> int:
        return len(place(runner, record, detailed=False).rows)

    assert [looks_at() for _ in range(3)] == [3, 0, 0]
    for number in range(MOST_CHANGES + 1):
        cluster.add_pod(changed(other, uid=f"q{number}"))

    assert looks_at() == 3


def test_on_few_nodes_totals_are_cached_from_the_first_pod_of_a_class() -> None:
    cluster = cluster_of(*(node(f"n{n}") for n in range(120)))
    runner = plain_runner(cluster)
    record, other = cluster.read(pod("p", cpu=1)), cluster.read(pod("q"))
    looked_at = [len(place(runner, record, detailed=False).rows) for _ in range(4)]
    assert looked_at == [0] * 4

    for changed_rows in (FEW_CHANGES, FEW_CHANGES + 1, 120):
        for number in range(changed_rows):
            cluster.add_pod(changed(other, uid=f"q{changed_rows}-{number}", node_name=f"n{number}"))
        assert same_row(runner, record)


def test_an_eager_ranking_has_a_class_from_its_first_pod_on() -> None:
    nodes = (node(f"n{n}", labels={ZONE: f"z{n % 3}", HOSTNAME: f"n{n}"}) for n in range(120))
    cluster = cluster_of(*nodes)
    runner = ranking_runner(cluster)
    record, other = cluster.read(pod("p", cpu=1, spread=[SOFT_ON_NODES])), cluster.read(pod("q"))
    assert [len(place(runner, record, detailed=False).rows) for _ in range(3)] == [0] * 3

    for number in range(MOST_CHANGES + 1):
        cluster.add_pod(changed(other, uid=f"q{number}", node_name=f"n{number}"))
    assert len(place(runner, record, detailed=False).rows) == 0
    assert same_row(runner, record)


def test_a_pod_that_fits_nowhere_has_no_best_node() -> None:
    cluster = cluster_of(node("n", cpu=1))
    runner = ranking_runner(cluster)

    assert ranked(runner, cluster.read(pod("p", cpu=2))) == [False]


def test_many_cells_are_not_kept() -> None:
    cluster = cluster_of(*(node(f"n{n}", labels={"rack": f"r{n // 2}"}) for n in range(2 * FEW_DOMAINS + 2)))
    record = cluster.read(pod("p", labels={"app": "a"}, likes=[(1, term("app=a", "rack"))]))

    assert ranked(ranking_runner(cluster), record) == [False]


class RankedCluster(ChangingCluster):
    """The same pods are decided about after every change, and some of them are placed where they were decided to go."""

    traits = EVERYTHING

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
            found = [same_row(self.runner, changed(record, uid=uid)) for uid in ("a", "b", "c")]
            event("ranked" if found[-1] else "not ranked")


class RankedPlainly(RankedCluster):
    """Pods that only look at nodes and at what is on them."""

    traits = PLAIN


class RankedOnShelves(RankedPlainly):
    """The same, as where nodes are many."""

    def __init__(self) -> None:
        super().__init__()
        self.runner.rankings.few_nodes = 0


class RankedInArrays(RankedPlainly):
    """The same, as where many rows have changed."""

    def __init__(self) -> None:
        super().__init__()
        self.runner.rankings.few_changes = 0


class RankedBesideOthers(RankedCluster):
    """Pods that others are nominated beside."""

    traits = NOMINATED


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


class RankedInSamples(RankedPlainly):
    """The same, where the search for nodes ends early."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = sampling_runner(self.cluster)


MACHINES = [
    RankedCluster,
    RankedPlainly,
    RankedOnShelves,
    RankedInArrays,
    RankedBesideOthers,
    RankedNear,
    RankedApart,
    RankedSimply,
    RankedInSamples,
]
for machine in MACHINES:
    machine.TestCase.settings = settings(max_examples=usual(8), stateful_step_count=20)
TestAllPods = RankedCluster.TestCase
TestPlainPods = RankedPlainly.TestCase
TestPlainPodsOnShelves = RankedOnShelves.TestCase
TestPlainPodsInArrays = RankedInArrays.TestCase
TestPodsBesideNominatedOnes = RankedBesideOthers.TestCase
TestPodsNearOthers = RankedNear.TestCase
TestSpreadPods = RankedApart.TestCase
TestSimpleForm = RankedSimply.TestCase
TestPlainPodsInSamples = RankedInSamples.TestCase


@pytest.mark.fuzz
@pytest.mark.parametrize("machine", MACHINES)
def test_rankings_stay_right_over_long_runs(machine: type[RankedCluster]) -> None:
    long_runs(machine)
