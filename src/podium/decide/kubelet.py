"""A kubelet's decisions: admission, evictions for critical pods and under memory pressure, and shares of CPU.

Source: pkg/kubelet/lifecycle/predicate.go; AdmissionCheck in pkg/scheduler/eventhandlers.go; Admit in
pkg/kubelet/eviction/eviction_manager.go; pkg/kubelet/types/pod_update.go; pkg/kubelet/preemption/preemption.go;
pkg/kubelet/eviction/helpers.go (rankMemoryPressure, evictionMessage) and pod-preemption.md ("Preemption - Eviction
workflow") for the order of evictions; the kernel's fair scheduler by cgroup weight with pkg/kubelet/cm/helpers_linux.go
(MilliCPUToShares); priorityclass-preemption-policies.md for pods that are not preemptible.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Literal, get_args

import msgspec

from podium.api.meta import Raw, objects_at
from podium.api.node import Node, Taint
from podium.api.pod import MIRROR_ANNOTATION, SOURCE_ANNOTATION, Pod, PodSpec
from podium.api.policy import NEVER_PREEMPTED, preemption_policy
from podium.api.quantity import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, format_quantity, is_extended
from podium.api.resource_requests import QOSClass, effective_spec, pod_requests, qos_class, requests_alike
from podium.api.selectors import compile_node_selector, node_selector_matches
from podium.cluster.pod_classes import ALL_COUNTS, CountingRules, HostPort, host_ports
from podium.cluster.view import tolerated

MEMORY_PRESSURE_TAINT = Taint(key="node.kubernetes.io/memory-pressure", effect="NoSchedule")

_OS_LABEL = "kubernetes.io/os"
# Upstream checks these first; other resources follow by name.
_ORDER = (PODS, CPU, MEMORY, EPHEMERAL_STORAGE)
# The maximum number of kinds of pods in the cache, by the identity of the containers that they share.
_KEPT = 1_024
_KNOWN: dict[tuple[int, bool], tuple[PodSpec, Holding]] = {}


class Holding(msgspec.Struct, frozen=True):
    """The resources that a pod holds on its node (cpu in milli, one of `pods`), without zeros, and its host ports."""

    amounts: Mapping[str, int]
    ports: tuple[HostPort, ...]

    @classmethod
    def of(cls, pod: Pod, rules: CountingRules = ALL_COUNTS, *, as_allocated: bool = False) -> Holding:
        """Return what a pod holds.

        For one resized in place, the maximum of its requested, allocated and used resources; ``as_allocated``, without
        those that it requests.
        """
        spec = pod.spec
        if rules.resizes:
            spec = effective_spec(pod, resizes_pods=rules.pod_resizes, as_allocated=as_allocated)
        key = id(spec.containers), rules.sidecar_ports
        found = _KNOWN.get(key)
        if found is not None and requests_alike(spec, found[0]) and spec.host_network is found[0].host_network:
            return found[1]
        amounts = {name: amount for name, amount in pod_requests(spec).items() if amount}
        holding = cls({**amounts, PODS: 1}, host_ports(pod.spec, with_sidecars=rules.sidecar_ports))
        if len(_KNOWN) >= _KEPT:
            del _KNOWN[next(iter(_KNOWN))]
        _KNOWN[key] = spec, holding
        return holding


def resize_order(pod: Pod) -> tuple[int, int, str]:
    """Return the place of a pod among those with a deferred resize (sortPendingResizes, with the key for the time)."""
    return -pod.priority, get_args(QOSClass).index(qos_class(pod.spec)), pod.key


class HeldResources:
    """The resources that some pods hold together, as they come and go."""

    def __init__(self, holdings: Iterable[Holding] = ()) -> None:
        self.amounts: dict[str, int] = {}
        self.ports: dict[HostPort, int] = {}
        """The number of pods that hold each port."""
        for holding in holdings:
            self.add(holding)

    def add(self, holding: Holding) -> None:
        amounts = self.amounts
        for name, amount in holding.amounts.items():
            amounts[name] = amounts.get(name, 0) + amount
        for port in holding.ports:
            self.ports[port] = self.ports.get(port, 0) + 1

    def remove(self, holding: Holding) -> None:
        amounts = self.amounts
        for name, amount in holding.amounts.items():
            if left := amounts[name] - amount:
                amounts[name] = left
            else:
                del amounts[name]
        for port in holding.ports:
            self.ports[port] -= 1
            if not self.ports[port]:
                del self.ports[port]


class Refusal(msgspec.Struct, frozen=True):
    """Why a pod is rejected, as in its status. ``lacking`` is the missing amount of a resource."""

    reason: str
    message: str
    lacking: tuple[str, int] | None = None


UNEXPECTED = Refusal("UnexpectedAdmissionError", "Allocate failed due to rpc error, which is unexpected")
"""The rejection of a pod that the kubelet had admitted before."""


_LABEL_DIFFERS = Refusal(
    "PodOSSelectorNodeLabelDoesNotMatch", f"Failed to admit pod as the `{_OS_LABEL}` label doesn't match node label"
)
_OS_DIFFERS = Refusal("PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS")
_GROUPS_UNSUPPORTED = Refusal(
    "SupplementalGroupsPolicyNotSupported", "SupplementalGroupsPolicy=Strict is not supported in this node"
)


def refusals(
    pod: Pod,
    holding: Holding,
    node: Node,
    allocatable: Mapping[str, int],
    others: HeldResources,
    *,
    checks_groups: bool = True,
) -> list[Refusal]:
    """Return why ``pod`` may not run on ``node`` beside ``others``, the decisive reason first; empty if it may.

    The kubelet does not count extended resources that the node does not have, or that devices of the pod's claim stand
    for. Of taints, only NoExecute ones reject a pod, and none rejects a static pod. Unschedulable nodes admit pods.
    With ``checks_groups`` the node must support the pod's supplementalGroupsPolicy.
    """
    spec, mappings = pod.spec, objects_at(pod.status.extended_resource_claim_status, "requestMappings")
    claimed = {mapping.get("resourceName") for mapping in mappings}
    counted = {name: amount for name, amount in holding.amounts.items() if name not in claimed}
    found = [*_unsupported(pod, node, checks_groups), *_shortages(counted, allocatable, others.amounts)]
    if (spec.node_selector or spec.affinity is not None) and not _selects(spec, node):
        found.append(_failed("NodeAffinity", "node(s) didn't match Pod's node affinity/selector"))
    if spec.node_name and spec.node_name != node.metadata.name:
        found.append(_failed("NodeName", "node(s) didn't match the requested node name"))
    if holding.ports and any(held.conflicts(wanted) for held in others.ports for wanted in holding.ports):
        found.append(_failed("NodePorts", "node(s) didn't have free ports for the requested pod ports"))
    taints = () if is_static(pod) else node.spec.taints
    if any(taint.effect == "NoExecute" and not tolerated(spec.tolerations, taint) for taint in taints):
        found.append(_failed("TaintToleration", "node(s) had taints that the pod didn't tolerate"))
    return found


def pressure_refusal(pod: Pod, conditions: Sequence[str]) -> Refusal | None:
    """Return why a node under pressure rejects the pod; None if it does not.

    ``conditions`` are the active ones of MemoryPressure, DiskPressure and PIDPressure. A node with memory pressure
    alone rejects only BestEffort pods. Critical pods are always admitted.
    """
    if not conditions or is_critical(pod):
        return None
    if list(conditions) == ["MemoryPressure"] and (
        qos_class(pod.spec) != "BestEffort" or tolerated(pod.spec.tolerations, MEMORY_PRESSURE_TAINT)
    ):
        return None
    return Refusal("Evicted", f"The node had condition: [{' '.join(conditions)}].")


def _unsupported(pod: Pod, node: Node, checks_groups: bool) -> Iterator[Refusal]:
    """Yield why pods like this one can never run on the node."""
    spec, context = pod.spec, pod.spec.security_context
    # The node's operating system is linux by default.
    system = node.metadata.labels.get(_OS_LABEL, "linux")
    if pod.metadata.labels.get(_OS_LABEL, system) != system:
        yield _LABEL_DIFFERS
    if spec.os.get("name", system) != system:
        yield _OS_DIFFERS
    is_strict = context is not None and context.supplemental_groups_policy == "Strict"
    if checks_groups and is_strict and not node.status.features.supplemental_groups_policy:
        yield _GROUPS_UNSUPPORTED


def _shortages(amounts: Mapping[str, int], allocatable: Mapping[str, int], used: Mapping[str, int]) -> list[Refusal]:
    lacking: list[str] = []
    for name, requested in amounts.items():
        if used.get(name, 0) + requested > allocatable.get(name, 0) and (name in allocatable or not is_extended(name)):
            lacking.append(name)
    found = []
    for name in sorted(lacking, key=_rank) if lacking else ():
        wanted, held, has = amounts[name], used.get(name, 0), allocatable.get(name, 0)
        message = f"Node didn't have enough resource: {name}, requested: {wanted}, used: {held}, capacity: {has}"
        found.append(Refusal(f"OutOf{name}", message, (name, held + wanted - has)))
    return found


def _rank(name: str) -> tuple[int, str]:
    return (_ORDER.index(name), "") if name in _ORDER else (len(_ORDER), name)


def _selects(spec: PodSpec, node: Node) -> bool:
    labels = node.metadata.labels
    if spec.node_selector and any(labels.get(key) != value for key, value in spec.node_selector.items()):
        return False
    required = spec.node_affinity.required
    return required is None or node_selector_matches(compile_node_selector(required), labels, node.metadata.name)


def _failed(name: str, why: str) -> Refusal:
    return Refusal(name, f"Predicate {name} failed: {why}")


CRITICAL_PRIORITY = 2_000_000_000
"""Pods of this priority and above are critical."""


def is_static(pod: Pod) -> bool:
    """Return whether the pod is a static pod of the kubelet or the mirror of one."""
    annotations = pod.metadata.annotations
    return MIRROR_ANNOTATION in annotations or annotations.get(SOURCE_ANNOTATION, "api") != "api"


def is_critical(pod: Pod) -> bool:
    """Return whether the kubelet makes room for the pod and never evicts it."""
    return is_static(pod) or pod.priority >= CRITICAL_PRIORITY


class EvictablePod(msgspec.Struct, frozen=True):
    """A pod that may have to make room, and its requests by resource."""

    pod: Pod
    amounts: Mapping[str, int]


def make_room(
    preemptor: Pod, holders: Iterable[EvictablePod], lacking: Mapping[str, int], *, honors_policy: bool = True
) -> list[Pod] | Refusal:
    """Return the pods to evict so that the ``lacking`` amounts become free, or why there are not enough.

    Guaranteed pods are evicted only for what Burstable and BestEffort ones cannot free, Burstable ones only for what
    BestEffort ones cannot. Within a class the pod that frees most is evicted first; of equals, the smaller one. With
    ``honors_policy`` pods that are not preemptible are never evicted.
    """
    classes: dict[str, list[EvictablePod]] = {"BestEffort": [], "Burstable": [], "Guaranteed": []}
    for holder in holders:
        is_spared = honors_policy and preemption_policy(holder.pod) in NEVER_PREEMPTED
        outranks = preemptor.priority > holder.pod.priority or (is_critical(preemptor) and not is_critical(holder.pod))
        if outranks and not is_spared:
            classes[qos_class(holder.pod.spec)].append(holder)
    best_effort, burstable, guaranteed = classes.values()
    if short := _still_lacking(lacking, [*best_effort, *burstable, *guaranteed]):
        missing = "".join(f"(res: {name}, q: {amount}), " for name, amount in short.items())
        why = "preemption: error finding a set of pods to preempt: no set of running pods found to reclaim resources"
        message = f"Unexpected error while attempting to recover from admission failure: {why}: [{missing}]"
        return Refusal(UNEXPECTED.reason, message)
    chosen_guaranteed = _nearest(guaranteed, _still_lacking(lacking, [*best_effort, *burstable]))
    chosen_burstable = _nearest(burstable, _still_lacking(lacking, [*best_effort, *chosen_guaranteed]))
    chosen_best_effort = _nearest(best_effort, _still_lacking(lacking, [*chosen_burstable, *chosen_guaranteed]))
    return [holder.pod for holder in (*chosen_best_effort, *chosen_burstable, *chosen_guaranteed)]


def _still_lacking(lacking: Mapping[str, int], holders: Sequence[EvictablePod]) -> dict[str, int]:
    """Return the amounts that are still lacking without the holders."""
    left = {name: amount - sum(holder.amounts.get(name, 0) for holder in holders) for name, amount in lacking.items()}
    return {name: amount for name, amount in left.items() if amount > 0}


def _nearest(holders: Sequence[EvictablePod], lacking: Mapping[str, int]) -> list[EvictablePod]:
    """Return the holders that together free what is lacking; they must suffice."""
    left, chosen, rest = dict(lacking), list[EvictablePod](), list(holders)
    while left:
        best = min(rest, key=lambda holder: _distance(holder, left))
        rest.remove(best)
        chosen.append(best)
        left = _still_lacking(left, [best])
    return chosen


def _distance(holder: EvictablePod, lacking: Mapping[str, int]) -> tuple[float, int, int, str]:
    """Return how far a holder falls short of what is lacking, with equal weights of resources; then its size."""
    shares = ((amount - holder.amounts.get(name, 0)) / amount for name, amount in sorted(lacking.items()))
    distance = sum(max(0.0, share) ** 2 for share in shares)
    return distance, holder.amounts.get(MEMORY, 0), holder.amounts.get(CPU, 0), holder.pod.key


EvictionOrder = Literal["BytesOverRequest", "PercentageOfRequest"]
"""The order of pods of one priority: by the bytes they use beyond their request, or by the percentage."""


class MemoryUse(msgspec.Struct, frozen=True):
    """A running pod, and the bytes that it uses and requests."""

    pod: Pod
    used: int
    requested: int


def memory_ranking(uses: Iterable[MemoryUse], order: EvictionOrder = "BytesOverRequest") -> list[MemoryUse]:
    """Return the pods that may be evicted, in order.

    Pods that use more than they request come first; then pods of lower priority; then those with the largest excess, in
    bytes or in proportion to the request; then by key. Critical pods are never evicted. In proportion, usage without a
    request exceeds any other; of two such pods the one that uses more comes first.
    """
    place = _place if order == "BytesOverRequest" else _place_in_proportion
    return sorted((use for use in uses if not is_critical(use.pod)), key=place)


def eviction_message(use: MemoryUse, threshold_bytes: int, available_bytes: int) -> str:
    """Return the message in an evicted pod's status."""
    threshold, available = (format_quantity(amount, MEMORY) for amount in (threshold_bytes, available_bytes))
    message = f"The node was low on resource: {MEMORY}. Threshold quantity: {threshold}, available: {available}."
    if use.used <= use.requested:
        return message
    used, requested = (format_quantity(amount, MEMORY) for amount in (use.used, use.requested))
    names = ", ".join(container.name for container in use.pod.spec.containers)
    return f"{message} Container {names} was using {used}, request is {requested}, has larger consumption of {MEMORY}."


def _place_in_proportion(use: MemoryUse) -> tuple[bool, int, bool, Fraction, int, str]:
    is_more, priority, beyond, key = _place(use)
    share = Fraction(use.used, use.requested) if use.requested else Fraction(0)
    return is_more, priority, bool(use.requested), -share, beyond, key


def _place(use: MemoryUse) -> tuple[bool, int, int, str]:
    return use.used <= use.requested, use.pod.priority, use.requested - use.used, use.pod.key


_SHARES_PER_CPU = 1_024
_LEAST_SHARES = 2


class CPUWant(msgspec.Struct, frozen=True):
    """The CPU that a pod would use alone on a node, its request, and its limit (None for no limit)."""

    wanted_milli: int
    requested_milli: int
    limit_milli: int | None = None

    @property
    def shares(self) -> int:
        """Its weight: 1024 per requested CPU, and at least 2."""
        return max(self.requested_milli * _SHARES_PER_CPU // 1_000, _LEAST_SHARES)

    @property
    def usable_milli(self) -> int:
        """The CPU that it would use alone on a node, within its limit."""
        return self.wanted_milli if self.limit_milli is None else min(self.wanted_milli, self.limit_milli)


def shared_cpu(wants: Sequence[CPUWant], capacity_milli: int) -> list[int]:
    """Return the CPU of each pod: all that it wants if there is enough, else by weight; unused shares go to the others.

    Rounding favors the pods that are listed last.
    """
    usable = [want.usable_milli for want in wants]
    if sum(usable) <= capacity_milli:
        return usable
    left, shares = max(capacity_milli, 0), sum(want.shares for want in wants)
    got = [0] * len(wants)
    # The pod that wants least for its weight is satisfied first.
    for index in sorted(range(len(wants)), key=lambda index: (usable[index] / wants[index].shares, index)):
        got[index] = min(usable[index], left * wants[index].shares // shares)
        left -= got[index]
        shares -= wants[index].shares
    return got


def cpu_pressure(want: CPUWant, got_milli: int) -> float:
    """Return the share of time in which a pod is runnable without a CPU (pressure stall information)."""
    return (want.wanted_milli - got_milli) / want.wanted_milli if want.wanted_milli > got_milli else 0.0


SAFE_LOCAL_VOLUMES = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
"""Annotation of a pod: the names of volumes that it can lose, separated by commas."""


def has_empty_dir(pod: Raw) -> bool:
    """Return whether the pod has an emptyDir volume of any medium (kubectl pkg/drain/filters.go, hasLocalStorage).

    Typed pods leave volume sources out, so that the wire form is read.
    """
    return any(volume.get("emptyDir") is not None for volume in objects_at(pod, "spec", "volumes"))


def has_local_storage(pod: Raw) -> bool:
    """Return whether data on the node's disk would be lost: a hostPath, or an emptyDir that is not in memory.

    Volumes that the pod can lose, by its annotation, do not count.

    Source: autoscaler cluster-autoscaler/simulator/drainability/rules/localstorage.
    """
    annotations = pod.get("metadata", {}).get("annotations") or {}
    safe = str(annotations.get(SAFE_LOCAL_VOLUMES, "")).split(",")
    return any(_is_local(volume) and volume.get("name") not in safe for volume in objects_at(pod, "spec", "volumes"))


def _is_local(volume: Raw) -> bool:
    empty_dir = volume.get("emptyDir")
    return volume.get("hostPath") is not None or (empty_dir is not None and empty_dir.get("medium") != "Memory")
