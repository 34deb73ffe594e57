"""What PostFilter plugins propose for a pod that no node can take.

Source: pkg/scheduler/framework/runtime/framework.go (RunPostFilterPlugins), pkg/scheduler/schedule_one.go
(schedulingAlgorithm, which asks them).
"""

from __future__ import annotations

from msgspec.structs import replace

from podium.cluster.cluster import Cluster
from podium.decide.placement import Placement, full_outcome
from podium.decide.proposals import checked_form, checked_victims, told_by
from podium.framework.claims import ClaimRelease
from podium.framework.errors import blame
from podium.framework.plugin import PostFilterResult, is_own
from podium.framework.runner import Runner
from podium.framework.status import Code, Status, unresolvable, unschedulable

_ERROR = Code.ERROR
_LAST_WORDS = (Code.SUCCESS, Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
_NOTHING = PostFilterResult(unresolvable())
_NOBODY = PostFilterResult(unresolvable(), nominated_node="")


def ask_post_filters(runner: Runner, placement: Placement) -> PostFilterResult:
    """Ask one plugin after the other, until one finds something, fails, or says that nothing will help.

    Each is asked whether it was a filter or a PreFilter that turned the pod down; what a PreFilter that was never run
    has not prepared, its PostFilter misses: it answers ERROR then, which ends it before those behind it are asked and
    leaves the nomination as it is. Where all give up, their reasons are joined, and the last proposal about the
    nomination stands. Without any node there is nothing to ask about, and the pod's nomination ends.

    ``answers`` of the result are what each plugin said by itself. Raises PluginError where one raises, or proposes what
    cannot be.
    """
    cluster = runner.cluster
    if not len(cluster.nodes):
        return _NOBODY
    releases: tuple[ClaimRelease, ...] = ()
    outcome = full_outcome(cluster, placement)
    best = _NOTHING
    answers: list[Status] = []
    for plugin in runner.profile.post_filter:
        # As `Calling` does it, which would cost as much as most plugins take to answer.
        try:
            found = plugin.post_filter(placement.state, placement.pod, runner, cluster, outcome)
        except BaseException as error:
            blame(error, plugin.name, "PostFilter", placement.pod)
            raise
        if not is_own(plugin):
            found = _checked(found, cluster, told_by(plugin, placement.pod))
        status = found.status.by(plugin.name)
        answers.append(status)
        releases += found.releases
        if status.code is _ERROR:
            return PostFilterResult(status, answers=tuple(answers), releases=releases)
        if status.code in _LAST_WORDS:
            return _told(found, status, answers, releases)
        if found.nominated_node is not None or best.nominated_node is None:
            best = found
    if not answers:
        return best
    reasons: tuple[str, ...] = ()
    for answer in answers:
        reasons += answer.reasons
    return _told(best, unschedulable(*reasons).by(answers[0].plugin), answers, releases)


def _checked(found: object, cluster: Cluster, told: str) -> PostFilterResult:
    """A proposal of somebody else's plugin. Raises PluginError for what cannot be."""
    result = checked_form(found, PostFilterResult, told)
    victims = checked_victims(result.victims, (result.nominated_node, result.binds_to), cluster, told)
    return replace(result, victims=victims)


def _told(
    found: PostFilterResult, status: Status, answers: list[Status], releases: tuple[ClaimRelease, ...]
) -> PostFilterResult:
    """A proposal with what all said."""
    return replace(found, status=status, answers=tuple(answers), releases=releases)
