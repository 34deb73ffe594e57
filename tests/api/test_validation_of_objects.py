"""Values of objects other than pods that kube-apiserver refuses, one rule per row, and values that it accepts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.api.errors import InputError
from podium.api.input import yaml
from podium.api.input.codec import load_text
from podium.api.kinds import KINDS
from podium.api.validation.objects import find_problems
from podium.api.validation.rules import has_rules
from tests.api.manifests import GONE, Raw, changed, claim, job, of, paths_of, pod, volume, workload

EXAMPLES = Path(__file__).parents[2] / "examples"
SERVICE = of("v1", "Service", spec={"selector": {"app": "web"}, "ports": [{"port": 80}]})
NODE = of("v1", "Node", False, spec={}, status={"capacity": {"cpu": 4, "attachable-volumes-aws-ebs": 39}})
QUOTA = of("v1", "ResourceQuota", spec={"hard": {"pods": 3, "requests.nvidia.com/gpu": 2, "count/jobs.batch": 1}})
BUDGET = of("policy/v1", "PodDisruptionBudget", spec={"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}})
PRIORITY = of("scheduling.k8s.io/v1", "PriorityClass", False, value=10, preemptionPolicy="NonPreemptible")
CLASS = of("storage.k8s.io/v1", "StorageClass", False, provisioner="ebs.csi.aws.com")
CAPACITY = of("storage.k8s.io/v1", "CSIStorageCapacity", storageClassName="fast", capacity="10Gi", nodeTopology={})
CSI_NODE = of("storage.k8s.io/v1", "CSINode", False, spec={"drivers": [{"name": "a.b", "nodeID": "n"}]})
ATTACHMENT = of(
    "storage.k8s.io/v1",
    "VolumeAttachment",
    False,
    spec={"attacher": "a.b", "nodeName": "n", "source": {"persistentVolumeName": "v"}},
)
DRIVER = of("storage.k8s.io/v1", "CSIDriver", False, spec={"fsGroupPolicy": "File"})
RUNTIME = of("node.k8s.io/v1", "RuntimeClass", False, handler="kata", overhead={"podFixed": {"cpu": "250m"}})
LIMITS = of("v1", "LimitRange", spec={"limits": [{"type": "Container", "min": {"cpu": "100m"}, "max": {"cpu": 2}}]})
CRON = of("batch/v1", "CronJob", spec={"schedule": "@daily", "jobTemplate": {"spec": job()["spec"]}})
CONTROLLER = of(
    "v1", "ReplicationController", spec={"selector": {"app": "web"}, "template": workload("X")["spec"]["template"]}
)
BACKEND = {"service": {"name": "web", "port": {"number": 80}}}
PATHS = [{"path": "/", "pathType": "Prefix", "backend": BACKEND}]
INGRESS = of("networking.k8s.io/v1", "Ingress", spec={"rules": [{"host": "*.a.com", "http": {"paths": PATHS}}]})
INGRESS_CLASS = of("networking.k8s.io/v1", "IngressClass", False, spec={"controller": "example.com/controller"})
PEER = {"namespaceSelector": {}, "podSelector": {"matchLabels": {"app": "web"}}}
POLICY = of(
    "networking.k8s.io/v1", "NetworkPolicy", spec={"podSelector": {}, "ingress": [{"from": [PEER]}], "policyTypes": []}
)
LEASE = of("coordination.k8s.io/v1", "Lease", spec={"holderIdentity": "a"})
_RBAC = "rbac.authorization.k8s.io/v1"
ROLE = of(_RBAC, "Role", rules=[{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}])
CLUSTER_ROLE = of(_RBAC, "ClusterRole", False, rules=[{"verbs": ["get"], "nonResourceURLs": ["/metrics"]}])
_TO: dict[str, Any] = {
    "roleRef": {"kind": "ClusterRole", "name": "a"},
    "subjects": [{"kind": "ServiceAccount", "name": "a"}],
}
ROLE_BINDING, EVERYWHERE = of(_RBAC, "RoleBinding", **_TO), of(_RBAC, "ClusterRoleBinding", False, **_TO)
SLICE = of("discovery.k8s.io/v1", "EndpointSlice", addressType="IPv4", endpoints=[{"addresses": ["10.0.0.1"]}])
RANGE = of("networking.k8s.io/v1", "ServiceCIDR", False, spec={"cidrs": ["10.0.0.0/24"]})
ADDRESS = of("networking.k8s.io/v1", "IPAddress", False, spec={"parentRef": {"resource": "services", "name": "web"}})
ADDRESS["metadata"]["name"] = "10.0.0.1"
REVISION = of("apps/v1", "ControllerRevision", revision=1, data={"spec": {}})
NAMESPACE = of("v1", "Namespace", False)
WORKLOADS = [workload(kind) for kind in ("ReplicaSet", "Deployment", "DaemonSet", "StatefulSet")]
VALID = [
    *(pod(), job(), claim(), volume(), SERVICE, NODE, QUOTA, BUDGET, PRIORITY, CLASS, CAPACITY, CSI_NODE, DRIVER),
    *(ATTACHMENT, RUNTIME, LIMITS, CRON, CONTROLLER, REVISION, NAMESPACE, *WORKLOADS),
    *(INGRESS, INGRESS_CLASS, POLICY, SLICE, RANGE, ADDRESS, LEASE, ROLE, CLUSTER_ROLE, ROLE_BINDING),
]
DEPLOYMENT, STATEFUL, DAEMON = WORKLOADS[1], WORKLOADS[3], WORKLOADS[2]
CODES = {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1]}}]}
LIMIT = "spec.limits.0"


def problems(raw: Raw) -> list[str]:
    return [str(one) for one in find_problems(raw)]


_PATH = "spec.rules.0.http.paths.0"
TIMEOUT = {"spec.sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 86_401}}}


def sourced(**source: Raw) -> Raw:
    """Return a persistent volume with this source."""
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], **source}
    return of("v1", "PersistentVolume", False, spec=spec)


REFUSED: list[tuple[Raw, dict[str, Any], str]] = [
    # The network.
    (INGRESS, {"spec.rules": GONE}, ".spec: Invalid value: null: either `defaultBackend` or `rules` must be specified"),
    (INGRESS, {"spec.ingressClassName": "a b"}, '.ingressClassName: Invalid value: "a b"'),
    (INGRESS, {"spec.rules.0.host": "10.0.0.1"}, '.host: Invalid value: "10.0.0.1": must be a DNS name, not an IP'),
    (INGRESS, {"spec.rules.0.host": "a.*.com"}, '.host: Invalid value: "a.*.com": a wildcard DNS name must start'),
    (INGRESS, {"spec.rules.0.host": "A"}, '.host: Invalid value: "A"'),
    (INGRESS, {"spec.rules.0.http": {}}, ".http.paths: Required value"),
    (INGRESS, {f"{_PATH}.pathType": GONE}, ".pathType: Required value: pathType must be specified"),
    (INGRESS, {f"{_PATH}.pathType": "Glob"}, '.pathType: Unsupported value: "Glob"'),
    (INGRESS, {f"{_PATH}.path": "a"}, '.path: Invalid value: "a": must be an absolute path'),
    (INGRESS, {f"{_PATH}.path": "/a//b"}, ".path: Invalid value: \"/a//b\": must not contain '//'"),
    (INGRESS, {f"{_PATH}.path": "/a/.."}, ".path: Invalid value: \"/a/..\": cannot end with '/..'"),
    (INGRESS, {f"{_PATH}.backend": GONE}, ".backend: Invalid value: a list: exactly one of `resource`"),
    (
        INGRESS,
        {f"{_PATH}.backend.resource": {"kind": "A", "name": "a"}},
        ".backend: Invalid value: a list: exactly one",
    ),
    (INGRESS, {f"{_PATH}.backend.service.name": GONE}, ".backend.service.name: Required value"),
    (INGRESS, {f"{_PATH}.backend.service.name": "A"}, '.backend.service.name: Invalid value: "A"'),
    (INGRESS, {f"{_PATH}.backend.service.port": GONE}, ".backend: Required value: port name or number is required"),
    (INGRESS, {f"{_PATH}.backend.service.port.name": "a"}, '.backend: Invalid value: "": cannot set both port name'),
    (INGRESS, {f"{_PATH}.backend.service.port.number": 70_000}, ".port.number: Invalid value: 70000: must be between"),
    (INGRESS, {"spec.tls": [{"hosts": ["a", "*a.com"]}]}, '.tls[0].hosts[1]: Invalid value: "*a.com": a wildcard'),
    (INGRESS_CLASS, {"spec.controller": GONE}, ".spec.controller: Required value"),
    (INGRESS_CLASS, {"spec.controller": "a"}, '.spec.controller: Invalid value: "a": must be a domain-prefixed path'),
    (INGRESS_CLASS, {"spec.parameters": {"kind": "A"}}, ".spec.parameters.name: Required value"),
    (POLICY, {"spec.ingress.0.from.0": {}}, ".spec.ingress[0].from[0]: Required value: must specify a peer"),
    (
        POLICY,
        {"spec.ingress.0.from.0.ipBlock": {"cidr": "10.0.0.0/8"}},
        "may not specify both ipBlock and another peer",
    ),
    (POLICY, {"spec.ingress.0.from.0": {"ipBlock": {"cidr": "10.0.0.0"}}}, ".ipBlock.cidr: Invalid value"),
    (POLICY, {"spec.ingress.0.ports": [{"port": 80, "protocol": "A"}]}, '.ports[0].protocol: Unsupported value: "A"'),
    (POLICY, {"spec.policyTypes": ["Through"]}, '.policyTypes[0]: Unsupported value: "Through"'),
    (SLICE, {"addressType": "IPv5"}, '.addressType: Unsupported value: "IPv5"'),
    (SLICE, {"endpoints.0.addresses": []}, ".endpoints[0].addresses: Required value"),
    (
        RANGE,
        {"spec.cidrs": ["10.0.0.1/24"]},
        '.spec.cidrs[0]: Invalid value: "10.0.0.1/24": must be a CIDR in canonical',
    ),
    (RANGE, {"spec.cidrs": ["10.0.0.1"]}, '.spec.cidrs[0]: Invalid value: "10.0.0.1": must be a CIDR in canonical'),
    (RANGE, {"spec.cidrs": ["2001:DB8::/64"]}, "must be a CIDR in canonical form"),
    (ADDRESS, {"spec.parentRef.name": GONE}, ".spec.parentRef.name: Required value"),
    # What every object has.
    (pod(), {"metadata.name": GONE}, ".metadata.name: Required value: name or generateName is required"),
    (pod(), {"metadata.name": "A"}, '.metadata.name: Invalid value: "A" is not a valid name'),
    (pod(), {"metadata.namespace": "a.b"}, ".metadata.namespace: Invalid value"),
    (NODE, {"metadata.namespace": "a"}, ".metadata.namespace: Forbidden: not allowed on this type"),
    (NAMESPACE, {"metadata.name": "a.b"}, '.metadata.name: Invalid value: "a.b"'),
    (pod(), {"metadata.labels": {"a": "b c"}}, '.metadata.labels.a: Invalid value: "b c"'),
    (pod(), {"metadata.labels": {"a": 1}}, ".metadata.labels.a: Invalid value: 1: must be text"),
    (pod(), {"metadata.annotations": {"a b": ""}}, '.metadata.annotations["a b"]: Invalid value'),
    (
        pod(),
        {"metadata.annotations": {"a": "x" * 300_000}},
        ".metadata.annotations: Too long: may not be more than 2621",
    ),
    (pod(), {"metadata.finalizers": ["a"]}, '.metadata.finalizers[0]: Invalid value: "a": name is neither a standard'),
    (pod(), {"metadata.ownerReferences": [{"apiVersion": "v1", "kind": "A", "name": "a"}]}, ".uid: Invalid value"),
    (
        pod(),
        {"metadata/annotations": {"controller.kubernetes.io/pod-deletion-cost": "+1"}},
        '["controller.kubernetes.io/pod-deletion-cost"]: Invalid value: "+1": must be a 32bit integer',
    ),
    # Attachments.
    (ATTACHMENT, {"spec.nodeName": GONE}, ".spec.nodeName: Required value"),
    (ATTACHMENT, {"spec.source": {}}, ".spec.source: Required value: exactly one of `inlineVolumeSpec`"),
    (ATTACHMENT, {"spec.source.inlineVolumeSpec": {}}, ".spec.source: Invalid value: a list: exactly one of"),
    (ATTACHMENT, {"spec.source.persistentVolumeName": ""}, ".spec.source: Required value: exactly one of"),
    # Workloads.
    (DEPLOYMENT, {"spec.replicas": -1}, ".spec.replicas: Invalid value: -1: must be greater than or equal to 0"),
    (DEPLOYMENT, {"spec.selector": GONE}, ".spec.selector: Required value"),
    (DEPLOYMENT, {"spec.selector": {}}, ".spec.selector: Invalid value: an object: empty selector is invalid"),
    (CONTROLLER, {"spec.template": GONE, "spec.selector": GONE}, ".spec.template: Required value"),
    (
        DEPLOYMENT,
        {"spec.template.metadata.labels": {"app": "other"}},
        ".spec.template.metadata.labels: Invalid value: an object: `selector` does not match template `labels`",
    ),
    (DEPLOYMENT, {"spec.template.spec.containers.0.image": GONE}, ".spec.template.spec.containers[0].image: Required"),
    (DEPLOYMENT, {"spec.template.spec.restartPolicy": "Never"}, '.restartPolicy: Unsupported value: "Never"'),
    (DEPLOYMENT, {"spec.template.spec.activeDeadlineSeconds": 5}, ".activeDeadlineSeconds: Forbidden"),
    (DEPLOYMENT, {"spec.minReadySeconds": 600}, ".spec.progressDeadlineSeconds: Invalid value"),
    (DEPLOYMENT, {"spec.strategy.rollingUpdate": {"maxUnavailable": "101%"}}, '.maxUnavailable: Invalid value: "101%"'),
    (DEPLOYMENT, {"spec.strategy.rollingUpdate": {"maxSurge": "some"}}, '.maxSurge: Invalid value: "some"'),
    (
        DEPLOYMENT,
        {"spec.strategy.rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}},
        ".maxUnavailable: Invalid value",
    ),
    (DEPLOYMENT, {"spec.strategy": {"type": "Recreate", "rollingUpdate": {}}}, ".rollingUpdate: Forbidden"),
    (
        DAEMON,
        {"spec.updateStrategy.rollingUpdate": {"maxSurge": 1}},
        ".maxSurge: Invalid value: 1: may not be set when",
    ),
    (
        DAEMON,
        {"spec.updateStrategy.rollingUpdate": {"maxUnavailable": 0}},
        ".maxUnavailable: Required value: cannot be 0",
    ),
    (STATEFUL, {"spec.podManagementPolicy": "Any"}, '.podManagementPolicy: Unsupported value: "Any"'),
    (STATEFUL, {"spec.updateStrategy": {"rollingUpdate": {"partition": -1}}}, ".partition: Invalid value: -1"),
    (STATEFUL, {"spec.ordinals.start": -1}, ".spec.ordinals.start: Invalid value: -1"),
    (CONTROLLER, {"spec.selector.app": "other"}, ".labels: Invalid value: an object: `selector` does not match"),
    (REVISION, {"data": GONE}, ".data: Required value: data is mandatory"),
    # Jobs.
    (job(), {"spec.parallelism": -1}, ".spec.parallelism: Invalid value: -1"),
    (job(), {"spec.activeDeadlineSeconds": -1}, ".spec.activeDeadlineSeconds: Invalid value: -1"),
    (job(), {"spec.ttlSecondsAfterFinished": -1}, ".spec.ttlSecondsAfterFinished: Invalid value: -1"),
    (
        job(),
        {"spec.template.spec.restartPolicy": GONE},
        '.restartPolicy: Required value: valid values: "OnFailure", "Nev',
    ),
    (job(), {"spec.template.spec.restartPolicy": "Always"}, '.restartPolicy: Unsupported value: "Always"'),
    (job(), {"spec.completionMode": "Indexed"}, ".spec.completions: Required value: when completion mode is Indexed"),
    (
        job(),
        {"spec.backoffLimitPerIndex": 1},
        ".backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode",
    ),
    (job(), {"spec.manualSelector": True}, ".spec.selector: Required value"),
    (
        job(),
        {"spec.selector": {"matchLabels": {"a": "b"}}},
        ".spec.selector: Invalid value: an object: `selector` not auto-gen",
    ),
    (job(), {"spec.managedBy": "me"}, '.spec.managedBy: Invalid value: "me": must be a domain-prefixed path'),
    (job(podFailurePolicy=CODES), {"spec.podFailurePolicy.rules.0.action": "Odd"}, '.action: Unsupported value: "Odd"'),
    (job(podFailurePolicy=CODES), {"spec.podFailurePolicy.rules.0.onExitCodes": GONE}, ".rules[0]: Invalid value"),
    (job(podFailurePolicy=CODES), {"spec.podFailurePolicy.rules.0.onExitCodes.values": [2, 1]}, "must be ordered"),
    (
        job(podFailurePolicy=CODES),
        {"spec.podFailurePolicy.rules.0.onExitCodes.values": [0]},
        "must not be 0 for the In",
    ),
    (job(podFailurePolicy=CODES), {"spec.template.spec.restartPolicy": "OnFailure"}, ".spec.podFailurePolicy: Invalid"),
    (CRON, {"spec.schedule": GONE}, ".spec.schedule: Required value"),
    (CRON, {"metadata.name": "x" * 53}, ".metadata.name: Invalid value"),
    (CRON, {"spec.jobTemplate.spec.selector": {"matchLabels": {"a": "b"}}}, "`selector` will be auto-generated"),
    # Nodes and storage.
    (
        NODE,
        {"spec.podPreemptionPolicy": {"disableResizePreemption": ["a b"]}},
        '.spec.podPreemptionPolicy.disableResizePreemption[0]: Invalid value: "a b"',
    ),
    (
        NODE,
        {"spec.podPreemptionPolicy": {"disableResizePreemption": ["a"] * 21}},
        ".spec.podPreemptionPolicy.disableResizePreemption: Too many",
    ),
    (NODE, {"spec.taints": [{"key": "a"}]}, ".spec.taints[0].effect: Required value"),
    (
        NODE,
        {"spec.taints": [{"key": "a", "effect": "NoSchedule"}] * 2},
        '.spec.taints[1]: Duplicate value: "a:NoSchedule"',
    ),
    (NODE, {"status.capacity.cpu": "-1"}, '.status.capacity.cpu: Invalid value: "-1"'),
    (NODE, {"status.capacity.pods": "1500m"}, '.status.capacity.pods: Invalid value: "1500m": must be an integer'),
    (NODE, {"spec.podCIDRs": ["10.0.0.0/8", "11.0.0.0/8"]}, ".spec.podCIDRs: Invalid value"),
    (CSI_NODE, {"spec.drivers.1": {"name": "a.b", "nodeID": "n"}}, '.spec.drivers[1].name: Duplicate value: "a.b"'),
    (volume(), {"spec.csi": GONE}, ".spec: Required value: must specify a volume type"),
    (volume(), {"spec.csi.volumeHandle": GONE}, ".spec.csi.volumeHandle: Required value"),
    (
        volume(),
        {"spec.nfs": {"server": "a", "path": "/"}},
        ".spec.csi: Forbidden: may not specify more than 1 volume type",
    ),
    (
        volume(),
        {"spec.csi": GONE, "spec.local": {"path": "/a"}},
        ".spec.nodeAffinity: Required value: Local volume requ",
    ),
    (volume(), {"spec.capacity": GONE}, ".spec.capacity: Required value"),
    (volume(), {"spec.capacity.storage": 0}, ".spec.capacity.storage: Invalid value: 0: must be greater than zero"),
    (claim(), {"spec.accessModes": []}, ".spec.accessModes: Required value: at least 1 access mode is required"),
    (claim(), {"spec.accessModes": ["Any"]}, '.spec.accessModes: Unsupported value: "Any"'),
    (claim(), {"spec.accessModes": ["ReadWriteOncePod", "ReadWriteMany"]}, ".spec.accessModes: Forbidden"),
    (claim(), {"spec.resources": GONE}, ".spec.resources.storage: Required value"),
    (claim(), {"spec.volumeMode": "Odd"}, '.spec.volumeMode: Unsupported value: "Odd"'),
    (CLASS, {"provisioner": GONE}, ".provisioner: Required value"),
    (CLASS, {"volumeBindingMode": "Later"}, '.volumeBindingMode: Unsupported value: "Later"'),
    (CLASS, {"allowedTopologies": [{"matchLabelExpressions": [{"key": "a"}]}]}, "[0].values: Required value"),
    (CAPACITY, {"nodeTopology.matchLabels": {"a": "-"}}, ".nodeTopology.matchLabels.a: Invalid value"),
    (CSI_NODE, {"spec.drivers.0.topologyKeys": ["-"]}, ".spec.drivers[0].topologyKeys[0]: Invalid value"),
    (NODE, {"spec.taints": [{"key": "a", "value": "-", "effect": "NoSchedule"}]}, ".spec.taints[0].value: Invalid"),
    (SERVICE, {"spec.selector": {"a": "-"}}, ".spec.selector.a: Invalid value"),
    (CAPACITY, {"storageClassName": GONE}, ".storageClassName: Required value"),
    (CAPACITY, {"capacity": "-1"}, '.capacity: Invalid value: "-1"'),
    # RBAC
    (QUOTA, {"spec.hard.pods": "1500m"}, '.spec.hard.pods: Invalid value: "1500m": must be an integer'),
    (QUOTA, {"spec.scopes": ["Odd"]}, '.spec.scopes: Invalid value: "Odd": unsupported scope'),
    (QUOTA, {"spec.scopes": ["BestEffort", "NotBestEffort"]}, "conflicting scopes"),
    (LIMITS, {f"{LIMIT}.type": "Node"}, 'limits[0].type: Invalid value: "Node": must be a standard limit type'),
    (LIMITS, {"spec.limits.1": {"type": "Container"}}, '.limits[1].type: Duplicate value: "Container"'),
    (LIMITS, {f"{LIMIT}.min.cpu": 3}, ".limits[0].min.cpu: Invalid value: 3: min value 3 is greater than max value 2"),
    (LIMITS, {f"{LIMIT}.default": {"cpu": 3}}, ".default.cpu: Invalid value: 3: default value 3 is greater than max"),
    (
        LIMITS,
        {f"{LIMIT}.type": "Pod", f"{LIMIT}.default": {"cpu": 1}},
        ".default: Forbidden: may not be specified when",
    ),
    (LIMITS, {f"{LIMIT}.maxLimitRequestRatio": {"cpu": "0.5"}}, "ratio 0.5 is less than 1"),
    (LIMITS, {f"{LIMIT}.maxLimitRequestRatio": {"cpu": 21}}, "ratio 21 is greater than max/min"),
    (
        BUDGET,
        {"spec.maxUnavailable": 1},
        ".spec: Invalid value: an object: minAvailable and maxUnavailable cannot be bot",
    ),
    (BUDGET, {"spec.minAvailable": "101%"}, '.spec.minAvailable: Invalid value: "101%": must not be greater than 100%'),
    (BUDGET, {"spec.minAvailable": -1}, ".spec.minAvailable: Invalid value: -1"),
    (PRIORITY, {"value": 1_000_000_001}, ".value: Forbidden: maximum allowed value of a user defined priority"),
    (PRIORITY, {"metadata.name": "system-x"}, ".metadata.name: Forbidden: priority class names with 'system-' prefix"),
    (RUNTIME, {"handler": GONE}, ".handler: Required value"),
    (RUNTIME, {"overhead.podFixed.pods": 1}, ".overhead.podFixed.pods: Invalid value"),
    (SERVICE, {"spec.ports": []}, ".spec.ports: Required value"),
    (
        SERVICE,
        {"spec.ports.1": {"port": 80, "name": "b"}, "spec.ports.0.name": "a"},
        '.ports[1]: Duplicate value: "TCP/80"',
    ),
    (SERVICE, {"spec.type": "Any"}, '.spec.type: Unsupported value: "Any"'),
    (SERVICE, {"spec.sessionAffinity": "ClientIP", **TIMEOUT}, ".clientIP.timeoutSeconds: Invalid value: 86401"),
    (SERVICE, {"spec.sessionAffinityConfig": {"clientIP": {}}}, ".spec.sessionAffinityConfig: Forbidden"),
    (SERVICE, {"spec.clusterIP": "bad", "spec.clusterIPs": ["bad"]}, '.spec.clusterIPs[0]: Invalid value: "bad"'),
    (SERVICE, {"spec.clusterIP": "10.0.0.1", "spec.clusterIPs": ["10.0.0.2"]}, "first value must match `clusterIP`"),
    (SERVICE, {"spec.externalTrafficPolicy": "Local"}, '.spec.externalTrafficPolicy: Invalid value: "Local"'),
    (SERVICE, {"spec.healthCheckNodePort": 30000}, ".spec.healthCheckNodePort: Invalid value: 30000"),
    (SERVICE, {"spec.allocateLoadBalancerNodePorts": True}, ".spec.allocateLoadBalancerNodePorts: Forbidden"),
    (SERVICE, {"spec.type": "LoadBalancer", "spec.loadBalancerClass": "a b"}, ".spec.loadBalancerClass: Invalid value"),
    (SERVICE, {"spec.ipFamilies": ["IPv4", "IPv4"]}, '.spec.ipFamilies[1]: Duplicate value: "IPv4"'),
    (SERVICE, {"spec.ipFamilies": ["IPv9"]}, '.spec.ipFamilies[0]: Unsupported value: "IPv9"'),
    (SERVICE, {"spec.ipFamilyPolicy": "Any"}, '.spec.ipFamilyPolicy: Unsupported value: "Any"'),
    (SERVICE, {"spec.ports.0.appProtocol": "a b"}, '.spec.ports[0].appProtocol: Invalid value: "a b"'),
    (sourced(hostPath={"path": "/a/.."}), {}, ".spec.hostPath.path: Invalid value"),
    (sourced(hostPath={"path": "/a", "type": "Any"}), {}, '.spec.hostPath.type: Unsupported value: "Any"'),
    (
        sourced(hostPath={"path": "/"}),
        {"spec.persistentVolumeReclaimPolicy": "Recycle"},
        ".spec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath mount of '/'",
    ),
    (sourced(nfs={"server": "s", "path": "a"}), {}, ".spec.nfs.path: Invalid value"),
    (sourced(fc={"lun": 1}), {}, ".spec.fc.targetWWNs: Required value"),
    (sourced(iscsi={"targetPortal": "p", "iqn": "bad", "lun": 1}), {}, ".spec.iscsi.iqn: Invalid value"),
    (sourced(csi={"driver": "a_b", "volumeHandle": "h"}), {}, '.spec.csi.driver: Invalid value: "a_b"'),
    (
        sourced(csi={"driver": "a", "volumeHandle": "h", "nodeStageSecretRef": {"name": "s"}}),
        {},
        ".spec.csi.nodeStageSecretRef.namespace: Required value",
    ),
    (sourced(hostPath={"path": "/a"}), {"spec.capacity.cpu": 1}, ".spec.capacity: Unsupported value"),
    (SERVICE, {"spec.trafficDistribution": "x"}, ".spec.trafficDistribution: Unsupported value"),
    (SERVICE, {"spec.loadBalancerClass": "a.b/c"}, ".spec.loadBalancerClass: Forbidden: may only be used when `type`"),
    (SLICE, {"endpoints.0.addresses": ["x"]}, ".endpoints[0].addresses[0]: Invalid value"),
    (SLICE, {"endpoints.0.addresses": ["::1"]}, "must be a valid IPv4 address"),
    (SLICE, {"addressType": "IPv6"}, "must be a valid IPv6 address"),
    (SLICE, {"addressType": "FQDN", "endpoints.0.addresses": ["a_b"]}, ".endpoints[0].addresses[0]: Invalid value"),
    (SLICE, {"ports": [{"port": 1}, {"port": 2}]}, ".ports[1].name: Duplicate value"),
    (ROLE, {"rules.0.verbs": []}, ".rules[0].verbs: Required value"),
    (
        ROLE,
        {"rules.0.apiGroups": []},
        ".rules[0].apiGroups: Required value: resource rules must supply at least one api",
    ),
    (ROLE, {"rules.0.resources": []}, ".rules[0].resources: Required value: resource rules must supply at least one"),
    (ROLE, {"rules": CLUSTER_ROLE["rules"]}, "namespaced rules cannot apply to non-resource URLs"),
    (
        CLUSTER_ROLE,
        {"rules.0.resources": ["pods"]},
        "rules cannot apply to both regular resources and non-resource URLs",
    ),
    (ROLE_BINDING, {"roleRef.kind": "Odd"}, '.roleRef.kind: Unsupported value: "Odd"'),
    (ROLE_BINDING, {"subjects.0.kind": "Odd"}, '.subjects[0].kind: Unsupported value: "Odd"'),
    (EVERYWHERE, {"metadata.name": "all"}, ".subjects[0].namespace: Required value"),
    (
        LEASE,
        {"spec.leaseDurationSeconds": 0},
        ".spec.leaseDurationSeconds: Invalid value: 0: must be greater than or",
    ),
    (LEASE, {"spec.leaseTransitions": -1}, ".spec.leaseTransitions: Invalid value: -1"),
]


@pytest.mark.parametrize(("raw", "changes", "problem"), REFUSED, ids=[problem[:70] for _, _, problem in REFUSED])
def test_each_thing_that_kube_apiserver_refuses_is_one_finding(raw: Raw, changes: dict[str, Any], problem: str) -> None:
    found = problems(changed(raw, changes))
    assert len(found) == 1, found
    assert problem in found[0]


@pytest.mark.parametrize("raw", VALID, ids=[raw["kind"] for raw in VALID])
def test_a_valid_object_of_each_kind_has_no_findings(raw: Raw) -> None:
    assert problems(raw) == []


TAKEN: list[tuple[Raw, dict[str, Any]]] = [
    (pod(), {"metadata.name": GONE, "metadata.generateName": "web-"}),
    (pod(), {"metadata/annotations": {"Example.com/a": "", "controller.kubernetes.io/pod-deletion-cost": "-10"}}),
    (pod(), {"metadata.finalizers": ["orphan", "example.com/a"]}),
    (
        STATEFUL,
        {
            "spec.volumeClaimTemplates": [{"metadata": {"name": "data"}}],
            "spec.template.spec.containers.0.volumeMounts": [{"name": "data", "mountPath": "/data"}],
        },
    ),
    (DAEMON, {"spec.updateStrategy.rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}),
    (job(), {"spec.completionMode": "Indexed", "spec.completions": 3, "spec.backoffLimitPerIndex": 1}),
    (job(podFailurePolicy=CODES), {"spec.podReplacementPolicy": "Failed"}),
    (job(), {
        "metadata.uid": "1", "spec.selector.matchLabels": {"a": "b"}, "spec.template.metadata.labels": {"a": "b"}}),
    (CONTROLLER, {"spec.selector": GONE}),
    (SERVICE, {"spec.clusterIP": "None", "spec.ports": GONE}),
    (SERVICE, {"spec": {"type": "ExternalName", "externalName": "example.com."}}),
    (BUDGET, {"spec.minAvailable": "100%", "spec.selector": {}}),
    (PRIORITY, {"metadata.name": "system-node-critical", "value": 2_000_001_000}),
    (QUOTA, {"spec.scopeSelector": {"matchExpressions": [
        {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]}}),
    (volume(), {"spec.csi": GONE, "spec.hostPath": {"path": "/data"}}),
]  # fmt: skip


@pytest.mark.parametrize(("raw", "changes"), TAKEN, ids=[raw["kind"] for raw, _ in TAKEN])
def test_objects_that_kube_apiserver_accepts_have_no_findings(raw: Raw, changes: dict[str, Any]) -> None:
    assert problems(changed(raw, changes)) == []


@pytest.mark.parametrize("file", sorted(EXAMPLES.rglob("*.yaml")), ids=lambda file: file.name)
def test_no_example_has_findings(file: Path) -> None:
    roots = [root for _, root in yaml.parse_documents(file.read_text())]
    assert [problem for root in roots if isinstance(root, dict) for problem in problems(root)] == []


def test_every_built_in_kind_that_is_read_has_a_rule() -> None:
    assert [name for group, name in KINDS if group != "podium.dev" and not has_rules(name)] == []


JUNK: st.SearchStrategy[Any] = st.sampled_from(
    [None, "", "x", -1, 0, 1.5, 10**30, True, [], ["x", 5], [[]], {}, {"x": "y"}, {"": {"a": []}}]
)


FULL = [*VALID, *(raw for raw, _, _ in REFUSED), *(changed(raw, changes) for raw, changes in TAKEN)]


@given(st.data())
def test_no_value_at_any_path_causes_a_traceback(data: st.DataObject) -> None:
    raw = data.draw(st.sampled_from(FULL))
    path = data.draw(st.sampled_from([one for one in paths_of(raw) if one not in ("", "/apiVersion", "/kind")]))
    try:
        mutated = changed(raw, {path[1:]: data.draw(JUNK)})
    except (TypeError, AttributeError):
        return
    for one in find_problems(mutated):
        json.dumps(str(one))


@pytest.mark.parametrize("raw", VALID, ids=[raw["kind"] for raw in VALID])
@pytest.mark.parametrize("junk", [5, "x", [5], [[]], {"x": 5}], ids=str)
def test_junk_in_any_field_is_reported_without_a_traceback(raw: Raw, junk: Any) -> None:
    for path in paths_of(raw):
        if path.count("/") > 1 and "." not in path:
            find_problems(changed(raw, {path[1:]: junk}))


def test_objects_that_kube_apiserver_rejects_cause_a_warning_or_a_strict_error() -> None:
    text = json.dumps(changed(pod(), {"spec.containers.0.image": GONE, "spec.hostname": "A"}))

    [document] = load_text(text, "in")
    assert [(one.reason, one.path) for one in document.warnings] == [
        ("invalid", ".spec.containers[0].image"),
        ("invalid", ".spec.hostname"),
    ]
    assert load_text(text, "in", "ignore")[0].warnings == ()
    with pytest.raises(
        InputError, match=r"in, document 1, Pod default/web, .spec.containers\[0\].image: Required value"
    ):
        load_text(text, "in", "strict")
