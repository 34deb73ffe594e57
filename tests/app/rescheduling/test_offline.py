"""Moves for a cluster read from files."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from podium.api.errors import InputError
from podium.app.rescheduling import certificates, offline
from podium.app.rescheduling.offline import PlanReport, PlanSettings, plan_once
from podium.decide.rescheduling.round_robin import ExcludedPods
from podium.framework.rescheduling.configuration import read_rescheduler
from podium.framework.settings.configuration import Configuration, default_configuration, read_configuration
from tests.app.rescheduling.clusters import CONFIGURATION, read, scaled_up, web
from tests.store.objects import Raw, node

POLICY = {"policies": [{"name": "MoveToUnderusedNodes"}]}


def report(folder: Path, *objects: Raw, configuration: Configuration | None = None, **fields: Any) -> PlanReport:
    rescheduling = read_rescheduler({**CONFIGURATION, **POLICY, **fields}, "rescheduler.yaml")
    return plan_once(read(folder, *objects), PlanSettings(rescheduling, configuration or default_configuration()))


def test_the_plan_states_pod_source_target_and_gain_of_each_move(tmp_path: Path) -> None:
    found = report(tmp_path, *scaled_up()).to_dict()

    (planned,) = found["planned"]
    assert planned["policy"] == "MoveToUnderusedNodes"
    assert planned["gain"] > 0
    (move,) = planned["moves"]
    assert (move["pod"], move["controller"], move["from"], move["to"]) == (
        "default/web-0",
        "ReplicaSet web",
        "old-1",
        "new-1",
    )
    (objective,) = found["objectives"]
    assert objective["before"] - objective["after"] == pytest.approx(planned["gain"])


def test_pods_that_do_not_say_since_when_they_run_are_not_taken_for_young(tmp_path: Path) -> None:
    assert report(tmp_path, *scaled_up(), scope={"minimumAge": "23h"}).moves
    assert not report(tmp_path, *scaled_up(), scope={"minimumAge": "25h"}).moves


def test_a_budget_without_a_status_is_reckoned_from_the_pods_and_its_reserve_is_kept(tmp_path: Path) -> None:
    args = {"thresholds": {"cpu": 30}, "targetThresholds": {"cpu": 50}}
    limits: dict[str, Any] = {
        "limits": {"inFlight": {"owner": 9, "node": 9, "namespace": 9, "total": 9}},
        "policies": [{"name": "MoveToUnderusedNodes", "args": args}],
    }
    assert len(report(tmp_path, *scaled_up(), **limits, budgets={"reserve": 0, "reserveShare": 0}).moves) == 2
    assert len(report(tmp_path, *scaled_up(), **limits, budgets={"reserve": 2, "reserveShare": 0}).moves) == 1
    none = report(tmp_path, *scaled_up(), **limits, budgets={"reserve": 3})
    assert not none.moves
    assert "allows 3, of which 3 are left to others" in none.plan.left_alone[0].why


def test_a_configuration_that_is_paused_is_shown_what_it_would_do(tmp_path: Path) -> None:
    assert report(tmp_path, *scaled_up(), paused=True).moves


def test_a_caveat_states_whether_avoid_lists_are_honoured(tmp_path: Path) -> None:
    about = [caveat.about for caveat in report(tmp_path, *scaled_up()).caveats]
    assert "avoid-lists" in about
    rescheduling = read_rescheduler({**CONFIGURATION, **POLICY}, "")
    question = PlanSettings(rescheduling, default_configuration(), honors_avoid_lists=True)
    heeded = plan_once(read(tmp_path, *scaled_up()), question)
    assert "avoid-lists" not in [caveat.about for caveat in heeded.caveats]
    assert heeded.moves


def test_schedulers_of_a_podium_cluster_honour_avoid_lists(tmp_path: Path) -> None:
    def about(version: str) -> list[str]:
        snapshot = {
            "apiVersion": "podium.dev/v1alpha1",
            "kind": "Snapshot",
            "metadata": {"name": "s"},
            "format": 1,
            "serverVersion": version,
        }
        return [caveat.about for caveat in report(tmp_path, *scaled_up(), snapshot).caveats]

    assert "avoid-lists" not in about("v1.36.2+podium.0.1.0")
    assert "avoid-lists" in about("v1.36.2")


def test_a_pod_that_would_return_is_moved_only_if_avoid_lists_are_honoured(
    tmp_path: Path,
) -> None:
    """A scheduler that fills nodes takes the full one again, unless something keeps it off."""
    packing = read_configuration(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [
                {
                    "pluginConfig": [
                        {
                            "name": "NodeResourcesFit",
                            "args": {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu"}]}},
                        }
                    ]
                }
            ],
        },
        "",
    )
    objects = [node("old-1", cpu=4), node("new-1", cpu=4), *(web(number, "old-1") for number in range(4))]
    rescheduling = read_rescheduler({**CONFIGURATION, **POLICY}, "")

    found = {
        heeds: plan_once(read(tmp_path, *objects), PlanSettings(rescheduling, packing, heeds))
        for heeds in (False, True)
    }

    assert not found[False].moves
    assert "its scheduler rates no node higher than old-1, where it is" in found[False].plan.left_alone[0].why
    assert [move.target for move in found[True].moves] == ["new-1"]


def test_pods_of_other_schedulers_are_named(tmp_path: Path) -> None:
    objects = [node("n1", cpu=4), web(1, "n1", schedulerName="theirs")]
    caveats = report(tmp_path, *objects).caveats
    assert any('"theirs"' in caveat.message for caveat in caveats)


def test_an_empty_cluster_has_nothing_to_move(tmp_path: Path) -> None:
    assert not report(tmp_path, node("n1")).moves


def test_a_missing_policy_is_reported_with_its_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"rescheduler\.yaml, policy Nobodys, \.name: there is no policy"):
        report(tmp_path, *scaled_up(), policies=[{"name": "Nobodys"}])


def test_a_configuration_with_extenders_is_refused_unless_they_are_to_be_ignored(tmp_path: Path) -> None:
    raw = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "extenders": [{"urlPrefix": "http://127.0.0.1:1", "filterVerb": "filter"}],
    }
    configuration = read_configuration(raw, "scheduler.yaml")
    with pytest.raises(InputError, match="--ignore-extenders"):
        report(tmp_path, *scaled_up(), configuration=configuration)
    question = PlanSettings(read_rescheduler({**CONFIGURATION, **POLICY}, ""), configuration, ignores_extenders=True)
    assert "extenders-ignored" in [each.about for each in plan_once(read(tmp_path, *scaled_up()), question).caveats]


def test_a_plan_without_movable_pods_counts_those_kept_with_reasons(tmp_path: Path) -> None:
    objects = [
        node("old-1", cpu=8),
        node("old-2", cpu=8),
        *(web(number, f"old-{number % 2 + 1}") for number in range(5)),
    ]
    young = report(tmp_path, *objects, scope={"minimumAge": "25h"})

    assert young.to_dict()["untouched"] == {
        "pods": 5,
        "of": 5,
        "reasons": [{"why": "it is younger than scope.minimumAge, 25h", "pods": 5}],
        "others": 0,
    }
    assert report(tmp_path, *objects).untouched == ExcludedPods(of=5)


def test_pods_of_several_nodes_that_are_out_of_order_are_counted_together(tmp_path: Path) -> None:
    closed = [{**node(name, cpu=8), "spec": {"unschedulable": True}} for name in ("old-1", "old-2")]
    found = report(tmp_path, *closed, node("new-1", cpu=8), web(0, "old-1"), web(1, "old-2"), web(2, "new-1"))
    assert found.untouched == ExcludedPods(3, (("its node is left to others: it is cordoned", 2),))


def test_a_forked_copy_makes_the_same_certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offline, "_MOST_ALONE", 0)
    rescheduling = read_rescheduler(CONFIGURATION, "")
    question = PlanSettings(rescheduling, default_configuration())

    alone, beside = (
        plan_once(read(tmp_path, *scaled_up()), replace(question, forks=forks)).to_dict() for forks in (False, True)
    )

    assert alone["certificate"] == beside["certificate"]
    assert alone == beside


def test_the_certificate_is_made_here_if_the_forked_copy_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offline, "_MOST_ALONE", 0)
    parent = os.getpid()

    def fail_elsewhere(*arguments: Any) -> Any:
        assert os.getpid() == parent
        return certificates.lower_bounds_of(*arguments)

    monkeypatch.setattr(offline, "lower_bounds_of", fail_elsewhere)
    question = PlanSettings(read_rescheduler(CONFIGURATION, ""), default_configuration(), forks=True)

    assert plan_once(read(tmp_path, *scaled_up()), question).certificate is not None
