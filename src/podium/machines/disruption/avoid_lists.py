"""Keeps the avoid lists of nodes short: what is over, or about controllers that are gone, is taken off them.

Source: controlled-rescheduling.md, "/evict subresource and PreferAvoidPods". The design leaves it to controllers to
take off the entries about themselves; one component does it for all of them here.
"""

from __future__ import annotations

from dataclasses import dataclass

from podium.api.avoid_list import PREFER_AVOID_PODS, AvoidEntry, avoid_entries, next_expiry_ns, unexpired, written
from podium.api.disruption_policy import POLICY_NAME, DisruptionPolicy
from podium.api.kinds import group_of
from podium.api.meta import Kubernetes
from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.workloads import DaemonSet, Deployment, Job, ReplicaSet, ReplicationController, StatefulSet
from podium.machines.actions import Action, PatchObject
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
    eviction.
    """

    watches = frozenset(("DisruptionPolicy", "Node", "Pod", *(type_.__name__ for type_ in _API_GROUPS)))

    def __init__(self) -> None:
        self._expire_after_ns = _DEFAULT_EXPIRE_AFTER_NS
        self._nodes: dict[str, _Listed] = {}
        # The nodes that name a controller, by its uid.
        self._named: dict[str, dict[str, None]] = {}
        # The uids of the controllers that there are, by type and key, and of those on a list that were seen to go.
        self._uid_of: dict[tuple[type[Kubernetes], str], str] = {}
        self._alive: set[str] = set()
        self._gone: set[str] = set()
        # The nodes whose entries wait for a pod, by its uid; which of these pods wait no more; and all that do wait.
        self._awaiting: dict[str, dict[str, None]] = {}
        self._placed: set[str] = set()
        self._pending: set[str] = set()
        self._queue: WorkQueue[str] = WorkQueue()
        self._expiries: Deadlines[str] = Deadlines()

    def handle(self, observation: Observation, now: int) -> list[Action]:
        """Take in an observation at ``now``; on a Tick, say what to take off."""
        match observation:
            case Changed(object=Pod() as pod):
                if not self._put_pod(pod):
                    return UNMOVED
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
                self._drop_node(gone.metadata.name)
            case Pod():
                self._waits_no_more(gone.metadata.uid)
            case DisruptionPolicy() if gone.metadata.name == POLICY_NAME:
                self._set_expiry(_DEFAULT_EXPIRE_AFTER_NS)
            case _:
                self._drop_controller((type(gone), gone.key))

    def _put_node(self, node: Node) -> None:
        name, meta = node.metadata.name, node.metadata
        uid, version, text = meta.uid, meta.resource_version, meta.annotations.get(PREFER_AVOID_PODS, "")
        before = self._nodes.get(name)
        if before is not None and (before.uid, before.text) == (uid, text):
            before.asked = before.asked and before.version == version
            before.version = version
        else:
            self._drop_node(name)
            if not avoid_entries(text):
                return
            self._nodes[name] = _Listed(uid, version, text)
            for entry in avoid_entries(text):
                self._named.setdefault(entry.controller.uid, {})[name] = None
                if entry.until_scheduled is not None:
                    self._awaiting.setdefault(entry.until_scheduled.uid, {})[name] = None
        self._queue.add(name)

    def _drop_node(self, name: str) -> None:
        before = self._nodes.pop(name, None)
        if before is None:
            return
        self._expiries.set(name, None)
        self._queue.forget(name)
        for uid in {entry.controller.uid for entry in avoid_entries(before.text)}:
            self._named[uid].pop(name)
            if not self._named[uid]:
                del self._named[uid]
                self._gone.discard(uid)
        for uid in {entry.until_scheduled.uid for entry in avoid_entries(before.text) if entry.until_scheduled}:
            self._awaiting[uid].pop(name)
            if not self._awaiting[uid]:
                del self._awaiting[uid]
                self._placed.discard(uid)

    def _put_pod(self, pod: Pod) -> bool:
        """Take in a pod as it is now; whether a node's list is to be looked at."""
        if pod.spec.node_name or pod.is_terminal:
            return self._waits_no_more(pod.metadata.uid)
        self._pending.add(pod.metadata.uid)
        return False

    def _waits_no_more(self, uid: str) -> bool:
        """Take note that a pod does not wait for a node; whether a node's list is to be looked at."""
        self._pending.discard(uid)
        if uid not in self._awaiting or uid in self._placed:
            return False
        self._placed.add(uid)
        for name in self._awaiting[uid]:
            self._queue.add(name)
        return True

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
            for name in self._named[uid]:
                self._queue.add(name)

    def _set_expiry(self, expire_after_ns: int) -> None:
        if expire_after_ns != self._expire_after_ns:
            self._expire_after_ns = expire_after_ns
            for name in self._nodes:
                self._queue.add(name)

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
        entries = avoid_entries(listed.text)
        left = unexpired(entries, self._expire_after_ns, now)
        kept = [entry for entry in left if not (self._is_gone(entry, now) or self._is_done(entry, now))]
        if len(kept) == len(entries):
            self._expiries.set(name, self._next_ns(kept))
            return []
        listed.asked = True
        off = [f"{entry.controller.kind} {entry.controller.name}" for entry in entries if entry not in kept]
        annotations = {PREFER_AVOID_PODS: written(kept) if kept else None}
        patch = {"metadata": {"resourceVersion": listed.version, "annotations": annotations}}
        message = f"taken off the avoid list: {', '.join(off)}"
        return [PatchObject("Node", name, listed.uid, patch, _CAUSE, message=message)]

    def _is_gone(self, entry: AvoidEntry, now: int) -> bool:
        uid = entry.controller.uid
        if uid in self._alive or not _is_knowable(entry):
            return False
        return uid in self._gone or self._is_long_ago(entry, now)

    def _is_done(self, entry: AvoidEntry, now: int) -> bool:
        """Whether the pod that was to have the room has it, or will not."""
        if entry.until_scheduled is None or entry.until_scheduled.uid in self._pending:
            return False
        return entry.until_scheduled.uid in self._placed or self._is_long_ago(entry, now)

    def _is_long_ago(self, entry: AvoidEntry, now: int) -> bool:
        """Whether whoever is not seen by now will not be."""
        return entry.eviction_ns is not None and entry.eviction_ns + _UNSEEN_NS <= now

    def _next_ns(self, entries: list[AvoidEntry]) -> int | None:
        """When one of the entries runs out, or whom it is about has not been seen for too long."""
        unseen = (
            entry.eviction_ns for entry in entries if self._is_about_unseen(entry) and entry.eviction_ns is not None
        )
        return earliest((next_expiry_ns(entries, self._expire_after_ns), *(time + _UNSEEN_NS for time in unseen)))

    def _is_about_unseen(self, entry: AvoidEntry) -> bool:
        awaited = entry.until_scheduled
        if awaited is not None and awaited.uid not in self._pending:
            return True
        return _is_knowable(entry) and entry.controller.uid not in self._alive


def _is_knowable(entry: AvoidEntry) -> bool:
    """Whether the entry's controller is of a kind of which all that there are are seen here."""
    return (group_of(entry.controller.api_version), entry.controller.kind) in _KNOWABLE
