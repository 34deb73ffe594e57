"""What the page's first view is given: the state of a cluster, its evaluation, and objects as they are described."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from podium.api.input.files import read_bytes
from podium.api.input.yaml import parse_documents
from podium.app.serving.page.now import MAX_NAMES, MAX_ROWS, described, state_of
from podium.server.http.security import ServerSettings, Token
from podium.store.errors import StoreError
from tests.app.serving.page.shows import OURS, shown_of, with_page
from tests.app.serving.page.test_questions import ask
from tests.server.serving import Client, LocalBackend
from tests.store.objects import Raw, node, pod
from tests.waiting import GUARD_SECONDS

PENDING = Path(__file__).parents[4] / "examples" / "cookbook" / "pending.yaml"
LATER = "2030-01-01T00:00:00Z"
READER = "another-token-that-is-long"


def event(reason: str, message: str, subject: str, **more: Any) -> Raw:
    namespace, name = "default", f"{subject}.{reason}"
    about = {"kind": "Pod", "namespace": namespace, "name": subject}
    metadata = {"name": name.lower(), "namespace": namespace}
    fields = {"reason": reason, "message": message, "involvedObject": about, "lastTimestamp": LATER, **more}
    return {"apiVersion": "v1", "kind": "Event", "metadata": metadata, **fields}


def state(*objects: Raw) -> dict[str, Any]:
    shown = shown_of(LocalBackend(*objects))
    return state_of(shown.objects(), shown.events())


def condition(type_: str, status: str, reason: str = "", message: str = "") -> Raw:
    return {"type": type_, "status": status, "reason": reason, "message": message}


def test_a_pending_pod_says_the_message_of_its_condition_and_without_one_that_of_its_event() -> None:
    waits = [condition("PodScheduled", "False", "Unschedulable", "0/1 nodes are available")]
    found = state(
        pod("told", status={"conditions": waits}),
        pod("event"),
        event("FailedScheduling", "0/7 nodes are available", "event"),
        pod("new"),
        pod("placed", node="n1"),
        node("n1"),
    )
    reasons = {row["names"][0]: row["reason"] for row in found["pending"]}
    assert reasons == {
        "default/told": "0/1 nodes are available",
        "default/event": "0/7 nodes are available",
        "default/new": "no scheduler has reported a decision about it",
    }
    # The others say theirs in a condition, which watches of pods have.
    assert found["reasons"] == {"default/event": "0/7 nodes are available"}
    assert found["counts"] == {"nodes": 1, "pods": 4, "pending": 3}


def test_nodes_are_grouped_by_what_is_unusual_about_them_the_worst_first() -> None:
    down = condition("Ready", "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")
    full = condition("DiskPressure", "True", "KubeletHasDiskPressure")
    tainted = {"taints": [{"key": "dedicated", "value": "ml", "effect": "NoSchedule"}]}
    nodes = [
        {**node("n1"), "status": {"conditions": [down]}},
        {**node("n2"), "status": {"conditions": [condition("Ready", "True"), full]}},
        {**node("n3"), "spec": {"unschedulable": True, **tainted}},
        {**node("n4"), "spec": tainted},
    ]
    marks = [(row["mark"], row["kind"], row["names"]) for row in state(*nodes)["nodes"]]
    assert marks == [
        ("not ready: Kubelet stopped posting node status.", "bad", ["n1"]),
        ("DiskPressure: KubeletHasDiskPressure", "bad", ["n2"]),
        ("cordoned", "warn", ["n3"]),
        ("taint dedicated=ml:NoSchedule", "note", ["n3", "n4"]),
    ]


def test_preemptions_have_their_preemptor_and_victims_the_last_first() -> None:
    preempted = condition("DisruptionTarget", "True", "PreemptionByScheduler")
    related = {"kind": "Pod", "namespace": "default", "name": "high"}
    earlier = {"lastTimestamp": "2029-01-01T00:00:00Z", "related": {**related, "name": "first"}}
    found = state(
        event("Preempted", "Preempted by pod u1 on node n1", "a", related=related),
        event("Preempted", "Preempted by pod u1 on node n1", "b", related=related),
        event("Preempted", "Preempted by pod u0 on node n2", "c", **earlier),
        pod("next", status={"nominatedNodeName": "n3"}),
        pod("going", node="n3", metadata={"deletionTimestamp": LATER}, status={"conditions": [preempted]}),
    )
    rows = [(row["preemptor"], row["node"], row["victim"], row["at"]) for row in found["preemptions"]]
    assert rows == [
        ("default/high", "n1", "default/b", LATER),
        ("default/high", "n1", "default/a", LATER),
        ("default/first", "n2", "default/c", "2029-01-01T00:00:00Z"),
        ("default/next", "n3", "default/going", ""),
    ]


def test_the_state_of_a_large_cluster_is_bounded() -> None:
    pods = [pod(f"p{number}", status={"conditions": [condition("PodScheduled", "False", "", f"why {number}")]})
            for number in range(MAX_ROWS + 10)]  # fmt: skip
    nodes = [{**node(f"n{number}"), "spec": {"unschedulable": True}} for number in range(MAX_NAMES + 3)]
    found = state(*pods, *nodes)
    assert len(found["pending"]) == MAX_ROWS
    assert [(row["number"], len(row["names"])) for row in found["nodes"]] == [(MAX_NAMES + 3, MAX_NAMES)]


def test_a_described_object_has_its_conditions_and_its_events_the_last_first() -> None:
    waits = condition("PodScheduled", "False", "Unschedulable", "0/1 nodes are available")
    shown = shown_of(
        LocalBackend(
            pod("a", status={"conditions": [waits]}),
            event("FailedScheduling", "0/1 nodes are available", "a", count=3),
            event("Created", "made", "a", lastTimestamp="2029-01-01T00:00:00Z"),
            event("FailedScheduling", "of another", "b"),
        )
    )
    found = described(shown, "Pod", "default/a")
    assert [each["message"] for each in found["status"]["conditions"]] == ["0/1 nodes are available"]
    assert [(each["reason"], each.get("count"), each["at"]) for each in found["events"]] == [
        ("FailedScheduling", 3, LATER),
        ("Created", None, "2029-01-01T00:00:00Z"),
    ]
    with pytest.raises(StoreError):
        described(shown, "Pod", "default/none")


async def evaluated(client: Client, **headers: str) -> Raw:
    """Return what the view is given once the cluster has been evaluated."""
    for _ in range(round(10 * GUARD_SECONDS)):
        code, found = await client.ask("GET", "/ui/now", headers={**OURS, **headers})
        assert code == 200, found
        if found["problem"] or "losses" in (found["evaluation"] or {}):
            return dict(found)
        await asyncio.sleep(0.1)
    raise AssertionError("the evaluation does not end")


def test_a_read_only_token_reads_the_evaluation_and_others_read_nothing() -> None:
    async def check(client: Client) -> None:
        assert (await client.ask("GET", "/ui/now", headers=OURS))[0] == 401
        token = {"Authorization": f"Bearer {READER}"}
        assert (await client.ask("GET", "/ui/now", headers=token))[0] == 403
        found = await evaluated(client, **token)
        (cause,) = found["evaluation"]["causes"]
        assert (cause["number"], cause["names"]) == (1, ["default/large"])
        assert found["evaluation"]["losses"]["nodes"] == 1
        _, about = await client.ask("GET", "/ui/object?kind=Pod&name=default/large", headers={**OURS, **token})
        assert about == {"status": {"phase": "Pending"}, "events": []}

    tokens = ServerSettings(tokens=(Token(text=READER, reads_only=True),))
    with_page(check, node("n1"), pod("large", cpu=100), settings=tokens)


def test_every_offered_fix_can_be_tried_and_helps() -> None:
    raws = [raw for _, raw in parse_documents(read_bytes(str(PENDING)).decode())]
    answer = ask("now", *raws)
    fixes = [cause["fix"] for cause in answer["causes"] if cause["fix"] and "question" in cause["fix"]]
    assert {fix["question"] for fix in fixes} == {"change"}
    for fix in fixes:
        picture = ask(fix["question"], *raws, **fix["values"])["picture"]
        assert "ip-10-0-2-12" in picture["headline"]
    assert answer["budgets"][0]["budget"] == "shop/web"
    assert answer["losses"]["workloads"][0]["workload"] == "Deployment shop/search"
    zone = next(row for row in answer["losses"]["groups"] if row["scope"] == "zone")
    assert zone["selector"] == f"topology.kubernetes.io/zone={zone['name']}"
    assert "failure of" in ask("fail", *raws, selector=zone["selector"])["picture"]["headline"]


@pytest.mark.parametrize(
    ("waits", "question"),
    [
        (pod("waits", cpu=9), "nodes"),
        (pod("waits", cpu=4), "change"),
        (pod("waits", spec={"schedulingGates": [{"name": "example.com/quota"}]}), "change"),
        (pod("waits", spec={"schedulerName": "none"}), "change"),
    ],
)
def test_a_fix_is_a_change_of_nodes_or_of_the_pods_themselves(waits: Raw, question: str) -> None:
    objects = (node("n1"), pod("full", cpu=9, node="n1"), waits)
    (cause,) = ask("now", *objects)["causes"]
    fix = cause["fix"]
    assert (fix["question"], fix["placed"]) == (question, 1)
    text = ask(fix["question"], *objects, **fix["values"])["picture"]["text"]
    assert "Plan: 1 placed, 0 evicted, 0 preempted" in text
