"""The text of a rescheduling plan."""

from __future__ import annotations

from podium.api.basis import Caveat
from podium.app.console.page import Page
from podium.app.rescheduling.offline import PlanReport, same_moves, write_plan
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.decide.rescheduling.round_robin import (
    ExcludedPods,
    PlannedMove,
    PlannedMoves,
    RejectedMove,
    ReschedulingPlan,
)
from podium.framework.rescheduling.policy import MonthlyCost
from podium.framework.rescheduling.settings import PolicySettings, ReschedulerSettings
from tests.builders import pending_in, pod
from tests.store.objects import HOUR

SETTINGS = ReschedulerSettings(policies=(PolicySettings("Spread", 2.0), PolicySettings("Repair")))


def record(name: str) -> PodRecord:
    return pending_in(Cluster(), pod(name))


def text(plan: ReschedulingPlan, *caveats: Caveat, cluster: str = "") -> str:
    page = Page()
    write_plan(page, PlanReport(plan, SETTINGS, 490_000 * HOUR, cluster, caveats))
    return page.text


def test_the_plan_lists_moves_with_reason_and_gain_then_pods_left_alone() -> None:
    sure, unsure = PlannedMove(record("a"), "n1", "n2"), PlannedMove(record("b"), "n1", "n3", is_sure=False)
    plan = ReschedulingPlan(
        (PlannedMoves("Spread", "n1 has three of web", (sure, unsure), 1.5),),
        (RejectedMove("Repair", "default/c", "no other node takes it"),),
        {"Spread": 3.0, "Repair": 0.25},
        {"Spread": 1.5, "Repair": 0.25},
        2,
        is_cut=False,
    )
    assert text(plan, Caveat("x", "one thing is not known", 0), cluster="prod") == (
        "In prod, 2 pods would be moved  (2025-11-24T16:00:00Z)\n"
        "\n"
        "Spread  improves the objective by 1.5\n"
        "  n1 has three of web\n"
        "    default/a  n1  -> n2\n"
        "    default/b  n1  -> n3  or to another node with the same score\n"
        "\n"
        "Objectives  0 is the best possible, 1 the cost of one badly placed pod\n"
        "  policy   now  then\n"
        "  Spread     3   1.5\n"
        "  Repair  0.25  0.25\n"
        "\n"
        "Left alone\n"
        "  default/c (Repair): no other node takes it\n"
        "\n"
        "Caveats\n"
        "  one thing is not known\n"
    )


def test_pods_left_alone_for_the_same_reason_share_a_line() -> None:
    left = [
        RejectedMove("Spread", f"default/p{number}", "no room" if number % 2 else "too young") for number in range(31)
    ]
    plan = ReschedulingPlan(
        (), tuple(left), {}, {}, 9, is_cut=True, stopped="5 moves are under way, and the limit is 5"
    )
    said = text(plan)
    assert "Nothing would be moved" in said
    assert "  default/p0, default/p2, default/p4 and 13 more (Spread): too young\n" in said
    assert "  default/p1, default/p3, default/p5 and 12 more (Spread): no room\n" in said
    assert "No other pods were examined: 5 moves are under way, and the limit is 5" in said
    assert "Planning stopped after 9 trials" in said


def test_reasons_beyond_the_first_are_counted() -> None:
    left = [RejectedMove("Spread", f"default/p{number}", f"reason {number}") for number in range(25)]
    said = text(ReschedulingPlan((), tuple(left), {}, {}, 25, is_cut=False))
    assert "default/p19 (Spread): reason 19\n" in said
    assert "reason 20" not in said
    assert "  5 more pods, for 5 other reasons\n" in said


def test_a_failed_policy_is_reported_with_control_characters_escaped() -> None:
    plan = ReschedulingPlan((), (), {}, {}, 0, is_cut=False, errors=("policy Spread failed: \x1b[31mno",))
    assert "policy Spread failed: \\x1b[31mno" in text(plan)


def test_a_move_without_target_states_that_landing_is_unchecked() -> None:
    plan = ReschedulingPlan(
        (PlannedMoves("Spread", "why", (PlannedMove(record("a"), "n1", None),), 1.0),), (), {}, {}, 1, is_cut=False
    )
    assert "default/a  leaves n1; its target is not planned" in text(plan)


def test_plans_say_the_same_where_moves_and_words_are_the_same() -> None:
    leaver = record("a")
    one = ReschedulingPlan(
        (PlannedMoves("Spread", "why", (PlannedMove(leaver, "n1", "n2"),), 1.0),),
        (),
        {"Spread": 3},
        {},
        1,
        is_cut=False,
    )
    other = ReschedulingPlan(
        (PlannedMoves("Spread", "why", (PlannedMove(leaver, "n1", "n2"),), 2.0),), (), {"Spread": 4}, {}, 5, is_cut=True
    )
    third = ReschedulingPlan(
        (PlannedMoves("Spread", "why", (PlannedMove(leaver, "n1", "n3"),), 1.0),),
        (),
        {"Spread": 3},
        {},
        1,
        is_cut=False,
    )
    assert same_moves(one, other)
    assert not same_moves(one, third)


def test_unmovable_pods_are_counted_by_reason() -> None:
    page = Page()
    untouched = ExcludedPods(
        1_016, (("it is younger than scope.minimumAge, 5m", 1_000), ("it is a static pod", 10)), others=4
    )
    write_plan(
        page,
        PlanReport(ReschedulingPlan((), (), {}, {}, 0, is_cut=False), SETTINGS, 490_000 * HOUR, untouched=untouched),
    )
    assert page.text == (
        "Nothing would be moved  (2025-11-24T16:00:00Z)\n"
        "\n"
        "May not be moved  1,014 of 1,016 pods\n"
        "  1,000  it is younger than scope.minimumAge, 5m\n"
        "     10  it is a static pod\n"
        "      4  for other reasons\n"
    )


def test_what_the_nodes_in_use_cost_is_said_with_what_has_no_price() -> None:
    costs = MonthlyCost(1460.0, 1), MonthlyCost(730.0, 1)

    said = text(ReschedulingPlan((), (), {}, {}, 0, is_cut=False, costs=costs))

    assert "1,460.00 a month now, 730.00 then: 730.00 less, once the free nodes are removed" in " ".join(said.split())
    assert "1 node in use without a price" in " ".join(said.split())
