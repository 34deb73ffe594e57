"""The best placement that moves can reach, against all placements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.api.meta import Kubernetes
from podium.cluster.pods import PodRecord
from podium.decide.rescheduling.certificate import MoveLimit
from podium.decide.transaction import ClusterTransaction
from podium.framework.rescheduling.policy import Picture, Proposal, Signals
from tests.builders import HOSTNAME, cluster_of, node, plain_runner, pod, spread_over, term
from tests.exact.filter_rules import FILTER_RULES
from tests.exact.highs import Highs
from tests.exact.linear_forms import Contents, Cost, Curve, LinearForm, Movables, Pair, ResourceUse
from tests.exact.optimal import ExactPlanError, ExactQuestion, OptimalPlan, plan_optimal
from tests.fuzzing import Effort, efforts
from tests.generators import EVERYTHING, Objects, clusters

SQUARE = Curve(lambda count: count * count, lambda count: 2 * count, tuple(range(30)))


@dataclass
class Crowding:
    """The squares of how many pods are on each node, a tenth each; a share of them is left out where asked."""

    name: str = "Crowding"
    left_out: tuple[str, ...] = ()
    knots: tuple[float, ...] = SQUARE.knots

    def objective(self, picture: Picture) -> float:
        count = picture.cluster.nodes.pod_count
        return float((count * count).sum()) / 10

    def proposals(self, picture: Picture) -> Iterable[Proposal]:
        return ()

    def linear(self, movables: Movables) -> LinearForm:
        nodes = movables.picture.cluster.nodes
        curve = Curve(SQUARE.value, SQUARE.slope, self.knots)
        own = np.bincount([one.row for one in movables.pods], minlength=nodes.count)
        costs = []
        for row in range(nodes.count):
            added = {(one.uid, row): 1.0 for one in movables.pods if row in movables.rows[one.uid]}
            costs.append(Cost(curve, added, float(nodes.pod_count[row] - own[row]), weight=0.1))
        return LinearForm(costs=costs, left_out=self.left_out)


@dataclass
class Prices:
    """The cost of each pod on each node, by names."""

    price: Callable[[str, str], float]
    name: str = "Prices"

    def objective(self, picture: Picture) -> float:
        placed = picture.cluster.placed.values()
        return sum(self.price(one.name, one.node_name) for one in placed if one.row >= 0)

    def proposals(self, picture: Picture) -> Iterable[Proposal]:
        return ()

    def linear(self, movables: Movables) -> LinearForm:
        base = sum(self.price(one.name, one.node_name) for one in movables.staying())
        name = movables.picture.node_name
        prices = {(one.uid, row): self.price(one.name, name(row)) for one, row in movables.pairs()}
        return LinearForm(base, prices)


@dataclass
class NodesInUse:
    """The number of nodes with pods."""

    name: str = "NodesInUse"

    def objective(self, picture: Picture) -> float:
        return float((picture.cluster.nodes.pod_count > 0).sum())

    def proposals(self, picture: Picture) -> Iterable[Proposal]:
        return ()

    def linear(self, movables: Movables) -> LinearForm:
        held = {one.row for one in movables.staying()}
        by_row: dict[int, list[Pair]] = {}
        for one, row in movables.pairs():
            if row not in held:
                by_row.setdefault(row, []).append((one.uid, row))
        return LinearForm(float(len(held)), uses=[ResourceUse(pairs, 1.0) for pairs in by_row.values()])


@dataclass
class Odd:
    """Nodes with an odd number of pods are bad: what is no convex function of anything."""

    name: str = "Odd"

    def objective(self, picture: Picture) -> float:
        return float((picture.cluster.nodes.pod_count % 2).sum())

    def proposals(self, picture: Picture) -> Iterable[Proposal]:
        return ()

    def linear(self, movables: Movables) -> LinearForm:
        nodes = movables.picture.cluster.nodes
        own = np.bincount([one.row for one in movables.pods], minlength=nodes.count)
        contents = []
        for row in range(nodes.count):
            held = int(nodes.pod_count[row] - own[row])
            kinds = {one.uid: "any" for one in movables.pods if row in movables.rows[one.uid]}
            contents.append(
                Contents(row, kinds, ("any",), lambda counts, held=held: (held + counts[0]) % 2, lambda _: True)  # type: ignore[misc]
            )
        return LinearForm(contents=contents)


class Blind:
    """A policy that has no linear form."""

    name = "Blind"

    def objective(self, picture: Picture) -> float:
        return 1.0

    def proposals(self, picture: Picture) -> Iterable[Proposal]:
        return ()


def picture_of(objects: Iterable[Kubernetes], is_movable: Callable[[PodRecord], bool] = lambda _: True) -> Picture:
    cluster = cluster_of(*objects)
    runner = plain_runner(cluster)
    targets = cluster.nodes.present[: cluster.nodes.count].copy()
    return Picture(cluster, {"default-scheduler": runner}, runner, 0, Signals(), targets, (), is_movable)


def best(
    picture: Picture, *policies: Crowding | Prices | NodesInUse | Odd | Blind, threshold: float = 0.05, **rest: object
) -> OptimalPlan:
    question = ExactQuestion(threshold, rules=FILTER_RULES, **rest)  # type: ignore[arg-type]
    return plan_optimal(picture, [(policy, 1.0) for policy in policies], question, Highs())


def places(plan: OptimalPlan) -> dict[str, str | None]:
    return {move.pod.name: move.target for move in plan.moves}


def least_by_trying(picture: Picture, policy: Crowding | Prices | NodesInUse | Odd, threshold: float) -> float:
    """Return the least that any placement costs which some order of the moves reaches, by trying all."""
    pods = sorted(picture.movable_pods(), key=lambda one: one.key)
    rows = np.flatnonzero(picture.targets).tolist()
    least = policy.objective(picture)
    for chosen in product(*[sorted({*rows, one.row}) for one in pods]):
        moved = {one.uid: row for one, row in zip(pods, chosen, strict=True) if row != one.row}
        for order in permutations(sorted(moved)):
            after = outcome(picture, policy, {uid: moved[uid] for uid in order})
            if after is not None:
                least = min(least, after + threshold * len(moved))
                break
    return least


def outcome(picture: Picture, policy: Crowding | Prices | NodesInUse | Odd, moved: Mapping[str, int]) -> float | None:
    """Return the objective after these moves, whose pods all leave first; None if a place is taken."""
    transaction = ClusterTransaction(picture.cluster, picture.runners)
    with transaction:
        leaving = [transaction.take_off(uid) for uid in moved]
        for one in leaving:
            if not len(transaction.fitting(one, np.array([moved[one.uid]]))):
                return None
            transaction.place(one, moved[one.uid])
        return policy.objective(picture)


def is_unchanged(picture: Picture, before: dict[str, int]) -> bool:
    return {uid: one.row for uid, one in picture.cluster.placed.items()} == before


@efforts(6)
def test_no_placement_costs_less_than_the_bound_and_the_plan_is_one_that_can_be_reached(effort: Effort) -> None:
    @effort
    @given(clusters(EVERYTHING, most_nodes=3, most_pods=4), st.sampled_from(("crowding", "prices", "nodes", "odd")))
    def check(objects: Objects, kind: str) -> None:
        picture = picture_of(objects.surroundings)
        before = {uid: one.row for uid, one in picture.cluster.placed.items()}
        known: dict[str, Crowding | Prices | NodesInUse | Odd] = {
            "crowding": Crowding(),
            "prices": Prices(lambda name, on: (sum(map(ord, name + on)) * 7919 % 13) / 13),
            "nodes": NodesInUse(),
            "odd": Odd(),
        }
        policy = known[kind]

        plan = best(picture, policy)

        least = least_by_trying(picture, policy, 0.05)
        assert plan.bound <= least + 1e-5
        assert plan.cost >= least - 1e-5
        assert plan.cost <= plan.cost_before + 1e-9
        if plan.is_proven:
            assert plan.cost == pytest.approx(least, abs=1e-3)
        assert is_unchanged(picture, before)

    check()


def test_pods_are_spread_as_evenly_as_the_price_of_a_move_is_worth() -> None:
    nodes = [node(f"node-{number}") for number in range(3)]
    picture = picture_of([*nodes, *[pod(f"p-{number}", on="node-0") for number in range(6)]])

    assert best(picture, Crowding()).after == {"Crowding": 1.2}
    # The first two moves save 1.0 and 0.8, a third one would save 0.4.
    assert len(best(picture, Crowding(), threshold=0.5).moves) == 2
    assert best(picture, Crowding(), threshold=5).moves == ()


def test_two_pods_that_take_each_others_room_move_together() -> None:
    wanted = {"a": "node-1", "b": "node-0"}
    picture = picture_of(
        [node("node-0", cpu=1), node("node-1", cpu=1), pod("a", cpu=1, on="node-0"), pod("b", cpu=1, on="node-1")]
    )

    plan = best(picture, Prices(lambda name, on: 0.0 if wanted[name] == on else 1.0))

    assert places(plan) == wanted
    assert plan.is_proven
    assert plan.cost == pytest.approx(0.1)


def test_a_node_is_freed_where_its_pods_find_room_together_and_not_where_each_does_alone() -> None:
    def picture(room: int) -> Picture:
        nodes = [node("node-0", cpu=8), node("node-1", cpu=room)]
        return picture_of(
            [*nodes, pod("a", cpu=2, on="node-0"), pod("b", cpu=2, on="node-0"), pod("c", cpu=2, on="node-1")]
        )

    assert best(picture(6), NodesInUse()).after == {"NodesInUse": 1.0}
    assert places(best(picture(4), NodesInUse())) == {"c": "node-0"}


def test_anti_affinity_between_pods_that_move_holds_at_the_end() -> None:
    apart = [term("app=a")]
    nodes = [node(f"node-{number}", zone="z") for number in range(3)]
    pods = [pod(name, labels={"app": "a"}, apart=apart, on=f"node-{at}") for at, name in enumerate("ab")]
    picture = picture_of([*nodes, *pods])

    plan = best(picture, Prices(lambda name, on: 0.0 if on == "node-2" else 1.0))

    assert len(plan.moves) == 1
    assert plan.is_proven


def test_the_optimal_plan_respects_spread_constraints_of_moved_pods() -> None:
    spread = [spread_over(HOSTNAME, "app=a")]
    nodes = [node(f"node-{number}", zone="z") for number in range(2)]
    pods = [pod(f"p-{at}", labels={"app": "a"}, spread=spread, on=f"node-{at % 2}") for at in range(4)]
    picture = picture_of([*nodes, *pods])

    plan = best(picture, Prices(lambda name, on: 0.0 if on == "node-1" else 1.0))

    # With one pod more on node-1 there are three beside one; a second one would refuse the first.
    assert plan.moves == ()
    assert plan.is_proven


def test_at_most_as_many_pods_are_moved_as_a_limit_lets() -> None:
    picture = picture_of([node("node-0"), node("node-1"), *[pod(f"p-{at}", on="node-0") for at in range(6)]])

    plan = best(picture, Crowding(), limits=[MoveLimit({f"default/p-{at}" for at in range(5)}, 1)])

    assert len(plan.moves) == 2
    assert "p-5" in places(plan)


def test_the_optimal_plan_keeps_protected_pods_and_avoids_closed_nodes() -> None:
    objects = [node("node-0"), node("node-1"), node("node-2"), *[pod(f"p-{at}", on="node-0") for at in range(4)]]
    picture = picture_of(objects, lambda one: one.name in ("p-0", "p-1"))
    picture.targets[picture.cluster.nodes.row_of["node-2"]] = False

    assert places(best(picture, Crowding())) == {"p-0": "node-1", "p-1": "node-1"}


def test_a_smooth_curve_with_few_knots_ends_with_the_curve_itself() -> None:
    picture = picture_of([*[node(f"node-{at}") for at in range(4)], *[pod(f"p-{at}", on="node-0") for at in range(9)]])

    rough = best(picture, Crowding(knots=(0.0, 9.0)))

    assert rough.rounds > 1
    assert rough.is_proven
    assert rough.cost == pytest.approx(best(picture, Crowding()).cost)


def test_objectives_without_curves_use_a_table_of_node_contents() -> None:
    picture = picture_of(
        [*[node(f"node-{at}") for at in range(3)], *[pod(f"p-{at}", on=f"node-{at}") for at in range(3)]]
    )

    plan = best(picture, Odd())

    assert plan.after == {"Odd": 1.0}
    assert len(plan.moves) == 1


def test_alike_pods_are_counted_instead_of_distinguished() -> None:
    nodes = [node(f"node-{at}", pods=25) for at in range(4)]
    picture = picture_of([*nodes, *[pod(f"p-{at:02}", on="node-0") for at in range(60)]])

    plan = best(picture, Crowding(), threshold=0.01)

    assert plan.is_proven
    assert plan.after == {"Crowding": pytest.approx(90.0)}


def test_the_optimal_plan_reports_uncountable_rules() -> None:
    picture = picture_of([node("node-0"), pod("p", on="node-0")])

    plan = best(picture, Blind(), Crowding(left_out=("the weather",)))

    assert plan.left_out == {"Blind": ("its objective has no linear form",), "Crowding": ("the weather",)}
    assert plan.before == {"Crowding": 0.1}


def test_a_form_that_belies_its_objective_is_refused() -> None:
    class Belied(Crowding):
        def objective(self, picture: Picture) -> float:
            return 7.0

    picture = picture_of([node("node-0"), pod("p", on="node-0")])

    with pytest.raises(ExactPlanError, match=r"policy Crowding: its objective is 7, and its linear form comes to 0\.1"):
        best(picture, Belied())


def test_too_large_a_question_is_refused_in_words() -> None:
    picture = picture_of([node("node-0"), node("node-1"), pod("p", on="node-0"), pod("q", on="node-0")])

    with pytest.raises(ExactPlanError, match=r"2 pods that may move and 2 nodes are too many .* at most 3 pods"):
        best(picture, Crowding(), most_pairs=3)


def test_the_share_of_the_possible_gain_measures_a_placement() -> None:
    picture = picture_of([node("node-0"), node("node-1"), *[pod(f"p-{at}", on="node-0") for at in range(4)]])

    plan = best(picture, Crowding())

    assert plan.cost_before == pytest.approx(1.6)
    assert plan.cost == pytest.approx(0.9)
    assert plan.share_of({"Crowding": 1.0}, 1) == pytest.approx(0.55 / 0.7)
    assert plan.share_of(plan.after, len(plan.moves)) == pytest.approx(1.0)
    assert best(picture, Crowding(), threshold=9).share_of({"Crowding": 1.6}, 0) == 1.0


def test_a_cluster_without_pods_has_nothing_to_gain() -> None:
    assert best(picture_of([node("node-0")]), Crowding(), NodesInUse()).moves == ()


def test_the_same_question_has_the_same_answer() -> None:
    objects = [*[node(f"node-{at}") for at in range(3)], *[pod(f"p-{at}", on="node-0") for at in range(7)]]

    first, second = (places(best(picture_of(objects), Crowding())) for _ in range(2))

    assert first == second
