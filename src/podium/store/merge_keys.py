"""How strategic merge patch treats the lists of each kind: which are merged, and by which key.

They are the patchStrategy and patchMergeKey tags of k8s.io/api (core, apps, batch, policy, storage, resource) and of
meta/v1. A list that is not named here is replaced as a whole: tolerations, taints, and the terms of affinities.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """The fields of an object that are more than plain.

    `lists` are merged, each by the field of its items that is named; "" is a list of plain values, merged as a set.
    `replaced` are objects that are replaced as a whole. `fields` are the schemas of objects, and of items of lists.
    """

    lists: Mapping[str, str] = field(default_factory=dict)
    replaced: frozenset[str] = frozenset()
    fields: Mapping[str, Schema] = field(default_factory=dict)

    def of(self, name: str) -> Schema:
        """The schema of a field, or of its items."""
        return self.fields.get(name, _PLAIN)


_PLAIN = Schema()
_METADATA = Schema(lists={"finalizers": "", "ownerReferences": "uid"})
_CONDITIONS = Schema(lists={"conditions": "type"})
_CONTAINER = Schema(
    lists={"env": "name", "ports": "containerPort", "volumeDevices": "devicePath", "volumeMounts": "mountPath"}
)
_POD_SPEC = Schema(
    lists={
        "containers": "name",
        "ephemeralContainers": "name",
        "hostAliases": "ip",
        "imagePullSecrets": "name",
        "initContainers": "name",
        "resourceClaims": "name",
        "schedulingGates": "name",
        "topologySpreadConstraints": "topologyKey",
        "volumes": "name",
    },
    fields={"containers": _CONTAINER, "ephemeralContainers": _CONTAINER, "initContainers": _CONTAINER},
)
_TEMPLATE = Schema(fields={"metadata": _METADATA, "spec": _POD_SPEC})
_WORKLOAD_SPEC = Schema(fields={"template": _TEMPLATE})


def _schema(spec: Schema = _PLAIN, status: Schema = _CONDITIONS, lists: Mapping[str, str] | None = None) -> Schema:
    return Schema(lists=lists or {}, fields={"metadata": _METADATA, "spec": spec, "status": status})


_WORKLOAD = _schema(_WORKLOAD_SPEC)
_SCHEMAS = {
    "CSINode": _schema(Schema(lists={"drivers": "name"})),
    "CronJob": _schema(
        Schema(fields={"jobTemplate": Schema(fields={"metadata": _METADATA, "spec": _WORKLOAD_SPEC})}), _PLAIN
    ),
    "DaemonSet": _WORKLOAD,
    "Deployment": _WORKLOAD,
    "Job": _WORKLOAD,
    "Node": _schema(Schema(lists={"podCIDRs": ""}), Schema(lists={"addresses": "type", "conditions": "type"})),
    "Pod": _schema(
        _POD_SPEC,
        Schema(lists={"conditions": "type", "hostIPs": "ip", "podIPs": "ip", "resourceClaimStatuses": "name"}),
    ),
    "PodDisruptionBudget": _schema(Schema(replaced=frozenset(("selector",)))),
    "ReplicaSet": _WORKLOAD,
    "ReplicationController": _WORKLOAD,
    "ResourceClaim": _schema(status=Schema(lists={"reservedFor": "uid"})),
    "Service": _schema(Schema(lists={"ports": "port"})),
    "ServiceAccount": _schema(lists={"secrets": "name"}),
    "StatefulSet": _WORKLOAD,
}
_OTHER = _schema()


def schema_of(kind: str) -> Schema:
    """The schema of a built-in kind."""
    return _SCHEMAS.get(kind, _OTHER)
