"""Profiles, and the sources of their plugins: Podium's own, classes named in the configuration, and entry points.

Code is loaded for names in the configuration only, never for anything in a manifest.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from typing import Any

from podium.api.errors import InputError, PodiumError, locating, shown, suggestion
from podium.cluster.cluster import Cluster
from podium.cluster.nominations import KeepsRoom
from podium.cluster.pods import PodRecord
from podium.framework import plugin as points
from podium.framework.events import EVERY_EVENT, ActionType, EventResource, EventToRegister
from podium.framework.handle import WaitingPods
from podium.framework.plugin import EnqueuePlugin, NominationPlugin, Plugin, PluginContext, PodChangePlugin
from podium.framework.settings.configuration import FIELDS, Configuration, ProfileConfiguration, default_plugins
from podium.framework.verdicts import Calling, PluginError, is_failure

# Each extension point by its name in the configuration, with the protocols that a plugin may implement there.
EXTENSION_POINTS: dict[str, tuple[type, ...]] = {
    "preEnqueue": (points.PreEnqueuePlugin,),
    "queueSort": (points.QueueSortPlugin,),
    "preFilter": (points.PreFilterPlugin,),
    "filter": (points.ArrayFilterPlugin, points.FilterPlugin),
    "postFilter": (points.PostFilterPlugin,),
    "preScore": (points.PreScorePlugin,),
    "score": (points.ArrayScorePlugin, points.ScorePlugin),
    "reserve": (points.ReservePlugin,),
    "permit": (points.PermitPlugin,),
    "preBind": (points.PreBindPlugin,),
    "bind": (points.BindPlugin,),
    "postBind": (points.PostBindPlugin,),
}


def takes_part(plugin: points.Plugin, point: str) -> bool:
    """Return whether a plugin has the methods of an extension point."""
    return any(all(hasattr(plugin, name) for name in members_of(protocol)) for protocol in EXTENSION_POINTS[point])


@dataclass(frozen=True, slots=True)
class Profile:
    """The plugins of one scheduler name, created and in order. ``weights`` maps score plugins to their weight.

    ``percentage_of_nodes_to_score`` None examines every node (see `podium.decide.placement`), as does ``examines_all``.
    """

    scheduler_name: str
    pre_enqueue: Sequence[points.PreEnqueuePlugin] = ()
    queue_sort: points.QueueSortPlugin | None = None
    pre_filter: Sequence[points.PreFilterPlugin] = ()
    filter: Sequence[points.ArrayFilterPlugin | points.FilterPlugin] = ()
    post_filter: Sequence[points.PostFilterPlugin] = ()
    pre_score: Sequence[points.PreScorePlugin] = ()
    score: Sequence[points.ArrayScorePlugin | points.ScorePlugin] = ()
    reserve: Sequence[points.ReservePlugin] = ()
    permit: Sequence[points.PermitPlugin] = ()
    pre_bind: Sequence[points.PreBindPlugin] = ()
    bind: Sequence[points.BindPlugin] = ()
    post_bind: Sequence[points.PostBindPlugin] = ()
    weights: dict[str, int] = field(default_factory=dict)
    percentage_of_nodes_to_score: int | None = None
    examines_all: bool = False

    @property
    def is_sampling(self) -> bool:
        """Return whether the search for nodes may end before all were examined."""
        percentage = self.percentage_of_nodes_to_score
        return percentage is not None and percentage < 100 and not self.examines_all

    def plugins(self) -> list[points.Plugin]:
        """Return every plugin once, in order of its first extension point."""
        points_of: list[Any] = [(self.queue_sort,) if self.queue_sort else ()]
        points_of += [getattr(self, FIELDS[point]) for point in EXTENSION_POINTS if point != "queueSort"]
        return list({plugin.name: plugin for some in points_of for plugin in some}.values())


Factory = Callable[[PluginContext], Plugin]

ENTRY_POINT_GROUP = "podium.plugins"

PROTOCOLS = (*(protocol for protocols in EXTENSION_POINTS.values() for protocol in protocols), PodChangePlugin)
"""The protocols of plugins; that of pod changes complements PreFilter."""


class Registry:
    """Finds the factory of a plugin, or of another kind of object (``noun``), by its name in the configuration.

    ``in_tree`` comes first, then the ``classes`` that a program passed in. A name like ``package.module:Class`` is a
    class in an importable module; any other name is looked up among the entry points of the ``group``. The constructor
    of such a class takes a `PluginContext` or nothing; a class without a ``name`` gets its own as an attribute.
    """

    noun = "plugin"
    group = ENTRY_POINT_GROUP

    def __init__(
        self, in_tree: Mapping[str, Callable[[PluginContext], Any]], classes: Iterable[tuple[str, type[Any]]] = ()
    ) -> None:
        self._in_tree = dict(in_tree)
        self._classes = dict(classes)

    def __contains__(self, name: str) -> bool:
        return name in self._in_tree

    def resolve(self, name: str) -> Callable[[PluginContext], Any]:
        """Return the factory for a name. Raises PluginError for an unknown name and for code that cannot be used."""
        known = self._in_tree.get(name)
        if known is not None:
            return known
        made = self._classes.get(name)
        return self._factory(self._loaded_class(name) if made is None else made)

    def with_classes(self, classes: Iterable[tuple[str, type[Any]]]) -> Registry:
        return Registry(self._in_tree, (*self._classes.items(), *classes))

    def make(self, name: str, context: PluginContext, subject: str = "it") -> Any:
        """Return a new object by its name; ``subject`` names it in messages about failures.

        Raises InputError for refused arguments, PluginError for anything else.
        """
        try:
            made = self.resolve(name)(context)
            self.require_whole(made)
        except PodiumError:
            raise
        except BaseException as error:
            if not is_failure(error):
                raise
            raise PluginError(f"{subject} failed while it was made: {type(error).__name__}: {error}") from error
        return made

    def require_whole(self, made: Any) -> None:
        """Raise PluginError for a plugin without a proper name, or with some but not all members of a protocol.

        Such a plugin would silently not take part where its author expects it to.
        """
        require_name(made)
        for protocol in PROTOCOLS:
            has = [method for method in methods_of(protocol) if hasattr(made, method)]
            lacks = [member for member in members_of(protocol) if not hasattr(made, member)]
            if has and lacks:
                raise PluginError(
                    f"plugin {made.name} has {' and '.join(has)} but no {' and '.join(lacks)}; "
                    f"{protocol.__name__} needs all of them"
                )

    def _loaded_class(self, name: str) -> type[Any]:
        """Return the class for a name outside the table: from a module, or from an installed package."""
        if ":" in name:
            return _class_at(name)
        from importlib.metadata import entry_points  # noqa: PLC0415 - few configurations name what is not in the table

        installed = entry_points(group=self.group)
        places = sorted({f"{point.module}:{point.attr}" for point in installed if point.name == name})
        if len(places) > 1:
            raise PluginError(f"several packages have a {self.noun} {shown(name)}; write which: {' or '.join(places)}")
        if places:
            return _class_at(places[0])
        names = [*self._in_tree, *self._classes, *sorted({point.name for point in installed})]
        raise PluginError(
            f"there is no {self.noun} {shown(name)} ({suggestion(name, names)}); a class of your own is written "
            "package.module:Class"
        )

    def _factory(self, made: type[Any]) -> Callable[[PluginContext], Any]:
        """Return a function that makes an instance of a class."""
        methods = [method for protocol in PROTOCOLS for method in methods_of(protocol)]
        if not any(hasattr(made, method) for method in methods):
            raise PluginError(f"class {made.__name__} is not a plugin: it has none of the methods {', '.join(methods)}")
        return maker_of(made, Plugin)


_STARRED = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_loaded: set[str] = set()
_accepted: frozenset[str] | None = None


def loaded_places() -> frozenset[str]:
    """Return the places of all classes that were loaded, such as ``package.module:Class``."""
    return frozenset(_loaded)


@contextmanager
def refusing_new_classes(places: frozenset[str] | None = None) -> Iterator[None]:
    """Refuse classes at other places than these, or than those loaded so far.

    Configurations that come over the network, and those in saved plans, must not import modules.
    """
    global _accepted  # noqa: PLW0603 - a rule for the whole process
    before, _accepted = _accepted, loaded_places() if places is None else places
    try:
        yield
    finally:
        _accepted = before


def _class_at(place: str) -> type[Any]:
    """Return the class at ``package.module:Class``."""
    if _accepted is not None and place not in _accepted:
        problem = "was not loaded at the start, and neither what comes over the network nor a saved plan loads code"
        raise PluginError(f"{shown(place)} {problem}")
    module_name, _, class_name = place.partition(":")
    if not all(part.isidentifier() for part in (*module_name.split("."), class_name)):
        raise PluginError(f"{shown(place)} is not the place of a class; write it as in package.module:Class")
    try:
        module = import_module(module_name)
    except BaseException as error:
        if not is_failure(error):
            raise
        raise PluginError(
            f"module {module_name} does not load: {type(error).__name__}: {error} "
            "(is it installed, or its folder on PYTHONPATH?)"
        ) from error
    found = getattr(module, class_name, None)
    if not isinstance(found, type):
        classes = [name for name, value in vars(module).items() if isinstance(value, type)]
        raise PluginError(f"module {module_name} has no class {class_name}; {suggestion(class_name, classes)}")
    _loaded.add(place)
    return found


def maker_of(made: type[Any], protocol: type[Any]) -> Callable[[PluginContext], Any]:
    """Return a function that makes an instance of a user's class, with the context if its constructor accepts one.

    A class without a name of its own, or with only the one inherited from its protocol, gets its class name. Raises
    PluginError if the constructor requires more than a context.
    """
    parameters = [each for each in inspect.signature(made).parameters.values() if each.kind not in _STARRED]
    takes_context = bool(parameters) and parameters[0].kind is not inspect.Parameter.KEYWORD_ONLY
    needed = [each.name for each in parameters[takes_context:] if each.default is inspect.Parameter.empty]
    if needed:
        raise PluginError(
            f"the constructor of {made.__name__} needs {', '.join(needed)}; it is given a PluginContext, or nothing"
        )
    if getattr(made, "name", protocol.name) is protocol.name:
        made.name = made.__name__
    return lambda context: made(context) if takes_context else made()


def require_name(instance: Any) -> None:
    """Raise PluginError for an instance of such a class without a proper name."""
    name: object = instance.name
    if not isinstance(name, str) or not name:
        raise PluginError(f"the name of a {type(instance).__name__} is {shown(name)}; text is needed")


@cache
def methods_of(protocol: type) -> tuple[str, ...]:
    """Return the methods that a protocol itself requires."""
    return tuple(
        name for name, value in vars(protocol).items() if inspect.isfunction(value) and not name.startswith("_")
    )


@cache
def members_of(protocol: type) -> tuple[str, ...]:
    """Return the methods and properties that a protocol itself requires; isinstance would compute them each time."""
    properties = (name for name, value in vars(protocol).items() if isinstance(value, property))
    return (*methods_of(protocol), *properties)


def event_registrations(profile: Profile) -> dict[str, tuple[EventToRegister, ...]]:
    """Return the events that the profile's plugins registered, by plugin name."""
    return {plugin.name: registered_events(plugin) for plugin in profile.plugins()}


def registered_events(plugin: Plugin) -> tuple[EventToRegister, ...]:
    """Return the events that a plugin registered; every event for a plugin that registers none.

    A plugin that waits for added nodes but not for changed taints waits for the latter too, whatever its hint would
    say: a node that was added with a taint (or cordoned) woke no pod, and becomes useful when the taint is removed.
    """
    if not isinstance(plugin, EnqueuePlugin):
        return EVERY_EVENT
    events = tuple(plugin.events_to_register())
    for_nodes = ActionType(0)
    for event in events:
        if event.resource is EventResource.NODE:
            for_nodes |= event.action
    if ActionType.ADD in for_nodes and ActionType.UPDATE_NODE_TAINT not in for_nodes:
        events += (EventToRegister(EventResource.NODE, ActionType.UPDATE_NODE_TAINT),)
    return events


PREPARING = ("preFilter", "preScore")
"""The extension points at which plugins of the registry's table may be enabled without methods.

kube-scheduler's plugins prepare their work there, some of Podium's have nothing to prepare, and a configuration that
lists them there is valid all the same."""


def build_profiles(
    configuration: Configuration,
    registry: Registry,
    cluster: Cluster,
    *,
    waiting_pods: WaitingPods | None = None,
    seed: int = 0,
    examines_all: bool = False,
) -> dict[str, Profile]:
    """Return the profiles of a configuration by scheduler name, in its order.

    Each profile has one instance of every plugin that it enables, shared among its extension points. ``examines_all``:
    ``percentageOfNodesToScore`` does not limit the nodes that are examined. Raises InputError
    for a plugin that is not found, fails to construct, refuses its arguments, or is enabled where it has no methods;
    for arguments of a plugin that is not enabled; for a profile without exactly one plugin at queueSort or without any
    at bind; and if profiles do not sort the queue in the same way.
    """
    context = PluginContext({}, cluster, WaitingPods() if waiting_pods is None else waiting_pods, seed)
    registry = registry.with_classes(configuration.classes)
    builders: list[_ProfileBuilder] = []
    profiles: dict[str, Profile] = {}
    for number, written in enumerate(configuration.profiles):
        name = written.scheduler_name
        with locating(source=configuration.source, object=f"profile {name}"):
            is_sampling = written.percentage_of_nodes_to_score is not None and not examines_all
            context = replace(context, is_sampling=is_sampling)
            builder = _ProfileBuilder(written, f".profiles[{number}]", registry, context)
            profiles[name] = builder.profile(name)
            builders.append(builder)
            builder.require_same_order(builders[0])
            rule = builder.rule_of_nominations(profiles[name])
            if rule is not None:
                cluster.nominations.rules[name] = rule
    return profiles


class _ProfileBuilder:
    """One profile under construction; its plugins have the names of the configuration."""

    def __init__(self, written: ProfileConfiguration, path: str, registry: Registry, context: PluginContext) -> None:
        self._written = written
        self._path = path
        self._registry = registry
        self._context = context
        self._enabled = default_plugins(context.cluster.release).merged_with(written.plugins)
        self._args = {config.name: config.args for config in written.plugin_config}
        enabled = self._enabled.names()
        for position, name in enumerate(self._args):
            if name not in enabled and name not in registry:
                problem = f"no plugin {shown(name)} is enabled in this profile; {suggestion(name, enabled)}"
                raise InputError(problem, path=f"{path}.pluginConfig[{position}].name")
        self._plugins: dict[str, Plugin] = {}
        for name in enabled:
            plugin = self._made(name)
            if any(other.name == plugin.name for other in self._plugins.values()):
                raise self._enabling_error(name, f"two plugins here are called {shown(plugin.name)}; disable one")
            self._plugins[name] = plugin
        self._order = {point: self._order_at(point) for point in EXTENSION_POINTS}

    def profile(self, name: str) -> Profile:
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
            examines_all=not self._context.is_sampling,
            **plugins,
        )

    def rule_of_nominations(self, profile: Profile) -> KeepsRoom | None:
        """Return from which pods nominated pods keep room by a PostFilter plugin's rule; None without such a plugin.

        Raises InputError if several plugins have such a rule.
        """
        found = [plugin for plugin in profile.post_filter if isinstance(plugin, NominationPlugin)]
        if len(found) > 1:
            names = " and ".join(plugin.name for plugin in found)
            raise self._error(f"{names} both have holds_room; enable one of them", "postFilter.enabled")
        return _rule_of(found[0]) if found else None

    def require_same_order(self, first: _ProfileBuilder) -> None:
        """Raise InputError if this profile sorts the queue differently from the first: all share one queue."""
        name = self._order["queueSort"][0]
        if first._order["queueSort"] != [name] or first._args.get(name) != self._args.get(name):
            raise self._error("must be the same, with the same arguments, in all profiles", "queueSort")

    def _made(self, name: str) -> Plugin:
        place = f"[{list(self._args).index(name)}].args" if name in self._args else ""
        path = f"{self._path}.pluginConfig{place}"
        try:
            context = replace(self._context, args=self._args.get(name, {}))
            plugin: Plugin = self._registry.make(name, context, f"plugin {shown(name)}")
        except InputError as error:
            raise InputError(error.problem, object=error.object, path=f"{path}{error.path}") from error
        except PodiumError as error:
            is_argument = place and name in self._registry
            problem = InputError(str(error), path=path) if is_argument else self._enabling_error(name, str(error))
            raise problem from error.__cause__ or error
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
        """Return an error at the place that enables a plugin; defaults have none."""
        where = (point for point, plugins in self._written.plugins.sets().items() if name in plugins.names())
        return self._error(problem, f"{next(where, 'multiPoint')}.enabled")

    def _error(self, problem: str, place: str) -> InputError:
        return InputError(problem, path=f"{self._path}.plugins.{place}")


def _rule_of(plugin: NominationPlugin) -> KeepsRoom:
    """Return a plugin's rule, with its failures and wrong answers as PluginErrors."""

    def rule(nominated: PodRecord, pod: PodRecord) -> bool:
        with Calling(plugin.name, "HoldsRoom", pod):
            holds: Any = plugin.holds_room(nominated, pod)
        if not isinstance(holds, bool):
            raise PluginError(
                f"plugin {plugin.name} answered at HoldsRoom for pod {pod.key} with {holds!r}, not a bool"
            )
        return holds

    return rule
