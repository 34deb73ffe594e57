"""How devices and the claims for them are shown (printResourceClaim, printResourceSlice)."""

from __future__ import annotations

from podium.api.meta import Raw
from podium.server.tables.cells import age, entries, name, text, value
from podium.server.tables.column import AGE, NAME, Cells, Column, Printer

_CLAIM_COLUMNS = (NAME, Column("State", "Whether devices are allocated to the claim, and reserved for somebody."), AGE)
_SLICE_COLUMNS = (
    NAME,
    Column("Node", "The node that has the devices."),
    Column("Driver", "The driver of the devices."),
    Column("Pool", "The pool that the devices belong to."),
    AGE,
)


def _claim(raw: Raw, now: int) -> Cells:
    is_deleted = bool(value(raw, "metadata", "deletionTimestamp"))
    is_allocated = value(raw, "status", "allocation") is not None
    states = {
        "deleted": is_deleted,
        "pending": not is_allocated and not is_deleted,
        "allocated": is_allocated,
        "reserved": is_allocated and bool(entries(raw, "status", "reservedFor")),
    }
    return name(raw), ",".join(state for state, holds in states.items() if holds), age(raw, now)


def _slice(raw: Raw, now: int) -> Cells:
    spec = value(raw, "spec")
    return name(raw), text(spec, "nodeName"), text(spec, "driver"), text(spec, "pool", "name"), age(raw, now)


def _plain(raw: Raw, now: int) -> Cells:
    return name(raw), age(raw, now)


_PLAIN = Printer((NAME, AGE), _plain)
PRINTERS = {
    ("resource.k8s.io", "DeviceClass"): _PLAIN,
    ("resource.k8s.io", "DeviceTaintRule"): _PLAIN,
    ("resource.k8s.io", "ResourceClaim"): Printer(_CLAIM_COLUMNS, _claim),
    ("resource.k8s.io", "ResourceClaimTemplate"): _PLAIN,
    ("resource.k8s.io", "ResourceSlice"): Printer(_SLICE_COLUMNS, _slice),
}
