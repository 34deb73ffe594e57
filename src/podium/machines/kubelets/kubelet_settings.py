"""How kubelets behave."""

from __future__ import annotations

from dataclasses import dataclass

from podium.decide.pressure import EvictionOrder

_SECOND = 10**9


@dataclass(frozen=True, slots=True)
class KubeletSettings:
    """How kubelets behave; times in nanoseconds.

    A pod starts ``start_delay_ns`` after its admission. A node is short of memory when its pods leave less than
    ``memory_threshold_bytes``, and says so until it has not been for ``pressure_transition_ns``. With
    ``waits_for_victims``, a pod that fits once others have ended that are terminating waits for them on the node.
    ``eviction_order`` says whom of equal priority a node short of memory evicts first. Without ``honors_policy``, pods
    that are not preemptible end for critical ones like others. With ``reports_all``, nodes and pods say everything that
    people and programs look for, such as addresses and the state of each container. A pod that is deleted takes
    ``termination_ns`` to end where it does not say how long, at most its grace period; None: all of that.
    """

    start_delay_ns: int = 0
    memory_threshold_bytes: int = 0
    pressure_transition_ns: int = 300 * _SECOND
    waits_for_victims: bool = False
    eviction_order: EvictionOrder = "BytesOverRequest"
    honors_policy: bool = True
    reports_all: bool = False
    termination_ns: int | None = None
