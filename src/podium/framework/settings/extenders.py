"""Extenders: schedulers' helpers that are called over HTTP, as a configuration describes them.

They are called by who has a connection (`podium.client.extending`); an answer which was found without them says so.

Source: staging/src/k8s.io/kube-scheduler/config/v1/types.go (Extender), pkg/scheduler/apis/config/validation
(validateExtenders), pkg/scheduler/extender.go (NewHTTPExtender, DefaultExtenderTimeout).
"""

from __future__ import annotations

import msgspec

from podium.api.basis import MOST_NAMES, Caveat
from podium.api.errors import InputError, shown
from podium.api.names import label_key_problem
from podium.api.pod import PodSpec
from podium.api.resources import is_extended
from podium.api.times import parse_duration
from podium.framework.settings.strict import Strict

DEFAULT_TIMEOUT = "5s"


class ExtenderTLSConfig(Strict, frozen=True, kw_only=True):
    """How the connection to an extender is secured. The data is base64."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: str = ""
    key_data: str = ""
    ca_data: str = ""


class ExtenderManagedResource(Strict, frozen=True, kw_only=True):
    """A resource that pods must request for the extender to be asked about them.

    ``ignored_by_scheduler``: NodeResourcesFit does not look at it.
    """

    name: str
    ignored_by_scheduler: bool = False


class Extender(Strict, frozen=True, kw_only=True):
    """Where an extender is, what it is asked, and what it counts. Verbs are appended to the URL; "" is not asked.

    An ``ignorable`` one may be away. Without ``managed_resources`` it is asked about every pod.
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


def check_extenders(extenders: tuple[Extender, ...], path: str) -> None:
    """Raise InputError, with the field's path, for what kube-scheduler refuses too."""
    managed: set[str] = set()
    for number, extender in enumerate(extenders):
        where = f"{path}[{number}]"
        if not extender.url_prefix:
            raise InputError("is empty; the URL of the extender is needed", path=f"{where}.urlPrefix")
        if extender.prioritize_verb and extender.weight <= 0:
            raise InputError(f"is {extender.weight}; one that prioritizes needs 1 or more", path=f"{where}.weight")
        _check_timeout(extender.http_timeout, f"{where}.httpTimeout")
        for index, resource in enumerate(extender.managed_resources):
            _check_managed(resource.name, managed, f"{where}.managedResources[{index}].name")
    binding = [number for number, extender in enumerate(extenders) if extender.bind_verb]
    if len(binding) > 1:
        problem = f"so has {path}[{binding[0]}]; only one extender can bind"
        raise InputError(problem, path=f"{path}[{binding[1]}].bindVerb")


def timeout_ns(extender: Extender) -> int:
    """How long an answer may take; 0 stands for the default."""
    return parse_duration(extender.http_timeout) or parse_duration(DEFAULT_TIMEOUT)


def is_interested(extender: Extender, spec: PodSpec) -> bool:
    """Whether an extender is asked about such pods (IsInterested): some container names a resource that it manages."""
    if not extender.managed_resources:
        return True
    managed = {resource.name for resource in extender.managed_resources}
    return any(
        not managed.isdisjoint((*container.resources.requests, *container.resources.limits))
        for container in (*spec.containers, *spec.init_containers)
    )


def ignored_resources(extenders: tuple[Extender, ...]) -> list[str]:
    """The resources that the scheduler leaves to extenders, in their order (scheduler.go, buildExtenders)."""
    managed = (resource for extender in extenders for resource in extender.managed_resources)
    return [resource.name for resource in managed if resource.ignored_by_scheduler]


def without_extenders(extenders: tuple[Extender, ...], source: str, *, ignore: bool) -> tuple[Caveat, ...]:
    """What an answer says that does without extenders. Raises InputError unless it is told to ``ignore`` them."""
    if not extenders:
        return ()
    if not ignore:
        raise InputError(
            f"has {len(extenders)} of them, and Podium calls none: they may refuse nodes, rate them, bind and preempt; "
            "to decide without them, ask for it with --ignore-extenders, or ignore_extenders=True in Python",
            path=".extenders",
            source=source,
        )
    urls = tuple(extender.url_prefix for extender in extenders)
    message = f"decided without the configuration's extenders, which may refuse nodes and rate them: {', '.join(urls)}"
    return (Caveat("extenders-ignored", message, len(urls), urls[:MOST_NAMES]),)


def _check_timeout(timeout: str | int, path: str) -> None:
    try:
        duration_ns = parse_duration(timeout)
    except ValueError as error:
        raise InputError(str(error), path=path) from None
    if duration_ns < 0:
        raise InputError(f"{shown(timeout)} is negative; write 0s or more", path=path)


def _check_managed(name: str, managed: set[str], path: str) -> None:
    problem = label_key_problem(name)
    if problem is None and not is_extended(name):
        problem = f"{shown(name)} is no extended resource; those have a prefix of their own: example.com/gpu"
    if problem is None and name in managed:
        problem = f"{shown(name)} is managed by an extender already; list it once"
    if problem is not None:
        raise InputError(problem, path=path)
    managed.add(name)
