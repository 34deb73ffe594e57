"""The annotations that Podium reads: the one list of them, by which snapshots keep these and leave out all others."""

from __future__ import annotations

from podium.api.avoid_list import PREFER_AVOID_PODS
from podium.api.disruption_rate import DISRUPTION_RATE, MAX_DISRUPTIONS
from podium.api.maintenance import MAINTENANCE_TIME
from podium.api.pod import MIRROR_ANNOTATION, NOMINATED_NODE_ANNOTATION, SOURCE_ANNOTATION
from podium.api.pod_group import DISRUPTION_ANNOTATION, TIMEOUT_ANNOTATION, TOPOLOGY_ANNOTATION
from podium.api.policy import POLICY_ANNOTATION
from podium.api.resource_claims import EXTENDED_RESOURCE_CLAIM, POD_CLAIM_NAME
from podium.api.validation.contents import ACCOUNT_ANNOTATION
from podium.api.volume_annotations import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    MIGRATED_PLUGINS,
    PROVISIONED_BY,
    SELECTED_NODE,
    STORAGE_CLASS,
)
from podium.decide.local_storage import SAFE_LOCAL_VOLUMES
from podium.decide.lost_work import CHECKPOINT_INTERVAL, CHECKPOINT_TIME, WORK_IN_PROGRESS
from podium.decide.rescheduling.guards import LEAVE_ALONE, PREFER_NO_EVICTION
from podium.decide.scaling.scale_down import SAFE_TO_EVICT, SCALE_DOWN_DISABLED
from podium.machines.kubelets.node_trouble import TROUBLE
from podium.machines.kubelets.pod_annotations import (
    CPU_USAGE,
    CRASH_AFTER,
    DURATION,
    MEMORY_USAGE,
    READY_AFTER,
    TERMINATION,
)
from podium.machines.scheduling.futile_notes import ANNOTATION as FUTILE_PREEMPTIONS
from podium.machines.workloads.cron.cron_jobs import SCHEDULED_AT
from podium.machines.workloads.jobs.completion_indexes import INDEX
from podium.machines.workloads.pod_ranking import DELETION_COST
from podium.machines.workloads.rolling.deployments import REVISION
from podium.plane.node_power import POWER

READ_ANNOTATIONS = frozenset(
    (
        *LEAVE_ALONE,
        ACCOUNT_ANNOTATION,
        BIND_COMPLETED,
        BOUND_BY_CONTROLLER,
        CHECKPOINT_INTERVAL,
        CHECKPOINT_TIME,
        CPU_USAGE,
        CRASH_AFTER,
        DELETION_COST,
        DISRUPTION_RATE,
        DURATION,
        EXTENDED_RESOURCE_CLAIM,
        FUTILE_PREEMPTIONS,
        INDEX,
        MAINTENANCE_TIME,
        # Of PodGroups.
        DISRUPTION_ANNOTATION,
        TIMEOUT_ANNOTATION,
        TOPOLOGY_ANNOTATION,
        MAX_DISRUPTIONS,
        MEMORY_USAGE,
        MIGRATED_PLUGINS,
        MIRROR_ANNOTATION,
        NOMINATED_NODE_ANNOTATION,
        POD_CLAIM_NAME,
        POLICY_ANNOTATION,
        POWER,
        PREFER_AVOID_PODS,
        PREFER_NO_EVICTION,
        PROVISIONED_BY,
        READY_AFTER,
        REVISION,
        SAFE_LOCAL_VOLUMES,
        SAFE_TO_EVICT,
        SCALE_DOWN_DISABLED,
        SCHEDULED_AT,
        SELECTED_NODE,
        SOURCE_ANNOTATION,
        STORAGE_CLASS,
        TERMINATION,
        TROUBLE,
        WORK_IN_PROGRESS,
    )
)
