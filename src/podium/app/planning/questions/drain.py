"""`podium plan drain`: how long it takes, which budget holds, what blocks it and how to unblock that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from podium.api.meta import Raw
from podium.api.times import format_duration
from podium.app.console.cells import NODES, Name
from podium.app.planning.answer import PlanAnswer, Section
from podium.app.planning.answering import answer_of, outcome
from podium.app.planning.nodes import named
from podium.app.planning.question import Played, Question, step
from podium.sim.results.holds import Hold

_SECOND = 10**9
_UNDER_WAY = ("blocked", "running", "timed-out")


@dataclass(frozen=True, slots=True)
class DrainWishes:
    """How nodes are drained, as `kubectl drain` has it; `parallel`: all at once, otherwise one after another."""

    parallel: bool = False
    timeout_ns: int | None = None
    grace_seconds: int | None = None
    force: bool = False
    delete_empty_dir_data: bool = False
    disable_eviction: bool = False


def drain_question(nodes: Sequence[str], wishes: DrainWishes, *, removes: bool = False) -> Question:
    """The question what a drain does. All nodes are cordoned first, so that no pod comes to one that is yet to go."""
    cordons = [step("cordon", {"name": node}) for node in nodes] if len(nodes) > 1 else []
    before = {} if wishes.parallel else {node: earlier for earlier, node in pairwise(nodes)}
    drains = [step("drain", _drain(node, before.get(node, ""), wishes, removes=removes)) for node in nodes]
    return Question("drain", (*cordons, *drains))


def drain_answer(played: Played, nodes: Sequence[str], labels: str = "") -> PlanAnswer:
    """The answer; `labels` are those by which all of the nodes were chosen."""
    reports: list[dict[str, Any]] = played.result.summary["drains"]
    return answer_of(played, _headline(played, nodes, labels, reports), sections=drain_sections(played))


def drain_sections(played: Played) -> list[Section]:
    """How far each drain came, and how what stands in the way is got out of it."""
    return [_drains(played, played.result.summary["drains"]), *_unblock(played)]


def stuck(played: Played) -> str:
    """Which drain did not come to its end and why, the first of all; "" where all did."""
    for report in played.result.summary["drains"]:
        if report["state"] != "drained":
            return f"the drain of {report['node']} {_state(played, report)}: {_reason(played, report)}"
    return ""


def _drain(node: str, after: str, wishes: DrainWishes, *, removes: bool) -> Raw:
    said: Raw = {"name": node}
    if after:
        said["after"] = after
    if wishes.timeout_ns is not None:
        said["timeout"] = format_duration(wishes.timeout_ns)
    if wishes.grace_seconds is not None:
        said["gracePeriodSeconds"] = wishes.grace_seconds
    flags = {
        "force": wishes.force,
        "deleteEmptyDirData": wishes.delete_empty_dir_data,
        "disableEviction": wishes.disable_eviction,
        "removeNode": removes,
    }
    return said | {name: True for name, is_set in flags.items() if is_set}


def _headline(played: Played, nodes: Sequence[str], labels: str, reports: Sequence[dict[str, Any]]) -> str:
    what = f"drain of {named(nodes, labels=labels)}"
    bad = [report for report in reports if report["state"] != "drained"]
    if not bad and len(reports) == len(nodes):
        impact = played.impact
        lasted = format_duration(_end_ns(played) - played.result.measures.start_ns)
        return f"{what} takes {lasted}: {outcome(impact)}"
    if not bad:
        return f"{what} comes to {len(reports):,} of {len(nodes):,} nodes"
    first = bad[0]
    which = f"drain of {first['node']}" if len(nodes) > 1 else what
    done = f" ({len(reports) - len(bad):,} of {len(nodes):,} nodes are drained)" if len(nodes) > 1 else ""
    return f"{which} {_state(played, first)}: {_reason(played, first)}{done}"


def _state(played: Played, report: dict[str, Any]) -> str:
    drains = (asked.get("drain", {}) for asked in played.question.steps)
    timeout = next((drain.get("timeout", "") for drain in drains if drain.get("name") == report["node"]), "")
    return {
        "timed-out": f"timed out after {timeout}" if timeout else "timed out",
        "refused": "is refused",
        "withdrawn": "was withdrawn",
        "blocked": "is blocked",
    }.get(report["state"], "is not over at the end")


def _reason(played: Played, report: dict[str, Any]) -> str:
    """What holds the drain: the budget and whom, or the first pod's own reason."""
    left = [pod for pod in report["pods"] if pod["state"] not in ("gone", "left")]
    holds = {hold.pod: hold for hold in played.result.measures.holds if hold.until_ns is None and hold.budgets}
    held = [holds[pod["pod"]] for pod in left if pod["pod"] in holds]
    if held:
        more = f" and {len(held) - 1:,} more" if len(held) > 1 else ""
        return f"budget {held[0].budgets[0]} holds {held[0].pod}{more}"
    refused = [pod for pod in left if pod["reason"]]
    if refused:
        more = f" (and {len(refused) - 1:,} more)" if len(refused) > 1 else ""
        return f"{refused[0]['pod']}: {refused[0]['reason']}{more}"
    if left:
        return f"{left[0]['pod']} is {left[0]['state']}"
    return str(report["message"] or "no pod is left")


def _end_ns(played: Played) -> int:
    """When the last pod had left its node, or the end of the run where one has not."""
    measures = played.result.measures
    drained = {report["node"] for report in played.result.summary["drains"] if report["state"] == "drained"}
    ended = [
        pod["endedAt"]
        for pod in played.result.pods
        if pod["node"] in drained and pod["endedAt"] is not None and not pod["workload"].startswith("DaemonSet ")
    ]
    reports = played.result.summary["drains"]
    if len(drained) == len(reports):
        return measures.start_ns + round(max(ended, default=0) * _SECOND)
    return measures.end_ns


def _drains(played: Played, reports: Sequence[dict[str, Any]]) -> Section:
    rows = []
    for report in reports:
        gone = sum(pod["state"] == "gone" for pod in report["pods"])
        left = sum(pod["state"] not in ("gone", "left") for pod in report["pods"])
        state = str(report["state"])
        rest = f", {left:,} left" if left else ""
        reason = "" if state == "drained" else _reason(played, report)
        rows.append((Name(report["node"], NODES), state, f"{gone:,} gone{rest}", reason))
    return Section("drains", "Drains", tuple(rows), data=list(reports))


def _unblock(played: Played) -> list[Section]:
    """How what stands in the way is got out of it."""
    advice: dict[str, None] = {}
    for hold in played.result.measures.holds:
        if hold.until_ns is None:
            advice[_advice(played, hold)] = None
    for report in played.result.summary["drains"]:
        for pod in report["pods"]:
            if report["state"] == "refused" and pod["state"] == "refused":
                advice[f"{pod['pod']}: {pod['reason']}"] = None
    if not advice:
        return []
    rows = tuple((text,) for text in advice)
    return [Section("unblock", "To unblock it", rows, data=list(advice))]


def _advice(played: Played, hold: Hold) -> str:
    if not hold.budgets:
        return f"{hold.pod}: {hold.message}"
    if len(hold.budgets) > 1:
        return f"leave {hold.pod} one budget of {', '.join(hold.budgets)}, or set severalBudgets: RequireAll"
    budget = hold.budgets[0]
    health = next((found for found in played.result.measures.budgets if found.budget == budget), None)
    if health is None:
        return f"see budget {budget}"
    if health.healthy < health.desired:
        return (
            f"bring {health.desired - health.healthy + 1:,} more pods of budget {budget} to be ready "
            f"({health.healthy:,} are, {health.desired:,} have to be), or lower what it wants"
        )
    return (
        f"scale up what budget {budget} covers by 1 ({health.healthy:,} healthy, {health.desired:,} have to be), "
        "lower minAvailable or raise maxUnavailable by 1, or delete past budgets with --disable-eviction"
    )
