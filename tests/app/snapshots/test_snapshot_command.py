"""`podium snapshot`: the contents of the file; answers from it equal answers from the whole input."""

from __future__ import annotations

import gzip
import json
import stat
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from click.testing import CliRunner, Result

import podium
from podium.api.input.codec import read_input
from podium.api.input.pod_table import decoded_rows, is_table
from podium.app.bench.eks_cluster import EKSCluster
from podium.app.console.command import podium as command
from tests.app.manifests import EXAMPLES, manifests

SCENARIOS = sorted(EXAMPLES.glob("*.yaml"))
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "aHVudGVyMg=="}}
ROLLOUT = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "r"}}


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command, arguments, prog_name="podium")


def written(file: Path, *objects: dict[str, Any]) -> str:
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
    return str(file)


def kept(target: Path, *arguments: str) -> list[dict[str, Any]]:
    """Return the objects of the snapshot that is made with these arguments."""
    result = run("snapshot", *arguments, "--save", str(target))
    assert result.exit_code == 0, result.output
    return items_of(target)


def items_of(file: Path) -> list[dict[str, Any]]:
    """Return the objects of a snapshot, those of tables included."""
    items = msgspec.json.decode(gzip.decompress(file.read_bytes()))["items"]
    return [one for item in items for one in (decoded_rows(item) if is_table(item) else [item])]


def without_snapshot(answer: dict[str, Any]) -> dict[str, Any]:
    return {**answer, "caveats": [caveat for caveat in answer["caveats"] if caveat["about"] != "snapshot"]}


@pytest.mark.parametrize("example", SCENARIOS, ids=lambda path: path.stem)
def test_a_simulation_of_a_snapshot_is_that_of_its_files(example: Path, tmp_path: Path) -> None:
    target = tmp_path / "a.podium"
    kept(target, "-f", str(example))

    of_files, of_snapshot = (podium.simulate(file, until="5m").to_dict() for file in (example, target))

    assert without_snapshot(of_snapshot) == without_snapshot(of_files)


def test_an_explanation_of_a_snapshot_is_that_of_its_dump(tmp_path: Path) -> None:
    dump, target = tmp_path / "dump.json", tmp_path / "a.podium"
    cluster = EKSCluster(20)
    cluster.write(dump)
    kept(target, "-f", str(dump))

    of_dump, of_snapshot = (podium.explain(file, cluster.pending[-1]).to_dict() for file in (dump, target))

    assert without_snapshot(of_snapshot) == without_snapshot(of_dump)


def test_every_kind_that_is_read_is_kept(tmp_path: Path) -> None:
    items = kept(tmp_path / "a.podium", "-f", written(tmp_path / "all.json", *manifests()))

    assert sorted(item["kind"] for item in items) == sorted([*(raw["kind"] for raw in manifests()), "Snapshot"])


def test_secrets_come_along_on_demand_alone_and_other_kinds_are_counted(tmp_path: Path) -> None:
    file = written(tmp_path / "a.json", SECRET, ROLLOUT, ROLLOUT)

    without = kept(tmp_path / "a.podium", "-f", file)
    with_secrets = kept(tmp_path / "b.podium", "-f", file, "--include", "secrets")

    assert [item["kind"] for item in without] == ["Snapshot"]
    assert [item["kind"] for item in with_secrets] == ["Secret", "Snapshot"]
    assert without[-1]["passedOver"] == [
        {"apiVersion": "v1", "kind": "Secret", "count": 1},
        {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "count": 2},
    ]


def test_the_same_objects_give_the_same_bytes_for_their_owner_alone(tmp_path: Path) -> None:
    first, second = tmp_path / "a.podium", tmp_path / "b.podium"
    for target in (first, second):
        kept(target, "-f", str(EXAMPLES / "drain.yaml"))

    assert first.read_bytes() == second.read_bytes()
    assert stat.S_IMODE(first.stat().st_mode) == 0o600


def test_a_file_that_cannot_be_made_leaves_what_was_there(tmp_path: Path) -> None:
    target = tmp_path / "a.podium"
    target.write_text("before")
    (tmp_path / "bad.yaml").write_text("a: [")

    result = run("snapshot", "-f", str(tmp_path / "bad.yaml"), "--save", str(target))

    assert result.exit_code == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.podium", "bad.yaml"]
    assert target.read_text() == "before"
    missing = run("snapshot", "-f", str(EXAMPLES / "drain.yaml"), "--save", str(tmp_path / "none" / "a.podium"))
    assert missing.exit_code == 1
    assert missing.output == f"podium: error: {tmp_path}/none/a.podium: cannot be written: No such file or directory\n"


def test_a_snapshot_of_a_snapshot_and_one_in_a_directory_are_read(tmp_path: Path) -> None:
    first = tmp_path / "a.podium"
    kept(first, "-f", str(EXAMPLES / "drain.yaml"))
    items = kept(tmp_path / "b.podium", "-f", str(first))

    assert [item["kind"] for item in items].count("Snapshot") == 2
    folder = tmp_path / "folder"
    folder.mkdir()
    first.rename(folder / "a.podium")
    assert len(read_input([folder]).documents) == len(items) - 1


def test_nothing_to_read_is_wrong_usage() -> None:
    results = [run("simulate"), run("sweep"), run("explain", "web")]

    assert [result.exit_code for result in results] == [1, 1, 1]
    assert all("Nothing to read: give files with -f, " in result.output for result in results)


def test_a_snapshot_is_a_twentieth_of_the_dump_that_it_was_made_of(tmp_path: Path) -> None:
    dump, target, manifest = (tmp_path / name for name in ("dump.json", "a.podium", "a.yaml"))
    EKSCluster(20).write(dump)
    items = kept(target, "-f", str(dump))
    manifest.write_text(yaml.dump_all(items, Dumper=yaml.CSafeDumper))

    assert len(read_input([target]).documents) == len(read_input([manifest]).documents)
    assert target.stat().st_size < dump.stat().st_size / 20
