"""The program `podium scheduler`, against an API server over HTTP."""

import json
from pathlib import Path

import msgspec
import pytest

from podium.api.disruption_policy import DISRUPTION_RATE
from podium.api.errors import InputError
from podium.apirequests.request import Request
from podium.app.live.live_scheduler import check_settings
from podium.client.credentials import ClusterAccess
from podium.controlplane.ledger_file import read_ledger
from podium.framework.settings.configuration import API_VERSION, KIND, read_configuration
from tests.app.live.running import LEASE, SETTINGS, Running, is_going, node_of, play
from tests.client.api_server import NOW, APIServer
from tests.store.objects import budget, node, pod, priority_class, running
from tests.waiting import until


def annotations(server: APIServer) -> dict[str, str]:
    return dict(server.store.get("PodDisruptionBudget", "default/web").raw["metadata"]["annotations"])


def add_preemption(server: APIServer) -> None:
    """``victim`` fills node ``n1``, and ``wants``, which is more important, needs it."""
    server.add(
        priority_class("high", 1_000),
        running("victim", node="n1", cpu=9),
        pod("wants", cpu=8, priority=1_000, spec={"priorityClassName": "high"}),
    )


def test_the_scheduler_binds_pods_and_exits_with_0_on_request() -> None:
    async def story(server: APIServer) -> None:
        server.add(pod("a"))
        async with Running(server) as running_program:
            await until(lambda: node_of(server, "a") == "n1")
        assert running_program.code == 0
        assert running_program.said("stopped")

    play(story)


def test_the_elected_leader_holds_the_lease_and_releases_it() -> None:
    async def story(server: APIServer) -> None:
        server.add(pod("a"))
        settings = msgspec.structs.replace(SETTINGS, lease=LEASE)
        async with Running(server, settings) as running_program:
            await until(lambda: node_of(server, "a") == "n1")
            assert server.store.get("Lease", LEASE.key).raw["spec"]["holderIdentity"] == "me"
        assert running_program.code == 0
        assert server.store.get("Lease", LEASE.key).raw["spec"]["holderIdentity"] == ""

    play(story)


def test_a_scheduler_that_loses_the_lease_exits_with_1_and_stops_writing() -> None:
    async def story(server: APIServer) -> None:
        settings = msgspec.structs.replace(SETTINGS, lease=LEASE)
        async with Running(server, settings) as running_program:
            await until(running_program.program.leads.is_set)
            lease = server.store.get("Lease", LEASE.key).raw
            server.store.update({**lease, "spec": {**lease["spec"], "holderIdentity": "other"}})
            await until(running_program.task.done)
            server.sent.clear()
            server.add(pod("late"))
        assert running_program.code == 1
        assert running_program.said("the lease is lost: other holds it")
        assert [request for request in server.sent if request.verb not in ("get", "list")] == []
        assert server.store.get("Lease", LEASE.key).raw["spec"]["holderIdentity"] == "other"

    play(story)


def test_a_standby_reports_the_leader_and_is_not_ready() -> None:
    async def story(server: APIServer) -> None:
        spec = {"holderIdentity": "other", "leaseDurationSeconds": 3_600}
        metadata = {"namespace": LEASE.namespace, "name": LEASE.name}
        server.add(
            {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}, pod("a")
        )
        settings = msgspec.structs.replace(SETTINGS, lease=LEASE)
        async with Running(server, settings) as running_program:
            await until(lambda: running_program.said("waiting for the lease"))
            code, text = await running_program.read("/readyz")
            assert (code, "another instance holds the lease" in text) == (500, True)
            assert (await running_program.read("/livez"))[0] == 200
        assert running_program.code == 0
        assert node_of(server, "a") == ""

    play(story)


def test_health_and_metrics_use_kube_schedulers_names() -> None:
    async def story(server: APIServer) -> None:
        server.add(pod("a"), pod("huge", cpu=1_000))
        async with Running(server) as running_program:
            await until(
                lambda: node_of(server, "a") == "n1" and "status" in server.store.get("Pod", "default/huge").raw
            )
            await until(
                lambda: running_program.program.metrics.registry.get_sample_value(
                    "scheduler_schedule_attempts_total", {"result": "scheduled", "profile": "default-scheduler"}
                )
            )
            assert (await running_program.read("/readyz")) == (200, "ok")
            code, text = await running_program.read("/metrics")
        assert code == 200
        for line in (
            'scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"} 1.0',
            'scheduler_schedule_attempts_total{profile="default-scheduler",result="unschedulable"} 1.0',
            'scheduler_pending_pods{queue="unschedulable"} 1.0',
            'scheduler_pod_scheduling_sli_duration_seconds_count{attempts="1"} 1.0',
            'scheduler_queue_incoming_pods_total{event="PodAdd",queue="active"} 2.0',
            'scheduler_framework_extension_point_duration_seconds_count{extension_point="PreFilter",'
            'profile="default-scheduler",status="Success"} 2.0',
        ):
            assert line in text
        assert "default/huge" not in text

    play(story)


def test_a_dry_run_says_what_it_would_do_and_writes_nothing() -> None:
    async def story(server: APIServer) -> None:
        server.add(pod("a"))
        settings = msgspec.structs.replace(SETTINGS, dry_run=True)
        async with Running(server, settings) as running_program:
            await until(lambda: running_program.said("would do"))
        assert {request.verb for request in (*server.sent, *server.watches)} <= {"get", "list", "watch"}
        assert node_of(server, "a") == ""

    play(story)


def test_on_another_api_server_disruptions_are_counted_in_annotations() -> None:
    async def story(server: APIServer) -> None:
        server.add(budget(rate="3/1h"))
        add_preemption(server)
        async with Running(server):
            await until(lambda: DISRUPTION_RATE in annotations(server))
        assert json.loads(annotations(server)[DISRUPTION_RATE])["available"] <= 2

    play(story)


def test_the_ledger_names_preemptors_and_metrics_count_disruptions(tmp_path: Path) -> None:
    async def story(server: APIServer) -> None:
        add_preemption(server)
        settings = msgspec.structs.replace(SETTINGS, ledger=str(tmp_path / "ledger"))
        async with Running(server, settings) as found:
            await until(lambda: b'podium_disruptions_total{cause="preemption"} 1.0' in found.program.metrics.text())
        [record] = read_ledger(str(tmp_path / "ledger")).records
        assert (record.pod, record.cause, record.by, record.rule) == (
            "default/victim",
            "preemption",
            "default-scheduler",
            "the only candidate",
        )
        assert record.beneficiary is not None
        assert (record.beneficiary.pod, record.beneficiary.room) == ("default/wants", "n1")

    play(story)


@pytest.mark.parametrize("grace_seconds", [None, 0])
def test_the_ledger_records_forced_deletions(tmp_path: Path, grace_seconds: int | None) -> None:
    path = str(tmp_path / "ledger")

    async def story(server: APIServer) -> None:
        server.add(running("alone", node="n1", cpu=1), pod("waits"))
        async with Running(server, msgspec.structs.replace(SETTINGS, ledger=path)) as found:
            await until(lambda: node_of(server, "waits") == "n1")
            server.store.delete("Pod", "default/alone", now=NOW, grace_seconds=grace_seconds)
            await until(lambda: b'podium_disruptions_total{cause="deletion"} 1.0' in found.program.metrics.text())
        [record] = read_ledger(path).records
        assert (record.pod, record.cause, record.by, record.node) == ("default/alone", "deletion", "", "n1")

    play(story)


def test_the_next_process_records_the_outcome_of_earlier_disruptions(tmp_path: Path) -> None:
    settings = msgspec.structs.replace(SETTINGS, ledger=str(tmp_path / "ledger"))

    async def story(server: APIServer) -> None:
        add_preemption(server)
        async with Running(server, settings):
            await until(lambda: is_going(server, "victim"))
        [record] = read_ledger(settings.ledger).records
        assert record.loss.ended_after is None

        server.store.delete("Pod", "default/victim", now=NOW, grace_seconds=0)
        async with Running(server, settings) as found:
            await until(lambda: node_of(server, "wants") == "n1")
            assert b"podium_disruptions_total{" not in found.program.metrics.text()
        [record] = read_ledger(settings.ledger).records
        assert record.loss.ended_after is not None
        assert record.beneficiary is not None
        assert record.beneficiary.outcome in ("waiting", "placed")

    play(story)


def test_disruptions_at_shutdown_are_accounted_for(tmp_path: Path) -> None:
    settings = msgspec.structs.replace(SETTINGS, ledger=str(tmp_path / "ledger"))

    async def story(server: APIServer) -> None:
        add_preemption(server)
        found = Running(server, settings)

        async def stop_at_the_deletion(request: Request) -> None:
            if request.verb == "delete":
                found.program.stop()

        server.after = stop_at_the_deletion
        async with found:
            await until(lambda: is_going(server, "victim"))
        [record] = read_ledger(settings.ledger).records
        assert (record.pod, record.cause) == ("default/victim", "preemption")

    play(story)


def test_each_decision_is_a_line_with_what_it_was_made_from(tmp_path: Path) -> None:
    async def story(server: APIServer) -> None:
        server.add(node("n2"), running("other", node="n2", cpu=9, priority=5_000))
        add_preemption(server)
        settings = msgspec.structs.replace(SETTINGS, decisions=str(tmp_path / "decisions.jsonl"))
        async with Running(server, settings):
            await until(lambda: is_going(server, "victim"))
        [line, *_] = [json.loads(text) for text in (tmp_path / "decisions.jsonl").read_text().splitlines()]
        assert (line["pod"], line["outcome"], line["node"], line["instance"]) == (
            "default/wants",
            "preempts",
            "n1",
            "me",
        )
        assert line["preemption"]["candidates"]["n1"]["victims"] == ["default/victim"]
        assert line["nodes"][0]["names"] == ["n1", "n2"]
        assert {"action": "mark", "pod": "default/victim"}.items() <= line["done"][1].items()

    play(story)


@pytest.mark.parametrize("server", ["http://10.0.0.1:6443", "https://10.0.0.1:6443"])
def test_preemption_requires_an_authenticated_server(server: str) -> None:
    access = ClusterAccess(name="test", server=server, is_insecure=server.startswith("https"))

    with pytest.raises(InputError, match="certificate is not checked"):
        check_settings(access, SETTINGS)

    without = {"postFilter": {"disabled": [{"name": "DefaultPreemption"}]}}
    raw = {"apiVersion": API_VERSION, "kind": KIND, "profiles": [{"plugins": without}]}
    check_settings(access, msgspec.structs.replace(SETTINGS, configuration=read_configuration(raw, "")))
    check_settings(access, msgspec.structs.replace(SETTINGS, dry_run=True))
    check_settings(access, msgspec.structs.replace(SETTINGS, allows_insecure_preemption=True))
