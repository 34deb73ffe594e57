"""The JSON Schemas that ship with Podium, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from podium.app.schemas.answers import COMMON, EXPLAIN, PLAN, SIMULATE
from podium.app.schemas.scenario import scenario_schema
from podium.app.schemas.tables import Schema, definitions, document, reference
from podium.sim.results.disruption_state import DisruptionState


def schema_named(name: str) -> Schema:
    """The schema of that name. Raises KeyError for one that there is not."""
    return SCHEMAS[name]()


def _explain() -> Schema:
    root = {"anyOf": [reference("Explanation"), reference("WorkloadExplanation"), reference("NodeAnswer")]}
    return document("What podium explain -o json answers", root, _answers(EXPLAIN))


def _simulate() -> Schema:
    return document("What podium simulate -o json answers", reference("Result"), _answers(SIMULATE))


def _plan() -> Schema:
    return document("What podium plan -o json answers", reference("PlanAnswer"), _answers(SIMULATE + PLAN))


def _answers(table: str) -> dict[str, Schema]:
    """The types of answers. They are open: a key that is added is no other version."""
    states: dict[str, Schema] = msgspec.json.schema(DisruptionState)["$defs"]
    return definitions(COMMON + table, is_closed=False) | states


SCHEMAS: Mapping[str, Callable[[], Schema]] = {
    "explain": _explain,
    "simulate": _simulate,
    "plan": _plan,
    "scenario": scenario_schema,
}
"""How each schema is made: of answers out of their tables, of scenarios out of the fields of Kubernetes' kinds too."""
