"""The objects of a soak's rounds, with names of their own in each round.

`cluster_round` is a simulated cluster's: the first half of its objects is taken away one by one, the second with its
namespace. `surroundings` and `busy_pods` are what a scheduler alone is shown.
"""

from __future__ import annotations

from typing import Any

from podium.api.meta import Kubernetes, ObjectMeta
from podium.api.node import CSINode, CSINodeDriver, CSINodeSpec, VolumeNodeResources
from podium.api.pod import AWSElasticBlockStore, PersistentVolumeClaimVolumeSource, Pod, Volume
from podium.api.storage import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
    StorageClass,
    VolumeAttachment,
    VolumeAttachmentSource,
    VolumeAttachmentSpec,
)
from podium.plugins.rescheduling.registry import IN_TREE
from tests import builders as build
from tests import devices
from tests.builders import HOSTNAME, ZONE
from tests.sim.fleet_stories import LEAVE_BAD
from tests.sim.objects import budget, job
from tests.store.objects import Raw, disruption_policy, node, pod, priority_class, quota

ROUND_S = 3600
AUTOSCALER: Raw = {
    "nodeGroups": [{"name": "pool", "min": 0, "max": 3, "startUp": "30s", "template": node("", cpu=8)}],
    "scaleDown": {"unneededTime": "2m", "delayAfterAdd": "2m"},
}

NEEDED: Raw = {"ReplaceOldPods": {"maxAge": "40m"}}
"""The required arguments of policies."""

RESCHEDULER: Raw = {
    "aggressiveness": "Bold",
    "policies": [{"name": LEAVE_BAD, "weight": 5}, *({"name": name, "args": NEEDED.get(name, {})} for name in IN_TREE)],
    # Most of a soak's time is planning.
    "interval": "4m",
    "scope": {"minimumAge": "10s"},
    "coolDown": "5m",
}

SMALL: Raw = pod("", cpu="100m")["spec"]


def node_in(zone: str, name: str, **labels: str) -> Raw:
    raw = node(name, cpu=8)
    raw["metadata"]["labels"] = {HOSTNAME: name, ZONE: zone, **labels}
    return raw


BASE = [*(node_in(f"z{n}", f"base-{n}") for n in range(3)), priority_class("high", 1000)]


def cluster_round(number: int) -> list[Raw]:
    """Return the steps of a round: everything comes, lives through some trouble, and is taken away."""
    begin, name = number * ROUND_S, f"r{number}"
    things, lone = [*surrounding_things(name), *workloads(name, "default")], lone_pods(name, number)
    extra, space = f"{name}-node", f"{name}-space"
    inhabitants = [*workloads(name, space), *rules(name, space), *users_of_devices(name, space)]
    return [
        {"at": f"{begin}s", "apply": [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}}]},
        {"at": f"{begin}s", "apply": [*things, *inhabitants]},
        {"at": f"{begin + 50}s", "apply": lone},
        {
            "at": f"{begin + 100}s",
            "evict": {
                "namespace": space,
                "name": f"{name}-numbered-0",
                "avoidNode": True,
                "replacement": {"first": True, "nodeName": "base-1"},
            },
        },
        {"at": f"{begin + 200}s", "drain": {"name": "base-0", "timeout": "2m"}},
        {"at": f"{begin + 300}s", "nodeDown": {"name": extra}},
        {"at": f"{begin + 400}s", "uncordon": {"name": "base-0"}},
        {"at": f"{begin + 500}s", "nodeUp": {"name": extra}},
        {"at": f"{begin + 450}s", "apply": [node_in("z2", "base-2", bad="yes")]},
        {"at": f"{begin + 700}s", "apply": [node_in("z2", "base-2", bad="no")]},
        {"at": f"{begin + 750}s", "apply": [taint_rule(name)]},
        {"at": f"{begin + 800}s", "delete": target_of(taint_rule(name))},
        {"at": f"{begin + 900}s", "scale": {"kind": "Deployment", "namespace": "default", "name": name, "replicas": 1}},
        {"at": f"{begin + 1100}s", "delete": {"kind": "Namespace", "name": space}},
        *(
            {"at": f"{begin + 1200 + 60 * (one['kind'] == 'Node')}s", "delete": target_of(one)}
            for one in [*lone, *things]
        ),
        {"at": f"{begin + ROUND_S - 1}s", "uncordon": {"name": "base-0"}},
    ]


def target_of(one: Raw) -> Raw:
    meta = one["metadata"]
    return {"kind": one["kind"], **{field: meta[field] for field in ("namespace", "name") if field in meta}}


def labels_of(name: str) -> dict[str, str]:
    return {"app": name, f"own-{name}": "yes"}


def meta(name: str, namespace: str = "default") -> Raw:
    return {"metadata": {"name": name, "namespace": namespace}}


def surrounding_things(name: str) -> list[Raw]:
    """Return what belongs to no namespace: a node with devices, their class, and the policy of disruptions."""
    extra = node_in(f"z-{name}", f"{name}-node", **{f"label-{name}": name})
    extra["spec"] = {"taints": [{"key": f"taint-{name}", "value": name, "effect": "PreferNoSchedule"}]}
    gpus = [devices.device(f"gpu-{one}", **devices.attributes(**{f"made-{name}": True})) for one in range(3)]
    gpus[2]["taints"] = [{"key": f"taint-{name}", "effect": "NoSchedule"}]
    return [
        extra,
        devices.devices_of(f"{name}-node", *gpus, name=f"{name}-gpus"),
        devices.devices_of("base-2", *gpus, name=f"{name}-base-gpus", pool=name),
        devices.device_class(f"{name}-gpu", f"device.attributes['{devices.DRIVER}']['made-{name}']"),
        disruption_policy(
            defaultBudgets=[{"maxUnavailable": "50%"}],
            budgetBounds=[{"minDisruptions": 1, "minRate": "1/1h"}],
            caps=[{"component": "drain", "max": "30/1m"}, {"max": "60/1m", "per": "Namespace"}],
            avoidLists={"expireAfter": "2m"},
        ),
    ]


def taint_rule(name: str) -> Raw:
    """Return a rule that evicts the pods with devices of the round's node."""
    return {
        "apiVersion": "resource.k8s.io/v1beta2",
        "kind": "DeviceTaintRule",
        "metadata": {"name": f"{name}-broken"},
        "spec": {
            "deviceSelector": {"pool": f"{name}-node"},
            "taint": {"key": f"broken-{name}", "effect": "NoExecute"},
        },
    }


def lone_pods(name: str, number: int) -> list[Raw]:
    """Pods without a workload: of a port, a label, of no node, with a volume, and some that preempt others."""
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    own = {"name": "own", "ephemeral": {"volumeClaimTemplate": {"spec": asked}}}
    ports = {"containers": [{"name": "main", "image": "i", "ports": [{"containerPort": 1, "hostPort": 1000 + number}]}]}
    return [
        pod(f"{name}-port", spec=ports, labels={"app": f"{name}-port"}),
        pod(f"{name}-where", spec={"nodeSelector": {f"label-{name}": name}}),
        pod(f"{name}-nowhere", cpu=1000),
        pod(f"{name}-volume", spec={"volumes": [own]}),
        *(pod(f"{name}-low-{one}", cpu=7, labels={"app": f"{name}-low"}) for one in range(6)),
        *(pod(f"{name}-high-{one}", cpu=7, priority=1000, spec={"priorityClassName": "high"}) for one in range(2)),
    ]


def workloads(name: str, namespace: str) -> list[Raw]:
    """One of each kind that makes pods, a budget over them that has a rate, and a service."""
    labels = labels_of(name)
    inner = {"metadata": {"labels": labels}, "spec": SMALL}
    short = {
        "metadata": {"labels": {"app": f"{name}-job"}, "annotations": {"podium.dev/duration": "20s"}},
        "spec": {**inner["spec"], "restartPolicy": "Never"},
    }
    others = {"app": f"{name}-daemon"}
    daemon = {**inner, "metadata": {"labels": others}}
    set_of: Raw = {"selector": {"matchLabels": labels}, "template": inner}
    picky = {**set_of, "replicas": 2, "template": picky_template(labels)}
    numbered = {**set_of, "replicas": 2, "serviceName": name}
    often = {"schedule": "*/5 * * * *", "jobTemplate": {"spec": job("", template=short)["spec"]}}
    rated = budget(name, selector={"matchLabels": labels}, maxUnavailable=1)
    rated["metadata"] |= {"namespace": namespace, "annotations": {"podium.dev/max-disruptions": "3/10m"}}

    def of(group: str, kind: str, suffix: str, spec: Raw) -> Raw:
        return {"apiVersion": group, "kind": kind, **meta(f"{name}{suffix}", namespace), "spec": spec}

    return [
        of("v1", "Service", "", {"selector": labels, "ports": [{"port": 80}]}),
        of("apps/v1", "Deployment", "", picky),
        of("apps/v1", "ReplicaSet", "-set", {**set_of, "replicas": 2}),
        of("apps/v1", "StatefulSet", "-numbered", numbered),
        of("apps/v1", "DaemonSet", "-daemon", {"selector": {"matchLabels": others}, "template": daemon}),
        of("batch/v1", "Job", "-job", job("", template=short, completions=2)["spec"]),
        of("batch/v1", "CronJob", "-often", often),
        rated,
    ]


def picky_template(labels: dict[str, str]) -> Raw:
    """Return a template of pods with terms and constraints of their own."""
    near = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": labels}}
    spread = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": labels},
    }
    affinity: Raw = {
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [near]},
        "podAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "podAffinityTerm": {**near, "topologyKey": ZONE}}
            ]
        },
    }
    spec = {**SMALL, "affinity": affinity, "topologySpreadConstraints": [spread]}
    return {"metadata": {"labels": labels}, "spec": spec}


def rules(name: str, namespace: str) -> list[Raw]:
    """Return what a namespace lets in, with a budget that would be stricter than it may be."""
    limits = [{"type": "Container", "default": {"memory": "1Gi"}, "defaultRequest": {"memory": "1Gi"}}]
    never = budget(f"{name}-never", selector={"matchLabels": {"app": f"{name}-devices"}}, minAvailable="100%")
    never["metadata"]["namespace"] = namespace
    counted = quota(f"{name}-quota", {"pods": "40"})
    counted["metadata"]["namespace"] = namespace
    return [
        {"apiVersion": "v1", "kind": "LimitRange", **meta(f"{name}-limits", namespace), "spec": {"limits": limits}},
        counted,
        never,
    ]


def users_of_devices(name: str, namespace: str) -> list[Raw]:
    """Pods with claims of their own, one with a claim that was there, and one that asks for too much."""
    one, many = (devices.request(of=f"{name}-gpu", count=count) for count in (1, 9))
    labels = {"app": f"{name}-devices"}
    own = devices.using({"spec": SMALL, "metadata": {"labels": labels}}, template=f"{name}-one")
    raws = [
        devices.claim_template(f"{name}-one", one),
        devices.claim_template(f"{name}-many", many),
        devices.claim(f"{name}-shared", one),
        devices.using(pod(f"{name}-shares", cpu="100m"), f"{name}-shared"),
        devices.using(pod(f"{name}-in-vain", cpu="100m"), template=f"{name}-many"),
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": f"{name}-devices"},
            "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": own},
        },
    ]
    for raw in raws:
        raw["metadata"]["namespace"] = namespace
    del raws[2]["metadata"]["uid"]
    return raws


# What a scheduler alone is shown


def surroundings(number: int) -> list[Kubernetes]:
    """Return what schedulers look at besides pods, under names of the round."""
    name = f"r{number}"
    return [
        build.namespace(name, team=name),
        build.node(
            f"{name}-node",
            zone=f"z-{name}",
            taints=[f"dedicated-{name}=yes:PreferNoSchedule"],
            images={f"image-{name}": 10**9},
            avoids=[f"ReplicaSet/{name}"],
            **gpu(number),
        ),
        build.budget(name, f"app={name}", 1, namespace=name),
        build.service(name, namespace=name, app=name),
        build.replica_set(name, f"app={name}", namespace=name),
        StorageClass(metadata=ObjectMeta(name=f"{name}-class"), provisioner=f"{name}.example.com"),
        PersistentVolume(
            metadata=ObjectMeta(name=f"{name}-volume", labels={ZONE: "z1"}),
            spec=PersistentVolumeSpec(capacity={"storage": "1Gi"}, storage_class_name=f"{name}-class"),
        ),
        PersistentVolumeClaim(
            metadata=ObjectMeta(name="data", namespace=name),
            spec=PersistentVolumeClaimSpec(volume_name=f"{name}-volume", storage_class_name=f"{name}-class"),
        ),
        VolumeAttachment(
            metadata=ObjectMeta(name=f"{name}-attachment"),
            spec=VolumeAttachmentSpec(
                attacher=f"{name}.example.com",
                node_name="base-1",
                source=VolumeAttachmentSource(persistent_volume_name=f"{name}-volume"),
            ),
        ),
        CSINode(
            metadata=ObjectMeta(name="base-1"),
            spec=CSINodeSpec(
                drivers=(
                    CSINodeDriver(name="ebs.csi.aws.com", allocatable=VolumeNodeResources(count=1)),
                    CSINodeDriver(name=f"{name}.example.com", allocatable=VolumeNodeResources(count=1)),
                )
            ),
        ),
    ]


def busy_pods(number: int) -> list[Pod]:
    """Pods with terms, constraints, ports and needs of their own, and some that preempt others."""
    name = f"r{number}"
    labels = {"app": name, f"own-{name}": "yes"}
    term = build.term(f"app={name}", HOSTNAME)
    wide = build.term(f"app={name}", ZONE, in_namespaces=f"team={name}")
    common: dict[str, Any] = {"namespace": name, "labels": labels}
    return [
        build.pod("apart", **common, apart=[term, wide]),
        build.pod("near", **common, near=[wide]),
        build.pod("likes", **common, likes=[(number + 1, term)], dislikes=[(number + 2, wide)]),
        build.pod(
            "spread",
            **common,
            spread=[build.spread_over(ZONE, f"app={name}"), build.spread_over(HOSTNAME, f"app={name}", soft=True)],
        ),
        build.pod("gpu", **common, **gpu(number)),
        build.pod("port", **common, ports=[1000 + number]),
        build.pod("selects", **common, node_selector={ZONE: f"z-{name}"}),
        build.pod("selects-in-vain", **common, node_selector={f"key-{name}": name}),
        build.pod("mounts", **common, spec={"volumes": volumes(number)}),
        build.pod("mounts-too", **common, spec={"volumes": volumes(number)}),
        build.pod("owned", **common, owner=f"ReplicaSet/{name}"),
        *(build.pod(f"low-{one}", **common, cpu=6) for one in range(4)),
        *(build.pod(f"high-{one}", **common, cpu=6, priority=10 + number) for one in range(2)),
    ]


def gpu(number: int) -> dict[str, Any]:
    return {f"example_com__gpu_{number}": 1}


def volumes(number: int) -> tuple[Volume, ...]:
    return (
        Volume(name="data", persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name="data")),
        Volume(name="disk", aws_elastic_block_store=AWSElasticBlockStore(volume_id=f"volume-{number}")),
    )
