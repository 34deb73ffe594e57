"""A gang holds what it preempts by the priority that its group states."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from podium.api.pod import Pod
from podium.api.pod_group import PodGroup
from podium.controllers.actions import Action, Bind, Record, ReportStatus
from tests.builders import configuration, member, node, pod, pod_group
from tests.controllers.driving import Driver, all_of, deletions

ON = {"multiPoint": {"enabled": ["GangScheduling"]}}


def stating(name: str, least: int, priority: int | None) -> PodGroup:
    group = pod_group(name, least)
    return msgspec.structs.replace(group, spec=msgspec.structs.replace(group.spec, priority=priority))


def gang(name: str, *on: str, cpu: int = 2) -> list[Pod]:
    """Return a pod of the gang for each, of priority 0; on that node, or pending where it is ""."""
    return [
        member(name, f"{name}-{place}", cpu=cpu, **({"on": where} if where else {})) for place, where in enumerate(on)
    ]


def bound(actions: Sequence[Action]) -> list[str]:
    return [bind.pod.partition("/")[2] for bind in all_of(Bind, actions)]


def driver(*objects: PodGroup | Pod, is_on: bool = True) -> Driver:
    nodes = (node("a", cpu=2), node("b", cpu=2))
    return Driver(*nodes, *objects, settings=configuration(plugins=ON if is_on else {}))


def preempting() -> tuple[Driver, list[Pod]]:
    """Return a gang that states 100 has two pods of priority 50 go, and waits for that."""
    rig = driver(stating("g", 2, 100), *(pod(f"low-{name}", cpu=2, on=name, priority=50) for name in ("a", "b")))
    pods = gang("g", "", "")
    rig.see(*pods)
    rig.carry_out([each for each in rig.attempts() if isinstance(each, ReportStatus)])
    assert sorted(rig.nominated(each) for each in pods) == ["a", "b"]
    return rig, pods


def test_gangs_with_equal_stated_priority_do_not_preempt_each_other() -> None:
    rig = driver(stating("g", 2, 100), stating("h", 2, 100), *gang("g", "a", "b"))

    rig.see(*gang("h", "", ""))

    assert not deletions(rig.attempts())


def test_a_gang_preempts_one_that_states_less() -> None:
    rig = driver(stating("g", 2, 99), stating("h", 2, 100), *gang("g", "a", "b"))

    rig.see(*gang("h", "", ""))

    assert deletions(rig.attempts())


def test_replacements_of_victims_do_not_get_the_freed_room() -> None:
    rig, _ = preempting()

    rig.see(*(pod(f"again-{name}", cpu=2, priority=50) for name in ("a", "b")))
    rig.miss(*(pod(f"low-{name}", cpu=2, on=name, priority=50) for name in ("a", "b")))
    rig.wait(10)

    assert sorted(bound(rig.attempts())) == ["g-0", "g-1"]


@pytest.mark.parametrize(("is_on", "goes"), [(True, False), (False, True)])
def test_no_pod_below_a_groups_priority_preempts_its_pods_where_groups_are_scheduled(is_on: bool, goes: bool) -> None:
    rig = driver(stating("g", 2, 100), *gang("g", "a", "b"), is_on=is_on)

    rig.see(pod("low", cpu=2, priority=50))

    assert bool(deletions(rig.attempts())) == goes


def test_a_pod_above_a_groups_priority_preempts_its_pods() -> None:
    rig = driver(stating("g", 2, 100), *gang("g", "a", "b"))

    rig.see(pod("high", cpu=2, priority=101))

    assert deletions(rig.attempts())


def test_a_group_that_states_less_than_its_pods_have_makes_them_no_prey() -> None:
    rig = driver(stating("g", 1, 10), member("g", "g-0", cpu=2, on="a", priority=100), *gang("g", "b")[1:])

    rig.see(pod("low", cpu=2, priority=50), pod("other", cpu=2, priority=50))

    assert not deletions(rig.attempts())


def test_the_nominations_of_a_gang_end_with_its_group() -> None:
    rig, pods = preempting()

    rig.miss(stating("g", 2, 100))

    assert [rig.nominated(each) for each in pods] == ["", ""]


@pytest.mark.parametrize("group", [stating("g", 3, 100), stating("g", 2, 40)])
def test_the_nominations_of_a_gang_end_where_its_group_asks_for_something_else(group: PodGroup) -> None:
    rig, pods = preempting()

    rig.see(group)

    assert [rig.nominated(each) for each in pods] == ["", ""]


def test_the_nominations_of_a_gang_end_where_too_few_of_its_pods_are_left() -> None:
    rig, pods = preempting()

    rig.miss(pods[0])

    assert rig.nominated(pods[1]) == ""


def test_room_reserved_for_a_gang_is_released_with_its_group() -> None:
    rig, _ = preempting()
    rig.see(pod("again", cpu=2, priority=50))
    rig.attempts()

    rig.miss(stating("g", 2, 100), *(pod(f"low-{name}", cpu=2, on=name, priority=50) for name in ("a", "b")))
    rig.wait(10)

    assert bound(rig.attempts()) == ["again"]


def test_a_group_that_changes_nothing_of_its_plan_keeps_it() -> None:
    rig, pods = preempting()

    rig.see(stating("g", 1, 100))

    assert sorted(rig.nominated(each) for each in pods) == ["a", "b"]


def test_events_of_victims_name_the_group_and_the_nodes_of_the_victims() -> None:
    """[TestPodGroupPreemption]"""
    group = stating("g", 2, 100)
    rig = driver(group, *(pod(f"low-{name}", cpu=2, on=name, priority=50) for name in ("a", "b")))
    rig.see(*gang("g", "", ""))

    records = [record for record in all_of(Record, rig.carry_out(rig.attempts())) if record.reason == "Preempted"]

    expected = {f"default/low-{name}": f"Preempted by podgroup {group.metadata.uid} on node {name}" for name in "ab"}
    assert {record.pod: record.message for record in records} == expected
