"""The measured decisions of kube-scheduler v1.36.2, and how they are held against Podium's.

A set is two files of lines: ``cases*.jsonl.xz`` holds clusters with a pending pod each, some with a configuration;
``expected*.jsonl.xz`` what kube-scheduler decided for that pod, with its own cache, queue and event handlers, default
feature gates, all nodes scored and examined.
"""

from __future__ import annotations

import json
import lzma
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from podium.api.input.codec import decode
from podium.app.explaining.explainer import Explainer
from podium.app.explaining.explanation import Explanation
from podium.decide.placement import place
from podium.framework.settings.configuration import read_configuration

HERE = Path(__file__).parent
FIELDS = ("pod", "preEnqueue", "preFilter", "nodes", "scores", "totals", "best", "preemption")
"""What was measured of every decision; a field that is not there was not decided. Podium says more."""


@dataclass(frozen=True, slots=True)
class Case:
    """A cluster with a pending pod (``pod`` is its key), and what kube-scheduler decided about it."""

    name: str
    theme: str
    objects: list[dict[str, Any]]
    pod: str
    expected: dict[str, Any]
    config: dict[str, Any] = field(default_factory=dict)


@cache
def all_cases(suffix: str) -> list[Case]:
    """The cases of the set whose files end in ``suffix``."""
    found = []
    cases, answers = HERE / f"cases{suffix}.jsonl.xz", HERE / f"expected{suffix}.jsonl.xz"
    with lzma.open(cases) as asked, lzma.open(answers) as answered:
        for line, answer in zip(asked, answered, strict=True):
            case, expected = json.loads(line), json.loads(answer)
            if expected.pop("name") != case["name"]:
                raise AssertionError(f"the answer to {case['name']} is not in its line")
            found.append(Case(**case, expected=expected))
    return found


def explained(case: Case) -> Explanation:
    """What Podium decides."""
    typed = [one for one in map(decode, case.objects) if one is not None]
    configuration = read_configuration(case.config, case.name) if case.config else None
    return Explainer(typed, configuration).explain(case.pod)


def ranked_node(explanation: Explanation) -> str:
    """The node that the scheduler finds by what it keeps of the pod's class, once it keeps something."""
    runner = explanation.runner
    runner.rankings.patience = 0
    found = [place(runner, explanation.record, detailed=False).row for _ in range(3)][-1]
    return "" if found is None else runner.cluster.nodes.name(found)


def disagreement(case: Case, explanation: Explanation) -> str:
    """What differs from kube-scheduler's decision, field by field; "" where nothing does."""
    expected, found = _comparable(case.expected), _comparable(explanation.decision())
    wrong = [
        f"  {name}: kube-scheduler {expected.get(name)}\n  {' ' * len(name)}  Podium {found.get(name)}"
        for name in (*FIELDS, *sorted(expected.keys() - set(FIELDS)))
        if found.get(name) != expected.get(name)
    ]
    return "\n".join([case.name, *wrong]) if wrong else ""


def may_take(case: Case, explanation: Explanation) -> tuple[str, list[str]]:
    """What the outcome must be, and the nodes of which kube-scheduler takes or nominates any."""
    expected = case.expected
    if "preEnqueue" in expected:
        return "gated", [""]
    if "error" in expected:
        return "error", [""]
    if "best" in expected:
        own = explanation.record.nominated_node_name
        return "schedulable", [own] if own in expected["totals"] else expected["best"]
    preemption = expected.get("preemption", {"eligible": True, "selected": []})
    if not preemption["eligible"]:
        return "not-eligible", [""]
    return "preempts" if preemption["selected"] else "unschedulable", preemption["selected"] or [""]


def _comparable(value: Any, name: str = "") -> Any:
    """A value without what is not decided: the order of reasons."""
    if name == "reasons":
        return sorted(value)
    return {key: _comparable(one, key) for key, one in value.items()} if isinstance(value, dict) else value
