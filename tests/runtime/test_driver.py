"""The delivery of observations to components, their order, and when components act."""

from collections.abc import Callable

import pytest

from podium.api.meta import Kubernetes, ObjectMeta
from podium.controllers.actions import Action, DeleteObject, Record
from podium.controllers.controller import DISRUPTED, EVERY, NO_CHANGE, PLACED, UNOWNED, IdleDeferral
from podium.controllers.deadlines import NEVER, Deadline
from podium.controllers.observations import ActionFinished, Changed, Deleted, Observation, Problem, Tick
from podium.runtime.runtime import Component, RequestedAction, Runtime
from tests.runtime.fakes import FakeTransport

THING = Kubernetes(api_version="v1", kind="Pod")


def thing(name: str) -> Kubernetes:
    return Kubernetes(api_version="v1", kind="Pod", metadata=ObjectMeta(name=name, uid=name))


NO_ANSWER = Problem(0, "Timeout", "no answer came")


def deletion(name: str) -> DeleteObject:
    return DeleteObject("Pod", name, "u", "test")


class Noting:
    """A controller that records its observations in a shared list, and requests scripted actions."""

    def __init__(
        self, name: str, notes: list[str], *, watches: str = "Pod", idle_deferral: IdleDeferral | None = None
    ) -> None:
        self.name = name
        self.notes = notes
        self.watches = frozenset(watches.split())
        self.pod_aspects = EVERY
        self.idle_deferral: IdleDeferral | None = idle_deferral
        self.is_idle = idle_deferral is not None
        self.next = NEVER
        self.plan: list[Action] = []
        self.questions = 0
        self.is_unmoved = False

    def handle(self, observation: Observation, now: int) -> list[Action]:
        what = type(observation).__name__
        if isinstance(observation, ActionFinished) and isinstance(observation.action, DeleteObject):
            what += f" {observation.action.key}"
        self.notes.append(f"{self.name} {what} {now}")
        if isinstance(observation, Tick):
            self.next = NEVER
        actions, self.plan = self.plan, []
        return NO_CHANGE if self.is_unmoved else actions

    def deadline(self) -> Deadline:
        self.questions += 1
        return self.next


class Rig:
    """A driver of controllers that record their observations."""

    def __init__(self, *watches: str, waits: str = "", idle_deferral: IdleDeferral | None = None) -> None:
        self.notes: list[str] = []
        self.transport = FakeTransport()
        self.driver = Runtime(self.transport)
        self.components: list[Component] = []
        self.idle_deferral = idle_deferral
        for index, one in enumerate(watches):
            name = "abc"[index]
            component = Component(name, self._maker(name, one), waits=name in waits)
            self.components.append(component)
            self.driver.add(component)
            self.driver.begin(component)

    def controller(self, index: int) -> Noting:
        controller = self.components[index].controller
        assert isinstance(controller, Noting)
        return controller

    def want(self, index: int, time_ns: int | None, *, keeps_alive: bool = True) -> None:
        """Send an observation to a controller, which has another deadline from then on."""
        self.controller(index).next = Deadline(time_ns, keeps_alive)
        self.driver.enqueue(self.components[index], Deleted(THING))
        self.driver.deliver(0)
        self.notes.clear()

    def log(self) -> list[str]:
        notes = list(self.notes)
        self.notes.clear()
        return notes

    def _maker(self, name: str, watches: str) -> Callable[[], Noting]:
        return lambda: Noting(name, self.notes, watches=watches, idle_deferral=self.idle_deferral)


def test_observers_of_a_kind_see_events_in_join_order() -> None:
    rig = Rig("Pod", "Node", "Node Pod")

    rig.driver.show("Pod", Changed(THING))
    rig.driver.show("Node", Deleted(THING))
    rig.driver.deliver(7)

    assert rig.log() == ["a Changed 7", "c Changed 7", "b Deleted 7", "c Deleted 7"]


def test_unwatched_kinds_are_delivered_to_no_component() -> None:
    rig = Rig("Pod")

    rig.driver.show("Node", Changed(THING))

    assert not rig.driver.has_mail


def test_a_pod_reaches_only_components_subscribed_to_the_change() -> None:
    rig = Rig("Pod", "Pod Node", "Pod")
    rig.controller(0).pod_aspects = UNOWNED
    rig.controller(2).pod_aspects = PLACED

    rig.driver.show("Pod", Changed(THING), EVERY | PLACED)
    rig.driver.show("Pod", Changed(THING), EVERY | UNOWNED)
    rig.driver.show("Pod", Changed(THING))
    rig.driver.deliver(7)

    assert rig.log() == [f"{name} Changed 7" for name in "bcababc"]


def test_an_idle_component_receives_deferred_observations_first() -> None:
    rig = Rig("Pod Node", idle_deferral=IdleDeferral(frozenset(("Pod",))))
    assert rig.driver.first_due(0) is None

    rig.driver.show("Pod", Changed(THING))
    assert not rig.driver.has_mail
    rig.driver.show("Node", Deleted(THING))
    rig.driver.deliver(7)

    assert rig.log() == ["a Changed 7", "a Deleted 7"]


def test_an_idle_component_receives_existing_pods_when_it_is_woken_up() -> None:
    rig = Rig("Pod Node", idle_deferral=IdleDeferral(frozenset(("Pod",))))
    nodes = ("Node", [Deleted(THING)], [EVERY])

    rig.driver.show_existing(rig.components[0], [nodes, ("Pod", [Changed(THING)], [EVERY])])
    rig.driver.deliver(6)
    assert rig.log() == ["a Deleted 6"]
    rig.driver.show("Node", Deleted(THING))
    rig.driver.deliver(7)

    assert rig.log() == ["a Changed 7", "a Deleted 7"]


@pytest.mark.parametrize("why", ["it is not idle", "an urgent kind follows", "a pod is urgent"])
def test_a_component_receives_existing_pods_in_their_order_if(why: str) -> None:
    rig = Rig("Pod Node", idle_deferral=IdleDeferral(frozenset(("Pod",)), unless=DISRUPTED))
    rig.controller(0).is_idle = why != "it is not idle"
    aspects = EVERY | DISRUPTED if why == "a pod is urgent" else EVERY
    nodes = ("Node", [Deleted(THING)], [EVERY]) if why == "an urgent kind follows" else None

    pods = ("Pod", [Changed(THING)], [aspects])
    rig.driver.show_existing(rig.components[0], [pods] if nodes is None else [pods, nodes])
    rig.driver.deliver(7)

    assert rig.log() == ["a Changed 7"] + ["a Deleted 7"] * (nodes is not None)


def test_existing_pods_wait_until_a_component_wakes_up_if_the_kinds_after_them_go_ahead() -> None:
    rig = Rig("Pod Node", idle_deferral=IdleDeferral(frozenset(("Pod",)), ahead=frozenset(("Node",))))
    nodes = ("Node", [Deleted(THING)], [EVERY])

    rig.driver.show_existing(rig.components[0], [("Pod", [Changed(THING)], [EVERY]), nodes])
    rig.driver.deliver(6)
    assert rig.log() == ["a Deleted 6"]
    rig.controller(0).is_idle = False
    rig.driver.show("Node", Changed(THING))
    rig.driver.deliver(7)

    assert rig.log() == ["a Changed 7", "a Changed 7"]


def test_a_component_receives_a_change_after_the_existing_pods() -> None:
    rig = Rig("Pod Node", idle_deferral=IdleDeferral(frozenset(("Pod",))))

    rig.driver.show_existing(rig.components[0], [("Pod", [Changed(THING)], [EVERY])])
    rig.driver.show("Pod", Deleted(THING))
    rig.driver.deliver(6)
    assert rig.log() == []
    rig.driver.show("Node", Changed(THING))
    rig.driver.deliver(7)

    assert rig.log() == ["a Changed 7", "a Deleted 7", "a Changed 7"]


@pytest.mark.parametrize("is_idle", [True, False])
def test_a_change_ahead_of_deferred_observations_wakes_a_component_that_is_not_idle_after_it(is_idle: bool) -> None:
    rig = Rig("Pod Node", idle_deferral=IdleDeferral(frozenset(("Pod",)), ahead=frozenset(("Node",))))
    rig.driver.show_existing(rig.components[0], [("Pod", [Deleted(THING)], [EVERY])])

    rig.driver.show("Node", Changed(THING))
    rig.controller(0).is_idle = is_idle
    rig.driver.deliver(7)

    assert rig.log() == ["a Changed 7"] + ["a Deleted 7"] * (not is_idle)


def test_a_component_that_begins_receives_the_pods_that_may_concern_it() -> None:
    rig = Rig("Pod Node")
    rig.controller(0).pod_aspects = UNOWNED

    aspects = [EVERY | PLACED, EVERY | UNOWNED]
    rig.driver.show_existing(rig.components[0], [("Pod", [Changed(THING), Deleted(THING)], aspects)])
    rig.driver.deliver(7)

    assert rig.log() == ["a Deleted 7"]


def test_an_idle_component_receives_urgent_pods_at_once_with_all_it_missed() -> None:
    rig = Rig("Pod", "Pod", idle_deferral=IdleDeferral(frozenset(("Pod",)), unless=DISRUPTED))
    rig.driver.first_due(0)
    rig.driver.show("Pod", Changed(thing("x")), EVERY)

    rig.driver.show("Pod", Deleted(thing("y")), EVERY | DISRUPTED)
    rig.driver.deliver(7)

    assert rig.log() == ["a Changed 7", "b Changed 7", "a Deleted 7", "b Deleted 7"]


def test_an_answer_comes_after_what_its_component_has_missed() -> None:
    rig = Rig("Pod", idle_deferral=IdleDeferral(frozenset(("Pod",))))
    rig.driver.first_due(0)
    rig.driver.show("Pod", Changed(THING))

    rig.driver.answer(RequestedAction(rig.components[0], 1, deletion("x")), ActionFinished(deletion("x")))
    rig.driver.deliver(7)

    assert rig.log() == ["a Changed 7", "a ActionFinished x 7"]


def test_a_due_or_busy_component_receives_all_observations_at_once() -> None:
    rig = Rig("Pod", "Pod", idle_deferral=IdleDeferral(frozenset(("Pod",))))
    rig.controller(0).next = Deadline(9, True)
    rig.controller(1).is_idle = False
    rig.driver.first_due(0)

    rig.driver.show("Pod", Changed(THING))
    rig.driver.deliver(7)

    assert rig.log() == ["a Changed 7", "b Changed 7"]


def test_a_restarted_component_misses_no_observation() -> None:
    rig = Rig("Pod Node", "Pod Node", idle_deferral=IdleDeferral(frozenset(("Pod",))))
    rig.driver.first_due(0)
    rig.driver.show("Pod", Changed(THING))

    rig.driver.begin(rig.components[0])
    rig.driver.stop(rig.components[1])
    rig.driver.show("Node", Deleted(THING))
    rig.driver.deliver(7)

    assert rig.log() == ["a Deleted 7"]


def test_a_component_that_wakes_without_observation_is_detected() -> None:
    rig = Rig("Pod", idle_deferral=IdleDeferral(frozenset(("Pod",))))
    rig.driver.first_due(0)
    rig.driver.check()

    rig.controller(0).is_idle = False

    with pytest.raises(AssertionError, match="a became active without a call"):
        rig.driver.check()


def test_an_answer_comes_after_what_happened_before_it() -> None:
    rig = Rig("Pod")
    asked = RequestedAction(rig.components[0], rig.components[0].began, deletion("p"))

    rig.driver.show("Pod", Changed(THING))
    rig.driver.answer(asked, ActionFinished(asked.action))
    rig.driver.deliver(0)

    assert rig.log() == ["a Changed 0", "a ActionFinished p 0"]


def test_answers_to_recorded_events_reach_no_component() -> None:
    rig = Rig("Pod")
    record = Record("default/web", "u", "Normal", "Scheduled", "on node a")

    rig.driver.answer(RequestedAction(rig.components[0], 1, record), ActionFinished(record, NO_ANSWER))

    assert not rig.driver.has_mail


def test_actions_are_sent_in_order_under_the_name_of_their_component() -> None:
    rig = Rig("Pod")
    rig.controller(0).plan = [deletion("p"), deletion("q")]

    rig.driver.show("Pod", Changed(THING))
    rig.driver.deliver(3)

    assert [one.action for one in rig.transport.asked] == [deletion("p"), deletion("q")]
    assert {one.component.name for one in rig.transport.asked} == {"a"}
    assert rig.transport.times == [3, 3]


def test_a_stopped_component_receives_no_pending_observations() -> None:
    rig = Rig("Pod", "Pod")
    first = rig.components[0]
    asked = RequestedAction(first, first.began, deletion("p"))
    rig.driver.show("Pod", Changed(THING))
    rig.driver.answer(asked, ActionFinished(asked.action))

    rig.driver.stop(first)
    rig.driver.begin(first, [Deleted(THING)])
    rig.driver.answer(asked, ActionFinished(asked.action, NO_ANSWER))
    rig.driver.deliver(0)

    assert rig.log() == ["b Changed 0", "a Deleted 0"]


def test_a_component_that_goes_down_over_an_action_asks_for_no_more() -> None:
    rig = Rig("Pod")
    rig.controller(0).plan = [deletion("p"), deletion("q")]
    send = rig.transport.send

    def crash(requested: RequestedAction, now: int) -> None:
        send(requested, now)
        rig.driver.stop(requested.component)

    rig.transport.send = crash  # type: ignore[method-assign]
    rig.driver.show("Pod", Changed(THING))
    rig.driver.deliver(0)

    assert [one.action for one in rig.transport.asked] == [deletion("p")]
    assert rig.driver.expects_news()
    assert rig.driver.next_time(0) is None


def test_only_a_called_component_is_asked_for_its_deadline() -> None:
    rig = Rig("Pod", "Node")
    rig.driver.first_due(0)
    before = [rig.controller(index).questions for index in range(2)]

    rig.driver.show("Pod", Changed(THING))
    rig.driver.deliver(0)
    for now in range(10):
        rig.driver.first_due(now)
        rig.driver.next_time(now)
        rig.driver.expects_news()

    assert [rig.controller(index).questions for index in range(2)] == [before[0] + 1, before[1]]


def test_a_component_that_returns_no_change_keeps_its_deadline() -> None:
    rig = Rig("Pod", "Pod")
    rig.driver.first_due(0)
    before = [rig.controller(index).questions for index in range(2)]
    rig.controller(0).is_unmoved = True

    rig.driver.show("Pod", Changed(THING))
    rig.driver.deliver(0)
    rig.driver.next_time(0)

    assert rig.log() == ["a Changed 0", "b Changed 0"]
    assert [rig.controller(index).questions for index in range(2)] == [before[0], before[1] + 1]


def test_the_first_joined_due_component_acts_first_and_delayed_actions_stand_alone() -> None:
    rig = Rig("Pod", "Pod", "Pod", waits="a")
    rig.want(0, 0)
    rig.want(2, 3)
    rig.want(1, 5)

    assert rig.driver.first_due(2) is None
    assert rig.driver.next_time(2) == 2
    assert rig.driver.first_due(2, waits=True) is rig.components[0]
    assert rig.driver.first_due(3) is rig.components[2]
    assert rig.driver.first_due(5) is rig.components[1]

    rig.driver.wake(rig.components[1], 5)
    assert rig.log() == ["b Tick 5"]
    assert rig.driver.first_due(5) is rig.components[2]


@pytest.mark.parametrize("keeps_alive", [True, False])
def test_the_driver_is_alive_while_a_component_keeps_it_alive(keeps_alive: bool) -> None:
    rig = Rig("Pod", "Pod")

    rig.want(1, 5, keeps_alive=keeps_alive)

    assert rig.driver.expects_news() is keeps_alive
    assert rig.driver.next_time(0) == 5


def test_a_component_that_left_receives_no_observations() -> None:
    rig = Rig("Pod", "Pod")
    rig.want(0, 0)
    rig.driver.show("Pod", Changed(THING))

    rig.driver.remove(rig.components[0])
    rig.driver.show("Pod", Changed(THING))
    rig.driver.deliver(0)

    assert rig.log() == ["b Changed 0", "b Changed 0"]
    assert rig.driver.first_due(0) is None
    assert not rig.driver.expects_news()
    assert [one.name for one in rig.driver.components] == ["b"]


def test_lives_are_counted_for_each_component() -> None:
    rig = Rig("Pod", "Pod")

    rig.driver.stop(rig.components[0])
    rig.driver.begin(rig.components[0])

    assert [one.life for one in rig.components] == [2, 1]


def test_a_controller_whose_deadline_changes_by_itself_is_found() -> None:
    rig = Rig("Pod")
    rig.driver.first_due(0)
    rig.driver.check()

    rig.controller(0).next = Deadline(5, True)

    with pytest.raises(AssertionError, match="without a call"):
        rig.driver.check()
