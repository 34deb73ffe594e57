"""The account of a control plane: the actions of components and clients, kept across restarts."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.api.times import format_time
from podium.apirequests.authorization import User
from podium.apirequests.request import COMPONENT, Request
from podium.controllers.ledger.disruption import Disruption
from podium.controlplane.assembly import InitialContent, assemble, open_store
from podium.controlplane.components import ControlPlaneSettings
from podium.controlplane.control_plane import EmbeddedControlPlane
from podium.controlplane.ledger_file import LedgerFile, read_ledger
from podium.runtime.clock import VirtualClock
from podium.store.store import Store
from tests.store.objects import Raw, node, pod, priority_class

_SECOND = 10**9


class Cluster:
    """A control plane with a ledger, by a clock that is set."""

    def __init__(self, path: Path, store: Store | None = None, start_ns: int = 10**18) -> None:
        self.path = str(path)
        self.store = open_store(0) if store is None else store
        self.clock = VirtualClock(start_ns)
        self.plane: EmbeddedControlPlane = assemble(
            self.store, self.clock, ControlPlaneSettings(), InitialContent(), ledger=LedgerFile(self.path)
        ).plane

    def ask(self, verb: str, kind: str, key: str = "", body: Raw | None = None, user: str = "", **rest: str) -> None:
        """Ask for something, and let all that follows from it at this time follow."""
        more = {"identity": User(user), **rest}
        response = self.plane.answer(Request(verb=verb, kind=kind, key=key, body=body, **more))  # type: ignore[arg-type]
        assert response.error is None
        self.pass_time(0)

    def make(self, *objects: Raw) -> None:
        """Create objects, and the PriorityClasses of pods with a priority."""
        for raw in objects:
            priority = raw.get("spec", {}).get("priority")
            if raw["kind"] == "Pod" and priority is not None:
                name = raw["spec"]["priorityClassName"] = f"priority-{priority}"
                if self.store.find("PriorityClass", name) is None:
                    self.make(priority_class(name, priority))
            self.ask("create", raw["kind"], body=raw, namespace=raw["metadata"].get("namespace", ""))

    def pass_time(self, seconds: int) -> None:
        """Let time pass, and do what is due meanwhile."""
        until = self.clock.now() + seconds * _SECOND
        while True:
            due = self.plane.turn()
            while due is not None and due <= self.clock.now():
                due = self.plane.turn()
            if due is None or due > until:
                break
            self.clock.set(due)
        self.clock.set(until)

    def records(self) -> tuple[Disruption, ...]:
        """Return what is written down."""
        return read_ledger(self.path).records


def asking(name: str, cpu: int, priority: int) -> Raw:
    """Return a pod that asks for processors."""
    return pod(name, cpu=cpu, priority=priority)


def deployment(name: str, replicas: int, seconds: int = 1) -> Raw:
    """Return a Deployment whose pods take so long to end."""
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {
            "terminationGracePeriodSeconds": seconds,
            "containers": [{"name": "main", "image": "main", "resources": {"requests": {"cpu": "1"}}}],
        },
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template},
    }


def test_a_preemption_is_written_down_as_it_happens(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path / "ledger")
    cluster.make(node("n", cpu=4), asking("low", 4, 0))
    cluster.pass_time(60)

    cluster.make(asking("high", 4, 100))
    cluster.pass_time(60)

    (found,) = cluster.records()
    assert (found.pod, found.cause, found.by, found.rule) == (
        "default/low",
        "preemption",
        "default-scheduler",
        "the only candidate",
    )
    assert found.beneficiary is not None
    assert (found.beneficiary.pod, found.beneficiary.outcome) == ("default/high", "placed")
    assert found.loss.ran == 60
    tallies = cluster.plane.account.tallies if cluster.plane.account is not None else None
    assert tallies is not None
    assert (dict(tallies.disruptions), tallies.lost_seconds) == ({"preemption": 1}, {"preemption": 60})
    cluster.plane.close()


def test_the_account_names_external_users_who_evict_or_delete(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path / "ledger")
    cluster.make(node("n", cpu=4), *(asking(name, 1, 0) for name in ("a", "b", "c")))
    cluster.pass_time(10)
    eviction: Raw = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a", "namespace": "default"}}
    by_drain = {**eviction, "metadata": {"name": "b", "namespace": "default", "annotations": {COMPONENT: "drain"}}}

    cluster.ask("create", "Pod", "default/a", eviction, subresource="eviction", user="alice")
    cluster.ask("create", "Pod", "default/b", by_drain, subresource="eviction", user="bob")
    cluster.ask("delete", "Pod", "default/c", user="carol")
    cluster.pass_time(60)

    assert [(found.pod, found.cause, found.by) for found in cluster.records()] == [
        ("default/a", "eviction", "alice"),
        ("default/b", "drain", "bob"),
        ("default/c", "deletion", "carol"),
    ]
    cluster.plane.close()


def test_a_restart_continues_ledger_numbers_without_duplicate_records(tmp_path: Path) -> None:
    first = Cluster(tmp_path / "ledger")
    first.make(node("n", cpu=4), asking("low", 4, 0))
    first.pass_time(1)
    first.make(asking("high", 4, 100))
    first.plane.close()
    assert len(first.records()) == 1

    again = Cluster(tmp_path / "ledger", first.store)
    again.pass_time(60)
    again.make(asking("highest", 4, 200))
    again.pass_time(60)

    assert [(found.id, found.pod) for found in again.records()] == [(1, "default/low"), (2, "default/high")]
    again.plane.close()


def test_a_collection_deletion_is_reported_pod_by_pod(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path / "ledger")
    cluster.make(node("n", cpu=4), *(asking(name, 1, 0) for name in ("a", "b")))
    cluster.pass_time(10)

    cluster.ask("deletecollection", "Pod", user="alice", namespace="default")
    cluster.pass_time(60)

    assert [(found.pod, found.cause, found.by) for found in cluster.records()] == [
        ("default/a", "deletion", "alice"),
        ("default/b", "deletion", "alice"),
    ]
    cluster.plane.close()


def test_neither_what_a_workload_does_nor_what_goes_with_it_is_a_deletion(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path / "ledger")
    cluster.make(node("n", cpu=8), deployment("web", 3), deployment("api", 2))
    cluster.pass_time(10)

    cluster.ask("patch", "Deployment", "default/web", {"spec": {"replicas": 1}}, user="alice")
    cluster.pass_time(10)
    cluster.ask("delete", "Deployment", "default/api", user="alice")
    cluster.pass_time(60)
    assert cluster.records() == ()

    (last,) = [stored for stored in cluster.store.objects("Pod") if not stored.object.metadata.deletion_timestamp]
    cluster.ask("delete", "Pod", last.key, user="alice")
    cluster.pass_time(60)

    assert [(found.cause, found.owner) for found in cluster.records()] == [("deletion", "Deployment default/web")]
    cluster.plane.close()


@pytest.mark.parametrize("user", ["system:kube-controller-manager", "system:node:n"])
def test_deletions_by_cluster_components_are_not_recorded(tmp_path: Path, user: str) -> None:
    cluster = Cluster(tmp_path / "ledger")
    cluster.make(node("n", cpu=4), asking("a", 1, 0))
    cluster.pass_time(10)

    cluster.ask("delete", "Pod", "default/a", user=user)
    cluster.pass_time(60)

    assert cluster.records() == ()
    cluster.plane.close()


@pytest.mark.parametrize("how", ["refused", "dry", "dry by its options"])
def test_rejected_and_dry_run_deletions_name_no_user(tmp_path: Path, how: str) -> None:
    cluster = Cluster(tmp_path / "ledger")
    cluster.make(node("n", cpu=8), deployment("web", 1))
    cluster.pass_time(10)
    (web,) = (stored.key for stored in cluster.store.objects("Pod"))
    body = {"refused": {"preconditions": {"uid": "another"}}, "dry": {}, "dry by its options": {"dryRun": ["All"]}}[how]
    request = Request(verb="delete", kind="Pod", key=web, body=body, identity=User("alice"), dry_run=how == "dry")
    assert (cluster.plane.answer(request).error is not None) is (how == "refused")

    cluster.ask("delete", "Deployment", "default/web", user="alice")
    cluster.pass_time(60)

    assert cluster.records() == ()
    cluster.plane.close()


def test_the_next_start_follows_what_was_open_and_counts_nothing_twice(tmp_path: Path) -> None:
    first = Cluster(tmp_path / "ledger")
    first.make(node("n", cpu=4), deployment("web", 1, seconds=30), asking("high", 1, 0))
    first.pass_time(10)
    (web,) = (stored.key for stored in first.store.objects("Pod") if stored.key != "default/high")
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction"}
    body: Raw = {**eviction, "metadata": {"name": web.partition("/")[2], "namespace": "default"}}
    first.ask("create", "Pod", web, body, subresource="eviction", user="alice")
    first.plane.close()
    (found,) = first.records()
    assert found.loss.ended_after is None

    again = Cluster(tmp_path / "ledger", first.store)
    again.pass_time(60)

    (found,) = again.records()
    assert found.loss.ended_after is not None
    assert found.replacement is not None
    assert found.replacement.ready_after is not None
    tallies = again.plane.account.tallies if again.plane.account is not None else None
    assert tallies is not None
    # It came back to its node, which the life before has counted.
    assert found.in_vain
    assert (dict(tallies.disruptions), dict(tallies.in_vain)) == ({}, {})
    again.plane.close()

    third = Cluster(tmp_path / "ledger", first.store)
    third.pass_time(60)
    assert third.records() == again.records()
    third.plane.close()


def test_an_external_scheduler_names_its_preemptor_in_an_event(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path / "ledger")
    cluster.make(node("n", cpu=4), asking("low", 4, 0))
    cluster.pass_time(10)
    cluster.make(pod("high", cpu=4, priority=9, spec={"schedulerName": "elsewhere"}))
    now = format_time(cluster.clock.now())
    mark = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "lastTransitionTime": now}
    patch = {"status": {"conditions": [mark]}}
    cluster.ask("patch", "Pod", "default/low", patch, subresource="status", patch_type="strategic", user="bob")
    low = cluster.store.get("Pod", "default/low").uid
    cluster.ask("delete", "Pod", "default/low", user="bob")
    report: Raw = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "low.1", "namespace": "default"},
        "reason": "Preempted",
        "message": "Preempted by pod x on node n",
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "low", "uid": low},
        "related": {"kind": "Pod", "namespace": "default", "name": "high"},
    }
    broken = ({**report, "metadata": {**report["metadata"], "name": "b"}, "related": {"name": "high"}}, report)
    cluster.make(*broken)
    cluster.pass_time(60)

    (found,) = cluster.records()
    assert (found.cause, found.by) == ("preemption", "bob")
    assert found.beneficiary is not None
    assert (found.beneficiary.pod, found.beneficiary.room, found.beneficiary.outcome) == (
        "default/high",
        "n",
        "waiting",
    )
    cluster.plane.close()


def test_a_burst_of_deletions_leaves_no_pending_ledger_entry(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path / "ledger", Store(require_namespaces=True, log_capacity=30))
    cluster.make(node("n", cpu=90), deployment("web", 12))
    cluster.pass_time(60)
    first = cluster.store.objects("Pod")[0]
    cluster.ask("delete", "Pod", first.key, user="alice")

    # Watchers miss writes beyond the capacity of the log.
    for stored in cluster.store.objects("Pod"):
        cluster.store.delete("Pod", stored.key, now=cluster.clock.now(), grace_seconds=0)
    for number in range(40):
        cluster.store.create(pod(f"p{number}", cpu=1), now=cluster.clock.now())
    cluster.pass_time(60)

    (record,) = cluster.records()
    assert (record.pod, record.by, record.loss.ended_after is not None) == (first.key, "alice", True)
    assert record.replacement is not None
    assert cluster.plane.account is not None
    assert cluster.plane.account._ledger._ending == set()


def test_namespace_usage_by_priority_survives_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    cluster = Cluster(path)
    cluster.make(node("n"), pod("a", cpu=2, priority=5, node="n"))
    cluster.pass_time(900)
    cluster.plane.close()
    again = Cluster(path, cluster.store, cluster.clock.now() + 3_600 * _SECOND)
    again.pass_time(900)
    again.plane.close()

    used = read_ledger(str(path)).usage
    [(namespace, class_, priority)] = {(one.namespace, one.priority_class, one.priority) for one in used}
    assert (namespace, class_, priority) == ("default", "priority-5", 5)
    found = sum(one.requested["cpu"] for one in used)
    # While the control plane was down, its nodes ran nothing.
    assert found == pytest.approx(2 * (900 + 900) / 3_600, rel=0.05)
