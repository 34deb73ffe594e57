"""DeschedulerPolicy (descheduler/v1alpha2): what of it a rescheduler does, and what not.

It becomes a cautious configuration whose policies are the counterparts of its plugins. There is one scope for all
policies, which is as narrow as the narrowest of what is asked for. What has no counterpart is named.

Source: kubernetes-sigs/descheduler, pkg/api/v1alpha2/types.go, README.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from podium.api.basis import Caveat
from podium.api.errors import InputError, shown
from podium.api.selectors import Selector, parse_label_selector
from podium.framework.rescheduling.aggressiveness import SETTINGS_OF, Aggressiveness
from podium.framework.rescheduling.descheduler.conversion import Conversion, others
from podium.framework.rescheduling.descheduler.evictor import EVICTOR, EvictorScope
from podium.framework.rescheduling.descheduler.plugins import COUNTERPARTS, REPAIRS, WITHOUT
from podium.framework.rescheduling.settings import Limits, PolicySettings, ReschedulerSettings, Scope
from podium.framework.rescheduling.written_scope import label_selector, names_of, span_ns
from podium.framework.settings.strict import Strict, read_strictly

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

    def args(self, plugin: str) -> tuple[Mapping[str, Any], str]:
        """A plugin's arguments, and their path within the profile."""
        for number, config in enumerate(self.plugin_config):
            if config.name == plugin:
                return config.args, f".pluginConfig[{number}].args"
        return {}, ".pluginConfig"


class _Policy(Strict, frozen=True, kw_only=True):
    profiles: tuple[_Profile, ...] = ()
    node_selector: str = ""
    max_no_of_pods_to_evict_per_node: _Count | None = None
    max_no_of_pods_to_evict_per_namespace: _Count | None = None
    max_no_of_pods_to_evict_total: _Count | None = None


def is_descheduler_policy(raw: Mapping[str, Any]) -> bool:
    """Whether a document is one for the descheduler, of whichever version."""
    return raw.get("kind") == KIND


def read_descheduler_policy(raw: Mapping[str, Any]) -> tuple[ReschedulerSettings, tuple[Caveat, ...]]:
    """The settings that a DeschedulerPolicy comes to, and what of it is not done.

    Raises InputError with the field's path for what is wrong in it.
    """
    if raw.get("apiVersion") != API_VERSION:
        raise InputError(f"is {shown(raw.get('apiVersion'))}; {API_VERSION} is needed", path=".apiVersion")
    conversion = Conversion()
    fields = {each.encode_name for each in msgspec.structs.fields(_Policy)}
    for name in others(raw, fields):
        conversion.note("the policy", "has no counterpart, and is not heeded", name)
    written = read_strictly({name: raw[name] for name in raw if name in fields}, _Policy)
    if len(written.profiles) > _MOST_PROFILES:
        raise InputError(
            f"has {len(written.profiles)} profiles; at most {_MOST_PROFILES} are possible", path=".profiles"
        )
    evictors = [
        _profile(conversion, profile, f".profiles[{number}]") for number, profile in enumerate(written.profiles)
    ]
    _note_whole(conversion, written)
    usual = SETTINGS_OF[Aggressiveness.CAUTIOUS]
    own = Limits(
        total=written.max_no_of_pods_to_evict_total,
        node=written.max_no_of_pods_to_evict_per_node,
        namespace=written.max_no_of_pods_to_evict_per_namespace,
    )
    settings = replace(
        usual,
        policies=tuple(PolicySettings(name, args=args) for name, args in conversion.policies.items()),
        in_flight=_limits(usual.in_flight, own, conversion.limits),
        without_budget=Limits(total=0) if conversion.unprotected_stay else usual.without_budget,
        scope=_scope(conversion, written, evictors, usual.scope),
    )
    return settings, tuple(dict.fromkeys(conversion.caveats))


def _profile(conversion: Conversion, profile: _Profile, path: str) -> EvictorScope:
    """Take in what a profile enables; what its evictor lets go."""
    enabled = _enabled(conversion, profile)
    for config in profile.plugin_config:
        if config.name not in (EVICTOR, *enabled):
            conversion.note(config.name, "has arguments, and is not enabled")
    for name in enabled:
        if name not in COUNTERPARTS:
            conversion.note(name, f"has no counterpart: {WITHOUT.get(name, 'it is not known here')}")
            continue
        args, place = profile.args(name)
        try:
            COUNTERPARTS[name](conversion, name, args)
        except InputError as error:
            raise InputError(error.problem, path=f"{path}{place}{error.path}") from None
    args, place = profile.args(EVICTOR)
    try:
        return EvictorScope(conversion, args)
    except InputError as error:
        raise InputError(error.problem, path=f"{path}{place}{error.path}") from None


def _enabled(conversion: Conversion, profile: _Profile) -> tuple[str, ...]:
    """The plugins that move pods, each once; of all others it is noted that they do nothing."""
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
                conversion.note(name, "has no counterpart: nobody is filtered or sorted by it", f"plugins.{written}")
    return tuple(dict.fromkeys(found))


def _note_whole(conversion: Conversion, written: _Policy) -> None:
    """What holds of all that was converted."""
    enabled = {
        name
        for profile in written.profiles
        for point, plugins in profile.plugins.items()
        if point.lower() in _MOVING
        for name in plugins.enabled
    }
    missing = [what for name, what in REPAIRS.items() if name not in enabled]
    if "RepairViolations" in conversion.policies and missing:
        conversion.note("the policy", f"RepairViolations also repairs violations of {', '.join(missing)}")
    if len(written.profiles) > 1:
        conversion.note("the policy", "its profiles are one here, with one scope that none of them goes beyond")
    if conversion.policies:
        conversion.note(
            "the policy",
            "limits count moves under way rather than those of a cycle, and what it does not say is as cautious as a "
            "ReschedulerConfiguration that does not say it: thresholds, pace, limits, and what is left of budgets",
        )


def _scope(conversion: Conversion, written: _Policy, evictors: Sequence[EvictorScope], usual: Scope) -> Scope:
    """The scope that no part of the policy goes beyond."""
    included, excluded = _namespaces(conversion, usual)
    given = [*conversion.selectors, *(each.label_selector for each in evictors)]
    selectors = [label_selector(each, ".labelSelector") for each in given if each is not None]
    if len({str(each) for each in conversion.selectors}) > 1:
        conversion.note("the policy", "plugins select different pods; here all look at what all of them select")
    nodes = [
        parse_label_selector(text) for text in (written.node_selector, *(e.node_selector for e in evictors)) if text
    ]
    allowed = set.intersection(*(each.allowed for each in evictors)) if evictors else set[str]()
    spared = set[str]().union(*(each.spared for each in evictors))
    ages = [span_ns(each.minimum_age, usual.minimum_age_ns, ".minPodAge", least=0) for each in evictors]
    thresholds = [each.priority_below for each in evictors if each.priority_below is not None]
    return replace(
        usual,
        included=included,
        excluded=excluded,
        pods=_all_of(selectors),
        nodes=_all_of(nodes),
        allows_system_critical="SystemCriticalPods" in allowed,
        allows_local_storage="LocalStorage" in allowed,
        spares_volume_claims="PodsWithVolumeClaims" in spared,
        spares_device_claims="PodsWithDeviceClaims" in spared,
        priority_below=min(thresholds, default=None),
        minimum_replicas=max((each.minimum_replicas for each in evictors), default=0),
        minimum_age_ns=max(ages, default=usual.minimum_age_ns),
    )


def _namespaces(conversion: Conversion, usual: Scope) -> tuple[frozenset[str], frozenset[str]]:
    """Those that all plugins include, where some do, and those that any of them excludes."""
    given = [each for each in conversion.namespaces if each is not None]
    if len(set(conversion.namespaces)) > 1:
        conversion.note("the policy", "plugins look at different namespaces; here all look at what all of them look at")
    includes = [names_of(each.include, ".namespaces.include") for each in given if each.include]
    included = frozenset.intersection(*includes) if includes else frozenset[str]()
    excluded = frozenset[str]().union(*(names_of(each.exclude, ".namespaces.exclude") for each in given))
    if includes and not included:
        raise InputError("its plugins have no namespace in common; one scope holds for all of them here")
    return included - excluded, excluded or usual.excluded - included


def _all_of(selectors: Sequence[Selector | None]) -> Selector | None:
    found = [each for each in selectors if each is not None]
    return Selector(tuple(requirement for each in found for requirement in each.requirements)) if found else None


def _limits(usual: Limits, own: Limits, of_plugins: Sequence[Limits]) -> Limits:
    """What is said of all, else what is usual; and no more than any plugin is allowed."""

    def limit(kind: str) -> int | None:
        said: int | None = getattr(own, kind)
        usually: int | None = getattr(usual, kind)
        least: list[int] = [each for limits in of_plugins if (each := getattr(limits, kind)) is not None]
        first = usually if said is None else said
        return min(least if first is None else [first, *least], default=None)

    return Limits(total=limit("total"), node=limit("node"), namespace=limit("namespace"), owner=usual.owner)
