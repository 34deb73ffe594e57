"""Manifests that kube-apiserver would refuse are reported, and still explained and simulated without a traceback."""

from __future__ import annotations

import podium
from podium.api.errors import InputError
from podium.api.input.codec import decode
from podium.api.input.documents import refuse_empty_pod
from podium.app.explaining.explainer import Explainer
from tests.api.manifests import Raw, changed, pod, workload
from tests.api.test_validation_of_objects import REFUSED as REFUSED_OBJECTS
from tests.api.test_validation_pods import REFUSED

LABELS = {"app": "web"}
NODES: list[Raw] = [
    {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"zone": name, "kubernetes.io/hostname": name}},
        "spec": {"taints": [{"key": "a", "value": "3", "effect": "PreferNoSchedule"}]},
        "status": {
            "allocatable": {"cpu": 99, "memory": "99Gi", "pods": 999, "nvidia.com/gpu": 9, "hugepages-2Mi": "8Mi"}
        },
    }
    for name in ("n1", "n2")
]
CLASSES: list[Raw] = [
    {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 5},
    {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "kata"}, "handler": "kata"},
]
# Names that no class can have.
RENAMED = {"priorityClassName": "high", "runtimeClassName": "kata"}


def is_taken(raw: Raw) -> bool:
    try:
        object_ = decode(raw)
        if object_ is not None:
            refuse_empty_pod(object_)
        return object_ is not None
    except InputError:
        return False


def odd_pods() -> list[Raw]:
    """Pods with one thing wrong each, pending and on a node, as far as anything can be done with them."""
    found = []
    for index, (changes, _) in enumerate(REFUSED):
        spec = changed(pod()["spec"], changes)
        spec |= {name: known for name, known in RENAMED.items() if name in spec}
        spec.pop("nodeName", None)
        found.append({**pod(), "metadata": {"name": f"pending-{index}", "labels": LABELS}, "spec": spec})
        placed = {**spec, "nodeName": "n1"}
        found.append({**pod(), "metadata": {"name": f"placed-{index}", "labels": LABELS}, "spec": placed})
    return [raw for raw in found if is_taken(raw) and raw["spec"].get("containers")]


def test_pods_with_one_thing_wrong_are_explained() -> None:
    pods = odd_pods()
    explainer = Explainer(found for raw in [*NODES, *CLASSES, *pods] if (found := decode(raw)) is not None)

    pending = [raw["metadata"]["name"] for raw in pods if "nodeName" not in raw["spec"]]
    outcomes = {explainer.explain(f"default/{name}").outcome for name in pending}

    assert len(pending) > 80
    assert "schedulable" in outcomes


def test_pods_with_one_thing_wrong_are_made_and_played() -> None:
    templates = [raw["spec"] for raw in odd_pods() if "nodeName" not in raw["spec"]]
    sets = [workload("ReplicaSet", template={"metadata": {"labels": LABELS}, "spec": spec}) for spec in templates]
    for index, one in enumerate(sets):
        one["metadata"]["name"] = f"web-{index}"

    result = podium.simulate([*NODES, *CLASSES, *odd_pods(), *sets], until="20s")

    assert result.to_dict()


def test_other_objects_with_one_thing_wrong_are_played() -> None:
    wrong = [changed(raw, changes) for raw, changes, _ in REFUSED_OBJECTS]
    for index, one in enumerate(wrong):
        one["metadata"]["name"] = f"odd-{index}"
    taken = [one for one in wrong if is_taken(one) and one["kind"] not in ("LimitRange", "ResourceQuota")]

    assert len(taken) > 30
    assert podium.simulate([*NODES, pod(), *taken], until="20s").to_dict()
