"""The controller of Deployments: a ReplicaSet for each template, and rollouts from the old ones to the new one.

Source: pkg/controller/deployment (sync.go, rolling.go, recreate.go, progress.go). The state of pods is taken from the
status of ReplicaSets.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from podium.api import budget_limits, selectors, times
from podium.api.meta import Raw
from podium.api.workloads import Deployment, DeploymentSpec, ReplicaSet, RollingUpdateDeployment
from podium.controllers.actions import Action, owned_object, versioned_patch
from podium.controllers.controller import IdleDeferral
from podium.controllers.workloads.owned_pods import OwnedPodChange, WorkloadObject, status_with
from podium.controllers.workloads.template_revisions import template_hash
from podium.controllers.workloads.workload_controller import WorkloadController
from podium.store.stored import condition_of, with_conditions

HASH_LABEL = "pod-template-hash"
"""Label of a ReplicaSet and its pods: their Deployment's template."""

REVISION = "deployment.kubernetes.io/revision"
"""Annotation of ReplicaSets and Deployments: the number of the template, highest for the newest."""

_HISTORY = "deployment.kubernetes.io/revision-history"
_DESIRED = "deployment.kubernetes.io/desired-replicas"
_MOST = "deployment.kubernetes.io/max-replicas"
# Annotations of a Deployment that its ReplicaSets do not get.
_NOT_COPIED = frozenset(
    {
        REVISION,
        _HISTORY,
        _DESIRED,
        _MOST,
        "deprecated.deployment.rollback.to",
        "kubectl.kubernetes.io/last-applied-configuration",
    }
)

_Workload = WorkloadObject[Deployment]
_Set = WorkloadObject[ReplicaSet]
_FAILURE = "ReplicaFailure"


class Deployments(WorkloadController[Deployment]):
    """Creates and scales ReplicaSets.

    Each step waits until the one before is observed, so that surge and unavailability stay within their limits even if
    watches skip steps.
    """

    watches = WorkloadController.watches | {"Deployment", "Pod", "ReplicaSet"}
    idle_deferral = IdleDeferral(frozenset(("Pod",)), ahead=watches - {"Pod"})

    def __init__(self, *, reports_all: bool = False, counts_terminating: bool = False) -> None:
        """Create it; with `reports_all`, it maintains the condition Progressing, and adopts and releases ReplicaSets.

        With `counts_terminating`, the status has the number of terminating pods.
        """
        adopts = (ReplicaSet,) if reports_all else ()
        super().__init__(Deployment, pod_owners=("ReplicaSet",), owns=ReplicaSet, adopts=adopts)
        self._reports_all = reports_all
        self._counts_terminating = counts_terminating
        # The Deployments (uids) with the strategy Recreate.
        self._recreating: set[str] = set()

    @property
    def is_idle(self) -> bool:
        """Return whether no Deployment has the strategy Recreate: no other one waits for pods."""
        return not self._recreating

    def _put(self, workload: _Workload) -> None:
        super()._put(workload)
        recreates = workload.object.spec.strategy.type == "Recreate"
        (self._recreating.add if recreates else self._recreating.discard)(workload.uid)

    def _remove(self, uid: str) -> None:
        super()._remove(uid)
        self._recreating.discard(uid)

    def _see_pod(self, change: OwnedPodChange, now: int) -> None:
        """Wake the Deployment of a pod if its strategy is Recreate, which waits for the end of pods."""
        pod = change.now.pod
        owner = pod.metadata.controller
        set_ = self._owned.named(f"{pod.metadata.namespace}/{owner.name}") if owner is not None else None
        parent = set_.object.metadata.controller if set_ is not None else None
        if parent is not None and parent.uid in self._recreating:
            self._queue.add(parent.uid)

    def _sync(self, workload: _Workload, now: int) -> list[Action]:
        sets: list[_Set] = sorted(
            (set_ for set_ in self._owned.of(workload.uid) if not set_.is_deleted),
            key=lambda set_: (set_.object.metadata.creation_timestamp or "", set_.object.metadata.name),
        )
        new = next((set_ for set_ in sets if _without_hash(set_.template) == workload.template), None)
        old = [set_ for set_ in sets if set_ is not new]
        collides = new is None and self._is_taken(workload)
        actions: list[Action] = []
        if not workload.is_deleted and not collides and self._expectations.are_met(workload.uid):
            actions += self._roll(workload, new, old, now)
        status = _status(workload, new, sets, now)
        if self._counts_terminating:
            status["terminatingReplicas"] = sum(set_.status.get("terminatingReplicas", 0) for set_ in sets)
        # The first condition comes with the ReplicaSet, or the refusal of its creation.
        is_begun = new is not None or bool(workload.conditions) or workload.uid in self._waits.refused
        if self._reports_all and is_begun and not workload.is_deleted:
            condition, late_ns = progress(workload, new, old, status, now)
            if condition not in status["conditions"]:
                status["conditions"] = with_conditions(status["conditions"], (condition,), now)
            if late_ns is not None:
                self._retry_times.append(late_ns)
        if collides:
            status["collisionCount"] = workload.object.status.collision_count + 1
        actions += self._write_status(workload, status)
        if not actions and new is not None and not workload.is_deleted:
            return _number(workload, new)
        return actions

    def _is_taken(self, workload: _Workload) -> bool:
        """Return whether the next ReplicaSet's name belongs to another template."""
        found = self._owned.named(f"{workload.object.key}-{_hash(workload)}")
        owner = None if found is None else found.object.metadata.controller
        if found is None or owner is None or owner.uid != workload.uid:
            return found is not None
        return _without_hash(found.template) != workload.template

    def _roll(self, workload: _Workload, new: _Set | None, old: list[_Set], now: int) -> list[Action]:
        pods = (pod.pod for set_ in old for pod in self._pods.of(set_.uid).all.values())
        has_old_pods = any(set_.object.status.replicas for set_ in old) or not all(pod.is_terminal for pod in pods)
        spec, revision = workload.object.spec, max(map(_revision, old), default=0) + 1
        current, sizes = None if new is None else _size(new), [_size(set_) for set_ in old]
        step = plan(spec, current, sizes, has_old_pods=has_old_pods)
        actions: list[Action] = []
        if new is not None:
            actions += _keep_alike(workload, new, revision) or self._scale(workload, new, step.new, now)
        elif step.new is not None and self._may_create(workload, now):
            actions.append(self._create_named(workload, _new_set(workload, step.new, revision), now))
        for set_, replicas in zip(old, step.old, strict=True):
            actions += self._scale(workload, set_, replicas, now)
        if not actions and is_scaled(spec, [*sizes, *(() if current is None else (current,))]):
            # All have their sizes.
            having = [set_ for set_ in (*old, *(() if new is None else (new,))) if set_.object.spec.replicas]
            patch: Raw = {"metadata": {"annotations": _scale_annotations(workload)}}
            return [versioned_patch(set_.object, patch, workload.label) for set_ in having]
        if not actions and new is not None and not any(set_.object.status.replicas for set_ in old):
            status, wanted = new.object.status, workload.object.spec.replicas
            if status.replicas == status.available_replicas == wanted:
                actions += self._forget_history(workload, old, now)
        return actions

    def _scale(self, workload: _Workload, set_: _Set, replicas: int | None, now: int) -> list[Action]:
        if replicas is None or replicas == set_.object.spec.replicas:
            return []
        self._expectations.expect(workload.uid, set_.uid, now, set_.object.metadata.generation)
        patch: Raw = {"metadata": {"annotations": _scale_annotations(workload)}, "spec": {"replicas": replicas}}
        return [versioned_patch(set_.object, patch, workload.label)]

    def _forget_history(self, workload: _Workload, old: list[_Set], now: int) -> list[Action]:
        """Delete the oldest ReplicaSets beyond the limit that have no pods."""
        surplus = len(old) - workload.object.spec.revision_history_limit
        actions: list[Action] = []
        for set_ in sorted(old, key=_revision)[: max(0, surplus)]:
            status, generation = set_.object.status, set_.object.metadata.generation
            if not status.replicas and not set_.object.spec.replicas and status.observed_generation >= generation:
                actions.append(self._delete(workload, set_.object, now, generation=-1))
        return actions


def _keep_alike(workload: _Workload, new: _Set, revision: int) -> list[Action]:
    """Update annotations and minReadySeconds of the current template's ReplicaSet."""
    known = new.object.metadata.annotations
    annotations = {name: text for name, text in _copied_annotations(workload).items() if known.get(name) != text}
    if _revision(new) < revision:
        annotations[REVISION] = str(revision)
        if REVISION in known:
            annotations[_HISTORY] = ",".join(filter(None, (known.get(_HISTORY), known[REVISION])))
    patch: Raw = {"metadata": {"annotations": annotations}} if annotations else {}
    seconds = workload.object.spec.min_ready_seconds
    if new.object.spec.min_ready_seconds != seconds:
        patch["spec"] = {"minReadySeconds": seconds}
    return [versioned_patch(new.object, patch, workload.label)] if patch else []


def _copied_annotations(workload: _Workload) -> dict[str, str]:
    """Return the annotations that ReplicaSets of a Deployment get, such as the cause of a change."""
    given = workload.object.metadata.annotations
    return {name: text for name, text in given.items() if name not in _NOT_COPIED}


def _scale_annotations(workload: _Workload) -> dict[str, str]:
    spec = workload.object.spec
    return {_DESIRED: str(spec.replicas), _MOST: str(most_replicas(spec))}


def _hash(workload: _Workload) -> str:
    collisions = workload.object.status.collision_count
    return template_hash(workload.template, str(collisions) if collisions else "")


def _new_set(workload: _Workload, replicas: int, revision: int) -> Raw:
    template, selector, meta = workload.template, workload.spec.get("selector", {}), workload.object.metadata
    hash_ = _hash(workload)
    hashed = {HASH_LABEL: hash_}
    labels = {**template.get("metadata", {}).get("labels", {}), **hashed}
    seconds = workload.object.spec.min_ready_seconds
    annotations = {**_copied_annotations(workload), **_scale_annotations(workload), REVISION: str(revision)}
    metadata = {"name": f"{meta.name}-{hash_}", "labels": labels, "annotations": annotations}
    spec = {
        "replicas": replicas,
        **({"minReadySeconds": seconds} if seconds else {}),
        "selector": {**selector, "matchLabels": {**selector.get("matchLabels", {}), **hashed}},
        "template": {**template, "metadata": {**template.get("metadata", {}), "labels": labels}},
    }
    return owned_object(workload.object, ReplicaSet, metadata, spec=spec)


def _without_hash(template: Raw) -> Raw:
    metadata = template.get("metadata", {})
    labels = metadata.get("labels", {})
    if HASH_LABEL not in labels:
        return template
    kept = {name: value for name, value in labels.items() if name != HASH_LABEL}
    return {**template, "metadata": {**metadata, "labels": kept}}


def _number(workload: _Workload, new: _Set) -> list[Action]:
    """Copy the revision to the Deployment, for `kubectl rollout undo`."""
    revision = new.object.metadata.annotations.get(REVISION, "")
    if not revision or workload.object.metadata.annotations.get(REVISION) == revision:
        return []
    return [versioned_patch(workload.object, {"metadata": {"annotations": {REVISION: revision}}}, workload.label)]


def _size(set_: _Set) -> Size:
    annotations = set_.object.metadata.annotations
    desired, most = (selectors.parse_int64(annotations.get(name, "")) for name in (_DESIRED, _MOST))
    return Size(set_.object.spec.replicas, set_.object.status.available_replicas, desired, most or 0)


def _revision(set_: _Set) -> int:
    return selectors.parse_int64(set_.object.metadata.annotations.get(REVISION, "0")) or 0


def _status(workload: _Workload, new: _Set | None, all_sets: list[_Set], now: int) -> Raw:
    sets = [set_.object for set_ in all_sets]
    available = sum(set_.status.available_replicas for set_ in sets)
    spec, conditions = workload.object.spec, workload.conditions
    most_unavailable = 0 if spec.strategy.type == "Recreate" else min(limits(spec)[1], spec.replicas)
    is_available = available >= spec.replicas - most_unavailable
    status, reason = ("True", "MinimumReplicasAvailable") if is_available else ("False", "MinimumReplicasUnavailable")
    known = condition_of(conditions, "Available")
    if (known.get("status"), known.get("reason")) != (status, reason):
        message = f"{available} of {spec.replicas} pods are available"
        condition = {"type": "Available", "status": status, "reason": reason, "message": message}
        conditions = with_conditions(conditions, (condition,), now)
    # A ReplicaSet whose creations are refused is a failure of the Deployment, the new one first (getReplicaFailures).
    of_sets = (condition_of(set_.conditions, _FAILURE) for set_ in sorted(all_sets, key=lambda set_: set_ is not new))
    failures = [{**one, "lastUpdateTime": one.get("lastTransitionTime")} for one in of_sets if one]
    conditions = [condition for condition in conditions if condition.get("type") != _FAILURE] + failures[:1]
    counts: Raw = {
        "observedGeneration": workload.object.metadata.generation,
        "replicas": sum(set_.status.replicas for set_ in sets),
        "updatedReplicas": new.object.status.replicas if new is not None else 0,
        "readyReplicas": sum(set_.status.ready_replicas for set_ in sets),
        "availableReplicas": available,
        # Values of another controller are removed.
        "terminatingReplicas": None,
        "unavailableReplicas": max(0, sum(set_.spec.replicas for set_ in sets) - available),
        "conditions": conditions,
    }
    return status_with(workload.status, counts)


class Size(Struct, frozen=True):
    """The wanted and available pods of a ReplicaSet.

    ``desired`` and ``most`` are the replicas of the Deployment, and its pods with the surge, when it was last scaled;
    None and 0 if unknown.
    """

    replicas: int
    available: int = 0
    desired: int | None = None
    most: int = 0


class RolloutPlan(Struct, frozen=True):
    """The wanted pods of the new ReplicaSet (None: not to be created yet) and of each old one."""

    new: int | None
    old: tuple[int, ...]


def limits(spec: DeploymentSpec) -> tuple[int, int]:
    """Return the maximum surge and the maximum of unavailable pods; not both 0."""
    rolling = spec.strategy.rolling_update or RollingUpdateDeployment()
    surge = budget_limits.pods_of_share(rolling.max_surge, spec.replicas)
    unavailable = budget_limits.pods_of_share(rolling.max_unavailable, spec.replicas, rounds_up=False)
    return surge, unavailable if surge or unavailable else 1


def plan(spec: DeploymentSpec, new: Size | None, old: Sequence[Size], *, has_old_pods: bool) -> RolloutPlan:
    """Return the next step; ``old`` has the oldest first.

    ``has_old_pods``: pods of old ReplicaSets exist that have not ended.
    """
    stay = RolloutPlan(None if new is None else new.replicas, tuple(size.replicas for size in old))
    if spec.paused or is_scaled(spec, [*old, *(() if new is None else (new,))]):
        return _scaled(spec, new, old)
    if spec.strategy.type == "Recreate":
        if any(stay.old):
            return RolloutPlan(stay.new, (0,) * len(old))
        return stay if has_old_pods else RolloutPlan(spec.replicas, stay.old)
    return _rolled(spec, new, old)


def is_scaled(spec: DeploymentSpec, sizes: Iterable[Size]) -> bool:
    """Return whether the Deployment was scaled since its ReplicaSets with pods were (isScalingEvent)."""
    return any(size.replicas and size.desired not in (None, spec.replicas) for size in sizes)


def most_replicas(spec: DeploymentSpec) -> int:
    """Return how many pods may exist during a rolling update."""
    return spec.replicas + (limits(spec)[0] if spec.strategy.type == "RollingUpdate" and spec.replicas else 0)


def _scaled(spec: DeploymentSpec, new: Size | None, old: Sequence[Size]) -> RolloutPlan:
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
    return RolloutPlan(None, tuple(found)) if new is None else RolloutPlan(found[-1], tuple(found[:-1]))


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
            # The quotient is rounded to the nearest integer, halves upwards.
            by = size.most or total
            share = (2 * size.replicas * most + by) // (2 * by) - size.replicas
            share = min(share, left) if added > 0 else max(share, left)
            found[index] += share
            left -= share
    found[order[0]] = max(0, found[order[0]] + left)
    return found


def _rolled(spec: DeploymentSpec, new: Size | None, old: Sequence[Size]) -> RolloutPlan:
    """Return one step of a rolling update: the new ReplicaSet grows, then the old ones shrink."""
    current = new or Size(0)
    replicas = tuple(size.replicas for size in old)
    surge, unavailable = limits(spec)
    total = current.replicas + sum(replicas)
    if current.replicas > spec.replicas:
        return RolloutPlan(spec.replicas, replicas)
    more = max(0, min(spec.replicas - current.replicas, spec.replicas + surge - total))
    if more or new is None:
        return RolloutPlan(current.replicas + more, replicas)
    least = spec.replicas - unavailable
    most_fewer = total - least - max(0, current.replicas - current.available)
    if most_fewer <= 0:
        return RolloutPlan(current.replicas, replicas)
    # Unavailable pods go first.
    healthier = _shrunk(replicas, [max(0, size.replicas - size.available) for size in old], most_fewer)
    spare = current.available + sum(size.available for size in old) - least
    return RolloutPlan(current.replicas, _shrunk(healthier, healthier, spare))


def _shrunk(replicas: Sequence[int], by: Sequence[int], most: int) -> tuple[int, ...]:
    """Return the sizes, each reduced by at most ``by``, and in total by ``most``; the first shrink first."""
    left = max(0, most)
    shrunk = []
    for size, fewer in zip(replicas, by, strict=True):
        step = min(size, fewer, left)
        left -= step
        shrunk.append(size - step)
    return tuple(shrunk)


PROGRESSING = "Progressing"
_AVAILABLE = "NewReplicaSetAvailable"
_PAUSED, _RESUMED = "DeploymentPaused", "DeploymentResumed"
_LATE = "ProgressDeadlineExceeded"
_DEFAULT_SECONDS, _NO_DEADLINE = 600, 2**31 - 1


def progress(workload: _Workload, new: _Set | None, old: list[_Set], after: Raw, now: int) -> tuple[Raw, int | None]:
    """Return the condition Progressing, and when the rollout would be late; ``after`` is the status to be written."""
    spec, before, name = workload.spec, workload.status, "" if new is None else new.object.metadata.name
    # A ReplicaSet that existed before has a history, or an earlier revision.
    history = () if new is None else new.object.metadata.annotations
    is_created = new is not None and _HISTORY not in history and _revision(new) > max(map(_revision, old), default=0)
    known = condition_of(before.get("conditions", ()), PROGRESSING)
    known_reason = known.get("reason")
    if spec.get("paused"):
        is_known = known_reason == _PAUSED
        return known if is_known else _condition("Unknown", _PAUSED, "Deployment is paused", now), None
    if known_reason == _PAUSED:
        known = _condition("Unknown", _RESUMED, "Deployment is resumed", now)
    is_about_this = bool(known) and f'"{name}"' in str(known.get("message"))
    count = {field: _count(after, field) for field in ("replicas", "updatedReplicas", "availableReplicas")}
    if known_reason == _AVAILABLE and is_about_this and count["replicas"] == count["updatedReplicas"]:
        return known, None
    what = f'ReplicaSet "{name}"'
    if name and set(count.values()) == {spec.get("replicas", 1)}:
        return _condition("True", _AVAILABLE, f"{what} has successfully progressed.", now), None
    found = known
    if is_created and not is_about_this:
        found = _condition("True", "NewReplicaSetCreated", f'Created new replica set "{name}"', now)
    elif name and not known:
        found = _condition("True", "FoundNewReplicaSet", f'Found new replica set "{name}"', now)
    elif not known or _has_progressed(before, after):
        found = _condition("True", "ReplicaSetUpdated", f"{what} is progressing." if name else "", now)
    seconds = spec.get("progressDeadlineSeconds", _DEFAULT_SECONDS)
    if found["reason"] == _LATE or seconds == _NO_DEADLINE:
        return found, None
    updated_ns = times.time_of(found.get("lastUpdateTime") or found.get("lastTransitionTime"))
    late_ns = (now if updated_ns is None else updated_ns) + seconds * times.SECOND
    if now < late_ns:
        return found, late_ns
    return _condition("False", _LATE, f"{what} has timed out progressing.", now), None


def _condition(status: str, reason: str, message: str, now: int) -> Raw:
    fields = {"type": PROGRESSING, "status": status, "reason": reason, "message": message}
    return {**fields, "lastUpdateTime": times.format_time(now)}


def _count(status: Raw, name: str) -> int:
    value = status.get(name)
    return value if isinstance(value, int) else 0


def _has_progressed(before: Raw, after: Raw) -> bool:
    old = [_count(status, "replicas") - _count(status, "updatedReplicas") for status in (before, after)]
    grown = ("updatedReplicas", "readyReplicas", "availableReplicas")
    return old[1] < old[0] or any(_count(after, name) > _count(before, name) for name in grown)
