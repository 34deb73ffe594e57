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

MADE_ANEW = "/replacement"
"""Behind the name of a claim, the one that will be made for a pod's replacement: no claim can have such a name."""


class MovedClaims:
    """Lets pods give their devices back as they leave, and get others as they come, for as long as ``scratch`` is."""

    def __init__(self, scratch: Scratch, picture: Picture) -> None:
        self._scratch = scratch
        self._picture = picture
        self._devices = picture.cluster.devices
        scratch.follow(self)

    def make(self, pod: PodRecord, replacement: PodRecord) -> None:
        """Let there be claims for a replacement such as were made for the pod, without devices."""
        for _, name in pod.made_claims:
            claim = self._devices.claims.get(f"{pod.namespace}/{name}")
            if claim is not None:
                self._scratch.put_claim(_made_anew(claim, pod.uid, replacement.uid))

    def left(self, pod: PodRecord) -> None:
        """A pod has left its node: what was made for it gives its devices back."""
        for _, name in pod.made_claims:
            claim = self._devices.claims.get(f"{pod.namespace}/{name}")
            if claim is not None and claim.is_allocated:
                self._scratch.put_claim(replace(claim, status=ResourceClaimStatus()))
        extended = self._devices.book.made_for(pod.uid)
        if extended is not None:
            self._scratch.drop_claim(extended)

    def comes(self, pod: PodRecord, row: int) -> None:
        """A pod is about to be in a row: its claims that have no devices get those that they would get there."""
        if not pod.made_claims and not self._devices.backed:
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
    meta = claim.metadata
    owners = tuple(
        replace(owner, uid=replacement_uid) if owner.uid == uid else owner for owner in meta.owner_references
    )
    changed = replace(meta, name=f"{meta.name}{MADE_ANEW}", uid=f"{meta.uid}{MADE_ANEW}", owner_references=owners)
    return replace(claim, metadata=changed, status=ResourceClaimStatus())


def _with_a_key(claim: ResourceClaim) -> ResourceClaim:
    """A claim that is not written yet has a name in common with all others that are not; it gets one of its own."""
    if not claim.for_extended_resources:
        return claim
    return replace(claim, metadata=replace(claim.metadata, name=f"{claim.metadata.name}/{claim.metadata.uid}"))
