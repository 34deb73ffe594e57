"""Which new nodes would let pending pods run, and which of them to add.

Source: autoscaler cluster-autoscaler (core/scaleup, estimator/binpacking_estimator.go, expander/waste).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from msgspec.structs import replace

from podium.api.node import Node
from podium.api.reading import read
from podium.api.resource_requests import node_allocatable
from podium.cluster.nodes import CPU, MEMORY
from podium.cluster.pods import PodRecord
from podium.decide.scaling.node_groups import NodeGroup, started
from podium.decide.scratch import Scratch


@dataclass(frozen=True, slots=True)
class Expandable:
    """A group, and the names that more nodes of it may have; none at its maximum.

    ``pause`` says why there may be none for some time, or is "".
    """

    group: NodeGroup
    names: Sequence[str]
    pause: str = ""

    @property
    def closed(self) -> str:
        """Why there may be no more nodes than those of the names."""
        return self.pause or f"at its maximum of {self.group.maximum} nodes"


@dataclass(frozen=True, slots=True)
class Option:
    """A number of new nodes of one group, and the pods that fit on them.

    ``waste`` is the share of their cpu and of their memory, on average, that these pods leave unused.
    """

    group: NodeGroup
    names: tuple[str, ...]
    pods: tuple[PodRecord, ...]
    waste: Fraction


@dataclass(frozen=True, slots=True)
class ScaleUpPlan:
    """What to add, with all that was considered.

    ``chosen`` is None where no group helps. ``fitting`` are pods that need no new node, ``unhelped`` those that no
    group helps. ``refusals`` say why a group does not help a pod, by the pod's uid and the group's name.
    """

    chosen: Option | None
    options: tuple[Option, ...]
    fitting: tuple[PodRecord, ...]
    unhelped: tuple[PodRecord, ...]
    refusals: Mapping[str, Mapping[str, str]]


def plan_scale_up(
    scratch: Scratch,
    groups: Iterable[Expandable],
    pending: Iterable[PodRecord],
    daemons: Sequence[PodRecord],
) -> ScaleUpPlan:
    """Find the group whose new nodes waste least; of equal ones, the first by name.

    Pods that fit on present nodes, those that are starting included, stay in ``scratch`` where they fit. ``daemons``
    are pods, one of each DaemonSet, that a new node gets if its filters let them in.
    """
    fitting, homeless = settle_pending(scratch, pending)
    refusals: dict[str, dict[str, str]] = {pod.uid: {} for pod in homeless}
    options = []
    for expandable in sorted(groups, key=lambda expandable: expandable.group.name) if homeless else ():
        option = _option(scratch, expandable, homeless, daemons, refusals)
        if option is not None:
            options.append(option)
    chosen = min(options, key=lambda option: (option.waste, option.group.name), default=None)
    helped = {pod.uid for option in options for pod in option.pods}
    unhelped = tuple(pod for pod in homeless if pod.uid not in helped)
    return ScaleUpPlan(chosen, tuple(options), tuple(fitting), unhelped, refusals)


def _importance(pod: PodRecord) -> tuple[int, str]:
    return -pod.priority, pod.key


def _alike(pod: PodRecord) -> tuple[str, int, int]:
    """What pods have in common that fit on the same nodes."""
    return pod.scheduler_name, pod.pod_class.id, pod.priority


def settle_pending(scratch: Scratch, pods: Iterable[PodRecord]) -> tuple[list[PodRecord], list[PodRecord]]:
    """Let pods settle where they fit, the more important first; those that did, and those that fit nowhere."""
    fitting, homeless = [], []
    hopeless: set[tuple[str, int, int]] = set()
    for pod in sorted(pods, key=_importance):
        if _alike(pod) not in hopeless and scratch.settle(pod) is not None:
            fitting.append(pod)
        else:
            hopeless.add(_alike(pod))
            homeless.append(pod)
    return fitting, homeless


def _option(
    scratch: Scratch,
    expandable: Expandable,
    pods: Sequence[PodRecord],
    daemons: Sequence[PodRecord],
    refusals: Mapping[str, dict[str, str]],
) -> Option | None:
    """What the group can do for the pods; None for nothing. Why not goes into ``refusals``."""
    name = expandable.group.name
    if not expandable.names:
        for pod in pods:
            refusals[pod.uid][name] = expandable.closed
        return None
    mark = scratch.mark()
    packing = _Packing(scratch, expandable, daemons)
    packed = []
    for pod in sorted(pods, key=packing.largest_first):
        refusal = packing.add(pod)
        if refusal:
            refusals[pod.uid][name] = refusal
        else:
            packed.append(pod)
    scratch.roll_back(mark)
    if not packed:
        return None
    return Option(expandable.group, tuple(packing.names), tuple(packed), packing.waste(packed))


class _Packing:
    """New nodes of one group, filled with the largest pods first, each pod on the first node that takes it."""

    def __init__(self, scratch: Scratch, expandable: Expandable, daemons: Sequence[PodRecord]) -> None:
        self.names: list[str] = []
        self._scratch = scratch
        self._one = expandable
        self._daemons = daemons
        # By row, which of the new nodes it is.
        self._order: dict[int, int] = {}
        self._hopeless: dict[tuple[str, int, int], str] = {}
        amounts = node_allocatable(read(expandable.group.template, Node).status)
        self._cpu, self._memory = amounts.get("cpu", 0), amounts.get("memory", 0)

    def largest_first(self, pod: PodRecord) -> tuple[int, int, str]:
        """Pods by their shares of a node's cpu and memory added up; of equal ones the more important first."""
        cpu, memory = _amounts(pod)
        return -(cpu * self._memory + memory * self._cpu), *_importance(pod)

    def add(self, pod: PodRecord) -> str:
        """Put the pod on a new node, one more if it takes that; why it fits on none, or ""."""
        kind = _alike(pod)
        if kind in self._hopeless:
            return self._hopeless[kind]
        if self._order:
            rows = self._scratch.fitting(pod, np.array(sorted(self._order), dtype=np.int64)).tolist()
            if rows:
                self._scratch.place(pod, min(rows, key=self._order.__getitem__))
                return ""
        refusal = self._add_node(pod)
        if refusal:
            self._hopeless[kind] = refusal
        return refusal

    def waste(self, pods: Iterable[PodRecord]) -> Fraction:
        """The unused share of the new nodes' cpu and memory; what a node has none of is not wasted."""
        used = (sum(amounts) for amounts in zip(*(_amounts(pod) for pod in pods), strict=True))
        offered = (self._cpu * len(self.names), self._memory * len(self.names))
        shares = (Fraction(whole - taken, whole) for taken, whole in zip(used, offered, strict=True) if whole)
        return sum(shares, start=Fraction(0)) / 2

    def _add_node(self, pod: PodRecord) -> str:
        """Add a node for the pod, with what a new node runs in any case; why it does not help, or ""."""
        if len(self.names) == len(self._one.names):
            return self._one.closed
        name, mark = self._one.names[len(self.names)], self._scratch.mark()
        row = self._scratch.add_node(started(read(self._one.group.node(name), Node)))
        add_daemons(self._scratch, row, self._daemons)
        refusal = self._scratch.refusal(pod, row)
        if refusal:
            self._scratch.roll_back(mark)
            return refusal
        self._order[row] = len(self.names)
        self.names.append(name)
        self._scratch.place(pod, row)
        return ""


def add_daemons(scratch: Scratch, row: int, daemons: Iterable[PodRecord]) -> None:
    """Let a node have the pods of those DaemonSets that it does not keep off, as far as they fit."""
    name = scratch.cluster.nodes.name(row)
    for daemon in daemons:
        pod = replace(daemon, name=f"{daemon.name}-{name}", uid=f"{daemon.uid}/{name}")
        if not scratch.refusal(pod, row):
            scratch.place(pod, row)


def _amounts(pod: PodRecord) -> tuple[int, int]:
    """What the pod requests of cpu (milli) and memory (bytes)."""
    requests = pod.pod_class.requests
    return requests.get(CPU, 0), requests.get(MEMORY, 0)
