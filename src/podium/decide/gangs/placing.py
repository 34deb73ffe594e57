"""Which pods of a group fit together: one after the other, each beside those before it.

Source: pkg/scheduler/schedule_one_podgroup.go (podGroupSchedulingDefaultAlgorithm).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

from podium.cluster.arrays import Int64s
from podium.cluster.pods import PodRecord
from podium.decide.gangs.arranging import arranged, taken
from podium.decide.gangs.assumed import AssumedPods
from podium.decide.gangs.domains import Domain, domains_of
from podium.decide.gangs.group_placement import GroupPlacement, MemberPlacement
from podium.decide.gangs.group_trial import GroupTrial
from podium.decide.placement import Placement, place, rejecting_plugins
from podium.framework.errors import PluginError
from podium.framework.runner import Runner


def place_group(runner: Runner, trial: GroupTrial) -> GroupPlacement:
    """Find nodes for the pending pods of a group, one after the other, each beside those before it.

    Of several domains the one is taken where most of them fit, then the fullest, then the first by name. Where too few
    fit, and the trial wants it, they are tried in other ways (`podium.decide.gangs.arranging`). Nothing changes by
    being asked. Raises PluginError where a plugin fails.
    """
    if not trial.topology_key:
        return arranged(runner, trial, _together(runner, trial, None))
    domains, problem = domains_of(runner.cluster, trial.topology_key, trial.placed)
    if problem:
        return GroupPlacement((), trial.needed, len(runner.cluster.nodes), cursor=trial.cursor, problem=problem)
    best: GroupPlacement | None = None
    rejected_by: dict[str, None] = {}
    for domain in domains:
        found = _together(runner, trial, domain)
        rejected_by.update(dict.fromkeys(found.rejected_by))
        if best is None or (found.is_enough and (not best.is_enough or found.fitting > best.fitting)):
            best = found
        if best.is_enough and best.fitting == len(trial.members):
            break
    if best is None:
        raise AssertionError("there is no domain, and no problem with that")
    found = replace(best, domains=len(domains), rejected_by=tuple(rejected_by))
    return arranged(runner, trial, found, domains)


def order_of(pod: PodRecord, first_attempt_ns: int) -> tuple[int, int, str, str]:
    """A member's place in the order in which a group is tried: priority, since when it waits, then key, then uid."""
    return -pod.priority, first_attempt_ns, pod.key, pod.uid


def _together(runner: Runner, trial: GroupTrial, domain: Domain | None) -> GroupPlacement:
    """Try the members in one domain, or anywhere."""
    among: Int64s | None = None if domain is None else domain.rows
    found: list[MemberPlacement] = []
    cursor = trial.cursor
    # What was found of pods that are alike, since a member last took room.
    in_vain: dict[Hashable, Placement] = {}
    with AssumedPods(runner) as assumed:
        for pod in trial.members:
            likeness = trial.alike(pod)
            known = None if likeness is None else in_vain.get(likeness)
            if known is not None:
                found.append(MemberPlacement(pod, known))
                continue
            placement = place(runner, pod, trial.seed, cursor=cursor, detailed=trial.detailed, among=among)
            cursor = placement.cursor
            if placement.error:
                raise PluginError(placement.error)
            if placement.row is not None:
                found.append(taken(runner, assumed, placement))
                in_vain.clear()
                continue
            found.append(MemberPlacement(pod, placement))
            if likeness is not None:
                in_vain[likeness] = placement
    node_count = len(runner.cluster.nodes) if among is None else len(among)
    return GroupPlacement(
        tuple(found),
        trial.needed,
        node_count,
        _rejecting(found),
        domain="" if domain is None else domain.name,
        cursor=cursor,
    )


def _rejecting(members: Sequence[MemberPlacement]) -> tuple[str, ...]:
    """The plugins that turned some of the members down, each once."""
    names: dict[str, None] = {}
    for placement in {id(member.placement): member.placement for member in members if not member.fits}.values():
        names.update(dict.fromkeys(rejecting_plugins(placement)))
    names.update((member.reserved.plugin, None) for member in members if member.reserved.plugin)
    return tuple(names)
