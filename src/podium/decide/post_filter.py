"""What PostFilter plugins propose for a pod that no node can take.

Source: pkg/scheduler/framework/runtime/framework.go (RunPostFilterPlugins).
"""

from __future__ import annotations

from podium.decide.placement import Placement, full_outcome
from podium.framework.errors import Calling
from podium.framework.plugin import PostFilterResult
from podium.framework.runner import Runner
from podium.framework.status import Code, unresolvable


def ask_post_filters(runner: Runner, placement: Placement) -> PostFilterResult:
    """Ask one plugin after the other, until one finds something or says that nothing will help.

    Without any node there is nothing to ask about, and the pod's nomination ends. Raises PluginError where one fails.
    """
    cluster = runner.cluster
    if not len(cluster.nodes):
        return PostFilterResult(unresolvable(), nominated_node="")
    last = PostFilterResult(unresolvable())
    outcome = full_outcome(cluster, placement)
    for plugin in runner.profile.post_filter:
        with Calling(plugin.name, "PostFilter", placement.pod):
            last = plugin.post_filter(placement.state, placement.pod, runner, cluster, outcome)
        if last.status.code in (Code.SUCCESS, Code.UNSCHEDULABLE_AND_UNRESOLVABLE):
            break
    return last
