"""docs/rescheduler.md documents every setting, policy and argument, with its default."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from podium.api.input.codec import read_input
from podium.api.node import MAINTENANCE_TIME
from podium.api.times import format_duration, parse_duration
from podium.app.rescheduling.live_rescheduler import ReschedulerMetrics
from podium.app.rescheduling.offline import PlanSettings, plan_once
from podium.decide.evictions import CHECKPOINT_INTERVAL, CHECKPOINT_TIME, WORK_IN_PROGRESS
from podium.decide.rescheduling.guards import LEAVE_ALONE, PREFER_NO_EVICTION
from podium.framework.rescheduling.configuration import default_rescheduler, load_rescheduler
from podium.framework.rescheduling.descheduler import COUNTERPARTS, WITHOUT
from podium.framework.rescheduling.settings import (
    DEFAULT_POLICIES,
    SETTINGS_OF,
    Aggressiveness,
    Allowance,
    ReschedulerSettings,
    ReschedulingScope,
    Sparing,
    Written,
)
from podium.framework.settings.configuration import default_configuration, load_configuration
from podium.plugins.rescheduling.registry import IN_TREE
from tests.docs.blocks import ROOT
from tests.docs.test_reference import arguments_listed, rows_of, text_of, words_in

DOCUMENT = "docs/rescheduler.md"
_SELECTORS = {"podSelector", "nodeSelector"}


def fields_of(type_: Any, path: str = "") -> Iterator[str]:
    """Yield the paths of all settings."""
    for field in msgspec.inspect.type_info(type_).fields:  # type: ignore[attr-defined]
        inner = field.type
        if isinstance(inner, msgspec.inspect.UnionType):
            inner = next(each for each in inner.types if not isinstance(each, msgspec.inspect.NoneType))
        is_list = isinstance(inner, msgspec.inspect.VarTupleType)
        inner = inner.item_type if is_list else inner
        here = f"{path}{field.encode_name}"
        if isinstance(inner, msgspec.inspect.StructType) and field.encode_name not in _SELECTORS:
            yield from fields_of(inner.cls, f"{here}[]." if is_list else f"{here}.")
        else:
            yield here


def tables() -> list[list[str]]:
    """Return the rows of all tables of the part about configuration."""
    _, _, rest = (ROOT / DOCUMENT).read_text().partition("\n## Configuration\n")
    part = rest.partition("\n## ")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines() if line[:2] == "| "]


def test_every_setting_is_listed() -> None:
    listed = {word for row in tables() for word in words_in([row[0]])} | {"aggressiveness"}
    assert set(fields_of(Written)) - listed == set()


def numbers(settings: ReschedulerSettings) -> dict[str, str]:
    """Return what a word stands for, as it is written in the document."""
    found = {
        "threshold": f"{settings.threshold:g}",
        "interval": format_duration(settings.interval_ns),
        "maxTrials": str(settings.max_trials),
        "budgets.reserve": str(settings.budget_reserve),
        "budgets.reserveShare": f"{settings.budget_reserve_share:g}",
    }
    for name, limits in (
        ("inFlight", settings.in_flight),
        ("hourly", settings.hourly),
        ("withoutBudget", settings.without_budget),
    ):
        for kind in ("total", "node", "namespace", "owner"):
            limit = getattr(limits, kind)
            found[f"limits.{name}.{kind}"] = "Unlimited" if limit is None else str(limit)
    return found


@pytest.mark.parametrize("word", Aggressiveness)
def test_the_numbers_of_each_word_are_right(word: Aggressiveness) -> None:
    column = 2 + list(Aggressiveness).index(word)
    listed = {next(iter(words_in([row[0]]))): row[column] for row in tables() if len(row) == 5 and row[0] != "field"}
    assert listed == numbers(SETTINGS_OF[word])


def test_the_other_defaults_are_right() -> None:
    listed = {row[0].strip("`"): row[2].strip("`") for row in tables() if len(row) == 3}
    settings, scope = default_rescheduler().settings, ReschedulingScope()
    assert listed["guidance"] == settings.guidance.value
    assert listed["steering"] == settings.steering.value
    assert listed["judgement"] == settings.judgement.value
    for name, given_ns in (
        ("moveTimeout", settings.move_timeout_ns),
        ("coolDown", settings.cool_down_ns),
        ("scope.minimumAge", scope.minimum_age_ns),
        ("scope.maxLostWork", scope.max_lost_work_ns),
    ):
        assert parse_duration(listed[name]) == given_ns, name
    assert listed["scope.minimumReplicas"] == str(scope.minimum_replicas)


def test_every_word_of_the_scope_is_documented() -> None:
    report = text_of(DOCUMENT)
    assert [word for word in (*get_args(Allowance), *get_args(Sparing)) if f"`{word}`" not in report] == []


def test_every_annotation_that_protects_pods_is_documented() -> None:
    report = text_of(DOCUMENT)
    names = (*LEAVE_ALONE, PREFER_NO_EVICTION, WORK_IN_PROGRESS, CHECKPOINT_TIME, CHECKPOINT_INTERVAL, MAINTENANCE_TIME)
    assert [name for name in names if f"`{name}" not in report] == []


def test_every_policy_is_listed_the_usual_ones_first() -> None:
    listed = [row[0].strip("`") for row in rows_of(DOCUMENT, "Policies")]
    assert listed[: len(DEFAULT_POLICIES)] == list(DEFAULT_POLICIES)
    assert set(IN_TREE) <= set(listed)


def test_the_page_on_policies_lists_every_argument_of_every_policy() -> None:
    arguments = {}
    for name, factory in IN_TREE.items():
        struct = getattr(sys.modules[factory.__module__], f"{name}Args", None)
        if struct is not None and struct.__struct_fields__:
            arguments[name] = {field.encode_name for field in msgspec.structs.fields(struct)}
    listed = {name: set(arguments_listed("docs/rescheduling-policies.md", name)) for name in arguments}
    assert len(arguments) >= 8
    assert listed == arguments


def test_every_plugin_of_the_descheduler_is_listed() -> None:
    listed = {word for row in rows_of(DOCUMENT, "Descheduler policies") for word in words_in([row[0]])}
    assert {*COUNTERPARTS, *WITHOUT, "DefaultEvictor"} == listed


def test_every_metric_is_listed() -> None:
    report = text_of(DOCUMENT)
    names = {family.name for family in ReschedulerMetrics().registry.collect()}
    assert [name for name in names if name.startswith("podium_") and f"`{name}" not in report] == []


def test_the_policy_of_the_tutorial_moves_pods_where_the_scheduler_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = ROOT / "examples/plugins"
    monkeypatch.syspath_prepend(str(folder))
    rescheduling = load_rescheduler(str(folder / "costly-nodes-rescheduler.yaml"))
    read = read_input([str(folder / "costly-nodes-cluster.yaml")])
    agreeing = load_configuration(str(folder / "cheapest-scheduler.yaml"))

    assert not plan_once(read, PlanSettings(rescheduling, default_configuration())).moves
    (move,) = plan_once(read, PlanSettings(rescheduling, agreeing)).moves
    assert (move.pod.name, move.source, move.target) == ("web-1", "cloud", "own")


def test_the_configuration_that_is_shown_is_right() -> None:
    settings = load_rescheduler(str(Path(ROOT / "examples/rescheduler/rescheduler.yaml"))).settings
    assert settings.in_flight.total == 10
    assert [policy.name for policy in settings.policies] == [
        "RepairViolations",
        "MoveToUnderusedNodes",
        "SatisfyPreferences",
    ]
