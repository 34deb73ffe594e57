"""All ways in which a decision may come out where chance chooses between equals, by who suffers."""

from __future__ import annotations

import json

from podium.api.meta import Kubernetes
from podium.app.console.page import Page
from podium.app.explaining.outcomes import MOST_OUTCOMES, outcomes_dict, outcomes_of
from podium.app.explaining.outcomes_text import write_outcomes
from tests.builders import explain, node, pod


def suffering(*objects: Kubernetes) -> list[tuple[dict[str, int], list[str]]]:
    """By outcome, how many pods of each workload go, and on which nodes."""
    found = outcomes_of(explain(objects))
    return [(dict(outcome.suffering), [name for name, _ in outcome.victims]) for outcome in found]


def told(*objects: Kubernetes) -> str:
    page = Page(width=100)
    write_outcomes(page, explain(objects))
    return page.text


def full(name: str, owner: str, cpu: int = 2) -> list[Kubernetes]:
    return [node(name, cpu=cpu), pod(f"on-{name}", on=name, cpu=cpu, owner=owner)]


P = pod("p", priority=9, cpu=2)


def test_nodes_that_are_equal_are_one_outcome() -> None:
    assert suffering(node("a", cpu=2), node("b", cpu=2), P) == [({}, ["a", "b"])]


def test_candidates_that_the_criteria_leave_equal_are_grouped_by_who_suffers() -> None:
    objects = [*full("a", "ReplicaSet/web"), *full("b", "ReplicaSet/web"), *full("c", "Job/sum"), P]

    assert suffering(*objects) == [
        ({"ReplicaSet default/web": 1}, ["a", "b"]),
        ({"Job default/sum": 1}, ["c"]),
    ]
    assert "3 ways" in told(*objects)


def test_a_candidate_that_is_worse_is_no_outcome() -> None:
    dear = [node("c", cpu=2), pod("dear", on="c", cpu=2, priority=5)]

    assert suffering(*full("a", "ReplicaSet/web"), *dear, P) == [({"ReplicaSet default/web": 1}, ["a"])]
    assert "nothing is left to chance" in told(*full("a", "ReplicaSet/web"), *dear, P)


def test_a_pod_that_gets_no_node_has_one_outcome() -> None:
    assert suffering(node("a", cpu=1), P) == []
    assert "it gets no node" in told(node("a", cpu=1), P)


def test_no_more_than_a_hundred_are_named_and_the_others_counted() -> None:
    objects = [item for index in range(120) for item in full(f"n{index:03}", f"Job/j{index:03}")]
    found = outcomes_dict(outcomes_of(explain([*objects, P])))

    assert (len(found["outcomes"]), found["furtherOutcomes"]) == (MOST_OUTCOMES, 20)
    assert "and 20 more" in told(*objects, P)


def test_json_has_them_where_there_is_more_than_one_way() -> None:
    many = explain([node("a", cpu=2), node("b", cpu=2), P]).to_dict()
    single = explain([node("a", cpu=2), P]).to_dict()

    assert json.loads(json.dumps(many))["outcomes"] == [
        {
            "suffering": [],
            "nodes": [{"node": "a", "victims": []}, {"node": "b", "victims": []}],
            "furtherNodes": 0,
        }
    ]
    assert "outcomes" not in single
