"""What kube-apiserver would refuse in an object, kind by kind.

The rules are those of Kubernetes' validation packages (pkg/apis/*/validation), on the object as defaults would
leave it. Kinds that are not among them are not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from podium.api.kinds import group_of
from podium.api.meta import Raw
from podium.api.names import name_rule
from podium.api.validation.devices import (
    check_claim_template,
    check_device_class,
    check_resource_claim,
    check_resource_slice,
)
from podium.api.validation.finding import Finding
from podium.api.validation.jobs import check_cron_job, check_job
from podium.api.validation.limits import check_limit_range, check_quota
from podium.api.validation.metadata import check_metadata
from podium.api.validation.nodes import check_csi_node, check_node
from podium.api.validation.place import Place
from podium.api.validation.pod_groups import check_pod_group, check_workload
from podium.api.validation.pods import check_pod
from podium.api.validation.policies import check_budget, check_priority_class, check_runtime_class
from podium.api.validation.services import check_service
from podium.api.validation.storage import (
    check_claim,
    check_csi_driver,
    check_storage_capacity,
    check_storage_class,
    check_volume,
)
from podium.api.validation.workloads import (
    check_controller_revision,
    check_daemon_set,
    check_deployment,
    check_replica_set,
    check_replication_controller,
    check_stateful_set,
)

Rule = Callable[[Place], None]
"""Looks at an object of one kind, and reports what is wrong."""


def _no_more(_place: Place) -> None:
    """Kinds of which the metadata alone is looked at."""


RULES: Mapping[tuple[str, str], tuple[Rule, bool]] = MappingProxyType(
    {
        ("", "LimitRange"): (check_limit_range, True),
        ("", "Namespace"): (_no_more, False),
        ("", "Node"): (check_node, False),
        ("", "PersistentVolume"): (check_volume, False),
        ("", "PersistentVolumeClaim"): (check_claim, True),
        ("", "Pod"): (check_pod, True),
        ("", "ReplicationController"): (check_replication_controller, True),
        ("", "ResourceQuota"): (check_quota, True),
        ("", "Service"): (check_service, True),
        ("apps", "ControllerRevision"): (check_controller_revision, True),
        ("apps", "DaemonSet"): (check_daemon_set, True),
        ("apps", "Deployment"): (check_deployment, True),
        ("apps", "ReplicaSet"): (check_replica_set, True),
        ("apps", "StatefulSet"): (check_stateful_set, True),
        ("batch", "CronJob"): (check_cron_job, True),
        ("batch", "Job"): (check_job, True),
        ("node.k8s.io", "RuntimeClass"): (check_runtime_class, False),
        ("policy", "PodDisruptionBudget"): (check_budget, True),
        ("resource.k8s.io", "DeviceClass"): (check_device_class, False),
        ("resource.k8s.io", "ResourceClaim"): (check_resource_claim, True),
        ("resource.k8s.io", "ResourceClaimTemplate"): (check_claim_template, True),
        ("resource.k8s.io", "ResourceSlice"): (check_resource_slice, False),
        ("scheduling.k8s.io", "PodGroup"): (check_pod_group, True),
        ("scheduling.k8s.io", "PriorityClass"): (check_priority_class, False),
        ("scheduling.k8s.io", "Workload"): (check_workload, True),
        ("storage.k8s.io", "CSIDriver"): (check_csi_driver, False),
        ("storage.k8s.io", "CSINode"): (check_csi_node, False),
        ("storage.k8s.io", "CSIStorageCapacity"): (check_storage_capacity, True),
        ("storage.k8s.io", "StorageClass"): (check_storage_class, False),
    }
)
"""The rule of each kind, and whether its objects are in namespaces; by group and kind."""


def find_problems(raw: Raw, custom: bool | None = None) -> tuple[Finding, ...]:
    """What kube-apiserver would refuse in the object; nothing for a kind that there are no rules for.

    Of custom kinds, and others that are only kept, the metadata is looked at: `custom` says whether they are in
    namespaces, None that the kind is another.
    An object with a uid was in a cluster: what only a new one cannot ask for is fine there. Names of other objects are
    for admission to look up.
    """
    version, kind = raw.get("apiVersion"), raw.get("kind")
    if not isinstance(version, str) or not isinstance(kind, str):
        return ()
    found = RULES.get((group_of(version), kind), None if custom is None else (_no_more, custom))
    if found is None:
        return ()
    rule, namespaced = found
    findings: list[Finding] = []
    place = Place(raw, findings)
    check_metadata(place.child_or_empty("metadata"), namespaced, name_rule(group_of(version), kind))
    rule(place)
    return tuple(dict.fromkeys(findings))
