"""Label and node selectors as written in objects (meta/v1 LabelSelector, core/v1 NodeSelector).

How they match is in `selectors`.
"""

from __future__ import annotations

from typing import Literal

from podium.api.meta import Int32, Narrow


class LabelSelectorRequirement(Narrow, frozen=True, kw_only=True):
    """One condition on a label: the key, the operator, and its values."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: tuple[str, ...] = ()


class LabelSelector(Narrow, frozen=True, kw_only=True):
    """All of the equalities and all of the requirements; the empty selector selects everything."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class NodeSelectorRequirement(Narrow, frozen=True, kw_only=True):
    """One condition on a node's label or field."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values: tuple[str, ...] = ()


class NodeSelectorTerm(Narrow, frozen=True, kw_only=True):
    """All conditions of a term must hold; a term with none matches no node."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(Narrow, frozen=True, kw_only=True):
    """Any of the terms must match."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredSchedulingTerm(Narrow, frozen=True, kw_only=True):
    """A node selector term that adds `weight` (1 to 100) to the score of the nodes it matches."""

    weight: Int32
    preference: NodeSelectorTerm


class TopologySelectorLabelRequirement(Narrow, frozen=True, kw_only=True):
    """A label key and the values that a storage class allows for it."""

    key: str
    values: tuple[str, ...] = ()


class TopologySelectorTerm(Narrow, frozen=True, kw_only=True):
    """All label requirements must hold (core/v1 TopologySelectorTerm)."""

    match_label_expressions: tuple[TopologySelectorLabelRequirement, ...] = ()
