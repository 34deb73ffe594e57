"""What attempts found that came to nothing, for other pods of which the same is true.

An event often wakes many pods of one class at once, and none of them fits. What is decided about the first holds for
the others, as long as nothing has changed: the cluster is as it was, no time has passed, and the pods differ in nothing
that plugins look at. Only plugins that are known to look at nothing else are trusted with that.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from weakref import ref

from podium.cluster.pod_class import PodClass
from podium.cluster.pods import PodRecord
from podium.framework.plugin import Plugin
from podium.framework.runner import Runner
from podium.plugins.default_preemption import DefaultPreemption
from podium.plugins.registry import IN_TREE

# Scheduler name, pod class, priority, preemption policy. Not the id of the class: that may become the id of another.
_Key = tuple[str, ref[PodClass], int, str]


@dataclass(frozen=True, slots=True)
class KnownFailure:
    """An attempt that changed nothing: the plugins that turned the pod down, and what was said about it."""

    plugins: tuple[str, ...]
    message: str


class KnownFailures:
    """The failures at one instant, since the cluster last changed."""

    def __init__(self, runners: Mapping[str, Runner]) -> None:
        self._trusted = {name for name, runner in runners.items() if all(map(_is_trusted, runner.profile.plugins()))}
        self._runners = runners
        self._now = 0
        self._found: dict[_Key, KnownFailure] = {}

    def __len__(self) -> int:
        return len(self._found)

    def find(self, pod: PodRecord, now: int) -> KnownFailure | None:
        """What is known about the attempt of a pod, None where it has to be made."""
        if not self._found:
            return None
        if now != self._now:
            self.forget()
        return None if _is_unlike_others(pod) else self._found.get(_key(pod))

    def keep(self, pod: PodRecord, failure: KnownFailure, now: int) -> None:
        """Remember an attempt that changed nothing."""
        if self.likeness(pod) is not None:
            self._now = now
            self._found[_key(pod)] = failure

    def likeness(self, pod: PodRecord) -> Hashable | None:
        """What is the same for all pods of which an attempt says the same; None for a pod that is like no other."""
        if pod.scheduler_name not in self._trusted or _is_unlike_others(pod):
            return None
        # What extenders said of one pod they need not say of the next.
        return None if self._runners[pod.scheduler_name].extenders_of(pod) is not None else _key(pod)

    def forget(self) -> None:
        """Something has changed."""
        if self._found:
            self._found = {}


def _is_trusted(plugin: Plugin) -> bool:
    """Whether a plugin's answers depend on the cluster and what is in `_Key` alone.

    Pods that may take room from their equals are told apart by their owners.
    """
    if isinstance(plugin, DefaultPreemption) and plugin.takes_from_equals:
        return False
    return type(plugin) in IN_TREE.values()


def _is_unlike_others(pod: PodRecord) -> bool:
    """Whether a pod has what others of its class have not: a nomination, or resource claims of its own."""
    return bool(pod.nominated_node_name) or bool(pod.spec.resource_claims)


def _key(pod: PodRecord) -> _Key:
    return pod.scheduler_name, ref(pod.pod_class), pod.priority, pod.preemption_policy
