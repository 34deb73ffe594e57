"""The objects that a scenario's steps are about."""

from __future__ import annotations

from podium.api.kinds import WORKLOADS
from podium.api.pod import Pod
from podium.sim.control_plane import ControlPlane
from podium.sim.history import History
from podium.sim.scenario.changes import SCENARIO, Apply, Change, EvictPod, Finish, Patch, Remove, Scale, Selected, Use
from podium.sim.scenario.steps import Step
from podium.store.store import Store
from podium.store.stored import Stored

# A CronJob has Jobs, a Deployment ReplicaSets, and these have pods.
_MOST_OWNERS = 3


class Subjects:
    """Finds what a step is about, and leaves an event StepSkipped where it comes too late."""

    def __init__(self, store: Store, control_plane: ControlPlane, history: History) -> None:
        self._store = store
        self._control_plane = control_plane
        self._history = history

    def find(self, step: Step, kind: str, key: str, now: int) -> Stored | None:
        """The object of that kind and key; None for one that is gone, and the step skipped.

        Raises InputError for a name that never existed.
        """
        stored = self._store.find(kind, key)
        if stored is not None:
            return stored
        if not self._history.has_seen(kind, key) and not self._history.was_refused(key):
            raise step.error(f"there is no {kind} {key}")
        self.skip(key, "it is gone" if self._history.has_seen(kind, key) else "it was never created", now)
        return None

    def pod(self, step: Step, kind: str, key: str, now: int) -> Stored | None:
        """The pod itself, or of a workload the oldest that runs, else the oldest; None, and errors, as `find` has."""
        stored = self.find(step, kind, key, now)
        if stored is None or kind == "Pod":
            return stored
        namespace = stored.object.metadata.namespace
        pods = [pod for pod in self._store.objects("Pod", namespace) if self._is_of(pod, stored.uid)]
        if not pods:
            self.skip(key, f"the {kind} has no pods", now)
        return min(pods, key=self._order, default=None)

    def skip(self, subject: str, message: str, now: int) -> None:
        """Tell that a step did nothing, and why; ``subject`` is the key of what it is about."""
        self._history.add(now, "StepSkipped", subject, "", SCENARIO, message)

    def _order(self, pod: Stored) -> tuple[bool, str, str]:
        is_running = isinstance(pod.object, Pod) and self._control_plane.is_running(pod.object)
        return not is_running, pod.object.metadata.creation_timestamp or "", pod.key

    def _is_of(self, stored: Stored, uid: str) -> bool:
        """Whether an object is controlled by that of the uid, or by one that is."""
        namespace, controller = stored.object.metadata.namespace, stored.object.metadata.controller
        for _ in range(_MOST_OWNERS):
            if controller is None or controller.uid == uid or controller.kind not in WORKLOADS:
                break
            owner = self._store.find(controller.kind, f"{namespace}/{controller.name}")
            controller = None if owner is None else owner.object.metadata.controller
        return controller is not None and controller.uid == uid


def subject_of(change: Change) -> str:
    """Whom a change is about, as events name it."""
    match change:
        case Apply():
            return change.object.key
        case Remove() | Scale() | Patch():
            return change.key
        case Selected():
            return f"{change.kind} {change.selector}"
        case EvictPod() | Finish() | Use():
            return change.pod
    return change.node
