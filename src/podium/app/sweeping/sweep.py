"""A sweep: runs that differ in settings and seed, the engines that play them, and the outcome of each."""

from __future__ import annotations

import multiprocessing
import pickle
import re
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from podium.api.basis import Caveat
from podium.api.errors import InputError, PodiumError
from podium.api.input.codec import Document, Input
from podium.api.times import parse_nonnegative_duration
from podium.api.versions.release import own_version, read_gates, read_version
from podium.app.inputs import DecisionSettings, in_one_line
from podium.framework.settings.configuration import API_VERSION, KIND, Configuration, load_document, read_configuration
from podium.sim.latencies import USUAL_LATENCY_NS
from podium.sim.results.result import Result
from podium.sim.run import components_of, play
from podium.sim.run_options import DURATIONS, RunOptions
from podium.sim.scenario.scenario import split_documents

if TYPE_CHECKING:
    from podium.app.sweeping.run_folder import RunFolder

Combination = Mapping[str, str]
"""A value, as written, for each varied setting, in the given order."""

Variations = Mapping[str, Sequence[str]]
"""The values of each varied setting, in the given order."""

MOST_COMBINATIONS = 100_000
"""The maximum number of combinations of settings in a sweep."""

FILENAME, CONFIG = "filename", "config"
_FIELDS = ("percentageOfNodesToScore", "maxFutilePreemptions", "nominationClearing")
# A plugin's name, then the path of a field in its arguments.
_ARGUMENT = re.compile(r"([A-Z]\w*)\.(\w+(?:\.\w+)*)")


def _with_duration(field: str, options: RunOptions, text: str) -> RunOptions:
    change: dict[str, Any] = {field: parse_nonnegative_duration(text)}
    return replace(options, **change)


_OPTIONS: dict[str, Callable[[RunOptions, str], RunOptions]] = {
    **{name.replace("_", "-"): partial(_with_duration, f"{name}_ns") for name in DURATIONS},
    "expendable-pods-priority-cutoff": lambda options, text: replace(options, priority_cutoff=int(text)),
    "kubernetes-version": lambda options, text: replace(
        options, release=replace(options.release, version=str(read_version(text)))
    ),
    "feature-gates": lambda options, text: replace(options, release=replace(options.release, gates=read_gates(text))),
}


def varied_names() -> tuple[str, ...]:
    """Return the names of all settings that can be varied."""
    return (FILENAME, CONFIG, *_OPTIONS, *_FIELDS, "PLUGIN.ARGUMENT")


def read_variations(texts: Sequence[str]) -> Variations:
    """Parse `NAME=VALUE[,VALUE...]`; values of one name are merged. Raises PodiumError for invalid settings."""
    values: dict[str, list[str]] = {}
    for text in texts:
        name, equals, listed = text.partition("=")
        if not equals or not listed:
            raise PodiumError(f"--vary {text}: write it as NAME=VALUE,VALUE")
        values.setdefault(name, []).extend(listed.split(","))
    return _checked(values)


def variations_given(vary: Mapping[str, Sequence[Any]]) -> Variations:
    """Return the variations for a program, values as on a command line. Raises PodiumError for invalid settings."""
    found: dict[str, list[str]] = {}
    for name, values in vary.items():
        if isinstance(values, str):
            raise PodiumError(f"vary {name}: a list of values is needed, not the text {values!r}")
        found[name] = [value if isinstance(value, str) else in_one_line(value, f"vary {name}") for value in values]
    return _checked(found)


def _checked(values: Variations) -> Variations:
    """Return the variations. Raises PodiumError for unknown settings and for duplicate or missing values."""
    for name, found in values.items():
        if not (name in varied_names() or _ARGUMENT.fullmatch(name) is not None):
            raise PodiumError(f"--vary {name}: cannot be varied; these can: {', '.join(varied_names())}")
        if not found:
            raise PodiumError(f"--vary {name}: has no values")
        for place, value in enumerate(found):
            if value in found[:place]:
                raise PodiumError(f"--vary {name}: {value} is given twice")
    return values


def combinations(variations: Variations) -> list[Combination]:
    """Return all combinations of values; the last setting changes fastest.

    Raises PodiumError for more than `MOST_COMBINATIONS`.
    """
    count = prod(map(len, variations.values()))
    if count > MOST_COMBINATIONS:
        raise PodiumError(f"these are {count:,} combinations of settings; a sweep may have {MOST_COMBINATIONS:,}")
    return [dict(zip(variations, values, strict=True)) for values in product(*variations.values())]


def options_of(
    combination: Combination, options: RunOptions, config: Document | None, schedulers: Sequence[str] = ()
) -> RunOptions:
    """Return the options of runs with the settings.

    `config` is the configuration's document as in its file. If it is None, each scheduler of the scenario, named in
    `schedulers`, has a default profile. Raises PodiumError for an invalid value.
    """
    for name, text in combination.items():
        if name in _OPTIONS:
            try:
                options = _OPTIONS[name](options, text)
            except (ValueError, InputError) as error:
                raise PodiumError(f"--vary {name}={text}: {error}") from None
    return replace(options, configuration=_configuration(combination, config, schedulers))


def _configuration(
    combination: Combination, config: Document | None, schedulers: Sequence[str]
) -> Configuration | None:
    fields = {name: text for name, text in combination.items() if name in _FIELDS or _ARGUMENT.fullmatch(name)}
    if config is None and not fields:
        return None
    if config is None:
        profiles = [{"schedulerName": name} for name in schedulers]
        raw, source = {"apiVersion": API_VERSION, "kind": KIND, "profiles": profiles}, "the default configuration"
    else:
        raw, source = deepcopy(config.raw), config.source
    plain = read_configuration(raw, source)
    if not fields:
        return plain
    for name, text in fields.items():
        try:
            value = msgspec.json.decode(text)
        except msgspec.DecodeError:
            value = text
        _set(raw, name, value)
    settings = ", ".join(f"{name}={text}" for name, text in fields.items())
    return read_configuration(raw, f"{source} with {settings}")


def _set(raw: dict[str, Any], name: str, value: Any) -> None:
    """Set a field of the configuration, or an argument of a plugin in all profiles."""
    found = _ARGUMENT.fullmatch(name)
    if found is None:
        raw[name] = value
        return
    plugin, path = found.groups()
    profiles = raw.setdefault("profiles", [])
    if not profiles:
        profiles.append({})
    for profile in profiles:
        configs = profile.setdefault("pluginConfig", [])
        mine = next((config for config in configs if config.get("name") == plugin), None)
        if mine is None:
            mine = {"name": plugin}
            configs.append(mine)
        *parents, last = path.split(".")
        place = mine.setdefault("args", {})
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = value


class Run(NamedTuple):
    """A run, identified by the index of its variant and its seed; runs are ordered by these."""

    variant: int
    seed: int


class Variant(msgspec.Struct, frozen=True):
    """The settings of some runs as written, the index of their input, and their options except for the seed."""

    combination: Combination
    input: int
    options: RunOptions


class RunOutcome(msgspec.Struct, frozen=True):
    """The outcome of a run: the summary of its result, or the error; and its caveats."""

    summary: dict[str, Any] | None
    caveats: tuple[Caveat, ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class Sweep:
    """The inputs of a sweep's runs; `play` returns the same for the same run in any process."""

    inputs: tuple[Input, ...]
    variants: tuple[Variant, ...]
    seeds: range

    @property
    def runs(self) -> list[Run]:
        return [Run(variant, seed) for variant in range(len(self.variants)) for seed in self.seeds]

    def check(self) -> None:
        """Raise PodiumError for settings with which no run can start."""
        scenarios = [(found.documents, split_documents(found.documents)[1]) for found in self.inputs]
        for variant in self.variants:
            documents, scenario = scenarios[variant.input]
            release, _ = variant.options.release.for_documents(documents)
            for component in components_of(scenario, variant.options, release):
                component.make()

    def play(self, run: Run) -> RunOutcome:
        """Play one run and return its outcome, which contains errors such as exceeded limits."""
        try:
            result = self._play(run)
        except PodiumError as error:
            return RunOutcome(None, error=str(error))
        return RunOutcome(result.summary, result.caveats)

    def result(self, run: Run) -> Result | None:
        """Play one run and return its result with the reasons for placements; None if it fails."""
        try:
            return self._play(run, records_placements=True)
        except PodiumError:
            return None

    def _play(self, run: Run, *, records_placements: bool = False) -> Result:
        variant = self.variants[run.variant]
        options = replace(
            variant.options, seed=run.seed, records_placements=records_placements, usual_latency_ns=USUAL_LATENCY_NS
        )
        return play(self.inputs[variant.input], options)


class PlayedRun(msgspec.Struct, frozen=True):
    """A run with its settings and its outcome."""

    combination: Combination
    seed: int
    outcome: RunOutcome

    def to_dict(self) -> dict[str, Any]:
        """Return the run for JSON output; exactly one of `error` and `summary` is null."""
        return {
            "settings": dict(self.combination),
            "seed": self.seed,
            "error": self.outcome.error or None,
            "summary": self.outcome.summary,
        }


def make_sweep(
    variations: Variations, read: Callable[[str], Input], settings: DecisionSettings, options: RunOptions, seeds: range
) -> Sweep:
    """Return the sweep over all combinations and seeds. Raises PodiumError for settings with which no run can start.

    `read` returns the input with an additional file, "" for none; `settings` are the defaults of schedulers.
    """
    chosen = combinations(variations)
    files = list(dict.fromkeys(combination.get(FILENAME, "") for combination in chosen))
    configs = {
        file: load_document(file)
        for file in dict.fromkeys(combination[CONFIG] for combination in chosen if CONFIG in combination)
    }
    inputs = tuple(read(file) for file in files)
    names = [[scheduler.name for scheduler in split_documents(found.documents)[1].schedulers] for found in inputs]

    def variant(combination: Combination) -> Variant:
        place = files.index(combination.get(FILENAME, ""))
        document = configs[combination[CONFIG]] if CONFIG in combination else settings.document
        varied = options_of(combination, options, document, names[place])
        if document is None and settings.configuration is not None:
            # The configuration was given without its document.
            if varied.configuration is not None:
                raise PodiumError(
                    "fields of a parsed configuration cannot be varied: give it as a dictionary or a file"
                )
            varied = replace(varied, configuration=settings.configuration)
        # With the given plugins.
        decided = replace(settings, configuration=varied.configuration).deciding(names[place])
        return Variant(combination, place, replace(varied, configuration=decided))

    sweep = Sweep(inputs, tuple(map(variant, chosen)), seeds)
    sweep.check()
    return sweep


Engine = Callable[[Sweep, Sequence[Run]], Iterator[tuple[Run, RunOutcome]]]
"""Plays some runs of a sweep, and yields each outcome as soon as it is known."""

_MOST_DEATHS = 3


def processes(count: int) -> Engine:
    """Return an engine with up to `count` processes on this machine.

    If a process dies, others play the remaining runs. The engine raises PodiumError if that happens `_MOST_DEATHS`
    times without a run that ends in between.
    """

    def play(sweep: Sweep, runs: Sequence[Run]) -> Iterator[tuple[Run, RunOutcome]]:
        left, deaths = dict.fromkeys(runs), 0
        pickled = pickle.dumps(sweep)
        while left:
            with suppress(BrokenProcessPool):
                for run, outcome in _play_in_pool(min(count, len(left)), pickled, tuple(left)):
                    del left[run]
                    deaths = 0
                    yield run, outcome
            deaths += bool(left)
            if deaths == _MOST_DEATHS:
                raise PodiumError("processes that played runs have died, perhaps for lack of memory; try fewer --jobs")

    return play


def _play_in_pool(count: int, pickled: bytes, runs: Sequence[Run]) -> Iterator[tuple[Run, RunOutcome]]:
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(count, mp_context=context, initializer=_learn, initargs=(pickled,))
    try:
        # New processes get an interruption when they can end without a word.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            futures = {pool.submit(_play, run): run for run in runs}
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        for future in as_completed(futures):
            # All runs that have not ended fail alike, but others may have ended at the same time.
            if not isinstance(future.exception(), BrokenProcessPool):
                yield futures[future], future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def dask(address: str) -> Engine:
    """Return an engine for the workers of the Dask scheduler at an address such as tcp://10.0.0.1:8786.

    Raises PodiumError without the extra `dask`; the engine does if the scheduler is unreachable or versions differ.
    """
    try:
        from distributed import Client, as_completed
    except ImportError:
        raise PodiumError('--dask needs Dask: install it with pip install "podium[dask]"') from None

    def play(sweep: Sweep, runs: Sequence[Run]) -> Iterator[tuple[Run, RunOutcome]]:
        try:
            client = Client(address, timeout=10)
        except (OSError, ValueError) as error:
            raise PodiumError(f"--dask {address}: no Dask scheduler answers: {error}") from None
        with client:
            versions, mine = client.run(own_version), own_version()
            if not versions:
                raise PodiumError("the Dask scheduler has no workers; start some with `dask worker`")
            for worker, theirs in sorted(versions.items()):
                if theirs != mine:
                    found = theirs or "not installed"
                    raise PodiumError(f"the Dask worker {worker} has Podium {found}, and this is {mine}")
            pickled = client.scatter(pickle.dumps(sweep), broadcast=True, hash=False)
            futures = {client.submit(play_pickled, pickled, run, pure=False): run for run in runs}
            try:
                for future in as_completed(futures):
                    yield futures[future], future.result()
            finally:
                client.cancel(list(futures))

    return play


def play_pickled(pickled: bytes, run: Run) -> RunOutcome:
    """Play a run of a pickled sweep, which is unpickled once for consecutive runs."""
    return unpickled(pickled).play(run)


_learnt: list[Sweep] = []


def _learn(pickled: bytes) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    _learnt[:] = [unpickled(pickled)]


def _play(run: Run) -> RunOutcome:
    return _learnt[0].play(run)


@lru_cache(maxsize=1)
def unpickled(pickled: bytes) -> Sweep:
    """Return a sweep that this program pickled."""
    # This program pickled it, for processes that it started or that the user named.
    sweep = pickle.loads(pickled)  # noqa: S301
    if not isinstance(sweep, Sweep):
        raise TypeError(f"{type(sweep).__name__} is not a Sweep")
    return sweep


def local_engine(jobs: int) -> Engine:
    """Return an engine that plays `jobs` runs at a time. Raises PodiumError if that is less than 1."""
    if jobs < 1:
        raise PodiumError(f"jobs: {jobs} is not 1 or more")
    return processes(jobs) if jobs > 1 else lambda sweep, runs: ((run, sweep.play(run)) for run in runs)


def play_all(
    sweep: Sweep,
    engine: Engine,
    progress: Callable[[float], None] | None = None,
    kept: RunFolder | None = None,
    shard: tuple[int, int] = (0, 1),
    *,
    again: bool = False,
    plays: bool = True,
) -> list[PlayedRun]:
    """Play runs, and return those that have an outcome, in order; ``progress`` receives the completed share.

    ``kept`` has outcomes of earlier calls, and keeps the new ones. Without it all runs are played. The ``shard`` (i, n)
    has every nth run, from number i on. ``again``: also play runs whose outcome is an error; without ``plays`` none.
    """
    mine = sweep.runs[shard[0] :: shard[1]]
    outcomes = {} if kept is None else kept.outcomes(sweep, mine)
    waiting = [run for run in mine if run not in outcomes or (again and outcomes[run].error)]
    done = len(mine) - len(waiting)
    for run, outcome in engine(sweep, waiting) if plays and waiting else ():
        outcomes[run] = outcome if kept is None else kept.keep(sweep, run, outcome)
        done += 1
        if progress is not None:
            progress(done / len(mine))
    return [
        PlayedRun(sweep.variants[run.variant].combination, run.seed, outcomes[run]) for run in mine if run in outcomes
    ]
