"""Write the recording of a month: an EKS cluster, and tasks of the openb trace that come and go on it.

The cluster is that of `podium bench`. Podium's simulator plays it, so that a scheduler has decided each binding and
preemption. The files are those of `podium record --every`.
"""

from __future__ import annotations

import argparse
import resource
import time
from pathlib import Path

from tools.recorded_month.play import Size, record_month


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tools.recorded_month", description=__doc__)
    parser.add_argument("--tasks", type=Path, required=True, help="the openb trace's pods.csv")
    parser.add_argument("--out", type=Path, required=True, help="the folder for the files")
    parser.add_argument("--nodes", type=int, default=5_000, help="(default: %(default)s)")
    parser.add_argument("--pods", type=int, default=1_000_000, help="how many tasks arrive (default: %(default)s)")
    parser.add_argument("--hours", type=int, default=30 * 24, help="for so long (default: %(default)s)")
    parser.add_argument("--hours-per-file", type=int, default=24, help="(default: %(default)s)")
    parser.add_argument("--load", type=float, default=0.5, help="share of the free cpu (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="equal seeds give equal files (default: %(default)s)")
    given = parser.parse_args()
    size = Size(given.nodes, given.pods, given.hours, given.hours_per_file, given.load, given.seed)
    for written in record_month(size, given.tasks, given.out):
        peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        print(
            f"{written.file.name}: {written.objects:,} objects, {written.steps:,} steps, {written.events:,} events, "
            f"{written.file.stat().st_size:,} bytes; {time.process_time():.0f} CPU seconds, {peak_mib:,} MiB at most",
            flush=True,
        )


main()
