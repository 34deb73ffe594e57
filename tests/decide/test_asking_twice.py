"""A decision depends on its input only, not on earlier questions."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from podium.cluster.pods import PodRecord
from podium.decide.placement import place
from podium.decide.post_filter import ask_post_filters
from podium.framework.runner import Runner
from tests.builders import cluster_of, configuration, node, plain_runner, pod, runner_on
from tests.fuzzing import usual
from tests.generators import EVERYTHING, Objects, Traits, clusters, targets

FAIR = configuration({"DefaultPreemption": {"equalPriorityPreemption": True}})
EQUALS = Traits(equals=True, terminating=True, nominated=True, budgets=True, heavy_target=True)


def decision(runner: Runner, record: PodRecord, cursor: int = 0) -> dict[str, Any]:
    """Return where a pod goes and why, and what is proposed where it goes nowhere."""
    placement = place(runner, record, cursor=cursor)
    found: dict[str, Any] = {
        "row": placement.row,
        "refused": placement.outcome.refused.tolist(),
        "feasible": placement.feasible.tolist(),
        "totals": None if placement.totals is None else placement.totals.tolist(),
        "cursor": placement.cursor,
    }
    if placement.row is None:
        result = ask_post_filters(runner, placement)
        victims = [victim.uid for victim in result.victims]
        found |= {"status": result.status, "nominated": result.nominated_node, "victims": victims}
    return found


@settings(max_examples=usual(60), deadline=None)
@given(clusters(EVERYTHING), st.data())
def test_a_repeated_question_has_the_same_answer_after_other_questions(objects: Objects, data: st.DataObject) -> None:
    cluster = cluster_of(*objects.surroundings)
    runner = plain_runner(cluster)
    names = [one.metadata.name for one in objects.nodes]
    target, other = cluster.read(objects.target), cluster.read(data.draw(targets(names, EVERYTHING)))

    first = decision(runner, target)
    decision(runner, other)

    assert decision(runner, target) == first


@settings(max_examples=usual(60), deadline=None)
@given(clusters(EQUALS, least_pods=2), st.data())
def test_repeated_questions_agree_when_equals_are_preempted(objects: Objects, data: st.DataObject) -> None:
    cluster = cluster_of(*objects.surroundings)
    runner = runner_on(cluster, FAIR)
    names = [one.metadata.name for one in objects.nodes]
    target, other = cluster.read(objects.target), cluster.read(data.draw(targets(names, EQUALS)))

    first = decision(runner, target)
    decision(runner, other)

    assert decision(runner, target) == first


def test_a_sample_of_nodes_is_the_same_for_the_same_cursor() -> None:
    cluster = cluster_of(*(node(f"n{number:03}") for number in range(250)))
    runner = runner_on(cluster, configuration(percentageOfNodesToScore=40))
    target, other = cluster.read(pod("p")), cluster.read(pod("q"))

    first = decision(runner, target, 30)
    decision(runner, other, first["cursor"])

    assert decision(runner, target, 30) == first
    assert (first["feasible"], first["cursor"]) == (list(range(30, 130)), 130)
