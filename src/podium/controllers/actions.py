"""The actions that controllers ask the runtime for.

The runtime carries out a list of actions in its order. Each but a `Record` gets an `ActionFinished`. An action names
its object by key and uid, and fails with Conflict if the object of that key has another uid. ``cause`` is what made the
action necessary: the key of a pod, the name of a component, or a workload as in `ReplicaSet default/web`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

import msgspec

from podium.api.avoid_list import EvictionHints
from podium.api.kinds import KIND_OF
from podium.api.meta import Kubernetes, Raw
from podium.api.pod import PodCondition

GANG_RELEASE = "gang-release"
"""The cause of evictions by which an incomplete gang releases its nodes."""


class Rationale(msgspec.Struct, frozen=True, gc=False):
    """Why a component chose a victim: the rule, the plan, and the alternatives.

    ``room`` is the node where capacity is wanted, "" for none. ``candidates`` counts the alternatives with the chosen
    one, 0 if unknown. ``equals`` are the first of the other nodes with the same cost.
    """

    rule: str
    plan: str = ""
    room: str = ""
    candidates: int = 0
    equals: tuple[str, ...] = ()


class Bind(msgspec.Struct, frozen=True, gc=False):
    """Bind a pod to a node (POST pods/binding); the API server also clears its nomination."""

    pod: str
    uid: str
    node_name: str


class ReportUnschedulable(msgspec.Struct, frozen=True, gc=False):
    """Write the pod's condition PodScheduled=False and its nomination in one patch.

    With one patch, an autoscaler never sees an unschedulable pod without its nomination. ``nominated_node_name`` None
    leaves the nomination, "" clears it. ``reason`` is Unschedulable, SchedulingGated or SchedulerError. If it
    ``rewords``, only the message differs from the last report, and no plugin that others wrote looks at it.
    """

    pod: str
    uid: str
    reason: str
    message: str
    nominated_node_name: str | None = None
    rewords: bool = False


@final
class Nominate(msgspec.Struct, frozen=True, gc=False):
    """Write `status.nominatedNodeName`, the node on which capacity is kept for the pod; "" clears it.

    Schedulers write it without a failure condition before a binding that has to wait. ``cause`` "" is the pod's
    scheduler.
    """

    pod: str
    uid: str
    node_name: str
    cause: str = ""


class BindClaim(msgspec.Struct, frozen=True, gc=False):
    """Choose a volume for a claim, or with ``volume`` "" the node for which one is to be provisioned.

    This sets the volume's `spec.claimRef`, or the claim's annotation selected-node; the persistent volume controller
    does the rest. ``pod_uid`` is the pod that waits for it. It fails with Conflict if the claim is bound to another
    volume, or the volume is reserved for another claim.
    """

    claim: str
    uid: str
    volume: str
    node_name: str
    pod_uid: str


@dataclass(frozen=True, slots=True, eq=False)
class ReserveClaim:
    """Reserve a ResourceClaim for a pod (PUT resourceclaims/status).

    ``allocation`` are the devices that the claim is allocated, None if it is allocated already. With ``made``, the
    claim is created first, and ``mappings`` in the pod's status say which of its requests serve which extended
    resources. It fails with Conflict if the claim was allocated otherwise or deallocated, or is being deleted.
    """

    claim: str
    uid: str
    pod: str
    pod_uid: str
    allocation: Raw | None = None
    made: Raw | None = None
    mappings: tuple[Raw, ...] = ()


class ReleaseClaim(msgspec.Struct, frozen=True, gc=False):
    """Remove a pod from the consumers of a ResourceClaim; one created for its extended resources is deleted.

    ``claim`` "" is that one. ``deallocate`` also deallocates the claim if it has no other consumer.
    """

    claim: str
    uid: str
    pod: str
    pod_uid: str
    deallocate: bool = False


class Record(msgspec.Struct, frozen=True, gc=False):
    """Record an Event about a pod; or, if ``pod`` is "", about ``workload``, which is named like causes.

    It gets no answer, and is not retried. ``type`` is Normal or Warning, ``reason`` is for example Scheduled,
    FailedScheduling or Preempted. ``node_name`` and ``related`` (a pod's key) are "" if they do not apply.
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
class ReportStatus(msgspec.Struct, frozen=True):
    """Write a part of the status of a pod or node in one patch (PATCH status).

    ``conditions`` replace those of their types, with a new transition time if their status changes; an empty status
    removes them. ``fields`` are set as in the wire form; None removes a field. ``message`` (for users) and
    ``rationale`` (for the ledger) are not written.
    """

    kind: Literal["Pod", "Node"]
    key: str
    uid: str
    cause: str
    conditions: tuple[PodCondition, ...] = ()
    fields: Raw = {}
    message: str = ""
    rationale: Rationale | None = None

    def __hash__(self) -> int:
        return hash((self.kind, self.key, self.uid))


class CreateObject(msgspec.Struct, frozen=True):
    """Create an object (POST). The API server names an object that has a `generateName` and no name."""

    raw: Raw
    cause: str


class ReplaceStatus(msgspec.Struct, frozen=True):
    """Replace an object's status (PUT status) if uid and `resourceVersion` are as in ``raw``."""

    raw: Raw
    cause: str


class PatchObject(msgspec.Struct, frozen=True):
    """Change an object by a JSON merge patch.

    A `metadata.resourceVersion` in the patch is a precondition. ``message`` is for users.
    """

    kind: str
    key: str
    uid: str
    patch: Raw
    cause: str
    subresource: Literal["", "status"] = ""
    message: str = ""


class DeleteObject(msgspec.Struct, frozen=True, gc=False):
    """Delete the object with that uid.

    ``grace_seconds`` None is the object's own grace period; kubelets end the deletion of a pod with 0. ``propagation``
    is that to its dependents. ``message`` is for users.
    """

    kind: str
    key: str
    uid: str
    cause: str
    grace_seconds: int | None = None
    message: str = ""
    propagation: Literal["Background", "Foreground"] = "Background"


def versioned_patch(
    object_: Kubernetes, patch: Raw, cause: str, subresource: Literal["", "status"] = "", message: str = ""
) -> PatchObject:
    """Return a patch that fails with Conflict if the object has changed."""
    meta = object_.metadata
    patch = {**patch, "metadata": {"resourceVersion": meta.resource_version, **patch.get("metadata", {})}}
    return PatchObject(type(object_).__name__, object_.key, meta.uid, patch, cause, subresource, message)


def deletion_of(object_: Kubernetes, cause: str, *, message: str = "") -> DeleteObject:
    """Return the deletion of an object."""
    return DeleteObject(type(object_).__name__, object_.key, object_.metadata.uid, cause, message=message)


def owner_reference(controller: Kubernetes) -> Raw:
    """Return the reference to the controller of an object."""
    kind = KIND_OF[type(controller)]
    return {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "name": controller.metadata.name,
        "uid": controller.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def owned_object(owner: Kubernetes, type_: type[Kubernetes], metadata: Raw, **parts: Raw | int) -> Raw:
    """Return an object of a type in the namespace of its controller, with further metadata."""
    kind = KIND_OF[type_]
    owned = {**metadata, "namespace": owner.metadata.namespace, "ownerReferences": [owner_reference(owner)]}
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": owned, **parts}


@final
class Evict(msgspec.Struct, frozen=True):
    """Delete a pod if the disruption budgets allow it (POST pods/eviction).

    The cap of ``component``, such as drain or autoscaler, counts. ``hints`` are recorded on the node. It fails with
    TooManyRequests if a budget, a rate or the cap is exhausted; the Problem says when to retry, if known. ``rationale``
    is for the ledger.
    """

    pod: str
    uid: str
    cause: str
    component: str
    grace_seconds: int | None = None
    hints: EvictionHints = EvictionHints()
    rationale: Rationale | None = None


_OfPod = Bind | ReportUnschedulable | Nominate | Evict
_OfClaim = BindClaim | ReserveClaim | ReleaseClaim
_OfObject = CreateObject | ReplaceStatus | ReportStatus | PatchObject | DeleteObject
Action = _OfPod | _OfClaim | _OfObject | Record


RESCHEDULER = "rescheduler"
"""The component whose disruption cap applies, and the cause of its evictions."""

DESCHEDULED = "Descheduled"
"""The reason of the event that reports an eviction; the descheduler uses the same."""
