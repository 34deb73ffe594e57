"""Disruptions reconstructed from a cluster without an account: from its pods, their owners and its Events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from podium.api.times import format_time
from podium.app.accounting.account import Account, reconstructed_account
from podium.app.console.command import podium as command
from podium.controllers.ledger.disruption import Disruption, ReplacementPod
from tests.app.snapshots.fake_api_server import FakeAPIServer, serving
from tests.store.objects import Raw

_SECOND = 10**9
# Lists of usage have an entry for each hour up to now: no more of them than a test needs.
_BEGAN = 1_735_689_600


def at(seconds: int) -> str:
    """Return a time in the story."""
    return format_time((_BEGAN + seconds) * _SECOND)


def pod(name: str, made: int, node: str = "", *, ready: int | None = None, owner: str = "", **status: Any) -> Raw:
    """Return a pod as a cluster has it, placed a second after it was made."""
    metadata: Raw = {"name": name, "namespace": "shop", "uid": f"uid-{name}", "creationTimestamp": at(made)}
    if owner:
        metadata["ownerReferences"] = [{"kind": "ReplicaSet", "name": owner, "uid": f"uid-{owner}", "controller": True}]
        metadata["labels"] = {"pod-template-hash": owner.rpartition("-")[2]}
    conditions = status.pop("conditions", [])
    if node:
        conditions = [*conditions, condition("PodScheduled", made + 1)]
    if ready is not None:
        conditions = [*conditions, condition("Ready", ready)]
    spec: Raw = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}], "priority": 7}
    if node:
        spec["nodeName"] = node
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": spec,
        "status": {"phase": "Running" if node else "Pending", "conditions": conditions, **status},
    }


def condition(type_: str, since: int, **rest: str) -> Raw:
    """Return a condition that is true since then."""
    return {"type": type_, "status": "True", "lastTransitionTime": at(since), **rest}


def terminating(raw: Raw, since: int, *conditions: Raw) -> Raw:
    """Return the pod within a grace period of 30 s."""
    metadata = {**raw["metadata"], "deletionTimestamp": at(since + 30), "deletionGracePeriodSeconds": 30}
    status = {**raw["status"], "conditions": [*raw["status"]["conditions"], *conditions]}
    return {**raw, "metadata": metadata, "status": status}


def event(time: int, reason: str, message: str, name: str, *, kind: str = "Pod", by: str = "", **rest: Any) -> Raw:
    """Return an Event about an object."""
    about = {"kind": kind, "namespace": "shop", "name": name, "uid": rest.pop("uid", f"uid-{name}")}
    return {
        "kind": "Event",
        "involvedObject": about,
        "reason": reason,
        "message": message,
        "source": {"component": by},
        "lastTimestamp": at(time),
        "metadata": {"namespace": "shop", "name": f"{name}.{time}.{reason}"},
        **rest,
    }


def preempted(time: int, victim: str, preemptor: str, **rest: Any) -> Raw:
    """Return what a scheduler says of a victim."""
    related = {"kind": "Pod", "namespace": "shop", "name": preemptor, "uid": f"uid-{preemptor}"}
    message = f"Preempted by pod uid-{preemptor} on node n"
    return event(time, "Preempted", message, victim, **{"by": "default-scheduler", "related": related, **rest})


def made(time: int, name: str, by: str = "web-5d") -> Raw:
    """Return what a ReplicaSet says of a pod."""
    return event(time, "SuccessfulCreate", f"Created pod: {name}", by, kind="ReplicaSet", by="replicaset-controller")


def placed(time: int, name: str, node: str) -> Raw:
    """Return what a scheduler says of a pod that it binds."""
    return event(time, "Scheduled", f"Successfully assigned shop/{name} to {node}", name, by="default-scheduler")


def reported(pods: list[Raw], *events: Raw, kept: Account | None = None, **others: list[Raw]) -> Account:
    """Return the account of a cluster."""
    return reconstructed_account(
        {"Pod": pods, "Event": list(events), **others}, "test", (_BEGAN + 1_000) * _SECOND, kept
    )


def test_a_preemption_known_only_from_events_is_reported_with_its_outcome() -> None:
    found = reported(
        [pod("high", 59, "n"), pod("web-b", 60, "m", ready=75, owner="web-5d")],
        made(0, "web-a"),
        placed(10, "web-a", "n"),
        preempted(60, "web-a", "high"),
        made(60, "web-b"),
    )

    (record,) = found.records
    assert (record.pod, record.owner, record.cause, record.by) == (
        "shop/web-a",
        "Deployment shop/web",
        "preemption",
        "default-scheduler",
    )
    # A pod of the same ReplicaSet says how important it was, and what it asked for.
    assert (record.priority, record.node, record.loss.lost, record.loss.work) == (7, "n", 50, {"cpu": 100})
    assert record.beneficiary is not None
    assert (record.beneficiary.pod, record.beneficiary.outcome) == ("shop/high", "placed")
    assert record.replacement == ReplacementPod(
        pod="shop/web-b", uid="uid-web-b", node="m", placed_after=1, ready_after=15
    )
    assert [caveat.about for caveat in found.caveats] == ["events"]


def test_a_deleted_preemptor_ran_only_if_an_event_says_where() -> None:
    story = (placed(10, "low", "n"), preempted(60, "low", "high"))

    (ran,) = reported([], *story, placed(61, "high", "n")).records
    (waited,) = reported([], *story).records

    assert [found.beneficiary and found.beneficiary.outcome for found in (ran, waited)] == ["placed", "gone"]


def test_an_event_of_an_older_scheduler_names_the_preemptor_by_uid_alone() -> None:
    found = reported([pod("high", 59)], placed(10, "low", "n"), preempted(60, "low", "high", related=None))

    assert [record.beneficiary and record.beneficiary.pod for record in found.records] == ["shop/high"]


@pytest.mark.parametrize(
    ("told_by", "cause", "by"),
    [
        (event(60, "Evicted", "The node was low on resource: memory.", "a", by="kubelet"), "pressure", "kubelet"),
        (event(60, "Preempting", "Preempted in order to admit", "a", by="kubelet"), "pressure", "kubelet"),
        (event(60, "Evicted", "Underutilized", "a", by="karpenter"), "eviction", "karpenter"),
        (
            event(60, "TaintManagerEviction", "Marking for deletion Pod shop/a", "a", uid=""),
            "taint",
            "taint-eviction-controller",
        ),
        (
            event(60, "ScaleDown", "deleting pod for node scale down", "a", by="cluster-autoscaler"),
            "autoscaler",
            "cluster-autoscaler",
        ),
        (
            event(60, "LowNodeUtilization", "pod eviction from n", "a", by="descheduler", action="Descheduled"),
            "rescheduler",
            "descheduler",
        ),
        (event(60, "Descheduled", "moved off n", "a", by="podium-rescheduler"), "rescheduler", "podium-rescheduler"),
        (event(60, "GangReleased", "2 pods of ...", "a", by="default-scheduler"), "gang-release", "default-scheduler"),
    ],
)
def test_each_component_records_its_own_reason(told_by: Raw, cause: str, by: str) -> None:
    (record,) = reported([], placed(10, "a", "n"), told_by).records

    assert (record.cause, record.by, record.node) == (cause, by, "n")


def test_a_taint_removed_in_time_disrupts_no_pod() -> None:
    marked = event(60, "TaintManagerEviction", "Marking for deletion Pod shop/a", "a")
    cancelled = event(61, "TaintManagerEviction", "Cancelling deletion of Pod shop/a", "a")

    assert reported([pod("a", 0, "n")], marked, cancelled).records == ()


def test_a_failed_eviction_is_not_recorded() -> None:
    failed = event(60, "EvictionFailed", "no", "a", by="descheduler", action="Descheduled", type="Warning")

    assert reported([pod("a", 0, "n")], failed).records == ()


@pytest.mark.parametrize("reason", ["GangReleased", "ScaleDown"])
def test_a_rejected_eviction_is_not_recorded(reason: str) -> None:
    asked = event(60, reason, "deleting pod for node scale down", "a", by="somebody")

    assert reported([pod("a", 0, "n")], placed(10, "a", "n"), asked).records == ()


def test_pods_that_end_now_say_themselves_why() -> None:
    target = condition("DisruptionTarget", 60, reason="EvictionByEvictionAPI")
    failed = condition("DisruptionTarget", 70, reason="TerminationByKubelet", message="low on memory")
    pods = [
        terminating(pod("evicted", 0, "n"), 60, target),
        terminating(pod("deleted", 0, "n"), 65),
        pod("pressed", 0, "n", phase="Failed", conditions=[failed]),
        pod("done", 0, "n", phase="Failed"),
    ]

    found = reported(pods)

    assert [(record.pod, record.cause, record.time - _BEGAN) for record in found.records] == [
        ("shop/evicted", "eviction", 60),
        ("shop/deleted", "deletion", 65),
        ("shop/pressed", "pressure", 70),
    ]


def test_pods_removed_by_their_workload_do_not_count_as_deleted() -> None:
    owner = {
        "metadata": {"name": "web-5d", "namespace": "shop", "uid": "uid-web-5d"},
        "spec": {"replicas": 1},
        "status": {"replicas": 2},
    }
    ends = terminating(pod("web-a", 0, "n", owner="web-5d"), 60)
    let_go = event(60, "SuccessfulDelete", "Deleted pod: web-b", "web-5d", kind="ReplicaSet")

    found = reported(
        [ends],
        *(made(0, "web-a"), made(0, "web-b"), placed(1, "web-b", "n"), let_go),
        event(60, "Killing", "Stopping container main", "web-b", by="kubelet"),
        ReplicaSet=[owner],
    )

    assert found.records == ()


def test_a_stopped_and_recreated_pod_was_deleted_or_evicted_by_an_unknown_user() -> None:
    stopped = event(60, "Killing", "Stopping container main", "web-a", by="kubelet")
    story = (made(0, "web-a"), placed(1, "web-a", "n"), stopped)

    assert reported([], *story).records == ()
    found = reported([pod("web-b", 61, owner="web-5d")], *story, made(61, "web-b"))

    assert [(record.cause, record.by, record.rule) for record in found.records] == [
        ("deletion", "", "it is unknown whether it was deleted or evicted")
    ]
    assert [(caveat.about, caveat.names) for caveat in found.caveats[1:]] == [("unsaid", ("shop/web-a",))]


def cordoned(time: int, reason: str = "NodeNotSchedulable") -> Raw:
    """Return what a kubelet says of its node."""
    about = {
        "involvedObject": {"kind": "Node", "name": "n", "uid": "n"},
        "source": {"component": "kubelet", "host": "n"},
    }
    return {**event(time, reason, f"Node n status is now: {reason}", "n"), **about}


@pytest.mark.parametrize(
    ("said", "is_as_a_drain"),
    [
        ([cordoned(50)], True),
        ([cordoned(50), cordoned(55, "NodeSchedulable")], False),
        # A kubelet notices it some seconds later.
        ([cordoned(68)], True),
        ([cordoned(75)], False),
    ],
)
def test_a_pod_stopped_on_a_cordoned_node_is_reported_as_drained(said: list[Raw], is_as_a_drain: bool) -> None:
    stopped = event(60, "Killing", "Stopping container main", "web-a", by="kubelet")
    stopped["source"]["host"] = "n"
    story = (made(0, "web-a"), placed(1, "web-a", "n"), stopped, made(61, "web-b"))

    (record,) = reported([pod("web-b", 61, owner="web-5d")], *story, *said).records

    assert record.cause == "deletion"
    assert ("its node was cordoned then, as for a drain" in record.rule) is is_as_a_drain


def test_a_restarted_container_ends_no_pod() -> None:
    stopped = event(60, "Killing", "Stopping container main", "a", by="kubelet")

    assert reported([pod("a", 0, "n")], placed(1, "a", "n"), stopped).records == ()


def test_pods_on_unknown_nodes_are_omitted_and_counted() -> None:
    found = reported([], event(60, "TaintManagerEviction", "Marking for deletion Pod shop/a", "a"))

    assert found.records == ()
    assert [(caveat.about, caveat.count) for caveat in found.caveats[1:]] == [("without-node", 1)]


def test_disruptions_of_the_ledger_are_reported_once_and_from_the_ledger() -> None:
    record = Disruption(id=4, time=_BEGAN + 60, pod="shop/low", uid="uid-low", node="n", cause="drain")
    kept = Account("ledger", (record,), _BEGAN + 60, is_dated=True, dropped=2)

    found = reported(
        [],
        placed(10, "low", "n"),
        placed(10, "a", "n"),
        preempted(60, "low", "high"),
        preempted(50, "a", "high"),
        kept=kept,
    )

    assert [(one.id, one.pod, one.cause) for one in found.records] == [
        (5, "shop/a", "preemption"),
        (4, "shop/low", "drain"),
    ]
    assert found.dropped == 2


@pytest.mark.parametrize(
    "damage",
    [
        {"involvedObject": None},
        {"involvedObject": {"kind": "Pod", "name": 7}},
        {"lastTimestamp": "soon", "metadata": {}},
        {"lastTimestamp": None, "metadata": None},
        {"source": [], "related": "x"},
        {"message": {"a": 1}},
    ],
)
def test_invalid_events_produce_no_records(damage: Raw) -> None:
    broken = {**preempted(60, "low", "high"), **damage}

    assert len(reported([{"metadata": {"name": 7}}, {}], placed(10, "low", "n"), broken).records) <= 1


def test_a_dump_of_pods_and_events_is_read_as_a_cluster_is() -> None:
    items = [pod("high", 59, "n"), placed(10, "low", "n"), preempted(60, "low", "high")]

    done = CliRunner().invoke(command, ["ledger", "-f", "-", "-o", "json"], input=json.dumps({"items": items}))

    answer = json.loads(done.output)
    assert [(found["pod"], found["beneficiary"]["pod"]) for found in answer["records"]] == [("shop/low", "shop/high")]
    assert [caveat["about"] for caveat in answer["caveats"]] == ["events", "guessed"]


def test_a_cluster_and_a_run_cannot_both_be_read() -> None:
    run = json.dumps({"events": [], "summary": {"end": 1}})

    done = CliRunner().invoke(command, ["ledger", "-f", "-", "--context", "x"], input=run)

    assert done.exit_code == 1
    assert "A simulation has no dates" in done.output


def test_a_cluster_is_asked_for_no_more_than_is_needed_and_says_what_may_not_be_seen(tmp_path: Path) -> None:
    objects = [{"apiVersion": "v1", **pod("high", 59, "n")}, placed(10, "low", "n"), preempted(60, "low", "high")]
    server = FakeAPIServer(objects, forbidden=["Job"])

    with serving(server, tmp_path) as file:
        done = CliRunner().invoke(command, ["ledger", "--kubeconfig", file, "--context", "test"])

    assert done.exit_code == 0, done.output
    assert "1 disruption: 1 preemption" in done.output
    assert "preemption for shop/high" in done.output
    assert "listing Job is forbidden" in done.output
    listed = {path.rpartition("/")[2] for _, path in server.asked}
    assert listed == {
        *("events", "jobs", "namespaces", "pods", "replicasets", "replicationcontrollers", "statefulsets")
    }


@pytest.mark.parametrize("form", ["text", "json"])
def test_no_disruptions_are_claimed_where_events_may_not_be_listed(tmp_path: Path, form: str) -> None:
    server = FakeAPIServer([{"apiVersion": "v1", **pod("a", 59, "n")}], forbidden=["Event"])

    with serving(server, tmp_path) as file:
        done = CliRunner().invoke(command, ["ledger", "--kubeconfig", file, "-o", form])

    assert done.exit_code == 1
    assert "no disruptions are known, but listing Event is forbidden" in done.output or form == "json"
    assert "listing Event is forbidden: " in done.output


def test_hidden_events_are_replaced_by_pod_conditions_with_a_caveat(tmp_path: Path) -> None:
    target = condition("DisruptionTarget", 60, reason="EvictionByEvictionAPI")
    server = FakeAPIServer([terminating(pod("a", 0, "n"), 60, target)], forbidden=["Event"])

    with serving(server, tmp_path) as file:
        done = CliRunner().invoke(command, ["ledger", "--kubeconfig", file, "-o", "json"])

    answer = json.loads(done.output)
    assert [found["cause"] for found in answer["records"]] == ["eviction"]
    assert [caveat["about"] for caveat in answer["caveats"]] == ["hidden"]


@pytest.mark.parametrize(
    "damage",
    [
        {"metadata": {"name": "a", "namespace": "shop", "uid": "u", "creationTimestamp": "soon"}},
        {"metadata": {"name": "a", "namespace": "shop", "deletionTimestamp": "2026-99-01T00:00:00Z"}},
        {"metadata": [], "spec": 3},
        {"status": {"startTime": "x", "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": 9}]}},
        {"spec": {"priority": "high"}},
    ],
)
def test_pods_that_cannot_be_read_are_counted_and_passed_over(damage: Raw) -> None:
    found = reported(
        [{**pod("a", 0, "n"), **damage}, pod("high", 59)], placed(10, "low", "n"), preempted(60, "low", "high")
    )

    assert [record.pod for record in found.records] == ["shop/low"]
    assert [(caveat.about, caveat.count) for caveat in found.caveats[1:]] == [("unread", 1), ("guessed", 1)]


def test_a_dump_with_items_that_are_no_objects_is_refused_by_their_place() -> None:
    done = CliRunner().invoke(command, ["ledger", "-f", "-"], input=json.dumps({"items": [{"kind": "Pod"}, 1]}))

    assert done.exit_code == 1
    assert "standard input, .items[1]: an object with apiVersion and kind is expected, not 1" in done.output


def test_pods_of_snapshots_and_of_lists_of_pods_are_read(tmp_path: Path) -> None:
    # So many pods are in a table of the snapshot.
    pods = [pod(f"web-{number}", 0, "n") for number in range(20)]
    evicted = condition("DisruptionTarget", 60, reason="EvictionByEvictionAPI")
    items = [*pods, terminating(pod("low", 0, "n"), 60, evicted)]
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    bare = [{key: value for key, value in item.items() if key not in ("apiVersion", "kind")} for item in items]
    given = {
        "dump.json": {"apiVersion": "v1", "kind": "List", "items": [node, *items]},
        "pods.json": {"apiVersion": "v1", "kind": "PodList", "items": bare},
    }
    for name, raw in given.items():
        (tmp_path / name).write_text(json.dumps(raw))
    saved = tmp_path / "dump.podium"
    words = ["snapshot", "-f", str(tmp_path / "dump.json"), "--save", str(saved)]
    assert CliRunner().invoke(command, words).exit_code == 0

    for file in (*(tmp_path / name for name in given), saved):
        done = CliRunner().invoke(command, ["ledger", "-f", str(file), "-o", "json"])
        assert [record["pod"] for record in json.loads(done.output)["records"]] == ["shop/low"], file


@pytest.mark.parametrize("given", [[{"kind": 3}], [{"kind": "Event"}], [{"kind": "Pod"}] * 3, []])
def test_a_dump_without_disruptions_reports_none(given: list[Any]) -> None:
    done = CliRunner().invoke(command, ["ledger", "-f", "-"], input=json.dumps({"items": given}))

    assert (done.exit_code, done.exception) == (0, None)
    assert done.output.startswith("no disruptions")


def test_the_current_kubectl_context_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(
        FakeAPIServer([pod("high", 59), placed(10, "low", "n"), preempted(60, "low", "high")]), tmp_path
    ) as file:
        monkeypatch.setenv("KUBECONFIG", file)
        done = CliRunner().invoke(command, ["ledger"], prog_name="kubectl podium")

    assert done.output.startswith("1 disruption: 1 preemption")


def test_running_pods_of_a_cluster_count_as_used_since_they_were_scheduled() -> None:
    raws = {"Pod": [pod("a", 0, "n1"), pod("b", 1_800, "n1"), pod("c", 0), pod("d", 0, "n1", phase="Succeeded")]}

    account = reconstructed_account(raws, "test", (_BEGAN + 3_601) * _SECOND)

    assert sum(used.requested["cpu"] for used in account.usage) == pytest.approx(2 * 1.5)
    assert {(used.namespace, used.priority) for used in account.usage} == {("shop", 7)}
    assert [caveat.about for caveat in account.usage_caveats] == ["usage-of-the-present"]
