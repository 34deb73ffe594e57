"""What makes pods: ReplicaSet, Deployment, StatefulSet, DaemonSet (apps/v1), ReplicationController, Job (batch/v1).

A CronJob (batch/v1) makes Jobs.

With them the ControllerRevision (apps/v1), in which StatefulSets and DaemonSets keep their templates. Service (core/v1)
stands here too: with the others it says which pods belong together for default spreading.
"""

from __future__ import annotations

from typing import Any, Literal

from podium.api.meta import Int32, Int64, Kubernetes, Narrow, ObjectMeta
from podium.api.pod import PodCondition, PodSpec
from podium.api.selection import LabelSelector
from podium.api.storage import PersistentVolumeClaim

Share = Int32 | str
"""A number of pods, or a percentage of those wanted such as "25%"."""


class PodTemplate(Narrow, frozen=True, kw_only=True):
    """The pods that a workload makes."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()


class ReplicaSetSpec(Narrow, frozen=True, kw_only=True):
    """How many pods, which ones, and how they look. Deployment and StatefulSet have these fields too."""

    replicas: Int32 = 1
    min_ready_seconds: Int32 = 0
    selector: LabelSelector | None = None
    template: PodTemplate = PodTemplate()


class ReplicaSetStatus(Narrow, frozen=True, kw_only=True):
    """How many pods there are, not counting those that have ended or were deleted."""

    replicas: Int32 = 0
    ready_replicas: Int32 = 0
    available_replicas: Int32 = 0
    observed_generation: Int64 = 0


class ReplicaSet(Kubernetes, frozen=True, kw_only=True):
    """Keeps a number of equal pods (apps/v1)."""

    spec: ReplicaSetSpec = ReplicaSetSpec()
    status: ReplicaSetStatus = ReplicaSetStatus()


class RollingUpdateDeployment(Narrow, frozen=True, kw_only=True):
    """How many pods may be there beyond those wanted, and how many may be missing, while pods are exchanged."""

    max_unavailable: Share = "25%"
    max_surge: Share = "25%"


class DeploymentStrategy(Narrow, frozen=True, kw_only=True):
    """How pods of an old template make way for those of a new one."""

    type: Literal["RollingUpdate", "Recreate"] = "RollingUpdate"
    rolling_update: RollingUpdateDeployment | None = None


class DeploymentSpec(ReplicaSetSpec, frozen=True, kw_only=True):
    """What the Deployment's ReplicaSets are to be like, and how they follow one another."""

    strategy: DeploymentStrategy = DeploymentStrategy()
    paused: bool = False
    revision_history_limit: Int32 = 10


class DeploymentStatus(Narrow, frozen=True, kw_only=True):
    """`collision_count` says how often a name for a new ReplicaSet was taken."""

    collision_count: Int32 = 0


class Deployment(Kubernetes, frozen=True, kw_only=True):
    """Keeps a ReplicaSet (apps/v1)."""

    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()


class StatefulSetOrdinals(Narrow, frozen=True, kw_only=True):
    """The number of the first pod."""

    start: Int32 = 0


class RollingUpdateStatefulSet(Narrow, frozen=True, kw_only=True):
    """Pods before the `partition`-th keep their old template."""

    partition: Int32 = 0


class StatefulSetUpdateStrategy(Narrow, frozen=True, kw_only=True):
    """Whether pods of an old template are exchanged by themselves."""

    type: Literal["RollingUpdate", "OnDelete"] = "RollingUpdate"
    rolling_update: RollingUpdateStatefulSet = RollingUpdateStatefulSet()


class StatefulSetSpec(ReplicaSetSpec, frozen=True, kw_only=True):
    """Which numbered pods, with which claims, and in which order they come and go."""

    service_name: str = ""
    pod_management_policy: Literal["OrderedReady", "Parallel"] = "OrderedReady"
    update_strategy: StatefulSetUpdateStrategy = StatefulSetUpdateStrategy()
    ordinals: StatefulSetOrdinals = StatefulSetOrdinals()
    volume_claim_templates: tuple[PersistentVolumeClaim, ...] = ()
    revision_history_limit: Int32 = 10


class StatefulSetStatus(Narrow, frozen=True, kw_only=True):
    """The revisions are names of ControllerRevisions: of the template before an update, and of the one since."""

    observed_generation: Int64 = 0
    current_revision: str = ""
    update_revision: str = ""


class StatefulSet(Kubernetes, frozen=True, kw_only=True):
    """Keeps a number of numbered pods (apps/v1)."""

    spec: StatefulSetSpec = StatefulSetSpec()
    status: StatefulSetStatus = StatefulSetStatus()


class RollingUpdateDaemonSet(Narrow, frozen=True, kw_only=True):
    """On how many nodes the pod may be missing while pods are exchanged."""

    max_unavailable: Share = 1


class DaemonSetUpdateStrategy(Narrow, frozen=True, kw_only=True):
    """Whether pods of an old template are exchanged by themselves."""

    type: Literal["RollingUpdate", "OnDelete"] = "RollingUpdate"
    rolling_update: RollingUpdateDaemonSet = RollingUpdateDaemonSet()


class DaemonSetSpec(Narrow, frozen=True, kw_only=True):
    """Which pods, and how they are exchanged."""

    min_ready_seconds: Int32 = 0
    selector: LabelSelector | None = None
    template: PodTemplate = PodTemplate()
    update_strategy: DaemonSetUpdateStrategy = DaemonSetUpdateStrategy()
    revision_history_limit: Int32 = 10


class DaemonSetStatus(Narrow, frozen=True, kw_only=True):
    """`observed_generation` is that of the spec which the counts were made for."""

    observed_generation: Int64 = 0


class DaemonSet(Kubernetes, frozen=True, kw_only=True):
    """Keeps a pod on every node that is fit for it (apps/v1)."""

    spec: DaemonSetSpec = DaemonSetSpec()
    status: DaemonSetStatus = DaemonSetStatus()


class ControllerRevision(Kubernetes, frozen=True, kw_only=True):
    """A template that a StatefulSet or a DaemonSet has, or had; the highest `revision` is the newest (apps/v1).

    What `data` are like is the affair of the controller that keeps the revision, which need not be one of these.
    """

    revision: Int64 = 0
    data: Any = None


class ReplicationControllerSpec(Narrow, frozen=True, kw_only=True):
    """As ReplicaSetSpec, with a selector of equalities only."""

    replicas: Int32 = 1
    min_ready_seconds: Int32 = 0
    selector: dict[str, str] = {}
    template: PodTemplate = PodTemplate()


class ReplicationController(Kubernetes, frozen=True, kw_only=True):
    """The ancestor of ReplicaSet (core/v1)."""

    spec: ReplicationControllerSpec = ReplicationControllerSpec()


class PodFailurePolicyOnExitCodes(Narrow, frozen=True, kw_only=True):
    """Containers that exited with one of the codes, or with none of them; 0 is never meant. No name: all containers."""

    operator: Literal["In", "NotIn"]
    values: tuple[Int32, ...]
    container_name: str | None = None


class PodFailurePolicyOnPodCondition(Narrow, frozen=True, kw_only=True):
    """A condition of the pod, with its status."""

    type: str
    status: str = "True"


class PodFailurePolicyRule(Narrow, frozen=True, kw_only=True):
    """What a failed pod means to its Job, where its exit codes or its conditions match."""

    action: Literal["FailJob", "FailIndex", "Ignore", "Count"]
    on_exit_codes: PodFailurePolicyOnExitCodes | None = None
    on_pod_conditions: tuple[PodFailurePolicyOnPodCondition, ...] = ()


class PodFailurePolicy(Narrow, frozen=True, kw_only=True):
    """The first rule that matches decides; without one the failure counts."""

    rules: tuple[PodFailurePolicyRule, ...] = ()


class JobSpec(Narrow, frozen=True, kw_only=True):
    """How many pods must succeed, how many run at once, and how many may fail.

    `pod_replacement_policy` None means Failed where there is a failure policy, else TerminatingOrFailed.
    """

    parallelism: Int32 = 1
    completions: Int32 | None = None
    completion_mode: Literal["NonIndexed", "Indexed"] = "NonIndexed"
    backoff_limit: Int32 = 6
    active_deadline_seconds: Int64 | None = None
    selector: LabelSelector | None = None
    template: PodTemplate = PodTemplate()
    suspend: bool = False
    pod_failure_policy: PodFailurePolicy | None = None
    pod_replacement_policy: Literal["TerminatingOrFailed", "Failed"] | None = None
    managed_by: str | None = None


class UncountedTerminatedPods(Narrow, frozen=True, kw_only=True):
    """The uids of pods that have ended and are about to be counted."""

    succeeded: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


class JobStatus(Narrow, frozen=True, kw_only=True):
    """How far a Job has come; `completed_indexes` are written as in "1,3-5"."""

    start_time: str | None = None
    succeeded: Int32 = 0
    failed: Int32 = 0
    completed_indexes: str = ""
    uncounted_terminated_pods: UncountedTerminatedPods = UncountedTerminatedPods()
    conditions: tuple[PodCondition, ...] = ()


class Job(Kubernetes, frozen=True, kw_only=True):
    """Runs pods until enough have succeeded (batch/v1)."""

    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


class JobTemplate(Narrow, frozen=True, kw_only=True):
    """The Jobs that a CronJob makes."""

    metadata: ObjectMeta = ObjectMeta()
    spec: JobSpec = JobSpec()


class CronJobSpec(Narrow, frozen=True, kw_only=True):
    """When Jobs begin, and what becomes of one that comes too late, or while the last one runs.

    `starting_deadline_seconds` after its time a Job is not begun any more; None: however late it is.
    """

    schedule: str = ""
    time_zone: str | None = None
    concurrency_policy: Literal["Allow", "Forbid", "Replace"] = "Allow"
    starting_deadline_seconds: Int64 | None = None
    suspend: bool = False
    job_template: JobTemplate = JobTemplate()
    successful_jobs_history_limit: Int32 = 3
    failed_jobs_history_limit: Int32 = 1


class CronJobStatus(Narrow, frozen=True, kw_only=True):
    """The time for which a Job was begun last."""

    last_schedule_time: str | None = None


class CronJob(Kubernetes, frozen=True, kw_only=True):
    """Makes Jobs by the clock (batch/v1)."""

    spec: CronJobSpec = CronJobSpec()
    status: CronJobStatus = CronJobStatus()


class ServiceSpec(Narrow, frozen=True, kw_only=True):
    """The labels of the pods that a service fronts."""

    selector: dict[str, str] = {}


class Service(Kubernetes, frozen=True, kw_only=True):
    """A set of pods under one name (core/v1)."""

    spec: ServiceSpec = ServiceSpec()
