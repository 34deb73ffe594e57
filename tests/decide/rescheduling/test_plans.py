"""Rules for all plans: random clusters and policies against a plain recomputation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from dataclasses import replace as changed
from math import ceil
from operator import attrgetter

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from podium.api.avoid_list import PREFER_AVOID_PODS, AvoidList, avoid_entry, avoid_list
from podium.api.meta import Kubernetes
from podium.api.node import Node
from podium.api.pod import Pod, PodStatus
from podium.api.policy import PodDisruptionBudget
from podium.api.selectors import compile_label_selector
from podium.cluster.arrays import stable_hash
from podium.cluster.pods import PodRecord
from podium.decide.placement import place
from podium.decide.rescheduling.planner import Planner
from podium.decide.rescheduling.round_robin import ReschedulingPlan
from podium.framework.rescheduling.policy import Picture, Proposal, Relocation
from podium.framework.rescheduling.settings import MoveLimitSettings, ReschedulerSettings, ReschedulingScope
from tests.builders import DAY_ONE_NS, at, cluster_of, configuration, runner_on
from tests.decide.rescheduling import planning
from tests.decide.rescheduling.planning import NOW, free_settings
from tests.fuzzing import Effort, efforts
from tests.generators import EVERYTHING, OWNERS, Objects, Traits, clusters

SCOPE = ReschedulingScope(allow=("PodsWithoutController", "WorkInProgress"), minimum_age_ns=0)
MILD = Traits(preferences=True, soft_spread=True, tolerations=True, budgets=True, avoid_lists=True)
SPREAD_OUT = st.one_of(
    *(clusters(traits, most_nodes=5, least_pods=6, most_pods=12) for traits in (EVERYTHING, MILD, MILD))
)


@dataclass
class Tastes:
    """A pod on a node is as bad as a hash says, and each pod beside another adds something. Groups are such too."""

    seed: int
    crowding: float
    grouped: bool
    name: str = "Tastes"

    def objective(self, picture: Picture) -> float:
        pods = [pod for pod in picture.cluster.placed.values() if pod.row >= 0]
        counts = Counter(pod.node_name for pod in pods)
        return sum(self._cost(pod.key, pod.node_name) for pod in pods) + self.crowding * sum(
            count * count for count in counts.values()
        )

    def proposals(self, picture: Picture) -> Iterable[Proposal]:
        pods = sorted(picture.movable_pods(), key=lambda pod: (-self._cost(pod.key, pod.node_name), pod.key))
        if self.grouped:
            for one, other in zip(pods[::2], pods[1::2], strict=False):
                yield Proposal((Relocation(one), Relocation(other)), "both are badly placed")
        for pod in pods:
            yield Proposal((Relocation(pod),), "it is badly placed")

    def _cost(self, key: str, node_name: str) -> float:
        return stable_hash(f"{self.seed}/{key}/{node_name}") % 1000 / 500


TASTES = st.builds(Tastes, st.integers(0, 10**6), st.sampled_from((0.0, 0.0, 0.2)), st.booleans())
LIMITS = st.builds(MoveLimitSettings, *(st.sampled_from((None,) * 6 + (1, 2)) for _ in range(4)))
SETTINGS = st.builds(
    free_settings,
    threshold=st.sampled_from((0.05, 0.3, 1.0)),
    scope=st.just(SCOPE),
    in_flight=LIMITS,
    hourly=LIMITS,
    without_budget=LIMITS,
    budget_reserve=st.sampled_from((0, 0, 1)),
    budget_reserve_share=st.sampled_from((0.0, 0.0, 0.5)),
)


@dataclass
class Twin:
    """The API objects of a cluster as moves are made, and what a scheduler says to each that is made anew."""

    nodes: dict[str, Node]
    pods: dict[str, Pod]
    others: list[Kubernetes] = field(default_factory=list)

    @classmethod
    def of(cls, objects: Objects) -> Twin:
        """Return the twin of a cluster."""
        return cls(
            {node.metadata.name: node for node in objects.nodes},
            {pod.metadata.uid: pod for pod in objects.pods},
            [*objects.namespaces, *objects.budgets],
        )

    @property
    def objects(self) -> list[Kubernetes]:
        """All of them."""
        return [*self.others, *self.nodes.values(), *self.pods.values()]

    def evict(self, uid: str) -> Pod:
        """Let a pod be asked to end: its controller is on the avoid list of its node; returns it made anew."""
        pod = self.pods[uid]
        ends = replace(pod.metadata, deletion_timestamp=at(10**6))
        self.pods[uid] = replace(pod, metadata=ends)
        node, controller = self.nodes[pod.spec.node_name], pod.metadata.controller
        if controller is not None:
            entries = avoid_list(node.metadata.annotations.get(PREFER_AVOID_PODS, "")).entries
            more = avoid_entry(controller, "moved", "", DAY_ONE_NS)
            annotations = {PREFER_AVOID_PODS: AvoidList((*entries, more)).written()}
            self.nodes[node.metadata.name] = replace(node, metadata=replace(node.metadata, annotations=annotations))
        return replace(
            pod,
            metadata=replace(pod.metadata, uid=f"{uid}+", creation_timestamp=at(86_400)),
            spec=replace(pod.spec, node_name=""),
            status=PodStatus(phase="Pending"),
        )

    def best(self, pod: Pod) -> list[str]:
        """Return the nodes that a scheduler likes best for a pod, by name."""
        cluster = cluster_of(*self.objects)
        placement = place(runner_on(cluster, configuration()), cluster.read(pod))
        rows = placement.feasible
        if placement.totals is not None:
            rows = rows[placement.totals == placement.totals.max()]
        return sorted(cluster.nodes.name(int(row)) for row in rows)

    def choices(self, pod: Pod, going: Mapping[str, Pod], before: str) -> list[str]:
        """Return where it may come to: once those that go are gone, or while they are there.

        A StatefulSet makes a pod once the one ``before`` is gone.
        """
        once_gone = self.best(pod)
        controller = pod.metadata.controller
        is_stateful = controller is not None and controller.kind == "StatefulSet"
        there = {uid: other for uid, other in going.items() if not (is_stateful and uid == before)}
        return [*once_gone, *Twin(self.nodes, {**self.pods, **there}, self.others).best(pod)]

    def run(self, pod: Pod, node_name: str) -> None:
        """Let a pod run on a node."""
        spec, status = replace(pod.spec, node_name=node_name), PodStatus(phase="Running", start_time=at(86_400))
        self.pods[pod.metadata.uid] = replace(pod, spec=spec, status=status)

    def objective(self, policy: Tastes) -> float:
        """Return what a policy says of it."""
        here = planning.given(*self.objects)
        inputs = here.inputs()
        planner = Planner([], free_settings())
        return policy.objective(planner.picture(here.cluster, here.runners, here.kubelet, NOW, inputs=inputs))


def owned(objects: Objects, seed: int) -> Objects:
    """Return the same, with controllers for most pods, and more room on most nodes."""
    pods, nodes = [], []
    for number, pod in enumerate(objects.pods):
        kind = (*OWNERS, "StatefulSet/db", "")[stable_hash(f"{seed}/{number}") % 5]
        references = planning.web("x", "", owner=kind).metadata.owner_references if kind else ()
        pods.append(replace(pod, metadata=replace(pod.metadata, owner_references=references)))
    for number, node in enumerate(objects.nodes):
        more = {"cpu": 12, "memory": "32Gi", "pods": 110, "example.com/gpu": 4}
        is_small = stable_hash(f"{seed}/{number}") % 4 == 0
        nodes.append(node if is_small else replace(node, status=replace(node.status, allocatable=more)))
    return changed(objects, pods=pods, nodes=nodes)


def made_plan(twin: Twin, policy: Tastes, settings: ReschedulerSettings) -> ReschedulingPlan:
    return planning.plan(planning.given(*twin.objects), policy, settings=settings)


@efforts(15)
def test_a_plan_gains_the_threshold_and_keeps_to_the_schedulers_choices(effort: Effort) -> None:
    @effort
    @given(SPREAD_OUT, TASTES, SETTINGS)
    def check(objects: Objects, policy: Tastes, settings: ReschedulerSettings) -> None:
        twin = Twin.of(owned(objects, policy.seed))
        made = made_plan(twin, policy, settings)
        before = made.before["Tastes"]
        assert abs(twin.objective(policy) - before) < 1e-6
        for group in made.planned:
            anew = {move.pod.uid: twin.evict(move.pod.uid) for move in group.moves}
            going = {uid: twin.pods.pop(uid) for uid in anew}
            for move in group.moves:
                assert move.target != move.source
                assert move.target in twin.choices(anew[move.pod.uid], going, move.pod.uid)
                twin.run(anew[move.pod.uid], str(move.target))
            after = twin.objective(policy)
            assert before - after >= settings.threshold * len(group.moves) - 1e-6
            assert abs(before - after - group.gain) < 1e-6
            before = after
        assert abs(before - made.after["Tastes"]) < 1e-6

    check()


@efforts(15)
def test_a_plan_keeps_to_limits_and_leaves_the_reserve_of_budgets(effort: Effort) -> None:
    @effort
    @given(SPREAD_OUT, TASTES, SETTINGS)
    def check(objects: Objects, policy: Tastes, settings: ReschedulerSettings) -> None:
        objects = owned(objects, policy.seed)
        made = made_plan(Twin.of(objects), policy, settings)
        moved = [move.pod for group in made.planned for move in group.moves]
        protected = {pod.uid for pod in moved if any(covers(budget, pod) for budget in objects.budgets)}
        for limits, pods in (
            (settings.in_flight, moved),
            (settings.hourly, moved),
            (settings.without_budget, [pod for pod in moved if pod.uid not in protected]),
        ):
            assert limits.total is None or len(pods) <= limits.total
            for limit, key in (
                (limits.node, attrgetter("node_name")),
                (limits.namespace, attrgetter("namespace")),
                (limits.owner, attrgetter("owner_uid")),
            ):
                assert limit is None or max(Counter(map(key, pods)).values(), default=0) <= limit
        for budget in objects.budgets:
            counts = [pod for pod in moved if covers(budget, pod)]
            status = budget.status
            share = ceil(settings.budget_reserve_share * status.disruptions_allowed)
            left = status.disruptions_allowed - max(settings.budget_reserve, share)
            assert len(counts) <= max(0, left)
            assert all(sum(covers(other, pod) for other in objects.budgets) == 1 for pod in counts)
        assert len({pod.uid for pod in moved}) == len(moved)

    check()


def covers(budget: PodDisruptionBudget, pod: PodRecord) -> bool:
    selector = compile_label_selector(budget.spec.selector)
    return budget.metadata.namespace == pod.namespace and selector.matches(pod.labels)


@efforts(12)
def test_evictions_end_and_are_no_more_than_the_objective_justifies(effort: Effort) -> None:
    """Plan after plan is carried out, all moves at once, by a scheduler that draws lots of its own."""

    @effort
    @given(SPREAD_OUT, TASTES, SETTINGS)
    def check(objects: Objects, policy: Tastes, settings: ReschedulerSettings) -> None:
        twin = Twin.of(owned(objects, policy.seed))
        first = twin.objective(policy)
        evictions = 0
        while (made := made_plan(twin, policy, settings)).planned:
            evictions += carry_out(twin, made)
            assert evictions * settings.threshold <= first + 1e-6

    check()


def carry_out(twin: Twin, made: ReschedulingPlan) -> int:
    """Evict all at once; their replacements come while they are still there, the most important first."""
    moves = [move for group in made.planned for move in group.moves]
    anew = [(move, twin.evict(move.pod.uid)) for move in moves]
    waiting = []
    for move, pod in sorted(anew, key=lambda pair: -pair[0].pod.priority):
        controller = move.pod.controller
        if controller is not None and controller.kind == "StatefulSet":
            waiting.append(pod)
        elif choices := twin.best(pod):
            twin.run(pod, choices[stable_hash(pod.metadata.uid) % len(choices)])
        else:
            waiting.append(pod)
    for move in moves:
        del twin.pods[move.pod.uid]
    for pod in waiting:
        choices = twin.best(pod)
        twin.run(pod, choices[stable_hash(pod.metadata.uid) % len(choices)])
    return len(moves)
