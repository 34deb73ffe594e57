"""The store as the simulated components reach it: their writes, with who made them."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from podium.api.pod import NOMINATED_NODE_ANNOTATION, Pod
from podium.machines.actions import (
    Action,
    Bind,
    BindClaim,
    ClearNomination,
    DeletePod,
    FinishDeletion,
    MarkDisruption,
    Nominate,
    Record,
    ReportNodeCondition,
    ReportPodStatus,
    ReportUnschedulable,
)
from podium.machines.observations import Problem
from podium.sim.history import History
from podium.sim.reports import carry_out_report
from podium.sim.volumes import bind_claim
from podium.sim.writes import Create, Delete, PatchPodStatus, Replace, ReplaceStatus, Write
from podium.store.errors import StoreError
from podium.store.store import Store
from podium.store.watch_log import WatchEvent

# An object that is gone, or another of its name: whoever wrote will see it by itself.
_PASSING = frozenset(("NotFound", "Conflict"))


class APIServer:
    """Carries out what machines and controllers ask for, and hands every committed event on at once.

    `on_event` gets the event, the time, who made the write, and a message for people.
    """

    def __init__(self, store: Store, history: History, on_event: Callable[[WatchEvent, int, str, str], None]) -> None:
        self.store = store
        self._history = history
        self._on_event = on_event

    def carry_out(self, action: Action, now: int) -> Problem | None:
        """Do what a machine asks for; the problem when it is refused."""
        version = self.store.version
        scheduler = self.scheduler_of(action)
        try:
            self._act(action, scheduler, now)
        except StoreError as error:
            return Problem(error.code, error.reason, error.message)
        finally:
            self._hand_on(version, now, getattr(action, "cause", "") or scheduler, _told(action))
        return None

    def scheduler_of(self, action: Action) -> str:
        """The scheduler that is responsible for the action's pod, "" where there is none."""
        if isinstance(action, BindClaim | ReportNodeCondition):
            return ""
        stored = self.store.find("Pod", action.pod)
        return stored.object.spec.scheduler_name if stored and isinstance(stored.object, Pod) else ""

    def write(self, write: Write, now: int) -> None:
        """Do what a controller asks for; a write to what is gone is no matter. Raises StoreError for other refusals."""
        version = self.store.version
        try:
            self._write(write, now)
        except StoreError as error:
            if isinstance(write, Create) or error.reason not in _PASSING:
                raise
        self._hand_on(version, now, write.by, write.message if isinstance(write, Delete | Replace) else "")

    def _hand_on(self, version: int, now: int, by: str, message: str) -> None:
        if version != self.store.version:
            for event in self.store.events_since(version):
                self._on_event(event, now, by, message)

    def _act(self, action: Action, scheduler: str, now: int) -> None:
        store = self.store
        match action:
            case Bind():
                store.bind(action.pod, action.node_name, now=now, uid=action.uid)
            case ReportUnschedulable():
                self._report(action, now)
            case Nominate():
                store.patch_pod_status(action.pod, {"nominatedNodeName": action.node_name}, [], now=now, uid=action.uid)
            case ClearNomination():
                self._clear_nomination(action.pod, action.uid, [], now)
            case MarkDisruption():
                target = _condition("DisruptionTarget", "True", action.reason, action.message)
                store.patch_pod_status(action.pod, {}, [target], now=now, uid=action.uid)
            case DeletePod():
                store.delete("Pod", action.pod, now=now, uid=action.uid)
            case BindClaim():
                bind_claim(store, action, now)
            case Record():
                self._history.record(action, scheduler, now)
            case ReportPodStatus() | FinishDeletion() | ReportNodeCondition():
                carry_out_report(store, action, now)
            case _:
                assert_never(action)

    def _report(self, action: ReportUnschedulable, now: int) -> None:
        conditions = [_condition("PodScheduled", "False", action.reason, action.message)]
        nominated = action.nominated_node_name
        if nominated == "":
            self._clear_nomination(action.pod, action.uid, conditions, now)
            return
        fields = {"nominatedNodeName": nominated} if nominated else {}
        self.store.patch_pod_status(action.pod, fields, conditions, now=now, uid=action.uid)

    def _clear_nomination(self, pod: str, uid: str, conditions: list[dict[str, str]], now: int) -> None:
        """Clear a nomination, also one in the annotation of the preemption design."""
        stored = self.store.patch_pod_status(pod, {"nominatedNodeName": None}, conditions, now=now, uid=uid)
        metadata = stored.raw["metadata"]
        annotations = dict(metadata.get("annotations", {}))
        if annotations.pop(NOMINATED_NODE_ANNOTATION, None) is not None:
            self.store.update({**stored.raw, "metadata": {**metadata, "annotations": annotations}})

    def _write(self, write: Write, now: int) -> None:
        store = self.store
        match write:
            case Create():
                store.create(write.raw, now=now, reading=write.reading)
            case Replace():
                store.update(write.raw)
            case ReplaceStatus():
                store.update_status(write.raw)
            case PatchPodStatus():
                store.patch_pod_status(write.pod, write.fields, list(write.conditions), now=now, uid=write.uid)
            case Delete():
                store.delete(write.kind, write.key, now=now, grace_seconds=write.grace_seconds, uid=write.uid)
            case _:
                assert_never(write)


def _told(action: Action) -> str:
    """What history says about an action, "" for those that speak for themselves."""
    if isinstance(action, ReportNodeCondition):
        return f"{action.condition.type} is {action.condition.status}"
    return action.message if isinstance(action, FinishDeletion) else ""


def _condition(type_: str, status: str, reason: str, message: str) -> dict[str, str]:
    return {"type": type_, "status": status, "reason": reason, "message": message}
