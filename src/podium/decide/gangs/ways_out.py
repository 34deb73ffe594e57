"""What PostFilter plugins propose for a group of which too few pods fit.

Source: pkg/scheduler/schedule_one_podgroup.go (runWorkloadAwarePreemption). There groups with a topology do not
preempt; here the plan is made within one of its domains.
"""

from __future__ import annotations

from dataclasses import replace

from podium.cluster.cluster import Cluster
from podium.decide.gangs.domains import domains_of
from podium.decide.gangs.group_trial import GroupTrial
from podium.decide.proposals import checked_form, checked_victims, told_by
from podium.framework.errors import Calling
from podium.framework.group_plugin import GroupDemand, GroupPostFilterPlugin, GroupPostFilterResult
from podium.framework.plugin import is_own
from podium.framework.runner import Runner
from podium.framework.status import unschedulable


def group_demand(runner: Runner, key: str, trial: GroupTrial) -> GroupDemand:
    """What is asked for: places for enough of the group's pods, in one of the domains where they may be together."""
    members, needed = tuple(trial.members), max(trial.needed, 1)
    if not trial.topology_key:
        return GroupDemand(key, members, needed)
    domains, _ = domains_of(runner.cluster, trial.topology_key, trial.placed)
    return GroupDemand(key, members, needed, tuple((domain.name, domain.rows) for domain in domains))


def ask_group_post_filter(runner: Runner, key: str, trial: GroupTrial) -> GroupPostFilterResult:
    """Ask the first PostFilter plugin that plans for groups.

    Raises PluginError where it raises, or proposes what cannot be.
    """
    demand = group_demand(runner, key, trial)
    for plugin in runner.profile.post_filter:
        if isinstance(plugin, GroupPostFilterPlugin) and demand.domains:
            pod = demand.members[0]
            with Calling(plugin.name, "PostFilter", pod):
                found = plugin.group_post_filter(demand, runner, runner.cluster)
            if is_own(plugin):
                return found
            return _checked(found, runner.cluster, told_by(plugin, pod))
    return GroupPostFilterResult(unschedulable())


def _checked(found: object, cluster: Cluster, told: str) -> GroupPostFilterResult:
    """A proposal of somebody else's plugin. Raises PluginError for what cannot be."""
    result = checked_form(found, GroupPostFilterResult, told)
    victims = checked_victims(result.victims, [node for _, node in result.placements], cluster, told)
    return replace(result, victims=victims)
