"""A generated cluster of any size with the objects of an EKS cluster, as `kubectl get -A -o json` prints them.

Three zones, four node pools (one with GPUs and a taint), 12 namespaces, 3 DaemonSets, and for each node some 0.2
Deployments and StatefulSets with 7 pods in all and 0.1 budgets. Workloads differ in requests, priority, topology spread
constraints, anti-affinity and node selectors. A Deployment has a ReplicaSet, a DaemonSet and a StatefulSet have a
ControllerRevision. Pods run where a scheduler could have bound them; pods without such a node are pending.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from podium.api.budget_limits import pods_of_share
from podium.api.meta import Raw
from podium.api.node import HOSTNAME_LABEL, INSTANCE_TYPE_LABEL, REGION_LABEL, ZONE_LABEL
from podium.store.admission.defaults import ACCOUNT_FOLDER, TOKEN_SOURCES
from podium.store.admission.pod_admission import DEFAULT_TOLERATIONS

_SEED = 7
_TIME = "2026-01-01T00:00:00Z"
_ZONES = ("eu-west-1a", "eu-west-1b", "eu-west-1c")
_POOL = "eks.amazonaws.com/nodegroup"
_GPU = "nvidia.com/gpu"
_NAMESPACES = tuple(
    "shop search payments ml analytics platform monitoring edge team-a team-b team-c kube-system".split()
)
_APPS = ("api", "web", "worker", "gateway", "cache", "indexer", "feed", "auth", "billing", "report", "mail", "video")
_PRIORITIES = {"system-node-critical": 2_000_001_000, "platform": 1_000_000, "prod": 100_000, "batch": 1_000}
_DAEMONS = {"aws-node": (50, 64, 0, 1), "kube-proxy": (100, 64, 0, 1), "fluent-bit": (100, 200, 0, 1)}
_REPLICAS_PER_NODE = 7
PODS_PER_NODE = len(_DAEMONS) + _REPLICAS_PER_NODE
"""The number of pods for each node, those of DaemonSets included."""

_MOST_GPU_REPLICAS = 20
_NODE_CONDITIONS = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID"),
    ("Ready", "True", "KubeletReady"),
)


_Amounts = tuple[int, int, int, int]
"""Thousandths of a CPU, MiB of memory, GPUs, and pods."""


class _Pool(msgspec.Struct, frozen=True):
    """A node pool: its share of every 20 nodes, and the resources of each of its nodes."""

    name: str
    instance_type: str
    share: int
    amounts: _Amounts


_POOLS = (
    _Pool("general", "m6i.4xlarge", 12, (15_890, 60 << 10, 0, 234)),
    _Pool("compute", "c6i.8xlarge", 4, (31_850, 58 << 10, 0, 234)),
    _Pool("memory", "r6i.4xlarge", 3, (15_890, 122 << 10, 0, 234)),
    _Pool("gpu", "p4d.24xlarge", 1, (95_690, 1100 << 10, 8, 100)),
)
_NODES_PER_TURN = 20
_POOL_OF_TURN = tuple(pool for pool in _POOLS for _ in range(pool.share))


@dataclass(slots=True)
class _Room:
    """A node and its free resources."""

    name: str
    zone: str
    pool: _Pool
    free: Sequence[int]

    def take(self, amounts: _Amounts) -> None:
        self.free = [left - taken for left, taken in zip(self.free, amounts, strict=True)]


class _Workload(msgspec.Struct, frozen=True):
    """A Deployment or StatefulSet to place; each of its pods requests the ``amounts``."""

    kind: str
    namespace: str
    name: str
    replicas: int
    amounts: _Amounts
    spec: Raw
    pool: str | None = None
    is_apart: bool = False
    is_spread: bool = False
    max_unavailable: int | str | None = None

    def fits(self, room: _Room) -> bool:
        """Return whether a node of the right pool has room for one pod."""
        is_right = room.pool.name == self.pool if self.pool else not room.pool.amounts[2] or self.amounts[2] > 0
        return is_right and all(left >= wanted for left, wanted in zip(room.free, self.amounts, strict=True))


class EKSCluster:
    """The generator of a cluster with so many nodes, and the names of its objects that questions can be about."""

    def __init__(self, node_count: int) -> None:
        self.nodes: list[str] = []
        """The names of the nodes, in the order in which they are written."""
        self.deployments: list[tuple[str, int]] = []
        """Deployments as `namespace/name`, with their replicas."""
        self.pending: list[str] = []
        """Pods without a node, as `namespace/name`; at least one."""
        self.pod_count = 0
        self._random = Random(_SEED)  # noqa: S311 - repeatable draws
        self._uids = 0
        self._next_room = 0
        self._pod_suffixes: set[str] = set()
        self._rooms: list[_Room] = []
        for index in range(node_count):
            pool = _POOL_OF_TURN[index * 7 % len(_POOL_OF_TURN)]
            name = f"ip-10-{index // 62_500}-{index // 250 % 250}-{index % 250}.eu-west-1.compute.internal"
            self._rooms.append(_Room(name, _ZONES[index % 3], pool, pool.amounts))

    def write(self, file: Path) -> None:
        """Write the objects as one List, in the layout of kubectl. At most one object is in memory at a time."""
        with file.open("wb") as stream:
            stream.write(b'{\n    "apiVersion": "v1",\n    "items": [')
            separator = b"\n        "
            for item in self.objects():
                text = msgspec.json.format(msgspec.json.encode(item, order="sorted"), indent=4)
                stream.write(separator + text.replace(b"\n", b"\n        "))
                separator = b",\n        "
            stream.write(b'\n    ],\n    "kind": "List",\n    "metadata": {\n        "resourceVersion": ""\n    }\n}\n')

    def objects(self) -> Iterator[Raw]:
        """Yield all objects, once, and record their names; the same for the same number of nodes."""
        for name, value in _PRIORITIES.items():
            yield _object("scheduling.k8s.io/v1", "PriorityClass", self._metadata("", name), value=value)
        for name in _NAMESPACES:
            yield _object("v1", "Namespace", self._metadata("", name))
        for index, room in enumerate(self._rooms):
            self.nodes.append(room.name)
            yield self._node(index, room)
        for name, amounts in _DAEMONS.items():
            yield from self._daemon_set(name, amounts)
        left, number = len(self._rooms) * _REPLICAS_PER_NODE, 0
        while left > 0:
            workload = self._workload(number, left)
            yield from self._placed(workload)
            left, number = left - workload.replicas, number + 1
        # No node has room for a pod of the last one.
        name = f"oversized-{number}"
        amounts = 1_000_000, 1024, 0, 1
        yield from self._placed(_Workload("Deployment", "shop", name, 1, amounts, _pod_spec(name, amounts, "batch")))

    def _node(self, index: int, room: _Room) -> Raw:
        pool = room.pool
        cpu_milli, memory_mib, gpus, pods = pool.amounts
        labels = {
            "eks.amazonaws.com/capacityType": "SPOT" if pool.name == "compute" else "ON_DEMAND",
            _POOL: pool.name,
            "kubernetes.io/arch": "amd64",
            HOSTNAME_LABEL: room.name,
            "kubernetes.io/os": "linux",
            INSTANCE_TYPE_LABEL: pool.instance_type,
            REGION_LABEL: "eu-west-1",
            ZONE_LABEL: room.zone,
        }
        amounts = {
            "cpu": f"{cpu_milli}m",
            "ephemeral-storage": "95Gi",
            "memory": f"{memory_mib}Mi",
            "pods": str(pods),
            **({_GPU: str(gpus)} if gpus else {}),
        }
        status: Raw = {
            "addresses": [{"address": _address(index), "type": "InternalIP"}],
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [_condition(*condition) for condition in _NODE_CONDITIONS],
            "images": [
                {"names": [f"registry.example.com/{app}:1.2.3"], "sizeBytes": 90_000_000 + number}
                for number, app in enumerate(_APPS)
            ],
            "nodeInfo": {"architecture": "amd64", "kubeletVersion": "v1.36.2", "operatingSystem": "linux"},
        }
        owned = {"f:metadata": {"f:labels": _owned_fields(labels)}, "f:status": _owned_fields({**status, "images": []})}
        metadata = self._metadata("", room.name, labels, managedFields=[_managed_by("kubelet", "status", owned)])
        taints = {"taints": [{"effect": "NoSchedule", "key": _GPU, "value": "present"}]} if gpus else {}
        spec = {"providerID": f"aws:///{room.zone}/i-{index:017x}", **taints}
        return _object("v1", "Node", metadata, spec=spec, status=status)

    def _daemon_set(self, name: str, amounts: _Amounts) -> Iterator[Raw]:
        spec = _pod_spec(name, amounts, "system-node-critical")
        spec["tolerations"] = [{"operator": "Exists"}]
        revision = self._suffix(9)
        controller = self._controller("DaemonSet", "kube-system", name, {}, spec)
        count = len(self._rooms)
        numbers = ("currentNumberScheduled", "desiredNumberScheduled", "numberAvailable", "numberReady")
        controller["status"] = {**dict.fromkeys((*numbers, "updatedNumberScheduled"), count), "numberMisscheduled": 0}
        controller["status"]["observedGeneration"] = 1
        yield controller
        owner = _owner(controller)
        labels = {"app": name, "controller-revision-hash": revision, "pod-template-generation": "1"}
        # The pods are those of this revision, so that none is to be replaced.
        yield self._revision(controller, f"{name}-{revision}", {"app": name, "controller-revision-hash": revision})
        for room in self._rooms:
            room.take(amounts)
            fields = [{"key": "metadata.name", "operator": "In", "values": [room.name]}]
            terms = {"nodeSelectorTerms": [{"matchFields": fields}]}
            own = {**spec, "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}
            yield self._pod("kube-system", f"{name}-{self._pod_suffix()}", labels, owner, own, room)

    def _workload(self, number: int, most: int) -> _Workload:
        draw = self._random
        namespace = draw.choice(_NAMESPACES[:-1])
        name = f"{draw.choice(_APPS)}-{number}"
        replicas = min(draw.choice((3, 3, 6, 6, 10, 12, 20, 40, 80, 150)), most)
        cpu_milli = draw.choice((250, 500, 1000, 1500, 2000, 4000))
        memory_mib = draw.choice((512, 1024, 2048, 4096, 8192))
        gpus = draw.choice((1, 2, 4, 8)) if namespace == "ml" and draw.random() < 0.4 else 0
        amounts = cpu_milli, memory_mib, gpus, 1
        spec = _pod_spec(name, amounts, draw.choice(("prod", "prod", "batch", "platform", "")))
        hard = draw.choice(("DoNotSchedule", "ScheduleAnyway"))
        is_spread, is_apart, has_pool = draw.random() < 0.3, draw.random() < 0.15, not gpus and draw.random() < 0.2
        selector = {"matchLabels": {"app": name}}
        if is_spread:
            constraint = {"labelSelector": selector, "maxSkew": 1, "topologyKey": ZONE_LABEL, "whenUnsatisfiable": hard}
            spec["topologySpreadConstraints"] = [constraint]
        if is_apart:
            term = {"labelSelector": selector, "topologyKey": HOSTNAME_LABEL}
            spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        pool = draw.choice(("general", "compute", "memory")) if has_pool else None
        if pool is not None:
            spec["nodeSelector"] = {_POOL: pool}
        if is_apart:
            # The smallest pool that it may need has so many nodes.
            replicas = min(replicas, max(1, len(self._rooms) // _NODES_PER_TURN))
        if gpus:
            replicas = min(replicas, _MOST_GPU_REPLICAS)
            spec["tolerations"] = [{"key": _GPU, "operator": "Exists"}, *spec["tolerations"]]
        kind = "StatefulSet" if draw.random() < 0.1 else "Deployment"
        budget = draw.choice((1, 1, 1, "10%", "25%")) if draw.random() < 0.5 else None
        return _Workload(kind, namespace, name, replicas, amounts, spec, pool, is_apart, is_spread, budget)

    def _placed(self, workload: _Workload) -> Iterator[Raw]:
        """Yield a workload, its ReplicaSet or ControllerRevision, and its pods."""
        namespace, name, replicas = workload.namespace, workload.name, workload.replicas
        rooms = self._rooms_for(workload)
        ready = sum(room is not None for room in rooms)
        if workload.max_unavailable is not None:
            yield self._budget(workload, workload.max_unavailable, ready)
        status = {"availableReplicas": ready, "readyReplicas": ready, "replicas": replicas, "observedGeneration": 1}
        is_set = workload.kind == "StatefulSet"
        set_spec = {"podManagementPolicy": "Parallel", "serviceName": name} if is_set else {}
        owner_spec = {"replicas": replicas, **set_spec}
        controller = self._controller(workload.kind, namespace, name, owner_spec, workload.spec)
        suffix, labels = self._suffix(10), {"app": name}
        if is_set:
            revision = f"{name}-{suffix}"
            named = {"currentRevision": revision, "updateRevision": revision, "currentReplicas": replicas}
            controller["status"] = {**status, **named, "updatedReplicas": replicas}
            yield controller
            yield self._revision(controller, revision, {**labels, "controller.kubernetes.io/hash": suffix})
            labels["controller-revision-hash"], owner, stem = revision, _owner(controller), name
        else:
            self.deployments.append((f"{namespace}/{name}", replicas))
            controller["status"] = {**status, "updatedReplicas": replicas}
            yield controller
            labels["pod-template-hash"], stem = suffix, f"{name}-{suffix}"
            replica_set = self._replica_set(controller, stem, labels)
            yield {**replica_set, "status": {**status, "fullyLabeledReplicas": replicas}}
            owner = _owner(replica_set)
        for index, room in enumerate(rooms):
            if is_set:
                pod_name = f"{stem}-{index}"
                own = {"apps.kubernetes.io/pod-index": str(index), "statefulset.kubernetes.io/pod-name": pod_name}
            else:
                pod_name, own = f"{stem}-{self._pod_suffix()}", {}
            yield self._pod(namespace, pod_name, {**labels, **own}, owner, workload.spec, room)

    def _rooms_for(self, workload: _Workload) -> list[_Room | None]:
        """Return a node for each replica, with its requests subtracted there; None if it fits on no node."""
        used: set[str] = set()
        zones = Counter(dict.fromkeys(_ZONES, 0))
        found: list[_Room | None] = []
        while len(found) < workload.replicas:
            least = min(zones.values())
            for offset in range(len(self._rooms)):
                room = self._rooms[(self._next_room + offset) % len(self._rooms)]
                if workload.is_apart and room.name in used:
                    continue
                if (workload.is_spread and zones[room.zone] > least) or not workload.fits(room):
                    continue
                room.take(workload.amounts)
                used.add(room.name)
                zones[room.zone] += 1
                self._next_room += offset + 1
                found.append(room)
                break
            else:
                # The nodes that are full stay full for the other replicas.
                found += [None] * (workload.replicas - len(found))
        return found

    def _controller(self, kind: str, namespace: str, name: str, spec: Raw, pod_spec: Raw) -> Raw:
        labels = {"app": name}
        template = {"metadata": {"labels": labels}, "spec": pod_spec}
        full = {**spec, "selector": {"matchLabels": labels}, "template": template}
        managed = [_managed_by("argocd", "", {"f:spec": _owned_fields(full)})]
        metadata = self._metadata(namespace, name, labels, generation=1, managedFields=managed)
        return _object("apps/v1", kind, metadata, spec=full)

    def _replica_set(self, deployment: Raw, name: str, labels: Raw) -> Raw:
        spec = deployment["spec"]
        replicas = spec["replicas"]
        annotations = {
            "deployment.kubernetes.io/desired-replicas": str(replicas),
            "deployment.kubernetes.io/max-replicas": str(replicas + replicas // 4),
            "deployment.kubernetes.io/revision": "1",
        }
        more = {"annotations": annotations, "generation": 1, "ownerReferences": [_owner(deployment)]}
        metadata = self._metadata(deployment["metadata"]["namespace"], name, labels, **more)
        template = {**spec["template"], "metadata": {"labels": labels}}
        full = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
        return _object("apps/v1", "ReplicaSet", metadata, spec=full)

    def _revision(self, controller: Raw, name: str, labels: Raw) -> Raw:
        owners = [_owner(controller)]
        metadata = self._metadata(controller["metadata"]["namespace"], name, labels, ownerReferences=owners)
        data = {"spec": {"template": {**controller["spec"]["template"], "$patch": "replace"}}}
        return _object("apps/v1", "ControllerRevision", metadata, data=data, revision=1)

    def _budget(self, workload: _Workload, max_unavailable: int | str, healthy: int) -> Raw:
        labels, expected = {"app": workload.name}, workload.replicas
        desired = max(0, expected - pods_of_share(max_unavailable, expected))
        status = {"currentHealthy": healthy, "desiredHealthy": desired, "expectedPods": expected}
        status |= {"disruptionsAllowed": max(0, healthy - desired), "observedGeneration": 1}
        metadata = self._metadata(workload.namespace, workload.name, labels, generation=1)
        spec = {"maxUnavailable": max_unavailable, "selector": {"matchLabels": labels}}
        return _object("policy/v1", "PodDisruptionBudget", metadata, spec=spec, status=status)

    def _pod(self, namespace: str, name: str, labels: Raw, owner: Raw, template: Raw, room: _Room | None) -> Raw:
        volume = f"kube-api-access-{self._suffix(5)}"
        mount = {"mountPath": ACCOUNT_FOLDER, "name": volume, "readOnly": True}
        (container,) = template["containers"]
        spec = {**template, "containers": [{**container, "volumeMounts": [mount]}]}
        spec["volumes"] = [{"name": volume, "projected": {"defaultMode": 420, "sources": TOKEN_SOURCES}}]
        spec |= {"preemptionPolicy": "PreemptLowerPriority", "serviceAccountName": "default"}
        spec["priority"] = _PRIORITIES.get(template.get("priorityClassName", ""), 0)
        spec["tolerations"] = [*template["tolerations"], *DEFAULT_TOLERATIONS]
        self.pod_count += 1
        if room is None:
            self.pending.append(f"{namespace}/{name}")
            why = {"lastTransitionTime": _TIME, "status": "False", "type": "PodScheduled", "reason": "Unschedulable"}
            status: Raw = {"conditions": [why], "phase": "Pending", "qosClass": "Burstable"}
        else:
            spec["nodeName"] = room.name
            status = self._running(container, mount)
        by_controller = {"f:metadata": {"f:labels": _owned_fields(labels)}, "f:spec": _OWNED_SPEC}
        by_kubelet = {"f:status": _owned_fields({"phase": "", "podIPs": status.get("podIPs", [])})}
        managed = [
            _managed_by("kube-controller-manager", "", by_controller),
            _managed_by("kubelet", "status", by_kubelet),
        ]
        metadata = self._metadata(namespace, name, labels, ownerReferences=[owner], managedFields=managed)
        return _object("v1", "Pod", metadata, spec=spec, status=status)

    def _running(self, container: Raw, mount: Raw) -> Raw:
        address = _address(self._uids)
        kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
        return {
            "conditions": [_condition(kind, "True") for kind in kinds],
            "containerStatuses": [
                {
                    "containerID": f"containerd://{self._uids:064x}",
                    "image": container["image"],
                    "imageID": f"{container['image']}@sha256:{0:064x}",
                    "lastState": {},
                    "name": "main",
                    "ready": True,
                    "restartCount": 0,
                    "started": True,
                    "state": {"running": {"startedAt": _TIME}},
                    "volumeMounts": [{**mount, "recursiveReadOnly": "Disabled"}],
                }
            ],
            "phase": "Running",
            "podIP": address,
            "podIPs": [{"ip": address}],
            "qosClass": "Burstable",
            "startTime": _TIME,
        }

    def _metadata(self, namespace: str, name: str, labels: Raw | None = None, **more: Any) -> Raw:
        self._uids += 1
        uid = f"{self._uids:08x}-0000-4000-8000-{self._uids:012x}"
        metadata = {"creationTimestamp": _TIME, "name": name, "resourceVersion": str(self._uids), "uid": uid}
        named = {"namespace": namespace, "labels": labels}
        return {**metadata, **{field: value for field, value in named.items() if value}, **more}

    def _pod_suffix(self) -> str:
        while (suffix := self._suffix(5)) in self._pod_suffixes:
            pass
        self._pod_suffixes.add(suffix)
        return suffix

    def _suffix(self, length: int) -> str:
        return "".join(self._random.choices("bcdfghjklmnpqrstvwxz2456789", k=length))


def _object(api_version: str, kind: str, metadata: Raw, **fields: Any) -> Raw:
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def _managed_by(manager: str, subresource: str, owned: Raw) -> Raw:
    own = {"subresource": subresource} if subresource else {}
    fields = {"apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": owned, "manager": manager}
    return {**fields, **own, "operation": "Update", "time": _TIME}


def _owned_fields(value: Any) -> Raw:
    if isinstance(value, dict):
        return {f"f:{key}": _owned_fields(entry) for key, entry in value.items()}
    if isinstance(value, list) and value and all(isinstance(entry, dict) for entry in value):
        key = next((key for key in ("name", "type", "key", "ip", "containerPort") if key in value[0]), "name")
        return {f'k:{{"{key}":"{entry.get(key, "")}"}}': {".": {}, **_owned_fields(entry)} for entry in value}
    return {}


def _condition(kind: str, status: str, reason: str = "") -> Raw:
    found: Raw = {"lastProbeTime": None, "lastTransitionTime": _TIME, "status": status, "type": kind}
    return {**found, "reason": reason} if reason else found


# Enough to be as deep as those that controllers write.
_OWNED_SPEC = _owned_fields({"containers": [{"image": "", "name": "main", "resources": {"requests": {"cpu": ""}}}]})


def _pod_spec(name: str, amounts: _Amounts, priority_class: str) -> Raw:
    cpu_milli, memory_mib, gpus, _ = amounts
    limits = {"memory": f"{memory_mib}Mi", **({_GPU: str(gpus)} if gpus else {})}
    container = {
        "env": [{"name": "LOG_LEVEL", "value": "info"}],
        "image": f"registry.example.com/{name}:1.2.3",
        "imagePullPolicy": "IfNotPresent",
        "name": "main",
        "resources": {"limits": limits, "requests": {**limits, "cpu": f"{cpu_milli}m"}},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }
    spec: Raw = {
        "containers": [container],
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
        "tolerations": [],
    }
    return {**spec, "priorityClassName": priority_class} if priority_class else spec


def _owner(controller: Raw) -> Raw:
    metadata = controller["metadata"]
    reference = {"apiVersion": controller["apiVersion"], "blockOwnerDeletion": True, "controller": True}
    return {**reference, "kind": controller["kind"], "name": metadata["name"], "uid": metadata["uid"]}


def _address(number: int) -> str:
    return f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
