"""PostFilter plugins in order: the ones that run, the nomination, and the messages."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.cluster.view import NodeView
from podium.decide.gang_placement import GroupTrial, ask_group_post_filter
from podium.decide.placement import place
from podium.decide.post_filter import ask_post_filters
from podium.framework.handle import CycleState, Handle
from podium.framework.plugin import PostFilterResult
from podium.framework.pre_filters import GroupDemand, GroupHandle, GroupPostFilterResult
from podium.framework.runner import Runner
from podium.framework.settings.registry import Profile
from podium.framework.verdicts import SUCCESS, Code, Outcome, PluginError, Status, unresolvable, unschedulable
from tests.builders import cluster_of, node, pod


class Proposes:
    """Always proposes the same."""

    def __init__(self, name: str, result: Any) -> None:
        self.name = name
        self._result = result
        self.asked = 0

    def post_filter(
        self, state: CycleState, pod: PodRecord, handle: Handle, cluster: Cluster, outcome: Outcome
    ) -> PostFilterResult:
        self.asked += 1
        result: PostFilterResult = self._result
        return result

    def group_post_filter(self, demand: GroupDemand, handle: GroupHandle, cluster: Cluster) -> GroupPostFilterResult:
        result: GroupPostFilterResult = self._result
        return result


class TurnsDown:
    """Turns pods down on every node, or before any node is examined."""

    name = "TurnsDown"

    def __init__(self, *, early: bool) -> None:
        self._early = early

    def pre_filter(self, state: CycleState, pod: PodRecord, cluster: Cluster) -> Status:
        return unresolvable("no") if self._early else SUCCESS

    def filter(self, state: CycleState, pod: PodRecord, node: NodeView) -> Status:
        return unschedulable("no")


VICTIM = cluster_of(node("n0")).read(pod("v", on="n0"))


def proposed(
    *plugins: Proposes, nodes: int = 1, early: bool = False, cluster: Cluster | None = None
) -> PostFilterResult:
    """Return what comes out for a pod that the filters turn down, or (``early``) a PreFilter does."""
    cluster = cluster or cluster_of(*(node(f"n{number}") for number in range(nodes)))
    refusing = TurnsDown(early=early)
    runner = Runner(Profile("s", pre_filter=[refusing], filter=[refusing], post_filter=plugins), cluster)
    return ask_post_filters(runner, place(runner, cluster.read(pod("target"))))


def gives_up(name: str, reason: str, nominated_node: str | None = None) -> Proposes:
    return Proposes(name, PostFilterResult(unschedulable(reason), nominated_node))


def test_joined_reasons_of_post_filter_plugins_name_the_first_as_rejecting() -> None:
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


def test_an_unresolvable_post_filter_answer_ends_the_search() -> None:
    last = gives_up("Second", "b")
    result = proposed(Proposes("First", PostFilterResult(unresolvable("hopeless"), "")), last)

    assert (result.status, result.nominated_node, last.asked) == (unresolvable("hopeless").by("First"), "", 0)


def test_an_error_in_post_filter_ends_it_and_keeps_the_nomination() -> None:
    failed, last = Status(Code.ERROR, ("not found",)), gives_up("Third", "c", "")
    result = proposed(gives_up("First", "a", ""), Proposes("Second", PostFilterResult(failed, "n0")), last)

    assert (result.status.message, result.nominated_node, last.asked) == ("not found", None, 0)


def test_post_filter_plugins_see_pods_rejected_by_pre_filter() -> None:
    first = gives_up("First", "a")

    assert proposed(first, early=True).status.message == "a"
    assert first.asked == 1


def test_without_nodes_no_plugin_is_called_and_the_nomination_ends() -> None:
    first = gives_up("First", "a")
    result = proposed(first, nodes=0)

    assert (result.nominated_node, result.answers, first.asked) == ("", (), 0)


def test_post_filter_reports_the_message_of_each_plugin() -> None:
    found = proposed(gives_up("First", "a"), Proposes("Second", PostFilterResult(unresolvable("b"))))

    assert found.answers == (unschedulable("a").by("First"), unresolvable("b").by("Second"))


@pytest.mark.parametrize(
    ("answer", "report"),
    [
        (None, "with None, not with a PostFilterResult"),
        (Status(), "not with a PostFilterResult"),
        (PostFilterResult(Status(), "n9"), 'with the node "n9", which there is not'),
        (PostFilterResult(Status(), binds_to="n9"), 'with the node "n9", which there is not'),
        (PostFilterResult(Status(), "n0", (cluster_of().read(pod("waits")),)), "the victim default/waits, which is on"),
        (
            PostFilterResult(Status(), None, (VICTIM,)),
            "victim default/v, but without a node that the pod would get",
        ),
        (PostFilterResult(Status(), "", (VICTIM,)), "victim default/v, but without a node that the pod would get"),
        (
            PostFilterResult(unschedulable("no"), "n0", (VICTIM,)),
            "but with Unschedulable instead of Success",
        ),
    ],
)
def test_a_proposal_that_cannot_be_is_the_plugin_s_fault(answer: Any, report: str) -> None:
    with pytest.raises(PluginError, match=f"plugin First answered at PostFilter for pod default/target .*{report}"):
        proposed(Proposes("First", answer))


def test_victims_are_taken_as_they_are_now_though_a_plugin_remembers_them_from_before() -> None:
    cluster = cluster_of(node("n0"), pod("victim", on="n0"))
    (now,) = cluster.placed.values()
    before = replace(now, terminating=True)

    assert proposed(Proposes("First", PostFilterResult(Status(), "n0", (before,))), cluster=cluster).victims == (now,)


def proposed_for_group(answer: Any, cluster: Cluster) -> GroupPostFilterResult:
    member = cluster.read(pod("member"))
    runner = Runner(Profile("s", post_filter=[Proposes("First", answer)]), cluster)
    return ask_group_post_filter(runner, "default/work", GroupTrial((member,), 1))


def test_group_proposals_obey_the_same_rules() -> None:
    cluster = cluster_of(node("n0"), pod("victim", on="n0"))
    member, (now,) = cluster.read(pod("member")), cluster.placed.values()
    before, places = replace(now, terminating=True), ((member, "n0"),)
    refused = [
        (None, "with None, not with a GroupPostFilterResult"),
        (GroupPostFilterResult(Status(), ((member, "n9"),)), 'with the node "n9", which there is not'),
        (GroupPostFilterResult(Status(), places, (member,)), "the victim default/member, which is on no node"),
        (GroupPostFilterResult(Status(), victims=(now,)), "the victim default/victim, but without a node"),
        (GroupPostFilterResult(unschedulable("no"), places, (now,)), "with Unschedulable instead of Success"),
    ]

    assert proposed_for_group(GroupPostFilterResult(Status(), places, (before,)), cluster).victims == (now,)
    for answer, report in refused:
        with pytest.raises(PluginError, match=f"plugin First answered at PostFilter for pod default/member .*{report}"):
            proposed_for_group(answer, cluster)
