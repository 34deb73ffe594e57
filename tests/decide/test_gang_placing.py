"""The pods of a group that fit together, as if each were bound and observed before the next attempt."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.api.meta import Kubernetes
from podium.api.node import Node
from podium.api.pod import Pod
from podium.cluster.cluster import Cluster
from podium.decide.gang_placement import GroupPlacement, GroupTrial, domains_of, place_group
from podium.decide.placement import place
from tests.builders import HOSTNAME, cluster_of, member, node, pending_in, plain_runner, pod
from tests.fuzzing import usual
from tests.generators import Objects, Traits, clusters, targets

TRAITS = Traits(affinity=True, preferences=True, spread=True, ports=True, node_affinity=True, tolerations=True)
ROOMY = Traits(affinity=True, spread=True, ports=True)


def found_in(cluster: Cluster, pods: Sequence[Pod], needed: int, topology_key: str = "") -> GroupPlacement:
    members = tuple(pending_in(cluster, each) for each in pods)
    return place_group(plain_runner(cluster), GroupTrial(members, needed, topology_key))


def nodes_of(found: GroupPlacement) -> list[str]:
    return [each.node_name for each in found.members]


def one_by_one(objects: Sequence[Kubernetes], pods: Sequence[Pod]) -> list[str]:
    """Return the plain way: each pod in a cluster that was made anew, in which those before it are on their nodes."""
    names: list[str] = []
    there = list(objects)
    for each in pods:
        cluster = cluster_of(*there)
        row = place(plain_runner(cluster), pending_in(cluster, each)).row
        names.append("" if row is None else cluster.nodes.name(row))
        if row is not None:
            there.append(msgspec.structs.replace(each, spec=msgspec.structs.replace(each.spec, node_name=names[-1])))
    return names


@st.composite
def gangs(draw: st.DrawFn) -> tuple[Objects, list[Pod]]:
    """Draw a cluster, and pods of any sort that are to be placed together."""
    objects = draw(clusters(draw(st.sampled_from((TRAITS, ROOMY, Traits()))), most_pods=3))
    names = [each.metadata.name for each in objects.nodes]
    drawn = [draw(targets(names, TRAITS)) for _ in range(draw(st.integers(1, 4)))]
    pods = [
        msgspec.structs.replace(
            each, metadata=msgspec.structs.replace(each.metadata, name=f"g{number}", uid=f"g{number}")
        )
        for number, each in enumerate(drawn)
    ]
    return objects, pods


@settings(max_examples=usual(150))
@given(gangs(), st.integers(0, 4))
def test_pods_fit_together_exactly_if_they_fit_one_after_the_other(
    drawn: tuple[Objects, list[Pod]], needed: int
) -> None:
    objects, pods = drawn
    around = [*objects.namespaces, *objects.nodes, *objects.pods]

    found = found_in(cluster_of(*around), pods, needed)

    expected = one_by_one(around, pods)
    assert nodes_of(found) == expected
    assert found.is_enough is (sum(map(bool, expected)) >= max(needed, 1))


@settings(max_examples=usual(50))
@given(gangs())
def test_nothing_changes_by_being_asked(drawn: tuple[Objects, list[Pod]]) -> None:
    objects, pods = drawn
    cluster = cluster_of(*objects.namespaces, *objects.nodes, *objects.pods)
    members = tuple(pending_in(cluster, each) for each in pods)
    runner = plain_runner(cluster)
    before = _state(cluster)

    first = place_group(runner, GroupTrial(members, 1))
    second = place_group(runner, GroupTrial(members, 1))

    assert _state(cluster) == before
    assert nodes_of(first) == nodes_of(second)


def _state(cluster: Cluster) -> tuple[object, ...]:
    placed = sorted((uid, record.node_name) for uid, record in cluster.placed.items())
    nominated = sorted((record.uid, name, record.nominated_node_name) for record, name in cluster.nominations.all())
    return placed, nominated, cluster.nodes.requested.tobytes(), sorted(cluster.claim_users.items())


def test_nominations_of_pods_that_are_tried_come_back() -> None:
    first, second = (member("g", name, cpu=2, nominated="n") for name in ("a", "b"))
    cluster = cluster_of(node("n", cpu=4), first, second)

    found = found_in(cluster, [first, second], 2)

    assert nodes_of(found) == ["n", "n"]
    assert [record.key for record in cluster.nominations.on("n")] == ["default/a", "default/b"]


def test_pods_that_are_alike_are_tried_once_where_none_fits() -> None:
    cluster = cluster_of(node("n", cpu=3))
    members = tuple(cluster.read(member("g", f"p{number}", cpu=2)) for number in range(4))

    found = place_group(plain_runner(cluster), GroupTrial(members, 4, alike=lambda pod: pod.pod_class.id))

    assert nodes_of(found) == ["n", "", "", ""]
    assert found.members[1].placement is found.members[3].placement


def racked(name: str, rack: str, cpu: int) -> Node:
    return node(name, cpu=cpu, labels={"rack": rack, HOSTNAME: name})


class TestTopology:
    def test_all_members_are_placed_in_one_domain(self) -> None:
        cluster = cluster_of(racked("a1", "a", 2), racked("b1", "b", 2), racked("b2", "b", 2))

        found = found_in(cluster, [member("g", f"p{number}", cpu=2) for number in range(2)], 2, "rack")

        assert (sorted(nodes_of(found)), found.domain, found.domains) == (["b1", "b2"], "b", 2)

    def test_the_fullest_domain_that_will_do_is_taken_and_of_equals_the_first_by_name(self) -> None:
        nodes = [racked("a", "a", 8), racked("b", "b", 8), racked("c", "c", 8)]
        pods = [member("g", "p", cpu=2)]

        assert found_in(cluster_of(*nodes), pods, 1, "rack").domain == "a"
        assert found_in(cluster_of(*nodes, pod("busy", on="b", cpu=4)), pods, 1, "rack").domain == "b"
        assert found_in(cluster_of(*nodes, pod("full", on="b", cpu=7)), pods, 1, "rack").domain == "a"

    def test_a_domain_that_takes_more_of_them_comes_first(self) -> None:
        cluster = cluster_of(racked("a", "a", 8), racked("b", "b", 8), pod("busy", on="a", cpu=6))

        found = found_in(cluster, [member("g", f"p{number}", cpu=2) for number in range(3)], 1, "rack")

        assert (found.domain, found.fitting) == ("b", 3)

    def test_a_failed_gang_names_the_plugins_of_all_placements(self) -> None:
        cluster = cluster_of(racked("a", "a", 1), node("b", cpu=8, labels={"rack": "b"}, taints=["gpu:NoSchedule"]))

        found = found_in(cluster, [member("g", "p", cpu=2)], 1, "rack")

        assert not found.is_enough
        assert sorted(found.rejected_by) == ["NodeResourcesFit", "TaintToleration"]
        assert found.message == ("0/2 placements are available, first placement status: pod group is unschedulable")

    def test_later_pods_join_those_that_have_a_node(self) -> None:
        cluster = cluster_of(racked("a", "a", 8), racked("b", "b", 8), first := member("g", "first", on="b"))
        pending = cluster.read(member("g", "p", cpu=2))
        trial = GroupTrial((pending,), 0, "rack", (cluster.placed[first.metadata.uid],))

        assert nodes_of(place_group(plain_runner(cluster), trial)) == ["b"]

    def test_pods_that_are_apart_already_cannot_be_joined(self) -> None:
        nodes = [racked("a", "a", 8), racked("b", "b", 8), node("c")]
        apart = [member("g", name, on=name) for name in ("a", "b")]
        cluster = cluster_of(*nodes, *apart, outside := member("g", "outside", on="c"))
        placed = [cluster.placed[each.metadata.uid] for each in apart]

        assert domains_of(cluster, "rack", placed)[1] == "pods of the group are in several domains of rack already"
        outsider = [cluster.placed[outside.metadata.uid]]
        assert (
            domains_of(cluster, "rack", outsider)[1] == "pods of the group are on nodes without the label rack already"
        )
        assert domains_of(cluster, "room")[1] == "no node has the label room"
