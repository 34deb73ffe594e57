"""Plugins in the simple form against the same plugins in array form."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from hypothesis import given

from podium.cluster.arrays import Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pod_classes import NamespaceLabels, PodClass
from podium.cluster.pods import PodRecord
from podium.cluster.view import NodeView, View
from podium.framework.handle import CycleState
from podium.framework.plugin import Plugin, Scope
from podium.framework.verdicts import SKIP, SUCCESS, Status, Verdicts, unresolvable, unschedulable
from tests.builders import cluster_of, node, pending_in, plain_runner, pod
from tests.decide.answers import answers
from tests.fuzzing import Effort, efforts
from tests.generators import Objects, Traits, clusters

TOO_MANY = unschedulable("too many of these here")
NO_SIZE = unresolvable("no size")


@dataclass(slots=True)
class Tally:
    """A plugin that counts the pods with `app: a` on each node."""

    by_node: Counter[str] = field(default_factory=Counter)

    def clone(self) -> Tally:
        return Tally(Counter(self.by_node))


class SimpleLimit:
    """A node of size 2 takes two pods with `app: a`, counted in the cycle state."""

    name = "Limit"

    def pre_filter(self, state: CycleState, pod: PodRecord, cluster: Cluster) -> Status:
        if pod.labels.get("app") != "a":
            return SKIP
        placed = (one for one in cluster.placed.values() if one.labels.get("app") == "a")
        state[self.name] = Tally(Counter(one.node_name for one in placed))
        return SUCCESS

    def add_pod(self, state: CycleState, pod: PodRecord, added: PodRecord, node: NodeView) -> None:
        state[self.name].by_node[node.name] += added.labels.get("app") == "a"

    def remove_pod(self, state: CycleState, pod: PodRecord, removed: PodRecord, node: NodeView) -> None:
        state[self.name].by_node[node.name] -= removed.labels.get("app") == "a"

    def filter(self, state: CycleState, pod: PodRecord, node: NodeView) -> Status:
        size = node.labels.get("size", "")
        if not size.isdigit():
            return NO_SIZE
        return SUCCESS if state[self.name].by_node[node.name] < int(size) else TOO_MANY

    def score(self, state: CycleState, pod: PodRecord, node: NodeView) -> int:
        return sum(one.labels.get("app") == "a" for one in node.pods)


@dataclass(frozen=True, slots=True)
class OfTheApp:
    """Pods with `app: a`, for a plugin of one's own."""

    live_only: bool = False

    def matches(self, pod_class: PodClass, namespaces: NamespaceLabels) -> bool:
        return pod_class.labels.get("app") == "a"


class ArrayLimit:
    """The same for all nodes at once."""

    name = "Limit"

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    def pre_filter(self, state: CycleState, pod: PodRecord, cluster: Cluster) -> Status:
        return SUCCESS if pod.labels.get("app") == "a" else SKIP

    def filter_rows(self, state: CycleState, pod: PodRecord, view: View) -> Verdicts:
        values = view.cluster.nodes.labels("size").values
        sizes = np.array([int(size) if size and size.isdigit() else -1 for size in values])[view.codes("size")]
        codes = np.where(sizes < 0, 1, np.where(view.count(OfTheApp()) < sizes, 0, 2))
        return Verdicts.choose(codes, (SUCCESS, NO_SIZE, TOO_MANY))

    def score_rows(self, state: CycleState, pod: PodRecord, view: View) -> Int64s:
        return view.count(OfTheApp())


PRESSED = Traits(heavy_target=True, affinity=True, budgets=True, nominated=True, terminating=True)


@efforts(25)
def test_the_simple_form_decides_as_the_array_form(effort: Effort) -> None:
    @effort
    @given(clusters(PRESSED, most_nodes=3) | clusters(Traits(budgets=True, nominated=True), most_nodes=3))
    def check(objects: Objects) -> None:
        def decided(*extra: Plugin) -> object:
            cluster = cluster_of(*objects.surroundings)
            return answers(plain_runner(cluster, extra=extra), cluster.read(objects.target))

        simple = decided(SimpleLimit())

        assert decided(ArrayLimit(Scope.ROW)) == simple
        assert decided(ArrayLimit(Scope.CLUSTER)) == simple

    check()


def test_a_simple_filter_is_not_asked_about_nodes_that_an_earlier_one_refused() -> None:
    asked = []

    class Asked:
        name = "Asked"

        def filter(self, state: CycleState, pod: PodRecord, node: NodeView) -> Status:
            asked.append(node.name)
            return SUCCESS

    cluster = cluster_of(node("small", cpu=1), node("large", cpu=4))
    runner, state = plain_runner(cluster, extra=[Asked()]), CycleState()
    record = cluster.read(pod("p", cpu=2))
    runner.pre_filter(state, record)

    runner.filter(state, record)

    assert asked == ["large"]


def test_a_plugin_sees_a_node_as_the_trial_has_it() -> None:
    """Given back one by one, the pods that a trial left on the node are those that the plugin sees."""
    seen: list[list[str]] = []

    class OnePodOnly:
        name = "OnePodOnly"

        def filter(self, state: CycleState, pod: PodRecord, node: NodeView) -> Status:
            seen.append(sorted(one.name for one in node.pods))
            assert node.requested["cpu"] == 1000 * len(node.pods)
            return SUCCESS if len(node.pods) < 2 else TOO_MANY

    target = pod("p", priority=5)
    cluster = cluster_of(node("n"), *(pod(f"q{i}", on="n", cpu=1, started=i) for i in range(3)))

    found = answers(plain_runner(cluster, extra=[OnePodOnly()]), pending_in(cluster, target))

    assert found["candidates"] == {"n": (["default/q1", "default/q2"], 0)}
    assert seen[-4:] == [[], ["q0"], ["q0", "q1"], ["q0", "q2"]]
