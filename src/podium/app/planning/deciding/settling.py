"""Pods get nodes, each as its scheduler decides on what those before it have left."""

from __future__ import annotations

from collections.abc import Iterable

from podium.app.explaining.gang import GangDecision, decide_gang
from podium.app.planning.chances.draws import Draws
from podium.app.planning.deciding.fates import Ending, Fate, Kind, Settled, kind_of
from podium.app.planning.deciding.gang_fates import fates_of
from podium.app.planning.deciding.supposed_cluster import SupposedCluster
from podium.app.planning.deciding.workloads import DAEMON_SET
from podium.cluster.pods import NOT_STARTED_NS, PodRecord
from podium.decide.cap import PutOff
from podium.decide.placement import Placement, full_outcome, place
from podium.decide.preempting.eligibility import NOT_ELIGIBLE_TERMINATING
from podium.framework.errors import PluginError
from podium.framework.runner import Runner
from podium.plugins.default_preemption import DefaultPreemption


class Settling:
    """Lets pods settle once on a supposed cluster; they preempt where that is asked for (``preempts``).

    Equals are drawn by a seed; ``draws`` notes the draws.
    """

    def __init__(self, supposed: SupposedCluster, seed: int, draws: Draws | None, *, preempts: bool) -> None:
        self._supposed = supposed
        self._seed = seed
        self._draws = draws
        self._preempts = preempts
        self._put_off: dict[Kind, PutOff | Ending] = {}

    def settle(self, pods: Iterable[PodRecord], *, comes_back: bool) -> Settled:
        """What becomes of the pods, as `Decisions.settle` says."""
        fates: list[Fate] = []
        left = list(self._supposed.in_order(pods))
        while left:
            for pod in left:
                self._supposed.scratch.join_group(pod)
            tried, left = left, []
            hopeless: set[Kind] = set()
            number = len(fates)
            returned: list[PodRecord] = []
            gone: set[str] = set()
            for pod in tried:
                if pod.uid in gone:
                    continue
                found = () if kind_of(pod) in hopeless else self._fates(pod)
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
            left = list(self._supposed.in_order([*(pod for pod in left if pod.uid not in gone), *returned]))
        return Settled(tuple(fates), tuple(left), self._put_off)

    def _fates(self, pod: PodRecord) -> tuple[Fate, ...]:
        """The nodes that the pod, and those of its gang, get and take; none where it waits."""
        runner = self._supposed.runners.get(pod.scheduler_name)
        if runner is None or pod.terminating or not runner.pre_enqueue(pod).is_success:
            return ()
        draws = self._draws
        try:
            decision = decide_gang(
                runner, pod, preempts=self._preempts, alike=kind_of, seed=self._seed, detailed=draws is not None
            )
            if decision is not None:
                if draws is not None:
                    draws.note_group(runner, decision.placement)
                return self._together(runner, decision)
        except PluginError:
            return ()
        if draws is not None:
            draws.note(runner, pod, preempts=self._preempts)
        fate = self._fate(runner, pod)
        return () if fate is None else (fate,)

    def _together(self, runner: Runner, decision: GangDecision) -> tuple[Fate, ...]:
        """The nodes that the pods of a gang get, and take."""
        fates = fates_of(decision)
        self._supposed.take_off([victim for fate in fates for victim in fate.victims])
        placements = {member.pod.uid: member.placement for member in decision.placement.members}
        for fate in fates:
            if decision.is_enough:
                self._supposed.reserve(runner, placements[fate.pod.uid], fate.pod, fate.node)
            self._supposed.take(fate.pod, self._supposed.cluster.nodes.row_of[fate.node])
        return fates

    def _fate(self, runner: Runner, pod: PodRecord) -> Fate | None:
        """The node that a pod by itself gets, and takes; None where it waits."""
        try:
            placement = place(runner, pod, self._seed, detailed=False)
            if placement.row is not None:
                name = self._supposed.cluster.nodes.name(placement.row)
                is_kept = self._supposed.reserve(runner, placement, pod, name)
                if is_kept:
                    self._supposed.take(pod, placement.row)
                return Fate(pod, name) if is_kept else None
            return self._preempting(runner, pod, placement) if self._preempts and not placement.error else None
        except PluginError:
            return None

    def _preempting(self, runner: Runner, pod: PodRecord, placement: Placement) -> Fate | None:
        plugin = preemption_of(runner)
        if plugin is None:
            return None
        plan = plugin.plan(
            placement.state, pod, runner, full_outcome(self._supposed.cluster, placement), seed=self._seed
        )
        if plan.chosen is None:
            if plan.put_off is not None:
                self._put_off[kind_of(pod)] = plan.put_off
            elif plan.reason == NOT_ELIGIBLE_TERMINATING:
                self._put_off[kind_of(pod)] = Ending(pod.nominated_node_name)
            return None
        victims = plan.chosen.victims
        self._supposed.take_off(victims)
        self._supposed.take(pod, self._supposed.cluster.nodes.row_of[plan.chosen.node_name])
        return Fate(pod, plan.chosen.node_name, victims)


def preemption_of(runner: Runner) -> DefaultPreemption | None:
    """What preempts in a scheduler's profile; None where nothing does."""
    return next((plugin for plugin in runner.profile.post_filter if isinstance(plugin, DefaultPreemption)), None)


def _is_made_again(victim: PodRecord) -> bool:
    """Whether a controller makes a pod in the victim's place that may go anywhere."""
    return victim.controller is not None and victim.controller.kind not in (DAEMON_SET, "Node")


def _made_again(victim: PodRecord) -> PodRecord:
    """The pod that comes in the place of one that was preempted."""
    return victim.without_node(
        uid=f"{victim.uid}/again",
        start_ns=NOT_STARTED_NS,
        ready=False,
        terminating=False,
        preempted=False,
    )
