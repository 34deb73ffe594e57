"""The runs of a sweep as rows of a table: one a run, the same columns in each; and the forms that tables have."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from podium.api.errors import PodiumError

if TYPE_CHECKING:
    from podium.app.sweeping.sweep import Played

Value = str | int | float | None
Row = dict[str, Value]


def rows_of(played: Sequence[Played]) -> list[Row]:
    """A row for each run: its settings by name, `seed`, `error`, and the figures of its summary by their path.

    So `waiting.1000.p95` is how long pods of priority 1000 waited. A figure that a run does not have is None.
    """
    found = [_row(run) for run in played]
    columns = dict.fromkeys(name for row in found for name in row)
    return [{name: row.get(name) for name in columns} for row in found]


def in_csv(rows: Sequence[Row]) -> str:
    """The rows under a line with the names of their columns, as RFC 4180 has it; nothing stands for None."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(rows[0])
    writer.writerows(row.values() for row in rows)
    return text.getvalue()


def in_parquet(rows: Sequence[Row]) -> bytes:
    """The rows as a Parquet file. Raises PodiumError where the extra `parquet` is not installed."""
    return _written(rows, "parquet")


def in_arrow(rows: Sequence[Row]) -> bytes:
    """The rows as an Arrow file (Feather). Raises PodiumError where the extra `parquet` is not installed."""
    return _written(rows, "arrow")


BINARY: dict[str, Callable[[Sequence[Row]], bytes]] = {"parquet": in_parquet, "arrow": in_arrow}
"""The forms that are not text."""


def _row(run: Played) -> Row:
    row: Row = {**run.combination, "seed": run.seed, "error": run.outcome.error or None}
    if run.outcome.summary is not None:
        row.update(_figures(run.outcome.summary))
    return row


def _figures(summary: dict[str, Any]) -> Iterable[tuple[str, Value]]:
    for name, value in summary.items():
        if name == "waiting":
            for waits in value:
                yield from (
                    (f"waiting.{waits['priority']}.{each}", waits[each]) for each in waits if each != "priority"
                )
        elif name == "drains":
            for drain in value:
                yield f"drains.{drain['node']}", drain["state"]
        elif isinstance(value, dict):
            yield from ((f"{name}.{path}", figure) for path, figure in _figures(value))
        else:
            yield name, len(value) if isinstance(value, list) else value


def _written(rows: Sequence[Row], form: str) -> bytes:
    try:
        import pyarrow
        from pyarrow import feather, parquet
    except ImportError:
        raise PodiumError(f'-o {form} needs Arrow: install it with pip install "podium[parquet]"') from None
    table = pyarrow.table({name: _column([row[name] for row in rows]) for name in rows[0]})
    sink = pyarrow.BufferOutputStream()
    if form == "parquet":
        parquet.write_table(table, sink)
    else:
        feather.write_feather(table, sink)
    return bytes(sink.getvalue().to_pybytes())


def _column(values: list[Value]) -> list[Value]:
    """Values of one type: whole numbers among others are written as these are."""
    if any(isinstance(value, float) for value in values):
        return [float(value) if isinstance(value, int) else value for value in values]
    return values
