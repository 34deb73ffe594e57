"""Nodes that are made for a cluster, as many as somebody wants, by a template."""

from __future__ import annotations

from podium.api.errors import InputError, shown
from podium.api.input.codec import decode
from podium.api.meta import Raw
from podium.machines.kubelets.host import CAPACITY
from podium.store.store import Store

HOSTNAME = "kubernetes.io/hostname"
_LABELS = {"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"}

DEFAULT_TEMPLATE: Raw = {"status": {"capacity": dict(CAPACITY), "allocatable": dict(CAPACITY)}}
"""Nodes as they are made where nobody says otherwise."""


def check_template(template: object, source: str = "") -> Raw:
    """The template, if it is a Node but for its name. Raises InputError."""
    if not isinstance(template, dict) or not isinstance(template.get("metadata", {}), dict):
        raise InputError(f"{shown(template)} is not a Node", source=source)
    for field, right in (("apiVersion", "v1"), ("kind", "Node")):
        if template.get(field, right) != right:
            raise InputError(f"{shown(template[field])} is not {right}", source=source, path=f".{field}")
    decode(node_of(template, "node-1"), source)
    return template


def node_of(template: Raw, name: str) -> Raw:
    """A node of that name."""
    metadata: Raw = template.get("metadata", {})
    labels = {**_LABELS, **metadata.get("labels", {}), HOSTNAME: name}
    return {**template, "apiVersion": "v1", "kind": "Node", "metadata": {**metadata, "name": name, "labels": labels}}


def create_nodes(store: Store, count: int, template: Raw, now: int) -> None:
    """See to it that there are the nodes `node-1` to `node-COUNT`."""
    for number in range(1, count + 1):
        name = f"node-{number}"
        if store.find("Node", name) is None:
            store.create(node_of(template, name), now=now, is_new=True)
