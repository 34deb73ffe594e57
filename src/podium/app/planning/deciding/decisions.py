"""Decisions about many pods, one after the other, each on what those before it have left; all of it is taken back.

Time stands still: pods that are placed stay, victims are gone at once, and whoever replaces them comes back only where
that is asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial

import msgspec

from podium.api.meta import Kubernetes
from podium.api.pod import Pod
from podium.api.policy import PodDisruptionBudget
from podium.app.cluster import Cluster as LoadedCluster
from podium.app.explaining.gang import GangDecision, decide_gang, gang_plugin
from podium.app.planning.chances.draws import Draws
from podium.app.planning.deciding.fates import LIKENESS, Ending, Fate, Kind, Settled, kind_of
from podium.app.planning.deciding.gang_fates import fates_of
from podium.cluster.cluster import Cluster
from podium.cluster.pods import NOT_STARTED_NS, PodRecord
from podium.decide.cap import PutOff
from podium.decide.placement import Placement, full_outcome, place
from podium.decide.preempting.eligibility import NOT_ELIGIBLE_TERMINATING
from podium.decide.scratch import Scratch
from podium.framework.cycle_state import CycleState
from podium.framework.errors import PluginError
from podium.framework.plugin import is_own
from podium.framework.runner import Runner
from podium.plugins.default_preemption import DefaultPreemption

_DAEMON_SET = "DaemonSet"
# A CronJob has Jobs, a Deployment ReplicaSets.
_MOST_OWNERS = 2


class Decisions:
    """A loaded cluster on which many decisions are made. Between `supposing` and its end nobody else may look at it."""

    def __init__(self, loaded: LoadedCluster) -> None:
        """Raises InputError for a pod that no API server would have taken."""
        explainer = loaded.explainer
        self.loaded = loaded
        self.cluster: Cluster = explainer.cluster
        self.runners: Mapping[str, Runner] = explainer.runners
        self.scratch = Scratch(self.cluster, self.runners)
        self.objects = explainer.objects
        self._read = explainer.read
        self._budgets = {item.key: item for item in self.objects if isinstance(item, PodDisruptionBudget)}
        self._put_off: dict[Kind, PutOff | Ending] = {}
        self._seed = 0
        self._draws: Draws | None = None
        self._supposed: list[Kubernetes] = []
        self.pending = self.in_order(explainer.waiting)
        for pod in self.pending:
            self._note_likeness(pod)

    @cached_property
    def pods(self) -> Mapping[str, Pod]:
        """The pods that were read, by key."""
        return {item.key: item for item in self.objects if isinstance(item, Pod)}

    @cached_property
    def _tops(self) -> Mapping[str, str]:
        """By what makes pods and belongs to something else, such as a Deployment's ReplicaSet, whom it belongs to."""
        found: dict[str, str] = {}
        for item in self.objects:
            controller = None if isinstance(item, Pod) else item.metadata.controller
            if controller is not None:
                label = f"{item.kind} {item.key}"
                found[label] = f"{controller.kind} {item.metadata.namespace}/{controller.name}"
        return found

    def workload_of(self, pod: PodRecord) -> str:
        """Who the pod belongs to in the end, as in `Deployment shop/web`; the pod itself where nobody makes it."""
        controller = pod.controller
        if controller is None:
            return f"Pod {pod.key}"
        label = f"{controller.kind} {pod.namespace}/{controller.name}"
        for _ in range(_MOST_OWNERS):
            label = self._tops.get(label, label)
        return label

    def placed_of(self, workload: str) -> list[PodRecord]:
        """The pods of a workload that have a node, by key."""
        placed = self.cluster.placed
        found = (placed.get(uid) for uid in self._uids_of_workloads.get(workload, ()))
        return sorted(filter(None, found), key=lambda record: record.key)

    @cached_property
    def _uids_of_workloads(self) -> Mapping[str, dict[str, None]]:
        """By workload, the uids of the pods that were read."""
        found: dict[str, dict[str, None]] = {}
        for record in (*self.cluster.placed.values(), *self.pending):
            found.setdefault(self.workload_of(record), {})[record.uid] = None
        return found

    @cached_property
    def daemons(self) -> tuple[PodRecord, ...]:
        """A pod of each DaemonSet, by its key: what one more node gets."""
        found: dict[str, PodRecord] = {}
        for record in sorted(self.cluster.placed.values(), key=lambda record: record.key):
            if record.controller is not None and record.controller.kind == _DAEMON_SET:
                found.setdefault(record.owner_uid, record)
        return tuple(record.without_node() for record in found.values())

    def whose(self, pods: Sequence[PodRecord]) -> str:
        """The workload of pods of one kind; pods that nobody makes may be alike, and are counted."""
        workloads = list(dict.fromkeys(map(self.workload_of, pods)))
        return workloads[0] if len(workloads) == 1 else f"{workloads[0]} and {len(workloads) - 1:,} like it"

    @property
    def budgets(self) -> Mapping[str, PodDisruptionBudget]:
        """The budgets by key, as they are after what was decided so far."""
        return self._budgets

    def in_order(self, pods: Iterable[PodRecord]) -> tuple[PodRecord, ...]:
        """The pods in the order of the queue: the more important first, then the older, then by key."""
        runner = next(iter(self.runners.values()))
        return tuple(sorted(pods, key=lambda pod: (*runner.sort_key(pod, pod.created_ns), pod.key)))

    def read(self, pod: Pod) -> PodRecord:
        """A pod that is not there, as the API server would have stored it. Raises InputError."""
        return self._read(pod)

    def changed(self, record: PodRecord, change: Callable[[Pod], Pod]) -> PodRecord:
        """The pod as it would be if it were written otherwise. Raises InputError where no API server would take it."""
        pod = self.pods.get(record.key)
        if pod is None:
            return record
        written = change(pod)
        if written is pod:
            return record
        found = self._read(written)
        return replace(
            record,
            pod_class=found.pod_class,
            priority=found.priority,
            preemption_policy=found.preemption_policy,
            gates=found.gates,
            scheduler_name=found.scheduler_name,
        )

    def is_of_gang(self, pod: PodRecord) -> bool:
        """Whether the pod's scheduler places it with others of its group, or not at all."""
        runner = self.runners.get(pod.scheduler_name)
        return runner is not None and bool(pod.pod_class.pod_group) and gang_plugin(runner) is not None

    def told_of_gang(self, pod: PodRecord) -> str:
        """How much the gang of a pod that waits lacks, in words to be followed by others; "" where it is not tried."""
        runner = self.runners[pod.scheduler_name]
        decision = decide_gang(runner, pod, preempts=False) if runner.pre_enqueue(pod).is_success else None
        return "" if decision is None or decision.placement.problem else f"its gang {decision.headline}; "

    def least_of_gang(self, pod: PodRecord) -> int:
        """How many pods of the pod's group get nodes together or not at all; 0 where there is no such group."""
        group = self.cluster.pod_groups.of(pod)
        return 0 if group is None else group.min_count

    def is_in_one_domain(self, pod: PodRecord) -> bool:
        """Whether all pods of the pod's group are to be in one topology domain."""
        group = self.cluster.pod_groups.of(pod)
        return group is not None and bool(group.topology_key)

    @contextmanager
    def supposing(self) -> Iterator[Scratch]:
        """What is changed and decided within is taken back at its end."""
        mark = self.scratch.mark()
        try:
            yield self.scratch
        finally:
            self.scratch.roll_back(mark)

    @contextmanager
    def drawing(self, seed: int, draws: Draws | None = None) -> Iterator[None]:
        """What is decided within draws among equals by a seed; ``draws`` notes the draws."""
        before = self._seed, self._draws
        self._seed, self._draws = seed, draws
        try:
            yield
        finally:
            self._seed, self._draws = before

    @property
    def supposed(self) -> tuple[Kubernetes, ...]:
        """The objects that are supposed to be there and are no nodes and no pods, in the order in which they came."""
        return tuple(self._supposed)

    def put(self, item: Kubernetes) -> None:
        """Suppose that an object that is no node and no pod is there, in place of the one of its name."""
        before = self._budgets.get(item.key) if isinstance(item, PodDisruptionBudget) else self.cluster.find(item)
        self._put(item)
        self.scratch.taken_back_by(lambda: self._remove(item) if before is None else self._put(before))
        self._supposed.append(item)
        self.scratch.taken_back_by(self._supposed.pop)

    def settle(self, pods: Iterable[PodRecord], *, preempts: bool = False, comes_back: bool = False) -> Settled:
        """Let pods get nodes, each as its scheduler decides on what those before it have left, and gangs as a whole.

        With ``preempts`` they preempt where they may; whoever is preempted leaves at once, and with ``comes_back`` the
        pod that its controller makes in its place waits with the others. They are tried in the order of the queue,
        again and again until nobody finds a place any more.
        """
        self._put_off = {}
        fates: list[Fate] = []
        left = list(self.in_order(pods))
        while left:
            for pod in left:
                self.scratch.join_group(pod)
            tried, left = left, []
            hopeless: set[Kind] = set()
            number = len(fates)
            returned: list[PodRecord] = []
            gone: set[str] = set()
            for pod in tried:
                if pod.uid in gone:
                    continue
                found = () if kind_of(pod) in hopeless else self._fates(pod, preempts=preempts)
                if not found:
                    hopeless.add(kind_of(pod))
                    left.append(pod)
                    continue
                fates += found
                gone.update(fate.pod.uid for fate in found)
                victims = [victim for fate in found for victim in fate.victims]
                if victims:
                    hopeless.clear()
                    returned += map(_made_again, filter(_is_made_again, victims)) if comes_back else ()
            if len(fates) == number:
                break
            left = list(self.in_order([*(pod for pod in left if pod.uid not in gone), *returned]))
        return Settled(tuple(fates), tuple(left), self._put_off)

    def _note_likeness(self, pod: PodRecord) -> None:
        """Note what the pod's class shares with others of which nodes say the same, whatever their labels are.

        That is its owner and its spec, where each node answers for itself alone: pods of an indexed Job differ by a
        label.
        """
        memo, runner = pod.pod_class.memo, self.runners.get(pod.scheduler_name)
        if LIKENESS in memo or runner is None or not all(map(is_own, runner.profile.filter)):
            return
        state = CycleState()
        try:
            is_let_in = runner.pre_filter(state, pod).status.is_success
        except PluginError:
            return
        if is_let_in and runner.is_row_local(state):
            shared = (pod.namespace, pod.pod_class.owner, pod.pod_class.spec)
            memo[LIKENESS] = msgspec.msgpack.encode(shared, order="deterministic")

    def _fates(self, pod: PodRecord, *, preempts: bool) -> tuple[Fate, ...]:
        """The nodes that the pod, and those of its gang, get and take; none where it waits."""
        runner = self.runners.get(pod.scheduler_name)
        if runner is None or pod.terminating or not runner.pre_enqueue(pod).is_success:
            return ()
        draws = self._draws
        try:
            decision = decide_gang(
                runner, pod, preempts=preempts, alike=kind_of, seed=self._seed, detailed=draws is not None
            )
            if decision is not None:
                if draws is not None:
                    draws.note_group(runner, decision.placement)
                return self._together(runner, decision)
        except PluginError:
            return ()
        if draws is not None:
            draws.note(runner, pod, preempts=preempts)
        fate = self._fate(runner, pod, preempts=preempts)
        return () if fate is None else (fate,)

    def _together(self, runner: Runner, decision: GangDecision) -> tuple[Fate, ...]:
        """The nodes that the pods of a gang get, and take."""
        fates = fates_of(decision)
        self._take_off([victim for fate in fates for victim in fate.victims])
        placements = {member.pod.uid: member.placement for member in decision.placement.members}
        for fate in fates:
            if decision.is_enough:
                self._reserve(runner, placements[fate.pod.uid], fate.pod, fate.node)
            self._take(fate.pod, self.cluster.nodes.row_of[fate.node])
        return fates

    def _fate(self, runner: Runner, pod: PodRecord, *, preempts: bool) -> Fate | None:
        """The node that a pod by itself gets, and takes; None where it waits."""
        try:
            placement = place(runner, pod, self._seed, detailed=False)
            if placement.row is not None:
                name = self.cluster.nodes.name(placement.row)
                is_kept = self._reserve(runner, placement, pod, name)
                if is_kept:
                    self._take(pod, placement.row)
                return Fate(pod, name) if is_kept else None
            return self._preempting(runner, pod, placement) if preempts and not placement.error else None
        except PluginError:
            return None

    @staticmethod
    def preemption_of(runner: Runner) -> DefaultPreemption | None:
        """What preempts in a scheduler's profile; None where nothing does."""
        return next((plugin for plugin in runner.profile.post_filter if isinstance(plugin, DefaultPreemption)), None)

    def _preempting(self, runner: Runner, pod: PodRecord, placement: Placement) -> Fate | None:
        plugin = self.preemption_of(runner)
        if plugin is None:
            return None
        plan = plugin.plan(placement.state, pod, runner, full_outcome(self.cluster, placement), seed=self._seed)
        if plan.chosen is None:
            if plan.put_off is not None:
                self._put_off[kind_of(pod)] = plan.put_off
            elif plan.reason == NOT_ELIGIBLE_TERMINATING:
                self._put_off[kind_of(pod)] = Ending(pod.nominated_node_name)
            return None
        victims = plan.chosen.victims
        self._take_off(victims)
        self._take(pod, self.cluster.nodes.row_of[plan.chosen.node_name])
        return Fate(pod, plan.chosen.node_name, victims)

    def _reserve(self, runner: Runner, placement: Placement, pod: PodRecord, node: str) -> bool:
        """Let volumes and devices be kept for the pod, as its scheduler does; whether that works."""
        mark = self.scratch.mark()
        for plugin in runner.profile.reserve:
            self.scratch.taken_back_by(partial(plugin.unreserve, placement.state, pod, node))
            if not plugin.reserve(placement.state, pod, node).is_success:
                self.scratch.roll_back(mark)
                return False
        return True

    def _take(self, pod: PodRecord, row: int) -> None:
        """Let the pod be on the node in a row, and be nominated to none."""
        nominations = self.cluster.nominations
        node = nominations.remove(pod.uid)
        if node:
            self.scratch.taken_back_by(lambda: nominations.put(pod, node))
        self.scratch.place(pod, row)

    def _take_off(self, victims: Sequence[PodRecord]) -> None:
        """Let the victims be gone, and count them."""
        self._count(victims)
        for victim in victims:
            self.scratch.take_off(victim.uid)
            self.scratch.leave_group(victim)

    def _count(self, victims: Sequence[PodRecord]) -> None:
        """Count the victims where disruptions are counted: in the caps on schedulers, and in the budgets."""
        caps, budgets = self.cluster.caps, self.cluster.budgets
        before = dict(caps.known())
        counted = Counter(
            victim.namespace for victim in victims if victim.is_healthy and budgets.counts(victim.pod_class)
        )
        needs = caps.needs(counted)
        if needs and caps.shortage(needs) is None:
            caps.take(needs)
            self.scratch.taken_back_by(lambda: caps.assume(before))
        for victim in victims:
            for budget in list(budgets.over(victim.pod_class)):
                known = self._budgets.get(budget.key)
                if victim.ready and known is not None and known.status.disruptions_allowed > 0:
                    allowed = known.status.disruptions_allowed - 1
                    status = msgspec.structs.replace(known.status, disruptions_allowed=allowed)
                    self.put(msgspec.structs.replace(known, status=status))

    def _put(self, item: Kubernetes) -> None:
        if isinstance(item, PodDisruptionBudget):
            self._budgets[item.key] = item
        self.cluster.put(item)

    def _remove(self, item: Kubernetes) -> None:
        if isinstance(item, PodDisruptionBudget):
            del self._budgets[item.key]
        self.cluster.remove(item)


def _is_made_again(victim: PodRecord) -> bool:
    """Whether a controller makes a pod in the victim's place that may go anywhere."""
    return victim.controller is not None and victim.controller.kind not in (_DAEMON_SET, "Node")


def _made_again(victim: PodRecord) -> PodRecord:
    """The pod that comes in the place of one that was preempted."""
    return victim.without_node(
        uid=f"{victim.uid}/again",
        start_ns=NOT_STARTED_NS,
        ready=False,
        terminating=False,
        preempted=False,
    )
