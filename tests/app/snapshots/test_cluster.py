"""Reading a cluster with list rights only, and reporting kinds that could not be listed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from podium.api.kinds import KINDS
from podium.apirequests.request import Request, Response
from podium.app.console.command import podium as command
from podium.client import session
from tests.app import processes
from tests.app.manifests import manifests
from tests.app.snapshots.fake_api_server import FakeAPIServer, kubeconfig, serving
from tests.app.snapshots.test_snapshot_command import items_of

Raw = dict[str, Any]
NODE: Raw = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n", "uid": "n"},
    "status": {"allocatable": {"cpu": "1", "pods": "9"}, "conditions": [{"type": "Ready", "status": "True"}]},
}
SECRET: Raw = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "a"}, "data": {"a": "Yg=="}}


def pod(name: str, **spec: Any) -> Raw:
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": name,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "managedFields": [{"manager": "hunter2"}],
    }
    container = {"name": "main", "image": "i", "env": [{"name": "A", "value": "hunter2"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}


@pytest.fixture
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retry without waiting."""
    monkeypatch.setattr(session, "_FIRST_WAIT_S", 0.0)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command, arguments, prog_name="podium")


def snapshot_of(server: FakeAPIServer, folder: Path, *arguments: str) -> tuple[list[Raw], Result]:
    """Return the objects of a snapshot of the server, and what the command said."""
    target = folder / "a.podium"
    with serving(server, folder) as file:
        result = run("snapshot", "--kubeconfig", file, "--save", str(target), *arguments)
    assert result.exit_code == 0, result.output
    return items_of(target), result


def test_all_kinds_are_there_each_object_with_what_it_is(tmp_path: Path) -> None:
    items, _ = snapshot_of(FakeAPIServer([*manifests(), SECRET]), tmp_path)

    assert sorted((item["apiVersion"], item["kind"]) for item in items[:-1]) == sorted(
        (raw["apiVersion"], raw["kind"]) for raw in manifests()
    )
    assert items[-1]["context"] == "test"
    assert items[-1]["serverVersion"] == "v1.36.2"
    assert items[-1]["takenAt"].endswith("Z")


def test_nothing_but_lists_of_known_kinds_is_asked_for(tmp_path: Path) -> None:
    server = FakeAPIServer([NODE, SECRET])

    snapshot_of(server, tmp_path)

    paths = {
        f"/apis/{kind.api_version}/{kind.plural}" if kind.group else f"/api/v1/{kind.plural}" for kind in KINDS.values()
    }
    assert set(server.asked) == {("GET", path) for path in paths}


def test_secrets_are_asked_for_on_demand_alone(tmp_path: Path) -> None:
    server = FakeAPIServer([NODE, SECRET])

    items, _ = snapshot_of(server, tmp_path, "--include", "secrets")

    assert SECRET in items


def test_all_pages_form_one_list(tmp_path: Path) -> None:
    pods = [pod(f"p{number:03}") for number in range(25)]

    items, result = snapshot_of(FakeAPIServer([NODE, *pods], page=10), tmp_path)

    assert [item["metadata"]["name"] for item in items if item["kind"] == "Pod"] == [f"p{i:03}" for i in range(25)]
    assert "26 objects of test (v1.36.2) at 2" in result.output
    assert "hunter2" not in json.dumps(items)


def test_a_kind_that_may_not_be_listed_is_named_in_every_answer(tmp_path: Path) -> None:
    server = FakeAPIServer([NODE, pod("web")], forbidden=["PersistentVolume"], absent=["ResourceSlice"])

    _, result = snapshot_of(server, tmp_path)
    answer = run("explain", "web", "-f", str(tmp_path / "a.podium"))

    assert "PersistentVolume (v1): you are not allowed to list them: persistentvolumes is forbidden" in result.output
    assert "not served there: ResourceSlice (resource.k8s.io/v1)" in result.output
    assert "PersistentVolume (v1) could not be listed there: assumed to be none" in answer.output


def test_without_nodes_or_pods_there_is_no_snapshot(tmp_path: Path) -> None:
    with serving(FakeAPIServer([NODE], forbidden=["Pod"]), tmp_path) as file:
        result = run("snapshot", "--kubeconfig", file, "--save", str(tmp_path / "a.podium"))

    assert result.exit_code == 1
    assert "context test: you are not allowed to list pods, which every answer needs" in result.output
    assert not (tmp_path / "a.podium").exists()


@pytest.mark.usefixtures("_at_once")
def test_a_list_of_a_compacted_version_restarts_and_transient_errors_are_retried(tmp_path: Path) -> None:
    pods = [pod(f"p{number}") for number in range(5)]
    server = FakeAPIServer([NODE, *pods], failures={"Pod": [410], "Service": [503, 0, 429]})

    items, _ = snapshot_of(server, tmp_path)

    assert [item["metadata"]["name"] for item in items if item["kind"] == "Pod"] == [f"p{i}" for i in range(5)]


@pytest.mark.usefixtures("_at_once")
@pytest.mark.parametrize(
    ("failures", "said"), [([400], "not now"), ([0] * 30, "http://127.0.0.1:"), ([500] * 9, "not now")]
)
def test_permanent_list_errors_end_the_snapshot(failures: list[int], said: str, tmp_path: Path) -> None:
    with serving(FakeAPIServer([NODE], failures={"Pod": failures}), tmp_path) as file:
        result = run("snapshot", "--kubeconfig", file, "--save", str(tmp_path / "a.podium"))

    assert result.exit_code == 1
    assert f"podium: error: context test: pods cannot be listed: {said}" in result.output
    assert "t0ken" not in result.output


@pytest.mark.parametrize(
    "arguments", [["explain", "web"], ["simulate", "--until", "1m"], ["sweep", "--jobs", "1", "--until", "1m"]]
)
def test_every_command_that_reads_files_reads_a_cluster(arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "web.json").write_text(json.dumps(pod("web")))
    with serving(FakeAPIServer([NODE]), tmp_path) as file:
        result = run(*arguments, "--kubeconfig", file, "--context", "test", "-f", str(tmp_path / "web.json"))

    assert result.exit_code == 0, result.output
    assert "a snapshot of test (v1.36.2) at " in result.output


@pytest.mark.usefixtures("_at_once")
def test_missing_contexts_and_unreachable_servers_are_errors(tmp_path: Path) -> None:
    file = str(kubeconfig(tmp_path, "http://127.0.0.1:1"))

    unknown = run("explain", "web", "--kubeconfig", file, "--context", "nowhere")
    silent = run("explain", "web", "--kubeconfig", file, "--context", "test")

    assert unknown.exit_code == silent.exit_code == 1
    assert "nowhere" in unknown.output
    assert "127.0.0.1:1" in silent.output
    assert "t0ken" not in unknown.output + silent.output


@pytest.mark.usefixtures("_at_once")
def test_a_server_that_does_not_answer_is_not_asked_for_every_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    answer = session.Session.answer

    async def counted(own: session.Session, request: Request) -> Response:
        asked.append(request.kind)
        return await answer(own, request)

    monkeypatch.setattr(session.Session, "answer", counted)

    result = run("explain", "web", "--kubeconfig", str(kubeconfig(tmp_path, "http://127.0.0.1:1")), "--context", "test")

    assert result.exit_code == 1
    # Several kinds are asked for at once.
    assert 0 < len(set(asked)) < len(KINDS) // 2


@pytest.mark.usefixtures("_at_once")
def test_without_a_name_the_current_context_is_meant_with_its_program_only_where_that_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "a.podium"
    with serving(FakeAPIServer([NODE]), tmp_path) as file:
        content = json.loads(Path(file).read_text())
        program = {"command": str(tmp_path / "gone"), "apiVersion": "client.authentication.k8s.io/v1"}
        content["users"][0]["user"] = {"exec": program}
        Path(file).write_text(json.dumps(content))
        monkeypatch.setenv("KUBECONFIG", file)
        refused = run("snapshot", "--save", str(target))
        asked = run("snapshot", "--save", str(target), "--allow-exec-plugins")

    assert "allow that with --allow-exec-plugins" in refused.output
    assert "gone" in asked.output
    assert "--allow-exec-plugins" not in asked.output


def test_files_and_a_cluster_together_make_no_snapshot(tmp_path: Path) -> None:
    result = run("snapshot", "-f", "a.yaml", "--context", "test", "--save", str(tmp_path / "a.podium"))

    assert result.exit_code == 1


def test_a_control_plane_begins_as_a_cluster_is(tmp_path: Path) -> None:
    script = (
        "import json, os, urllib.request as r, yaml; "
        "server = yaml.safe_load(open(os.environ['KUBECONFIG']))['clusters'][0]['cluster']['server']; "
        "print([one['metadata']['name'] for one in json.load(r.urlopen(server + '/api/v1/nodes'))['items']])"
    )
    with serving(FakeAPIServer([NODE]), tmp_path) as file:
        ended = processes.run(
            "up",
            "--context",
            "test",
            "--no-node-lifecycle-controller",
            "--",
            sys.executable,
            "-c",
            script,
            KUBECONFIG=file,
        )

    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[-1] == "['n']"
