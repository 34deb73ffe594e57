"""A cluster with random changes, for tests of incrementally updated state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from msgspec.structs import replace

from podium.api.meta import Kubernetes
from podium.api.node import Namespace, Node
from podium.api.pod import Pod
from podium.api.policy import POLICY_ANNOTATION, PodDisruptionBudget
from podium.api.selectors import compile_label_selector
from podium.cluster.cluster import Cluster
from podium.cluster.matchers import (
    InNamespace,
    Predicate,
    SelectedByTerms,
    carries_affinity,
    carries_anti_affinity,
    carries_preference,
    holds_host_port,
    uses_claim,
)
from podium.cluster.pod_classes import HostPort, WeightedTerm, compile_term
from tests.builders import PREEMPTED, at, namespace, node, selector
from tests.generators import EVERYTHING, LABELS, SELECTORS, Traits, budgets, nodes, pods, terms

NAMES = ("node-0", "node-1", "node-2", "node-3")
SOME_NODE = st.sampled_from(NAMES)
SOME_OBJECT = st.integers(0, 99)


@st.composite
def predicates(draw: st.DrawFn) -> Predicate:
    term = compile_term(draw(terms()), "default")
    namespace = draw(st.sampled_from(("default", "shop")))
    found: list[Predicate] = [
        SelectedByTerms((term,)),
        SelectedByTerms((term, compile_term(draw(terms()), "shop"))),
        InNamespace(namespace, compile_label_selector(selector(draw(st.sampled_from(SELECTORS))))),
        carries_anti_affinity(term),
        carries_affinity(term),
        carries_preference(WeightedTerm(draw(st.integers(-5, 5)), term)),
        holds_host_port(HostPort("0.0.0.0", "TCP", draw(st.sampled_from((80, 81))))),
        uses_claim(namespace, "data"),
    ]
    return draw(st.sampled_from(found))


class ChangingCluster(RuleBasedStateMachine):
    """A cluster that observes every change; the dictionaries hold the same objects by name or uid.

    Pods come to nodes before the nodes do, nodes go before their pods, and names are used again. ``idle`` nodes are
    there from the start and take no pods, so that a change affects few of many nodes.
    """

    traits: Traits = EVERYTHING
    idle: int = 0

    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster()
        self.nodes: dict[str, Node] = {}
        self.namespaces: dict[str, Namespace] = {}
        self.budgets: dict[str, PodDisruptionBudget] = {}
        self.now = 0
        self.placed: dict[str, Pod] = {}
        self.nominated: dict[str, Pod] = {}
        self._numbers: Iterator[int] = iter(range(10**6))

    @property
    def objects(self) -> list[Kubernetes]:
        """Everything that the cluster should know now."""
        lists = (self.namespaces, self.nodes, self.budgets, self.placed, self.nominated)
        return [one for some in lists for one in some.values()]

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        for number in range(self.idle):
            self.nodes[f"idle-{number}"] = node(f"idle-{number}", pods=0, unschedulable=True)
            self.cluster.put(self.nodes[f"idle-{number}"])
        for name in NAMES[:2]:
            self.put_node(name, data)
        for _ in range(data.draw(st.integers(0, 3))):
            self.add_pod(data)

    @rule(name=SOME_NODE, data=st.data())
    def put_node(self, name: str, data: st.DataObject) -> None:
        drawn = data.draw(nodes(name, self.traits))
        self.nodes[name] = drawn
        self.cluster.put(drawn)

    @precondition(lambda self: not self.nodes.keys().isdisjoint(NAMES))
    @rule(choice=SOME_OBJECT)
    def remove_node(self, choice: int) -> None:
        name = _one_of({name: self.nodes[name] for name in NAMES if name in self.nodes}, choice)
        self.cluster.remove(self.nodes.pop(name))

    @rule(data=st.data())
    def add_pod(self, data: st.DataObject) -> None:
        pod = data.draw(pods(f"pod-{next(self._numbers)}", NAMES, self.traits, list(self.placed.values())))
        record = self.cluster.read(pod)
        if pod.spec.node_name:
            self.placed[pod.metadata.uid] = pod
            self.cluster.add_pod(record)
        else:
            self.nominated[pod.metadata.uid] = pod
            self.cluster.nominations.put(record, pod.status.nominated_node_name)

    @precondition(lambda self: self.placed)
    @rule(choice=SOME_OBJECT)
    def remove_pod(self, choice: int) -> None:
        uid = _one_of(self.placed, choice)
        del self.placed[uid]
        self.cluster.remove_pod(uid)

    @precondition(lambda self: self.placed)
    @rule(choice=SOME_OBJECT, change=st.sampled_from(("labels", "start", "delete", "preempt", "policy", "nothing")))
    def change_pod(self, choice: int, change: str) -> None:
        pod = self.placed[_one_of(self.placed, choice)]
        meta, status = pod.metadata, pod.status
        match change:
            case "labels":
                pod = replace(pod, metadata=replace(meta, labels=LABELS[choice % len(LABELS)]))
            case "start":
                pod = replace(pod, status=replace(status, start_time=at(choice)))
            case "delete":
                pod = replace(pod, metadata=replace(meta, deletion_timestamp=at(choice)))
            case "preempt":
                pod = replace(pod, status=replace(status, conditions=(PREEMPTED,)))
            case "policy":
                annotations = {} if meta.annotations else {POLICY_ANNOTATION: "NonPreemptible"}
                pod = replace(pod, metadata=replace(meta, annotations=annotations))
        self.placed[meta.uid] = pod
        self.cluster.replace_pod(self.cluster.read(pod))

    @precondition(lambda self: self.nominated)
    @rule(choice=SOME_OBJECT)
    def end_nomination(self, choice: int) -> None:
        uid = _one_of(self.nominated, choice)
        del self.nominated[uid]
        self.cluster.nominations.remove(uid)

    @precondition(lambda self: self.nominated)
    @rule(choice=SOME_OBJECT, name=SOME_NODE)
    def nominate_elsewhere(self, choice: int, name: str) -> None:
        uid = _one_of(self.nominated, choice)
        pod = self.nominated[uid]
        self.nominated[uid] = replace(pod, status=replace(pod.status, nominated_node_name=name))
        self.cluster.nominations.put(self.cluster.read(pod), name)

    @rule(team=st.sampled_from(("red", "blue")))
    def put_namespace(self, team: str) -> None:
        self.namespaces["shop"] = namespace("shop", team=team)
        self.cluster.put(self.namespaces["shop"])

    @precondition(lambda self: self.namespaces)
    @rule()
    def remove_namespace(self) -> None:
        self.cluster.remove(self.namespaces.pop("shop"))

    @rule(budget=budgets())
    def put_budget(self, budget: PodDisruptionBudget) -> None:
        self.budgets[budget.key] = budget
        self.cluster.put(budget)

    @rule(seconds=st.integers(0, 3))
    def pass_time(self, seconds: int) -> None:
        self.now += seconds * 10**9
        self.cluster.pass_time(self.now)

    @precondition(lambda self: self.budgets)
    @rule(choice=SOME_OBJECT)
    def remove_budget(self, choice: int) -> None:
        self.cluster.remove(self.budgets.pop(_one_of(self.budgets, choice)))


def _one_of(table: Mapping[str, object], choice: int) -> str:
    names = sorted(table)
    return names[choice % len(names)]
