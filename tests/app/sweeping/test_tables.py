import csv
import io

import pyarrow
from pyarrow import feather, parquet

from podium.app.sweeping.sweep import PlayedRun, RunOutcome
from podium.app.sweeping.sweep_result import SweepResult, in_arrow, rows_of

SUMMARY = {
    "preempted": 2,
    "disruptions": {"PreemptionByScheduler": 2},
    "waiting": [{"priority": 1000, "count": 1, "p95": 60}],
    "use": {"cpu": {"average": 0.5, "final": 1.0}},
    "nodeHours": 0.5,
    "short": [{}, {}],
    "drains": [{"node": "n1", "state": "drained"}],
}
PLAYED = [
    PlayedRun({"until": "1m"}, 0, RunOutcome(SUMMARY)),
    PlayedRun({"until": "2m"}, 0, RunOutcome(None, error="beyond the limit")),
    PlayedRun({"until": "3m"}, 0, RunOutcome({"nodeHours": 1, "preempted": 0})),
]


def test_a_row_has_the_settings_the_seed_and_every_figure_by_its_path() -> None:
    assert rows_of(PLAYED)[0] == {
        "until": "1m",
        "seed": 0,
        "error": None,
        "preempted": 2,
        "disruptions.PreemptionByScheduler": 2,
        "waiting.1000.count": 1,
        "waiting.1000.p95": 60,
        "use.cpu.average": 0.5,
        "use.cpu.final": 1.0,
        "nodeHours": 0.5,
        "short": 2,
        "drains.n1": "drained",
    }


def test_a_range_whose_ends_look_alike_is_one_figure() -> None:
    whole = SUMMARY | {"bindings": 1, "pods": {"pending": 0}}
    seeds = [PlayedRun({"until": "1m"}, seed, RunOutcome(whole | {"nodeHours": 0.5 + seed / 1e6})) for seed in (0, 1)]
    other = PlayedRun({"until": "2m"}, 0, RunOutcome(whole | {"nodeHours": 2}))

    text = SweepResult([*seeds, other]).text

    assert "0.50" in text
    assert "0.50 to 0.50" not in text


def test_all_rows_have_the_same_columns() -> None:
    first, second, third = rows_of(PLAYED)

    assert list(first) == list(second) == list(third)
    assert (second["error"], second["preempted"], third["preempted"]) == ("beyond the limit", None, 0)


def test_csv_is_read_back() -> None:
    rows = rows_of(PLAYED)

    read = list(csv.DictReader(io.StringIO(SweepResult(PLAYED).csv())))

    assert read == [{name: "" if value is None else str(value) for name, value in row.items()} for row in rows]


def test_csv_quotes_settings_that_a_spreadsheet_would_take_for_formulas() -> None:
    played = [PlayedRun({"filename": "=cmd()"}, 0, RunOutcome(None, error="-1 is negative"))]

    (row,) = csv.DictReader(io.StringIO(SweepResult(played).csv()))

    assert (row["filename"], row["error"]) == ("'=cmd()", "'-1 is negative")


def test_parquet_and_arrow_are_read_back() -> None:
    rows, frame = rows_of(PLAYED), SweepResult(PLAYED).frame()

    assert parquet.read_table(pyarrow.BufferReader(in_arrow(frame, "parquet"))).to_pylist() == rows
    assert feather.read_table(pyarrow.BufferReader(in_arrow(frame, "arrow"))).to_pylist() == rows
