"""Random gangs for random fleets: groups of pods of several owners, placed together or not at all."""

from random import Random

from tests.store.objects import Raw, pod

GROUPS = ("ga", "gb", "gc")
ZONE = "topology.kubernetes.io/zone"
RELEASE_AFTER_S = 60
GANGS: Raw = {"GangScheduling": {"releaseAfter": f"{RELEASE_AFTER_S}s", "scheduleTimeout": "30s"}}
"""The arguments of plugins in a profile that places gangs."""
ENABLED = {"multiPoint": {"enabled": ["GangScheduling"]}}
"""What such a profile enables."""


def gangs(seed: int) -> list[Raw]:
    """Two or three groups, with pods that are made anew, pods of a Job, and bare ones."""
    random = Random(f"gangs:{seed}")
    objects: list[Raw] = []
    for name in GROUPS[: random.randint(2, 3)]:
        number = random.randint(2, 5)
        objects.append(_group(name, random.randint(2, number), random))
        objects += _pods(name, number, random)
    return objects


def later(seed: int) -> list[Raw]:
    """Return what comes on the way: more pods, and pods of a group that comes after them."""
    random = Random(f"gangs-later:{seed}")
    late = _group("gd", 2, random)
    at = random.randint(10, 200)
    return [
        {"at": f"{random.randint(5, 200)}s", "apply": [_bare("ga", "ga-more", random)]},
        {"at": f"{at}s", "apply": _pods("gd", random.randint(2, 4), random)},
        {"at": f"{max(at + random.randint(-5, 30), 1)}s", "apply": [late]},
    ]


def _group(name: str, least: int, random: Random) -> Raw:
    spec: Raw = {"schedulingPolicy": {"gang": {"minCount": least}}}
    if random.random() < 0.3:
        spec["schedulingConstraints"] = {"topology": [{"key": ZONE}]}
    if random.random() < 0.4:
        spec["disruptionMode"] = "PodGroup"
    if random.random() < 0.3:
        spec["priorityClassName"] = random.choice(("low", "middle", "high"))
    kind = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup"}
    return {**kind, "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def _pods(group: str, number: int, random: Random) -> list[Raw]:
    match random.choice(("ReplicaSet", "ReplicaSet", "Job", "Pod")):
        case "Pod":
            return [_bare(group, f"{group}-{index}", random) for index in range(number)]
        case "Job":
            template = _template(group, random)
            template["spec"]["restartPolicy"] = "Never"
            template["metadata"]["annotations"] = {"podium.dev/duration": f"{random.randint(20, 120)}s"}
            spec: Raw = {"parallelism": number, "completions": number, "backoffLimit": 100, "template": template}
            metadata = {"name": group, "namespace": "default"}
            return [{"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}]
    spec = {"replicas": number, "selector": {"matchLabels": {"app": group}}, "template": _template(group, random)}
    return [
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": group, "namespace": "default"}}
        | {"spec": spec}
    ]


def _template(group: str, random: Random) -> Raw:
    return {"metadata": {"labels": {"app": group}}, "spec": _spec(group, random)}


def _bare(group: str, name: str, random: Random) -> Raw:
    raw = pod(name, labels={"app": group}, spec={})
    return {**raw, "spec": {**raw["spec"], **_spec(group, random)}}


def _spec(group: str, random: Random) -> Raw:
    spec: Raw = pod("", cpu=random.randint(1, 3))["spec"]
    if random.random() < 0.5:
        spec["priorityClassName"] = random.choice(("low", "middle", "high"))
    spec["terminationGracePeriodSeconds"] = random.choice((0, 2, 10))
    return {**spec, "schedulingGroup": {"podGroupName": group}}
