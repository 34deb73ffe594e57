"""The state of budgets, caps, quotas and avoid lists as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from podium.app.console.cells import BUDGETS, NODES, PODS, QUOTAS, WORKLOADS, grouped_by_text, listed
from podium.app.console.page import Cell, Name, Page, Part, counted
from podium.sim.results import disruption_state

_MOST_ROWS = 8
_MOST_NAMES = 3


def write_disruptions(page: Page, state: disruption_state.DisruptionState) -> None:
    """Write a table of each kind; of many budgets, those that allow the fewest disruptions."""
    if state.budgets:
        _write_budgets(page, state.budgets)
    if state.caps:
        page.title("Caps", "limits on disruptions by components")
        caps = []
        for cap in state.caps:
            component = cap.component or "all components"
            if cap.per is not None:
                component += f", namespace {cap.namespace}" if cap.namespace else ", each namespace"
            left = Cell(f"{cap.rate.left} left of {cap.rate.max}", "warn" if not cap.rate.left else "")
            caps.append((component, left, f"next at {cap.rate.next}" if cap.rate.next else ""))
        page.table(caps, most=_MOST_ROWS)
    if state.quotas:
        page.title("Quotas", counted(len(state.quotas), "quota"))
        page.table([row for quota in state.quotas for row in _quota_rows(quota)], most=_MOST_ROWS)
        for warning in state.warnings:
            page.paragraph(warning, indent=2, hanging=2)
    if state.avoid_lists:
        _write_avoid_lists(page, state.avoid_lists)


def _write_avoid_lists(page: Page, avoid_lists: Sequence[disruption_state.AvoidState]) -> None:
    avoided = [
        (
            Name(avoid_list.node, NODES),
            Name(entry.controller, WORKLOADS),
            f"until {entry.until}" if entry.until else "",
            entry.reason,
        )
        for avoid_list in avoid_lists
        for entry in avoid_list.entries
    ]
    if avoided:
        page.title("Avoid lists", "workloads whose pods avoid a node")
        page.table(avoided, most=_MOST_ROWS)
    awaited = [
        (
            Name(left.controller, WORKLOADS),
            Name(left.pod, PODS, before="for pod "),
            "goes first" if left.first else "",
            Name(left.node_name, NODES, before="tried on ") if left.node_name else "",
            f"until {left.until}",
        )
        for avoid_list in avoid_lists
        for left in avoid_list.replacements
    ]
    if awaited:
        page.title("Replacements", "hints of evictions for the pods that replace the evicted ones")
        page.table(awaited, most=_MOST_ROWS)


def _write_budgets(page: Page, budgets: Sequence[disruption_state.BudgetState]) -> None:
    order = sorted(budgets, key=lambda state: (_allowed(state), state.budget))[:_MOST_ROWS]
    has_rates = any(budget.rate is not None for budget in budgets)
    has_experienced = any(budget.experienced is not None for budget in budgets)
    rows: list[list[Part]] = []
    for budget in order:
        numbers = (budget.healthy, budget.desired, budget.expected, budget.allowed)
        *known, allowed = ("?" if number is None else str(number) for number in numbers)
        row: list[Part] = [Name(budget.budget, BUDGETS), *known, Cell(allowed, "warn" if _allowed(budget) < 1 else "")]
        if has_rates:
            row.append("" if budget.rate is None else f"{budget.rate.left} of {budget.rate.max}")
        if budget.experienced is not None:
            found = [(budget.experienced.voluntary, "voluntary"), (budget.experienced.unplanned, "unplanned")]
            row.append(", ".join(f"{number} {word}" for number, word in found if number) or "none")
        rows.append(row)
    headings = ["budget", "healthy", "desired", "of", "allows"]
    headings += ["rate left"] * has_rates + ["experienced"] * has_experienced
    page.title("Budgets", counted(len(budgets), "budget"))
    page.table(rows, headings, right=(1, 2, 3, 4))
    if len(budgets) > len(order):
        page.line(Cell(f"and {len(budgets) - len(order):,} more, which allow as much or more", "dim"), indent=2)
    problems = (
        (state.budget, problem)
        for state in order
        for problem in (state.rate.problem if state.rate is not None else None, state.note)
        if problem
    )
    for names, problem in grouped_by_text(problems):
        page.paragraph(f"{listed(names, _MOST_NAMES)}: {problem}", indent=2, hanging=2)


def _allowed(budget: disruption_state.BudgetState) -> int:
    """Return how many disruptions a budget and its rate allow, as a sort key; unknown numbers come last."""
    if budget.allowed is None:
        return 2**31
    return budget.allowed if budget.rate is None else min(budget.allowed, budget.rate.left)


def _quota_rows(quota: disruption_state.QuotaState) -> Iterator[list[Part]]:
    scope = quota.priority_scope or "any priority"
    classes = {"!PriorityClass": "no class", "PriorityClass": "any class"}.get(scope, scope)
    if quota.priority_classes is not None:
        classes = ", ".join(quota.priority_classes)
    name = Name(quota.quota, QUOTAS)
    for index, (resource, hard) in enumerate(quota.hard.items()):
        used = quota.used.get(resource, "0")
        yield [*((name, classes) if not index else ("", "")), resource, f"{used} of {hard} used"]
