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
        found: list[Raw] = []
        if self.owner:
            template = {"metadata": {"labels": labels}, "spec": spec}
            fields: Raw = {"selector": self.selector, "template": template}
            if self.owner != "DaemonSet":
                fields["replicas"] = len(self.nodes)
            if self.owner == "StatefulSet":
                fields |= {"serviceName": self.name, "podManagementPolicy": "Parallel"}
            meta: Raw = {"name": self.name, "namespace": "default", "uid": f"uid-{self.name}"}
            found.append({"apiVersion": "apps/v1", "kind": self.owner, "metadata": meta, "spec": fields})
        for index, on in enumerate(self.nodes):
            meta = {
                "name": f"{self.name}-{index}",
                "namespace": "default",
                "labels": labels,
                "uid": f"{self.name}-{index}",
            }
            meta["creationTimestamp"] = f"2026-01-01T00:00:{index:02}Z"
            if self.owner:
                meta["ownerReferences"] = [{"apiVersion": "apps/v1", "kind": self.owner, **owned}]
            made = {**spec, "priority": _CLASSES[self.priority], "schedulerName": "default-scheduler"}
            pod: Raw = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": made}
            if on:
                made["nodeName"] = on
                conditions = [{"type": "PodScheduled", **_TRUE}, {"type": "Ready", **_TRUE}]
                pod["status"] = {"phase": "Running", "startTime": "2026-01-01T00:01:00Z", "conditions": conditions}
            found.append(pod)
        return found


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


def settled(objects: Raw) -> Raw:
    """Return the cluster as it is once all pending pods that fit or may preempt have a node."""
    store = play_to_end(podium.load(objects).read, RunOptions(termination_ns=0)).store
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
