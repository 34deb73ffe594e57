"""One object of each kind that Podium reads, with as many fields as real ones have, and the examples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from podium.api.input.codec import load_files
from podium.api.kinds import KINDS

Raw = dict[str, Any]
EXAMPLES = Path(__file__).parents[2] / "examples"
TIME = "2026-01-01T00:00:00Z"
LABELS = {"app": "web"}
SELECTOR = {"matchLabels": LABELS, "matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "db"]}]}
TERM = {"topologyKey": "zone", "labelSelector": SELECTOR, "namespaces": ["default"], "namespaceSelector": {}}
NODE_TERM = {"matchExpressions": [{"key": "zone", "operator": "Exists"}], "matchFields": []}
REQUIRED, PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "ReplicaSet-web", "controller": True}
CONDITION = {"type": "Ready", "status": "True", "reason": "Fine", "message": "fine", "lastTransitionTime": TIME}
CONTAINER = {
    "name": "main",
    "image": "web",
    "env": [{"name": "A", "value": "b"}],
    "ports": [{"containerPort": 80, "hostPort": 8080, "hostIP": "10.0.0.1", "protocol": "TCP"}],
    "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "64Mi"}},
    "volumeMounts": [{"name": "data", "mountPath": "/data"}],
}
POD_SPEC = {
    "containers": [CONTAINER],
    "initContainers": [{"name": "first", "image": "web", "restartPolicy": "Always"}],
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "priority": 5,
    "priorityClassName": "high",
    "preemptionPolicy": "PreemptLowerPriority",
    "terminationGracePeriodSeconds": 30,
    "restartPolicy": "Always",
    "schedulerName": "default-scheduler",
    "overhead": {"cpu": "10m"},
    "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}],
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": SELECTOR}
    ],
    "affinity": {
        "nodeAffinity": {
            REQUIRED: {"nodeSelectorTerms": [NODE_TERM]},
            PREFERRED: [{"weight": 1, "preference": NODE_TERM}],
        },
        "podAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": TERM}]},
        "podAntiAffinity": {REQUIRED: [{**TERM, "topologyKey": "kubernetes.io/hostname"}]},
    },
    "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "web"}}, {"name": "tmp", "emptyDir": {}}],
}
POD_STATUS = {
    "phase": "Running",
    "startTime": TIME,
    "conditions": [CONDITION],
    "containerStatuses": [
        {
            "name": "main",
            "restartCount": 1,
            "ready": True,
            "state": {"running": {"startedAt": TIME}},
            "lastState": {"terminated": {"exitCode": 1, "finishedAt": TIME, "reason": "Error"}},
        }
    ],
}
TEMPLATE = {"metadata": {"labels": LABELS, "annotations": {"a": "b"}}, "spec": POD_SPEC}
WORKLOAD = {"replicas": 2, "minReadySeconds": 1, "selector": {"matchLabels": LABELS}, "template": TEMPLATE}
COUNTS = {"replicas": 1, "readyReplicas": 1, "availableReplicas": 1, "observedGeneration": 1, "conditions": [CONDITION]}
REVISION = {"spec": {"template": {**TEMPLATE, "$patch": "replace"}}}
TAINT = {"key": "a", "value": "b", "effect": "NoExecute", "timeAdded": TIME}
ANNOTATIONS = {
    "Node": {"scheduler.alpha.kubernetes.io/preferAvoidPods": '{"preferAvoidPods": []}'},
    "PersistentVolumeClaim": {"pv.kubernetes.io/bind-completed": "yes"},
    "Pod": {"podium.dev/duration": "90s", "podium.dev/ready-after": "1s", "podium.dev/memory-usage": "1Mi"},
    "PodDisruptionBudget": {"podium.dev/max-disruptions": "1/1h"},
    "PriorityClass": {"podium.dev/preemption-policy": "Never"},
}
DEVICES = {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "web", "count": 1}}]}
BODIES: dict[str, Raw] = {
    "CSIDriver": {"spec": {"storageCapacity": True}},
    "CSINode": {
        "spec": {"drivers": [{"name": "web", "nodeID": "a", "topologyKeys": ["zone"], "allocatable": {"count": 3}}]}
    },
    "VolumeAttachment": {
        "spec": {"attacher": "web", "nodeName": "a", "source": {"persistentVolumeName": "a"}},
        "status": {"attached": True},
    },
    "CSIStorageCapacity": {"storageClassName": "web", "capacity": "1Gi", "nodeTopology": SELECTOR},
    "ControllerRevision": {"revision": 1, "data": REVISION},
    "CronJob": {
        "spec": {
            "schedule": "*/5 * * * *",
            "startingDeadlineSeconds": 60,
            "jobTemplate": {"spec": {"template": {**TEMPLATE, "spec": {**POD_SPEC, "restartPolicy": "Never"}}}},
        },
        "status": {"lastScheduleTime": TIME, "lastSuccessfulTime": TIME},
    },
    "DaemonSet": {
        "spec": {
            "selector": {"matchLabels": LABELS},
            "template": TEMPLATE,
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%"}},
        },
        "status": {"observedGeneration": 1, "conditions": [CONDITION]},
    },
    "Deployment": {
        "spec": {
            **WORKLOAD,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": "25%"}},
            "progressDeadlineSeconds": 600,
        },
        "status": COUNTS,
    },
    "DeviceClass": {"spec": {"selectors": [{"cel": {"expression": "device.driver == 'a.com'"}}]}},
    "DeviceTaintRule": {
        "spec": {
            "deviceSelector": {"driver": "b.com"},
            "taint": {"key": "a", "effect": "NoSchedule", "timeAdded": TIME},
        }
    },
    "ResourceClaim": {"spec": {"devices": DEVICES}},
    "ResourceClaimTemplate": {"spec": {"spec": {"devices": DEVICES}}},
    "ResourceSlice": {
        "spec": {
            "driver": "a.com",
            "nodeName": "web",
            "pool": {"name": "web", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "a", "attributes": {"x": {"string": "y"}}, "capacity": {"memory": {"value": "1Gi"}}}],
        }
    },
    "DisruptionPolicy": {
        "spec": {
            "priorities": "high > low",
            "caps": [{"component": "drain", "max": "5/1h"}],
            "defaultBudgets": [{"maxUnavailable": 1}],
            "avoidLists": {"maxEntries": 3, "expireAfter": "1h"},
        },
        "status": {"caps": [{"component": "drain", "fullTime": TIME}]},
    },
    "Job": {
        "spec": {
            "parallelism": 2,
            "completions": 3,
            "backoffLimit": 2,
            "activeDeadlineSeconds": 600,
            "ttlSecondsAfterFinished": 60,
            "template": {**TEMPLATE, "spec": {**POD_SPEC, "restartPolicy": "Never"}},
            "podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]},
        },
        "status": {"startTime": TIME, "succeeded": 1, "conditions": [CONDITION], "completionTime": TIME},
    },
    "LimitRange": {"spec": {"limits": [{"type": "Container", "default": {"cpu": 1}, "max": {"cpu": 4}}]}},
    "Namespace": {"spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}},
    "Node": {
        "spec": {"taints": [TAINT], "unschedulable": False, "providerID": "a"},
        "status": {
            "capacity": {"cpu": "4", "memory": "8Gi", "pods": "10", "attachable-volumes-aws-ebs": "39"},
            "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10", "hugepages-2Mi": "0"},
            "conditions": [{**CONDITION, "lastHeartbeatTime": TIME}],
            "images": [{"names": ["web"], "sizeBytes": 1000}],
        },
    },
    "PersistentVolume": {
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "csi": {"driver": "web", "volumeHandle": "a"},
            "claimRef": {"namespace": "default", "name": "web", "uid": "PersistentVolumeClaim-web"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [NODE_TERM]}},
        },
        "status": {"phase": "Bound"},
    },
    "PersistentVolumeClaim": {
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "volumeName": "web",
            "storageClassName": "web",
        },
        "status": {"phase": "Bound"},
    },
    "Pod": {"spec": {**POD_SPEC, "activeDeadlineSeconds": 3600, "nodeName": "web"}, "status": POD_STATUS},
    "PodDisruptionBudget": {
        "spec": {"maxUnavailable": 1, "selector": SELECTOR},
        "status": {
            "disruptionsAllowed": 1,
            "disruptedPods": {"web": TIME},
            "conditions": [CONDITION],
            "disruptionRate": {"max": "1/1h", "available": 1, "fullTime": TIME},
        },
    },
    "PodGroup": {
        "spec": {
            "podGroupTemplateRef": {"workload": {"workloadName": "web", "podGroupTemplateName": "workers"}},
            "schedulingPolicy": {"gang": {"minCount": 1}},
            "schedulingConstraints": {"topology": [{"key": "zone"}]},
            "disruptionMode": "PodGroup",
        },
        "status": {"conditions": [{**CONDITION, "type": "PodGroupScheduled"}]},
    },
    "PriorityClass": {"value": 5, "preemptionPolicy": "PreemptLowerPriority", "globalDefault": False},
    "ReplicaSet": {"spec": WORKLOAD, "status": COUNTS},
    "ReplicationController": {"spec": {**WORKLOAD, "selector": LABELS}, "status": COUNTS},
    "ResourceQuota": {
        "spec": {
            "hard": {"pods": "10", "requests.cpu": "4"},
            "scopeSelector": {
                "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]
            },
        },
        "status": {"hard": {"pods": "10"}, "used": {"pods": "1"}},
    },
    "RuntimeClass": {"handler": "web", "overhead": {"podFixed": {"cpu": "1"}}, "scheduling": {"nodeSelector": {}}},
    "Service": {"spec": {"selector": LABELS, "ports": [{"port": 80, "targetPort": "http"}]}},
    "StatefulSet": {
        "spec": {
            **WORKLOAD,
            "serviceName": "web",
            "ordinals": {"start": 1},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}},
            "volumeClaimTemplates": [
                {"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}
            ],
        },
        "status": {**COUNTS, "currentRevision": "web", "updateRevision": "web"},
    },
    "StorageClass": {
        "provisioner": "web",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}],
    },
}


def manifests() -> list[Raw]:
    """Return an object of every kind that has a body above, as a cluster has stored it, in the order of the kinds."""
    return [_made(*key) for key in KINDS if key[1] in BODIES]


def scenarios() -> list[list[Raw]]:
    """Return the objects of each example that plays a scenario."""
    inputs = ([one.raw for one in load_files([file])] for file in sorted(EXAMPLES.glob("*.yaml")))
    return [raws for raws in inputs if any(raw["kind"] == "Scenario" for raw in raws)]


def _made(group: str, name: str) -> Raw:
    kind = KINDS[group, name]
    metadata: Raw = {
        "name": "default" if name == "DisruptionPolicy" else "high" if name == "PriorityClass" else "web",
        "uid": f"{name}-web",
        "resourceVersion": "1",
        "generation": 1,
        "creationTimestamp": TIME,
        "labels": LABELS,
        "annotations": ANNOTATIONS.get(name, {}),
    }
    if name == "Node":
        metadata["labels"] = {"zone": "a", "kubernetes.io/hostname": "web", "kubernetes.io/os": "linux"}
    if kind.namespaced:
        metadata["namespace"] = "default"
    if name == "Pod":
        metadata |= {"ownerReferences": [OWNER], "deletionGracePeriodSeconds": 30, "finalizers": ["example.com/a"]}
    return {"apiVersion": kind.api_version, "kind": name, "metadata": metadata, **BODIES[name]}
