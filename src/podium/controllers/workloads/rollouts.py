"""The steps of a Deployment's rollout: how many pods each of its ReplicaSets should have next.

Source: pkg/controller/deployment (sync.go, rolling.go, recreate.go).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from podium.api.workloads import DeploymentSpec, RollingUpdateDeployment
from podium.controllers.workloads.owned_pods import pods_of_share


@dataclass(frozen=True, slots=True)
class Size:
    """The wanted and available pods of a ReplicaSet.

    ``desired`` and ``most`` are the replicas of the Deployment, and its pods with the surge, when it was last scaled;
    None and 0 if unknown.
    """

    replicas: int
    available: int = 0
    desired: int | None = None
    most: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """The wanted pods of the new ReplicaSet (None: not to be created yet) and of each old one."""

    new: int | None
    old: tuple[int, ...]


def limits(spec: DeploymentSpec) -> tuple[int, int]:
    """Return the maximum surge and the maximum of unavailable pods; not both 0."""
    rolling = spec.strategy.rolling_update or RollingUpdateDeployment()
    surge = pods_of_share(rolling.max_surge, spec.replicas, rounds_up=True)
    unavailable = pods_of_share(rolling.max_unavailable, spec.replicas, rounds_up=False)
    return surge, unavailable if surge or unavailable else 1


def most_unavailable(spec: DeploymentSpec) -> int:
    """Return how many wanted pods an available Deployment may lack; 0 with Recreate."""
    if spec.strategy.type == "Recreate" or not spec.replicas:
        return 0
    return min(limits(spec)[1], spec.replicas)


def plan(spec: DeploymentSpec, new: Size | None, old: Sequence[Size], *, has_old_pods: bool) -> Plan:
    """Return the next step; ``old`` has the oldest first.

    ``has_old_pods``: pods of old ReplicaSets exist that have not ended.
    """
    stay = Plan(None if new is None else new.replicas, tuple(size.replicas for size in old))
    if spec.paused or is_scaled(spec, [*old, *(() if new is None else (new,))]):
        return _scaled(spec, new, old)
    if spec.strategy.type == "Recreate":
        if any(stay.old):
            return Plan(stay.new, (0,) * len(old))
        return stay if has_old_pods else Plan(spec.replicas, stay.old)
    return _rolled(spec, new, old)


def is_scaled(spec: DeploymentSpec, sizes: Iterable[Size]) -> bool:
    """Return whether the Deployment was scaled since its ReplicaSets with pods were (isScalingEvent)."""
    return any(size.replicas and size.desired not in (None, spec.replicas) for size in sizes)


def most_replicas(spec: DeploymentSpec) -> int:
    """Return how many pods may exist during a rolling update."""
    return spec.replicas + (limits(spec)[0] if spec.strategy.type == "RollingUpdate" and spec.replicas else 0)


def _scaled(spec: DeploymentSpec, new: Size | None, old: Sequence[Size]) -> Plan:
    """Scale the only ReplicaSet with pods, or else the newest; in a rollout, all in proportion (scale)."""
    sizes = [*old, *(() if new is None else (new,))]
    having = [index for index, size in enumerate(sizes) if size.replicas]
    found = [size.replicas for size in sizes]
    if len(having) < 2:
        if sizes:
            found[having[0] if having else -1] = spec.replicas
    elif new is not None and new.replicas == new.available == new.desired == spec.replicas:
        found[:-1] = [0] * len(old)
    elif spec.strategy.type == "RollingUpdate":
        found = _in_proportion(spec, sizes)
    return Plan(None, tuple(found)) if new is None else Plan(found[-1], tuple(found[:-1]))


def _in_proportion(spec: DeploymentSpec, sizes: Sequence[Size]) -> list[int]:
    """Return the sizes for a new number of replicas; the largest gets what rounding leaves.

    Of equal ones, the newest grows first, and the oldest shrinks first. ``sizes`` has the oldest first.
    """
    most, found = most_replicas(spec), [size.replicas for size in sizes]
    total = sum(found)
    added = most - total
    order = sorted(range(len(sizes)), key=lambda index: (-sizes[index].replicas, -index if added > 0 else index))
    left = added
    for index in order:
        size = sizes[index]
        if size.replicas and left:
            share = _rounded(size.replicas * most, size.most or total) - size.replicas
            share = min(share, left) if added > 0 else max(share, left)
            found[index] += share
            left -= share
    found[order[0]] = max(0, found[order[0]] + left)
    return found


def _rounded(number: int, by: int) -> int:
    """Return a quotient rounded to the nearest integer, halves upwards."""
    return (2 * number + by) // (2 * by)


def _rolled(spec: DeploymentSpec, new: Size | None, old: Sequence[Size]) -> Plan:
    """Return one step of a rolling update: the new ReplicaSet grows, then the old ones shrink."""
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
    # Unavailable pods go first.
    healthier = _shrunk(replicas, [max(0, size.replicas - size.available) for size in old], most_fewer)
    spare = current.available + sum(size.available for size in old) - least
    return Plan(current.replicas, _shrunk(healthier, healthier, spare))


def _shrunk(replicas: Sequence[int], by: Sequence[int], most: int) -> tuple[int, ...]:
    """Return the sizes, each reduced by at most ``by``, and in total by ``most``; the first shrink first."""
    left = max(0, most)
    shrunk = []
    for size, fewer in zip(replicas, by, strict=True):
        step = min(size, fewer, left)
        left -= step
        shrunk.append(size - step)
    return tuple(shrunk)
