"""The proposals of PostFilter plugins for a pod that no node accepts, and checks of foreign plugins' proposals.

Source: pkg/scheduler/framework/runtime/framework.go (RunPostFilterPlugins), pkg/scheduler/schedule_one.go
(schedulingAlgorithm, which calls them).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from msgspec.structs import replace

from podium.api.errors import shown
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.decide.placement import Placement, full_outcome
from podium.framework.plugin import ClaimRelease, Plugin, PostFilterResult, is_own
from podium.framework.pre_filters import GroupPostFilterResult
from podium.framework.runner import Runner
from podium.framework.verdicts import Code, PluginError, Status, blame, unresolvable, unschedulable

_FINAL = (Code.SUCCESS, Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
_NOTHING = PostFilterResult(unresolvable())
_NO_NODES = PostFilterResult(unresolvable(), nominated_node="")

Proposal = TypeVar("Proposal", PostFilterResult, GroupPostFilterResult)


def ask_post_filters(runner: Runner, placement: Placement) -> PostFilterResult:
    """Call one plugin after the other, until one succeeds, fails, or answers that nothing will help.

    Plugins are called whether a Filter or a PreFilter rejected the pod; if the state of a PreFilter that did not run is
    missing, its PostFilter answers ERROR, which ends the calls and leaves the nomination. If all give up, their reasons
    are joined, and the last proposal about the nomination counts. Without any node no plugin is called, and the pod's
    nomination ends.

    ``answers`` of the result are the plugins' statuses. Raises PluginError if one fails or proposes something
    impossible.
    """
    cluster = runner.cluster
    if not cluster.nodes.row_of:
        return _NO_NODES
    releases: tuple[ClaimRelease, ...] = ()
    waits_for: tuple[str, ...] = ()
    outcome = full_outcome(cluster, placement)
    best = _NOTHING
    answers: list[Status] = []
    for plugin in runner.profile.post_filter:
        # Like `Calling`, which would cost as much as most plugins take to answer.
        try:
            found = plugin.post_filter(placement.state, placement.pod, runner, cluster, outcome)
        except BaseException as error:
            blame(error, plugin.name, "PostFilter", placement.pod)
            raise
        if not is_own(plugin):
            answer = answer_of(plugin, placement.pod)
            found = checked(found, PostFilterResult, lambda it: (it.nominated_node, it.binds_to), cluster, answer)
        status = found.status.by(plugin.name)
        answers.append(status)
        releases += found.releases
        waits_for += found.waits_for
        if status.code is Code.ERROR:
            return PostFilterResult(status, answers=tuple(answers), releases=releases)
        if status.code in _FINAL:
            return replace(found, status=status, answers=tuple(answers), releases=releases)
        if found.nominated_node is not None or best.nominated_node is None:
            best = found
    if not answers:
        return best
    reasons = [reason for answer in answers for reason in answer.reasons]
    status = unschedulable(*reasons).by(answers[0].plugin)
    return replace(best, status=status, answers=tuple(answers), releases=releases, waits_for=waits_for)


def answer_of(plugin: Plugin, pod: PodRecord) -> str:
    """Return the beginning of an error message about a plugin's answer."""
    return f"plugin {plugin.name} answered at PostFilter for pod {pod.key}"


def checked(
    found: object,
    form: type[Proposal],
    nodes_of: Callable[[Proposal], Iterable[str | None]],
    cluster: Cluster,
    answer: str,
) -> Proposal:
    """Return the proposal of a foreign plugin with the present records of its victims.

    ``nodes_of`` returns the nodes of a proposal; None and "" are none. ``answer`` is as in `answer_of`. Raises
    PluginError for another type, for victims on no node, without SUCCESS or without a node that they make room on, and
    for nodes that do not exist.
    """
    if not isinstance(found, form):
        raise PluginError(f"{answer} with {found!r}, not with a {form.__name__}")
    nodes, some = list(nodes_of(found)), next(iter(found.victims), None)
    if some is not None and not any(nodes):
        raise PluginError(f"{answer} with the victim {some.key}, but without a node that the pod would get for it")
    if some is not None and not found.status.is_success:
        code = found.status.code.value
        raise PluginError(f"{answer} with the victim {some.key}, but with {code} instead of Success")
    for node in nodes:
        if node and node not in cluster.nodes.row_of:
            raise PluginError(f"{answer} with the node {shown(node)}, which there is not")
    for victim in found.victims:
        if victim.uid not in cluster.placed:
            raise PluginError(f"{answer} with the victim {victim.key}, which is on no node")
    return replace(found, victims=tuple(cluster.placed[victim.uid] for victim in found.victims))
