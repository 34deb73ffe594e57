"""Pictures of answers, for `-o html`: runs, plans, sweeps and accounts of disruptions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from podium.api.errors import escape
from podium.api.times import SECOND, format_duration
from podium.app.accounting.account import LedgerAnswer, chain_pods, owner_name
from podium.app.accounting.text import TITLES, headline_of, outcome_of, why_of, write_ledger
from podium.app.answers import Value
from podium.app.console.cells import NODES, Name, Part, text_of
from podium.app.console.page import Page, Section, counted
from podium.app.explaining import explanation, on_node, workload
from podium.app.live.decisions import WrittenDecision
from podium.app.planning.answer import PlanAnswer, anyway_text, impact_sections, node_hours_text
from podium.app.reporting.decision import picture_of_decision, picture_of_written
from podium.app.reporting.picture import (
    AnswerPicture,
    Disruptions,
    Runs,
    Table,
    caveat_texts,
    drawn,
    html_file,
    table_of,
)
from podium.app.reporting.run_timeline import timeline_of
from podium.app.simulating.text import comparison_section, summary_sections, sums_text
from podium.app.sweeping.sweep_result import SweepResult, settings_text
from podium.controllers.ledger.disruption import Disruption, Seconds
from podium.sim.results.result import Result

_LONGEST = 500
_NOT_FIGURES = frozenset(("seed", "error"))


def picture_of_result(result: Result) -> AnswerPicture:
    """Return the picture of a run."""
    summary = result.summary
    compared = [] if result.recorded is None else [comparison_section(result.recorded)]

    def drain_row(drain: dict[str, Any]) -> tuple[Part, ...]:
        gone = sum(pod["state"] == "gone" for pod in drain["pods"])
        return Name(drain["node"], NODES), str(drain["state"]), gone, drain["message"] or ""

    drains = Section.of("drains", "Drains", summary["drains"], drain_row, ("node", "state", "gone", ""))
    wanted = ("workload", "wants", "has", "reason")
    rows = tuple(tuple(short[name] for name in wanted) for short in summary["short"])
    short = Section("short", "Short of pods", rows, ("workload", "wants", "has", "why"))
    return AnswerPicture(
        command="simulate",
        headline=f"{format_duration(round(summary['end'] * 10**9))}: {sums_text(summary)}",
        facts=unrecorded_placements(result),
        stories=[timeline_of(result, "")],
        more=drawn([*summary_sections(summary), *compared, drains, short]),
        caveats=caveat_texts(result.caveats),
    )


def unrecorded_placements(result: Result) -> list[str]:
    """Return a note about placements without recorded reasons; empty if there are none."""
    left_out = result.placements_left_out
    if not left_out:
        return []
    recorded = f"reasons are shown for the first {counted(len(result.placements), 'placement')}"
    return [f"{recorded}; {counted(left_out, 'later attempt')} left out"]


def picture_of_sweep(answer: SweepResult) -> AnswerPicture:
    """Return the picture of a sweep: the figures of all runs, and some runs side by side.

    The table has a row for each run: its settings, its seed, and the figures that differ.
    """
    played, rows = answer.runs, answer.rows()
    texts = [settings_text(run.combination) for run in played]
    settings, varied = list(dict.fromkeys(texts)), {*played[0].combination, "seed"}
    differing = [name for name in rows[0] if name not in varied and len({row[name] for row in rows}) > 1]
    kept = [name for name in rows[0] if name in varied or name in differing]
    note = "what differs between them" if len(rows) > 1 else ""
    figures = [
        name
        for name in differing
        if name not in _NOT_FIGURES and any(isinstance(row[name], int | float) for row in rows)
    ]
    return AnswerPicture(
        command="sweep",
        headline=f"{counted(len(played), 'run')} of {counted(len(settings), 'combination')} of settings",
        tables=table_of("Runs", kept, [[row[name] for name in kept] for row in rows], note),
        runs=Runs(
            settings,
            figures,
            list(map(settings.index, texts)),
            [run.seed for run in played],
            [[None if isinstance(value := row[name], str) else value for name in figures] for row in rows],
        ),
        stories=[timeline_of(result, name) for name, result in answer.replayed()],
        caveats=caveat_texts(answer.caveats),
    )


def picture_of_plan(answer: PlanAnswer) -> AnswerPicture:
    """Return the picture of a plan, and of the run without it."""
    runs = zip(answer.runs, (answer.baseline, answer.result), strict=True)
    facts = [*filter(None, (answer.summary, anyway_text(answer), node_hours_text(answer)))]
    rows = ((Name(node.node, NODES), node.change, node.pods_before, node.pods_after) for node in answer.nodes)
    nodes = Section("nodes", "Nodes", tuple(rows), ("node", "change", "pods before", "pods after"))
    codes = tuple((finding.code, finding.message) for finding in answer.findings)
    findings = Section("findings", "Found", codes, ("", "what"), "as --fail-on names it")
    return AnswerPicture(
        command=f"plan {answer.question}",
        headline=escape(answer.headline, _LONGEST),
        facts=facts if answer.result is None else [*facts, *unrecorded_placements(answer.result)],
        tables=drawn([*answer.sections, *impact_sections(answer)]),
        more=drawn([nodes, findings]),
        stories=[timeline_of(result, escape(name, _LONGEST)) for name, result in runs if result is not None],
        caveats=caveat_texts(answer.caveats),
    )


_WIDTH = 120
_MOST_ROWS = 2_000
_GROUPS = ("", "disruptions", "in vain", "lost, s", "cpu lost, core-s", "ready again", "longest, s", "by")
_RECORDS = ("at", "pod", "of", "priority", "node", "why", "by", "rule", "lost, s", "outcome", "in vain")


def picture_of_ledger(answer: LedgerAnswer) -> AnswerPicture:
    """Return the picture of a ledger: its disruptions by time, and tables."""
    page = Page(_WIDTH)
    write_ledger(page, answer, every=False)
    dropped = answer.account.dropped
    rows = [[" → ".join(chain_pods(chain))] for chain in answer.chains]
    return AnswerPicture(
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


def disruptions_of(answer: LedgerAnswer) -> Disruptions | None:
    """Return the picture data of the latest disruptions; None if there are none."""
    records = answer.records[-MOST_DRAWN:]
    if not records:
        return None
    # Beneficiaries by falling priority, then victims by falling number of disruptions.
    takers: dict[str, int] = {}
    for record in records:
        if record.beneficiary is not None:
            name, priority = _beneficiary(record), record.beneficiary.priority
            takers[name] = max(takers.get(name, priority), priority)
    counts = Counter(map(_owner, records))
    names = sorted(takers, key=lambda name: (-takers[name], name))
    names += [name for name in sorted(counts, key=lambda name: (-counts[name], name)) if name not in takers]
    rows = {name: place for place, name in enumerate(names)}
    places = {record.id: place for place, record in enumerate(records)}
    causes = sorted({record.cause for record in records})
    end = max(answer.account.end, *(record.time for record in records))
    first = min(record.time for record in records)
    # The picture of a cluster starts shortly before the first disruption.
    start = first - first % (60 if end - first < 7_200 else 3_600) if answer.account.is_dated else 0
    next_of = {record.id: following.id for chain in answer.chains for record, following in pairwise(chain)}

    def after(record: Disruption, seconds: Seconds | None) -> float | None:
        return None if seconds is None else record.time + seconds - start

    return Disruptions(
        rows=list(map(_line, names)),
        causes=list(causes),
        is_dated=answer.account.is_dated,
        start=start,
        span=max(end - start, 1),
        row=[rows[_owner(record)] for record in records],
        cause=[causes.index(record.cause) for record in records],
        at=[record.time - start for record in records],
        gone=[after(record, record.loss.ended_after) for record in records],
        ready=[after(record, record.replacement.ready_after if record.replacement else None) for record in records],
        beneficiary=[rows.get(_beneficiary(record), -1) for record in records],
        vain=[bool(record.in_vain) for record in records],
        following=[places.get(next_of.get(record.id, -1), -1) for record in records],
        lines=[_lines_about(answer, record) for record in records],
        note=f"the last {len(records):,} of {len(answer.records):,}" if len(answer.records) > len(records) else "",
    )


def _lines_about(answer: LedgerAnswer, record: Disruption) -> list[str]:
    """Return the lines of text about a disruption, its pod first."""
    lost = record.loss.lost
    by = f" by {record.by}" if record.by else ""
    lines = [
        f"{record.pod}, priority {record.priority:,}",
        f"went from {record.node} at {answer.account.shown(record.time)}",
        f"{text_of(why_of(record))}{by}{f': {record.rule}' if record.rule else ''}",
        "" if record.alternatives is None else f"{record.alternatives.candidates:,} candidates",
        f"{format_duration(round(lost) * SECOND)} of running time lost" if lost else "",
        text_of(outcome_of(record)),
        f"in vain: {record.in_vain}" if record.in_vain else "",
    ]
    return list(map(_line, filter(None, lines)))


def _owner(record: Disruption) -> str:
    return owner_name(record.owner, record.pod)


def _beneficiary(record: Disruption) -> str:
    beneficiary = record.beneficiary
    return "" if beneficiary is None else owner_name(beneficiary.owner, beneficiary.pod)


def _line(text: str) -> str:
    return escape(text, _LONGEST_LINE)


Decided = explanation.Explanation | workload.WorkloadExplanation | on_node.NodeAnswer | WrittenDecision
Answer = Result | PlanAnswer | Decided | SweepResult | LedgerAnswer


def report(answer: Answer) -> str:
    """Return an answer as a self-contained HTML file. Raises TypeError for one that has no picture."""
    drawn = picture_of(answer)
    return html_file(drawn.headline, drawn)


def picture_of(answer: Answer) -> AnswerPicture:
    """Return the picture of an answer. Raises TypeError for one that has none."""
    match answer:
        case Result():
            return picture_of_result(answer)
        case PlanAnswer():
            return picture_of_plan(answer)
        case explanation.Explanation() | workload.WorkloadExplanation() | on_node.NodeAnswer():
            return picture_of_decision(answer)
        case WrittenDecision():
            return picture_of_written(answer)
        case LedgerAnswer():
            return picture_of_ledger(answer)
        case SweepResult():
            return picture_of_sweep(answer)
    raise TypeError(f"there is no picture of {type(answer).__name__}")
