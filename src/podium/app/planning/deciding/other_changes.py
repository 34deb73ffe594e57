"""Changes of neither nodes nor requests that may let pods in: claims, priorities, policies, caps on disruptions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import msgspec

from podium.api.disruption_policy import DisruptionPolicy
from podium.api.meta import ObjectMeta
from podium.api.pod import Pod
from podium.api.policy import NEVER_PREEMPTS, PriorityClass
from podium.api.storage import (
    ClaimReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
    PersistentVolumeSpec,
)
from podium.api.volume_annotations import BIND_COMPLETED
from podium.app.planning.deciding.causes import CAPPED, TURNED_DOWN, Blocked
from podium.app.planning.deciding.change import Change
from podium.app.planning.deciding.decisions import Decisions
from podium.app.planning.deciding.fates import kind_of

_PREEMPTS = "PreemptLowerPriority"
_MOST_CLASSES = 3
MOST_PREEMPTING = 500
"""So many pods of a workload are let preempt at most, to see what another priority would do."""


def bound_claims(decisions: Decisions, waiting: Sequence[Blocked]) -> Iterator[Change]:
    """The claims that pods wait for, each bound to a volume that any node reaches."""
    missing: dict[str, list[Blocked]] = {}
    claims = decisions.cluster.storage.claims
    for blocked in waiting:
        if blocked.before is None or blocked.before.sort != TURNED_DOWN:
            continue
        pod = blocked.pods[0]
        for name in pod.pod_class.claims:
            key = f"{pod.namespace}/{name}"
            known = claims.get(key)
            if known is None or known.status.phase != "Bound":
                missing.setdefault(key, []).append(blocked)
    for key, held in sorted(missing.items()):
        what = "created, and bound" if key not in claims else "bound"
        kinds = frozenset(kind_of(blocked.pods[0]) for blocked in held)
        text = f"PersistentVolumeClaim {key} {what} to a volume"
        yield Change("claim", text, partial(_bind, key=key), kinds=kinds, objects=2)


def more_important(decisions: Decisions, waiting: Sequence[Blocked]) -> Iterator[Change]:
    """For each workload with pods that wait, the next higher priority classes; then they may preempt.

    The class is that of the workload's other pods, too, which the waiting ones preempt then no more than before.
    """
    by_workload: dict[str, list[Blocked]] = {}
    for blocked in waiting:
        if blocked.before is None:
            by_workload.setdefault(decisions.workloads.whose(blocked.pods), []).append(blocked)
    classes = sorted(
        (
            item
            for item in decisions.objects
            if isinstance(item, PriorityClass) and item.preemption_policy not in NEVER_PREEMPTS
        ),
        key=lambda item: (item.value, item.metadata.name),
    )
    for workload, held in by_workload.items():
        if sum(len(blocked.pods) for blocked in held) > MOST_PREEMPTING:
            continue
        kinds = frozenset(kind_of(blocked.pods[0]) for blocked in held)
        pod = held[0].pods[0]
        if pod.preemption_policy in NEVER_PREEMPTS:
            text = f"preemptionPolicy {_PREEMPTS} for {workload}"
            yield Change("policy", text, to_pod=_willing, kinds=kinds, preempts=True)
        higher = [item for item in classes if item.value > pod.priority]
        for item in higher[:_MOST_CLASSES]:
            text = f"priorityClassName {item.metadata.name} ({item.value}) for {workload}"
            raised = partial(_raise, workload=workload, wanted=item)
            to_pod = partial(_of_class, wanted=item)
            written = partial(_raised_pods, workload=workload, wanted=item)
            yield Change("priority", text, raised, to_pod, kinds, preempts=True, written=written)


def uncapped(decisions: Decisions, waiting: Sequence[Blocked]) -> Iterator[Change]:
    """The caps on schedulers' disruptions lifted, where preemptions wait for them."""
    held = [blocked for blocked in waiting if blocked.before is not None and blocked.before.sort == CAPPED]
    policy = next((item for item in decisions.objects if isinstance(item, DisruptionPolicy)), None)
    if held and policy is not None:
        kinds = frozenset(kind_of(blocked.pods[0]) for blocked in held)
        text = f"DisruptionPolicy {policy.metadata.name} without a cap on schedulers"
        lifted = (msgspec.structs.replace(policy, spec=msgspec.structs.replace(policy.spec, caps=())),)
        lift = partial(_lift, policy=policy)
        yield Change("cap", text, lift, kinds=kinds, preempts=True, written=lambda _: lifted)


def _bind(decisions: Decisions, key: str) -> None:
    """Suppose that the claim is there, and bound to a volume of its own."""
    namespace, _, name = key.partition("/")
    volume = f"plan-volume-{namespace}-{name}"
    known = decisions.cluster.storage.claims.get(key)
    meta = ObjectMeta(name=name, namespace=namespace) if known is None else known.metadata
    spec = PersistentVolumeClaimSpec(access_modes=("ReadWriteOnce",)) if known is None else known.spec
    reference = ClaimReference(namespace=namespace, name=name, uid=meta.uid)
    decisions.put(
        PersistentVolume(
            metadata=ObjectMeta(name=volume),
            spec=PersistentVolumeSpec(
                access_modes=spec.access_modes,
                storage_class_name=spec.storage_class_name or "",
                volume_mode=spec.volume_mode,
                claim_ref=reference,
            ),
        )
    )
    decisions.put(
        PersistentVolumeClaim(
            metadata=msgspec.structs.replace(meta, annotations={**meta.annotations, BIND_COMPLETED: "yes"}),
            spec=msgspec.structs.replace(spec, volume_name=volume),
            status=PersistentVolumeClaimStatus(phase="Bound"),
        )
    )


def _lift(decisions: Decisions, policy: DisruptionPolicy) -> None:
    caps = decisions.cluster.caps
    before = dict(caps.known())
    caps.observe(None)

    def restore() -> None:
        caps.observe(policy)
        caps.assume(before)

    decisions.scratch.taken_back_by(restore)


def _willing(pod: Pod) -> Pod:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, preemption_policy=_PREEMPTS))


def _raise(decisions: Decisions, workload: str, wanted: PriorityClass) -> None:
    for pod in decisions.workloads.placed(workload):
        if pod.priority < wanted.value:
            decisions.scratch.replace_pod(msgspec.structs.replace(pod, priority=wanted.value))


def _raised_pods(decisions: Decisions, workload: str, wanted: PriorityClass) -> list[Pod]:
    """The workload's pods that have a node, as they would be written."""
    records = (record for record in decisions.workloads.placed(workload) if record.priority < wanted.value)
    return [_of_class(decisions.pods[record.key], wanted) for record in records if record.key in decisions.pods]


def _of_class(pod: Pod, wanted: PriorityClass) -> Pod:
    spec = msgspec.structs.replace(
        pod.spec,
        priority=wanted.value,
        priority_class_name=wanted.metadata.name,
        preemption_policy=wanted.preemption_policy,
    )
    return msgspec.structs.replace(pod, spec=spec)
