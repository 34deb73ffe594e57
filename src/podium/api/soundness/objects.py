"""What objects must be like so that anything can be done with them, kind by kind.

The rules are a few of those of Kubernetes' validation packages (pkg/apis/*/validation), and limits of our own. An
object is refused at its first problem, with the path of the field. What else kube-apiserver would refuse is found in
`podium.api.validation`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from podium.api.checks import check, check_annotations, check_count, check_not_negative, check_time
from podium.api.devices import DeviceClass, ResourceSlice
from podium.api.disruption_policy import DisruptionPolicy
from podium.api.errors import InputError
from podium.api.kinds import KIND_OF
from podium.api.limit_range import LimitRange
from podium.api.meta import Kubernetes
from podium.api.names import label_name_problem, name_rule
from podium.api.node import CSINode, Node
from podium.api.pod import Pod
from podium.api.policy import PodDisruptionBudget, PriorityClass
from podium.api.quota import ResourceQuota
from podium.api.resource_claims import ResourceClaim, ResourceClaimTemplate
from podium.api.runtime_class import RuntimeClass
from podium.api.soundness.devices import (
    check_device_class,
    check_resource_claim,
    check_resource_claim_template,
    check_resource_slice,
)
from podium.api.soundness.pod import check_pod_spec, check_pod_status
from podium.api.soundness.policy import check_budget, check_disruption_policy, check_priority_class
from podium.api.soundness.quota import check_quota
from podium.api.soundness.resources import check_amounts, check_quantity, check_requirements
from podium.api.soundness.selection import check_label_selector, check_node_selector
from podium.api.soundness.workloads import (
    check_cron_job,
    check_daemon_set,
    check_deployment,
    check_job,
    check_replica_set,
    check_replication_controller,
    check_stateful_set,
)
from podium.api.storage import CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim
from podium.api.workloads import (
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)


def validate(value: Kubernetes) -> None:
    """Raises InputError, with the field's path, for an object that nothing can be done with.

    Checked one object at a time: that names of other objects exist is for admission to say.
    """
    check_metadata(value, KIND_OF[type(value)].namespaced)
    rule = _RULES.get(type(value))
    if rule is not None:
        rule(value)


def check_metadata(value: Kubernetes, namespaced: bool) -> None:
    """What is asked of every object, of whatever kind; `namespaced` says whether its kind has namespaces."""
    metadata = value.metadata
    if not metadata.name:
        raise InputError(
            "is missing; objects are known by their names, so that generateName is not enough",
            path=".metadata.name",
        )
    rule = name_rule(value.api_version.rpartition("/")[0], value.kind)
    check(rule(metadata.name), ".metadata.name")
    if namespaced:
        check(label_name_problem(metadata.namespace), ".metadata.namespace")
    elif metadata.namespace:
        raise InputError(f"a {value.kind} is in no namespace; remove it", path=".metadata.namespace")
    check_annotations(metadata.annotations, ".metadata.annotations")
    check_time(metadata.creation_timestamp, ".metadata.creationTimestamp")
    check_time(metadata.deletion_timestamp, ".metadata.deletionTimestamp")
    check_not_negative(metadata.deletion_grace_period_seconds, ".metadata.deletionGracePeriodSeconds")


def _check_pod(pod: Pod) -> None:
    check_pod_spec(pod.spec, ".spec")
    check_pod_status(pod.status)


def _check_node(node: Node) -> None:
    check_amounts(node.status.capacity, ".status.capacity")
    check_amounts(node.status.allocatable, ".status.allocatable")
    check_count(node.spec.taints, ".spec.taints")


def _check_csi_node(node: CSINode) -> None:
    for index, driver in enumerate(node.spec.drivers):
        if driver.allocatable is not None:
            check_not_negative(driver.allocatable.count, f".spec.drivers[{index}].allocatable.count")


def _check_volume(volume: PersistentVolume) -> None:
    check_amounts(volume.spec.capacity, ".spec.capacity")
    affinity = volume.spec.node_affinity
    if affinity is not None and affinity.required is not None:
        check_node_selector(affinity.required, ".spec.nodeAffinity.required")


def _check_claim(claim: PersistentVolumeClaim) -> None:
    check_requirements(claim.spec.resources, ".spec.resources")
    check_label_selector(claim.spec.selector, ".spec.selector")


def _check_storage_capacity(capacity: CSIStorageCapacity) -> None:
    check_label_selector(capacity.node_topology, ".nodeTopology")
    check_quantity(capacity.capacity, ".capacity")
    check_quantity(capacity.maximum_volume_size, ".maximumVolumeSize")


def _check_limit_range(limit_range: LimitRange) -> None:
    for index, limit in enumerate(limit_range.spec.limits):
        path = f".spec.limits[{index}]"
        for field, amounts in (
            ("max", limit.max),
            ("min", limit.min),
            ("default", limit.default),
            ("defaultRequest", limit.default_request),
            ("maxLimitRequestRatio", limit.max_limit_request_ratio),
        ):
            check_amounts(amounts, f"{path}.{field}")


def _check_runtime_class(runtime_class: RuntimeClass) -> None:
    if runtime_class.overhead is not None:
        check_amounts(runtime_class.overhead.pod_fixed, ".overhead.podFixed")
    if runtime_class.scheduling is not None:
        check_count(runtime_class.scheduling.tolerations, ".scheduling.tolerations")


_RULES: dict[type[Kubernetes], Callable[[Any], None]] = {
    CSINode: _check_csi_node,
    CSIStorageCapacity: _check_storage_capacity,
    DeviceClass: check_device_class,
    ResourceClaim: check_resource_claim,
    ResourceClaimTemplate: check_resource_claim_template,
    ResourceSlice: check_resource_slice,
    DaemonSet: check_daemon_set,
    Deployment: check_deployment,
    DisruptionPolicy: check_disruption_policy,
    CronJob: check_cron_job,
    Job: check_job,
    LimitRange: _check_limit_range,
    Node: _check_node,
    PersistentVolume: _check_volume,
    PersistentVolumeClaim: _check_claim,
    Pod: _check_pod,
    PodDisruptionBudget: check_budget,
    PriorityClass: check_priority_class,
    ReplicaSet: check_replica_set,
    ReplicationController: check_replication_controller,
    ResourceQuota: check_quota,
    RuntimeClass: _check_runtime_class,
    StatefulSet: check_stateful_set,
}
