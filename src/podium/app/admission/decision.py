"""The decision about the new pods of a request: nodes, pods to preempt, or no place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from podium.api.input.codec import Document
from podium.api.meta import Kubernetes
from podium.api.pod import Pod
from podium.api.workloads import WORKLOADS, CronJob, DaemonSet, Deployment, Job, StatefulSet, pod_template, pods_wanted
from podium.app.console.cells import agreeing, counted
from podium.app.explaining.obstacles import CORDONED, FULL, RESOURCE, SELECTION, TAINT, TOO_LARGE, cut
from podium.app.explaining.workload import POD
from podium.app.planning.deciding.capacity import capacity_by_node
from podium.app.planning.deciding.causes import BlockedPods, blocked_on
from podium.app.planning.deciding.decisions import DAEMON_SET, Decisions
from podium.cluster.pods import PodRecord

KINDS = frozenset((POD, *WORKLOADS)) - {"ReplicationController"}
"""The kinds of the objects that are decided about."""

MAX_WARNINGS = 8
_MAX_WORKLOADS = 3
# Their controllers replace the pods of an old template.
_REPLACING = (Deployment, StatefulSet, DaemonSet)
# Obstacles that no pod's end removes.
_LASTING = frozenset((TOO_LARGE, TAINT, SELECTION, CORDONED))
_NO_ROOM = frozenset((RESOURCE, TOO_LARGE, FULL))


@dataclass(slots=True)
class AdmissionFinding:
    """The decisions about the ``number`` of new pods of an object: ``decided`` of them, of which ``waiting`` wait.

    ``victims`` counts the pods that they preempt by workload; ``why`` is about the first pod that waits. Of a
    DaemonSet's pods those ``waiting`` have no room on their node, of which ``preempting`` may preempt. ``decided`` is
    less than the number if time was short. ``pending`` are the pods that wait already. Nothing is decided about pods of
    gangs, gated pods, and those of schedulers that are not configured.
    """

    kind: str
    number: int = 0
    decided: int = 0
    waiting: int = 0
    preempting: int = 0
    victims: Counter[str] = field(default_factory=Counter)
    why: BlockedPods | None = None
    pending: int = 0

    def warnings(self) -> tuple[str, ...]:
        """Return what to tell the user, in lines of at most 120 characters; () if all pods find a node."""
        found = [*self._without_place(), *self._preempting()]
        if not found:
            return ()
        if self.decided < self.number:
            found.append(f"only the first {self.decided:,} of {self.number:,} pods were decided in the time allowed")
        waits = f", and without {counted(self.pending, 'pending pod')}" if self.pending else ""
        found.append(f"decided for the cluster as it is now{waits}; no autoscaler, no quotas: see podium plan fit")
        return tuple(map(cut, found[:MAX_WARNINGS]))

    def _without_place(self) -> Iterator[str]:
        if not self.waiting or self.why is None:
            return
        types = [{each.type for each in group.obstacles} for group in self.why.nearest]
        lasts = bool(types) and all(found & _LASTING for found in types)
        what = "this pod" if self.kind == POD else f"a pod of this {self.kind}"
        if self.kind == DAEMON_SET and self.why.before is not None:
            yield f"the pods of this DaemonSet find no node: {self.why.text}"
        elif self.kind == DAEMON_SET:
            have = agreeing(self.waiting, "lacks")
            yield f"{self.waiting:,} of {counted(self.number, 'node')} {have} room for this DaemonSet: {self.why.text}"
            if self.preempting:
                yield f"this DaemonSet would preempt pods on {counted(self.preempting, 'node')}"
        elif self.waiting == self.decided and lasts:
            yield f"no node of this cluster can run {what}: {self.why.text}"
        elif self.kind == POD:
            yield f"this pod finds no node now: {self.why.text}"
        else:
            noun = "replicas" if self.kind not in ("Job", "CronJob") else "pods"
            find = agreeing(self.waiting, "finds")
            yield f"{self.waiting:,} of {self.number:,} {noun} {find} no node: {self.why.text}"

    def _preempting(self) -> Iterator[str]:
        what = "this pod" if self.kind == POD else f"this {self.kind}"
        ordered = sorted(self.victims.items(), key=lambda item: (-item[1], item[0]))
        for workload, number in ordered[:_MAX_WORKLOADS]:
            yield f"{what} would preempt {counted(number, 'pod')} of {workload}"
        rest = ordered[_MAX_WORKLOADS:]
        if rest:
            pods = counted(sum(number for _, number in rest), "pod")
            yield f"{what} would preempt {pods} of {counted(len(rest), 'further workload')}"


def decide(
    decisions: Decisions, document: Document, old: Kubernetes | None, has_time: Callable[[], bool]
) -> AdmissionFinding:
    """Decide about the new pods of an object one after another, as long as there is time; nothing is kept.

    ``old`` is what an update replaces. If it has another template, the pods of the old one have left before. Raises
    InputError for a pod that no API server would accept.
    """
    item = document.object
    if item is None:
        raise AssertionError("an object of a kind that is not read makes no pods")
    finding = AdmissionFinding(item.kind, pending=len(decisions.pending))
    is_changed = old is not None and _template(old) != _template(item)
    if item.metadata.controller is not None or item.metadata.deletion_timestamp is not None:
        # The request for its owner was decided about.
        return finding
    with decisions.what_if() as what_if:
        if is_changed and isinstance(item, _REPLACING):
            workload, namespace = f"{item.metadata.namespace}/{item.kind}/{item.metadata.name}", item.metadata.namespace
            placed = decisions.cluster.placed.values()
            for pod in [each for each in placed if each.namespace == namespace and each.workload == workload]:
                what_if.take_off(pod.uid)
        existing = 0 if old is None or (is_changed and isinstance(item, (*_REPLACING, Pod, CronJob))) else _number(old)
        if isinstance(item, DaemonSet):
            if old is None or is_changed:
                _decide_daemons(decisions, document, finding)
        elif _number(item) > existing:
            finding.number = _number(item) - existing
            _decide_replicas(decisions, document, existing, finding, has_time)
    return finding


def _template(item: Kubernetes) -> object:
    """Return what a workload's pods are made from."""
    return item.spec if isinstance(item, Pod) else pod_template(item)


def _number(item: Kubernetes) -> int:
    """Return the number of pods that an object makes at once and that need a node; DaemonSets apart."""
    if isinstance(item, Pod):
        return int(not item.spec.node_name and not item.is_terminal)
    if isinstance(item, CronJob):
        job = item.spec.job_template.spec
        return 0 if item.spec.suspend or job.suspend else job.most_at_once
    return 0 if isinstance(item, Job) and item.spec.suspend else pods_wanted(item) or 0


def _decide_replicas(
    decisions: Decisions, document: Document, existing: int, finding: AdmissionFinding, has_time: Callable[[], bool]
) -> None:
    """Decide about the replicas of a workload one after another, and record the result in the finding."""
    item, number = document.object, finding.number
    has_claims = isinstance(item, StatefulSet) and bool(item.spec.volume_claim_templates)
    if isinstance(item, Pod):
        pods = iter([decisions.create(item)])
    else:
        first, name = (item.spec.ordinals.start, item.metadata.name) if isinstance(item, StatefulSet) else (0, "")
        known = [f"{name}-{ordinal}" for ordinal in range(first, first + existing)]
        pods = decisions.copies(decisions.create_next(document, known), number)
    for pod in pods:
        if not has_time():
            return
        if not _is_decided(decisions, pod):
            finding.number = 0
            return
        room = None
        if not finding.decided and not has_claims and number > 1:
            room = capacity_by_node(decisions, pod, enough=number)
        if room is not None and room.total >= number:
            finding.decided = number
            return
        result = decisions.schedule([pod], preempts=True)
        finding.decided += 1
        finding.victims += result.victims_by(decisions.workloads)
        if result.waiting:
            finding.waiting += 1
            finding.why = finding.why or blocked_on(decisions, (result.waiting[0],))
        if finding.waiting and not has_claims:
            # Those after it are equal.
            finding.waiting += number - finding.decided
            finding.decided = number
            return


def _is_decided(decisions: Decisions, pod: PodRecord) -> bool:
    """Return whether the pod gets a node by itself: gates hold none back, and it waits for no others of a gang."""
    runner = decisions.runners.get(pod.scheduler_name)
    return runner is not None and runner.pre_enqueue(pod).is_success and not decisions.is_of_gang(pod)


def _decide_daemons(decisions: Decisions, document: Document, finding: AdmissionFinding) -> None:
    """Decide about a DaemonSet's pod on each of its nodes: it has room there, or has room if it preempts, or not."""
    pod = decisions.create_next(document)
    if not _is_decided(decisions, pod):
        return
    found = blocked_on(decisions, (pod,))
    if found.before is not None:
        finding.number = finding.decided = finding.waiting = 1
        finding.why = found
        return
    groups = [group for group in found.nodes if all(each.type in _NO_ROOM for each in group.obstacles)]
    short = [group for group in groups if group.obstacles]
    rows = {int(row) for group in short for row in group.rows}
    finding.number = finding.decided = sum(len(group.rows) for group in groups)
    finding.waiting = len(rows)
    finding.why = BlockedPods((pod,), None, tuple(short))
    freed = capacity_by_node(decisions, pod, preempts=True, per_node=1) if rows else None
    if freed is not None:
        finding.preempting = sum(number for row, number in freed.counts.items() if row in rows)
