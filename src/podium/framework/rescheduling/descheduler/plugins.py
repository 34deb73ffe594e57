"""The plugins of the descheduler that have a counterpart: what their arguments come to.

Source: kubernetes-sigs/descheduler, pkg/framework/plugins/*/types.go, README.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from podium.api.errors import InputError, field_path
from podium.framework.rescheduling.descheduler.conversion import Conversion, Namespaces, read_known
from podium.framework.rescheduling.settings import Limits
from podium.framework.rescheduling.written_scope import WrittenSelector
from podium.framework.settings.strict import Strict

_Count = Annotated[int, Meta(ge=0, le=2**31 - 1)]
_Thresholds = dict[str, float]

_ANYWHERE = "a pod is moved only where that is better for it or for others, and where it has somewhere to go"


class _Filtered(Strict, frozen=True, kw_only=True):
    """What most plugins have: which pods they look at."""

    namespaces: Namespaces | None = None
    label_selector: WrittenSelector | None = None


class _RemoveDuplicates(Strict, frozen=True, kw_only=True):
    namespaces: Namespaces | None = None
    exclude_owner_kinds: tuple[str, ...] = ()


class _MetricsUtilization(Strict, frozen=True, kw_only=True):
    metrics_server: bool = False
    source: str = ""
    prometheus: dict[str, Any] = msgspec.field(default_factory=dict)


class _EvictionLimits(Strict, frozen=True, kw_only=True):
    node: _Count | None = None
    namespace: _Count | None = None
    total: _Count | None = None


class _Utilization(Strict, frozen=True, kw_only=True):
    """What both plugins of node utilization have."""

    thresholds: _Thresholds = msgspec.field(default_factory=dict)
    metrics_utilization: _MetricsUtilization | None = None
    evictable_namespaces: Namespaces | None = None
    eviction_limits: _EvictionLimits = _EvictionLimits()


class _LowNodeUtilization(_Utilization, frozen=True, kw_only=True):
    target_thresholds: _Thresholds = msgspec.field(default_factory=dict)
    use_deviation_thresholds: bool = False
    number_of_nodes: _Count = 0


class _NodeAffinity(_Filtered, frozen=True, kw_only=True):
    node_affinity_type: tuple[
        Literal["requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"],
        ...,
    ] = ()


class _NodeTaints(_Filtered, frozen=True, kw_only=True):
    include_prefer_no_schedule: bool = False


class _TopologySpread(_Filtered, frozen=True, kw_only=True):
    constraints: tuple[Literal["DoNotSchedule", "ScheduleAnyway"], ...] = ("DoNotSchedule",)
    include_soft_constraints: bool = False
    topology_balance_node_fit: bool = True


class _TooManyRestarts(_Filtered, frozen=True, kw_only=True):
    pod_restart_threshold: Annotated[int, Meta(ge=1, le=2**31 - 1)] | None = None


class _PodLifeTime(_Filtered, frozen=True, kw_only=True):
    max_pod_life_time_seconds: Annotated[int, Meta(ge=1, le=2**31 - 1)] | None = None


def _filtered(conversion: Conversion, args: _Filtered) -> None:
    conversion.namespaces.append(args.namespaces)
    conversion.selectors.append(args.label_selector)


def _duplicates(conversion: Conversion, plugin: str, raw: Mapping[str, Any]) -> None:
    args = read_known(conversion, plugin, raw, _RemoveDuplicates)
    conversion.namespaces.append(args.namespaces)
    conversion.add("SpreadDuplicates", {"excludeOwnerKinds": list(args.exclude_owner_kinds)})


def _low(conversion: Conversion, plugin: str, raw: Mapping[str, Any]) -> None:
    args = read_known(conversion, plugin, raw, _LowNodeUtilization)
    made: dict[str, Any] = {
        "useDeviationThresholds": args.use_deviation_thresholds,
        "numberOfNodes": args.number_of_nodes,
        "useMetrics": _uses_metrics(conversion, plugin, args),
    }
    if args.thresholds or args.target_thresholds:
        made |= {"thresholds": args.thresholds, "targetThresholds": args.target_thresholds}
    _check_percentages(args.target_thresholds, ".targetThresholds")
    _utilization(conversion, args)
    conversion.add("MoveToUnderusedNodes", made)


def _high(conversion: Conversion, plugin: str, raw: Mapping[str, Any]) -> None:
    args = read_known(conversion, plugin, raw, _Utilization)
    least = min(args.thresholds.values(), default=50.0)
    if len(set(args.thresholds.values())) > 1:
        conversion.note(plugin, f"the lowest of them, {least:g} %, counts for all resources", "thresholds")
    if _uses_metrics(conversion, plugin, args):
        conversion.note(plugin, "nodes are freed by what is requested, not by what is used", "metricsUtilization")
    _utilization(conversion, args)
    conversion.add("Consolidate", {"utilizationThreshold": least / 100, "forWaitingPods": False})


def _utilization(conversion: Conversion, args: _Utilization) -> None:
    _check_percentages(args.thresholds, ".thresholds")
    conversion.namespaces.append(args.evictable_namespaces)
    limits = args.eviction_limits
    conversion.limits.append(Limits(total=limits.total, node=limits.node, namespace=limits.namespace))


def _check_percentages(thresholds: _Thresholds, path: str) -> None:
    for resource, percentage in thresholds.items():
        if not 0 <= percentage <= 100:
            raise InputError(f"{percentage:g} is not a percentage from 0 to 100", path=field_path(path, resource))


def _uses_metrics(conversion: Conversion, plugin: str, args: _Utilization) -> bool:
    metrics = args.metrics_utilization
    if metrics is None:
        return False
    if metrics.prometheus or metrics.source == "Prometheus":
        conversion.note(plugin, "no queries are asked of Prometheus", "metricsUtilization")
        return False
    return metrics.metrics_server or metrics.source == "KubernetesMetrics"


def _anti_affinity(conversion: Conversion, plugin: str, raw: Mapping[str, Any]) -> None:
    _filtered(conversion, read_known(conversion, plugin, raw, _Filtered))
    conversion.add("RepairViolations")


def _node_affinity(conversion: Conversion, plugin: str, raw: Mapping[str, Any]) -> None:
    args = read_known(conversion, plugin, raw, _NodeAffinity)
    _filtered(conversion, args)
    if "requiredDuringSchedulingIgnoredDuringExecution" in args.node_affinity_type:
        conversion.add("RepairViolations")
    if "preferredDuringSchedulingIgnoredDuringExecution" in args.node_affinity_type:
        _prefer(conversion, "nodeAffinity")


def _node_taints(conversion: Conversion, plugin: str, raw: Mapping[str, Any]) -> None:
    args = read_known(conversion, plugin, raw, _NodeTaints)
    _filtered(conversion, args)
    conversion.add("RepairViolations")
    if args.include_prefer_no_schedule:
        _prefer(conversion, "taints")


def _topology_spread(conversion: Conversion, plugin: str, raw: Mapping[str, Any]) -> None:
    args = read_known(conversion, plugin, raw, _TopologySpread)
    _filtered(conversion, args)
    if "DoNotSchedule" in args.constraints:
        conversion.add("RepairViolations")
    if args.include_soft_constraints or "ScheduleAnyway" in args.constraints:
        _prefer(conversion, "topologySpread")
    if not args.topology_balance_node_fit:
        conversion.note(plugin, _ANYWHERE, "topologyBalanceNodeFit")


def _prefer(conversion: Conversion, kind: str) -> None:
    """A kind of preferences counts; those that nobody asks for do not."""
    nothing = dict.fromkeys(("nodeAffinity", "podAffinity", "topologySpread", "taints"), 0.0)
    conversion.policies["SatisfyPreferences"] = {
        **nothing,
        **conversion.policies.get("SatisfyPreferences", {}),
        kind: 1.0,
    }


def _restarts(conversion: Conversion, plugin: str, raw: Mapping[str, Any]) -> None:
    args = read_known(conversion, plugin, raw, _TooManyRestarts)
    _filtered(conversion, args)
    conversion.add(
        "LeavePoorService", {"minRestarts": args.pod_restart_threshold} if args.pod_restart_threshold else {}
    )
    conversion.note(plugin, "a pod is moved only where others of its owner do well: those that fail everywhere stay")


def _life_time(conversion: Conversion, plugin: str, raw: Mapping[str, Any]) -> None:
    args = read_known(conversion, plugin, raw, _PodLifeTime)
    _filtered(conversion, args)
    if args.max_pod_life_time_seconds is None:
        conversion.note(plugin, "without maxPodLifeTimeSeconds no pod is too old")
        return
    conversion.add("ReplaceOldPods", {"maxAge": f"{args.max_pod_life_time_seconds}s"})


Convert = Callable[[Conversion, str, Mapping[str, Any]], None]

COUNTERPARTS: Mapping[str, Convert] = {
    "HighNodeUtilization": _high,
    "LowNodeUtilization": _low,
    "PodLifeTime": _life_time,
    "RemoveDuplicates": _duplicates,
    "RemovePodsHavingTooManyRestarts": _restarts,
    "RemovePodsViolatingInterPodAntiAffinity": _anti_affinity,
    "RemovePodsViolatingNodeAffinity": _node_affinity,
    "RemovePodsViolatingNodeTaints": _node_taints,
    "RemovePodsViolatingTopologySpreadConstraint": _topology_spread,
}
"""What is done with each plugin that moves pods; arguments without a counterpart are noted."""

REPAIRS = {
    "RemovePodsViolatingInterPodAntiAffinity": "inter-pod anti-affinity",
    "RemovePodsViolatingNodeAffinity": "node affinity",
    "RemovePodsViolatingNodeTaints": "taints",
    "RemovePodsViolatingTopologySpreadConstraint": "topology spread",
}
"""Which violations each of the plugins repairs that RepairViolations stands for."""

WITHOUT = {
    "RemoveFailedPods": "pods that have ended are not moved; controllers and the pod garbage collector see to them",
}
"""Plugins that are known and have no counterpart, and why."""
