"""A month, played in Podium's simulator and recorded on the way, as `podium record --every` does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from podium.api.input.codec import Document, load_text
from podium.api.input.documents import API_VERSION, Snapshot
from podium.api.meta import ObjectMeta, Raw
from podium.api.times import format_time, parse_time
from podium.apirequests.observations import ObjectObservation, observation_of
from podium.app.bench.eks_cluster import EKSCluster
from podium.app.recording.recording import RecordingFile
from podium.app.snapshots.cluster import Slimmer, left_out_beside
from podium.controllers.kubelets.pod_run import DURATION
from podium.controllers.observations import Changed
from podium.sim.latencies import USUAL_LATENCY_NS
from podium.sim.recording.recorder import ClusterRecorder
from podium.sim.run import simulation_of
from podium.sim.run_options import RunOptions, SimulationLimits
from podium.sim.scenario.scenario import read_scenario
from podium.sim.simulation import Simulation
from tools.recorded_month.workload import HOUR, Workload, read_tasks

_NAME = "recorded-month"
_SECOND, _MILLISECOND = 10**9, 10**6
_START_NS = parse_time("2026-01-01T00:00:00Z")
_LIMITS = SimulationLimits(objects=10**9, events=10**9, calls=10**12)


@dataclass(frozen=True, slots=True)
class Size:
    """How large a cluster is recorded, for how long, in files of so many hours."""

    nodes: int
    pods: int
    hours: int
    hours_per_file: int = 24
    load: float = 0.5
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Written:
    """A file with its contents."""

    file: Path
    objects: int
    steps: int
    events: int


def record_month(size: Size, tasks: Path, folder: Path) -> Iterator[Written]:
    """Play and record; yield each file when it is complete. Memory does not depend on the length. Raises InputError."""
    objects: list[Raw] = list(EKSCluster(size.nodes).objects())
    workload = Workload(objects, read_tasks(tasks), size.pods / size.hours * 24, size.load, size.seed)
    folder.mkdir(parents=True, exist_ok=True)
    recorder = _Recorder(folder)
    # All programs of the control plane start again midway between two files, so that they forget the past.
    starts = range(-(size.hours_per_file // 2), size.hours, size.hours_per_file)
    for hours in (range(max(first, 0), min(first + size.hours_per_file, size.hours)) for first in starts):
        simulation = _begin(objects, hours, size.seed)
        objects = []
        recorder.show_all(simulation, hours.start)
        for hour in hours:
            if hour % size.hours_per_file == 0:
                yield from recorder.rotate(hour)
            _add(simulation, workload.steps(hour), hours.start)
            recorder.follow(simulation, hours.start, hour + 1)
        kinds = simulation.store.resources.all()
        objects = [stored.raw for kind in kinds for stored in simulation.store.objects(kind.name)]
        del simulation
    yield from recorder.rotate(size.hours, is_last=True)


def _begin(objects: Iterable[Raw], hours: range, seed: int) -> Simulation:
    """Return a simulation of objects for some hours; steps that come too late are skipped."""
    spec = {"recorded": True, "until": f"{len(hours)}h"}
    scenario: Raw = {"apiVersion": API_VERSION, "kind": "Scenario", "spec": spec}
    # Seeds decide uids and generated names, which must not be repeated later.
    options = RunOptions(
        seed=seed * 10_000 + hours.start + 1,
        start_ns=_START_NS + hours.start * HOUR * _SECOND,
        latency_ns=USUAL_LATENCY_NS,
        limits=_LIMITS,
    )
    return simulation_of(_documents([*objects, scenario]), options, holds_steps=True)


def _documents(raws: Iterable[Raw]) -> list[Document]:
    return load_text(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": list(raws)}), _NAME)


def _add(simulation: Simulation, steps: Iterable[tuple[float, Raw]], first_hour: int) -> None:
    """Plan steps; their times count from the first hour of the month, those of the simulation from its own."""
    raws = [{"at": f"{round(at - first_hour * HOUR, 3)}s", **step} for at, step in steps]
    spec = {"recorded": True, "steps": raws}
    (document,) = _documents([{"apiVersion": API_VERSION, "kind": "Scenario", "spec": spec}])
    simulation.scenario = read_scenario(document)
    simulation.add_steps()


class _Recorder:
    """The recorder of one simulation after the other, and the present file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._slimmer = Slimmer()
        self._recorder = ClusterRecorder(self._slim)
        self._file: RecordingFile | None = None
        self._target = folder
        self._began_ns = 0
        self._version = 0

    def _slim(self, raw: Raw) -> Raw:
        """Return the object as a cluster has it, which does not say how long its pods will run."""
        slim = self._slimmer.slim(raw)
        if raw["kind"] == "Pod":
            return {**slim, "metadata": _without_duration(slim["metadata"])}
        if raw["kind"] == "Job":
            template = slim["spec"]["template"]
            template = {**template, "metadata": _without_duration(template["metadata"])}
            return {**slim, "spec": {**slim["spec"], "template": template}}
        return slim

    def show_all(self, simulation: Simulation, hour: int) -> None:
        """Take in all objects of a simulation that begins, as a list does after a broken watch."""
        for kind in simulation.store.resources.all():
            for stored in simulation.store.objects(kind.name):
                self._write(Changed(stored.object, stored.raw), hour * HOUR * _SECOND)
        self._version = simulation.store.version

    def follow(self, simulation: Simulation, first_hour: int, end_hour: int) -> None:
        """Play until an hour of the month begins, and record it."""
        offset_ns, end_ns = first_hour * HOUR * _SECOND, end_hour * HOUR * _SECOND
        next_ns = simulation.quiet_until()
        while next_ns is not None and next_ns - _START_NS < end_ns and simulation.step():
            self._take_in(simulation, offset_ns)
            next_ns = simulation.quiet_until()
            self._take_in(simulation, offset_ns)

    def _take_in(self, simulation: Simulation, offset_ns: int) -> None:
        if simulation.store.version != self._version:
            for event in simulation.store.events_since(self._version):
                self._write(observation_of(event), offset_ns + simulation.elapsed_ns)
            self._version = simulation.store.version

    def _write(self, seen: ObjectObservation, at_ns: int) -> None:
        elapsed_ns = (at_ns - self._began_ns) // _MILLISECOND * _MILLISECOND
        entry = self._recorder.see(seen, elapsed_ns)
        if self._file is not None:
            self._file.write(entry, elapsed_ns)

    def rotate(self, hour: int, *, is_last: bool = False) -> Iterator[Written]:
        """End the present file, if there is one, and begin the next."""
        now_ns = hour * HOUR * _SECOND
        ended, target, elapsed_ns = self._file, self._target, now_ns - self._began_ns
        if ended is not None:
            ended.end(elapsed_ns, self._recorder.terminations.usual_ns)
        if not is_last:
            self._began_ns = now_ns
            taken_at = format_time(_START_NS + now_ns)
            self._target = self._folder / f"{taken_at.replace(':', '-')}.podium"
            snapshot = Snapshot(
                metadata=ObjectMeta(name=_NAME), context=_NAME, taken_at=taken_at, left_out=left_out_beside(())
            )
            self._file = RecordingFile(str(self._target), _NAME)
            self._file.begin(self._recorder.begin(elapsed_ns), snapshot)
        if ended is not None:
            ended.complete()
            yield Written(target, ended.objects, ended.steps, ended.events)


def _without_duration(metadata: Raw) -> Raw:
    annotations = {name: value for name, value in metadata.get("annotations", {}).items() if name != DURATION}
    others = {name: value for name, value in metadata.items() if name != "annotations"}
    return {**others, "annotations": annotations} if annotations else others
