"""DefaultEvictor of the descheduler: which pods it lets go, as the scope of a rescheduler.

A scope is as narrow as what it is made from, or narrower: what the descheduler protects is never touched here.

Source: kubernetes-sigs/descheduler, pkg/framework/plugins/defaultevictor (types.go, defaults.go).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from podium.api.errors import InputError, shown
from podium.api.meta import Int32
from podium.framework.rescheduling.descheduler.conversion import Conversion, read_known
from podium.framework.rescheduling.written_scope import Span, WrittenSelector
from podium.framework.settings.strict import Strict

EVICTOR = "DefaultEvictor"

_CRITICAL = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_NEVER = "is never done here"


class _PriorityThreshold(Strict, frozen=True, kw_only=True):
    value: Int32 | None = None
    name: str = ""


class _PodProtections(Strict, frozen=True, kw_only=True):
    extra_enabled: tuple[str, ...] = ()
    default_disabled: tuple[str, ...] = ()
    config: dict[str, Any] = msgspec.field(default_factory=dict)


class _Evictor(Strict, frozen=True, kw_only=True):
    node_selector: str = ""
    label_selector: WrittenSelector | None = None
    priority_threshold: _PriorityThreshold = _PriorityThreshold()
    node_fit: bool | None = None
    min_replicas: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0
    min_pod_age: Span | None = None
    no_eviction_policy: str = ""
    pod_protections: _PodProtections = _PodProtections()
    evict_local_storage_pods: bool = False
    evict_daemon_set_pods: bool = False
    evict_system_critical_pods: bool = False
    ignore_pvc_pods: bool = False
    ignore_pods_without_pdb: bool = msgspec.field(default=False, name="ignorePodsWithoutPDB")
    evict_failed_bare_pods: bool = False


class EvictorScope:
    """What one DefaultEvictor lets go, in the words of a ReschedulerConfiguration's scope.

    ``allowed`` and ``spared`` are words of `allow` and `spare` there. Raises InputError for what is wrong in ``args``.
    """

    def __init__(self, conversion: Conversion, args: Mapping[str, Any]) -> None:
        read = read_known(conversion, EVICTOR, args, _Evictor)
        protections = read.pod_protections
        disabled, extra = set(protections.default_disabled), set(protections.extra_enabled)
        self._conversion = conversion
        self.node_selector = read.node_selector
        self.allowed: set[str] = set()
        self.spared: set[str] = set()
        self.minimum_age = read.min_pod_age
        self.minimum_replicas = read.min_replicas
        self.priority_below = _threshold(read.priority_threshold)
        self.label_selector = read.label_selector
        if read.evict_local_storage_pods or "PodsWithLocalStorage" in disabled:
            self.allowed.add("LocalStorage")
        if read.evict_system_critical_pods or "SystemCriticalPods" in disabled:
            self.allowed.add("SystemCriticalPods")
        if read.ignore_pvc_pods or "PodsWithPVC" in extra:
            self.spared.add("PodsWithVolumeClaims")
        if "PodsWithResourceClaims" in extra:
            self.spared.add("PodsWithDeviceClaims")
        if read.ignore_pods_without_pdb or "PodsWithoutPDB" in extra:
            conversion.unprotected_stay = True
        self._note(read, disabled, extra)

    def _note(self, read: _Evictor, disabled: set[str], extra: set[str]) -> None:
        note = self._conversion.note
        if read.evict_daemon_set_pods or "DaemonSetPods" in disabled:
            note(EVICTOR, f"moving pods of DaemonSets {_NEVER}", "evictDaemonSetPods")
        if read.evict_failed_bare_pods or "FailedBarePods" in disabled:
            note(EVICTOR, f"evicting pods that have ended {_NEVER}", "evictFailedBarePods")
        if read.node_fit is False:
            note(EVICTOR, "a pod is moved only where its replacement fits somewhere", "nodeFit")
        if read.no_eviction_policy == "Preferred":
            note(EVICTOR, "pods that prefer no eviction are never moved", "noEvictionPolicy")
        if read.pod_protections.config:
            note(EVICTOR, "the protection holds for all claims, of whatever class", "podProtections.config")
        known = {"PodsWithPVC", "PodsWithResourceClaims", "PodsWithoutPDB"}
        for name in sorted(extra - known):
            if name == "PodsWithPDBBlockingSingleReplicaOwner":
                note(EVICTOR, "what disruption budgets do not allow is never done", name)
            else:
                problem = f"{shown(name)} is a protection that is not known here; without it pods might be moved"
                raise InputError(problem, path=".podProtections.extraEnabled")


def _threshold(threshold: _PriorityThreshold) -> int | None:
    """From which priority on pods stay; None for what is so in any case."""
    if threshold.name and threshold.value is not None:
        raise InputError("has a name and a value; leave one out", path=".priorityThreshold")
    if not threshold.name:
        return threshold.value
    if threshold.name not in _CRITICAL:
        problem = f"{shown(threshold.name)} is a class whose value is not known here; write value: in its place"
        raise InputError(problem, path=".priorityThreshold.name")
    return _CRITICAL[threshold.name]
