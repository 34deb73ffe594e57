"""How pods and nodes fare, as the API shows it, kept for one rescheduler."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from podium.api.maintenance import maintenance_ns
from podium.api.meta import Raw
from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.pod_health import WELL, pod_health
from podium.cluster.pods import PodRecord
from podium.framework.rescheduling.signals import NO_NODE_SIGNALS, NO_POD_SIGNALS, NodeSignals, PodSignals, Signals

# The reasons with which a kubelet turns a pod away (pkg/kubelet/lifecycle, pkg/kubelet/cm).
_REJECTIONS = frozenset(
    (
        *("AppArmor", "NodeAffinity", "NodeName", "NodePorts", "PodOSNotSupported"),
        *("PodOSSelectorNodeLabelDoesNotMatch", "TaintToleration", "TopologyAffinityError", "UnexpectedAdmissionError"),
    )
)
_SHORTAGE = "OutOf"


@dataclass(frozen=True, slots=True)
class _Seen:
    """What there is to tell of a pod; ``rejected``: whose pod was turned away from which node, and that pod."""

    uid: str
    signals: PodSignals = NO_POD_SIGNALS
    rejected: tuple[str, str] | None = None
    record: PodRecord | None = field(default=None, compare=False)


class ObservedSignals:
    """Takes in pods and nodes, and tells how they fare.

    A pod is known by its key, so that one whose end was not seen makes way for the next of its name.
    """

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}
        self._pods: dict[str, PodSignals] = {}
        self._nodes: dict[str, NodeSignals] = {}
        self._rejections: Counter[tuple[str, str]] = Counter()
        self._turned_away: dict[tuple[str, str], dict[str, PodRecord]] = {}
        self.signals = Signals(self._pods, self._nodes, self._rejections, self._turned_away)
        """What is known; it follows what is taken in."""

    def pod_changed(self, pod: Pod, raw: Raw, read: Callable[[Pod], PodRecord]) -> bool:
        """Take in a pod; whether there is something else to tell of it than before. ``read`` makes its record."""
        uid = pod.metadata.uid
        if pod.is_terminal:
            rejected = _rejected(pod, raw)
            if rejected is None:
                return self._put(pod.key, None)
            return self._put(pod.key, _Seen(uid, rejected=rejected, record=read(pod)))
        signals = _signals_of(raw)
        return self._put(pod.key, None if signals == NO_POD_SIGNALS else _Seen(uid, signals))

    def pod_gone(self, pod: Pod) -> bool:
        """A pod is no more; whether there was something to tell of it."""
        seen = self._seen.get(pod.key)
        return seen is not None and seen.uid == pod.metadata.uid and self._put(pod.key, None)

    def node_changed(self, node: Node) -> bool:
        """Take in a node; whether there is something else to tell of it than before."""
        name = node.metadata.name
        before = self._nodes.pop(name, NO_NODE_SIGNALS)
        found = NodeSignals(maintenance_ns=maintenance_ns(node.metadata.annotations))
        if found != NO_NODE_SIGNALS:
            self._nodes[name] = found
        return found != before

    def node_gone(self, name: str) -> None:
        """A node is no more."""
        self._nodes.pop(name, None)

    def has_turned_away(self, pod: PodRecord) -> bool:
        """Whether a pod that was turned away is still known."""
        seen = self._seen.get(pod.key)
        return seen is not None and seen.uid == pod.uid and seen.rejected is not None

    def _put(self, key: str, seen: _Seen | None) -> bool:
        before = self._seen.pop(key, None)
        if seen is not None:
            self._seen[key] = seen
        if before == seen:
            return False
        if before is not None:
            self._pods.pop(before.uid, None)
            self._count(before, -1)
        if seen is not None:
            if seen.rejected is None:
                self._pods[seen.uid] = seen.signals
            self._count(seen, 1)
        return True

    def _count(self, seen: _Seen, number: int) -> None:
        rejected, record = seen.rejected, seen.record
        if rejected is None or record is None:
            return
        pods = self._turned_away.setdefault(rejected, {})
        if number > 0:
            pods[seen.uid] = record
        else:
            del pods[seen.uid]
        self._rejections[rejected] = len(pods)
        if not pods:
            del self._rejections[rejected], self._turned_away[rejected]


def _signals_of(raw: Raw) -> PodSignals:
    health = pod_health(raw)
    if health is WELL:
        return NO_POD_SIGNALS
    return PodSignals(
        restarts=health.restarts,
        out_of_memory_kills=health.out_of_memory_kills,
        is_crash_looping=health.is_crash_looping,
        failure_ns=health.failure_ns,
    )


def _rejected(pod: Pod, raw: Raw) -> tuple[str, str] | None:
    """Whose pod was turned away from which node, if that is how it ended."""
    owner, reason = pod.metadata.controller, raw.get("status", {}).get("reason")
    if owner is None or pod.status.phase != "Failed" or not isinstance(reason, str):
        return None
    is_rejection = reason in _REJECTIONS or reason.startswith(_SHORTAGE)
    return (owner.uid, pod.spec.node_name) if is_rejection else None
