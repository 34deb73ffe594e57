"""How serving ends when the journal can no longer be written."""

import asyncio
import os
import signal
import sys
import urllib.error
import urllib.request
from pathlib import Path

import aiohttp
import pytest

from podium.apirequests.request import Request
from podium.app.serving.serving import Serving, ServingAddress
from podium.controlplane.assembly import InitialContent, assemble, open_store
from podium.controlplane.components import ControlPlaneSettings
from podium.runtime.clock import SystemClock
from podium.server.http.object_requests import GroupCommit
from podium.server.http.server import Server
from podium.store.durable_journal import DurableJournal, JournalError
from tests.waiting import GUARD_SECONDS


def test_a_disk_that_fails_ends_it_with_what_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = DurableJournal(str(tmp_path / "journal"))
    clock = SystemClock()
    plane = assemble(open_store(0, journal), clock, ControlPlaneSettings(), InitialContent(), journal).plane

    def fail() -> None:
        raise JournalError("the disk is full")

    def write(url: str) -> int:
        monkeypatch.setattr(journal, "sync", fail)
        body = b'{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}'
        asked = urllib.request.Request(
            f"{url}/api/v1/namespaces/default/configmaps", body, {"Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(asked, timeout=GUARD_SECONDS) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code

    async def played() -> int:
        codes: list[asyncio.Future[int]] = []

        def begin(url: str) -> None:
            codes.append(asyncio.ensure_future(asyncio.to_thread(write, url)))

        serving = Serving(plane, clock, ServingAddress(port=0), tmp_path / "kubeconfig", on_ready=begin)
        with pytest.raises(JournalError, match="the disk is full"):
            await asyncio.wait_for(serving.run(), GUARD_SECONDS)
        return await codes[0]

    assert asyncio.run(played()) == 500


class CountedJournal(DurableJournal):
    """Counts how often the disk is asked to keep what was written."""

    syncs = 0

    def sync(self) -> None:
        self.syncs += 1
        super().sync()


def test_requests_of_one_turn_are_kept_together_before_any_is_answered(tmp_path: Path) -> None:
    journal = CountedJournal(str(tmp_path / "journal"))
    clock = SystemClock()
    plane = assemble(open_store(0, journal), clock, ControlPlaneSettings(), InitialContent(), journal).plane

    async def played() -> None:
        keeping = GroupCommit(plane)
        journal.syncs = 0
        report: list[tuple[bool, bool, int]] = []

        async def create(number: int) -> None:
            metadata = {"name": f"c{number}", "namespace": "default"}
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
            assert plane.answer(Request(verb="create", kind="ConfigMap", body=body)).code == 201
            was_kept = plane.is_kept
            await keeping.wait_durable()
            report.append((was_kept, plane.is_kept, journal.syncs))

        await asyncio.gather(*map(create, range(20)))
        assert report == [(False, True, 1)] * 20
        await keeping.wait_durable()
        assert journal.syncs == 1

    asyncio.run(played())
    plane.close()


def test_a_cancelled_request_spares_others_and_a_failure_reaches_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = CountedJournal(str(tmp_path / "journal"))
    clock = SystemClock()
    plane = assemble(open_store(0, journal), clock, ControlPlaneSettings(), InitialContent(), journal).plane

    def create(name: str) -> None:
        metadata = {"name": name, "namespace": "default"}
        plane.answer(
            Request(
                verb="create", kind="ConfigMap", body={"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
            )
        )

    async def played() -> None:
        keeping = GroupCommit(plane)
        create("a")
        leaving, staying = (asyncio.ensure_future(keeping.wait_durable()) for _ in range(2))
        await asyncio.sleep(0)
        leaving.cancel()
        await staying
        assert plane.is_kept

        def fail() -> None:
            raise JournalError("the disk is full")

        create("b")
        with monkeypatch.context() as patched:
            patched.setattr(journal, "sync", fail)
            found = await asyncio.gather(keeping.wait_durable(), keeping.wait_durable(), return_exceptions=True)
        assert [str(problem) for problem in found] == ["the disk is full"] * 2

    asyncio.run(played())
    plane.close()


def test_a_watcher_receives_only_durable_events(tmp_path: Path) -> None:
    journal = CountedJournal(str(tmp_path / "journal"))
    clock = SystemClock()
    plane = assemble(open_store(0, journal), clock, ControlPlaneSettings(), InitialContent(), journal).plane
    kept: list[bool] = []

    async def played() -> None:
        server = Server(plane)
        await server.start()
        try:
            path = f"{server.address}/api/v1/namespaces/default/configmaps?watch=true"
            async with aiohttp.ClientSession() as session, session.get(path) as watched:
                metadata = {"name": "a", "namespace": "default"}
                body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
                plane.answer(Request(verb="create", kind="ConfigMap", body=body))
                line = b""
                # The watch begins with the ConfigMap that every namespace has.
                while b'"name":"a"' not in line:
                    line = await asyncio.wait_for(watched.content.readline(), GUARD_SECONDS)
                kept.append(plane.is_kept)
                assert b'"ADDED"' in line
        finally:
            await server.stop()

    asyncio.run(played())
    plane.close()
    assert kept == [True]


def test_a_signal_that_comes_before_the_command_has_begun_ends_it_too(tmp_path: Path) -> None:
    clock = SystemClock()
    plane = assemble(open_store(0), clock, ControlPlaneSettings(), InitialContent()).plane
    command = [sys.executable, "-c", "import time; time.sleep(600)"]

    async def played() -> int:
        def end(url: str) -> None:
            os.kill(os.getpid(), signal.SIGTERM)

        serving = Serving(plane, clock, ServingAddress(port=0), tmp_path / "kubeconfig", command, on_ready=end)
        return await asyncio.wait_for(serving.run(), GUARD_SECONDS)

    assert asyncio.run(played()) == 128 + signal.SIGTERM
