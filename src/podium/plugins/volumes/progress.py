"""How far the bindings are that were asked for before a pod is bound.

Source: pkg/scheduler/framework/plugins/volumebinding/binder.go (checkBindings).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from podium.api.storage import PersistentVolume, PersistentVolumeClaim
from podium.api.volume_annotations import BIND_COMPLETED, SELECTED_NODE
from podium.cluster.cluster import Cluster
from podium.cluster.view import View
from podium.framework.claims import ClaimBinding
from podium.framework.status import SUCCESS, Code, Status
from podium.plugins.volumes.search import VolumeSearch

_WAIT = Status(Code.WAIT)


class BindingProgress:
    """The bindings of one pod's claims, as the API shows them."""

    def __init__(self, cluster: Cluster, bindings: Sequence[ClaimBinding], node_name: str) -> None:
        self._cluster = cluster
        self._storage = cluster.storage
        self._bindings = bindings
        self._node_name = node_name
        # Those that the API has shown to be asked for; what is taken back after that will not come.
        self._asked: set[ClaimBinding] = set()

    def look(self) -> Status:
        """Whether all claims are bound: SUCCESS, WAIT, or the error for which one will not be."""
        for binding in self._bindings:
            status = self._look_at(binding)
            if not status.is_success:
                return status
        return SUCCESS

    def _look_at(self, binding: ClaimBinding) -> Status:
        claim = self._storage.claims.get(binding.claim)
        if claim is None or claim.metadata.uid != binding.uid:
            return failed(f'could not find v1.PersistentVolumeClaim "{binding.claim}"')
        name = binding.volume or claim.spec.volume_name
        volume = self._storage.volumes.get(name)
        if binding.volume and volume is None:
            return failed(f'could not find v1.PersistentVolume "{name}"')
        if self._is_asked(binding, claim, volume):
            self._asked.add(binding)
        elif binding in self._asked:
            reset = f'ClaimRef got reset for pv "{name}"'
            return failed(reset if binding.volume else f'provisioning failed for PVC "{claim.metadata.name}"')
        if volume is None or binding not in self._asked or not is_bound(claim):
            return _WAIT
        return self._reach(claim, name)

    def _is_asked(self, binding: ClaimBinding, claim: PersistentVolumeClaim, volume: PersistentVolume | None) -> bool:
        """Whether the API shows what was written."""
        if not binding.volume:
            return claim.metadata.annotations.get(SELECTED_NODE) == self._node_name
        return volume is not None and volume.spec.claim_ref is not None and bool(volume.spec.claim_ref.uid)

    def _reach(self, claim: PersistentVolumeClaim, name: str) -> Status:
        """Whether the node reaches the volume of the claim."""
        row = self._cluster.nodes.row_of.get(self._node_name)
        if row is None:
            return failed(f'node "{self._node_name}" not found')
        search = VolumeSearch(View(self._cluster, np.array([row], dtype=np.int64)), self._storage)
        search.check_bound([claim])
        if search.lacking[0]:
            return failed(f'pv "{name}" node affinity doesn\'t match node "{self._node_name}"')
        return SUCCESS


def is_bound(claim: PersistentVolumeClaim) -> bool:
    """Whether the claim and its volume are bound to each other (isPVCFullyBound)."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def failed(problem: str) -> Status:
    """Binding has failed (BindPodVolumes)."""
    return Status(Code.ERROR, (f"binding volumes: {problem}",))
