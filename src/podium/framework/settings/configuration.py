"""The strict reader of KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1), its plugin sets.

Source: staging/src/k8s.io/kube-scheduler/config/v1/types.go for the fields, pkg/scheduler/apis/config/v1/defaults.go
for their defaults, pkg/scheduler/apis/config/validation for the checks. It is stricter than upstream: a weight of 0,
which silently means 1 there, is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from podium.api.basis import MOST_NAMES, Caveat
from podium.api.errors import InputError, locating, shown
from podium.api.input.codec import Document, load_files, only_one
from podium.api.input.files import shown_name
from podium.api.versions.gates import Gate
from podium.api.versions.release import DEFAULT_RELEASE, Release
from podium.framework.extenders import ExtenderSettings, check_extenders, ignored_resources
from podium.framework.settings.arguments import Strict, read_strictly

ALL = "*"

USUAL_WEIGHTS = {"NodePreferAvoidPods": 10_000}
"""The default weights of plugins for which it is not 1: more than all others together."""


class PluginEntry(Strict, frozen=True, kw_only=True):
    """A plugin by name. ``weight`` applies to score only; None means the plugin's default weight."""

    name: str
    weight: Annotated[int, Meta(ge=1, le=2**31 - 1)] | None = None


class PluginSet(Strict, frozen=True, kw_only=True):
    """The plugins enabled in addition to the defaults, and the disabled defaults (``*``: all of them)."""

    enabled: tuple[PluginEntry, ...] = ()
    disabled: tuple[PluginEntry, ...] = ()

    def names(self) -> list[str]:
        """Return the names of the enabled plugins in order."""
        return [entry.name for entry in self.enabled]

    def merged_with(self, custom: PluginSet) -> PluginSet:
        """Return this set of defaults with the changes of ``custom``.

        A disabled default is removed; one that is enabled again is replaced in its place, with its weight; further
        plugins are appended.
        """
        disabled = {entry.name for entry in (*self.disabled, *custom.disabled)}
        entries = {entry.name: entry for entry in self.enabled if not disabled & {ALL, entry.name}}
        entries.update((entry.name, entry) for entry in custom.enabled)
        return PluginSet(enabled=tuple(entries.values()), disabled=(*custom.disabled, *self.disabled))

    def expanded(self, multi_point: PluginSet, takes_part: Callable[[str], bool]) -> list[str]:
        """Return the plugins of one extension point in order, with this as its own set.

        A plugin of ``multi_point`` is included if it ``takes_part`` and is not disabled here. Plugins that are also
        enabled here come first, in this set's order; then the others of multi_point; then those enabled here only.
        """
        own = self.names()
        disabled = {entry.name for entry in self.disabled}
        if ALL in disabled:
            return own
        spread = [name for name in multi_point.names() if name not in disabled and takes_part(name)]
        again = [name for name in own if name in spread]
        return again + [name for name in spread if name not in own] + [name for name in own if name not in spread]


class Plugins(Strict, frozen=True, kw_only=True):
    """The plugin sets of all extension points."""

    pre_enqueue: PluginSet = PluginSet()
    queue_sort: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    pre_score: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()
    multi_point: PluginSet = PluginSet()

    def sets(self) -> dict[str, PluginSet]:
        """Return all sets by the configuration's name of their extension point, including multiPoint."""
        return {point: getattr(self, field) for point, field in FIELDS.items()}

    def merged_with(self, custom: Plugins) -> Plugins:
        """Return these defaults with the changes of ``custom``, set by set."""
        return Plugins(**{field: getattr(self, field).merged_with(getattr(custom, field)) for field in FIELDS.values()})

    def names(self) -> list[str]:
        """Return the name of every enabled plugin once; those of multiPoint first."""
        return list(dict.fromkeys(name for some in (self.multi_point, *self.sets().values()) for name in some.names()))

    def score_weight(self, name: str) -> int:
        """Return the weight of a plugin at score; the score set takes precedence over multiPoint.

        A plugin without a configured weight has weight 1, unless `USUAL_WEIGHTS` has another.
        """
        entry = next(each for each in (*self.score.enabled, *self.multi_point.enabled) if each.name == name)
        return entry.weight or USUAL_WEIGHTS.get(name, 1)


FIELDS = {field.encode_name: field.name for field in msgspec.structs.fields(Plugins)}
"""The fields of `Plugins` (and, except for multiPoint, of a profile) by the names of the extension points."""


# The default plugins in order, with the weights of those that have one. DynamicResources comes before
# DefaultPreemption: taking devices from an unused claim is better than evicting a pod.
_PLUGINS = f"""
SchedulingGates PrioritySort NodeUnschedulable NodeName TaintToleration=3 NodeAffinity=2 NodePorts NodeResourcesFit=1
VolumeRestrictions NodeVolumeLimits VolumeBinding VolumeZone PodTopologySpread=2 InterPodAffinity=2 DynamicResources=2
DefaultPreemption NodeResourcesBalancedAllocation=1 ImageLocality=1
NodePreferAvoidPods={USUAL_WEIGHTS["NodePreferAvoidPods"]} DefaultBinder NodeDeclaredFeatures GangScheduling
"""
_GATED = {
    "DynamicResources": Gate.DRA,
    "NodeDeclaredFeatures": Gate.NODE_DECLARED_FEATURES,
    "GangScheduling": Gate.GANGS,
}


@cache
def default_plugins(release: Release) -> Plugins:
    """Return the default plugins of a version.

    GangScheduling is among them if its feature gate is on. NodePreferAvoidPods, which kube-scheduler no longer has, has
    no effect unless a node has an avoid list.
    """
    entries = tuple(
        PluginEntry(name=name, weight=int(weight) if weight else None)
        for name, _, weight in (each.partition("=") for each in _PLUGINS.split())
        if name not in _GATED or release.enabled(_GATED[name])
    )
    return Plugins(multi_point=PluginSet(enabled=entries))


DEFAULT_PLUGINS = default_plugins(DEFAULT_RELEASE)
"""The default plugins of v1.36."""


API_VERSION = "kubescheduler.config.k8s.io/v1"
KIND = "KubeSchedulerConfiguration"
DEFAULT_SCHEDULER_NAME = "default-scheduler"
NominationClearing = Literal["AllLower", "Unfit"]
"""Which nominations end when a more important pod takes their node: see `Configuration`."""
_FIT = "NodeResourcesFit"

Percentage = Annotated[int, Meta(ge=0, le=100)]
_Positive = Annotated[int, Meta(ge=1, le=2**31 - 1)]
_BackoffSeconds = Annotated[int, Meta(ge=1, le=(2**63 - 1) // 10**9)]


class PluginConfig(Strict, frozen=True, kw_only=True):
    """The arguments of a plugin, which the plugin itself reads."""

    name: str
    args: dict[str, Any] = msgspec.field(default_factory=dict)


class ProfileConfiguration(Strict, frozen=True, kw_only=True):
    """A profile as written: its changes to the default plugins, and their arguments.

    ``percentage_of_nodes_to_score`` None considers every node, 0 uses kube-scheduler's share for the cluster's size.
    """

    scheduler_name: str = ""
    percentage_of_nodes_to_score: Percentage | None = None
    plugins: Plugins = Plugins()
    plugin_config: tuple[PluginConfig, ...] = ()


class LeaderElectionConfiguration(Strict, frozen=True, kw_only=True):
    """The leader election of a scheduler; "" and None mean unset (component-base's config/v1alpha1)."""

    leader_elect: bool | None = None
    lease_duration: str = ""
    renew_deadline: str = ""
    retry_period: str = ""
    resource_lock: str = ""
    resource_name: str = ""
    resource_namespace: str = ""


class ClientConnectionConfiguration(Strict, frozen=True, kw_only=True):
    """The connection to the API server; "" and 0 mean unset."""

    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = ""
    qps: int | float = 0
    burst: int = 0


class SchedulerFields(Strict, frozen=True, kw_only=True):
    """The fields of a configuration that are used as they are written.

    ``parallelism`` is kept for output; no decision depends on it. After ``max_futile_preemptions`` in a row a pod waits
    before it preempts again; with 0, as in kube-scheduler, it does not wait.

    ``nomination_clearing`` selects the nominations that end for a more important pod. AllLower is kube-scheduler's: a
    preemptor clears all lower nominations of the node. Unfit checks them whenever the node has less room for them or is
    gone, clears those that no longer fit, and retries their pods. ``extenders`` are not called from here: a caller that
    decides without them must say so. ``leader_election`` and ``client_connection`` are for programs that run the
    scheduler on a cluster.
    """

    parallelism: _Positive = 16
    pod_initial_backoff_seconds: _BackoffSeconds = 1
    pod_max_backoff_seconds: _BackoffSeconds = 10
    max_futile_preemptions: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0
    nomination_clearing: NominationClearing = "AllLower"
    profiles: tuple[ProfileConfiguration, ...] = ()
    extenders: tuple[ExtenderSettings, ...] = ()
    leader_election: LeaderElectionConfiguration = LeaderElectionConfiguration()
    client_connection: ClientConnectionConfiguration = ClientConnectionConfiguration()


class Configuration(SchedulerFields, frozen=True, kw_only=True):
    """The settings of a scheduler. Every profile has a distinct name; ``source`` is the file, or "".

    ``classes`` are plugins that a program passed in, by their names in profiles.
    """

    source: str = ""
    classes: tuple[tuple[str, type[Any]], ...] = ()


class _Written(SchedulerFields, frozen=True, kw_only=True):
    """The document. Fields that concern only a running process are checked for their type alone."""

    api_version: str
    kind: str
    percentage_of_nodes_to_score: Percentage | None = None
    metrics_bind_address: str = ""
    healthz_bind_address: str = ""
    enable_profiling: bool = True
    enable_contention_profiling: bool = True
    delay_cache_until_active: bool = False


def load_configuration(path: str) -> Configuration:
    """Return the configuration in a YAML or JSON file ("-": standard input) that holds nothing else.

    Raises InputError.
    """
    document = load_document(path)
    return read_configuration(document.raw, document.source)


def load_document(path: str) -> Document:
    """Return the one object in such a file, not yet read as a configuration. Raises InputError."""
    return only_one(load_files([path]), KIND, shown_name(path))


def read_configuration(raw: Mapping[str, Any], source: str) -> Configuration:
    """Return the configuration in a document of dicts, lists and scalars, without nulls.

    Raises InputError with ``source`` and the field's path for any invalid field.
    """
    with locating(source=source):
        require_kind(raw, KIND, API_VERSION)
        written = read_strictly(raw, _Written)
        check_extenders(written.extenders, ".extenders")
        initial, longest = written.pod_initial_backoff_seconds, written.pod_max_backoff_seconds
        if longest < initial:
            problem = f"is {longest}, which is less than podInitialBackoffSeconds, {initial}"
            raise InputError(problem, path=".podMaxBackoffSeconds")
        profiles = _with_defaults(written)
        _check_profiles(profiles)
    fields = {name: getattr(written, name) for name in SchedulerFields.__struct_fields__}
    return Configuration(**fields | {"source": source, "profiles": profiles})


def default_configuration() -> Configuration:
    """Return the default configuration: one profile, default-scheduler."""
    return read_configuration({"apiVersion": API_VERSION, "kind": KIND}, "")


def require_kind(raw: Mapping[str, Any], kind: str, api_version: str, other_kind: str = "") -> None:
    """Raise InputError for a document of another kind, so that its fields are not reported as unknown instead.

    Documents of ``other_kind`` are read elsewhere, and are named in the message.
    """
    if not isinstance(raw, Mapping):
        raise InputError(f"must be an object of kind {kind}, not {shown(raw)}")
    for key, wanted in (("kind", kind), ("apiVersion", api_version)):
        if raw.get(key) != wanted:
            found = shown(raw[key]) if key in raw else "missing"
            either = f" or {other_kind}" if key == "kind" and other_kind else ""
            raise InputError(f"is {found}; {wanted}{either} is needed", path=f".{key}")


def _with_defaults(written: _Written) -> tuple[ProfileConfiguration, ...]:
    """Return the profiles, at least one.

    A single profile needs no name, and the global percentage replaces a missing one. NodeResourcesFit ignores the
    resources that the scheduler leaves to extenders.
    """
    profiles = written.profiles or (ProfileConfiguration(),)
    name = DEFAULT_SCHEDULER_NAME if len(profiles) == 1 else ""
    resources = ignored_resources(written.extenders)
    found = []
    for profile in profiles:
        percentage, configs = profile.percentage_of_nodes_to_score, profile.plugin_config
        if resources:
            args = {config.name: config.args for config in configs}
            args[_FIT] = {**args.get(_FIT, {}), "ignoredResources": resources}
            configs = tuple(PluginConfig(name=name, args=each) for name, each in args.items())
        found.append(
            replace(
                profile,
                scheduler_name=profile.scheduler_name or name,
                percentage_of_nodes_to_score=written.percentage_of_nodes_to_score if percentage is None else percentage,
                plugin_config=configs,
            )
        )
    return tuple(found)


def _check_profiles(profiles: tuple[ProfileConfiguration, ...]) -> None:
    """Raise InputError for a list with a name that is missing, repeated, or `ALL`."""
    seen: dict[str, int] = {}
    for number, profile in enumerate(profiles):
        path, name = f".profiles[{number}]", profile.scheduler_name
        _require_names([config.name for config in profile.plugin_config], f"{path}.pluginConfig")
        for point, plugins in profile.plugins.sets().items():
            enabled = f"{path}.plugins.{point}.enabled"
            _require_names(plugins.names(), enabled)
            if ALL in plugins.names():
                problem = f"{ALL} stands for all plugins under disabled alone; enable each by its name"
                raise InputError(problem, path=enabled)
        if not name:
            problem = "is missing; each of several profiles needs a name of its own"
            raise InputError(problem, path=f"{path}.schedulerName")
        if name in seen:
            problem = f"{shown(name)} is also the name of .profiles[{seen[name]}]; choose another"
            raise InputError(problem, path=f"{path}.schedulerName")
        seen[name] = number


def _require_names(names: list[str], path: str) -> None:
    for position, name in enumerate(names):
        if not name:
            raise InputError("is empty; the name of a plugin is needed", path=f"{path}[{position}].name")
        if name in names[:position]:
            raise InputError(f"{shown(name)} is listed twice; remove one", path=f"{path}[{position}].name")


def with_plugins(configuration: Configuration, plugins: Iterable[type[Any]], taken: Collection[str]) -> Configuration:
    """Return the configuration with these classes as plugins.

    Profiles know a class by its ``name``, or by the name of the class. A class that no profile enables or disables
    under that name is enabled in all of them at multiPoint, after all others; weights, arguments and extension points
    can therefore be configured. Raises InputError for an object that is no class, for duplicate names, and for a name
    in ``taken``.
    """
    classes = dict(configuration.classes)
    added: list[str] = []
    for place, made in enumerate(plugins):
        path = f"plugins[{place}]"
        if not isinstance(made, type):
            raise InputError(f"{shown(made)} is not a class; pass the class itself", path=path)
        # A class may inherit a property from a protocol, which is not a name.
        stated: object = getattr(made, "name", None)
        name = stated if isinstance(stated, str) and stated else made.__name__
        if name in taken:
            raise InputError(f"{made.__name__} has the name of Podium's own plugin {name}; choose another", path=path)
        if name in classes:
            raise InputError(f"two plugins are called {shown(name)}; choose another name", path=path)
        classes[name] = made
        added.append(name)
    profiles = []
    for profile in configuration.profiles:
        multi_point, sets = profile.plugins.multi_point, profile.plugins.sets().values()
        known = {entry.name for each in sets for entry in (*each.enabled, *each.disabled)}
        further = (PluginEntry(name=name) for name in added if name not in known)
        multi_point = replace(multi_point, enabled=(*multi_point.enabled, *further))
        profiles.append(replace(profile, plugins=replace(profile.plugins, multi_point=multi_point)))
    return replace(configuration, profiles=tuple(profiles), classes=tuple(classes.items()))


# By plugin, the arguments that kube-scheduler lacks, with the value that gives its behavior.
_ARGUMENTS: dict[str, dict[str, object]] = {
    "DefaultPreemption": {
        "bindFirst": False,
        "budgets": "Count",
        "equalPriorityOrder": "StartTime",
        "equalPriorityPreemption": False,
        "minimumRunningTime": "0s",
        "spareMirrorPods": False,
        "victimCost": "Upstream",
        "acrossNodes": False,
        "keepAffinityPartners": False,
        "includeDependents": False,
        "wholeGroups": False,
    },
    "GangScheduling": {"preemption": True, "releaseAfter": "5m", "scheduleTimeout": "5m", "maxArrangementSteps": 0},
    "InterPodAffinity": {"nominatedPodsRepel": False},
}


def sampling_as_upstream(configuration: Configuration) -> Configuration:
    """Return the configuration with kube-scheduler's percentage of nodes to score in profiles that have none."""
    profiles = (
        replace(profile, percentage_of_nodes_to_score=profile.percentage_of_nodes_to_score or 0)
        for profile in configuration.profiles
    )
    return replace(configuration, profiles=tuple(profiles))


def upstream_departures(configuration: Configuration) -> tuple[Caveat, ...]:
    """Return the caveats of an answer that depends on Podium's own settings; () if there are none.

    Source of the comparison: docs/differences.md.
    """
    found: list[str] = []
    if configuration.max_futile_preemptions:
        found.append(f"maxFutilePreemptions: {configuration.max_futile_preemptions}")
    if configuration.nomination_clearing != "AllLower":
        found.append(f"nominationClearing: {configuration.nomination_clearing}")
    for plugin in (plugin for profile in configuration.profiles for plugin in profile.plugin_config):
        usual = _ARGUMENTS.get(plugin.name, {})
        for name, value in plugin.args.items():
            if name in usual and value != usual[name]:
                found.append(f"{name}: {_shown(value)} of {plugin.name}")
    names = tuple(dict.fromkeys(found))
    message = f"settings that kube-scheduler does not have: {', '.join(names)}"
    return (Caveat("own-settings", message, len(names), names[:MOST_NAMES]),) if names else ()


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
