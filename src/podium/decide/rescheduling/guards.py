"""Which pods a rescheduler never touches, and why.

Source: controlled-rescheduling.md; descheduler pkg/framework/plugins/defaultevictor; autoscaler cluster-autoscaler
(safe-to-evict); karpenter (do-not-disrupt); priorityclass-preemption-policies.md for pods that are not preemptible.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from podium.api.pod import SOURCE_ANNOTATION
from podium.api.times import format_duration
from podium.cluster.cluster import Cluster
from podium.cluster.pod_class import PodClass
from podium.cluster.pods import NO_ROW, NOT_STARTED_NS, PodRecord
from podium.decide.critical_pods import CRITICAL_PRIORITY
from podium.decide.drain import DAEMON_SET
from podium.decide.lost_work import is_at_work, lost_work_ns
from podium.decide.rescheduling.node_duty import NodeDuty
from podium.decide.rescheduling.standing import PastMove, Standing
from podium.decide.scaling.scale_down import SAFE_TO_EVICT
from podium.framework.rescheduling.settings import ReschedulerSettings

PREFER_NO_EVICTION = "descheduler.alpha.kubernetes.io/prefer-no-eviction"
"""Annotation of a pod, whatever its value: the descheduler leaves it where it is."""

LEAVE_ALONE = {
    SAFE_TO_EVICT: ("false",),
    "karpenter.sh/do-not-disrupt": ("true",),
    "karpenter.sh/do-not-evict": ("true",),
}
"""Annotations by which pods tell others to leave them where they are, with the values that say so."""

_NODE = "Node"
_COOLING = "the last pod of its controller that was moved came back to its node, which has to cool down"


class Guards:
    """Why pods are left alone, as of ``now``. It is right for as long as the cluster's pods are who they were."""

    def __init__(
        self, cluster: Cluster, settings: ReschedulerSettings, standing: Standing, now: int, duty: NodeDuty
    ) -> None:
        self._cluster = cluster
        self._scope = settings.scope
        self._standing = standing
        self._now = now
        self._duty = duty
        self._of_class: dict[PodClass, str] = {}
        self._of_row: dict[int, str] = {}
        # How many pods each owner has, where that matters.
        self._replicas: Mapping[str, int] = (
            Counter(pod.owner_uid for pod in cluster.placed.values()) if self._scope.minimum_replicas else {}
        )
        self._under_way: dict[str, list[PastMove]] = {}
        for move in standing.past:
            if move.is_under_way(now, settings.move_timeout_ns):
                self._under_way.setdefault(move.owner_uid, []).append(move)

    def allows(self, pod: PodRecord) -> bool:
        """Whether the pod may be moved."""
        return not self.why(pod)

    def why(self, pod: PodRecord) -> str:
        """Why the pod is never moved as things are; "" if it may be.

        The words are the same for all of whom the same holds: its node has no name in them.
        """
        if pod.row == NO_ROW:
            return "it is on no node that is known"
        if pod.terminating:
            return "it is going already"
        why = self._of_class.get(pod.pod_class)
        if why is None:
            why = self._of_class[pod.pod_class] = self._out_of_scope(pod)
        return (
            why
            or self._why_kind(pod)
            or self._why_spared(pod)
            or (self._why_marked(pod.annotations) if pod.annotations else "")
            or self._why_row(pod.row)
            or self._why_young(pod)
            or self._why_lossy(pod)
            or self._why_of_late(pod)
        )

    def why_ended(self, pod: PodRecord, row: int) -> str:
        """Why a pod that has ended on the node in a row is left there; "" if it may go."""
        if pod.terminating:
            return "it is going already"
        if pod.uid in self._standing.refused:
            return "its eviction was refused, and is tried again later"
        cooling = (pod.owner_uid, pod.node_name) in self._standing.cooling
        return (
            self._out_of_scope(pod)
            or self._why_kind(pod)
            or self._why_spared(pod)
            or self._why_marked(pod.annotations)
            or self._why_row(row)
            or (_COOLING if cooling else "")
        )

    def _out_of_scope(self, pod: PodRecord) -> str:
        """What namespace and labels say."""
        scope = self._scope
        if pod.namespace in scope.excluded:
            return f"the namespace {pod.namespace} is excluded"
        if scope.included and pod.namespace not in scope.included:
            return f"the namespace {pod.namespace} is not among those included"
        if scope.pods is not None and not scope.pods.matches(pod.labels):
            return f'its labels do not match "{scope.pods}"'
        return ""

    def _why_kind(self, pod: PodRecord) -> str:
        """What kind of pod it is: nobody would make it again, or only here; or it may not be disrupted."""
        controller, scope = pod.controller, self._scope
        if pod.is_mirror or pod.annotations.get(SOURCE_ANNOTATION, "api") != "api":
            return "it is a static pod"
        if controller is not None and controller.kind in (DAEMON_SET, _NODE):
            return f"it belongs to a {controller.kind}, and comes and goes with its node"
        if pod.priority >= CRITICAL_PRIORITY and not scope.allows_system_critical:
            return "its priority is system-critical"
        if controller is None and not scope.allows_bare_pods:
            return "it has no controller to make it again"
        if not pod.is_preemptible:
            return f"its preemption policy is {pod.preemption_policy}"
        if self._cluster.pod_groups.of(pod) is not None:
            # Where its replacement goes is for whoever places the group, by rules that are not asked here.
            return "it belongs to a PodGroup, whose pods are placed together"
        return ""

    def _why_spared(self, pod: PodRecord) -> str:
        """What the scope spares beside that: the important, the few, and those that hold on to something."""
        scope = self._scope
        if scope.priority_below is not None and pod.priority >= scope.priority_below:
            return f"its priority is {pod.priority}, and only pods below {scope.priority_below} are moved"
        if self._replicas.get(pod.owner_uid, 0) < scope.minimum_replicas:
            return f"its owner has less than {scope.minimum_replicas} pods"
        if scope.spares_volume_claims and _claims_volumes(pod):
            return "it has claims of volumes, which are spared"
        if scope.spares_device_claims and pod.spec.resource_claims:
            return "it has claims of devices, which are spared"
        return ""

    def _why_marked(self, annotations: Mapping[str, str]) -> str:
        for name, values in LEAVE_ALONE.items():
            if annotations.get(name) in values:
                return f"it is annotated {name}: {annotations[name]}"
        return f"it is annotated {PREFER_NO_EVICTION}" if PREFER_NO_EVICTION in annotations else ""

    def _why_row(self, row: int) -> str:
        why = self._of_row.get(row)
        if why is None:
            why = self._of_row[row] = self._why_node(row)
        return why

    def _why_node(self, row: int) -> str:
        """What the pod's node says."""
        node = self._cluster.nodes.node(row)
        off_duty = self._duty.why(row)
        if off_duty:
            return f"its node is left to others: {off_duty}"
        wanted = self._scope.nodes
        if wanted is not None and not wanted.matches(node.metadata.labels):
            return f'the labels of its node do not match "{wanted}"'
        return ""

    def _why_young(self, pod: PodRecord) -> str:
        if pod.start_ns == NOT_STARTED_NS and not pod.ready:
            # It may have waited for long, and have come to its node just now.
            return "it has not started yet"
        since_ns = pod.created_ns if pod.start_ns == NOT_STARTED_NS else pod.start_ns
        least_ns = self._scope.minimum_age_ns
        return f"it is younger than {format_duration(least_ns)}" if self._now - since_ns < least_ns else ""

    def _why_lossy(self, pod: PodRecord) -> str:
        """What it would lose: data on the node, or work."""
        scope = self._scope
        if pod.uid in self._standing.keeps_data and not scope.allows_local_storage:
            return "it keeps data on its node"
        try:
            if scope.allows_work_in_progress or not is_at_work(pod):
                return ""
            lost_ns = lost_work_ns(pod, self._now)
        except ValueError as error:
            return str(error)
        if lost_ns is None:
            return "its work is in progress, and it does not say what a move would cost"
        if lost_ns > scope.max_lost_work_ns:
            most = format_duration(scope.max_lost_work_ns)
            return f"it would lose {format_duration(lost_ns // 10**9 * 10**9)} of work, and at most {most} is allowed"
        return ""

    def _why_of_late(self, pod: PodRecord) -> str:
        """What became of the last moves."""
        owner = pod.owner_uid
        if (owner, pod.node_name) in self._standing.cooling:
            return _COOLING
        if not pod.ready and any(_came_of(pod, move) for move in self._under_way.get(owner, ())):
            return "it was made for one that was moved, and is not ready yet"
        return ""


def _claims_volumes(pod: PodRecord) -> bool:
    return any(
        volume.persistent_volume_claim is not None or volume.ephemeral is not None for volume in pod.spec.volumes
    )


def _came_of(pod: PodRecord, move: PastMove) -> bool:
    """Whether the pod may be the replacement of one that was evicted."""
    return pod.created_ns >= move.evicted_ns or (move.waiting is not None and move.waiting.uid == pod.uid)
