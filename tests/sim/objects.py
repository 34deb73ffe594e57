"""Workloads, budgets and scenarios as users write them, for tests of the simulation."""

import json
from copy import deepcopy
from typing import Any

from podium.api.input.codec import Document, load_text
from tests.store.objects import Raw, pod, replicated

TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": pod("")["spec"]}


def workload(kind: str, name: str, replicas: int, *, template: Raw = TEMPLATE, **metadata: Any) -> Raw:
    """Return a Deployment or ReplicaSet of pods labelled app=web; the caller may change it."""
    raw = replicated(kind, name, replicas, {}, app="web", **metadata)
    raw["spec"]["template"] = deepcopy(template)
    return raw


def job(name: str, *, template: Raw | None = None, status: Raw | None = None, **spec: Any) -> Raw:
    """Return a Job; `spec` may be parallelism, completions, backoffLimit and suspend."""
    inner = template or {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}
    raw: Raw = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {**spec, "template": deepcopy(inner)},
    }
    return raw if status is None else {**raw, "status": status}


def template(**annotations: str) -> Raw:
    """Return a pod template with annotations of `podium.dev`."""
    labels: Raw = TEMPLATE["metadata"]
    named = {f"podium.dev/{name}": value for name, value in annotations.items()}
    return {**TEMPLATE, "metadata": {**labels, "annotations": named}}


def budget(name: str, *, selector: Raw | None = None, rate: str = "", **spec: Any) -> Raw:
    """Return a PodDisruptionBudget over app=web, unless `selector` says otherwise; with a rate where one is given."""
    chosen = {"matchLabels": {"app": "web"}} if selector is None else selector
    annotations = {"annotations": {"podium.dev/max-disruptions": rate}} if rate else {}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default", **annotations},
        "spec": {"selector": chosen, **spec},
    }


def owned(raw: Raw, owner: Raw) -> Raw:
    """Return the object with a controller, which must have a uid."""
    meta = owner["metadata"]
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
    }
    return {**raw, "metadata": {**raw["metadata"], "ownerReferences": [reference]}}


def scenario(*steps: Raw, **spec: Any) -> Raw:
    """Return a scenario of these steps."""
    return {
        "apiVersion": "podium.dev/v1alpha1",
        "kind": "Scenario",
        "metadata": {"name": "test"},
        "spec": {**spec, "steps": list(steps)},
    }


def documents(*objects: Raw) -> list[Document]:
    """Return the objects as if they had been read from a file."""
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    return load_text(text, "test.json")
