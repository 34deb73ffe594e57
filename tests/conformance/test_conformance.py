"""Podium against 800 decisions that kube-scheduler v1.36.2 itself took.

`cases.jsonl.xz` holds small random clusters, 50 for each of 16 themes: the objects, and a pending pod.
`expected.jsonl.xz` holds what kube-scheduler's own framework decided for that pod, with the default profile and feature
gates and every node examined: each node's first refusal with its reasons, the scores and totals of the feasible nodes,
and, where there are none, the whole of preemption: candidates with their victims, rejected nodes, selected nodes.

The measuring program called the framework without a scheduling queue. kube-scheduler looks up nominated pods in its
queue; those that it does not find there it knows by name, namespace and uid alone (backend/queue/nominator.go): they
request nothing, have no labels and priority 0. A scheduler that runs has them in its queue and counts them whole, as
Podium does. So the cases are held against what was measured twice:

- with nominated pods other than the one to schedule reduced to what was known of them, all 800 agree;
- as written, 782 agree, and each of the other 18 has such a nominated pod.
"""

from __future__ import annotations

import json
import lzma
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from podium.api.codec import decode
from podium.app.explain import Explainer, Explanation

HERE = Path(__file__).parent
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
AGREE_AS_WRITTEN = 782


@dataclass(frozen=True, slots=True)
class Case:
    """A cluster with a pending pod (``pod`` is its key), and what kube-scheduler decided about it."""

    name: str
    theme: str
    objects: list[dict[str, Any]]
    pod: str
    expected: dict[str, Any]

    @property
    def reduced(self) -> list[dict[str, Any]]:
        """The objects as the measuring program knew them."""
        return [_reduced(one) if self._is_nominated(one) else one for one in self.objects]

    @property
    def has_other_nominated_pods(self) -> bool:
        return any(self._is_nominated(one) for one in self.objects)

    def _is_nominated(self, one: dict[str, Any]) -> bool:
        """Whether an object is a nominated pod that waits for its node, and not the one to schedule."""
        if one["kind"] != "Pod" or one["spec"].get("nodeName") or not one["status"].get("nominatedNodeName"):
            return False
        return f"{one['metadata']['namespace']}/{one['metadata']['name']}" != self.pod


def _reduced(pod: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {key: pod["metadata"][key] for key in ("name", "namespace", "uid")},
        "spec": {},
        "status": {key: pod["status"][key] for key in ("phase", "nominatedNodeName")},
    }


@cache
def all_cases() -> list[Case]:
    found = []
    with lzma.open(HERE / "cases.jsonl.xz") as cases, lzma.open(HERE / "expected.jsonl.xz") as answers:
        for line, answer in zip(cases, answers, strict=True):
            case, expected = json.loads(line), json.loads(answer)
            if expected.pop("name") != case["name"]:
                raise AssertionError(f"the answer to {case['name']} is not in its line")
            found.append(Case(**case, expected=expected))
    return found


def explained(objects: list[dict[str, Any]], pod: str) -> Explanation:
    typed = [one for one in map(decode, objects) if one is not None]
    return Explainer(typed).explain(pod)


@cache
def explained_as_measured(theme: str) -> list[tuple[Case, Explanation]]:
    return [(case, explained(case.reduced, case.pod)) for case in all_cases() if case.theme == theme]


def disagreement(case: Case, explanation: Explanation) -> str:
    """What differs from kube-scheduler's decision, field by field; "" where nothing does."""
    decided = explanation.to_dict()
    # What Podium says beyond the measured decisions, and what is checked by itself.
    del decided["outcome"], decided["node"]
    decided.pop("disruptions", None)
    wrong = [
        f"  {field}: kube-scheduler {case.expected.get(field)}\n  {' ' * len(field)}  Podium {decided.get(field)}"
        for field in sorted(decided.keys() | case.expected.keys())
        if decided.get(field) != case.expected.get(field)
    ]
    return "\n".join([case.name, *wrong]) if wrong else ""


@pytest.mark.parametrize("theme", THEMES)
def test_every_decision_is_kube_schedulers(theme: str) -> None:
    wrong = [found for found in (disagreement(*one) for one in explained_as_measured(theme)) if found]

    assert not wrong, f"{len(wrong)} of {CASES_A_THEME} cases of {theme} differ:\n" + "\n".join(wrong)


@pytest.mark.parametrize("theme", THEMES)
def test_the_node_taken_is_one_that_kube_scheduler_might_have_taken(theme: str) -> None:
    for case, explanation in explained_as_measured(theme):
        expected = case.expected
        preemption = expected.get("preemption", {})
        if "best" in expected:
            own = explanation.record.nominated_node_name
            may_take = [own] if own in expected["totals"] else expected["best"]
            outcome = "schedulable"
        else:
            may_take = preemption["selected"] or [""]
            outcome = "preempts" if preemption["selected"] else "unschedulable"
            if not preemption["eligible"]:
                outcome = "not-eligible"

        assert (explanation.outcome, explanation.node in may_take) == (outcome, True), case.name


def test_there_are_800_cases_50_a_theme() -> None:
    cases = all_cases()

    assert len(cases) == len({case.name for case in cases}) == len(THEMES) * CASES_A_THEME
    assert {theme: sum(case.theme == theme for case in cases) for theme in THEMES} == dict.fromkeys(
        THEMES, CASES_A_THEME
    )


def test_as_written_only_cases_with_other_nominated_pods_differ() -> None:
    cases = all_cases()
    with_nominated = [case for case in cases if case.has_other_nominated_pods]
    without = [case for case in cases if not case.has_other_nominated_pods]

    # Where there are none, a case is measured as it is written: the other tests have decided it.
    assert all(case.reduced == case.objects for case in without)
    agree = [case for case in with_nominated if not disagreement(case, explained(case.objects, case.pod))]

    assert len(without) + len(agree) == AGREE_AS_WRITTEN
