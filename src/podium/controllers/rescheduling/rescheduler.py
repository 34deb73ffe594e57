"""The rescheduler, which evicts pods that would be better placed elsewhere.

Source: controlled-rescheduling.md, Rescheduler.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from sys import maxsize

from podium.api.meta import Kubernetes, Raw
from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.versions.release import DEFAULT_RELEASE, Release
from podium.cluster.pods import NOT_STARTED_NS, PodRecord
from podium.controllers.actions import RESCHEDULER, Action, Bind, Evict, Nominate, PatchObject, Record
from podium.controllers.controller import PLACEMENT_KINDS
from podium.controllers.deadlines import AT_ONCE, NEVER, Deadline, Deadlines, earliest, soonest
from podium.controllers.observations import ActionFinished, Changed, Deleted, Measured, Observation, Tick
from podium.controllers.rescheduling.evictions import PlannedEvictions, SoftTaints
from podium.controllers.rescheduling.moves import CoolDown, Move, Moves
from podium.controllers.rescheduling.planning import CONFIG_MAP, MakePlanner, Planners, SettingsMap
from podium.controllers.rescheduling.rescheduler_view import ReschedulerView
from podium.decide.rescheduling.guards import PlanInputs
from podium.decide.rescheduling.planner import Planner, Weighted
from podium.decide.rescheduling.round_robin import ExcludedPods, ReschedulingPlan
from podium.framework.rescheduling.policy import Picture
from podium.framework.rescheduling.settings import Guidance, ReschedulerSettings, Steering
from podium.framework.settings.configuration import Configuration

POLICY_FAILED = "PolicyFailed"
"""The reason of events about policies that failed."""

# The reasons for a plan.
_CHANGE, _WAKE, _PERIODIC = "change", "wake", "periodic"


class Rescheduler:
    """Moves pods to better nodes, within all budgets, and never in circles.

    It looks at the cluster an interval after a change, again as long as that gains something, and when a limit, a pod's
    minimum age or a budget's rate may have expired. It also looks periodically, since policies may depend on time.
    """

    def __init__(
        self,
        settings: ReschedulerSettings,
        configuration: Configuration | None = None,
        *,
        config_map: str = "",
        make_planner: MakePlanner = Planner,
        seed: int = 0,
        release: Release = DEFAULT_RELEASE,
        only_plans: bool = False,
    ) -> None:
        """Create a rescheduler. ``configuration`` is the schedulers', whose choices are predicted.

        With ``only_plans`` it evicts nothing. With a ``config_map`` (`namespace/name`) it reads its settings from there
        while it runs; the given settings apply until that ConfigMap exists. Raises InputError for policies that cannot
        be created, and as `build_profiles` does.
        """
        self.watches = PLACEMENT_KINDS | {"Pod", *((CONFIG_MAP,) if config_map else ())}
        self._picture = ReschedulerView(release)
        self._planners = Planners(self._picture, settings, configuration, make_planner, seed)
        self._moves = Moves(self._picture)
        self._emptying = Emptying()
        self._guide = ReplacementGuide(self._moves, self._planners)
        self._soft_taints = SoftTaints()
        self._only_plans = only_plans
        self._evictions = PlannedEvictions(
            self._picture, self._planners, self._moves, self._soft_taints, self._plan_inputs, self._look_at_moves
        )
        # Plans are made an interval after a change, when time alone may allow a move, and periodically. Periodic ones
        # do not keep a simulation running: most have no effect, and policies that depend on time alone never end.
        self._looks: Deadlines[str] = Deadlines()
        # The errors of policies in the last plan.
        self._errors: tuple[str, ...] = ()
        self._config_map = config_map
        self._settings_map = SettingsMap(config_map, settings, self._use)
        # Called with the time before each plan, and with each plan before it changes anything.
        self.before_plan: Callable[[int], None] = lambda now: None
        self.on_plan: Callable[[ReschedulingPlan, int], None] = lambda plan, now: None
        self.plans_left = self.moves_left = maxsize
        """How many more plans it makes, and sets of moves: simulations of large clusters have to end."""

    @property
    def settings(self) -> ReschedulerSettings:
        return self._planners.settings

    @property
    def is_at_work(self) -> bool:
        """Whether an eviction of the last plan is still to be requested, or an answer is pending."""
        return bool(self._evictions)

    @property
    def moves_under_way(self) -> int:
        """The number of moves that are not complete."""
        return len(self._moves.under_way())

    @property
    def needs_use(self) -> bool:
        """Return whether a policy reads the use of pods and nodes, so that measuring it (`Measured`) is worthwhile."""
        return self._planners.needs_use

    def show(self, now: int) -> tuple[Picture, tuple[Weighted, ...], PlanInputs]:
        """Return the inputs of a plan made now; policies come with their weights."""
        self._look_at_moves(now)
        inputs = self._plan_inputs(now)
        return *self._planners.show(inputs, now), inputs

    def untouched(self, now: int) -> ExcludedPods:
        """Return the pods that a plan made now would have to leave in place, and why."""
        why_held = partial(self._why_held, self._picture.capped_namespaces(now))
        return self._planners.untouched_pods(self._plan_inputs(now), why_held, now)

    def handle(self, observation: Observation, now: int) -> list[Action]:
        match observation:
            case Changed(object=object_, raw=raw) if object_.kind == CONFIG_MAP:
                return [*self._settings_map.on_update(object_, raw)]
            case Changed(object=object_, raw=raw):
                self._observe(object_, raw, now)
            case Deleted(object=object_):
                self._observe(object_, None, now)
            case ActionFinished(action=Evict() as evict):
                return self._evictions.on_finished(evict, observation, now)
            case ActionFinished(action=PatchObject() as patch):
                self._soft_taints.on_finished(observation, now)
                if observation.problem is not None:
                    self._evictions.not_marked(patch.key)
            case Measured():
                self._picture.measured.take(observation, now)
            case Tick():
                return self._work(now)
        return []

    def deadline(self) -> Deadline:
        """Return when something is due; retries after refusals do not keep a simulation running."""
        always = soonest(AT_ONCE if self._guide.is_due else NEVER, self._soft_taints.deadline())
        if self.settings.is_paused:
            return always
        if self._evictions:
            return soonest(always, self._evictions.deadline())
        if self._is_spent:
            return always
        return soonest(always, self._looks.deadline(), self._evictions.refusals.deadline())

    # Observations

    def _observe(self, object_: Kubernetes, raw: Raw | None, now: int) -> None:
        makes_difference, name = self._picture.observe(object_, raw), object_.metadata.name
        if isinstance(object_, Node):
            self._moves.read_avoid_list(name)
            self._soft_taints.observe(object_, raw)
            if raw is None:
                self._emptying.forget(name)
            self._evictions.node_seen(name)
        elif isinstance(object_, Pod) and raw is None:
            self._evictions.refusals.forget(object_.metadata.uid)
        elif isinstance(object_, Pod) and (pod := self._picture.pod(object_.metadata.uid)) is not None:
            self._guide.on_pod(pod)
        if makes_difference or _PERIODIC not in self._looks.times:
            self._look_soon(now)

    def _look_soon(self, now: int) -> None:
        """Make a plan an interval after a change, which covers all changes until then."""
        look_ns = self._looks.times.get(_CHANGE, now + self.settings.interval_ns)
        self._looks.set(_CHANGE, look_ns)
        if _PERIODIC not in self._looks.times:
            self._looks.set(_PERIODIC, look_ns, recurs=True)

    @property
    def _is_spent(self) -> bool:
        """Whether it has made all plans or moves that it may make."""
        return min(self.plans_left, self.moves_left) <= 0

    def _use(self, settings: ReschedulerSettings) -> None:
        """Use these settings from now on. Raises InputError for policies that cannot be created."""
        self._planners.change(settings)
        # Moves that were planned with other settings are planned again.
        self._evictions.clear()
        self._looks.set(_CHANGE, self._looks.times.get(_PERIODIC))
        self._moves.look_again()

    # Consequences

    def _work(self, now: int) -> list[Action]:
        actions = self._guide.work(now) if self._guide.is_due else []
        actions += self._soft_taints.work(now, self._evictions.nodes_to_mark())
        if self.settings.is_paused:
            return actions
        if self._evictions:
            return actions + self._evictions.go_on(now)
        due_ns = earliest((self._looks.deadline().time_ns, self._evictions.refusals.deadline().time_ns))
        is_due = due_ns is not None and due_ns <= now
        return actions + (self._plan(now) if is_due and not self._is_spent else [])

    def _plan(self, now: int) -> list[Action]:
        # It covers all changes so far.
        self._looks.set(_CHANGE, None)
        self._look_at_moves(now)
        self._evictions.refusals.pass_time(now)
        self.before_plan(now)
        capped = self._picture.capped_namespaces(now)
        plan = self._planners.plan(self._plan_inputs(now), partial(self._why_held, capped), now)
        plan = replace(plan, capped=capped)
        self.on_plan(plan, now)
        self.plans_left -= 1
        self._looks.set(_PERIODIC, now + self.settings.interval_ns, recurs=True)
        self._looks.set(_WAKE, self._next_wake(plan, bool(capped), now))
        # A repeated failure is reported once.
        new = [error for error in plan.errors if error not in self._errors]
        self._errors = plan.errors
        config_map = f"{CONFIG_MAP} {self._config_map}" if self._config_map else ""
        records: list[Action] = [Record("", "", "Warning", POLICY_FAILED, error, workload=config_map) for error in new]
        if not self._only_plans:
            self._emptying.on_plan(plan, now)
            self._evictions.put(plan.planned[: self.moves_left])
            self.moves_left -= len(plan.planned)
        self._soft_taints.unmark(self._evictions.nodes_to_mark())
        if not self._evictions:
            return records
        self._look_soon(now)
        return records + self._evictions.begin(now)

    def _why_held(self, capped: frozenset[str], pod: PodRecord) -> str:
        """Return the rescheduler's own reason against a move; "" if there is none.

        It is a refusal, a cap, or an eviction that is not observed yet. ``capped`` are the namespaces whose cap allows
        nothing.
        """
        if pod.namespace in capped and self._picture.budgets.counts(pod.pod_class):
            return f"the cap on disruptions in {pod.namespace} leaves none"
        if pod.uid in self._evictions.refusals.uids:
            return "its eviction was refused, and is tried again later"
        return "it is being evicted" if self._moves.is_leaving(pod) else ""

    def _look_at_moves(self, now: int) -> None:
        self._emptying.update(now, self.settings.cool_down_ns)
        self._moves.update(now, self.settings)

    def _plan_inputs(self, now: int) -> PlanInputs:
        return PlanInputs(
            past=self._moves.past(),
            budgets=self._picture.budgets,
            cooling=self._moves.returns.cooling(now),
            keeps_data=self._picture.keeps_data,
            refused=frozenset(self._evictions.refusals.uids),
            emptying=self._emptying.node,
            given_up=self._emptying.given_up(now),
            component_may_evict=self._picture.may_evict(now),
        )

    def _next_wake(self, plan: ReschedulingPlan, is_capped: bool, now: int) -> int | None:
        """Return when time alone allows a move: a move times out, or a pod reaches the minimum age.

        Pods that were left alone may be moved when others no longer count against the hourly limits, or when a rate or
        a cap allows a disruption again.
        """
        settings, has_more = self.settings, bool(plan.left_alone or plan.stopped or is_capped)
        times = [self._moves.next_time(now, settings.move_timeout_ns, counts_past=has_more)]
        if has_more:
            times.append(self._picture.next_token_ns(now))
        placed = (pod for pod in self._picture.pods() if pod.node_name)
        since = (pod.created_ns if pod.start_ns == NOT_STARTED_NS else pod.start_ns for pod in placed)
        minimum_ns = settings.scope.minimum_age_ns
        times.append(earliest(since_ns + minimum_ns for since_ns in since if since_ns + minimum_ns > now))
        if settings.scope.undisturbed_for_ns:
            times.append(self._picture.cluster.disrupted.next_end_ns(now, settings.scope.undisturbed_for_ns))
        return earliest(times)


_PATIENCE_NS = 3_600 * 10**9


@dataclass(eq=False)
class Emptying:
    """The node that plans have started to empty, and the nodes given up. ``node`` is "" for none."""

    node: str = ""
    _policy: str = ""
    _moved_ns: int = 0
    _cooling: dict[str, CoolDown] = field(default_factory=dict)

    def update(self, now: int, cool_down_ns: int) -> None:
        """Give up a node whose emptying has made no progress for too long, and forget old cool-downs."""
        if self.node and now - self._moved_ns >= _PATIENCE_NS:
            self._cooling[self.node] = CoolDown.after(self._cooling.get(self.node), cool_down_ns, now)
            self.node = ""
        self._cooling = {node: found for node, found in self._cooling.items() if found.counts(now)}

    def given_up(self, now: int) -> frozenset[str]:
        """Return the nodes that must not be started again yet."""
        return frozenset(node for node, found in self._cooling.items() if now < found.until_ns)

    def on_plan(self, plan: ReschedulingPlan, now: int) -> None:
        """Record what a plan adds: another part, or the rest."""
        for planned in plan.planned:
            if planned.part_of is not None:
                self.node, self._policy, self._moved_ns = planned.moves[0].source, planned.policy, now
            elif planned.policy == self._policy and {move.source for move in planned.moves} == {self.node}:
                self.node = ""

    def forget(self, node: str) -> None:
        self._cooling.pop(node, None)
        if self.node == node:
            self.node = ""


@dataclass(eq=False)
class ReplacementGuide:
    """Binds or nominates the replacement of each move under way, once; ``is_due``: one is to be guided."""

    _moves: Moves
    _planners: Planners
    # The owners of replacements that are to be guided.
    _owners: dict[str, None] = field(default_factory=dict)
    is_due: bool = False

    def on_pod(self, pod: PodRecord) -> None:
        is_pending = not (pod.node_name or pod.terminating)
        if is_pending and self._planners.settings.guidance is not Guidance.EVICT and self._moves.expects(pod):
            self._owners[pod.owner_uid], self.is_due = None, True

    def work(self, now: int) -> list[Action]:
        """Guide the replacements that have been observed."""
        self.is_due = False
        self._moves.update(now, self._planners.settings)
        under_way = self._moves.under_way(self._owners)
        actions = [action for move in under_way if (action := self._guidance(move)) is not None]
        found = [move.replacement for move in under_way if move.replacement is not None]
        self._owners = dict.fromkeys(pod.owner_uid for pod in found if not pod.node_name and self._moves.expects(pod))
        return actions

    def _guidance(self, move: Move) -> Action | None:
        pod = move.replacement
        if pod is None or not move.target or pod.node_name or pod.gates or pod.uid == move.guided_uid:
            return None
        settings, spec = self._planners.settings, pod.spec
        # A binding cannot choose volumes or devices together with the node.
        has_volumes = any(each.persistent_volume_claim or each.ephemeral for each in spec.volumes)
        if settings.guidance is Guidance.BIND and not (has_volumes or spec.resource_claims):
            action: Action = Bind(pod.key, pod.uid, move.target)
        elif settings.steering is not Steering.AVOID_LIST or not self._planners.knows(pod.scheduler_name):
            action = Nominate(pod.key, pod.uid, move.target, RESCHEDULER)
        else:
            return None
        if not self._planners.fits(pod, move.target):
            return None
        move.guided_uid = pod.uid
        return action
