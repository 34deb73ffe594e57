"""The controllers that make pods: Deployments keep ReplicaSets, ReplicaSets and Jobs keep pods."""

from __future__ import annotations

from collections import Counter

from podium.api.errors import PodiumError
from podium.api.meta import OwnerReference
from podium.api.pod import Pod
from podium.api.workloads import Deployment, Job, ReplicaSet
from podium.sim.deployments import keep_replica_set
from podium.sim.jobs import active_wanted
from podium.sim.owned_pods import OwnedPods
from podium.sim.replicas import label, scale
from podium.sim.writes import Delete, Write
from podium.store.stored import Stored
from podium.store.watch_log import WatchEvent

_COLLECTOR = "garbage-collector"


_MAX_PODS_AT_ONCE = 1_000
"""How many pods, beyond ten times those it wants, an owner may ask for without time passing."""


class Workloads:
    """Replaces pods that ended or are about to, and deletes what a deleted workload owns.

    Pods belong to the workload that their owner reference names as the controller, by uid; others are not adopted.
    """

    def __init__(self) -> None:
        self._owners: dict[str, Stored] = {}
        self._pods = OwnedPods()
        self._sets: dict[str, dict[str, Stored]] = {}
        # The owners that something has happened to, in that order.
        self._dirty: dict[str, None] = {}
        self._garbage: list[Write] = []
        # How many pods each owner has asked for at the instant `_instant_ns`.
        self._created: Counter[str] = Counter()
        self._instant_ns = 0

    def observe(self, event: WatchEvent, now: int) -> None:
        object_ = event.stored.object
        if isinstance(object_, Pod):
            self._dirty[self._pods.observe(object_, event)] = None
        elif isinstance(object_, Deployment | ReplicaSet | Job):
            self._observe_owner(event)

    def reconcile(self, now: int) -> list[Write]:
        if now != self._instant_ns:
            self._instant_ns, self._created = now, Counter()
        writes, self._garbage = self._garbage, []
        dirty, self._dirty = self._dirty, {}
        for uid in dirty:
            owner = self._owners.get(uid)
            if owner is not None and owner.object.metadata.deletion_timestamp is None:
                asked = self._sync(owner)
                self._refuse_endless(owner, len(asked))
                writes.extend(asked)
        return writes

    def next_deadline(self) -> int | None:
        return None

    def _observe_owner(self, event: WatchEvent) -> None:
        stored = event.stored
        parent = stored.object.metadata.controller
        if event.type == "DELETED":
            del self._owners[stored.uid]
            self._collect(stored.uid)
        else:
            self._owners[stored.uid] = stored
        self._dirty[stored.uid] = None
        if isinstance(stored.object, ReplicaSet) and parent is not None:
            self._observe_set(parent, event)

    def _observe_set(self, parent: OwnerReference, event: WatchEvent) -> None:
        sets = self._sets.setdefault(parent.uid, {})
        if event.type == "DELETED":
            del sets[event.stored.uid]
        else:
            sets[event.stored.uid] = event.stored
        self._dirty[parent.uid] = None

    def _refuse_endless(self, owner: Stored, writes: int) -> None:
        """Raise PodiumError when an owner's pods end as soon as they exist: time would never pass."""
        self._created[owner.uid] += writes
        wanted = 1 if isinstance(owner.object, Job) else owner.raw.get("spec", {}).get("replicas", 1)
        if self._created[owner.uid] > _MAX_PODS_AT_ONCE + 10 * wanted:
            name = label(owner.object)
            raise PodiumError(f"{name}: its pods end as soon as they start, and are replaced for ever at one instant")

    def _collect(self, uid: str) -> None:
        """Delete what an owner that is gone has left."""
        for stored in self._sets.get(uid, {}).values():
            self._garbage.append(Delete("ReplicaSet", stored.key, stored.uid, _COLLECTOR))
        for pod in self._pods.all(uid).values():
            self._garbage.append(Delete("Pod", pod.key, pod.metadata.uid, _COLLECTOR))

    def _sync(self, owner: Stored) -> list[Write]:
        if isinstance(owner.object, Deployment):
            return keep_replica_set(owner, self._sets.get(owner.uid, {}).values())
        active = self._pods.active(owner.uid).values()
        if isinstance(owner.object, ReplicaSet):
            return scale(owner, active, owner.object.spec.replicas, {})
        if not isinstance(owner.object, Job):
            raise TypeError(f"{owner.kind} {owner.key} makes no pods")
        succeeded, failed = (self._pods.ended(owner.uid, phase) for phase in ("Succeeded", "Failed"))
        wanted = active_wanted(owner.object, owner.raw, len(active), succeeded, failed)
        name = owner.object.metadata.name
        return scale(owner, active, wanted, {"batch.kubernetes.io/job-name": name, "job-name": name})
