"""How a rescheduler finds out what to move: its policies, the profiles that it judges by, and what they are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.decide.rescheduling.plan import Plan, PlannedMoves
from podium.decide.rescheduling.standing import Standing
from podium.decide.rescheduling.untouched import Untouched, untouched
from podium.decide.scratch import Scratch
from podium.framework.rescheduling.kubelet_profile import kubelet_runner
from podium.framework.rescheduling.picture import Picture
from podium.framework.rescheduling.policy import Policy, Proposal, Relocation
from podium.framework.rescheduling.policy_registry import PolicyRegistry, make_policies
from podium.framework.rescheduling.settings import ReschedulerSettings
from podium.framework.rescheduling.signals import Signals
from podium.framework.runner import Runner
from podium.framework.settings.configuration import Configuration, default_configuration
from podium.framework.settings.profile_builder import build_profiles
from podium.framework.settings.registry import Registry
from podium.machines.rescheduling.picture.cluster_picture import ClusterPicture
from podium.plugins.registry import IN_TREE as PLUGINS
from podium.plugins.rescheduling.registry import IN_TREE as POLICIES

IsMovable = Callable[[PodRecord], bool]
WhyNot = Callable[[PodRecord], str]
"""Says of a pod why it may not be moved; "" if it may."""

Weighted = tuple[Policy, float]


class Planning(Protocol):
    """Decides what to move (`podium.decide.rescheduling.planner.Planner`)."""

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
    ) -> Picture: ...

    def plan(self, scratch: Scratch, picture: Picture, standing: Standing) -> Plan: ...

    def why_left_alone(self, picture: Picture, standing: Standing) -> WhyNot: ...


MakePlanner = Callable[[Sequence[Weighted], ReschedulerSettings], Planning]


class Planners:
    """Plans for one rescheduler.

    Policies are made when the settings change; what they keep of the cluster they keep from plan to plan.
    """

    def __init__(
        self,
        picture: ClusterPicture,
        settings: ReschedulerSettings,
        configuration: Configuration | None,
        make: MakePlanner,
        seed: int,
    ) -> None:
        """Raises InputError for policies that cannot be made, and as `build_profiles` does."""
        self._picture = picture
        self._make = make
        self._seed = seed
        plugins = Registry(PLUGINS)
        profiles = build_profiles(configuration or default_configuration(), plugins, picture.cluster, seed=seed)
        self._runners = {name: Runner(profile, picture.cluster) for name, profile in profiles.items()}
        self._kubelet = kubelet_runner(picture.cluster, plugins)
        self._policies: tuple[Weighted, ...] = ()
        self.settings = settings
        self.change(settings)

    def change(self, settings: ReschedulerSettings) -> None:
        """Work by other settings from now on. Raises InputError for policies that cannot be made."""
        registry = PolicyRegistry(POLICIES)
        self._policies = make_policies(settings.policies, registry, self._picture.cluster, self._seed)
        self._planner = self._make(self._policies, settings)
        self.settings = settings

    @property
    def needs_use(self) -> bool:
        """Whether some policy asks what pods and nodes use."""
        return any(getattr(policy, "needs_use", False) for policy, _ in self._policies)

    def knows(self, scheduler_name: str) -> bool:
        """Whether pods of that scheduler are judged by its own profile."""
        return scheduler_name in self._runners

    def plan(self, standing: Standing, why_held: WhyNot, now: int) -> Plan:
        """What to move. ``why_held`` is asked as well, beside what speaks against a move in any case."""
        return self._run(self._planner, standing, lambda pod: not why_held(pod), now)

    def untouched(self, standing: Standing, why_held: WhyNot, now: int) -> Untouched:
        """Which pods such a plan has to leave where they are."""
        why = self._planner.why_left_alone(self._look(self._planner, standing, lambda pod: True, now), standing)
        return untouched(self._picture.cluster.placed.values(), lambda pod: why(pod) or why_held(pod))

    def show(self, standing: Standing, now: int) -> tuple[Picture, tuple[Weighted, ...]]:
        """What a plan is made from: the picture, and the policies with their weights."""
        return self._look(self._planner, standing, lambda pod: True, now), self._policies

    def holds(self, planned: PlannedMoves, left: Sequence[PodRecord], standing: Standing, now: int) -> str:
        """Why some of the pods of a plan are better left where they are by now; "" if they are to be moved still."""
        proposal = _proposal(planned, left)
        policies = [
            (_Only(policy, [proposal] if policy.name == planned.policy else []), weight)
            for policy, weight in self._policies
        ]
        plan = self._run(self._make(policies, self.settings), standing, lambda pod: pod in left, now)
        if plan.planned:
            return ""
        return plan.left_alone[0].why if plan.left_alone else "it gains nothing any more"

    def fits(self, pod: PodRecord, node_name: str) -> bool:
        """Whether the pod's scheduler would let it onto a node."""
        row = self._picture.cluster.nodes.row_of.get(node_name)
        if row is None:
            return False
        with Scratch(self._picture.cluster, self._runners, self._seed) as scratch:
            return not scratch.refusal(pod, row)

    def _run(self, planner: Planning, standing: Standing, is_movable: IsMovable, now: int) -> Plan:
        picture = self._look(planner, standing, is_movable, now)
        with Scratch(self._picture.cluster, self._runners, self._seed) as scratch:
            return planner.plan(scratch, picture, standing)

    def _look(self, planner: Planning, standing: Standing, is_movable: IsMovable, now: int) -> Picture:
        shown = self._picture
        shown.cluster.pass_time(now)
        picture = planner.picture(
            shown.cluster,
            self._runners,
            self._kubelet,
            now,
            standing=standing,
            signals=shown.signals(now),
            waiting=shown.waiting(),
        )
        allows = picture.is_movable
        return replace(picture, is_movable=lambda pod: is_movable(pod) and allows(pod))


@dataclass(frozen=True, slots=True)
class _Only:
    """A policy that has the same objective as another, and proposes this alone."""

    policy: Policy
    found: Sequence[Proposal]

    @property
    def name(self) -> str:
        return self.policy.name

    def objective(self, picture: Picture) -> float:
        return self.policy.objective(picture)

    def proposals(self, picture: Picture) -> Iterable[Proposal]:
        return self.found


def _proposal(planned: PlannedMoves, left: Sequence[PodRecord]) -> Proposal:
    return Proposal(tuple(Relocation(pod) for pod in left), planned.reason, planned.avoid_for_ns)
