"""PostFilter plugins that decide against which pods their nominated pods hold room (`holds_room`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from podium.api.errors import InputError
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.decide.placement import lower_nominations, place
from podium.framework.handle import CycleState, Handle
from podium.framework.plugin import PostFilterResult
from podium.framework.settings.configuration import Configuration, default_configuration, with_plugins
from podium.framework.verdicts import Outcome, PluginError, unschedulable
from tests.builders import cluster_of, node, pod, runner_on


class OwnRoom:
    """Nominates no pod; which pods are kept off is up to the test."""

    name = "OwnRoom"
    rule: Callable[[PodRecord, PodRecord], Any] = staticmethod(lambda nominated, pod: True)

    def post_filter(
        self, state: CycleState, pod: PodRecord, handle: Handle, cluster: Cluster, outcome: Outcome
    ) -> PostFilterResult:
        return PostFilterResult(unschedulable())

    def holds_room(self, nominated: PodRecord, pod: PodRecord) -> bool:
        found: bool = type(self).rule(nominated, pod)
        return found


def ruled(rule: Callable[[PodRecord, PodRecord], Any], *others: type) -> Configuration:
    own = type("Own", (OwnRoom,), {"rule": staticmethod(rule)})
    return with_plugins(default_configuration(), [own, *others], ())


def fits(cluster: Cluster, settings: Configuration, **traits: Any) -> bool:
    runner = runner_on(cluster, settings)
    return place(runner, cluster.read(pod("p", cpu=3, **traits))).row is not None


@pytest.mark.parametrize("nodes", [1, 40])
def test_a_rule_holds_room_for_a_less_important_pod_and_lets_it_go_for_an_equal_one(nodes: int) -> None:
    def rule(nominated: PodRecord, pod: PodRecord) -> bool:
        return "first" not in pod.labels

    def cluster() -> Cluster:
        return cluster_of(
            *(node(f"n{number}", cpu=4) for number in range(nodes)),
            *(pod(f"w{number}", cpu=3, priority=1, nominated=f"n{number}") for number in range(nodes)),
        )

    assert fits(cluster(), default_configuration(), priority=5)
    assert not fits(cluster(), ruled(rule), priority=5)
    assert not fits(cluster(), default_configuration(), priority=1)
    assert fits(cluster(), ruled(rule), priority=1, labels={"first": "yes"})


def test_a_nomination_of_one_pod_does_not_affect_others_of_its_class() -> None:
    """A rule may look at what pods of one class and priority do not share, such as their names."""
    cluster = cluster_of(node("n", cpu=4), pod("w", cpu=3, nominated="n"))
    runner = runner_on(cluster, ruled(lambda nominated, pod: pod.name == "kept-off"))
    answers = [place(runner, cluster.read(pod(name, cpu=3))).row is not None for name in ("a", "kept-off", "b")]

    assert answers == [True, False, True]


def test_nominations_that_keep_no_room_from_a_pod_give_way_to_it() -> None:
    cluster = cluster_of(node("n", cpu=4), *(pod(name, nominated="n", priority=1) for name in ("stays", "goes")))
    runner_on(cluster, ruled(lambda nominated, pod: nominated.name == "stays"))

    lower = lower_nominations(cluster, "n", cluster.read(pod("taker", priority=1)))

    assert [each.name for each in lower] == ["goes"]


@pytest.mark.parametrize(
    ("rule", "report"),
    [
        (lambda nominated, pod: 1 // 0, "plugin OwnRoom failed at HoldsRoom for pod default/p: ZeroDivisionError"),
        (lambda nominated, pod: "yes", "plugin OwnRoom answered at HoldsRoom for pod default/p with 'yes', not"),
    ],
)
def test_a_failing_nomination_rule_is_reported_and_keeps_the_nomination(rule: Callable[..., Any], report: str) -> None:
    cluster = cluster_of(node("n", cpu=4), pod("w", cpu=3, nominated="n"))

    with pytest.raises(PluginError, match=report):
        fits(cluster, ruled(rule))
    assert lower_nominations(cluster, "n", cluster.read(pod("p", priority=9))) == []


def test_two_rules_in_one_profile_are_refused() -> None:
    other = type("Other", (OwnRoom,), {"name": "Other"})

    with pytest.raises(InputError, match="OwnRoom and Other both have holds_room; enable one of them"):
        runner_on(cluster_of(), ruled(lambda nominated, pod: True, other))
