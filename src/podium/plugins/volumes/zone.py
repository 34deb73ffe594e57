"""VolumeZone: a pod goes where its bound volumes' zone and region labels say that they are.

Source: pkg/scheduler/framework/plugins/volumezone/volume_zone.go.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from podium.api.selectors import NodeTerm, Requirement
from podium.api.storage import PersistentVolume
from podium.cluster.arrays import Bools
from podium.cluster.cluster import Cluster
from podium.cluster.node_selection import matching_term
from podium.cluster.pod_class import PodClass
from podium.cluster.pods import PodRecord
from podium.cluster.storage import Storage
from podium.cluster.view import View
from podium.framework.cycle_state import CycleState
from podium.framework.events import ActionType, ClusterEvent, EventResource, EventToRegister
from podium.framework.plugin import PluginContext, Scope
from podium.framework.status import SKIP, SUCCESS, Status, unresolvable
from podium.framework.verdicts import Verdicts
from podium.plugins.volumes.pod_claims import PodClaim, claim_not_found, concerns_own_claim, pod_claims

_REFUSAL = unresolvable("node(s) had no available volume zone")
_ZONE, _REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
# Each topology label, in upstream's order, with the label that stands in for it on a node that lacks it.
_STAND_IN = {
    "failure-domain.beta.kubernetes.io/zone": _ZONE,
    "failure-domain.beta.kubernetes.io/region": _REGION,
    _ZONE: _ZONE,
    _REGION: _REGION,
}
_SEPARATOR = "__"


class VolumeZone:
    """Compares the topology labels of bound volumes with those of nodes; a node without any takes every volume."""

    name = "VolumeZone"
    scope = Scope.CLUSTER

    def __init__(self, context: PluginContext) -> None:
        pass

    def pre_filter(self, state: CycleState, pod: PodRecord, cluster: Cluster) -> Status:
        """Skip pods whose volumes have no topology labels; turn down those with a claim that never was bound.

        A claim that waits for its first consumer is left to VolumeBinding.
        """
        needed: list[Requirement] = []
        for pod_claim in pod_claims(pod, cluster.storage):
            if pod_claim.is_ephemeral:
                continue
            volume = _bound_volume(pod_claim, cluster.storage)
            if isinstance(volume, Status):
                return volume
            if volume is not None:
                needed += _topology(volume)
        if not needed:
            return SKIP
        state[self.name] = needed
        return SUCCESS

    def never_filters(self, pod_class: PodClass) -> bool:
        """Those without claims."""
        return not pod_class.claims

    def filter_rows(self, state: CycleState, pod: PodRecord, view: View) -> Verdicts:
        """Refuse nodes with a topology label whose values do not match all of the volumes' labels."""
        labelled = np.zeros(len(view), dtype=np.bool_)
        for key in _STAND_IN:
            labelled |= view.codes(key) != 0
        matching = np.ones(len(view), dtype=np.bool_)
        for requirement in state[self.name]:
            matching &= _holds(view, requirement)
        return Verdicts.where(labelled & ~matching, _REFUSAL)

    def events_to_register(self) -> Sequence[EventToRegister]:
        """A class that binds late, a node, one of the claims or a volume may come, or change its labels."""
        return (
            EventToRegister(EventResource.STORAGE_CLASS, ActionType.ADD, _binds_late),
            EventToRegister(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL),
            EventToRegister(
                EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD | ActionType.UPDATE, concerns_own_claim
            ),
            EventToRegister(EventResource.PERSISTENT_VOLUME, ActionType.ADD | ActionType.UPDATE, _moves),
        )


def _bound_volume(pod_claim: PodClaim, storage: Storage) -> PersistentVolume | Status | None:
    """The volume of a claim, None for a claim that may yet be bound, or why the pod cannot run."""
    if pod_claim.claim is None:
        return unresolvable(claim_not_found(pod_claim.name))
    volume_name = pod_claim.claim.spec.volume_name
    if volume_name:
        return storage.volumes.get(volume_name) or unresolvable(f'persistentvolume "{volume_name}" not found')
    class_name = pod_claim.claim.class_name
    if not class_name:
        return unresolvable("PersistentVolumeClaim had no pv name and storageClass name")
    storage_class = storage.classes.get(class_name)
    if storage_class is None:
        return unresolvable(f'storageclass.storage.k8s.io "{class_name}" not found')
    binds_late = storage_class.volume_binding_mode == "WaitForFirstConsumer"
    return None if binds_late else unresolvable("PersistentVolume had no name")


def _topology(volume: PersistentVolume) -> list[Requirement]:
    """What the volume's labels ask of a node's; a label with an empty part says nothing."""
    found = []
    for key in _STAND_IN:
        parts = volume.metadata.labels.get(key, "").split(_SEPARATOR)
        if all(parts):
            found.append(Requirement(key, "In", tuple(parts)))
    return found


def _holds(view: View, requirement: Requirement) -> Bools:
    """``[n]``: where the label, or where a node lacks it its stand-in, has one of the values."""
    stand_in = Requirement(_STAND_IN[requirement.key], "In", requirement.values)
    holds = matching_term(view, NodeTerm((stand_in,)))
    holds &= view.codes(requirement.key) == 0
    return holds | matching_term(view, NodeTerm((requirement,)))


def _binds_late(pod: PodRecord, event: ClusterEvent) -> bool:
    return bool(event.new.volume_binding_mode == "WaitForFirstConsumer")


def _moves(pod: PodRecord, event: ClusterEvent) -> bool:
    return event.old is None or _topology(event.old) != _topology(event.new)
