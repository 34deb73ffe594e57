"""The questions of plans, asked from Python."""

from typing import Any

import pytest

import podium
from podium.app.planning.answer import PlanAnswer
from tests.docs.blocks import ROOT

CLUSTER = ROOT / "examples/plan/cluster.yaml"
NODE = "ip-10-0-1-11.eu-west-1.compute.internal"
PLAIN = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "extra", "namespace": "shop"}}
EXTRA = {
    **PLAIN,
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "extra"}},
        "template": {
            "metadata": {"labels": {"app": "extra"}},
            "spec": {"containers": [{"name": "main", "image": "i", "resources": {"requests": {"cpu": "100m"}}}]},
        },
    },
}


NEW_NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "big"}}
NEW_POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "tiny"},
    "spec": {"containers": [{"name": "main", "image": "i"}]},
}
CLASS = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "batch"}, "value": 5}


def test_each_question_is_answered() -> None:
    plans = podium.load(CLUSTER).plan(start_delay="5s")

    answers = {
        "deploy": plans.deploy(EXTRA),
        "drain": plans.drain(NODE, timeout="5m"),
        "fail": plans.fail(NODE, for_=600),
        "nodes": plans.nodes(add=1, like=NODE),
        "change": plans.change("deployment/shop/report", {"replicas": 2}),
        "reschedule": plans.reschedule(),
        "pending": plans.pending(),
        "fit": plans.fit(EXTRA),
        "survive": plans.survive("deploy/shop/report", "shop"),
        "diff": plans.diff(after=[CLASS]),
    }

    for question, answer in answers.items():
        assert isinstance(answer, PlanAnswer)
        assert answer.question == question
        assert answer.headline
        assert answer.frame().name in ("impact", "table")
    own = {"metadata": {"name": "report", "namespace": "shop"}, "spec": {"replicas": 2}}
    for patched in (
        plans.change(patches=[{**PLAIN, **own}]),
        plans.change("deploy/shop/report", patches=[{"spec": {"replicas": 2}}]),
    ):
        assert patched.impact == answers["change"].impact


def test_the_function_asks_what_the_method_asks() -> None:
    assert podium.plan(CLUSTER).drain(NODE).to_dict() == podium.load(CLUSTER).plan().drain(NODE).to_dict()


def test_a_field_is_taken_away_by_none() -> None:
    answer = podium.plan(CLUSTER).change("deployment/shop/report", {"replicas": None, "labels.a": "b"})

    assert any("replicas" in outcome for outcome in answer.to_dict()["changes"][0]["changes"])


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda plans: plans.drain("nowhere"), "no node nowhere"),
        (lambda plans: plans.drain(NODE, timeout="soon"), "timeout: "),
        (lambda plans: plans.fail(NODE, for_=-1), "for_: -1 is negative"),
        (lambda plans: plans.nodes(like=NODE), "give the number of nodes with add"),
        (lambda plans: plans.nodes(add=2), "remove.* give --add with --like or a file of nodes"),
        (lambda plans: plans.nodes(add=2, remove=[NODE]), "which nodes to add or remove"),
        (lambda plans: plans.nodes(), "which nodes to add or remove"),
        (lambda plans: plans.nodes(add=1, like="ip-10-0-1-*"), "means 3 nodes; name one: ip-"),
        (lambda plans: plans.nodes(add=-1), "negative"),
        (lambda plans: plans.nodes(add=10**9, like=NODE), "1,000,000,000 nodes are added; a plan adds 10,000 at most"),
        (lambda plans: plans.nodes(NEW_NODE, add=10**9), "1,000,000,000 nodes are added"),
        (lambda plans: plans.fit(NEW_POD, replicas=0), "replicas: 0 is not from 1 to 20,000"),
        (lambda plans: plans.fit(NEW_POD, replicas=10**9), "replicas: 1,000,000,000 is not from 1 to 20,000"),
        (lambda plans: plans.change(), "no change is given"),
        (lambda plans: plans.change("deployment/shop/report", {"replicas": object()}), "is not plain JSON"),
        (lambda plans: plans.change("deployment/shop/report", {"replicas": float("nan")}), "replicas: .*not finite"),
        (lambda plans: plans.reschedule({"kind": "Pod"}), "rescheduler"),
        (lambda plans: plans.deploy(), "nothing in the files makes a pod"),
    ],
)
def test_an_unanswerable_plan_question_is_reported(ask: Any, says: str) -> None:
    with pytest.raises(podium.PodiumError, match=says):
        ask(podium.plan(CLUSTER))


def test_plan_reports_progress() -> None:
    outcome: list[float] = []

    podium.plan(CLUSTER, progress=lambda share, what: outcome.append(share)).drain(NODE)

    assert outcome == sorted(outcome)
    assert outcome
