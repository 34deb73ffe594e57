"""The simulation that a session keeps prepared: answers from it are those of a fresh process."""

from __future__ import annotations

import json
import os
import random
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from podium.app.cluster import Cluster
from podium.app.console.command import podium as command
from podium.app.console.options import Source
from podium.app.console.reading import read_shown
from podium.app.planning import question as questions
from podium.app.planning.question import simulation_before_steps
from podium.app.using import client
from podium.app.using import session as session_module
from podium.app.using.session import SessionServer, UseOptions, stamps_of
from podium.sim.run_options import RunOptions, run_options
from tests.app.planning.dumps import as_list, dump
from tests.app.planning.small import budget, node, pod, priority_class, replica_set, written
from tests.app.test_using import HOUR_NS, enter, wait_until
from tests.fuzzing import usual

AUTOSCALER = {
    "apiVersion": "podium.dev/v1alpha1",
    "kind": "Scenario",
    "metadata": {"name": "own"},
    "spec": {
        "kubelets": {"waitForVictims": True},
        "autoscaler": {"nodeGroups": [{"name": "more", "max": 2, "startUp": "30s", "template": node("more", "8")}]},
    },
}
AUTOSCALER["spec"]["autoscaler"]["nodeGroups"][0]["template"].pop("metadata")  # type: ignore[index]
CROWDED = (
    node("a"),
    node("b", "6"),
    node("c", "2", labels={"zone": "x"}),
    priority_class("high", 1000),
    replica_set("web", 4),
    *(pod(f"web-{number}", on="abab"[number], owner="web") for number in range(4)),
    budget("web", minAvailable=3),
    replica_set("short", 3, "2"),
    pod("short-0", "2", on="c", owner="short"),
    pod("big", "3", priority=5),
    pod("never", "30"),
)
QUESTIONS = (
    "drain a --force",
    "drain a b c --force --parallel -o json",
    "fail a --for 1m -o json",
    "fail -l zone=x --fail-on any",
    "fail gone",
    "deploy new.json -o json",
    "deploy wrong.json",
    "deploy endless.json",
    "change rs/web replicas=9 -o json",
    "change priorityclass/high value=7",
    "nodes --add 2 --like a -o csv",
    "nodes --remove b -o markdown",
    "drain b --force --timeline",
)


@contextmanager
def session_of(folder: Path, files: list[str]) -> Iterator[SessionServer]:
    """Yield the session of a cluster; nothing serves it."""
    (folder / "podium").mkdir(mode=0o700, exist_ok=True)
    use = UseOptions(Source(tuple(files)), None, HOUR_NS, HOUR_NS, str(folder), "")
    with SessionServer(use, Cluster(read_shown(list(files), None)), stamps_of(tuple(files))) as session:
        yield session


def in_a_fork(work: Callable[[], Any]) -> Any:
    """Return what a function returns, as JSON, in a fork of this process that then ends."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            with os.fdopen(theirs, "w") as stream:
                json.dump(work(), stream)
        finally:
            os._exit(0)
    os.close(theirs)
    with os.fdopen(ours) as stream:
        text = stream.read()
    os.waitpid(pid, 0)
    return json.loads(text)


def answer_to(words: list[str], session: SessionServer | None = None) -> list[Any]:
    """Return the exit code and the output of a question; a session answers about its own cluster."""

    def ask() -> list[Any]:
        client.answering = session
        found = CliRunner().invoke(command, words)
        return [found.exit_code, found.stdout, found.stderr, type(found.exception).__name__]

    return list(in_a_fork(ask))


def files_of_a_crowded_cluster(folder: Path) -> list[str]:
    return [written(folder, *CROWDED)]


def files_with_an_autoscaler(folder: Path) -> list[str]:
    return [written(folder, *CROWDED), written(folder, AUTOSCALER, name="scenario.json")]


def files_of_a_dump(folder: Path) -> list[str]:
    (folder / "dump.json").write_text(json.dumps(as_list([*dump(12, 90), *CROWDED[:3], *CROWDED[4:]])))
    return [str(folder / "dump.json")]


def write_changes(folder: Path) -> None:
    written(folder, replica_set("new", 5, "2", priority=2000), name="new.json")
    written(folder, {**pod("wrong"), "spec": {"nodeSelector": {"a": "b"}}}, name="wrong.json")
    cron = {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec": pod("job")["spec"]}}}}
    endless = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "endless"}, "spec": cron}
    written(folder, endless, name="endless.json")


@pytest.mark.parametrize(
    ("files_of", "options"),
    [
        (files_of_a_crowded_cluster, ""),
        (files_of_a_crowded_cluster, "--until 10m --start 2026-02-01T00:00:00Z"),
        (files_with_an_autoscaler, "--seed 7"),
        (files_of_a_dump, "--start-delay 20s --latency 5ms"),
    ],
)
def test_answers_on_a_prepared_simulation_are_those_of_a_fresh_process(
    files_of: Callable[[Path], list[str]], options: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    write_changes(tmp_path)
    files, chosen = files_of(tmp_path), chosen_options(options)
    named = [word for file in files for word in ("-f", file)]
    # One after another, in another order for each case: a question would see what an earlier one has left.
    order = random.Random(options).sample(QUESTIONS, min(usual(2 * len(QUESTIONS)), len(QUESTIONS)))

    with session_of(tmp_path, files) as session:
        session._prepared = chosen, simulation_before_steps(session.cluster.read, chosen)
        for question in order:
            words = ["plan", *question.split(), *options.split()]
            assert answer_to(words, session) == answer_to([*words, *named]), question
        assert not session._wishes.poll()


@pytest.mark.parametrize(
    ("words", "wishes"),
    [
        ("drain a", True),
        ("drain a --seed 3", True),
        ("drain a -o html", True),
        ("pending", False),
        ("reschedule", False),
        ("drain a --outcomes --samples 2", False),
        ("drain a --config scheduler.yaml", False),
        ("drain a --override new.json", False),
        ("drain a --validate ignore", False),
        ("change priorityclass/high value=7", False),
    ],
)
def test_a_question_wishes_for_the_simulation_that_it_did_not_find(
    words: str, wishes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    write_changes(tmp_path)
    profile = {"schedulerName": "default-scheduler"}
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    (tmp_path / "scheduler.yaml").write_text(json.dumps({**kind, "profiles": [profile]}))

    with session_of(tmp_path, files_of_a_crowded_cluster(tmp_path)) as session:
        assert answer_to(["plan", *words.split()], session)[0] == 0
        assert session._wishes.poll() is wishes


def test_a_session_stays_if_nothing_can_be_prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))

    def failing(*_: object) -> None:
        os._exit(1)

    monkeypatch.setattr(questions, "simulation_before_steps", failing)
    with session_of(tmp_path, files_of_a_crowded_cluster(tmp_path)) as session:
        session._wishing.send(RunOptions())
        session.service_actions()
        assert session.active_children == {session._successor}
        os.waitpid(session._successor, 0)
        session.service_actions()
        assert not session.active_children
        assert session._is_current()
        # The same options are not tried again.
        session._wishing.send(RunOptions())
        session.service_actions()
        assert not session.active_children


def test_a_successor_does_not_take_over_from_a_session_that_is_ended_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    stamps = session_module.code_stamps

    with session_of(tmp_path, files_of_a_crowded_cluster(tmp_path)) as session:
        path = Path(session._path)

        def ending() -> Any:
            # In the fork, once its simulation is prepared.
            path.unlink()
            return stamps()

        monkeypatch.setattr(session_module, "code_stamps", ending)
        # A successor that takes over nevertheless serves nothing, so that it ends.
        monkeypatch.setattr(SessionServer, "serve", lambda _: None)
        session._wishing.send(RunOptions())
        session.service_actions()
        os.waitpid(session._successor, 0)

        assert not path.exists()


def test_a_successor_takes_over_with_each_simulation_that_it_has_prepared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = Path(files_of_a_crowded_cluster(tmp_path)[0])
    socket = tmp_path / "podium" / "session"
    enter(tmp_path, "use", "cluster.json")
    asked = ("plan drain a --force -o json", "plan fail b --seed 3 -o json", "plan drain b --force", "explain web-0")
    fresh = {each: answer_to([*each.split(), "-f", "cluster.json"])[1] for each in asked}
    try:
        for question in asked[:2]:
            before = socket.stat().st_ino
            assert enter(tmp_path, *question.split()).stdout == fresh[question]
            wait_until(lambda before=before: socket.stat().st_ino != before)
            assert stat.S_IMODE(socket.stat().st_mode) == 0o600
        # The first of them finds the simulation of the second question.
        for question in asked:
            assert enter(tmp_path, *question.split()).stdout == fresh[question]

        file.write_text(file.read_text().replace('"name": "c"', '"name": "changed"'))
        assert "changed" in enter(tmp_path, "plan", "fail", "-l", "zone=x").stdout
    finally:
        assert enter(tmp_path, "use", "--stop").stdout == "ended\n"
    wait_until(lambda: not processes_of(tmp_path))


def processes_of(folder: Path) -> list[str]:
    """Return the sessions of a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"XDG_RUNTIME_DIR={folder}\0".encode() in (process / "environ").read_bytes():
                found.append(process.name)
    return found


def chosen_options(words: str) -> RunOptions:
    names = [word.removeprefix("--").replace("-", "_") for word in words.split()[::2]]
    given: dict[str, Any] = dict(zip(names, words.split()[1::2], strict=True))
    return run_options(**given | ({"seed": int(given["seed"])} if "seed" in given else {}))
