"""Writing a part of the status of a pod or a node: one strategic merge patch, of what differs from what is there.

Source: pkg/scheduler/framework/api_calls/pod_status_patch.go, pkg/util/pod/pod.go (PatchPodStatus), and the status
manager of the kubelet: all of them take the newest status that they know, change it, and send what has changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from podium.api.meta import Raw
from podium.api.pod import NOMINATED_NODE_ANNOTATION, PodCondition
from podium.api.times import format_time
from podium.machines.actions import Nominate, ReportStatus, ReportUnschedulable
from podium.requests.conversation import Ask, Conversation
from podium.requests.request import Request, Response
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


def report_at_once(action: ReportStatus, ask: Ask, now: int) -> Response:
    """The same where answers come at once: the last answer. Nearly all that needs a conversation is such a report."""
    read = ask(Request(verb="get", kind=action.kind, key=action.key), now)
    if read.error is not None:
        return read
    patch = _patch(action.kind, action.key, action.uid, read.object or {}, action.fields, action.conditions, now)
    return read if patch is None else ask(patch, now)


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
    after: Raw | None = before if patch is None else (yield patch).object
    if not node_name and NOMINATED_NODE_ANNOTATION in before["metadata"].get("annotations", {}):
        metadata = {"uid": uid, "annotations": {NOMINATED_NODE_ANNOTATION: None}}
        after = (yield Request(verb="patch", kind="Pod", key=pod, body={"metadata": metadata})).object
    return after


def patch_status(
    kind: str, key: str, uid: str, fields: Raw, conditions: Iterable[PodCondition], now: int
) -> Conversation:
    """Set some fields of an object's status, or for None remove them, and some of its conditions.

    Nothing is sent where nothing changes. Refused with Conflict where the object has another uid.
    """
    read = yield Request(verb="get", kind=kind, key=key)
    before = read.object or {}
    patch = _patch(kind, key, uid, before, fields, conditions, now)
    return before if patch is None else (yield patch).object


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
    # Of text, and of conditions that are told apart, it is known what comes of merging.
    is_known = _PLAIN.issuperset(map(type, fields.values()))
    if conditions:
        after["conditions"], are_told_apart = _with_conditions(after.get("conditions") or (), conditions, now)
        is_known = is_known and are_told_apart
    if after == status:
        return None
    body = MadePatch(before, after, _change) if is_known else _change(before, after)
    return Request(verb="patch", kind=kind, key=key, subresource="status", body=body, patch_type="strategic")


def _change(before: Raw, after: Raw) -> Raw:
    """The patch that gives an object another status."""
    status = strategic_diff(before.get("status", {}), after, schema_of(before["kind"]).of("status"))
    return {"metadata": {"uid": before["metadata"]["uid"]}, "status": status}


def _with_conditions(listed: Sequence[Raw], conditions: Iterable[PodCondition], now: int) -> tuple[list[Raw], bool]:
    """What `with_conditions` makes of those listed, and whether they are told apart by their types.

    If so, the fields of each are in the order that merging makes, which is the one in which they were.
    """
    places: dict[str | None, int] = {}
    for place, before in enumerate(listed):
        places[before.get("type")] = place
    if len(places) < len(listed) or None in places:
        return with_conditions(listed, map(written, conditions), now), False
    result, time = list(listed), format_time(now)
    for reported in conditions:
        condition = written(reported)
        condition["lastTransitionTime"] = time
        place = places.setdefault(reported.type, len(result))
        if place == len(result):
            result.append(condition)
            continue
        before = result[place]
        if before.get("status") == reported.status and "lastTransitionTime" in before:
            condition["lastTransitionTime"] = before["lastTransitionTime"]
        # One that is reported twice is merged with the one that is there.
        merged = listed[place] | condition if place < len(listed) else condition
        if len(merged) > len(condition):
            merged = {name: value for name, value in merged.items() if name in condition}
        result[place] = merged
    return result, True


def written(condition: PodCondition) -> Raw:
    """The condition as it is written: without what it does not say."""
    fields = {"type": condition.type, "status": condition.status}
    if condition.reason:
        fields["reason"] = condition.reason
    if condition.message:
        fields["message"] = condition.message
    return fields
