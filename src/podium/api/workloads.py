"""Workloads: ReplicaSet, Deployment, StatefulSet, DaemonSet (apps/v1), ReplicationController, Job, CronJob (batch/v1).

This module also has the ControllerRevision (apps/v1), in which StatefulSets and DaemonSets store their templates, and
Service (core/v1), whose selector defines the pods of default spreading like those of workloads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from podium.api.meta import APIStruct, Int32, Int64, Kubernetes, ObjectMeta
from podium.api.pod import Pod, PodCondition, PodSpec
from podium.api.selectors import LabelSelector
from podium.api.storage import PersistentVolumeClaim

Share = Int32 | str
"""A number of pods, or a percentage of the replicas such as "25%"."""


class PodTemplate(APIStruct, frozen=True, kw_only=True):
    """The template of a workload's pods."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()


class ReplicaSetSpec(APIStruct, frozen=True, kw_only=True):
    """The replicas, the selector, and the template. Deployment and StatefulSet have these fields too."""

    replicas: Int32 = 1
    min_ready_seconds: Int32 = 0
    selector: LabelSelector | None = None
    template: PodTemplate = PodTemplate()


class ReplicaSetStatus(APIStruct, frozen=True, kw_only=True):
    """The number of pods, without those that have ended or are terminating."""

    replicas: Int32 = 0
    ready_replicas: Int32 = 0
    available_replicas: Int32 = 0
    observed_generation: Int64 = 0


class ReplicaSet(Kubernetes, frozen=True, kw_only=True):
    """A workload that maintains a number of equal pods (apps/v1)."""

    spec: ReplicaSetSpec = ReplicaSetSpec()
    status: ReplicaSetStatus = ReplicaSetStatus()


class RollingUpdateDeployment(APIStruct, frozen=True, kw_only=True):
    """The maximum surge and the maximum number of unavailable pods during an update."""

    max_unavailable: Share = "25%"
    max_surge: Share = "25%"


class DeploymentStrategy(APIStruct, frozen=True, kw_only=True):
    """The strategy for replacing pods of an old template."""

    type: Literal["RollingUpdate", "Recreate"] = "RollingUpdate"
    rolling_update: RollingUpdateDeployment | None = None


class DeploymentSpec(ReplicaSetSpec, frozen=True, kw_only=True):
    """The template of the Deployment's ReplicaSets, and their update strategy."""

    strategy: DeploymentStrategy = DeploymentStrategy()
    paused: bool = False
    revision_history_limit: Int32 = 10


class DeploymentStatus(APIStruct, frozen=True, kw_only=True):
    """The observed state; `collision_count` is the number of name collisions of new ReplicaSets."""

    collision_count: Int32 = 0


class Deployment(Kubernetes, frozen=True, kw_only=True):
    """A workload that manages ReplicaSets (apps/v1)."""

    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()


class StatefulSetOrdinals(APIStruct, frozen=True, kw_only=True):
    """The ordinal of the first pod."""

    start: Int32 = 0


class RollingUpdateStatefulSet(APIStruct, frozen=True, kw_only=True):
    """The partition, below which pods keep their old template, and the maximum number of unavailable pods."""

    partition: Int32 = 0
    max_unavailable: Share = 1


class StatefulSetUpdateStrategy(APIStruct, frozen=True, kw_only=True):
    """The strategy for replacing pods of an old template: automatic or on deletion."""

    type: Literal["RollingUpdate", "OnDelete"] = "RollingUpdate"
    rolling_update: RollingUpdateStatefulSet = RollingUpdateStatefulSet()


class ClaimRetentionPolicy(APIStruct, frozen=True, kw_only=True):
    """Whether claims are deleted with their StatefulSet, and with pods that are scaled away."""

    when_deleted: Literal["Retain", "Delete"] = "Retain"
    when_scaled: Literal["Retain", "Delete"] = "Retain"


class StatefulSetSpec(ReplicaSetSpec, frozen=True, kw_only=True):
    """The ordinals of the pods, their claims, and the order of creation and deletion."""

    service_name: str = ""
    pod_management_policy: Literal["OrderedReady", "Parallel"] = "OrderedReady"
    update_strategy: StatefulSetUpdateStrategy = StatefulSetUpdateStrategy()
    ordinals: StatefulSetOrdinals = StatefulSetOrdinals()
    volume_claim_templates: tuple[PersistentVolumeClaim, ...] = ()
    persistent_volume_claim_retention_policy: ClaimRetentionPolicy = ClaimRetentionPolicy()
    revision_history_limit: Int32 = 10


class StatefulSetStatus(APIStruct, frozen=True, kw_only=True):
    """The observed state; revisions are names of ControllerRevisions: before and after the current update."""

    observed_generation: Int64 = 0
    current_revision: str = ""
    update_revision: str = ""


class StatefulSet(Kubernetes, frozen=True, kw_only=True):
    """A workload that maintains a number of ordinal pods (apps/v1)."""

    spec: StatefulSetSpec = StatefulSetSpec()
    status: StatefulSetStatus = StatefulSetStatus()


class RollingUpdateDaemonSet(APIStruct, frozen=True, kw_only=True):
    """The maximum numbers of nodes without an available pod, and with a second one, during an update."""

    max_unavailable: Share = 1
    max_surge: Share = 0


class DaemonSetUpdateStrategy(APIStruct, frozen=True, kw_only=True):
    """The strategy for replacing pods of an old template: automatic or on deletion."""

    type: Literal["RollingUpdate", "OnDelete"] = "RollingUpdate"
    rolling_update: RollingUpdateDaemonSet = RollingUpdateDaemonSet()


class DaemonSetSpec(APIStruct, frozen=True, kw_only=True):
    """The selector, the template, and the update strategy."""

    min_ready_seconds: Int32 = 0
    selector: LabelSelector | None = None
    template: PodTemplate = PodTemplate()
    update_strategy: DaemonSetUpdateStrategy = DaemonSetUpdateStrategy()
    revision_history_limit: Int32 = 10


class DaemonSetStatus(APIStruct, frozen=True, kw_only=True):
    """The observed state; `observed_generation` is that of the spec for which the counts were computed."""

    observed_generation: Int64 = 0


class DaemonSet(Kubernetes, frozen=True, kw_only=True):
    """A workload that runs a pod on every suitable node (apps/v1)."""

    spec: DaemonSetSpec = DaemonSetSpec()
    status: DaemonSetStatus = DaemonSetStatus()


class ControllerRevision(Kubernetes, frozen=True, kw_only=True):
    """A current or former template of a StatefulSet or DaemonSet; the highest `revision` is the newest (apps/v1).

    The format of `data` depends on the controller that owns the revision, which may be another one.
    """

    revision: Int64 = 0
    data: Any = None


class ReplicationControllerSpec(APIStruct, frozen=True, kw_only=True):
    """The same as ReplicaSetSpec, with a selector of equalities only."""

    replicas: Int32 = 1
    min_ready_seconds: Int32 = 0
    selector: dict[str, str] = {}
    template: PodTemplate = PodTemplate()


class ReplicationController(Kubernetes, frozen=True, kw_only=True):
    """The predecessor of ReplicaSet (core/v1)."""

    spec: ReplicationControllerSpec = ReplicationControllerSpec()


class PodFailurePolicyOnExitCodes(APIStruct, frozen=True, kw_only=True):
    """A condition on exit codes: one of these codes, or none of them; 0 never matches.

    Without a name, for all containers.
    """

    operator: Literal["In", "NotIn"]
    values: tuple[Int32, ...]
    container_name: str | None = None


class PodFailurePolicyOnPodCondition(APIStruct, frozen=True, kw_only=True):
    """A condition of the pod, with its status."""

    type: str
    status: str = "True"


class PodFailurePolicyRule(APIStruct, frozen=True, kw_only=True):
    """The action for a failed pod with matching exit codes or conditions."""

    action: Literal["FailJob", "FailIndex", "Ignore", "Count"]
    on_exit_codes: PodFailurePolicyOnExitCodes | None = None
    on_pod_conditions: tuple[PodFailurePolicyOnPodCondition, ...] = ()


class PodFailurePolicy(APIStruct, frozen=True, kw_only=True):
    """A list of rules, of which the first match decides; without a match, the failure counts."""

    rules: tuple[PodFailurePolicyRule, ...] = ()


class SuccessPolicyRule(APIStruct, frozen=True, kw_only=True):
    """The indexes that must succeed, in the form "1,3-5", or how many of them; "" for all indexes."""

    succeeded_indexes: str = ""
    succeeded_count: Int32 | None = None


class SuccessPolicy(APIStruct, frozen=True, kw_only=True):
    """A list of rules, of which one suffices."""

    rules: tuple[SuccessPolicyRule, ...] = ()


JOB_TRACKING = "batch.kubernetes.io/job-tracking"
"""Finalizer of a Job's pod that was not counted yet."""


class JobSpec(APIStruct, frozen=True, kw_only=True):
    """The completions, the parallelism, and the backoff limits.

    `pod_replacement_policy` None means Failed if there is a failure policy, else TerminatingOrFailed.
    """

    parallelism: Int32 = 1
    completions: Int32 | None = None
    completion_mode: Literal["NonIndexed", "Indexed"] = "NonIndexed"
    backoff_limit: Int32 = 6
    backoff_limit_per_index: Int32 | None = None
    max_failed_indexes: Int32 | None = None
    success_policy: SuccessPolicy | None = None
    active_deadline_seconds: Int64 | None = None
    selector: LabelSelector | None = None
    template: PodTemplate = PodTemplate()
    suspend: bool = False
    pod_failure_policy: PodFailurePolicy | None = None
    pod_replacement_policy: Literal["TerminatingOrFailed", "Failed"] | None = None
    managed_by: str | None = None
    ttl_seconds_after_finished: Int32 | None = None

    @property
    def most_at_once(self) -> int:
        """The most pods that run at the same time."""
        return self.parallelism if self.completions is None else min(self.parallelism, self.completions)


class UncountedTerminatedPods(APIStruct, frozen=True, kw_only=True):
    """The uids of pods that have ended and are not counted yet."""

    succeeded: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


class JobStatus(APIStruct, frozen=True, kw_only=True):
    """The progress of a Job; `completed_indexes` and `failed_indexes` have the form "1,3-5"."""

    start_time: str | None = None
    succeeded: Int32 = 0
    failed: Int32 = 0
    completed_indexes: str = ""
    failed_indexes: str = ""
    uncounted_terminated_pods: UncountedTerminatedPods = UncountedTerminatedPods()
    conditions: tuple[PodCondition, ...] = ()


class Job(Kubernetes, frozen=True, kw_only=True):
    """A workload that runs pods until enough have succeeded (batch/v1)."""

    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


class JobTemplate(APIStruct, frozen=True, kw_only=True):
    """The template of a CronJob's Jobs."""

    metadata: ObjectMeta = ObjectMeta()
    spec: JobSpec = JobSpec()


class CronJobSpec(APIStruct, frozen=True, kw_only=True):
    """The schedule, and the treatment of late and overlapping Jobs.

    A Job is not started later than `starting_deadline_seconds` after its time; None means no deadline.
    """

    schedule: str = ""
    time_zone: str | None = None
    concurrency_policy: Literal["Allow", "Forbid", "Replace"] = "Allow"
    starting_deadline_seconds: Int64 | None = None
    suspend: bool = False
    job_template: JobTemplate = JobTemplate()
    successful_jobs_history_limit: Int32 = 3
    failed_jobs_history_limit: Int32 = 1


class CronJobStatus(APIStruct, frozen=True, kw_only=True):
    """The scheduled time of the last Job."""

    last_schedule_time: str | None = None


class CronJob(Kubernetes, frozen=True, kw_only=True):
    """A workload that creates Jobs on a schedule (batch/v1)."""

    spec: CronJobSpec = CronJobSpec()
    status: CronJobStatus = CronJobStatus()


WORKLOADS = ("CronJob", "DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet")
"""The kinds that create pods, by name: arguments that mean their pods can omit the kind."""

POD_PATHS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(WORKLOADS, ("spec", "template")),
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
    "Pod": (),
    "PodTemplate": ("template",),
}
"""The paths of pods and of their templates by kind."""

Replicated = Deployment | ReplicaSet | ReplicationController | StatefulSet
"""The workloads with a number of replicas."""

PodMaker = DaemonSet | Job | Replicated
"""The workloads that create pods; a CronJob creates Jobs."""


def pod_template(object_: Kubernetes) -> tuple[Pod | PodTemplate, str] | None:
    """Return a pod, or the template of a workload's pods, and its path; None for other objects."""
    if isinstance(object_, Pod):
        return object_, ""
    if isinstance(object_, CronJob):
        return object_.spec.job_template.spec.template, ".spec.jobTemplate.spec.template"
    return (object_.spec.template, ".spec.template") if isinstance(object_, PodMaker) else None


def pods_wanted(object_: Kubernetes) -> int | None:
    """Return how many pods a workload asks for at once; None for kinds that ask for none or for one on each node."""
    if isinstance(object_, Job):
        return object_.spec.most_at_once
    return object_.spec.replicas if isinstance(object_, Replicated) else None


class ServiceSpec(APIStruct, frozen=True, kw_only=True):
    """The selector of a service's pods."""

    selector: dict[str, str] = {}


class Service(Kubernetes, frozen=True, kw_only=True):
    """A set of pods with a common name (core/v1)."""

    spec: ServiceSpec = ServiceSpec()
