"""The controller of the nodes' avoid lists: it removes entries that are over, or whose controllers are gone.

Source: controlled-rescheduling.md, "/evict subresource and PreferAvoidPods". In the design each controller removes its
own entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import get_args

from podium.api.avoid_list import (
    PREFER_AVOID_PODS,
    AvoidEntry,
    AvoidList,
    Replacement,
    avoid_list,
    avoid_list_text,
    unexpired,
)
from podium.api.disruption_policy import POLICY_NAME, DisruptionPolicy
from podium.api.kinds import KIND_OF, group_of
from podium.api.meta import Kubernetes
from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.workloads import PodMaker
from podium.cluster.replacements import ControlledPod, Replacements, controlled_pod
from podium.controllers import controller, indexes, observations
from podium.controllers.actions import Action, Record, versioned_patch
from podium.controllers.controller import AVOIDED, NO_CHANGE, IdleDeferral
from podium.controllers.deadlines import AT_ONCE, Deadline, earliest

_CAUSE = "avoid-list-controller"
_DEFAULT_LIMITS = DisruptionPolicy().spec.avoid_lists
PUSHED_OUT = "AvoidListFull"
"""The reason of the event about an entry that a full list lost before its time."""
# How long an entry about an unobserved controller is kept, because kinds may be observed out of order.
_UNSEEN_NS = 60 * 10**9

_CONTROLLERS = get_args(PodMaker)
_KNOWABLE = {(group_of(KIND_OF[type_].api_version), type_.__name__) for type_ in _CONTROLLERS}


class AvoidListController(controller.Reconciler[str]):
    """Removes entries from the avoid lists of nodes (by name) when they are over.

    An entry is over `avoidLists.expireAfter` after the eviction, if it has a time; when its controller is gone, or of
    an observed kind and unobserved a minute after the eviction; when the pod that it waits for has a node, is gone, or
    is unobserved a minute after the eviction; and when the replacement that it waits for has a node, its hint is gone,
    or there was none a minute after the eviction. A hint for a replacement ends with its time, with the replacement's
    binding, and with its controller.
    """

    watches = frozenset(("DisruptionPolicy", "Node", "Pod", *(type_.__name__ for type_ in _CONTROLLERS)))
    idle_deferral = IdleDeferral(watches - {"DisruptionPolicy"}, unless=AVOIDED)

    def __init__(self) -> None:
        super().__init__()
        self._limits = _DEFAULT_LIMITS
        # The nodes with a list, and those that name a controller, by its uid.
        self._nodes: dict[str, Node] = {}
        self._named: indexes.MultiMap[str, str] = indexes.MultiMap()
        # The uids of existing controllers by type and key, and of deleted ones on a list.
        self._uid_of: dict[tuple[type[Kubernetes], str], str] = {}
        self._alive: set[str] = set()
        self._deleted: set[str] = set()
        self._awaited = AwaitedPods()
        # By node, the version on which the last write was based, unless that failed.
        self._written: dict[str, str] = {}

    def deadline(self) -> Deadline:
        """Return when a list is due; expiries and retries, which move no pod, do not keep a simulation running."""
        deadline = super().deadline()
        return deadline if deadline is AT_ONCE else Deadline(deadline.time_ns, False)

    @property
    def is_idle(self) -> bool:
        """Return whether no node has a list."""
        return not self._nodes

    def _observe(self, object_: Kubernetes, shown: observations.Changed | None, now: int) -> list[Action]:
        is_gone, uid = shown is None, object_.metadata.uid
        if isinstance(object_, Pod):
            names = list((self._awaited.drop_pod if is_gone else self._awaited.put_pod)(object_))
            self._queue.add_all(names)
            return [] if names else NO_CHANGE
        if isinstance(object_, Node):
            if not is_gone:
                return self._node_changed(object_, now)
            self._awaited.replacements.drop_node(object_.metadata.name)
            self._forget_list(object_.metadata.name, AvoidList())
        elif isinstance(object_, DisruptionPolicy):
            if object_.metadata.name == POLICY_NAME:
                before, self._limits = self._limits, _DEFAULT_LIMITS if is_gone else object_.spec.avoid_lists
                if self._limits.expire_after_ns != before.expire_after_ns:
                    self._queue.add_all(self._nodes)
        elif isinstance(object_, _CONTROLLERS):
            key = type(object_), object_.key
            if is_gone or self._uid_of.get(key) != uid:
                self._controller_gone(key)
            if not is_gone:
                self._uid_of[key] = uid
                self._alive.add(uid)
                self._deleted.discard(uid)
        return []

    def _node_changed(self, node: Node, now: int) -> list[Action]:
        """Take in a node; return events about entries that were displaced from its list."""
        name, uid, here = node.metadata.name, node.metadata.uid, _list_of(node)
        self._awaited.replacements.put_node(node, self._awaited.pending_of)
        before = self._nodes.get(name)
        lost: list[AvoidEntry] = []
        if before is None or before.metadata.uid != uid or avoid_list_text(before) != avoid_list_text(node):
            if before is not None and before.metadata.uid == uid:
                # The entries that left a full list for another controller's entry before their time.
                old, listed = _list_of(before).entries, {entry.controller.uid for entry in here.entries}
                is_full = len(here.entries) >= self._limits.max_entries
                if is_full and not listed <= {entry.controller.uid for entry in old}:
                    lost = self._current([entry for entry in old if entry.controller.uid not in listed], now)
            self._forget_list(name, here)
            if not here:
                return []
            for controller_uid in _controllers(here):
                self._named.add(controller_uid, name)
        self._nodes[name] = node
        self._queue.add(name)
        events: list[Action] = []
        for entry in lost:
            message = (
                f"the avoid list is full with {self._limits.max_entries} entries: {entry.controller.kind} "
                f"{entry.controller.name} is no longer avoided here, listed since "
                f"{entry.eviction_time or 'an unknown time'}"
            )
            events.append(Record("", uid, "Warning", PUSHED_OUT, message, workload=f"Node {name}"))
        return events

    def _forget_list(self, name: str, after: AvoidList) -> None:
        """Forget a node's list, in place of which comes ``after``."""
        before = self._nodes.pop(name, None)
        listed = AvoidList() if before is None else _list_of(before)
        if before is not None:
            self._written.pop(name, None)
            self._forget(name)
        for uid in _controllers(listed):
            if self._named.discard(uid, name):
                self._deleted.discard(uid)
        self._queue.add_all(self._awaited.put_list(name, listed, after))

    def _controller_gone(self, key: tuple[type[Kubernetes], str]) -> None:
        uid = self._uid_of.pop(key, None)
        if uid is None:
            return
        self._alive.discard(uid)
        if uid in self._named:
            self._deleted.add(uid)
            self._queue.add_all(self._named[uid])

    def _handle_answer(self, key: str, finished: observations.ActionFinished, now: int) -> list[Action]:
        if self._written.get(key) != self._nodes[key].metadata.resource_version:
            return []
        if finished.problem is not None:
            del self._written[key]
        return super()._handle_answer(key, finished, now)

    def _reconcile(self, key: str, now: int) -> list[Action]:
        """Return the write that removes entries which are over from a node's list."""
        node = self._nodes.get(key)
        if node is None or self._written.get(key) == node.metadata.resource_version:
            return []
        here = _list_of(node)
        left = [
            left
            for left in here.replacements
            if left.expiry_ns > now
            and ((gone_ns := self._controller_gone_ns(left)) is None or gone_ns > now)
            and not self._awaited.replacements.is_used(key, left)
        ]
        kept = AvoidList(tuple(self._current(here.entries, now)), tuple(left))
        if kept == here:
            self._queue.add_at(key, self._next_ns(kept), recurs=True)
            return []
        self._written[key] = node.metadata.resource_version
        annotations = {PREFER_AVOID_PODS: kept.written() if kept else None}
        entries = (entry.controller for entry in here.entries if entry not in kept.entries)
        gone = [f"{controller.kind} {controller.name}" for controller in entries]
        hints = (hint.evicted_pod for hint in here.replacements if hint not in kept.replacements)
        gone += [f"what was left for the replacement of pod {pod.name}" for pod in hints]
        message = f"taken off the avoid list: {', '.join(gone)}"
        return [versioned_patch(node, {"metadata": {"annotations": annotations}}, _CAUSE, message=message)]

    def _current(self, entries: Iterable[AvoidEntry], now: int) -> list[AvoidEntry]:
        """Return the entries that are not over."""
        found = unexpired(entries, self._limits.expire_after_ns, now)
        return [entry for entry in found if (over_ns := self._over_ns(entry)) is None or over_ns > now]

    def _over_ns(self, entry: AvoidEntry) -> int | None:
        """Return when an entry is over, if it does not expire and nothing happens before; 0 if it is."""
        is_over = self._awaited.is_over(entry)
        wait_ns = None if is_over is False else 0 if is_over else _unseen_until_ns(entry)
        return earliest((wait_ns, self._controller_gone_ns(entry)))

    def _controller_gone_ns(self, entry: AvoidEntry | Replacement) -> int | None:
        """Return when the controller of an entry counts as gone; 0 if it is gone, None if it exists."""
        controller = entry.controller
        is_known = (group_of(controller.api_version), controller.kind) in _KNOWABLE
        if controller.uid in self._alive or not is_known:
            return None
        return 0 if controller.uid in self._deleted else _unseen_until_ns(entry)

    def _next_ns(self, kept: AvoidList) -> int | None:
        """Return when an entry or hint of a list is over, if nothing happens before."""
        times = [entry.expiry_ns(self._limits.expire_after_ns) for entry in kept.entries]
        times += [self._over_ns(entry) for entry in kept.entries]
        for left in kept.replacements:
            times += [left.expiry_ns, self._controller_gone_ns(left)]
        return earliest(times)


def _list_of(node: Node) -> AvoidList:
    return avoid_list(avoid_list_text(node))


def _unseen_until_ns(entry: AvoidEntry | Replacement) -> int | None:
    """Return when an object of an entry that was never observed counts as gone; None without a time of the eviction."""
    return None if entry.eviction_ns is None else entry.eviction_ns + _UNSEEN_NS


def _controllers(here: AvoidList) -> set[str]:
    entries = {entry.controller.uid for entry in here.entries}
    return entries | {left.controller.uid for left in here.replacements}


class AwaitedPods:
    """The pods that the nodes' lists wait for. Methods return the nodes whose lists must be checked."""

    def __init__(self) -> None:
        self.replacements = Replacements()
        # The nodes that wait for a pod, and for the replacement of an evicted pod, by its uid.
        self._scheduled = _Waiting()
        self._replaced = _Waiting()
        self._pending: dict[str, Pod] = {}

    def put_list(self, name: str, before: AvoidList, here: AvoidList) -> Iterable[str]:
        """Replace a node's list, after `replacements.put_node`."""
        was_scheduled, was_replaced = _awaited_uids(before)
        scheduled, replaced = _awaited_uids(here)
        self._scheduled.replace(name, was_scheduled - scheduled, scheduled - was_scheduled)
        self._replaced.replace(name, was_replaced - replaced, replaced - was_replaced)
        # A replacement that is not awaited any more is not awaited again.
        left = (left.evicted_pod.uid for left in before.replacements)
        return [node for uid in left if not self.replacements.is_awaited(uid) for node in self._replaced.end(uid)]

    def put_pod(self, pod: Pod) -> Iterable[str]:
        uid, node_name = pod.metadata.uid, pod.spec.node_name
        if pod.is_terminal and not node_name:
            return self.drop_pod(pod)
        found = controlled_pod(pod) if self.replacements.awaited else None
        if not node_name:
            self._pending[uid] = pod
            if found is not None:
                self.replacements.put_pod(found, is_settled=False)
            return ()
        self._pending.pop(uid, None)
        nodes = self._scheduled.end(uid)
        if found is None or found.controller_uid not in self.replacements.awaited:
            return nodes
        self.replacements.put_pod(found, is_settled=True)
        of_controller = self.replacements.nodes_of(found.controller_uid)
        left = self.replacements.by_pod.get(found.uid)
        return [*nodes, *of_controller, *(() if left is None else self._replaced.end(left.evicted_pod.uid))]

    def drop_pod(self, pod: Pod) -> Iterable[str]:
        """Forget a pod that is gone, or ended without a node."""
        found = controlled_pod(pod) if self.replacements.awaited else None
        if found is not None:
            self.replacements.drop_pod(found.controller_uid, found.uid, is_settled=bool(pod.spec.node_name))
        self._pending.pop(pod.metadata.uid, None)
        return self._scheduled.end(pod.metadata.uid)

    def is_over(self, entry: AvoidEntry) -> bool | None:
        """Return whether the pod that an entry waits for has its room, or will not get it; None if unobserved."""
        if entry.until_replaced is not None:
            uid, waiting = entry.until_replaced.uid, self._replaced
            is_awaited = self.replacements.is_awaited(uid)
        elif entry.until_scheduled is not None:
            uid, waiting = entry.until_scheduled.uid, self._scheduled
            is_awaited = uid in self._pending
        else:
            return False
        return False if is_awaited else True if uid in waiting.over else None

    def pending_of(self, controller_uid: str) -> list[ControlledPod]:
        """Return the pending pods of a controller."""
        found = map(controlled_pod, self._pending.values())
        return [pod for pod in found if pod is not None and pod.controller_uid == controller_uid]


class _Waiting(indexes.MultiMap[str, str]):
    """The nodes whose entries wait for a pod, by its uid; ``over`` are pods that are no longer awaited."""

    def __init__(self) -> None:
        super().__init__()
        self.over: set[str] = set()

    def discard(self, key: str, item: str) -> bool:
        """Remove a node from those that wait for a pod; return whether none waits now."""
        if is_last := super().discard(key, item):
            self.over.discard(key)
        return is_last

    def end(self, uid: str) -> list[str]:
        """Record that a pod is no longer awaited; return the nodes that waited for it."""
        if uid not in self or uid in self.over:
            return []
        self.over.add(uid)
        return list(self[uid])


def _awaited_uids(here: AvoidList) -> tuple[Set[str], Set[str]]:
    """Return the uids of the pods that entries wait for, and of evicted pods for whose replacements they do."""
    scheduled = {entry.until_scheduled.uid for entry in here.entries if entry.until_scheduled is not None}
    return scheduled, {entry.until_replaced.uid for entry in here.entries if entry.until_replaced is not None}
