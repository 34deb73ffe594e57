"""The controller of DaemonSets.

Source: pkg/controller/daemon.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable
from heapq import nsmallest

from msgspec import Struct, field

from podium.api.budget_limits import pods_of_share
from podium.api.meta import Kubernetes, Raw
from podium.api.node import Node
from podium.api.pod import Pod, PodSpec, Toleration
from podium.api.selectors import NAME_FIELD, compile_node_selector, node_selector_matches, selector_from_labels
from podium.api.times import SECOND
from podium.api.workloads import ControllerRevision, DaemonSet
from podium.cluster.view import KEEPS_OFF, tolerated
from podium.controllers.actions import Action, CreateObject
from podium.controllers.controller import Backoff
from podium.controllers.indexes import exchange
from podium.controllers.workloads.owned_pods import OwnedPod, OwnedPodChange, WorkloadObject, status_with
from podium.controllers.workloads.template_revisions import REVISION_LABEL, RevisionedController, is_outdated

# The tolerations of every daemon pod, by the last part of the key.
_TOLERATED = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)


class NodeFitness:
    """The nodes that suit the pods of a template: by name, selector, required affinity and taints."""

    def __init__(self, spec: PodSpec) -> None:
        self._node_name = spec.node_name
        self._selector = selector_from_labels(spec.node_selector)
        required = spec.node_affinity.required
        self._terms = None if required is None else compile_node_selector(required)
        added = (Toleration(key=key, operator="Exists", effect=effect) for key, effect in _added(spec.host_network))  # type: ignore[arg-type]
        self._tolerations = (*spec.tolerations, *added)

    def of(self, node: Node) -> tuple[bool, bool]:
        """Return whether the node should have a pod, and whether an existing pod may stay."""
        meta = node.metadata
        if self._node_name not in ("", meta.name) or not self._selector.matches(meta.labels):
            return False, False
        if self._terms is not None and not node_selector_matches(self._terms, meta.labels, meta.name):
            return False, False
        effects = {taint.effect for taint in node.spec.taints if not tolerated(self._tolerations, taint)}
        return not effects.intersection(KEEPS_OFF), "NoExecute" not in effects


def target_node(pod: Pod) -> str:
    """Return the node that a pod is on, or was created for; "" if it names none."""
    required = pod.spec.node_affinity.required
    terms = required.node_selector_terms if required is not None else ()
    fields = (field for term in terms for field in term.match_fields if field.key == NAME_FIELD)
    named = (field.values[0] for field in fields if field.operator == "In" and len(field.values) == 1)
    return pod.spec.node_name or next(named, "")


def daemon_spec(spec: Raw, node_name: str) -> Raw:
    """Return the template's pod specification for one node."""
    affinity = spec.get("affinity", {})
    only = {"nodeSelectorTerms": [{"matchFields": [{"key": NAME_FIELD, "operator": "In", "values": [node_name]}]}]}
    node_affinity = {**affinity.get("nodeAffinity", {}), "requiredDuringSchedulingIgnoredDuringExecution": only}
    tolerations = list(spec.get("tolerations", ()))
    for key, effect in _added(spec.get("hostNetwork", False)):
        toleration = {"key": key, "operator": "Exists", "effect": effect}
        if toleration not in tolerations:
            tolerations.append(toleration)
    return {**spec, "affinity": {**affinity, "nodeAffinity": node_affinity}, "tolerations": tolerations}


def _added(is_on_host_network: bool) -> list[tuple[str, str]]:
    """Return keys and effects of the taints that daemon pods tolerate implicitly."""
    taints = [*_TOLERATED, ("network-unavailable", "NoSchedule")] if is_on_host_network else _TOLERATED
    return [(f"node.kubernetes.io/{name}", effect) for name, effect in taints]


def daemon_order(pod: OwnedPod) -> tuple[bool, int, str]:
    """Sort pods of a node: those that are bound first, then the older."""
    return not pod.pod.spec.node_name, pod.created_ns, pod.pod.metadata.name


_Workload = WorkloadObject[DaemonSet]
_ALWAYS = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")


class _DaemonSetState(Struct, eq=False):
    """The state of a DaemonSet's nodes for one template (its ``revision``) and generation.

    ``touched`` nodes are to be synced, ``uncounted`` ones to be counted. ``counts`` are what nodes contribute to the
    status, ``sums`` their sums. Besides fields of the status, they have in_service: the node should have a pod, and has
    an available one that is not deleted; and surging: it has a second pod. ``replaceable`` are the only pods of nodes
    that have an old template; the ``unavailable`` nodes of these have none in service.
    """

    fitness: NodeFitness
    generation: int
    revision: str
    counts: dict[str, dict[str, int]] = {}
    sums: Counter[str] = field(default_factory=Counter)
    replaceable: dict[str, OwnedPod] = {}
    unavailable: dict[str, None] = {}
    touched: dict[str, None] = {}
    uncounted: dict[str, None] = {}

    def touch(self, node_name: str) -> None:
        """Record that something happened on the node."""
        self.touched[node_name] = None
        self.uncounted[node_name] = None

    def count(self, node_name: str, pods: Iterable[OwnedPod], serving: Container[str], *, is_wanted: bool) -> None:
        """Count a node; its first pod in `daemon_order` counts. ``serving`` are the available pods (uids)."""
        ordered = sorted(pods, key=daemon_order)
        count = {"desired": int(is_wanted)}
        self.replaceable.pop(node_name, None)
        self.unavailable.pop(node_name, None)
        if ordered and not is_wanted:
            count["misscheduled"] = 1
        elif ordered:
            first, kept = ordered[0], [pod for pod in ordered if pod.is_active]
            count["current"] = 1
            count["ready"] = int(first.is_ready)
            count["available"] = int(first.uid in serving)
            count["updated"] = int(not is_outdated(first.pod, self.revision))
            count["in_service"] = int(any(pod.uid in serving for pod in kept))
            count["surging"] = int(len(kept) > 1)
            if len(kept) == 1 and is_outdated(kept[0].pod, self.revision):
                self.replaceable[node_name] = kept[0]
                if not count["in_service"]:
                    self.unavailable[node_name] = None
        # A loop, since Counter's own methods take several times as long for few names.
        for sign, counted in ((-1, self.counts.pop(node_name, {})), (1, count)):
            for name, number in counted.items():
                self.sums[name] += sign * number
        if any(count.values()):
            self.counts[node_name] = count

    def exchangeable(self, left: int) -> list[str]:
        """Return the nodes whose old pods may be replaced, by name: those out of service, and ``left`` others."""
        serving = (name for name in self.replaceable if name not in self.unavailable)
        return sorted([*self.unavailable, *nsmallest(max(left, 0), serving)])


class DaemonSets(RevisionedController[DaemonSet]):
    """Creates pods for suitable nodes without one; deletes pods that have ended or whose nodes are unsuitable.

    A failed pod is deleted, and so replaced, after a backoff for its node: none at first, then 1 s, doubled up to 15
    minutes. The same holds after a pod that disappears right after its creation, or is bound elsewhere.
    """

    watches = RevisionedController.watches | {"DaemonSet", "Node", "Pod"}

    def __init__(self, *, adopts: bool = False) -> None:
        super().__init__(DaemonSet, adopts=adopts)
        self._nodes: dict[str, Node] = {}
        self._states: dict[str, _DaemonSetState] = {}
        # By the owner's uid and the node, the pods on it or created for it.
        self._places: dict[str, dict[str, dict[str, OwnedPod]]] = {}
        # By the owner's uid, the newest active pod when it was last needed, or a newer one, as (creation, name, uid).
        self._newest: dict[str, tuple[int, str, str]] = {}
        self._failures: Backoff[tuple[str, str]] = Backoff(SECOND, 900 * SECOND)
        self._ends: Backoff[tuple[str, str]] = Backoff(SECOND, 900 * SECOND)

    # Observations

    def _see(self, object_: Kubernetes, *, is_gone: bool) -> None:
        if not isinstance(object_, Node):
            return
        name, before = object_.metadata.name, self._nodes.get(object_.metadata.name)
        if is_gone:
            self._nodes.pop(name, None)
        else:
            self._nodes[name] = object_
        if is_gone or before is None or _suitability_of(before) != _suitability_of(object_):
            for uid, state in self._states.items():
                state.touch(name)
                self._queue.add(uid)

    def _see_pod(self, change: OwnedPodChange, now: int) -> None:
        uid, before = change.owner_uid, change.before
        if before is not None:
            self._place(uid, before, is_there=False)
        if not change.is_gone:
            self._place(uid, change.now, is_there=True)
        if before is not None and target_node(before.pod) != target_node(change.now.pod):
            # Its node still has none, and the next one may be bound elsewhere, too.
            self._ends.fail((uid, target_node(before.pod)), now)
        if before is None and uid in self._newest:
            self._newest[uid] = max(self._newest[uid], _age(change.now))
        super()._see_pod(change, now)

    def _ended_at_once(self, uid: str, pod: OwnedPod, now: int) -> None:
        if pod.pod.status.phase != "Failed":
            self._ends.fail((uid, target_node(pod.pod)), now)

    def _place(self, uid: str, pod: OwnedPod, *, is_there: bool) -> None:
        node_name = target_node(pod.pod)
        nodes = self._places.setdefault(uid, {})
        pods = nodes.setdefault(node_name, {})
        exchange(pods, pod.uid, pod if is_there else None)
        if not pods:
            del nodes[node_name]
        if not nodes:
            del self._places[uid]
        if uid in self._states:
            self._states[uid].touch(node_name)

    def _remove(self, uid: str) -> None:
        super()._remove(uid)
        self._newest.pop(uid, None)
        state = self._states.pop(uid, None)
        for node_name in {*self._places.get(uid, ()), *(state.counts if state is not None else ())}:
            self._failures.forget((uid, node_name))
            self._ends.forget((uid, node_name))

    # Actions

    def _sync_revision(
        self, workload: _Workload, history: list[ControllerRevision], update: ControllerRevision, now: int
    ) -> list[Action]:
        if workload.is_deleted:
            return []
        state = self._state(workload, update)
        is_ready = self._expectations.are_met(workload.uid)
        steps = self._keep(workload, state, now) if is_ready else []
        self._count(workload, state, now)
        if is_ready:
            steps = steps or self._exchange(workload, state, now)
            steps = steps or self._forget_history(workload, history, (update.metadata.name,), now)
        return steps + self._write_status(workload, _status(workload, state))

    def _state(self, workload: _Workload, update: ControllerRevision) -> _DaemonSetState:
        """Return the state for this generation and template; a new one syncs all nodes."""
        revision = update.metadata.labels.get(REVISION_LABEL, update.metadata.name)
        generation = workload.object.metadata.generation
        state = self._states.get(workload.uid)
        if state is None or (state.generation, state.revision) != (generation, revision):
            fitness = NodeFitness(workload.object.spec.template.spec)
            state = self._states[workload.uid] = _DaemonSetState(fitness, generation, revision)
            for node_name in (*self._nodes, *self._places.get(workload.uid, ())):
                state.touch(node_name)
        return state

    def _on(self, workload: _Workload, node_name: str) -> list[OwnedPod]:
        """Return the pods on a node or for it, but for those that are being deleted and have ended."""
        found = self._places.get(workload.uid, {}).get(node_name, {}).values()
        return [pod for pod in found if not (pod.pod.is_terminating and pod.pod.is_terminal)]

    def _keep(self, workload: _Workload, state: _DaemonSetState, now: int) -> list[Action]:
        """Create and delete pods on touched nodes; nodes that must wait stay touched."""
        touched, state.touched = state.touched, {}
        actions: list[Action] = []
        for node_name in touched:
            found = self._keep_node(workload, state, node_name, now)
            actions += found
            if found:
                # A request may fail: check the node again after it.
                state.touched[node_name] = None
        created = sum(isinstance(action, CreateObject) for action in actions)
        self._expectations.expect_creations(workload.uid, created, now)
        return actions

    def _keep_node(self, workload: _Workload, state: _DaemonSetState, node_name: str, now: int) -> list[Action]:
        pods = self._on(workload, node_name)
        kept = [pod for pod in pods if not pod.pod.is_terminating]
        node = self._nodes.get(node_name)
        if node is None:
            # Pods on a deleted node are left to the pod garbage collector; pending pods for it are not.
            return [self._delete(workload, pod.pod, now) for pod in kept if node_name and not pod.pod.spec.node_name]
        is_wanted, may_stay = state.fitness.of(node)
        if not may_stay:
            return [self._delete(workload, pod.pod, now) for pod in kept]
        if len(pods) == 1 and pods[0].is_active:
            return []
        running = sorted((pod for pod in kept if not pod.pod.is_terminal), key=daemon_order)
        surge = _surge(workload, 1)
        # With a surge, the end of a pod is not awaited.
        made = self._make(workload, state, node_name, now) if is_wanted and not (running if surge else pods) else []
        surplus = [pod for pod in kept if pod.pod.is_terminal and self._may_go(workload, state, pod, now)]
        surplus += self._surplus_of_surge(workload, state, running, now) if surge else running[1:]
        return [*made, *(self._delete(workload, pod.pod, now) for pod in surplus)]

    def _surplus_of_surge(
        self, workload: _Workload, state: _DaemonSetState, running: list[OwnedPod], now: int
    ) -> list[OwnedPod]:
        """Return the surplus pods of a node, on which an old pod may stay until a new one is available."""
        old = [pod for pod in running if is_outdated(pod.pod, state.revision)]
        new = [pod for pod in running if not is_outdated(pod.pod, state.revision)]
        if old and new:
            time = new[0].available_ns(workload.object.spec.min_ready_seconds)
            if not old[0].is_ready or (time is not None and time <= now):
                return [*old, *new[1:]]
            if time is not None:
                self._times.append(time)
                state.touch(target_node(new[0].pod))
        return [*old[1:], *new[1:]]

    def _make(self, workload: _Workload, state: _DaemonSetState, node_name: str, now: int) -> list[Action]:
        if self._waits_for(self._ends, workload, node_name, now) or not self._may_create(workload, now):
            state.touch(node_name)
            return []
        metadata = {"generateName": f"{workload.object.metadata.name}-"}
        spec = daemon_spec(workload.template.get("spec", {}), node_name)
        pod = workload.new_pod(workload.template, metadata, {REVISION_LABEL: state.revision}, spec)
        return [CreateObject(pod, workload.label)]

    def _may_go(self, workload: _Workload, state: _DaemonSetState, pod: OwnedPod, now: int) -> bool:
        """Return whether an ended pod may be deleted now; a failed one may have to wait."""
        if pod.pod.status.phase != "Failed":
            return True
        node_name = target_node(pod.pod)
        if self._waits_for(self._failures, workload, node_name, now):
            state.touch(node_name)
            return False
        self._failures.fail((workload.uid, node_name), now)
        return True

    def _waits_for(self, backoff: Backoff[tuple[str, str]], workload: _Workload, node_name: str, now: int) -> bool:
        """Return whether a node's backoff is not over; schedule another sync for its end."""
        key = workload.uid, node_name
        until = backoff.until(key, now)
        if until is not None:
            (self._retry_times if backoff.is_hopeless(key) else self._times).append(until)
        return until is not None

    def _exchange(self, workload: _Workload, state: _DaemonSetState, now: int) -> list[Action]:
        """Delete pods of old templates: unavailable ones, and as many others as may be missing.

        With a surge, create new pods beside them instead: beside unavailable ones, and as many others as it allows.
        """
        strategy = workload.object.spec.update_strategy
        if strategy.type != "RollingUpdate" or not state.replaceable:
            return []
        sums = state.sums
        if surge := _surge(workload, sums["desired"]):
            names = state.exchangeable(surge - sums["surging"])
            actions = [action for name in names for action in self._make(workload, state, name, now)]
            self._expectations.expect_creations(workload.uid, len(actions), now)
            return actions
        most = pods_of_share(strategy.rolling_update.max_unavailable, sums["desired"]) or 1
        left = most - (sums["desired"] - sums["in_service"])
        return [self._delete(workload, state.replaceable[name].pod, now) for name in state.exchangeable(left)]

    def _count(self, workload: _Workload, state: _DaemonSetState, now: int) -> None:
        uncounted, state.uncounted = state.uncounted, {}
        seconds = workload.object.spec.min_ready_seconds
        for node_name in uncounted:
            node = self._nodes.get(node_name)
            pods = self._on(workload, node_name) if node is not None else []
            is_wanted = node is not None and state.fitness.of(node)[0]
            times = {pod.uid: time for pod in pods if (time := pod.available_ns(seconds)) is not None}
            state.count(node_name, pods, {uid for uid, time in times.items() if time <= now}, is_wanted=is_wanted)
            if coming := [time for time in times.values() if time > now]:
                state.uncounted[node_name] = None
                self._times.extend(coming)

    # Templates

    def _given_hash(self, workload: _Workload) -> str:
        """Return the label of the newest active pod, "" without one."""
        uid, active = workload.uid, self._pods.of(workload.uid).active
        if not active:
            return ""
        if uid not in self._newest or self._newest[uid][2] not in active:
            self._newest[uid] = max(map(_age, active.values()))
        return active[self._newest[uid][2]].pod.metadata.labels.get(REVISION_LABEL, "")


def _age(pod: OwnedPod) -> tuple[int, str, str]:
    """Sort pods by their creation, the newest last."""
    return pod.created_ns, pod.pod.metadata.name, pod.uid


def _suitability_of(node: Node) -> tuple[object, ...]:
    """Return the properties of a node that decide which pods it should have."""
    return node.metadata.uid, node.metadata.labels, node.spec.taints


def _surge(workload: _Workload, nodes: int) -> int:
    """Return on how many of the nodes an update may add a second pod; 0 if it replaces pods."""
    strategy = workload.object.spec.update_strategy
    return pods_of_share(strategy.rolling_update.max_surge, nodes) if strategy.type == "RollingUpdate" else 0


def _status(workload: _Workload, state: _DaemonSetState) -> Raw:
    sums = state.sums
    counts = {
        "observedGeneration": workload.object.metadata.generation,
        "currentNumberScheduled": sums["current"],
        "numberMisscheduled": sums["misscheduled"],
        "desiredNumberScheduled": sums["desired"],
        "numberReady": sums["ready"],
        "updatedNumberScheduled": sums["updated"],
        "numberAvailable": sums["available"],
        "numberUnavailable": sums["desired"] - sums["available"],
    }
    return status_with(workload.status, counts, always=_ALWAYS)
