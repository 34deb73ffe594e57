"""`podium record` against an API server: the recording is complete and can be simulated."""

from __future__ import annotations

import asyncio
import errno
import gzip
import os
import signal
import stat
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from podium.api.errors import InputError
from podium.apirequests.request import Request, Response
from podium.app.console.command import podium as command
from podium.app.console.options import ClusterSource
from podium.app.recording import recording
from podium.app.recording.recording import Limits, Recorded, RecordingFile, recover
from podium.sim.recording.tape import RecordingEntry
from podium.store.errors import StoreError
from tests.app.snapshots.fake_api_server import kubeconfig
from tests.client.api_server import NOW, APIServer, said
from tests.store.objects import node, pod
from tests.waiting import GUARD_SECONDS, until

Raw = dict[str, Any]
PLENTY = 1 << 30


class Written:
    """Waits until so many entries with something in them were written."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.more = asyncio.Condition()
        write = RecordingFile.write

        def counted(file: RecordingFile, entry: RecordingEntry, elapsed_ns: int) -> None:
            write(file, entry, elapsed_ns)
            if entry.steps or entry.events:
                self.count += 1

        monkeypatch.setattr(RecordingFile, "write", counted)

    async def reach(self, count: int) -> None:
        await until(lambda: self.count >= count)


def items_of(file: Path) -> list[Raw]:
    found: list[Raw] = msgspec.json.decode(gzip.decompress(file.read_bytes()))["items"]
    return found


async def recorded(
    server: APIServer, folder: Path, act: Callable[[], Awaitable[None]], limits: Limits, say: list[str]
) -> Recorded:
    """Return what comes of a recording during which something is done, which begins when the recording does."""
    source = ClusterSource("test", str(kubeconfig(folder, server.url)))
    began = asyncio.Event()

    def reported(line: str) -> None:
        say.append(line)
        if " at the start; " in line:
            began.set()

    task = asyncio.ensure_future(recording.record(source, str(folder / "a.podium"), limits, reported))
    async with asyncio.timeout(GUARD_SECONDS):
        await asyncio.wait((task, asyncio.ensure_future(began.wait())), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            await act()
        return await task


def test_an_interrupted_recording_keeps_its_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = Written(monkeypatch)

    async def story() -> Recorded:
        async with APIServer() as server:
            server.add(node("n1"), pod("there"))

            async def act() -> None:
                server.add(pod("late"))
                await written.reach(1)
                server.store.bind("default/late", "n1", now=NOW)
                await written.reach(2)
                server.store.delete("Pod", "default/there", now=NOW)
                await written.reach(3)
                os.kill(os.getpid(), signal.SIGINT)

            return await recorded(server, tmp_path, act, Limits(None, PLENTY), said_lines)

    said_lines: list[str] = []
    made = asyncio.run(story())
    items = items_of(tmp_path / "a.podium")

    assert [item["kind"] for item in items] == ["Node", "Pod", "Snapshot", "Scenario", "Recording"]
    (came, ended) = items[3]["spec"]["steps"]
    assert came["apply"][0]["metadata"]["name"] == "late"
    assert ended["delete"] == {"kind": "Pod", "namespace": "default", "name": "there", "outright": True}
    assert [event["what"] for event in items[4]["events"]] == ["created", "bound", "gone"]
    assert items[3]["spec"]["until"] == items[4]["length"]
    assert (made.objects, made.steps, made.events, made.is_full) == (2, 2, 3, False)
    assert stat.S_IMODE((tmp_path / "a.podium").stat().st_mode) == 0o600
    assert {path.name for path in tmp_path.iterdir()} == {"a.podium", "kubeconfig"}

    result = CliRunner().invoke(command, ["simulate", "-f", str(tmp_path / "a.podium")])
    assert result.exit_code == 0, result.output
    assert "Recorded and simulated" in result.output


def test_a_connection_that_breaks_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = Written(monkeypatch)

    async def story() -> Recorded:
        async with APIServer() as server:
            server.add(node("n1"))

            async def act() -> None:
                server.add(pod("a"))
                await written.reach(1)
                server.cut_watches()
                server.add(pod("b"))
                await written.reach(2)
                os.kill(os.getpid(), signal.SIGINT)

            return await recorded(server, tmp_path, act, Limits(None, PLENTY), [])

    asyncio.run(story())

    steps = items_of(tmp_path / "a.podium")[-2]["spec"]["steps"]
    assert [step["apply"][0]["metadata"]["name"] for step in steps] == ["a", "b"]


def test_an_unreadable_object_is_reported_and_skipped(tmp_path: Path) -> None:
    said_lines: list[str] = []

    async def story() -> None:
        async with APIServer() as server:
            server.add(node("n1"), pod("odd"))
            stored = server.store.get("Pod", "default/odd")
            stored.raw["spec"]["priority"] = "high"

            async def act() -> None:
                os.kill(os.getpid(), signal.SIGINT)

            await recorded(server, tmp_path, act, Limits(None, PLENTY), said_lines)

    asyncio.run(story())

    assert "Pod: 1 object omitted: they cannot be read" in said_lines
    assert [item["kind"] for item in items_of(tmp_path / "a.podium")] == ["Node", "Snapshot", "Scenario", "Recording"]


def test_a_recording_ends_after_its_duration_or_at_its_size_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = Written(monkeypatch)

    async def story(limits: Limits) -> Recorded:
        async with APIServer() as server:
            server.add(node("n1"))

            async def act() -> None:
                if limits.length_ns is None:
                    server.add(pod("a"), pod("b"), pod("c"))
                    await written.reach(1)

            return await recorded(server, tmp_path, act, limits, [])

    short = asyncio.run(story(Limits(1, PLENTY)))
    assert not short.is_full
    assert items_of(tmp_path / "a.podium")[-1]["events"] == []
    small = asyncio.run(story(Limits(None, 500)))
    assert small.is_full
    assert len(items_of(tmp_path / "a.podium")) == 4


def test_record_names_unlistable_kinds_and_requires_pods(tmp_path: Path) -> None:
    async def story(hidden: str) -> None:
        async def refuse(request: Request) -> Any:
            if request.kind != hidden:
                return None
            error = StoreError(403, "Forbidden", f"{hidden} is forbidden")
            return said(Response(code=403, error=error))

        async with APIServer(before=refuse) as server:
            server.add(node("n1"))

            async def act() -> None:
                os.kill(os.getpid(), signal.SIGINT)

            await recorded(server, tmp_path, act, Limits(None, PLENTY), said_lines)

    said_lines: list[str] = []
    asyncio.run(story("ResourceQuota"))
    (snapshot,) = (item for item in items_of(tmp_path / "a.podium") if item["kind"] == "Snapshot")
    assert [hidden["kind"] for hidden in snapshot["hidden"]] == ["ResourceQuota"]
    (tmp_path / "a.podium").unlink()
    with pytest.raises(Exception, match="nothing was recorded: Pod cannot be listed: 403"):
        asyncio.run(story("Pod"))
    assert not (tmp_path / "a.podium").exists()


def test_the_command_says_what_is_wrong_with_its_cluster(tmp_path: Path) -> None:
    file = str(kubeconfig(tmp_path, "http://127.0.0.1:1"))

    result = CliRunner().invoke(command, ["record", "--kubeconfig", file, "--save", str(tmp_path / "a.podium")])

    assert result.exit_code == 1
    assert "127.0.0.1:1" in result.output
    assert not (tmp_path / "a.podium").exists()


def test_a_disk_that_is_full_ends_the_recording_and_the_next_start_completes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(file: RecordingFile, entry: RecordingEntry, elapsed_ns: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(RecordingFile, "write", fail)

    async def story() -> None:
        async with APIServer() as server:
            server.add(node("n1"))

            async def act() -> None:
                server.add(pod("late"))

            await recorded(server, tmp_path, act, Limits(None, PLENTY), [])

    with pytest.raises(OSError, match="No space left"):
        asyncio.run(story())

    assert {path.name for path in tmp_path.iterdir()} == {"a.podium.journal", "kubeconfig"}
    assert recover(str(tmp_path / "a.podium"))
    assert [item["kind"] for item in items_of(tmp_path / "a.podium")] == ["Node", "Snapshot", "Scenario", "Recording"]


def test_files_follow_one_another_and_each_begins_with_the_present_objects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, folder = Written(monkeypatch), tmp_path / "month"
    said_lines: list[str] = []
    source_of: list[ClusterSource] = []

    async def story() -> Recorded:
        async with APIServer() as server:
            server.add(node("n1"))
            source_of.append(ClusterSource("test", str(kubeconfig(tmp_path, server.url))))
            limits = Limits(None, PLENTY, every_ns=3600 * 10**9)
            task = asyncio.ensure_future(recording.record(source_of[0], str(folder), limits, said_lines.append))
            (at_work,) = await began(said_lines, 1)
            server.add(pod("a"))
            await written.reach(1)
            at_work._ends.set()
            await began(said_lines, 2)
            server.add(pod("b"))
            await written.reach(2)
            server.store.delete("Pod", "default/a", now=NOW)
            await written.reach(3)
            os.kill(os.getpid(), signal.SIGINT)
            return await task

    recordings: list[recording._Recording] = []
    make = recording._Recording.__init__

    def noted(self: recording._Recording, *args: Any) -> None:
        recordings.append(self)
        make(self, *args)

    monkeypatch.setattr(recording._Recording, "__init__", noted)

    async def began(lines: list[str], count: int) -> list[recording._Recording]:
        await until(lambda: sum(" at the start; " in line for line in lines) >= count)
        return recordings

    made = asyncio.run(story())
    first, second = (items_of(file) for file in sorted(folder.iterdir(), key=lambda file: (len(file.name), file.name)))

    assert (made.files, made.objects, made.steps, made.events) == (2, 1, 3, 3)
    assert [item["kind"] for item in first] == ["Node", "Snapshot", "Scenario", "Recording"]
    assert [step["apply"][0]["metadata"]["name"] for step in first[2]["spec"]["steps"]] == ["a"]
    assert [item["kind"] for item in second] == ["Node", "Pod", "Snapshot", "Scenario", "Recording"]
    assert [list(step)[-1] for step in second[3]["spec"]["steps"]] == ["apply", "delete"]
    assert second[3]["spec"]["steps"][1]["delete"]["name"] == "a"
    assert all(path.suffix == ".podium" for path in folder.iterdir())


def test_a_file_that_the_objects_alone_fill_is_refused(tmp_path: Path) -> None:
    async def story() -> None:
        async with APIServer() as server:
            server.add(node("n1"))
            source = ClusterSource("test", str(kubeconfig(tmp_path, server.url)))
            await recording.record(source, str(tmp_path / "month"), Limits(None, 500, 10**12), list[str]().append)

    with pytest.raises(InputError, match="raise --max-size"):
        asyncio.run(story())
    assert list((tmp_path / "month").iterdir()) == []


def test_a_file_is_complete_even_if_the_next_one_cannot_begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begin, folder = RecordingFile.begin, tmp_path / "month"

    def begun_once(file: RecordingFile, *args: Any) -> None:
        if any(folder.glob("*-2.podium.journal")) or len(list(folder.glob("*.podium*"))) > 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        begin(file, *args)

    monkeypatch.setattr(RecordingFile, "begin", begun_once)

    async def story() -> None:
        async with APIServer() as server:
            server.add(node("n1"))
            source = ClusterSource("test", str(kubeconfig(tmp_path, server.url)))
            await recording.record(source, str(folder), Limits(None, PLENTY, 10**7), list[str]().append)

    with pytest.raises(OSError, match="No space left"):
        asyncio.run(story())

    (file,) = folder.glob("*.podium")
    assert [item["kind"] for item in items_of(file)] == ["Node", "Snapshot", "Scenario", "Recording"]


JOURNAL: list[Raw] = [
    {"object": node("n1")},
    {"snapshot": {"apiVersion": "podium.dev/v1alpha1", "kind": "Snapshot", "metadata": {}, "context": "prod"}},
    {"at": "1s", "steps": [{"at": "1s", "apply": [pod("late")]}], "events": []},
    {"at": "2s", "steps": [], "events": [{"at": "2s", "what": "bound", "kind": "Pod", "key": "default/late"}]},
]


def journal_of(lines: list[Raw], cut: int = 0) -> bytes:
    text = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
    return text[: len(text) - cut]


@pytest.mark.parametrize("cut", [0, 1, 30])
def test_a_recording_that_was_killed_is_completed_up_to_its_last_whole_line(tmp_path: Path, cut: int) -> None:
    file = tmp_path / "a.podium"
    (tmp_path / "a.podium.journal").write_bytes(journal_of(JOURNAL, cut))

    assert recover(str(file))
    assert not recover(str(file))

    *_, scenario, events = items_of(file)
    assert scenario["spec"]["until"] == events["length"] == ("1s" if cut else "2s")
    assert len(scenario["spec"]["steps"]) == 1
    assert len(events["events"]) == (0 if cut else 1)
    assert [path.name for path in tmp_path.iterdir()] == ["a.podium"]


def test_a_journal_without_a_beginning_is_no_recording(tmp_path: Path) -> None:
    (tmp_path / "a.podium.journal").write_bytes(journal_of(JOURNAL[:1]))

    assert not recover(str(tmp_path / "a.podium"))
    assert list(tmp_path.iterdir()) == []


def test_a_recording_in_progress_and_a_file_that_exists_are_left_alone(tmp_path: Path) -> None:
    target = str(tmp_path / "a.podium")
    at_work = RecordingFile(target, "prod")

    with pytest.raises(InputError, match="another process is recording to it"):
        recover(target)
    at_work.end(0)
    at_work.close()
    (tmp_path / "a.podium").write_text("something else")
    with pytest.raises(InputError, match="move one away"):
        recover(target)

    assert (tmp_path / "a.podium").read_text() == "something else"


def test_the_next_recording_names_the_file_that_was_completed(tmp_path: Path) -> None:
    config = str(kubeconfig(tmp_path, "http://127.0.0.1:1"))
    (tmp_path / "a.podium.journal").write_bytes(journal_of(JOURNAL))
    (tmp_path / "month").mkdir()
    (tmp_path / "month" / "b.podium.journal").write_bytes(journal_of(JOURNAL))

    def record(*args: str) -> str:
        return CliRunner().invoke(command, ["record", "--kubeconfig", config, *args]).output

    alone, among = (
        record("--save", str(tmp_path / "a.podium")),
        record("--save", str(tmp_path / "month"), "--every", "1h"),
    )

    assert "a.podium: the recording in it was killed, and is complete now; name another file" in alone
    assert "b.podium: completed; the recording was killed" in among
    assert len(items_of(tmp_path / "month" / "b.podium")) == len(items_of(tmp_path / "a.podium")) == 4


def test_a_recording_that_is_killed_goes_on_with_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`kill -9` in the middle loses nothing that was seen; the next start completes the file and begins another."""
    folder, written = tmp_path / "month", Written(monkeypatch)

    def lines() -> int:
        return sum(journal.read_bytes().count(b"\n") for journal in folder.glob("*.journal"))

    async def story() -> Recorded:
        async with APIServer() as server:
            server.add(node("n1"))
            config = str(kubeconfig(tmp_path, server.url))
            options = ("--kubeconfig", config, "--save", str(folder), "--every", "1h")
            killed = await asyncio.create_subprocess_exec(sys.executable, "-m", "podium", "record", *options)
            # The node and the Snapshot.
            await until(lambda: lines() == 2)
            server.add(pod("a"))
            await until(lambda: lines() == 3)
            server.store.bind("default/a", "n1", now=NOW)
            await until(lambda: lines() == 4)
            killed.kill()
            assert await killed.wait() == -signal.SIGKILL
            server.add(pod("unseen"))
            said_lines: list[str] = []
            source, limits = ClusterSource("test", config), Limits(None, PLENTY, every_ns=3600 * 10**9)
            task = asyncio.ensure_future(recording.record(source, str(folder), limits, said_lines.append))
            await until(lambda: any(" at the start; " in line for line in said_lines))
            server.add(pod("b"))
            await written.reach(1)
            os.kill(os.getpid(), signal.SIGINT)
            return await task

    made = asyncio.run(story())
    first, second = (items_of(file) for file in sorted(folder.iterdir(), key=lambda file: file.stat().st_mtime_ns))

    assert (made.files, made.objects, made.steps) == (1, 3, 1)
    assert [item["kind"] for item in first] == ["Node", "Snapshot", "Scenario", "Recording"]
    assert [step["apply"][0]["metadata"]["name"] for step in first[2]["spec"]["steps"]] == ["a"]
    assert [event["what"] for event in first[3]["events"]] == ["created", "bound"]
    assert [item["kind"] for item in second] == ["Node", "Pod", "Pod", "Snapshot", "Scenario", "Recording"]
    assert [step["apply"][0]["metadata"]["name"] for step in second[4]["spec"]["steps"]] == ["b"]
