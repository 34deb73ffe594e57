"""The live rescheduler, at an API server over HTTP."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from podium.api.errors import InputError
from podium.apirequests.request import Request
from podium.app.live.logs import Log
from podium.app.live.metrics import HealthSettings
from podium.app.rescheduling.live_rescheduler import LiveRescheduler, ReschedulingSettings, check_settings
from podium.client.credentials import ClusterAccess, Identity
from podium.client.live_cluster import METRICS_GROUP
from podium.controllers.rescheduling import rescheduler_view as said_use
from podium.framework.rescheduling.configuration import read_rescheduler
from podium.framework.settings.configuration import default_configuration
from podium.server.backend import ServedDocument
from podium.server.http.security import Token
from podium.server.http.server import Server
from podium.server.kubernetes_documents import KubernetesDocuments
from tests.app.rescheduling.clusters import CONFIGURATION, budget, replica_set
from tests.live.cluster import Cluster, lease
from tests.store.objects import Raw, node
from tests.waiting import GUARD_SECONDS, until

TOKEN = "0123456789abcdef"
HASTY = {
    **CONFIGURATION,
    "policies": [{"name": "MoveToUnderusedNodes"}],
    "interval": "100ms",
    "scope": {"minimumAge": 0},
    "budgets": {"reserve": 0, "reserveShare": 0},
}


class Scheduled(Cluster):
    """The cluster with a scheduler of its own, and pods that fill a node before another one comes."""

    def __init__(self, *, tokens: tuple[Token, ...] = ()) -> None:
        super().__init__(tokens=tokens, without=frozenset())

    async def scale_up(self) -> None:
        self.add(node("old", cpu=4), replica_set(4), budget(2))
        await until(lambda: len(self.on("old")) == 4 and all(map(_is_ready, self.raws())))
        self.add(node("new", cpu=4))

    def raws(self) -> list[Raw]:
        return [stored.raw for stored in self.plane.store.objects("Pod")]

    def on(self, node_name: str) -> list[str]:
        return sorted(raw["metadata"]["name"] for raw in self.raws() if raw["spec"].get("nodeName") == node_name)


def _is_ready(raw: Raw) -> bool:
    conditions = raw.get("status", {}).get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


class Instance:
    """One program that reschedules."""

    def __init__(self, cluster: Cluster, token: str = "", configuration: Raw = HASTY, **settings: Any) -> None:
        self.text = io.StringIO()
        access = ClusterAccess(
            name="test", server=f"http://127.0.0.1:{cluster.wire.port}", identity=Identity(token=token)
        )
        usual = ReschedulingSettings(
            rescheduling=read_rescheduler(configuration, "rescheduler.yaml"),
            configuration=default_configuration(),
            request_timeout_s=GUARD_SECONDS,
            drain_s=GUARD_SECONDS,
        )
        self.settings = msgspec.structs.replace(usual, **settings)
        self.program = LiveRescheduler(access, self.settings, Log(cluster.clock.now, "json", stream=self.text))
        self.task = asyncio.ensure_future(self.program.run())

    async def stop(self) -> int:
        self.program.stop()
        async with asyncio.timeout(GUARD_SECONDS):
            return await self.task

    @property
    def log(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text.getvalue().splitlines()]

    def said(self, message: str) -> list[dict[str, Any]]:
        return [line for line in self.log if message in line["msg"]]


class WithoutMetrics(KubernetesDocuments):
    """The documents of a cluster without a metrics server."""

    def document(self, method: str, path: str, *more: Any, **options: Any) -> ServedDocument | None:
        return None if METRICS_GROUP in path else super().document(method, path, *more, **options)


class Unmeasured(Scheduled):
    """The same on a server that serves no metrics."""

    def __init__(self, *, tokens: tuple[Token, ...] = ()) -> None:
        super().__init__(tokens=tokens)
        self.server = Server(self.backend, WithoutMetrics(self.backend))


def play(
    story: Callable[[Scheduled], Awaitable[None]], *, tokens: tuple[Token, ...] = (), of: type[Scheduled] = Scheduled
) -> None:
    async def run() -> None:
        async with of(tokens=tokens) as cluster:
            await cluster.scale_up()
            await story(cluster)

    asyncio.run(run())


def test_pods_leave_the_full_node_for_the_one_that_came_and_then_all_is_quiet() -> None:
    async def story(cluster: Scheduled) -> None:
        instance = Instance(cluster, health=HealthSettings(port=0))
        await until(lambda: len(cluster.on("new")) == 1 and len(cluster.pods()) == 4)
        (moved,) = instance.said("moving a pod")
        assert (moved["source"], moved["target"], moved["policy"]) == ("old", "new", "MoveToUnderusedNodes")
        await until(lambda: b"podium_rescheduler_moves_under_way 0.0" in instance.program.metrics.text())
        metrics = instance.program.metrics.text()
        assert b'podium_rescheduler_evictions_total{policy="MoveToUnderusedNodes",result="evicted"} 1.0' in metrics
        assert b'podium_rescheduler_certificate{value="bound"}' in metrics
        assert await instance.stop() == 0
        assert instance.said("stopped")

    play(story)


def test_a_dry_run_prints_the_plan_and_does_with_the_rights_to_read(capsys: pytest.CaptureFixture[str]) -> None:
    async def story(cluster: Scheduled) -> None:
        version = cluster.plane.store.version
        instance = Instance(cluster, token=TOKEN, dry_run=True, plan_form="json")
        said = ""
        while not said:
            await asyncio.sleep(0.01)
            said = capsys.readouterr().out
        plan = json.loads(said.splitlines()[0])
        assert plan["cluster"] == "test"
        assert [move["to"] for planned in plan["planned"] for move in planned["moves"]] == ["new"]
        assert await instance.stop() == 0
        assert len(cluster.on("old")) == 4
        written = {event.stored.kind for event in cluster.plane.store.events_since(version)}
        assert not written & {"Lease", "Event"}
        assert not instance.said("403")
        assert TOKEN not in instance.text.getvalue()

    play(story, tokens=(Token(text=TOKEN, reads_only=True),))


def test_a_plan_that_says_nothing_else_is_not_printed_again(capsys: pytest.CaptureFixture[str]) -> None:
    async def story(cluster: Scheduled) -> None:
        instance = Instance(cluster, dry_run=True, plan_form="json")
        registry = instance.program.metrics.registry
        await until(lambda: (registry.get_sample_value("podium_rescheduler_plans_total") or 0) >= 3)
        assert await instance.stop() == 0
        assert len(capsys.readouterr().out.splitlines()) == 1

    play(story)


def test_a_pause_file_stops_evictions_until_it_is_removed(tmp_path: Path) -> None:
    pause = tmp_path / "pause"
    pause.touch()

    async def story(cluster: Scheduled) -> None:
        instance = Instance(cluster, pause_file=str(pause))
        await until(lambda: b'result="failed"' in instance.program.metrics.text())
        assert len(cluster.on("old")) == 4
        pause.unlink()
        await until(lambda: len(cluster.on("new")) == 1)
        assert await instance.stop() == 0

    play(story)


def test_a_rescheduler_asked_for_one_plan_ends_after_carrying_it_out() -> None:
    async def story(cluster: Scheduled) -> None:
        instance = Instance(cluster, is_once=True)
        async with asyncio.timeout(GUARD_SECONDS):
            assert await instance.task == 0
        assert len(instance.said("moving a pod")) == 1
        await until(lambda: len(cluster.on("new")) == 1)

    play(story)


def test_the_configuration_is_read_of_a_config_map_while_it_runs_and_one_that_is_wrong_is_refused() -> None:
    def config_map(text: str) -> Raw:
        metadata = {"name": "rescheduler", "namespace": "default"}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"config.yaml": text}}

    def put(cluster: Scheduled, text: str) -> None:
        body = config_map(text)
        answer = cluster.plane.answer(
            Request(verb="patch", kind="ConfigMap", key="default/rescheduler", body={"data": body["data"]})
        )
        assert answer.error is None, answer.error

    async def story(cluster: Scheduled) -> None:
        cluster.add(config_map(json.dumps({**HASTY, "paused": True})))
        instance = Instance(cluster, config_map="default/rescheduler")
        await until(lambda: instance.said("the ConfigMap was read"))
        put(cluster, "{apiVersion: v1, kind: Something}")
        await until(lambda: instance.said("the ConfigMap is refused"))
        (refused,) = instance.said("the ConfigMap is refused")
        assert 'ConfigMap default/rescheduler, config.yaml, .kind: is "Something"' in refused["problem"]
        assert not instance.said("moving a pod")
        put(cluster, json.dumps(HASTY))
        await until(lambda: instance.said("moving a pod"))
        assert await instance.stop() == 0

    play(story)


def test_unsupported_descheduler_policies_in_a_config_map_are_reported() -> None:
    async def story(cluster: Scheduled) -> None:
        profile = {"plugins": {"deschedule": {"enabled": ["RemoveFailedPods"]}}}
        policy = {"apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy", "profiles": [profile]}
        metadata = {"name": "rescheduler", "namespace": "default"}
        data = {"config.yaml": json.dumps(policy)}
        cluster.add({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
        instance = Instance(cluster, config_map="default/rescheduler")
        await until(lambda: instance.said("the ConfigMap was read"))
        (read,) = instance.said("the ConfigMap was read")
        assert "RemoveFailedPods: has no counterpart" in read["state"]
        assert await instance.stop() == 0

    play(story)


def test_a_paused_rescheduler_asked_for_one_plan_reports_the_pause_and_ends() -> None:
    async def story(cluster: Scheduled) -> None:
        instance = Instance(cluster, configuration={**HASTY, "paused": True}, is_once=True)
        async with asyncio.timeout(GUARD_SECONDS):
            assert await instance.task == 0
        assert instance.said("the configuration pauses the rescheduler")
        assert not instance.said("moving a pod")

    play(story)


def test_one_of_two_reschedulers_leads_and_the_other_waits() -> None:
    async def story(cluster: Scheduled) -> None:
        first = Instance(cluster, lease=lease("first"), identity="first")
        await until(first.program.leads.is_set)
        second = Instance(cluster, lease=lease("second"), identity="second")
        await until(lambda: second.said("waiting for the lease"))
        assert not second.said("moving a pod")
        assert await first.stop() == 0
        await until(second.program.leads.is_set)
        assert await second.stop() == 0

    play(story)


def test_a_server_whose_certificate_is_not_checked_is_asked_for_no_evictions() -> None:
    access = ClusterAccess(name="test", server="https://10.0.0.1", is_insecure=True)
    settings = ReschedulingSettings(
        rescheduling=read_rescheduler(HASTY, "rescheduler.yaml"), configuration=default_configuration()
    )
    with pytest.raises(InputError, match="--evict evicts pods"):
        check_settings(access, settings)
    check_settings(access, msgspec.structs.replace(settings, dry_run=True))


def test_usage_is_requested_when_a_policy_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    # What pods say themselves is not heeded, so that only the metrics tell it.
    monkeypatch.setattr(said_use, "says_use", lambda pod: False)

    async def story(cluster: Scheduled) -> None:
        policies = [{"name": "SeparateInterfering"}]
        instance = Instance(cluster, configuration={**HASTY, "policies": policies}, measure_s=0.05)
        # Each of the two gets 3 of its 8 cpu.
        larger = {"status": {"allocatable": {"cpu": "8"}}}
        hungry = {"metadata": {"annotations": {"podium.dev/cpu-usage": "4"}}}
        wanted = [Request(verb="patch", kind="Node", key="old", subresource="status", body=larger)]
        wanted += [
            Request(verb="patch", kind="Pod", key=f"default/{name}", body=hungry) for name in cluster.on("old")[:2]
        ]
        assert all(cluster.plane.answer(request).error is None for request in wanted)
        await until(lambda: instance.said("moving a pod"))
        assert "wants 3 and requests 1" in instance.said("moving a pod")[0]["reason"]
        assert await instance.stop() == 0

    play(story)


def test_missing_measurements_are_reported_once() -> None:
    async def story(cluster: Scheduled) -> None:
        configuration = {**HASTY, "policies": [{"name": "SeparateInterfering"}]}
        instance = Instance(cluster, configuration=configuration, measure_s=0.05)
        await until(lambda: instance.said("the resource usage of pods and nodes is unknown"))
        assert await instance.stop() == 0
        assert len(instance.said("the resource usage of pods and nodes is unknown")) == 1

    play(story, of=Unmeasured)
