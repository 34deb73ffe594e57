"""Keeps the avoid lists of nodes short: what is over, or about controllers that are gone, is taken off them.

Source: controlled-rescheduling.md, "/evict subresource and PreferAvoidPods". The design leaves it to controllers to
take off the entries about themselves; one component does it for all of them here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from podium.api.avoid_list import PREFER_AVOID_PODS, AvoidEntry, AvoidList, avoid_list, next_expiry_ns, unexpired
from podium.api.disruption_policy import POLICY_NAME, DisruptionPolicy
from podium.api.kinds import group_of
from podium.api.meta import Kubernetes
from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.replacements import Replacement, awaited_replacements
from podium.api.workloads import DaemonSet, Deployment, Job, ReplicaSet, ReplicationController, StatefulSet
from podium.machines.actions import Action, PatchObject
from podium.machines.concerns import Rest
from podium.machines.disruption.awaited_pods import AwaitedPods
from podium.machines.machine import UNMOVED
from podium.machines.observations import Answered, Changed, Gone, Observation, Tick
from podium.machines.parts.deadlines import Deadline, Deadlines, earliest, soonest
from podium.machines.parts.work_queue import WorkQueue

_CAUSE = "avoid-list-controller"
_DEFAULT_EXPIRE_AFTER_NS = DisruptionPolicy().spec.avoid_lists.expire_after_ns
# How long an entry is kept about a controller that was not seen yet: kinds may overtake one another on their way.
_UNSEEN_NS = 60 * 10**9

_API_GROUPS: dict[type[Kubernetes], str] = {
    DaemonSet: "apps",
    Deployment: "apps",
    Job: "batch",
    ReplicaSet: "apps",
    ReplicationController: "",
    StatefulSet: "apps",
}
_KNOWABLE = {(group, type_.__name__) for type_, group in _API_GROUPS.items()}


@dataclass(slots=True)
class _Listed:
    """A node with an avoid list; ``asked``: a change of just this version was asked for, and has not failed."""

    uid: str
    version: str
    text: str
    asked: bool = False


class AvoidLists:
    """The controller of avoid lists, as a machine.

    An entry is over when the DisruptionPolicy's `avoidLists.expireAfter` has passed since the eviction; one without a
    time never is. A controller is gone when it was seen and is no more, or is of a kind that is seen here and has not
    been seen a minute after the eviction. Other kinds of controllers are left to time alone. An entry that waits for a
    pod to be scheduled is over when that pod has a node, ends or is gone, or has not been seen a minute after the
    eviction. One that waits for a replacement is over when that has a node, or what was left for it is gone, or nothing
    was left for it a minute after the eviction. What was left for a replacement goes with its time, when it has a node,
    and with the controller.
    """

    watches = frozenset(("DisruptionPolicy", "Node", "Pod", *(type_.__name__ for type_ in _API_GROUPS)))
    at_rest = Rest(watches - {"DisruptionPolicy", "Node"})

    def __init__(self) -> None:
        self._expire_after_ns = _DEFAULT_EXPIRE_AFTER_NS
        self._nodes: dict[str, _Listed] = {}
        # The nodes that name a controller, by its uid.
        self._named: dict[str, dict[str, None]] = {}
        # The uids of the controllers that there are, by type and key, and of those on a list that were seen to go.
        self._uid_of: dict[tuple[type[Kubernetes], str], str] = {}
        self._alive: set[str] = set()
        self._gone: set[str] = set()
        self._awaited = AwaitedPods()
        self._queue: WorkQueue[str] = WorkQueue()
        self._expiries: Deadlines[str] = Deadlines()

    def handle(self, observation: Observation, now: int) -> list[Action]:
        """Take in an observation at ``now``; on a Tick, say what to take off."""
        # Most of what a cluster shows are pods: they are told without asking what else it might be.
        if isinstance(observation, Changed) and isinstance(pod := observation.object, Pod):
            return [] if self._look_at(self._awaited.put_pod(pod)) else UNMOVED
        match observation:
            case Changed(object=changed):
                self._put(changed)
            case Gone(object=gone):
                self._drop(gone)
            case Answered(action=PatchObject() as action):
                self._answered(action, observation, now)
            case Tick():
                return self._act(now)
        return []

    def deadline(self) -> Deadline:
        """When there is a list to look at; that entries run out one day, which moves no pod, is no news."""
        queue_ns = self._queue.deadline().time_ns
        return soonest(Deadline(queue_ns, queue_ns == 0), self._expiries.deadline(is_news=False))

    @property
    def rests(self) -> bool:
        """While no node has a list, none is about a pod or a controller."""
        return not self._nodes

    def _put(self, changed: Kubernetes) -> None:
        match changed:
            case Node():
                self._put_node(changed)
            case DisruptionPolicy() if changed.metadata.name == POLICY_NAME:
                self._set_expiry(changed.spec.avoid_lists.expire_after_ns)
            case _ if type(changed) in _API_GROUPS:
                self._put_controller(changed)

    def _drop(self, gone: Kubernetes) -> None:
        match gone:
            case Node():
                self._awaited.drop_node(gone.metadata.name)
                self._drop_node(gone.metadata.name)
            case Pod():
                self._look_at(self._awaited.drop_pod(gone))
            case DisruptionPolicy() if gone.metadata.name == POLICY_NAME:
                self._set_expiry(_DEFAULT_EXPIRE_AFTER_NS)
            case _:
                self._drop_controller((type(gone), gone.key))

    def _put_node(self, node: Node) -> None:
        name, meta = node.metadata.name, node.metadata
        uid, version, text = meta.uid, meta.resource_version, meta.annotations.get(PREFER_AVOID_PODS, "")
        self._awaited.put_node(node)
        before = self._nodes.get(name)
        if before is not None and (before.uid, before.text) == (uid, text):
            before.asked = before.asked and before.version == version
            before.version = version
        else:
            here = avoid_list(text)
            self._drop_node(name, here)
            if not here:
                return
            self._nodes[name] = _Listed(uid, version, text)
            for controller_uid in _controllers(here):
                self._named.setdefault(controller_uid, {})[name] = None
        self._queue.add(name)

    def _drop_node(self, name: str, after: AvoidList = AvoidList()) -> None:  # noqa: B008 - an immutable value
        """A node's list is another one, ``after``."""
        before = self._nodes.pop(name, None)
        listed = AvoidList() if before is None else avoid_list(before.text)
        if before is not None:
            self._expiries.set(name, None)
            self._queue.forget(name)
        for uid in _controllers(listed):
            self._named[uid].pop(name)
            if not self._named[uid]:
                del self._named[uid]
                self._gone.discard(uid)
        self._look_at(self._awaited.put_list(name, listed, after))

    def _look_at(self, names: Iterable[str]) -> bool:
        """Look at the lists of some nodes; whether there are any."""
        are_any = False
        for name in names:
            self._queue.add(name)
            are_any = True
        return are_any

    def _put_controller(self, controller: Kubernetes) -> None:
        key, uid = (type(controller), controller.key), controller.metadata.uid
        if self._uid_of.get(key) != uid:
            self._drop_controller(key)
            self._uid_of[key] = uid
            self._alive.add(uid)
            self._gone.discard(uid)

    def _drop_controller(self, key: tuple[type[Kubernetes], str]) -> None:
        uid = self._uid_of.pop(key, None)
        if uid is None:
            return
        self._alive.discard(uid)
        if uid in self._named:
            self._gone.add(uid)
            self._look_at(self._named[uid])

    def _set_expiry(self, expire_after_ns: int) -> None:
        if expire_after_ns != self._expire_after_ns:
            self._expire_after_ns = expire_after_ns
            self._look_at(self._nodes)

    def _answered(self, action: PatchObject, answered: Answered, now: int) -> None:
        listed = self._nodes.get(action.key)
        version = action.patch["metadata"]["resourceVersion"]
        if listed is None or action.cause != _CAUSE or listed.version != version:
            return
        listed.asked = answered.problem is None
        self._queue.answer(action.key, answered, now)

    def _act(self, now: int) -> list[Action]:
        while (due := self._expiries.take_due(now)) is not None:
            self._queue.add(due)
        actions: list[Action] = []
        while (name := self._queue.take(now)) is not None:
            if name in self._nodes:
                actions += self._trim(name, self._nodes[name], now)
        return actions

    def _trim(self, name: str, listed: _Listed, now: int) -> list[Action]:
        """What takes off a node's list who need not be there any more."""
        if listed.asked:
            return []
        here = avoid_list(listed.text)
        kept = AvoidList(
            tuple(
                entry for entry in unexpired(here.entries, self._expire_after_ns, now) if not self._is_over(entry, now)
            ),
            tuple(
                left
                for left in awaited_replacements(here.replacements, now)
                if not (self._is_gone(left, now) or self._awaited.is_used(name, left))
            ),
        )
        if kept == here:
            self._expiries.set(name, self._next_ns(kept))
            return []
        listed.asked = True
        annotations = {PREFER_AVOID_PODS: kept.written() if kept else None}
        patch = {"metadata": {"resourceVersion": listed.version, "annotations": annotations}}
        message = f"taken off the avoid list: {', '.join(_taken_off(here, kept))}"
        return [PatchObject("Node", name, listed.uid, patch, _CAUSE, message=message)]

    def _is_over(self, entry: AvoidEntry, now: int) -> bool:
        return self._is_gone(entry, now) or self._is_done(entry, now)

    def _is_gone(self, entry: AvoidEntry | Replacement, now: int) -> bool:
        uid = entry.controller.uid
        if uid in self._alive or not _is_knowable(entry):
            return False
        return uid in self._gone or self._is_long_ago(entry, now)

    def _is_done(self, entry: AvoidEntry, now: int) -> bool:
        """Whether the pod that was to have the room has it, or will not."""
        replaced = entry.until_replaced
        if replaced is not None:
            if self._awaited.is_awaited(replaced.uid):
                return False
            return self._awaited.is_replaced(replaced.uid) or self._is_long_ago(entry, now)
        awaited = entry.until_scheduled
        if awaited is None or self._awaited.is_pending(awaited.uid):
            return False
        return self._awaited.is_placed(awaited.uid) or self._is_long_ago(entry, now)

    def _is_long_ago(self, entry: AvoidEntry | Replacement, now: int) -> bool:
        """Whether whoever is not seen by now will not be."""
        return entry.eviction_ns is not None and entry.eviction_ns + _UNSEEN_NS <= now

    def _next_ns(self, kept: AvoidList) -> int | None:
        """When one of the entries runs out, or whom it is about has not been seen for too long."""
        unseen = [entry.eviction_ns for entry in kept.entries if self._is_about_unseen(entry)]
        unseen += [left.eviction_ns for left in kept.replacements if self._is_controller_unseen(left)]
        return earliest(
            (
                next_expiry_ns(kept.entries, self._expire_after_ns),
                *(left.expiry_ns for left in kept.replacements),
                *(time + _UNSEEN_NS for time in unseen if time is not None),
            )
        )

    def _is_about_unseen(self, entry: AvoidEntry) -> bool:
        awaited = entry.until_scheduled
        if awaited is not None and not self._awaited.is_pending(awaited.uid):
            return True
        replaced = entry.until_replaced
        if replaced is not None and not self._awaited.is_awaited(replaced.uid):
            return True
        return self._is_controller_unseen(entry)

    def _is_controller_unseen(self, entry: AvoidEntry | Replacement) -> bool:
        return _is_knowable(entry) and entry.controller.uid not in self._alive


def _controllers(here: AvoidList) -> set[str]:
    """The uids of the controllers that a list names."""
    entries = {entry.controller.uid for entry in here.entries}
    return entries | {left.controller.uid for left in here.replacements}


def _taken_off(before: AvoidList, kept: AvoidList) -> list[str]:
    """What is on a list no more, for people."""
    entries = [
        f"{entry.controller.kind} {entry.controller.name}" for entry in before.entries if entry not in kept.entries
    ]
    return entries + [
        f"what was left for the replacement of pod {left.evicted_pod.name}"
        for left in before.replacements
        if left not in kept.replacements
    ]


def _is_knowable(entry: AvoidEntry | Replacement) -> bool:
    """Whether the entry's controller is of a kind of which all that there are are seen here."""
    return (group_of(entry.controller.api_version), entry.controller.kind) in _KNOWABLE
