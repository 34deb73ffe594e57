"""A cluster after a scale-up: two full nodes, an empty one, and a ReplicaSet's pods with a budget."""

from __future__ import annotations

from pathlib import Path

import yaml

from podium.api.input.codec import Input, read_input
from tests.store.objects import Raw, node, pod, replicated

OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "rs-web", "controller": True}
CONFIGURATION = {"apiVersion": "podium.dev/v1alpha1", "kind": "ReschedulerConfiguration"}


def web(number: int, node_name: str, **more: object) -> Raw:
    """Return a pod of the ReplicaSet, of one cpu."""
    spec: Raw = {"terminationGracePeriodSeconds": 0, **more}
    return pod(f"web-{number}", node=node_name, labels={"app": "web"}, metadata={"ownerReferences": [OWNER]}, spec=spec)


def replica_set(replicas: int) -> Raw:
    """Return what makes the pods anew."""
    return replicated("ReplicaSet", "web", replicas, web(0, "")["spec"], uid="rs-web")


def budget(most: int) -> Raw:
    """So many may be down at a time."""
    spec = {"maxUnavailable": most, "selector": {"matchLabels": {"app": "web"}}}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"}, "spec": spec}


def scaled_up(**of_pods: object) -> list[Raw]:
    """Return the cluster's objects."""
    pods = [web(number, "old-1" if number < 4 else "old-2", **of_pods) for number in range(7)]
    return [*(node(name, cpu=4) for name in ("old-1", "old-2", "new-1")), replica_set(7), budget(3), *pods]


def written(folder: Path, *objects: Raw, name: str = "cluster.yaml") -> str:
    """Return a file of the objects."""
    path = folder / name
    path.write_text(yaml.safe_dump_all(objects))
    return str(path)


def read(folder: Path, *objects: Raw) -> Input:
    """Return the objects as a command reads them."""
    return read_input([written(folder, *objects)])
