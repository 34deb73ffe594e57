"""A judge of gang plans: each plan works when carried out, without unnecessary victims or an incomplete gang."""

from __future__ import annotations

from typing import Any

from podium.decide.preempting.eligibility import WholeGroups
from podium.decide.preempting.gang.gang import Gang, GangTransaction, placements_hold
from podium.decide.preempting.gang.gang_search import plan_gang
from podium.decide.preempting.gang.units import Unit
from podium.decide.preempting.preemption_plan import GangCandidate, GangPlan
from podium.framework.pre_filters import GroupHandle


class GangPlans:
    """Plans for gangs as a scheduler does, and judges what comes of it; counts plans, with victims and without."""

    def __init__(self) -> None:
        self.with_victims = 0
        self.in_vain = 0
        self.whole_groups = 0

    def __call__(self, handle: GroupHandle, gang: Gang, *args: Any, **settings: Any) -> GangPlan:
        plan = plan_gang(handle, gang, *args, **settings)
        if plan.chosen is None:
            self.in_vain += 1
            return plan
        self.with_victims += bool(plan.chosen.victims)
        self._judge(handle, gang, plan.chosen)
        return plan

    def _judge(self, handle: GroupHandle, gang: Gang, way: GangCandidate) -> None:
        rows = handle.cluster.nodes.row_of
        steps = [(member, rows[name]) for member, name in way.placements]
        members = {member.uid for member, _ in steps}
        assert len(members) == len(steps) >= gang.needed
        assert members <= {member.uid for member in gang.members}
        assert any(
            allowed is None or all(row in allowed for _, row in steps)
            for name, allowed in gang.domains
            if name == way.domain
        )
        for victim in way.victims:
            assert victim.priority < gang.priority, victim.key
            assert victim.is_preemptible, victim.key
            assert victim.uid not in gang.own, victim.key
        units = self._units(handle, way)
        with GangTransaction(handle, gang) as play:
            assert placements_hold(play, units, steps), "the members do not fit"
            if len(steps) == gang.needed:
                # Dependents of a victim are evicted with it, needed or not.
                for unit in (unit for unit in units if way.depends_on.keys().isdisjoint(pod.uid for pod in unit)):
                    others = [other for other in units if other is not unit]
                    assert not placements_hold(play, others, steps), f"{unit[0].key} goes without need"

    def _units(self, handle: GroupHandle, way: GangCandidate) -> list[Unit]:
        wholes = WholeGroups(handle.cluster)
        found: dict[str, list[Any]] = {}
        for victim in way.victims:
            found.setdefault(wholes.key_of_class.get(victim.pod_class.id, "") or victim.uid, []).append(victim)
        for key in found.keys() & set(wholes.keys):
            assert len(found[key]) == len(wholes.slots_of(key)), f"{key} goes in part"
            self.whole_groups += 1
        return [tuple(pods) for pods in found.values()]
