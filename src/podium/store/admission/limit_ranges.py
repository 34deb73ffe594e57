"""LimitRange admission: defaults and limits for new pods and claims (plugin/pkg/admission/limitranger)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from podium.api.meta import Raw
from podium.api.pod import Container, PodSpec, ResourceList, ResourceRequirements
from podium.api.policy import LimitRange, LimitRangeItem
from podium.api.quantity import CPU, is_pod_level, milli_value
from podium.api.resource_requests import container_requests, pod_level_requests, requests_of
from podium.store.api_resource import APIResource
from podium.store.errors import forbidden

ANNOTATION = "kubernetes.io/limit-ranger"
"""The pod annotation that lists the defaults that were filled in."""

_SORTS = (("containers", "container"), ("initContainers", "init container"))
_Milli = Mapping[str, int]


def with_default_resources(raw: Raw, ranges: Iterable[LimitRange]) -> Raw:
    """Return the pod with default limits and requests for its containers; `raw` itself if nothing is added.

    A container's limit is also its request if it states no request.
    """
    said: list[str] = []
    spec = raw["spec"]
    for limit_range in ranges:
        limits: ResourceList = {}
        requests: ResourceList = {}
        for item in limit_range.spec.limits:
            limits |= item.default_limits
            requests |= item.default_requests
        for field, sort in _SORTS:
            if (limits or requests) and spec.get(field):
                filled = [_filled(one, limits, requests, sort, said) for one in spec[field]]
                spec = {**spec, field: filled}
    if not said:
        return raw
    metadata = raw["metadata"]
    annotations = {**metadata.get("annotations", {}), ANNOTATION: f"LimitRanger plugin set: {'; '.join(said)}"}
    return {**raw, "metadata": {**metadata, "annotations": annotations}, "spec": spec}


def check_pod_limits(resource: APIResource, key: str, spec: PodSpec, ranges: Iterable[LimitRange]) -> None:
    """Raise StoreError 403 if a container, or the pod as a whole, violates a bound of the limit ranges."""
    items = [item for limit_range in ranges for item in limit_range.spec.limits]
    containers = [container.resources for container in (*spec.containers, *spec.init_containers)]
    problems: list[str] = []
    for item in items:
        if item.type == "Container":
            for container in containers:
                problems += _problems(item, milli_amounts(requests_of(container)), milli_amounts(container.limits))
        elif item.type == "Pod":
            # The limits of the containers are summed like requests; pod-level limits take precedence.
            own = milli_amounts(spec.resources.limits) if spec.resources is not None else {}
            limits = container_requests(replace(with_limits_as_requests(spec), resources=None))
            limits = {**limits, **{name: amount for name, amount in own.items() if is_pod_level(name)}}
            problems += _problems(item, {**container_requests(spec), **pod_level_requests(spec)}, limits)
    _refuse(resource, key, problems)


def check_claim_limits(resource: APIResource, key: str, requests: ResourceList, ranges: Iterable[LimitRange]) -> None:
    """Raise StoreError 403 for a claim that requests more or less storage than the limit ranges allow."""
    problems: list[str] = []
    asked = milli_amounts(requests)
    for item in (item for one in ranges for item in one.spec.limits):
        if item.type == "PersistentVolumeClaim":
            problems += _problems(replace(item, max_limit_request_ratio={}), asked, asked, "request")
    _refuse(resource, key, problems)


def _filled(container: Raw, limits: ResourceList, requests: ResourceList, sort: str, said: list[str]) -> Raw:
    resources = container.get("resources", {})
    own_limits = resources.get("limits", {})
    own_requests = {**own_limits, **resources.get("requests", {})}
    new_limits = {name: amount for name, amount in limits.items() if name not in own_limits}
    new_requests = {name: amount for name, amount in requests.items() if name not in own_requests}
    for added, part in ((new_requests, "request"), (new_limits, "limit")):
        if added:
            said.append(f"{', '.join(sorted(added))} {part} for {sort} {container.get('name', '')}")
    if not new_limits and not new_requests:
        return container
    filled = {"requests": {**own_requests, **new_requests}, "limits": {**own_limits, **new_limits}}
    return {**container, "resources": {**resources, **{name: part for name, part in filled.items() if part}}}


def _problems(item: LimitRangeItem, requests: _Milli, limits: _Milli, part: str = "limit") -> Iterator[str]:
    """Yield a message for each violated bound, worded as by the admission plugin; `part` is what has a maximum."""
    # The first of the stated amounts is the one that must be stated; it is reported if both are beyond the bound.
    request, limit = ("request", requests), (part, limits)
    for words, bounds, sign, stated in (
        ("minimum", item.min, -1, (request, limit)),
        ("maximum", item.max, 1, (limit, request)),
    ):
        for name, bound in sorted(bounds.items()):
            most = sign * milli_value(bound)
            beyond = [(what, of[name]) for what, of in stated if name in of and sign * of[name] > most]
            if name not in stated[0][1]:
                yield f"{words} {name} usage per {item.type} is {bound}.  No {stated[0][0]} is specified"
            elif beyond:
                what, amount = beyond[0]
                yield f"{words} {name} usage per {item.type} is {bound}, but {what} is {_written(name, amount)}"
    for name, bound in sorted(item.max_limit_request_ratio.items()):
        problem = f"{name} max limit to request ratio per {item.type} is {bound}, but"
        unset = [what for what, of in (("request", requests), ("limit", limits)) if not of.get(name)]
        if unset:
            yield f"{problem} no {unset[0]} is specified or {unset[0]} is 0"
        elif limits[name] * 1_000 > milli_value(bound) * requests[name]:
            yield f"{problem} provided ratio is {limits[name] / requests[name]:f}"


def with_limits_as_requests(spec: PodSpec) -> PodSpec:
    """Return the spec in which each container requests its limits."""

    def limited(containers: tuple[Container, ...]) -> tuple[Container, ...]:
        return tuple(
            replace(container, resources=ResourceRequirements(requests=container.resources.limits))
            for container in containers
        )

    return replace(spec, containers=limited(spec.containers), init_containers=limited(spec.init_containers))


def milli_amounts(amounts: Mapping[str, str | int | float]) -> _Milli:
    """Return amounts in milli-units."""
    return {name: milli_value(amount) for name, amount in amounts.items()}


def _written(name: str, milli: int) -> str:
    return f"{milli}m" if name == CPU and milli % 1_000 else str(-(-milli // 1_000))


def _refuse(resource: APIResource, key: str, problems: list[str]) -> None:
    if problems:
        raise forbidden(resource, key, problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
