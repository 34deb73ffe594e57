"""Why pods wait or are not created: the obstacles of equal pods, and quotas that refuse pods of workloads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import msgspec

from podium.api.errors import InputError
from podium.api.input.codec import Document
from podium.api.pod import Pod
from podium.api.policy import ResourceQuota
from podium.api.workloads import ReplicaSet, ReplicationController, StatefulSet, pods_wanted
from podium.app.console.cells import by_key, counted
from podium.app.explaining.gang import beside_those_before, decide_gang
from podium.app.explaining.obstacles import Obstacle, ObstacleGroup, cut, joined, node_groups
from podium.app.explaining.workload import next_pods, pods_of
from podium.app.planning.deciding.attempts import kind_of
from podium.app.planning.deciding.decisions import Decisions, QueueResult
from podium.cluster.pods import PodRecord
from podium.framework.handle import CycleState
from podium.framework.runner import Runner
from podium.framework.verdicts import PluginError, Status
from podium.store.admission.quotas import Amounts, is_counted, read_amount, unstated_amounts, usage_of, written_amount
from podium.store.api_resources import POD
from podium.store.stored import Stored

GATED, TURNED_DOWN, SCHEDULER, ENDING, FAILED = "gated", "pre-filter", "scheduler", "terminating", "failed"
"""The types of obstacles before any node: a gate, a PreFilter, an unknown scheduler, the pod's deletion, a plugin that
fails."""

_WITH_QUOTAS = (ReplicaSet, ReplicationController, StatefulSet)


class BlockedPods(msgspec.Struct, frozen=True):
    """Waiting pods of one kind, in queue order, and why: an obstacle ``before`` any node, or those on ``nodes``.

    A node with all obstacles of another and more does not count for the cause.
    """

    pods: tuple[PodRecord, ...]
    before: Obstacle | None
    nodes: tuple[ObstacleGroup, ...] = ()

    @property
    def nearest(self) -> tuple[ObstacleGroup, ...]:
        """The groups whose obstacles contain no other group's, the largest first."""
        kept = [group for group in self.nodes if not any(other.obstacles < group.obstacles for other in self.nodes)]
        return tuple(sorted(kept, key=lambda group: (-len(group.rows), sorted(each.order for each in group.obstacles))))

    @property
    def cause(self) -> frozenset[frozenset[Obstacle]]:
        """The sets of obstacles; pods with equal causes wait for the same reason."""
        if self.before is not None:
            return frozenset((frozenset((self.before,)),))
        return frozenset(group.obstacles for group in self.nearest)

    @property
    def obstacles(self) -> frozenset[Obstacle]:
        """All obstacles of the cause."""
        return frozenset().union(*self.cause)

    @property
    def text(self) -> str:
        """The cause in words, with the number of nodes."""
        if self.before is not None:
            return self.before.text
        return "; ".join(f"{counted(len(group.rows), 'node')}: {joined(group.obstacles)}" for group in self.nearest)


def blocked_pods(decisions: Decisions, result: QueueResult) -> list[BlockedPods]:
    """Return the waiting pods by kind, in the order of their first ones, with their obstacles."""
    kinds = by_key((kind_of(pod), pod) for pod in result.waiting)
    found = []
    for kind, pods in kinds.items():
        postponed = result.postponed.get(kind)
        found.append(BlockedPods(tuple(pods), postponed) if postponed else blocked_on(decisions, tuple(pods)))
    return found


def blocked_on(decisions: Decisions, pods: tuple[PodRecord, ...]) -> BlockedPods:
    """Return the obstacles of pods of one kind, as the first one meets them."""
    pod = pods[0]
    runner = decisions.runners.get(pod.scheduler_name)
    if runner is None:
        return BlockedPods(pods, Obstacle(SCHEDULER, f"scheduler {pod.scheduler_name} is not configured"))
    if pod.terminating:
        return BlockedPods(pods, Obstacle(ENDING, "it is being deleted"))
    gate = runner.pre_enqueue(pod)
    if not gate.is_success:
        return BlockedPods(pods, Obstacle(GATED, cut(gate.message.removeprefix(f'pod "{pod.key}": ')), gate.plugin))
    try:
        gang = decide_gang(runner, pod, preempts=False)
        if gang is None or gang.placement.is_enough:
            return _blocked_on_nodes(runner, pod, pods)
        if gang.placement.problem:
            return BlockedPods(pods, Obstacle(TURNED_DOWN, cut(gang.placement.problem)))
        # The whole gang waits for the first member that does not fit.
        lacking = next((member.pod for member in gang.placement.members if not member.fits), pod)
        with beside_those_before(runner, gang, lacking):
            return _blocked_on_nodes(runner, lacking, pods)
    except PluginError as error:
        return BlockedPods(pods, Obstacle(FAILED, cut(str(error))))


def _blocked_on_nodes(runner: Runner, pod: PodRecord, pods: tuple[PodRecord, ...]) -> BlockedPods:
    """Return the obstacles of ``pod``, which represents ``pods``. Raises PluginError if a plugin fails."""

    def turned_down(status: Status) -> BlockedPods:
        return BlockedPods(pods, Obstacle(TURNED_DOWN, cut(status.message), status.plugin))

    state, nodes = CycleState(), runner.cluster.nodes
    pre_filter = runner.pre_filter(state, pod)
    if not pre_filter.status.is_success:
        return turned_down(pre_filter.status)
    rows = nodes.all_rows() if pre_filter.rows is None else pre_filter.rows
    if not len(nodes):
        return BlockedPods(pods, Obstacle(TURNED_DOWN, "there are no nodes"))
    if not len(rows):
        return turned_down(pre_filter.left_out)
    return BlockedPods(pods, None, tuple(node_groups(runner, state, pod, rows)))


class RefusedPods(msgspec.Struct, frozen=True):
    """The pods of a workload that a quota refuses for the resources ``names``; ``pod`` is one of them.

    It refuses them with any limits if they do not state amounts: ``unstated`` says which.
    """

    workload: str
    number: int
    pod: PodRecord
    quota: ResourceQuota
    used: Amounts
    requested: Amounts
    names: tuple[str, ...]
    unstated: str = ""

    @property
    def text(self) -> str:
        parts = [
            f"{name} {written_amount(name, self.used[name])} of {self.quota.spec.hard[name]} used, "
            f"{written_amount(name, self.requested[name])} asked"
            for name in self.names
        ]
        return f"ResourceQuota {self.quota.key}: {self.unstated or '; '.join(parts)}"


def refused_pods(decisions: Decisions, namespace: str = "") -> list[RefusedPods]:
    """Return the pods that quotas keep workloads of one namespace or of all from creating, by workload."""
    items = (item for item in decisions.objects if isinstance(item, ResourceQuota))
    by_namespace = by_key((quota.metadata.namespace, quota) for quota in items)
    live = (pod for pod in decisions.pods.values() if by_namespace and not pod.is_terminal)
    owners = ((pod.metadata.controller, pod.metadata.namespace) for pod in live)
    created = Counter(f"{owner.kind} {space}/{owner.name}" for owner, space in owners if owner is not None)
    used: dict[str, dict[str, int]] = {}
    found = []
    for document in decisions.loaded.read.documents if by_namespace else ():
        item = document.object
        if isinstance(item, _WITH_QUOTAS) and namespace in ("", item.metadata.namespace):
            missing = (pods_wanted(item) or 0) - created[f"{item.kind} {item.key}"]
            quotas = by_namespace.get(item.metadata.namespace, [])
            if missing > 0 and quotas:
                known = [pod.metadata.name for pod in pods_of(decisions.objects, item)]
                found.append(_refused(decisions, document, missing, known, quotas, used))
    return sorted(filter(None, found), key=lambda each: each.workload)


def _refused(
    decisions: Decisions,
    document: Document,
    missing: int,
    known: Collection[str],
    quotas: Sequence[ResourceQuota],
    used: dict[str, dict[str, int]],
) -> RefusedPods | None:
    """Return the missing pods of a workload if a quota refuses them; ``used`` keeps the usage of quotas by key."""
    try:
        admitted = decisions.admitted(next(next_pods(document))[0])
    except InputError:
        return None
    stored = _stored(admitted)
    for quota in quotas:
        if not is_counted(quota, stored):
            continue
        if quota.key not in used:
            used[quota.key] = _used(decisions, quota)
        asked, usage = usage_of(stored), used[quota.key]
        names = tuple(
            name
            for name, hard in sorted(quota.spec.hard.items())
            if asked.get(name, 0) > 0 and usage[name] + asked[name] > read_amount(name, hard)
        )
        unstated = unstated_amounts(quota, admitted.spec)
        if names or unstated:
            pod = decisions.create_next(document, known)
            return RefusedPods(decisions.workloads.of(pod), missing, pod, quota, usage, asked, names, unstated)
    return None


def _used(decisions: Decisions, quota: ResourceQuota) -> dict[str, int]:
    """Return the usage of a quota from its status, or else from the pods."""
    if quota.status.used:
        return {name: read_amount(name, quota.status.used.get(name, 0)) for name in quota.spec.hard}
    used = dict.fromkeys(quota.spec.hard, 0)
    pods = (pod for pod in decisions.pods.values() if pod.metadata.namespace == quota.metadata.namespace)
    for stored in map(_stored, pods):
        for name, amount in usage_of(stored).items() if is_counted(quota, stored) else ():
            if name in used:
                used[name] += amount
    return used


def _stored(pod: Pod) -> Stored:
    raw: Mapping[str, object] = msgspec.to_builtins(pod)
    return Stored({"apiVersion": "v1", "kind": "Pod", **raw}, pod, 0, POD, pod.key)
