"""The conversion of a DeschedulerPolicy (descheduler/v1alpha2), and its omissions.

The result is a cautious configuration whose policies are the counterparts of the plugins. One scope holds for all
policies; it is as narrow as the narrowest one requested. Everything without a counterpart is named.

Source: kubernetes-sigs/descheduler, pkg/api/v1alpha2/types.go, README.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta

from podium.api.basis import Caveat
from podium.api.errors import InputError, field_path, locating, shown
from podium.api.meta import Int32
from podium.api.reading import Duration
from podium.api.selectors import Selector, parse_label_selector
from podium.framework.rescheduling.settings import (
    SETTINGS_OF,
    Aggressiveness,
    MoveLimitSettings,
    PolicySettings,
    ReschedulerSettings,
    ReschedulingScope,
    WrittenNamespaces,
    WrittenSelector,
    label_selector,
    names_of,
)
from podium.framework.settings.arguments import Strict, read_strictly

API_VERSION = "descheduler/v1alpha2"
KIND = "DeschedulerPolicy"

_Count = Annotated[int, Meta(ge=0, le=2**31 - 1)]
_MOVING = ("deschedule", "balance")
_POINTS = (*_MOVING, "filter", "preevictionfilter", "presort", "sort", "evict")
_MOST_PROFILES = 20


class _PluginConfig(Strict, frozen=True, kw_only=True):
    name: str
    args: dict[str, Any] = msgspec.field(default_factory=dict)


class _PluginSet(Strict, frozen=True, kw_only=True):
    enabled: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()


class _Profile(Strict, frozen=True, kw_only=True):
    name: str = ""
    plugin_config: tuple[_PluginConfig, ...] = ()
    plugins: dict[str, _PluginSet] = msgspec.field(default_factory=dict)


class _Policy(Strict, frozen=True, kw_only=True):
    profiles: tuple[_Profile, ...] = ()
    node_selector: str = ""
    max_no_of_pods_to_evict_per_node: _Count | None = None
    max_no_of_pods_to_evict_per_namespace: _Count | None = None
    max_no_of_pods_to_evict_total: _Count | None = None


def read_descheduler_policy(raw: Mapping[str, Any]) -> tuple[ReschedulerSettings, tuple[Caveat, ...]]:
    """Return the settings equivalent to a DeschedulerPolicy, and caveats about omissions.

    Raises InputError with the field's path for an invalid field.
    """
    if raw.get("apiVersion") != API_VERSION:
        raise InputError(f"is {shown(raw.get('apiVersion'))}; {API_VERSION} is needed", path=".apiVersion")
    conversion = Conversion()
    written = read_known(conversion, "the policy", raw, _Policy)
    if len(written.profiles) > _MOST_PROFILES:
        raise InputError(
            f"has {len(written.profiles)} profiles; at most {_MOST_PROFILES} are possible", path=".profiles"
        )
    evictors = [
        _profile(conversion, profile, f".profiles[{number}]") for number, profile in enumerate(written.profiles)
    ]
    _note_whole(conversion, written)
    usual = SETTINGS_OF[Aggressiveness.CAUTIOUS]
    own = MoveLimitSettings(
        total=written.max_no_of_pods_to_evict_total,
        node=written.max_no_of_pods_to_evict_per_node,
        namespace=written.max_no_of_pods_to_evict_per_namespace,
    )
    settings = replace(
        usual,
        policies=tuple(PolicySettings(name, args=args) for name, args in conversion.policies.items()),
        in_flight=_limits(usual.in_flight, own, conversion.limits),
        without_budget=MoveLimitSettings(total=0) if conversion.unprotected_stay else usual.without_budget,
        scope=_scope(conversion, written, evictors, usual.scope),
    )
    return settings, tuple(dict.fromkeys(conversion.caveats))


def _profile(conversion: Conversion, profile: _Profile, path: str) -> EvictorScope:
    """Convert the plugins that a profile enables; return the scope of its evictor."""
    enabled = _enabled(conversion, profile)
    for config in profile.plugin_config:
        if config.name not in (EVICTOR, *enabled):
            conversion.note(config.name, "has arguments, and is not enabled")
    for name in enabled:
        if name not in COUNTERPARTS:
            conversion.note(name, f"has no counterpart: {WITHOUT.get(name, 'it is not known here')}")
            continue
        with _arguments_of(profile, name, path) as raw:
            args = read_known(conversion, name, raw, COUNTERPARTS[name])
            conversion.namespaces.append(args.namespaces)
            if isinstance(args, _Filtered):
                conversion.selectors.append(args.label_selector)
            args.convert(conversion, name)
    with _arguments_of(profile, EVICTOR, path) as raw:
        return EvictorScope(conversion, raw)


@contextmanager
def _arguments_of(profile: _Profile, plugin: str, path: str) -> Iterator[Mapping[str, Any]]:
    """Yield a plugin's arguments; an InputError in the block gets their place in the policy."""
    numbers = (number for number, config in enumerate(profile.plugin_config) if config.name == plugin)
    number = next(numbers, None)
    place = ".pluginConfig" if number is None else f".pluginConfig[{number}].args"
    with locating(f"{path}{place}"):
        yield {} if number is None else profile.plugin_config[number].args


def _enabled(conversion: Conversion, profile: _Profile) -> tuple[str, ...]:
    """Return the plugins that move pods, each once; note that all others do nothing."""
    found: list[str] = []
    for written, plugins in profile.plugins.items():
        point = written.lower()
        if point in _MOVING:
            found += plugins.enabled
            continue
        if point not in _POINTS:
            conversion.note("the policy", "there is no such extension point", f"plugins.{written}")
        for name in plugins.enabled:
            if name != EVICTOR:
                conversion.note(name, "has no counterpart at this extension point", f"plugins.{written}")
    conversion.enabled.update(found)
    return tuple(dict.fromkeys(found))


def _note_whole(conversion: Conversion, written: _Policy) -> None:
    """Record the caveats that apply to every conversion."""
    missing = [what for name, what in REPAIRS.items() if name not in conversion.enabled]
    if "RepairViolations" in conversion.policies and missing:
        conversion.note("the policy", f"RepairViolations also repairs violations of {', '.join(missing)}")
    if len(written.profiles) > 1:
        conversion.note("the policy", "its profiles are merged, with the intersection of their scopes")
    if conversion.policies:
        conversion.note(
            "the policy",
            "limits count moves under way, not those of a cycle; thresholds, pace, limits and reserves of budgets that "
            "it does not state are the defaults of a ReschedulerConfiguration",
        )


def _scope(
    conversion: Conversion, written: _Policy, evictors: Sequence[EvictorScope], usual: ReschedulingScope
) -> ReschedulingScope:
    """Return the scope that no part of the policy exceeds."""
    included, excluded = _namespaces(conversion, usual)
    given = [*conversion.selectors, *(each.label_selector for each in evictors)]
    selectors = [label_selector(each, ".labelSelector") for each in given if each is not None]
    if len({str(each) for each in conversion.selectors}) > 1:
        conversion.note("the policy", "plugins select different pods; here only those that all select count")
    nodes = [
        parse_label_selector(text) for text in (written.node_selector, *(e.node_selector for e in evictors)) if text
    ]
    allowed = set.intersection(*(each.allowed for each in evictors)) if evictors else set[str]()
    spared = set[str]().union(*(each.spared for each in evictors))
    ages = [usual.minimum_age_ns if each.minimum_age_ns is None else each.minimum_age_ns for each in evictors]
    thresholds = [each.priority_below for each in evictors if each.priority_below is not None]
    return msgspec.structs.replace(
        usual,
        included=included,
        excluded=excluded,
        pods=_all_of(selectors),
        nodes=_all_of(nodes),
        allow=tuple(sorted(allowed)),
        spare=tuple(sorted(spared)),
        priority_below=min(thresholds, default=None),
        minimum_replicas=max((each.minimum_replicas for each in evictors), default=0),
        minimum_age_ns=max(ages, default=usual.minimum_age_ns),
    )


def _namespaces(conversion: Conversion, usual: ReschedulingScope) -> tuple[frozenset[str], frozenset[str]]:
    """Return the namespaces that all plugins with inclusions include, and those that any plugin excludes."""
    given = [each for each in conversion.namespaces if each is not None]
    if len(set(conversion.namespaces)) > 1:
        conversion.note("the policy", "plugins select different namespaces; here only common ones count")
    includes = [names_of(each.include, ".namespaces.include") for each in given if each.include]
    included = frozenset.intersection(*includes) if includes else frozenset[str]()
    excluded = frozenset[str]().union(*(names_of(each.exclude or (), ".namespaces.exclude") for each in given))
    if includes and not included:
        raise InputError("its plugins have no namespace in common, but here they share one scope")
    return included - excluded, excluded or usual.excluded - included


def _all_of(selectors: Sequence[Selector | None]) -> Selector | None:
    found = [each for each in selectors if each is not None]
    return Selector(tuple(requirement for each in found for requirement in each.requirements)) if found else None


def _limits(
    usual: MoveLimitSettings, own: MoveLimitSettings, of_plugins: Sequence[_EvictionLimits]
) -> MoveLimitSettings:
    """Return the limits: the overall ones, else the defaults, bounded by those of each plugin."""

    def limit(kind: str) -> int | None:
        stated = getattr(own, kind)
        bounds = [getattr(usual, kind) if stated is None else stated, *(getattr(each, kind) for each in of_plugins)]
        return min((bound for bound in bounds if bound is not None), default=None)

    return MoveLimitSettings(total=limit("total"), node=limit("node"), namespace=limit("namespace"), owner=usual.owner)


EVICTOR = "DefaultEvictor"

_CRITICAL = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_NEVER = "is never done here"


class _PriorityThreshold(Strict, frozen=True, kw_only=True):
    value: Int32 | None = None
    name: str = ""


class _PodProtections(Strict, frozen=True, kw_only=True):
    extra_enabled: tuple[str, ...] = ()
    default_disabled: tuple[str, ...] = ()
    config: dict[str, Any] = msgspec.field(default_factory=dict)


class _Evictor(Strict, frozen=True, kw_only=True):
    node_selector: str = ""
    label_selector: WrittenSelector | None = None
    priority_threshold: _PriorityThreshold = _PriorityThreshold()
    node_fit: bool | None = None
    min_replicas: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0
    min_pod_age_ns: Duration | None = None
    no_eviction_policy: str = ""
    pod_protections: _PodProtections = _PodProtections()
    evict_local_storage_pods: bool = False
    evict_daemon_set_pods: bool = False
    evict_system_critical_pods: bool = False
    ignore_pvc_pods: bool = False
    ignore_pods_without_pdb: bool = msgspec.field(default=False, name="ignorePodsWithoutPDB")
    evict_failed_bare_pods: bool = False


class EvictorScope:
    """The pods that one DefaultEvictor may evict, in the terms of a ReschedulerConfiguration's scope.

    ``allowed`` and ``spared`` are values of `allow` and `spare` there. Raises InputError for invalid ``args``.
    """

    def __init__(self, conversion: Conversion, args: Mapping[str, Any]) -> None:
        read = read_known(conversion, EVICTOR, args, _Evictor)
        protections, note = read.pod_protections, conversion.note
        disabled, extra = set(protections.default_disabled), set(protections.extra_enabled)
        self.node_selector = read.node_selector
        self.minimum_age_ns = read.min_pod_age_ns
        self.minimum_replicas = read.min_replicas
        self.priority_below = _threshold(read.priority_threshold)
        self.label_selector = read.label_selector
        allowed = {
            "LocalStorage": read.evict_local_storage_pods or "PodsWithLocalStorage" in disabled,
            "SystemCriticalPods": read.evict_system_critical_pods or "SystemCriticalPods" in disabled,
        }
        spared = {
            "PodsWithVolumeClaims": read.ignore_pvc_pods or "PodsWithPVC" in extra,
            "PodsWithDeviceClaims": "PodsWithResourceClaims" in extra,
        }
        self.allowed = {name for name, is_allowed in allowed.items() if is_allowed}
        self.spared = {name for name, is_spared in spared.items() if is_spared}
        conversion.unprotected_stay |= read.ignore_pods_without_pdb or "PodsWithoutPDB" in extra
        if read.evict_daemon_set_pods or "DaemonSetPods" in disabled:
            note(EVICTOR, f"moving pods of DaemonSets {_NEVER}", "evictDaemonSetPods")
        if read.evict_failed_bare_pods or "FailedBarePods" in disabled:
            note(EVICTOR, f"evicting pods that have ended {_NEVER}", "evictFailedBarePods")
        if read.node_fit is False:
            note(EVICTOR, "a pod is moved only if its replacement fits somewhere", "nodeFit")
        if read.no_eviction_policy == "Preferred":
            note(EVICTOR, "pods that prefer no eviction are never moved", "noEvictionPolicy")
        if protections.config:
            note(EVICTOR, "the protection holds for all claims, of whatever class", "podProtections.config")
        for name in sorted(extra - {"PodsWithPVC", "PodsWithResourceClaims", "PodsWithoutPDB"}):
            if name != "PodsWithPDBBlockingSingleReplicaOwner":
                problem = f"{shown(name)} is a protection that is not known here; without it pods might be moved"
                raise InputError(problem, path=".podProtections.extraEnabled")
            note(EVICTOR, "what disruption budgets do not allow is never done", name)


def _threshold(threshold: _PriorityThreshold) -> int | None:
    """Return the priority from which pods stay in place; None if it adds nothing to the defaults."""
    if threshold.name and threshold.value is not None:
        raise InputError("has a name and a value; leave one out", path=".priorityThreshold")
    if not threshold.name:
        return threshold.value
    if threshold.name not in _CRITICAL:
        problem = f"{shown(threshold.name)} is a class whose value is not known here; write value: in its place"
        raise InputError(problem, path=".priorityThreshold.name")
    return _CRITICAL[threshold.name]


T = TypeVar("T", bound=Strict)

_TYPE = ("apiVersion", "kind")


@dataclass(slots=True)
class Conversion:
    """The converted policies, by name with their arguments, and settings that hold for all of them.

    ``enabled`` are the plugins that move pods.
    ``namespaces`` and ``selectors`` are those of each plugin that takes part, in order, None if it has none.
    ``unprotected_stay``: pods without a budget are left alone. ``caveats`` name what is not done, or is done
    differently.
    """

    policies: dict[str, dict[str, Any]] = field(default_factory=dict)
    enabled: set[str] = field(default_factory=set)
    namespaces: list[WrittenNamespaces | None] = field(default_factory=list)
    selectors: list[WrittenSelector | None] = field(default_factory=list)
    limits: list[_EvictionLimits] = field(default_factory=list)
    caveats: list[Caveat] = field(default_factory=list)
    unprotected_stay: bool = False

    def note(self, plugin: str, why: str, argument: str = "") -> None:
        """Note that a plugin, or one of its arguments, is not converted as requested."""
        of_argument = f", {argument}" if argument else ""
        self.caveats.append(Caveat("descheduler", f"DeschedulerPolicy, {plugin}{of_argument}: {why}", 1, (plugin,)))

    def add(self, policy: str, args: Mapping[str, Any] | None = None) -> None:
        """Enable a policy with the given arguments; earlier arguments of the policy stay."""
        self.policies[policy] = {**(args or {}), **self.policies.get(policy, {})}

    def prefer(self, kind: str) -> None:
        """Count one kind of preferences; those that no plugin requests do not count."""
        nothing = dict.fromkeys(("nodeAffinity", "podAffinity", "topologySpread", "taints"), 0.0)
        known = self.policies.get("SatisfyPreferences", {})
        self.policies["SatisfyPreferences"] = {**nothing, **known, kind: 1.0}


def read_known(conversion: Conversion, plugin: str, args: Mapping[str, Any], type_: type[T]) -> T:
    """Return the arguments of a plugin that have a counterpart; note all others.

    Raises InputError with the path within the arguments.
    """
    names = {each.encode_name for each in msgspec.structs.fields(type_)}
    for key in args:
        if key not in names and key not in _TYPE:
            conversion.note(plugin, "has no counterpart, and is ignored", key)
    return read_strictly({key: value for key, value in args.items() if key in names}, type_)


_Thresholds = dict[str, float]

_ANYWHERE = "a pod is moved only to a node that takes it, and only if that improves the objective"


class _Arguments(Strict, frozen=True, kw_only=True):
    """The namespaces that a plugin examines, and the conversion of its arguments."""

    namespaces: WrittenNamespaces | None = None

    def convert(self, conversion: Conversion, plugin: str) -> None:
        """Enable the plugin's counterpart."""
        conversion.add("RepairViolations")


class _Filtered(_Arguments, frozen=True, kw_only=True):
    label_selector: WrittenSelector | None = None


class _RemoveDuplicates(_Arguments, frozen=True, kw_only=True):
    exclude_owner_kinds: tuple[str, ...] = ()

    def convert(self, conversion: Conversion, plugin: str) -> None:
        conversion.add("SpreadDuplicates", {"excludeOwnerKinds": list(self.exclude_owner_kinds)})


class _MetricsUtilization(Strict, frozen=True, kw_only=True):
    metrics_server: bool = False
    source: str = ""
    prometheus: dict[str, Any] = msgspec.field(default_factory=dict)


class _EvictionLimits(Strict, frozen=True, kw_only=True):
    node: _Count | None = None
    namespace: _Count | None = None
    total: _Count | None = None


class _Utilization(_Arguments, frozen=True, kw_only=True):
    """The fields that both node utilization plugins share; those of HighNodeUtilization."""

    thresholds: _Thresholds = msgspec.field(default_factory=dict)
    metrics_utilization: _MetricsUtilization | None = None
    namespaces: WrittenNamespaces | None = msgspec.field(default=None, name="evictableNamespaces")
    eviction_limits: _EvictionLimits = _EvictionLimits()

    def convert(self, conversion: Conversion, plugin: str) -> None:
        least = min(self.thresholds.values(), default=50.0)
        if len(set(self.thresholds.values())) > 1:
            conversion.note(plugin, f"the lowest of them, {least:g} %, counts for all resources", "thresholds")
        if self.uses_metrics(conversion, plugin):
            conversion.note(plugin, "nodes are freed by requests, not by measured use", "metricsUtilization")
        self.limit(conversion)
        conversion.add("Consolidate", {"utilizationThreshold": least / 100, "forWaitingPods": False})

    def limit(self, conversion: Conversion) -> None:
        """Check the thresholds, and add the plugin's limits of evictions."""
        _check_percentages(self.thresholds, ".thresholds")
        conversion.limits.append(self.eviction_limits)

    def uses_metrics(self, conversion: Conversion, plugin: str) -> bool:
        """Return whether measured use counts instead of requests."""
        metrics = self.metrics_utilization
        if metrics is None:
            return False
        if metrics.prometheus or metrics.source == "Prometheus":
            conversion.note(plugin, "Podium does not query Prometheus", "metricsUtilization")
            return False
        return metrics.metrics_server or metrics.source == "KubernetesMetrics"


class _LowNodeUtilization(_Utilization, frozen=True, kw_only=True):
    target_thresholds: _Thresholds = msgspec.field(default_factory=dict)
    use_deviation_thresholds: bool = False
    number_of_nodes: _Count = 0

    def convert(self, conversion: Conversion, plugin: str) -> None:
        made: dict[str, Any] = {
            "useDeviationThresholds": self.use_deviation_thresholds,
            "numberOfNodes": self.number_of_nodes,
            "useMetrics": self.uses_metrics(conversion, plugin),
        }
        if self.thresholds or self.target_thresholds:
            made |= {"thresholds": self.thresholds, "targetThresholds": self.target_thresholds}
        _check_percentages(self.target_thresholds, ".targetThresholds")
        self.limit(conversion)
        conversion.add("MoveToUnderusedNodes", made)


def _check_percentages(thresholds: _Thresholds, path: str) -> None:
    for resource, percentage in thresholds.items():
        if not 0 <= percentage <= 100:
            raise InputError(f"{percentage:g} is not a percentage from 0 to 100", path=field_path(path, resource))


class _NodeAffinity(_Filtered, frozen=True, kw_only=True):
    node_affinity_type: tuple[
        Literal["requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"],
        ...,
    ] = ()

    def convert(self, conversion: Conversion, plugin: str) -> None:
        if "requiredDuringSchedulingIgnoredDuringExecution" in self.node_affinity_type:
            conversion.add("RepairViolations")
        if "preferredDuringSchedulingIgnoredDuringExecution" in self.node_affinity_type:
            conversion.prefer("nodeAffinity")


class _NodeTaints(_Filtered, frozen=True, kw_only=True):
    include_prefer_no_schedule: bool = False

    def convert(self, conversion: Conversion, plugin: str) -> None:
        conversion.add("RepairViolations")
        if self.include_prefer_no_schedule:
            conversion.prefer("taints")


class _TopologySpread(_Filtered, frozen=True, kw_only=True):
    constraints: tuple[Literal["DoNotSchedule", "ScheduleAnyway"], ...] = ("DoNotSchedule",)
    include_soft_constraints: bool = False
    topology_balance_node_fit: bool = True

    def convert(self, conversion: Conversion, plugin: str) -> None:
        if "DoNotSchedule" in self.constraints:
            conversion.add("RepairViolations")
        if self.include_soft_constraints or "ScheduleAnyway" in self.constraints:
            conversion.prefer("topologySpread")
        if not self.topology_balance_node_fit:
            conversion.note(plugin, _ANYWHERE, "topologyBalanceNodeFit")


class _TooManyRestarts(_Filtered, frozen=True, kw_only=True):
    pod_restart_threshold: Annotated[int, Meta(ge=1, le=2**31 - 1)] | None = None

    def convert(self, conversion: Conversion, plugin: str) -> None:
        conversion.add(
            "LeavePoorService", {"minRestarts": self.pod_restart_threshold} if self.pod_restart_threshold else {}
        )
        why = "a pod is moved only if others of its owner do well elsewhere; pods that fail everywhere stay"
        conversion.note(plugin, why)


class _PodLifeTime(_Filtered, frozen=True, kw_only=True):
    max_pod_life_time_seconds: Annotated[int, Meta(ge=1, le=2**31 - 1)] | None = None

    def convert(self, conversion: Conversion, plugin: str) -> None:
        if self.max_pod_life_time_seconds is None:
            conversion.note(plugin, "without maxPodLifeTimeSeconds no pod is too old")
        else:
            conversion.add("ReplaceOldPods", {"maxAge": f"{self.max_pod_life_time_seconds}s"})


COUNTERPARTS: Mapping[str, type[_Arguments]] = {
    "HighNodeUtilization": _Utilization,
    "LowNodeUtilization": _LowNodeUtilization,
    "PodLifeTime": _PodLifeTime,
    "RemoveDuplicates": _RemoveDuplicates,
    "RemovePodsHavingTooManyRestarts": _TooManyRestarts,
    "RemovePodsViolatingInterPodAntiAffinity": _Filtered,
    "RemovePodsViolatingNodeAffinity": _NodeAffinity,
    "RemovePodsViolatingNodeTaints": _NodeTaints,
    "RemovePodsViolatingTopologySpreadConstraint": _TopologySpread,
}
"""The arguments of each plugin that moves pods; those without a counterpart are noted."""

REPAIRS = {
    "RemovePodsViolatingInterPodAntiAffinity": "inter-pod anti-affinity",
    "RemovePodsViolatingNodeAffinity": "node affinity",
    "RemovePodsViolatingNodeTaints": "taints",
    "RemovePodsViolatingTopologySpreadConstraint": "topology spread",
}
"""The violation that each plugin repairs, for the plugins that RepairViolations covers."""

WITHOUT = {"RemoveFailedPods": "pods that have ended are left to controllers and the pod garbage collector"}
"""Known plugins without a counterpart, and why."""
