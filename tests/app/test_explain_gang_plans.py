"""Explanations of a preempting gang: one plan, its victims by node, and its alternatives."""

from __future__ import annotations

from typing import Any

from podium.api.meta import Kubernetes
from podium.app.console.page import Page
from podium.app.explaining.explainer import Explainer
from podium.app.explaining.explanation import Explanation
from podium.app.explaining.text import write_explanation
from tests.builders import configuration, member, node, pod, pod_group

LOW, HIGH = 10, 100


def reported(*objects: Kubernetes, pod_name: str = "w0", **args: Any) -> Explanation:
    enabled = {"multiPoint": {"enabled": ["GangScheduling"]}}
    settings = configuration({"DefaultPreemption": args}, plugins=enabled)
    return Explainer(objects, settings, now_ns=0).explain(f"default/{pod_name}")


def text_of(explanation: Explanation) -> str:
    page = Page(160)
    write_explanation(page, explanation)
    return page.text


def full(*names: str, priority: int = LOW) -> list[Kubernetes]:
    nodes: list[Kubernetes] = [node(name, cpu=4, labels={"rack": name[0]}) for name in names]
    return [*nodes, *(pod(f"on-{name}", on=name, cpu=4, priority=priority) for name in names)]


def workers(number: int) -> list[Kubernetes]:
    return [member("g", f"w{place}", cpu=4, priority=HIGH) for place in range(number)]


def test_a_gang_plan_lists_victims_by_node_and_the_members_that_they_free() -> None:
    explanation = reported(*full("a", "b"), node("free", cpu=4), pod_group("g", 3), *workers(3))

    plan = explanation.to_dict()["gang"]["plan"]

    assert plan["ways"][0]["victims"] == {"a": ["default/on-a"], "b": ["default/on-b"]}
    assert sorted(plan["ways"][0]["members"].values()) == ["a", "b", "free"]
    assert plan["search"]["isComplete"]
    text = text_of(explanation)
    assert "Preemption  one plan for 3 members" in text
    assert "Victims  2 pods on 2 nodes" in text
    assert any(line.split()[:2] == ["a", "default/on-a"] for line in text.splitlines())


def test_domains_stand_beside_one_another_with_what_they_cost() -> None:
    nodes = [*full("a1", "a2"), *full("b1", "b2", priority=50)]

    explanation = reported(*nodes, pod_group("g", 2, topology="rack"), *workers(2))

    plan = explanation.to_dict()["gang"]["plan"]
    assert [way["domain"] for way in plan["ways"]] == ["a", "b"]
    assert plan["decidedBy"] == "lowest priority of the most important victim"
    text = text_of(explanation)
    assert "one plan for 2 members in a; decided by the lowest priority of the most important victim" in text
    assert any(line.split()[:3] == ["→", "a", "0"] for line in text.splitlines())


def test_a_stated_cost_has_its_columns() -> None:
    explanation = reported(*full("a", "b"), pod_group("g", 2), *workers(2), victimCost=["Victims", "GracePeriod"])

    way = explanation.to_dict()["gang"]["plan"]["ways"][0]

    assert way["costs"] == {"Victims": 2, "GracePeriod": 30}
    assert "grace" in text_of(explanation)


def test_explain_names_groups_that_are_preempted_without_a_member_placed_there() -> None:
    pods = [member("job", name, on=name, cpu=4, priority=LOW) for name in "ab"]
    objects = [node("a", cpu=4), node("b", cpu=4), *pods, pod_group("job", 2, together=True)]

    text = text_of(reported(*objects, pod_group("g", 1), *workers(1)))

    assert "goes with its group, default/job" in text


def test_explain_reports_that_preemption_cannot_help_an_incomplete_gang() -> None:
    explanation = reported(*full("a", "b"), pod_group("g", 3), *workers(3))

    gang = explanation.to_dict()["gang"]
    assert gang["plan"]["ways"] == []
    assert gang["preemption"] in " ".join(text_of(explanation).split())


def test_a_gang_plan_reports_omitted_sets_as_a_caveat() -> None:
    names = [f"n{place}" for place in range(20)]

    many = reported(*full(*names), pod_group("g", 2), *workers(2))
    few = reported(*full("a", "b"), pod_group("g", 2), *workers(2))

    assert [caveat.message for caveat in many.caveats if caveat.about == "search-cut"] == [
        "not all sets of victims of a gang were tried: there may be cheaper ones"
    ]
    assert not [caveat for caveat in few.caveats if caveat.about == "search-cut"]
