"""From what was played to an answer: what every question's answer has in common."""

from __future__ import annotations

from collections.abc import Sequence

from podium.app.planning.answer import Finding, PlanAnswer, Section, WorkloadImpact
from podium.app.planning.chances.sections import told_outcomes
from podium.app.planning.impact import PREEMPTION, counts_of, findings_of, nodes_of
from podium.app.planning.question import Played


def answer_of(
    played: Played,
    headline: str = "",
    *,
    findings: Sequence[Finding] = (),
    sections: Sequence[Section] = (),
) -> PlanAnswer:
    """The answer; `headline` says what was asked, and what follows from the impact is put behind it."""
    result, baseline = played.result, played.baseline
    impact = played.impact
    return PlanAnswer(
        played.question.name,
        headline or outcome(impact),
        findings=(*findings, *findings_of(result, impact, baseline)),
        impact=impact,
        nodes=nodes_of(result, baseline),
        node_hours=(result.summary["nodeHours"], baseline.summary["nodeHours"]),
        rests_on=played.rests_on,
        result=result,
        baseline=baseline,
        scenario=played.scenario,
        sections=(*sections, *told_outcomes(played.outcomes)),
    )


def outcome(impact: Sequence[WorkloadImpact]) -> str:
    """What the impact comes to, in a few words."""
    parts = [f"{pods(number)} disrupted by {cause}" for cause, number in _ordered(impact)]
    missing = sum(workload.missing for workload in impact)
    if missing:
        hit = sum(bool(workload.missing) for workload in impact)
        parts.append(f"{pods(missing)} of {hit:,} workload{'' if hit == 1 else 's'} missing at the end")
    stuck = [workload for workload in impact if workload.stuck]
    if stuck:
        whose = stuck[0].workload if len(stuck) == 1 else f"{len(stuck):,} workloads"
        parts.append(f"the rollout of {whose} is stuck")
    if impact and not missing and not stuck:
        parts.append("no further pod is missing at the end")
    return "; ".join(parts) or "no workload is affected"


def pods(number: int) -> str:
    """So many pods."""
    return f"{number:,} pod{'' if number == 1 else 's'}"


def _ordered(impact: Sequence[WorkloadImpact]) -> list[tuple[str, int]]:
    return sorted(counts_of(impact).items(), key=lambda item: (item[0] != PREEMPTION, -item[1], item[0]))
