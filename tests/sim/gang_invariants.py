"""Invariants of gangs: no binding leaves a gang incomplete, and none stays incomplete forever."""

from podium.api.pod import Pod
from podium.api.pod_group import PodGroup
from podium.controllers.actions import Action, Bind
from podium.controllers.scheduling.queue.queued_pod import QueuePlace
from podium.controllers.scheduling.scheduler import Scheduler
from podium.decide.gang_placement import GroupTrial, order_of, place_group
from podium.sim.simulation import Simulation


def check_binds(scheduler: Scheduler, actions: list[Action], asked_before: set[str]) -> None:
    """G1: check that each first binding, as the scheduler knows the cluster, completes enough of its gang."""
    for action in actions:
        if not isinstance(action, Bind) or action.uid in asked_before:
            continue
        asked_before.add(action.uid)
        record = scheduler.cluster.placed[action.uid]
        group = scheduler.gangs.state.group(record.pod_class.pod_group)
        if scheduler.gangs.concerns(record):
            assert group is not None, record.key
            bound = scheduler.gangs.state.bound(group.key)
            assert not group.is_gang or len(bound) >= group.min_count, (record.key, [pod.key for pod in bound])
            assert not group.topology_key or _is_together(scheduler, group), record.key


def check_gangs_at_rest(simulation: Simulation, scheduler: Scheduler, *, may_stay_in_part: bool) -> None:
    """G2, G3: no gang is placed in part while pods of it wait, and none waits for which there is room."""
    groups = [stored.object for stored in simulation.store.objects("PodGroup")]
    pods = [stored.object for stored in simulation.store.objects("Pod")]
    for group in groups:
        assert isinstance(group, PodGroup)
        members = [
            pod
            for pod in pods
            if isinstance(pod, Pod)
            and pod.spec.scheduling_group is not None
            and pod.spec.scheduling_group.pod_group_name == group.metadata.name
            and not pod.is_terminal
            and not pod.is_terminating
        ]
        placed = [pod for pod in members if pod.spec.node_name]
        waiting = [pod for pod in members if not pod.spec.node_name]
        is_in_part = bool(waiting) and 0 < len(placed) < group.min_count <= len(members)
        assert may_stay_in_part or not is_in_part, (group.key, [pod.key for pod in placed])
        if waiting and len(members) >= group.min_count:
            _check_waits_rightly(scheduler, group)
        condition = group.status.condition("PodGroupScheduled")
        if len(placed) >= group.min_count and not waiting:
            assert condition is not None, group.key
            assert condition.status == "True", group.key


def _check_waits_rightly(scheduler: Scheduler, group: PodGroup) -> None:
    queued = [one for one in scheduler.queue if one.record.pod_class.pod_group == group.key]
    if not queued:
        # They are for another scheduler.
        return
    assert all(one.place is not QueuePlace.ACTIVE for one in queued)
    queued.sort(key=lambda one: order_of(one.record, one.first_attempt_ns or 0))
    placed = scheduler.gangs.state.placed(group.key)
    trial = GroupTrial(
        tuple(one.record for one in queued),
        max(group.min_count - len(placed), 0),
        group.topology_key,
        tuple(placed),
        scheduler.attempts.seed,
    )
    runner = scheduler.runners[queued[0].record.scheduler_name]
    found = place_group(runner, trial)
    assert not found.is_enough, (group.key, [(one.pod.key, one.node_name) for one in found.members])


def _is_together(scheduler: Scheduler, group: PodGroup) -> bool:
    nodes = scheduler.cluster.nodes
    rows = [nodes.row_of.get(pod.node_name) for pod in scheduler.gangs.state.placed(group.key)]
    return len({nodes.node(row).metadata.labels.get(group.topology_key) for row in rows if row is not None}) <= 1
