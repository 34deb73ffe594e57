"""How the API server carries out what a kubelet reports."""

from __future__ import annotations

from podium.api.meta import Raw
from podium.api.pod import PodCondition
from podium.api.times import format_time
from podium.machines.actions import FinishDeletion, ReportNodeCondition, ReportPodStatus
from podium.store.conditions import with_condition
from podium.store.store import Store


def carry_out_report(store: Store, action: ReportPodStatus | FinishDeletion | ReportNodeCondition, now: int) -> None:
    """Write what a kubelet reports of a pod or a node. Raises StoreError."""
    match action:
        case ReportPodStatus():
            _report_pod_status(store, action, now)
        case FinishDeletion():
            store.delete("Pod", action.pod, now=now, grace_seconds=0, uid=action.uid)
        case ReportNodeCondition():
            _report_node_condition(store, action, now)


def _report_pod_status(store: Store, action: ReportPodStatus, now: int) -> None:
    fields: Raw = {"phase": action.phase}
    for name in ("reason", "message"):
        if value := getattr(action, name):
            fields[name] = value
    if action.start_time_ns is not None:
        fields["startTime"] = format_time(action.start_time_ns)
    if action.container_statuses:
        fields["containerStatuses"] = list(action.container_statuses)
    conditions = [_written(condition) for condition in action.conditions]
    store.patch_pod_status(action.pod, fields, conditions, now=now, uid=action.uid)


def _report_node_condition(store: Store, action: ReportNodeCondition, now: int) -> None:
    raw = store.get("Node", action.node).raw
    status = raw.get("status", {})
    conditions = with_condition(status.get("conditions", []), _written(action.condition), now)
    metadata = {**raw["metadata"], "uid": action.uid}
    store.update_status({**raw, "metadata": metadata, "status": {**status, "conditions": conditions}})


def _written(condition: PodCondition) -> Raw:
    """The condition as it is written: without what it does not say."""
    fields = {"type": condition.type, "status": condition.status}
    said = {"reason": condition.reason, "message": condition.message}
    return fields | {name: value for name, value in said.items() if value}
