"""The index of resources that pods hold."""

from collections import Counter
from collections.abc import Mapping

import msgspec
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.resource_requests import effective_spec, node_allocatable, pod_requests
from podium.sim.results.usage import RequestedUsage

AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory"]), st.integers(0, 9))
NODES = st.sampled_from(["n1", "n2", "n3"])


def node_with(name: str, amounts: Mapping[str, int]) -> Node:
    return msgspec.convert({"metadata": {"name": name}, "status": {"allocatable": amounts}}, Node)


def pod_with(uid: str, node: str, amounts: Mapping[str, int]) -> Pod:
    containers = [{"name": "main", "resources": {"requests": amounts}}]
    return msgspec.convert({"metadata": {"uid": uid}, "spec": {"nodeName": node, "containers": containers}}, Pod)


class Books(RuleBasedStateMachine):
    """The holdings beside lists that are added up anew each time, and at each time that passes."""

    def __init__(self) -> None:
        super().__init__()
        self.holdings = RequestedUsage(0)
        self.nodes: dict[str, Mapping[str, int]] = {}
        self.pods: dict[str, tuple[str, Mapping[str, int]]] = {}
        self.now = 0
        self.offered_over_time: Counter[str] = Counter()
        self.held_over_time: Counter[str] = Counter()

    @rule(name=NODES, amounts=AMOUNTS)
    def put_node(self, name: str, amounts: dict[str, int]) -> None:
        node = node_with(name, amounts)
        self.holdings.observe_node(node, self.now, is_gone=False)
        self.nodes[name] = node_allocatable(node.status)

    @precondition(lambda self: self.nodes)
    @rule(data=st.data())
    def remove_node(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.nodes)))
        self.holdings.observe_node(node_with(name, {}), self.now, is_gone=True)
        del self.nodes[name]

    @rule(name=NODES, amounts=AMOUNTS)
    def put_pod(self, name: str, amounts: dict[str, int]) -> None:
        uid = f"uid-{len(self.pods)}"
        if uid not in self.pods:
            pod = pod_with(uid, name, amounts)
            self.holdings.count_pod(pod, self.now)
            self.pods[uid] = (name, pod_requests(effective_spec(pod)))

    @precondition(lambda self: self.pods)
    @rule(data=st.data())
    def remove_pod(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.pods)))
        name, _ = self.pods.pop(uid)
        self.holdings.drop_pod(uid, name, self.now)

    @rule(units=st.integers(1, 3))
    def pass_time(self, units: int) -> None:
        for _ in range(units):
            self.now += 1
            self.offered_over_time += self.offered()
            self.held_over_time += self.held()

    def offered(self) -> Counter[str]:
        return sum(map(Counter, self.nodes.values()), Counter())

    def held(self) -> Counter[str]:
        return sum((self.held_on(name) for name in self.nodes), Counter())

    def held_on(self, name: str) -> Counter[str]:
        return sum((Counter(amounts) for node, amounts in self.pods.values() if node == name), Counter())

    @invariant()
    def totals_are_those_of_the_known_nodes(self) -> None:
        assert +Counter(self.holdings.allocatable.amounts) == +self.offered()
        assert +Counter(self.holdings.held.amounts) == +self.held()

    @invariant()
    def amounts_are_summed_up_for_as_long_as_they_stay(self) -> None:
        assert +Counter(self.holdings.allocatable.over_time(self.now)) == self.offered_over_time
        assert +Counter(self.holdings.held.over_time(self.now)) == self.held_over_time

    @invariant()
    def pods_are_booked_on_their_nodes(self) -> None:
        for name in ("n1", "n2", "n3"):
            assert set(self.holdings.pods_on(name)) == {uid for uid, (node, _) in self.pods.items() if node == name}


TestBooks = Books.TestCase


def test_a_pod_is_booked_once() -> None:
    holdings = RequestedUsage(0)
    holdings.count_pod(pod_with("uid", "n1", {}), 0)

    with pytest.raises(ValueError, match="booked already"):
        holdings.count_pod(pod_with("uid", "n1", {}), 0)
