"""The ephemeral volume controller: it makes the claims of volumes that are a pod's own.

Source: pkg/controller/volume/ephemeral/controller.go.
"""

from __future__ import annotations

from collections.abc import Iterable

from podium.api.meta import Raw
from podium.api.pod import Pod
from podium.api.storage import PersistentVolumeClaim
from podium.machines.actions import Action, CreateObject
from podium.machines.concerns import CLAIMING
from podium.machines.machine import UNMOVED
from podium.machines.observations import Answered, Changed, Gone, Observation, Tick
from podium.machines.parts.deadlines import Deadline
from podium.machines.parts.work_queue import WorkQueue
from podium.machines.workloads.claims.claim_index import drop
from podium.machines.workloads.claims.made_claims import volume_claims

_NAME = "ephemeral-volume-controller"


class EphemeralVolumes:
    """Makes the claims that pods describe in their volumes, and makes them again while the pods are there.

    Where another's claim has the name, the pod waits until that is gone. The garbage collector lets claims go with
    their pods.
    """

    watches = frozenset(("Pod", "PersistentVolumeClaim"))
    heeded_pods = CLAIMING

    def __init__(self) -> None:
        # By key of a pod, the claims that it wants, by their keys; by key of a claim, the pods that want it.
        self._wanted: dict[str, dict[str, Raw]] = {}
        self._naming: dict[str, dict[str, None]] = {}
        # By key, claims that there are, and those that are being made.
        self._there: set[str] = set()
        self._asked: set[str] = set()
        # Keys of pods.
        self._queue: WorkQueue[str] = WorkQueue()

    def handle(self, observation: Observation, now: int) -> list[Action]:
        """Take in an observation at ``now``; on a Tick, say what to do."""
        match observation:
            case Changed(object=Pod() as pod):
                return self._want(pod.key, () if pod.is_terminating else volume_claims(pod, pod.metadata.uid))
            case Gone(object=Pod() as pod):
                return self._want(pod.key, ())
            case Changed(object=PersistentVolumeClaim() as claim):
                self._there.add(claim.key)
            case Gone(object=PersistentVolumeClaim() as claim):
                self._there.discard(claim.key)
                for key in self._naming.get(claim.key, ()):
                    self._queue.add(key)
            case Answered(action=CreateObject() as action):
                self._answered(action, observation, now)
            case Tick():
                return self._tick(now)
            case _:
                pass
        return []

    def deadline(self) -> Deadline:
        """When there is something to make; that it is refused once more is no news."""
        return self._queue.deadline()

    def _want(self, pod: str, claims: Iterable[Raw]) -> list[Action]:
        """From now on a pod wants these claims, and no others."""
        wanted = {_key(claim): claim for claim in claims}
        before = self._wanted.get(pod, {})
        if wanted == before:
            return UNMOVED
        for key in before:
            drop(self._naming, key, pod)
        self._wanted.pop(pod, None)
        self._queue.forget(pod)
        if wanted:
            self._wanted[pod] = wanted
            self._queue.add(pod)
        for key in wanted:
            self._naming.setdefault(key, {})[pod] = None
        return []

    def _answered(self, action: CreateObject, answered: Answered, now: int) -> None:
        key = _key(action.raw)
        self._asked.discard(key)
        for pod in self._naming.get(key, ()):
            if self._wanted[pod][key] == action.raw:
                self._queue.answer(pod, answered, now)
            else:
                self._queue.add(pod)

    def _tick(self, now: int) -> list[Action]:
        actions: list[Action] = []
        while (pod := self._queue.take(now)) is not None:
            for key, claim in self._wanted.get(pod, {}).items():
                if key not in self._there and key not in self._asked:
                    self._asked.add(key)
                    actions.append(CreateObject(claim, _NAME))
        return actions


def _key(claim: Raw) -> str:
    return f"{claim['metadata']['namespace']}/{claim['metadata']['name']}"
