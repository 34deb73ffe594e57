"""Rearranging a gang if its pods do not fit one by one: an arrangement is found if one exists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from podium.api.meta import Kubernetes
from podium.api.pod import Pod
from podium.decide.gang_placement import GroupPlacement, GroupTrial, place_group
from podium.framework.runner import Runner
from tests.builders import cluster_of, member, node, pending_in, plain_runner, pod
from tests.fuzzing import Effort, efforts
from tests.generators import Objects, Traits, clusters, targets
from tests.twins.gang_victims import GangPreemption

ENOUGH = 1_000_000
TRAITS = {
    "room": Traits(heavy_target=True, always_requests=True),
    "ports and tolerations": Traits(heavy_target=True, ports=True, tolerations=True, nominated=True),
    "affinity and spread": Traits(affinity=True, spread=True, heavy_target=True),
}


def found_in(
    objects: Sequence[Kubernetes], pods: Sequence[Pod], needed: int, most_steps: int = ENOUGH, key: str = ""
) -> GroupPlacement:
    cluster = cluster_of(*objects)
    members = tuple(pending_in(cluster, each) for each in pods)
    for record in members:
        if record.nominated_node_name:
            cluster.nominations.put(record, record.nominated_node_name)
    return place_group(plain_runner(cluster), GroupTrial(members, needed, key, most_steps=most_steps))


def nodes_of(found: GroupPlacement) -> dict[str, str]:
    return {each.pod.name: each.node_name for each in found.members}


def small_and_large() -> tuple[list[Kubernetes], list[Pod]]:
    """Two nodes of eight, and pods that fit if the two small ones share a node; one by one they do not."""
    nodes: list[Kubernetes] = [node(name, cpu=8) for name in ("a", "b")]
    return nodes, [member("g", "small-0", cpu=4), member("g", "small-1", cpu=4), member("g", "large", cpu=8)]


def test_without_arranging_earlier_members_block_later_ones_as_in_kube_scheduler() -> None:
    objects, pods = small_and_large()

    found = found_in(objects, pods, 3, most_steps=0)

    assert not found.is_enough
    assert not found.is_arranged


def test_another_arrangement_is_found_where_there_is_one() -> None:
    objects, pods = small_and_large()

    found = found_in(objects, pods, 3)

    assert found.is_enough
    assert found.is_arranged
    assert nodes_of(found)["small-0"] == nodes_of(found)["small-1"] != nodes_of(found)["large"]


def test_arranging_a_gang_takes_few_steps_among_many_nodes() -> None:
    objects, pods = small_and_large()
    full = [
        each for number in range(300) for each in (node(f"n{number}", cpu=8), pod(f"p{number}", on=f"n{number}", cpu=8))
    ]

    assert found_in([*objects, *full], pods, 3, most_steps=2_000).is_enough


def test_gangs_that_fit_one_by_one_are_placed_like_kube_scheduler() -> None:
    objects = [node("a", cpu=8), node("b", cpu=8)]
    pods = [member("g", f"p{number}", cpu=4) for number in range(4)]

    assert nodes_of(found_in(objects, pods, 4)) == nodes_of(found_in(objects, pods, 4, most_steps=0))


def test_pods_that_are_not_needed_and_find_no_room_stay_and_say_why() -> None:
    objects, pods = small_and_large()
    more = [member("g", "large-1", cpu=8), member("g", "large-2", cpu=8)]

    found = found_in([*objects, node("c", cpu=8)], [*pods, *more], 4)

    assert found.is_arranged
    assert found.fitting == 4
    (left,) = (each for each in found.members if not each.fits)
    assert left.placement.row is None


def test_all_members_are_placed_in_one_domain() -> None:
    nodes: list[Kubernetes] = [
        node(f"{rack}{number}", cpu=8, labels={"rack": rack}) for rack in "xy" for number in (1, 2)
    ]
    busy = [pod("busy", on="x1", cpu=8)]
    _, pods = small_and_large()

    found = found_in([*nodes, *busy], pods, 3, key="rack")

    assert found.is_enough
    assert found.domain == "y"
    assert {name[0] for name in nodes_of(found).values()} == {"y"}


def test_a_step_limit_is_reported() -> None:
    objects, pods = small_and_large()

    found = found_in(objects, pods, 3, most_steps=1)

    assert not found.is_enough
    assert found.is_cut
    assert not found_in([node("a", cpu=8)], pods, 3).is_cut


def test_pods_with_extenders_are_not_rearranged(monkeypatch: pytest.MonkeyPatch) -> None:
    objects, pods = small_and_large()
    asked: list[Any] = []

    def extenders_of(self: Runner, record: Any) -> Any:
        asked.append(record)
        return None if len(asked) <= len(pods) else object()

    monkeypatch.setattr(Runner, "extenders_of", extenders_of)

    assert not found_in(objects, pods, 3).is_enough


@st.composite
def cases(draw: st.DrawFn, traits: Traits) -> tuple[Objects, list[Pod], int, str]:
    objects = draw(clusters(traits, most_nodes=3, most_pods=4))
    names = [each.metadata.name for each in objects.nodes]
    shapes = [objects.target, draw(targets(names, traits))]
    number = draw(st.integers(2, 4))
    pods = []
    for place in range(number):
        shape, name = shapes[draw(st.integers(0, 1))], f"g{place}"
        pods.append(
            msgspec.structs.replace(shape, metadata=msgspec.structs.replace(shape.metadata, name=name, uid=name))
        )
    return objects, pods, draw(st.integers(1, number)), draw(st.sampled_from(("", "", "rack")))


@pytest.mark.parametrize("theme", TRAITS)
@efforts(20)
def test_a_gang_goes_exactly_where_some_way_to_place_its_pods_lets_enough_fit(theme: str, effort: Effort) -> None:
    @effort
    @given(cases(TRAITS[theme]))
    def check(case: tuple[Objects, list[Pod], int, str]) -> None:
        objects, pods, needed, key = case
        found = found_in(objects.surroundings, pods, needed, key=key)
        twin = GangPreemption(objects.surroundings, pods, needed, 0, key=key)
        event("arranged" if found.is_arranged else "one by one" if found.is_enough else "none")

        if found.problem:
            return
        if found.is_arranged:
            by_name = {each.metadata.name: each for each in pods}
            steps = [(by_name[name], node_name) for name, node_name in nodes_of(found).items() if node_name]
            assert len(steps) >= needed
            assert twin.is_one_domain(steps)
        assert found.is_enough or not twin.fits([])

    check()


@efforts(30)
def test_pods_of_any_sizes_fit_exactly_where_some_of_all_ways_to_give_them_nodes_has_room(effort: Effort) -> None:
    sizes = st.lists(st.integers(1, 8), min_size=2, max_size=5)

    @effort
    @given(sizes, st.lists(st.integers(2, 9), min_size=2, max_size=3), st.data())
    def check(wanted: list[int], offered: list[int], data: st.DataObject) -> None:
        needed = data.draw(st.integers(1, len(wanted)))
        nodes = [node(f"n{place}", cpu=cpu) for place, cpu in enumerate(offered)]
        pods = [member("g", f"g{place}", cpu=cpu) for place, cpu in enumerate(wanted)]

        found = found_in(nodes, pods, needed)

        event("arranged" if found.is_arranged else "one by one" if found.is_enough else "none")
        assert found.is_enough is (_most(wanted, offered) >= needed)

    check()


def _most(wanted: Sequence[int], offered: Sequence[int]) -> int:
    """Return how many of some pods fit at once, by their CPU alone."""
    if not wanted:
        return 0
    placed = [
        1 + _most(wanted[1:], [*offered[:place], room - wanted[0], *offered[place + 1 :]])
        for place, room in enumerate(offered)
        if room >= wanted[0]
    ]
    return max([_most(wanted[1:], offered), *placed])
