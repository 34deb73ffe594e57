"""What labels and selectors must be like (validation of meta/v1 and of core/v1's node selectors)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from podium.api.checks import MAX_VALUES, check, check_count
from podium.api.errors import InputError, field_path
from podium.api.names import label_key_problem, label_value_problem, subdomain_problem
from podium.api.requirement import field_requirement_problem, requirement_problem
from podium.api.selection import LabelSelector, NodeSelector, NodeSelectorTerm


def check_labels(labels: Mapping[str, str], path: str) -> None:
    """Keys and values of labels, and of equalities on them."""
    for key, value in labels.items():
        problem = label_key_problem(key) or label_value_problem(value)
        if problem is not None:
            raise InputError(problem, path=field_path(path, key))


def check_label_keys(keys: Iterable[str], path: str) -> None:
    """A list of label keys."""
    for index, key in enumerate(keys):
        check(label_key_problem(key), f"{path}[{index}]")


def check_topology_key(key: str, path: str) -> None:
    """A topology key is a label key, and never empty."""
    check(label_key_problem(key) if key else "is empty; write a node label's key", f"{path}.topologyKey")


def check_names(names: Iterable[str], path: str) -> None:
    """A list of names of objects."""
    for index, name in enumerate(names):
        check(subdomain_problem(name), f"{path}[{index}]")


def check_label_selector(selector: LabelSelector | None, path: str) -> None:
    """A selector of objects by their labels."""
    if selector is None:
        return
    check_labels(selector.match_labels, f"{path}.matchLabels")
    check_count(selector.match_expressions, f"{path}.matchExpressions")
    for index, one in enumerate(selector.match_expressions):
        place = f"{path}.matchExpressions[{index}]"
        check_count(one.values, f"{place}.values", MAX_VALUES)
        _check_requirement(requirement_problem(one.key, one.operator, one.values), place)


def check_node_selector(selector: NodeSelector, path: str) -> None:
    """A selector of nodes: at least one term."""
    place = f"{path}.nodeSelectorTerms"
    if not selector.node_selector_terms:
        raise InputError("is empty, so that no node can match; write at least one term", path=place)
    check_count(selector.node_selector_terms, place)
    for index, term in enumerate(selector.node_selector_terms):
        check_node_selector_term(term, f"{place}[{index}]")


def check_node_selector_term(term: NodeSelectorTerm, path: str) -> None:
    """The conditions of a term on labels, and on the name."""
    check_count(term.match_expressions, f"{path}.matchExpressions")
    for index, one in enumerate(term.match_expressions):
        place = f"{path}.matchExpressions[{index}]"
        check_count(one.values, f"{place}.values", MAX_VALUES)
        _check_requirement(requirement_problem(one.key, one.operator, one.values), place)
    check_count(term.match_fields, f"{path}.matchFields")
    for index, one in enumerate(term.match_fields):
        place = f"{path}.matchFields[{index}]"
        _check_requirement(field_requirement_problem(one.key, one.operator, one.values), place)


def _check_requirement(problem: tuple[str, str] | None, path: str) -> None:
    if problem is not None:
        field, text = problem
        raise InputError(text, path=f"{path}.{field}")
