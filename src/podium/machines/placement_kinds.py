"""The kinds of objects on which placement depends, besides pods."""

from __future__ import annotations

from typing import get_args

from podium.cluster.devices import DeviceObject
from podium.cluster.storage import StorageObject

_OTHERS = (
    *("DisruptionPolicy", "Namespace", "Node", "PodDisruptionBudget"),
    # Whose pods are spread by default.
    *("ReplicaSet", "ReplicationController", "Service", "StatefulSet"),
    # Which pods are placed together.
    "PodGroup",
)

PLACEMENT_KINDS = frozenset((*_OTHERS, *(type_.__name__ for type_ in get_args(StorageObject | DeviceObject))))
"""What a cluster takes in (`Cluster.put`): whoever keeps one watches these."""
