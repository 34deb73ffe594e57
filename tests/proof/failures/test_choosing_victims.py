"""Failures of choosing victims and nodes, each with its bug."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace as with_fields

from podium.api.meta import Kubernetes
from podium.app.explaining.attempts import explain_decision
from podium.cluster.arrays import Int64s, Lists
from podium.cluster.budgets import Budgets
from podium.cluster.pods import PodRecord
from podium.cluster.view import NodeView
from podium.cluster.what_if_view import WhatIfView
from podium.decide.preempting import reprieve, trials
from podium.decide.preempting.eligibility import beyond_budgets
from podium.decide.preempting.preemption_plan import PreemptionPlan
from podium.decide.preempting.reprieve import Preemptor, TrialTable, victims_by_row
from podium.decide.preempting.trials import Trials
from podium.framework.handle import CycleState
from podium.framework.verdicts import SUCCESS, Status, unschedulable
from tests.builders import budget, cluster_of, explain, node, plain_runner, pod, term
from tests.controllers.driving import Driver, deletions
from tests.proof.failures.bugs import Right, caught, instead

DB = {"app": "db"}


def plan(*objects: Kubernetes) -> PreemptionPlan:
    """Return what preemption finds for the pod `default/p`."""
    found = explain(objects).plan
    assert found is not None
    return found


@pytest.mark.failure(15)
def test_the_victim_that_a_budget_protects_passes_for_the_most_important_one() -> None:
    """Symptom: the node with the more important pod loses it. Rule: with as many violations, the lowest priority of the
    most important victim decides, whichever victims were looked at first.
    """

    def first_tried_first(right: Right, preemptor: Preemptor, rows: Int64s, *rest: Any, **how: Any) -> TrialTable:
        table: TrialTable = right(preemptor, rows, *rest, **how)
        cluster = preemptor.handle.cluster
        for at, row in enumerate(rows.tolist()):
            slots = np.array(table.victims_on.get(row, ()), dtype=np.int64)
            violating = beyond_budgets(cluster, Lists(np.array([0, len(slots)]), slots))
            for slot in slots[violating][::-1].tolist():
                table.criteria[1, at] = cluster.pods.priority[slot]
        return table

    def story() -> None:
        found = plan(
            node("n1", cpu=4),
            pod("high", on="n1", priority=9, cpu=2),
            pod("low", on="n1", priority=1, cpu=2, labels=DB),
            node("n2", cpu=4),
            pod("mid", on="n2", priority=5, cpu=4, labels=DB),
            budget("db", "app=db", 0),
            pod("p", priority=100, cpu=4),
        )

        assert [one.budget_violations for one in found.candidates.values()] == [1, 1]
        assert found.selected == ("n2",)

    caught(story, instead(trials, "choose_victims", first_tried_first))


@pytest.mark.failure(16)
def test_a_disruption_that_was_counted_is_counted_again() -> None:
    """Symptom: who goes depends on the order of pods. Rule: a pod that the budget has accounted for takes nothing."""

    def forgetting_whom_it_counted(right: Right, budgets: Budgets, one: Any) -> None:
        right(budgets, with_fields(one, status=with_fields(one.status, disrupted_pods={})))

    def story() -> None:
        found = plan(
            node("n", cpu=2),
            pod("going", on="n", priority=1, cpu=1, labels=DB),
            pod("other", on="n", priority=0, cpu=1, labels=DB),
            budget("db", "app=db", 1, disrupted=["going"]),
            pod("p", priority=5, cpu=2),
        )

        assert found.candidates["n"].budget_violations == 0

    caught(story, instead(Budgets, "put", forgetting_whom_it_counted))


class Contrary:
    """Refuses a node as it is, and accepts it whenever anything was tried."""

    name = "Contrary"

    def __init__(self) -> None:
        self.tried = False

    def filter(self, state: CycleState, pod: PodRecord, node: NodeView) -> Status:
        self.tried, before = True, self.tried
        return SUCCESS if before else unschedulable("not yet")


@pytest.mark.failure(18)
def test_a_candidate_without_victims_reaches_the_choice_of_nodes() -> None:
    """Symptom: the scheduler crashes over it, again and again. Rule: a node without victims is no candidate."""

    def nobody_is_in_the_way(right: Right, *args: Any, **kwargs: Any) -> TrialTable:
        table: TrialTable = right(*args, **kwargs)
        table.refused[table.refused == reprieve.NO_VICTIM_NEEDED] = 0
        return table

    def story() -> None:
        cluster = cluster_of(node("n"), pod("q", on="n"))
        runner = plain_runner(cluster, extra=[Contrary()])

        found = explain_decision(runner, cluster.read(pod("p", priority=5)))

        assert found.outcome == "unschedulable"

    caught(story, instead(Trials, "_try", nobody_is_in_the_way), raising=KeyError)


@pytest.mark.failure(21)
def test_victims_go_for_a_preemptor_that_does_not_fit_without_them_either() -> None:
    """Symptom (of another scheduler): pods are evicted in vain. Rule: all of it together helps, or none is done."""

    def all_go_whatever_it_comes_to(right: Right, *args: Any, **how: Any) -> TrialTable:
        _, rows, potential, *_ = args
        table: TrialTable = right(*args, **how)
        table.refused[np.searchsorted(rows, potential.rows)] = 0
        return with_fields(table, victims_on=victims_by_row(potential.rows, potential))

    def story() -> None:
        keeper, lower = pod("keeper", on="n", priority=9, cpu=3), pod("lower", on="n", cpu=1)
        driver = Driver(node("n", cpu=4), keeper, lower, pod("p", priority=5, cpu=2))

        assert deletions(driver.tick()) == []

    caught(story, instead(trials, "choose_victims", all_go_whatever_it_comes_to))


@pytest.mark.failure(23)
def test_a_pod_preempts_its_equals_and_they_preempt_it() -> None:
    """Symptom (of a queueing system): two pods take the room from each other forever. Rule: only less important pods
    are victims; one order decides which pods may be victims and which are victims first.
    """

    def equals_too(right: Right, made: Trials, record: PodRecord, *rest: Any) -> Any:
        priority, record.priority = record.priority, record.priority + 1
        try:
            return right(made, record, *rest)
        finally:
            record.priority = priority

    def story() -> None:
        driver = Driver(node("n", cpu=4), pod("equal", on="n", priority=5, cpu=4), pod("p", priority=5, cpu=4))

        assert deletions(driver.tick()) == []

    caught(story, instead(Trials, "_potential_victims", equals_too))


@pytest.mark.failure(26)
def test_a_pod_that_leaves_is_gone_for_resources_and_there_for_affinity() -> None:
    """Symptom (of another scheduler): preemption never satisfies anti-affinity. Rule: a world has one set of pods."""

    def as_if_nobody_had_left(right: Right, worlds: WhatIfView, predicate: Any) -> Any:
        return np.zeros(len(worlds), dtype=np.int64)

    def story() -> None:
        found = plan(
            node("n", zone="a"),
            pod("idle", on="n", labels=DB),
            pod("p", priority=5, apart=[term("app=db")]),
        )

        assert list(found.candidates) == ["n"]

    caught(story, instead(WhatIfView, "change", as_if_nobody_had_left))
