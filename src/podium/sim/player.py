"""Execution of the steps of a scenario."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import msgspec

from podium.api.errors import InputError
from podium.api.input.documents import refuse_empty_pod
from podium.api.meta import Raw
from podium.api.node import MAINTENANCE_TIME, Node
from podium.api.pod import Pod
from podium.api.selectors import parse_label_selector
from podium.api.times import format_time
from podium.api.workloads import WORKLOADS
from podium.apirequests.request import Request, Verb
from podium.controllers.actions import Action, DeleteObject, PatchObject
from podium.controllers.disruption.drain import DrainReport, NodeDrain
from podium.controllers.kubelets.host import KubeletSettings
from podium.controllers.kubelets.kubelet import Kubelet
from podium.controllers.observations import ContainersExited, Observation
from podium.controlplane.component_names import KUBELET
from podium.controlplane.components import ComponentSettings, controllers
from podium.controlplane.node_simulation import NodePower
from podium.runtime.runtime import Component
from podium.sim.api_server import APIServer
from podium.sim.history import EventHistory
from podium.sim.scenario import steps
from podium.sim.scenario.scenario import Scenario
from podium.store.admission.admission_control import TOO_STRICT
from podium.store.errors import StoreError
from podium.store.stored import Stored

_FORBIDDEN = 403
# The start of kube-apiserver's message about a missing field; and the path of an object in its scenario.
_REQUIRED = "Required value"
_STEP_PATH = re.compile(r"^\.spec\.steps\[\d+\]\.apply\[\d+\]\.")
# The depth of ownership above pods: CronJob, Job; Deployment, ReplicaSet.
_MOST_OWNERS = 3
_LIMITS = ("exceeded quota", TOO_STRICT)


@dataclass(eq=False)
class Player:
    """Executes the scenario's steps, and keeps the drains that they begin; ``add`` registers a drain's component.

    ``is_lenient`` skips steps that fail.
    """

    server: APIServer
    control_plane: SimulatedControlPlane
    history: EventHistory
    add: Callable[[Component], None]
    is_lenient: bool = False
    # In order of start; of a finished drain only the report is kept.
    _drains: list[RunningDrain | DrainReport] = field(default_factory=list)
    # By node, the drains that wait for its drain.
    _waiting: dict[str, list[tuple[steps.ScenarioStep, steps.DrainNode]]] = field(default_factory=dict)

    def play(self, step: steps.ScenarioStep, now: int) -> Notices:
        """Execute a step. Raises InputError for what the API server refuses, and for names that never existed.

        A step that is too late (its object is gone or its pod not running), or that budgets or quotas forbid, only adds
        an event StepSkipped.
        """
        try:
            return _PLAYERS[type(step.change)](self, step, step.change, now) or []
        except InputError as error:
            if not self.is_lenient:
                raise
            change = step.change
            if isinstance(change, steps.SelectedObjects):
                subject = f"{change.kind} {change.selector}"
            else:
                subject = change.object.key if isinstance(change, steps.Apply) else change.key
            self._skip(subject, error.problem, now)
            return []

    def _apply(self, step: steps.ScenarioStep, apply: steps.Apply, now: int) -> None:
        stored = self.server.store.find(apply.object.kind, apply.object.key)
        if stored is None:
            self._create(step, apply, now)
            return
        error = self._ask(stored, now, body=_applied(stored, apply.raw))
        if error is None and "status" in apply.raw:
            raw = self.server.store.get(stored.kind, stored.key).raw
            status = {**raw.get("status", {}), **apply.raw["status"]}
            error = self._ask(stored, now, subresource="status", body={**raw, "status": status})
        if error is not None:
            raise step.error(error.message)

    def _create(self, step: steps.ScenarioStep, apply: steps.Apply, now: int) -> None:
        """Create an object that was validated with the scenario.

        kube-apiserver refuses objects that lack a required field. Objects with a uid come from a cluster that accepted
        them.
        """
        if not apply.object.metadata.uid:
            invalid = (each for each in apply.warnings if each.reason == "invalid")
            found = (each for each in invalid if each.message.startswith(_REQUIRED))
            missing = [f"{_STEP_PATH.sub('', each.path)}: {each.message}" for each in found]
            try:
                refuse_empty_pod(apply.object)
            except InputError as empty:
                missing.insert(0, f"{empty.path.removeprefix('.')}: {empty.problem}")
            if missing:
                raise step.error(f"{apply.object.kind} {apply.object.key} is invalid: {missing[0]}")
        request = Request(verb="create", kind=apply.object.kind, body=apply.raw, reading=apply.object)
        error = self.server.ask(request, steps.SCENARIO, now).error
        if error is not None:
            self._on_refused(step, apply.object.key, error.code, error.message, now)

    def _patch(self, step: steps.ScenarioStep, change: steps.Patch, now: int) -> None:
        stored = self._find(step, change.kind, change.key, now)
        if stored is None:
            return
        error = self._ask(
            stored, now, verb="patch", subresource=change.subresource, body=change.patch, patch_type=change.type
        )
        if error is not None:
            self._on_refused(step, change.key, error.code, error.message, now)

    def _each(self, step: steps.ScenarioStep, selected: steps.SelectedObjects, now: int) -> Notices:
        """Apply the change to each matching object, by key; objects that terminate are not deleted again."""
        selector = parse_label_selector(selected.selector)
        stored = self.server.store.objects(selected.kind, selected.namespace)
        found = [one for one in stored if selector.matches(one.object.metadata.labels)]
        removes = isinstance(selected.change, steps.Remove)
        matching = [one.key for one in found if not (removes and one.object.is_terminating)]
        if not matching:
            problem = f"each {selected.kind} that matches {selected.selector} is terminating"
            what = problem if found else f"no {selected.kind} matches {selected.selector}"
            self.history.add(now, "StepSkipped", None, "", steps.SCENARIO, what)
        news: Notices = []
        for key in sorted(matching):
            news += self.play(replace(step, change=replace(selected.change, key=key)), now)
        return news

    def _remove(self, step: steps.ScenarioStep, remove: steps.Remove, now: int) -> None:
        stored = self._find(step, remove.kind, remove.key, now)
        if stored is None:
            return
        if remove.kind == "Pod" and not remove.outright:
            self._evict(step, steps.EvictPod(remove.key), now)
        else:
            self._do(step, DeleteObject(remove.kind, remove.key, stored.uid, steps.SCENARIO), remove.key, now)

    def _evict(self, step: steps.ScenarioStep, evict: steps.EvictPod, now: int) -> None:
        stored = self._pod(step, evict.kind, evict.key, now)
        if stored is None:
            return
        eviction = msgspec.structs.replace(evict.eviction, pod=stored.key, uid=stored.uid)
        problem = self.server.carry_out(eviction, now).problem
        if problem is not None:
            self._skip(stored.key, problem.message, now)

    def _finish(self, step: steps.ScenarioStep, finish: steps.Finish, now: int) -> Notices:
        stored = self._pod(step, finish.kind, finish.key, now, finish.pod)
        if stored is None or not isinstance(stored.object, Pod):
            return []
        pod = stored.object
        if not self.control_plane.is_running(pod):
            self._skip(pod.key, "it is not running", now)
            return []
        return [(self.control_plane.kubelet, ContainersExited(pod.spec.node_name, stored.uid))]

    def _announce(self, step: steps.ScenarioStep, announce: steps.Announce, now: int) -> None:
        time = None if announce.after_ns is None else format_time(now + announce.after_ns)
        message = "maintenance is over" if time is None else f"announced to go down at {time}"
        self._edit(step, steps.annotation(announce.key, MAINTENANCE_TIME, time, message), now)

    def _drain(self, step: steps.ScenarioStep, change: steps.DrainNode, now: int) -> None:
        """Begin a drain once the one it follows is over; a missing node is skipped."""
        waiting = (other for drains in self._waiting.values() for _, other in drains)
        in_progress = (drain.change for drain in self._drains if isinstance(drain, RunningDrain))
        if change.after and any(other.key == change.after for other in chain(waiting, in_progress)):
            self._waiting.setdefault(change.after, []).append((step, change))
        elif self._find(step, "Node", change.key, now) is None:
            self._begin_waiting(change.key, now)
        else:
            component = Component(f"drain of {change.key}", lambda: NodeDrain(change.key, change.settings))
            self._drains.append(RunningDrain(step, change, component))
            self.add(component)

    def _begin_waiting(self, node: str, now: int) -> None:
        """Begin the drains that wait for a node's."""
        for step, change in self._waiting.pop(node, ()):
            self._drain(step, change, now)

    def take_ended(self) -> list[RunningDrain]:
        """Return the drains that have finished since the last call."""
        ended = []
        for index, drain in enumerate(self._drains):
            controller = drain.component.controller if isinstance(drain, RunningDrain) else None
            if isinstance(drain, RunningDrain) and isinstance(controller, NodeDrain) and controller.is_over:
                self._drains[index] = controller.report()
                ended.append(drain)
        return ended

    def drain_ended(self, drain: RunningDrain, now: int) -> None:
        """Finish a drain: delete its node if requested, and begin the drains that wait for it."""
        change = drain.change
        if change.removes and drain.report is not None and drain.report.state == "drained":
            self._remove(drain.step, steps.Remove("Node", change.key), now)
        self._begin_waiting(change.key, now)

    def drain_reports(self) -> list[DrainReport]:
        """Return the progress of all drains, in order of start."""
        reports = (drain.report if isinstance(drain, RunningDrain) else drain for drain in self._drains)
        return [report for report in reports if report is not None]

    def _set_power(self, step: steps.ScenarioStep, change: steps.SetPower, now: int) -> Notices:
        # A machine stops and starts whether or not it has a Node object at that time.
        if self.server.store.find("Node", change.key) is None and not self.history.was_deleted("Node", change.key):
            raise step.error(f"there is no Node {change.key}")
        self.history.add(now, "NodeUp" if change.is_up else "NodeDown", None, change.key, steps.SCENARIO)
        return self.control_plane.change_power(change.key, now, is_up=change.is_up)

    def _edit(self, step: steps.ScenarioStep, edit: steps.Edit, now: int) -> None:
        find = self._pod if edit.of_pod else self._find
        stored = find(step, edit.kind, edit.key, now)
        if stored is not None:
            action = PatchObject(stored.kind, stored.key, stored.uid, edit.patch, steps.SCENARIO, message=edit.message)
            self._do(step, action, stored.key, now)

    def _ask(self, stored: Stored, now: int, *, verb: Verb = "update", **fields: Any) -> StoreError | None:
        """Request a change of an object; return the error if it is refused."""
        request = Request(verb=verb, kind=stored.kind, key=stored.key, **fields)
        return self.server.ask(request, steps.SCENARIO, now).error

    def _do(self, step: steps.ScenarioStep, action: Action, key: str, now: int) -> None:
        """Process an action, which may be refused."""
        problem = self.server.carry_out(action, now).problem
        if problem is not None:
            self._on_refused(step, key, problem.code, problem.message, now)

    def _on_refused(self, step: steps.ScenarioStep, key: str, code: int, message: str, now: int) -> None:
        """Skip a step that quotas or bounds forbid, since these may change; raise other errors."""
        if code != _FORBIDDEN or not any(limit in message for limit in _LIMITS):
            raise step.error(message)
        self.history.refused.add(key)
        self._skip(key, message, now)

    def _find(self, step: steps.ScenarioStep, kind: str, key: str, now: int) -> Stored | None:
        """Return an object; None, with the step skipped, if it is gone. Raises InputError if it never existed."""
        stored = self.server.store.find(kind, key)
        if stored is not None:
            return stored
        was_created = self.history.was_deleted(kind, key)
        if not was_created and key not in self.history.refused:
            raise step.error(f"there is no {kind} {key}")
        self._skip(key, "it is gone" if was_created else "it was never created", now)
        return None

    def _pod(self, step: steps.ScenarioStep, kind: str, key: str, now: int, preferred: str = "") -> Stored | None:
        """Return the pod itself, or a workload's ``preferred`` pod, else its oldest running one, else its oldest.

        Terminating pods of a workload are ignored. None and errors as in `_find`.
        """
        stored = self._find(step, kind, key, now)
        if stored is None or kind == "Pod":
            return stored

        def order(pod: Stored) -> tuple[bool, str, str]:
            is_running = isinstance(pod.object, Pod) and self.control_plane.is_running(pod.object)
            return not is_running, pod.object.metadata.creation_timestamp or "", pod.key

        namespace = stored.object.metadata.namespace
        if (own := self.server.store.find("Pod", f"{namespace}/{preferred}")) is not None:
            return own
        pods = [pod for pod in self.server.store.objects("Pod", namespace) if self._is_of(pod, stored.uid)]
        staying = [pod for pod in pods if not pod.object.is_terminating]
        if not staying:
            self._skip(key, f"all pods of the {kind} are terminating" if pods else f"the {kind} has no pods", now)
        return min(staying, key=order, default=None)

    def _is_of(self, stored: Stored, uid: str) -> bool:
        """Return whether an object is controlled by the uid, directly or through owners."""
        namespace, controller = stored.object.metadata.namespace, stored.object.metadata.controller
        for _ in range(_MOST_OWNERS):
            if controller is None or controller.uid == uid or controller.kind not in WORKLOADS:
                break
            owner = self.server.store.find(controller.kind, f"{namespace}/{controller.name}")
            controller = None if owner is None else owner.object.metadata.controller
        return controller is not None and controller.uid == uid

    def _skip(self, subject: str, message: str, now: int) -> None:
        """Record that a step did nothing, and why; ``subject`` is the key of its object."""
        self.history.add(now, "StepSkipped", subject, "", steps.SCENARIO, message)


_PLAYERS: Mapping[type[steps.Change], Callable[[Player, steps.ScenarioStep, Any, int], Notices | None]] = {
    steps.Announce: Player._announce,
    steps.Apply: Player._apply,
    steps.DrainNode: Player._drain,
    steps.Edit: Player._edit,
    steps.EvictPod: Player._evict,
    steps.Finish: Player._finish,
    steps.Patch: Player._patch,
    steps.Remove: Player._remove,
    steps.SelectedObjects: Player._each,
    steps.SetPower: Player._set_power,
}


def _applied(stored: Stored, raw: Raw) -> Raw:
    """Return the stored object updated with everything in `raw`; other metadata, and a pod's other spec fields, stay.

    Pods keep them because the API server has defaulted them; other specs are replaced as a whole.
    """
    metadata = {**stored.raw["metadata"], **raw.get("metadata", {})}
    metadata["resourceVersion"] = stored.raw["metadata"]["resourceVersion"]
    spec = {**stored.raw["spec"], **raw.get("spec", {})} if stored.kind == "Pod" else raw.get("spec")
    applied = {**stored.raw, **raw, "metadata": metadata}
    return applied if spec is None else {**applied, "spec": spec}


@dataclass(slots=True, eq=False)
class RunningDrain:
    """A drain that has begun, and the component that carries it out."""

    step: steps.ScenarioStep
    change: steps.DrainNode
    component: Component

    @property
    def report(self) -> DrainReport | None:
        """Return the progress so far; None while the component is down."""
        controller = self.component.controller
        return controller.report() if isinstance(controller, NodeDrain) else None


Notices = list[tuple[Component, Observation]]
"""Observations that do not come from the API, with the components that receive them."""


class SimulatedControlPlane:
    """The scenario's kubelets and controllers, and the nodes whose machines have stopped.

    ``given`` are the initial nodes by uid.
    """

    def __init__(self, scenario: Scenario, kubelets: KubeletSettings, given: Mapping[str, Node], start_ns: int) -> None:
        self._power = NodePower(given.values(), start_ns)
        self.components = controllers(ComponentSettings(kubelets, scenario.node_lifecycle, given))
        self._by_name = {component.name: component for component in self.components}
        self.kubelet = self._by_name[KUBELET]

    def is_running(self, pod: Pod) -> bool:
        """Return whether a pod's containers run; False while kubelets are down."""
        kubelet = self.kubelet.controller
        return isinstance(kubelet, Kubelet) and kubelet.is_running(pod)

    def is_down(self, node: str) -> bool:
        return self._power.is_down(node)

    def change_power(self, node: str, now: int, *, is_up: bool) -> Notices:
        """Stop or start a node's machine; return what its kubelet and heartbeat watchers observe of a change."""
        return [(self._by_name[name], news) for name, news in self._power.change(node, now, is_up=is_up)]

    def news(self, component: Component) -> list[Observation]:
        """Return what a restarted component must observe first."""
        return self._power.news(component.name) if self._by_name.get(component.name) is component else []
