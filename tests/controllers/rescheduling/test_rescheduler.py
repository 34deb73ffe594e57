"""The rescheduler as a controller: its schedule, evictions and moves, for any plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from podium.api.input.codec import decode
from podium.controllers.actions import Action, Evict, Record
from podium.controllers.deadlines import Deadline
from podium.controllers.observations import ActionFinished, Changed, Tick
from podium.controllers.rescheduling.rescheduler import Rescheduler
from podium.framework.rescheduling.settings import MoveLimitSettings
from podium.sim.faults import FaultOutcome
from podium.sim.simulation import Simulation
from tests.controllers.rescheduling.scripted import BAD, LATER, MINUTE, PLAIN, Script, cluster, finished, simulation
from tests.sim.faults import ANSWER_LOST, CARRIED_OUT, LOST, REFUSED, WatchDelivery
from tests.sim.objects import budget, scenario
from tests.sim.planned_faults import NoFaults
from tests.sim.played import pods, reported
from tests.store.objects import SECOND, Raw, disruption_policy, node, running

HOUR = 60 * MINUTE


def evictions(found: Simulation) -> list[float]:
    """Return when pods were evicted by the rescheduler."""
    return [event.time for event in found.history.events if event.reason == "Killing" and event.by == "rescheduler"]


def places(found: Simulation) -> list[str]:
    return sorted(one.spec.node_name for one in pods(found).values() if not one.is_terminating)


@dataclass
class OfEvictions(NoFaults):
    """The fates of the rescheduler's first evictions; and the numbers of those after which it is down for 20 s."""

    fates: Sequence[FaultOutcome] = ()
    crashes_after: Sequence[int] = ()
    counted: int = 0
    asked: list[str] = field(default_factory=list)

    def outcome(self, component: str, action: Action) -> FaultOutcome:
        if not isinstance(action, Evict):
            return CARRIED_OUT
        self.asked.append(action.pod)
        number = len(self.asked) - 1
        return self.fates[number] if number < len(self.fates) else CARRIED_OUT

    def outage_ns(self, component: str, action: Action, *, is_done: bool) -> int | None:
        if not isinstance(action, Evict) or not is_done:
            return None
        self.counted += 1
        return 20 * SECOND if self.counted in self.crashes_after else None


def test_the_rescheduler_plans_after_an_interval_and_moves_pods_until_all_is_quiet() -> None:
    found = finished(simulation(Script()))

    assert evictions(found) == [300, 360]
    assert places(found) == ["n2", "n2"]
    assert [event.message for event in found.history.events if event.reason == "Descheduled"] == [
        "moved off bad by Leave: it is a bad node; there is room on n2"
    ] * 2


def test_nothing_is_moved_while_it_is_paused() -> None:
    found = finished(simulation(Script(), settings=replace(PLAIN, is_paused=True)))

    assert evictions(found) == []


def test_the_pods_controller_is_put_on_the_avoid_list_for_as_long_as_the_policy_says() -> None:
    found = finished(simulation(Script(avoid_for_ns=30 * MINUTE)))

    changed = [event.message for event in found.history.events if event.reason == "NodeChanged" and event.node == BAD]
    assert changed[0] == "put on the avoid list: ReplicaSet web for 30m"


def test_moves_that_are_made_together_begin_with_the_one_that_finds_its_place_last() -> None:
    script = Script(at_once=2, together=True)
    found = finished(simulation(script))

    first, second = [event.pod for event in found.history.events if event.reason == "Descheduled"]
    assert evictions(found) == [300, 300]
    assert first is not None
    assert second is not None
    assert first > second


def test_a_refused_move_stops_the_rest_of_its_group() -> None:
    faults = OfEvictions(fates=[REFUSED])
    found = finished(simulation(Script(at_once=2, together=True), faults=faults, until_ns=305 * SECOND))

    assert len(faults.asked) == 1
    assert places(found) == [BAD, BAD]


def test_a_pod_that_a_budget_keeps_is_asked_for_less_and_less_and_that_keeps_no_run_going() -> None:
    found = finished(simulation(Script(), *cluster(budget("web", maxUnavailable=0), scenario(LATER))))

    assert evictions(found) == []
    assert found.elapsed_ns < HOUR


def test_a_move_blocked_by_a_budget_happens_when_the_budget_allows_it() -> None:
    steps: list[Raw] = [LATER, {"at": "20m", "delete": {"kind": "PodDisruptionBudget", "name": "web"}}]
    found = finished(simulation(Script(), *cluster(budget("web", maxUnavailable=0), scenario(*steps))))

    assert places(found) == ["n2", "n2"]
    assert evictions(found)[0] > 1200


def test_an_eviction_whose_answer_is_lost_is_not_asked_for_again() -> None:
    faults = OfEvictions(fates=[ANSWER_LOST])
    found = finished(simulation(Script(), faults=faults))

    assert len(faults.asked) == 2
    assert places(found) == ["n2", "n2"]


def test_an_eviction_that_was_lost_counts_as_under_way_for_a_minute_and_is_asked_for_again() -> None:
    faults = OfEvictions(fates=[LOST])
    script = Script()
    found = finished(simulation(script, faults=faults))

    assert len(faults.asked) == 3
    assert places(found) == ["n2", "n2"]


def test_a_pod_that_was_evicted_is_not_asked_to_go_again_while_that_is_not_seen() -> None:
    class Late(OfEvictions):
        def delivery(self, component: str, kind: str) -> WatchDelivery:
            return WatchDelivery(delay_ns=150 * SECOND if component == "rescheduler" and kind == "Pod" else 0)

    faults = Late()
    finished(simulation(Script(at_once=2), faults=faults, until_ns=1000 * SECOND))

    assert len(faults.asked) == len(set(faults.asked)) == 2


def test_moves_under_way_are_known_again_after_a_crash() -> None:
    objects = cluster(scenario(LATER), annotations={"podium.dev/ready-after": "20m"})
    settings = replace(PLAIN, in_flight=MoveLimitSettings(total=1))
    script = Script()
    found = simulation(
        script, *objects, settings=settings, faults=OfEvictions(crashes_after=[1]), until_ns=1900 * SECOND
    )

    assert evictions(finished(found)) == [1200, pytest.approx(1801)]
    first = script.inputs_seen[-2].past[0]
    assert (first.namespace, first.source) == ("default", BAD)
    assert first.evicted_ns == found.settings.start_ns + 1201 * SECOND - 1
    assert first.is_in_flight is False


def test_moves_of_the_last_hour_are_known_again_after_a_crash() -> None:
    script = Script()
    found = finished(simulation(script, faults=OfEvictions(crashes_after=[2]), until_ns=600 * SECOND))

    assert len(evictions(found)) == 2
    assert [past.is_in_flight for past in script.inputs_seen[-1].past] == [False, False]


def test_inputs_of_a_plan_that_would_be_made_later_omit_moves_that_no_longer_count_then() -> None:
    found = finished(simulation(Script(), until_ns=600 * SECOND))
    rescheduler = next(one.controller for one in found.runtime.components if isinstance(one.controller, Rescheduler))

    assert [len(rescheduler.show(found.now + later)[2].past) for later in (0, 2 * HOUR)] == [2, 0]


def test_an_owner_whose_replacement_came_back_is_left_alone_there_also_after_a_crash() -> None:
    for crashes in ([], [1]):
        steps: list[Raw] = [LATER, {"at": "299s", "cordon": {"name": "n2"}}, {"at": "330s", "uncordon": {"name": "n2"}}]
        script = Script()
        found = simulation(script, *cluster(scenario(*steps), replicas=1), faults=OfEvictions(crashes_after=crashes))
        while found.step() and found.elapsed_ns < 4100 * SECOND:
            pass

        assert evictions(found)[0] == 300
        assert [time for time in evictions(found) if 300 < time < 3899] == []


def test_its_rest_is_reached_though_a_replacement_comes_back_again_and_again() -> None:
    found = finished(simulation(Script(target="n2"), *cluster(scenario(), replicas=1)))

    assert len(evictions(found)) == 1


def test_the_next_of_several_is_evicted_only_if_its_plan_still_holds() -> None:
    script = Script(at_once=2)
    found = finished(simulation(script, settings=replace(PLAIN, in_flight=MoveLimitSettings(total=2))))

    # Its policy is not among the script's, so that a second look finds nothing: it waits for the next plan.
    assert evictions(found) == [300, 300] or evictions(found) == [300, 360]


def test_a_second_node_of_the_name_has_no_moves() -> None:
    steps: list[Raw] = [
        LATER,
        {"at": "400s", "delete": {"kind": "Node", "name": BAD}},
        {"at": "500s", "apply": [node(BAD)]},
    ]
    found = finished(simulation(Script(), *cluster(scenario(*steps))))

    assert places(found) == ["n2", "n2"]
    assert reported(found)


# The machine alone, which sees nothing but what a test tells it


def rescheduler_of_one_pod(script: Script) -> tuple[Rescheduler, int]:
    """Return a rescheduler that knows a pod on the bad node, and when it looks first."""
    machine = Rescheduler(PLAIN, make_planner=script.make)
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web", "controller": True}
    metadata = {"uid": "web-1", "ownerReferences": [owner], "creationTimestamp": "1970-01-01T00:00:00Z"}
    one = running("web-1", node=BAD, metadata=metadata)
    for raw in (node(BAD), node("n2"), one):
        object_ = decode(raw)
        assert object_ is not None
        machine.handle(Changed(object_, raw), 0)
    first_ns = machine.deadline().time_ns
    assert first_ns is not None
    return machine, first_ns


def test_after_a_plan_that_moves_something_it_expects_news_of_another_look_though_nothing_is_seen() -> None:
    """Or a simulation would end while the rest of what is to be moved waits."""
    machine, now = rescheduler_of_one_pod(Script())
    now = max(now, HOUR)
    (evict,) = [action for action in machine.handle(Tick(), now) if isinstance(action, Evict)]

    machine.handle(ActionFinished(evict), now)

    assert not machine.is_at_work
    assert machine.deadline() == Deadline(now + PLAIN.interval_ns, True)


def test_after_a_plan_that_moves_nothing_it_expects_no_news_of_another_look() -> None:
    machine, now = rescheduler_of_one_pod(Script(at_once=0))
    now = max(now, HOUR)

    assert machine.handle(Tick(), now) == []

    assert not machine.deadline().keeps_alive


def test_a_policy_that_keeps_failing_is_reported_once_until_it_works_again() -> None:
    script = Script(at_once=0, errors=("policy Leave failed",))
    machine, now = rescheduler_of_one_pod(script)

    def records() -> list[str]:
        nonlocal now
        now += HOUR
        return [action.message for action in machine.handle(Tick(), now) if isinstance(action, Record)]

    assert records() == ["policy Leave failed"]
    assert records() == []
    script.errors = ("policy Leave failed", "policy Other failed")
    assert records() == ["policy Other failed"]
    script.errors = ()
    assert records() == []
    script.errors = ("policy Leave failed",)
    assert records() == ["policy Leave failed"]


@pytest.mark.parametrize("has_budget", [False, True])
def test_an_exhausted_cap_holds_pods_with_a_budget_alone(has_budget: bool) -> None:
    machine, _ = rescheduler_of_one_pod(Script())
    policy = disruption_policy(caps=[{"max": "1/10m", "per": "Namespace"}])
    used = {"caps": [{"namespace": "default", "fullTime": "1970-01-01T01:10:00Z"}]}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web", "controller": True}
    times = {"creationTimestamp": "1970-01-01T00:00:00Z"}
    metadata = {"uid": "web-2", "labels": {"app": "web"}, "ownerReferences": [owner], **times}
    labelled = running("web-2", node=BAD, metadata=metadata)
    for raw in ({**policy, "status": used}, labelled, *([budget("web", minAvailable=1)] if has_budget else [])):
        object_ = decode(raw)
        assert object_ is not None
        machine.handle(Changed(object_, raw), 0)

    reasons = [reason for reason, _ in machine.untouched(HOUR).reasons]

    assert ("the cap on disruptions in default leaves none" in reasons) is has_budget
