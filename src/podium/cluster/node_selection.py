"""Which rows a node selector matches: each condition is decided once a label value, then looked up for every row."""

from __future__ import annotations

import numpy as np

from podium.api.selectors import NodeTerm, Requirement
from podium.cluster.arrays import Bools
from podium.cluster.nodes import NAME_FIELD
from podium.cluster.view import View


def matching_rows(view: View, terms: tuple[NodeTerm, ...]) -> Bools:
    """``[n]``: where any of the terms matches."""
    matches = np.zeros(len(view), dtype=np.bool_)
    for term in terms:
        matches |= matching_term(view, term)
    return matches


def matching_term(view: View, term: NodeTerm) -> Bools:
    """``[n]``: where every condition of the term holds; nowhere for a term without conditions."""
    if not term.labels and not term.fields:
        return np.zeros(len(view), dtype=np.bool_)
    matches = np.ones(len(view), dtype=np.bool_)
    for requirement in term.labels:
        matches &= _holds(view, requirement.key, requirement)
    for requirement in term.fields:
        matches &= _holds(view, NAME_FIELD, requirement)
    return matches


def _holds(view: View, label: str, requirement: Requirement) -> Bools:
    column = view.cluster.nodes.labels(label)
    if requirement.operator in ("In", "NotIn"):
        # Names have as many values as there are nodes: look up the few that are wanted.
        table = np.zeros(len(column.values), dtype=np.bool_)
        table[[column.find(value) for value in requirement.values]] = True
        table[0] = False
        if requirement.operator == "NotIn":
            table = ~table
    else:
        answers = (requirement.matches(value) for value in column.values)
        table = np.fromiter(answers, dtype=np.bool_, count=len(column.values))
    held: Bools = table[view.codes(label)]
    return held
