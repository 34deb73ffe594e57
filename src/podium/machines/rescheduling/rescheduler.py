"""The rescheduler: finds pods that would be better elsewhere, and evicts them, so that their scheduler moves them.

Source: controlled-rescheduling.md, Rescheduler.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from podium.api.meta import Kubernetes, Raw
from podium.api.node import Node
from podium.api.pod import Pod
from podium.cluster.pods import PodRecord
from podium.decide.rescheduling.plan import Plan
from podium.decide.rescheduling.planner import Planner
from podium.decide.rescheduling.standing import Standing
from podium.decide.rescheduling.untouched import Untouched
from podium.framework.rescheduling.picture import Picture
from podium.framework.rescheduling.settings import ReschedulerSettings
from podium.framework.settings.configuration import Configuration
from podium.machines.actions import Action, Evict, PatchObject, Record
from podium.machines.observations import Answered, Changed, Gone, Measured, Observation, Tick
from podium.machines.parts.deadlines import AT_ONCE, Deadline, earliest, soonest
from podium.machines.placement_kinds import PLACEMENT_KINDS
from podium.machines.rescheduling.emptying import Emptying
from podium.machines.rescheduling.evictions import Evictions
from podium.machines.rescheduling.guide import Guide
from podium.machines.rescheduling.looks import Looks, next_of_age
from podium.machines.rescheduling.moves import Moves
from podium.machines.rescheduling.picture.cluster_picture import ClusterPicture
from podium.machines.rescheduling.planning import MakePlanner, Planners, Weighted
from podium.machines.rescheduling.returns import Returns
from podium.machines.rescheduling.settings_map import CONFIG_MAP, SettingsMap
from podium.machines.rescheduling.soft_taints import SoftTaints


class Rescheduler:
    """Moves pods to better places, within everybody's budgets, and never in circles.

    It looks at the cluster an interval after something has changed, once more for as long as that gains something, and
    when a limit, a pod's youth or a budget's rate may have come to an end; and from time to time in any case, since
    what policies find bad may depend on the time.
    """

    def __init__(
        self,
        settings: ReschedulerSettings,
        configuration: Configuration | None = None,
        *,
        config_map: str = "",
        make_planner: MakePlanner = Planner,
        seed: int = 0,
        only_plans: bool = False,
    ) -> None:
        """The ``configuration`` is the schedulers', whose choices are foreseen. One that ``only_plans`` evicts nobody.

        With a ``config_map`` (`namespace/name`) the settings are read from there while it runs, and those given hold
        until there is one. Raises InputError for policies that cannot be made, and as `build_profiles` does.
        """
        self.watches = PLACEMENT_KINDS | {"Pod", *((CONFIG_MAP,) if config_map else ())}
        self._picture = ClusterPicture()
        self._planners = Planners(self._picture, settings, configuration, make_planner, seed)
        self._moves = Moves(self._picture)
        self._returns = Returns(self._picture)
        self._emptying = Emptying()
        self._guide = Guide(self._moves, self._planners)
        self._soft_taints = SoftTaints()
        self._only_plans = only_plans
        self._evictions = Evictions(
            self._picture, self._planners, self._moves, self._soft_taints, self._standing, self._look_at_moves
        )
        self._looks = Looks()
        # What policies failed with in the last plan.
        self._errors: tuple[str, ...] = ()
        self._config_map = config_map
        self._settings_map = SettingsMap(config_map, settings, self._use)
        # Is told each plan, for those who write down how decisions were made.
        self.on_plan: Callable[[Plan, int], None] | None = None

    @property
    def settings(self) -> ReschedulerSettings:
        """How it works at the moment."""
        return self._planners.settings

    @property
    def is_at_work(self) -> bool:
        """Whether something of the last plan is still to be asked for, or an answer to come."""
        return bool(self._evictions)

    @property
    def moves_under_way(self) -> int:
        """How many moves are not over."""
        return len(self._moves.under_way())

    @property
    def needs_use(self) -> bool:
        """Whether some policy asks what pods and nodes use, so that it is worth while to measure that (`Measured`)."""
        return self._planners.needs_use

    def show(self, now: int) -> tuple[Picture, tuple[Weighted, ...], Standing]:
        """What a plan would be made from by now, for those who make another one: policies come with their weights."""
        standing = self._standing(now)
        return *self._planners.show(standing, now), standing

    def untouched(self, now: int) -> Untouched:
        """Which pods a plan would have to leave where they are by now, and why."""
        return self._planners.untouched(
            self._standing(now), partial(self._why_held, self._picture.capped_namespaces(now)), now
        )

    def handle(self, observation: Observation, now: int) -> list[Action]:
        """Take in an observation at ``now`` and say what to do."""
        match observation:
            case Changed(object=object_, raw=raw) if object_.kind == CONFIG_MAP:
                return [*self._settings_map.changed(object_, raw)]
            case Changed(object=object_, raw=raw):
                self._seen(self._picture.changed(object_, raw), object_, now)
                self._look_closer(object_, raw)
            case Gone(object=object_):
                self._seen(self._picture.gone(object_), object_, now)
                self._forget(object_)
            case Answered(action=Evict() as evict):
                return self._evictions.answered(evict, observation, now)
            case Answered(action=PatchObject() as patch):
                self._soft_taints.answered(observation, now)
                if observation.problem is not None:
                    self._evictions.not_marked(patch.key)
            case Measured():
                self._picture.measured.take(observation, now)
            case Tick():
                return self._work(now)
        return []

    def deadline(self) -> Deadline:
        """When something is due; that what was refused is tried once more is no news."""
        beside = soonest(self._guide.deadline(), self._soft_taints.deadline())
        if self.settings.is_paused:
            return beside
        if self._evictions:
            return soonest(beside, self._evictions.deadline())
        return soonest(beside, self._looks.deadline(), self._evictions.refusals.deadline())

    # What the API shows

    def _seen(self, makes_difference: bool, object_: Kubernetes, now: int) -> None:
        if isinstance(object_, Node):
            self._moves.read_avoid_lists([object_.metadata.name])
        if makes_difference or not self._looks.has_begun:
            self._looks.soon(now, self.settings.interval_ns)

    def _look_closer(self, object_: Kubernetes, raw: Raw) -> None:
        """Take in what concerns moves under way."""
        if isinstance(object_, Node):
            self._soft_taints.changed(object_, raw)
            self._evictions.node_seen(object_.metadata.name)
        elif isinstance(object_, Pod):
            pod = self._picture.pod(object_.metadata.uid)
            if pod is not None:
                self._guide.seen(pod)

    def _forget(self, gone: Kubernetes) -> None:
        if isinstance(gone, Pod):
            self._evictions.refusals.forget(gone.metadata.uid)
        elif isinstance(gone, Node):
            self._soft_taints.gone(gone.metadata.name)
            self._emptying.forget(gone.metadata.name)
            self._evictions.node_gone(gone.metadata.name)

    def _use(self, settings: ReschedulerSettings) -> None:
        """Work by these settings from now on. Raises InputError for policies that cannot be made."""
        self._planners.change(settings)
        # What was decided by others is decided anew.
        self._evictions.clear()
        self._looks.anew()

    # What follows from it

    def _work(self, now: int) -> list[Action]:
        """Do what is due."""
        actions = self._guide.work(now) if self._guide.deadline() is AT_ONCE else []
        actions += self._soft_taints.work(now, self._evictions.nodes_to_mark())
        if self.settings.is_paused:
            return actions
        if self._evictions:
            return actions + self._evictions.go_on(now)
        due_ns = earliest((self._looks.deadline().time_ns, self._evictions.refusals.deadline().time_ns))
        return actions + (self._plan(now) if due_ns is not None and due_ns <= now else [])

    def _plan(self, now: int) -> list[Action]:
        """Find out what to move, and begin with it."""
        self._looks.begin()
        self._look_at_moves(now)
        self._evictions.refusals.pass_time(now)
        capped = self._picture.capped_namespaces(now)
        plan = self._planners.plan(self._standing(now), partial(self._why_held, capped), now)
        if not self._only_plans:
            self._emptying.planned(plan, now)
        if self.on_plan is not None:
            self.on_plan(plan, now)
        self._looks.end(now, self.settings.interval_ns, self._next_wake(plan, bool(capped), now))
        told = self._told_errors(plan)
        if not self._only_plans:
            self._evictions.put(plan.planned)
        self._soft_taints.unmark(self._evictions.nodes_to_mark())
        if not self._evictions:
            return told
        self._looks.soon(now, self.settings.interval_ns)
        return told + self._evictions.begin(now)

    def _why_held(self, capped: frozenset[str], pod: PodRecord) -> str:
        """What of its own speaks against it: a refusal, a cap, an eviction whose effect is not seen yet; "" if nothing.

        ``capped`` are the namespaces whose cap leaves nothing.
        """
        if pod.namespace in capped and self._picture.budgets.covering(pod):
            return f"the cap on disruptions in {pod.namespace} leaves none"
        if pod.uid in self._evictions.refusals:
            return "its eviction was refused, and is tried again later"
        return "it is being evicted" if self._moves.is_leaving(pod) else ""

    def _told_errors(self, plan: Plan) -> list[Action]:
        """The events about policies that failed, each failure told once in a row."""
        errors, self._errors = self._errors, plan.errors
        whose = f"{CONFIG_MAP} {self._config_map}" if self._config_map else ""
        anew = (error for error in plan.errors if error not in errors)
        return [Record("", "", "Warning", "PolicyFailed", error, workload=whose) for error in anew]

    def _look_at_moves(self, now: int) -> None:
        settings = self.settings
        self._returns.look(self._moves, now, settings)
        self._emptying.look(now, settings.cool_down_ns)
        self._moves.look(now, settings.move_timeout_ns)

    def _standing(self, now: int) -> Standing:
        return Standing(
            past=self._moves.past(),
            budgets=self._picture.budgets,
            cooling=self._returns.cooling(now),
            keeps_data=self._picture.keeps_data,
            refused=self._evictions.refusals.uids,
            emptying=self._emptying.node,
            given_up=self._emptying.given_up(now),
            component_may_evict=self._picture.may_evict(now),
        )

    def _next_wake(self, plan: Plan, is_capped: bool, now: int) -> int | None:
        """When time alone changes what can be moved: moves come to their end, and pods of age.

        Whoever was left alone may be let go when others count no longer against the limits of an hour, or when a rate
        or a cap has something left.
        """
        settings, has_more = self.settings, bool(plan.left_alone or plan.stopped or is_capped)
        times = [self._moves.next_time(now, settings.move_timeout_ns, counts_past=has_more)]
        if has_more:
            times.append(self._picture.next_token_ns(now))
        times.append(next_of_age(self._picture.pods(), settings.scope.minimum_age_ns, now))
        return earliest(times)
