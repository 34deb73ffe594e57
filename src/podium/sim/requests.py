"""Requests to the API server: how each action of a component is carried out, and what a refusal is to it."""

from __future__ import annotations

from podium.machines.actions import (
    Action,
    BindClaim,
    CreateObject,
    DeleteObject,
    Evict,
    FinishDeletion,
    PatchObject,
    Record,
    ReleaseClaim,
    ReplaceStatus,
    ReportNodeCondition,
    ReportPodStatus,
    ReserveClaim,
)
from podium.machines.observations import Changed, Gone, Problem
from podium.sim.object_writes import carry_out_write
from podium.sim.pod_writes import carry_out_pod_write
from podium.sim.reports import carry_out_report
from podium.sim.resource_claims import release_claim, reserve_claim
from podium.sim.volumes import bind_claim
from podium.store.errors import StoreError
from podium.store.store import Store
from podium.store.watch_log import WatchEvent

_SECOND = 10**9


def carry_out(store: Store, action: Action, now: int) -> None:
    """Do what a component asks the API server for. Raises StoreError, and TypeError for an Event, which is no write."""
    match action:
        case Record():
            raise TypeError(f"an Event is recorded, not written: {action}")
        case BindClaim():
            bind_claim(store, action, now)
        case ReserveClaim():
            reserve_claim(store, action, now)
        case ReleaseClaim():
            release_claim(store, action, now)
        case ReportPodStatus() | FinishDeletion() | ReportNodeCondition():
            carry_out_report(store, action, now)
        case CreateObject() | ReplaceStatus() | PatchObject() | DeleteObject() | Evict():
            carry_out_write(store, action, now)
        case _:
            carry_out_pod_write(store, action, now)


def problem_of(error: StoreError) -> Problem:
    """A refusal as the component is told of it."""
    seconds = error.details.get("retryAfterSeconds")
    wait_ns = None if seconds is None else int(seconds) * _SECOND
    causes = error.details.get("causes") or [{}]
    return Problem(error.code, error.reason, error.message, wait_ns, causes[0].get("reason", ""))


def observation_of(event: WatchEvent) -> Changed | Gone:
    """A write as whoever watches sees it."""
    stored = event.stored
    return Gone(stored.object) if event.type == "DELETED" else Changed(stored.object, stored.raw)
