"""Writing a part of the status of a pod or a node: one strategic merge patch, of what differs from what is there.

Source: pkg/scheduler/framework/api_calls/pod_status_patch.go, pkg/util/pod/pod.go (PatchPodStatus), and the status
manager of the kubelet: all of them take the newest status that they know, change it, and send what has changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from podium.api.meta import Raw
from podium.api.pod import NOMINATED_NODE_ANNOTATION, PodCondition
from podium.machines.actions import Nominate, ReportStatus, ReportUnschedulable
from podium.requests.conversation import Conversation
from podium.requests.request import Request
from podium.requests.strategic_diff import strategic_diff
from podium.store.conditions import with_conditions
from podium.store.errors import StoreError
from podium.store.patches.made_patch import MadePatch
from podium.store.patches.merge_keys import schema_of

_NOMINATED = "nominatedNodeName"
_PLAIN = frozenset((str, type(None)))


def report_status(action: ReportStatus, now: int) -> Conversation:
    """Write what is reported of a pod or a node."""
    return patch_status(action.kind, action.key, action.uid, action.fields, action.conditions, now)


def report_unschedulable(action: ReportUnschedulable, now: int) -> Conversation:
    """Write that no node was found for a pod, and what that does to its nomination."""
    condition = PodCondition(type="PodScheduled", status="False", reason=action.reason, message=action.message)
    if action.nominated_node_name is None:
        return patch_status("Pod", action.pod, action.uid, {}, (condition,), now)
    return _nominate(action.pod, action.uid, action.nominated_node_name, (condition,), now)


def nominate(action: Nominate, now: int) -> Conversation:
    """Write a pod's nomination, or clear it."""
    return _nominate(action.pod, action.uid, action.node_name, (), now)


def _nominate(pod: str, uid: str, node_name: str, conditions: tuple[PodCondition, ...], now: int) -> Conversation:
    """Write a nomination with conditions; when it is cleared, also that in the annotation of the preemption design."""
    read = yield Request(verb="get", kind="Pod", key=pod)
    before = read.object or {}
    patch = _patch("Pod", pod, uid, before, {_NOMINATED: node_name or None}, conditions, now)
    if patch is not None:
        yield patch
    if not node_name and NOMINATED_NODE_ANNOTATION in before["metadata"].get("annotations", {}):
        metadata = {"uid": uid, "annotations": {NOMINATED_NODE_ANNOTATION: None}}
        yield Request(verb="patch", kind="Pod", key=pod, body={"metadata": metadata})


def patch_status(
    kind: str, key: str, uid: str, fields: Raw, conditions: Iterable[PodCondition], now: int
) -> Conversation:
    """Set some fields of an object's status, or for None remove them, and some of its conditions.

    Nothing is sent where nothing changes. Refused with Conflict where the object has another uid.
    """
    read = yield Request(verb="get", kind=kind, key=key)
    patch = _patch(kind, key, uid, read.object or {}, fields, conditions, now)
    if patch is not None:
        yield patch


def _patch(
    kind: str, key: str, uid: str, before: Raw, fields: Raw, conditions: Iterable[PodCondition], now: int
) -> Request | None:
    """The patch that sets some fields of an object's status, or for None removes them, and some of its conditions."""
    if before["metadata"].get("uid") != uid:
        raise StoreError(409, "Conflict", f"{kind} {key}: has uid {before['metadata'].get('uid')}, not {uid}")
    status: Raw = before.get("status", {})
    after = {**status, **fields}
    if None in after.values():
        after = {name: value for name, value in after.items() if value is not None}
    if conditions:
        after["conditions"] = with_conditions(after.get("conditions", ()), map(written, conditions), now)
    if after == status:
        return None
    make = partial(_change, kind, uid, status, after)
    merged = _merged(status, after) if _are_plain(fields) else None
    body = make() if merged is None else MadePatch(before, merged, make)
    return Request(verb="patch", kind=kind, key=key, subresource="status", body=body, patch_type="strategic")


def _change(kind: str, uid: str, before: Raw, after: Raw) -> Raw:
    """The patch that makes one status of another."""
    return {"metadata": {"uid": uid}, "status": strategic_diff(before, after, schema_of(kind).of("status"))}


def _are_plain(fields: Raw) -> bool:
    """Whether all that is written is text, or nothing."""
    return _PLAIN.issuperset(map(type, fields.values()))


def _merged(before: Raw, after: Raw) -> Raw | None:
    """What comes of merging: the status, with the fields of each condition in the order in which they were.

    None where conditions cannot be told apart.
    """
    old_conditions = before.get("conditions")
    if not old_conditions:
        return after
    known = {condition.get("type"): condition for condition in old_conditions}
    if None in known or len(known) < len(old_conditions):
        return None
    conditions = [_in_order(condition, known.get(condition["type"])) for condition in after["conditions"]]
    return {**after, "conditions": conditions}


def _in_order(condition: Raw, before: Raw | None) -> Raw:
    """A condition with its fields in the order in which they were."""
    if before is None or before is condition or list(before) == list(condition):
        return condition
    return {name: condition[name] for name in before if name in condition} | condition


def written(condition: PodCondition) -> Raw:
    """The condition as it is written: without what it does not say."""
    fields = {"type": condition.type, "status": condition.status}
    if condition.reason:
        fields["reason"] = condition.reason
    if condition.message:
        fields["message"] = condition.message
    return fields
