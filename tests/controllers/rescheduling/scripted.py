"""A planner that follows a script, and a cluster with a rescheduler that uses it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.controllers.rescheduling.rescheduler import Rescheduler
from podium.controllers.scheduling.scheduler import Scheduler
from podium.decide.rescheduling.guards import PlanInputs
from podium.decide.rescheduling.planner import Planner
from podium.decide.rescheduling.round_robin import PlannedMove, PlannedMoves, RejectedMove, ReschedulingPlan
from podium.decide.transaction import ClusterTransaction
from podium.framework.rescheduling.policy import Picture, Policy
from podium.framework.rescheduling.settings import ReschedulerSettings
from podium.framework.runner import Runner
from podium.runtime.runtime import Component
from podium.sim.simulation import Simulation
from tests.sim.objects import scenario, workload
from tests.sim.played import simulation_of
from tests.store.objects import SECOND, Raw, node, pod

MINUTE = 60 * SECOND
BAD = "bad"
"""The node that pods are to leave."""

PLAIN = ReschedulerSettings(policies=())


@dataclass
class Script(Planner):
    """A planner that moves pods off the node `bad`, ``at_once`` at a time and together; its plans have ``errors``.

    ``inputs_seen`` are its inputs.
    """

    at_once: int = 1
    together: bool = False
    target: str = "n2"
    avoid_for_ns: int | None = None
    policies: Sequence[tuple[Policy, float]] = ()
    settings: ReschedulerSettings = PLAIN
    errors: tuple[str, ...] = ()
    inputs_seen: list[PlanInputs] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)

    def make(self, policies: Sequence[tuple[Policy, float]], settings: ReschedulerSettings) -> Script:
        self.policies, self.settings = policies, settings
        return self

    def picture(
        self, cluster: Cluster, runners: Mapping[str, Runner], kubelet: Runner, now: int, **more: Any
    ) -> Picture:
        return Planner((), PLAIN).picture(cluster, runners, kubelet, now, **more)

    def plan(self, scratch: ClusterTransaction, picture: Picture, inputs: PlanInputs) -> ReschedulingPlan:
        self.inputs_seen.append(inputs)
        self.pictures.append(picture)
        under_way = sum(past.is_in_flight for past in inputs.past)
        room = (self.settings.in_flight.total or 99) - under_way
        pods = [one for one in picture.movable_pods() if self._may_leave(one, picture, inputs)]
        chosen = pods[: min(self.at_once, room)]
        moves = [PlannedMove(one, BAD, self.target) for one in chosen]
        groups = [tuple(moves)] if self.together and moves else [(move,) for move in moves]
        planned = tuple(PlannedMoves("Leave", "it is a bad node", group, 1.0, self.avoid_for_ns) for group in groups)
        left = tuple(RejectedMove("Leave", one.key, "a limit") for one in pods[len(chosen) :])
        return ReschedulingPlan(planned, left, {}, {}, len(pods), is_cut=False, errors=self.errors)

    def _may_leave(self, pod: PodRecord, picture: Picture, inputs: PlanInputs) -> bool:
        is_young = picture.now - pod.created_ns < self.settings.scope.minimum_age_ns
        is_cooling = (pod.owner_uid, pod.node_name) in inputs.cooling
        return pod.node_name == BAD and pod.ready and not (pod.terminating or is_young or is_cooling)


def rescheduling(script: Script, settings: ReschedulerSettings = PLAIN, **more: Any) -> Component:
    """Return the component."""
    return Component("rescheduler", lambda: Rescheduler(settings, make_planner=script.make, **more))


def cluster(*others: Raw, replicas: int = 2, annotations: Raw | None = None) -> list[Raw]:
    """Return a ReplicaSet whose pods are on the bad node, and the rest."""
    metadata = {"labels": {"app": "web"}, "annotations": annotations or {}}
    template = {"metadata": metadata, "spec": {**pod("")["spec"], "terminationGracePeriodSeconds": 5}}
    return [node(BAD), workload("ReplicaSet", "web", replicas, template=template), *others]


LATER = {"at": "1s", "apply": [node("n2", cpu=20)]}
"""The other node comes when all pods are on the bad one."""


def simulation(
    script: Script, *objects: Raw, settings: ReschedulerSettings = PLAIN, faults: Any = None, **more: Any
) -> Simulation:
    """Return a simulation with a scheduler and a rescheduler."""
    found = simulation_of(
        *(objects or (*cluster(), scenario(LATER))),
        schedulers=[
            Component("default-scheduler", Scheduler, waits=True),
            rescheduling(script, settings),
        ],
        faults=faults,
        **more,
    )
    return found


def finished(found: Simulation) -> Simulation:
    """Play it to its end."""
    for _ in range(20_000):
        if not found.step():
            return found
    raise AssertionError("it never ends")
