"""How the API server carries out what schedulers ask for of pods."""

from __future__ import annotations

from typing import assert_never

from podium.api.meta import Raw
from podium.api.pod import NOMINATED_NODE_ANNOTATION
from podium.machines.actions import (
    Bind,
    ClearNomination,
    DeletePod,
    MarkDisruption,
    Nominate,
    ReportUnschedulable,
)
from podium.store.store import Store

PodWrite = Bind | ReportUnschedulable | Nominate | ClearNomination | MarkDisruption | DeletePod


def carry_out_pod_write(store: Store, action: PodWrite, now: int) -> None:
    """Bind a pod, change its status, or delete it. Raises StoreError."""
    match action:
        case Bind():
            store.bind(action.pod, action.node_name, now=now, uid=action.uid)
        case ReportUnschedulable():
            _report(store, action, now)
        case Nominate():
            store.patch_pod_status(action.pod, {"nominatedNodeName": action.node_name}, [], now=now, uid=action.uid)
        case ClearNomination():
            _clear_nomination(store, action.pod, action.uid, [], now)
        case MarkDisruption():
            target = _condition("DisruptionTarget", "True", action.reason, action.message)
            store.patch_pod_status(action.pod, {}, [target], now=now, uid=action.uid)
        case DeletePod():
            store.delete("Pod", action.pod, now=now, uid=action.uid)
        case _:
            assert_never(action)


def _report(store: Store, action: ReportUnschedulable, now: int) -> None:
    conditions = [_condition("PodScheduled", "False", action.reason, action.message)]
    nominated = action.nominated_node_name
    if nominated == "":
        _clear_nomination(store, action.pod, action.uid, conditions, now)
        return
    fields = {"nominatedNodeName": nominated} if nominated else {}
    store.patch_pod_status(action.pod, fields, conditions, now=now, uid=action.uid)


def _clear_nomination(store: Store, pod: str, uid: str, conditions: list[Raw], now: int) -> None:
    """Clear a nomination, also one in the annotation of the preemption design."""
    stored = store.patch_pod_status(pod, {"nominatedNodeName": None}, conditions, now=now, uid=uid)
    metadata = stored.raw["metadata"]
    annotations = dict(metadata.get("annotations", {}))
    if annotations.pop(NOMINATED_NODE_ANNOTATION, None) is not None:
        store.update({**stored.raw, "metadata": {**metadata, "annotations": annotations}})


def _condition(type_: str, status: str, reason: str, message: str) -> Raw:
    return {"type": type_, "status": status, "reason": reason, "message": message}
