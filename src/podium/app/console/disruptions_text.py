"""How budgets, caps, quotas and avoid lists stand, for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from podium.app.console.cells import BUDGETS, NODES, PODS, QUOTAS, WORKLOADS, listed, told_once
from podium.app.console.page import Cell, Name, Page, Part, counted
from podium.sim.results.disruption_state import (
    AvoidState,
    BudgetState,
    CapState,
    DisruptionState,
    QuotaState,
    RateState,
)

_MOST_ROWS = 8
_MOST_NAMES = 3
_BUDGET_HEADINGS = ("budget", "healthy", "desired", "of", "allows", "rate left", "experienced")


def write_disruptions(page: Page, state: DisruptionState) -> None:
    """Write a table for each of them that there is; of many budgets those that allow least."""
    if state.budgets:
        _write_budgets(page, state.budgets)
    if state.caps:
        rows: list[list[Part]] = [[_cap_name(cap), *_rate_cells(cap.rate)] for cap in state.caps]
        _write(page, "Caps", "on what components may disrupt", rows)
    if state.quotas:
        quotas = [row for quota in state.quotas for row in _quota_rows(quota)]
        _write(page, "Quotas", counted(len(state.quotas), "quota"), quotas)
        for warning in state.warnings:
            page.paragraph(warning, indent=2, hanging=2)
    if state.avoid_lists:
        _write_avoid_lists(page, state.avoid_lists)


def _write_avoid_lists(page: Page, avoid_lists: Sequence[AvoidState]) -> None:
    avoided: list[list[Part]] = [
        [
            Name(avoid_list.node, NODES),
            Name(entry.controller, WORKLOADS),
            f"until {entry.until}" if entry.until else "",
            entry.reason,
        ]
        for avoid_list in avoid_lists
        for entry in avoid_list.entries
    ]
    if avoided:
        _write(page, "Avoid lists", "whose pods are to keep off which node", avoided)
    awaited: list[list[Part]] = [
        [
            Name(left.controller, WORKLOADS),
            Name(left.pod, PODS, before="for pod "),
            "goes first" if left.first else "",
            Name(left.node_name, NODES, before="tried on ") if left.node_name else "",
            f"until {left.until}",
        ]
        for avoid_list in avoid_lists
        for left in avoid_list.replacements
    ]
    if awaited:
        _write(page, "Replacements", "what evictions left for the pods that come instead", awaited)


def _write_budgets(page: Page, budgets: Sequence[BudgetState]) -> None:
    order = sorted(budgets, key=lambda state: (_allowed(state), state.budget))
    rows: list[list[Part]] = [[Cell(heading, "dim") for heading in _headings(budgets)]]
    rows += [_budget_row(state, budgets) for state in order[:_MOST_ROWS]]
    page.title("Budgets", counted(len(budgets), "budget"))
    page.columns(rows, indent=2, right=(1, 2, 3, 4))
    if len(order) > _MOST_ROWS:
        page.line(Cell(f"and {len(order) - _MOST_ROWS:,} more, which allow as much or more", "dim"), indent=2)
    problems = (
        (state.budget, problem)
        for state in order[:_MOST_ROWS]
        for problem in (state.rate.problem if state.rate is not None else None, state.note)
        if problem
    )
    for names, problem in told_once(problems):
        page.paragraph(f"{listed(names, _MOST_NAMES)}: {problem}", indent=2, hanging=2)


def _headings(budgets: Sequence[BudgetState]) -> Iterator[str]:
    yield from _BUDGET_HEADINGS[:5]
    if any(budget.rate is not None for budget in budgets):
        yield _BUDGET_HEADINGS[5]
    if any(budget.experienced is not None for budget in budgets):
        yield _BUDGET_HEADINGS[6]


def _budget_row(budget: BudgetState, all_of_them: Sequence[BudgetState]) -> list[Part]:
    numbers = [
        "?" if number is None else str(number)
        for number in (budget.healthy, budget.desired, budget.expected, budget.allowed)
    ]
    row: list[Part] = [Name(budget.budget, BUDGETS), *numbers]
    row[4] = Cell(numbers[3], "warn" if _allowed(budget) < 1 else "")
    if any(other.rate is not None for other in all_of_them):
        row.append("" if budget.rate is None else f"{budget.rate.left} of {budget.rate.max}")
    if budget.experienced is not None:
        found = [(budget.experienced.voluntary, "voluntary"), (budget.experienced.unplanned, "unplanned")]
        row.append(", ".join(f"{number} {word}" for number, word in found if number) or "none")
    return row


def _allowed(budget: BudgetState) -> int:
    """How many disruptions a budget and its rate allow; those of which nobody knows come last."""
    if budget.allowed is None:
        return 2**31
    return budget.allowed if budget.rate is None else min(budget.allowed, budget.rate.left)


def _cap_name(cap: CapState) -> str:
    """Whose cap it is: a component's or that of all, in the cluster, in a namespace or in each."""
    who = cap.component or "all components"
    if cap.per is None:
        return who
    return f"{who}, namespace {cap.namespace}" if cap.namespace else f"{who}, each namespace"


def _rate_cells(rate: RateState) -> list[Part]:
    left = f"{rate.left} left of {rate.max}"
    return [Cell(left, "warn" if not rate.left else ""), f"next at {rate.next}" if rate.next else ""]


def _quota_rows(quota: QuotaState) -> Iterator[list[Part]]:
    scope = quota.priority_scope or "any priority"
    classes = {"!PriorityClass": "no class", "PriorityClass": "any class"}.get(scope, scope)
    if quota.priority_classes is not None:
        classes = ", ".join(quota.priority_classes)
    name = Name(quota.quota, QUOTAS)
    for index, (resource, hard) in enumerate(quota.hard.items()):
        used = quota.used.get(resource, "0")
        yield [*((name, classes) if not index else ("", "")), resource, f"{used} of {hard} used"]


def _write(page: Page, title: str, rest: str, rows: list[list[Part]]) -> None:
    page.title(title, rest)
    page.columns(rows[:_MOST_ROWS], indent=2)
    if len(rows) > _MOST_ROWS:
        page.line(Cell(f"and {len(rows) - _MOST_ROWS:,} more", "dim"), indent=2)
