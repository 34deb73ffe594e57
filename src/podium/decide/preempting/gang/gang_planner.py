"""Plans preemption for a gang: a node for as many members as are needed, and one set of victims over all nodes.

Members are led to their places one by one, where the next one costs least; who is not needed in the end stays. Then, if
there are few enough who may go, sets of them are tried in the order of what they cost, so that the plan is the cheapest
there is. Filters are asked about the cluster as it would be, in a scratch, members included.

Source: pkg/scheduler/framework/preemption/podgrouppreemption.go, which removes all who may go from the whole cluster,
places the gang, and spares them one by one for the places that this came to.
"""

from __future__ import annotations

from msgspec.structs import replace

from podium.decide.cap import PutOff, put_off_for, without_budgets
from podium.decide.preempting.gang.gang import Gang, gang_ineligible_reason
from podium.decide.preempting.gang.gang_plan import GangPlan
from podium.decide.preempting.gang.gang_search import GangSearch
from podium.decide.preempting.gang.play import Play
from podium.decide.preempting.preemption import PreemptionOptions
from podium.decide.preempting.trials import Trials
from podium.framework.group_plugin import GroupHandle


def plan_gang(
    handle: GroupHandle,
    gang: Gang,
    trials: Trials,
    options: PreemptionOptions,
    *,
    most_steps: int = 100_000,
) -> GangPlan:
    """Plan preemption for a gang of which too few fit as things are.

    ``options`` say who may be a victim, and how victims are compared. Steps are counted as `Play` says, and no more
    than ``most_steps`` are begun. Raises PluginError where a plugin fails.
    """
    reason = gang_ineligible_reason(handle.cluster, gang)
    if reason:
        return GangPlan(False, reason)
    plan = _planned(handle, gang, trials, options, most_steps)
    put_off = None if plan.chosen is None else put_off_for(handle.cluster, plan.chosen.victims)
    if put_off is None:
        return plan
    allowed = without_budgets(handle.cluster, options.may_disrupt)
    sparing = _planned(handle, gang, trials, replace(options, may_disrupt=allowed), most_steps)
    return sparing if sparing.chosen is not None else _put_off(plan, put_off)


def _put_off(plan: GangPlan, put_off: PutOff) -> GangPlan:
    return GangPlan(True, put_off=put_off, message=f"preemption: {put_off}", criteria=plan.criteria, search=plan.search)


def _planned(
    handle: GroupHandle,
    gang: Gang,
    trials: Trials,
    options: PreemptionOptions,
    most_steps: int,
) -> GangPlan:
    with Play(handle, gang) as play:
        search = GangSearch(play, gang, trials, options, most_steps)
        search.run()
        return search.plan()
