"""How pods and nodes fare: what is observed of them beside what placement depends on.

Source: controlled-rescheduling.md, Example use cases ("moving a running pod off of a node from which it is receiving
poor service", "known or speculated future event").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from podium.cluster.pods import PodRecord


@dataclass(frozen=True, slots=True)
class PodSignals:
    """What a pod's status and its metrics tell of how it fares.

    ``restarts`` and ``out_of_memory_kills`` count those of all its containers, ``failure_ns`` is when one last ended
    with failure, None where none did (`podium.api.pod_health`). ``cpu_used_milli`` and ``memory_used_bytes`` are what
    it uses, None where nobody measures. ``cpu_pressure`` is the share of time in which
    it could run and had no cpu (pressure stall information), None where nobody tells.
    """

    restarts: int = 0
    out_of_memory_kills: int = 0
    is_crash_looping: bool = False
    failure_ns: int | None = None
    cpu_used_milli: int | None = None
    memory_used_bytes: int | None = None
    cpu_pressure: float | None = None


@dataclass(frozen=True, slots=True)
class NodeSignals:
    """What is known of a node beside its object's placement.

    ``maintenance_ns`` is when it is announced to go down, or to be retired; None where nothing is announced.
    ``cpu_used_milli`` and ``memory_used_bytes`` are what all on it uses, None where nobody measures.
    """

    maintenance_ns: int | None = None
    cpu_used_milli: int | None = None
    memory_used_bytes: int | None = None


_REPLACEMENT = "/replacement"


def replacement(uid: str) -> str:
    """Under which uid the replacement of a pod goes until it has one.

    What is told of the pod holds for it only for those who ask by its `predecessor`.
    """
    return f"{uid}{_REPLACEMENT}"


def predecessor(uid: str) -> str:
    """The uid of the pod that a replacement, by such a uid, is made for; any other uid as it is."""
    return uid.removesuffix(_REPLACEMENT)


NO_POD_SIGNALS = PodSignals()
NO_NODE_SIGNALS = NodeSignals()


@dataclass(frozen=True, slots=True)
class Signals:
    """What is known of how all fare; who has nothing to tell of is in none of the mappings.

    ``pods`` are by uid, ``nodes`` by name. ``rejections`` count, by a controller's uid and a node's name, the pods that
    the node's kubelet turned away and that are still known (OutOfcpu, NodeAffinity and their like). ``turned_away`` are
    these pods by their uids, which run nowhere, as far as they have been kept.
    """

    pods: Mapping[str, PodSignals] = field(default_factory=dict)
    nodes: Mapping[str, NodeSignals] = field(default_factory=dict)
    rejections: Mapping[tuple[str, str], int] = field(default_factory=dict)
    turned_away: Mapping[tuple[str, str], Mapping[str, PodRecord]] = field(default_factory=dict)

    def of_pod(self, uid: str) -> PodSignals:
        """How a pod fares."""
        return self.pods.get(uid, NO_POD_SIGNALS)

    def of_node(self, name: str) -> NodeSignals:
        """What is known of a node."""
        return self.nodes.get(name, NO_NODE_SIGNALS)
