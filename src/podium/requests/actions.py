"""Which requests an action of a machine is.

Most are one request; those that look before they write, or write several objects, are conversations. The requests are
those that kube-scheduler, the kubelet and the controllers send for the same purpose.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from podium.api.kinds import group_of
from podium.api.meta import Raw
from podium.machines.actions import (
    Action,
    Bind,
    BindClaim,
    CreateObject,
    DeleteObject,
    Evict,
    Nominate,
    PatchObject,
    Record,
    ReleaseClaim,
    ReplaceStatus,
    ReportStatus,
    ReportUnschedulable,
    ReserveClaim,
)
from podium.machines.observations import Answered
from podium.requests.conversation import Ask, Conversation, hold, problem_of
from podium.requests.device_claims import release_claim, reserve_claim
from podium.requests.events import event_body
from podium.requests.foreign_evictions import evict_at_foreign_server
from podium.requests.options import Binding, delete_options_body, eviction_body
from podium.requests.request import Request
from podium.requests.status_reports import nominate, report_at_once, report_status, report_unschedulable
from podium.requests.volume_claims import bind_claim
from podium.store.api_resources import BUILT_IN
from podium.store.errors import StoreError


def _bind(action: Bind) -> Request:
    binding = Binding(node_name=action.node_name, uid=action.uid)
    return Request(verb="create", kind="Pod", key=action.pod, subresource="binding", body=binding)


def _evict(action: Evict) -> Request:
    delete = delete_options_body(action.uid, action.grace_seconds)
    body = eviction_body(action.pod, delete, action.component, action.wishes)
    return Request(verb="create", kind="Pod", key=action.pod, subresource="eviction", body=body)


def _create(action: CreateObject) -> Request:
    return Request(verb="create", kind=_kind_of(action.raw), body=action.raw)


def _replace_status(action: ReplaceStatus) -> Request:
    raw = action.raw
    metadata = raw["metadata"]
    key = f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else metadata["name"]
    return Request(verb="update", kind=_kind_of(raw), key=key, subresource="status", body=raw)


def _patch(action: PatchObject) -> Request:
    body = {**action.patch, "metadata": {**action.patch.get("metadata", {}), "uid": action.uid}}
    return Request(verb="patch", kind=action.kind, key=action.key, subresource=action.subresource, body=body)


def _delete(action: DeleteObject) -> Request:
    body = delete_options_body(action.uid, action.grace_seconds)
    return Request(verb="delete", kind=action.kind, key=action.key, body=body)


_REQUESTS: Mapping[type[Action], Callable[[Any], Request]] = {
    Bind: _bind,
    CreateObject: _create,
    DeleteObject: _delete,
    Evict: _evict,
    PatchObject: _patch,
    ReplaceStatus: _replace_status,
}
# Those of which the answer is the object as it was written; of the others it is a Status, or what is gone.
_WRITES = frozenset((CreateObject, PatchObject, ReplaceStatus, ReportStatus))
_CONVERSATIONS: Mapping[type[Action], Callable[[Any, int], Conversation]] = {
    BindClaim: bind_claim,
    Nominate: nominate,
    ReleaseClaim: release_claim,
    ReportStatus: report_status,
    ReportUnschedulable: report_unschedulable,
    ReserveClaim: reserve_claim,
}


def conversation_of(action: Action, component: str, now: int, *, knows_ours: bool = True) -> Conversation:
    """The conversation that an action is. `component` is who records it, where it is an Event.

    Where the API server does not know what is Podium's own (`knows_ours`), evictions do by themselves what it would do.
    """
    type_ = type(action)
    if isinstance(action, Evict) and not knows_ours:
        return (yield from evict_at_foreign_server(action, now))
    if type_ in _CONVERSATIONS:
        return (yield from _CONVERSATIONS[type_](action, now))
    if isinstance(action, Record):
        yield Request(verb="create", kind="Event", body=event_body(action, component, now))
        return None
    response = yield _REQUESTS[type_](action)
    return response.object if type_ in _WRITES else None


def carry_out(ask: Ask, action: Action, now: int, component: str = "") -> Answered:
    """Ask for all that an action is, where answers come at once; how that ends."""
    type_ = type(action)
    make = _REQUESTS.get(type_)
    try:
        if make is not None:
            response = ask(make(action), now)
        elif isinstance(action, ReportStatus):
            response = report_at_once(action, ask, now)
        else:
            begin = _CONVERSATIONS.get(type_)
            conversation = begin(action, now) if begin is not None else conversation_of(action, component, now)
            return Answered(action, None, hold(conversation, ask, now))
    except StoreError as error:
        return Answered(action, problem_of(error))
    if response.error is not None:
        return Answered(action, problem_of(response.error))
    return Answered(action, None, response.object if type_ in _WRITES else None)


def _kind_of(raw: Raw) -> str:
    """What the store calls the kind of an object."""
    group, kind = group_of(raw["apiVersion"]), str(raw["kind"])
    return kind if (group, kind) in BUILT_IN else f"{kind}.{group}"
