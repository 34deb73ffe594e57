"""Rounds of coming and going objects leave nothing behind: all sizes return, found by walking the objects.

Rounds bring everything, under names of their own, and take it away again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from podium.api import resource_requests
from podium.api.meta import Kubernetes
from podium.app.bench.scheduling import BenchDriver
from podium.cluster import matchers, nodes, pod_classes, replacements
from podium.controllers.ledger import outcomes
from podium.controllers.observations import Changed, Deleted
from podium.controllers.rescheduling import rescheduler_view
from podium.controllers.scheduling.scheduler import Scheduler
from podium.plugins.dynamic_resources import selectors
from podium.runtime.runtime import Component
from podium.sim.simulation import Simulation
from tests import builders as build
from tests.proof.rounds import AUTOSCALER, BASE, RESCHEDULER, ROUND_S, busy_pods, cluster_round, surroundings
from tests.sim.objects import documents, scenario
from tests.sim.played import simulation_of
from tests.sizes import grown, sizes
from tests.store.objects import Raw

LONG = pytest.param(60, marks=pytest.mark.fuzz, id="long")


@pytest.mark.parametrize("rounds", [pytest.param(12, id="short"), LONG])
def test_a_simulated_cluster_is_as_large_after_many_rounds_as_after_few(rounds: int) -> None:
    steps = [step for number in range(rounds) for step in cluster_round(number)]
    simulation = simulation_of(
        *BASE,
        scenario(*steps, autoscaler=AUTOSCALER, rescheduler=RESCHEDULER, until=f"{rounds * ROUND_S + 60}s"),
        schedulers=[Component("default-scheduler", Scheduler, waits=True)],
    )
    at_first = kept_objects(simulation)

    def play(number: int) -> Counter[str]:
        until = ((number + 1) * ROUND_S - 1) * 10**9
        while simulation.elapsed_ns < until:
            assert simulation.step()
        assert kept_objects(simulation) == at_first
        machines = {f"machine {one.name}": one.controller for one in simulation.runtime.components}
        moved = [event for event in simulation.history.events if event.reason == "Descheduled"]
        assert len(moved) > number
        return sizes(simulation=simulation, ledger=simulation.ledger, **machines)

    assert_bounded(play, rounds)


def kept_objects(simulation: Simulation) -> set[str]:
    """Return the objects that there are, of all kinds."""
    store = simulation.store
    return {f"{kind.name} {one.key}" for kind in store.resources.all() for one in store.objects(kind.name)}


def assert_bounded(play: Callable[[int], Counter[str]], rounds: int) -> None:
    """No size is larger after each of the last third of the rounds than it ever was in those before.

    What is forgotten in each round is. What is only dropped late, or was needed by one round alone, is not.
    """
    most: Counter[str] = Counter()
    least: Counter[str] | None = None
    for number in range(rounds):
        now = play(number)
        if number < 2 * rounds // 3:
            most |= now
        else:
            least = now if least is None else least & now
    assert least is not None
    larger = [f"{path}: {before} to {size}" for path, (before, size) in grown(most, least).items()]
    assert not larger, "\n".join(larger)


@pytest.fixture(autouse=True)
def few_are_kept_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower the limits of caches, so that short runs reach them."""
    for module in (matchers, nodes):
        monkeypatch.setattr(module, "AT_LEAST", 1)
    monkeypatch.setattr(selectors, "_KEPT_ANSWERS", 2)
    monkeypatch.setattr(outcomes, "MOST_OPEN", 2)
    monkeypatch.setattr(pod_classes, "KEPT_CLASSES", 2)
    monkeypatch.setattr(pod_classes, "KEPT_CONTAINERS", 2)
    monkeypatch.setattr(resource_requests, "_KEPT", 2)
    monkeypatch.setattr(replacements, "_FEW", 2)
    monkeypatch.setattr(rescheduler_view, "DISRUPTION_MEMORY_NS", ROUND_S * 10**9)


@pytest.mark.parametrize("args", [{}, {"DefaultPreemption": {"equalPriorityPreemption": True}}], ids=["plain", "fair"])
@pytest.mark.parametrize("rounds", [pytest.param(9, id="short"), LONG])
def test_a_scheduler_is_as_large_after_many_rounds_as_after_few(rounds: int, args: dict[str, Any]) -> None:
    scheduler = Scheduler(build.configuration(args))
    driver = BenchDriver(scheduler)
    for one in BASE:
        driver.scheduler.handle(Changed(typed(one)), driver.now)

    def play(number: int) -> Counter[str]:
        others = surroundings(number)
        for other in others:
            scheduler.handle(Changed(other), driver.now)
        for one in busy_pods(number):
            driver.show(one)
        while driver.attempt():
            pass
        for uid in sorted(driver.pods):
            driver.end(uid)
        for other in reversed(others):
            scheduler.handle(Deleted(other), driver.now)
        driver.bound.clear()
        driver.attempt_ns.clear()
        return sizes(scheduler=scheduler)

    assert_bounded(play, rounds)


@pytest.mark.parametrize("rounds", [pytest.param(9, id="short"), LONG])
def test_a_scheduler_of_gangs_is_as_large_after_many_rounds_as_after_few(rounds: int) -> None:
    """Gangs that are placed, that wait, that preempt, and that lose their group or their pods on the way."""
    scheduler = Scheduler(build.configuration(plugins={"multiPoint": {"enabled": ["GangScheduling"]}}))
    driver = BenchDriver(scheduler)
    for each in (build.node("a", cpu=4, labels={"rack": "r"}), build.node("b", cpu=4)):
        scheduler.handle(Changed(each), driver.now)

    def play(number: int) -> Counter[str]:
        wanted = {"whole": 2, "short": 3, "large": 9, "urgent": 2, "lost": 2}
        groups = {name: build.pod_group(f"{name}-{number}", least) for name, least in wanted.items()}
        groups["racked"] = build.pod_group(f"racked-{number}", 1, topology="rack")
        for group in groups.values():
            scheduler.handle(Changed(group), driver.now)
        for name, cpu, priority in (
            ("whole", 2, 1),
            ("large", 1, 1),
            ("short", 1, 1),
            ("urgent", 4, 9),
            ("racked", 1, 1),
        ):
            for index in range(9 if name == "large" else 2):
                member = build.member(f"{name}-{number}", f"{name}-{number}-{index}", cpu=cpu, priority=priority)
                driver.show(member)
            while driver.attempt():
                pass
        for group in groups.values():
            scheduler.handle(Deleted(group), driver.now)
        for uid in sorted(driver.pods):
            driver.end(uid)
        driver.bound.clear()
        driver.attempt_ns.clear()
        return sizes(scheduler=scheduler)

    assert_bounded(play, rounds)


def typed(raw: Raw) -> Kubernetes:
    (document,) = documents(raw)
    assert document.object is not None
    return document.object
