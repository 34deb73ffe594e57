"""The node that the replacement of a moved pod gets."""

from __future__ import annotations

from typing import Any

import pytest

from podium.cluster.cluster import Cluster
from podium.decide.rescheduling.guards import PastMove
from podium.decide.rescheduling.round_robin import ReschedulingPlan
from podium.framework.rescheduling.policy import Picture
from podium.framework.rescheduling.settings import Guidance, MoveCriteria, ReschedulingScope, Steering
from tests.builders import node, node_term, pending_in, pod, term, tolerate
from tests.decide.rescheduling.planning import (
    NOW,
    Given,
    KeepOff,
    Proposes,
    free_settings,
    given,
    moves,
    on,
    plan,
    web,
    why,
)

SCORES_ALONE = free_settings(steering=Steering.SCORES_ALONE)
SOFT_TAINT = free_settings(steering=Steering.SOFT_TAINT)


def off_a(here: Given, **settings: Any) -> ReschedulingPlan:
    """Return what becomes of pods that should leave node a."""
    return plan(here, KeepOff(("a",)), settings=free_settings(**settings))


# Eviction alone


def test_a_pod_goes_where_its_scheduler_sends_it() -> None:
    here = given(node("a"), node("b"), node("c"), web("w", "a", cpu=1), web("x", "b", cpu=4))

    assert moves(off_a(here)) == {"w": "c"}


def test_a_pod_that_fits_no_other_node_stays() -> None:
    here = given(node("a"), node("b", cpu="500m"), web("w", "a", cpu=1))

    assert why(off_a(here)) == {"w": "no other node takes it"}


def test_a_pod_that_would_have_to_preempt_stays() -> None:
    here = given(node("a"), node("b", cpu=1), web("w", "a", cpu=1, priority=100), web("x", "b", cpu=1, priority=0))

    assert why(off_a(here)) == {"w": "no other node takes it"}


def test_the_source_node_is_least_preferred_if_avoid_lists_are_honoured() -> None:
    here = given(node("a", cpu=64), node("b"), web("w", "a", cpu=1), web("x", "b", cpu=4))

    assert moves(off_a(here)) == {"w": "b"}


@pytest.mark.parametrize("steering", [Steering.SCORES_ALONE, Steering.AVOID_LIST])
def test_the_source_node_keeps_its_score_if_avoid_lists_are_not_honoured(steering: Steering) -> None:
    profile = {"plugins": {"multiPoint": {"disabled": ["NodePreferAvoidPods"]}}}
    better = [node("a", cpu=64), node("b"), web("w", "a", cpu=1), web("x", "b", cpu=4)]
    worse = [node("a"), node("b", cpu=64), web("w", "a", cpu=1), web("x", "a", cpu=4)]
    settings = free_settings(steering=steering)

    stays = plan(given(*better, profile=profile), Proposes([["w"]], on("b")), settings=settings)
    goes = plan(given(*worse, profile=profile), Proposes([["w"]], on("b")), settings=settings)

    assert why(stays) == {"w": "its scheduler rates no node higher than a, where it is"}
    assert moves(goes) == {"w": "b"}


def test_a_tie_with_the_source_node_is_no_reason_to_move() -> None:
    here = given(node("a"), node("b"), web("w", "a", cpu=1))

    made = plan(here, KeepOff(("a",)), settings=SCORES_ALONE)

    assert why(made) == {"w": "its scheduler rates no node higher than a, where it is"}


def test_a_pod_without_a_controller_is_on_no_avoid_list() -> None:
    here = given(node("a", cpu=64), node("b"), pod("w", on="a", cpu=1, ready=True), web("x", "b", cpu=4))

    made = off_a(here, scope=ReschedulingScope(allow=("PodsWithoutController",)))

    assert why(made) == {"w": "its scheduler rates no node higher than a, where it is"}


def test_a_soft_taint_is_weighed_by_the_schedulers_scores() -> None:
    near = given(node("a"), node("b"), web("w", "a", cpu=1))
    drawn = given(
        node("a", labels={"disk": "ssd"}),
        node("b"),
        web("w", "a", cpu=1, likes_nodes=[(100, node_term("disk=ssd"))], tolerations=[tolerate()]),
    )

    assert moves(plan(near, KeepOff(("a",)), settings=SOFT_TAINT)) == {"w": "b"}
    assert why(plan(drawn, KeepOff(("a",)), settings=SOFT_TAINT)) == {
        "w": "its scheduler rates no node higher than a, where it is"
    }


def test_a_soft_taint_is_gone_when_all_is_taken_back() -> None:
    here = given(node("a"), node("b"), web("w", "a", cpu=1))

    plan(here, KeepOff(("a",)), settings=SOFT_TAINT)

    assert here.cluster.nodes.node(here.cluster.nodes.row_of["a"]) == node("a")


def test_a_pod_that_the_scheduler_would_send_to_a_non_target_stays() -> None:
    here = given(node("a"), node("b"), node("c", taints=["team=x:PreferNoSchedule"]), web("w", "a", cpu=1))
    wants_c = Proposes([["w"]], on("c"), targets={"w": {"c"}})

    assert why(plan(here, wants_c)) == {"w": "its scheduler would choose b, which may take no pods in, or is no better"}


def test_a_pod_that_might_land_on_a_non_target_stays() -> None:
    here = given(node("a"), node("b"), node("c"), web("w", "a", cpu=1))
    wants_c = Proposes([["w"]], on("c"), targets={"w": {"c"}})

    assert why(plan(here, wants_c)) == {"w": "its scheduler might choose b, which may take no pods in, or is no better"}


def test_nodes_off_duty_are_no_targets_though_the_pod_tolerates_them() -> None:
    everything = [tolerate()]
    here = given(node("a"), node("b", taints=["ToBeDeletedByClusterAutoscaler=1:NoSchedule"]), web("w", "a", cpu=1))
    bold = given(
        node("a"),
        node("b", taints=["ToBeDeletedByClusterAutoscaler=1:NoSchedule"]),
        web("w", "a", cpu=1, tolerations=everything),
    )

    assert why(off_a(here)) == {"w": "no other node takes it"}
    assert why(off_a(bold)) == {"w": "its scheduler would choose b, which may take no pods in, or is no better"}


# Ties


def test_landing_uses_the_tied_node_with_the_smallest_gain() -> None:
    here = given(node("a"), node("b", zone="z1"), node("c", zone="z2"), web("w", "a", cpu=1))

    def judge(picture: Picture) -> float:
        return {"a": 1.0, "b": 0.4, "c": 0.0}[next(iter(picture.cluster.placed.values())).node_name]

    kept = plan(here, Proposes([["w"]], judge), settings=free_settings(threshold=0.7))
    made = plan(here, Proposes([["w"]], judge), settings=free_settings(threshold=0.5))

    assert why(kept) == {"w": "a replacement on b would make it better by 0.6, and the threshold is 0.7"}
    assert moves(made) == {"w": "b"}
    assert made.planned[0].gain == pytest.approx(0.6)
    assert made.planned[0].moves[0].is_sure


def test_landing_samples_many_different_nodes_and_marks_the_move_uncertain() -> None:
    different = [node(f"n{number:02}", labels={"rack": str(number)}) for number in range(17)]
    alike = [node(f"n{number:02}", zone="z") for number in range(17)]

    unsure = off_a(given(node("a"), *different, web("w", "a", cpu=1)))
    sure = off_a(given(node("a"), *alike, web("w", "a", cpu=1)))

    assert [move.is_sure for made in (unsure, sure) for group in made.planned for move in group.moves] == [False, True]


def test_nodes_are_not_alike_whose_pods_are_others() -> None:
    here = given(
        node("a"), node("b"), node("c"), web("w", "a", cpu=1), web("x", "b", cpu=1), web("y", "c", cpu=1, owner="Job/j")
    )

    def judge(picture: Picture) -> float:
        at = next(pod for pod in picture.cluster.placed.values() if pod.name == "w").node_name
        return {"a": 2.0, "b": 1.5, "c": 0.0}[at]

    assert moves(plan(here, Proposes([["w"]], judge))) == {"w": "b"}


# Schedulers that are not known


def test_a_pod_of_a_scheduler_that_is_not_known_stays_where_it_may_come_back() -> None:
    here = given(node("a"), node("b"), web("w", "a", cpu=1, scheduler="volcano"))

    assert why(off_a(here)) == {"w": "volcano may choose again a, where it is"}


def test_a_pod_of_a_scheduler_that_is_not_known_goes_where_no_kubelet_would_take_it_back() -> None:
    tainted = node("a", taints=["gone=x:NoExecute"])
    here = given(tainted, node("b"), node("c", cpu="500m"), web("w", "a", cpu=1, scheduler="volcano"))

    assert moves(off_a(here)) == {"w": "b"}


def test_landing_uses_the_admissible_node_with_the_smallest_gain() -> None:
    tainted = node("a", taints=["gone=x:NoExecute"])
    here = given(tainted, node("b"), node("c", cpu=64), web("w", "a", cpu=1, scheduler="volcano"))
    of_little_use = Proposes([["w"]], lambda picture: 1.0 if on("c")(picture) else 0.0)

    assert why(plan(here, of_little_use)) == {
        "w": "a replacement on b would not make it better, and the threshold is 0.5"
    }


# Hints and bindings


@pytest.mark.parametrize("guidance", [Guidance.HINT, Guidance.BIND])
def test_a_replacement_is_sent_where_its_policy_prefers_it(guidance: Guidance) -> None:
    here = given(node("a"), node("b"), node("c"), node("d"), web("w", "a", cpu=1), web("x", "c", cpu=4))
    policy = Proposes([["w"]], on("c", "x"), preferred={"a": 3, "c": 2, "b": 1})

    assert moves(plan(here, policy, settings=free_settings(guidance=guidance))) == {"w": "c"}


@pytest.mark.parametrize("guidance", [Guidance.HINT, Guidance.BIND])
def test_a_replacement_goes_to_the_next_best_node_if_the_preferred_one_does_not_take_it(guidance: Guidance) -> None:
    full = web("x", "c", cpu="7500m")
    here = given(node("a"), node("b"), node("c"), node("d"), web("w", "a", cpu=1), full)
    policy = Proposes([["w"]], on("b", "x"), preferred={"a": 3, "c": 2, "b": 1})

    assert moves(plan(here, policy, settings=free_settings(guidance=guidance))) == {"w": "b"}


@pytest.mark.parametrize("guidance", [Guidance.HINT, Guidance.BIND])
def test_without_a_preference_it_is_sent_where_its_scheduler_likes_it_best(guidance: Guidance) -> None:
    here = given(node("a"), node("b"), node("c"), node("d"), web("w", "a", cpu=1), web("x", "b", cpu=4))

    assert moves(off_a(here, guidance=guidance)) == {"w": "c"}


def test_an_avoiding_pod_has_no_target_without_a_fitting_better_node() -> None:
    here = given(node("a"), node("b", cpu="500m"), node("c", unschedulable=True), web("w", "a", cpu=1))
    picky = given(node("a"), node("b"), node("c"), web("w", "a", cpu=1))

    assert why(off_a(here, guidance=Guidance.BIND)) == {"w": "no other node takes it"}
    assert why(
        plan(picky, Proposes([["w"]], on("b"), targets={"w": set()}), settings=free_settings(guidance=Guidance.BIND))
    ) == {"w": "none of the nodes that take it may take pods in, or is better than where it is"}


def test_a_binding_sends_pods_of_schedulers_that_are_not_known_and_a_hint_does_not() -> None:
    here = given(node("a"), node("b"), web("w", "a", cpu=1, scheduler="volcano"))

    assert moves(off_a(here, guidance=Guidance.BIND)) == {"w": "b"}
    assert moves(off_a(here, guidance=Guidance.HINT)) == {}


# Blind


def test_blind_planning_moves_pods_without_a_target() -> None:
    here = given(node("a"), web("w", "a", cpu=1))

    assert moves(off_a(here, judgement=MoveCriteria.BLIND)) == {"w": None}


# Room


def nominated(name: str, on_node: str, **fields: Any) -> Any:
    return pod(name, nominated=on_node, owner="ReplicaSet/web", **fields)


def test_the_room_of_nominated_pods_is_kept() -> None:
    here = given(node("a"), node("b", cpu=1), web("w", "a", cpu=1), nominated("x", "b", cpu=1, priority=0))

    assert why(off_a(here)) == {"w": "no other node takes it"}


def in_flight(cluster: Cluster, target: str, **fields: Any) -> PastMove:
    waiting = pending_in(cluster, pod("x", owner="ReplicaSet/web", **fields))
    return PastMove("default", "ReplicaSet/web", "z", NOW, True, False, target, waiting)


def test_the_room_of_replacements_on_their_way_is_kept() -> None:
    here = given(node("a"), node("b", cpu=1), web("w", "a", cpu=1))

    kept = plan(here, KeepOff(("a",)), past=(in_flight(here.cluster, "b", cpu=1),))
    unknown = plan(here, KeepOff(("a",)), past=(in_flight(here.cluster, "gone", cpu=1),))

    assert why(kept) == {"w": "no other node takes it"}
    assert moves(unknown) == {"w": "b"}


def test_a_replacement_that_waits_is_expected_at_one_place_alone() -> None:
    here = given(node("a", cpu=1), node("b", cpu=1), node("c", cpu=1), web("w", "a", cpu=1))
    late = pod("late", cpu=1, owner="ReplicaSet/web")
    under_way = PastMove("default", "ReplicaSet/web", "z", NOW, True, False, "b", pending_in(here.cluster, late))

    made = plan(here, Proposes([["w"]], on("c"), targets={"w": {"c"}}), waiting=[late], past=(under_way,))

    assert moves(made) == {"w": "c"}


def test_the_room_of_an_unseen_replacement_is_reserved_while_its_predecessor_ends() -> None:
    here = given(node("a"), node("b", cpu=1), node("z"), web("w", "a", cpu=1), web("x", "z", cpu=1, terminating=True))
    going = here.cluster.placed["default/x"]
    only_b = Proposes([["w"]], on("b"), targets={"w": {"b"}})

    def outcome(**fields: Any) -> ReschedulingPlan:
        move = PastMove("default", "ReplicaSet/web", "z", NOW, True, False, **fields)
        return plan(here, only_b, past=(move,), settings=free_settings(guidance=Guidance.BIND))

    assert moves(outcome(target="b", waiting=going)) == {}
    assert moves(outcome()) == {"w": "b"}


def test_a_waiting_pod_of_equal_or_higher_priority_gets_the_room_that_is_left() -> None:
    here = given(
        node("a", cpu=2),
        node("b", cpu=1),
        node("c", cpu=2),
        web("x", "a", cpu=2),
        web("w", "b", cpu=1, needs_nodes=[node_term(name="a"), node_term(name="b")]),
    )
    into_a = Proposes([["w", "x"]], on("a", "c"), targets={"w": {"a"}})
    assert moves(plan(here, into_a)) == {"w": "a", "x": "c"}
    for priority in (0, 5):
        made = plan(here, into_a, waiting=[pod("large", cpu=2, priority=priority)])
        assert why(made) == {"w": "default/w: no other node takes it"}
    assert moves(plan(here, into_a, waiting=[pod("large", cpu=2, priority=-5)])) == {"w": "a", "x": "c"}


def test_pods_that_wait_are_not_there_yet_when_it_is_judged() -> None:
    here = given(node("a", cpu=1), node("b"), web("w", "a", cpu=1))
    seen: list[int] = []

    def judge(picture: Picture) -> float:
        seen.append(len(picture.cluster.placed))
        return on("b")(picture)

    made = plan(here, Proposes([["w"]], judge), waiting=[pod("large", cpu=1, needs_nodes=[node_term(name="a")])])

    assert moves(made) == {"w": "b"}
    assert set(seen) == {1}


# Pods together


def test_required_affinity_to_a_pod_that_stays_keeps_a_pod_where_it_is() -> None:
    here = given(
        node("a", zone="z1"),
        node("b", zone="z2"),
        web("w", "a", cpu=1, near=[term("app=db", "topology.kubernetes.io/zone")]),
        web("db", "a", labels={"app": "db"}, owner="StatefulSet/db"),
    )

    assert why(plan(here, Proposes([["w"]], on("b"))))["w"] == "no other node takes it"
