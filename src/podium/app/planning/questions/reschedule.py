"""`podium plan reschedule`: which pods a rescheduler would move and when, and what that does to their workloads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from msgspec import structs

from podium.api.times import format_duration
from podium.app.answers import Frame, kinds
from podium.app.console.cells import NODES, PODS, Name, Part, counted
from podium.app.console.page import Section
from podium.app.planning.answer import PlanAnswer
from podium.app.planning.impact import PlanFinding, impact_text
from podium.app.planning.question import PlanQuestion, PlanRun
from podium.app.planning.scenarios import scenario_of_spec, step
from podium.app.rescheduling.certificates import certificate_section, number_text
from podium.app.rescheduling.offline import DAY_NS, ObservedPlans, PlanSettings, plan_once
from podium.app.simulating.simulation_result import SimulationResult
from podium.controllers.rescheduling.rescheduler import Rescheduler
from podium.controlplane.component_names import RESCHEDULER
from podium.decide.rescheduling.round_robin import PlannedMoves, ReschedulingPlan
from podium.framework.rescheduling.configuration import ReschedulerConfiguration
from podium.framework.settings.configuration import default_configuration
from podium.runtime.runtime import Component
from podium.sim.run_options import RunOptions

_MAX_ROWS = 40
# A plan takes time in proportion to the objects: a run has at most so many plans, and so many objects in all of them.
_MOST_PLANS, _MOST_OBJECTS = 60, 120_000
# Each eviction is checked beside all moves under way.
_MOST_MOVES = 300
_HEADINGS = ("evicted", "pod", "from", "to", "ready", "waited for")
_COLUMNS = {**kinds(number="time"), **kinds("pod from to", number="boundAt readyAt"), **kinds("waitedFor policy")}


def reschedule(run: PlanRun, rescheduler: ReschedulerConfiguration) -> PlanAnswer:
    """Answer which pods a rescheduler would move and when, and what that does.

    The run has the rescheduler, whose number of plans is limited; its first plan is the plan now. If none moves
    anything, the answer is without the run. Raises InputError.
    """
    options = run.options
    question = PlanSettings(
        rescheduler,
        options.configuration or default_configuration(),
        ignores_extenders=options.ignore_extenders,
        release=options.release,
        forks=run.forks,
    )
    most = min(_MOST_PLANS, max(1, _MOST_OBJECTS // len(run.read.documents)))
    with ObservedPlans(run.read, question) as observed:
        playing = structs.replace(run, options=_with_rescheduler(options, observed, most))
        played = playing.play(PlanQuestion("reschedule"))
    plans = observed.made
    # A run may end before the first plan.
    report = observed.report if plans else plan_once(run.read, question)
    rows: list[tuple[Part, ...]] = [
        (
            Name(move.pod.key, PODS),
            Name(move.source, NODES),
            Name(move.target, NODES, before="-> ") if move.target else "kept off" if move.has_ended else "-> nowhere",
            planned.reason,
        )
        for planned in report.plan.planned
        for move in planned.moves
    ]
    moves = Section("moves", "Moves", tuple(rows), rest="of the plan now", data=report.to_dict(), most=_MAX_ROWS)
    certificates, gap = list[Section](), ""
    if report.certificate is not None and report.certificate.ever.objectives:
        certificates.append(certificate_section(report.certificate))
        gap = f"within {report.certificate.within_limits.gap:.1%} of the best possible"
    if not report.moves and not any(plan.planned for _, plan in plans):
        findings = tuple(PlanFinding("refused", error) for error in report.plan.errors)
        headline = _joined("the rescheduler moves nothing", gap)
        return PlanAnswer("reschedule", headline, findings, caveats=report.caveats, sections=(moves, *certificates))
    is_cut = len(plans) == most or not plans or bool(plans[-1][1].planned)
    schedule = _schedule(plans, played.result, report.settings.interval_ns, is_cut=is_cut)
    moved = f"{counted(len(schedule.rows), 'pod')} in {_time_text(schedule.data['seconds'])}"
    if is_cut:
        # The run does not show what all moves gain.
        now = f"the plan now moves {counted(len(report.moves), 'pod')}{_gains([report.plan])}"
        moved += f" within its first {counted(len(plans), 'plan')}; {_joined(now, gap)}"
    else:
        moved = _joined(moved + _gains([plan for _, plan in plans]), gap and f"the plan now {gap}")
    headline = f"the rescheduler moves {moved}: {impact_text(played.impact)}"
    answer = played.answer(headline, sections=(moves, schedule, *certificates))
    steps = schedule.data["steps"]
    # The scenario repeats the evictions, whatever the rescheduler's configuration.
    evictions = [
        step("evict", {"namespace": namespace, "name": name, "component": RESCHEDULER, "avoidNode": True}, f"{time}s")
        for (namespace, name), time in ((each["pod"].split("/"), each["time"]) for each in steps)
    ]
    scenario = scenario_of_spec(run.read, "reschedule", {}, evictions)
    return replace(answer, scenario=scenario, table=Frame.of_rows("table", steps, _COLUMNS))


def _joined(*parts: str) -> str:
    return ", ".join(filter(None, parts))


def _gains(plans: Sequence[ReschedulingPlan]) -> str:
    """Return how the objectives and the price change from the first plan to the end of the last one, in parentheses."""
    first, last = plans[0], plans[-1]
    objectives = ((name, number_text(before), number_text(last.after[name])) for name, before in first.before.items())
    gained = [f"{name} {before} -> {after}" for name, before, after in objectives if before != after]
    if first.costs is not None and last.costs is not None:
        gained.append(f"nodes {first.costs[0].amount:,.2f} -> {last.costs[1].amount:,.2f} a month")
    return f" ({', '.join(gained)})" if gained else ""


def _with_rescheduler(options: RunOptions, observed: ObservedPlans, most: int) -> RunOptions:
    """Return the options of a run with a rescheduler that is observed, and makes ``most`` plans in all."""

    def make() -> Rescheduler:
        made = observed.rescheduler(seed=options.seed)
        made.plans_left, made.moves_left = most, _MOST_MOVES
        return made

    return replace(options, components=(Component(RESCHEDULER, make),), assumed_age_ns=DAY_NS)


def _schedule(
    plans: Sequence[tuple[int, ReschedulingPlan]], result: SimulationResult, interval_ns: int, *, is_cut: bool
) -> Section:
    """Return the evictions of a run in order: when each is made, when its replacement is bound and ready, and why then.

    An eviction waited for what the plan before its own held against it. ``is_cut``: further plans may follow.
    """
    held = [{left.pod: left.why for left in plan.left_alone} for _, plan in plans]
    # If an eviction was refused, a later plan made it.
    planned_by = {
        move.pod.uid: (place, planned)
        for place, (_, plan) in enumerate(plans)
        for planned in plan.planned
        for move in planned.moves
    }

    def waited_for(place: int, planned: PlannedMoves, namespace: str) -> str:
        if not place:
            return f"the first plan, {format_duration(interval_ns)} after the start"
        before = plans[place - 1][1]
        why = next((held[place - 1][move.pod.key] for move in planned.moves if move.pod.key in held[place - 1]), "")
        capped = f"the cap on disruptions in {namespace}" if namespace in before.capped else ""
        return why or capped or before.stopped or "the next plan"

    steps = list[dict[str, Any]]()
    for each in result.ledger:
        if each.cause != RESCHEDULER or each.uid not in planned_by:
            continue
        place, planned = planned_by[each.uid]
        made = each.replacement
        after = (None, None) if made is None else (made.placed_after, made.ready_after)
        bound, ready = (None if some is None else round(each.time + some, 3) for some in after)
        found = {"time": each.time, "pod": each.pod, "from": each.node, "to": None if made is None else made.node}
        why = waited_for(place, planned, each.namespace)
        steps.append({**found, "boundAt": bound, "readyAt": ready, "waitedFor": why, "policy": planned.policy})
    rows = [
        (
            f"+{_time_text(each['time'])}",
            Name(each["pod"], PODS),
            Name(each["from"], NODES),
            Name(each["to"] or "", NODES, before="-> "),
            "" if each["readyAt"] is None else f"+{_time_text(each['readyAt'])}",
            each["waitedFor"],
        )
        for each in steps
    ]
    lasted = max((each["readyAt"] or each["time"] for each in steps), default=0)
    data = {"plans": len(plans), "isCut": is_cut, "seconds": lasted, "steps": steps}
    rest = f"{counted(len(steps), 'eviction')} in {counted(len(plans), 'plan')}"
    return Section("schedule", "Schedule", tuple(rows), _HEADINGS, rest, data, _MAX_ROWS, "eviction")


def _time_text(seconds: float) -> str:
    return format_duration(round(seconds * 10**9))
