"""How the API server carries out what controllers ask for of any object."""

from __future__ import annotations

from typing import assert_never

from podium.machines.actions import CreateObject, DeleteObject, Evict, PatchObject, ReplaceStatus
from podium.store.store import Store

Write = CreateObject | ReplaceStatus | PatchObject | DeleteObject | Evict


def carry_out_write(store: Store, action: Write, now: int) -> None:
    """Create, change, delete or evict. Raises StoreError."""
    match action:
        case CreateObject():
            store.create(action.raw, now=now)
        case ReplaceStatus():
            store.update_status(action.raw)
        case PatchObject():
            patch = {**action.patch, "metadata": {**action.patch.get("metadata", {}), "uid": action.uid}}
            store.patch(action.kind, action.key, patch, "merge", action.subresource)
        case DeleteObject():
            store.delete(action.kind, action.key, now=now, grace_seconds=action.grace_seconds, uid=action.uid)
        case Evict():
            store.evict(
                action.pod,
                now=now,
                uid=action.uid,
                grace_seconds=action.grace_seconds,
                component=action.component,
                avoid_node=action.avoid_node,
                avoid_for=action.avoid_for,
            )
        case _:
            assert_never(action)
