"""How selectors match: labels, fields, and nodes.

The rules are those of apimachinery's labels and fields packages and of component-helpers' nodeaffinity.
Selectors have one canonical form: those with the same conditions are equal and hash equal, however written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from podium.api.requirement import Requirement, field_requirement_problem, requirement_problem
from podium.api.selection import LabelSelector, NodeSelector, NodeSelectorTerm
from podium.api.selector_text import field_requirements, label_requirements

__all__ = [
    "EVERYTHING",
    "NOTHING",
    "FieldSelector",
    "NodeTerm",
    "Requirement",
    "Selector",
    "compile_label_selector",
    "compile_node_selector",
    "compile_node_term",
    "node_selector_matches",
    "parse_field_selector",
    "parse_label_selector",
    "selector_from_labels",
]


def _canonical(requirements: tuple[Requirement, ...]) -> tuple[Requirement, ...]:
    return tuple(sorted(set(requirements)))


@dataclass(frozen=True, slots=True)
class Selector:
    """All requirements must hold; none at all holds for everything. Kept sorted, each requirement once."""

    requirements: tuple[Requirement, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "requirements", _canonical(self.requirements))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels meet all requirements."""
        return all(requirement.matches(labels.get(requirement.key)) for requirement in self.requirements)

    def __str__(self) -> str:
        """The selector as kubectl's -l takes it: "" for everything; `<nothing>` for what matches nothing."""
        return "<nothing>" if self == NOTHING else ",".join(map(str, self.requirements))


EVERYTHING = Selector()
NOTHING = Selector((Requirement("", "In"),))


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """Conditions on an object's fields, In or NotIn with one value each; an absent field counts as ""."""

    requirements: tuple[Requirement, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "requirements", _canonical(self.requirements))

    def matches(self, fields: Mapping[str, str]) -> bool:
        """Whether the fields, named as in `metadata.name`, meet all conditions."""
        return all(requirement.matches(fields.get(requirement.key, "")) for requirement in self.requirements)


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """One term of a node selector: conditions on a node's labels, and on its name; all must hold."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", _canonical(self.labels))
        object.__setattr__(self, "fields", _canonical(self.fields))

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """Whether a node of these labels and name meets the term; a term without conditions matches none."""
        if not self.labels and not self.fields:
            return False
        return all(label.matches(labels.get(label.key)) for label in self.labels) and all(
            field.matches(name) for field in self.fields
        )


def compile_label_selector(selector: LabelSelector | None) -> Selector:
    """The selector of an object: None selects nothing, the empty selector everything.

    An invalid selector, which no API server takes today but an older one may have stored, matches nothing, as
    eviction and preemption treat it.
    """
    if selector is None:
        return NOTHING
    requirements = [
        *(Requirement(key, "In", (value,)) for key, value in selector.match_labels.items()),
        *(
            Requirement(match_expression.key, match_expression.operator, match_expression.values)
            for match_expression in selector.match_expressions
        ),
    ]
    if any(
        requirement_problem(requirement.key, requirement.operator, requirement.values) for requirement in requirements
    ):
        return NOTHING
    return Selector(tuple(requirements))


def selector_from_labels(labels: Mapping[str, str]) -> Selector:
    """The selector of objects with all of these labels; no labels select all (labels.SelectorFromSet)."""
    return Selector(tuple(Requirement(key, "In", (value,)) for key, value in labels.items()))


def parse_label_selector(text: str) -> Selector:
    """The selector of a text such as `app=web,tier in (a,b),!canary,cores>4`; "" selects everything.

    Raises InputError, which quotes the text.
    """
    return Selector(label_requirements(text))


def parse_field_selector(text: str) -> FieldSelector:
    """The selector of a text such as `metadata.name=web,status.phase!=Running`; "" selects everything.

    Which fields there are is for the caller to say. Raises InputError, which quotes the text.
    """
    return FieldSelector(field_requirements(text))


def compile_node_term(term: NodeSelectorTerm) -> NodeTerm:
    """The term; one with an invalid condition matches no node, as nodeaffinity.go treats it."""
    labels = tuple(
        Requirement(match_expression.key, match_expression.operator, match_expression.values)
        for match_expression in term.match_expressions
    )
    fields = tuple(
        Requirement(match_field.key, match_field.operator, match_field.values) for match_field in term.match_fields
    )
    if any(requirement_problem(label.key, label.operator, label.values) for label in labels) or any(
        field_requirement_problem(field.key, field.operator, field.values) for field in fields
    ):
        return NodeTerm()
    return NodeTerm(labels, fields)


def compile_node_selector(selector: NodeSelector) -> tuple[NodeTerm, ...]:
    """The terms in their order, of which any must match a node; without terms no node matches."""
    return tuple(compile_node_term(term) for term in selector.node_selector_terms)


def node_selector_matches(terms: tuple[NodeTerm, ...], labels: Mapping[str, str], name: str) -> bool:
    """Whether any of the terms matches a node of these labels and this name."""
    return any(term.matches(labels, name) for term in terms)
