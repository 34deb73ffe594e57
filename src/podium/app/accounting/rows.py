"""Disruptions as rows of a table that spreadsheets read."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from podium.app.accounting.account import Account
from podium.machines.ledger.disruption import Disruption

COLUMNS = (
    *("id", "time", "pod", "uid", "owner", "priority", "node", "cause", "by", "rule", "plan", "candidates"),
    *("for", "forOwner", "forPriority", "outcome", "forNode", "forPlacedAfter"),
    *("ran", "lost", "cpuLost", "memoryLost", "grace", "endedAfter"),
    *("replacement", "replacementNode", "placedAfter", "readyAfter", "inVain"),
)
"""The columns, in their order."""

# What begins so a spreadsheet takes for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def in_csv(account: Account, records: Sequence[Disruption]) -> str:
    """A row for each disruption. Text that a spreadsheet would take for a formula gets a quote before it."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    for record in records:
        writer.writerow(map(_harmless, _row(account, record)))
    return stream.getvalue()


def _row(account: Account, record: Disruption) -> list[object]:
    whom, came, loss = record.beneficiary, record.replacement, record.loss
    time = account.shown(record.time) if account.is_dated else record.time
    row: list[object] = [record.id, time, record.pod, record.uid, record.owner, record.priority, record.node]
    row += [record.cause, record.by, record.rule, record.plan]
    row.append(None if record.alternatives is None else record.alternatives.candidates)
    row += (
        [None] * 6
        if whom is None
        else [whom.pod, whom.owner, whom.priority, whom.outcome, whom.node, whom.placed_after]
    )
    row += [loss.ran, loss.lost, loss.work.get("cpu"), loss.work.get("memory"), loss.grace, loss.ended_after]
    row += [None] * 4 if came is None else [came.pod, came.node, came.placed_after, came.ready_after]
    return [*row, record.in_vain]


def _harmless(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
