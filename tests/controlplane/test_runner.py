"""A control plane on an event loop, in real time and in virtual time."""

import asyncio
from collections.abc import Callable, Coroutine

import pytest

from podium.api.errors import PodiumError
from podium.apirequests.request import Request
from podium.controlplane.assembly import InitialContent, assemble, open_store
from podium.controlplane.components import ControlPlaneSettings
from podium.controlplane.control_plane import ControlPlaneRunner, EmbeddedControlPlane
from podium.runtime.clock import SystemClock
from tests.store.objects import pod
from tests.waiting import GUARD_SECONDS


class Rig:
    """A plane on a loop, very fast, and what a test waits for."""

    def __init__(self, nodes: int = 1) -> None:
        clock = SystemClock(1000.0)
        self.plane: EmbeddedControlPlane = assemble(
            open_store(0), clock, ControlPlaneSettings(), InitialContent((), nodes)
        ).plane
        self.runner = ControlPlaneRunner(self.plane, clock)

    def play(self, story: Callable[["Rig"], Coroutine[None, None, None]]) -> None:
        """Run the plane until the story has come to its end."""

        async def played() -> None:
            running = asyncio.ensure_future(self.runner.run())
            telling = asyncio.ensure_future(story(self))
            done, _ = await asyncio.wait((running, telling), timeout=GUARD_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            for task in (running, telling):
                task.cancel()
            await asyncio.gather(running, telling, return_exceptions=True)
            for task in done:
                await task

        asyncio.run(played())

    async def until(self, phase: str) -> None:
        """Wait until there is a pod of that phase."""
        watch = self.plane.answer(Request(verb="watch", kind="Pod")).watch
        assert watch is not None
        while True:
            if any(notice.raw["status"].get("phase") == phase for notice in watch.pull()):
                return
            woken = asyncio.Event()
            watch.wake_by(woken.set)
            await woken.wait()

    def create(self, raw: object) -> None:
        assert self.plane.answer(Request(verb="create", kind="Pod", body=raw)).code == 201


def test_requests_between_slices_are_served_and_deadlines_met() -> None:
    async def story(rig: Rig) -> None:
        rig.create(pod("a", annotations={"podium.dev/duration": "30s"}, spec={"restartPolicy": "Never"}))
        await rig.until("Running")
        await rig.until("Succeeded")

    Rig().play(story)


def test_a_control_plane_error_is_reported_and_does_not_stop_it(caplog: pytest.LogCaptureFixture) -> None:
    async def story(rig: Rig) -> None:
        collect = rig.plane._collectors.collect
        stumbled = asyncio.Event()

        def stumble(now: int) -> None:
            rig.plane._collectors.collect = collect  # type: ignore[method-assign]
            stumbled.set()
            raise ZeroDivisionError("a mistake")

        rig.plane._collectors.collect = stumble  # type: ignore[method-assign]
        rig.create(pod("a"))
        await stumbled.wait()
        assert rig.runner.problem == "ZeroDivisionError: a mistake"
        rig.create(pod("b", cpu="1"))
        await rig.until("Running")
        while rig.runner.problem:
            await asyncio.sleep(0)

    Rig().play(story)
    assert "the control plane failed" in caplog.text


def test_a_failing_store_ends_the_runner() -> None:
    async def story(rig: Rig) -> None:
        def fail(now: int) -> None:
            raise PodiumError("the disk is full")

        rig.plane._collectors.collect = fail  # type: ignore[method-assign]
        rig.create(pod("a"))
        await asyncio.Event().wait()

    with pytest.raises(PodiumError, match="the disk is full"):
        Rig().play(story)
