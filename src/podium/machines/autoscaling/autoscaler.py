"""The autoscaler: adds nodes for pods that fit nowhere, and removes nodes whose pods fit elsewhere.

Source: autoscaler cluster-autoscaler, in its essence; pod-preemption.md, Interactions with Cluster Autoscaler.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from podium.api.meta import Kubernetes
from podium.api.node import Node
from podium.api.times import format_time, parse_time
from podium.cluster.pods import PodRecord
from podium.decide.scaling.node_groups import NodeGroup
from podium.decide.scaling.scale_down import (
    RemovalTerms,
    Residents,
    ScaleDownOptions,
    ScaleDownPlan,
    Shrinkable,
    plan_scale_down,
    residents,
    why_kept,
)
from podium.decide.scaling.scale_up import Expandable, ScaleUpPlan, add_daemons, plan_scale_up, settle_pending
from podium.decide.scratch import Scratch
from podium.framework.runner import Runner
from podium.framework.settings.configuration import Configuration, default_configuration
from podium.framework.settings.profile_builder import build_profiles
from podium.framework.settings.registry import Registry
from podium.machines.actions import Action
from podium.machines.autoscaling.cluster_picture import ClusterPicture
from podium.machines.autoscaling.node_removals import NodeRemovals, RemovalSettings
from podium.machines.autoscaling.node_start_ups import NodeStartUps
from podium.machines.autoscaling.scale_up_reports import ScaleUpReports
from podium.machines.observations import Answered, Changed, Gone, Observation, Tick
from podium.machines.parts.deadlines import Deadline, soonest
from podium.machines.placement_kinds import PLACEMENT_KINDS
from podium.plugins.registry import IN_TREE

_AUTOSCALER = "autoscaler"
_SECOND = 10**9
_MINUTE = 60 * _SECOND


@dataclass(frozen=True, slots=True)
class AutoscalerSettings:
    """How an autoscaler works; times in nanoseconds.

    It looks at the cluster ``scan_interval_ns`` after something has changed. Pods of a priority below
    ``priority_cutoff`` neither get new nodes nor keep old ones. A node is removed that was unneeded for
    ``unneeded_ns``: less than ``utilisation_threshold`` of it was requested, and its pods fitted elsewhere; but not
    within ``delay_after_add_ns`` of the last new node. ``max_drains`` nodes with pods are emptied at a time. See
    `RemovalSettings` for the rest.
    """

    scan_interval_ns: int = 10 * _SECOND
    priority_cutoff: int = 0
    utilisation_threshold: float = 0.5
    unneeded_ns: int = 10 * _MINUTE
    delay_after_add_ns: int = 10 * _MINUTE
    max_drains: int = 1
    max_eviction_ns: int = 2 * _MINUTE
    max_graceful_termination_ns: int = 10 * _MINUTE


class Autoscaler:
    """Keeps the groups of nodes as large as the pods need.

    What it decides it finds out on its own picture of the cluster with the scheduler's filters, as ``configuration``
    has them. A pod that is nominated gets no node: its room is being made. Nodes that are starting are there already
    as far as pods are concerned, so no pod gets two. Nodes belong to a group by their label `podium.dev/node-group`.
    """

    watches = PLACEMENT_KINDS | {"DaemonSet", "Pod"}

    def __init__(
        self,
        groups: Sequence[NodeGroup],
        settings: AutoscalerSettings = AutoscalerSettings(),
        configuration: Configuration | None = None,
        *,
        seed: int = 0,
    ) -> None:
        """Make an autoscaler. Raises ValueError for two groups of one name, and as `build_profiles` does."""
        self._groups = {group.name: group for group in sorted(groups, key=lambda group: group.name)}
        if len(self._groups) < len(groups):
            raise ValueError("two node groups have the same name")
        self._settings = settings
        self._seed = seed
        self._picture = ClusterPicture(self._groups)
        profiles = build_profiles(configuration or default_configuration(), Registry(IN_TREE), self._picture.cluster)
        self._runners = {name: Runner(profile, self._picture.cluster) for name, profile in profiles.items()}
        options = ScaleDownOptions(settings.utilisation_threshold, settings.priority_cutoff)
        self._around = RemovalTerms(self._picture.budgets, self._picture.keeps_data, (), options)
        self._start_ups = NodeStartUps(self._groups, self._picture, _AUTOSCALER)
        limits = RemovalSettings(settings.max_eviction_ns, settings.max_graceful_termination_ns)
        self._removals = NodeRemovals(self._picture, limits, _AUTOSCALER, self._residents, self._why_kept)
        # When to look at the cluster next, and whether something new is to be expected of that.
        self._scan_ns: int | None = None
        self._is_curious = False
        self._unneeded_since: dict[str, int] = {}
        self._reports = ScaleUpReports()

    def handle(self, observation: Observation, now: int) -> list[Action]:
        """Take in an observation at ``now`` and say what to do."""
        match observation:
            case Changed(object=object_, raw=raw):
                self._looked_at(self._picture.changed(object_, raw), object_, now)
            case Gone(object=object_):
                self._looked_at(self._picture.gone(object_), object_, now)
            case Answered():
                self._answered(observation, now)
            case Tick():
                actions = self._start_ups.work(now) + self._removals.work(now)
                if self._scan_ns is not None and self._scan_ns <= now:
                    actions += self._scan(now)
                return actions
        return []

    def deadline(self) -> Deadline:
        """When something is due; that what was tried in vain several times is tried once more is no news."""
        scan = Deadline(self._scan_ns, self._is_curious)
        return soonest(scan, self._start_ups.deadline(), self._removals.deadline())

    def _looked_at(self, makes_difference: bool, object_: Kubernetes, now: int) -> None:
        if isinstance(object_, Node):
            self._removals.seen(object_.metadata.name)
            self._start_ups.seen(object_.metadata.name)
        if makes_difference:
            self._removals.look_again()
            self._look_soon(now)

    def _answered(self, answered: Answered, now: int) -> None:
        """Take in how an action ended; what could not be begun is decided anew."""
        if self._start_ups.answered(answered, now):
            self._look_soon(now)
        unmarked = self._removals.answered(answered, now)
        if unmarked:
            self._look_soon(now, self._removals.is_hopeless(unmarked))

    def _look_soon(self, now: int, is_hopeless: bool = False) -> None:
        """Look at the cluster after the scan interval, with all that happens until then."""
        self._look_at(now + self._settings.scan_interval_ns, is_hopeless)

    def _look_at(self, time_ns: int, is_hopeless: bool) -> None:
        """Look at the cluster at a time, if not before; ``is_hopeless``: what will be tried then has failed before."""
        self._scan_ns = time_ns if self._scan_ns is None else min(self._scan_ns, time_ns)
        self._is_curious |= not is_hopeless

    # Looking at the cluster

    def _scan(self, now: int) -> list[Action]:
        self._scan_ns, self._is_curious = None, False
        with self._scratch() as scratch:
            self._foresee(scratch)
            pending = self._pending()
            groups = [self._expandable(group, len(pending), now) for group in self._groups.values()]
            up = plan_scale_up(scratch, groups, pending, self._daemons())
            down = plan_scale_down(scratch, self._shrinkable(), self._surroundings())
        return self._expand(up, now) + self._shrink(down, now)

    def _scratch(self) -> Scratch:
        return Scratch(self._picture.cluster, self._runners, self._seed)

    def _surroundings(self) -> RemovalTerms:
        closed = self._picture.upcoming.union(self._removals.under_way())
        return replace(self._around, closed=closed)

    def _foresee(self, scratch: Scratch, but_for: str = "") -> None:
        """Let be there what is to come: DaemonSets' pods on new nodes, and pods elsewhere whose node is removed."""
        nodes = scratch.cluster.nodes
        for name in sorted(self._picture.upcoming):
            owners_on_node = {pod.controller.uid for pod in self._picture.pods_on(name) if pod.controller is not None}
            add_daemons(scratch, nodes.row_of[name], (pod for pod in self._daemons() if pod.uid not in owners_on_node))
        for name in self._removals.under_way():
            for pod in self._residents(name).moving if name != but_for else ():
                mark = scratch.mark()
                if scratch.settle(scratch.take_off(pod.uid)) is None:
                    scratch.roll_back(mark)

    def _pending(self) -> list[PodRecord]:
        """The pods that need room and are worth a node."""
        pods = self._picture.unschedulable.values()
        return [pod for pod in pods if pod.priority >= self._settings.priority_cutoff]

    def _daemons(self) -> list[PodRecord]:
        return [self._picture.daemons[key] for key in sorted(self._picture.daemons)]

    # More nodes

    def _expandable(self, group: NodeGroup, wanted: int, now: int) -> Expandable:
        """What a group can offer; it never takes more nodes than there are pods."""
        paused_ns = self._start_ups.paused_until(group.name, now)
        if paused_ns is not None:
            return Expandable(group, (), f"its nodes were refused, tried again from {format_time(paused_ns)}")
        room = max(0, group.maximum - self._size(group.name))
        return Expandable(group, group.free_names(min(room, wanted), self._picture.cluster.nodes.row_of))

    def _size(self, group: str) -> int:
        """How many nodes a group has, those that are starting or leaving included."""
        return len(self._picture.nodes_of[group])

    def _expand(self, plan: ScaleUpPlan, now: int) -> list[Action]:
        """Create the chosen nodes, and tell the pods. Where a pause is what helps nobody, look again after it."""
        records = self._reports.report(plan, {name: self._size(name) for name in self._groups})
        if plan.unhelped:
            for name in self._groups:
                paused_ns = self._start_ups.paused_until(name, now)
                if paused_ns is not None:
                    self._look_at(paused_ns, self._start_ups.is_hopeless(name))
        if plan.chosen is None:
            return [*records]
        return [*self._start_ups.create(plan.chosen.group, plan.chosen.names), *records]

    # Fewer nodes

    def _shrinkable(self) -> list[Shrinkable]:
        """The nodes of each group that have started and stay, and how many of them its minimum spares."""
        leaving = set(self._removals.under_way())
        found = []
        for name, group in self._groups.items():
            staying = [node for node in self._picture.nodes_of[name] if node not in leaving]
            started = tuple(node for node in staying if node not in self._picture.upcoming)
            found.append(Shrinkable(started, len(staying) - group.minimum))
        return found

    def _shrink(self, plan: ScaleDownPlan, now: int) -> list[Action]:
        """Begin to remove what was unneeded for long enough; look again when the next node has been."""
        since, self._unneeded_since = self._unneeded_since, {}
        drains = sum(not self._residents(name).is_empty for name in self._removals.under_way())
        rest_ns = self._last_added_ns(now) + self._settings.delay_after_add_ns
        actions: list[Action] = []
        for name in plan.unneeded:
            since_ns = self._unneeded_since[name] = since.get(name, now)
            due_ns = max(since_ns + self._settings.unneeded_ns, rest_ns)
            is_empty = self._residents(name).is_empty
            if due_ns > now:
                self._look_at(due_ns, self._removals.is_hopeless(name))
            elif is_empty or drains < self._settings.max_drains:
                drains += not is_empty
                actions.append(self._removals.begin(name, now))
        return actions

    def _last_added_ns(self, now: int) -> int:
        """When the last node of a group was created, 0 where there is none."""
        created = (self._picture.nodes[name] for names in self._picture.nodes_of.values() for name in names)
        return max(
            (now if group_node.is_expected else _created_ns(group_node.node) for group_node in created), default=0
        )

    def _residents(self, name: str) -> Residents:
        return residents(self._picture.pods_on(name), self._around)

    def _why_kept(self, name: str) -> str:
        """Why a node that is marked cannot be removed any more, or ""."""
        group = self._groups[self._picture.nodes[name].group]
        staying = sum(not self._picture.nodes[node].is_leaving for node in self._picture.nodes_of[group.name])
        if staying < group.minimum:
            return f"its group would have {staying} nodes, and {group.minimum} are its minimum"
        with self._scratch() as scratch:
            self._foresee(scratch, but_for=name)
            settle_pending(scratch, self._pending())
            return why_kept(scratch, name, self._surroundings())


def _created_ns(node: Node) -> int:
    created = node.metadata.creation_timestamp
    return parse_time(created) if created else 0
