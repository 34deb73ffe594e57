"""Preemption of pods of equal priority, if the configuration allows it."""

from podium.api.pod import Pod
from podium.controllers.actions import Bind, Record, ReportStatus, ReportUnschedulable
from podium.controllers.scheduling.queue.queued_pod import QueuePlace
from tests.builders import configuration, node, pod
from tests.controllers.driving import Driver, all_of, deletions, events, nominated, terminating, the

FAIR = configuration({"DefaultPreemption": {"equalPriorityPreemption": True}})
MINE, THEIRS = "ReplicaSet/mine", "ReplicaSet/theirs"
P = pod("p", cpu=1, owner=MINE)


def theirs(count: int) -> list[Pod]:
    """Pods of the other owner, each on a node of its own."""
    return [pod(f"t{n}", on=f"n{n}", cpu=1, owner=THEIRS) for n in range(count)]


def full(count: int) -> Driver:
    """So many nodes, each with one of their pods."""
    return Driver(*(node(f"n{n}", cpu=1) for n in range(count)), *theirs(count), settings=FAIR)


def test_a_victim_is_informed_that_it_gave_way_to_an_equal() -> None:
    driver = full(2)
    driver.see(P)

    actions = driver.tick()

    mark = the(ReportStatus, actions)
    (target,) = mark.conditions
    assert (target.reason, mark.cause) == ("PreemptionByScheduler", "default/p")
    assert target.message == "default-scheduler: preempting to accommodate a pod of equal priority whose owner has less"
    assert the(ReportUnschedulable, actions).nominated_node_name == driver.nominated(P)


def test_the_pod_waits_for_its_victim_and_gets_its_room_though_the_replacement_is_tried_first() -> None:
    driver = full(2)
    driver.see(P)
    done = driver.carry_out(driver.tick())
    (victim,) = (one for one in theirs(2) if one.key == the(ReportStatus, done).key)
    driver.see(nominated(P, driver.nominated(P)), terminating(victim))
    driver.see(pod("replacement", cpu=1, owner=THEIRS))
    assert driver.where(P) is QueuePlace.UNSCHEDULABLE

    driver.miss(victim)

    assert driver.where(P) is QueuePlace.BACKOFF
    assert not all_of(Bind, driver.tick())
    assert the(Bind, driver.tick()).pod == "default/p"


def test_a_burst_of_pods_takes_its_owners_due_before_any_victim_is_seen_to_go() -> None:
    driver = full(6)
    driver.see(*(pod(f"p{n}", cpu=1, owner=MINE) for n in range(6)))

    marked = [one.key for one in all_of(ReportStatus, driver.attempts())]

    assert len(marked) == len(set(marked)) == 3


def test_nothing_of_it_happens_unless_it_is_switched_on() -> None:
    driver = Driver(node("n0", cpu=1), *theirs(1), node("n1", cpu=1), pod("t1", on="n1", cpu=1, owner=THEIRS), P)

    actions = driver.tick()

    assert deletions(actions) == []
    assert events(actions) == [("FailedScheduling", "default/p")]
    assert "No preemption victims found for incoming pod" in the(Record, actions).message
