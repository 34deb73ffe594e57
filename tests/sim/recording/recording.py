"""Recordings of simulated clusters: a recorder receives their watch events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from podium.api.input.codec import Document, Input, load_text, read_input
from podium.api.times import format_duration, format_time
from podium.apirequests.observations import observation_of
from podium.app.snapshots.cluster import Slimmer
from podium.controllers.observations import Changed
from podium.sim.recording.recorder import ClusterRecorder
from podium.sim.run import simulation_of
from podium.sim.run_options import RunOptions

# Uids are made from seeds: those that are recorded are not to be those that a replay makes.
SEED = 7
Raw = dict[str, Any]


def recorded(documents: Sequence[Document], options: RunOptions | None = None) -> Input:
    """Return what is written of a simulated cluster, as it is read again."""
    simulation = simulation_of(documents, options or RunOptions(seed=SEED))
    start_ns = simulation.settings.start_ns
    recorder = ClusterRecorder(Slimmer().slim)
    for kind in simulation.store.resources.all():
        for stored in simulation.store.objects(kind.name):
            recorder.see(Changed(stored.object, stored.raw), 0)
    written = list(recorder.begin())
    version = simulation.store.version
    steps: list[Raw] = []
    events: list[Any] = []
    goes_on = True
    while goes_on:
        goes_on = simulation.step()
        for event in simulation.store.events_since(version):
            entry = recorder.see(observation_of(event), simulation.elapsed_ns)
            steps.extend(entry.steps)
            events.extend(entry.events)
        version = simulation.store.version
    length = format_duration(simulation.elapsed_ns)
    termination_ns = recorder.terminations.usual_ns
    taken = {} if termination_ns is None else {"termination": format_duration(termination_ns)}
    about = {"apiVersion": "podium.dev/v1alpha1", "metadata": {"name": "test"}}
    written += [
        {**about, "kind": "Snapshot", "takenAt": format_time(start_ns)},
        {**about, "kind": "Scenario", "spec": {"recorded": True, "until": length, "steps": steps}},
        {**about, "kind": "Recording", "length": length, "events": msgspec.to_builtins(events), **taken},
    ]
    text = msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": written})
    return Input(load_text(text, "recording"))


def read(*files: Any) -> list[Document]:
    return read_input(files).documents
