"""A cluster for decisions that follows a live cluster by watches, and the programs that decide on it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from threading import Lock

from msgspec.structs import replace

from podium.api import devices, errors, storage
from podium.api.meta import Kubernetes
from podium.api.node import Namespace, Node
from podium.api.pod import Pod
from podium.api.versions.release import Release
from podium.app.explaining.explainer import SHAPING_KINDS, Explainer, ObjectAdmission
from podium.app.live.live_program import ACTIVE_PODS, OPTIONAL, LiveProgram
from podium.app.planning.deciding.decisions import Decisions
from podium.client.live_cluster import Watched
from podium.cluster.cluster import PodChange, PodSelectingObject
from podium.cluster.pods import PodRecord
from podium.controllers import actions, controller, deadlines
from podium.controllers.observations import Changed, Deleted, Observation
from podium.controllers.scheduling.scheduler import Scheduler
from podium.framework.settings.configuration import Configuration
from podium.runtime.runtime import Component

WATCHES = Scheduler.watches | {"PriorityClass"}
"""The kinds on which decisions about existing pods depend."""

_LOOKED_EACH_S = 0.05


class FollowedCluster(Explainer):
    """A controller that requests nothing, and keeps the cluster as the API server's objects come and go.

    ``changes`` counts the changes that may alter a decision: a node's heartbeat does not, nor the status of a
    ReplicaSet. ``is_complete``: all objects that were known at its start have been taken in. While another thread
    delivers observations, hold the ``lock`` to use it.
    """

    def __init__(
        self, configuration: Configuration, release: Release, now_ns: int, watches: frozenset[str] = WATCHES
    ) -> None:
        super().__init__((), configuration, release, now_ns=now_ns)
        self.watches = watches
        self.lock = Lock()
        self.changes = 0
        self.is_complete = False
        self.known: dict[tuple[str, str], Kubernetes] = {}
        """All objects but nodes and pods, by kind and key."""
        self._is_admission_old = False

    def deadline(self) -> deadlines.Deadline:
        """Return a time for one tick, which comes after the first observations."""
        return deadlines.NEVER if self.is_complete else deadlines.AT_ONCE

    def handle(self, observation: Observation, now: int) -> list[actions.Action]:
        if isinstance(observation, Changed | Deleted):
            item, is_gone = observation.object, isinstance(observation, Deleted)
            with self.lock:
                if isinstance(item, Pod):
                    is_relevant = self._follow_pod(item, is_gone=is_gone)
                elif isinstance(item, Node):
                    is_relevant = self._follow_node(item, is_gone=is_gone)
                else:
                    is_relevant = self._follow_other(item, is_gone=is_gone)
                self.changes += is_relevant
        elif not self.is_complete:
            self.is_complete = True
            return []
        return controller.NO_CHANGE

    def decisions(self, now_ns: int) -> Decisions:
        """Return decisions about the cluster as it is now; they are valid until the next observation."""
        self.cluster.pass_time(now_ns)
        self.objects = list(self.known.values())
        if self._is_admission_old:
            # Classes that contradict each other: the API server resolves that, so that the next change is awaited.
            with suppress(errors.InputError):
                self._admission = ObjectAdmission(item for item in self.objects if isinstance(item, _SHAPING))
            self._is_admission_old = False
        return Decisions(self)

    def _follow_pod(self, pod: Pod, *, is_gone: bool) -> bool:
        change: PodChange = self._feed.pod_gone(pod) if is_gone else self._feed.pod_changed(pod)
        before, after = change.before, change.after
        is_relevant = change.replaced is not None or _decisive(before) != _decisive(after)
        self._pending.pop(pod.key, None)
        self._feed.settle(change)
        if after is not None and not after.node_name:
            self._pending[after.key] = after
            self._nominate(after)
        return is_relevant

    def _follow_node(self, node: Node, *, is_gone: bool) -> bool:
        if is_gone:
            return self._feed.delete_object(node) is not None
        before = self._feed.known_node(node.metadata.name)
        if before is not None and _lasting(before) == _lasting(node):
            return False
        self._feed.update_object(node)
        return True

    def _follow_other(self, item: Kubernetes, *, is_gone: bool) -> bool:
        place = (item.kind, item.key)
        before = self.known.pop(place, None)
        if is_gone:
            self._feed.delete_object(item)
        else:
            self.known[place] = item
            if before is not None and _essence(before) == _essence(item):
                return False
            self._feed.update_object(item)
        self._is_admission_old |= isinstance(item, _SHAPING)
        if isinstance(item, storage.PersistentVolumeClaim | devices.ResourceClaim):
            # The gates of a pod may depend on its claims.
            for record in self._pending.values():
                self._nominate(record)
        return True


class FollowingProgram(LiveProgram):
    """A program that follows a cluster and writes nothing; ``kinds`` are those that it watches.

    ``followed`` is None before it starts; after a failure it is another one.
    """

    kinds = WATCHES
    followed: FollowedCluster | None = None

    def watched(self) -> Watched:
        return Watched(kinds=self.kinds, field_selectors={"Pod": ACTIVE_PODS}, optional=OPTIONAL)

    def components(self, *, is_podium_server: bool) -> list[Component]:
        def make() -> FollowedCluster:
            self.followed = FollowedCluster(self._settings.configuration, self.release, self.now(), self.kinds)
            return self.followed

        return [Component("followed-cluster", make)]

    async def known(self) -> FollowedCluster:
        """Return the followed cluster when it has all objects."""
        while (cluster := self.followed) is None or not cluster.is_complete:
            await asyncio.sleep(_LOOKED_EACH_S)
        return cluster


_SHAPING = (*SHAPING_KINDS, Namespace)


def _decisive(pod: PodRecord | None) -> tuple[object, ...] | None:
    """Return the properties of a pod that decisions depend on, besides its name."""
    if pod is None:
        return None
    ranking = (pod.pod_class, pod.priority, pod.preemption_policy, pod.start_ns, pod.owner_uid, pod.is_mirror)
    status = (pod.ready, pod.terminating, pod.preempted, pod.gates, pod.scheduler_name)
    return (*ranking, *status, pod.node_name or (pod.nominated_node_name,))


def _lasting(node: Node) -> tuple[object, ...]:
    """Return a node without its conditions, which count only as taints."""
    meta = node.metadata
    return meta.labels, meta.annotations, meta.uid, node.spec, replace(node.status, conditions=())


def _essence(item: Kubernetes) -> object:
    """Return the object without what no decision depends on."""
    if isinstance(item, PodSelectingObject):
        # Decisions depend only on the metadata and the spec of these.
        return item.metadata.labels, item.metadata.owner_references, item.spec
    return replace(item, metadata=replace(item.metadata, resource_version=""))
