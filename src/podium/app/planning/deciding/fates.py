"""What becomes of pods about which it is decided, and which of them are alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from podium.cluster.pods import PodRecord
from podium.decide.cap import PutOff
from podium.framework.cycle_state import CycleState
from podium.framework.errors import PluginError
from podium.framework.plugin import is_own
from podium.framework.runner import Runner

Kind = tuple[object, ...]
"""What pods have in common about which the same is decided."""

LIKENESS = "podium.app.planning.likeness"
"""In the memo of a pod class: what it shares with others about whose pods the same is decided."""


@dataclass(frozen=True, slots=True)
class Fate:
    """A pod that gets a node: which, and the pods that it preempts there, the most important first."""

    pod: PodRecord
    node: str
    victims: tuple[PodRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class Ending:
    """A pod waits for those that it has preempted on a node to end."""

    node: str


@dataclass(frozen=True, slots=True)
class Settled:
    """What becomes of pods: those that get a node, in that order, and those that wait.

    `put_off` has, by kind, what preemptions wait for that would help: a cap on disruptions, or victims that are ending.
    """

    fates: tuple[Fate, ...]
    waiting: tuple[PodRecord, ...]
    put_off: Mapping[Kind, PutOff | Ending] = field(default_factory=dict)

    @property
    def victims(self) -> dict[str, Fate]:
        """Who is preempted, by uid, and for whom."""
        return {victim.uid: fate for fate in self.fates for victim in fate.victims}


def kind_of(pod: PodRecord) -> Kind:
    """What a decision about the pod hangs on, beside the cluster."""
    pod_class = pod.pod_class
    return (
        pod.scheduler_name,
        pod_class.memo.get(LIKENESS, pod_class),
        pod.priority,
        pod.preemption_policy,
        pod.gates,
        pod.terminating,
        pod.nominated_node_name,
        pod.made_claims,
    )


def note_likeness(pod: PodRecord, runner: Runner | None) -> None:
    """Note what the pod's class shares with others of which nodes say the same, whatever their labels are.

    That is its owner and its spec, where each node answers for itself alone: pods of an indexed Job differ by a label.
    """
    memo = pod.pod_class.memo
    if LIKENESS in memo or runner is None or not all(map(is_own, runner.profile.filter)):
        return
    state = CycleState()
    try:
        is_let_in = runner.pre_filter(state, pod).status.is_success
    except PluginError:
        return
    if is_let_in and runner.is_row_local(state):
        shared = (pod.namespace, pod.pod_class.owner, pod.pod_class.spec)
        memo[LIKENESS] = msgspec.msgpack.encode(shared, order="deterministic")
