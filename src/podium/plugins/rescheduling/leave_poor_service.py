"""LeavePoorService: pods leave nodes on which they fail though they would be well elsewhere.

Source: controlled-rescheduling.md, Example use cases ("moving a running pod off of a node from which it is receiving
poor service": anomalous crash loops, repeated out-of-resource killing, rejections by the kubelet).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec
import numpy as np

from podium.cluster.arrays import Bools
from podium.cluster.pods import NO_ROW, PodRecord
from podium.decide.scaling.scale_down import belongs_to_node
from podium.framework.plugin import PluginContext
from podium.framework.rescheduling.picture import Picture
from podium.framework.rescheduling.policy import Avoidance, Proposal, Relocation
from podium.framework.rescheduling.signals import PodSignals
from podium.framework.rescheduling.written_scope import Span, span_ns
from podium.framework.settings.arguments import Arguments, read_arguments
from podium.plugins.rescheduling.parts.fortunes import Fortunes

_MINUTE = 60 * 10**9
_DAY_NS = 24 * 60 * _MINUTE
_Count = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]


class LeavePoorServiceArgs(Arguments, frozen=True, kw_only=True):
    """Arguments.

    A pod fails whose containers were started again ``minRestarts`` times, and wait to be again, or failed ``within``
    so long. One is well that is ready, and started longer ago than that. A node on which pods of ``minOwners`` fail, or
    are turned away ``minRejections`` times each, which fail nowhere else, is in trouble itself. The node that a pod
    leaves is avoided ``avoidFor`` so long, and until then counts as one where its owner fails.
    """

    min_restarts: _Count = 3
    within: Span | None = None
    min_owners: _Count = 3
    min_rejections: _Count = 3
    avoid_for: Span | None = None


class LeavePoorService:
    """Counts the pods that fail where they are and would hardly fail elsewhere.

    A pod fails for its node where more pods of its owner are well than fail on other nodes, or where the node is in
    trouble. Pods of an owner who fails everywhere are not helped by moving.
    """

    name = "LeavePoorService"

    def __init__(self, context: PluginContext) -> None:
        self._args = read_arguments(context.args, LeavePoorServiceArgs, self.name)
        self._within_ns = span_ns(self._args.within, 10 * _MINUTE, ".within")
        self._avoid_for_ns = span_ns(self._args.avoid_for, _DAY_NS, ".avoidFor")
        self._fortunes = Fortunes(self._fails, self._is_well)
        self._picture: Picture | None = None
        # By row, the owners whose pods the node's kubelet turned away again and again.
        self._turned_away: dict[int, set[str]] = {}

    def objective(self, picture: Picture) -> float:
        """How many pods fail for their nodes."""
        self._look(picture)
        alone = sum(sum(numbers.values()) for row, numbers in self._fortunes.lonely.items() if self._is_in_trouble(row))
        return float(self._fortunes.misplaced + alone)

    def proposals(self, picture: Picture) -> Iterator[Proposal]:
        """Each of them, by how often it was started again, then by key."""
        self._look(picture)

        def place(pod: PodRecord) -> tuple[int, str, str]:
            return -picture.signals.of_pod(pod.uid).restarts, pod.key, pod.uid

        for pod in sorted(self._fortunes.failing(), key=place):
            if not picture.is_movable(pod) or pod.row == NO_ROW:
                continue
            self._look(picture)
            why = self._why(picture, pod)
            if why:
                yield Proposal((Relocation(pod, self._targets(picture, pod)),), why, self._avoid_for_ns)

    def avoidances(self, picture: Picture) -> Iterator[Avoidance]:
        """The owners whose pods a kubelet turned away again and again, and lately; the most often first."""
        found = sorted(picture.signals.turned_away.items(), key=lambda item: (-len(item[1]), item[0]))
        for (_, node), by_uid in found:
            pods = sorted(by_uid.values(), key=lambda pod: (pod.created_ns, pod.key, pod.uid))
            if len(pods) < self._args.min_rejections or picture.now - pods[-1].created_ns > self._within_ns:
                continue
            # The oldest goes: what the last ones tell stays for people to read.
            whose = pods[0].controller
            who = "of one owner" if whose is None else f"of {whose.kind} {whose.name}"
            reason = f"the kubelet of {node} turned away {len(pods)} pods {who}, the last one of late"
            yield Avoidance(pods[0], reason, self._avoid_for_ns)

    # Who fails

    def _fails(self, picture: Picture, pod: PodRecord) -> bool:
        told = picture.signals.pods.get(pod.uid)
        if told is None or told.restarts < self._args.min_restarts or belongs_to_node(pod):
            return False
        is_recent = told.failure_ns is not None and picture.now - told.failure_ns <= self._within_ns
        return told.is_crash_looping or is_recent

    def _is_well(self, picture: Picture, pod: PodRecord) -> bool:
        return pod.ready and pod.start_ns <= picture.now - self._within_ns

    # Whose fault it is

    def _look(self, picture: Picture) -> None:
        self._fortunes.look(picture)
        if picture is not self._picture:
            self._picture, self._turned_away = picture, {}
            for (owner, node), times in picture.signals.rejections.items():
                row = picture.cluster.nodes.row_of.get(node)
                if row is not None and times >= self._args.min_rejections:
                    self._turned_away.setdefault(row, set()).add(owner)

    def _why(self, picture: Picture, pod: PodRecord) -> str:
        """Why a pod that fails would be better elsewhere; "" where it hardly would."""
        owner, node = self._fortunes.of(pod.owner_uid), picture.node_name(pod.row)
        elsewhere, how = owner.failing_elsewhere(pod.row), _how(picture.signals.of_pod(pod.uid))
        if owner.well > elsewhere:
            others = "1 other of its pods is well" if owner.well == 1 else f"{owner.well} others of its pods are well"
            whose = "" if pod.controller is None else f" of {pod.controller.kind} {pod.controller.name}"
            return f"{pod.key}{whose} {how} on {node}, while {others}"
        if not elsewhere and self._is_in_trouble(pod.row):
            return f"{pod.key} {how} on {node}, as pods of other owners do there that fail nowhere else"
        return ""

    def _is_in_trouble(self, row: int) -> bool:
        """Whether pods of many owners fail on a node, or are turned away, that fail nowhere else."""
        failing, turned_away = self._fortunes.lonely.get(row, {}), self._turned_away.get(row, set())
        return len(failing) + len(turned_away - failing.keys()) >= self._args.min_owners

    def _targets(self, picture: Picture, pod: PodRecord) -> Bools:
        """Not where pods of its owner fail or are turned away, nor where the node is in trouble."""
        targets: Bools = np.ones(picture.cluster.nodes.count, dtype=np.bool_)
        owner = self._fortunes.of(pod.owner_uid)
        for row in {*self._fortunes.rows(), *owner.left, *self._turned_away}:
            is_bad = row in owner.failing or row in owner.left or pod.owner_uid in self._turned_away.get(row, ())
            targets[row] = not (is_bad or self._is_in_trouble(row))
        return targets


def _how(signals: PodSignals) -> str:
    for_memory = " for want of memory" if signals.out_of_memory_kills else ""
    return f"was started again {signals.restarts} times{for_memory}"
