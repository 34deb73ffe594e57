"""The pods that a rescheduler must not move now, and why: scope, node state, budgets, past moves.

Source: controlled-rescheduling.md; descheduler pkg/framework/plugins/defaultevictor; autoscaler cluster-autoscaler
(safe-to-evict); karpenter (do-not-disrupt); priorityclass-preemption-policies.md for pods that are not preemptible.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import ceil

import numpy as np

from podium.api.node import NOT_READY, OUT_OF_SERVICE, UNREACHABLE, Node
from podium.api.pod import SOURCE_ANNOTATION
from podium.api.times import format_duration
from podium.cluster.arrays import Bools, Int64s
from podium.cluster.budgets import Budget, Budgets
from podium.cluster.cluster import Cluster
from podium.cluster.nodes import NodeColumns
from podium.cluster.pod_classes import PodClass
from podium.cluster.pods import NO_ROW, NOT_STARTED_NS, PodRecord
from podium.cluster.view import UNSCHEDULABLE_TAINT
from podium.decide.autoscaling import REMOVAL_TAINT, SAFE_TO_EVICT, STARTUP_TAINT
from podium.decide.evictions import DAEMON_SET, Allowance, is_at_work, lost_work_ns
from podium.decide.kubelet import CRITICAL_PRIORITY
from podium.framework.cache.class_cache import CachedRows
from podium.framework.rescheduling.policy import Proposal
from podium.framework.rescheduling.settings import ReschedulerSettings

PREFER_NO_EVICTION = "descheduler.alpha.kubernetes.io/prefer-no-eviction"
"""Annotation of a pod, with any value: the descheduler leaves the pod in place."""

LEAVE_ALONE = {
    SAFE_TO_EVICT: ("false",),
    "karpenter.sh/do-not-disrupt": ("true",),
    "karpenter.sh/do-not-evict": ("true",),
}
"""Annotations that ask components to leave a pod in place, with the values that do so."""

_COOLING = "the last moved pod of its controller came back to this node, which has to cool down"


class Guards:
    """The reasons for which pods stay in place, as of ``now``.

    Valid while the set of pods in the cluster is unchanged.
    """

    def __init__(self, cluster: Cluster, settings: ReschedulerSettings, inputs: PlanInputs, now: int) -> None:
        self._cluster = cluster
        self._scope = settings.scope
        self._young = f"it is younger than scope.minimumAge, {format_duration(settings.scope.minimum_age_ns)}"
        self._inputs = inputs
        self._now = now
        self._of_class: dict[PodClass, str] = {}
        self._of_row: dict[int, str] = {}
        # The number of pods of each owner, if the scope needs it.
        self._replicas: Mapping[str, int] = (
            Counter(pod.owner_uid for pod in cluster.placed.values()) if self._scope.minimum_replicas else {}
        )
        self._under_way: dict[str, list[PastMove]] = {}
        for move in inputs.past:
            if move.is_under_way(now, settings.move_timeout_ns):
                self._under_way.setdefault(move.owner_uid, []).append(move)

    def why(self, pod: PodRecord) -> str:
        """Return why the pod is never moved in the present state; "" if it may be.

        The text does not name the node, so that it is equal for all pods with the same reason.
        """
        if pod.row == NO_ROW:
            return "its node is unknown"
        return (
            self._why_lasting(pod, pod.row)
            or self._why_young(pod)
            or self._why_lossy(pod)
            or self._why_disturbed(pod)
            or self._why_of_late(pod)
        )

    def why_ended(self, pod: PodRecord, row: int) -> str:
        """Return why a finished pod on the node in a row is left there; "" if it may be evicted."""
        if pod.uid in self._inputs.refused:
            return "its eviction was refused, and is tried again later"
        cooling = (pod.owner_uid, pod.node_name) in self._inputs.cooling
        return self._why_lasting(pod, row) or (_COOLING if cooling else "")

    def _why_lasting(self, pod: PodRecord, row: int) -> str:
        """Return the reason that follows from the pod itself and the node in a row."""
        if pod.terminating:
            return "it is terminating"
        why = self._of_class.get(pod.pod_class)
        if why is None:
            why = self._of_class[pod.pod_class] = self._out_of_scope(pod)
        why = why or self._why_kind(pod) or self._why_spared(pod)
        return why or (self._why_marked(pod.annotations) if pod.annotations else "") or self._why_row(row)

    def _out_of_scope(self, pod: PodRecord) -> str:
        """Return the reason that follows from the pod's namespace and labels."""
        scope = self._scope
        if pod.namespace in scope.excluded:
            return f"scope.namespaces excludes the namespace {pod.namespace}"
        if scope.included and pod.namespace not in scope.included:
            return f"scope.namespaces does not include the namespace {pod.namespace}"
        if scope.pods is not None and not scope.pods.matches(pod.labels):
            return f'its labels do not match scope.podSelector "{scope.pods}"'
        return ""

    def _why_kind(self, pod: PodRecord) -> str:
        """Return the reason that follows from the kind of pod.

        Either no controller would replace it, or it must not be disrupted.
        """
        controller, scope = pod.controller, self._scope
        if pod.is_mirror or pod.annotations.get(SOURCE_ANNOTATION, "api") != "api":
            return "it is a static pod"
        if controller is not None and controller.kind in (DAEMON_SET, "Node"):
            return f"it belongs to a {controller.kind}, and comes and goes with its node"
        if pod.priority >= CRITICAL_PRIORITY and "SystemCriticalPods" not in scope.allow:
            return "its priority is system-critical; scope.allow does not name SystemCriticalPods"
        if controller is None and "PodsWithoutController" not in scope.allow:
            return "it has no controller that replaces it; scope.allow does not name PodsWithoutController"
        if not pod.is_preemptible:
            return f"its preemption policy is {pod.preemption_policy}"
        if self._cluster.pod_groups.of(pod) is not None:
            # The placement of the group decides where the replacement goes; its rules are not evaluated here.
            return "it belongs to a PodGroup, whose pods are placed together"
        return ""

    def _why_spared(self, pod: PodRecord) -> str:
        """Return why the scope spares the pod otherwise: high priority, few replicas, or resources that it holds."""
        scope = self._scope
        if scope.priority_below is not None and pod.priority >= scope.priority_below:
            return f"its priority is {pod.priority}, not below scope.priorityBelow, {scope.priority_below}"
        if self._replicas.get(pod.owner_uid, 0) < scope.minimum_replicas:
            return f"its owner has fewer pods than scope.minimumReplicas, {scope.minimum_replicas}"
        volumes = pod.spec.volumes if "PodsWithVolumeClaims" in scope.spare else ()
        if any(volume.persistent_volume_claim is not None or volume.ephemeral is not None for volume in volumes):
            return "it has claims of volumes; scope.spare names PodsWithVolumeClaims"
        if "PodsWithDeviceClaims" in scope.spare and pod.spec.resource_claims:
            return "it has claims of devices; scope.spare names PodsWithDeviceClaims"
        return ""

    def _why_marked(self, annotations: Mapping[str, str]) -> str:
        for name, values in LEAVE_ALONE.items():
            if annotations.get(name) in values:
                return f"it is annotated {name}: {annotations[name]}"
        return f"it is annotated {PREFER_NO_EVICTION}" if PREFER_NO_EVICTION in annotations else ""

    def _why_row(self, row: int) -> str:
        """Return the reason that follows from the node in a row."""
        why = self._of_row.get(row)
        if why is None:
            node, wanted, why = self._cluster.nodes.node(row), self._scope.nodes, ""
            if reason := off_duty(node):
                why = f"its node is left to others: {reason}"
            elif wanted is not None and not wanted.matches(node.metadata.labels):
                why = f'the labels of its node do not match scope.nodeSelector "{wanted}"'
            self._of_row[row] = why
        return why

    def _why_young(self, pod: PodRecord) -> str:
        if pod.start_ns == NOT_STARTED_NS and not pod.ready:
            # The pod may have waited for a long time and been bound just now.
            return "it has not started yet"
        since_ns = pod.created_ns if pod.start_ns == NOT_STARTED_NS else pod.start_ns
        return self._young if self._now - since_ns < self._scope.minimum_age_ns else ""

    def _why_lossy(self, pod: PodRecord) -> str:
        """Return what a move of the pod loses: data on the node, or work."""
        scope = self._scope
        if pod.uid in self._inputs.keeps_data and "LocalStorage" not in scope.allow:
            return "it keeps data on its node; scope.allow does not name LocalStorage"
        try:
            if "WorkInProgress" in scope.allow or not is_at_work(pod):
                return ""
            lost_ns = lost_work_ns(pod, self._now)
        except ValueError as error:
            return str(error)
        if lost_ns is None:
            return "its work is in progress, at no stated cost; scope.allow does not name WorkInProgress"
        if lost_ns > scope.max_lost_work_ns:
            lost, most = format_duration(lost_ns // 10**9 * 10**9), format_duration(scope.max_lost_work_ns)
            return f"it would lose {lost} of work, more than scope.maxLostWork, {most}"
        return ""

    def _why_disturbed(self, pod: PodRecord) -> str:
        """Return why a recent disruption of the pod's workload, by any component, keeps the pod in place."""
        least_ns = self._scope.undisturbed_for_ns
        if not least_ns or self._cluster.disrupted.last_ns(pod.workload, self._now, least_ns) is None:
            return ""
        return f"its workload was disrupted less than scope.undisturbedFor, {format_duration(least_ns)}, ago"

    def _why_of_late(self, pod: PodRecord) -> str:
        """Return the reason that follows from recent moves."""
        owner = pod.owner_uid
        if (owner, pod.node_name) in self._inputs.cooling:
            return _COOLING
        for move in () if pod.ready else self._under_way.get(owner, ()):
            if pod.created_ns >= move.evicted_ns or (move.waiting is not None and move.waiting.uid == pod.uid):
                return "it replaces a moved pod, and is not ready yet"
        return ""


class BudgetRoom(Allowance):
    """The evictions that budgets, rates and the component's cap still allow at ``now``, minus those planned."""

    def __init__(self, inputs: PlanInputs, settings: ReschedulerSettings, now: int) -> None:
        super().__init__(inputs.budgets)
        self._settings = settings
        self._now = now
        self._cap_left = inputs.component_may_evict
        self._planned_in_all = 0

    def is_protected(self, pod: PodRecord) -> bool:
        """Return whether a budget counts the pod, so that its limits apply instead of `withoutBudget`."""
        return self._budgets.counts(pod.pod_class)

    def why(self, pods: Collection[PodRecord]) -> str:
        why = super().why(pods)
        if why or self._cap_left is None or self._planned_in_all + self._counted(pods) <= self._cap_left:
            return why
        return f"the rescheduler's cap on disruptions of pods with a budget leaves {self._cap_left}"

    def why_never(self, pod: PodRecord) -> str:
        """Return why the budgets of a pod would refuse its eviction even if all pods were healthy.

        "" if they would allow it.
        """
        for budget in self._budgets_of(pod):
            if budget.with_all_up - self.reserve(budget) < 1:
                allowed = max(budget.with_all_up, 0)
                return f"{pod.key} can never move: {budget.key} allows at most {allowed}, less the reserve for others"
        return ""

    def take(self, pods: Collection[PodRecord]) -> None:
        super().take(pods)
        self._planned_in_all += self._counted(pods)

    def reserve(self, budget: Budget) -> int:
        """Return how many of the disruptions that a budget allows are reserved for others."""
        settings = self._settings
        return max(settings.budget_reserve, ceil(settings.budget_reserve_share * budget.with_all_up))

    def _counted(self, pods: Collection[PodRecord]) -> int:
        """Return how many of the pods count for the cap."""
        return sum(bool(self._budgets_of(pod)) for pod in pods)

    def _asks(self, budget: Budget, pod: PodRecord) -> bool:
        return pod.ready or not budget.spares_unready

    def _why_not(self, budget: Budget, number: int) -> str:
        if budget.is_behind:
            return "is still being processed"
        reserve, bucket = self.reserve(budget), budget.bucket
        if number > budget.disruptions_allowed - reserve:
            kept = f", of which {reserve} are left to others" if reserve else ""
            return f"allows {max(budget.disruptions_allowed, 0)}{kept}"
        if bucket is not None and number > (tokens := bucket.tokens(self._now)):
            return f"has a rate of {bucket.rate}, which leaves {tokens}"
        return ""


OFF_DUTY_TAINTS = {
    UNSCHEDULABLE_TAINT.key: "it is cordoned",
    REMOVAL_TAINT: "the autoscaler is removing it",
    "DeletionCandidateOfClusterAutoscaler": "the autoscaler is about to remove it",
    STARTUP_TAINT: "it has not started yet",
    "karpenter.sh/disrupted": "Karpenter is removing it",
    "karpenter.sh/disruption": "Karpenter is removing it",
    NOT_READY: "it is not ready",
    UNREACHABLE: "it cannot be reached",
    OUT_OF_SERVICE: "it is out of service",
    "node.cloudprovider.kubernetes.io/shutdown": "it is shut down",
    "node.cloudprovider.kubernetes.io/uninitialized": "it has not started yet",
}
"""Keys of taints, with any effect, that mark a node as leaving or not working, and their meaning."""


def off_duty(node: Node) -> str:
    """Return why the rescheduler moves no pod to or off a node; "" if neither holds."""
    if node.metadata.deletion_timestamp:
        return "it is being deleted"
    if node.spec.unschedulable:
        return OFF_DUTY_TAINTS[UNSCHEDULABLE_TAINT.key]
    if any(condition.type == "Ready" and condition.status != "True" for condition in node.status.conditions):
        return "it is not ready"
    return next((OFF_DUTY_TAINTS[taint.key] for taint in node.spec.taints if taint.key in OFF_DUTY_TAINTS), "")


class RowsOnDuty:
    """The nodes to which pods may move, kept from look to look; a node's row depends on that node alone."""

    def __init__(self) -> None:
        self._nodes: NodeColumns | None = None
        self._rows = CachedRows()

    def of(self, nodes: NodeColumns) -> Bools:
        """Return ``[rows]``: whether pods may move to the node; False for a row without a node. Read-only."""
        if nodes is not self._nodes:
            self._nodes, self._rows = nodes, CachedRows()

        def compute(rows: Int64s | None) -> Int64s:
            some = nodes.nodes[: nodes.count] if rows is None else [nodes.nodes[row] for row in rows.tolist()]
            return np.array([node is not None and not off_duty(node) for node in some], dtype=np.int64)

        self._rows.refresh(nodes.node_changes, nodes.count, compute)
        found = self._rows.values.astype(np.bool_)
        found.flags.writeable = False
        return found


@dataclass(frozen=True, slots=True)
class PastMove:
    """A move that counts against limits, made or planned: its pod, its source node, and the time of the eviction.

    ``is_in_flight``: its replacement is not ready yet. ``target`` is the node where it is expected; "" if that is
    unknown, or is known from the API, in which case no capacity is reserved. ``waiting`` is the pod whose capacity is
    reserved there: the replacement, or the evicted pod until the replacement is observed.
    """

    namespace: str
    owner_uid: str
    source: str
    evicted_ns: int
    is_in_flight: bool
    has_budget: bool
    target: str = ""
    waiting: PodRecord | None = None

    def is_under_way(self, now: int, timeout_ns: int) -> bool:
        """Return whether the move counts as under way: it is not complete and began less than the timeout ago."""
        return self.is_in_flight and now - self.evicted_ns < timeout_ns


@dataclass(frozen=True, slots=True)
class PlanInputs:
    """The inputs of a plan besides the cluster and the settings.

    ``cooling`` are the owners whose pods on a node are left alone because a replacement returned to it. ``keeps_data``
    are the pods (uids) that would lose data by a move, ``refused`` those whose evictions were refused recently or are
    under way. ``emptying`` is the node that is being emptied pod by pod ("" for none), ``given_up`` the nodes for which
    that was abandoned recently. ``component_may_evict`` is how many evictions the component's cap allows now, None for
    any number. ``only`` is a proposal, with the name of its policy, that is tried instead of those of the policies.
    """

    past: tuple[PastMove, ...]
    budgets: Budgets
    cooling: Collection[tuple[str, str]] = frozenset()
    keeps_data: Collection[str] = frozenset()
    refused: Collection[str] = frozenset()
    emptying: str = ""
    given_up: Collection[str] = frozenset()
    component_may_evict: int | None = None
    only: tuple[str, Proposal] | None = None
