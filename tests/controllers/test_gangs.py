"""Pods of a gang are placed together or not at all, whatever fails meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.pod_group import Condition, PodGroup
from podium.cluster.pods import PodRecord
from podium.controllers.actions import Action, Bind, Evict, PatchObject, ReportStatus, ReportUnschedulable
from podium.controllers.observations import Problem
from podium.controllers.scheduling.queue.queued_pod import QueuePlace
from podium.framework.handle import CycleState
from podium.framework.plugin import PermitResult, PluginContext
from podium.framework.settings.configuration import API_VERSION, KIND, read_configuration
from podium.framework.verdicts import SUCCESS, Code, Status
from tests.builders import ZONE, configuration, member, node, pod, pod_group
from tests.controllers.driving import (
    CONFLICT,
    NO_ANSWER,
    NOT_FOUND,
    REFUSED,
    Driver,
    all_of,
    deletions,
    events,
    on,
    the,
)

WAITING = "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled"


def driver(*objects: Any, args: dict[str, Any] | None = None, plugins: Sequence[str] = ()) -> Driver:
    enabled = {"multiPoint": {"enabled": ["GangScheduling", *plugins]}}
    return Driver(*objects, settings=configuration({"GangScheduling": args or {}}, plugins=enabled))


def workers(number: int, *, cpu: int = 2, group: str = "g", first: int = 0, **traits: Any) -> list[Pod]:
    return [member(group, f"{group}-{index}", cpu=cpu, **traits) for index in range(first, first + number)]


def bound(actions: Sequence[Action]) -> list[str]:
    return [bind.pod.partition("/")[2] for bind in all_of(Bind, actions)]


def condition(actions: Sequence[Action]) -> tuple[str, str, str]:
    (written,) = the(PatchObject, actions).patch["status"]["conditions"]
    return written["status"], written["reason"], written.get("message", "")


class TestTheQueue:
    def test_pods_wait_for_their_group_and_say_nothing(self) -> None:
        rig = driver(node("n", cpu=8), *(pods := workers(2)))

        assert rig.attempts() == []
        assert [rig.where(each) for each in pods] == [QueuePlace.GATED] * 2

        rig.see(pod_group("g", 2))
        assert bound(rig.attempts()) == ["g-0", "g-1"]

    def test_pods_wait_for_others_of_their_gang_and_say_nothing(self) -> None:
        first, second, third = workers(3)
        rig = driver(node("n", cpu=8), pod_group("g", 3), first, second)

        assert rig.attempts() == []
        assert rig.where(first) is QueuePlace.GATED

        rig.see(third)
        assert bound(rig.attempts()) == ["g-0", "g-1", "g-2"]

    def test_the_member_that_was_attempted_first_is_placed_first(self) -> None:
        newer, older = workers(2)
        rig = driver(node("n", cpu=1), pod_group("g", 1), older)
        assert bound(rig.attempts()) == []

        rig.wait(5)
        rig.see(newer, node("m", cpu=2))

        assert bound(rig.attempts()) == ["g-1"]

    def test_pods_that_are_on_their_way_out_do_not_count(self) -> None:
        (first, second), leaving = workers(2), member("g", "g-2", cpu=2, on="n", terminating=True)
        rig = driver(node("n", cpu=8), pod_group("g", 3), first, second, leaving)

        assert rig.attempts() == []

    def test_a_lowered_gang_minimum_releases_its_pods(self) -> None:
        rig = driver(node("n", cpu=8), pod_group("g", 3), *workers(2))
        rig.attempts()

        rig.see(pod_group("g", 2))

        assert bound(rig.attempts()) == ["g-0", "g-1"]

    @pytest.mark.parametrize("plain", [(), (node("n", cpu=8),)])
    def test_a_gang_that_found_no_domain_is_tried_again_when_a_node_brings_one(self, plain: tuple[Node, ...]) -> None:
        pods = workers(2)
        rig = driver(*plain, pod_group("g", 2, topology=ZONE), *pods)
        assert bound(rig.attempts()) == []

        rig.see(node("m", cpu=8))
        assert [rig.where(each) for each in pods] == [QueuePlace.UNSCHEDULABLE] * 2
        rig.see(node("n", cpu=8, zone="z"))
        rig.wait(60)

        assert bound(rig.attempts()) == ["g-0", "g-1"]

    def test_pods_of_a_gang_that_lost_one_before_its_attempt_wait_again(self) -> None:
        pods = workers(3)
        rig = driver(node("n", cpu=8), pod_group("g", 3), *pods)

        rig.miss(pods[2])

        assert rig.attempts() == []
        assert [rig.where(each) for each in pods] == [QueuePlace.GATED, QueuePlace.GATED, None]

    def test_without_the_plugin_groups_mean_nothing(self) -> None:
        rig = Driver(node("n", cpu=2), pod_group("g", 2), *workers(2))

        assert bound(rig.attempts()) == ["g-0"]

    def test_pods_of_no_group_pass(self) -> None:
        rig = driver(node("n", cpu=2), pod("p", cpu=1))

        assert bound(rig.attempts()) == ["p"]

    def test_the_older_label_names_a_group_too(self) -> None:
        labels = {"scheduling.x-k8s.io/pod-group": "g"}
        rig = driver(node("n", cpu=8), pod_group("g", 2), pod("a", cpu=1, labels=labels))

        assert rig.attempts() == []

        rig.see(pod("b", cpu=1, labels=labels))
        assert bound(rig.attempts()) == ["a", "b"]


class TestTheAttempt:
    def test_none_goes_where_too_few_fit_and_all_say_why(self) -> None:
        rig = driver(node("n", cpu=5), pod_group("g", 3), *workers(3))

        actions = rig.attempts()

        assert bound(actions) == []
        report = {each.pod.partition("/")[2]: each.message for each in all_of(ReportUnschedulable, actions)}
        in_vain = "0/1 nodes are available: 1 Insufficient cpu. preemption: No preemption victims found"
        assert (report["g-0"], report["g-1"]) == (WAITING, WAITING)
        assert report["g-2"].startswith(in_vain)
        assert condition(actions) == ("False", "Unschedulable", "pod group is unschedulable")
        assert not rig.scheduler.cluster.placed

    def test_a_gang_starts_all_fitting_members_when_the_minimum_fits(self) -> None:
        rig = driver(node("n", cpu=5), pod_group("g", 2), *(pods := workers(3)))

        actions = rig.attempts()

        assert bound(actions) == ["g-0", "g-1"]
        assert condition(actions) == ("True", "Scheduled", "")
        assert rig.where(pods[2]) is QueuePlace.UNSCHEDULABLE

    def test_gangs_are_attempted_by_priority_then_by_first_attempt(self) -> None:
        rig = driver(node("n", cpu=4), pod_group("g", 2))
        rig.see(*workers(1))
        rig.wait(1)
        rig.see(member("g", "later", cpu=2), member("g", "important", cpu=2, priority=5))

        assert bound(rig.attempts()) == ["important", "g-0"]

    def test_later_pods_of_a_gang_that_has_enough_go_on_their_own(self) -> None:
        rig = driver(node("n", cpu=8), pod_group("g", 2))
        rig.place_group(workers(2))

        rig.see(*workers(1, first=2))

        assert bound(rig.attempts()) == ["g-2"]

    def test_a_gang_that_lost_a_pod_needs_one_and_no_more(self) -> None:
        rig = driver(node("n", cpu=4), pod_group("g", 2))
        pods = rig.place_group(workers(2))

        rig.miss(pods[0])
        rig.see(*workers(1, first=2))

        assert bound(rig.attempts()) == ["g-2"]

    def test_an_event_that_helps_one_member_wakes_the_gang(self) -> None:
        rig = driver(node("n", cpu=4), pod_group("g", 3), *(pods := workers(3)))
        rig.attempts()
        assert [rig.where(each) for each in pods] == [QueuePlace.UNSCHEDULABLE] * 3

        rig.see(node("m", cpu=4))
        rig.wait(5)

        assert bound(rig.attempts()) == ["g-0", "g-1", "g-2"]

    def test_a_smaller_pods_better_place_makes_room_for_a_larger_one(self) -> None:
        """Room for one opens where the other does not fit: the first moves there, and the other takes its place."""
        batch = pod("batch", cpu=7, on="m")
        rig = driver(node("n", cpu=3, zone="z"), node("m", cpu=8, zone="z"), batch, pod_group("g", 2))
        small = member("g", "small", cpu=2, priority=5)
        large = member("g", "large", cpu=3, node_selector={"kubernetes.io/hostname": "n"})
        rig.see(small, large)
        rig.attempts()

        rig.miss(batch)
        rig.wait(5)

        assert sorted(bound(rig.attempts())) == ["large", "small"]

    def test_pods_of_a_group_that_is_no_gang_go_as_they_fit(self) -> None:
        rig = driver(node("n", cpu=2), pod_group("g"), *workers(2))

        actions = rig.attempts()

        assert bound(actions) == ["g-0"]
        assert condition(actions)[0] == "True"

    def test_a_group_that_was_scheduled_is_never_said_to_be_not(self) -> None:
        group = pod_group("g", 1)
        scheduled = Condition(type="PodGroupScheduled", status="True", reason="Scheduled")
        rig = driver(node("n", cpu=1), with_condition(group, scheduled), *workers(1))

        assert not all_of(PatchObject, rig.attempts())

    def test_a_condition_that_could_not_be_written_is_written_again(self) -> None:
        rig = driver(node("n", cpu=1), pod_group("g", 2), *workers(2))
        written = the(PatchObject, rig.attempts())

        rig.answer(written, REFUSED)
        rig.wait(1)

        assert all_of(PatchObject, rig.tick()) == [written]

    def test_a_gang_with_several_schedulers_is_an_error(self) -> None:
        enabled = {"multiPoint": {"enabled": [{"name": "GangScheduling"}]}}
        profiles = [{"schedulerName": name, "plugins": enabled} for name in ("default-scheduler", "other")]
        settings = read_configuration({"apiVersion": API_VERSION, "kind": KIND, "profiles": profiles}, "")
        rig = Driver(node("n", cpu=8), pod_group("g", 2), settings=settings)
        rig.see(*workers(1), member("g", "else", cpu=1, scheduler="other"))

        actions = rig.attempts()

        assert bound(actions) == []
        assert condition(actions)[1] == "SchedulerError"
        assert all(
            "should have the same .spec.schedulerName" in each.message for each in all_of(ReportUnschedulable, actions)
        )


class TestTheWay:
    """Failures between the decision and the binding."""

    def test_no_binding_is_asked_for_before_enough_are_ready(self) -> None:
        rig = driver(node("n", cpu=8), pod_group("g", 2), plugins=["tests.controllers.test_gangs:Slow"])
        slow = rig.plugin("Slow")
        slow.waits_for = {"g-1"}
        rig.see(*workers(2))

        assert bound(rig.attempts()) == []

        slow.let_go(rig)
        assert bound(rig.tick()) == ["g-0", "g-1"]

    def test_a_rejected_member_rejects_the_waiting_others(self) -> None:
        rig = driver(node("n", cpu=8), pod_group("g", 2), plugins=["tests.controllers.test_gangs:Slow"])
        slow = rig.plugin("Slow")
        slow.waits_for = {"g-1"}
        rig.see(*(pods := workers(2)))
        rig.attempts()

        slow.turn_down(rig)
        actions = rig.tick()

        assert bound(actions) == []
        assert [rig.holds(each) for each in pods] == ["", ""]
        assert not rig.scheduler.bindings.gathered

    def test_a_deleted_member_rejects_the_waiting_others(self) -> None:
        rig = driver(node("n", cpu=8), pod_group("g", 2), plugins=["tests.controllers.test_gangs:Slow"])
        rig.plugin("Slow").waits_for = {"g-1"}
        rig.see(*(pods := workers(2)))
        rig.attempts()

        rig.miss(pods[1])

        assert [rig.holds(each) for each in pods] == ["", ""]
        assert rig.where(pods[0]) is QueuePlace.GATED or not rig.attempts()

    def test_the_time_for_that_ends(self) -> None:
        rig = driver(
            node("n", cpu=8),
            pod_group("g", 2, annotations={"podium.dev/schedule-timeout-seconds": "10"}),
            plugins=["tests.controllers.test_gangs:Slow"],
        )
        rig.plugin("Slow").waits_for = {"g-1"}
        rig.see(*(pods := workers(2)))
        rig.attempts()
        assert rig.deadline_seconds == 10

        rig.wait(10)
        rig.tick()

        assert rig.holds(pods[0]) == ""

    def given_one_that_waits(self) -> tuple[Driver, list[Pod]]:
        """Two pods of a gang of two, of which one is ready and the other one waits at Permit."""
        rig = driver(node("n", cpu=8), pod_group("g", 2), plugins=["tests.controllers.test_gangs:Slow"])
        rig.plugin("Slow").waits_for = {"g-1"}
        rig.see(*(pods := workers(2)))
        assert bound(rig.attempts()) == []
        return rig, pods

    def test_a_deleted_group_rejects_its_waiting_members(self) -> None:
        rig, pods = self.given_one_that_waits()

        rig.miss(pod_group("g", 2))
        rig.plugin("Slow").let_go(rig)

        assert bound(rig.attempts()) == []
        assert [rig.holds(each) for each in pods] == ["", ""]
        assert not rig.scheduler.bindings.gathered
        rig.plugin("Slow").waits_for = set()
        rig.see(pod_group("g", 2))
        rig.wait(10)
        assert sorted(bound(rig.attempts())) == ["g-0", "g-1"]

    def test_a_lowered_gang_minimum_starts_the_ready_members(self) -> None:
        rig, pods = self.given_one_that_waits()

        actions = rig.see(pod_group("g", 1))

        assert bound([*actions, *rig.attempts()]) == ["g-0"]
        assert rig.holds(pods[1]) == "n"

    def test_a_raised_gang_minimum_rejects_waiting_members(self) -> None:
        rig, pods = self.given_one_that_waits()

        actions = rig.see(pod_group("g", 3))
        rig.plugin("Slow").let_go(rig)

        assert bound([*actions, *rig.attempts()]) == []
        assert [rig.holds(each) for each in pods] == ["", ""]

    def test_a_group_that_asks_for_more_than_are_bound_leaves_those_that_are(self) -> None:
        rig = driver(node("n", cpu=8), pod_group("g", 2), *(pods := workers(2)))
        for bind in all_of(Bind, rig.attempts()):
            rig.answer(bind)
        rig.see(*(on(each, "n") for each in pods))

        rig.see(pod_group("g", 4), *workers(1, first=2))
        assert bound(rig.attempts()) == []
        rig.see(*workers(1, first=3))

        assert sorted(bound(rig.attempts())) == ["g-2", "g-3"]
        assert all_of(Evict, rig.attempts()) == []

    @pytest.mark.parametrize("problem", [REFUSED, CONFLICT])
    def test_a_member_with_a_rejected_binding_is_retried_beside_the_others(self, problem: Any) -> None:
        rig = driver(node("n", cpu=8), pod_group("g", 2), *(pods := workers(2)))
        first, second = all_of(Bind, rig.attempts())

        rig.answer(first)
        rig.answer(second, problem)
        rig.wait(5)

        assert bound(rig.attempts()) == ["g-1"]
        assert rig.holds(pods[0]) == "n"

    def test_a_member_with_an_unanswered_binding_counts_as_bound(self) -> None:
        rig = driver(node("n", cpu=8), pod_group("g", 2), *workers(2))
        first, second = all_of(Bind, rig.attempts())

        rig.answer(first, NO_ANSWER)
        rig.answer(second)
        rig.wait(1)

        assert bound(rig.tick()) == ["g-0"]

    def test_a_missing_member_leaves_the_others_in_place(self) -> None:
        rig = driver(node("n", cpu=8), pod_group("g", 2), *workers(2))
        first, second = all_of(Bind, rig.attempts())

        rig.answer(first, NOT_FOUND)

        assert rig.answer(second)[-1:] != []

    def test_a_restarted_scheduler_continues_with_the_observed_gangs(self) -> None:
        pods = workers(3)
        rig = driver(node("n", cpu=8), pod_group("g", 3), on(pods[0], "n"), pods[1], pods[2])

        actions = rig.attempts()

        assert bound(actions) == ["g-1", "g-2"]
        assert condition(actions)[0] == "True"

    def test_a_scheduler_that_finds_a_whole_gang_reports_it(self) -> None:
        rig = driver(node("n", cpu=8), pod_group("g", 2))

        actions = rig.see(*(on(each, "n") for each in workers(2)))

        assert condition(actions) == ("True", "Scheduled", "")


class TestAnotherArrangement:
    def given(self, **args: Any) -> tuple[Driver, list[Pod]]:
        """Two small pods, which come first, and a large one that needs a node of its own; none preempts."""
        rig = driver(node("a", cpu=4), node("b", cpu=4), pod_group("g", 3), args=args)
        pods = [*workers(2, policy="Never"), member("g", "g-2", cpu=4, policy="Never")]
        rig.see(*pods)
        return rig, pods

    def test_without_arranging_the_gang_waits_as_in_kube_scheduler(self) -> None:
        rig, _ = self.given()

        assert bound(rig.attempts()) == []

    def test_gang_members_fit_with_an_arrangement_search(self) -> None:
        rig, pods = self.given(maxArrangementSteps=1_000)

        assert bound(rig.attempts()) == ["g-0", "g-1", "g-2"]
        assert rig.holds(pods[0]) == rig.holds(pods[1]) != rig.holds(pods[2])

    def test_an_arrangement_that_preemption_finds_without_victims_is_bound_at_once(self) -> None:
        rig = driver(node("a", cpu=4), node("b", cpu=4), pod_group("g", 3))
        pods = [*workers(2), member("g", "g-2", cpu=4)]
        rig.see(*pods)

        # No victim that ends would wake the members later.
        assert bound(rig.attempts()) == ["g-0", "g-1", "g-2"]
        assert rig.holds(pods[0]) == rig.holds(pods[1]) != rig.holds(pods[2])

    def test_too_few_steps_find_none(self) -> None:
        rig, _ = self.given(maxArrangementSteps=1)

        assert bound(rig.attempts()) == []


class TestPreemption:
    def given(self) -> tuple[Driver, list[Pod], list[Action]]:
        """Return a gang of two for which one pod goes on each of two nodes."""
        low = [pod(f"low-{name}", cpu=2, on=name, priority=1) for name in ("a", "b")]
        rig = driver(node("a", cpu=2), node("b", cpu=2), *low, pod_group("g", 2))
        pods = workers(2, priority=9)
        rig.see(*pods)
        return rig, pods, rig.attempts()

    def test_members_are_nominated_together_and_victims_go_by_one_plan(self) -> None:
        rig, pods, actions = self.given()

        assert sorted(rig.nominated(each) for each in pods) == ["a", "b"]
        assert deletions(actions) == ["mark default/low-a"] or deletions(actions) == ["mark default/low-b"]

    def test_no_member_is_tried_before_the_last_victim_is_seen_to_go(self) -> None:
        rig, pods, actions = self.given()
        rig.carry_out([each for each in actions if isinstance(each, ReportStatus)])

        rig.see(node("c", cpu=8))
        rig.wait(5)

        assert bound(rig.attempts()) == [] or rig.where(pods[0]) is not QueuePlace.GATED

    def test_no_pod_is_preempted_for_an_incomplete_gang(self) -> None:
        low = pod("low", cpu=2, on="a", priority=1)
        rig = driver(node("a", cpu=2), low, pod_group("g", 2))
        rig.see(*workers(2, priority=9))

        assert deletions(rig.attempts()) == []

    def test_gang_preemption_can_be_disabled_by_configuration(self) -> None:
        low = pod("low", cpu=2, on="a", priority=1)
        rig = driver(node("a", cpu=2), low, pod_group("g", 1), args={"preemption": False})
        rig.see(*workers(1, priority=9))

        assert deletions(rig.attempts()) == []

    def test_the_nominations_end_together(self) -> None:
        rig, pods, actions = self.given()
        done = rig.carry_out([each for each in actions if isinstance(each, ReportStatus)])
        assert len(deletions(done)) == 4

        rig.see(pod("urgent", cpu=2, priority=100))
        rig.attempts()

        assert [rig.nominated(each) for each in pods] == ["", ""]

    def test_the_gang_is_placed_when_its_victims_are_gone(self) -> None:
        rig, _, actions = self.given()
        rig.carry_out([each for each in actions if isinstance(each, ReportStatus)])

        rig.miss(*(pod(f"low-{name}", cpu=2, on=name, priority=1) for name in ("a", "b")))
        rig.wait(5)

        assert sorted(bound(rig.attempts())) == ["g-0", "g-1"]

    def test_the_others_are_tried_again_when_the_one_is_deleted_that_stood_for_them(self) -> None:
        rig, pods, _ = self.given()
        leader = next(each for each in pods if each.metadata.uid in rig.scheduler.gangs.state.leaders.values())

        rig.miss(leader)

        assert not rig.scheduler.gangs.state.leaders
        assert all(rig.where(each) is QueuePlace.GATED for each in pods if each is not leader)


class TestAGangInPart:
    def given(self, release_after: str = "1m") -> tuple[Driver, list[Pod]]:
        pods = workers(2)
        rig = driver(node("n", cpu=2), pod_group("g", 2), args={"releaseAfter": release_after})
        rig.see(on(pods[0], "n"), pods[1])
        rig.attempts()
        return rig, pods

    def test_an_incomplete_gang_gives_its_nodes_back_after_a_while(self) -> None:
        rig, _ = self.given()
        assert rig.deadline_seconds == 60

        rig.wait(60)
        actions = rig.tick()

        assert [evict.pod for evict in all_of(Evict, actions)] == ["default/g-0"]
        assert ("GangReleased", "default/g-0") in events(actions)

    @pytest.mark.parametrize(
        ("problem", "keeps_alive"),
        [
            (Problem(429, "TooManyRequests", "too many requests"), True),
            (NO_ANSWER, True),
            (Problem(429, "TooManyRequests", "a budget says no", cause="DisruptionBudget"), False),
            (Problem(403, "Forbidden", "a webhook says no"), False),
        ],
    )
    def test_a_refused_eviction_of_a_member_is_retried_unless_a_budget_refused(
        self, problem: Problem, keeps_alive: bool
    ) -> None:
        rig, _ = self.given()
        rig.wait(60)
        (evict,) = all_of(Evict, rig.tick())

        rig.answer(evict, problem)

        deadline = rig.scheduler.deadline()
        assert (rig.deadline_seconds, deadline.keeps_alive) == (60, keeps_alive)
        rig.wait(60)
        assert [again.pod for again in all_of(Evict, rig.tick())] == ["default/g-0"]

    def test_the_controller_evicts_no_pod_if_disabled(self) -> None:
        rig, _ = self.given("0s")

        rig.wait(3600)

        assert not all_of(Evict, rig.tick())

    def test_an_incomplete_gang_keeps_its_nodes_if_the_others_are_placed(self) -> None:
        rig, _ = self.given()

        rig.see(node("m", cpu=2))
        rig.wait(5)
        assert bound(rig.attempts()) == ["g-1"]
        rig.wait(60)

        assert not all_of(Evict, rig.tick())

    def test_an_incomplete_gang_keeps_its_nodes_if_the_others_have_ended(self) -> None:
        rig, pods = self.given()

        rig.miss(pods[1])
        rig.wait(60)

        assert not all_of(Evict, rig.tick())


def with_condition(group: PodGroup, condition: Condition) -> PodGroup:
    return msgspec.structs.replace(group, status=type(group.status)(conditions=(condition,)))


class Slow:
    """Has pods wait at Permit, by their names."""

    name = "Slow"

    def __init__(self, context: PluginContext) -> None:
        self.waits_for: set[str] = set()
        self._waiting = context.waiting_pods

    def permit(self, _state: CycleState, pod: PodRecord, _node_name: str) -> PermitResult:
        waits = pod.name in self.waits_for
        return PermitResult(Status(Code.WAIT), 10**15) if waits else PermitResult(SUCCESS)

    def let_go(self, rig: Driver) -> None:
        for waiting in self._waiting.all():
            waiting.allow(self.name)

    def turn_down(self, rig: Driver) -> None:
        for waiting in self._waiting.all():
            waiting.reject(self.name, "no")
