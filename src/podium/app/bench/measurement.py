"""What a workload came to, and a run of several: values that are kept as JSON and compared."""

from __future__ import annotations

import platform
import resource
import sys
from collections.abc import Sequence
from pathlib import Path
from time import process_time_ns

import msgspec
import numpy as np

from podium.api.errors import InputError

SECOND_NS = 1_000_000_000
_RANKS = {"p50": 50, "p90": 90, "p99": 99, "max": 100}


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """What one workload came to.

    ``pods`` are those that ``seconds`` were spent on, ``placed`` those that were there before, and ``counts`` what
    became of them. Seconds are CPU seconds of the process, its system calls included (of `live` those of the clock):
    others that load the machine hardly change them. ``attempt_us`` are percentiles of the wall time of single attempts
    or questions. ``operations_per_pod`` does not depend on the machine (see `podium.app.bench.operations`); it is
    counted apart from the seconds, with few pods. ``peak_memory_mib`` is the process's. ``times_without`` is for
    workloads that are also run without what they are about: how many times the CPU seconds of that.
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
    times_without: float | None = None

    @property
    def subject(self) -> tuple[str, int, int, int]:
        """What was measured: two measurements of the same can be compared."""
        return self.workload, self.nodes, self.placed, self.pods


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """The measurements of one run, and by what they were made."""

    measurements: list[Measurement]
    podium: str
    python: str
    machine: str


class Stopwatch:
    """Counts CPU seconds of this process."""

    def __init__(self) -> None:
        self._since = process_time_ns()

    def lap(self) -> float:
        """The seconds since it was made or last asked."""
        now = process_time_ns()
        seconds, self._since = (now - self._since) / SECOND_NS, now
        return seconds


def run_of(measurements: list[Measurement]) -> Run:
    """The measurements as a run of this program on this machine."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        podium = version("podium")
    except PackageNotFoundError:
        podium = ""
    return Run(measurements=measurements, podium=podium, python=platform.python_version(), machine=platform.machine())


def read_run(path: str) -> Run:
    """A run that was kept. Raises InputError for a file that is none, and OSError for one that cannot be read."""
    try:
        return msgspec.json.decode(Path(path).read_bytes(), type=Run)
    except msgspec.DecodeError as error:
        raise InputError(
            f"is no run of podium bench, as --save and --output json write it: {error}", source=path
        ) from None


def rate(pods: int, seconds: float) -> float:
    """Pods a second."""
    return round(pods / max(seconds, 1e-9), 1)


def percentiles_us(times_ns: Sequence[int]) -> dict[str, float] | None:
    """The percentiles of times, in microseconds; None where there are none."""
    if not times_ns:
        return None
    times = np.array(times_ns) / 1000
    return {name: round(float(np.percentile(times, rank)), 1) for name, rank in _RANKS.items()}


def peak_memory_mib(usage: resource.struct_rusage | None = None) -> float:
    """The most memory that this process has had at a time, or the one that ``usage`` is of."""
    size = (usage or resource.getrusage(resource.RUSAGE_SELF)).ru_maxrss
    # Bytes on macOS, KiB elsewhere.
    return round(size / (2**20 if sys.platform == "darwin" else 2**10), 1)
