"""Changes of how pods are written that may let them in: smaller requests, a toleration, fewer conditions on nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import msgspec

from podium.api.node import Taint
from podium.api.pod import Pod, ResourceRequirements, Toleration
from podium.api.quantity import milli_value, whole_value
from podium.api.resource_requests import pod_requests
from podium.api.resources import CPU, EPHEMERAL_STORAGE, MEMORY, is_bytes
from podium.app.planning.deciding.causes import (
    GATED,
    OTHER,
    RESOURCE,
    SCHEDULER,
    SELECTION,
    TAINT,
    TOO_LARGE,
    Blocked,
    Obstacle,
    required_text,
)
from podium.app.planning.deciding.change import Change
from podium.app.planning.deciding.decisions import Decisions
from podium.app.planning.deciding.fates import kind_of
from podium.cluster.arrays import Int64s
from podium.store.admission.usage import written_amount

REQUEST = "request"
_SPREAD, _PODS, _PORTS = "PodTopologySpread", "InterPodAffinity", "NodePorts"
_MI = 1 << 20
# To request less than this part of what a pod asks for is another pod.
_MOST_LESS = 4
# Of all else a container requests what it is limited to.
_OVERCOMMITTED = (CPU, MEMORY, EPHEMERAL_STORAGE)


def rewritten(decisions: Decisions, waiting: Sequence[Blocked]) -> Iterator[Change]:
    """For each workload with pods that wait, each way in which its pods could ask for less."""
    by_workload: dict[str, list[Blocked]] = {}
    for blocked in waiting:
        by_workload.setdefault(decisions.workloads.whose(blocked.pods), []).append(blocked)
    for workload, held in by_workload.items():
        yield from _smaller(decisions, workload, held)
        yield from _freer(workload, held)


def tolerating(waiting: Sequence[Blocked]) -> Iterator[Change]:
    """Each taint that keeps pods off, tolerated by them."""
    taints: dict[Taint, list[Blocked]] = {}
    for blocked in waiting:
        for obstacle in blocked.obstacles:
            if obstacle.sort == TAINT and isinstance(obstacle.subject, Taint):
                taints.setdefault(obstacle.subject, []).append(blocked)
    for taint, held in sorted(taints.items(), key=lambda item: (item[0].key, item[0].value, item[0].effect)):
        value = f"={taint.value}" if taint.value else ""
        pods = sum(len(blocked.pods) for blocked in held)
        text = f"a toleration of {taint.key}{value}:{taint.effect} for {pods:,} pod{'' if pods == 1 else 's'}"
        kinds = frozenset(kind_of(blocked.pods[0]) for blocked in held)
        yield Change("toleration", text, to_pod=partial(_tolerating, taint=taint), kinds=kinds, objects=len(held))


def ungated(waiting: Sequence[Blocked]) -> Iterator[Change]:
    """The gates of pods removed, those with the same gates together."""
    gates: dict[tuple[str, ...], list[Blocked]] = {}
    for blocked in waiting:
        if blocked.before is not None and blocked.before.sort == GATED and blocked.pods[0].gates:
            gates.setdefault(blocked.pods[0].gates, []).append(blocked)
    for names, held in sorted(gates.items()):
        text = f"scheduling gate {', '.join(names)} removed"
        kinds = frozenset(kind_of(blocked.pods[0]) for blocked in held)
        yield Change("gate", text, to_pod=_ungated, kinds=kinds, objects=len(held))


def rescheduled(decisions: Decisions, waiting: Sequence[Blocked]) -> Iterator[Change]:
    """Pods for schedulers that are not there, given to the one that is."""
    names: dict[str, list[Blocked]] = {}
    for blocked in waiting:
        if blocked.before is not None and blocked.before.sort == SCHEDULER:
            names.setdefault(blocked.pods[0].scheduler_name, []).append(blocked)
    known = sorted(decisions.runners)[0]
    for name, held in sorted(names.items()):
        text = f"schedulerName {known} in place of {name}"
        kinds = frozenset(kind_of(blocked.pods[0]) for blocked in held)
        yield Change("scheduler", text, to_pod=partial(_for, name=known), kinds=kinds, objects=len(held))


def with_request(pod: Pod, resource: str, amount: int) -> Pod:
    """The pod with so much of a resource requested (cpu in milli), its largest containers giving up the rest.

    The pod itself where that cannot be.
    """
    left = pod_requests(pod.spec).get(resource, 0) - amount
    containers = list(pod.spec.containers)
    for place in sorted(range(len(containers)), key=lambda place: (-_requested(pod, place, resource), place)):
        less = min(left, max(_requested(pod, place, resource) - 1, 0))
        if less <= 0:
            continue
        resources = containers[place].resources
        wanted = written_amount(resource, _requested(pod, place, resource) - less)
        limits = dict(resources.limits)
        if resource in limits and resource not in _OVERCOMMITTED:
            limits[resource] = wanted
        containers[place] = msgspec.structs.replace(
            containers[place],
            resources=ResourceRequirements(requests={**resources.requests, resource: wanted}, limits=limits),
        )
        left -= less
    changed = _with_spec(pod, containers=tuple(containers))
    return changed if pod_requests(changed.spec).get(resource, 0) == amount else pod


def largest_that_fits(lefts: Sequence[int], pods: int, asked: int) -> int:
    """The most that so many pods may request each, less than is asked, to fit into what is left; 0 where none does."""
    low, high = 0, asked - 1
    while low < high:
        middle = (low + high + 1) // 2
        if sum(left // middle for left in lefts if left > 0) >= pods:
            low = middle
        else:
            high = middle - 1
    return low


def rounded(amount: int, resource: str) -> int:
    """The amount as a person would write it: not above it, and at most a tenth below."""
    step = 1 if not is_bytes(resource) else _MI
    while step * 100 <= amount:
        step *= 10 if not is_bytes(resource) else 2
    return amount // step * step if amount >= step else amount


def _smaller(decisions: Decisions, workload: str, held: Sequence[Blocked]) -> Iterator[Change]:
    """The workload's pods with a smaller request, so that all of them may fit, or else one."""
    short: dict[str, list[Blocked]] = {}
    for blocked in held:
        for name in sorted(_short(blocked)):
            short.setdefault(name, []).append(blocked)
    for resource, some in short.items():
        pods = [pod for blocked in some for pod in blocked.pods]
        index = decisions.cluster.nodes.resource_index.get(resource)
        asked = 0 if index is None else pods[0].pod_class.requests.get(index, 0)
        if index is None or not asked:
            continue
        lefts = _lefts(decisions, some, resource, index)
        amounts = {rounded(largest_that_fits(lefts, number, asked), resource) for number in (len(pods), 1)}
        for amount in sorted(amount for amount in amounts if amount >= max(asked // _MOST_LESS, 1)):
            written = f"{written_amount(resource, asked)} -> {written_amount(resource, amount)}"
            yield Change(
                REQUEST,
                f"{workload} requests.{resource} {written}",
                to_pod=partial(with_request, resource=resource, amount=amount),
                kinds=frozenset(kind_of(blocked.pods[0]) for blocked in some),
            )


def _short(blocked: Blocked) -> set[str]:
    """The resources of which nodes have too little, where nothing else stands in the way."""
    return {
        str(obstacle.subject)
        for alike in blocked.nodes
        if len(alike.obstacles) == 1
        for obstacle in alike.obstacles
        if obstacle.sort in (RESOURCE, TOO_LARGE)
    }


def _lefts(decisions: Decisions, held: Sequence[Blocked], resource: str, index: int) -> list[int]:
    """What is left of a resource on each node where only that stands in the way of some of the pods."""
    rows: set[int] = set()
    for blocked in held:
        for alike in blocked.nodes:
            (first, *more) = alike.obstacles
            if not more and first.sort in (RESOURCE, TOO_LARGE) and first.subject == resource:
                rows |= set(alike.rows.tolist())
    nodes = decisions.cluster.nodes
    every = sorted(rows)
    left: Int64s = nodes.allocatable[index, every] - nodes.requested[index, every]
    return [int(amount) for amount in left if amount > 0]


def _freer(workload: str, held: Sequence[Blocked]) -> Iterator[Change]:
    """The workload's pods without conditions that keep them off nodes."""
    found: dict[str, Callable[[Pod], Pod]] = {}
    for blocked in held:
        for obstacle in sorted(blocked.obstacles, key=lambda obstacle: (obstacle.sort, obstacle.text)):
            looser = _looser(workload, blocked, obstacle)
            if looser is not None:
                found.setdefault(*looser)
    kinds = frozenset(kind_of(blocked.pods[0]) for blocked in held)
    for text, to_pod in found.items():
        yield Change("pod", text, to_pod=to_pod, kinds=kinds)


def _looser(workload: str, blocked: Blocked, obstacle: Obstacle) -> tuple[str, Callable[[Pod], Pod]] | None:
    if obstacle.sort == SELECTION:
        return f"{workload} without its {required_text(blocked.pods[0])}", _anywhere
    if obstacle.sort != OTHER:
        return None
    spec = blocked.pods[0].spec
    if obstacle.plugin == _SPREAD and spec.topology_spread_constraints:
        return f"{workload} spread with ScheduleAnyway", _spread_anyway
    if obstacle.plugin == _PODS and spec.affinity is not None:
        return f"{workload} without required affinity to other pods", _beside_anybody
    if obstacle.plugin == _PORTS:
        return f"{workload} without host ports", _without_ports
    return None


def _requested(pod: Pod, place: int, resource: str) -> int:
    resources = pod.spec.containers[place].resources
    value = resources.requests.get(resource, resources.limits.get(resource, 0))
    return milli_value(value) if resource == CPU else whole_value(value)


def _tolerating(pod: Pod, taint: Taint) -> Pod:
    more = Toleration(key=taint.key, operator="Equal", value=taint.value, effect=taint.effect)
    return _with_spec(pod, tolerations=(*pod.spec.tolerations, more))


def _ungated(pod: Pod) -> Pod:
    return _with_spec(pod, scheduling_gates=())


def _for(pod: Pod, name: str) -> Pod:
    return _with_spec(pod, scheduler_name=name)


def _anywhere(pod: Pod) -> Pod:
    affinity = pod.spec.affinity
    if affinity is not None and affinity.node_affinity is not None:
        anywhere = msgspec.structs.replace(affinity.node_affinity, required=None)
        affinity = msgspec.structs.replace(affinity, node_affinity=anywhere)
    return _with_spec(pod, node_selector={}, affinity=affinity)


def _spread_anyway(pod: Pod) -> Pod:
    constraints = tuple(
        msgspec.structs.replace(constraint, when_unsatisfiable="ScheduleAnyway")
        for constraint in pod.spec.topology_spread_constraints
    )
    return _with_spec(pod, topology_spread_constraints=constraints)


def _beside_anybody(pod: Pod) -> Pod:
    affinity = pod.spec.affinity
    if affinity is None:
        return pod
    near, far = (
        None if some is None else msgspec.structs.replace(some, required=())
        for some in (affinity.pod_affinity, affinity.pod_anti_affinity)
    )
    return _with_spec(pod, affinity=msgspec.structs.replace(affinity, pod_affinity=near, pod_anti_affinity=far))


def _without_ports(pod: Pod) -> Pod:
    containers = tuple(
        msgspec.structs.replace(
            container, ports=tuple(msgspec.structs.replace(port, host_port=0) for port in container.ports)
        )
        for container in pod.spec.containers
    )
    return _with_spec(pod, containers=containers, host_network=False)


def _with_spec(pod: Pod, **fields: object) -> Pod:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, **fields))
