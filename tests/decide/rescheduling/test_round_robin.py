"""The order in which the planner considers proposals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from podium.decide.rescheduling.planner import Planner
from podium.decide.rescheduling.round_robin import RoundRobin
from podium.framework.rescheduling.policy import Picture, Proposal
from tests.builders import node
from tests.decide.rescheduling.planning import NOW, Proposes, free_settings, given, web


def picture_with(number: int) -> Picture:
    """Pods 0, 1, ... on one node."""
    here = given(node("a"), *(web(str(each), "a") for each in range(number)))
    planner = Planner([], free_settings())
    return planner.picture(here.cluster, here.runners, here.kubelet, NOW, inputs=here.inputs())


def first(proposal: Proposal) -> str:
    return proposal.relocations[0].pod.name


def proposing(name: str, *pods: str) -> Proposes:
    return Proposes([[pod] for pod in pods], lambda _: 0.0, name)


def test_each_policy_has_its_turn_until_it_proposes_no_more() -> None:
    policies = [proposing("A", "0", "1"), proposing("B"), proposing("C", "2", "3", "4")]

    turns = RoundRobin(policies, picture_with(5), lambda _: 0)

    assert [(name, first(proposal)) for name, proposal in turns] == [
        ("A", "0"),
        ("C", "2"),
        ("A", "1"),
        ("C", "3"),
        ("C", "4"),
    ]


def test_a_recently_moved_pod_waits_for_others_the_least_moved_first() -> None:
    late = {"0": 2, "1": 0, "2": 1, "3": 2}

    turns = RoundRobin([proposing("A", "0", "1", "2", "3")], picture_with(4), lambda proposal: late[first(proposal)])

    assert [first(proposal) for _, proposal in turns] == ["1", "2", "0", "3"]


def test_a_moved_pod_waits_again() -> None:
    """Of two owners, x with pods 0 to 2 and y with 3, each was moved once; x is moved with each of its turns."""
    moved = Counter({"x": 1, "y": 2})

    def owner(proposal: Proposal) -> str:
        return "y" if first(proposal) == "3" else "x"

    order = []
    for _, proposal in RoundRobin(
        [proposing("A", "0", "1", "2", "3")], picture_with(4), lambda each: moved[owner(each)]
    ):
        order.append(first(proposal))
        moved[owner(proposal)] += 1

    assert order == ["0", "1", "3", "2"]


def test_a_proposal_that_waited_is_made_anew_or_dropped() -> None:
    picture = picture_with(3)
    first, second, third = proposing("A", "0", "1", "2").proposals(picture)
    renewed = replace(first, reason="as of now")

    def fail() -> Proposal:
        raise ZeroDivisionError

    class Renewing(Proposes):
        def proposals(self, picture: Picture) -> Iterable[Proposal]:
            yield replace(first, anew=lambda: renewed)
            yield replace(second, anew=lambda: None)
            yield replace(third, anew=fail)

    turns = RoundRobin([Renewing([], lambda _: 0.0, "A")], picture, lambda _: 1)

    assert [proposal.reason for _, proposal in turns] == ["as of now"]
    assert len(turns.errors) == 1
    assert "policy A: proposals failed" in turns.errors[0]


def test_a_proposal_made_anew_may_be_followed_by_others_in_its_turn() -> None:
    picture = picture_with(3)
    first_, second, third = proposing("A", "0", "1", "2").proposals(picture)
    last = replace(third, anew=None)
    then = replace(second, anew=lambda: last)

    class Continuing(Proposes):
        def proposals(self, picture: Picture) -> Iterable[Proposal]:
            yield replace(first_, anew=lambda: then)

    turns = RoundRobin([Continuing([], lambda _: 0.0, "A")], picture, lambda _: 1)

    assert [first(proposal) for _, proposal in turns] == ["1", "2"]
