"""Failed attempts whose result holds for identical pods.

An event often wakes many pods of one class, none of which fits. The failure of the first holds for the others while the
cluster is unchanged and no time passes, if all plugins are known to read nothing else.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from weakref import ref

from podium.cluster.pod_classes import PodClass
from podium.cluster.pods import PodRecord
from podium.framework.plugin import Plugin
from podium.framework.runner import Runner
from podium.plugins.default_preemption import DefaultPreemption
from podium.plugins.registry import IN_TREE
from podium.plugins.volumes.binding import ScoringVolumeBinding, VolumeBinding

# Scheduler name, pod class, priority, preemption policy. A weak reference, because ids are reused.
_Key = tuple[str, ref[PodClass], int, str]


@dataclass(frozen=True, slots=True)
class KnownFailure:
    """A failed attempt without side effects: the rejecting plugins and the message."""

    plugins: tuple[str, ...]
    message: str


class KnownFailures:
    """The failures at one instant, since the last change of the cluster."""

    def __init__(self, runners: Mapping[str, Runner]) -> None:
        self._trusted = {name for name, runner in runners.items() if all(map(_is_trusted, runner.profile.plugins()))}
        self._runners = runners
        self._now = 0
        self._found: dict[_Key, KnownFailure] = {}

    def __len__(self) -> int:
        return len(self._found)

    def find(self, pod: PodRecord, now: int) -> KnownFailure | None:
        """Return the known result of an attempt, None if it must be made."""
        if not self._found:
            return None
        if now != self._now:
            self.forget()
        return None if _is_unlike_others(pod) else self._found.get(_key(pod))

    def keep(self, pod: PodRecord, failure: KnownFailure, now: int) -> None:
        """Remember a failed attempt without side effects."""
        if self.likeness(pod) is not None:
            self._now = now
            self._found[_key(pod)] = failure

    def likeness(self, pod: PodRecord) -> Hashable | None:
        """Return the key shared by all pods with the same result; None for a pod without equals."""
        if pod.scheduler_name not in self._trusted or _is_unlike_others(pod):
            return None
        # Extenders may answer differently for each pod.
        return None if self._runners[pod.scheduler_name].extenders_of(pod) is not None else _key(pod)

    def forget(self) -> None:
        """Forget everything after a change."""
        if self._found:
            self._found = {}


def _is_trusted(plugin: Plugin) -> bool:
    """Return whether a plugin depends only on the cluster and on the fields of `_Key`.

    DefaultPreemption among equals also depends on owners.
    """
    if isinstance(plugin, DefaultPreemption) and plugin.takes_from_equals:
        return False
    return type(plugin) in (*IN_TREE.values(), VolumeBinding, ScoringVolumeBinding)


def _is_unlike_others(pod: PodRecord) -> bool:
    """Return whether a pod has a nomination or ResourceClaims of its own."""
    return bool(pod.nominated_node_name) or bool(pod.spec.resource_claims)


def _key(pod: PodRecord) -> _Key:
    return pod.scheduler_name, ref(pod.pod_class), pod.priority, pod.preemption_policy
