"""Makes the profiles that a configuration describes: plugins made, in order at each extension point, with weights.

Source: NewFramework of pkg/scheduler/framework/runtime/framework.go and NewMap of pkg/scheduler/profile/profile.go.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from podium.api.errors import InputError, PodiumError, shown
from podium.api.schemas.suggestion import suggestion
from podium.cluster.cluster import Cluster
from podium.framework.errors import is_failure
from podium.framework.plugin import Plugin, PluginContext
from podium.framework.settings.configuration import Configuration, ProfileConfiguration
from podium.framework.settings.plugin_set import DEFAULT_PLUGINS, FIELDS
from podium.framework.settings.profile import EXTENSION_POINTS, Profile, takes_part
from podium.framework.settings.registry import Registry, require_whole
from podium.framework.waiting_pods import WaitingPods

PREPARING = ("preFilter", "preScore")
"""Where plugins of the registry's table may be enabled without methods: where kube-scheduler's prepare their work, some
of Podium's have nothing to prepare, and a configuration that lists them there is none the less right.
"""


def build_profiles(
    configuration: Configuration,
    registry: Registry,
    cluster: Cluster,
    *,
    waiting_pods: WaitingPods | None = None,
    seed: int = 0,
) -> dict[str, Profile]:
    """The profiles of a configuration by scheduler name, in its order.

    Each profile has one instance of every plugin that it enables, shared among its extension points. Raises InputError
    for a plugin that is not found, fails while it is made, refuses its arguments, or is enabled where it has no
    methods; for arguments of a plugin that is not there; for a profile without exactly one plugin at queueSort or
    without any at bind; and where profiles do not sort the queue in the same way.
    """
    context = PluginContext({}, cluster, WaitingPods() if waiting_pods is None else waiting_pods, seed)
    registry = registry.with_classes(configuration.classes)
    builders: list[_ProfileBuilder] = []
    profiles: dict[str, Profile] = {}
    for number, written in enumerate(configuration.profiles):
        name = written.scheduler_name
        try:
            builder = _ProfileBuilder(written, f".profiles[{number}]", registry, context)
            profiles[name] = builder.profile(name)
            builders.append(builder)
            builder.require_same_order(builders[0])
        except InputError as error:
            raise error.located(source=configuration.source, object=f"profile {name}") from error.__cause__
    return profiles


class _ProfileBuilder:
    """One profile in the making; within it plugins go by the names that the configuration has for them."""

    def __init__(self, written: ProfileConfiguration, path: str, registry: Registry, context: PluginContext) -> None:
        self._written = written
        self._path = path
        self._registry = registry
        self._context = context
        self._enabled = DEFAULT_PLUGINS.merged_with(written.plugins)
        self._args = {config.name: config.args for config in written.plugin_config}
        self._require_owners()
        self._plugins: dict[str, Plugin] = {}
        for name in self._enabled.names():
            self._add(name)
        self._order = {point: self._order_at(point) for point in EXTENSION_POINTS}

    def profile(self, name: str) -> Profile:
        """The profile of that scheduler name."""
        if len(self._order["queueSort"]) != 1:
            found = ", ".join(self._order["queueSort"]) or "none"
            raise self._error(f"exactly one plugin must sort the queue; enabled: {found}", "queueSort")
        if not self._order["bind"]:
            raise self._error("no plugin binds pods; enable one, such as DefaultBinder", "bind")
        plugins: dict[str, Any] = {
            FIELDS[point]: tuple(self._plugins[each] for each in order) for point, order in self._order.items()
        }
        (plugins["queue_sort"],) = plugins["queue_sort"]
        return Profile(
            scheduler_name=name,
            weights={self._plugins[each].name: self._enabled.score_weight(each) for each in self._order["score"]},
            percentage_of_nodes_to_score=self._written.percentage_of_nodes_to_score,
            **plugins,
        )

    def require_same_order(self, first: _ProfileBuilder) -> None:
        """Raise InputError if this profile sorts the queue in another way than the first: all share one queue."""
        name = self._order["queueSort"][0]
        if first._order["queueSort"] != [name] or first._args.get(name) != self._args.get(name):
            raise self._error("must be the same, with the same arguments, in all profiles", "queueSort")

    def _require_owners(self) -> None:
        """Raise InputError for arguments that no plugin would ever see, as a misspelt name makes them."""
        enabled = self._enabled.names()
        for position, name in enumerate(self._args):
            if name not in enabled and name not in self._registry:
                problem = f"no plugin {shown(name)} is enabled in this profile; {suggestion(name, enabled)}"
                raise InputError(problem, path=f"{self._path}.pluginConfig[{position}].name")

    def _add(self, name: str) -> None:
        plugin = self._made(name)
        if any(other.name == plugin.name for other in self._plugins.values()):
            raise self._enabling_error(name, f"two plugins here are called {shown(plugin.name)}; disable one")
        self._plugins[name] = plugin

    def _made(self, name: str) -> Plugin:
        try:
            plugin = self._registry.resolve(name)(replace(self._context, args=self._args.get(name, {})))
            require_whole(plugin)
        except InputError as error:
            place = f"[{list(self._args).index(name)}].args" if name in self._args else ""
            path = f"{self._path}.pluginConfig{place}{error.path}"
            raise InputError(error.problem, object=error.object, path=path) from error
        except PodiumError as error:
            raise self._enabling_error(name, str(error)) from error
        except BaseException as error:
            if not is_failure(error):
                raise
            problem = f"plugin {shown(name)} failed while it was made: {type(error).__name__}: {error}"
            raise self._enabling_error(name, problem) from error
        return plugin

    def _order_at(self, point: str) -> list[str]:
        def has_methods(name: str) -> bool:
            return takes_part(self._plugins[name], point)

        own = self._enabled.sets()[point]
        for name in own.names():
            if not has_methods(name) and not (point in PREPARING and name in self._registry):
                points = ", ".join(each for each in EXTENSION_POINTS if takes_part(self._plugins[name], each))
                problem = f"plugin {shown(name)} has no methods for {point}; it has those for {points}"
                raise self._error(problem, f"{point}.enabled")
        return [name for name in own.expanded(self._enabled.multi_point, has_methods) if has_methods(name)]

    def _enabling_error(self, name: str, problem: str) -> InputError:
        """An error at the place that enables a plugin; the defaults have none."""
        where = (point for point, plugins in self._written.plugins.sets().items() if name in plugins.names())
        return self._error(problem, f"{next(where, 'multiPoint')}.enabled")

    def _error(self, problem: str, place: str) -> InputError:
        return InputError(problem, path=f"{self._path}.plugins.{place}")
