"""How serving ends where nothing can be kept any more."""

import asyncio
import os
import signal
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from podium.app.serving.serving import Place, Serving
from podium.driver.clock import SystemClock
from podium.plane.assembly import Beginning, assemble, open_store
from podium.plane.control_plane import PlaneSettings
from podium.store.journal.durable import DurableJournal, JournalError
from tests.app.serving.lives import SECONDS


def test_a_disk_that_fails_ends_it_with_what_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = DurableJournal(str(tmp_path / "journal"))
    clock = SystemClock()
    plane = assemble(open_store(0, journal), clock, PlaneSettings(), Beginning(), journal).plane

    def fail() -> None:
        raise JournalError("the disk is full")

    def write(url: str) -> int:
        monkeypatch.setattr(journal, "sync", fail)
        body = b'{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}'
        asked = urllib.request.Request(
            f"{url}/api/v1/namespaces/default/configmaps", body, {"Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(asked, timeout=SECONDS) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code

    async def played() -> int:
        codes: list[asyncio.Future[int]] = []

        def begin(url: str) -> None:
            codes.append(asyncio.ensure_future(asyncio.to_thread(write, url)))

        serving = Serving(plane, clock, Place(port=0), tmp_path / "kubeconfig", on_ready=begin)
        with pytest.raises(JournalError, match="the disk is full"):
            await asyncio.wait_for(serving.run(), SECONDS)
        return await codes[0]

    assert asyncio.run(played()) == 500


def test_a_signal_that_comes_before_the_command_has_begun_ends_it_too(tmp_path: Path) -> None:
    clock = SystemClock()
    plane = assemble(open_store(0), clock, PlaneSettings(), Beginning()).plane
    command = [sys.executable, "-c", "import time; time.sleep(600)"]

    async def played() -> int:
        def end(url: str) -> None:
            os.kill(os.getpid(), signal.SIGTERM)

        serving = Serving(plane, clock, Place(port=0), tmp_path / "kubeconfig", command, on_ready=end)
        return await asyncio.wait_for(serving.run(), SECONDS)

    assert asyncio.run(played()) == 128 + signal.SIGTERM
