"""The controller of DaemonSets: a pod on each node that is fit for it.

Source: pkg/controller/daemon. Updates exchange pods without surge.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from podium.api.meta import Kubernetes, Raw
from podium.api.node import Node
from podium.api.workloads import ControllerRevision, DaemonSet
from podium.machines.actions import Action, CreateObject
from podium.machines.parts.backoff import Backoff
from podium.machines.workloads.daemons.counts import DaemonCounts, count_node, daemon_order
from podium.machines.workloads.daemons.pods import NodeFitness, daemon_spec, target_node
from podium.machines.workloads.owned_pods import OwnedPod, Sighting
from podium.machines.workloads.status_writes import status_with
from podium.machines.workloads.template_revisions import REVISION_LABEL, RevisionedController
from podium.machines.workloads.workload import Workload, pods_of_share

_SECOND = 10**9
_FIRST_NS = _SECOND
_LONGEST_NS = 900 * _SECOND
_ALWAYS = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")


@dataclass(slots=True, eq=False)
class _State:
    """What is known of a DaemonSet's nodes for the template and the generation that it was worked out for.

    ``touched`` nodes are to be looked at, ``uncounted`` ones to be counted anew.
    """

    fitness: NodeFitness
    generation: int
    revision: str
    counts: DaemonCounts = field(default_factory=DaemonCounts)
    touched: dict[str, None] = field(default_factory=dict)
    uncounted: dict[str, None] = field(default_factory=dict)

    def touch(self, node_name: str) -> None:
        """Something has happened on the node."""
        self.touched[node_name] = None
        self.uncounted[node_name] = None


class DaemonSets(RevisionedController[DaemonSet]):
    """Makes pods for nodes that are fit and have none; deletes pods that have ended, and those of nodes not fit.

    A pod that has failed is deleted, and so made anew, after a back-off for its node: none at first, then 1 s, doubled
    up to 15 minutes. Where a pod is gone as soon as it was made, or is bound to another node, the next one waits
    alike.
    """

    watches = RevisionedController.watches | {"DaemonSet", "Node", "Pod"}

    def __init__(self) -> None:
        super().__init__(DaemonSet)
        self._nodes: dict[str, Node] = {}
        self._states: dict[str, _State] = {}
        # By the owner's uid and the node, the pods on it and those made for it.
        self._places: dict[str, dict[str, dict[str, OwnedPod]]] = {}
        self._failures: Backoff[tuple[str, str]] = Backoff(_FIRST_NS, _LONGEST_NS)
        self._ends: Backoff[tuple[str, str]] = Backoff(_FIRST_NS, _LONGEST_NS)

    # What the API shows

    def _see(self, object_: Kubernetes, raw: Raw) -> None:
        super()._see(object_, raw)
        if isinstance(object_, Node):
            name, before = object_.metadata.name, self._nodes.get(object_.metadata.name)
            self._nodes[name] = object_
            if before is None or _what_counts(before) != _what_counts(object_):
                self._node_changed(name)

    def _lose(self, object_: Kubernetes) -> None:
        super()._lose(object_)
        if isinstance(object_, Node) and self._nodes.pop(object_.metadata.name, None) is not None:
            self._node_changed(object_.metadata.name)

    def _node_changed(self, node_name: str) -> None:
        for uid, state in self._states.items():
            state.touch(node_name)
            self._queue.add(uid)

    def _see_pod(self, sighting: Sighting, now: int) -> None:
        uid = sighting.owner_uid
        for pod in (sighting.before, sighting.after):
            if pod is not None:
                self._place(uid, pod, is_there=pod is sighting.after)
        pod = sighting.after or sighting.before
        if sighting.before is None:
            self._expectations.see_creation(uid)
        elif sighting.after is not None and target_node(sighting.before.pod) != target_node(sighting.after.pod):
            # Its node still has none, and the next may be sent elsewhere too.
            self._ends.fail((uid, target_node(sighting.before.pod)), now)
        if sighting.before is not None and pod is not None and (sighting.after is None or not pod.is_active):
            was_asked_for = self._expectations.see(uid, pod.uid)
            has_failed = pod.pod.status.phase == "Failed"
            if sighting.has_stopped and not was_asked_for and not has_failed and self._is_new(pod, now):
                self._ends.fail((uid, target_node(pod.pod)), now)
        self._queue.add(uid)

    def _place(self, uid: str, pod: OwnedPod, *, is_there: bool) -> None:
        node_name = target_node(pod.pod)
        nodes = self._places.setdefault(uid, {})
        pods = nodes.setdefault(node_name, {})
        if is_there:
            pods[pod.uid] = pod
        else:
            pods.pop(pod.uid, None)
        if not pods:
            del nodes[node_name]
        if not nodes:
            del self._places[uid]
        if uid in self._states:
            self._states[uid].touch(node_name)

    def _remove(self, uid: str) -> None:
        super()._remove(uid)
        state = self._states.pop(uid, None)
        for node_name in {*self._places.get(uid, ()), *(state.counts.nodes if state is not None else ())}:
            self._failures.forget((uid, node_name))
            self._ends.forget((uid, node_name))

    # What is to be done

    def _sync(self, workload: Workload[DaemonSet], now: int) -> list[Action]:
        history = self._history(workload)
        update = self._present_revision(workload, history)
        if update is None:
            return self._begin_revision(workload, history, now)
        if workload.is_deleted:
            return []
        state = self._state(workload, update)
        actions = self._renumber(workload, history, update)
        if self._expectations.are_met(workload.uid):
            steps = self._keep(workload, state, now)
            self._count(workload, state, now)
            if not steps:
                steps = self._exchange(workload, state, now)
            actions += steps or self._forget_history(workload, history, lambda: self._live(workload, update), now)
        else:
            self._count(workload, state, now)
        return actions + self._statuses.write(workload, _status(workload, state))

    def _state(self, workload: Workload[DaemonSet], update: ControllerRevision) -> _State:
        """What is known for this generation; where it is a new one all nodes are looked at."""
        revision = update.metadata.labels.get(REVISION_LABEL, update.metadata.name)
        generation = workload.object.metadata.generation
        state = self._states.get(workload.uid)
        if state is None or (state.generation, state.revision) != (generation, revision):
            fitness = NodeFitness(workload.object.spec.template.spec)
            state = self._states[workload.uid] = _State(fitness, generation, revision)
            for node_name in (*self._nodes, *self._places.get(workload.uid, ())):
                state.touch(node_name)
        return state

    def _on(self, workload: Workload[DaemonSet], node_name: str) -> list[OwnedPod]:
        return list(self._places.get(workload.uid, {}).get(node_name, {}).values())

    def _keep(self, workload: Workload[DaemonSet], state: _State, now: int) -> list[Action]:
        """Make and delete pods on the nodes where something has happened; those that must wait are kept in mind."""
        touched, state.touched = state.touched, {}
        actions: list[Action] = []
        created = 0
        for node_name in touched:
            found = self._keep_node(workload, state, node_name, now)
            created += sum(isinstance(action, CreateObject) for action in found)
            actions += found
            if found:
                # What is asked for may fail: the node is looked at again when nothing is outstanding.
                state.touched[node_name] = None
        self._expectations.expect_creations(workload.uid, created, now)
        return actions

    def _keep_node(self, workload: Workload[DaemonSet], state: _State, node_name: str, now: int) -> list[Action]:
        pods = self._on(workload, node_name)
        kept = [pod for pod in pods if not pod.pod.is_terminating]
        node = self._nodes.get(node_name)
        if node is None:
            # Pods on a node that is gone are for others to collect; those that wait for it nobody else knows about.
            return [self._delete(workload, pod, now) for pod in kept if node_name and not pod.pod.spec.node_name]
        is_wanted, may_stay = state.fitness.of(node)
        if not may_stay:
            return [self._delete(workload, pod, now) for pod in kept]
        if is_wanted and not pods:
            return self._make(workload, state, node_name, now)
        running = sorted((pod for pod in kept if not pod.pod.is_terminal), key=daemon_order)
        surplus = [pod for pod in kept if pod.pod.is_terminal and self._may_go(workload, state, pod, now)]
        return [self._delete(workload, pod, now) for pod in (*surplus, *running[1:])]

    def _make(self, workload: Workload[DaemonSet], state: _State, node_name: str, now: int) -> list[Action]:
        if self._waits_for(self._ends, workload, node_name, now) or not self._may_create(workload, now):
            state.touch(node_name)
            return []
        metadata = {"generateName": f"{workload.object.metadata.name}-"}
        spec = daemon_spec(workload.template.get("spec", {}), node_name)
        pod = workload.new_pod(workload.template, metadata, {REVISION_LABEL: state.revision}, spec)
        return [CreateObject(pod, workload.label)]

    def _may_go(self, workload: Workload[DaemonSet], state: _State, pod: OwnedPod, now: int) -> bool:
        """Whether a pod that has ended may be deleted now; one that has failed may have to wait."""
        if pod.pod.status.phase != "Failed":
            return True
        node_name = target_node(pod.pod)
        if self._waits_for(self._failures, workload, node_name, now):
            state.touch(node_name)
            return False
        self._failures.fail((workload.uid, node_name), now)
        return True

    def _waits_for(
        self, backoff: Backoff[tuple[str, str]], workload: Workload[DaemonSet], node_name: str, now: int
    ) -> bool:
        """Whether a back-off for the node is not over; it is looked at again when it is."""
        key = workload.uid, node_name
        until = backoff.until(key, now)
        if until is not None:
            (self._retry_times if backoff.is_hopeless(key) else self._times).append(until)
        return until is not None

    def _exchange(self, workload: Workload[DaemonSet], state: _State, now: int) -> list[Action]:
        """Delete pods of old templates: those not available, and as many others as may be missing."""
        strategy = workload.object.spec.update_strategy
        if strategy.type != "RollingUpdate" or not state.counts.replaceable:
            return []
        sums = state.counts.sums
        most = pods_of_share(strategy.rolling_update.max_unavailable, sums["desired"], rounds_up=True) or 1
        left = most - (sums["desired"] - sums["in_service"])
        actions: list[Action] = []
        for node_name, pod in sorted(state.counts.replaceable.items()):
            if state.counts.nodes[node_name].in_service:
                left -= 1
                if left < 0:
                    continue
            actions.append(self._delete(workload, pod, now))
        return actions

    def _count(self, workload: Workload[DaemonSet], state: _State, now: int) -> None:
        uncounted, state.uncounted = state.uncounted, {}
        seconds = workload.object.spec.min_ready_seconds
        for node_name in uncounted:
            node = self._nodes.get(node_name)
            pods = self._on(workload, node_name) if node is not None else []
            is_wanted = node is not None and state.fitness.of(node)[0]
            times = {pod.uid: time for pod in pods if (time := pod.available_ns(seconds)) is not None}
            available = [pod for pod in pods if times.get(pod.uid, now + 1) <= now]
            state.counts.put(node_name, count_node(pods, state.revision, available, is_wanted=is_wanted))
            if coming := [time for time in times.values() if time > now]:
                state.uncounted[node_name] = None
                self._times.extend(coming)

    # Templates

    def _given_hash(self, workload: Workload[DaemonSet]) -> str:
        """What the newest pod calls its template."""
        pods = self._pods.of(workload.uid).active.values()
        if not pods:
            return ""
        newest = max(pods, key=lambda pod: (pod.created_ns, pod.pod.metadata.name))
        return newest.pod.metadata.labels.get(REVISION_LABEL, "")

    def _live(self, workload: Workload[DaemonSet], update: ControllerRevision) -> set[str]:
        """The names of the revisions that pods have."""
        name = workload.object.metadata.name
        pods = self._pods.of(workload.uid).all.values()
        return {update.metadata.name, *(f"{name}-{pod.pod.metadata.labels.get(REVISION_LABEL, '')}" for pod in pods)}


def _what_counts(node: Node) -> tuple[object, ...]:
    """The parts of a node that say for which pods it is fit."""
    return node.metadata.uid, node.metadata.labels, node.spec.taints


def _status(workload: Workload[DaemonSet], state: _State) -> Raw:
    sums = state.counts.sums
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
