"""The devices of pods that move: what was made for a pod goes with it, and is made for its replacement anew.

Claims that a pod names itself stay as they are, with their devices, whoever uses them: they tie it to where those are.

Source: pkg/controller/resourceclaim (claims from templates are owned by their pod, and go with it).
"""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from podium.api.resource_claims import ConsumerReference, ResourceClaim, ResourceClaimStatus
from podium.cluster.pods import PodRecord
from podium.decide.scratch import Scratch
from podium.framework.claims import DeviceGiver
from podium.framework.cycle_state import CycleState
from podium.framework.errors import PluginError
from podium.framework.rescheduling.picture import Picture


class MovedClaims:
    """Gives devices back and takes others, in ``scratch``, so that it is undone with the moves."""

    def __init__(self, scratch: Scratch, picture: Picture) -> None:
        self._scratch = scratch
        self._picture = picture
        self._devices = picture.cluster.devices

    def give_back(self, pod: PodRecord, replacement: PodRecord) -> None:
        """A pod has left its node: the claims made for it are its replacement's by now, and have no devices yet."""
        for _, name in pod.made_claims:
            claim = self._devices.claims.get(f"{pod.namespace}/{name}")
            if claim is not None and claim.metadata.uid not in self._devices.in_flight:
                self._scratch.put_claim(_made_anew(claim, pod.uid, replacement.uid))
        extended = self._devices.made_for(pod.uid)
        if extended is not None:
            self._scratch.drop_claim(extended)

    def take(self, pod: PodRecord, row: int) -> None:
        """A pod is about to be placed in a row: its claims get the devices that they would get there."""
        if not pod.spec.resource_claims and not self._devices.backed:
            return
        runner, state = self._picture.runner_of(pod), CycleState()
        givers = [plugin for plugin in runner.profile.reserve if isinstance(plugin, DeviceGiver)]
        try:
            if not givers or not runner.pre_filter(state, pod).status.is_success:
                return
            runner.filter(state, pod, np.array([row], dtype=np.int64))
        except PluginError:
            return
        for giver in givers:
            for claim, allocation in giver.allocations(state, self._picture.node_name(row)):
                users = (ConsumerReference(resource="pods", name=pod.name, uid=pod.uid),)
                status = ResourceClaimStatus(allocation=allocation, reserved_for=users)
                self._scratch.put_claim(replace(_with_a_key(claim), status=status))


def _made_anew(claim: ResourceClaim, uid: str, replacement_uid: str) -> ResourceClaim:
    owners = tuple(
        replace(owner, uid=replacement_uid) if owner.uid == uid else owner for owner in claim.metadata.owner_references
    )
    metadata = replace(claim.metadata, uid=f"{claim.metadata.uid}/replacement", owner_references=owners)
    return replace(claim, metadata=metadata, status=ResourceClaimStatus())


def _with_a_key(claim: ResourceClaim) -> ResourceClaim:
    """A claim that is not written yet has a name in common with all others that are not; it gets one of its own."""
    if not claim.for_extended_resources:
        return claim
    return replace(claim, metadata=replace(claim.metadata, name=f"{claim.metadata.name}/{claim.metadata.uid}"))
