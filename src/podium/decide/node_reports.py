"""The reports of a node besides the Node object: its CSI drivers and its devices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from podium.api.devices import ResourceSlice
from podium.api.meta import ObjectMeta
from podium.api.node import CSINode
from podium.cluster.devices import pool_of

NodeReport = CSINode | ResourceSlice
"""A CSINode, or a slice of a node's own devices."""


def reporter(report: NodeReport) -> str:
    """Return the name of the node that reports this; "" for devices that belong to no single node."""
    return report.metadata.name if isinstance(report, CSINode) else report.spec.node_name


def reports_like(reports: Iterable[NodeReport], name: str) -> Iterator[NodeReport]:
    """Yield what a node of that name would report if it were like the node with these reports."""
    # The slices of other nodes in the same pool do not count for the new one.
    numbers = Counter((pool_of(item), item.spec.pool.generation) for item in reports if isinstance(item, ResourceSlice))
    for item in reports:
        metadata = ObjectMeta(name=_renamed(item.metadata.name, reporter(item), name))
        if isinstance(item, CSINode):
            drivers = tuple(replace(driver, node_id=name) for driver in item.spec.drivers)
            yield replace(item, metadata=metadata, spec=replace(item.spec, drivers=drivers))
        else:
            pool, number = item.spec.pool, numbers[pool_of(item), item.spec.pool.generation]
            pool = replace(pool, name=_renamed(pool.name, reporter(item), name), resource_slice_count=number)
            yield replace(item, metadata=metadata, spec=replace(item.spec, node_name=name, pool=pool))


def _renamed(text: str, old: str, new: str) -> str:
    """Return a name with the new node's name in place of the old one's, or at its end."""
    return text.replace(old, new, 1) if old in text else f"{text}-{new}"
