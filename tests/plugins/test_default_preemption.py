"""The proposals of DefaultPreemption at PostFilter."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from podium.api.errors import InputError
from podium.api.meta import Kubernetes
from podium.api.pod import Pod
from podium.cluster.pods import PodRecord
from podium.decide.placement import full_outcome, place
from podium.framework.plugin import PluginContext, PostFilterResult
from podium.framework.settings.arguments import read_arguments
from podium.framework.verdicts import Code
from podium.plugins.default_preemption import DefaultPreemption, DefaultPreemptionArgs
from tests.builders import budget, cluster_of, node, plain_runner, pod

FULL: list[Kubernetes] = [node("n", cpu=1), pod("q", on="n", cpu=1)]


def proposed(target: Pod, *objects: Kubernetes, by: type[DefaultPreemption] = DefaultPreemption) -> PostFilterResult:
    cluster = cluster_of(*objects)
    runner, record = plain_runner(cluster), cluster.read(target)
    placement = place(runner, record)
    plugin = by(PluginContext({}, cluster))
    return plugin.post_filter(placement.state, record, runner, cluster, full_outcome(cluster, placement))


def test_a_node_is_nominated_and_the_victims_are_named() -> None:
    found = proposed(pod("p", priority=5, cpu=1), *FULL)

    assert (found.status.code, found.nominated_node) == (Code.SUCCESS, "n")
    assert [victim.key for victim in found.victims] == ["default/q"]
    assert found.plan.chosen.node_name == "n"


@pytest.mark.upstream(30)
def test_a_nomination_is_cleared_where_nothing_helps() -> None:
    """Row 30 of Kubernetes' tests: TestPostFilter."""
    found = proposed(pod("p", priority=0, cpu=1, nominated="n"), *FULL)

    assert (found.status.code, found.nominated_node, found.victims) == (Code.UNSCHEDULABLE, "", ())
    assert found.status.message.startswith("preemption: 0/1 nodes are available: ")


@pytest.mark.upstream(30)
def test_a_nomination_stays_as_it_is_where_the_pod_may_not_preempt() -> None:
    found = proposed(pod("p", priority=5, cpu=1, policy="Never"), *FULL)

    assert (found.status.code, found.nominated_node) == (Code.UNSCHEDULABLE, None)
    assert found.status.message == "preemption: not eligible due to preemptionPolicy=Never."


@pytest.mark.parametrize(
    ("args", "minimum"),
    [
        ({}, None),
        ({"minCandidateNodesPercentage": 20}, (20, 100)),
        ({"minCandidateNodesAbsolute": 7}, (10, 7)),
        ({"minCandidateNodesPercentage": 0}, (0, 100)),
        ({"minCandidateNodesPercentage": 5, "minCandidateNodesAbsolute": 0}, (5, 0)),
    ],
)
def test_an_omitted_candidate_limit_has_kube_schedulers_default(
    args: dict[str, int], minimum: tuple[int, int] | None
) -> None:
    assert read_arguments(args, DefaultPreemptionArgs, "DefaultPreemption").minimum_candidates == minimum


def test_the_limits_on_candidates_cannot_both_be_nothing() -> None:
    args = {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0}

    with pytest.raises(InputError, match="cannot both be 0; leave both out to examine every node"):
        read_arguments(args, DefaultPreemptionArgs, "DefaultPreemption")


class SparesDatabases(DefaultPreemption):
    """A plugin that protects databases from disruption."""

    def may_disrupt(self, pod: PodRecord, victim: PodRecord) -> bool:
        return victim.labels.get("app") != "db"


@pytest.mark.parametrize("with_budget", [False, True])
def test_a_subclass_can_decide_which_pods_may_be_disrupted(with_budget: bool) -> None:
    running = [
        pod("db", on="n", cpu=1, labels={"app": "db"}, started=9),
        pod("web", on="n", priority=3, cpu=1, labels={"app": "web"}, started=0),
    ]
    objects = [node("n", cpu=2), *running, *([budget("b", "app=web", 0)] if with_budget else [])]

    def victims(by: type[DefaultPreemption], cpu: int) -> list[str]:
        return [victim.name for victim in proposed(pod("p", priority=5, cpu=cpu), *objects, by=by).victims]

    assert victims(DefaultPreemption, 1) == ["db"]
    assert victims(SparesDatabases, 1) == ["web"]
    assert victims(SparesDatabases, 2) == []


@pytest.mark.parametrize("spared", [False, True])
def test_mirror_pods_are_victims_as_others_are_unless_they_are_to_be_spared(spared: bool) -> None:
    meta = replace(pod("q").metadata, annotations={"kubernetes.io/config.mirror": "1"})
    mirror = replace(pod("q", on="n", cpu=1), metadata=meta)
    cluster = cluster_of(node("n", cpu=1), mirror)
    runner, record = plain_runner(cluster), cluster.read(pod("p", priority=5, cpu=1))
    placement = place(runner, record)
    plugin = DefaultPreemption(PluginContext({"spareMirrorPods": spared}, cluster))

    found = plugin.post_filter(placement.state, record, runner, cluster, full_outcome(cluster, placement))

    assert [victim.name for victim in found.victims] == ([] if spared else ["q"])
