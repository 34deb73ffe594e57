"""How many pods each ReplicaSet of a Deployment is to have next.

Source: pkg/controller/deployment (rolling.go, recreate.go, sync.go), util/deployment_util.go (ResolveFenceposts).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from podium.api.workloads import DeploymentSpec, RollingUpdateDeployment
from podium.machines.workloads.workload import pods_of_share


@dataclass(frozen=True, slots=True)
class Size:
    """How many pods a ReplicaSet is to have, and how many of its pods are available."""

    replicas: int
    available: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """How many pods the new ReplicaSet is to have, None where none is to be made yet, and each of the old ones."""

    new: int | None
    old: tuple[int, ...]


def limits(spec: DeploymentSpec) -> tuple[int, int]:
    """How many pods may be there beyond those wanted, and how many of those wanted may be unavailable; not both 0."""
    rolling = spec.strategy.rolling_update or RollingUpdateDeployment()
    surge = pods_of_share(rolling.max_surge, spec.replicas, rounds_up=True)
    unavailable = pods_of_share(rolling.max_unavailable, spec.replicas, rounds_up=False)
    return surge, unavailable if surge or unavailable else 1


def most_unavailable(spec: DeploymentSpec) -> int:
    """How many of the pods wanted may be missing from a Deployment that is available; none with Recreate."""
    if spec.strategy.type == "Recreate" or not spec.replicas:
        return 0
    return min(limits(spec)[1], spec.replicas)


def plan(spec: DeploymentSpec, new: Size | None, old: Sequence[Size], *, has_old_pods: bool) -> Plan:
    """The next step, from what is; ``old`` has the oldest first.

    ``has_old_pods``: pods of old ReplicaSets exist that have not ended.
    """
    stay = Plan(None if new is None else new.replicas, tuple(size.replicas for size in old))
    if spec.paused:
        return _scaled(spec.replicas, stay)
    if spec.strategy.type == "Recreate":
        if any(stay.old):
            return Plan(stay.new, (0,) * len(old))
        return stay if has_old_pods else Plan(spec.replicas, stay.old)
    return _rolled(spec, new, old)


def _scaled(wanted: int, stay: Plan) -> Plan:
    """What a paused Deployment does: the one ReplicaSet that has pods, or else the newest, is scaled."""
    having = [index for index, replicas in enumerate(stay.old) if replicas]
    if stay.new is not None and not having:
        return Plan(wanted, stay.old)
    if stay.new or not stay.old or len(having) > 1:
        return stay
    scaled = having[0] if having else len(stay.old) - 1
    return Plan(stay.new, tuple(wanted if index == scaled else replicas for index, replicas in enumerate(stay.old)))


def _rolled(spec: DeploymentSpec, new: Size | None, old: Sequence[Size]) -> Plan:
    """One step of a rolling update: first the new ReplicaSet grows as it may, then the old ones shrink."""
    current = new or Size(0)
    replicas = tuple(size.replicas for size in old)
    surge, unavailable = limits(spec)
    total = current.replicas + sum(replicas)
    if current.replicas > spec.replicas:
        return Plan(spec.replicas, replicas)
    more = max(0, min(spec.replicas - current.replicas, spec.replicas + surge - total))
    if more or new is None:
        return Plan(current.replicas + more, replicas)
    least = spec.replicas - unavailable
    most_fewer = total - least - max(0, current.replicas - current.available)
    if most_fewer <= 0:
        return Plan(current.replicas, replicas)
    # Pods that are not available go first: that makes no less available.
    healthier = _shrunk(replicas, [max(0, size.replicas - size.available) for size in old], most_fewer)
    spare = current.available + sum(size.available for size in old) - least
    return Plan(current.replicas, _shrunk(healthier, healthier, spare))


def _shrunk(replicas: Sequence[int], by: Sequence[int], most: int) -> tuple[int, ...]:
    """The sizes, each less by at most what ``by`` says, and all together by ``most``; the first shrink first."""
    left = max(0, most)
    shrunk = []
    for size, fewer in zip(replicas, by, strict=True):
        step = min(size, fewer, left)
        left -= step
        shrunk.append(size - step)
    return tuple(shrunk)
