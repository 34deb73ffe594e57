"""The backoff of a gang after futile preemptions is that of one pod, and counts the gang once."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from podium.api.pod import Pod
from podium.controllers.actions import Action, Bind, PatchObject, Record, ReportStatus
from podium.controllers.observations import Problem
from podium.controllers.scheduling.futile_preemptions import ANNOTATION
from podium.framework.settings.configuration import API_VERSION, KIND, Configuration, read_configuration
from tests.builders import member, node, pod, pod_group
from tests.controllers.driving import SECOND, Driver, all_of, deletions, events, nominated, on, terminating, the

NODES = [node(name, cpu=2) for name in ("a", "b")]
WORKERS = [member("g", f"g-{number}", cpu=2, priority=100) for number in range(2)]
GROUP = pod_group("g", 2)


def low(name: str, on_node: str, *, priority: int = 1) -> Pod:
    """Return a pod of another scheduler's."""
    return pod(name, cpu=2, priority=priority, scheduler="another", on=on_node)


def bearing(most: int = 3) -> Configuration:
    plugins = {"multiPoint": {"enabled": [{"name": "GangScheduling"}]}}
    written = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "maxFutilePreemptions": most,
        "profiles": [{"plugins": plugins}],
    }
    return read_configuration(written, "test")


def given(*victims: Pod, most: int = 3, members: Sequence[Pod] = WORKERS) -> Driver:
    return Driver(*NODES, GROUP, *victims, *members, settings=bearing(most))


def preempts(rig: Driver, victims: Sequence[Pod], members: Sequence[Pod] = WORKERS) -> list[Action]:
    """End the next attempt's victims; return its actions."""
    actions = rig.attempts()
    marks = all_of(ReportStatus, actions)
    assert marks, events(actions)
    done = rig.carry_out(actions)
    assert {each.key for each in all_of(ReportStatus, done)} == {victim.key for victim in victims}
    rig.see(*(nominated(each, rig.nominated(each)) for each in members), *map(terminating, victims))
    rig.miss(*victims)
    return done


def loses(rig: Driver, times: int, first: int = 0) -> None:
    """Let the gang preempt on b, and another scheduler take the room each time."""
    for number in range(first, first + times):
        preempts(rig, [low(f"low-{number}", "b")])
        rig.see(low(f"low-{number + 1}", "b"))
        rig.wait(0.001)


def backing_off() -> Driver:
    """Return a gang after three futile preemptions, in backoff."""
    rig = given(low("low-0", "b"))
    loses(rig, 3)
    rig.attempts()
    rig.wait(20)
    return rig


def waiting_seconds(rig: Driver) -> float:
    deadline = rig.scheduler.futile.next_deadline()
    assert deadline is not None
    return (deadline - rig.now) / SECOND


def test_a_gang_waits_a_minute_after_its_third_wasted_preemption() -> None:
    rig = given(low("low-0", "b"))
    loses(rig, 3)

    actions = rig.attempts()

    assert deletions(actions) == []
    assert [reason for reason, _ in events(actions)].count("PreemptionBackoff") == 1
    waits = next(each for each in all_of(Record, actions) if each.reason == "PreemptionBackoff")
    assert waits.message == (
        "3 preemptions were futile: other pods took the room, last on node b default/low-3; "
        "no further preemption for 1m"
    )
    assert [rig.nominated(each) for each in WORKERS] == ["", ""]
    assert waiting_seconds(rig) == 60
    rig.wait(60)
    assert deletions(rig.attempts()) == ["mark default/low-3"]


def test_several_nodes_preempted_for_one_gang_count_once() -> None:
    rig = given(low("x-0", "a"), low("y-0", "b"))
    for number in range(2):
        preempts(rig, [low(f"x-{number}", "a"), low(f"y-{number}", "b")])
        rig.see(low(f"x-{number + 1}", "a"), low(f"y-{number + 1}", "b"))
        rig.wait(0.001)

    assert len(deletions(rig.attempts())) == 1


def test_lost_room_counts_even_if_a_member_needed_no_victims() -> None:
    victim, rig = low("low-0", "b"), given(low("low-0", "b"))
    for number in range(3):
        preempts(rig, [victim])
        free = "a" if victim.spec.node_name == "b" else "b"
        victim = low(f"thief-{number}", free)
        rig.see(victim)
        rig.wait(0.001)

    assert deletions(rig.attempts()) == []
    assert waiting_seconds(rig) == 60


def test_a_more_important_pod_that_takes_the_room_does_not_count() -> None:
    rig = given(low("low-0", "b"))
    loses(rig, 2)
    preempts(rig, [low("low-2", "b")])

    rig.see(low("high", "b", priority=500))
    assert deletions(rig.attempts()) == []
    rig.miss(low("high", "b", priority=500))
    rig.see(low("low-3", "b"))

    assert deletions(rig.attempts()) == ["mark default/low-3"]


def test_a_gang_that_finds_room_meanwhile_goes() -> None:
    rig = backing_off()

    rig.miss(low("low-3", "b"))

    assert len(all_of(Bind, rig.attempts())) == 2


def test_when_it_runs_all_is_forgotten() -> None:
    rig = backing_off()
    rig.miss(low("low-3", "b"))
    binds = {bind.uid: bind for bind in all_of(Bind, rig.attempts())}
    for bind in binds.values():
        rig.answer(bind)
    rig.see(*(on(each, binds[each.metadata.uid].node_name) for each in WORKERS))

    assert len(rig.scheduler.futile) == 0


def test_the_count_ends_with_its_pods() -> None:
    rig = backing_off()

    rig.miss(*WORKERS)

    assert len(rig.scheduler.futile) == 0


def test_a_restarted_scheduler_continues_the_gang_count() -> None:
    rig = given(low("low-0", "b"))
    loses(rig, 2)
    annotated = noted(preempts(rig, [low("low-2", "b")]))

    successor = given(low("low-3", "b"), members=annotated)
    actions = successor.attempts()

    assert deletions(actions) == []
    assert "PreemptionBackoff" in [reason for reason, _ in events(actions)]


def test_without_the_setting_nothing_is_counted_or_noted() -> None:
    rig = given(low("low-0", "b"), most=0)
    loses(rig, 5)

    assert deletions(rig.attempts()) == ["mark default/low-5"]
    assert len(rig.scheduler.futile) == 0


def noted(actions: Sequence[Action]) -> list[Pod]:
    """Return the workers with what was noted in them."""
    notes = {
        each.uid: each.patch["metadata"]["annotations"][ANNOTATION]
        for each in all_of(PatchObject, actions)
        if each.kind == "Pod"
    }
    assert len(notes) == len(WORKERS)
    return [
        replace(each, metadata=replace(each.metadata, annotations={ANNOTATION: notes[each.metadata.uid]}))
        for each in WORKERS
    ]


def test_a_gang_preempts_for_no_pods_whose_binding_is_forbidden() -> None:
    forbidden = Problem(403, "Forbidden", 'cannot create resource "pods/binding"')
    rig = Driver(*NODES, GROUP, settings=bearing())
    rig.see(pod("lone", cpu=1))
    rig.answer(the(Bind, rig.attempts()), forbidden)
    rig.see(low("low-a", "a"), low("low-b", "b"), *WORKERS)

    actions = rig.attempts()

    assert not all_of(ReportStatus, actions)
    report = [each.message for each in all_of(Record, actions) if each.reason == "FailedScheduling"]
    assert any('cannot create resource "pods/binding"' in message for message in report)

    rig.miss(pod("lone", cpu=1))
    rig.wait(400)
    assert all_of(ReportStatus, rig.attempts())
