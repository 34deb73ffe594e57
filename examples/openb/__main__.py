"""`python -m examples.openb --data FOLDER`: play the experiment, and write its table and its figures."""

from __future__ import annotations

import argparse
import csv
import io
import multiprocessing
import os
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

from examples.openb.report import PUBLISHED, Result, write_report
from examples.openb.runs import BOUND, POLICIES, play
from examples.openb.workload import FILES, mixes, read_workload

from podium.plugin import PodiumError
from podium.sim.trace_import import read_table

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_CHOICES = (*POLICIES, BOUND)


class _Options(NamedTuple):
    data: Path
    mixes: list[str]
    policies: list[str]
    seeds: range
    processes: int
    out: Path


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m examples.openb", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help=f"the folder of the openb trace, with {FILES}")
    parser.add_argument("--mixes", default="default", help="names of mixes with commas between them, or `all`")
    parser.add_argument("--policies", default=",".join(_CHOICES), help="names with commas between them")
    parser.add_argument("--seeds", type=int, default=10, help="how many seeds (default: %(default)s)")
    parser.add_argument("--first-seed", type=int, default=42, help="the first seed (default: %(default)s)")
    parser.add_argument("--processes", type=int, default=1, help="how many runs at a time (default: %(default)s)")
    parser.add_argument(
        "--out", type=Path, default=Path("openb-study"), help="the folder for results (default: %(default)s)"
    )
    given = parser.parse_args(arguments)
    unknown = set(given.policies.split(",")) - {*_CHOICES}
    if unknown:
        parser.error(f"no such policy: {', '.join(sorted(unknown))}; there are {', '.join(_CHOICES)}")
    if given.processes < 1:
        parser.error(f"--processes is {given.processes}; at least one process plays the runs")
    names = mixes(given.data) if given.mixes == "all" else given.mixes.split(",")
    seeds = range(given.first_seed, given.first_seed + given.seeds)
    options = _Options(given.data, names, given.policies.split(","), seeds, given.processes, given.out)
    try:
        results = _play(options)
        write_report(results, options.data / PUBLISHED, options.out)
    except PodiumError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    sys.stdout.write((options.out / "table.md").read_text())
    return 0


def _play(options: _Options) -> list[Result]:
    """Return the results, after other processes have played all runs that the folder has no results of yet."""
    for mix in options.mixes:
        read_workload(options.data, mix)
    options.out.mkdir(parents=True, exist_ok=True)
    file = options.out / "results.csv"
    known = _known(file)
    done = {(result.mix, result.policy, result.seed) for result in known}
    for name in _THREADS:
        # Processes share the cores, so that threads of numpy's BLAS would only wait for each other.
        os.environ.setdefault(name, "1")
    with (
        file.open("a", newline="") as stream,
        ProcessPoolExecutor(options.processes, mp_context=multiprocessing.get_context("spawn")) as pool,
    ):
        if stream.tell() == 0:
            stream.write(_lines([Result._fields]))
        runs = [
            pool.submit(play, options.data, mix, policy, seed)
            for mix in options.mixes
            for seed in options.seeds
            for policy in options.policies
            if (mix, policy, seed) not in done
        ]
        try:
            for run in as_completed(runs):
                results = run.result()
                known += results
                # In one piece, so that lines of several processes do not mix.
                stream.write(_lines(results))
                stream.flush()
                last = results[-1]
                sys.stderr.write(f"{last.mix} {last.policy} {last.seed}: {last.allocated:.2f} %\n")
        finally:
            pool.shutdown(cancel_futures=True)
    return sorted(known, key=lambda one: (one.mix != options.mixes[0], one.mix, _CHOICES.index(one.policy), one.seed))


def _lines(rows: Iterable[Iterable[object]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()


def _known(file: Path) -> list[Result]:
    """Return the results of a file, each once. Raises InputError for a broken one.

    Other processes and machines may have written to the file, or it may be put together from theirs: then it has the
    header more than once.
    """
    if not file.is_file() or not file.stat().st_size:
        return []
    found: dict[tuple[object, ...], Result] = {}
    for row in read_table(file, Result._fields)[1]:
        if row.values["seed"] == "seed":
            continue
        mix, policy = row.values["mix"], row.values["policy"]
        seed, requested = row.whole("seed"), row.whole("requested")
        if policy not in _CHOICES:
            raise row.error("policy", f"there is no policy {policy}; there are {', '.join(_CHOICES)}")
        allocated, moves = float(row.number("allocated")), row.whole("moves")
        found[mix, policy, seed, requested] = Result(mix, policy, seed, requested, allocated, moves)
    return list(found.values())


if __name__ == "__main__":
    sys.exit(main())
