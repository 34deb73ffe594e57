"""Runs of the rescheduler's example scenarios, with invariants checked after every step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from podium.api.disruption_policy import MAX_DISRUPTIONS, parse_rate
from podium.api.input.codec import Document, load_files
from podium.api.pod import Pod
from podium.api.policy import PodDisruptionBudget
from podium.api.selectors import compile_label_selector
from podium.controllers.actions import Action, Evict
from podium.controllers.observations import ActionFinished
from podium.controlplane.component_names import RESCHEDULER
from podium.framework.rescheduling.settings import ReschedulerSettings
from podium.sim.results.result import Result, result_of
from podium.sim.run import simulation_of
from podium.sim.run_options import RunOptions
from podium.sim.scenario.steps import Announce, SetPower, is_endless
from podium.sim.simulation import Simulation
from podium.store.watch_log import WatchEvent
from tests.examples.stories import EXAMPLES
from tests.plain_bucket import PlainBucket
from tests.sim.budget_invariants import BudgetChecker
from tests.sim.rescheduler_invariants import ReschedulerChecker

Placement = dict[str, dict[str, int]]
"""How many pods of each owner a node has, by the nodes' names; nodes without any are left out."""


@dataclass(slots=True)
class Rescheduled:
    """A scenario as it was played: what the result says, and where everybody was at the times that were asked for."""

    result: Result
    simulation: Simulation
    placements: list[tuple[float, Placement]] = field(default_factory=list)

    def at(self, time: float) -> Placement:
        """Return where everybody was from that time on."""
        return [placement for since, placement in self.placements if since <= time][-1]

    @property
    def after(self) -> Placement:
        """Return where everybody is at the end."""
        return self.placements[-1][1]

    def evictions(self) -> list[str]:
        """Return the rescheduler's evictions, as `time owner node policy`."""
        found = []
        for event in self.result.events:
            if event.reason == "Descheduled":
                policy = event.message.partition(" by ")[2].partition(":")[0]
                found.append(f"{event.time:g} {owner_of(event.pod or '')} {event.node} {policy}")
        return found

    def reasons(self) -> list[str]:
        """Return the message of each eviction, without the pod names, which are random."""
        return [event.message for event in self.result.events if event.reason == "Descheduled"]

    def events(self, *reasons: str) -> list[str]:
        """Return what happened, as `time reason owner node`."""
        return [
            f"{event.time:g} {event.reason} {owner_of(event.pod or '')} {event.node or ''}".rstrip()
            for event in self.result.events
            if event.reason in reasons
        ]


def owner_of(pod: str) -> str:
    """Whose pod it is, by its name: what stands before the first dash."""
    return pod.rpartition("/")[2].partition("-")[0]


def rescheduled(
    example: str, rescheduler: Mapping[str, Any] | None = None, objects: Sequence[Document] = (), **options: Any
) -> Rescheduled:
    """Return an example at its end. Fields of its rescheduler may be set otherwise; None takes one away."""
    documents = [*load_files([str(EXAMPLES / "rescheduler" / f"{example}.yaml")]), *objects]
    for document in documents:
        if document.raw["kind"] == "Scenario":
            settings = document.raw["spec"]["rescheduler"]
            settings.update(rescheduler or {})
            for name in [name for name, value in settings.items() if value is None]:
                del settings[name]
    return watched(simulation_of(documents, RunOptions(**options)))


def watched(simulation: Simulation) -> Rescheduled:
    """Return a simulation at its end, with budgets, rates and limits looked at after every step."""
    played = Rescheduled(result_of(simulation), simulation)
    budgets = BudgetChecker(simulation.store)
    used = BudgetUse(simulation)
    rescheduler = next(found for found in simulation.runtime.components if found.name == RESCHEDULER)
    moves = ReschedulerChecker(simulation, rescheduler, is_faulty=False, nodes_go=False)
    seen = 0
    while simulation.step():
        written: list[WatchEvent] = simulation.store.events_since(seen)
        for event in written:
            seen = event.version
            budgets.after_write(event)
        moves.after_step()
        used.after_step()
        if written:
            _note(played)
    played.result = result_of(simulation)
    return played


def _note(played: Rescheduled) -> None:
    """Write down where everybody is, if that has changed."""
    time, found = played.simulation.elapsed_ns / 10**9, placement_of(played.simulation)
    if played.placements and played.placements[-1][0] == time:
        played.placements.pop()
    if not played.placements or played.placements[-1][1] != found:
        played.placements.append((time, found))


def placement_of(simulation: Simulation) -> Placement:
    """Return where everybody is who is not leaving."""
    counts: dict[str, Counter[str]] = {}
    for pod in _pods(simulation):
        if pod.spec.node_name and not pod.is_terminating and not pod.is_terminal:
            counts.setdefault(pod.spec.node_name, Counter())[owner_of(pod.key)] += 1
    return {node: dict(sorted(owners.items())) for node, owners in sorted(counts.items())}


class BudgetUse:
    """A count by hand of the uses of budgets and their rates; it raises AssertionError.

    The rescheduler leaves the configured part of each budget, and no component exceeds a rate.
    """

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.settings: ReschedulerSettings | None = simulation.scenario.rescheduling
        # Steps that take pods down whatever their budgets say.
        changes = [step.change for step in simulation.scenario.steps]
        self.is_calm = not any(isinstance(each, Announce | SetPower) or is_endless(each) for each in changes)
        self.met: set[str] = set()
        self.buckets: dict[str, PlainBucket] = {}
        carry_out = simulation.server.carry_out

        def counted(action: Action, now: int, by: str = "") -> ActionFinished:
            covering = self._covering(action) if isinstance(action, Evict) else []
            finished = carry_out(action, now, by)
            if isinstance(action, Evict) and finished.problem is None:
                for budget in covering:
                    self._count(budget, action, now)
            return finished

        simulation.server.carry_out = counted  # type: ignore[method-assign]

    def after_step(self) -> None:
        """At no time are fewer pods up than a budget wants, once as many were; where evictions alone take pods down."""
        for budget in self._budgets():
            status, selector = budget.status, compile_label_selector(budget.spec.selector)
            up = sum(
                _is_up(pod) and pod.metadata.namespace == budget.metadata.namespace
                for pod in _pods(self.simulation)
                if selector.matches(pod.metadata.labels)
            )
            if status.expected_pods and up >= status.desired_healthy:
                self.met.add(budget.metadata.uid)
            elif self.is_calm and budget.metadata.uid in self.met:
                raise AssertionError(f"{budget.metadata.name}: {up} are up, and {status.desired_healthy} should be")

    def _count(self, budget: PodDisruptionBudget, evict: Evict, now: int) -> None:
        if evict.cause == RESCHEDULER and self.settings is not None:
            status, settings = budget.status, self.settings
            allowed_with_all_up = status.expected_pods - status.desired_healthy
            reserve = max(settings.budget_reserve, ceil(settings.budget_reserve_share * allowed_with_all_up))
            assert status.disruptions_allowed > reserve, f"{evict.pod}: {status.disruptions_allowed} of {reserve}"
        text = budget.metadata.annotations.get(MAX_DISRUPTIONS)
        if text is not None:
            rate = parse_rate(text)
            bucket = self.buckets.setdefault(budget.metadata.uid, PlainBucket(rate.count, rate.interval_ns, now))
            bucket.take(now)

    def _covering(self, evict: Evict) -> list[PodDisruptionBudget]:
        stored = self.simulation.store.find("Pod", evict.pod)
        if stored is None:
            return []
        labels, namespace = stored.object.metadata.labels, stored.object.metadata.namespace
        return [
            budget
            for budget in self._budgets()
            if budget.metadata.namespace == namespace and compile_label_selector(budget.spec.selector).matches(labels)
        ]

    def _budgets(self) -> list[PodDisruptionBudget]:
        found = (stored.object for stored in self.simulation.store.objects("PodDisruptionBudget"))
        return [budget for budget in found if isinstance(budget, PodDisruptionBudget)]


def _pods(simulation: Simulation) -> list[Pod]:
    return [stored.object for stored in simulation.store.objects("Pod") if isinstance(stored.object, Pod)]


def _is_up(pod: Pod) -> bool:
    ready = pod.status.condition("Ready")
    return ready is not None and ready.status == "True" and not pod.is_terminating and not pod.is_terminal
