"""The decisions of a recording in place of chance: names and uids of pods, choices between equal nodes."""

from __future__ import annotations

from collections import defaultdict, deque

from msgspec.structs import replace

from podium.api.meta import key_of
from podium.controllers.actions import Action, CreateObject
from podium.controllers.observations import ActionFinished
from podium.controllers.scheduling.attempts import OnAttempt
from podium.controllers.scheduling.queue.queued_pod import QueuedPod
from podium.framework.runner import Runner
from podium.sim.recording.tape import Recording
from podium.store.store import Store


def _maker(workload: str) -> str:
    """Return a workload by kind and key: of a ReplicaSet without the hash that the simulation may compute otherwise."""
    return workload.rpartition("-")[0] or workload if workload.startswith("ReplicaSet ") else workload


class Replay:
    """The recorded names of pods that controllers create, and the recorded uids and nodes of all pods.

    Names are taken in the order of creation by each controller. `uids` are those of the pods of each key, in the order
    of creation: a ReplicaSet deletes the pod with the lowest uid among equals. `then` is called before each attempt.
    """

    def __init__(self, recording: Recording, start_ns: int, then: OnAttempt | None) -> None:
        self.recording = recording
        self._then = then
        self._names: dict[str, deque[str]] = defaultdict(deque)
        # By key, then by recorded uid: when a scheduler chose which node, to bind the pod or for preemption.
        choices: dict[str, dict[str, list[tuple[int, str]]]] = defaultdict(dict)
        for event in (event for event in recording.events if event.kind == "Pod"):
            if event.what == "created" and event.object is not None:
                namespace, _, name = event.key.partition("/")
                owners = event.object["metadata"].get("ownerReferences", ())
                for owner in (each for each in owners if each.get("controller")):
                    self._names[_maker(f"{owner['kind']} {namespace}/{owner['name']}")].append(name)
            if event.what in ("created", "nominated", "bound"):
                chosen = choices[event.key].setdefault(event.uid, [])
                if event.node:
                    chosen.append((start_ns + event.at_ns, event.node))
        self.uids = {key: tuple(by_uid) for key, by_uid in choices.items()}
        self._choices = {uid: chosen for by_uid in choices.values() for uid, chosen in by_uid.items()}

    def with_recorded_name(self, action: Action, store: Store) -> Action:
        """Return the creation of a pod with its recorded name, if that is free."""
        if not isinstance(action, CreateObject) or action.raw["kind"] != "Pod" or "name" in action.raw["metadata"]:
            return action
        names = self._names.get(_maker(action.cause))
        named = {**action.raw["metadata"], "name": names.popleft()} if names else {}
        if not named or store.find("Pod", key_of(named)):
            return action
        return replace(action, raw={**action.raw, "metadata": named})

    def answer(self, requested: Action, finished: ActionFinished) -> ActionFinished:
        """Return the answer to an action as its controller requested it; the next pod gets a name that was refused."""
        action = finished.action
        if isinstance(action, CreateObject) and action is not requested and finished.problem is not None:
            self._names[_maker(action.cause)].appendleft(action.raw["metadata"]["name"])
        return replace(finished, action=requested)

    def on_attempt(self, queued: QueuedPod, runner: Runner) -> None:
        """Let the attempt that is about to begin prefer the recorded node."""
        uid, cluster = queued.record.uid, runner.cluster
        chosen = self._choices.get(uid) or [(0, "")]
        # A scheduler may have been quicker than it is here: then the last choice, the binding, still holds.
        later = (node for at_ns, node in chosen if at_ns >= cluster.now)
        cluster.recorded_choice = uid, next(later, chosen[-1][1])
        if self._then is not None:
            self._then(queued, runner)
