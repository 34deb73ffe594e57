"""Futile preemptions: which ones count, and how long the pod waits afterwards."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from podium.api.node import Node
from podium.api.pod import Pod
from podium.controllers.actions import Action, Bind, PatchObject, Record
from podium.controllers.scheduling.futile_preemptions import ANNOTATION
from podium.framework.settings.configuration import API_VERSION, KIND, Configuration, read_configuration
from tests.builders import DAY_ONE_NS, node, pod, spread_over, term
from tests.controllers.driving import SECOND, Driver, all_of, deletions, events, nominated, on, terminating, the

N1 = node("n1", cpu=4)
HIGH = pod("high", cpu=4, priority=100, owner="ReplicaSet/high")
FOREIGN = "another"
BATCH = {"app": "batch"}


def batch(number: int, *, priority: int = 1) -> Pod:
    """Return a pod of another scheduler's, on n1."""
    return pod(f"batch-{number}", cpu=4, priority=priority, scheduler=FOREIGN, on="n1")


def preempts(driver: Driver, victim: Pod, preemptor: Pod = HIGH) -> list[Action]:
    """Let the next attempt preempt ``victim``, and end it; return the attempt's actions."""
    actions = driver.tick()
    assert deletions(actions) == [f"mark {victim.key}"]
    driver.carry_out(actions)
    driver.see(nominated(preemptor, driver.nominated(preemptor)), terminating(victim))
    driver.miss(victim)
    return actions


def loses(driver: Driver, numbers: Sequence[int]) -> None:
    """Let the preemptor preempt one batch pod after the other, and another scheduler take the room each time."""
    for number in numbers:
        preempts(driver, batch(number))
        driver.see(batch(number + 1))
        driver.wait(0.001)


def bearing(most: int = 3, **args: bool) -> Configuration:
    """Return a configuration in which so many futile preemptions are borne; with arguments of DefaultPreemption."""
    profile = {"pluginConfig": [{"name": "DefaultPreemption", "args": args}]} if args else {}
    written = {"apiVersion": API_VERSION, "kind": KIND, "maxFutilePreemptions": most, "profiles": [profile]}
    return read_configuration(written, "test")


def racked(name: str, rack: str) -> Node:
    """Return a node of a rack."""
    return node(name, cpu=4, labels={"rack": rack, "name": name})


def losing(times: int, settings: int = 3) -> Driver:
    """Return a scheduler whose preemptor has preempted in vain so often, but for its last attempt."""
    driver = Driver(N1, batch(0), HIGH, settings=bearing(settings))
    loses(driver, range(times))
    return driver


def next_wait_seconds(driver: Driver) -> float:
    """No attempt that is due preempts; how long until one may."""
    assert deletions(driver.attempts()) == []
    deadline = driver.scheduler.futile.next_deadline()
    assert deadline is not None
    return (deadline - driver.now) / SECOND


@pytest.mark.failure(12)
def test_a_pod_waits_a_minute_after_its_third_wasted_preemption() -> None:
    driver = losing(3)

    actions = driver.tick()

    assert deletions(actions) == []
    assert events(actions) == [("FailedScheduling", "default/high"), ("PreemptionBackoff", "default/high")]
    rejection, waits = all_of(Record, actions)
    assert rejection.message.endswith(
        "preemption: 3 preemptions were futile, as other pods took the room; the next is tried at 1970-01-01T00:01:00Z"
    )
    assert (waits.type, waits.node_name) == ("Warning", "n1")
    assert waits.message == (
        "3 preemptions were futile: other pods took the room, last on node n1 default/batch-3; "
        "no further preemption for 1m"
    )
    assert driver.nominated(HIGH) == ""
    assert next_wait_seconds(driver) == 60
    driver.wait(60)
    assert deletions(driver.tick()) == ["mark default/batch-3"]


def test_the_waits_double_up_to_an_hour() -> None:
    driver = losing(3)
    waits = []
    for number in range(3, 11):
        waits.append(next_wait_seconds(driver))
        driver.wait(waits[-1])
        loses(driver, [number])

    assert waits == [60, 120, 240, 480, 960, 1920, 3600, 3600]


def test_attempts_go_on_meanwhile_and_the_pod_takes_the_room_that_it_finds() -> None:
    driver = losing(3)
    driver.attempts()
    driver.wait(20)

    driver.miss(batch(3))

    assert the(Bind, driver.tick()).pod == HIGH.key


def test_the_wait_is_announced_once() -> None:
    driver = losing(3)
    driver.attempts()

    driver.see(node("n2", cpu=1), pod("other", cpu=1, on="n2"))
    driver.miss(pod("other", cpu=1, on="n2"))

    assert events(driver.attempts()) == [("FailedScheduling", "default/high")]


def test_the_count_restarts_when_a_sibling_runs() -> None:
    driver = losing(3)
    driver.attempts()
    sibling = pod("sibling", cpu=4, priority=101, owner="ReplicaSet/high")
    driver.see(sibling)
    assert deletions(driver.attempts()) == []

    driver.miss(batch(3))
    driver.answer(the(Bind, driver.attempts()))
    driver.see(on(sibling, "n1"), node("n2", cpu=4), moved(batch(9), "n2"))

    assert deletions(driver.tick()) == ["mark default/batch-9"]


def test_siblings_wait_with_it_and_not_the_pods_of_others() -> None:
    driver = losing(3)
    driver.attempts()

    driver.see(pod("sibling", cpu=4, priority=100, owner="ReplicaSet/high"))
    assert deletions(driver.tick()) == []
    driver.see(pod("other", cpu=4, priority=100))
    assert deletions(driver.tick()) == ["mark default/batch-3"]


def test_its_history_ends_with_the_pod() -> None:
    driver = losing(3)
    driver.attempts()

    driver.miss(HIGH)
    driver.see(pod("high", uid="new", cpu=4, priority=100, owner="ReplicaSet/high"))

    assert deletions(driver.tick()) == ["mark default/batch-3"]


@pytest.mark.failure(12)
@pytest.mark.parametrize("is_seen_bound", [True, False])
def test_a_kubelet_rejection_counts_for_the_replacement_pod(is_seen_bound: bool) -> None:
    """The other scheduler's binding was quicker, though this one did not see it in time."""
    driver = Driver(N1, batch(0), settings=bearing())
    for number in range(4):
        preemptor = pod(f"high-{number}", cpu=4, priority=100, owner="ReplicaSet/high")
        driver.see(preemptor)
        if number == 3:
            break
        preempts(driver, batch(number), preemptor)
        driver.answer(the(Bind, driver.tick()))
        driver.see(batch(number + 1), *([bound(preemptor)] if is_seen_bound else []), failed(bound(preemptor)))

    actions = driver.tick()

    assert deletions(actions) == []
    assert ("PreemptionBackoff", "default/high-3") in events(actions)


def test_a_pod_that_has_run_and_failed_says_nothing_about_its_preemption() -> None:
    driver = Driver(N1, batch(0), settings=bearing())
    for number in range(5):
        preemptor = pod(f"high-{number}", cpu=4, priority=100, owner="ReplicaSet/high")
        driver.see(preemptor)
        preempts(driver, batch(number), preemptor)
        driver.answer(the(Bind, driver.tick()))
        running = on(preemptor, "n1")
        driver.see(running, failed(running), batch(number + 1))

    assert deletions(driver.tick()) == []
    driver.see(pod("high-5", cpu=4, priority=100, owner="ReplicaSet/high"))
    assert deletions(driver.tick()) == ["mark default/batch-5"]


class TestWhatDoesNotCount:
    """The preemptor has lost its room twice; what happens then is no third time."""

    def test_a_room_that_a_more_important_pod_took(self) -> None:
        driver = losing(2)
        preempts(driver, batch(2))

        driver.see(batch(3, priority=500))
        assert events(driver.tick()) == [("FailedScheduling", "default/high")]
        driver.miss(batch(3, priority=500))
        driver.see(batch(4))

        assert deletions(driver.tick()) == ["mark default/batch-4"]

    def test_a_node_that_is_gone(self) -> None:
        driver = losing(2)
        preempts(driver, batch(2))

        driver.see(node("n2", cpu=4), moved(batch(3), "n2"))
        driver.miss(N1)

        assert deletions(driver.tick()) == ["mark default/batch-3"]

    def test_a_node_that_would_not_take_the_pod_any_more_even_without_the_others(self) -> None:
        driver = losing(2)
        preempts(driver, batch(2))

        driver.see(node("n1", cpu=4, taints=["gone:NoSchedule"]), pod("small", cpu=1, priority=1, on="n1"))
        driver.see(node("n2", cpu=4), moved(batch(3), "n2"))

        assert deletions(driver.tick()) == ["mark default/batch-3"]

    def test_victims_that_are_still_there(self) -> None:
        driver = losing(2)
        first, second = (pod(name, cpu=2, priority=1, scheduler=FOREIGN, on="n1") for name in ("x", "y"))
        driver.miss(batch(2))
        driver.see(first, second)
        driver.carry_out(driver.tick())
        driver.see(nominated(HIGH, "n1"), terminating(first), terminating(second))

        driver.miss(first)
        driver.see(pod("z", cpu=2, priority=1, scheduler=FOREIGN, on="n1"))

        assert events(driver.tick()) == [("FailedScheduling", "default/high")]

    def test_preemption_takes_more_victims_on_the_node_if_no_pod_took_the_room(self) -> None:
        driver = losing(2)
        preempts(driver, batch(2))

        driver.see(node("n1", cpu=3), pod("new", cpu=1, priority=1, on="n1", started=0))
        driver.see(node("n2", cpu=4), moved(batch(3), "n2"))

        assert deletions(driver.tick()) == ["mark default/batch-3"]

    def test_pods_of_the_same_owner(self) -> None:
        driver = losing(2)
        preempts(driver, batch(2))

        sibling = pod("sibling", cpu=4, priority=100, owner="ReplicaSet/high", scheduler=FOREIGN, on="n1")
        driver.see(sibling)
        assert events(driver.tick()) == [("FailedScheduling", "default/high")]


class TestVictimsOnOtherNodes:
    """The preemptor fits on a1 alone, and keeps batch out of the rack; another scheduler puts it on a2 again."""

    NODES = (racked("a1", "a"), racked("a2", "a"), racked("b1", "b"))
    HIGH = pod("high", cpu=1, priority=100, node_selector={"name": "a1"}, apart=[term("app=batch", "rack")])

    def batch(self, number: int, *, on: str = "a2", priority: int = 1) -> Pod:
        return pod(f"batch-{number}", labels=BATCH, priority=priority, scheduler=FOREIGN, on=on)

    def losing(self, times: int, *further: Pod) -> Driver:
        """Return a scheduler whose preemptor has preempted in vain so often, but for its last attempt."""
        driver = Driver(*self.NODES, settings=bearing(acrossNodes=True))
        driver.now = DAY_ONE_NS
        driver.see(*further, self.batch(0), self.HIGH)
        for number in range(times):
            preempts(driver, self.batch(number), self.HIGH)
            driver.see(self.batch(number + 1))
            driver.wait(1)
        return driver

    def test_a_pod_waits_after_its_third_wasted_preemption(self) -> None:
        actions = self.losing(3).tick()

        assert deletions(actions) == []
        assert events(actions) == [("FailedScheduling", "default/high"), ("PreemptionBackoff", "default/high")]
        assert all_of(Record, actions)[1].message == (
            "3 preemptions were futile: other pods took the room, last on node a1 default/batch-3; "
            "no further preemption for 1m"
        )

    def test_a_pod_on_another_node_of_the_victims_rack_counts(self) -> None:
        driver = self.losing(2)
        preempts(driver, self.batch(2), self.HIGH)

        driver.see(racked("a3", "a"), self.batch(3, on="a3"))

        assert ("PreemptionBackoff", "default/high") in events(driver.attempts())

    def test_a_more_important_pod_in_the_rack_does_not_count(self) -> None:
        driver = self.losing(2)
        preempts(driver, self.batch(2), self.HIGH)

        driver.see(self.batch(3, priority=500))

        assert events(driver.attempts()) == [("FailedScheduling", "default/high")]

    def test_a_pod_in_another_rack_does_not_count(self) -> None:
        driver = self.losing(2)
        preempts(driver, self.batch(2), self.HIGH)

        driver.see(self.batch(3, on="b1"), pod("first", cpu=4, priority=500, on="a1"))

        assert set(events(driver.attempts())) == {("FailedScheduling", "default/high")}

    def test_a_pod_that_ran_there_before_its_labels_changed_does_not_count(self) -> None:
        driver = self.losing(2, pod("other", priority=1, scheduler=FOREIGN, on="a2", started=-5))
        preempts(driver, self.batch(2), self.HIGH)

        driver.see(pod("other", labels=BATCH, priority=1, scheduler=FOREIGN, on="a2", started=-5))

        assert deletions(driver.attempts()) == ["mark default/other"]

    def test_a_restarted_scheduler_continues_the_gang_count(self) -> None:
        driver = self.losing(2)
        annotated = noted(self.HIGH, preempts(driver, self.batch(2), self.HIGH))

        successor = Driver(*self.NODES, self.batch(3), annotated, settings=bearing(acrossNodes=True))

        assert ("PreemptionBackoff", "default/high") in events(successor.attempts())


@pytest.mark.parametrize("most", [2, 3])
def test_earlier_pods_that_may_stay_do_not_count_as_taking_the_room(most: int) -> None:
    """By topology spread some pods of a rack may stay; one that was there before does not take the room."""
    evenly = spread_over("rack", "app=batch", honors_affinity=False)
    high = pod("high", labels=BATCH, priority=100, node_selector={"name": "a1"}, spread=[evenly])
    stays = [pod(f"{name}-old", labels=BATCH, priority=200, scheduler=FOREIGN, on=f"{name}2") for name in ("a", "b")]
    driver = Driver(*(racked(name, name[0]) for name in ("a1", "a2", "b2")), settings=bearing(most, acrossNodes=True))
    driver.see(*stays, TestVictimsOnOtherNodes().batch(0), high)
    for number in range(most):
        preempts(driver, TestVictimsOnOtherNodes().batch(number), high)
        driver.see(TestVictimsOnOtherNodes().batch(number + 1))
        driver.wait(1)

    [_, waits] = all_of(Record, driver.tick())

    assert f"on node a1 default/batch-{most};" in waits.message


def test_counting_wasted_preemptions_can_be_disabled() -> None:
    driver = losing(20, settings=0)

    assert deletions(driver.tick()) == ["mark default/batch-20"]


def moved(one: Pod, name: str) -> Pod:
    """Return the pod on another node."""
    return replace(one, spec=replace(one.spec, node_name=name))


def bound(one: Pod) -> Pod:
    """Return the pod once it is bound to n1, before it runs."""
    return moved(one, "n1")


def failed(one: Pod) -> Pod:
    return replace(one, status=replace(one.status, phase="Failed"))


def test_losses_of_pods_without_owner_are_forgotten_after_an_hour() -> None:
    driver = losing(2)
    bound = preempts_and_is_turned_away(driver)
    driver.miss(bound)
    assert len(driver.scheduler.futile) == 1

    driver.wait(3_601)
    driver.tick()

    assert len(driver.scheduler.futile) == 0


def preempts_and_is_turned_away(driver: Driver) -> Pod:
    """Bind the preemptor after its next preemption, and let its kubelet reject it; return the failed pod."""
    preempts(driver, batch(2))
    the(Bind, driver.attempts())
    bound = on(HIGH, "n1")
    failed = replace(bound, status=replace(bound.status, phase="Failed"))
    driver.see(failed)
    return failed


class TestAfterAFailOver:
    """A scheduler that begins anew goes on with the counts that stand in the pods."""

    def test_the_third_wasted_preemption_counts_across_schedulers(self) -> None:
        driver = losing(2)
        annotated = noted(HIGH, preempts(driver, batch(2)))

        successor = Driver(N1, batch(3), annotated, settings=bearing())

        actions = successor.tick()
        assert deletions(actions) == []
        assert events(actions) == [("FailedScheduling", "default/high"), ("PreemptionBackoff", "default/high")]

    def test_the_end_of_a_wait_is_kept(self) -> None:
        driver = losing(3)
        annotated = noted(HIGH, driver.tick())

        successor = Driver(N1, batch(3), annotated, settings=bearing())
        successor.now = driver.now + SECOND

        assert next_wait_seconds(successor) == 59

    def test_an_ongoing_preemption_is_judged_only_after_its_victims_are_gone(self) -> None:
        driver = losing(2)
        annotated = noted(HIGH, driver.tick())

        successor = Driver(N1, terminating(batch(2)), annotated, settings=bearing())
        successor.tick()
        successor.miss(batch(2))
        successor.see(batch(3))
        successor.wait(301)

        assert ("PreemptionBackoff", "default/high") in events(successor.attempts())

    def test_a_pod_rejected_by_its_kubelet_passes_its_count_to_its_replacement(self) -> None:
        driver = losing(2)
        annotated = noted(HIGH, preempts(driver, batch(2)))
        replacement = pod("high-2", cpu=4, priority=100, owner="ReplicaSet/high")

        successor = Driver(N1, batch(3), failed(bound(annotated)), replacement, settings=bearing())

        assert ("PreemptionBackoff", "default/high-2") in events(successor.tick())

    def test_when_the_pod_runs_what_was_noted_is_taken_off_and_counts_no_more(self) -> None:
        driver = losing(2)
        annotated = noted(HIGH, preempts(driver, batch(2)))
        running = on(annotated, "n1")

        cleared = the(PatchObject, driver.see(running))

        assert cleared.patch == {"metadata": {"annotations": {ANNOTATION: None}}}
        assert len(Driver(N1, running, settings=bearing()).scheduler.futile) == 0

    @pytest.mark.parametrize("text", ["", "{", "[]", '{"futile": -1}', '{"futile": "3"}', '{"untilNs": 1e30}'])
    def test_malformed_preemption_counts_are_ignored(self, text: str) -> None:
        annotated = with_annotation(HIGH, text)

        successor = Driver(N1, batch(0), annotated, settings=bearing(1))

        assert deletions(successor.tick()) == ["mark default/batch-0"]

    def test_without_the_setting_no_preemption_is_counted(self) -> None:
        assert not all_of(PatchObject, losing(3, settings=0).tick())


def noted(one: Pod, actions: Sequence[Action]) -> Pod:
    """Return the pod with the note that the actions write."""
    patch = the(PatchObject, actions).patch
    return with_annotation(one, patch["metadata"]["annotations"][ANNOTATION])


def with_annotation(one: Pod, text: str) -> Pod:
    return replace(one, metadata=replace(one.metadata, annotations={ANNOTATION: text}))
