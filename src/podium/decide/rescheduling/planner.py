"""Which running pods are moved: proposals of policies, tried one after another, each on top of those before it.

Source: controlled-rescheduling.md, Rescheduler ("it acts when the degree of improvement meets some threshold and is
allowed by the pod's disruption budget").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from math import isfinite

from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.decide.rescheduling.budget_room import BudgetRoom
from podium.decide.rescheduling.guards import Guards
from podium.decide.rescheduling.kept_room import keep_expected, let_go
from podium.decide.rescheduling.landing import as_replacement
from podium.decide.rescheduling.limits import Leaving, MoveLimits
from podium.decide.rescheduling.moved_claims import MovedClaims
from podium.decide.rescheduling.node_duty import NodeDuty
from podium.decide.rescheduling.objectives import Objectives
from podium.decide.rescheduling.parts import Parts
from podium.decide.rescheduling.plan import LeftAlone, Plan, PlannedMoves
from podium.decide.rescheduling.policy_errors import PolicyError
from podium.decide.rescheduling.standing import Standing
from podium.decide.rescheduling.trial import Trials
from podium.decide.rescheduling.turned_away import KeepingOff
from podium.decide.rescheduling.turns import Turns
from podium.decide.scratch import Scratch
from podium.framework.rescheduling.picture import Picture
from podium.framework.rescheduling.policy import Policy, Proposal, Relocation
from podium.framework.rescheduling.settings import Guidance, Judgement, ReschedulerSettings
from podium.framework.rescheduling.signals import Signals
from podium.framework.runner import Runner

Weighted = tuple[Policy, float]


class Planner:
    """Plans moves by some policies, each with its weight, the first of which goes first.

    Raises ValueError where the threshold or a weight is not above 0: then moves might never end.
    """

    def __init__(self, policies: Sequence[Weighted], settings: ReschedulerSettings) -> None:
        if not (isfinite(settings.threshold) and settings.threshold > 0):
            raise ValueError(f"the threshold is {settings.threshold}; it must be above 0, or moves might never end")
        for policy, weight in policies:
            if not (isfinite(weight) and weight > 0):
                raise ValueError(f"the weight of policy {policy.name} is {weight}; it must be above 0")
        self._policies = tuple(policies)
        self._settings = settings
        self._duty: NodeDuty | None = None
        self._duty_of: Cluster | None = None

    def picture(
        self,
        cluster: Cluster,
        runners: Mapping[str, Runner],
        kubelet: Runner,
        now: int,
        *,
        standing: Standing,
        signals: Signals | None = None,
        waiting: Sequence[PodRecord] = (),
    ) -> Picture:
        """What policies look at: ``targets`` and ``is_movable`` follow from the cluster, the settings and the standing.

        ``waiting`` may come in any order.
        """
        duty = self._duty_in(cluster)
        return Picture(
            cluster=cluster,
            runners=runners,
            kubelet=kubelet,
            now=now,
            signals=Signals() if signals is None else signals,
            targets=duty.targets(),
            waiting=tuple(sorted(waiting, key=lambda pod: (-pod.priority, pod.key, pod.uid))),
            is_movable=Guards(cluster, self._settings, standing, now, duty).allows,
        )

    def why_left_alone(self, picture: Picture, standing: Standing) -> Callable[[PodRecord], str]:
        """Says of a pod why it is never touched, or "", as things are in a picture."""
        return Guards(picture.cluster, self._settings, standing, picture.now, self._duty_in(picture.cluster)).why

    def plan(self, scratch: Scratch, picture: Picture, standing: Standing) -> Plan:
        """What to move now. In ``scratch``, over the picture's cluster, it is done then.

        A policy that fails is left out, and named. One whose objective nobody knows can neither be made better nor be
        kept from getting worse, so then all begins anew without it.
        """
        policies, errors, mark = self._policies, list[str](), scratch.mark()
        guards = Guards(picture.cluster, self._settings, standing, picture.now, self._duty_in(picture.cluster))
        while True:
            planning = _Planning(policies, self._settings, scratch, picture, standing, guards)
            try:
                plan = planning.plan()
            except PolicyError as error:
                scratch.roll_back(mark)
                errors.append(str(error))
                policies = tuple(weighted for weighted in policies if weighted[0].name != error.policy)
            except BaseException:
                scratch.roll_back(mark)
                raise
            else:
                return replace(plan, errors=(*errors, *plan.errors))

    def _duty_in(self, cluster: Cluster) -> NodeDuty:
        if self._duty is None or self._duty_of is not cluster:
            self._duty, self._duty_of = NodeDuty(cluster.nodes), cluster
        return self._duty


class _Planning:
    """One plan in the making."""

    def __init__(
        self,
        policies: Sequence[Weighted],
        settings: ReschedulerSettings,
        scratch: Scratch,
        picture: Picture,
        standing: Standing,
        guards: Guards,
    ) -> None:
        self._settings = settings
        self._scratch = scratch
        self._past = standing.past
        self._why = guards.why
        # Nothing that is kept here leads back here: a plan is gone when nobody needs it.
        touched: set[str] = set()
        may_touch = picture.is_movable
        self._may_touch = may_touch
        self._touched = touched
        self._picture = replace(picture, is_movable=lambda pod: pod.uid not in touched and may_touch(pod))
        self._limits = MoveLimits(standing.past, settings, picture.now)
        self._room = BudgetRoom(standing, settings, picture.now)
        self._objectives = Objectives(policies, self._picture)
        self._trials = Trials(scratch, self._picture, self._objectives, MovedClaims(scratch, self._picture), settings)
        self._turns = Turns([policy for policy, _ in policies], self._picture, partial(_late, self._room, self._limits))
        self._policies = [policy for policy, _ in policies]
        self._parts = Parts(settings, self._limits, self._room, standing, picture.now)
        if standing.emptying in picture.cluster.nodes.row_of:
            self._trials.close(picture.cluster.nodes.row_of[standing.emptying])
        self._keeping_off = KeepingOff(picture, settings, self._limits, guards.why_ended)
        self._tried = 0
        self._before: dict[str, float] = {}
        self._total = 0.0

    def plan(self) -> Plan:
        now, timeout_ns = self._picture.now, self._settings.move_timeout_ns
        under_way = [move for move in self._past if move.is_under_way(now, timeout_ns)]
        # First, for whoever stands for a replacement that nobody has seen is still there.
        keep_expected(self._scratch, under_way, now)
        self._trials.going = let_go(self._scratch, under_way)
        self._before = before = self._objectives.each()
        self._objectives.require_same(before)
        self._total = at_first = self._objectives.weighted(before)
        self._keeping_off.plan(self._policies)
        planned, left_alone = list[PlannedMoves](), self._keeping_off.left_alone
        is_cut = False
        stopped = self._limits.used_up
        with closing(iter(self._turns)) as proposals:
            while not stopped and (told := next(proposals, None)) is not None:
                policy, proposal = told
                if self._tried >= self._settings.max_trials:
                    is_cut = True
                    break
                found = self._look_at(policy, proposal)
                if isinstance(found, PlannedMoves):
                    planned.append(found)
                    stopped = self._limits.used_up
                else:
                    left_alone.append(LeftAlone(policy, proposal.relocations[0].pod.key, found))
        if self._settings.judgement is Judgement.PLACEMENT and self._settings.guidance is not Guidance.BIND:
            kept, why = self._trials.rehearse(at_first)
            left_alone += [LeftAlone(group.policy, group.moves[0].pod.key, why) for group in planned[kept:]]
            del planned[kept:]
        # A part is begun before all others, as it is by now: to ask whether it still holds would be to plan it anew.
        parts = [group for group in planned if group.part_of is not None]
        wholes = [group for group in planned if group.part_of is None]
        return Plan(
            planned=(*parts, *self._keeping_off.planned, *wholes),
            left_alone=tuple(left_alone),
            before=before,
            after=self._objectives.each(),
            trials=self._tried,
            is_cut=is_cut or self._turns.is_cut,
            stopped=stopped,
            errors=(*self._keeping_off.errors, *self._turns.errors),
        )

    def _look_at(self, policy: str, proposal: Proposal) -> PlannedMoves | str:
        """The moves that a proposal becomes, or why it becomes none."""
        pods = [relocation.pod for relocation in proposal.relocations]
        why = next((why if len(pods) == 1 else f"{pod.key}: {why}" for pod in pods if (why := self._refusal(pod))), "")
        if why:
            return why
        part: tuple[Relocation, ...] = ()
        if too_many := self._limits.why(self._leaving(pods)) or self._room.why(pods):
            chosen = self._parts.choose(proposal, too_many)
            if isinstance(chosen, str):
                return chosen
            part = chosen
        self._tried += 1
        found = self._trials.attempt(proposal, self._total, part)
        if found.why:
            if self._tried == 1:
                # All is as it was, so that whoever keeps what they know can be held to it.
                self._objectives.require_same(self._before)
            return found.why
        if part:
            pods = [relocation.pod for relocation in part]
            self._parts.emptying = pods[0].node_name
            self._trials.close(pods[0].row)
        self._limits.take(self._leaving(pods))
        self._room.take(pods)
        self._touched.update(pod.uid for pod in pods)
        self._touched.update(as_replacement(pod, self._picture.now).uid for pod in pods)
        gain, self._total = self._total - found.total, found.total
        return PlannedMoves(policy, proposal.reason, found.moves, gain, proposal.avoid_for_ns, found.part_of)

    def _leaving(self, pods: Sequence[PodRecord]) -> list[Leaving]:
        return [Leaving.of(pod, has_budget=self._room.is_protected(pod)) for pod in pods]

    def _refusal(self, pod: PodRecord) -> str:
        """Why a pod may not be moved, or not again."""
        if pod.uid in self._touched:
            return "it is moved already"
        known = self._picture.cluster.placed.get(pod.uid)
        if known is None:
            return "it is on no node"
        if known is not pod:
            return "it has changed since it was looked at"
        return self._why(pod) or ("" if self._may_touch(pod) else "it may not be touched")


def _late(room: BudgetRoom, limits: MoveLimits, proposal: Proposal) -> int:
    """How often the owners of those pods were moved of late that no budget protects."""
    pods = [relocation.pod for relocation in proposal.relocations]
    return max(0 if room.is_protected(pod) else limits.moved_of_late(pod.owner_uid) for pod in pods)
