"""Updates of a pod's or node's status: one strategic merge patch with the differences.

Source: pkg/scheduler/framework/api_calls/pod_status_patch.go, pkg/util/pod/pod.go (PatchPodStatus), and the status
manager of the kubelet: all of them take the newest status that they know, change it, and send the difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from podium.api.meta import Raw
from podium.api.pod import NOMINATED_NODE_ANNOTATION, PodCondition
from podium.apirequests.request import Conversation, Request
from podium.controllers.actions import ReportUnschedulable
from podium.store.errors import StoreError
from podium.store.patching import StatusPatch
from podium.store.stored import with_conditions
from podium.store.strategic_patch import DELETE_FROM, ORDER, MergeSchema, merge_schema_of

_PLAIN = frozenset((str, int, type(None)))


def report_unschedulable(action: ReportUnschedulable, now: int) -> Conversation:
    """Write that no node was found for a pod, and the effect on its nomination."""
    condition = PodCondition(type="PodScheduled", status="False", reason=action.reason, message=action.message)
    if action.nominated_node_name is None:
        return patch_status("Pod", action.pod, action.uid, {}, (condition,), now)
    return nominate(action.pod, action.uid, action.nominated_node_name, now, (condition,))


def nominate(pod: str, uid: str, node_name: str, now: int, conditions: tuple[PodCondition, ...] = ()) -> Conversation:
    """Write a pod's nomination, or clear it, which also clears the annotation of the preemption design."""
    after = yield from patch_status("Pod", pod, uid, {"nominatedNodeName": node_name or None}, conditions, now)
    if not node_name and after and NOMINATED_NODE_ANNOTATION in after["metadata"].get("annotations", {}):
        metadata = {"uid": uid, "annotations": {NOMINATED_NODE_ANNOTATION: None}}
        after = (yield Request(verb="patch", kind="Pod", key=pod, body={"metadata": metadata})).object
    return after


def patch_status(
    kind: str, key: str, uid: str, fields: Raw, conditions: Sequence[PodCondition], now: int
) -> Conversation:
    """Set some fields of an object's status, or remove those that are None, and set some of its conditions.

    Nothing is sent if nothing changes. Refused with Conflict if the object has another uid.
    """
    read = yield Request(verb="get", kind=kind, key=key)
    before = read.object or {}
    patch = _patch(kind, key, uid, before, fields, conditions, now)
    return before if patch is None else (yield patch).object


def _patch(
    kind: str, key: str, uid: str, before: Raw, fields: Raw, conditions: Sequence[PodCondition], now: int
) -> Request | None:
    """Return the patch that sets or (for None) removes status fields and sets conditions; None for no change.

    Conditions with an empty status are removed.
    """
    if before["metadata"].get("uid") != uid:
        raise StoreError(409, "Conflict", f"{kind} {key}: has uid {before['metadata'].get('uid')}, not {uid}")
    status: Raw = before.get("status", {})
    after = {**status, **fields}
    if None in after.values():
        after = {name: value for name, value in after.items() if value is not None}
    # For text fields and conditions with unique types the merge result is known in advance.
    is_known = _PLAIN.issuperset(map(type, fields.values()))
    ended = {condition.type for condition in conditions if not condition.status}
    if ended and "conditions" in after:
        after["conditions"] = [each for each in after["conditions"] if each.get("type") not in ended]
        is_known = False
    conditions = [each for each in conditions if each.status] if ended else conditions
    if conditions:
        # Each condition of a pod names the generation of its spec; versions without that field drop it.
        generation = before["metadata"].get("generation") if kind == "Pod" else None
        bodies = [condition_body(condition, generation) for condition in conditions]
        after["conditions"], are_unique = _with_conditions(after.get("conditions") or (), bodies, now)
        is_known = is_known and are_unique
    if after == status:
        return None
    body = StatusPatch(before, after, _change) if is_known else _change(before, after)
    return Request(verb="patch", kind=kind, key=key, subresource="status", body=body, patch_type="strategic")


def _change(before: Raw, after: Raw) -> Raw:
    """Return the patch that gives an object another status."""
    status = strategic_diff(before.get("status", {}), after, merge_schema_of(before["kind"]).of("status"))
    return {"metadata": {"uid": before["metadata"]["uid"]}, "status": status}


def _with_conditions(listed: Sequence[Raw], conditions: Sequence[Raw], now: int) -> tuple[list[Raw], bool]:
    """Return the result of `with_conditions`, and whether the listed conditions have unique types.

    If so, the fields of each condition are in merge order, which is their order before.
    """
    result = with_conditions(listed, conditions, now)
    types = {before.get("type") for before in listed}
    if len(types) < len(listed) or None in types:
        return result, False
    for place, before in enumerate(listed):
        after = result[place]
        if after is not before:
            result[place] = {name: after[name] for name in before | after if name in after}
    return result, True


def condition_body(condition: PodCondition, generation: int | None = None) -> Raw:
    """Return the condition in the wire form, without unset fields."""
    fields: Raw = {"type": condition.type, "status": condition.status}
    if condition.reason:
        fields["reason"] = condition.reason
    if condition.message:
        fields["message"] = condition.message
    if generation is not None:
        fields["observedGeneration"] = generation
    return fields


def strategic_diff(old: Raw, new: Raw, schema: MergeSchema) -> Raw:
    """Return the patch from `old` to `new`: {} if they are equal. Neither contains nulls."""
    patch: Raw = {}
    for field, value in new.items():
        before = old.get(field)
        if before is value or before == value:
            continue
        if isinstance(value, dict) and isinstance(before, dict) and field not in schema.replaced:
            patch[field] = strategic_diff(before, value, schema.of(field))
        elif isinstance(value, list) and isinstance(before, list) and field in schema.lists:
            _diff_list(patch, field, before, value, schema)
        else:
            patch[field] = value
    return patch | {field: None for field in old if field not in new}


def _diff_list(patch: Raw, field: str, old: list[Any], new: list[Any], schema: MergeSchema) -> None:
    """Add the changes of a merged list to the patch."""
    key = schema.lists[field]
    if not key:
        added = [value for value in new if value not in old]
        gone = [value for value in old if value not in new]
        if added:
            patch[field] = added
        if gone:
            patch[DELETE_FROM + field] = gone
        patch[ORDER + field] = new
        return
    before, after = _by_key(old, key), _by_key(new, key)
    if before is None or after is None:
        patch[field] = [*new, {"$patch": "replace"}]
        return
    inner = schema.of(field)
    changes: list[Any] = []
    for identity, item in after.items():
        known = before.get(identity)
        if known is None:
            changes.append(item)
        elif known != item:
            changes.append({**strategic_diff(known, item, inner), key: identity})
    changes += [{"$patch": "delete", key: identity} for identity in before if identity not in after]
    patch[ORDER + field] = [{key: identity} for identity in after]
    if changes:
        patch[field] = changes


def _by_key(items: list[Any], key: str) -> dict[Any, Raw] | None:
    """Return the items by merge key; None if a key is missing or not unique."""
    found: dict[Any, Raw] = {}
    for item in items:
        identity = item.get(key) if isinstance(item, dict) else None
        if identity is None or identity in found:
            return None
        found[identity] = item
    return found
