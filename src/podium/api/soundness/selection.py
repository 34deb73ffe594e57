"""How large selectors may be, so that no object stalls scheduling.

What one that is no selector selects is settled where selectors are compiled: nothing.
"""

from __future__ import annotations

from podium.api.checks import MAX_VALUES, check_count
from podium.api.selection import LabelSelector, NodeSelector, NodeSelectorTerm


def check_label_selector(selector: LabelSelector | None, path: str) -> None:
    """A selector of objects by their labels."""
    if selector is None:
        return
    check_count(selector.match_expressions, f"{path}.matchExpressions")
    for index, requirement in enumerate(selector.match_expressions):
        check_count(requirement.values, f"{path}.matchExpressions[{index}].values", MAX_VALUES)


def check_node_selector(selector: NodeSelector, path: str) -> None:
    """A selector of nodes."""
    place = f"{path}.nodeSelectorTerms"
    check_count(selector.node_selector_terms, place)
    for index, term in enumerate(selector.node_selector_terms):
        check_node_selector_term(term, f"{place}[{index}]")


def check_node_selector_term(term: NodeSelectorTerm, path: str) -> None:
    """The conditions of a term on labels, and on the name."""
    for field, conditions in (("matchExpressions", term.match_expressions), ("matchFields", term.match_fields)):
        check_count(conditions, f"{path}.{field}")
        for index, condition in enumerate(conditions):
            check_count(condition.values, f"{path}.{field}[{index}].values", MAX_VALUES)
