"""The forms of the page: each answers as the corresponding command does."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from podium.api.errors import PodiumError
from podium.api.input.codec import Reader
from podium.app.serving.page.forms import FORMS, PLANS
from podium.app.serving.page.questions import answer_question
from podium.sim.run_options import RunOptions
from tests.app.planning.dumps import as_list, dump
from tests.store.objects import Raw, node, pod

PENDING = {**pod("new", cpu=9), "metadata": {"name": "new", "namespace": "default"}}
DEPLOYED = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: fresh}
spec:
  replicas: 2
  selector: {matchLabels: {app: fresh}}
  template:
    metadata: {labels: {app: fresh}}
    spec: {containers: [{name: main, image: x, resources: {requests: {cpu: 500m}}}]}
"""


def ask(question: str, *objects: Raw, **values: Any) -> Raw:
    with Reader("ignore") as reader:
        reader.read_text(msgspec.json.encode(as_list(list(objects) or dump(3, 21))), "the cluster")
        options = RunOptions(ignore_extenders=True)
        parts: Raw = {}
        rest = answer_question(reader.input(), question, values, options, lambda share, what: None, parts.update)
        return {**parts, **rest}


@pytest.mark.parametrize(
    ("question", "values", "headline"),
    [
        ("deploy", {"manifests": DEPLOYED}, "Deployment default/fresh"),
        ("drain", {"nodes": "ip-10-0-0-0.eu-west-1.compute.internal"}, "drain of ip-10-0-0-0"),
        ("fail", {"selector": "topology.kubernetes.io/zone=eu-west-1b", "for": "10m"}, "failure of ip-10-0-0-1"),
        ("nodes", {"add": "2", "like": "ip-10-0-0-0.eu-west-1.compute.internal"}, "adding plan-node-1, plan-node-2"),
        (
            "change",
            {"target": "deploy/app-0000", "namespace": "team-0", "assignments": "replicas=3"},
            "changing Deployment",
        ),
        (
            "change",
            {"patch-file": "kind: PriorityClass\nmetadata: {name: high}\nvalue: 7\n"},
            "changing PriorityClass high",
        ),
        ("pending", {}, "no pod is pending"),
        ("fit", {"manifests": DEPLOYED, "replicas": "3"}, "3"),
        ("survive", {"target": "deploy/app-0000", "namespace": "team-0"}, "app-0000"),
        (
            "diff",
            {"after": "kind: PriorityClass\napiVersion: scheduling.k8s.io/v1\nmetadata: {name: high}\nvalue: 7"},
            "",
        ),
        ("reschedule", {}, "the rescheduler moves"),
        ("upgrade", {"to": "1.37"}, "in place of"),
    ],
)
def test_a_plan_is_what_its_command_says(question: str, values: Raw, headline: str) -> None:
    answer = ask(question, **values)

    picture = answer["picture"]
    assert headline in picture["headline"]
    assert picture["headline"][:40] in picture["text"]
    assert len(picture["stories"]) in (0, 2)
    assert bool(picture["stories"]) is (answer["scenario"] is not None)
    msgspec.json.encode(answer)


def test_every_question_is_tried_here() -> None:
    [mark] = test_a_plan_is_what_its_command_says.pytestmark  # type: ignore[attr-defined]
    assert {case[0] for case in mark.args[1]} == {form.name for form in PLANS}


def test_an_explanation_has_each_plugins_verdict_about_each_node_and_the_scores_of_those_that_fit() -> None:
    answer = ask("explain", node("n1"), node("n2", cpu=4), node("n3", cpu=20), PENDING, target="new")

    table = answer["table"]
    assert table["nodes"] == ["n1", "n2", "n3"]
    fit = next(column for column in table["filters"] if column["plugin"] == "NodeResourcesFit")
    assert [fit["statuses"][code]["status"] for code in fit["of"]] == [
        "Success",
        "UnschedulableAndUnresolvable",
        "Success",
    ]
    assert fit["statuses"][fit["of"][1]]["reasons"] == ["Insufficient cpu"]
    [taints] = [column for column in table["filters"] if column["plugin"] == "InterPodAffinity"]
    assert taints["skipped"]
    assert table["totals"][1] is None
    for place in (0, 2):
        weighted = [score["normalized"][place] * score["weight"] for score in table["scores"]]
        assert sum(weighted) == table["totals"][place]
    assert table["totals"][2] == max(total for total in table["totals"] if total is not None)
    decision = answer["picture"]["decision"]
    assert decision["nodes"][decision["taken"]] == "n3"
    assert "n3" in answer["picture"]["text"]


def test_a_question_about_one_node_has_more_detail() -> None:
    answer = ask("explain", node("n1"), node("n2", cpu=4), PENDING, target="new", node="n2")

    assert "n2" in answer["picture"]["headline"]
    assert answer["picture"]["tables"]


def test_a_gated_pod_is_not_held_against_nodes() -> None:
    gated = {**PENDING, "spec": {**PENDING["spec"], "schedulingGates": [{"name": "wait"}]}}
    table = ask("explain", node("n1"), gated, target="new")["table"]

    assert table["filters"] == []
    assert "wait" in table["before"][0]


@pytest.mark.parametrize(
    ("question", "values", "problem"),
    [
        ("drain", {}, "no node is named"),
        ("drain", {"nodes": "nowhere"}, "there is no node nowhere"),
        ("drain", {"nodes": ["a"]}, "Nodes: is not text"),
        ("drain", {"force": "yes"}, "neither true nor false"),
        ("drain", {"force": 1}, "neither true nor false"),
        ("drain", {"timeout": "soon"}, "Timeout: "),
        ("drain", {"timeout": "-1s"}, "is negative"),
        ("drain", {"grace-period": "9" * 5_000}, "Grace period: "),
        ("drain", {"--scenario": "/tmp/file"}, 'drain has no field "--scenario"'),
        ("deploy", {}, "deploy needs to know: Manifests"),
        ("deploy", {"manifests": "a: ["}, "the manifests, document 1"),
        ("deploy", {"manifests": "!!python/object/apply:os.system [ls]"}, "the manifests"),
        ("fit", {"manifests": DEPLOYED, "replicas": "20001"}, "not in the range 1<=x<=20000"),
        ("diff", {"after": "kind: Secret\napiVersion: v1\nmetadata: {name: a}"}, "cannot be a setting"),
        ("nodes", {"add": "0"}, "not in the range"),
        ("nodes", {"add": "3"}, "which nodes to add or remove?"),
        ("change", {"target": "deploy/nothing", "assignments": "replicas=1"}, "nothing"),
        ("change", {"patch-file": "- 1"}, "the manifests, document 1: is not an object"),
        ("explain", {"target": "a/b/c/d"}, "neither a pod"),
        ("explain", {}, "explain needs to know: Target"),
    ],
)
def test_question_errors_name_the_field(question: str, values: Raw, problem: str) -> None:
    with pytest.raises(PodiumError) as error:
        ask(question, **values)
    assert problem in str(error.value)


def test_every_form_says_what_it_asks() -> None:
    for form in FORMS.values():
        assert form.title.endswith("?")
        assert all(field.title for field in form.fields)
