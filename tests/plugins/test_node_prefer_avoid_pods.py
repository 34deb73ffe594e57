"""Rules of avoiding nodes whose avoid list names a pod's controller."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from podium.api.avoid_list import PREFER_AVOID_PODS, AvoidList, AwaitedPod, avoid_list
from podium.api.meta import Kubernetes
from podium.api.node import Node
from podium.api.pod import Pod
from podium.cluster.cluster import ClusterUpdater
from podium.cluster.view import View
from podium.controllers.actions import Bind
from podium.framework.handle import CycleState
from tests.builders import DAY_ONE_NS, cluster_of, configuration, explain, left, node, plain_runner, pod
from tests.controllers.driving import Driver, the

OFF = configuration(plugins={"multiPoint": {"disabled": ["NodePreferAvoidPods"]}})
AVOIDED = node("a", avoids=["ReplicaSet/web"])


def scores(target: Pod, *nodes: Node) -> dict[str, int]:
    """Return the plugin's scores; none where it has nothing to say."""
    found = explain([*nodes, target]).scores
    return {name: of_node["NodePreferAvoidPods"] for name, of_node in found.items() if "NodePreferAvoidPods" in of_node}


@pytest.mark.parametrize(
    ("owner", "expected"),
    [
        ("ReplicaSet/web", {"a": 0, "b": 1_000_000}),
        ("ReplicaSet/db", {}),
        ("", {}),
    ],
)
def test_an_avoiding_node_scores_zero_for_its_controller_and_full_for_others(
    owner: str, expected: dict[str, int]
) -> None:
    """TestNodePreferAvoidPods of kube-scheduler."""
    assert scores(pod("p", owner=owner), AVOIDED, node("b")) == expected


@pytest.mark.parametrize("owner", ["Job/nightly", "StatefulSet/db", "DaemonSet/agent"])
def test_controllers_of_any_kind_can_be_avoided(owner: str) -> None:
    assert scores(pod("p", owner=owner), node("a", avoids=[owner]), node("b"))["a"] == 0


def test_an_avoid_list_outweighs_all_other_scores() -> None:
    liked = node("a", avoids=["ReplicaSet/web"], cpu=1000, memory="1Ti", images={"big:v1": 2**40})
    crowded = node("b", cpu=1, memory="1Gi", taints=["gpu:PreferNoSchedule"])
    target = pod("p", owner="ReplicaSet/web", cpu=1, image="big:v1")

    assert explain([liked, crowded, target]).node == "b"
    assert explain([liked, crowded, target], settings=OFF).node == "a"


def test_an_avoid_list_never_blocks_the_only_node() -> None:
    assert explain([AVOIDED, pod("p", owner="ReplicaSet/web")]).node == "a"


def test_another_controller_of_the_same_name_is_another() -> None:
    renewed = pod("p", owner="ReplicaSet/web")
    (owner,) = renewed.metadata.owner_references
    metadata = replace(renewed.metadata, owner_references=(replace(owner, uid="new"),))

    assert scores(replace(renewed, metadata=metadata), AVOIDED, node("b")) == {}


def test_a_controller_without_a_uid_is_known_by_its_kind_and_name() -> None:
    written = pod("p", owner="ReplicaSet/web")
    (owner,) = written.metadata.owner_references
    metadata = replace(written.metadata, owner_references=(replace(owner, uid=""),))

    assert scores(replace(written, metadata=metadata), AVOIDED, node("b"))["a"] == 0


def test_an_unreadable_avoid_list_blocks_no_pod() -> None:
    broken = node("a")
    metadata = replace(broken.metadata, annotations={PREFER_AVOID_PODS: "{"})

    assert scores(pod("p", owner="ReplicaSet/web"), replace(broken, metadata=metadata), node("b")) == {}


def test_lists_that_change_and_nodes_that_come_and_go_are_seen() -> None:
    cluster = cluster_of(node("a"), node("b"))
    runner, record = plain_runner(cluster, "NodePreferAvoidPods"), cluster.read(pod("p", owner="ReplicaSet/web"))

    def found() -> list[int]:
        return [int(one) for one in runner.scoring.totals(CycleState(), record, View(cluster))]

    seen = [found()]
    for changed in (AVOIDED, node("b", avoids=["ReplicaSet/db", "ReplicaSet/web"]), node("a")):
        cluster.put(changed)
        seen.append(found())
    cluster.remove_node("b")
    cluster.put(node("c"))
    seen.append(found())

    assert seen == [[100, 100], [0, 100], [0, 0], [100, 0], [100, 100]]


def test_a_scheduler_sees_a_list_that_changes_and_tries_no_pod_again_for_it() -> None:
    """The list does not change whether the pod fits."""
    driver = Driver(node("a", cpu=4), node("b", cpu=2), pod("huge", cpu=8))
    driver.tick()

    driver.see(node("a", cpu=4, avoids=["ReplicaSet/web"]))

    assert driver.deadline_seconds == 300
    driver.see(pod("p", owner="ReplicaSet/web"))
    assert the(Bind, driver.tick()).node_name == "b"


# Room that is kept for the replacement of another pod

AWAITED = left("cache-1", owner="ReplicaSet/cache", first=False, uid="uid-1")
KEPT_OFF = "node(s) were kept for the replacement of pod default/cache-1"


def keeping(name: str = "a", *, owner: str = "ReplicaSet/web") -> Node:
    """Return a node that keeps a controller's pods off until cache-1 is replaced."""
    avoiding = node(name, avoids=[owner])
    here = avoid_list(avoiding.metadata.annotations[PREFER_AVOID_PODS])
    awaited = AwaitedPod(namespace="default", name="cache-1", uid="uid-1")
    entries = tuple(replace(entry, until_replaced=awaited) for entry in here.entries)
    annotations = {PREFER_AVOID_PODS: AvoidList(entries, here.replacements).written()}
    return replace(avoiding, metadata=replace(avoiding.metadata, annotations=annotations))


class Shown:
    """A cluster as the API shows it."""

    def __init__(self, *objects: Kubernetes) -> None:
        self.cluster = cluster_of(*objects)
        self.feed = ClusterUpdater(self.cluster)
        self.see(*objects)

    def see(self, *objects: Kubernetes) -> None:
        for each in objects:
            if isinstance(each, Pod):
                self.feed.pod_changed(each)
            else:
                self.feed.update_object(each)

    def refusals(self, at_seconds: int = 1) -> set[str]:
        """Return what keeps a pod of the ReplicaSet web off nodes so long after the evictions."""
        cluster = self.cluster
        runner = plain_runner(cluster, "NodePreferAvoidPods")
        cluster.pass_time(DAY_ONE_NS + at_seconds * 10**9)
        state, record = CycleState(), cluster.read(pod("p", owner="ReplicaSet/web"))
        runner.pre_filter(state, record)
        outcome = runner.filter(state, record)
        refused = outcome.refused[: len(cluster.nodes)].tolist()
        return {reason for number in refused for reason in outcome.status_of(number).reasons}


def test_room_is_kept_while_a_replacement_is_awaited_and_no_longer() -> None:
    waiting = Shown(keeping(), node("b", leaves=[AWAITED]))

    assert waiting.refusals() == {KEPT_OFF}
    assert waiting.refusals(at_seconds=629) == {KEPT_OFF}
    assert waiting.refusals(at_seconds=630) == set()
    assert Shown(keeping(), node("b")).refusals() == set()
    assert Shown(keeping(owner="ReplicaSet/db"), node("b", leaves=[AWAITED])).refusals() == set()


def test_room_is_kept_for_a_minute_while_the_pod_that_is_to_be_replaced_is_there() -> None:
    shown = Shown(keeping(), node("b"), pod("cache-1", owner="ReplicaSet/cache", uid="uid-1", on="b"))

    assert shown.refusals(at_seconds=59) == {KEPT_OFF}
    assert shown.refusals(at_seconds=60) == set()


def test_room_is_not_kept_any_more_once_the_replacement_has_a_node() -> None:
    shown = Shown(keeping(), node("b", leaves=[AWAITED]))
    shown.see(pod("cache-2", owner="ReplicaSet/cache", uid="uid-2", created=1))
    assert shown.refusals() == {KEPT_OFF}

    shown.see(pod("cache-2", owner="ReplicaSet/cache", uid="uid-2", created=1, on="b"))

    assert shown.refusals() == set()


def test_preemption_takes_no_room_that_is_kept() -> None:
    explanation = explain(
        [
            keeping(),
            node("b", leaves=[AWAITED], cpu=1),
            pod("low", cpu=1, on="a"),
            pod("p", owner="ReplicaSet/web", cpu=2),
        ]
    )

    assert explanation.plan is None or explanation.plan.chosen is None


def test_a_pod_that_was_kept_off_is_tried_again_when_the_entry_goes() -> None:
    driver = Driver(keeping(), node("b", leaves=[AWAITED], cpu=1), pod("p", owner="ReplicaSet/web", cpu=2))
    driver.tick()

    driver.see(node("a"))
    driver.wait(10)

    assert the(Bind, driver.tick()).node_name == "a"
