"""A control plane over HTTP without a scheduler of its own, and faults between it and its clients."""

from __future__ import annotations

import asyncio
import io
import json
from typing import Any, Self

import msgspec

from podium.api.pod import Pod
from podium.api.versions.gates import Gate
from podium.api.versions.release import DEFAULT_RELEASE, Release
from podium.apirequests.request import Request
from podium.app.live.live_program import LiveSettings
from podium.app.live.live_scheduler import LiveScheduler
from podium.app.live.logs import Log
from podium.client.credentials import ClusterAccess, Identity
from podium.client.leader_election import LeaseSettings
from podium.controlplane.assembly import InitialContent, assemble, open_store
from podium.controlplane.component_names import SCHEDULER
from podium.controlplane.components import ControlPlaneSettings
from podium.controlplane.control_plane import ControlPlaneRunner
from podium.framework.settings.configuration import API_VERSION, KIND, read_configuration
from podium.runtime.clock import SystemClock
from podium.server.http.security import ServerSettings, Token
from podium.server.http.server import Server
from podium.store.watch_log import WatchEvent
from tests.live.faulty_wire import FaultyBackend, FaultyWire
from tests.sim.room import check_room
from tests.sim.writes import Writes
from tests.store.objects import SECOND, Raw
from tests.waiting import GUARD_SECONDS

NAMES = frozenset(("default-scheduler",))
# Pods are tried again soon.
QUICK = {"apiVersion": API_VERSION, "kind": KIND, "podMaxBackoffSeconds": 1}


def lease(identity: str, seconds: int = 600) -> LeaseSettings:
    """Return a lease that is renewed often, and by default long enough for a slow machine, which would lose it."""
    return LeaseSettings(
        identity=identity,
        duration_ns=seconds * SECOND,
        renew_deadline_ns=(seconds - 1) * SECOND,
        retry_period_ns=SECOND // 5,
    )


class LiveWrites(Writes):
    """The write rules of simulations, without Events and Leases, which have no spec that generations count."""

    def _check_write(self, event: WatchEvent) -> None:
        if event.stored.kind not in ("Event", "Lease"):
            super()._check_write(event)


class Cluster:
    """A cluster whose store's history is checked against the rules throughout."""

    def __init__(
        self,
        seed: int = 0,
        *,
        tokens: tuple[Token, ...] = (),
        without: frozenset[str] = frozenset((SCHEDULER,)),
        release: Release = DEFAULT_RELEASE,
    ) -> None:
        self.clock = SystemClock()
        settings = ControlPlaneSettings(seed=seed, without=without, release=release)
        self.plane = assemble(open_store(seed), self.clock, settings, InitialContent()).plane
        self.backend = FaultyBackend(self.plane, seed)
        self.server = Server(self.backend, settings=ServerSettings(tokens=tokens))
        self.writes = LiveWrites(self.plane.store, NAMES)
        self.writes.clears_nominations = release.enabled(Gate.CLEARED_NOMINATION)
        self.broken: list[BaseException] = []

    async def __aenter__(self) -> Self:
        await self.server.start()
        self.wire = FaultyWire(self.server.port, 1)
        await self.wire.__aenter__()
        self._tasks = [
            asyncio.ensure_future(ControlPlaneRunner(self.plane, self.clock).run()),
            asyncio.ensure_future(self._judge()),
        ]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.wire.__aexit__()
        await self.server.stop()
        self.plane.close()
        self.check()

    def set_faults(self, rate: float) -> None:
        """So often something goes wrong from now on, in the server and on the wire."""
        self.backend.rate = rate
        self.wire.rate = rate / 4

    def check(self) -> None:
        """Check the invariants of all writes, and of the existing pods."""
        self.writes.check()
        check_room(self.plane.store, self.pods())
        if self.broken:
            raise self.broken[0]

    async def _judge(self) -> None:
        while True:
            try:
                self.check()
            except AssertionError as error:
                self.broken.append(error)
                return
            await asyncio.sleep(0.02)

    def expire_lease(self) -> None:
        """Let the next candidate take the scheduler's Lease a second after it sees this."""
        lease = self.plane.store.get("Lease", "kube-system/kube-scheduler").raw
        self.plane.store.update({**lease, "spec": {**lease["spec"], "leaseDurationSeconds": 1}})

    # Objects

    def add(self, *objects: Raw) -> None:
        for raw in objects:
            response = self.plane.answer(Request(verb="create", kind=raw["kind"], body=raw))
            assert response.error is None, response.error

    def delete(self, kind: str, key: str) -> None:
        self.plane.answer(Request(verb="delete", kind=kind, key=key))

    def pods(self) -> list[Pod]:
        """Return the pods that have not ended."""
        found = [stored.object for stored in self.plane.store.objects("Pod") if isinstance(stored.object, Pod)]
        return [pod for pod in found if not pod.is_terminal]

    def pod(self, name: str) -> Raw | None:
        stored = self.plane.store.find("Pod", f"default/{name}")
        return None if stored is None else stored.raw

    def node_of(self, name: str) -> str:
        raw = self.pod(name)
        return "" if raw is None else str(raw["spec"].get("nodeName", ""))

    def waiting(self) -> list[str]:
        """Return the names of the pods without a node."""
        return sorted(pod.metadata.name for pod in self.pods() if not pod.spec.node_name)


class Instance:
    """One program that schedules; `kill` ends it as a crash does: it gives nothing back."""

    def __init__(self, cluster: Cluster, identity: str = "", token: str = "", **settings: Any) -> None:
        self.text = io.StringIO()
        server = f"http://127.0.0.1:{cluster.wire.port}"
        access = ClusterAccess(name="test", server=server, identity=Identity(token=token))
        usual = LiveSettings(
            configuration=read_configuration(QUICK, "test"),
            identity=identity,
            lease=lease(identity) if identity else None,
            request_timeout_s=GUARD_SECONDS,
            drain_s=GUARD_SECONDS,
        )
        self.settings = msgspec.structs.replace(usual, **settings)
        self.program = LiveScheduler(access, self.settings, Log(cluster.clock.now, "json", stream=self.text))
        self.task = asyncio.ensure_future(self.program.run())

    async def stop(self) -> int:
        """End it in order; its exit code."""
        self.program.stop()
        async with asyncio.timeout(GUARD_SECONDS):
            return await self.task

    async def kill(self) -> None:
        """End it without a word."""
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    @property
    def log(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text.getvalue().splitlines()]

    def said(self, message: str) -> bool:
        return any(message in line["msg"] for line in self.log)
