"""What machines ask their driver to do.

Actions of one list are carried out in its order; each but a `Record` gets an `Answered`. Every action names its object
by key and uid, and is refused (Conflict) where the object of that key now has another uid. ``cause`` says who made it
necessary, as `namespace/name` of a pod, a component's name, or a workload as in `ReplicaSet default/web`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

import msgspec

from podium.api.avoid_list import AvoidFor
from podium.api.left_behind import Wishes
from podium.api.meta import Raw
from podium.api.pod import PodCondition
from podium.api.replacements import ForReplacement
from podium.machines.grounds import Grounds


class Bind(msgspec.Struct, frozen=True, gc=False):
    """Bind a pod to a node (POST pods/binding); the API server clears its nomination with it."""

    pod: str
    uid: str
    node_name: str


class ReportUnschedulable(msgspec.Struct, frozen=True, gc=False):
    """Write the pod's condition PodScheduled=False and, in the same patch, its nomination.

    One patch, so that nobody (an autoscaler above all) sees an unschedulable pod without its nomination.
    ``nominated_node_name`` None leaves the nomination as it is, "" clears it. ``reason`` is Unschedulable,
    SchedulingGated or SchedulerError.
    """

    pod: str
    uid: str
    reason: str
    message: str
    nominated_node_name: str | None = None


@final
class Nominate(msgspec.Struct, frozen=True, gc=False):
    """Write `status.nominatedNodeName`, the node whose room is the pod's; "" clears it.

    It is written without a word of failure where a pod will be bound, before a wait or slow work comes between decision
    and binding, and cleared when the room is no longer the pod's, also in the annotation of the preemption design.
    ``cause`` "" stands for the pod's scheduler.
    """

    pod: str
    uid: str
    node_name: str
    cause: str = ""


class BindClaim(msgspec.Struct, frozen=True, gc=False):
    """Say to which volume a claim is to be bound, or (``volume`` "") for which node one is to be provisioned.

    The volume names the claim then (`spec.claimRef`), or the claim the node (annotation selected-node). The persistent
    volume controller does the rest, which the API will show. ``pod_uid`` is the pod that waits for it. Refused with
    Conflict where the claim is bound to another volume, or the volume is kept for another claim.
    """

    claim: str
    uid: str
    volume: str
    node_name: str
    pod_uid: str


@dataclass(frozen=True, slots=True, eq=False)
class ReserveClaim:
    """Let a pod use a claim for devices (PUT resourceclaims/status).

    ``allocation`` are the devices that the claim is given with it, None where it has them. Where ``made`` is given, the
    claim is made first, and the pod's status says by ``mappings`` which of its requests serve which of the pod's
    extended resources. Refused with Conflict where the claim got devices otherwise, lost them, or is being deleted.
    """

    claim: str
    uid: str
    pod: str
    pod_uid: str
    allocation: Raw | None = None
    made: Raw | None = None
    mappings: tuple[Raw, ...] = ()


class ReleaseClaim(msgspec.Struct, frozen=True, gc=False):
    """Take a pod off a claim for devices; one that was made for its extended resources goes.

    ``claim`` "" stands for that one. ``deallocate`` takes the devices from the claim too, if nobody else uses it.
    """

    claim: str
    uid: str
    pod: str
    pod_uid: str
    deallocate: bool = False


class Record(msgspec.Struct, frozen=True, gc=False):
    """Record an Event about a pod; or, with "" for that, about the ``workload`` named as causes are.

    Nobody waits for an Event to be written, and one that is not written is not written again: it gets no answer.

    ``type`` is Normal or Warning, ``reason`` one such as Scheduled, FailedScheduling or Preempted.
    ``node_name`` and ``related`` (a pod's key) are "" where they do not apply.
    """

    pod: str
    uid: str
    type: str
    reason: str
    message: str
    node_name: str = ""
    related: str = ""
    workload: str = ""


@final
class ReportStatus(msgspec.Struct, frozen=True, eq=False):
    """Write a part of the status of a pod or a node, in one patch (PATCH status).

    ``conditions`` take the place of those of their types, and get the time of their transition where their status
    changes. ``fields`` are set as they stand in the wire form; those that are None go. ``message`` is for people, and
    ``grounds`` for whoever keeps account of disruptions: nothing is written of them.
    """

    kind: Literal["Pod", "Node"]
    key: str
    uid: str
    cause: str
    conditions: tuple[PodCondition, ...] = ()
    fields: Raw = {}
    message: str = ""
    grounds: Grounds | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ReportStatus) and self._written == other._written

    def __hash__(self) -> int:
        return hash((self.kind, self.key, self.uid))

    @property
    def _written(self) -> tuple[object, ...]:
        return self.kind, self.key, self.uid, self.cause, self.conditions, self.fields, self.message


class CreateObject(msgspec.Struct, frozen=True):
    """Create an object (POST). An object without a name and with a `generateName` gets a name of the API server's."""

    raw: Raw
    cause: str


class ReplaceStatus(msgspec.Struct, frozen=True):
    """Replace an object's status and nothing else (PUT status), if ``raw`` was made from its newest version.

    The `resourceVersion` in ``raw`` is the condition (Conflict), and so is its uid.
    """

    raw: Raw
    cause: str


class PatchObject(msgspec.Struct, frozen=True):
    """Change an object by a JSON merge patch, in which null removes a field and lists are replaced whole.

    A `metadata.resourceVersion` in the patch is a condition. ``message`` is for people.
    """

    kind: str
    key: str
    uid: str
    patch: Raw
    cause: str
    subresource: Literal["", "status"] = ""
    message: str = ""


class DeleteObject(msgspec.Struct, frozen=True, gc=False):
    """Delete an object of that uid. ``grace_seconds`` None asks for its own grace period, ``message`` is for people.

    A kubelet ends the deletion of a pod whose containers are gone by one with 0 seconds.
    """

    kind: str
    key: str
    uid: str
    cause: str
    grace_seconds: int | None = None
    message: str = ""


@final
class Evict(msgspec.Struct, frozen=True):
    """Delete a pod if the disruption budgets allow it (POST pods/eviction).

    ``component`` is whose cap on disruptions counts, such as drain or autoscaler. ``avoid_node`` asks that the pod's
    controller be put on its node's avoid list, ``avoid_for`` as long as that says. ``for_replacement`` is left there
    for the pod that comes in its place. Refused with TooManyRequests where a budget, a rate or the cap is exhausted;
    the Problem then says when to try again where that is known. ``grounds`` are for whoever keeps account of
    disruptions.
    """

    pod: str
    uid: str
    cause: str
    component: str
    grace_seconds: int | None = None
    avoid_node: bool = False
    avoid_for: AvoidFor = AvoidFor()
    for_replacement: ForReplacement = ForReplacement()
    grounds: Grounds | None = None

    @property
    def wishes(self) -> Wishes:
        """What is to be left behind."""
        return Wishes(avoid_node=self.avoid_node, avoid_for=self.avoid_for, for_replacement=self.for_replacement)


Action = (
    Bind
    | ReportUnschedulable
    | Nominate
    | BindClaim
    | ReserveClaim
    | ReleaseClaim
    | Record
    | ReportStatus
    | CreateObject
    | ReplaceStatus
    | PatchObject
    | DeleteObject
    | Evict
)
