"""The picture of an account of disruptions: who was hit most, chains, what was in vain, and each of them."""

from __future__ import annotations

from collections.abc import Sequence

from podium.api.errors import escape
from podium.app.accounting.answer import LedgerAnswer
from podium.app.accounting.chains import in_words
from podium.app.accounting.text import fate_of, headline_of, title_of, why_of, write_ledger
from podium.app.console.cells import text_of
from podium.app.console.page import Page
from podium.app.reporting.disruptions import disruptions_of
from podium.app.reporting.picture import Picture, Table, told

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
        rests_on=told(answer.account.caveats),
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
