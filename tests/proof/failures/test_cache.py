"""Failures of the scheduler's view of nodes and pods, each with its bug."""

from __future__ import annotations

from typing import Any

import pytest

from podium.api.pod import Pod
from podium.cluster.cluster import Cluster, ClusterUpdater, PodChange
from podium.controllers.actions import Bind
from tests.builders import node, pod
from tests.controllers.driving import Driver, all_of, on, the
from tests.proof.failures.bugs import Right, caught, instead

N1 = node("n1", cpu=10)


def forgotten_with_its_node(right: Right, cluster: Cluster, name: str) -> None:
    right(cluster, name)
    cluster._of_unknown_nodes.pop(name, None)


@pytest.mark.failure(47)
def test_a_pod_whose_deletion_was_missed_keeps_its_node_full() -> None:
    """Symptom: a ghost, until the scheduler is restarted. Rule: a new uid under its name says that a pod is gone."""

    def without_looking_at_the_name(right: Right, feed: ClusterUpdater, one: Pod, *rest: Any) -> PodChange:
        feed._uid_of.pop(one.key, None)
        change: PodChange = right(feed, one, *rest)
        return change

    def story() -> None:
        driver = Driver(N1, pod("a", cpu=10, on="n1", uid="old"))

        driver.see(pod("a", cpu=10, uid="new"))

        assert the(Bind, driver.tick()).uid == "new"

    caught(story, instead(ClusterUpdater, "pod_changed", without_looking_at_the_name))


@pytest.mark.failure(48)
def test_a_node_that_comes_back_under_its_name_seems_to_be_empty() -> None:
    """Symptom: more is put on it than it holds. Rule: its pods outlive the node, until each of them is gone itself."""

    def story() -> None:
        driver = Driver(N1, pod("running", cpu=8, on="n1"))

        driver.miss(N1)
        driver.see(node("n1", cpu=10, labels={"new": "machine"}), pod("a", cpu=4))

        assert not all_of(Bind, driver.tick())

    caught(story, instead(Cluster, "remove_node", forgotten_with_its_node))


@pytest.mark.failure(49)
def test_a_recreated_pod_counts_beside_its_predecessor() -> None:
    """Symptom: one pod takes two places. Rule: an assumed pod that is deleted leaves its node in the same step."""

    def still_there(right: Right, cluster: Cluster, uid: str) -> Any:
        return cluster.placed[uid]

    def story() -> None:
        driver = Driver(N1, pod("a", cpu=4, uid="old"))
        driver.tick()
        driver.see(pod("a", cpu=4, uid="new"))

        bind = the(Bind, driver.tick())
        driver.answer(bind)
        driver.see(on(pod("a", cpu=4, uid="new"), "n1"))

        assert int(driver.scheduler.cluster.nodes.pod_count[0]) == 1

    caught(story, instead(Cluster, "remove_pod", still_there))


@pytest.mark.failure(50)
@pytest.mark.parametrize("then", ["changes", "goes"])
def test_a_node_goes_before_its_pods(then: str) -> None:
    """Symptom: a crash at the next word about one of them. Rule: kinds may overtake one another."""
    running = pod("running", cpu=8, on="n1")

    def story() -> None:
        driver = Driver(N1, running)
        driver.miss(N1)

        if then == "goes":
            driver.miss(running)
        else:
            driver.see(pod("running", cpu=4, on="n1"))

        driver.see(N1, pod("a", cpu=6))
        assert the(Bind, driver.tick()).pod == "default/a"

    caught(story, instead(Cluster, "remove_node", forgotten_with_its_node), raising=KeyError)
