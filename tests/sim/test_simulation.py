"""The passing of time, the delivery of observations, and the results of actions."""

from collections.abc import Sequence
from functools import partial

import pytest

from podium.api.errors import InputError, PodiumError
from podium.controllers.actions import Action, Bind
from podium.controllers.deadlines import AT_ONCE, Deadline
from podium.controllers.observations import ActionFinished, Observation, Problem
from podium.sim.faults import FaultOutcome
from podium.store.store import Store
from tests.sim.faults import ANSWER_LOST, NO_ANSWER, REFUSED, STUMBLED
from tests.sim.first_fit import FirstFit
from tests.sim.objects import owned, scenario, template, workload
from tests.sim.planned_faults import BindFates
from tests.sim.played import played, pods, reported, simulation_of
from tests.store.objects import SECOND, Raw, node, pod

LASTS = {"podium.dev/duration": "90s"}


class Listening(FirstFit):
    """A scheduler that notes when it is answered."""

    def __init__(self) -> None:
        super().__init__()
        self.answered: list[tuple[int, Problem | None]] = []

    def handle(self, observation: Observation, now: int) -> list[Action]:
        if isinstance(observation, ActionFinished) and isinstance(observation.action, Bind):
            self.answered.append((now, observation.problem))
        return super().handle(observation, now)


def test_there_may_be_more_at_the_start_than_the_log_of_the_store_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("podium.sim.simulation.Store", partial(Store, log_capacity=20))

    simulation = simulation_of(node("n1", cpu="40"), *(pod(f"pod-{index}", node="n1") for index in range(30)))

    assert len(pods(simulation)) == 30
    assert (usage := simulation.meters.usage(simulation.now)).shares_at(usage.level)["cpu"] == 0.75


def test_a_pending_pod_is_bound_started_and_finished_in_virtual_time() -> None:
    simulation = played(node("n1"), pod("a", annotations=LASTS))

    assert reported(simulation) == [
        "0 Scheduled default/a on n1 by default-scheduler",
        "0 Started default/a on n1 by kubelet",
        "90 Finished default/a on n1 by kubelet",
    ]
    assert simulation.elapsed_ns == 90 * SECOND


def test_binding_and_starting_take_their_time() -> None:
    simulation = played(node("n1"), pod("a"), bind_delay_ns=2 * SECOND, start_delay_ns=SECOND // 2)

    assert reported(simulation) == [
        "2 Scheduled default/a on n1 by default-scheduler",
        "2.5 Started default/a on n1 by kubelet",
    ]


def test_a_simulation_ends_when_no_work_is_left() -> None:
    simulation = played(node("n1", cpu=1), pod("a"), pod("b"))

    assert simulation.elapsed_ns == 0
    assert pods(simulation)["b"].status.phase == "Pending"


def test_a_simulation_ends_at_until_with_work_left() -> None:
    late = {"at": "61s", "apply": [pod("b")]}
    simulation = played(node("n1"), pod("a", annotations=LASTS), scenario(late, until="1m"))

    assert simulation.elapsed_ns == 60 * SECOND
    assert list(pods(simulation)) == ["a"]
    assert pods(simulation)["a"].status.phase == "Running"


def test_actions_due_at_until_still_happen() -> None:
    simulation = played(node("n1"), scenario({"at": "1m", "apply": [pod("b")]}, until="1m"))

    assert reported(simulation, "Started") == ["60 Started default/b on n1 by kubelet"]


def test_steps_of_one_time_are_played_one_after_the_other_each_with_what_comes_of_it() -> None:
    steps = [{"at": "5s", "apply": [pod("low", priority=1)]}, {"at": "5s", "apply": [pod("high", priority=9)]}]
    simulation = played(node("n1", cpu=1), scenario(*steps))

    assert reported(simulation, "Created", "Scheduled") == [
        "5 Created default/low by scenario",
        "5 Scheduled default/low on n1 by default-scheduler",
        "5 Created default/high by scenario",
    ]


def test_a_scheduler_sees_every_object_and_its_end() -> None:
    scheduler = FirstFit()
    steps = [{"at": "1s", "delete": {"kind": "Pod", "name": "a"}}]
    waiting = pod("a", cpu=99)

    played(node("n1"), workload("Deployment", "web", 0), waiting, scenario(*steps), schedulers=[scheduler])

    assert {"+Node n1", "+Deployment default/web", "+Pod default/a", "-Pod default/a"} <= set(scheduler.seen)


def test_each_scheduler_binds_the_pods_that_name_it() -> None:
    other = pod("b", spec={"schedulerName": "other"})
    simulation = played(node("n1"), pod("a"), other, schedulers=[FirstFit(), FirstFit("other")])

    assert reported(simulation, "Scheduled") == [
        "0 Scheduled default/a on n1 by default-scheduler",
        "0 Scheduled default/b on n1 by other",
    ]


def test_two_schedulers_that_race_for_room_are_judged_by_the_kubelet() -> None:
    rivals = [FirstFit(), FirstFit("other")]
    first, second = pod("a"), pod("b", spec={"schedulerName": "other"})

    simulation = played(node("n1", cpu=1), first, second, schedulers=rivals, bind_delay_ns=SECOND)

    assert reported(simulation, "Failed") == ["1 Failed default/b on n1 by kubelet"]
    assert pods(simulation)["a"].status.phase == "Running"


def test_a_refused_action_is_answered_and_not_carried_out() -> None:
    scheduler = Listening()

    simulation = played(node("n1"), pod("a"), schedulers=[scheduler], faults=BindFates(REFUSED))

    assert [problem for _, problem in scheduler.answered] == [STUMBLED, None]
    assert reported(simulation, "Scheduled") == ["1 Scheduled default/a on n1 by default-scheduler"]


def test_an_action_whose_answer_is_lost_is_carried_out_once() -> None:
    scheduler = Listening()

    simulation = played(node("n1"), pod("a"), schedulers=[scheduler], faults=BindFates(ANSWER_LOST))

    assert scheduler.answered == [(simulation.settings.start_ns, NO_ANSWER)]
    assert reported(simulation, "Scheduled") == ["0 Scheduled default/a on n1 by default-scheduler"]


def test_an_answer_may_come_late() -> None:
    scheduler = Listening()

    simulation = played(
        node("n1"), pod("a"), schedulers=[scheduler], faults=BindFates(FaultOutcome(delay_ns=3 * SECOND))
    )

    assert scheduler.answered == [(simulation.settings.start_ns + 3 * SECOND, None)]
    assert reported(simulation, "Scheduled") == ["0 Scheduled default/a on n1 by default-scheduler"]


def test_an_action_for_another_uid_is_refused() -> None:
    class Confused(Listening):
        def handle(self, observation: Observation, now: int) -> list[Action]:
            actions = super().handle(observation, now)
            return [Bind(one.pod, "someone-else", one.node_name) if isinstance(one, Bind) else one for one in actions]

    scheduler = Confused()
    simulation = played(node("n1"), pod("a"), schedulers=[scheduler], until_ns=0)

    problem = scheduler.answered[0][1]
    assert problem is not None
    assert (problem.code, problem.reason) == (409, "Conflict")
    assert pods(simulation)["a"].spec.node_name == ""


@pytest.mark.parametrize("order", [1, -1])
def test_the_order_of_the_input_does_not_matter(order: int) -> None:
    objects = [node("n1", cpu=2), node("n2", cpu=2), *(pod(name) for name in "edcba"), workload("ReplicaSet", "web", 2)]

    simulation = played(*objects[::order])

    in_first_order = played(*objects)
    assert simulation.history.events == in_first_order.history.events
    assert [one.uid for one in simulation.store.objects("Pod")] == [
        one.uid for one in in_first_order.store.objects("Pod")
    ]


def test_pods_that_end_as_soon_as_they_start_are_replaced_more_and_more_slowly() -> None:
    endless = workload("ReplicaSet", "web", 1, template=template(duration="0s"))

    simulation = played(node("n1"), endless, until_ns=16 * SECOND)

    assert [line.split()[0] for line in reported(simulation, "Created")] == ["0", "1", "3", "7", "15"]


def test_endless_work_at_one_instant_is_an_error() -> None:
    class Restless(FirstFit):
        def deadline(self) -> Deadline:
            return AT_ONCE

    with pytest.raises(PodiumError, match="scheduler-0 goes on for ever at one instant"):
        played(node("n1"), schedulers=[Restless()])


@pytest.mark.parametrize("annotation", [{"duration": "5s"}, {"memory-usage": "1Gi"}])
def test_pods_that_are_replaced_for_ever_need_an_end(annotation: dict[str, str]) -> None:
    with pytest.raises(InputError, match=r"Deployment default/web.*replaced for ever; say when to stop"):
        played(node("n1"), workload("Deployment", "web", 1, template=template(**annotation)))


def steps_refused(*steps: Raw) -> str:
    with pytest.raises(InputError) as caught:
        played(node("n1"), pod("a"), scenario(*steps))
    return str(caught.value)


def test_a_step_that_the_api_server_rejects_is_an_error_at_the_step() -> None:
    unknown = pod("b", spec={"priorityClassName": "high"})

    error = steps_refused({"at": "1s", "apply": [unknown]})

    assert error.startswith("test.json, document 1, Scenario test, .spec.steps[0].apply[0]: Pod default/b is forbidden")


@pytest.mark.parametrize(
    ("field", "object_"),
    [
        ("spec.containers", {**pod("b"), "spec": {}}),
        ("spec.containers", {key: value for key, value in pod("b").items() if key != "spec"}),
        ("spec.containers[0].image", pod("b", spec={"containers": [{"name": "c"}]})),
        ("spec.template.spec.containers", workload("ReplicaSet", "b", 1, template={**template(), "spec": {}})),
    ],
)
def test_a_step_that_creates_an_object_without_a_required_field_is_refused(field: str, object_: Raw) -> None:
    error = steps_refused({"at": "1s", "apply": [object_]})

    assert f".spec.steps[0].apply[0]: {object_['kind']} default/b is invalid: {field}: Required value" in error


def test_a_step_may_change_the_labels_of_a_pod_alone() -> None:
    labelled = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "labels": {"tier": "front"}}}

    simulation = played(node("n1"), pod("a"), scenario({"at": "1s", "apply": [labelled]}))

    assert pods(simulation)["a"].metadata.labels == {"tier": "front"}


@pytest.mark.parametrize(
    "step",
    [{"delete": {"kind": "Pod", "name": "x"}}, {"delete": {"kind": "Node", "name": "x"}}, {"finish": {"name": "x"}}],
)
def test_a_step_about_what_never_existed_is_an_error(step: Raw) -> None:
    assert "there is no" in steps_refused({"at": "1s", **step})


def test_a_late_step_is_skipped_with_an_event() -> None:
    steps = [
        {"at": "1s", "finish": {"name": "waiting"}},
        {"at": "2s", "delete": {"kind": "Pod", "name": "waiting"}},
        {"at": "3s", "delete": {"kind": "Pod", "name": "waiting"}},
        {"at": "4s", "finish": {"name": "waiting"}},
    ]
    simulation = played(node("n1"), pod("waiting", cpu=99), scenario(*steps))

    assert [(event.time, event.message) for event in simulation.history.events if event.reason == "StepSkipped"] == [
        (1, "it is not running"),
        (3, "it is gone"),
        (4, "it is gone"),
    ]


@pytest.mark.parametrize("change", ["evict", "finish"])
def test_a_step_that_picks_a_pod_of_a_workload_picks_one_that_is_not_terminating(change: str) -> None:
    owner = workload("ReplicaSet", "web", 2, uid="rs")
    slow = {"terminationGracePeriodSeconds": 60}
    mine = [owned(pod(name, node="n1", spec=slow), owner) for name in ("web-1", "web-2")]
    steps = [
        {"at": "1s", "evict": {"name": "web-1"}},
        {"at": "2s", change: {"kind": "ReplicaSet", "name": "web"}},
    ]

    simulation = played(node("n1", cpu=2), owner, *mine, scenario(*steps, until="10s"))

    ended = [event.pod for event in simulation.history.events if event.reason in ("Evicted", "Finished", "Killing")]
    assert ended == ["default/web-1", "default/web-2"]


def test_a_step_about_a_workload_whose_pods_are_all_terminating_is_skipped() -> None:
    owner = workload("ReplicaSet", "web", 1, uid="rs")
    only = owned(pod("web-1", node="n1", labels={"app": "web"}, spec={"terminationGracePeriodSeconds": 60}), owner)
    steps = [
        {"at": "1s", "scale": {"kind": "ReplicaSet", "name": "web", "replicas": 0}},
        {"at": "2s", "evict": {"kind": "ReplicaSet", "name": "web"}},
        {"at": "3s", "delete": {"kind": "Pod", "selector": "app=web"}},
    ]

    simulation = played(node("n1"), owner, only, scenario(*steps, until="10s"))

    assert [(event.time, event.message) for event in simulation.history.events if event.reason == "StepSkipped"] == [
        (2, "all pods of the ReplicaSet are terminating"),
        (3, "each Pod that matches app=web is terminating"),
    ]


def test_applying_to_an_existing_object_changes_what_is_given() -> None:
    larger = {**node("n1", cpu=4), "spec": {"unschedulable": True}}
    labelled = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "labels": {"tier": "front"}}}
    labelled["spec"] = pod("a")["spec"]
    steps = [{"at": "1s", "apply": [larger, labelled]}]

    simulation = played(node("n1", cpu=2), pod("a", priority=7), scenario(*steps))

    stored = simulation.store.get("Node", "n1").raw
    assert stored["status"]["allocatable"]["cpu"] == 4
    assert stored["spec"]["unschedulable"] is True
    assert pods(simulation)["a"].metadata.labels == {"tier": "front"}
    assert (pods(simulation)["a"].priority, pods(simulation)["a"].spec.node_name) == (7, "n1")
    changes = [line for line in reported(simulation, "NodeChanged") if line.endswith("by scenario")]
    assert changes == ["1 NodeChanged on n1 by scenario"] * 2


def test_a_simulation_steps_one_thing_at_a_time() -> None:
    simulation = simulation_of(node("n1"), pod("a"), pod("b"))
    bound: list[Sequence[str]] = []

    while simulation.step():
        bound.append([name for name, one in pods(simulation).items() if one.spec.node_name])

    assert bound[:2] == [["a"], ["a", "b"]]
