"""What a KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1) says, read strictly and checked.

Source: staging/src/k8s.io/kube-scheduler/config/v1/types.go for the fields, pkg/scheduler/apis/config/v1/defaults.go
for their defaults, pkg/scheduler/apis/config/validation for the checks. Stricter than upstream: a weight of 0, which
there silently means 1, is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from podium.api.errors import InputError, shown
from podium.api.input.codec import Document, load_files
from podium.framework.settings.extenders import Extender, check_extenders, ignored_resources
from podium.framework.settings.plugin_set import ALL, Plugins
from podium.framework.settings.strict import Strict, read_strictly

API_VERSION = "kubescheduler.config.k8s.io/v1"
KIND = "KubeSchedulerConfiguration"
DEFAULT_SCHEDULER_NAME = "default-scheduler"
NominationClearing = Literal["AllLower", "Unfit"]
"""Which nominations end when a more important pod takes their node: see `Configuration`."""
_FIT = "NodeResourcesFit"

_SECOND_NS = 10**9
Percentage = Annotated[int, Meta(ge=0, le=100)]
_Positive = Annotated[int, Meta(ge=1, le=2**31 - 1)]
_BackoffSeconds = Annotated[int, Meta(ge=1, le=(2**63 - 1) // _SECOND_NS)]


class PluginConfig(Strict, frozen=True, kw_only=True):
    """The arguments of a plugin, which the plugin itself reads."""

    name: str
    args: dict[str, Any] = msgspec.field(default_factory=dict)


class ProfileConfiguration(Strict, frozen=True, kw_only=True):
    """A profile as written: what it changes about the default plugins, and their arguments.

    ``percentage_of_nodes_to_score`` None looks at every node, 0 takes kube-scheduler's share for the cluster's size.
    """

    scheduler_name: str = ""
    percentage_of_nodes_to_score: Percentage | None = None
    plugins: Plugins = Plugins()
    plugin_config: tuple[PluginConfig, ...] = ()


class LeaderElectionConfiguration(Strict, frozen=True, kw_only=True):
    """How a scheduler of several comes to lead; what is "" or None is not said (component-base's config/v1alpha1)."""

    leader_elect: bool | None = None
    lease_duration: str = ""
    renew_deadline: str = ""
    retry_period: str = ""
    resource_lock: str = ""
    resource_name: str = ""
    resource_namespace: str = ""


class ClientConnectionConfiguration(Strict, frozen=True, kw_only=True):
    """How the API server is reached; what is "" or 0 is not said."""

    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = ""
    qps: int | float = 0
    burst: int = 0


_ELECTION, _CONNECTION = LeaderElectionConfiguration(), ClientConnectionConfiguration()


@dataclass(frozen=True, slots=True)
class Configuration:
    """The settings of a scheduler. Every profile has a name of its own; ``source`` is the file, or "".

    ``parallelism`` is kept for those who show the configuration; no decision depends on it. After
    ``max_futile_preemptions`` in a row a pod waits before it preempts again; with 0, as in kube-scheduler, none waits.

    ``nomination_clearing`` says which nominations end for a more important pod. AllLower is kube-scheduler's: who
    preempts clears all lower nominations of the node. Unfit looks at them whenever the node has less room for them,
    or is gone, clears those that no longer fit, and tries their pods again.
    ``extenders`` are called by nobody here: who decides without them must say so. ``leader_election`` and
    ``client_connection`` are for whoever runs the scheduler at a cluster. ``classes`` are plugins that a program handed
    over, by the names that profiles have for them (`podium.framework.settings.handed_over`).
    """

    source: str
    parallelism: int
    pod_initial_backoff_ns: int
    pod_max_backoff_ns: int
    profiles: tuple[ProfileConfiguration, ...]
    max_futile_preemptions: int = 0
    nomination_clearing: NominationClearing = "AllLower"
    extenders: tuple[Extender, ...] = ()
    leader_election: LeaderElectionConfiguration = _ELECTION
    client_connection: ClientConnectionConfiguration = _CONNECTION
    classes: tuple[tuple[str, type[Any]], ...] = ()


class _Written(Strict, frozen=True, kw_only=True):
    """The document. What concerns a running process alone must have its right type, and is not looked at further."""

    api_version: str
    kind: str
    parallelism: _Positive = 16
    percentage_of_nodes_to_score: Percentage | None = None
    pod_initial_backoff_seconds: _BackoffSeconds = 1
    pod_max_backoff_seconds: _BackoffSeconds = 10
    max_futile_preemptions: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0
    nomination_clearing: NominationClearing = "AllLower"
    profiles: tuple[ProfileConfiguration, ...] = ()
    extenders: tuple[Extender, ...] = ()
    leader_election: LeaderElectionConfiguration = LeaderElectionConfiguration()
    client_connection: ClientConnectionConfiguration = ClientConnectionConfiguration()
    metrics_bind_address: str = ""
    healthz_bind_address: str = ""
    enable_profiling: bool = True
    enable_contention_profiling: bool = True
    delay_cache_until_active: bool = False


def load_configuration(path: str) -> Configuration:
    """The configuration in a file of YAML or JSON ("-": standard input) that holds nothing else. Raises InputError."""
    document = load_document(path)
    return read_configuration(document.raw, document.source)


def load_document(path: str) -> Document:
    """The one object in such a file, which has yet to be read as a configuration. Raises InputError."""
    documents = load_files([path])
    if len(documents) != 1:
        source = documents[0].source if documents else path
        raise InputError(f"holds {len(documents)} objects; one {KIND} is needed, and nothing else", source=source)
    return documents[0]


def read_configuration(raw: Mapping[str, Any], source: str) -> Configuration:
    """The configuration in a document of dicts, lists and scalars, without nulls.

    Raises InputError, with ``source`` and the field's path, for anything that is not right in it.
    """
    try:
        _require_kind(raw)
        written = read_strictly(raw, _Written)
        check_extenders(written.extenders, ".extenders")
        _require_backoff_order(written)
        profiles = tuple(
            _leaving_out(profile, ignored_resources(written.extenders)) for profile in _with_defaults(written)
        )
        for number, profile in enumerate(profiles):
            _check_profile(profile, f".profiles[{number}]")
        _require_own_names(profiles)
    except InputError as error:
        raise error.located(source=source) from None
    return Configuration(
        source=source,
        parallelism=written.parallelism,
        pod_initial_backoff_ns=written.pod_initial_backoff_seconds * _SECOND_NS,
        pod_max_backoff_ns=written.pod_max_backoff_seconds * _SECOND_NS,
        max_futile_preemptions=written.max_futile_preemptions,
        nomination_clearing=written.nomination_clearing,
        profiles=profiles,
        extenders=written.extenders,
        leader_election=written.leader_election,
        client_connection=written.client_connection,
    )


def default_configuration() -> Configuration:
    """The configuration of somebody who configures nothing: one profile, default-scheduler."""
    return read_configuration({"apiVersion": API_VERSION, "kind": KIND}, "")


def _require_kind(raw: Mapping[str, Any]) -> None:
    """Raise for a document of another kind, so that its fields are not called unknown instead."""
    if not isinstance(raw, Mapping):
        raise InputError(f"must be an object of kind {KIND}, not {shown(raw)}")
    for key, wanted in (("kind", KIND), ("apiVersion", API_VERSION)):
        if raw.get(key) != wanted:
            found = shown(raw[key]) if key in raw else "missing"
            raise InputError(f"is {found}; {wanted} is needed", path=f".{key}")


def _require_backoff_order(written: _Written) -> None:
    initial, longest = written.pod_initial_backoff_seconds, written.pod_max_backoff_seconds
    if longest < initial:
        problem = f"is {longest}, which is less than podInitialBackoffSeconds, {initial}"
        raise InputError(problem, path=".podMaxBackoffSeconds")


def _with_defaults(written: _Written) -> tuple[ProfileConfiguration, ...]:
    """The profiles, at least one; a single one needs no name, and the global percentage stands in for a missing one."""
    profiles = written.profiles or (ProfileConfiguration(),)
    name = DEFAULT_SCHEDULER_NAME if len(profiles) == 1 else ""
    return tuple(
        msgspec.structs.replace(
            profile,
            scheduler_name=profile.scheduler_name or name,
            percentage_of_nodes_to_score=written.percentage_of_nodes_to_score
            if profile.percentage_of_nodes_to_score is None
            else profile.percentage_of_nodes_to_score,
        )
        for profile in profiles
    )


def _leaving_out(profile: ProfileConfiguration, resources: list[str]) -> ProfileConfiguration:
    """The profile whose NodeResourcesFit leaves ``resources`` to extenders, whatever its arguments left out before."""
    if not resources:
        return profile
    args = {config.name: config.args for config in profile.plugin_config}
    args[_FIT] = {**args.get(_FIT, {}), "ignoredResources": resources}
    configs = tuple(PluginConfig(name=name, args=each) for name, each in args.items())
    return msgspec.structs.replace(profile, plugin_config=configs)


def _check_profile(profile: ProfileConfiguration, path: str) -> None:
    _require_names([config.name for config in profile.plugin_config], f"{path}.pluginConfig")
    for point, plugins in profile.plugins.sets().items():
        _require_names(plugins.names(), f"{path}.plugins.{point}.enabled")
        if ALL in plugins.names():
            raise InputError(
                f"{ALL} stands for all plugins under disabled alone; enable each by its name",
                path=f"{path}.plugins.{point}.enabled",
            )


def _require_names(names: list[str], path: str) -> None:
    for position, name in enumerate(names):
        if not name:
            raise InputError("is empty; the name of a plugin is needed", path=f"{path}[{position}].name")
        if name in names[:position]:
            raise InputError(f"{shown(name)} is listed twice; remove one", path=f"{path}[{position}].name")


def _require_own_names(profiles: tuple[ProfileConfiguration, ...]) -> None:
    seen: dict[str, int] = {}
    for number, profile in enumerate(profiles):
        path = f".profiles[{number}].schedulerName"
        name = profile.scheduler_name
        if not name:
            raise InputError("is missing; each of several profiles needs a name of its own", path=path)
        if name in seen:
            raise InputError(f"{shown(name)} is also the name of .profiles[{seen[name]}]; choose another", path=path)
        seen[name] = number
