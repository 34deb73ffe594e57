"""Nodes on their way: created at once, ready when their start-up time is over.

A node stands in the API from the decision on, with a taint that keeps pods off. So whoever starts anew sees what was
decided; and since its name is the smallest free number, no decision that was not seen creates it a second time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from podium.api.meta import Raw
from podium.api.times import parse_time
from podium.decide.scaling.node_groups import STARTING, STARTUP_TAINT, NodeGroup
from podium.machines.actions import Action, CreateObject, PatchObject
from podium.machines.answers import Answer
from podium.machines.autoscaling.cluster_picture import ClusterPicture, GroupNode
from podium.machines.disruption.evictions import STUCK_AFTER
from podium.machines.observations import Answered
from podium.machines.parts.backoff import Backoff
from podium.machines.parts.deadlines import Deadline
from podium.machines.parts.work_queue import WorkQueue

_SECOND = 10**9
_FIRST_PAUSE_NS = 300 * _SECOND
_LONGEST_PAUSE_NS = 1_800 * _SECOND


class NodeStartUps:
    """Creates the nodes of groups and makes them ready.

    A group whose nodes are refused pauses for 5 minutes, doubled with every failure up to 30 (cluster-autoscaler's
    node group back-off). A creation without an answer is sent again until there is one, or the node is seen.
    """

    def __init__(self, groups: Mapping[str, NodeGroup], picture: ClusterPicture, cause: str) -> None:
        self._groups = groups
        self._picture = picture
        self._cause = cause
        self._queue: WorkQueue[str] = WorkQueue()
        # By node name, how often a write failed in a row.
        self._failed: Counter[str] = Counter()
        # By group, whose nodes were refused.
        self._pauses: Backoff[str] = Backoff(_FIRST_PAUSE_NS, _LONGEST_PAUSE_NS)

    def create(self, group: NodeGroup, names: Iterable[str]) -> list[Action]:
        """Create nodes of a group."""
        actions: list[Action] = []
        for name in names:
            raw = group.node(name)
            self._picture.expect(group.name, raw)
            actions.append(CreateObject(raw, self._cause))
        return actions

    def paused_until(self, group: str, now: int) -> int | None:
        """Until when no node of the group is created, None where that may be now."""
        return self._pauses.until(group, now)

    def is_hopeless(self, group: str) -> bool:
        """Whether the group's nodes were refused again and again."""
        return self._pauses.failures(group) >= STUCK_AFTER

    def seen(self, name: str) -> None:
        """The API shows a node of a group as it is now."""
        self._queue.add(name)

    def answered(self, answered: Answered, now: int) -> bool:
        """Take in how an action ended; whether a node that was expected will not come."""
        action = answered.action
        if isinstance(action, CreateObject):
            return self._created(action.raw["metadata"]["name"], answered, now)
        if isinstance(action, PatchObject) and answered.problem is not None and action.key in self._picture.nodes:
            self._failed[action.key] += 1
            self._queue.answer(action.key, answered, now)
        return False

    def work(self, now: int) -> list[Action]:
        """Do what is due."""
        actions: list[Action] = []
        while (name := self._queue.take(now)) is not None:
            group_node = self._picture.nodes.get(name)
            if group_node is None:
                self._failed.pop(name, None)
                self._queue.forget(name)
            else:
                actions += self._work_on(name, group_node, now)
        return actions

    def deadline(self) -> Deadline:
        """When something is due for some node; a node on its way is news, unless its writes fail again and again."""
        is_stuck = all(self._failed[name] >= STUCK_AFTER for name in self._picture.upcoming)
        return Deadline(self._queue.deadline().time_ns, not is_stuck)

    def _created(self, name: str, answered: Answered, now: int) -> bool:
        group_node, answer = self._picture.nodes.get(name), answered.answer
        if answer is Answer.DONE and group_node is not None:
            self._pauses.forget(group_node.group)
        if group_node is None or not group_node.is_expected or answer is Answer.DONE:
            return False
        if answer is Answer.UNKNOWN:
            self._failed[name] += 1
            self._queue.answer(name, answered, now)
            return False
        if answer is not Answer.REPLACED:
            self._pauses.fail(group_node.group, now)
        self._picture.give_up(name)
        return True

    def _work_on(self, name: str, group_node: GroupNode, now: int) -> list[Action]:
        if group_node.is_expected:
            return [CreateObject(group_node.raw, self._cause)]
        if not group_node.is_upcoming:
            self._failed.pop(name, None)
            self._queue.succeed(name)
            return []
        created = group_node.node.metadata.creation_timestamp
        ready_ns = (parse_time(created) if created else now) + self._groups[group_node.group].start_up_ns
        if now < ready_ns:
            self._queue.add_at(name, ready_ns)
            return []
        return [self._started(group_node)]

    def _started(self, group_node: GroupNode) -> PatchObject:
        """Say that the node is ready, then take off the taint: one step for each version of it that is seen."""
        meta = group_node.node.metadata
        conditions: list[Raw] = group_node.raw.get("status", {}).get("conditions", [])
        version = {"resourceVersion": meta.resource_version}
        if any(condition.get("type") == "Ready" and condition.get("reason") == STARTING for condition in conditions):
            ready = {"type": "Ready", "status": "True", "reason": "NodeStarted"}
            listed = [ready if condition.get("type") == "Ready" else condition for condition in conditions]
            patch = {"metadata": version, "status": {"conditions": listed}}
            return PatchObject("Node", meta.name, meta.uid, patch, self._cause, "status", "ready")
        taints = [taint for taint in group_node.raw["spec"]["taints"] if taint["key"] != STARTUP_TAINT]
        patch = {"metadata": version, "spec": {"taints": taints}}
        return PatchObject("Node", meta.name, meta.uid, patch, self._cause, message="started")
