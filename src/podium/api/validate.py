"""What objects must be like to be taken: the checks of kube-apiserver that matter here, kind by kind.

The rules are those of Kubernetes' validation packages (pkg/apis/*/validation). An object is refused at its
first problem, with the path of the field.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from podium.api.checks import check, check_annotations, check_count, check_not_negative, check_time
from podium.api.disruption_policy import DisruptionPolicy
from podium.api.errors import InputError, shown
from podium.api.kinds import KIND_OF
from podium.api.meta import Kubernetes, ObjectMeta
from podium.api.names import label_key_problem, label_name_problem, label_value_problem, subdomain_problem
from podium.api.node import CSINode, Namespace, Node
from podium.api.pod import Pod
from podium.api.policy import PodDisruptionBudget, PriorityClass
from podium.api.quota import ResourceQuota
from podium.api.storage import CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass
from podium.api.validate_pod import check_pod_limits, check_pod_spec, check_pod_status
from podium.api.validate_policy import check_budget, check_disruption_policy, check_priority_class
from podium.api.validate_quota import check_quota
from podium.api.validate_resources import check_amounts, check_offers, check_quantity, check_requirements
from podium.api.validate_selection import (
    check_label_keys,
    check_label_selector,
    check_labels,
    check_node_selector,
)
from podium.api.validate_workloads import (
    check_daemon_set,
    check_deployment,
    check_job,
    check_replica_set,
    check_replication_controller,
    check_stateful_set,
)
from podium.api.workloads import (
    DaemonSet,
    Deployment,
    Job,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)


def validate(value: Kubernetes) -> None:
    """Raises InputError, with the field's path, for an object that the API server would not take.

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
    problem = label_name_problem if isinstance(value, Namespace | Service) else subdomain_problem
    check(problem(metadata.name), ".metadata.name")
    if namespaced:
        check(label_name_problem(metadata.namespace), ".metadata.namespace")
    elif metadata.namespace:
        raise InputError(f"a {value.kind} is in no namespace; remove it", path=".metadata.namespace")
    check_labels(metadata.labels, ".metadata.labels")
    check_annotations(metadata.annotations, ".metadata.annotations")
    _check_owners(metadata)
    check_time(metadata.creation_timestamp, ".metadata.creationTimestamp")
    check_time(metadata.deletion_timestamp, ".metadata.deletionTimestamp")
    check_not_negative(metadata.deletion_grace_period_seconds, ".metadata.deletionGracePeriodSeconds")


def _check_owners(metadata: ObjectMeta) -> None:
    controllers = [owner for owner in metadata.owner_references if owner.controller]
    if len(controllers) > 1:
        first, second = (f"{owner.kind} {owner.name}" for owner in controllers[:2])
        raise InputError(
            f"has two controllers, {shown(first)} and {shown(second)}; only one may have controller: true",
            path=".metadata.ownerReferences",
        )


def _check_pod(pod: Pod) -> None:
    check_pod_spec(pod.spec, ".spec")
    # A pod with a uid was let into a cluster once, whatever its limits; scheduling does not look at them.
    if not pod.metadata.uid:
        check_pod_limits(pod.spec, ".spec")
    check_pod_status(pod.status)


def _check_node(node: Node) -> None:
    check_offers(node.status.capacity, ".status.capacity")
    check_offers(node.status.allocatable, ".status.allocatable")
    check_count(node.spec.taints, ".spec.taints")
    for index, taint in enumerate(node.spec.taints):
        check(label_key_problem(taint.key), f".spec.taints[{index}].key")
        check(label_value_problem(taint.value), f".spec.taints[{index}].value")


def _check_csi_node(node: CSINode) -> None:
    for index, driver in enumerate(node.spec.drivers):
        path = f".spec.drivers[{index}]"
        if driver.allocatable is not None:
            check_not_negative(driver.allocatable.count, f"{path}.allocatable.count")
        check_label_keys(driver.topology_keys, f"{path}.topologyKeys")


def _check_volume(volume: PersistentVolume) -> None:
    check_amounts(volume.spec.capacity, ".spec.capacity")
    affinity = volume.spec.node_affinity
    if affinity is not None and affinity.required is not None:
        check_node_selector(affinity.required, ".spec.nodeAffinity.required")


def _check_claim(claim: PersistentVolumeClaim) -> None:
    check_requirements(claim.spec.resources, ".spec.resources")
    check_label_selector(claim.spec.selector, ".spec.selector")


def _check_storage_class(storage_class: StorageClass) -> None:
    for index, term in enumerate(storage_class.allowed_topologies):
        for number, one in enumerate(term.match_label_expressions):
            path = f".allowedTopologies[{index}].matchLabelExpressions[{number}]"
            check(label_key_problem(one.key), f"{path}.key")
            if not one.values:
                raise InputError("is empty; write at least one value", path=f"{path}.values")


def _check_storage_capacity(capacity: CSIStorageCapacity) -> None:
    check_label_selector(capacity.node_topology, ".nodeTopology")
    check_quantity(capacity.capacity, ".capacity")
    check_quantity(capacity.maximum_volume_size, ".maximumVolumeSize")


def _check_service(service: Service) -> None:
    check_labels(service.spec.selector, ".spec.selector")


_RULES: dict[type[Kubernetes], Callable[[Any], None]] = {
    CSINode: _check_csi_node,
    CSIStorageCapacity: _check_storage_capacity,
    DaemonSet: check_daemon_set,
    Deployment: check_deployment,
    DisruptionPolicy: check_disruption_policy,
    Job: check_job,
    Node: _check_node,
    PersistentVolume: _check_volume,
    PersistentVolumeClaim: _check_claim,
    Pod: _check_pod,
    PodDisruptionBudget: check_budget,
    PriorityClass: check_priority_class,
    ReplicaSet: check_replica_set,
    ReplicationController: check_replication_controller,
    ResourceQuota: check_quota,
    Service: _check_service,
    StatefulSet: check_stateful_set,
    StorageClass: _check_storage_class,
}
