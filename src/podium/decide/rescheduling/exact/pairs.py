"""Which pods may move, and on which nodes each of them may end."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.decide.scratch import Scratch
from podium.framework.cycle_state import CycleState
from podium.framework.errors import PluginError
from podium.framework.rescheduling.linear import FilterRules, Movables
from podium.framework.rescheduling.picture import Picture
from podium.framework.runner import Runner


def movables_in(picture: Picture, rules: Collection[str]) -> Movables:
    """The pods that may move, each with its own row and those that its filters let it on if all of them were gone.

    Filters that ``rules`` speak for are not asked. Pods with claims for devices stay: which devices they would get
    hangs on the order in which they come.
    """
    pods = tuple(pod for pod in picture.movable_pods() if not pod.spec.resource_claims)
    scratch = Scratch(picture.cluster, {"": picture.kubelet})
    rows: dict[str, tuple[int, ...]] = {}
    with scratch:
        known: dict[tuple[int, str], frozenset[int]] = {}
        for pod, leaving in [(pod, scratch.take_off(pod.uid)) for pod in pods]:
            kind = (leaving.pod_class.id, leaving.scheduler_name)
            if kind not in known:
                known[kind] = _allowed(picture, leaving, rules)
            rows[pod.uid] = tuple(sorted(known[kind] | {picture.cluster.nodes.row_of[pod.node_name]}))
    return Movables(picture, tuple(picture.cluster.placed[pod.uid] for pod in pods), rows)


def judged_by(movables: Movables, plugin: str) -> frozenset[str]:
    """The movable pods (uids) whose scheduler's profile filters with a plugin."""
    picture = movables.picture
    runners: Mapping[str, Runner] = {**picture.runners, "": picture.kubelet}
    having = {name for name, runner in runners.items() if any(known.name == plugin for known in runner.profile.filter)}
    names = {pod.uid: pod.scheduler_name if pod.scheduler_name in picture.runners else "" for pod in movables.pods}
    return frozenset(uid for uid, name in names.items() if name in having)


def _allowed(picture: Picture, pod: PodRecord, rules: Collection[str]) -> frozenset[int]:
    """The rows that take in moved pods and where the filters let the pod in; none where one of them fails over it."""
    runner, state = picture.runner_of(pod), CycleState()
    try:
        pre_filter = runner.pre_filter(state, pod)
        if not pre_filter.status.is_success:
            return frozenset()
        state.skip_filter = state.skip_filter.union(rules)
        view = View(picture.cluster, pre_filter.rows)
        outcome = runner.filter_view(state, pod, view)
    except PluginError:
        return frozenset()
    rows = view.rows[outcome.refused == 0]
    present = picture.cluster.nodes.present[rows]
    return frozenset(rows[present & picture.targets[rows]].tolist())


RulesByPlugin = Mapping[str, FilterRules]
