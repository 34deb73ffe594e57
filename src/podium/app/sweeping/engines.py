"""Where the runs of a sweep are played: on the cores of this machine, or on those that a Dask scheduler has.

Each is told the sweep once, and then runs by their place. What comes out depends on nothing else.
"""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version

from podium.api.errors import PodiumError
from podium.app.sweeping.sweep import Outcome, Played, Run, Sweep

Engine = Callable[[Sweep], Iterator[tuple[Run, Outcome]]]
"""Plays all runs of a sweep, and hands each outcome on when it is there."""

_CONNECT_SECONDS = 10


def here(sweep: Sweep) -> Iterator[tuple[Run, Outcome]]:
    """This process, one run after another."""
    return ((run, sweep.play(run)) for run in sweep.runs)


def processes(count: int) -> Engine:
    """Processes of this machine, so many at a time. Raises PodiumError when one of them dies."""

    def play(sweep: Sweep) -> Iterator[tuple[Run, Outcome]]:
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(
            min(count, len(sweep.runs)), mp_context=context, initializer=_learn, initargs=(pickle.dumps(sweep),)
        )
        try:
            futures = {pool.submit(_play, run): run for run in sweep.runs}
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenProcessPool:
            raise PodiumError(
                "a process that played runs has died, as when memory is short; fewer --jobs need less"
            ) from None
        finally:
            pool.shutdown(cancel_futures=True)

    return play


def dask(address: str) -> Engine:
    """The workers of the Dask scheduler at an address such as tcp://10.0.0.1:8786.

    Raises PodiumError where the extra `dask` is not installed, nobody answers, or the workers have another Podium.
    """
    try:
        from distributed import Client, as_completed
    except ImportError:
        raise PodiumError('--scheduler needs Dask: install it with pip install "podium[dask]"') from None

    def play(sweep: Sweep) -> Iterator[tuple[Run, Outcome]]:
        try:
            client = Client(address, timeout=_CONNECT_SECONDS)
        except (OSError, ValueError) as error:
            raise PodiumError(f"--scheduler {address}: no Dask scheduler answers: {error}") from None
        with client:
            _require_own_version(client.run(own_version))
            pickled = client.scatter(pickle.dumps(sweep), broadcast=True, hash=False)
            futures = {client.submit(play_pickled, pickled, run, pure=False): run for run in sweep.runs}
            try:
                for future in as_completed(futures):
                    yield futures[future], future.result()
            finally:
                client.cancel(list(futures))

    return play


def own_version() -> str:
    """The version of this Podium, "" for one that is not installed."""
    try:
        return version("podium")
    except PackageNotFoundError:
        return ""


def play_pickled(pickled: bytes, run: Run) -> Outcome:
    """Play a run of a pickled sweep, which is read once for all runs that follow one another."""
    return _kept(pickled).play(run)


_learnt: list[Sweep] = []


def _learn(pickled: bytes) -> None:
    _learnt[:] = [_read(pickled)]


def _play(run: Run) -> Outcome:
    return _learnt[0].play(run)


@lru_cache(maxsize=1)
def _kept(pickled: bytes) -> Sweep:
    return _read(pickled)


def _read(pickled: bytes) -> Sweep:
    # From this program's own hands: pickled by it, for processes that it has started or was pointed to.
    sweep = pickle.loads(pickled)  # noqa: S301
    if not isinstance(sweep, Sweep):
        raise TypeError(f"{type(sweep).__name__} is no Sweep")
    return sweep


def _require_own_version(versions: dict[str, str]) -> None:
    """Raise PodiumError where a worker would decide by other rules, or there is none."""
    if not versions:
        raise PodiumError("the Dask scheduler has no workers; start some with `dask worker`")
    mine = own_version()
    for worker, theirs in sorted(versions.items()):
        if theirs != mine:
            raise PodiumError(f"the Dask worker {worker} has Podium {theirs or 'not installed'}, and this is {mine}")


def local_engine(jobs: int) -> Engine:
    """Return the engine that plays so many runs at a time. Raises PodiumError for less than one."""
    if jobs < 1:
        raise PodiumError(f"jobs: {jobs} at a time play nothing; 1 or more are needed")
    return here if jobs == 1 else processes(jobs)


def play_all(sweep: Sweep, engine: Engine, progress: Callable[[float], None] | None = None) -> list[Played]:
    """Play all runs, and return them in order with their outcomes; ``progress`` receives the share that is done."""
    outcomes: dict[Run, Outcome] = {}
    for run, outcome in engine(sweep):
        outcomes[run] = outcome
        if progress is not None:
            progress(len(outcomes) / len(sweep.runs))
    return [Played(sweep.variants[run.variant].combination, run.seed, outcomes[run]) for run in sweep.runs]
