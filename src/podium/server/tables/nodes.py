"""How nodes and namespaces are shown (printNode, printNamespace, printRuntimeClass)."""

from __future__ import annotations

from podium.api.meta import Raw
from podium.server.tables.cells import NONE, UNKNOWN, age, condition, entries, name, text, value
from podium.server.tables.column import AGE, NAME, Cells, Column, Printer

_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE = "kubernetes.io/role"

_COLUMNS = (
    NAME,
    Column("Status", "Whether the node is ready, and whether pods are scheduled to it."),
    Column("Roles", "What the node is there for, by its labels."),
    AGE,
    Column("Version", "The version of the node's kubelet."),
    Column("Internal-IP", "The node's address within the cluster.", priority=1),
    Column("External-IP", "The node's address from without.", priority=1),
    Column("OS-Image", "The operating system of the node.", priority=1),
    Column("Kernel-Version", "The kernel of the node.", priority=1),
    Column("Container-Runtime", "What runs the node's containers.", priority=1),
)


def _node(raw: Raw, now: int) -> Cells:
    info = value(raw, "status", "nodeInfo")
    return (
        name(raw),
        _status(raw),
        ",".join(_roles(raw)) or NONE,
        age(raw, now),
        text(info, "kubeletVersion"),
        _address(raw, "InternalIP"),
        _address(raw, "ExternalIP"),
        text(info, "osImage", default=UNKNOWN),
        text(info, "kernelVersion", default=UNKNOWN),
        text(info, "containerRuntimeVersion", default=UNKNOWN),
    )


def _status(raw: Raw) -> str:
    ready = condition(raw, "Ready")
    status = "Unknown" if not ready else "Ready" if ready == "True" else "NotReady"
    return f"{status},SchedulingDisabled" if value(raw, "spec", "unschedulable") is True else status


def _roles(raw: Raw) -> list[str]:
    found = value(raw, "metadata", "labels")
    labels = found if isinstance(found, dict) else {}
    named = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    return sorted({*named, text(labels, _ROLE)} - {""})


def _address(raw: Raw, type_: str) -> str:
    addresses = entries(raw, "status", "addresses")
    return next((text(one, "address") for one in addresses if one.get("type") == type_), NONE)


def _namespace(raw: Raw, now: int) -> Cells:
    return name(raw), text(raw, "status", "phase"), age(raw, now)


def _runtime_class(raw: Raw, now: int) -> Cells:
    return name(raw), text(raw, "handler"), age(raw, now)


def _lease(raw: Raw, now: int) -> Cells:
    return name(raw), text(raw, "spec", "holderIdentity"), age(raw, now)


PRINTERS = {
    ("", "Node"): Printer(_COLUMNS, _node),
    ("", "Namespace"): Printer(
        (NAME, Column("Status", "Whether the namespace is in use or on its way out."), AGE), _namespace
    ),
    ("coordination.k8s.io", "Lease"): Printer((NAME, Column("Holder", "Who has the lease."), AGE), _lease),
    ("node.k8s.io", "RuntimeClass"): Printer(
        (NAME, Column("Handler", "What runs pods of the class."), AGE), _runtime_class
    ),
}
