"""Bounds of certificates: no placement that moves can reach costs less."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations, product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.cluster.pods import PodRecord
from podium.decide.rescheduling import certificate
from podium.decide.rescheduling.certificate import (
    Certificate,
    MoveLimit,
    Prices,
    Relaxation,
    ascend,
    limited,
    lower_bounds,
    relax,
)
from podium.decide.rescheduling.replacement_placement import as_replacement
from podium.decide.transaction import ClusterTransaction
from podium.framework.plugin import PluginContext
from podium.framework.rescheduling.bounds import BoundedObjective, Departures, NodeState, ObjectiveBound, Reliefs
from podium.framework.rescheduling.policy import NodeSignals, Picture, Policy, Proposal, Signals
from podium.plugins.rescheduling.node_use import guests_on, requested_shares
from podium.plugins.rescheduling.registry import IN_TREE
from tests.builders import cluster_of, node, plain_runner, pod, term
from tests.exact.filter_rules import FILTER_RULES
from tests.exact.highs import Highs
from tests.exact.optimal import ExactQuestion, LinearProgram, plan_optimal
from tests.fuzzing import Effort, efforts
from tests.generators import EVERYTHING, Objects, clusters

MINUTE = 60 * 10**9

ARGS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "Consolidate": ({}, {"for": {"requests": {"cpu": 3}, "places": 2}}),
    "MoveToUnderusedNodes": (
        {"thresholds": {"cpu": 10, "pods": 1}, "targetThresholds": {"cpu": 20, "pods": 2}},
        {"thresholds": {"cpu": 20, "memory": 20}, "targetThresholds": {"cpu": 40, "memory": 50}},
        {"thresholds": {"cpu": 0}, "targetThresholds": {"cpu": 5}, "useDeviationThresholds": True},
    ),
    "PrepareForMaintenance": ({},),
    "RepairViolations": ({},),
    "ReplaceOldPods": ({"maxAge": "2m"},),
    "SatisfyPreferences": ({},),
    "SpreadDuplicates": ({},),
}


def policy_of(name: str, picture: Picture, args: Mapping[str, Any] | None = None) -> Policy:
    return IN_TREE[name](PluginContext(ARGS[name][0] if args is None else args, picture.cluster))


def picture_of(objects: Iterable[Any], closed: Iterable[int] = (), stays: Iterable[str] = ()) -> Picture:
    cluster = cluster_of(*objects)
    runner = plain_runner(cluster)
    targets = cluster.nodes.present[: cluster.nodes.count].copy()
    targets[[row for row in closed if row < len(targets)]] = False
    signals = Signals(nodes={"node-0": NodeSignals(maintenance_ns=70 * MINUTE)})
    kept = frozenset(stays)

    def is_movable(one: PodRecord) -> bool:
        return one.name not in kept and not one.terminating

    return Picture(cluster, {"default-scheduler": runner}, runner, 40 * MINUTE, signals, targets, (), is_movable)


def reached(
    picture: Picture, policies: Sequence[tuple[Policy, float]], price: float
) -> Iterable[tuple[Mapping[str, int], float]]:
    """Yield the moved pods with their rows, and the cost of each placement that some order of the moves reaches."""
    pods = list(picture.movable_pods())
    rows = np.flatnonzero(picture.targets).tolist()
    for chosen in product(*[sorted({*rows, one.row}) for one in pods]):
        moved = {one.uid: row for one, row in zip(pods, chosen, strict=True) if row != one.row}
        for order in permutations(sorted(moved)):
            cost = cost_after(picture, policies, {uid: moved[uid] for uid in order})
            if cost is not None:
                yield moved, cost + price * len(moved)
                break


EXCLUDED = "plans within limits that empty nodes that are asked for 50% or more"


def empties_a_busy_node(picture: Picture, moved: Mapping[str, int]) -> bool:
    """Return whether moves empty a node of which half or more is requested, which `Consolidate` never does."""
    busy = picture.targets & (requested_shares(picture.cluster, picture.cluster.nodes.all_rows()) >= 0.5)
    guests = {row: guests_on(picture.cluster, row) for row in np.flatnonzero(busy).tolist()}
    return any(
        here and all(one.uid in moved for one in here) and row not in moved.values() for row, here in guests.items()
    )


def cost_after(picture: Picture, policies: Sequence[tuple[Policy, float]], moved: Mapping[str, int]) -> float | None:
    """Return the cost after these moves, whose pods all leave first; None if a place is taken."""
    with ClusterTransaction(picture.cluster, picture.runners) as transaction:
        leaving = [transaction.take_off(uid) for uid in moved]
        for one, row in zip(leaving, moved.values(), strict=True):
            new = as_replacement(one, picture.now)
            if not len(transaction.fitting(new, np.array([row]))):
                return None
            transaction.place(new, row)
        return sum(weight * policy.objective(picture) for policy, weight in policies)


def certificate_of(
    picture: Picture, policies: Sequence[tuple[Policy, float]], price: float, **rest: Any
) -> Certificate:
    return lower_bounds(picture, policies, price, **rest)[0].of_plan({}, 0)


@efforts(12)
@pytest.mark.parametrize("name", [*sorted(ARGS), "several"])
def test_no_reachable_placement_costs_less_than_the_bound(name: str, effort: Effort) -> None:
    @effort
    @given(
        clusters(EVERYTHING, most_nodes=3, most_pods=4),
        st.sets(st.integers(0, 2), max_size=1),
        st.sets(st.sampled_from(["pod-0", "pod-1"]), max_size=1),
        st.sampled_from((0.0, 0.05, 0.5, 2.0)),
        st.integers(0, 3),
        st.randoms(use_true_random=False),
    )
    def check(objects: Objects, closed: set[int], stays: set[str], price: float, most: int, chance: Any) -> None:
        picture = picture_of(objects.surroundings, closed, stays)
        names = chance.sample(sorted(ARGS), 3) if name == "several" else [name]
        policies = [
            (
                policy_of(each, picture, chance.choice(ARGS[each])),
                chance.choice((1.0, 2.0)) if name == "several" else 1.0,
            )
            for each in names
        ]
        some = {one.uid for one in picture.movable_pods() if chance.random() < 0.7}

        anywhere = certificate_of(picture, policies, price)
        within = certificate_of(picture, policies, price, limits=[MoveLimit(some, most)])

        assert anywhere.uncovered == ()
        found = list(reached(picture, policies, price))
        least = min((cost for _, cost in found), default=anywhere.now)
        assert anywhere.bound <= least + 1e-5
        allowed = [(moved, cost) for moved, cost in found if len(moved.keys() & some) <= most]
        if EXCLUDED in dict(within.relaxed).get("Consolidate", ()):
            allowed = [(moved, cost) for moved, cost in allowed if not empties_a_busy_node(picture, moved)]
        least_within = min((cost for _, cost in allowed), default=anywhere.now)
        assert within.bound <= least_within + 1e-5

    check()


@efforts(6)
def test_any_prices_bound_the_cost(effort: Effort) -> None:
    @effort
    @given(clusters(EVERYTHING, most_nodes=3, most_pods=4), st.randoms(use_true_random=False))
    def check(objects: Objects, chance: Any) -> None:
        picture = picture_of(objects.surroundings)
        policies = [(policy_of(name, picture), 1.0) for name in ("Consolidate", "MoveToUnderusedNodes")]
        departures = Departures(picture)
        bounds = [(policy.bound(departures, 0.1), weight) for policy, weight in policies]  # type: ignore[attr-defined]
        limits = [MoveLimit([one.uid for one in picture.movable_pods()], 2)]
        relaxation = limited(relax(departures, bounds, 0.1)[0], limits)
        free = relaxation.free
        prices = Prices(
            np.array([[chance.uniform(0, 30) for _ in row] for row in free.capacity]).reshape(free.capacity.shape),
            np.array([chance.uniform(0, 3) for _ in free.limits]),
        )

        bound = relaxation.evaluate(prices).value

        found = reached(picture, policies, 0.1)
        assert bound <= min(cost for moved, cost in found if len(moved) <= 2) + 1e-5

    check()


@efforts(6)
def test_the_bound_is_no_more_than_that_of_the_exact_solver(effort: Effort) -> None:
    pytest.importorskip("highspy", reason="the optional solver is not installed")

    @effort
    @given(clusters(EVERYTHING, most_nodes=3, most_pods=5), st.sampled_from(("Consolidate", "SpreadDuplicates")))
    def check(objects: Objects, name: str) -> None:
        picture = picture_of(objects.surroundings)
        policies = [(policy_of(name, picture), 1.0)]

        exact = plan_optimal(picture, policies, ExactQuestion(0.25, rules=FILTER_RULES), Highs())

        assert certificate_of(picture, policies, 0.25).bound <= exact.cost + 1e-4

    check()


@pytest.mark.parametrize("few", [0, certificate.FEW_STATES], ids=["by-few-states", "by-all-states"])
@efforts(6)
def test_the_ascent_is_close_to_the_linear_program_of_the_relaxation(
    effort: Effort, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("highspy", reason="the optional solver is not installed")
    monkeypatch.setattr(certificate, "FEW_STATES", few)

    @effort
    @given(clusters(EVERYTHING, most_nodes=4, most_pods=8), st.sampled_from(("Consolidate", "MoveToUnderusedNodes")))
    def check(objects: Objects, name: str) -> None:
        picture = picture_of(objects.surroundings)
        policy = policy_of(name, picture)
        departures = Departures(picture)
        relaxation, _ = relax(departures, [(policy.bound(departures, 0.1), 1.0)], 0.1)  # type: ignore[attr-defined]

        best = ascend(relaxation, policy.objective(picture))

        least = Highs().solve(program_of(relaxation)).cost
        assert best.value <= least + 1e-5
        if few:
            assert best.value >= least - 0.05 * max(1.0, policy.objective(picture))
        else:
            assert best.value >= relaxation.evaluate(relaxation.free).value

    check()


def differing_budgets() -> tuple[Relaxation, float]:
    """Return a relaxation within twelve limits, and the cost of leaving all pods where they are.

    Each limit allows two pods of its own nodes. Most of what can be gained, far from these nodes, needs none.
    """
    objects: list[Any] = [node("empty", cpu="1000")]
    for at in range(12):
        objects += [node(f"n-{at}-{each}", cpu="10") for each in range(3 + at)]
        objects += [pod(f"p-{at}-{each}", on=f"n-{at}-{each}", cpu=f"{5200 + 400 * at}m") for each in range(3 + at)]
    for at in range(60):
        objects += [
            node(f"free-{at}", cpu="10"),
            *[pod(f"q-{at}-{each}", on=f"free-{at}", cpu="1") for each in range(9)],
        ]
    picture = picture_of(objects)
    pods = sorted(picture.movable_pods(), key=lambda pod: pod.row)
    limits = [MoveLimit([pod.uid for pod in pods if pod.name.startswith(f"p-{at}-")], 2) for at in range(12)]
    policy = policy_of("MoveToUnderusedNodes", picture, {})
    labels = policy.bound(Departures(picture, pods), 0.01).labels  # type: ignore[attr-defined]
    departures = Departures(picture, pods, labels)
    relaxation, _ = relax(departures, [(policy.bound(departures, 0.01), 1.0)], 0.01)  # type: ignore[attr-defined]
    return limited(relaxation, limits), policy.objective(picture)


def test_the_best_ascent_counts_of_those_that_weigh_limits_differently(monkeypatch: pytest.MonkeyPatch) -> None:
    def bound(*powers: float) -> float:
        monkeypatch.setattr(certificate, "_POWERS", powers)
        return certificate._climb(*differing_budgets(), patience=5).value

    by_root, by_number = bound(0.5), bound(1.0)

    assert by_root > by_number
    assert bound(0.5, 1.0) == bound(1.0, 0.5) == by_root


def test_the_ascent_finds_the_prices_of_budgets_that_matter_differently() -> None:
    found = ascend(*differing_budgets())

    # Two pods of each budget leave for the price of a move, the others stay; four of each free node leave.
    excess = [1 - 5000 / (5200 + 400 * at) for at in range(12)]
    best = sum(2 * 0.01 + (1 + at) * each for at, each in enumerate(excess)) + 60 * 4 * 0.01
    assert found.value <= best + 1e-6
    assert found.value == pytest.approx(best, rel=0.002)


def test_an_ascent_that_has_stepped_back_to_prices_of_0_goes_on() -> None:
    gone = pod("gone", cpu=1, memory="1Gi", example_com__gpu=1, on="small", terminating=True)
    pods = [pod("a", on="small"), pod("b", cpu=1, on="large"), gone]
    picture = picture_of([node("small", cpu=0), node("large", cpu=6), *pods])
    departures, policy = Departures(picture), policy_of("Consolidate", picture)
    relaxation, _ = relax(departures, [(policy.bound(departures, 0.1), 1.0)], 0.1)  # type: ignore[attr-defined]

    found = ascend(relaxation, policy.objective(picture))

    # Without prices both pods leave; of the large node, "b" uses a sixth.
    assert relaxation.evaluate(relaxation.free).value == pytest.approx(2 * 0.1)
    assert found.value == pytest.approx(2 * 0.1 + (2 - 0.1) / 6, abs=0.001)


def program_of(relaxation: Relaxation) -> LinearProgram:
    """Return the linear program of a relaxation without limits: mixtures of states, and of the pods that leave."""
    program, departures = LinearProgram(offset=relaxation.base), relaxation.departures
    resources = range(relaxation.spare.shape[1])
    capacity: dict[tuple[int, int], dict[int, float]] = defaultdict(dict)
    states: dict[int, dict[int, float]] = defaultdict(dict)
    leaving: dict[int, dict[int, float]] = defaultdict(dict)
    for state, entry in enumerate(relaxation.entries.tolist()):
        row = int(departures.rows[entry])
        column = program.amount(float(relaxation.costs[state]))
        states[row][column] = 1.0
        gone: dict[int, float] = {column: -float(departures.numbers[entry])}
        for at in np.flatnonzero(departures.pod_rows == row).tolist():
            each = program.amount(0.0)
            leaving[at][each] = gone[each] = 1.0
            program.row({each: 1.0, column: -1.0}, 0.0)
        program.row(gone, np.inf, 0.0)
        for resource in resources:
            capacity[int(relaxation.kinds[row]), resource][column] = -float(relaxation.spare[state, resource])
    for at, row in enumerate(departures.pod_rows.tolist()):
        shape, homes = int(relaxation.places[at]) % len(relaxation.requests), dict[int, float]()
        for kind in np.flatnonzero(relaxation.allowed[shape]).tolist():
            homes[program.amount(relaxation.price)] = -1.0
            for resource in resources:
                capacity[kind, resource][[*homes][-1]] = float(relaxation.requests[shape, resource])
        for resource, column in product(resources, leaving[at]):
            capacity[int(relaxation.kinds[row]), resource][column] = -float(relaxation.requests[shape, resource])
        program.row({**leaving[at], **homes}, 0.0, 0.0)
    for entries in capacity.values():
        program.row(entries, 0.0)
    for entries in states.values():
        program.row(entries, 1.0, 1.0)
    return program


def half_used(number: int, cpu: int = 1) -> list[Any]:
    nodes = [node(f"node-{at}", cpu=4) for at in range(number)]
    return [*nodes, *[pod(f"p-{at}", cpu=cpu, on=f"node-{at}") for at in range(number)]]


def test_capacity_bounds_how_many_nodes_can_be_emptied() -> None:
    picture = picture_of(half_used(8))

    found = certificate_of(picture, [(policy_of("Consolidate", picture), 1.0)], 0.5)

    # Two nodes hold all eight pods; six move.
    assert found.now == 16
    assert found.bound == pytest.approx(2 * 2 + 6 * 0.5, abs=0.01)
    assert found.share == 0.0
    assert found.gap == pytest.approx(9 / 16, abs=0.001)


def test_limits_bound_how_many_nodes_a_plan_can_empty() -> None:
    picture = picture_of(half_used(8))
    limit = MoveLimit([one.uid for one in picture.movable_pods()], 2)

    found = certificate_of(picture, [(policy_of("Consolidate", picture), 1.0)], 0.5, limits=[limit])

    assert found.bound == pytest.approx(16 - 2 * 1.5, abs=0.01)


def test_a_node_whose_pods_cost_more_to_move_than_it_is_worth_stays_in_use() -> None:
    objects = [node("node-0", cpu=9), node("node-1", cpu=9), *[pod(f"p-{at}", on=f"node-{at % 2}") for at in range(10)]]
    picture = picture_of(objects)

    found = certificate_of(picture, [(policy_of("Consolidate", picture), 1.0)], 0.5)

    assert found.bound == found.now == 4
    assert found.share == 1.0


def test_nodes_count_by_their_prices() -> None:
    nodes = [node(f"node-{price}", cpu=4, labels={"podium.dev/price": price}) for price in ("1", "3", "5")]
    pods = [pod(f"p-{price}", cpu=1, on=f"node-{price}") for price in ("1", "3", "5")]
    picture = picture_of([*nodes, *pods])

    found = certificate_of(picture, [(policy_of("Consolidate", picture), 1.0)], 0.5)

    # The mean price costs 2. All pods fit on the cheapest node; two move. Fractions of nodes are allowed.
    assert found.now == pytest.approx(2 * (1 + 3 + 5) / 3)
    assert 3 / 4 * 2 / 3 + 1 <= found.bound <= 2 / 3 + 2 * 0.5 + 1e-6


def test_pods_that_only_some_nodes_take_count_against_the_capacity_of_those() -> None:
    nodes = [node(f"node-{at}", cpu=4, labels={"pool": "b" if at % 2 else "a"}) for at in range(4)]
    pods = [pod(f"p-{at}", cpu=3, on=f"node-{at}", node_selector={"pool": "b" if at % 2 else "a"}) for at in range(4)]
    picture = picture_of([*nodes, *pods])

    found = certificate_of(picture, [(policy_of("Consolidate", picture), 1.0)], 0.1)

    # Two nodes of a kind offer 8 for 6: fractions of pods would fit on one node and a half.
    assert found.bound == pytest.approx(2 * 2 * 1.5 + 2 * 0.5 * 0.1, abs=0.01)


def test_pods_that_do_not_fit_below_the_marks_stay_in_excess() -> None:
    args = {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}}
    objects = [node("node-0", cpu=8), node("node-1", cpu=8), *[pod(f"p-{at}", cpu=1, on="node-0") for at in range(8)]]
    picture = picture_of(objects)
    policy = policy_of("MoveToUnderusedNodes", picture, args)

    found = certificate_of(picture, [(policy, 1.0)], 0.1)

    # Four pods of node-0 fit on node-1, below the mark of both.
    assert found.now == pytest.approx(4, abs=1e-5)
    assert found.bound == pytest.approx(0.4, abs=0.01)

    fuller = picture_of([*objects, *[pod(f"q-{at}", cpu=1, on="node-1") for at in range(4)]])
    found = certificate_of(fuller, [(policy_of("MoveToUnderusedNodes", fuller, args), 1.0)], 0.1)
    assert 3 < found.bound <= found.now


def test_each_missing_preference_costs_at_least_one_move() -> None:
    apart = [term("app=a")]
    nodes = [node(f"node-{at}", zone="z") for at in range(3)]
    pods = [pod(f"p-{at}", labels={"app": "a"}, dislikes=[(1, apart[0])], on="node-0") for at in range(3)]
    picture = picture_of([*nodes, *pods])

    found = certificate_of(picture, [(policy_of("SatisfyPreferences", picture), 1.0)], 0.25)

    assert found.now == pytest.approx(2, abs=1e-5)
    assert found.bound == pytest.approx(0.5, abs=1e-5)


def duplicates(*owners: tuple[str, int]) -> Picture:
    """Return a picture of so many pods of each owner on node-0, beside four empty nodes."""
    nodes = [node(f"node-{at}", cpu=20) for at in range(5)]
    pods = [pod(f"{name}-{at}", cpu=1, on="node-0", owner=name) for name, number in owners for at in range(number)]
    return picture_of([*nodes, *pods])


def test_only_pods_beyond_their_share_relieve_a_node_of_duplicates() -> None:
    picture = duplicates(("a", 3), ("b", 2))
    policy = policy_of("SpreadDuplicates", picture)

    # Two pods of a and one of b leave.
    assert certificate_of(picture, [(policy, 1.0)], 0.1).bound == pytest.approx(0.3, abs=1e-4)


def test_pods_of_another_owner_do_not_leave_in_place_of_duplicates() -> None:
    picture = duplicates(("a", 3), ("b", 3))
    limit = MoveLimit([one.uid for one in picture.movable_pods() if one.owner_uid == "a"], 1)
    policy = policy_of("SpreadDuplicates", picture)

    found = certificate_of(picture, [(policy, 1.0)], 0.1, limits=[limit])

    # Of a, one pod stays that is too many.
    assert found.bound == pytest.approx(1 + 3 * 0.1, abs=0.01)


def test_within_limits_nodes_that_reach_the_threshold_are_not_emptied() -> None:
    picture = picture_of([*half_used(4, cpu=2), node("node-4", cpu=8), pod("p-4", cpu=1, on="node-4")])
    policy = policy_of("Consolidate", picture)
    limits = [MoveLimit([one.uid for one in picture.movable_pods()], 5)]

    within, ever = lower_bounds(picture, [(policy, 1.0)], 0.1, limits)

    assert within.bound == pytest.approx(10 - 2 + 0.1, abs=0.01)
    assert dict(within.relaxed)["Consolidate"] == (EXCLUDED,)
    assert ever.bound < within.bound
    assert "Consolidate" not in dict(ever.relaxed)


def test_room_that_all_nodes_together_lack_is_missing_for_good() -> None:
    picture = picture_of([*half_used(4, cpu=3), pod("small", cpu=1, on="node-0")])
    shape = {"requests": {"cpu": 2}, "places": 4}
    policy = policy_of("Consolidate", picture, {"utilizationThreshold": 0, "for": shape})

    # Three cores are left, room for one of four pods; each is worth 4.
    assert certificate_of(picture, [(policy, 1.0)], 0.1).bound == pytest.approx(3 * 4, abs=1e-5)


def test_labels_tell_apart_which_pods_leave() -> None:
    picture = picture_of([node("node-0"), node("node-1"), *[pod(f"p-{at}", on="node-0") for at in range(3)]])
    departures = Departures(picture, labels=np.array([0, 1, 1]))

    # None, one and two pods of the second label; then the same with the first pod.
    assert departures.rows.tolist() == [0, 0, 0, 0, 0, 0, 1]
    assert departures.numbers.tolist() == [0, 1, 2, 1, 2, 3, 0]
    assert departures.most(np.array([1.0, 5.0, 3.0])).tolist() == [0, 5, 8, 1, 6, 9, 0]
    assert (-departures.most(-np.array([1.0, 5.0, 3.0]))).tolist() == [0, 3, 8, 1, 4, 9, 0]
    order = departures.order(np.array([1.0, 5.0, 3.0]))
    assert departures.leaving(np.array([4, 6]), order).tolist() == [True, False, True]


def test_a_part_of_a_large_pod_does_not_leave() -> None:
    args = {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}}
    sizes = [1, 4]
    pods = [pod(f"p-{at}", cpu=cpu, on="node-0") for at, cpu in enumerate(sizes)]
    picture = picture_of([node("node-0", cpu=8), node("node-1", cpu=8), *pods])

    found = certificate_of(picture, [(policy_of("MoveToUnderusedNodes", picture, args), 1.0)], 0.1)

    # One core too many leaves with the pod that has one.
    assert found.bound == pytest.approx(0.1, abs=0.001)


class Plain:
    """A policy without a bound."""

    name = "Plain"

    def objective(self, picture: Picture) -> float:
        return 7.0

    def proposals(self, picture: Picture) -> Iterable[Proposal]:
        return ()


class Boasting(Plain):
    """A policy with a bound above its objective."""

    name = "Boasting"

    def bound(self, departures: Departures, price: float) -> ObjectiveBound:
        return ObjectiveBound(base=8.0)


class Failing(Plain):
    """A policy with a bound that fails."""

    name = "Failing"

    def bound(self, departures: Departures, price: float) -> ObjectiveBound:
        raise ZeroDivisionError


class Short(Plain):
    """A policy with a bound of too few entries."""

    name = "Short"

    def bound(self, departures: Departures, price: float) -> ObjectiveBound:
        return ObjectiveBound((NodeState(np.zeros(1)),))


class Long(Plain):
    """A policy with a bound of too many entries."""

    name = "Long"

    def bound(self, departures: Departures, price: float) -> ObjectiveBound:
        return ObjectiveBound((NodeState(np.zeros(len(departures.rows) + 1)),))


class Mislabelled(Plain):
    """A policy with too few labels."""

    name = "Mislabelled"

    def bound(self, departures: Departures, price: float) -> ObjectiveBound:
        return ObjectiveBound(labels=np.zeros(0, dtype=np.int64))


class Unrelieved(Plain):
    """A policy with too few reliefs."""

    name = "Unrelieved"

    def bound(self, departures: Departures, price: float) -> ObjectiveBound:
        none = np.zeros(0, dtype=np.int64)
        return ObjectiveBound(reliefs=Reliefs(np.zeros(0), none, none))


class Modest(Plain):
    """A policy with a bound below its objective."""

    name = "Modest"

    def bound(self, departures: Departures, price: float) -> ObjectiveBound:
        return ObjectiveBound((NodeState(np.ones(len(departures.rows))),), relaxed=("the weather",))


def test_policies_without_a_bound_or_with_a_wrong_one_are_named_and_left_out() -> None:
    picture = picture_of([node("node-0"), node("node-1"), pod("p", on="node-0")])

    policies: list[tuple[Policy, float]] = [(each, 1.0) for each in (Plain(), Boasting(), Failing(), Short(), Long())]
    policies += [(Mislabelled(), 1.0), (Unrelieved(), 1.0), (Modest(), 2.0)]
    found = certificate_of(picture, policies, 0.5)

    assert [*found.objectives] == ["Modest"]
    assert found.uncovered == ("Plain", "Boasting", "Failing", "Short", "Long", "Mislabelled", "Unrelieved")
    assert (found.now, found.bound) == (14, 4)
    assert dict(found.relaxed)["Modest"] == ("the weather",)
    assert not isinstance(Plain(), BoundedObjective)


def test_the_plan_counts_with_its_moves() -> None:
    picture = picture_of(half_used(4))

    bound, _ = lower_bounds(picture, [(policy_of("Consolidate", picture), 1.0)], 0.5)
    found = bound.of_plan({"Consolidate": 2.0}, 3)

    assert (found.now, found.after) == (8, 3.5)
    assert found.bound == pytest.approx(3.5, abs=0.001)
    assert found.gap == pytest.approx(0, abs=0.001)
    assert found.share == pytest.approx(1, abs=0.001)


def test_few_entries_have_the_sums_and_pods_that_they_have_among_all() -> None:
    picture = picture_of([node("node-0"), node("node-1"), *[pod(f"p-{at}", on="node-0") for at in range(3)]])
    departures, amounts = Departures(picture, labels=np.array([0, 1, 1])), np.array([1.0, 5.0, 3.0])

    few = departures.of(np.array([2, 4, 6]))

    assert (few.rows.tolist(), few.numbers.tolist()) == ([0, 0, 1], [2, 2, 0])
    assert few.most(amounts).tolist() == [8, 6, 0]
    assert few.leaving(np.array([1, 2]), few.order(amounts)).tolist() == [True, False, True]
    # Pods that leave by none of the entries have no place in an order.
    assert departures.of(np.array([1, 6])).order(amounts).tolist() == [2, 1]
    assert few.of(np.array([0, 2])).most(amounts).tolist() == [8, 0]


def test_a_state_is_needless_if_another_one_costs_no_more_and_leaves_as_much_room() -> None:
    picture = picture_of([node("node-0"), node("node-1")])
    costs = np.array([[3.0, 1.0], [2.0, 1.0], [np.inf, 1.0]])
    spare = np.array([[[5.0, 4.0]], [[7.0, 4.0]], [[9.0, 4.0]]])

    kept = certificate._undominated(Departures(picture), costs, spare)

    assert kept[:, 0].tolist() == [False, True, False]
    # Of equal states one stays.
    assert kept[:, 1].sum() == 1
    # A cheaper state with less room replaces none.
    costs[1], spare[1] = 1.0, 3.0
    assert certificate._undominated(Departures(picture), costs, spare)[:, 0].tolist() == [True, True, False]


def test_the_largest_pods_of_a_node_leave_first() -> None:
    picture = picture_of([node("node-0"), node("node-1"), *[pod(f"p-{at}", on="node-0") for at in range(3)]])
    departures = Departures(picture)

    assert departures.numbers.tolist() == [0, 1, 2, 3, 0]
    assert departures.most(np.array([1.0, 5.0, 3.0])).tolist() == [0, 5, 8, 9, 0]
    assert (-departures.most(-np.array([1.0, 5.0, 3.0]))).tolist() == [0, 1, 4, 9, 0]


def test_the_same_question_has_the_same_answer() -> None:
    picture = picture_of(half_used(5))
    departures = Departures(picture)
    bounds = [(policy_of("Consolidate", picture).bound(departures, 0.1), 1.0)]  # type: ignore[attr-defined]

    first, second = (ascend(relax(departures, bounds, 0.1)[0], 10.0).value for _ in range(2))

    assert first == second


@pytest.mark.parametrize(("within", "ever", "stated"), [(1.0, 2.0, 2.0), (3.0, 2.0, 3.0), (1.0, 6.0, 3.5)])
def test_a_bound_for_all_placements_holds_within_limits_too(
    within: float, ever: float, stated: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search for a bound ends early, so that the one with limits may come out lower."""

    def ascend(relaxation: Relaxation, *_: Any) -> Any:
        return SimpleNamespace(value=within if len(relaxation.limits) else ever, prices=relaxation.free)

    monkeypatch.setattr(certificate, "ascend", ascend)
    picture = picture_of(half_used(4))

    bounds = lower_bounds(picture, [(policy_of("Consolidate", picture), 1.0)], 0.5, [MoveLimit([], 1)])

    found = [bound.of_plan({"Consolidate": 2.0}, 3).bound for bound in bounds]
    assert found == [stated, min(ever, 3.5)]
