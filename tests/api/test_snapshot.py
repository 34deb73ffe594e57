"""The contents of a Snapshot, and their effect on answers."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import msgspec
import pytest

import podium
from podium.api.clock_inference import DEFAULT_START_NS
from podium.api.errors import InputError
from podium.api.input.codec import load_text, read_input
from podium.api.input.documents import (
    API_VERSION,
    FORMAT,
    HiddenKind,
    KindCount,
    Snapshot,
    passed_over,
    read_snapshot,
)
from podium.api.meta import ObjectMeta
from podium.api.times import parse_time
from podium.sim.run import simulation_of
from podium.sim.run_options import RunOptions

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n"},
    "status": {"allocatable": {"cpu": "1", "pods": "9"}},
}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web"},
    "spec": {"containers": [{"name": "main", "image": "i"}]},
}
FULL = Snapshot(
    metadata=ObjectMeta(name="prod"),
    context="prod",
    server_version="v1.36.2",
    taken_at="2026-01-31T09:30:00Z",
    hidden=(HiddenKind(api_version="v1", kind="PersistentVolume", message="may not list"),),
    not_served=("ResourceSlice (resource.k8s.io/v1)",),
    left_out=("managed fields",),
    passed_over=(KindCount(api_version="argoproj.io/v1alpha1", kind="Rollout", count=3),),
)


def written(*objects: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": list(objects)})


def start_of(*objects: dict[str, Any]) -> int:
    return simulation_of(load_text(written(*objects), "a"), RunOptions()).settings.start_ns


def test_a_written_avoid_list_is_read_back() -> None:
    assert read_snapshot(FULL.to_dict()) == msgspec.structs.replace(FULL, api_version=API_VERSION, kind="Snapshot")


def test_a_form_that_is_not_known_is_refused_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "new.podium"
    file.write_bytes(gzip.compress(written(NODE, POD, {**FULL.to_dict(), "format": FORMAT + 1})))

    with pytest.raises(InputError, match=r"new\.podium, document 1, Snapshot prod, \.format: 3 is written by a newer"):
        podium.explain(file, "web")


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"takenAt": "yesterday"}, r"\.takenAt: \"yesterday\" is not a time"),
        ({"hidden": 1}, r"\.hidden: 1 is not a list"),
        ({"passedOver": [{"count": "many"}]}, r"\.passedOver\[0\]\.count: \"many\" is not a whole number"),
    ],
)
def test_an_unreadable_snapshot_names_its_field(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        podium.simulate([NODE, POD, {**FULL.to_dict(), **fields}])


def test_a_second_snapshot_of_a_cluster_is_named_and_not_its_first_object(tmp_path: Path) -> None:
    for name in "ab":
        node = NODE | {"metadata": {"name": "n1", "labels": {"of": name}}}
        (tmp_path / f"{name}.podium").write_bytes(written(node, POD, FULL.to_dict()))

    with pytest.raises(
        InputError, match=r"b\.podium: is a snapshot or recording of a cluster, as is .*a\.podium; give"
    ):
        podium.simulate(tmp_path)


def test_an_answer_from_a_snapshot_says_of_when_and_of_what_it_is() -> None:
    report = {caveat.about: caveat.message for caveat in podium.explain([NODE, POD, FULL.to_dict()], "web").caveats}

    assert report["snapshot"] == "a snapshot of prod (v1.36.2) at 2026-01-31T09:30:00Z, without managed fields"
    assert report["kinds-hidden"] == "PersistentVolume (v1) could not be listed there: assumed to be none"
    assert report["kinds-passed-over"].endswith("3 Rollout (argoproj.io/v1alpha1)")


def test_kinds_that_were_passed_over_join_those_that_are_there(tmp_path: Path) -> None:
    rollout = {"apiVersion": "argoproj.io/v1beta1", "kind": "Rollout", "metadata": {"name": "a"}}
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    first.write_bytes(written(NODE, FULL.to_dict()))
    second.write_bytes(written(rollout))

    (found,) = passed_over(read_input([first, second]).documents)

    assert (found.kind, found.count) == ("Rollout", 4)


def test_a_simulation_begins_when_the_snapshot_was_taken() -> None:
    later = {**NODE, "metadata": {"name": "n", "creationTimestamp": "2027-01-01T00:00:00Z"}}

    assert start_of(NODE, FULL.to_dict()) == parse_time(FULL.taken_at)
    assert start_of(later, FULL.to_dict()) == parse_time("2027-01-01T00:00:00Z")
    assert start_of(NODE, Snapshot(metadata=ObjectMeta(name="files")).to_dict()) == DEFAULT_START_NS


def test_a_snapshot_is_neither_a_cluster_object_nor_a_scenario() -> None:
    (document,) = load_text(written(FULL.to_dict()), "a")

    assert document.object is None
    assert read_input([]).snapshots == []
