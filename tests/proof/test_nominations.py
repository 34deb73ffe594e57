"""When a nomination is written, moved and cleared, in the stories of Kubernetes' own tests.

TestNominatedNode (row 11) and TestPreemptionAndNominatedNodeNameScenarios (row 13).
"""

from __future__ import annotations

from typing import get_args

import pytest

from podium.api.meta import Kubernetes
from podium.api.pod import Pod
from podium.controllers.actions import Action, Bind, DeleteObject, Nominate, ReportUnschedulable
from podium.framework.settings.configuration import Configuration, NominationClearing
from podium.framework.verdicts import unschedulable
from tests.builders import node, pod
from tests.controllers.driving import Driver, all_of, clearing, nominated, on, terminating, the, with_plugins

LOW, HIGH = 100, 300
CLEARINGS: tuple[NominationClearing, ...] = get_args(NominationClearing)
UNFIT = clearing("Unfit")
MEDIUM = pod("medium", cpu=4, priority=200)


def shown(actions: list[Action], one: Pod) -> str | None:
    """Return the pod's nomination as these actions leave it in the API; None where they do not write it."""
    written = None
    for action in actions:
        if isinstance(action, ReportUnschedulable) and action.pod == one.key:
            written = written if action.nominated_node_name is None else action.nominated_node_name
        elif isinstance(action, Nominate) and action.pod == one.key:
            written = action.node_name
    return written


def medium_waits(*objects: Kubernetes, settings: Configuration | None = None) -> tuple[Driver, list[Pod]]:
    """Return the medium pod after its preemption on n1, and its terminating victims."""
    driver = Driver(*objects, settings=settings)
    driver.see(MEDIUM)
    actions = driver.carry_out(driver.tick())
    assert shown(actions, MEDIUM) == "n1"
    gone = {one.uid for one in all_of(DeleteObject, actions)}
    victims = [terminating(one) for one in objects if isinstance(one, Pod) and one.metadata.uid in gone]
    driver.see(nominated(MEDIUM, "n1"), *victims)
    return driver, victims


def small(number: int, cpu: int = 1) -> Pod:
    return pod(f"low-{number}", cpu=cpu, priority=LOW, on="n1")


@pytest.mark.upstream(11)
class TestTheNominationIsClearedWhen:
    @pytest.mark.parametrize("which", CLEARINGS)
    def test_a_more_important_pod_preempts_there(self, which: NominationClearing) -> None:
        running = [small(number) for number in range(4)]
        driver, _ = medium_waits(node("n1", cpu=5), *running, settings=clearing(which))
        driver.see(pod("high", cpu=5, priority=HIGH))

        actions = driver.tick()

        assert (shown(actions, pod("high")), shown(actions, MEDIUM)) == ("n1", "")

    def test_a_more_important_pod_waits_for_the_same_victims(self) -> None:
        driver, _ = medium_waits(node("n1", cpu=4), *(small(number) for number in range(4)), settings=UNFIT)
        driver.see(pod("high", cpu=3, priority=HIGH))

        actions = driver.tick()

        assert (shown(actions, pod("high")), shown(actions, MEDIUM)) == ("n1", "")

    def test_a_more_important_pod_is_bound_there(self) -> None:
        driver, _ = medium_waits(node("n1", cpu=5), small(1, cpu=3), settings=UNFIT)
        driver.see(pod("high", cpu=2, priority=HIGH))

        actions = driver.tick()

        assert the(Bind, actions).pod == "default/high"
        assert shown(actions, MEDIUM) == ""

    def test_the_node_is_deleted(self) -> None:
        driver, _ = medium_waits(node("n1", cpu=4), small(1), settings=UNFIT)

        assert shown(driver.miss(node("n1", cpu=4)), MEDIUM) == ""

    @pytest.mark.parametrize("which", CLEARINGS)
    def test_the_node_is_deleted_and_no_other_will_do(self, which: NominationClearing) -> None:
        tainted = node("n2", cpu=4, taints=["gpu:NoSchedule"])
        driver, victims = medium_waits(node("n1", cpu=4), small(1), tainted, settings=clearing(which))

        actions = driver.miss(node("n1", cpu=4), *victims)
        actions += driver.tick()

        assert shown(actions, MEDIUM) == ""
        assert driver.nominated(MEDIUM) == ""

    def test_the_pod_is_rejected_on_its_way_to_the_node(self) -> None:
        driver, victims = medium_waits(node("n1", cpu=4), small(1), settings=with_plugins("Spy"))
        driver.plugin("Spy").answers["pre_bind"] = unschedulable("not here")
        driver.miss(*victims)

        actions = driver.tick()

        assert shown(actions, MEDIUM) == ""
        assert not all_of(Bind, actions)


@pytest.mark.upstream(13)
class TestNominationsThatOthersMade:
    def test_an_external_nomination_is_replaced_when_preemption_finds_a_better_node(self) -> None:
        two = [pod(f"half-{number}", cpu=2, priority=1, on="n1") for number in range(2)]
        one = pod("whole", cpu=3, priority=1, on="n2")
        preemptor = nominated(pod("preemptor", cpu=4, priority=100), "n1")
        driver = Driver(node("n1", cpu=4), node("n2", cpu=4), *two, one, preemptor)

        actions = driver.carry_out(driver.tick())

        assert shown(actions, preemptor) == "n2"
        driver.see(nominated(preemptor, "n2"))
        driver.miss(one)
        assert the(Bind, driver.tick()).node_name == "n2"

    def test_the_nomination_of_a_pod_too_large_for_its_node_is_cleared_and_blocks_no_pod(self) -> None:
        large = nominated(pod("large", cpu=5, priority=1), "n1")
        driver = Driver(node("n1", cpu=4), large)
        driver.wait(1)
        driver.see(pod("fits", cpu=3, priority=1))

        assert shown(driver.tick(), large) == ""
        assert the(Bind, driver.tick()).pod == "default/fits"

    def test_the_nomination_of_a_less_important_pod_does_not_block_a_more_important_one(self) -> None:
        low = nominated(pod("low", cpu=4, priority=1), "n1")
        driver = Driver(node("n1", cpu=4), low, pod("high", cpu=4, priority=100))

        actions = driver.tick()

        assert the(Bind, actions).pod == "default/high"
        assert shown(actions + driver.tick(), low) == ""

    def test_an_external_nomination_ends_with_the_binding(self) -> None:
        waiting = nominated(pod("p", cpu=4, priority=1), "n1")
        driver = Driver(node("n1", cpu=4), waiting)

        driver.carry_out(driver.tick())
        driver.see(on(waiting, "n1"))

        assert driver.nominated(waiting) == ""
        assert driver.deadline_seconds is None
