"""The result of a sweep, as text and as rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from podium.api import basis, errors, times
from podium.app.answers import Frame, Renderable, Value
from podium.app.console.cells import by_key, text_of
from podium.app.console.output import in_csv
from podium.app.console.page import Cell, Name, Page, Part, counted, names_of
from podium.app.sweeping.sweep import Combination, PlayedRun, Sweep
from podium.sim.results.result import Result

_INDENT = 2
_MOST_RUNS = 40
_MOST_NAMES = 3
_LONGEST = 500
_MILLISECOND = 10**6
_PLACES = 2

Summary = dict[str, Any]


class _Figure(NamedTuple):
    """A column: its heading, its value in a summary (None if it has none), and the format of a value."""

    heading: str
    value: Callable[[Summary], float | None]
    text: Callable[[float], str]


def _figures_of(summaries: Sequence[Summary]) -> list[_Figure]:
    """Return the columns for which these summaries have values."""
    priorities = sorted({waits["priority"] for summary in summaries for waits in summary["waiting"]}, reverse=True)
    resources = sorted({name for summary in summaries for name in summary["use"]})
    return [
        _Figure("preempted", lambda summary: summary["preempted"], _number),
        _Figure("disrupted", lambda summary: sum(summary["disruptions"].values()), _number),
        _Figure("bound", lambda summary: summary["bindings"], _number),
        _Figure("pending", lambda summary: summary["pods"]["pending"], _number),
        *(_waiting(priority) for priority in priorities[:2]),
        *(_use(name) for name in resources if name == "cpu" or "/" in name),
        _Figure("node-hours", lambda summary: summary["nodeHours"], _number),
    ]


def _waiting(priority: int) -> _Figure:
    def value(summary: Summary) -> float | None:
        return next((waits["p95"] for waits in summary["waiting"] if waits["priority"] == priority), None)

    return _Figure(f"95% wait at {priority}", value, _duration)


def _use(resource: str) -> _Figure:
    def value(summary: Summary) -> float | None:
        found = summary["use"].get(resource)
        return None if found is None else 100 * float(found["average"])

    return _Figure(resource.rpartition("/")[2], value, lambda share: f"{share:.1f}%")


def _write_table(
    page: Page, heads: Sequence[list[Part]], figures: Sequence[_Figure], groups: Sequence[list[Summary]]
) -> None:
    columns = [[figure.heading, *(_spread(figure, summaries) for summaries in groups)] for figure in figures]
    width = sum(_width(list(map(text_of, column))) for column in zip(*heads, strict=True))
    if page.is_shortened:
        # Longer values are shortened, so that figures have enough width.
        width = min(width, page.width // 4)
    while columns:
        count, used = 0, width + _INDENT
        while count < len(columns) and (count == 0 or used + _width(columns[count]) <= page.width):
            used += _width(columns[count])
            count += 1
        rows: list[list[Part]] = [[*head, *cells] for head, *cells in zip(heads, *columns[:count], strict=True)]
        page.columns(rows, indent=_INDENT, right=range(len(heads[0]), len(rows[0])))
        columns = columns[count:]
        if columns:
            page.line()


def _width(column: Sequence[str]) -> int:
    return max(len(cell) for cell in column) + _INDENT


def _differs(figure: _Figure, runs: Sequence[PlayedRun]) -> bool:
    return len({figure.value(summary) for summary in _summaries(runs)}) > 1


def _summaries(runs: Sequence[PlayedRun]) -> list[Summary]:
    return [run.outcome.summary for run in runs if run.outcome.summary is not None]


def _spread(figure: _Figure, summaries: Sequence[Summary]) -> str:
    """Return the mean, with the range if the values differ; "" without values."""
    values = [value for summary in summaries if (value := figure.value(summary)) is not None]
    if not values:
        return ""
    least, most, mean = map(figure.text, (min(values), max(values), sum(values) / len(values)))
    return least if least == most else f"{mean} ({least} to {most})"


def _values(combination: Combination) -> list[Part]:
    return [Name(value, f"values of {name}") for name, value in combination.items()]


def settings_text(combination: Combination) -> str:
    """Return the settings of a run in one line."""
    text = ", ".join(f"{name}={value}" for name, value in combination.items())
    return errors.escape(text, _LONGEST) or "as given"


def _number(value: float) -> str:
    return f"{round(value, _PLACES):,.{0 if float(value).is_integer() else _PLACES}f}"


def _duration(seconds: float) -> str:
    return times.format_duration(round(seconds * times.SECOND / _MILLISECOND) * _MILLISECOND)


Row = dict[str, Value]


def rows_of(played: Sequence[PlayedRun]) -> list[Row]:
    """Return a row for each run: its settings by name, `seed`, `error`, and the figures of its summary by path.

    For example, `waiting.1000.p95` is how long pods of priority 1000 waited. A figure that a run does not have is None.
    """
    found: list[Row] = []
    for run in played:
        row: Row = {**run.combination, "seed": run.seed, "error": run.outcome.error or None}
        found.append(row | dict(_by_path(run.outcome.summary or {})))
    columns = dict.fromkeys(name for row in found for name in row)
    return [{name: row.get(name) for name in columns} for row in found]


def in_arrow(frame: Frame, form: str) -> bytes:
    """Return a table as a `parquet` or an `arrow` (Feather) file.

    Raises PodiumError if the extra `parquet` is not installed.
    """
    try:
        import pyarrow
        from pyarrow import feather, parquet
    except ImportError:
        raise errors.PodiumError(f'-o {form} needs Arrow: install it with pip install "podium[parquet]"') from None
    write = parquet.write_table if form == "parquet" else feather.write_feather
    sink = pyarrow.BufferOutputStream()
    write(pyarrow.table(frame), sink)
    return bytes(sink.getvalue().to_pybytes())


def _by_path(summary: Summary) -> Iterable[tuple[str, Value]]:
    """Yield the figures of a summary, each with its path; the length of a list is its figure."""
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
            yield from ((f"{name}.{path}", figure) for path, figure in _by_path(value))
        else:
            yield name, len(value) if isinstance(value, list) else value


# The maximum number of combinations shown side by side.
_MOST_SEEN = 4


class SweepResult(Renderable):
    """The runs of a sweep in their order: by combination of settings, then by seed."""

    def __init__(self, runs: Sequence[PlayedRun], sweep: Sweep | None = None) -> None:
        self.runs = tuple(runs)
        self._sweep = sweep

    @property
    def caveats(self) -> tuple[basis.Caveat, ...]:
        """The distinct caveats of the runs, in the order of the runs."""
        return tuple(dict.fromkeys(caveat for run in self.runs for caveat in run.outcome.caveats))

    @property
    def headline(self) -> str:
        """The numbers of runs and settings, in one line."""
        failed = sum(bool(run.outcome.error) for run in self.runs)
        combinations = len({tuple(run.combination.items()) for run in self.runs})
        without = f", {failed:,} without a result" if failed else ""
        return f"{counted(len(self.runs), 'run')} of {counted(combinations, 'combination')} of settings{without}"

    def write(self, page: Page) -> None:
        """Write a line for each combination of settings, a line for each run if they are few, and the caveats."""
        failed = [run for run in self.runs if run.outcome.error]
        groups = list(by_key((tuple(run.combination.items()), run) for run in self.runs).values())
        page.paragraph(Cell(self.headline, "bold"), hanging=2)
        summaries = _summaries(self.runs)
        figures = _figures_of(summaries)
        differing = [figure for figure in figures if _differs(figure, self.runs)]
        alike = [f"{each.heading} {_spread(each, summaries)}" for each in figures if each not in differing]
        names = list(self.runs[0].combination)
        if differing:
            seeds = len(groups[0])
            rest = f"means over {counted(seeds, 'seed')}, with the least and the most" if seeds > 1 else ""
            page.title("Settings", rest)
            heads: list[list[Part]] = [[*names], *(_values(group[0].combination) for group in groups)]
            _write_table(page, heads, differing, [_summaries(group) for group in groups])
        if len(self.runs) <= _MOST_RUNS and any(_differs(figure, group) for group in groups for figure in differing):
            page.title("Runs")
            heads = [[*names, "seed"], *([*_values(run.combination), str(run.seed)] for run in self.runs)]
            _write_table(page, heads, differing, [_summaries([run]) for run in self.runs])
        if alike and summaries:
            page.title("Alike in all")
            page.paragraph(", ".join(alike), indent=_INDENT)
        if failed:
            page.title("Without a result", counted(len(failed), "run"))
            reasons = by_key((run.outcome.error, f"{settings_text(run.combination)} seed {run.seed}") for run in failed)
            rows = [(names_of(runs, "runs", "bad", most=_MOST_NAMES), error) for error, runs in reasons.items()]
            page.table(rows, most=_MOST_RUNS, noun="reason")
        page.caveats(self.caveats)

    def replayed(self) -> Iterator[tuple[str, Result]]:
        """Play the first runs of some settings again; yield the results, each with the text of its settings."""
        sweep = self._sweep
        if sweep is None:
            return
        for run in [run for run in sweep.runs if run.seed == sweep.seeds[0]][:_MOST_SEEN]:
            result = sweep.result(run)
            if result is not None:
                yield settings_text(sweep.variants[run.variant].combination), result

    def frame(self, name: str = "runs") -> Frame:
        """Return the table `runs`, the only one, with the content of `rows`. Raises PodiumError for another name."""
        if name != "runs":
            raise errors.PodiumError(f"a sweep has no table {name}; it has: runs")
        return Frame.of_rows(name, self.rows())

    def rows(self) -> list[Row]:
        """Return a row for each run: settings, `seed`, `error`, and the summary's figures by path (`waiting.0.p95`).

        Times are in seconds, shares between 0 and 1. A figure that a run does not have is None.
        """
        return rows_of(self.runs)

    def csv(self) -> str:
        """Return the rows as CSV with a header line; None is an empty field."""
        rows = self.rows()
        return in_csv(tuple(rows[0]), (tuple(row.values()) for row in rows))

    def to_dict(self) -> dict[str, Any]:
        return {"runs": [run.to_dict() for run in self.runs], "caveats": [caveat.to_dict() for caveat in self.caveats]}
