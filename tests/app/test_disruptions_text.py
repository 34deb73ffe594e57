"""The text of budgets, caps, quotas and avoid lists."""

from podium.app.console.disruptions_text import write_disruptions
from podium.app.console.page import Page
from podium.sim.results.disruption_state import (
    Avoided,
    AvoidState,
    BudgetState,
    CapState,
    DisruptionState,
    DownPods,
    ExperiencedDisruptions,
    QuotaState,
    RateState,
    ReplacementHintState,
)

DOWN = DownPods(voluntary=0, unplanned=0, starting=0)


def budget(name: str, allowed: int | None, **rest: object) -> BudgetState:
    known = {"healthy": 3, "desired": 2, "expected": 3} if allowed is not None else {}
    return BudgetState(budget=f"shop/{name}", allowed=allowed, down=DOWN, **known, **rest)  # type: ignore[arg-type]


def shown(state: DisruptionState) -> list[str]:
    page = Page()
    write_disruptions(page, state)
    return page.text.splitlines()[1:]


def test_budgets_are_ordered_by_allowed_disruptions_with_unknown_ones_last() -> None:
    state = DisruptionState(budgets=(budget("a", None), budget("b", 3), budget("c", 0), budget("d", 1)))

    assert [line.split()[0] for line in shown(state)[2:]] == ["shop/c", "shop/d", "shop/b", "shop/a"]
    assert shown(state)[-1].split() == ["shop/a", "?", "?", "?", "?"]


def test_a_rate_that_is_used_up_counts_as_little_as_a_budget() -> None:
    rate = RateState(max="2/1h", used=2, left=0)

    lines = shown(DisruptionState(budgets=(budget("a", 1), budget("b", 5, rate=rate))))

    assert lines[1].split() == ["budget", "healthy", "desired", "of", "allows", "rate", "left"]
    assert lines[2].split() == ["shop/b", "3", "2", "3", "5", "0", "of", "2/1h"]


def test_disruptions_tell_the_history_of_pods_when_it_was_recorded() -> None:
    seen = ExperiencedDisruptions(voluntary=2, unplanned=1, period="1h", voluntary_in_period=0, unplanned_in_period=0)

    assert shown(DisruptionState(budgets=(budget("a", 1, experienced=seen),)))[-1].endswith("2 voluntary, 1 unplanned")


def test_a_long_list_of_budgets_ends_with_a_count() -> None:
    state = DisruptionState(budgets=tuple(budget(f"b{number}", number) for number in range(30)))

    assert shown(state)[-1] == "  and 22 more, which allow as much or more"


def test_an_unreadable_rate_is_reported() -> None:
    broken = RateState(max="", used=0, left=0, problem="often is not a rate")

    assert "  shop/a: often is not a rate" in shown(DisruptionState(budgets=(budget("a", 1, rate=broken),)))


def test_caps_quotas_and_avoid_lists_have_a_part_each() -> None:
    state = DisruptionState(
        caps=(CapState(component="drain", rate=RateState(max="2/10m", used=2, left=0, next="2026-01-01T00:16:00Z")),),
        quotas=(
            QuotaState(
                quota="shop/high", priority_classes=("high",), hard={"cpu": "4", "pods": "2"}, used={"pods": "1"}
            ),
        ),
        avoid_lists=(AvoidState(node="n1", entries=(Avoided(controller="ReplicaSet web", until="noon"),)),),
    )

    assert shown(state) == [
        "Caps  limits on disruptions by components",
        "  drain  0 left of 2/10m  next at 2026-01-01T00:16:00Z",
        "",
        "Quotas  1 quota",
        "  shop/high  high  cpu   0 of 4 used",
        "                   pods  1 of 2 used",
        "",
        "Avoid lists  workloads whose pods avoid a node",
        "  n1  ReplicaSet web  until noon",
    ]


def test_disruptions_show_replacement_hints_in_their_own_section() -> None:
    since, until = "2026-01-01T00:00:00Z", "2026-01-01T00:10:30Z"
    left = [
        ReplacementHintState(
            pod="web-1", controller="ReplicaSet web", first=True, node_name="n7", since=since, until=until
        ),
        ReplacementHintState(pod="db-0", controller="StatefulSet db", node_name="n8", since=since, until=until),
    ]

    assert shown(DisruptionState(avoid_lists=(AvoidState(node="n1", entries=(), replacements=tuple(left)),))) == [
        "Replacements  hints of evictions for the pods that replace the evicted ones",
        "  ReplicaSet web  for pod web-1  goes first  tried on n7  until 2026-01-01T00:10:30Z",
        "  StatefulSet db  for pod db-0               tried on n8  until 2026-01-01T00:10:30Z",
    ]


def test_disruptions_report_budget_conditions_and_quota_problems() -> None:
    noted = BudgetState(budget="default/web", allowed=1, down=DOWN, note="the budget is stricter than it may be")
    quota = QuotaState(quota="shop/critical", priority_classes=("critical",), hard={"pods": "9"}, used={})

    found = shown(DisruptionState(budgets=(noted,), quotas=(quota,), warnings=("the quotas promise too much",)))

    assert "  default/web: the budget is stricter than it may be" in found
    assert "  the quotas promise too much" in found


def test_nothing_is_shown_of_what_there_is_not() -> None:
    assert shown(DisruptionState()) == []
