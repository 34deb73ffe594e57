"""Who carries out the steps of a scenario."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from podium.api.errors import InputError
from podium.api.maintenance import MAINTENANCE_TIME
from podium.api.meta import Raw
from podium.api.pod import Pod
from podium.api.selectors import parse_label_selector
from podium.api.times import format_time
from podium.driver.component import Component
from podium.machines.actions import Action, DeleteObject, Evict, PatchObject
from podium.machines.kubelets.node_trouble import TROUBLE
from podium.machines.kubelets.pod_annotations import CPU_USAGE, MEMORY_USAGE
from podium.machines.observations import ContainersExited
from podium.requests.request import Request, Verb
from podium.sim.api_server import APIServer
from podium.sim.control_plane import ControlPlane, News
from podium.sim.history import History
from podium.sim.playing.drains import Drains
from podium.sim.playing.subjects import Subjects, subject_of
from podium.sim.scenario.changes import (
    SCENARIO,
    Announce,
    Apply,
    Change,
    Cordon,
    DrainNode,
    EvictPod,
    Finish,
    NodeDown,
    NodeUp,
    Patch,
    Remove,
    Scale,
    Selected,
    TroubleNode,
    Use,
)
from podium.sim.scenario.steps import Step
from podium.store.admission.budget_bounds import TOO_STRICT
from podium.store.errors import StoreError
from podium.store.stored import Stored

_FORBIDDEN = 403
_LIMITS = ("exceeded quota", TOO_STRICT)


class Player:
    """Does what the scenario's steps say, in its own name; ``add`` takes in a component that a step brings about.

    One that ``is_lenient`` skips what cannot be done.
    """

    def __init__(
        self,
        server: APIServer,
        control_plane: ControlPlane,
        history: History,
        add: Callable[[Component], None],
        *,
        is_lenient: bool = False,
    ) -> None:
        self._server = server
        self._control_plane = control_plane
        self._history = history
        self._is_lenient = is_lenient
        self._subjects = Subjects(server.store, control_plane, history)
        self._drains = Drains(self._subjects, control_plane, add)

    def play(self, step: Step, now: int) -> News:
        """Do one step. Raises InputError for what the API server refuses, and for a name that never existed.

        A step that comes too late, its object being gone or its pod not running, does nothing but leave an event
        StepSkipped; and so does one that budgets or quotas forbid.
        """
        try:
            return self._play(step, now)
        except InputError as error:
            if not self._is_lenient:
                raise
            self._subjects.skip(subject_of(step.change), error.problem, now)
            return []

    def _play(self, step: Step, now: int) -> News:
        match step.change:
            case Apply():
                self._apply(step, step.change, now)
            case Remove():
                self._remove(step, step.change, now)
            case EvictPod():
                self._evict(step, step.change, now)
            case Scale():
                self._patch(step, step.change.kind, step.change.key, {"spec": {"replicas": step.change.replicas}}, now)
            case Finish():
                return self._finish(step, step.change, now)
            case Use():
                self._use(step, step.change, now)
            case NodeDown() | NodeUp():
                return self._change_power(step, step.change, now)
            case Patch():
                self._change_by_patch(step, step.change, now)
            case Selected():
                return self._each(step, step.change, now)
            case _:
                self._change_node(step, step.change, now)
        return []

    def _change_node(self, step: Step, change: Change, now: int) -> None:
        match change:
            case Cordon():
                self._cordon(step, change, now)
            case DrainNode():
                self._drains.begin(step, change, now)
            case TroubleNode():
                told = "trouble is over" if change.trouble is None else f"trouble: {change.trouble}"
                self._annotate(step, change.node, TROUBLE, change.trouble, told, now)
            case Announce():
                self._announce(step, change, now)

    def _apply(self, step: Step, apply: Apply, now: int) -> None:
        stored = self._server.store.find(apply.object.kind, apply.object.key)
        if stored is None:
            self._create(step, apply, now)
            return
        error = self._ask(stored, now, body=_applied(stored, apply.raw))
        if error is None and "status" in apply.raw:
            raw = self._server.store.get(stored.kind, stored.key).raw
            status = {**raw.get("status", {}), **apply.raw["status"]}
            error = self._ask(stored, now, subresource="status", body={**raw, "status": status})
        if error is not None:
            raise step.error(error.message)

    def _create(self, step: Step, apply: Apply, now: int) -> None:
        """Create an object, which was read and judged with the scenario."""
        kind = apply.object.kind
        request = Request(verb="create", kind=kind, body=apply.raw, reading=apply.object)
        error = self._server.ask(request, SCENARIO, now).error
        if error is not None:
            self._refused(step, apply.object.key, error.code, error.message, now)

    def _change_by_patch(self, step: Step, change: Patch, now: int) -> None:
        stored = self._subjects.find(step, change.kind, change.key, now)
        if stored is None:
            return
        error = self._ask(
            stored, now, verb="patch", subresource=change.subresource, body=change.patch, patch_type=change.type
        )
        if error is not None:
            self._refused(step, change.key, error.code, error.message, now)

    def _each(self, step: Step, selected: Selected, now: int) -> News:
        """Do to each object that matches, by key, what is to be done."""
        selector = parse_label_selector(selected.selector)
        stored = self._server.store.objects(selected.kind, selected.namespace)
        matching = [found.key for found in stored if selector.matches(found.object.metadata.labels)]
        if not matching:
            what = f"no {selected.kind} matches {selected.selector}"
            self._history.add(now, "StepSkipped", None, "", SCENARIO, what)
        news: News = []
        for key in sorted(matching):
            change = selected.change
            change = replace(change, key=key) if isinstance(change, Remove) else replace(change, node=key)
            news += self.play(replace(step, change=change), now)
        return news

    def _remove(self, step: Step, remove: Remove, now: int) -> None:
        stored = self._subjects.find(step, remove.kind, remove.key, now)
        if stored is None:
            return
        if remove.kind == "Pod" and not remove.outright:
            self._evict(step, EvictPod(remove.key), now)
        else:
            self._do(step, DeleteObject(remove.kind, remove.key, stored.uid, SCENARIO), remove.key, now)

    def _evict(self, step: Step, evict: EvictPod, now: int) -> None:
        stored = self._subjects.pod(step, evict.kind, evict.pod, now)
        if stored is None:
            return
        action = Evict(
            stored.key,
            stored.uid,
            SCENARIO,
            evict.component,
            evict.grace_seconds,
            avoid_node=evict.avoid_node,
            avoid_for=evict.avoid_for,
            for_replacement=evict.for_replacement,
        )
        problem = self._server.carry_out(action, now).problem
        if problem is not None:
            self._subjects.skip(stored.key, problem.message, now)

    def _finish(self, step: Step, finish: Finish, now: int) -> News:
        stored = self._subjects.pod(step, finish.kind, finish.pod, now)
        if stored is None or not isinstance(stored.object, Pod):
            return []
        pod = stored.object
        if not self._control_plane.is_running(pod):
            self._subjects.skip(pod.key, "it is not running", now)
            return []
        return [(self._control_plane.kubelet, ContainersExited(pod.spec.node_name, stored.uid))]

    def _use(self, step: Step, use: Use, now: int) -> None:
        stored = self._subjects.pod(step, use.kind, use.pod, now)
        if stored is not None:
            said = {MEMORY_USAGE: use.memory, CPU_USAGE: use.cpu}
            annotations = {name: amount for name, amount in said.items() if amount is not None}
            self._patch(step, "Pod", stored.key, {"metadata": {"annotations": annotations}}, now)

    def _announce(self, step: Step, announce: Announce, now: int) -> None:
        time = None if announce.after_ns is None else format_time(now + announce.after_ns)
        told = "maintenance is over" if time is None else f"announced to go down at {time}"
        self._annotate(step, announce.node, MAINTENANCE_TIME, time, told, now)

    def _annotate(self, step: Step, node: str, name: str, value: str | None, told: str, now: int) -> None:
        self._patch(step, "Node", node, {"metadata": {"annotations": {name: value}}}, now, told)

    def _cordon(self, step: Step, cordon: Cordon, now: int) -> None:
        message = "cordoned" if cordon.unschedulable else "uncordoned"
        self._patch(step, "Node", cordon.node, {"spec": {"unschedulable": cordon.unschedulable}}, now, message)

    def drain_ended(self, component: Component, now: int) -> None:
        """A drain is over: remove its node where that was asked for, and begin those that have waited for it."""
        step, change, is_drained = self._drains.end(component)
        if change.removes and is_drained:
            self._remove(step, Remove("Node", change.node), now)
        self._drains.begin_waiting(change.node, now)

    def _change_power(self, step: Step, change: NodeDown | NodeUp, now: int) -> News:
        # A machine stops and starts whether or not the API has an object for it just then.
        if not self._history.has_seen("Node", change.node):
            raise step.error(f"there is no Node {change.node}")
        is_up = isinstance(change, NodeUp)
        self._history.add(now, "NodeUp" if is_up else "NodeDown", None, change.node, SCENARIO)
        return self._control_plane.change_power(change.node, now, is_up=is_up)

    def _patch(self, step: Step, kind: str, key: str, patch: Raw, now: int, message: str = "") -> None:
        stored = self._subjects.find(step, kind, key, now)
        if stored is not None:
            self._do(step, PatchObject(kind, key, stored.uid, patch, SCENARIO, message=message), key, now)

    def _ask(self, stored: Stored, now: int, *, verb: Verb = "update", **fields: Any) -> StoreError | None:
        """Ask for a change of an object, and tell why it is refused."""
        request = Request(verb=verb, kind=stored.kind, key=stored.key, **fields)
        return self._server.ask(request, SCENARIO, now).error

    def _do(self, step: Step, action: Action, key: str, now: int) -> None:
        """Carry out an action, which may be refused."""
        problem = self._server.carry_out(action, now).problem
        if problem is not None:
            self._refused(step, key, problem.code, problem.message, now)

    def _refused(self, step: Step, key: str, code: int, message: str, now: int) -> None:
        """What quotas and bounds forbid is skipped, since that may change; all else is an error."""
        if code != _FORBIDDEN or not any(limit in message for limit in _LIMITS):
            raise step.error(message)
        self._history.refuse(key)
        self._subjects.skip(key, message, now)


def _applied(stored: Stored, raw: Raw) -> Raw:
    """The stored object with everything that `raw` gives; what it does not give stays, in metadata and a pod's spec.

    A pod's spec keeps the rest because the API server has filled it in; elsewhere a spec is given as a whole.
    """
    metadata = {**stored.raw["metadata"], **raw.get("metadata", {})}
    metadata["resourceVersion"] = stored.raw["metadata"]["resourceVersion"]
    spec = {**stored.raw["spec"], **raw.get("spec", {})} if stored.kind == "Pod" else raw.get("spec")
    applied = {**stored.raw, **raw, "metadata": metadata}
    return applied if spec is None else {**applied, "spec": spec}
