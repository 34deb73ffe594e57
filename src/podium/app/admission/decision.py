"""The decision about the new pods of a request: nodes, pods to preempt, or no place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from msgspec.structs import replace

from podium.api.errors import InputError
from podium.api.input.codec import Document
from podium.api.meta import Kubernetes
from podium.api.pod import Pod
from podium.api.workloads import WORKLOADS, CronJob, DaemonSet, Deployment, Job, StatefulSet, pod_template, pods_wanted
from podium.app.console.cells import agreeing, counted
from podium.app.explaining.obstacles import FULL, RESOURCE, TOO_LARGE, cut
from podium.app.explaining.workload import POD
from podium.app.planning.deciding.capacity import capacity_by_node
from podium.app.planning.deciding.causes import BlockedPods, blocked_on
from podium.app.planning.deciding.decisions import DAEMON_SET, Decisions
from podium.cluster.pods import PodRecord
from podium.controllers.workloads.stateful_sets import ordinal_of
from podium.store.errors import reason_of

KINDS = frozenset((POD, *WORKLOADS)) - {"ReplicationController"}
"""The kinds of the objects that are decided about."""

MAX_WARNINGS = 8
_MAX_WORKLOADS = 3
# Their controllers replace the pods of an old template.
_REPLACING = (Deployment, StatefulSet, DaemonSet)
_NO_ROOM = frozenset((RESOURCE, TOO_LARGE, FULL))


@dataclass(slots=True)
class AdmissionFinding:
    """The decisions about the ``number`` of new pods of an object: ``decided`` of them, of which ``waiting`` wait.

    ``victims`` counts the pods that they preempt by workload; ``why`` is about the first pod that waits. Of a
    DaemonSet's pods those ``waiting`` have no room on their node, of which ``preempting`` may preempt. ``decided`` is
    less than the number if time was short. ``pending`` are the other pods that wait already. ``refusal`` says why the
    API server would refuse the workload's pods. Nothing is decided about pods of gangs, gated pods, and those of
    schedulers that are not configured.
    """

    kind: str
    number: int = 0
    decided: int = 0
    waiting: int = 0
    preempting: int = 0
    victims: Counter[str] = field(default_factory=Counter)
    why: BlockedPods | None = None
    pending: int = 0
    refusal: str = ""

    def warnings(self) -> tuple[str, ...]:
        """Return what to tell the user, in lines of at most 120 characters; () if all pods find a node."""
        if self.refusal:
            return (cut(f"no pod of this {self.kind} would be created: {self.refusal}"),)
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
        lasts = bool(self.why.nearest) and all(group.lasts for group in self.why.nearest)
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

    ``old`` is what an update replaces. If it has another template, the pods that its controller replaces have left
    before. Raises InputError for a pod that no API server would accept.
    """
    item = document.object
    if item is None:
        raise AssertionError("an object of a kind that is not read makes no pods")
    finding = AdmissionFinding(item.kind)
    if item.metadata.controller is not None or item.metadata.deletion_timestamp is not None:
        # The request for its owner was decided about.
        return finding
    is_changed = old is not None and _rolled_out(item) is not None and _rolled_out(old) != _rolled_out(item)
    existing, first = 0 if old is None else _number(old), 0
    if isinstance(item, StatefulSet):
        first = item.spec.ordinals.start
        below = max(0, item.spec.update_strategy.rolling_update.partition - first)
        existing = min(existing, below) if is_changed else existing
    elif is_changed and isinstance(item, (*_REPLACING, Pod, CronJob)):
        existing = 0
    leaving = {item.metadata.uid}
    with decisions.what_if() as what_if:
        if is_changed and isinstance(item, _REPLACING):
            workload, name = f"{item.metadata.namespace}/{item.kind}/{item.metadata.name}", item.metadata.name
            pods = (*decisions.cluster.placed.values(), *decisions.pending)
            own = (pod for pod in pods if pod.namespace == item.metadata.namespace and pod.workload == workload)
            leaving = {pod.uid for pod in own if (ordinal_of(name, pod.name) or 0) >= first + existing}
            for uid in leaving & decisions.cluster.placed.keys():
                what_if.take_off(uid)
        finding.pending = sum(pod.uid not in leaving for pod in decisions.pending)
        finding.number = max(0, _number(item) - existing)
        try:
            if finding.number:
                _decide_new(decisions, document, first + existing, finding, has_time)
        except InputError as error:
            if isinstance(item, Pod):
                raise
            finding.refusal = reason_of(error.problem)
    return finding


def _rolled_out(item: Kubernetes) -> object:
    """Return what all of an object's pods are made from; None if its controller replaces no pods of an old template."""
    if isinstance(item, StatefulSet | DaemonSet) and item.spec.update_strategy.type == "OnDelete":
        return None
    return item.spec if isinstance(item, Pod) else None if _is_paused(item) else pod_template(item)


def _is_paused(item: Kubernetes) -> bool:
    return isinstance(item, Deployment) and item.spec.paused


def _number(item: Kubernetes) -> int:
    """Return the number of pods that an object makes at once and that need a node, 1 for a DaemonSet.

    A paused Deployment counts as one without pods: it makes none of a new template.
    """
    if isinstance(item, DaemonSet):
        return 1
    if isinstance(item, Pod):
        return int(not item.spec.node_name and not item.is_terminal)
    if isinstance(item, CronJob):
        job = item.spec.job_template.spec
        return 0 if item.spec.suspend or job.suspend else job.most_at_once
    return 0 if _is_paused(item) or (isinstance(item, Job) and item.spec.suspend) else pods_wanted(item) or 0


def _decide_new(
    decisions: Decisions, document: Document, first: int, finding: AdmissionFinding, has_time: Callable[[], bool]
) -> None:
    """Decide about new pods one after another, those of StatefulSets from the ``first`` on, and record the result."""
    item, number = document.object, finding.number
    has_claims = isinstance(item, StatefulSet) and bool(item.spec.volume_claim_templates)
    if isinstance(item, StatefulSet):
        later = replace(item.spec, ordinals=replace(item.spec.ordinals, start=first))
        document = replace(document, object=replace(item, spec=later))
    next_pod = decisions.create(item) if isinstance(item, Pod) else decisions.create_next(document)
    if next_pod.gates or next_pod.scheduler_name not in decisions.runners or decisions.is_of_gang(next_pod):
        finding.number = 0
        return
    if isinstance(item, DaemonSet):
        _decide_daemons(decisions, next_pod, finding)
        return
    for pod in (next_pod,) if isinstance(item, Pod) else decisions.copies(next_pod, number):
        if not has_time():
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


def _decide_daemons(decisions: Decisions, pod: PodRecord, finding: AdmissionFinding) -> None:
    """Decide about a DaemonSet's pod on each of its nodes: it has room there, or has room if it preempts, or not."""
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
