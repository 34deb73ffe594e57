"""The planner of moves: it tries the proposals of policies one after another, each on top of those accepted before.

Source: controlled-rescheduling.md, Rescheduler ("it acts when the degree of improvement meets some threshold and is
allowed by the pod's disruption budget").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from math import isfinite

from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.decide.rescheduling.certificate import best_leavers
from podium.decide.rescheduling.guards import BudgetRoom, Guards, PastMove, PlanInputs, RowsOnDuty
from podium.decide.rescheduling.replacement_placement import (
    AVOIDING,
    MovedClaims,
    as_replacement,
    avoids,
    keep_expected,
    let_go,
)
from podium.decide.rescheduling.round_robin import (
    Objectives,
    PlannedMove,
    PlannedMoves,
    PolicyError,
    RejectedMove,
    ReschedulingPlan,
    RoundRobin,
    calling_policy,
)
from podium.decide.rescheduling.trial import ProposalTrials
from podium.decide.transaction import ClusterTransaction
from podium.framework.rescheduling.policy import (
    Avoidance,
    AvoidingPolicy,
    Picture,
    Policy,
    Proposal,
    Relocation,
    Signals,
)
from podium.framework.rescheduling.settings import (
    Guidance,
    MoveCriteria,
    MoveLimitSettings,
    ReschedulerSettings,
    Steering,
)
from podium.framework.runner import Runner

Weighted = tuple[Policy, float]


class Planner:
    """Plans moves by weighted policies; the first policy proposes first.

    Raises ValueError if the threshold or a weight is not above 0, since moves might then never end.
    """

    def __init__(self, policies: Sequence[Weighted], settings: ReschedulerSettings) -> None:
        if not (isfinite(settings.threshold) and settings.threshold > 0):
            raise ValueError(f"the threshold is {settings.threshold}; it must be above 0, or moves might never end")
        for policy, weight in policies:
            if not (isfinite(weight) and weight > 0):
                raise ValueError(f"the weight of policy {policy.name} is {weight}; it must be above 0")
        self._policies = tuple(policies)
        self._settings = settings
        self._on_duty = RowsOnDuty()

    def picture(
        self,
        cluster: Cluster,
        runners: Mapping[str, Runner],
        kubelet: Runner,
        now: int,
        *,
        inputs: PlanInputs,
        signals: Signals | None = None,
        waiting: Sequence[PodRecord] = (),
    ) -> Picture:
        """Return the picture for policies: ``targets`` and ``is_movable`` follow from cluster, settings and inputs.

        ``waiting`` may be in any order.
        """
        guards = Guards(cluster, self._settings, inputs, now)
        return Picture(
            cluster=cluster,
            runners=runners,
            kubelet=kubelet,
            now=now,
            signals=Signals() if signals is None else signals,
            targets=self._on_duty.of(cluster.nodes),
            waiting=tuple(sorted(waiting, key=lambda pod: (-pod.priority, pod.key, pod.uid))),
            is_movable=lambda pod: not guards.why(pod),
        )

    def plan(self, transaction: ClusterTransaction, picture: Picture, inputs: PlanInputs) -> ReschedulingPlan:
        """Return the moves to make now, and apply them to ``transaction``, which lies over the picture's cluster.

        A policy that fails is left out and named. If the objective of a policy fails, planning restarts without that
        policy, since its objective can neither be improved nor be protected.
        """
        policies, errors, savepoint = self._policies, list[str](), transaction.savepoint()
        guards = Guards(picture.cluster, self._settings, inputs, picture.now)
        while True:
            planning = _Planning(policies, self._settings, transaction, picture, inputs, guards)
            try:
                plan = planning.plan()
            except PolicyError as error:
                transaction.roll_back(savepoint)
                errors.append(str(error))
                policies = tuple(weighted for weighted in policies if weighted[0].name != error.policy)
            except BaseException:
                transaction.roll_back(savepoint)
                raise
            else:
                return replace(plan, errors=(*errors, *plan.errors))


class _Planning:
    """The state of one plan in progress."""

    def __init__(
        self,
        policies: Sequence[Weighted],
        settings: ReschedulerSettings,
        transaction: ClusterTransaction,
        picture: Picture,
        inputs: PlanInputs,
        guards: Guards,
    ) -> None:
        self._settings = settings
        self._transaction = transaction
        self._inputs = inputs
        self._guards = guards
        # Nothing stored here refers back to this object, so that a plan is freed as soon as it is unused.
        touched: set[str] = set()
        known: dict[str, tuple[PodRecord, bool]] = {}

        def may_touch(pod: PodRecord) -> bool:
            if (found := known.get(pod.uid)) is None or found[0] is not pod:
                found = known[pod.uid] = pod, picture.is_movable(pod)
            return found[1]

        self._may_touch = may_touch
        self._touched = touched
        self._limits = limits = MoveLimits(inputs.past, settings, picture.now)
        # The limits with no pod moved yet.
        self._free = MoveLimits((), settings, picture.now)
        self._room = room = BudgetRoom(inputs, settings, picture.now)
        # Owners take turns within a plan only if a limit may end it: otherwise all moves are made that gain enough.
        is_free = settings.in_flight == settings.hourly == settings.without_budget == MoveLimitSettings()
        counted = MoveLimits(() if inputs.only else inputs.past, settings, picture.now) if is_free else limits
        at_first = replace(picture, is_movable=may_touch)
        self._picture = replace(
            picture,
            is_movable=lambda pod: pod.uid not in touched and may_touch(pod),
            waits=lambda pod: bool(_late(room, counted, (pod,))),
            may_leave=lambda pod: not room.why((pod,)),
            leavers=lambda: best_leavers(at_first, policies, settings.threshold, inputs, room) if is_free else (),
        )
        self._objectives = Objectives(policies, self._picture)
        self._trials = ProposalTrials(
            transaction, self._picture, self._objectives, MovedClaims(transaction, self._picture), settings
        )
        self._policies = [policy for policy, _ in policies]
        self._turns = RoundRobin(
            self._policies,
            self._picture,
            lambda proposal: _late(room, counted, [relocation.pod for relocation in proposal.relocations]),
        )
        # The node that is being emptied in parts, "" for none.
        self._emptying = inputs.emptying
        if inputs.emptying in picture.cluster.nodes.row_of:
            self._trials.close(picture.cluster.nodes.row_of[inputs.emptying])
        self._left_alone: list[RejectedMove] = []
        self._errors: list[str] = []
        self._tried = 0
        self._before: dict[str, float] = {}
        self._total = 0.0

    def plan(self) -> ReschedulingPlan:
        now, timeout_ns = self._picture.now, self._settings.move_timeout_ns
        under_way = [move for move in self._inputs.past if move.is_under_way(now, timeout_ns)]
        # First, while the pods that represent unobserved replacements still exist.
        keep_expected(self._transaction, under_way, now)
        self._trials.going = let_go(self._transaction, under_way)
        self._before = before = self._objectives.each()
        self._objectives.require_same(before)
        self._total = at_first = self._objectives.weighted(before)
        cost_before = self._objectives.monthly_cost()
        only = self._inputs.only
        kept_off, planned, is_cut = [] if only else self._keep_off(), list[PlannedMoves](), False
        stopped = self._limits.used_up
        with closing((each for each in [only]) if only else iter(self._turns)) as proposals:
            while not stopped and (entry := next(proposals, None)) is not None:
                policy, proposal = entry
                if self._tried >= self._settings.max_trials:
                    is_cut = True
                    break
                found = self._look_at(policy, proposal)
                if isinstance(found, PlannedMoves):
                    planned.append(found)
                    stopped = self._limits.used_up
                else:
                    self._left_alone.append(RejectedMove(policy, proposal.relocations[0].pod.key, found))
        if self._settings.judgement is MoveCriteria.PLACEMENT and self._settings.guidance is not Guidance.BIND:
            kept, why = self._trials.rehearse(at_first)
            self._left_alone += [RejectedMove(group.policy, group.moves[0].pod.key, why) for group in planned[kept:]]
            del planned[kept:]
        # A part is started before all other moves, in the present state; checking it again would mean planning it
        # again.
        parts = [group for group in planned if group.part_of is not None]
        wholes = [group for group in planned if group.part_of is None]
        cost_after = self._objectives.monthly_cost()
        return ReschedulingPlan(
            planned=(*parts, *kept_off, *wholes),
            left_alone=tuple(self._left_alone),
            before=before,
            after=self._objectives.each(),
            trials=self._tried,
            is_cut=is_cut or self._turns.is_cut,
            stopped=stopped,
            errors=(*self._errors, *self._turns.errors),
            costs=None if cost_before is None or cost_after is None else (cost_before, cost_after),
        )

    def _look_at(self, policy: str, proposal: Proposal) -> PlannedMoves | str:
        """Return the moves that a proposal becomes, or why it becomes none."""
        pods = [relocation.pod for relocation in proposal.relocations]
        why = next((why if len(pods) == 1 else f"{pod.key}: {why}" for pod in pods if (why := self._refusal(pod))), "")
        if why:
            return why
        part: tuple[Relocation, ...] = ()
        if too_many := self._limits.why(self._leaving(pods)) or self._room.why(pods):
            chosen = self._part_of(proposal, too_many)
            if isinstance(chosen, str):
                return chosen
            part = chosen
        self._tried += 1
        found = self._trials.attempt(proposal, self._total, part)
        if found.why:
            if self._tried == 1:
                # The state is unchanged, so that cached objectives can be checked.
                self._objectives.require_same(self._before)
            return found.why
        if part:
            pods = [relocation.pod for relocation in part]
            self._emptying = pods[0].node_name
            self._trials.close(pods[0].row)
        self._limits.take(self._leaving(pods))
        self._room.take(pods)
        self._touched.update(pod.uid for pod in pods)
        self._touched.update(as_replacement(pod, self._picture.now).uid for pod in pods)
        gain, self._total = self._total - found.total, found.total
        return PlannedMoves(policy, proposal.reason, found.moves, gain, proposal.avoid_for_ns, found.part_of)

    def _leaving(self, pods: Sequence[PodRecord], *, have_ended: bool = False) -> list[PastMove]:
        """Return what counts against limits if some pods are moved now. Finished pods count as those with a budget."""
        now, with_budget = self._picture.now, [have_ended or self._room.is_protected(pod) for pod in pods]
        each = zip(pods, with_budget, strict=True)
        return [PastMove(pod.namespace, pod.owner_uid, pod.node_name, now, True, budget) for pod, budget in each]

    def _refusal(self, pod: PodRecord) -> str:
        """Return why a pod must not be moved, or not moved again."""
        if pod.uid in self._touched:
            return "it is moved already"
        known = self._picture.cluster.placed.get(pod.uid)
        if known is None:
            return "it is on no node"
        if known is not pod:
            return "it has changed since it was looked at"
        return self._guards.why(pod) or ("" if self._may_touch(pod) else "it may not be moved")

    def _part_of(self, proposal: Proposal, why: str) -> tuple[Relocation, ...] | str:
        """Return the moves to make now if not all may be made, for the reason ``why``; or why none may be made.

        The pod that finds its place last leaves first. A part is only started if it can be finished: each pod could
        leave by itself if no other move were under way, and all of them within an hour.
        """
        pods = [relocation.pod for relocation in proposal.relocations]
        nodes, may_part = sorted({pod.node_name for pod in pods}), self._settings.judgement is MoveCriteria.PLACEMENT
        if not (may_part and proposal.in_parts) or len(pods) == 1 or len(nodes) > 1:
            return why
        if self._emptying not in ("", nodes[0]):
            return f"{why}; and {self._emptying} is already being emptied pod by pod"
        if nodes[0] in self._inputs.given_up:
            return f"{why}; and emptying {nodes[0]} pod by pod was given up recently, and has to cool down"
        for pod in pods:
            if never := self._free.why(self._leaving([pod])) or self._room.why_never(pod):
                return never
        if never := self._free.last_hour.why(self._leaving(pods)):
            return never
        chosen: list[Relocation] = []
        for relocation in reversed(proposal.relocations):
            pods = [each.pod for each in (*chosen, relocation)]
            if not (self._limits.why(self._leaving(pods)) or self._room.why(pods)):
                chosen.append(relocation)
        return tuple(reversed(chosen)) or why

    def _keep_off(self) -> list[PlannedMoves]:
        """Return the evictions of finished pods by which controllers come to avoid nodes, by the policies' order.

        Such an eviction counts against the limits like a move. Each owner is added to a node's list once; while it is
        listed, nothing more is done.
        """
        planned: list[PlannedMoves] = []
        for policy in self._policies if self._settings.steering is Steering.AVOID_LIST else ():
            if not isinstance(policy, AvoidingPolicy):
                continue
            try:
                with calling_policy(policy.name, "avoidances"):
                    found = list(policy.avoidances(self._picture))[:_MOST]
                for avoidance in found:
                    if not isinstance(avoidance, Avoidance):
                        raise PolicyError(policy.name, "its avoidances are not all of type Avoidance")
                    listed = {(move.pod.owner_uid, move.source) for group in planned for move in group.moves}
                    if (avoidance.pod.owner_uid, avoidance.pod.node_name) not in listed:
                        planned += self._avoided(policy.name, avoidance)
            except PolicyError as error:
                self._errors.append(str(error))
        return planned

    def _avoided(self, policy: str, avoidance: Avoidance) -> list[PlannedMoves]:
        pod, nodes = avoidance.pod, self._picture.cluster.nodes
        row, runner = nodes.row_of.get(pod.node_name), self._picture.runners.get(pod.scheduler_name)
        # Only schedulers that are known to respect avoid lists count.
        if row is None or runner is None or not runner.profile.weights.get(AVOIDING, 0) or avoids(nodes.node(row), pod):
            return []
        leaving = self._leaving([pod], have_ended=True)
        why = self._guards.why_ended(pod, row) or self._limits.why(leaving)
        if why:
            self._left_alone.append(RejectedMove(policy, pod.key, why))
            return []
        self._limits.take(leaving)
        move = PlannedMove(pod, pod.node_name, None, has_ended=True)
        return [PlannedMoves(policy, avoidance.reason, (move,), 0.0, avoidance.avoid_for_ns)]


def _late(room: BudgetRoom, limits: MoveLimits, pods: Sequence[PodRecord]) -> int:
    """Return how often the owners of those of the pods without a budget were moved recently."""
    return max(0 if room.is_protected(pod) else limits.last_hour.counts["owner", pod.owner_uid] for pod in pods)


# The most avoidances of a policy that are considered.
_MOST = 1_000
HOUR_NS = 3_600 * 10**9
# By what moves are limited besides their total, in the order in which the limits apply, with the attributes of moves.
_KINDS = {"node": "source", "namespace": "namespace", "owner": "owner_uid"}


class MoveLimits:
    """The moves that the limits still allow at ``now``, minus those already planned.

    ``last_hour`` are the moves of the last hour, with those that are planned.
    """

    def __init__(self, past: Iterable[PastMove], settings: ReschedulerSettings, now: int) -> None:
        self._now = now
        self._timeout_ns = settings.move_timeout_ns
        self._under_way = _Ledger(settings.in_flight, "under way")
        self.last_hour = _Ledger(settings.hourly, "within an hour")
        self._unprotected = _Ledger(settings.without_budget, "under way without a budget")
        self.take(past)

    @property
    def used_up(self) -> str:
        """Return why no pod at all may be moved; "" if some may be."""
        return self._under_way.used_up or self.last_hour.used_up

    def why(self, group: Sequence[PastMove]) -> str:
        """Return why the moves must not be made together; "" if they may be."""
        unprotected = [move for move in group if not move.has_budget]
        return self._under_way.why(group) or self.last_hour.why(group) or self._unprotected.why(unprotected)

    def take(self, moves: Iterable[PastMove]) -> None:
        for move in moves:
            if move.is_under_way(self._now, self._timeout_ns):
                self._under_way.add(move)
                if not move.has_budget:
                    self._unprotected.add(move)
            if self._now - move.evicted_ns < HOUR_NS:
                self.last_hour.add(move)


class _Ledger:
    """Moves of one kind in total and by node, namespace and owner, with the limits that they count against."""

    def __init__(self, limits: MoveLimitSettings, kind: str) -> None:
        self._limits = limits
        self._kind = kind
        self._limited = [each for each in _KINDS if getattr(limits, each) is not None]
        self._total = 0
        self.counts: Counter[tuple[str, str]] = Counter()

    def add(self, move: PastMove) -> None:
        self._total += 1
        for kind, attribute in _KINDS.items():
            self.counts[kind, getattr(move, attribute)] += 1

    @property
    def used_up(self) -> str:
        most = self._limits.total
        return "" if most is None or self._total < most else self._words("", self._total, 0, most)

    def why(self, group: Sequence[PastMove]) -> str:
        most = self._limits.total
        if most is not None and self._total + len(group) > most:
            return self._words("", self._total, len(group), most)
        for kind in self._limited:
            most, wanted = getattr(self._limits, kind), Counter(getattr(move, _KINDS[kind]) for move in group)
            for name, number in sorted(wanted.items()):
                counted = self.counts[kind, name]
                if counted + number > most:
                    scope = " of its owner" if kind == "owner" else f" of {kind} {name}"
                    return self._words(scope, counted, number, most)
        return ""

    def _words(self, scope: str, counted: int, wanted: int, most: int) -> str:
        more = f", {wanted} more are needed," if wanted > 1 else ","
        subject, verb = ("1 move", "is") if counted == 1 else (f"{counted} moves", "are")
        return f"{subject}{scope} {verb} {self._kind}{more} and the limit is {most}"
