"""Another arrangement of a group's pods, where too few fit one after the other as kube-scheduler tries them.

A pod that is tried early may take the one node that a later one needs. Within a stated number of steps other ways to
place the pods are looked for, so that a group that fits is not told to wait, and takes no room from others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from podium.cluster.arrays import Int64s
from podium.cluster.pods import PodRecord
from podium.decide.gangs.assumed import AssumedPods
from podium.decide.gangs.domains import Domain
from podium.decide.gangs.group_placement import GroupPlacement, MemberPlacement
from podium.decide.gangs.group_trial import GroupTrial
from podium.decide.placement import Placement, place
from podium.decide.preempting.gang.gang import EVERYWHERE, Gang, gang_priority
from podium.decide.preempting.gang.packing import first_packing
from podium.decide.preempting.gang.play import Play
from podium.decide.preempting.gang.shapes import Shapes
from podium.decide.preempting.gang.world import worlds_of
from podium.framework.errors import PluginError
from podium.framework.runner import Runner


def arranged(
    runner: Runner, trial: GroupTrial, found: GroupPlacement, domains: Sequence[Domain] = ()
) -> GroupPlacement:
    """What was ``found`` for a group, or where enough of its pods would fit otherwise, in one of its domains if so.

    Nobody is looked for places for whom extenders are asked: they may turn down what this counts on. Raises PluginError
    where a plugin fails.
    """
    needed = max(trial.needed, 1)
    may_fit = not found.is_enough and needed <= len(trial.members)
    if not may_fit or not trial.most_steps or any(runner.extenders_of(pod) is not None for pod in trial.members):
        return found
    members = tuple(trial.members)
    rows = tuple((domain.name, domain.rows) for domain in domains) or EVERYWHERE
    gang = Gang("", members, needed, gang_priority(members), rows)
    # Room that is kept for one of them keeps others of them off when they are tried one by one.
    are_nominated = any(runner.cluster.nominations.node_of(pod.uid) for pod in members)
    with Play(runner, gang) as play:
        shapes = Shapes(play, gang)
        if shapes.any_place_will_do and not are_nominated:
            return found
        world, steps, is_cut = first_packing(play, shapes, worlds_of(play.cluster, gang), trial.most_steps)
    if world is None:
        return replace(found, is_cut=is_cut)
    placed = _placed(runner, trial, {member.uid: row for member, row in steps}, _among(domains, world.domain))
    return found if placed is None else replace(found, members=placed, domain=world.domain, is_arranged=True)


def _among(domains: Sequence[Domain], name: str) -> Int64s | None:
    return next((domain.rows for domain in domains if domain.name == name), None)


def _placed(
    runner: Runner, trial: GroupTrial, row_of: Mapping[str, int], among: Int64s | None
) -> tuple[MemberPlacement, ...] | None:
    """The members on their rows, and others where they fit beside these; None where one does not fit after all."""
    found: dict[str, MemberPlacement] = {}
    with AssumedPods(runner) as assumed:
        assumed.end_nominations(trial.members)
        arranged = [pod for pod in trial.members if pod.uid in row_of]
        for pod in arranged:
            placement = _place(runner, trial, pod, np.array([row_of[pod.uid]], dtype=np.int64))
            member = taken(runner, assumed, placement)
            if not member.fits:
                return None
            found[pod.uid] = member
        for pod in trial.members:
            if pod.uid not in row_of:
                found[pod.uid] = taken(runner, assumed, _place(runner, trial, pod, among))
    return tuple(found[pod.uid] for pod in trial.members)


def _place(runner: Runner, trial: GroupTrial, pod: PodRecord, among: Int64s | None) -> Placement:
    placement = place(runner, pod, trial.seed, nominated_first=False, detailed=trial.detailed, among=among)
    if placement.error:
        raise PluginError(placement.error)
    return placement


def taken(runner: Runner, assumed: AssumedPods, placement: Placement) -> MemberPlacement:
    """A member on the node that was found for it, if one was, and plugins have what it needs there."""
    if placement.row is None:
        return MemberPlacement(placement.pod, placement)
    node_name = runner.cluster.nodes.name(placement.row)
    reserved = assumed.put(placement.pod, placement.state, node_name)
    return MemberPlacement(placement.pod, placement, node_name if reserved.is_success else "", reserved)
