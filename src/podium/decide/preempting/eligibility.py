"""Which pods may preempt: not those that never do, nor those that wait for their victims to end.

Source: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go (PodEligibleToPreemptOthers).
"""

from __future__ import annotations

from podium.api.policy import NEVER_PREEMPTS
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.framework.status import Code, Status

NOT_ELIGIBLE_TERMINATING = "not eligible due to a terminating pod on the nominated node."
NOT_ELIGIBLE_TERMINATING_ELSEWHERE = "not eligible due to a terminating pod that keeps it off the nominated node."
NOT_ELIGIBLE_YET = (NOT_ELIGIBLE_TERMINATING, NOT_ELIGIBLE_TERMINATING_ELSEWHERE)
"""Why a pod may not preempt that waits for its victims to end."""


def ineligible_reason(
    cluster: Cluster, pod: PodRecord, nominated_status: Status | None, *, evicts: bool = False
) -> str:
    """Why ``pod`` may not preempt now; "" where it may (PodEligibleToPreemptOthers).

    ``nominated_status`` is the filters' answer for the node that it is nominated to, None without such a node. A pod
    whose victims are still terminating there waits for them, unless the node cannot take it any more whatever
    happens. With ``evicts`` these are not marked as victims: all that terminate and are less important count.
    """
    if pod.preemption_policy in NEVER_PREEMPTS:
        return f"not eligible due to preemptionPolicy={pod.preemption_policy}."
    is_waiting = waits_for_victims(cluster, pod, nominated_status, pod.priority - 1, evicts=evicts)
    return NOT_ELIGIBLE_TERMINATING if is_waiting else ""


def waits_for_victims(
    cluster: Cluster, pod: PodRecord, nominated_status: Status | None, most: int, *, evicts: bool = False
) -> bool:
    """Whether pods of at most that priority, which were preempted, are still terminating where ``pod`` is nominated.

    ``nominated_status`` and ``evicts`` as for `ineligible_reason`.
    """
    row = cluster.nodes.row_of.get(pod.nominated_node_name)
    if row is None or not is_hopeful(nominated_status):
        return False
    return any(pod.terminating and (pod.preempted or evicts) and pod.priority <= most for pod in cluster.pods_on(row))


def is_hopeful(nominated_status: Status | None) -> bool:
    """Whether a pod may yet fit the node that it is nominated to, by the filters' answer for that."""
    return nominated_status is not None and nominated_status.code is not Code.UNSCHEDULABLE_AND_UNRESOLVABLE
