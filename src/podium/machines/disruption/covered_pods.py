"""The pods that a disruption budget covers, counted.

Source: pkg/controller/disruption/disruption.go (getExpectedScale, countHealthyPods).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from podium.api.meta import OwnerReference
from podium.api.pod import Pod
from podium.machines.disruption.scales import Scales


@dataclass(frozen=True, slots=True)
class Expected:
    """How many pods the controllers of the covered ones want; ``unknown`` is one whose scale nobody knows, or None."""

    pods: int
    unknown: OwnerReference | None


@dataclass(slots=True)
class _Controller:
    """A controller of pods, and of how many."""

    reference: OwnerReference
    pods: int = 0


class CoveredPods:
    """Pods of one namespace by name, with what is known of all of them together. ``healthy`` are so many."""

    def __init__(self) -> None:
        self.healthy = 0
        self._pods: dict[str, Pod] = {}
        self._priorities: Counter[int] = Counter()
        self._unmanaged = 0
        self._controllers: dict[str, _Controller] = {}
        self._expected: Expected | None = None

    def __len__(self) -> int:
        return len(self._pods)

    @property
    def names(self) -> list[str]:
        """The names of the pods."""
        return list(self._pods)

    @property
    def has_unmanaged(self) -> bool:
        """Whether some of the pods have no controller."""
        return self._unmanaged > 0

    @property
    def lowest_priority(self) -> int | None:
        """The priority of the least important of the pods; None where there are none."""
        return min(self._priorities, default=None)

    def get(self, name: str) -> Pod | None:
        """The pod as it is now, None where it is not covered."""
        return self._pods.get(name)

    def put(self, pod: Pod) -> None:
        """Count a pod as it is now."""
        self.remove(pod.metadata.name)
        self._pods[pod.metadata.name] = pod
        self.healthy += is_healthy(pod)
        self._priorities[pod.priority] += 1
        self._count_controller(pod, 1)

    def remove(self, name: str) -> Pod | None:
        """Count a pod no longer; the pod as it was, None where it was not counted."""
        pod = self._pods.pop(name, None)
        if pod is not None:
            self.healthy -= is_healthy(pod)
            self._priorities[pod.priority] -= 1
            if not self._priorities[pod.priority]:
                del self._priorities[pod.priority]
            self._count_controller(pod, -1)
        return pod

    @property
    def first(self) -> Pod | None:
        """The first pod by name, None where there are no pods."""
        return self._pods[min(self._pods)] if self._pods else None

    def first_of(self, uid: str) -> Pod | None:
        """The first pod by name of the controller with that uid, "" for none; None where there is no such pod."""
        found = (pod for pod in self._pods.values() if controller_uid(pod) == uid)
        return min(found, key=lambda pod: pod.metadata.name, default=None)

    def expected(self, scales: Scales) -> Expected:
        """How many pods there should be. It is remembered until a controller comes or goes, or `forget_scale`."""
        if self._expected is None:
            wanted: dict[str, int] = {}
            unknown = []
            for uid, controller in self._controllers.items():
                scale = scales.of(uid)
                if scale is None:
                    unknown.append(controller.reference)
                else:
                    wanted[scale[0]] = scale[1]
            self._expected = Expected(sum(wanted.values()), _first(unknown))
        return self._expected

    def forget_scale(self) -> None:
        """The scale of a controller has changed."""
        self._expected = None

    def _count_controller(self, pod: Pod, number: int) -> None:
        owner = pod.metadata.controller
        if owner is None:
            self._unmanaged += number
            return
        if owner.uid not in self._controllers:
            self._controllers[owner.uid] = _Controller(owner)
            self._expected = None
        controller = self._controllers[owner.uid]
        controller.pods += number
        if not controller.pods:
            del self._controllers[owner.uid]
            self._expected = None


def is_healthy(pod: Pod) -> bool:
    """Whether a pod counts as healthy: it is ready and not terminating."""
    ready = pod.status.condition("Ready")
    return ready is not None and ready.status == "True" and not pod.is_terminating


def controller_uid(pod: Pod) -> str:
    """The uid of the pod's controller, "" for a pod on its own."""
    owner = pod.metadata.controller if pod.metadata.owner_references else None
    return "" if owner is None else owner.uid


def _first(controllers: Iterable[OwnerReference]) -> OwnerReference | None:
    return min(controllers, key=lambda owner: (owner.kind, owner.name, owner.uid), default=None)
