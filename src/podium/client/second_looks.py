"""What to do when no answer came to a write: look whether it was done, before it is asked for again.

A request may have been lost, or its answer; or it may still be on its way, and be done after the look. So what is asked
for again names the uid of its object: the second time it is refused, and another look tells that it was done.
"""

from __future__ import annotations

from enum import Enum

from podium.api.meta import Raw
from podium.machines.actions import (
    Action,
    Bind,
    BindClaim,
    DeleteObject,
    Evict,
    Nominate,
    PatchObject,
    ReleaseClaim,
    ReportStatus,
    ReportUnschedulable,
    ReserveClaim,
)
from podium.requests.request import Request


class Finding(Enum):
    """What a look at the object says of a write to it."""

    DONE = "it was carried out"
    NOT_DONE = "it was not, or not yet: it may be asked for again"
    OVERTAKEN = "it was not, and cannot be any more"


# They look before they write, or write the same twice as once.
_BEGIN_ANEW = (
    BindClaim,
    Nominate,
    PatchObject,
    ReleaseClaim,
    ReportStatus,
    ReportUnschedulable,
    ReserveClaim,
)


def may_be_sent_again(action: Action) -> bool:
    """Whether an action may be carried out anew, without a look, when it is not known what became of it."""
    return isinstance(action, _BEGIN_ANEW)


def look(action: Action) -> Request | None:
    """The request that tells whether a write was done; None for those of which none does."""
    match action:
        case Bind(pod=key) | Evict(pod=key):
            return Request(verb="get", kind="Pod", key=key)
        case DeleteObject(kind=kind, key=key):
            return Request(verb="get", kind=kind, key=key)
    return None


def finding(action: Action, raw: Raw | None) -> Finding:
    """What the object, None where there is none, says of an action."""
    metadata: Raw = {} if raw is None else raw.get("metadata", {})
    is_other = raw is None or metadata.get("uid") != getattr(action, "uid", "")
    if isinstance(action, Bind):
        if is_other or raw is None:
            return Finding.OVERTAKEN
        node_name = raw.get("spec", {}).get("nodeName", "")
        if node_name == action.node_name:
            return Finding.DONE
        return Finding.OVERTAKEN if node_name or metadata.get("deletionTimestamp") else Finding.NOT_DONE
    return Finding.DONE if is_other or metadata.get("deletionTimestamp") else Finding.NOT_DONE
