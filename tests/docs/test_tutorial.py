"""The plugins of `docs/tutorial-plugins.md` do what the tutorial says."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import podium
from podium.api.meta import Kubernetes
from podium.app.explaining.explanation import Explanation
from podium.framework.settings.configuration import (
    API_VERSION,
    KIND,
    Configuration,
    load_configuration,
    read_configuration,
)
from tests.builders import explain, node, pod
from tests.docs.blocks import ROOT

FOLDER = ROOT / "examples/plugins"
TEAM_LIMIT = load_configuration(str(FOLDER / "team-limit-scheduler.yaml"))
SHIELDED = load_configuration(str(FOLDER / "shielded-preemption-scheduler.yaml"))
RED = {"team": "red"}
PRICE = "example.com/cents-an-hour"


@pytest.fixture(autouse=True)
def on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))


def rack(name: str) -> dict[str, str]:
    return {"example.com/rack": name}


def victims(explanation: Explanation) -> dict[str, list[str]]:
    return {name: candidate["victims"] for name, candidate in explanation.to_dict()["preemption"]["candidates"].items()}


def test_a_rack_that_is_full_of_a_team_takes_none_of_its_pods() -> None:
    objects = [
        node("n1", labels=rack("a")),
        node("n2", labels=rack("a")),
        node("n3", labels=rack("b")),
        node("n4"),
        pod("red", on="n1", labels=RED),
        pod("p", labels=RED),
        pod("q", labels={"team": "blue"}),
        pod("r"),
    ]

    def refused(key: str) -> dict[str, str]:
        nodes = explain(objects, key, TEAM_LIMIT).nodes
        return {name: status.message for name, status in nodes.items() if not status.is_success}

    enough, unlabelled = "node(s) had enough pods of the team", "node(s) had no label example.com/rack"
    assert refused("default/p") == {"n1": enough, "n2": enough, "n4": unlabelled}
    assert refused("default/q") == {"n4": unlabelled}
    assert refused("default/r") == {}


def test_preemption_takes_the_pod_of_the_team_and_spares_all_others() -> None:
    explanation = podium.explain(FOLDER / "team-limit-cluster.yaml", "red-3", TEAM_LIMIT)

    assert victims(explanation) == {"node-1": ["default/red-1"]}
    assert explanation.to_dict()["preemption"]["rejected"]["node-2"]["reasons"] == [
        "node(s) had enough pods of the team"
    ]


def test_preemption_respects_the_limit_beside_a_nominated_pod() -> None:
    objects = [
        node("n1", labels=rack("a")),
        node("n2", labels=rack("b")),
        pod("red", on="n1", labels=RED),
        pod("other", on="n2", labels=RED),
        pod("first", labels=RED, priority=50, nominated="n1"),
        pod("p", labels=RED, priority=10),
    ]

    # Room in rack a, once red is gone, is for the nominated pod.
    assert victims(explain(objects, settings=TEAM_LIMIT)) == {"n2": ["default/other"]}


def test_two_pods_of_the_team_may_have_to_go() -> None:
    objects = [
        node("n1", labels=rack("a")),
        pod("red-1", on="n1", labels=RED, priority=1, started=1),
        pod("red-2", on="n1", labels=RED, priority=2, started=2),
        pod("blue", on="n1", labels={"team": "blue"}),
        pod("p", labels=RED, priority=10),
    ]

    assert victims(explain(objects, settings=TEAM_LIMIT)) == {"n1": ["default/red-2", "default/red-1"]}
    assert victims(explain(objects, settings=limit(2))) == {"n1": ["default/red-1"]}


def limit(max_pods: int) -> Configuration:
    (profile,) = TEAM_LIMIT.profiles
    (config,) = profile.plugin_config
    changed = replace(config, args={**config.args, "maxPods": max_pods})
    return Configuration(
        source="",
        parallelism=1,
        profiles=(replace(profile, plugin_config=(changed,)),),
    )


def test_the_pod_is_placed_when_the_one_of_its_team_has_ended() -> None:
    result = podium.simulate(FOLDER / "team-limit-cluster.yaml", configuration=TEAM_LIMIT, latency=0)

    assert [(event.time, event.pod) for event in result.events if event.reason == "Scheduled"] == [
        (30, "default/red-3")
    ]
    assert {one["pod"] for one in result.pods if one["phase"] == "Terminated"} == {"default/red-1"}


def scoring(place: str) -> Configuration:
    score = {"enabled": [{"name": place, "weight": 5}]}
    return read_configuration(
        {"apiVersion": API_VERSION, "kind": KIND, "profiles": [{"plugins": {"score": score}}]}, ""
    )


def test_the_cheapest_node_is_taken() -> None:
    explanation = podium.explain(FOLDER / "cheapest-cluster.yaml", "web", FOLDER / "cheapest-scheduler.yaml")

    assert explanation.node == "own"
    assert {name: scores["Cheapest"] for name, scores in explanation.scores.items()} == {
        "own": 500,
        "cloud-small": 350,
        "cloud-large": 0,
    }


@given(prices=st.lists(st.none() | st.integers(0, 10**6).map(str) | st.just("dear"), min_size=1, max_size=6))
def test_the_simple_form_and_the_array_form_give_the_same_scores(prices: list[str | None]) -> None:
    nodes: list[Kubernetes] = [
        node(f"n{index}", labels={} if price is None else {PRICE: price}) for index, price in enumerate(prices)
    ]
    objects = [*nodes, pod("p", cpu=1)]

    def decided(place: str) -> dict[str, Any]:
        return explain(objects, settings=scoring(place)).to_dict()

    assert decided("cheapest:Cheapest") == decided("cheapest:CheapestByRows")


@pytest.mark.parametrize(
    ("priority", "expected"),
    [(100, {"node-2": ["default/web"]}), (1000, {"node-1": ["default/training"], "node-2": ["default/web"]})],
)
def test_a_shielded_pod_gives_way_to_the_priority_that_it_names(priority: int, expected: dict[str, Any]) -> None:
    objects = [
        node("node-1", cpu=4),
        node("node-2", cpu=4),
        shielded("training", on="node-1"),
        pod("web", on="node-2", cpu=4, priority=50),
        pod("p", cpu=4, priority=priority),
    ]

    assert victims(explain(objects, settings=SHIELDED)) == expected


def test_a_non_numeric_shield_protects_no_pod() -> None:
    objects = [node("n1", cpu=4), shielded("training", on="n1", shield="always"), pod("p", cpu=4, priority=1)]

    assert victims(explain(objects, settings=SHIELDED)) == {"n1": ["default/training"]}


def shielded(name: str, *, on: str, shield: str = "1000") -> Kubernetes:
    running = pod(name, on=on, cpu=4)
    annotations = {"example.com/gives-way-to-priority": shield}
    return replace(running, metadata=replace(running.metadata, annotations=annotations))


def test_the_default_policy_takes_the_pod_of_the_lowest_priority() -> None:
    cluster = FOLDER / "shielded-preemption-cluster.yaml"

    assert podium.explain(cluster, "urgent").node == "node-1"
    assert podium.explain(cluster, "urgent", SHIELDED).node == "node-2"


GUARANTEED = load_configuration(str(FOLDER / "guaranteed-pods-scheduler.yaml"))


def test_explain_and_simulate_agree_on_victims_of_a_custom_preemption() -> None:
    cluster = FOLDER / "guaranteed-pods-cluster.yaml"
    explanation = podium.explain(cluster, "product-1", GUARANTEED)
    result = podium.simulate(cluster, configuration=GUARANTEED)

    assert (explanation.outcome, explanation.node, explanation.plan) == ("preempts", "node-1", None)
    proposal = explanation.to_dict()["proposal"]
    assert proposal["plugin"] == "GuaranteedPods"
    assert proposal["victims"] == [event.pod for event in result.events if event.reason == "Preempted"]
    refused = podium.explain(cluster, "research-5", GUARANTEED)
    assert refused.outcome == "unschedulable"
    assert refused.to_dict()["postFilter"]["GuaranteedPods"]["reasons"] == [
        "team research has all pods that it is guaranteed"
    ]


def test_room_that_a_preemption_of_its_own_made_is_kept_from_more_important_pods() -> None:
    result = podium.simulate(FOLDER / "guaranteed-pods-cluster.yaml", configuration=GUARANTEED, latency=0)

    assert [(event.time, event.pod) for event in result.events if event.reason == "Scheduled"] == [
        (30, "default/product-1")
    ]
    assert {one["pod"] for one in result.pods if one["phase"] == "Terminated"} == {
        "default/research-3",
        "default/research-4",
    }


def test_a_team_gives_back_no_more_than_it_has_beyond_its_guarantee() -> None:
    objects = [
        node("n1", cpu=4),
        *(pod(f"r{number}", on="n1", cpu=2, labels={"team": "research"}, started=number) for number in range(2)),
        pod("p", cpu=4, labels={"team": "product"}),
    ]
    explanation = explain(objects, settings=GUARANTEED)

    assert (explanation.outcome, explanation.victims) == ("unschedulable", ())
