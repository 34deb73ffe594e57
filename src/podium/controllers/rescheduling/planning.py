"""The preparation of plans: the policies, the profiles that judge moves, and the view that they get."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from podium.api.basis import Caveat
from podium.api.errors import InputError, escape
from podium.api.meta import Kubernetes, Raw
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.controllers.actions import Record
from podium.controllers.rescheduling.rescheduler_view import ReschedulerView
from podium.decide.rescheduling.guards import Guards, PlanInputs
from podium.decide.rescheduling.planner import Planner, Weighted
from podium.decide.rescheduling.round_robin import ExcludedPods, PlannedMoves, ReschedulingPlan, untouched_pods
from podium.decide.transaction import ClusterTransaction
from podium.framework.rescheduling import policy as policies
from podium.framework.rescheduling.configuration import CONFIG_MAP_KEY, parse_rescheduler, read_settings
from podium.framework.rescheduling.policy import Picture, Proposal, Relocation
from podium.framework.rescheduling.settings import ReschedulerSettings
from podium.framework.runner import Runner
from podium.framework.settings.configuration import Configuration, default_configuration
from podium.framework.settings.registry import Registry, build_profiles
from podium.plugins.registry import IN_TREE as PLUGINS
from podium.plugins.rescheduling.registry import IN_TREE as POLICIES

IsMovable = Callable[[PodRecord], bool]
WhyNot = Callable[[PodRecord], str]
"""Returns why a pod may not be moved; "" if it may be."""

MakePlanner = Callable[[Sequence[Weighted], ReschedulerSettings], Planner]


class Planners:
    """Plans for one rescheduler.

    Policies are created when the settings change; their caches last from plan to plan.
    """

    def __init__(
        self,
        picture: ReschedulerView,
        settings: ReschedulerSettings,
        configuration: Configuration | None,
        make: MakePlanner,
        seed: int,
    ) -> None:
        """Build the profiles. Raises InputError for policies that cannot be created, and as `build_profiles` does."""
        self._picture = picture
        self._make = make
        self._seed = seed
        plugins = Registry(PLUGINS)
        profiles = build_profiles(configuration or default_configuration(), plugins, picture.cluster, seed=seed)
        self._runners = {name: Runner(profile, picture.cluster) for name, profile in profiles.items()}
        self._kubelet = policies.kubelet_runner(picture.cluster, plugins)
        self._policies: tuple[Weighted, ...] = ()
        self.settings = settings
        self.change(settings)

    def change(self, settings: ReschedulerSettings) -> None:
        """Use other settings from now on. Raises InputError for policies that cannot be created."""
        registry = policies.PolicyRegistry(POLICIES)
        self._policies = policies.make_policies(settings.policies, registry, self._picture.cluster, self._seed)
        self._planner = self._make(self._policies, settings)
        self.settings = settings

    @property
    def needs_use(self) -> bool:
        """Return whether a policy reads the use of pods and nodes."""
        return any(getattr(policy, "needs_use", False) for policy, _ in self._policies)

    def knows(self, scheduler_name: str) -> bool:
        """Return whether pods of that scheduler are judged by its own profile."""
        return scheduler_name in self._runners

    def plan(self, inputs: PlanInputs, why_held: WhyNot, now: int) -> ReschedulingPlan:
        """Return a plan. ``why_held`` adds reasons against moving a pod."""
        return self._run(inputs, lambda pod: not why_held(pod), now)

    def untouched_pods(self, inputs: PlanInputs, why_held: WhyNot, now: int) -> ExcludedPods:
        """Return the pods that such a plan has to leave in place."""
        cluster = self._picture.cluster
        guards = Guards(cluster, self.settings, inputs, now)
        return untouched_pods(cluster.placed.values(), lambda pod: guards.why(pod) or why_held(pod))

    def show(self, inputs: PlanInputs, now: int) -> tuple[Picture, tuple[Weighted, ...]]:
        """Return the inputs of a plan: the picture, and the policies with their weights."""
        return self._look(inputs, lambda pod: True, now), self._policies

    def holds(self, planned: PlannedMoves, left: Sequence[PodRecord], inputs: PlanInputs, now: int) -> bool:
        """Return whether some pods of a plan should still be moved."""
        proposal = Proposal(tuple(Relocation(pod) for pod in left), planned.reason, planned.avoid_for_ns)
        single = replace(inputs, only=(planned.policy, proposal))
        return bool(self._run(single, lambda pod: pod in left, now).planned)

    def fits(self, pod: PodRecord, node_name: str) -> bool:
        """Return whether the pod passes its scheduler's filters on a node."""
        row = self._picture.cluster.nodes.row_of.get(node_name)
        if row is None:
            return False
        with ClusterTransaction(self._picture.cluster, self._runners, self._seed) as transaction:
            return not transaction.refusal(pod, row)

    def _run(self, inputs: PlanInputs, is_movable: IsMovable, now: int) -> ReschedulingPlan:
        picture = self._look(inputs, is_movable, now)
        with ClusterTransaction(self._picture.cluster, self._runners, self._seed) as transaction:
            return self._planner.plan(transaction, picture, inputs)

    def _look(self, inputs: PlanInputs, is_movable: IsMovable, now: int) -> Picture:
        shown = self._picture
        shown.cluster.pass_time(now)
        picture = self._planner.picture(
            shown.cluster,
            self._runners,
            self._kubelet,
            now,
            inputs=inputs,
            signals=shown.signals(now),
            waiting=list(shown.unschedulable.values()),
        )
        allows = picture.is_movable
        return replace(picture, is_movable=lambda pod: is_movable(pod) and allows(pod))


def read_rescheduling(raw: Raw, path: str) -> ReschedulerSettings:
    """Return the settings in the object at a path, a ReschedulerConfiguration without apiVersion and kind.

    Raises InputError with the field's path.
    """
    try:
        settings = read_settings(raw)
        check_policies(settings, [written["name"] for written in raw.get("policies", ())])
    except InputError as error:
        raise InputError(error.problem, path=path + error.path) from error.__cause__
    return settings


def check_policies(settings: ReschedulerSettings, written: Sequence[str] = ()) -> None:
    """Raise InputError for an invalid policy, with its index in ``written``."""
    for policy in settings.policies:
        try:
            policies.make_policies([policy], policies.PolicyRegistry(POLICIES), Cluster())
        except InputError as error:
            place = f"[{written.index(policy.name)}]" if policy.name in written else ""
            path = f".policies{place}{error.path}"
            raise InputError(error.problem, object=error.object, path=path) from error.__cause__


CONFIG_MAP = "ConfigMap"
PAUSED_KEY = "paused"
"""The key of the ConfigMap that stops all evictions, with any value but "false"."""

READ, REFUSED = "ConfigurationRead", "ConfigurationRefused"
"""The reasons of the events that report whether a version is in use."""

# The maximum length of an event's message.
_LONGEST = 1_000
_NOT_PAUSED = ("", "false")


class SettingsMap:
    """The settings in the ConfigMap with that key; ``given`` are those that apply if it is silent.

    ``use`` puts settings in use, and raises InputError for invalid ones.
    """

    def __init__(self, key: str, given: ReschedulerSettings, use: Callable[[ReschedulerSettings], None]) -> None:
        self._key = key
        self._given = given
        self._use = use
        self._wanted = given
        self._data: Raw | None = None
        self._was_read = False
        self._is_stopped = False

    def on_update(self, object_: Kubernetes, raw: Raw) -> list[Record]:
        """Read a ConfigMap; return the events about it."""
        data = raw.get("data")
        data = data if isinstance(data, dict) else {}
        if object_.key != self._key or data == self._data:
            return []
        self._data = data
        self._is_stopped = str(data.get(PAUSED_KEY, "")).strip().lower() not in _NOT_PAUSED
        before = self._wanted
        try:
            self._wanted, caveats = self._read(data)
            self._use(self._as_stopped(self._wanted))
        except InputError as error:
            self._wanted = before if self._was_read else replace(before, is_paused=True)
            self._use(self._as_stopped(self._wanted))
            kept = "the configuration before it stays" if self._was_read else "no pod is moved until it can be used"
            return [self._record(object_, "Warning", REFUSED, f"{error}; {kept}")]
        self._was_read = True
        state = "all evictions are stopped" if self._as_stopped(self._wanted).is_paused else "it is in use"
        message = state + "".join(f"; {caveat.message}" for caveat in caveats)
        return [self._record(object_, "Warning" if caveats else "Normal", READ, escape(message, _LONGEST))]

    def _read(self, data: Raw) -> tuple[ReschedulerSettings, tuple[Caveat, ...]]:
        """Return the settings, and caveats for what they ask for in vain."""
        text = data.get(CONFIG_MAP_KEY)
        if text is None:
            return self._given, ()
        source = f"{CONFIG_MAP} {self._key}, {CONFIG_MAP_KEY}"
        configuration = parse_rescheduler(str(text), source)
        settings = configuration.settings
        known = {policy.name for policy in self._given.policies}
        for policy in settings.policies:
            if ":" in policy.name and policy.name not in known:
                problem = "is loaded only where the program's own configuration names it: a ConfigMap loads no code"
                raise InputError(problem, source=source, object=f"policy {policy.name}", path=".name")
        return settings, configuration.caveats

    def _as_stopped(self, settings: ReschedulerSettings) -> ReschedulerSettings:
        return replace(settings, is_paused=settings.is_paused or self._is_stopped)

    def _record(self, object_: Kubernetes, type_: str, reason: str, message: str) -> Record:
        return Record("", object_.metadata.uid, type_, reason, message, workload=f"{CONFIG_MAP} {self._key}")
