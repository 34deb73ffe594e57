"""Explanations of a pod that is placed with the other pods of its group."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from podium.api.errors import PodiumError
from podium.api.meta import Kubernetes, ObjectMeta, Raw
from podium.api.policy import PriorityClass
from podium.app.explaining.explainer import Explainer
from podium.app.explaining.explanation import Explanation
from podium.framework.settings.configuration import Configuration
from tests.builders import configuration, member, node, pod, pod_group

SETTINGS = configuration(plugins={"multiPoint": {"enabled": ["GangScheduling"]}})


def reported(pod: str, *objects: Kubernetes, settings: Configuration = SETTINGS) -> Explanation:
    return Explainer(objects, settings, now_ns=0).explain(f"default/{pod}")


def arranging(most_steps: int) -> Configuration:
    args = {"GangScheduling": {"maxArrangementSteps": most_steps}}
    return configuration(args, plugins={"multiPoint": {"enabled": ["GangScheduling"]}})


def workers(number: int, cpu: int = 2) -> list[Kubernetes]:
    return [member("g", f"w{index}", cpu=cpu) for index in range(number)]


def test_a_pod_whose_gang_fits_goes_where_it_goes_beside_those_before_it() -> None:
    found = reported("w1", node("a", cpu=2), node("b", cpu=2), pod_group("g", 2), *workers(2))

    first = reported("w0", node("a", cpu=2), node("b", cpu=2), pod_group("g", 2), *workers(2))
    assert {found.node, first.node} == {"a", "b"}
    assert found.outcome == "schedulable"
    assert [name for name, status in found.nodes.items() if status.is_success] == [found.node]


def test_a_pod_that_would_fit_waits_for_a_gang_of_which_too_few_do() -> None:
    found = reported("w0", node("a", cpu=2), pod_group("g", 2), *workers(2))

    gang = found.to_dict()["gang"]
    assert (found.outcome, found.node, found.awaits_others) == ("unschedulable", "", True)
    assert found.headline == "default/w0 would fit, and waits for its gang"
    assert (gang["needed"], gang["fitting"], gang["isEnough"]) == (2, 1, False)
    assert "remedies" not in found.to_dict()


def test_a_member_without_room_is_given_remedies() -> None:
    found = reported("w1", node("a", cpu=2), pod_group("g", 2), *workers(2)).to_dict()

    assert found["remedies"]["nodes"][0]["obstacles"] == ["cpu short by 2 (2 asked, 0 of 2 free)"]


def test_explain_reports_a_gang_that_fits_only_in_another_arrangement() -> None:
    objects = [node("a", cpu=4), node("b", cpu=4), pod_group("g", 3), *workers(2), member("g", "x", cpu=4)]

    found = reported("w0", *objects, settings=arranging(10_000))

    assert found.outcome == "schedulable"
    assert found.node == reported("w1", *objects, settings=arranging(10_000)).node
    assert found.to_dict()["gang"]["isArranged"] is True
    assert found.totals == {}
    assert "isArranged" not in reported("w0", *objects).to_dict()["gang"]


def test_explain_reports_untried_arrangements() -> None:
    objects = [node("a", cpu=4), node("b", cpu=4), pod_group("g", 3), *workers(2), member("g", "x", cpu=4)]

    found = reported("w0", *objects, settings=arranging(1))

    assert "the search for another arrangement of a gang was cut at maxArrangementSteps" in [
        caveat.message for caveat in found.caveats
    ]


def test_a_gang_with_too_few_members_is_not_attempted() -> None:
    found = reported("w0", node("a", cpu=2), pod_group("g", 3), *workers(2))

    assert found.outcome == "gated"
    assert found.pre_enqueue is not None
    assert found.pre_enqueue.plugin == "GangScheduling"
    assert "which has 2 pods; at least 3 are placed together or none" in found.text


def test_placed_members_count_toward_the_gang() -> None:
    there: list[Kubernetes] = [member("g", "first", cpu=1, on="a")]

    gang: dict[str, Any] = reported("w0", node("a", cpu=3), pod_group("g", 2), *there, *workers(1)).to_dict()["gang"]

    assert (gang["pods"], gang["placed"], gang["needed"], gang["isEnough"]) == (2, 1, 1, True)


def test_a_gang_explanation_names_the_domain() -> None:
    nodes = [node(name, cpu=4, labels={"rack": name}) for name in ("a", "b")]

    gang = reported("w0", *nodes, pod_group("g", 2, topology="rack"), *workers(2)).to_dict()["gang"]

    assert (gang["domain"], gang["domains"]) == ("a", 2)
    assert set(gang["members"].values()) == {"a"}


def test_nothing_changes_by_being_asked() -> None:
    objects = [node("a", cpu=2), node("b", cpu=2), pod_group("g", 2), *workers(2)]
    explainer = Explainer(objects, SETTINGS, now_ns=0)

    first = explainer.explain("default/w1").to_dict()

    assert explainer.explain("default/w1").to_dict() == first
    assert not explainer.cluster.placed


def test_without_the_plugin_pods_are_placed_one_by_one_with_a_report() -> None:
    objects = [node("a", cpu=2), pod_group("g", 2), *workers(2)]

    found = Explainer(objects, now_ns=0).explain("default/w0")
    assert "gang" not in found.to_dict()
    assert "at least 2 are placed together or none, but its profile places no gangs" in " ".join(found.text.split())


def test_a_gang_preempts_with_the_priority_of_the_class_that_its_group_names() -> None:
    group = pod_group("g", 2)
    named = replace(group, spec=replace(group.spec, priority_class_name="high"))
    objects = [pod("running", cpu=2, priority=5, on="a"), node("a", cpu=2), node("b", cpu=2), named, *workers(2)]

    def plan(priority: int) -> Raw | None:
        found: Raw | None = reported("w0", high(priority), *objects).to_dict()["gang"]["plan"]
        return found

    above, as_high = plan(10), plan(5)
    assert above is not None
    assert above["ways"][0]["victims"] == {"a": ["default/running"]}
    assert as_high is None or not as_high["ways"]


def high(priority: int) -> PriorityClass:
    return PriorityClass(kind="PriorityClass", metadata=ObjectMeta(name="high"), value=priority)


def test_a_group_that_names_a_class_that_is_not_there_is_an_error() -> None:
    group = pod_group("g", 2)

    with pytest.raises(PodiumError, match=r"PodGroup default/g.*no PriorityClass with name high was found"):
        reported("w0", replace(group, spec=replace(group.spec, priority_class_name="high")), *workers(1))
