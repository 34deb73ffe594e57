"""Podium against 1,560 decisions of kube-scheduler v1.36.2, and enough of those of earlier versions.

800 are of small random clusters, 50 for each of 16 themes; 760 are harder, of 30 themes. All must agree, field by
field, odd behavior included: a faithful prediction of a scheduler has its faults.
"""

from __future__ import annotations

import pytest

from podium.api.meta import Kubernetes
from podium.app.explaining.explanation import Explanation
from podium.decide.placement import full_outcome, place
from podium.decide.preempting.preemption_plan import PreemptionCandidate
from podium.plugins.default_preemption import DefaultPreemption
from tests.conformance.measured import (
    VERSIONS,
    Case,
    all_cases,
    decoded,
    disagreement,
    explained,
    in_turn_by_name,
    judged,
    may_take,
    other_message,
    ranked_node,
)

THEMES = (
    "antiaffinity",
    "mixed",
    "nodeaffinity",
    "nominated",
    "pdb",
    "podaffinity",
    "policy",
    "ports",
    "preempt",
    "requests",
    "resources",
    "scores",
    "spread",
    "taints",
    "ties",
    "volumes",
)
CASES_A_THEME = 50
HARDER_THEMES = {
    "big": 13,
    "config": 66,
    "configspread": 21,
    "daemon": 19,
    "declared": 10,
    "defaultspread": 23,
    "disks": 15,
    "ephemeral": 6,
    "everything": 39,
    "gates": 6,
    "hugeprio": 18,
    "images": 17,
    "imagesizes": 7,
    "labelkeys": 31,
    "multinom": 29,
    "nssel": 20,
    "pdb2": 34,
    "ports2": 31,
    "preemptmix": 50,
    "preemptvol": 31,
    "pvc2": 49,
    "quantities": 25,
    "regions": 6,
    "requests2": 40,
    "resize": 23,
    "schednames": 10,
    "spread2": 41,
    "strays": 20,
    "taints2": 30,
    "terminating": 30,
}
_MOST_QUESTIONS = 8
ALL = [("cases", theme, CASES_A_THEME) for theme in THEMES]
ALL += [("cases-2", theme, number) for theme, number in HARDER_THEMES.items()]


def cases_of(set_: str, theme: str) -> list[Case]:
    return [case for case in all_cases(set_) if case.theme == theme]


@pytest.mark.parametrize(("set_", "theme", "number"), ALL, ids=[theme for _, theme, _ in ALL])
def test_every_decision_is_kube_schedulers(set_: str, theme: str, number: int) -> None:
    """v1.36.2 judges every case, and earlier versions judge some each (`in_turn`)."""
    cases, wrong = cases_of(set_, theme), []
    for case in cases:
        objects = decoded(case)
        wrong.append(difference(case, set_, objects))
        for version, earlier in in_turn_by_name(set_)[case.name]:
            wrong += [f"{version} {found}" for _, found in judged(earlier, set_, version, objects) if found]
    wrong = [found for found in wrong if found]

    assert len(cases) == number
    assert not wrong, f"{len(wrong)} decisions of {number} cases of {theme} differ:\n" + "\n".join(wrong)


def difference(case: Case, set_: str, objects: list[Kubernetes]) -> str:
    """Return what differs from what v1.36.2 decided; "" where nothing does.

    Compared are each field, the event's message, and the node, which is one that kube-scheduler might have taken: the
    same when the scheduler finds it by a ranking, and the same preemption when it caches earlier ones.
    """
    explanation = explained(case, objects)
    outcome, nodes = may_take(case, explanation)
    if differs := disagreement(case, explanation):
        return differs
    if explanation.outcome != outcome or explanation.node not in nodes:
        return f"{case.name}: {explanation.outcome} {explanation.node}, not {outcome} {nodes}"
    if explanation.outcome == "schedulable" and ranked_node(explanation) != explanation.node:
        return f"{case.name}: by ranking {ranked_node(explanation)}, not {explanation.node}"
    if differs := other_message(case, set_, VERSIONS[-1], explanation):
        return differs
    if case.expected.get("preemption", {}).get("candidates"):
        assert explanation.plan is not None
        by_cache = chosen_while_pods_come(explanation)
        is_same = by_cache == explanation.plan.chosen
        return "" if is_same else f"{case.name}: by cached preemption {by_cache}, not {explanation.plan.chosen}"
    return ""


def chosen_while_pods_come(explanation: Explanation) -> PreemptionCandidate | None:
    """Return what preemption decides at last, when the pods come one after another and it is asked now and then."""
    cluster = explanation.runner.cluster
    pods = [cluster.remove_pod(uid) for uid in list(cluster.placed)]
    pods_a_question = 1 + len(pods) // _MOST_QUESTIONS
    for number, pod in enumerate(pods):
        if number % pods_a_question == 0:
            chosen(explanation)
        cluster.add_pod(pod)
    return chosen(explanation)


def chosen(explanation: Explanation) -> PreemptionCandidate | None:
    """Return what preemption decides when nothing more is asked for, if it comes to that."""
    runner, record = explanation.runner, explanation.record
    placement = place(runner, record, nominated_first=False)
    if placement.row is not None or placement.error or not len(runner.cluster.nodes):
        return None
    plugin = next(one for one in runner.profile.post_filter if isinstance(one, DefaultPreemption))
    return plugin.plan(placement.state, record, runner, full_outcome(runner.cluster, placement)).chosen


@pytest.mark.parametrize(("set_", "total"), [("cases", 800), ("cases-2", 760)])
def test_every_case_is_of_a_theme_and_has_a_name_of_its_own(set_: str, total: int) -> None:
    cases = all_cases(set_)
    themes = {theme for where, theme, _ in ALL if where == set_}

    assert len(cases) == len({case.name for case in cases}) == total
    assert {case.theme for case in cases} == themes
