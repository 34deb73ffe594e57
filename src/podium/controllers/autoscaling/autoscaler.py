"""The autoscaler: it adds nodes for unschedulable pods, and removes nodes whose pods fit elsewhere.

Source: autoscaler cluster-autoscaler, in its essence; pod-preemption.md, Interactions with Cluster Autoscaler.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from podium.api import meta, reading, times
from podium.api.kinds import manifest_of
from podium.api.node import Node
from podium.api.versions.apis import is_served
from podium.api.versions.release import DEFAULT_RELEASE, Release
from podium.cluster.pods import PodRecord
from podium.controllers.actions import Action, CreateObject, PatchObject, Record, versioned_patch
from podium.controllers.autoscaling.node_removals import AutoscalerView, GroupNode, NodeRemovals
from podium.controllers.controller import PLACEMENT_KINDS, Backoff, WorkQueue
from podium.controllers.deadlines import Deadline, soonest
from podium.controllers.disruption.drain import STUCK_AFTER
from podium.controllers.observations import ActionFinished, Answer, Changed, Deleted, Observation, Tick
from podium.decide import autoscaling as scaling
from podium.decide.node_reports import NodeReport, reporter, reports_like
from podium.decide.transaction import ClusterTransaction
from podium.framework.runner import Runner
from podium.framework.settings.arguments import Strict
from podium.framework.settings.configuration import Configuration, default_configuration
from podium.framework.settings.registry import Registry, build_profiles
from podium.plugins.registry import IN_TREE

_AUTOSCALER = "autoscaler"


class AutoscalerSettings(Strict, frozen=True, kw_only=True):
    """Settings of an autoscaler.

    It scans the cluster ``scan_interval_ns`` after a change. Pods below ``priority_cutoff`` neither cause nor keep
    nodes.
    """

    scan_interval_ns: reading.Duration = 10 * times.SECOND
    priority_cutoff: int = -10
    scale_down: scaling.ScaleDownSettings = scaling.ScaleDownSettings()


class Autoscaler:
    """Adapts node groups to the needs of pods.

    Decisions use an own view of the cluster and the scheduler's filters of ``configuration``. Nominated pods get no
    node. Starting nodes count as existing. Nodes belong to a group by their label `podium.dev/node-group`.
    """

    watches = PLACEMENT_KINDS | {"DaemonSet", "Pod"}

    def __init__(
        self,
        groups: Sequence[scaling.NodeGroup],
        settings: AutoscalerSettings = AutoscalerSettings(),  # noqa: B008 - an immutable value
        configuration: Configuration | None = None,
        *,
        seed: int = 0,
        release: Release = DEFAULT_RELEASE,
    ) -> None:
        """Create an autoscaler. Raises ValueError for two groups of one name, and as `build_profiles` does."""
        self._groups = {group.name: group for group in sorted(groups, key=lambda group: group.name)}
        if len(self._groups) < len(groups):
            raise ValueError("two node groups have the same name")
        self._settings = settings
        self._seed = seed
        self._picture = AutoscalerView(self._groups, release)
        profiles = build_profiles(configuration or default_configuration(), Registry(IN_TREE), self._picture.cluster)
        self._runners = {name: Runner(profile, self._picture.cluster) for name, profile in profiles.items()}
        self._around = scaling.RemovalTerms(
            self._picture.budgets, self._picture.keeps_data, (), settings.scale_down, settings.priority_cutoff
        )
        self._start_ups = NodeStartUps(self._groups, self._picture, _AUTOSCALER)
        self._removals = NodeRemovals(self._picture, settings.scale_down, _AUTOSCALER, self._residents, self._why_kept)
        # When to scan the cluster next, and whether that may have a new effect.
        self._scan_ns: int | None = None
        self._is_curious = False
        self._unneeded_since: dict[str, int] = {}
        # The last report to each pod, by uid.
        self._reported: dict[str, str] = {}

    def handle(self, observation: Observation, now: int) -> list[Action]:
        match observation:
            case Changed(object=object_, raw=raw):
                self._observe(object_, raw, now)
            case Deleted(object=object_):
                self._observe(object_, None, now)
            case ActionFinished():
                self._on_finished(observation, now)
            case Tick():
                actions = self._start_ups.work(now) + self._removals.work(now)
                if self._scan_ns is not None and self._scan_ns <= now:
                    actions += self._scan(now)
                return actions
        return []

    def deadline(self) -> Deadline:
        """Return when something is due; repeated failures do not keep a simulation running."""
        scan = Deadline(self._scan_ns, self._is_curious)
        return soonest(scan, self._start_ups.deadline(), self._removals.deadline())

    def _observe(self, object_: meta.Kubernetes, raw: meta.Raw | None, now: int) -> None:
        makes_difference = self._picture.observe(object_, raw)
        if isinstance(object_, Node):
            self._removals.on_node_change(object_.metadata.name)
            self._start_ups.seen(object_.metadata.name)
        elif isinstance(object_, NodeReport):
            self._start_ups.seen(reporter(object_))
        if makes_difference:
            self._removals.look_again()
            self._look_soon(now)

    def _on_finished(self, finished: ActionFinished, now: int) -> None:
        """Handle an answer; a scan decides again after a failure."""
        if self._start_ups.on_finished(finished, now):
            self._look_soon(now)
        if unmarked := self._removals.on_finished(finished, now):
            self._look_soon(now, self._removals.is_hopeless(unmarked))

    def _look_soon(self, now: int, is_hopeless: bool = False) -> None:
        """Scan the cluster after the scan interval, which covers changes until then."""
        self._look_at(now + self._settings.scan_interval_ns, is_hopeless)

    def _look_at(self, time_ns: int, is_hopeless: bool) -> None:
        """Scan the cluster at a time, or earlier; ``is_hopeless``: what will be tried has failed before."""
        self._scan_ns = time_ns if self._scan_ns is None else min(self._scan_ns, time_ns)
        self._is_curious |= not is_hopeless

    # Looking at the cluster

    def _scan(self, now: int) -> list[Action]:
        self._scan_ns, self._is_curious = None, False
        with ClusterTransaction(self._picture.cluster, self._runners, self._seed) as transaction:
            self._foresee(transaction)
            pending, nodes_of = self._pending(), self._picture.nodes_of
            leaving, offers, shrinkable = set(self._removals.under_way()), [], []
            for name, group in self._groups.items():
                # A group offers at most one node per pod, and none while it pauses.
                free, closed = group.maximum - len(nodes_of[name]), f"at its maximum of {group.maximum} nodes"
                if (paused_ns := self._start_ups.paused_until(name, now)) is not None:
                    free, closed = 0, f"its nodes were refused, tried again from {times.format_time(paused_ns)}"
                names = group.free_names(max(0, min(free, len(pending))), self._picture.cluster.nodes.row_of)
                offers.append(scaling.Expandable(group, names, closed))
                # Started nodes that stay may be removed, down to the minimum.
                staying = [node for node in nodes_of[name] if node not in leaving]
                started = tuple(node for node in staying if node not in self._picture.upcoming)
                shrinkable.append(scaling.Shrinkable(started, len(staying) - group.minimum))
            up = scaling.plan_scale_up(transaction, offers, pending, self._daemons())
            down = scaling.plan_scale_down(transaction, shrinkable, self._surroundings())
        return self._expand(up, now) + self._shrink(down, now)

    def _surroundings(self) -> scaling.RemovalTerms:
        return replace(self._around, closed=self._picture.upcoming.union(self._removals.under_way()))

    def _foresee(self, transaction: ClusterTransaction, but_for: str = "") -> None:
        """Add the reports and DaemonSets' pods of new nodes, and move pods of nodes that are being removed."""
        nodes = transaction.cluster.nodes
        for name in sorted(self._picture.upcoming):
            for report in self._start_ups.missing_reports(name):
                transaction.put(report)
            owners_on_node = {pod.controller.uid for pod in self._picture.pods_on(name) if pod.controller is not None}
            missing = (pod for pod in self._daemons() if pod.uid not in owners_on_node)
            scaling.add_daemons(transaction, nodes.row_of[name], missing)
        for name in self._removals.under_way():
            for pod in self._residents(name).moving if name != but_for else ():
                mark = transaction.savepoint()
                if transaction.settle(transaction.take_off(pod.uid)) is None:
                    transaction.roll_back(mark)

    def _pending(self) -> list[PodRecord]:
        """Return the pods that need capacity and justify a node."""
        pods = self._picture.unschedulable.values()
        return [pod for pod in pods if pod.priority >= self._settings.priority_cutoff]

    def _daemons(self) -> list[PodRecord]:
        return [self._picture.daemons[key] for key in sorted(self._picture.daemons)]

    # More nodes

    def _expand(self, plan: scaling.ScaleUpPlan, now: int) -> list[Action]:
        """Create the chosen nodes, and report to pods. If only a pause prevents help, scan again after it."""
        records = self._report(plan)
        if plan.unhelped:
            for name in self._groups:
                if (paused_ns := self._start_ups.paused_until(name, now)) is not None:
                    self._look_at(paused_ns, self._start_ups.is_hopeless(name))
        if plan.chosen is None:
            return [*records]
        return [*self._start_ups.create(plan.chosen.group, plan.chosen.names), *records]

    def _report(self, plan: scaling.ScaleUpPlan) -> list[Record]:
        """Return the events of a plan about pods, each message once.

        Source: autoscaler cluster-autoscaler/processors/status/eventing_scale_up_processor.go, for reasons and wording.
        """
        before, self._reported = self._reported, {}
        records, chosen = [], plan.chosen
        for pod in plan.unhelped:
            reasons = "; ".join(_listed(plan.refusals[pod.uid])) or "there is no node group"
            message = f"pod didn't trigger scale-up: {reasons}"
            records.append(Record(pod.key, pod.uid, "Normal", "NotTriggerScaleUp", message))
        if chosen is not None:
            for pod in chosen.pods:
                group, others = chosen.group, dict(plan.refusals[pod.uid])
                for option in plan.options:
                    if option is not chosen and option.group.name not in others:
                        is_more = option.waste > chosen.waste
                        than = f"instead of {float(chosen.waste):.1%}" if is_more else "as well, and is later by name"
                        others[option.group.name] = f"wastes {float(option.waste):.1%} {than}"
                size = len(self._picture.nodes_of[group.name])
                growth = f"{group.name} {size}->{size + len(chosen.names)} (max: {group.maximum})"
                message = "; ".join([f"pod triggered scale-up: {growth}", *_listed(others)])
                records.append(Record(pod.key, pod.uid, "Normal", "TriggeredScaleUp", message))
        self._reported = {record.uid: record.message for record in records}
        return [record for record in records if before.get(record.uid) != record.message]

    # Fewer nodes

    def _shrink(self, plan: scaling.ScaleDownPlan, now: int) -> list[Action]:
        """Start to remove nodes that were unneeded for long enough; scan again when the next one is due."""
        since, self._unneeded_since = self._unneeded_since, {}
        under_way, settings = self._removals.under_way(), self._settings.scale_down
        free = settings.max_removals - len(under_way)
        free_drains = settings.max_drains - sum(not self._residents(name).is_empty for name in under_way)
        created = (
            now if each.is_expected else times.time_of(each.node.metadata.creation_timestamp) or 0
            for each in self._picture.nodes.values()
        )
        rest_ns = max(created, default=0) + settings.delay_after_add_ns
        actions: list[Action] = []
        for name in plan.unneeded:
            since_ns = self._unneeded_since[name] = since.get(name, now)
            due_ns = max(since_ns + settings.unneeded_time_ns, rest_ns)
            is_empty = self._residents(name).is_empty
            if due_ns > now:
                self._look_at(due_ns, self._removals.is_hopeless(name))
            elif free > 0 and (is_empty or free_drains > 0):
                free -= 1
                free_drains -= not is_empty
                actions.append(self._removals.begin(name, now))
        return actions

    def _residents(self, name: str) -> scaling.Residents:
        return scaling.residents(self._picture.pods_on(name), self._around)

    def _why_kept(self, name: str) -> str:
        """Return why a marked node cannot be removed any more, or ""."""
        group = self._groups[self._picture.nodes[name].group]
        staying = sum(not self._picture.nodes[node].is_leaving for node in self._picture.nodes_of[group.name])
        if staying < group.minimum:
            return f"its group would have {staying} nodes, and {group.minimum} are its minimum"
        with ClusterTransaction(self._picture.cluster, self._runners, self._seed) as transaction:
            self._foresee(transaction, but_for=name)
            scaling.settle_pending(transaction, self._pending())
            return scaling.why_kept(transaction, name, self._surroundings())


def _listed(reasons: Mapping[str, str]) -> list[str]:
    return [f"{group}: {reasons[group]}" for group in sorted(reasons)]


_FIRST_PAUSE_NS = 300 * times.SECOND
_LONGEST_PAUSE_NS = 1_800 * times.SECOND


@dataclass(eq=False)
class NodeStartUps:
    """Creates the nodes of groups, then what they report, and makes them ready.

    A group whose nodes are refused pauses for 5 minutes, doubled with every failure up to 30 (cluster-autoscaler's node
    group backoff). An unanswered creation is sent again until it is answered, or the node is observed.
    """

    groups: Mapping[str, scaling.NodeGroup]
    picture: AutoscalerView
    cause: str
    _queue: WorkQueue[str] = field(default_factory=WorkQueue)
    # By node name, the failed writes in a row.
    _failed: Counter[str] = field(default_factory=Counter)
    # The groups whose nodes were refused.
    _pauses: Backoff[str] = field(default_factory=lambda: Backoff(_FIRST_PAUSE_NS, _LONGEST_PAUSE_NS))

    def __post_init__(self) -> None:
        self.seen = self._queue.add
        self.paused_until = self._pauses.until

    def create(self, group: scaling.NodeGroup, names: Iterable[str]) -> list[Action]:
        actions: list[Action] = []
        for name in names:
            raw = group.node(name)
            self.picture.expect(group.name, raw)
            actions.append(CreateObject(raw, self.cause))
        return actions

    def is_hopeless(self, group: str) -> bool:
        """Return whether the group's nodes were refused repeatedly."""
        return self._pauses.failures(group) >= STUCK_AFTER

    def on_finished(self, finished: ActionFinished, now: int) -> bool:
        """Handle an answer; return whether an expected node will not come."""
        action = finished.action
        if isinstance(action, CreateObject):
            metadata = action.raw["metadata"]
            if action.raw["kind"] == "Node":
                return self._on_created(metadata["name"], finished, now)
            name = metadata["ownerReferences"][0]["name"]
        elif isinstance(action, PatchObject):
            name = action.key
        else:
            return False
        if finished.problem is not None and name in self.picture.nodes:
            self._failed[name] += 1
            self._queue.answer(name, finished, now)
        return False

    def missing_reports(self, name: str) -> list[NodeReport]:
        """Return what an upcoming node will report and was not observed yet."""
        cluster = self.picture.cluster
        reports = reports_like(self.groups[self.picture.nodes[name].group].reports, name)
        return [each for each in reports if is_served(each.kind, cluster.release) and cluster.find(each) is None]

    def work(self, now: int) -> list[Action]:
        actions: list[Action] = []
        while (name := self._queue.take(now)) is not None:
            group_node = self.picture.nodes.get(name)
            if group_node is None:
                self._failed.pop(name, None)
                self._queue.forget(name)
            else:
                actions += self._work_on(name, group_node, now)
        return actions

    def deadline(self) -> Deadline:
        """Return when a node is due; upcoming nodes keep a simulation running unless their writes fail repeatedly."""
        is_stuck = all(self._failed[name] >= STUCK_AFTER for name in self.picture.upcoming)
        return Deadline(self._queue.deadline().time_ns, not is_stuck)

    def _on_created(self, name: str, finished: ActionFinished, now: int) -> bool:
        group_node, answer = self.picture.nodes.get(name), finished.answer
        if answer is Answer.DONE and group_node is not None:
            self._pauses.forget(group_node.group)
        if group_node is None or not group_node.is_expected or answer is Answer.DONE:
            return False
        if answer is Answer.UNKNOWN:
            self._failed[name] += 1
            self._queue.answer(name, finished, now)
            return False
        if answer is not Answer.REPLACED:
            self._pauses.fail(group_node.group, now)
        self.picture.give_up(name)
        return True

    def _work_on(self, name: str, group_node: GroupNode, now: int) -> list[Action]:
        """Create a node; once started, create its reports one by one, mark it as ready, then remove the taint.

        Each step follows when the last one has been observed.
        """
        if group_node.is_expected:
            return [CreateObject(group_node.raw, self.cause)]
        if not group_node.is_upcoming:
            self._failed.pop(name, None)
            self._queue.succeed(name)
            return []
        created_ns = times.time_of(group_node.node.metadata.creation_timestamp)
        ready_ns = (now if created_ns is None else created_ns) + self.groups[group_node.group].start_up_ns
        if now < ready_ns:
            self._queue.add_at(name, ready_ns)
            return []
        if reports := self.missing_reports(name):
            raw = manifest_of(reports[0])
            owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": group_node.node.metadata.uid}
            return [CreateObject({**raw, "metadata": {**raw["metadata"], "ownerReferences": [owner]}}, self.cause)]
        node, conditions = group_node.node, group_node.raw.get("status", {}).get("conditions", [])
        if any((each.get("type"), each.get("reason")) == ("Ready", scaling.STARTING) for each in conditions):
            ready = {"type": "Ready", "status": "True", "reason": "NodeStarted"}
            listed = [ready if each.get("type") == "Ready" else each for each in conditions]
            return [versioned_patch(node, {"status": {"conditions": listed}}, self.cause, "status", "ready")]
        taints = [taint for taint in group_node.raw["spec"]["taints"] if taint["key"] != scaling.STARTUP_TAINT]
        return [versioned_patch(node, {"spec": {"taints": taints or None}}, self.cause, message="started")]
