"""How a scheduler says where a claim is to be bound.

Source: pkg/scheduler/framework/plugins/volumebinding/binder.go (bindAPIUpdate).
"""

from __future__ import annotations

from collections.abc import Generator

from podium.api.meta import Raw
from podium.api.volume_annotations import BOUND_BY_CONTROLLER, SELECTED_NODE
from podium.machines.actions import BindClaim
from podium.requests.conversation import Conversation
from podium.requests.request import Request, Response
from podium.store.errors import StoreError

_CLAIM, _VOLUME = "PersistentVolumeClaim", "PersistentVolume"


def bind_claim(action: BindClaim, now: int) -> Conversation:
    """Name the claim in its volume, or in the claim the node that its volume is provisioned for.

    Both are written only if they are still what was looked at. What is told is the claim, which does not change where
    its volume is written.
    """
    raw = (yield Request(verb="get", kind=_CLAIM, key=action.claim)).object or {}
    uid = raw["metadata"]["uid"]
    if uid != action.uid:
        raise _conflict(_CLAIM, action.claim, f"has uid {uid}, not {action.uid}")
    bound_to = raw.get("spec", {}).get("volumeName", "")
    if bound_to and bound_to != action.volume:
        raise _conflict(_CLAIM, action.claim, f"is bound to volume {bound_to}")
    if action.volume:
        yield from _keep(action)
    elif raw["metadata"].get("annotations", {}).get(SELECTED_NODE) != action.node_name:
        return (yield _patch(_CLAIM, action.claim, raw, {SELECTED_NODE: action.node_name})).object
    return raw


def _keep(action: BindClaim) -> Generator[Request, Response, None]:
    """Keep a volume for the claim."""
    raw = (yield Request(verb="get", kind=_VOLUME, key=action.volume)).object or {}
    reference = raw.get("spec", {}).get("claimRef") or {}
    taken = reference.get("uid", "")
    if taken == action.uid:
        return
    namespace, _, name = action.claim.rpartition("/")
    whose = reference.get("namespace", ""), reference.get("name", "")
    if taken or (reference and whose != (namespace, name)):
        raise _conflict(_VOLUME, action.volume, f"is kept for claim {'/'.join(whose)} of uid {taken}")
    claim = {"apiVersion": "v1", "kind": _CLAIM, "namespace": namespace, "name": name, "uid": action.uid}
    # A volume that people have kept for the claim stays theirs.
    annotations = {} if reference else {BOUND_BY_CONTROLLER: "yes"}
    yield _patch(_VOLUME, action.volume, raw, annotations, {"claimRef": claim})


def _patch(kind: str, key: str, read: Raw, annotations: Raw, spec: Raw | None = None) -> Request:
    """Change the object if it is still as it was read."""
    metadata = {name: read["metadata"][name] for name in ("uid", "resourceVersion")}
    body: Raw = {"metadata": {**metadata, "annotations": annotations} if annotations else metadata}
    if spec is not None:
        body["spec"] = spec
    return Request(verb="patch", kind=kind, key=key, body=body)


def _conflict(kind: str, key: str, problem: str) -> StoreError:
    return StoreError(409, "Conflict", f"{kind} {key}: {problem}")
