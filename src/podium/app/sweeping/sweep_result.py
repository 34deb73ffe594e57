"""The result of a sweep, as text and as rows; and its runs' outcomes in a folder, so that a stopped sweep can go on.

In a folder or an object store, each run has a Parquet file of one row, the one that it has in the table of all runs,
which other programs can read while the sweep goes on. The file's metadata holds the whole outcome. Files are written as
a whole or not at all.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from podium.api import basis, times
from podium.api.errors import PodiumError, escape
from podium.api.versions.release import own_version
from podium.app.answers import Frame, Renderable, Value
from podium.app.console.cells import by_key, text_of
from podium.app.console.output import in_csv
from podium.app.console.page import Cell, Name, Page, Part, counted, names_of
from podium.app.sweeping.sweep import Combination, PlayedRun, Run, RunOutcome, Sweep, caveats_of, unpickled
from podium.sim.results.result import Result

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

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
    least, most, mean = min(values), max(values), sum(values) / len(values)
    if least == most:
        return figure.text(least)
    return f"{figure.text(mean)} ({figure.text(least)} to {figure.text(most)})"


def _values(combination: Combination) -> list[Part]:
    return [Name(value, f"values of {name}") for name, value in combination.items()]


def settings_text(combination: Combination) -> str:
    """Return the settings of a run in one line."""
    text = ", ".join(f"{name}={value}" for name, value in combination.items())
    return escape(text, _LONGEST) or "as given"


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
        found.append(row | dict(_figures(run.outcome.summary or {})))
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
        raise PodiumError(f'-o {form} needs Arrow: install it with pip install "podium[parquet]"') from None
    write = parquet.write_table if form == "parquet" else feather.write_feather
    sink = pyarrow.BufferOutputStream()
    write(pyarrow.table(frame), sink)
    return bytes(sink.getvalue().to_pybytes())


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


# The maximum number of combinations shown side by side.
_MOST_SEEN = 4


class SweepResult(Renderable):
    """The runs of a sweep in their order: by combination of settings, then by seed."""

    def __init__(self, runs: Sequence[PlayedRun], sweep: Sweep | None = None) -> None:
        self.runs = tuple(runs)
        self._sweep = sweep

    @property
    def caveats(self) -> tuple[basis.Caveat, ...]:
        """The distinct caveats of the runs."""
        return caveats_of(self.runs)

    @property
    def headline(self) -> str:
        """The numbers of runs and settings, in one line."""
        failed = sum(bool(run.outcome.error) for run in self.runs)
        combinations = len({tuple(run.combination.items()) for run in self.runs})
        without = f", {failed:,} without a result" if failed else ""
        return f"{len(self.runs):,} runs of {combinations:,} combinations of settings{without}"

    def write(self, page: Page) -> None:
        """Write a line for each combination of settings, a line for each run if they are few, and the caveats."""
        failed = [run for run in self.runs if run.outcome.error]
        groups = list(by_key((tuple(run.combination.items()), run) for run in self.runs).values())
        runs, settings = counted(len(self.runs), "run"), counted(len(groups), "combination")
        page.paragraph(Cell(f"{runs} of {settings} of settings", "bold"), hanging=2)
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
            texts = [", ".join(f"{name}={value}" for name, value in run.combination.items()) for run in failed]
            named = [f"{text} seed {run.seed}".strip() for text, run in zip(texts, failed, strict=True)]
            reasons = by_key((run.outcome.error, name) for run, name in zip(failed, named, strict=True))
            rows = [(names_of(runs, "runs", "bad", most=_MOST_NAMES), error) for error, runs in reasons.items()]
            page.table(rows, most=_MOST_RUNS, noun="reason")
        page.caveats(caveats_of(self.runs))

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
            raise PodiumError(f"a sweep has no table {name}; it has: runs")
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


_OUTCOME = b"podium.outcome"
_FIELDS = {
    "podium": "the version of Podium",
    "inputs": "the objects",
    "settings": "the varied settings",
    "options": "the options of the runs, or the configuration",
}


class RunFolder:
    """A folder with the outcomes of one sweep's runs; its seeds may become more."""

    def __init__(self, url: str) -> None:
        """Open a folder: a path, or an address such as s3://bucket/folder.

        Raises PodiumError without the extra `folders`, or for an address that cannot be opened.
        """
        try:
            import pyarrow  # noqa: F401 - an extra
            from fsspec.core import url_to_fs
        except ImportError:
            raise PodiumError(
                '--folder needs fsspec and Arrow: install them with pip install "podium[folders]"'
            ) from None
        self.url = url
        try:
            found: tuple[AbstractFileSystem, str] = url_to_fs(url)
        except (ImportError, OSError, ValueError) as error:
            raise PodiumError(f"--folder {url}: {error}") from None
        self._files, self._path = found

    def outcomes(self, sweep: Sweep, runs: Sequence[Run]) -> dict[Run, RunOutcome]:
        """Return the outcomes that the folder has of runs of the sweep; claim an empty folder for the sweep.

        Raises PodiumError for the folder of another sweep, and for files that cannot be read.
        """
        try:
            self._claim(sweep)
            kept = self.files_of(runs)
            # All at once: object stores answer many requests at a time.
            content_of = self._files.cat(list(kept.values())) if kept else {}
        except OSError as error:
            raise PodiumError(f"--folder {self.url}: {error}") from None
        return {run: self._read(file, content_of[file]) for run, file in kept.items()}

    def files_of(self, runs: Sequence[Run]) -> dict[Run, str]:
        """Return the files of the runs that have an outcome. Raises OSError."""
        # Other machines write to the folder, too.
        self._files.invalidate_cache()
        directory = f"{self._path}/runs"
        files = self._files.ls(directory, detail=False) if self._files.exists(directory) else []
        file_of = {file.rpartition("/")[2]: file for file in files}
        return {run: file for run in runs if (file := file_of.get(_name_of(run)))}

    def name_of(self, sweep: Sweep) -> str:
        """Return a name that this folder's runs of the sweep have alone."""
        seeds = sweep.seeds.start, sweep.seeds.stop
        return hashlib.sha256(msgspec.json.encode((self.url, seeds, _identity(sweep)))).hexdigest()[:12]

    def plan(self, sweep: Sweep) -> str:
        """Keep the sweep itself for workers; return the name and digest by which they know it."""
        self._claim(sweep)
        content = own_version().encode() + b"\n" + pickle.dumps(sweep)
        plan = f"{self.name_of(sweep)}-{hashlib.sha256(content).hexdigest()}"
        self._write(f"{self._path}/plans/{plan}", content)
        return plan

    def planned(self, plan: str) -> Sweep:
        """Return a sweep that was kept for workers. Raises PodiumError if it is not there or has changed."""
        try:
            content = self._files.cat_file(f"{self._path}/plans/{plan}")
        except OSError as error:
            raise PodiumError(f"--folder {self.url}: it has no plan {plan}: {error}") from None
        # The digest comes from the command line: the right to write to the folder alone brings in no code.
        if hashlib.sha256(content).hexdigest() != plan.rpartition("-")[2]:
            raise PodiumError(f"--folder {self.url}: the plan {plan} is not what was written")
        version, _, pickled = content.partition(b"\n")
        if version != own_version().encode():
            raise PodiumError(f"the plan is of Podium {version.decode()}, and the image has {own_version()}")
        return unpickled(pickled)

    def forget_plans(self, sweep: Sweep) -> None:
        """Remove the plans of the sweep, which no worker reads any more."""
        for file in self._files.glob(f"{self._path}/plans/{self.name_of(sweep)}-*"):
            self._files.rm_file(file)

    def keep(self, sweep: Sweep, run: Run, outcome: RunOutcome) -> RunOutcome:
        """Write the outcome of a run, and return it as it will be read."""
        import pyarrow
        from pyarrow import parquet

        written = msgspec.json.encode(outcome)
        kept = msgspec.json.decode(written, type=RunOutcome)
        row = rows_of([PlayedRun(sweep.variants[run.variant].combination, run.seed, kept)])
        table = pyarrow.Table.from_pylist(row).replace_schema_metadata({_OUTCOME: written})
        sink = pyarrow.BufferOutputStream()
        parquet.write_table(table, sink)
        self._write(f"{self._path}/runs/{_name_of(run)}", sink.getvalue().to_pybytes())
        return kept

    def _write(self, file: str, content: bytes) -> None:
        try:
            self._files.makedirs(file.rpartition("/")[0], exist_ok=True)
            with self._files.transaction, self._files.open(file, "wb") as opened:
                opened.write(content)
        except OSError as error:
            raise PodiumError(f"--folder {self.url}: {file}: {error}") from None

    def _claim(self, sweep: Sweep) -> None:
        """Check that the folder belongs to the sweep; an empty one does from now on."""
        file, mine = f"{self._path}/sweep.json", _identity(sweep)
        if not self._files.exists(file):
            self._write(file, msgspec.json.format(msgspec.json.encode(mine), indent=2))
            return
        try:
            theirs = msgspec.json.decode(self._files.cat_file(file), type=dict[str, Any])
        except msgspec.MsgspecError as error:
            raise PodiumError(f"--folder {self.url}: {file} is not the description of a sweep: {error}") from None
        different = [what for field, what in _FIELDS.items() if theirs.get(field) != mine[field]]
        if different:
            raise PodiumError(
                f"--folder {self.url}: it has the runs of another sweep, with a difference in "
                f"{', '.join(different)}; name another folder"
            )

    def _read(self, file: str, content: bytes) -> RunOutcome:
        import pyarrow
        from pyarrow import parquet

        try:
            written = parquet.read_schema(pyarrow.BufferReader(content)).metadata[_OUTCOME]
            return msgspec.json.decode(written, type=RunOutcome)
        except (pyarrow.ArrowException, KeyError, TypeError, msgspec.MsgspecError) as error:
            raise PodiumError(
                f"--folder {self.url}: {file} is not the outcome of a run: {error}; delete it to play the run again"
            ) from None


def _name_of(run: Run) -> str:
    return f"{run.variant:06d}-{run.seed}.parquet"


def _identity(sweep: Sweep) -> dict[str, Any]:
    """Return what the runs depend on besides their seeds. The code of plugins is not part of it."""
    inputs = []
    for found in sweep.inputs:
        digest = hashlib.sha256()
        for document in found.documents:
            digest.update(msgspec.json.encode(document.read_raw(), order="deterministic"))
        inputs.append(digest.hexdigest())
    options = hashlib.sha256()
    for variant in sweep.variants:
        configuration = variant.options.configuration
        if configuration is not None:
            configuration = msgspec.structs.replace(configuration, source="")
        options.update(repr((variant.input, replace(variant.options, configuration=configuration))).encode())
    return {
        "podium": own_version(),
        "inputs": inputs,
        "settings": [dict(variant.combination) for variant in sweep.variants],
        "options": options.hexdigest(),
    }
