"""How a Deployment keeps its ReplicaSet.

A changed template is rolled out at once, without surge: the new ReplicaSet gets all replicas, the others none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import blake2b

from podium.api.meta import Raw
from podium.api.workloads import Deployment
from podium.sim.replicas import label, owner_reference
from podium.sim.writes import Create, Replace, Write
from podium.store.stored import Stored

_HASH_LABEL = "pod-template-hash"


def keep_replica_set(deployment: Stored, sets: Iterable[Stored]) -> list[Write]:
    """What gives the Deployment's replicas to the one of its ReplicaSets that has its template, made if need be."""
    if not isinstance(deployment.object, Deployment):
        raise TypeError(f"{label(deployment.object)} is no Deployment")
    replicas, by = deployment.object.spec.replicas, label(deployment.object)
    template = deployment.raw["spec"].get("template", {})
    writes: list[Write] = []
    current = None
    for one in sorted(sets, key=lambda one: one.key):
        wanted = 0
        if current is None and _without_hash(one.raw["spec"].get("template", {})) == template:
            current, wanted = one, replicas
        if one.raw["spec"].get("replicas", 1) != wanted:
            writes.append(Replace({**one.raw, "spec": {**one.raw["spec"], "replicas": wanted}}, by))
    return writes if current else [Create(_new_set(deployment, template, replicas), by), *writes]


def _new_set(deployment: Stored, template: Raw, replicas: int) -> Raw:
    digest = blake2b(json.dumps(template, sort_keys=True).encode(), digest_size=5).hexdigest()
    spec, meta = deployment.raw["spec"], deployment.object.metadata
    labels = {**template.get("metadata", {}).get("labels", {}), _HASH_LABEL: digest}
    selector = spec.get("selector", {})
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{meta.name}-{digest}",
            "namespace": meta.namespace,
            "labels": labels,
            "ownerReferences": [owner_reference(deployment)],
        },
        "spec": {
            "replicas": replicas,
            "selector": {**selector, "matchLabels": {**selector.get("matchLabels", {}), _HASH_LABEL: digest}},
            "template": {**template, "metadata": {**template.get("metadata", {}), "labels": labels}},
        },
    }


def _without_hash(template: Raw) -> Raw:
    metadata = template.get("metadata", {})
    labels = {name: value for name, value in metadata.get("labels", {}).items() if name != _HASH_LABEL}
    return {**template, "metadata": {**metadata, "labels": labels}}
