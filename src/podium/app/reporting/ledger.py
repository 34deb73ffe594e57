"""The picture of an account of disruptions: who was hit most, chains, what was in vain, and each of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from podium.api.errors import escape
from podium.api.times import format_duration
from podium.app.accounting.account import LedgerAnswer, in_words, whose
from podium.app.accounting.text import fate_of, headline_of, title_of, why_of, write_ledger
from podium.app.console.cells import text_of
from podium.app.console.page import Page
from podium.app.reporting.picture import Disruptions, Picture, Table, told
from podium.controllers.ledger.disruption import Disruption, Seconds

_WIDTH = 120
_LONGEST = 2_000
_MOST_ROWS = 2_000
_GROUPS = ("", "disruptions", "in vain", "lost, s", "cpu lost, core-s", "ready again", "longest, s", "by")
_RECORDS = ("at", "pod", "of", "priority", "node", "why", "by", "rule", "lost, s", "what became of it", "in vain")

Row = list[str | int | float | None]


def picture_of_ledger(answer: LedgerAnswer) -> Picture:
    """The account by time, and in tables."""
    page = Page(_WIDTH)
    write_ledger(page, answer, every=False)
    dropped = answer.account.dropped
    return Picture(
        command="ledger",
        headline=escape(headline_of(answer), _LONGEST),
        facts=[f"{dropped:,} earlier ones are no longer kept"] if dropped else [],
        tables=[*_groups(answer), *_chains(answer)],
        more=_records(answer),
        disruptions=disruptions_of(answer),
        caveats=told(answer.account.caveats),
        text=page.text,
    )


def _groups(answer: LedgerAnswer) -> list[Table]:
    rows: list[Row] = [
        [
            _told(group.name),
            group.disruptions,
            group.in_vain,
            group.lost,
            group.work.get("cpu", 0),
            group.replaced,
            group.longest,
            ", ".join(f"{cause}: {number}" for cause, number in group.causes.items()),
        ]
        for group in answer.groups
    ]
    return _table(title_of(answer), _GROUPS, rows)


def _chains(answer: LedgerAnswer) -> list[Table]:
    rows: list[Row] = [[_told(" → ".join(in_words(chain)))] for chain in answer.chains]
    return _table("Chains: each pod took the place of the next", ("",), rows)


def _records(answer: LedgerAnswer) -> list[Table]:
    rows: list[Row] = [
        [
            answer.account.shown(record.time),
            _told(record.pod),
            _told(record.owner),
            record.priority,
            _told(record.node),
            _told(text_of(why_of(record))),
            _told(record.by),
            _told(record.rule),
            record.loss.lost,
            _told(text_of(fate_of(record))),
            _told(record.in_vain),
        ]
        for record in answer.records
    ]
    return _table("Disruptions", _RECORDS, rows)


def _table(title: str, headings: Sequence[str], rows: list[Row]) -> list[Table]:
    """The table with its last rows; none without any."""
    note = f"the last {_MOST_ROWS:,} of {len(rows):,}" if len(rows) > _MOST_ROWS else ""
    return [Table(title, list(headings), rows[-_MOST_ROWS:], note)] if rows else []


def _told(text: str) -> str:
    return escape(text, _LONGEST)


MOST_DRAWN = 2_000
_LONGEST_LINE = 500
_SECOND = 10**9


def disruptions_of(answer: LedgerAnswer) -> Disruptions | None:
    """The last disruptions that were asked for; None where there are none."""
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
        ready=[_after(record, start, _ready_after(record)) for record in records],
        whom=[rows.get(_for_whom(record), -1) for record in records],
        vain=[bool(record.in_vain) for record in records],
        following=_following(answer, places, len(records)),
        said=[_said(answer, record) for record in records],
        note=f"the last {len(records):,} of {len(answer.records):,}" if left else "",
    )


def _rows(answer: LedgerAnswer, records: Sequence[Disruption]) -> list[str]:
    """Those for whom others went, the most important first; then those who went, the hardest hit first."""
    takers: dict[str, int] = {}
    counts: dict[str, int] = {}
    for record in records:
        if record.beneficiary is not None:
            name = _for_whom(record)
            takers[name] = max(takers.get(name, record.beneficiary.priority), record.beneficiary.priority)
        counts[_owner(record)] = counts.get(_owner(record), 0) + 1
    first = sorted(takers, key=lambda name: (-takers[name], name))
    return [*first, *(name for name in sorted(counts, key=lambda name: (-counts[name], name)) if name not in takers)]


def _extent(answer: LedgerAnswer, records: Sequence[Disruption]) -> tuple[Seconds, Seconds]:
    """From when to when the picture goes: a run from its start, a cluster from shortly before the first."""
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


def _said(answer: LedgerAnswer, record: Disruption) -> list[str]:
    """What there is to say of a disruption, its pod first."""
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
    lines.append(text_of(fate_of(record)))
    if record.in_vain:
        lines.append(f"in vain: {record.in_vain}")
    return [_line(line) for line in lines]


def _after(record: Disruption, start: Seconds, after: Seconds | None) -> float | None:
    return None if after is None else record.time + after - start


def _ready_after(record: Disruption) -> Seconds | None:
    return None if record.replacement is None else record.replacement.ready_after


def _owner(record: Disruption) -> str:
    return whose(record.owner, record.pod)


def _for_whom(record: Disruption) -> str:
    whom = record.beneficiary
    return "" if whom is None else whose(whom.owner, whom.pod)


def _line(text: str) -> str:
    return escape(text, _LONGEST_LINE)
