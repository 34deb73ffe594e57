"""What makes pods: ReplicaSet, Deployment, StatefulSet (apps/v1), ReplicationController (v1), Job (batch/v1).

Service (core/v1) stands here too: with the others it says which pods belong together for default spreading.
"""

from __future__ import annotations

from podium.api.meta import Int32, Kubernetes, Narrow, ObjectMeta
from podium.api.pod import PodSpec
from podium.api.selection import LabelSelector


class PodTemplate(Narrow, frozen=True, kw_only=True):
    """The pods that a workload makes."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()


class ReplicaSetSpec(Narrow, frozen=True, kw_only=True):
    """How many pods, which ones, and how they look. Deployment and StatefulSet share the fields."""

    replicas: Int32 = 1
    selector: LabelSelector | None = None
    template: PodTemplate = PodTemplate()


class ReplicaSet(Kubernetes, frozen=True, kw_only=True):
    """Keeps a number of equal pods (apps/v1)."""

    spec: ReplicaSetSpec = ReplicaSetSpec()


class Deployment(Kubernetes, frozen=True, kw_only=True):
    """Keeps a ReplicaSet (apps/v1)."""

    spec: ReplicaSetSpec = ReplicaSetSpec()


class StatefulSet(Kubernetes, frozen=True, kw_only=True):
    """Keeps a number of numbered pods (apps/v1)."""

    spec: ReplicaSetSpec = ReplicaSetSpec()


class ReplicationControllerSpec(Narrow, frozen=True, kw_only=True):
    """As ReplicaSetSpec, with a selector of equalities only."""

    replicas: Int32 = 1
    selector: dict[str, str] = {}
    template: PodTemplate = PodTemplate()


class ReplicationController(Kubernetes, frozen=True, kw_only=True):
    """The ancestor of ReplicaSet (core/v1)."""

    spec: ReplicationControllerSpec = ReplicationControllerSpec()


class JobSpec(Narrow, frozen=True, kw_only=True):
    """How many pods must succeed, how many run at once, and how many may fail."""

    parallelism: Int32 = 1
    completions: Int32 | None = None
    backoff_limit: Int32 = 6
    selector: LabelSelector | None = None
    template: PodTemplate = PodTemplate()
    suspend: bool = False


class Job(Kubernetes, frozen=True, kw_only=True):
    """Runs pods until enough have succeeded (batch/v1)."""

    spec: JobSpec = JobSpec()


class ServiceSpec(Narrow, frozen=True, kw_only=True):
    """The labels of the pods that a service fronts."""

    selector: dict[str, str] = {}


class Service(Kubernetes, frozen=True, kw_only=True):
    """A set of pods under one name (core/v1)."""

    spec: ServiceSpec = ServiceSpec()
