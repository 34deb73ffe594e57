"""The controllers that keep deleted volumes, claims and PodGroups while they are in use, by finalizers.

Source: pkg/controller/volume/pvprotection and pvcprotection; pkg/controller/scheduling for PodGroups.
"""

from __future__ import annotations

from podium.api.meta import Kubernetes
from podium.api.pod import Pod
from podium.api.pod_group import GROUP_PROTECTION, group_of_pod
from podium.api.storage import CLAIM_PROTECTION, VOLUME_PROTECTION, PersistentVolume
from podium.controllers.actions import Action, versioned_patch
from podium.controllers.controller import CLAIMING, NO_CHANGE, Reconciler
from podium.controllers.indexes import MultiMap, exchange
from podium.controllers.observations import Changed


class VolumeProtection(Reconciler[str]):
    """Keeps deleted volumes until they are not bound: removes the finalizer that protects them then.

    With ``reports_all``, it also adds the finalizer to objects that were created without it.
    """

    watches = frozenset(("PersistentVolume",))
    finalizer = VOLUME_PROTECTION
    name = "persistentvolume-protection-controller"

    def __init__(self, *, reports_all: bool = False) -> None:
        super().__init__()
        self._reports_all = reports_all
        # By key, the objects that are deleted, or lack the finalizer.
        self._noted: dict[str, Kubernetes] = {}

    def _observe(self, object_: Kubernetes, shown: Changed | None, now: int) -> list[Action]:
        if shown is None:
            self._noted.pop(object_.key, None)
            self._forget(object_.key)
            return []
        metadata = object_.metadata
        is_deleted, is_protected = metadata.deletion_timestamp is not None, self.finalizer in metadata.finalizers
        if is_deleted is not is_protected or not (is_deleted or self._reports_all):
            self._noted.pop(object_.key, None)
            return NO_CHANGE
        self._noted[object_.key] = object_
        self._queue.add(object_.key)
        return []

    def _reconcile(self, key: str, now: int) -> list[Action]:
        object_ = self._noted.get(key)
        if object_ is None:
            return []
        finalizers = object_.metadata.finalizers
        if object_.metadata.deletion_timestamp is None:
            left = [*finalizers, self.finalizer]
        elif self._is_used(object_):
            return []
        else:
            left = [finalizer for finalizer in finalizers if finalizer != self.finalizer]
        return [versioned_patch(object_, {"metadata": {"finalizers": left}}, self.name)]

    def _is_used(self, object_: Kubernetes) -> bool:
        return isinstance(object_, PersistentVolume) and object_.status.phase == "Bound"


class ClaimProtection(VolumeProtection):
    """Keeps deleted claims until no pod with a node refers to them."""

    watches = frozenset(("PersistentVolumeClaim", "Pod"))
    pod_aspects = CLAIMING
    finalizer = CLAIM_PROTECTION
    name = "persistentvolumeclaim-protection-controller"

    def __init__(self, *, reports_all: bool = False) -> None:
        super().__init__(reports_all=reports_all)
        # By the key of a pod, those of what it uses; by the key of that, those of its pods.
        self._used: dict[str, frozenset[str]] = {}
        self._users: MultiMap[str, str] = MultiMap()

    def _observe(self, object_: Kubernetes, shown: Changed | None, now: int) -> list[Action]:
        if not isinstance(object_, Pod):
            return super()._observe(object_, shown, now)
        pod, used = object_.key, frozenset[str]() if shown is None else self._used_by(object_)
        before = exchange(self._used, pod, used or None) or frozenset()
        if used == before:
            return NO_CHANGE
        self._users.replace(pod, before, used)
        left = sorted(key for key in before - used if key in self._noted)
        self._queue.add_all(left)
        return [] if left else NO_CHANGE

    def _is_used(self, object_: Kubernetes) -> bool:
        return object_.key in self._users

    def _used_by(self, pod: Pod) -> frozenset[str]:
        """Return the keys of the claims that a pod keeps in use, none before it has a node.

        A pod whose kubelet has ended it does not use the claims of its ephemeral volumes any more.
        """
        metadata = pod.metadata
        is_shut_down = metadata.deletion_timestamp is not None and metadata.deletion_grace_period_seconds == 0
        names = []
        for volume in pod.spec.volumes if pod.spec.node_name else ():
            if volume.persistent_volume_claim is not None:
                names.append(volume.persistent_volume_claim.claim_name)
            elif volume.ephemeral is not None and not is_shut_down:
                names.append(f"{metadata.name}-{volume.name}")
        return frozenset(f"{metadata.namespace}/{name}" for name in names)


class GroupProtection(ClaimProtection):
    """Keeps deleted PodGroups until no pod that has not ended refers to them."""

    watches = frozenset(("PodGroup", "Pod"))
    finalizer = GROUP_PROTECTION
    name = "podgroup-protection-controller"

    def _used_by(self, pod: Pod) -> frozenset[str]:
        group = group_of_pod(pod.metadata.namespace, pod.metadata.labels, pod.spec)
        return frozenset((group,) if group and not pod.is_terminal else ())
