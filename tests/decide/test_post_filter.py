"""PostFilter plugins one after the other: who is asked, what becomes of the nomination, and what is said."""

from __future__ import annotations

from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.cluster.view import NodeView
from podium.decide.placement import place
from podium.decide.preempting.post_filter import ask_post_filters
from podium.framework.cycle_state import CycleState
from podium.framework.handle import Handle
from podium.framework.plugin import PostFilterResult
from podium.framework.runner import Runner
from podium.framework.settings.profile import Profile
from podium.framework.status import SUCCESS, Code, Status, unresolvable, unschedulable
from podium.framework.verdicts import Outcome
from tests.builders import cluster_of, node, pod


class Proposes:
    """Always proposes the same."""

    def __init__(self, name: str, result: PostFilterResult) -> None:
        self.name = name
        self._result = result
        self.asked = 0

    def post_filter(
        self, state: CycleState, pod: PodRecord, handle: Handle, cluster: Cluster, outcome: Outcome
    ) -> PostFilterResult:
        self.asked += 1
        return self._result


class TurnsDown:
    """Turns pods down on every node, or before any node is looked at."""

    name = "TurnsDown"

    def __init__(self, *, early: bool) -> None:
        self._early = early

    def pre_filter(self, state: CycleState, pod: PodRecord, cluster: Cluster) -> Status:
        return unresolvable("no") if self._early else SUCCESS

    def filter(self, state: CycleState, pod: PodRecord, node: NodeView) -> Status:
        return unschedulable("no")


def proposed(*plugins: Proposes, nodes: int = 1, early: bool = False) -> PostFilterResult:
    """What comes out for a pod that the filters turn down, or (``early``) a PreFilter does."""
    cluster = cluster_of(*(node(f"n{number}") for number in range(nodes)))
    refusing = TurnsDown(early=early)
    runner = Runner(Profile("s", pre_filter=[refusing], filter=[refusing], post_filter=plugins), cluster)
    return ask_post_filters(runner, place(runner, cluster.read(pod("target"))))


def gives_up(name: str, reason: str, nominated_node: str | None = None) -> Proposes:
    return Proposes(name, PostFilterResult(unschedulable(reason), nominated_node))


def test_where_all_give_up_their_reasons_are_joined_and_the_first_is_the_one_that_refused() -> None:
    result = proposed(gives_up("First", "no new claims to deallocate"), gives_up("Second", "preemption: none", ""))

    assert result.status == Status(Code.UNSCHEDULABLE, ("no new claims to deallocate", "preemption: none"), "First")
    assert result.status.message == "no new claims to deallocate, preemption: none"


def test_a_proposal_about_the_nomination_outlives_those_behind_it_that_have_none() -> None:
    assert proposed(gives_up("First", "a", ""), gives_up("Second", "b")).nominated_node == ""
    assert proposed(gives_up("First", "a"), gives_up("Second", "b")).nominated_node is None


def test_the_first_that_finds_a_way_out_ends_it() -> None:
    last = gives_up("Third", "c")
    result = proposed(gives_up("First", "a"), Proposes("Second", PostFilterResult(Status(), "n0")), last)

    assert (result.status.code, result.nominated_node, last.asked) == (Code.SUCCESS, "n0", 0)


def test_one_that_says_that_nothing_will_help_ends_it() -> None:
    last = gives_up("Second", "b")
    result = proposed(Proposes("First", PostFilterResult(unresolvable("hopeless"), "")), last)

    assert (result.status, result.nominated_node, last.asked) == (unresolvable("hopeless").by("First"), "", 0)


def test_one_that_cannot_tell_ends_it_and_the_nomination_stays_as_it_is() -> None:
    failed, last = Status(Code.ERROR, ("not found",)), gives_up("Third", "c", "")
    result = proposed(gives_up("First", "a", ""), Proposes("Second", PostFilterResult(failed, "n0")), last)

    assert (result.status.message, result.nominated_node, last.asked) == ("not found", None, 0)


def test_they_are_asked_about_pods_that_a_pre_filter_turned_down_too() -> None:
    first = gives_up("First", "a")

    assert proposed(first, early=True).status.message == "a"
    assert first.asked == 1


def test_without_nodes_nobody_is_asked_and_the_nomination_ends() -> None:
    first = gives_up("First", "a")
    result = proposed(first, nodes=0)

    assert (result.nominated_node, result.answers, first.asked) == ("", (), 0)


def test_what_each_said_can_be_told() -> None:
    found = proposed(gives_up("First", "a"), Proposes("Second", PostFilterResult(unresolvable("b"))))

    assert found.answers == (unschedulable("a").by("First"), unresolvable("b").by("Second"))
