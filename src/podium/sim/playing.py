"""Carrying out the steps of a scenario."""

from __future__ import annotations

from podium.api.meta import Raw
from podium.api.pod import Pod
from podium.machines.kubelet import Kubelet
from podium.machines.pod_annotations import MEMORY_USAGE
from podium.sim.api_server import APIServer
from podium.sim.history import History
from podium.sim.scenario import Apply, Cordon, Finish, Remove, Step, UseMemory
from podium.sim.writes import Create, Delete, Replace, ReplaceStatus
from podium.store.errors import StoreError
from podium.store.stored import Stored

_SCENARIO = "scenario"


class Player:
    """Does what the scenario's steps say, in its own name."""

    def __init__(self, server: APIServer, kubelet: Kubelet, history: History) -> None:
        self._server = server
        self._kubelet = kubelet
        self._history = history

    def play(self, step: Step, now: int) -> None:
        """Do one step. Raises InputError for what the API server refuses, and for a name that never existed.

        A step that comes too late, its pod being gone or not running, does nothing but leave an event StepSkipped.
        """
        try:
            match step.change:
                case Apply():
                    self._apply(step.change, now)
                case Remove():
                    self._remove(step, step.change, now)
                case Finish():
                    self._finish(step, step.change, now)
                case UseMemory():
                    self._use_memory(step, step.change, now)
                case Cordon():
                    self._cordon(step, step.change, now)
        except StoreError as error:
            raise step.error(error.message) from None

    def _apply(self, apply: Apply, now: int) -> None:
        stored = self._server.store.find(apply.object.kind, apply.object.key)
        if stored is None:
            self._server.write(Create(apply.raw, _SCENARIO, apply.object), now)
            return
        self._server.write(Replace(_applied(stored, apply.raw), _SCENARIO), now)
        if "status" in apply.raw:
            current = self._server.store.get(stored.kind, stored.key)
            status = {**current.raw.get("status", {}), **apply.raw["status"]}
            self._server.write(ReplaceStatus({**current.raw, "status": status}, _SCENARIO), now)

    def _remove(self, step: Step, remove: Remove, now: int) -> None:
        stored = self._server.store.find(remove.kind, remove.key)
        if stored is not None:
            self._server.write(Delete(remove.kind, remove.key, stored.uid, _SCENARIO), now)
        elif remove.kind != "Pod" or not self._existed(remove.key):
            raise step.error(f"there is no {remove.kind} {remove.key}")
        else:
            self._skip(remove.key, "it is gone", now)

    def _finish(self, step: Step, finish: Finish, now: int) -> None:
        stored = self._find_pod(step, finish.pod, now)
        if stored is not None and not (isinstance(stored.object, Pod) and self._kubelet.finish(stored.object, now)):
            self._skip(finish.pod, "it is not running", now)

    def _use_memory(self, step: Step, change: UseMemory, now: int) -> None:
        stored = self._find_pod(step, change.pod, now)
        if stored is not None:
            metadata = stored.raw["metadata"]
            annotations = {**metadata.get("annotations", {}), MEMORY_USAGE: change.memory}
            self._server.write(
                Replace({**stored.raw, "metadata": {**metadata, "annotations": annotations}}, _SCENARIO), now
            )

    def _cordon(self, step: Step, cordon: Cordon, now: int) -> None:
        stored = self._server.store.find("Node", cordon.node)
        if stored is None:
            raise step.error(f"there is no Node {cordon.node}")
        spec = {**stored.raw.get("spec", {}), "unschedulable": cordon.unschedulable}
        message = "cordoned" if cordon.unschedulable else "uncordoned"
        self._server.write(Replace({**stored.raw, "spec": spec}, _SCENARIO, message), now)

    def _find_pod(self, step: Step, pod: str, now: int) -> Stored | None:
        """The pod that a step is about; None for one that is gone, and the step skipped."""
        stored = self._server.store.find("Pod", pod)
        if stored is None and not self._existed(pod):
            raise step.error(f"there is no Pod {pod}")
        if stored is None:
            self._skip(pod, "it is gone", now)
        return stored

    def _existed(self, pod: str) -> bool:
        return any(story.pod == pod for story in self._history.stories.values())

    def _skip(self, pod: str, message: str, now: int) -> None:
        self._history.add(now, "StepSkipped", pod, "", _SCENARIO, message)


def _applied(stored: Stored, raw: Raw) -> Raw:
    """The stored object with everything that `raw` gives; what it does not give stays, in metadata and a pod's spec.

    A pod's spec keeps the rest because the API server has filled it in; elsewhere a spec is given as a whole.
    """
    metadata = {**stored.raw["metadata"], **raw.get("metadata", {})}
    metadata["resourceVersion"] = stored.raw["metadata"]["resourceVersion"]
    spec = {**stored.raw["spec"], **raw.get("spec", {})} if stored.kind == "Pod" else raw.get("spec")
    applied = {**stored.raw, **raw, "metadata": metadata}
    return applied if spec is None else {**applied, "spec": spec}
