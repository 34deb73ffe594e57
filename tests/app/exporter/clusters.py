"""Random clusters for the exporter's tests: nodes in zones and pools, and workloads that use most of their room."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import podium
from podium.sim.run import play_to_end
from podium.sim.run_options import RunOptions

Raw = dict[str, Any]
ZONE, POOL, HOST = "topology.kubernetes.io/zone", "eks.amazonaws.com/nodegroup", "kubernetes.io/hostname"
_TRUE = {"status": "True"}
_OWNERS = ("ReplicaSet", "ReplicaSet", "ReplicaSet", "StatefulSet", "")
_MORE_OWNERS = ("ReplicaSet", "ReplicaSet", "ReplicationController", "StatefulSet", "")
_OF_OWNERS = {"ReplicationController": "v1", "Job": "batch/v1"}
_CLASSES = {"low": 0, "middle": 100, "patient": 500, "high": 1000, "daemon": 10_000}
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def _tolerations(seconds: int) -> list[Raw]:
    return [
        {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}
        for name in ("not-ready", "unreachable")
    ]


_TOLERATIONS = _tolerations(300)


def node(name: str, zone: str = "a", pool: str = "big", cpu: int = 4, **spec: Any) -> Raw:
    amounts = {"cpu": str(cpu), "memory": "32Gi", "pods": "100"}
    status = {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", **_TRUE}]}
    labels = {HOST: name, ZONE: zone, POOL: pool}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": status,
    }


@dataclass
class Workload:
    """A controller ("" for none) with its pods; `nodes` has the node of each, "" for a pending one."""

    name: str
    nodes: list[str]
    owner: str = "ReplicaSet"
    milli: int = 1000
    priority: str = "low"
    spec: Raw = field(default_factory=dict)
    gates: bool = False

    @property
    def selector(self) -> Raw:
        return {"matchLabels": {"app": self.name}}

    @property
    def objects(self) -> list[Raw]:
        labels: Raw = {"app": self.name}
        owned: Raw = {"name": self.name, "uid": f"uid-{self.name}", "controller": True}
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": f"{self.milli}m"}}}
        spec = {"priorityClassName": self.priority, "tolerations": _TOLERATIONS, "containers": [container], **self.spec}
        if self.priority == "patient":
            spec["preemptionPolicy"] = "Never"
        version = _OF_OWNERS.get(self.owner, "apps/v1")
        found = [self._controller(version, labels, spec)] if self.owner else []
        for index, on in enumerate(self.nodes):
            meta: Raw = {
                "name": f"{self.name}-{index}",
                "namespace": "default",
                "labels": labels,
                "uid": f"{self.name}-{index}",
            }
            meta["creationTimestamp"] = f"2026-01-01T00:00:{index:02}Z"
            if self.owner:
                meta["ownerReferences"] = [{"apiVersion": version, "kind": self.owner, **owned}]
            made: Raw = {**spec, "priority": _CLASSES[self.priority], "schedulerName": "default-scheduler"}
            pod: Raw = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": made}
            if self.owner == "DaemonSet":
                field: Raw = {"key": "metadata.name", "operator": "In", "values": [on]}
                made["affinity"] = {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": [{"matchFields": [field]}]}}}
            if on:
                made["nodeName"] = on
                conditions = [{"type": "PodScheduled", **_TRUE}, {"type": "Ready", **_TRUE}]
                pod["status"] = {"phase": "Running", "startTime": "2026-01-01T00:01:00Z", "conditions": conditions}
            elif self.gates:
                made["schedulingGates"] = [{"name": "example.com/quota"}]
            found.append(pod)
        return found

    def _controller(self, version: str, labels: Raw, spec: Raw) -> Raw:
        template = {"metadata": {"labels": labels}, "spec": spec}
        fields: Raw = {"selector": self.selector, "template": template}
        if self.owner != "DaemonSet":
            fields["replicas"] = len(self.nodes)
        if self.owner == "StatefulSet":
            fields |= {"serviceName": self.name, "podManagementPolicy": "Parallel"}
        elif self.owner == "ReplicationController":
            fields["selector"] = labels
        meta: Raw = {"name": self.name, "namespace": "default", "uid": f"uid-{self.name}"}
        return {"apiVersion": version, "kind": self.owner, "metadata": meta, "spec": fields}


def cluster_of(nodes: list[Raw], *workloads: Workload) -> Raw:
    """Return a List of the nodes, the workloads with their pods, and the priority classes."""
    classes: list[Raw] = [
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
        for name, value in _CLASSES.items()
    ]
    for each in classes:
        if each["metadata"]["name"] == "patient":
            each["preemptionPolicy"] = "Never"
    return {"apiVersion": "v1", "kind": "List", "items": [*nodes, *classes, *(o for w in workloads for o in w.objects)]}


def budget(name: str, allowed: int, expected: int = 3) -> Raw:
    """Return a budget over a workload's pods, with a status that allows so many disruptions."""
    status = {"disruptionsAllowed": allowed, "currentHealthy": expected, "desiredHealthy": expected - allowed}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default", "generation": 1},
        "spec": {"selector": {"matchLabels": {"app": name}}, "maxUnavailable": allowed},
        "status": {**status, "expectedPods": expected, "observedGeneration": 1},
    }


def random_cluster(seed: int, nodes: int = 8) -> Raw:
    """Return a random cluster of 3 nodes or more; its pods are on nodes with room for them, or pending."""
    draw = random.Random(seed)
    made = [_random_node(draw, f"n{index}") for index in range(draw.randint(3, nodes))]
    free = {each["metadata"]["name"]: int(each["status"]["allocatable"]["cpu"]) * 1000 for each in made}
    workloads = [Workload("agent", list(free), "DaemonSet", 250, "daemon", {"tolerations": [{"operator": "Exists"}]})]
    free = {name: left - 250 for name, left in free.items()}
    for index in range(draw.randint(2, nodes + 1)):
        workloads.append(_random_workload(draw, f"w{index}", free, nodes))
    found = cluster_of(made, *workloads)
    for each in workloads[1:]:
        if draw.random() < 0.2:
            found["items"].append(budget(each.name, draw.randint(0, 2), len(each.nodes)))
    return found


def varied_cluster(seed: int, nodes: int = 8) -> Raw:
    """Return a random cluster with more kinds of owners, rules and budgets, volumes, gates, gangs and DaemonSets."""
    draw = random.Random(f"varied {seed}")
    made = [_random_node(draw, f"n{index}") for index in range(draw.randint(3, nodes))]
    free = {each["metadata"]["name"]: int(each["status"]["allocatable"]["cpu"]) * 1000 - 250 for each in made}
    agent = Workload("agent", list(free), "DaemonSet", 250, "daemon", {"tolerations": [{"operator": "Exists"}]})
    workloads, others = [agent], []
    if draw.random() < 0.4:
        # A DaemonSet that may be preempted.
        logs = Workload("logs", [on for on in free if draw.random() < 0.9], "DaemonSet", 250, "low")
        logs.spec["tolerations"] = [{"operator": "Exists"}]
        free = {name: left - 250 * (name in logs.nodes) for name, left in free.items()}
        workloads.append(logs)
    for index in range(draw.randint(2, nodes + 1)):
        made_for = _random_workload(draw, f"w{index}", free, nodes)
        made_for.owner = draw.choice(_MORE_OWNERS)
        rules = _rules(draw, made_for) + _more_rules(draw, made_for)
        for rule in draw.sample(rules, draw.randint(0, 2)):
            made_for.spec |= rule
        made_for.gates = draw.random() < 0.1
        kind = draw.random()
        if kind < 0.1:
            others += _volume(draw, made_for)
        elif kind < 0.2:
            others.append(_gang(draw, made_for))
        if draw.random() < 0.3:
            others.append(_random_budget(draw, made_for))
        workloads.append(made_for)
    found = cluster_of(made, *workloads)
    found["items"] += others
    return found


GANGS: Raw = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "plugins": {"multiPoint": {"enabled": [{"name": "GangScheduling"}]}},
            "pluginConfig": [{"name": "GangScheduling", "args": {"releaseAfter": "0s"}}],
        }
    ],
}
"""A configuration for clusters with gangs, which keep their nodes if they lose some of them."""


def settled(objects: Raw, configuration: Raw | None = None) -> Raw:
    """Return the cluster as it is once all pending pods that fit or may preempt have a node."""
    options = RunOptions(
        termination_ns=0, configuration=podium.load(objects, configuration=configuration).settings.configuration
    )
    store = play_to_end(podium.load(objects).read, options).store
    kinds = dict.fromkeys(item["kind"] for item in objects["items"])
    return {**objects, "items": [stored.raw for kind in kinds for stored in store.objects(kind)]}


def _random_node(draw: random.Random, name: str) -> Raw:
    zone = draw.choice("abc")
    spec: Raw = {}
    if draw.random() < 0.1:
        spec["unschedulable"] = True
    if draw.random() < 0.1:
        spec["taints"] = [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]
    return node(name, zone, "big" if zone == "a" else "small", draw.choice((2, 4, 8)), **spec)


def _random_workload(draw: random.Random, name: str, free: dict[str, int], most: int) -> Workload:
    made = Workload(name, [], draw.choice(_OWNERS), draw.choice((250, 500, 1000, 1500)))
    made.priority = draw.choice(("low", "low", "low", "middle", "patient", "high", "high"))
    made.spec["tolerations"] = _tolerations(draw.choice((300, 300, 60, 0)))
    if draw.random() < 0.3:
        made.spec["tolerations"] += [{"key": "dedicated", "operator": "Exists"}]
    made.spec |= draw.choice(_rules(draw, made)) if draw.random() < 0.6 else {}
    for _ in range(draw.randint(1, max(6, most // 2))):
        allowed = [on for on in free if free[on] >= made.milli]
        made.nodes.append(draw.choice(allowed) if allowed else "")
        if allowed:
            free[made.nodes[-1]] -= made.milli
    return made


def _rules(draw: random.Random, workload: Workload) -> list[Raw]:
    """Return fields of which each limits where the pods may go, or what they may do."""
    key, spread = draw.choice((ZONE, HOST)), draw.choice(("DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"))
    own = {"labelSelector": workload.selector, "topologyKey": key}
    other = {"labelSelector": {"matchLabels": {"app": f"w{draw.randint(0, 3)}"}}, "topologyKey": key}
    constraint = {"maxSkew": draw.randint(1, 2), "whenUnsatisfiable": spread, **own}
    honors = {**constraint, "nodeTaintsPolicy": "Honor"}
    least = {**constraint, "whenUnsatisfiable": "DoNotSchedule", "minDomains": 3}
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": f"{workload.milli}m"}}}
    return [
        {"affinity": {"podAntiAffinity": {_REQUIRED: [{**own, "topologyKey": HOST}]}}},
        {"affinity": {"podAntiAffinity": {_REQUIRED: [other]}}},
        {"affinity": {"podAffinity": {_REQUIRED: [{**own, "topologyKey": ZONE}]}}},
        {"affinity": {"podAffinity": {_REQUIRED: [{**other, "topologyKey": ZONE}]}}},
        {"topologySpreadConstraints": [constraint]},
        {"topologySpreadConstraints": [honors]},
        {"topologySpreadConstraints": [least]},
        {"nodeSelector": {POOL: draw.choice(("big", "small"))}},
        {"containers": [{**container, "ports": [{"containerPort": 80, "hostPort": draw.choice((80, 81))}]}]},
    ]


def _more_rules(draw: random.Random, workload: Workload) -> list[Raw]:
    """Return more fields of which each limits where the pods may go, or says where they should go."""
    selects = {"matchExpressions": [{"key": ZONE, "operator": draw.choice(("In", "NotIn")), "values": ["a", "b"]}]}
    prefers = {"weight": draw.randint(1, 100), "preference": selects}
    term = {"labelSelector": workload.selector, "topologyKey": draw.choice((ZONE, HOST, POOL))}
    spread = [
        {
            "maxSkew": draw.randint(1, 3),
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": workload.selector,
            **more,
        }
        for more in ({"topologyKey": ZONE}, {"topologyKey": HOST, "nodeAffinityPolicy": "Ignore"})
    ]
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    return [
        {"affinity": {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": [selects]}}}},
        {"affinity": {"nodeAffinity": {preferred: [prefers]}}},
        {"affinity": {"podAntiAffinity": {preferred: [{"weight": 10, "podAffinityTerm": term}]}}},
        {"affinity": {"podAffinity": {preferred: [{"weight": 10, "podAffinityTerm": term}]}}},
        {"affinity": {"podAntiAffinity": {_REQUIRED: [{**term, "topologyKey": ZONE}]}}},
        {"topologySpreadConstraints": spread},
    ]


def _volume(draw: random.Random, workload: Workload) -> list[Raw]:
    """Let the pods mount a claim that is bound to a volume of a zone; return both."""
    name = f"data-{workload.name}"
    zone = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [draw.choice("abc")]}]}
    amount, modes = {"storage": "1Gi"}, ["ReadWriteOnce"]
    workload.spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]
    # Pods with a volume of a zone run nowhere else.
    workload.nodes = [""] * len(workload.nodes)
    claim = {"namespace": "default", "name": name, "uid": f"uid-{name}"}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": amount,
            "accessModes": modes,
            "storageClassName": "zonal",
            "csi": {"driver": "csi.example.com", "volumeHandle": name},
            "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **claim},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [zone]}},
        },
        "status": {"phase": "Bound"},
    }
    annotations = {"pv.kubernetes.io/bind-completed": "yes"}
    return [
        volume,
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {**claim, "annotations": annotations},
            "spec": {
                "accessModes": modes,
                "resources": {"requests": amount},
                "storageClassName": "zonal",
                "volumeName": name,
            },
            "status": {"phase": "Bound", "capacity": amount, "accessModes": modes},
        },
    ]


def _gang(draw: random.Random, workload: Workload) -> Raw:
    """Make the pods of a workload a gang that preempts no others, and return its group."""
    workload.priority = draw.choice(("low", "patient"))
    workload.spec["schedulingGroup"] = {"podGroupName": workload.name}
    gang = {"minCount": draw.randint(1, len(workload.nodes))}
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": workload.name, "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": gang}},
    }


def _random_budget(draw: random.Random, workload: Workload) -> Raw:
    """Return a budget in numbers or percentages; the disruption controller computes its status."""
    found = budget(workload.name, 0, len(workload.nodes))
    limit = {draw.choice(("maxUnavailable", "minAvailable")): draw.choice((0, 1, 2, "25%", "50%", "80%"))}
    found["spec"] = {"selector": found["spec"]["selector"], **limit}
    return found
