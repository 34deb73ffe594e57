"""`python -m examples.openb --data FOLDER`: play the experiment, and write its table and its figures."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from examples.openb.bound import upper_bound
from examples.openb.report import PUBLISHED, Result, write_report
from examples.openb.runs import POLICIES, Run
from examples.openb.workload import FILES, Task, Workload, mixes, read_workload, requested_milli

from podium.plugin import PodiumError

_COLUMNS = ("mix", "policy", "seed", "requested", "allocated", "moves")
BOUND = "Bound"
"""The row of the table with the upper bound, which is a policy for the options."""
_AT = 100


class _Options(NamedTuple):
    data: Path
    mixes: list[str]
    policies: list[str]
    seeds: range
    out: Path


def main() -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m examples.openb", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help=f"the folder of the openb trace, with {FILES}")
    parser.add_argument("--mixes", default="default", help="names of mixes with commas between them, or `all`")
    parser.add_argument("--policies", default=",".join((*POLICIES, BOUND)), help="names with commas between them")
    parser.add_argument("--seeds", type=int, default=10, help="how many seeds (default: %(default)s)")
    parser.add_argument("--first-seed", type=int, default=42, help="the first seed (default: %(default)s)")
    parser.add_argument(
        "--out", type=Path, default=Path("openb-study"), help="the folder for results (default: %(default)s)"
    )
    given = parser.parse_args()
    unknown = set(given.policies.split(",")) - {*POLICIES, BOUND}
    if unknown:
        parser.error(f"no such policy: {', '.join(sorted(unknown))}; there are {', '.join((*POLICIES, BOUND))}")
    names = mixes(given.data) if given.mixes == "all" else given.mixes.split(",")
    options = _Options(
        given.data, names, given.policies.split(","), range(given.first_seed, given.first_seed + given.seeds), given.out
    )
    try:
        results = _play(options)
        write_report(results, options.data / PUBLISHED, options.out)
    except PodiumError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    sys.stdout.write((options.out / "table.md").read_text())
    return 0


def _play(options: _Options) -> list[Result]:
    """Return the results, after playing all runs that the folder has no results of yet."""
    options.out.mkdir(parents=True, exist_ok=True)
    file = options.out / "results.csv"
    known = _known(file)
    done = {(result.mix, result.policy, result.seed) for result in known}
    with file.open("a", newline="") as stream:
        writer = csv.writer(stream)
        if not known:
            writer.writerow(_COLUMNS)
        for mix in options.mixes:
            workload = read_workload(options.data, mix)
            arguments = _Arguments(workload)
            for seed in options.seeds:
                for policy in options.policies:
                    if (mix, policy, seed) in done:
                        continue
                    for result in _results(workload, arguments, policy, seed):
                        writer.writerow(result)
                        known.append(result)
                    stream.flush()
                    sys.stderr.write(f"{mix} {policy} {seed}: {_at_all(known[-1:])}\n")
    return known


def _at_all(results: list[Result]) -> str:
    return ", ".join(f"{result.allocated:.2f} %" for result in results if result.requested == _AT)


def _known(file: Path) -> list[Result]:
    if not file.is_file():
        return []
    with file.open(newline="") as stream:
        return [
            Result(
                row["mix"],
                row["policy"],
                int(row["seed"]),
                int(row["requested"]),
                float(row["allocated"]),
                int(row["moves"]),
            )
            for row in csv.DictReader(stream)
        ]


class _Arguments:
    """The arguments of the policies' plugins, from the list of tasks of one mix."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._known: dict[str, Any] = {}

    def of(self, policy: str) -> Mapping[str, Any]:
        """Return the arguments of a policy's plugin."""
        found = {}
        if POLICIES[policy].needs_typical:
            found["typical"] = self._known.get("typical") or self._typical()
        if POLICIES[policy].needs_worth:
            found["worth"] = self._known.get("worth") or self._worth()
        self._known.update(found)
        return found

    def _typical(self) -> list[dict[str, Any]]:
        return [
            {
                "cpuMilli": task.cpu_milli,
                "gpus": task.gpus,
                "gpuMilli": task.gpu_milli,
                "models": task.models,
                "share": share,
            }
            for task, share in self._workload.typical()
        ]

    def _worth(self) -> dict[str, list[float]]:
        workload = self._workload
        bound = upper_bound(workload.nodes, workload.tasks, workload.capacity_milli / requested_milli(workload.tasks))
        return {model: worth.tolist() for model, worth in bound.worth.items()}


def _results(workload: Workload, arguments: _Arguments, policy: str, seed: int) -> Iterator[Result]:
    tasks = workload.sample(seed)
    if policy == BOUND:
        arrived = _arrived(workload, tasks)
        percentage = 100 * upper_bound(workload.nodes, arrived).total_milli / workload.capacity_milli
        yield Result(workload.mix, policy, seed, _AT, percentage, 0)
        return
    run = Run(workload, policy, arguments.of(policy), seed)
    for mark in run.play(tasks):
        yield Result(workload.mix, policy, seed, mark.requested, round(mark.allocated, 4), mark.moves)


def _arrived(workload: Workload, tasks: list[Task]) -> list[Task]:
    """Return the tasks that have arrived at the end of what counts as 100 % requested."""
    arrived: list[Task] = []
    requested = 0
    for task in tasks:
        requested += task.total_milli
        if round(100 * requested / workload.capacity_milli) > _AT:
            break
        arrived.append(task)
    return arrived


if __name__ == "__main__":
    sys.exit(main())
