"""A kubelet before an API that carries out its requests unless a test says otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from podium.api.node import Node
from podium.api.pod import Pod, PodStatus
from podium.api.times import format_time
from podium.controllers.actions import Action, DeleteObject, ReportStatus
from podium.controllers.kubelets.host import KubeletSettings
from podium.controllers.kubelets.kubelet import Kubelet
from podium.controllers.observations import ActionFinished, Changed, Deleted, Problem, Tick
from tests import builders

SECOND = 10**9


def pod(name: str, *, on: str = "n1", annotations: Mapping[str, str] | None = None, **fields: Any) -> Pod:
    """Return a pod that was just bound to a node; annotations are those of `podium.dev` unless they have a prefix."""
    bound = builders.pod(name, on=on, **fields)
    named = {key if "/" in key else f"podium.dev/{key}": value for key, value in (annotations or {}).items()}
    return replace(bound, metadata=replace(bound.metadata, annotations=named), status=PodStatus())


class Rig:
    """A kubelet; ``log`` are its requests as `seconds what pod`. Writes fail while ``problem`` is set."""

    def __init__(self, *nodes: Node, **settings: Any) -> None:
        self.kubelet = Kubelet(KubeletSettings(**settings))
        self.now = 0
        self.problem: Problem | None = None
        self.pods: dict[str, Pod] = {}
        self.log: list[str] = []
        for node in nodes:
            self.show(node)

    def show(self, *objects: Node | Pod) -> None:
        """Show these objects as the API has them."""
        for one in objects:
            if isinstance(one, Pod):
                self.pods[one.metadata.uid] = one
            self._do(self.kubelet.handle(Changed(one), self.now))
            self._tick()

    def delete(self, name: str, grace: int = 30) -> None:
        """Delete a pod with a grace period, as another client."""
        one = self.pods[f"default/{name}"]
        end = format_time(self.now + grace * SECOND)
        meta = replace(one.metadata, deletion_timestamp=end, deletion_grace_period_seconds=grace)
        self.show(replace(one, metadata=meta))

    def pass_to(self, seconds: float) -> None:
        """Let time pass, with a tick whenever the kubelet wants one."""
        end = round(seconds * SECOND)
        while (deadline := self.kubelet.deadline().time_ns) is not None and deadline <= end:
            self.now = max(self.now, deadline)
            self._tick()
        self.now = end

    def phase(self, name: str) -> str:
        return self.pods[f"default/{name}"].status.phase

    def _tick(self) -> None:
        while (deadline := self.kubelet.deadline().time_ns) is not None and deadline <= self.now:
            self._do(self.kubelet.handle(Tick(), self.now))

    def _do(self, actions: list[Action]) -> None:
        for action in actions:
            problem = self.problem
            if problem is None:
                self._carry_out(action)
            self._do(self.kubelet.handle(ActionFinished(action, problem), self.now))

    def _carry_out(self, action: Action) -> None:
        seconds = self.now / SECOND
        time = int(seconds) if seconds.is_integer() else seconds
        if isinstance(action, DeleteObject):
            self.log.append(f"{time} gone {action.key.removeprefix('default/')}")
            gone = self.pods.pop(action.uid, None)
            if gone is not None:
                self._do(self.kubelet.handle(Deleted(gone), self.now))
        elif isinstance(action, ReportStatus) and action.kind == "Pod":
            phase = action.fields["phase"]
            ready = next((one.status for one in action.conditions if one.type == "Ready"), "")
            what = action.fields.get("reason") or phase + (" ready" if ready == "True" else "")
            self.log.append(f"{time} {what} {action.key.removeprefix('default/')}")
            one = self.pods[action.uid]
            changed = replace(one, status=replace(one.status, phase=phase, conditions=action.conditions))
            self.pods[action.uid] = changed
            self._do(self.kubelet.handle(Changed(changed), self.now))
        else:
            (condition,) = getattr(action, "conditions")  # noqa: B009 - the only other action that a kubelet has
            self.log.append(f"{time} {condition.type} {condition.status}")
