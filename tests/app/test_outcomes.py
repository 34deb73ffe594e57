"""All outcomes of a decision with ties, by the pods that are preempted."""

from __future__ import annotations

import json

from podium.api.meta import Kubernetes
from podium.app.console.page import Page
from podium.app.explaining.outcomes import MAX_OUTCOMES, outcomes_dict, outcomes_of, write_outcomes
from tests.builders import explain, node, pod


def suffering(*objects: Kubernetes) -> list[tuple[dict[str, int], list[str]]]:
    """By outcome, how many pods of each workload go, and on which nodes."""
    found = outcomes_of(explain(objects))
    return [(dict(outcome.losses), [name for name, _ in outcome.victims]) for outcome in found]


def reported(*objects: Kubernetes) -> str:
    page = Page(width=100)
    write_outcomes(page, explain(objects))
    return page.text


def full(name: str, owner: str, cpu: int = 2) -> list[Kubernetes]:
    return [node(name, cpu=cpu), pod(f"on-{name}", on=name, cpu=cpu, owner=owner)]


P = pod("p", priority=9, cpu=2)


def test_nodes_that_are_equal_are_one_outcome() -> None:
    assert suffering(node("a", cpu=2), node("b", cpu=2), P) == [({}, ["a", "b"])]


def test_tied_candidates_are_grouped_by_affected_owners() -> None:
    objects = [*full("a", "ReplicaSet/web"), *full("b", "ReplicaSet/web"), *full("c", "Job/sum"), P]

    assert suffering(*objects) == [
        ({"ReplicaSet default/web": 1}, ["a", "b"]),
        ({"Job default/sum": 1}, ["c"]),
    ]
    assert "3 choices" in reported(*objects)


def test_a_worse_candidate_is_not_an_outcome() -> None:
    dear = [node("c", cpu=2), pod("dear", on="c", cpu=2, priority=5)]

    assert suffering(*full("a", "ReplicaSet/web"), *dear, P) == [({"ReplicaSet default/web": 1}, ["a"])]
    assert "nothing depends on chance" in reported(*full("a", "ReplicaSet/web"), *dear, P)


def test_a_pod_that_gets_no_node_has_one_outcome() -> None:
    assert suffering(node("a", cpu=1), P) == []
    assert "it gets no node" in reported(node("a", cpu=1), P)


def test_no_more_than_a_hundred_are_named_and_the_others_counted() -> None:
    objects = [item for index in range(120) for item in full(f"n{index:03}", f"Job/j{index:03}")]
    found = outcomes_dict(outcomes_of(explain([*objects, P])))

    assert (len(found["outcomes"]), found["furtherOutcomes"]) == (MAX_OUTCOMES, 20)
    assert "and 20 more" in reported(*objects, P)


def test_json_has_them_where_there_is_more_than_one_way() -> None:
    many = explain([node("a", cpu=2), node("b", cpu=2), P]).to_dict()
    single = explain([node("a", cpu=2), P]).to_dict()

    assert json.loads(json.dumps(many))["outcomes"] == [
        {
            "losses": [],
            "chance": 1.0,
            "nodes": [{"node": name, "victims": [], "chance": 0.5} for name in ("a", "b")],
            "furtherNodes": 0,
        }
    ]
    assert "outcomes" not in single


def test_nodes_are_chosen_by_where_the_search_begins_in_a_large_cluster() -> None:
    # The search for a place ends after 100 of 150 nodes; two nodes are better than all others.
    nodes = [node(f"n{index:03}", cpu=4 if index in (10, 100) else 2) for index in range(150)]
    explanation = explain([*nodes, pod("p", cpu=1)])

    found = {
        name: chance
        for outcome in outcomes_of(explanation)
        for (name, _), chance in zip(outcome.victims, outcome.chances, strict=True)
    }

    assert explanation.best == ("n010", "n100")
    # One of both is always among 100 nodes in a row of a ring of 150, both are for starts from 1 to 10 and 61 to 100.
    assert set(found) == {"n010", "n100"}
    assert round(sum(found.values()), 6) == 1
    (caveat,) = [caveat for caveat in explanation.caveats if caveat.about == "nodes-examined"]
    assert "about 100 of 150 nodes, until it has 100 nodes that fit" in caveat.message
    assert "these 2 tie, and any may be taken" in caveat.message


def test_a_search_that_cannot_end_early_does_not_depend_on_chance() -> None:
    few = [node(f"n{index:03}", cpu=4 if index else 8) for index in range(99)]
    many_unfit = [node(f"m{index:03}", cpu="500m") for index in range(100)]

    for objects in (few, [*few, *many_unfit]):
        explanation = explain([*objects, pod("p", cpu=1)])
        assert not explanation.caveats
        assert [name for name, _ in outcomes_of(explanation)[0].victims] == ["n000"]


def test_candidates_are_chosen_by_chance_among_more_than_are_tried() -> None:
    cheap = [node("a", cpu=2), pod("cheap", on="a", cpu=2, owner="Job/cheap")]
    dear = [
        item
        for index in range(149)
        for item in (node(f"n{index:03}", cpu=2), pod(f"d{index}", on=f"n{index:03}", cpu=2, priority=5))
    ]
    explanation = explain([*cheap, *dear, P])

    chances = {dict(outcome.losses).get("Job default/cheap", 0): outcome.chance for outcome in outcomes_of(explanation)}

    assert explanation.node == "a"
    # The best candidate is among the first 100 of 150 in two of three orders.
    assert 0.6 < chances[1] < 0.73
    (caveat,) = [caveat for caveat in explanation.caveats if caveat.about == "nodes-examined"]
    assert "tries preemption on about 100 of 150 nodes, until it has 100 candidates" in caveat.message
