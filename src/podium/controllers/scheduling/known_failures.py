"""Failed attempts that hold for identical pods, and failures that are derived from the last one of a class.

An event often wakes many pods of one class, none of which fits. The failure of the first holds for the others while the
cluster is unchanged and no time passes, if all plugins are known to read nothing else.

A pod fits nowhere, and no preemption helps, as long as that holds on every row. What holds on a row depends on the row
itself, and on the inputs that filters of scope CLUSTER state (`podium.framework.handle.DomainFilterPlugin`). So only
changed rows are examined. As soon as one of them accepts the pod or is a candidate, an attempt must be made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from weakref import ref

import msgspec
import numpy as np

from podium.api.policy import NEVER_PREEMPTS
from podium.cluster.arrays import Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pod_classes import PodClass
from podium.cluster.pods import PodRecord
from podium.cluster.view import View, repelling_taints
from podium.controllers.scheduling.pod_reports import fit_error
from podium.decide.placement import Placement, rejecting_plugins
from podium.decide.preempting.preemption_plan import no_candidates_message
from podium.decide.preempting.reprieve import NO_VICTIM_NEEDED, Preemptor, tally
from podium.decide.preempting.trials import Trials
from podium.framework.cache.class_cache import CacheByClass, as_many_as
from podium.framework.handle import CycleState
from podium.framework.plugin import Plugin, PostFilterResult, Scope
from podium.framework.runner import Runner
from podium.framework.verdicts import Code, Counted, Decoders, Outcome, Status, decoded, unschedulable
from podium.plugins.default_preemption import DefaultPreemption
from podium.plugins.node_filters import NodeName, NodeUnschedulable, TaintToleration
from podium.plugins.registry import IN_TREE
from podium.plugins.volumes.binding import ScoringVolumeBinding, VolumeBinding

# Scheduler name, pod class, priority, preemption policy. A weak reference, because ids are reused.
_Key = tuple[str, ref[PodClass], int, str]


class KnownFailure(msgspec.Struct, frozen=True):
    """A failed attempt without side effects: the rejecting plugins, in order of name, and the message."""

    plugins: tuple[str, ...]
    message: str


class KnownFailures:
    """The failures at one instant, since the last change of the cluster."""

    def __init__(self, runners: Mapping[str, Runner]) -> None:
        self.trusted = {name for name, runner in runners.items() if all(map(_is_trusted, runner.profile.plugins()))}
        """The schedulers of which all plugins depend on the cluster and the fields of `_Key` alone."""
        self._runners = runners
        self._now = 0
        self._found: dict[_Key, KnownFailure] = {}

    def find(self, pod: PodRecord, now: int) -> KnownFailure | None:
        """Return the known result of an attempt, None if it must be made."""
        if not self._found:
            return None
        if now != self._now:
            self.forget()
        key = self.likeness(pod)
        return None if key is None else self._found.get(key)

    def keep(self, pod: PodRecord, failure: KnownFailure, now: int) -> None:
        """Remember a failed attempt without side effects, if plugins rejected the pod."""
        key = self.likeness(pod) if failure.plugins else None
        if key is not None:
            self._now = now
            self._found[key] = failure

    def likeness(self, pod: PodRecord) -> _Key | None:
        """Return the key shared by all pods with the same result; None for a pod without equals."""
        name, has_its_own = pod.scheduler_name, pod.nominated_node_name or pod.spec.resource_claims
        # Extenders may answer differently for each pod.
        if has_its_own or name not in self.trusted or self._runners[name].extenders_of(pod) is not None:
            return None
        return name, ref(pod.pod_class), pod.priority, pod.preemption_policy

    def forget(self) -> None:
        """Forget everything after a change."""
        if self._found:
            self._found = {}


def _is_trusted(plugin: Plugin) -> bool:
    """Return whether a plugin depends only on the cluster and on the fields of `_Key`.

    DefaultPreemption among equals also depends on owners.
    """
    if isinstance(plugin, DefaultPreemption) and plugin.takes_from_equals:
        return False
    return type(plugin) in (*IN_TREE.values(), VolumeBinding, ScoringVolumeBinding)


_ENTRIES = 1 << 20
MOST_ROWS = 64
"""If more rows than this have changed, an attempt is cheaper."""
_NO_ROWS: Int64s = np.empty(0, dtype=np.int64)


@dataclass(slots=True, eq=False)
class DerivedFailure:
    """The last failed attempt of a class, as of ``position`` of the log of changed rows; -1 if there is none.

    ``refused`` is why each row rejects the pod, as in an `Outcome`; ``tried`` why it is no candidate for preemption, as
    in a `TrialTable`, 0 if it was not tried. ``numbers`` and ``trials`` count the rows by these. ``wide`` are the
    rejections by filters of scope CLUSTER alone, which have these ``inputs``. ``answers`` are those of the PostFilter
    plugins. ``failure`` is the result, None if it has changed since.
    """

    position: int = -1
    skipped: frozenset[str] = frozenset()
    inputs: Sequence[object] = ()
    refused: Int64s = field(default_factory=lambda: _NO_ROWS)
    tried: Int64s = field(default_factory=lambda: _NO_ROWS)
    wide: Int64s = field(default_factory=lambda: _NO_ROWS)
    numbers: Counter[int] = field(default_factory=Counter)
    trials: Counter[int] = field(default_factory=Counter)
    decoders: Decoders = field(default_factory=dict)
    answers: tuple[Status, ...] = ()
    failure: KnownFailure | None = None

    def put(self, row: int, refused: int, tried: int) -> None:
        """Update a row."""
        for entries, numbers, entry in ((self.refused, self.numbers, refused), (self.tried, self.trials, tried)):
            before = entries.item(row)
            if before != entry:
                numbers[before] -= 1
                numbers[entry] += 1
                entries[row], self.failure = entry, None


class DerivedFailures:
    """The last failed attempts of the classes used last, if they can be derived.

    Each holds for the pods of one class, priority and preemption policy, in a profile whose plugins are known to depend
    on nothing else (`KnownFailures.likeness`). Settings, caps and rules of nominated pods that concern preemption
    beyond the trials on each row, and filters of scope CLUSTER that do not state their inputs, exclude it.
    """

    def __init__(self, cluster: Cluster, runners: Mapping[str, Runner]) -> None:
        self._cluster = cluster
        self._kept: CacheByClass[DerivedFailure] = CacheByClass(as_many_as(_ENTRIES, cluster.nodes, least=64))
        self.is_empty = True
        """Whether no attempt has failed yet."""
        self._taints = {name: _place_of_taints(runner) for name, runner in runners.items()}
        # By scheduler, DefaultPreemption and the names of the other PostFilter plugins.
        self._preemption: dict[str, tuple[DefaultPreemption | None, frozenset[str]]] = {}
        for name, runner in runners.items():
            plugins = runner.profile.post_filter
            own = next((plugin for plugin in plugins if isinstance(plugin, DefaultPreemption)), None)
            self._preemption[name] = own, frozenset(plugin.name for plugin in plugins if plugin is not own)

    def keep(self, runner: Runner, placement: Placement, result: PostFilterResult, failure: KnownFailure) -> None:
        """Remember a failed attempt without side effects."""
        pod, state, outcome = placement.pod, placement.state, placement.outcome
        trials, inputs = self._trials_for(runner, state), runner.wide_inputs(state, pod)
        if trials is None or inputs is None or outcome.has_errors or not placement.pre_filter.is_open:
            return
        found = self._kept.get(pod.pod_class, _key_in_class(pod), DerivedFailure)
        wide = runner.filter_view(state, pod, View(self._cluster), Scope.CLUSTER)
        found.refused, found.wide, found.tried = outcome.refused.copy(), wide.refused, np.zeros_like(wide.refused)
        found.decoders = {**outcome.decoders, **wide.decoders}
        if pod.preemption_policy not in NEVER_PREEMPTS:
            table = trials.on(Preemptor(runner, state, pod), outcome.resolvable(), None)
            found.tried[table.rows] = table.refused
            found.decoders.update(table.decoders)
        found.numbers, found.trials = Counter(found.refused.tolist()), Counter(found.tried.tolist())
        found.skipped, found.inputs, found.answers, found.failure = state.skip_filter, inputs, result.answers, failure
        found.position, self.is_empty = self._cluster.nodes.changes.position, False

    def derive(self, runner: Runner, pod: PodRecord) -> KnownFailure | None:
        """Return the result of an attempt at a pod; None if it must be made."""
        found, nodes, state = self._kept.find(pod.pod_class, _key_in_class(pod)), self._cluster.nodes, CycleState()
        if found is None or found.position < 0:
            return None
        rows = nodes.changes.entries_since(found.position)
        found.position = -1
        if rows is None or len(found.refused) != nodes.count:
            return None
        pre_filter, trials = runner.pre_filter(state, pod), self._trials_for(runner, state)
        if trials is None or state.skip_filter != found.skipped or not pre_filter.is_open:
            return None
        changed = {row for row in set(rows) if not self._keeps_off(found, row, pod)}
        if len(changed) > MOST_ROWS or runner.wide_inputs(state, pod) != found.inputs:
            return None
        if changed and not self._update(found, Preemptor(runner, state, pod), runner, trials, changed):
            return None
        if found.failure is None:
            outcome = Outcome.of(found.refused, found.decoders, Counted(+found.numbers))
            rejected = Placement(pod, state, pre_filter, nodes.all_rows(), outcome, _NO_ROWS, None, None)
            found.failure = self._failure(found, rejected)
        if runner.is_sampling:
            # An attempt has examined all nodes, and ends where it began.
            nodes.search_start %= max(len(nodes.tree_order()), 1)
        found.position = nodes.changes.position
        return found.failure

    def _keeps_off(self, found: DerivedFailure, row: int, pod: PodRecord) -> bool:
        """Return whether TaintToleration still rejects a row, whatever else has changed there."""
        nodes, place = self._cluster.nodes, self._taints[pod.scheduler_name]
        was_kept_off = found.refused.item(row) >> Outcome.SHIFT == place
        if not was_kept_off or not nodes.present.item(row) or nodes.unschedulable.item(row):
            return False
        return any(repelling_taints(pod.spec.tolerations, nodes.node(row).spec.taints))

    def _trials_for(self, runner: Runner, state: CycleState) -> Trials | None:
        """Return the trials that decide whether preemption helps; None if that depends on more than single rows."""
        nominations = self._cluster.nominations
        plugin, others = self._preemption[runner.profile.scheduler_name]
        if plugin is None or nominations.reach_domains or nominations.depend_on_pods() or others - state.skip_filter:
            return None
        return plugin.plain_trials(self._cluster)

    def _update(
        self, found: DerivedFailure, preemptor: Preemptor, runner: Runner, trials: Trials, rows: Set[int]
    ) -> bool:
        """Examine some rows again; return whether each still rejects the pod, and is no candidate for preemption."""
        state, pod = preemptor.state, preemptor.pod
        local = runner.kept.local_filters(state, pod, rows)
        if local is None:
            return False
        local.explain(pod, found.decoders)
        counting = [placed.counting for placed in runner.wide_filters(state) if placed.counting is not None]
        predicates = [predicate for plugin in counting for predicate in plugin.counted(state, pod)]
        counted = [self._cluster.matcher(predicate).classes for predicate in predicates]
        for row in sorted(rows):
            wide, tried = found.wide.item(row), 0
            refused = trials.refused_without(pod, row, (), local, wide, counted)
            if refused is None:
                verdicts = runner.filter(state, pod, np.array([row], dtype=np.int64))
                found.decoders.update(verdicts.decoders)
                refused = verdicts.refused.item(0)
            code = decoded(refused, found.decoders).code if refused > 0 else Code.UNSCHEDULABLE_AND_UNRESOLVABLE
            if not refused or code is Code.ERROR:
                return False
            if code is Code.UNSCHEDULABLE and pod.preemption_policy not in NEVER_PREEMPTS:
                tried, decoders = trials.refused_on(preemptor, row, local, wide, counted)
                found.decoders.update(decoders)
                if tried in (0, NO_VICTIM_NEEDED):
                    return False
            found.put(row, refused, tried)
        return True

    def _failure(self, found: DerivedFailure, rejected: Placement) -> KnownFailure:
        """Return the failure by the present verdicts."""
        number, answers = len(self._cluster.nodes), found.answers
        if rejected.pod.preemption_policy not in NEVER_PREEMPTS:
            why = no_candidates_message(number, tally(found.trials, found.decoders))
            mine = Status(Code.UNSCHEDULABLE, (why,), DefaultPreemption.name)
            answers = tuple(mine if each.plugin == mine.plugin else each for each in answers)
        reasons = [reason for answer in answers for reason in answer.reasons]
        message = fit_error(rejected, number, unschedulable(*reasons).message)
        return KnownFailure(tuple(sorted({*rejecting_plugins(rejected)})), message)


def _place_of_taints(runner: Runner) -> int:
    """Return the number of TaintToleration; -1 if others may reject before it, or if its message names a taint."""
    for place, plugin in enumerate(runner.profile.filter, 1):
        if isinstance(plugin, TaintToleration):
            return -1 if plugin.names_taints else place
        if not isinstance(plugin, NodeUnschedulable | NodeName):
            break
    return -1


def _key_in_class(pod: PodRecord) -> tuple[str, int, str]:
    """Return what pods of one class with the same result have in common."""
    return pod.scheduler_name, pod.priority, pod.preemption_policy
