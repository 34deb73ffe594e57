"""Pictures of answers, for `-o html`: runs, plans, sweeps and accounts of disruptions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from podium.api.errors import escape
from podium.api.times import format_duration
from podium.app.accounting.account import LedgerAnswer, chain_pods, owner_name
from podium.app.accounting.text import TITLES, headline_of, outcome_of, why_of, write_ledger
from podium.app.answers import Value
from podium.app.console.cells import NODES, Name, text_of
from podium.app.console.page import Page, Section, counted
from podium.app.explaining.on_node import NodeAnswer
from podium.app.explaining.workload import Explanation, WorkloadExplanation
from podium.app.live.decisions import Decision
from podium.app.planning.answer import PlanAnswer, anyway_text, impact_sections, node_hours_text
from podium.app.planning.impact import NodeImpact, PlanFinding
from podium.app.reporting.decision import picture_of_decision, picture_of_written
from podium.app.reporting.file import html_file
from podium.app.reporting.picture import Disruptions, Picture, Runs, Table, caveat_texts, drawn, table_of
from podium.app.reporting.story import story_of
from podium.app.simulating.text import comparison_section, summary_sections, sums_text
from podium.app.sweeping.sweep import Combination, Played, caveats_of
from podium.app.sweeping.sweep_result import Row, rows_of
from podium.controllers.ledger.disruption import Disruption, Seconds
from podium.sim.results.result import Result

_LONGEST = 500
_NOT_FIGURES = frozenset(("seed", "error"))


@dataclass(frozen=True, slots=True)
class SweepAnswer:
    """The runs of a sweep, and the results to draw with the text of their settings."""

    played: Sequence[Played]
    results: Sequence[tuple[str, Result]]


def picture_of_result(result: Result) -> Picture:
    """Return the picture of a run."""
    length = format_duration(round(result.summary["end"] * 10**9))
    compared = [] if result.recorded is None else [comparison_section(result.recorded)]
    return Picture(
        command="simulate",
        headline=f"{length}: {sums_text(result.summary)}",
        facts=unrecorded_placements(result),
        stories=[story_of(result, "")],
        more=drawn([*summary_sections(result.summary), *compared, _drains(result.summary), _short(result.summary)]),
        caveats=caveat_texts(result.caveats),
    )


def unrecorded_placements(result: Result) -> list[str]:
    """Return a note about placements without recorded reasons; empty if there are none."""
    left_out = result.placements_left_out
    if not left_out:
        return []
    recorded = f"reasons are shown for the first {counted(len(result.placements), 'placement')}"
    return [f"{recorded}; {counted(left_out, 'later attempt')} left out"]


def picture_of_sweep(answer: SweepAnswer) -> Picture:
    """Return the picture of a sweep: the figures of all runs, and some runs side by side."""
    played = answer.played
    settings = list(dict.fromkeys(settings_text(run.combination) for run in played))
    rows = rows_of(played)
    return Picture(
        command="sweep",
        headline=f"{counted(len(played), 'run')} of {counted(len(settings), 'combination')} of settings",
        tables=_table(played, rows),
        runs=_runs(played, rows, settings),
        stories=[story_of(result, name) for name, result in answer.results],
        caveats=caveat_texts(caveats_of(played)),
    )


def settings_text(combination: Combination) -> str:
    """Return the settings of a run in one line."""
    text = ", ".join(f"{name}={value}" for name, value in combination.items())
    return escape(text, _LONGEST) or "as given"


def _table(played: Sequence[Played], rows: Sequence[Row]) -> list[Table]:
    """Return a table with a row for each run: its settings, its seed, and the figures that differ."""
    names = list(played[0].combination)
    kept = [name for name in rows[0] if name in (*names, "seed") or len({row[name] for row in rows}) > 1]
    note = "what differs between them" if len(rows) > 1 else ""
    return table_of("Runs", kept, [[row[name] for name in kept] for row in rows], note)


def _runs(played: Sequence[Played], rows: Sequence[Row], settings: list[str]) -> Runs:
    varied = set(played[0].combination)
    figures = [
        name
        for name in rows[0]
        if name not in varied | _NOT_FIGURES and any(isinstance(row[name], int | float) for row in rows)
    ]
    differing = [name for name in figures if len({row[name] for row in rows}) > 1]
    return Runs(
        settings,
        differing,
        [settings.index(settings_text(run.combination)) for run in played],
        [run.seed for run in played],
        [[None if isinstance(value := row[name], str) else value for name in differing] for row in rows],
    )


def _drains(summary: dict[str, Any]) -> Section:
    rows = (
        (
            Name(drain["node"], NODES),
            str(drain["state"]),
            sum(pod["state"] == "gone" for pod in drain["pods"]),
            drain["message"] or "",
        )
        for drain in summary["drains"]
    )
    return Section("drains", "Drains", tuple(rows), ("node", "state", "gone", ""))


def _short(summary: dict[str, Any]) -> Section:
    rows = ((short["workload"], short["wants"], short["has"], short["reason"]) for short in summary["short"])
    return Section("short", "Short of pods", tuple(rows), ("workload", "wants", "has", "why"))


def picture_of_plan(answer: PlanAnswer) -> Picture:
    """Return the picture of a plan, and of the run without it."""
    runs = zip(answer.runs, (answer.baseline, answer.result), strict=True)
    facts = [*filter(None, (anyway_text(answer), node_hours_text(answer)))]
    return Picture(
        command=f"plan {answer.question}",
        headline=escape(answer.headline, _LONGEST),
        facts=facts if answer.result is None else [*facts, *unrecorded_placements(answer.result)],
        tables=drawn([*answer.sections, *impact_sections(answer)]),
        more=drawn([_nodes(answer.nodes), _findings(answer.findings)]),
        stories=[story_of(result, escape(name, _LONGEST)) for name, result in runs if result is not None],
        caveats=caveat_texts(answer.caveats),
    )


def _findings(findings: Sequence[PlanFinding]) -> Section:
    rows = tuple((finding.code, finding.message) for finding in findings)
    return Section("findings", "Found", rows, ("", "what"), "as --fail-on names it")


def _nodes(nodes: Sequence[NodeImpact]) -> Section:
    rows = tuple((Name(node.node, NODES), node.change, node.pods_before, node.pods_after) for node in nodes)
    return Section("nodes", "Nodes", rows, ("node", "change", "pods before", "pods after"))


_WIDTH = 120
_MOST_ROWS = 2_000
_GROUPS = ("", "disruptions", "in vain", "lost, s", "cpu lost, core-s", "ready again", "longest, s", "by")
_RECORDS = ("at", "pod", "of", "priority", "node", "why", "by", "rule", "lost, s", "outcome", "in vain")


def picture_of_ledger(answer: LedgerAnswer) -> Picture:
    """Return the picture of a ledger: its disruptions by time, and tables."""
    page = Page(_WIDTH)
    write_ledger(page, answer, every=False)
    dropped = answer.account.dropped
    rows = [[" → ".join(chain_pods(chain))] for chain in answer.chains]
    return Picture(
        command="ledger",
        headline=escape(headline_of(answer), _LONGEST),
        facts=[f"{dropped:,} earlier ones are no longer kept"] if dropped else [],
        tables=[*_groups(answer), *_ledger_table("Chains: each pod displaced the next", ("",), rows)],
        more=_records(answer),
        disruptions=disruptions_of(answer),
        caveats=caveat_texts(answer.account.caveats),
        text=page.text,
    )


def _groups(answer: LedgerAnswer) -> list[Table]:
    rows: list[list[Value]] = [
        [
            group.name,
            group.disruptions,
            group.in_vain,
            group.lost_seconds,
            group.work.get("cpu", 0),
            group.replaced,
            group.longest_until_ready,
            ", ".join(f"{cause}: {number}" for cause, number in group.causes.items()),
        ]
        for group in answer.groups
    ]
    return _ledger_table(TITLES[answer.grouping], _GROUPS, rows)


def _records(answer: LedgerAnswer) -> list[Table]:
    rows: list[list[Value]] = [
        [
            answer.account.shown(record.time),
            record.pod,
            record.owner,
            record.priority,
            record.node,
            text_of(why_of(record)),
            record.by,
            record.rule,
            record.loss.lost,
            text_of(outcome_of(record)),
            record.in_vain,
        ]
        for record in answer.records
    ]
    return _ledger_table("Disruptions", _RECORDS, rows)


def _ledger_table(title: str, headings: Sequence[str], rows: Sequence[Sequence[Value]]) -> list[Table]:
    note = f"the last {_MOST_ROWS:,} of {len(rows):,}" if len(rows) > _MOST_ROWS else ""
    return table_of(title, headings, rows[-_MOST_ROWS:], note)


MOST_DRAWN = 2_000
_LONGEST_LINE = 500
_SECOND = 10**9


def disruptions_of(answer: LedgerAnswer) -> Disruptions | None:
    """Return the picture data of the latest disruptions; None if there are none."""
    records = answer.records[-MOST_DRAWN:]
    if not records:
        return None
    rows = {name: place for place, name in enumerate(_rows(answer, records))}
    places = {record.id: place for place, record in enumerate(records)}
    causes = sorted({record.cause for record in records})
    start, end = _extent(answer, records)
    left = len(answer.records) - len(records)
    return Disruptions(
        rows=[_line(name) for name in rows],
        causes=list(causes),
        is_dated=answer.account.is_dated,
        start=start,
        span=max(end - start, 1),
        row=[rows[_owner(record)] for record in records],
        cause=[causes.index(record.cause) for record in records],
        at=[record.time - start for record in records],
        gone=[_after(record, start, record.loss.ended_after) for record in records],
        ready=[
            _after(record, start, None if record.replacement is None else record.replacement.ready_after)
            for record in records
        ],
        beneficiary=[rows.get(_beneficiary(record), -1) for record in records],
        vain=[bool(record.in_vain) for record in records],
        following=_following(answer, places, len(records)),
        said=[_lines_about(answer, record) for record in records],
        note=f"the last {len(records):,} of {len(answer.records):,}" if left else "",
    )


def _rows(answer: LedgerAnswer, records: Sequence[Disruption]) -> list[str]:
    """Return the workloads: beneficiaries by falling priority, then victims by falling number of disruptions."""
    takers: dict[str, int] = {}
    counts: dict[str, int] = {}
    for record in records:
        if record.beneficiary is not None:
            name = _beneficiary(record)
            takers[name] = max(takers.get(name, record.beneficiary.priority), record.beneficiary.priority)
        counts[_owner(record)] = counts.get(_owner(record), 0) + 1
    first = sorted(takers, key=lambda name: (-takers[name], name))
    return [*first, *(name for name in sorted(counts, key=lambda name: (-counts[name], name)) if name not in takers)]


def _extent(answer: LedgerAnswer, records: Sequence[Disruption]) -> tuple[Seconds, Seconds]:
    """Return the start and end of the picture: that of a cluster starts shortly before the first disruption."""
    end = max(answer.account.end, *(record.time for record in records))
    if not answer.account.is_dated:
        return 0, end
    first = min(record.time for record in records)
    step = 60 if end - first < 7_200 else 3_600
    return first - first % step, end


def _following(answer: LedgerAnswer, places: dict[int, int], count: int) -> list[int]:
    found = [-1] * count
    for chain in answer.chains:
        for record, following in pairwise(chain):
            if record.id in places and following.id in places:
                found[places[record.id]] = places[following.id]
    return found


def _lines_about(answer: LedgerAnswer, record: Disruption) -> list[str]:
    """Return the lines of text about a disruption, its pod first."""
    loss = record.loss
    lines = [
        f"{record.pod}, priority {record.priority:,}",
        f"went from {record.node} at {answer.account.shown(record.time)}",
    ]
    by = f" by {record.by}" if record.by else ""
    lines.append(f"{text_of(why_of(record))}{by}{f': {record.rule}' if record.rule else ''}")
    if record.alternatives is not None:
        lines.append(f"{record.alternatives.candidates:,} candidates")
    if loss.lost:
        lines.append(f"{format_duration(round(loss.lost) * _SECOND)} of running time lost")
    lines.append(text_of(outcome_of(record)))
    if record.in_vain:
        lines.append(f"in vain: {record.in_vain}")
    return [_line(line) for line in lines]


def _after(record: Disruption, start: Seconds, after: Seconds | None) -> float | None:
    return None if after is None else record.time + after - start


def _owner(record: Disruption) -> str:
    return owner_name(record.owner, record.pod)


def _beneficiary(record: Disruption) -> str:
    beneficiary = record.beneficiary
    return "" if beneficiary is None else owner_name(beneficiary.owner, beneficiary.pod)


def _line(text: str) -> str:
    return escape(text, _LONGEST_LINE)


Decided = Explanation | WorkloadExplanation | NodeAnswer | Decision
Answer = Result | PlanAnswer | Decided | SweepAnswer | LedgerAnswer


def report(answer: Answer) -> str:
    """Return an answer as a self-contained HTML file. Raises TypeError for one that has no picture."""
    picture = picture_of(answer)
    return html_file(picture.headline, picture)


def picture_of(answer: Answer) -> Picture:
    """Return the picture of an answer. Raises TypeError for one that has none."""
    match answer:
        case Result():
            return picture_of_result(answer)
        case PlanAnswer():
            return picture_of_plan(answer)
        case Explanation() | WorkloadExplanation() | NodeAnswer():
            return picture_of_decision(answer)
        case Decision():
            return picture_of_written(answer)
        case LedgerAnswer():
            return picture_of_ledger(answer)
        case SweepAnswer():
            return picture_of_sweep(answer)
    raise TypeError(f"there is no picture of {type(answer).__name__}")
