"""Extenders: their settings, and the nodes that they reject, their scores, and the victims that they accept.

The transport to an extender is provided from outside; this module interprets the answers.

Source: pkg/scheduler/schedule_one.go (findNodesThatPassExtenders, prioritizeNodes), pkg/scheduler/extender.go,
staging/src/k8s.io/kube-scheduler/extender/v1/types.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

from podium.api.basis import MOST_NAMES, Caveat
from podium.api.checks import check_duration
from podium.api.errors import InputError, PodiumError, shown
from podium.api.names import label_key_problem
from podium.api.pod import PodSpec
from podium.api.quantity import is_extended
from podium.api.times import parse_duration
from podium.cluster.pods import PodRecord
from podium.framework.plugin import MAX_NODE_SCORE
from podium.framework.settings.arguments import Strict
from podium.framework.verdicts import Status, unresolvable, unschedulable

if TYPE_CHECKING:
    from podium.framework.settings.configuration import Configuration

EXTENDER = "Extender"
"""The plugin name recorded for a node that an extender rejected (framework.ExtenderName); any event wakes the pod."""

MAX_EXTENDER_PRIORITY = 10
_SCALE = MAX_NODE_SCORE // MAX_EXTENDER_PRIORITY
# The bound on the sum of extenders' scores, so that its sum with all other scores is exact.
_MOST_SCORE = 1 << 53


class ExtenderError(PodiumError):
    """An extender was unreachable, returned an error, or returned an invalid answer."""


class FilterAnswer(msgspec.Struct, frozen=True):
    """The nodes that an extender accepts, and why it rejected others; ``unresolvable``: preemption cannot help."""

    left: Sequence[str]
    failed: Mapping[str, str] = {}
    unresolvable: Mapping[str, str] = {}


class Victims(msgspec.Struct, frozen=True):
    """The victims on a node, most important first, and how many of them violate a budget."""

    pods: tuple[PodRecord, ...]
    budget_violations: int = 0


class VictimIds(msgspec.Struct, frozen=True):
    """The same as an extender returns it: the uids of pods."""

    uids: tuple[str, ...]
    budget_violations: int = 0


class Extender(Protocol):
    """One extender, which may filter and score nodes, and process preemption.

    Each verb raises ExtenderError if there is no valid answer. ``name`` is that of error messages, ``weight`` that of
    its scores. Scheduling continues without an ignorable one if it fails.
    """

    name: str
    is_ignorable: bool
    weight: int
    filters: bool
    prioritizes: bool
    preempts: bool

    def is_interested(self, pod: PodRecord) -> bool:
        """Return whether it is called for the pod at all."""

    def filter(self, pod: PodRecord, names: Sequence[str]) -> FilterAnswer:
        """Return which of the nodes it accepts."""

    def prioritize(self, pod: PodRecord, names: Sequence[str]) -> Mapping[str, int]:
        """Return the scores of the nodes, usually from 0 to `MAX_EXTENDER_PRIORITY`."""

    def preempt(self, pod: PodRecord, victims: Mapping[str, Victims]) -> Mapping[str, VictimIds]:
        """Return the victims that it accepts, by node; nodes that it leaves out are no candidates."""


class Filtered(msgspec.Struct, frozen=True):
    """The nodes that extenders accept, in the given order, and their reasons against others.

    With ``error``, no nodes.
    """

    left: tuple[str, ...]
    refused: Mapping[str, Status] = {}
    error: str = ""


class Extenders:
    """The extenders of a configuration, in order."""

    def __init__(self, extenders: Sequence[Extender]) -> None:
        self._extenders = tuple(extenders)

    def concern(self, pod: PodRecord) -> bool:
        """Return whether any of them is called for a pod."""
        return any(extender.is_interested(pod) for extender in self._extenders)

    def filter(self, pod: PodRecord, names: Sequence[str]) -> Filtered:
        """Call the extenders one after another, each with the nodes that the previous ones accepted.

        A failing extender ends this with an error, unless it is ignorable. An extender that accepts a node outside the
        given ones has returned an invalid answer.
        """
        left, refused = tuple(names), dict[str, Status]()
        for extender in self._extenders:
            if not left:
                break
            if not extender.filters or not extender.is_interested(pod):
                continue
            try:
                answer = extender.filter(pod, left)
                kept = frozenset(answer.left)
                if unknown := sorted(kept.difference(left)):
                    problem = f"leaves node {unknown[0]}, which it was not asked about"
                    raise ExtenderError(f"extender {extender.name} {problem}")
            except ExtenderError as error:
                if extender.is_ignorable:
                    continue
                return Filtered((), error=str(error))
            refused |= {name: unschedulable(*_reasons(reason)) for name, reason in answer.failed.items()}
            refused |= {name: unresolvable(*_reasons(reason)) for name, reason in answer.unresolvable.items()}
            left = tuple(name for name in left if name in kept)
        return Filtered(left, refused)

    def prioritize(self, pod: PodRecord, names: Sequence[str]) -> dict[str, int]:
        """Return what their scores add to those of nodes, by name: weighted, and scaled to the range of plugins.

        An extender that fails adds nothing, ignorable or not.
        """
        totals: dict[str, int] = {}
        for extender in self._extenders:
            if not extender.prioritizes or not extender.is_interested(pod):
                continue
            try:
                scores = extender.prioritize(pod, names)
            except ExtenderError:
                continue
            weighted = {name: score * extender.weight * _SCALE for name, score in scores.items()}
            if all(abs(score) <= _MOST_SCORE for score in weighted.values()):
                for name, score in weighted.items():
                    totals[name] = totals.get(name, 0) + score
        return totals

    def preempting(self, pod: PodRecord) -> list[Extender]:
        """Return the extenders that process preemption for a pod."""
        return [extender for extender in self._extenders if extender.preempts and extender.is_interested(pod)]


def _reasons(text: str) -> tuple[str, ...]:
    return (text,) if text else ()


DEFAULT_TIMEOUT = "5s"


class ExtenderTLSConfig(Strict, frozen=True, kw_only=True):
    """The TLS settings of the connection to an extender. Data is base64."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: str = ""
    key_data: str = ""
    ca_data: str = ""


class ExtenderManagedResource(Strict, frozen=True, kw_only=True):
    """A resource that pods must request for the extender to be called.

    ``ignored_by_scheduler``: NodeResourcesFit ignores it.
    """

    name: str
    ignored_by_scheduler: bool = False


class ExtenderSettings(Strict, frozen=True, kw_only=True):
    """The address of an extender, its verbs, and its weight. Verbs are appended to the URL; "" disables a verb.

    An ``ignorable`` one may be unavailable. Without ``managed_resources`` it is called for every pod.
    """

    url_prefix: str
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    bind_verb: str = ""
    weight: int = 0
    enable_https: bool = msgspec.field(name="enableHTTPS", default=False)
    tls_config: ExtenderTLSConfig | None = None
    http_timeout: str | int = DEFAULT_TIMEOUT
    node_cache_capable: bool = False
    managed_resources: tuple[ExtenderManagedResource, ...] = ()
    ignorable: bool = False


def check_extenders(extenders: tuple[ExtenderSettings, ...], path: str) -> None:
    """Raise InputError with the field's path for what kube-scheduler refuses too."""
    managed: set[str] = set()
    for number, extender in enumerate(extenders):
        where = f"{path}[{number}]"
        if not extender.url_prefix:
            raise InputError("is empty; the URL of the extender is needed", path=f"{where}.urlPrefix")
        if extender.prioritize_verb and extender.weight <= 0:
            raise InputError(f"is {extender.weight}; one that prioritizes needs 1 or more", path=f"{where}.weight")
        check_duration(extender.http_timeout, f"{where}.httpTimeout")
        for index, resource in enumerate(extender.managed_resources):
            _check_managed(resource.name, managed, f"{where}.managedResources[{index}].name")
    binding = [number for number, extender in enumerate(extenders) if extender.bind_verb]
    if len(binding) > 1:
        problem = f"so has {path}[{binding[0]}]; only one extender can bind"
        raise InputError(problem, path=f"{path}[{binding[1]}].bindVerb")


def timeout_ns(extender: ExtenderSettings) -> int:
    """Return the timeout of a call; 0 means the default."""
    return parse_duration(extender.http_timeout) or parse_duration(DEFAULT_TIMEOUT)


def is_interested(extender: ExtenderSettings, spec: PodSpec) -> bool:
    """Return whether an extender is called for such pods (IsInterested).

    It is if a container names a resource that the extender manages.
    """
    if not extender.managed_resources:
        return True
    managed = {resource.name for resource in extender.managed_resources}
    return any(
        not managed.isdisjoint((*container.resources.requests, *container.resources.limits))
        for container in (*spec.containers, *spec.init_containers)
    )


def ignored_resources(extenders: tuple[ExtenderSettings, ...]) -> list[str]:
    """Return the resources that the scheduler leaves to extenders, in order (scheduler.go, buildExtenders)."""
    managed = (resource for extender in extenders for resource in extender.managed_resources)
    return [resource.name for resource in managed if resource.ignored_by_scheduler]


def without_extenders(configuration: Configuration | None, *, ignore: bool) -> tuple[Caveat, ...]:
    """Return the caveats of an answer without extenders. Raises InputError unless they are to be ignored."""
    if configuration is None or not configuration.extenders:
        return ()
    extenders = configuration.extenders
    if not ignore:
        raise InputError(
            f"has {len(extenders)} of them, and Podium calls none: they may refuse nodes, rate them, bind and preempt; "
            "to decide without them, ask for it with --ignore-extenders, or ignore_extenders=True in Python",
            path=".extenders",
            source=configuration.source,
        )
    urls = tuple(extender.url_prefix for extender in extenders)
    message = f"decided without the configuration's extenders, which may refuse nodes and rate them: {', '.join(urls)}"
    return (Caveat("extenders-ignored", message, len(urls), urls[:MOST_NAMES]),)


def _check_managed(name: str, managed: set[str], path: str) -> None:
    problem = label_key_problem(name)
    if problem is None and not is_extended(name):
        problem = f"{shown(name)} is not an extended resource; those have a prefix of their own: example.com/gpu"
    if problem is None and name in managed:
        problem = f"{shown(name)} is managed by an extender already; list it once"
    if problem is not None:
        raise InputError(problem, path=path)
    managed.add(name)
