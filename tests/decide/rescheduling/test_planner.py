"""The proposals that become moves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import numpy as np
import pytest

from podium.cluster.cluster import Cluster
from podium.decide.rescheduling.guards import PastMove
from podium.decide.rescheduling.planner import Planner
from podium.decide.rescheduling.round_robin import MOST_PROPOSALS, ReschedulingPlan
from podium.framework.plugin import PluginContext
from podium.framework.rescheduling.policy import Picture, Policy, Proposal, Relocation
from podium.framework.rescheduling.settings import Guidance, MoveLimitSettings, ReschedulingScope
from podium.plugins.rescheduling.registry import IN_TREE
from tests.builders import budget, node, node_term, pod, term
from tests.decide.rescheduling.planning import (
    NOW,
    SECOND,
    Even,
    Given,
    KeepOff,
    Proposes,
    free_settings,
    given,
    moves,
    on,
    places,
    plan,
    planned,
    scratch_on,
    web,
    why,
)

MINUTE = 60 * SECOND


def crowded(number: int = 4, **fields: Any) -> Given:
    """Pods w0, w1, ... on node a, and nodes b and c without any."""
    return given(node("a"), node("b"), node("c"), *(web(f"w{each}", "a", cpu=1, **fields) for each in range(number)))


def test_a_pod_that_would_be_better_elsewhere_is_moved() -> None:
    here = given(node("a"), node("b"), web("w", "a", cpu=1))

    made = plan(here, KeepOff(("a",)))

    assert moves(made) == {"w": "b"}
    assert made.planned[0].reason == "a is to be left"
    assert made.planned[0].gain == 1
    assert (made.before, made.after) == ({"KeepOff": 1}, {"KeepOff": 0})
    assert made.planned[0].moves[0].source == "a"
    assert made.planned[0].moves[0].is_sure


def test_planned_moves_are_undone_when_the_transaction_ends() -> None:
    here = given(node("a"), node("b"), web("w", "a", cpu=1))

    with planned(here, KeepOff(("a",))):
        assert places(here.cluster) == {"w": "b"}

    assert places(here.cluster) == {"w": "a"}


def test_each_move_builds_on_those_before_it() -> None:
    made = plan(crowded(6), Even())

    assert sorted(str(target) for target in moves(made).values()) == ["b", "b", "c", "c"]
    assert made.after == {"Even": 0}


def test_a_move_below_the_gain_threshold_is_not_planned() -> None:
    here = given(node("a"), node("b"), web("w", "a", cpu=1))

    kept = plan(here, KeepOff(("a",), cost=0.4))
    made = plan(here, KeepOff(("a",), cost=0.5))

    assert why(kept) == {"w": "a replacement on b would make it better by 0.4, and the threshold is 0.5"}
    assert moves(made) == {"w": "b"}


def test_a_protected_pod_stays_with_a_reason() -> None:
    here = given(node("a"), node("b"), web("w", "a", owner="DaemonSet/d"))

    assert why(plan(here, KeepOff(("a",)))) == {"w": "it belongs to a DaemonSet, and comes and goes with its node"}


def test_the_objectives_of_all_policies_count_by_their_weights() -> None:
    here = given(node("a"), node("b"), web("w", "a", cpu=1))
    to_b, to_a = KeepOff(("a",), name="ToB"), KeepOff(("b",), name="ToA")

    def outcome(weight: float) -> ReschedulingPlan:
        planner = Planner([(to_b, 1.0), (to_a, weight)], free_settings())
        picture = planner.picture(here.cluster, here.runners, here.kubelet, NOW, inputs=here.inputs())
        with scratch_on(here) as transaction:
            return planner.plan(transaction, picture, here.inputs())

    assert moves(outcome(0.5)) == {"w": "b"}
    assert why(outcome(0.6)) == {"w": "a replacement on b would make it better by 0.4, and the threshold is 0.5"}
    assert moves(outcome(2.0)) == {}


# Moves that make sense together


def test_a_pod_moves_into_the_room_that_another_leaves() -> None:
    """B is kept out of its own room by the avoid list until A is there."""
    either = [node_term(name="a"), node_term(name="b")]
    here = given(
        node("a", cpu=2),
        node("b", cpu=2),
        node("c", cpu=2),
        web("A", "a", cpu=2, needs_nodes=either),
        web("B", "b", cpu=1, owner="ReplicaSet/b"),
    )

    def judge(picture: Picture) -> float:
        return 0.0 if places(picture.cluster).get("A") == "b" else 1.0

    assert why(plan(here, Proposes([["A"]], judge))) == {"A": "no other node takes it"}
    chain = moves(plan(here, Proposes([["A", "B"]], judge)))
    assert chain["A"] == "b"
    assert chain["B"] in ("a", "c")


def test_grouped_moves_are_planned_all_or_none() -> None:
    here = given(node("a"), node("b", cpu=1), web("w0", "a", cpu=1), web("w1", "a", cpu=1))
    both = Proposes([["w0", "w1"]], on("b"))

    with planned(here, both) as (made, _):
        assert why(made) == {"w0": "default/w1: no other node takes it"}
        assert places(here.cluster) == {"w0": "a", "w1": "a"}


def test_moves_together_have_to_gain_the_threshold_for_each() -> None:
    here = crowded(2)
    both = Proposes([["w0", "w1"]], lambda picture: 0.7 * (on("b", "c")(picture) > 0))

    assert moves(plan(here, both, settings=free_settings(threshold=0.35))).keys() == {"w0", "w1"}
    assert why(plan(here, both, settings=free_settings(threshold=0.4))) == {
        "w0": "a replacement would make it better by 0.7, and the threshold is 0.4 for each of them"
    }


def test_a_pod_is_moved_once() -> None:
    here = crowded(1)

    made = plan(here, Proposes([["w0"], ["w0"]], on("b", "c")))

    assert len(made.planned) == 1
    assert why(made) == {"w0": "it is moved already"}


@dataclass
class Restless:
    """A policy that proposes every pod, again and again."""

    name: str = "Restless"
    seen: list[tuple[str, bool]] = field(default_factory=list)

    def objective(self, picture: Picture) -> float:
        return 100.0 - sum(pod.created_ns == NOW for pod in picture.cluster.placed.values())

    def proposals(self, picture: Picture) -> Iterable[Proposal]:
        for _ in range(3):
            (pod_,) = picture.cluster.placed.values()
            self.seen.append((pod_.node_name, picture.is_movable(pod_)))
            yield Proposal((Relocation(pod_),), "onwards")


def test_a_replacement_is_not_moved_either() -> None:
    policy = Restless()

    made = plan(crowded(1), policy, settings=free_settings(scope=ReschedulingScope(minimum_age_ns=0)))

    assert len(made.planned) == 1
    assert policy.seen[0] == ("a", True)
    assert [is_movable for _, is_movable in policy.seen[1:]] == [False, False]
    assert why(made) == {"w0": "it is moved already"}


# Limits and budgets


def test_planning_stops_when_the_total_limit_is_reached() -> None:
    made = plan(crowded(), KeepOff(("a",)), settings=free_settings(in_flight=MoveLimitSettings(total=2)))

    assert len(moves(made)) == 2
    assert made.stopped == "2 moves are under way, and the limit is 2"
    assert made.left_alone == ()


def test_a_node_waits_with_its_largest_pod_instead_of_giving_smaller_ones() -> None:
    """Of both nodes the large pod would have to go, or two small ones; its owner has no budget and takes turns."""
    nodes = (node("a", cpu="10"), node("b", cpu="10"), *(node(f"free-{each}", cpu="10") for each in range(3)))
    pods = [
        web(f"{size}-{on}", on, cpu=cpu, owner=f"ReplicaSet/{owner}")
        for on in "ab"
        for size, cpu, owner in (("large", "2", "large"), ("small", "1", f"x{on}"), ("tiny", "1", f"y{on}"))
    ]
    rest = [web(f"rest-{on}", on, cpu="5", owner="") for on in "ab"]
    policy = IN_TREE["MoveToUnderusedNodes"](PluginContext({"targetThresholds": {"cpu": 70, "memory": 70}}, Cluster()))

    made = plan(given(*nodes, *pods, *rest), policy, settings=free_settings(threshold=0.1))

    assert sorted(moves(made)) == ["large-a", "large-b"]
    assert made.after == {"MoveToUnderusedNodes": 0.0}


def test_moves_that_are_under_way_already_count() -> None:
    past = PastMove("default", "x", "z", NOW - MINUTE, True, False)

    made = plan(crowded(), KeepOff(("a",)), settings=free_settings(in_flight=MoveLimitSettings(total=2)), past=(past,))

    assert len(moves(made)) == 1


def test_the_plan_reports_moves_that_a_limit_stops() -> None:
    made = plan(crowded(2), KeepOff(("a",)), settings=free_settings(in_flight=MoveLimitSettings(node=1)))

    assert moves(made).keys() == {"w0"}
    assert why(made) == {"w1": "1 move of node a is under way, and the limit is 1"}


def test_no_more_are_moved_than_their_budget_leaves_with_its_reserve() -> None:
    labels = {"app": "web"}
    objects = [node("a"), node("b"), *(web(f"w{each}", "a", cpu=1, labels=labels) for each in range(4))]
    here = given(*objects, budget("pdb", "app=web", 3))

    made = plan(here, KeepOff(("a",)), settings=free_settings(budget_reserve=1))

    assert moves(made).keys() == {"w0", "w1"}
    assert "the disruption budget default/pdb allows 3, of which 1 are left to others" in why(made)["w2"]


def test_failed_trials_use_up_nothing() -> None:
    """The first pod fits nowhere; the second has the budget and the limits to itself."""
    labels = {"app": "web"}
    here = given(
        node("a", cpu=64),
        node("b"),
        web("w0", "a", cpu=32, labels=labels),
        web("w1", "a", cpu=1, labels=labels),
        budget("pdb", "app=web", 1),
    )

    made = plan(here, KeepOff(("a",)), settings=free_settings(in_flight=MoveLimitSettings(node=1, total=1)))

    assert moves(made) == {"w1": "b"}
    assert why(made) == {"w0": "no other node takes it"}


@pytest.mark.parametrize(
    ("limits", "order"),
    [
        ({"hourly": MoveLimitSettings(total=60)}, ["w0", "y", "w1", "x", "w2"]),
        ({"in_flight": MoveLimitSettings(owner=60)}, ["w0", "y", "w1", "x", "w2"]),
        # Without any limit on moves, only those made earlier count.
        ({}, ["w0", "w1", "w2", "y", "x"]),
    ],
)
def test_owners_without_a_budget_take_turns(limits: dict[str, Any], order: list[str]) -> None:
    objects = [node("a"), node("b"), *(web(f"w{each}", "a", cpu=1) for each in range(3))]
    here = given(*objects, web("x", "a", cpu=1, owner="ReplicaSet/x"), web("y", "a", cpu=1, owner="ReplicaSet/y"))
    late = PastMove("default", "ReplicaSet/x", "z", NOW - MINUTE, False, False)

    made = plan(here, KeepOff(("a",)), past=(late,), settings=free_settings(**limits))

    assert list(moves(made)) == order


def test_pods_with_a_budget_need_not_wait_for_others() -> None:
    labels = {"app": "web"}
    objects = [node("a"), node("b"), *(web(f"w{each}", "a", cpu=1, labels=labels) for each in range(2))]
    here = given(*objects, web("x", "a", cpu=1, owner="ReplicaSet/x"), budget("pdb", "app=web", 9))

    assert list(moves(plan(here, KeepOff(("a",))))) == ["w0", "w1", "x"]


def test_policies_take_turns() -> None:
    here = given(node("a"), node("b"), *(web(f"w{each}", "a", cpu=1, owner=f"Set/{each}") for each in range(4)))
    first, second = Proposes([["w0"], ["w1"]], on("b"), "First"), Proposes([["w2"], ["w3"]], on("b"), "Second")

    made = plan(here, first, second)

    assert [(group.policy, group.moves[0].pod.name) for group in made.planned] == [
        ("First", "w0"),
        ("Second", "w2"),
        ("First", "w1"),
        ("Second", "w3"),
    ]


def test_no_more_moves_are_tried_than_the_limit_says() -> None:
    settings = free_settings(max_trials=3, threshold=9.0)

    made = plan(crowded(5), KeepOff(("a",)), settings=settings)
    all_of_them = plan(crowded(3), KeepOff(("a",)), settings=settings)

    assert (made.trials, made.is_cut, len(made.left_alone)) == (3, True, 3)
    assert (all_of_them.trials, all_of_them.is_cut) == (3, False)


def test_a_proposal_that_is_not_tried_costs_no_trial() -> None:
    made = plan(crowded(5, owner="DaemonSet/d"), KeepOff(("a",)), settings=free_settings(max_trials=0))

    assert (made.trials, len(made.left_alone)) == (0, 0)


def test_proposals_without_an_end_come_to_one() -> None:
    @dataclass
    class Endless(KeepOff):
        closed: bool = False

        def proposals(self, picture: Picture) -> Iterator[Proposal]:
            try:
                while True:
                    (pod_,) = picture.cluster.placed.values()
                    yield Proposal((Relocation(pod_),), "again")
            finally:
                self.closed = True

    policy = Endless(("a",))
    made = plan(crowded(1, owner="DaemonSet/d"), policy)

    assert (made.trials, made.is_cut, len(made.left_alone)) == (0, True, MOST_PROPOSALS)
    assert policy.closed


def test_an_empty_cluster_and_no_policies_make_an_empty_plan() -> None:
    assert plan(given(), Even(), KeepOff(("a",))).planned == ()
    assert plan(crowded()).planned == ()


# Policies that break the contract


@dataclass
class Odd(KeepOff):
    """Says what a test says."""

    says: Callable[[Picture], Any] = lambda picture: 0.0
    proposes: Callable[[Picture], Any] = lambda picture: ()

    def objective(self, picture: Picture) -> float:
        return self.says(picture)  # type: ignore[no-any-return]

    def proposals(self, picture: Picture) -> Iterable[Proposal]:
        return self.proposes(picture)  # type: ignore[no-any-return]


def odd(**fields: Any) -> Odd:
    return Odd((), "Odd", **fields)


@pytest.mark.parametrize(
    ("says", "shown"),
    [
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        (-1.0, "-1.0"),
        ("much", '"much"'),
        (None, "null"),
        (np.array([1.0, 2.0]), "[1. 2.]"),
    ],
)
def test_a_policy_with_an_invalid_objective_value_is_skipped(says: Any, shown: str) -> None:
    made = plan(crowded(1), odd(says=lambda _: says), KeepOff(("a",)))

    problem = f"its objective is {shown}; it must be a number of 0 or more, and 0 as good as can be"
    assert made.errors == (f"policy Odd: {problem}",)
    assert moves(made).keys() == {"w0"}
    assert made.before == {"KeepOff": 1}


def test_a_policy_whose_objective_changes_by_itself_is_left_out() -> None:
    counts = iter(range(1000))

    made = plan(crowded(1), odd(says=lambda _: float(next(counts))), KeepOff(("a",)))

    assert made.errors == ("policy Odd: its objective is 1.0 where it was 0.0, and nothing has changed",)
    assert moves(made).keys() == {"w0"}


def test_a_policy_whose_objective_does_not_come_back_when_a_move_is_taken_back_is_left_out() -> None:
    here = crowded(1)
    first = here.cluster.nodes.changes.position

    def drifts(picture: Picture) -> float:
        return float(picture.cluster.nodes.changes.position - first)

    made = plan(here, odd(says=drifts), KeepOff(("a",), cost=0.4), KeepOff(("a",), "Other", cost=0.4))

    (error,) = made.errors
    assert error.startswith("policy Odd: its objective is ")
    assert error.endswith(" where it was 0.0, and nothing has changed")
    assert moves(made).keys() == {"w0"}


def test_a_policy_that_fails_midway_is_left_out_of_all() -> None:
    """None of its proposals is planned."""

    def says(picture: Picture) -> float:
        if sum(each.node_name == "a" for each in picture.cluster.placed.values()) < 3:
            raise RuntimeError("too few")
        return 0.0

    here = crowded(4)
    with planned(here, odd(says=says), KeepOff(("a",))) as (made, _):
        assert len(made.planned) == 4
        assert list(places(here.cluster).values()).count("a") == 0

    (error,) = made.errors
    assert error.startswith("policy Odd: objective failed in ")
    assert "test_planner.py, line " in error
    assert error.endswith(": RuntimeError: too few")


def test_a_policy_that_fails_as_it_proposes_proposes_no_more_and_still_counts() -> None:
    def proposes(picture: Picture) -> Iterator[Proposal]:
        yield Proposal((Relocation(next(iter(picture.cluster.placed.values()))),), "first")
        raise SystemExit("enough")

    made = plan(crowded(2), odd(says=KeepOff(("a",)).objective, proposes=proposes), Even())

    assert len(made.planned) >= 1
    assert made.before.keys() == {"Odd", "Even"}
    (error,) = made.errors
    assert "proposals failed in " in error
    assert error.endswith("SystemExit: enough")


def relocation(picture: Picture, **fields: Any) -> Relocation:
    return Relocation(next(iter(picture.cluster.placed.values())), **fields)


@pytest.mark.parametrize(
    ("proposes", "problem"),
    [
        (lambda _: None, "proposals failed: TypeError"),
        (lambda _: ["w"], 'it proposed "w", which is not a Proposal with a reason'),
        (lambda p: [Proposal((relocation(p),), None)], "which is not a Proposal with a reason"),  # type: ignore[arg-type]
        (lambda _: [Proposal((), "")], "a proposal moves no pod"),
        (lambda p: [Proposal((relocation(p), relocation(p)), "")], "a proposal moves a pod twice"),
        (lambda p: [Proposal([relocation(p)], "")], "the relocations of a proposal are not a tuple of Relocations"),  # type: ignore[arg-type]
        (
            lambda p: [Proposal((relocation(p, targets=np.ones(2, dtype=np.bool_)),), "")],
            "the targets of default/w0 are not an array of 3 booleans",
        ),
        (
            lambda p: [Proposal((relocation(p, targets=np.ones(3)),), "")],
            "the targets of default/w0 are not an array of 3 booleans",
        ),
        (
            lambda p: [Proposal((relocation(p, preferred=np.array([1.0, np.nan, 0.0])),), "")],
            "the preferences of default/w0 are not an array of 3 numbers",
        ),
        (
            lambda p: [Proposal((relocation(p, preferred="bca"),), "")],
            "the preferences of default/w0 are not an array of 3 numbers",
        ),
    ],
)
def test_an_invalid_proposal_ends_the_turn_of_its_policy(proposes: Any, problem: str) -> None:
    made = plan(crowded(1), odd(proposes=proposes), KeepOff(("a",)), settings=free_settings(guidance=Guidance.BIND))

    (error,) = made.errors
    assert error.startswith("policy Odd: ")
    assert problem in error
    assert moves(made) == {"w0": "b"}


def test_a_pod_without_node_or_read_again_is_not_moved() -> None:
    here = crowded(2)
    read_anew = msgspec.structs.replace(next(iter(here.cluster.placed.values())))
    stranger = here.cluster.read(pod("x", owner="ReplicaSet/web"))

    made = plan(
        here,
        odd(proposes=lambda _: [Proposal((Relocation(each),), "") for each in (read_anew, stranger)]),
    )

    assert why(made) == {"w0": "it has changed since it was looked at", "x": "it is on no node"}


def test_the_view_provider_may_protect_more_pods() -> None:
    here = crowded(2)
    planner = Planner([(KeepOff(("a",)), 1.0)], free_settings())
    picture = planner.picture(here.cluster, here.runners, here.kubelet, NOW, inputs=here.inputs())
    picture = replace(picture, is_movable=lambda pod_: pod_.name == "w1")

    with scratch_on(here) as transaction:
        made = planner.plan(transaction, picture, here.inputs())

    assert moves(made).keys() == {"w1"}
    assert why(made) == {"w0": "it may not be moved"}


@pytest.mark.parametrize("threshold", [0.0, -1.0, float("nan"), float("inf")])
def test_a_threshold_that_is_not_above_0_is_refused(threshold: float) -> None:
    with pytest.raises(ValueError, match="it must be above 0, or moves might never end"):
        Planner([], free_settings(threshold=threshold))


@pytest.mark.parametrize("weight", [0.0, -1.0, float("nan")])
def test_a_weight_that_is_not_above_0_is_refused(weight: float) -> None:
    with pytest.raises(ValueError, match=r"the weight of policy Even is .*; it must be above 0"):
        Planner([(Even(), weight)], free_settings())


def test_the_plan_does_not_depend_on_the_observation_order() -> None:
    pods = [web(f"w{each}", "a", cpu=1, owner=f"Set/{each % 3}") for each in range(9)]
    nodes = [node(name, zone=f"z{name}") for name in "abcd"]

    def outcome(*objects: Any) -> list[tuple[str, str | None]]:
        policies: list[Policy] = [Even(), KeepOff(("d",))]
        return list(moves(plan(given(*objects), *policies)).items())

    assert outcome(*nodes, *pods) == outcome(*reversed(nodes), *reversed(pods))


# All at once


def test_a_pod_that_is_still_there_holds_its_room_when_its_replacement_comes() -> None:
    """The other node has room for one of the two until the first is gone: a ReplicaSet makes its pod before that."""
    either = [node_term(name="a"), node_term(name="b")]

    def judge(picture: Picture) -> float:
        where = places(picture.cluster)
        return float(where.get("A") != "b") + float(where.get("B") != "c")

    def swapped(owner: str) -> ReschedulingPlan:
        here = given(
            node("a", cpu=2),
            node("b", cpu=2),
            node("c", cpu=4),
            web("A", "a", cpu=2, needs_nodes=[*either, node_term(name="c")], owner=owner),
            web("B", "b", cpu=2, needs_nodes=[node_term(name="b"), node_term(name="c")], owner="ReplicaSet/b"),
        )
        return plan(here, Proposes([["A", "B"]], judge, targets={"A": {"b"}, "B": {"c"}}))

    # While B is there, A would go to c.
    assert why(swapped("ReplicaSet/a")) == {
        "A": "default/A: its scheduler would choose c, which may take no pods in, or is no better"
    }


def test_a_stateful_sets_pod_comes_when_the_one_before_is_gone() -> None:
    """The one before would keep its replacement off the whole zone."""
    zone = "topology.kubernetes.io/zone"
    fields: dict[str, Any] = {"cpu": 1, "labels": {"app": "db"}, "apart": [term("app=db", zone)]}

    def outcome(owner: str) -> ReschedulingPlan:
        moved = web("w", "a", owner=owner, **fields)
        here = given(node("a", zone="z1"), node("b", zone="z1"), node("c", zone="z2", cpu=2), moved)
        return plan(here, Proposes([["w"]], on("b")))

    assert moves(outcome("StatefulSet/db")) == {"w": "b"}
    assert why(outcome("ReplicaSet/db")) == {
        "w": "a replacement on c would not make it better, and the threshold is 0.5"
    }


def test_moves_that_do_not_hold_together_are_not_all_made() -> None:
    """The more important one would go to a once low has left. It comes while low is there, and takes the room on c."""
    here = given(
        node("a", cpu=4),
        node("b", cpu=8),
        node("c", cpu=4),
        web("low", "a", cpu=2, needs_nodes=[node_term(name="a"), node_term(name="c")]),
        web(
            "high",
            "b",
            cpu=3,
            priority=5,
            owner="ReplicaSet/x",
            needs_nodes=[node_term(name="b"), node_term(name="c"), node_term(name="a")],
        ),
    )

    def judge(picture: Picture) -> float:
        where = places(picture.cluster)
        return float(where.get("low") != "c") + float(where.get("high") == "b")

    made = plan(here, Proposes([["low"], ["high"]], judge))

    assert moves(made) == {"low": "c"}
    assert "once all moves are under way" in why(made)["high"]
    assert made.after == {"Proposes": 1.0}


def test_no_pod_is_moved_for_resources_held_by_terminating_evicted_pods() -> None:
    going = [web(f"old{each}", "a", cpu=1, terminating=True) for each in range(2)]
    here = given(node("a"), node("b"), *(web(f"w{each}", "a", cpu=1) for each in range(2)), *going)
    past = tuple(
        PastMove(
            "default", "ReplicaSet/web", "a", NOW - MINUTE, True, False, "b", here.cluster.placed[f"default/old{each}"]
        )
        for each in range(2)
    )

    with planned(here, Even(), past=past) as (made, _):
        assert moves(made) == {}
        assert made.before == {"Even": 0}
    assert moves(plan(here, Even())).keys() == {"w0", "w1"}


def test_pods_that_were_evicted_hold_their_room_until_they_are_gone() -> None:
    old = web("old", "b", cpu=8, terminating=True)
    here = given(node("a"), node("b"), node("c"), web("w", "a", cpu=1), web("x", "c", cpu=4), old)
    past = (PastMove("default", "ReplicaSet/web", "b", NOW - MINUTE, True, False),)

    made = plan(here, Proposes([["w"]], on("b"), targets={"w": {"b"}}), past=past)

    assert why(made) == {"w": "its scheduler would choose c, which may take no pods in, or is no better"}
