"""Measurements: their fields, the counts of CPU seconds and operations, and the table of a run."""

from __future__ import annotations

import platform
import resource
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from time import process_time_ns
from types import FrameType
from typing import Any

import msgspec
import numpy as np

from podium.api.collector import collector_paused
from podium.api.errors import InputError
from podium.api.versions.release import own_version
from podium.app.console.cells import WORKLOADS, Name, Part
from podium.app.console.page import Page

SECOND_NS = 1_000_000_000
_RANKS = {"p50": 50, "p90": 90, "p99": 99, "max": 100}


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """The measurement of one workload.

    ``seconds`` were spent on ``pods``; ``placed`` pods existed before, and ``counts`` are the outcomes. Seconds are CPU
    seconds of the process with its system calls: other load on the machine hardly changes them.
    ``attempt_us`` are percentiles of the wall time of single attempts or questions. ``operations_per_pod`` does not
    depend on the machine (see `operations`); it is counted in a separate run with few pods. ``peak_memory_mib`` is the
    process's.
    """

    workload: str
    nodes: int
    placed: int
    pods: int
    counts: dict[str, int]
    load_seconds: float
    seconds: float
    pods_per_second: float
    peak_memory_mib: float
    attempt_us: dict[str, float] | None = None
    operations_per_pod: float | None = None

    @property
    def subject(self) -> tuple[str, int, int, int]:
        """A key: measurements of the same subject can be compared."""
        return self.workload, self.nodes, self.placed, self.pods


def measured(
    workload: str,
    pods: int,
    seconds: float,
    *,
    counts: Mapping[str, int],
    nodes: int = 0,
    placed: int = 0,
    load_seconds: float = 0.0,
    usage: resource.struct_rusage | None = None,
    times_ns: Sequence[int] = (),
    operations_per_pod: float | None = None,
) -> Measurement:
    """Return the measurement of a workload; ``usage`` is that of its process if that is not this one."""
    times = np.array(times_ns) / 1000
    return Measurement(
        workload=workload,
        nodes=nodes,
        placed=placed,
        pods=pods,
        counts=dict(counts),
        load_seconds=round(load_seconds, 3),
        seconds=round(seconds, 3),
        pods_per_second=round(pods / max(seconds, 1e-9), 1),
        peak_memory_mib=peak_memory_mib(usage),
        attempt_us={name: round(float(np.percentile(times, rank)), 1) for name, rank in _RANKS.items()}
        if len(times)
        else None,
        operations_per_pod=None if operations_per_pod is None else round(operations_per_pod, 1),
    )


class BenchRun(msgspec.Struct, frozen=True, kw_only=True):
    """The measurements of one run, with the versions and the machine that made them."""

    measurements: list[Measurement]
    podium: str
    python: str
    machine: str


def run_of(measurements: list[Measurement]) -> BenchRun:
    """Return the run of this program on this machine with the measurements."""
    about = {"podium": own_version(), "python": platform.python_version(), "machine": platform.machine()}
    return BenchRun(measurements=measurements, **about)


class Stopwatch:
    """Counts CPU seconds of this process."""

    def __init__(self) -> None:
        self._since = process_time_ns()

    def lap(self) -> float:
        """Return the seconds since the creation or the last call."""
        now = process_time_ns()
        seconds, self._since = (now - self._since) / SECOND_NS, now
        return seconds


def read_run(path: str) -> BenchRun:
    """Read a saved run. Raises InputError for another file, and OSError for an unreadable one."""
    try:
        return msgspec.json.decode(Path(path).read_bytes(), type=BenchRun)
    except msgspec.DecodeError as error:
        raise InputError(
            f"is not a run of podium bench, as --save and -o json write it: {error}", source=path
        ) from None


def peak_memory_mib(usage: resource.struct_rusage | None = None) -> float:
    """Return the peak memory of this process, or of the process with this ``usage``."""
    size = (usage or resource.getrusage(resource.RUSAGE_SELF)).ru_maxrss
    # Bytes on macOS, KiB elsewhere.
    return round(size / (2**20 if sys.platform == "darwin" else 2**10), 1)


@collector_paused()
def operations(act: Callable[[], object]) -> Counter[str]:
    """Count what a function does, by the name of the function: executed lines of Python, and calls of functions in C.

    Each iteration of a loop or a comprehension counts its lines again, so that work per entry grows with the entries.
    An operation on a whole array is one call, however long the array is. Garbage is not collected meanwhile.
    """
    found: Counter[str] = Counter()

    def note_line(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            found[frame.f_code.co_qualname] += 1
        return note_line

    def note_call(_: FrameType, event: str, argument: Any) -> None:
        if event == "c_call":
            found[getattr(argument, "__qualname__", "")] += 1

    tracing, profiling = sys.gettrace(), sys.getprofile()
    sys.setprofile(note_call)
    sys.settrace(note_line)
    try:
        act()
    finally:
        sys.settrace(tracing)
        sys.setprofile(profiling)
    return found


_COMPARED = ("pods_per_second", "operations_per_pod", "peak_memory_mib")
Ratios = Mapping[str, float | None]
"""The ratios of this run's figures to an earlier run's by name; None if one of them has no figure."""


def ratios_to(earlier: BenchRun, measurements: Iterable[Measurement]) -> list[Ratios | None]:
    """Return the ratios of each measurement; None if the earlier run has no such measurement."""
    before = {measurement.subject: measurement for measurement in earlier.measurements}
    found: list[Ratios | None] = []
    for now in measurements:
        then = before.get(now.subject)
        pairs = ((name, getattr(then, name, None), getattr(now, name)) for name in _COMPARED)
        ratios = {name: round(new / old, 2) if old and new is not None else None for name, old, new in pairs}
        found.append(None if then is None else ratios)
    return found


_COLUMNS = ("workload", "nodes", "pods", "CPU s", "pods/s", "ops/pod", "p50 us", "p99 us", "load s", "peak MiB")


def write_measurements(
    page: Page, measurements: Sequence[Measurement], ratios: Sequence[Ratios | None] | None = None
) -> None:
    """Write a line for each measurement, with its ratios to an earlier run if there are any."""
    headings = _COLUMNS if ratios is None else (*_COLUMNS, "x pods/s", "x ops", "x peak")
    rows: list[list[Part]] = []
    for index, measurement in enumerate(measurements):
        compared = None if ratios is None else ratios[index] or {}
        figures = [] if compared is None else map(compared.get, _COMPARED)
        cells = ["" if figure is None else f"{figure:.2f}" for figure in figures]
        times = measurement.attempt_us or {}
        rates = (measurement.pods_per_second, measurement.operations_per_pod, times.get("p50"), times.get("p99"))
        own = [
            f"{measurement.nodes:,}",
            f"{measurement.pods:,}",
            f"{measurement.seconds:.2f}",
            *("" if figure is None else f"{figure:,.0f}" for figure in rates),
            f"{measurement.load_seconds:.2f}",
            f"{measurement.peak_memory_mib:,.0f}",
        ]
        rows.append([Name(measurement.workload, WORKLOADS), *own, *cells])
    page.table(rows, headings, indent=0, right=range(1, len(headings)))
