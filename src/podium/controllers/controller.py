"""The interface of controllers, and the changes of which an idle controller need not hear at once."""

from __future__ import annotations

from typing import Protocol, get_args

from msgspec import Struct

from podium.api.kinds import KEPT_KINDS, KINDS
from podium.cluster.devices import DeviceObject
from podium.cluster.storage import StorageObject
from podium.controllers import actions, deadlines, observations

CUSTOM_KINDS = "*"
NO_CHANGE: list[actions.Action] = []
"""The result of `handle` for an observation that has no effect: no actions, and the deadline is as before.

The runtime compares by identity; any other empty list says nothing about the deadline.
"""
_KNOWN_KINDS = frozenset(kind.name for kind in (*KINDS.values(), *KEPT_KINDS))


class Controller(Protocol):
    """A component of the cluster without clock or connections.

    The runtime passes it the observations of the kinds that it ``watches``, carries out its actions in their order,
    passes back an `ActionFinished` for each of them but a `Record`, and a `Tick` when its ``deadline`` has come.

    Optional attributes: ``pod_aspects`` (see `needed_aspects`), ``idle_deferral`` and ``is_idle`` (see `IdleDeferral`).
    """

    @property
    def watches(self) -> frozenset[str]:
        """The kinds that it is shown and may read; `CUSTOM_KINDS` stands for all kinds of custom resources."""
        ...

    def handle(self, observation: observations.Observation, now: int) -> list[actions.Action]:
        """Handle an observation at ``now`` (nanoseconds); return the actions, or `NO_CHANGE`."""
        ...

    def deadline(self) -> deadlines.Deadline:
        """Return when the controller next wants a `Tick`; only `handle` changes it."""
        ...


def is_watched_kind(kind: str, watches: frozenset[str]) -> bool:
    """Return whether ``watches`` contains the kind, by name or as a custom resource."""
    return kind in watches or (CUSTOM_KINDS in watches and kind not in _KNOWN_KINDS)


# The aspects of a change, as bits.
EVERY = 1
"""Set for every change."""
UNOWNED = 2
"""The pod has, or had, no controller."""
PLACED = 4
"""The pod has a node, or is being deleted."""
UNPLACED = 8
"""The pod is being deleted, and has no node."""
DISRUPTED = 16
"""The pod has, or had, the condition DisruptionTarget."""
CLAIMING = 32
"""The pod references ResourceClaims or PersistentVolumeClaims, or has ephemeral volumes."""
ON_MISSING_NODE = 64
"""The pod has just been bound to a node that does not exist."""
OWNER_ASPECTS = {"ReplicaSet": 128, "ReplicationController": 128, "StatefulSet": 256, "DaemonSet": 512, "Job": 1024}
"""By kind: the pod has, or had, a controller of that kind."""
AVOIDED = 2048
"""The node has, or had, an avoid list."""
ADDED = 4096
"""The object was added."""
ANY = 4095
"""All aspects of a change whose aspects are unknown."""


class IdleDeferral(Struct, frozen=True):
    """The changes that can wait while a controller is idle: those of ``kinds``, except some aspects of pods and nodes.

    The runtime may deliver deferred changes at any time, but before anything else and in their order; of each object,
    it need only deliver the last change. A changed object of the kinds ``ahead``, or an answer to what the controller
    did about it, comes before deferred changes, which follow at once if the controller is not idle any more.
    """

    kinds: frozenset[str]
    unless: int = 0
    ahead: frozenset[str] = frozenset()

    def covers(self, kind: str, aspects: int) -> bool:
        """Return whether a change of an object of that kind can wait."""
        return is_watched_kind(kind, self.kinds) and not (kind in ("Node", "Pod") and self.unless & aspects)


def needed_aspects(controller: Controller, kind: str) -> int:
    """Return the aspects of which a change of a watched kind has one if it can concern the controller.

    A controller with ``pod_aspects`` needs only pods that have one of these aspects.
    """
    return int(getattr(controller, "pod_aspects", EVERY)) if kind == "Pod" else EVERY


def is_idle(controller: Controller) -> bool:
    """Return whether the controller, which has no deadline, is idle: deferrable changes have no effect on it now."""
    return bool(getattr(controller, "is_idle", False))


# The pods of workloads and Services are spread by default, and those of a PodGroup placed together.
_OTHERS = (
    "DisruptionPolicy Namespace Node PodDisruptionBudget PodGroup ReplicaSet ReplicationController Service StatefulSet"
)

PLACEMENT_KINDS = frozenset((*_OTHERS.split(), *(type_.__name__ for type_ in get_args(StorageObject | DeviceObject))))
"""The kinds on which placement depends besides pods: those that `Cluster.put` accepts."""
