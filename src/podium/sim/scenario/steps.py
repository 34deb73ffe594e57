"""The changes of a scenario, and the checks of objects that only a simulation reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from podium.api.errors import InputError, InputWarning, field_path
from podium.api.input.codec import Document
from podium.api.meta import Kubernetes, ObjectMeta, Raw
from podium.api.node import Node
from podium.api.workloads import DaemonSet, Replicated, pod_template
from podium.controllers.actions import Evict
from podium.controllers.disruption.drain import DrainSettings
from podium.controllers.kubelets import pod_run
from podium.controllers.kubelets.pod_run import CRASH_AFTER, TROUBLE

StepPatchType = Literal["strategic", "merge", "json"]
"""The patch types of a step, which are the API's."""

SCENARIO = "scenario"
"""The author of steps, and the component of evictions that name none."""


@dataclass(frozen=True, slots=True)
class Apply:
    """Create an object, or update it to `raw`; `warnings` are from its validation."""

    raw: Raw
    object: Kubernetes
    warnings: tuple[InputWarning, ...] = ()


@dataclass(frozen=True, slots=True)
class Edit:
    """Patch an object in the name of the scenario; ``message`` describes that in the history.

    With `of_pod` the patch is for a pod: that of `key`, or the first running pod of the workload.
    """

    kind: str
    key: str
    patch: Raw
    message: str = ""
    of_pod: bool = False


class Patch(msgspec.Struct, frozen=True):
    """Patch an object as a client does, or with the `subresource` status its status only."""

    kind: str
    key: str
    type: StepPatchType
    patch: Any
    subresource: Literal["", "status"] = ""


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete an object with its own grace period; a pod by eviction unless `outright`."""

    kind: str
    key: str
    outright: bool = False


class EvictPod(msgspec.Struct, frozen=True):
    """Evict a pod, or the first pod of a workload, through the API's subresource; `eviction` names no pod yet."""

    key: str
    kind: str = "Pod"
    eviction: Evict = Evict("", "", SCENARIO, SCENARIO)


@dataclass(frozen=True, slots=True)
class Finish:
    """Let the containers of a pod, or of the first running pod of a workload, exit with success.

    Of a workload, `pod` is preferred ("" for none). In recordings that is `after_ns` its binding, if that is known.
    """

    key: str
    kind: str = "Pod"
    pod: str = ""
    after_ns: int | None = None


@dataclass(frozen=True, slots=True)
class DrainNode:
    """Drain a node, after the drain of the node `after` if there is one; `removes` deletes the drained node."""

    key: str
    settings: DrainSettings
    after: str = ""
    removes: bool = False


@dataclass(frozen=True, slots=True)
class SetPower:
    """Start a node's machine, or stop it with everything on it, without notice."""

    key: str
    is_up: bool


class Announce(msgspec.Struct, frozen=True):
    """Announce that a node goes down so long after the step; None withdraws that."""

    key: str
    after_ns: int | None


@dataclass(frozen=True, slots=True)
class SelectedObjects:
    """A change of every object of a kind whose labels match when the step is played, by key.

    `selector` is a label selector as in kubectl's -l; `namespace` "" stands for all. The object in `change` is ignored.
    """

    kind: str
    namespace: str
    selector: str
    change: Remove | Edit | DrainNode | SetPower


Change = Apply | Edit | Patch | Remove | EvictPod | Finish | DrainNode | SetPower | Announce | SelectedObjects


@dataclass(frozen=True, slots=True)
class ScenarioStep:
    """A change `at_ns` after the start; `place` and `path` locate it in errors."""

    at_ns: int
    change: Change
    place: Document
    path: str

    def error(self, problem: str) -> InputError:
        return self.place.located(InputError(problem, path=self.path))


def check_played(object_: Kubernetes) -> None:
    """Raise InputError for invalid annotations of a pod, pod template or node, which only a simulation reads."""
    judged = [(pod_run.pod_problems(metadata.annotations), path) for metadata, path in _pod_metadata(object_)]
    if isinstance(object_, Node):
        judged.append((pod_run.node_problems(object_.metadata.annotations), ".metadata"))
    for problems, path in judged:
        for name, problem in problems.items():
            raise InputError(problem, path=_path(path, name))


def annotation(node: str, name: str, value: str | None, message: str) -> Edit:
    """Return the change of a node's annotation; None removes it."""
    return Edit("Node", node, {"metadata": {"annotations": {name: value}}}, message)


# Workloads that replace pods that have ended.
_REPLACING = Replicated | DaemonSet
FAILING = "containers that crash are started again"
"""The reason why a simulation with crashing containers has no end."""

# Reasons why objects with an annotation never become idle.
_ENDLESS = {
    pod_run.DURATION: "pods that end are replaced",
    pod_run.MEMORY_USAGE: "pods that may be evicted are replaced",
    CRASH_AFTER: FAILING,
}


def is_endless(change: Change) -> bool:
    """Return whether a change makes containers fail for ever."""
    return isinstance(change, Edit) and bool(change.patch.get("metadata", {}).get("annotations", {}).get(TROUBLE))


def check_end(object_: Kubernetes) -> None:
    """Raise InputError for an object whose pods keep a simulation without an end running forever."""
    if isinstance(object_, Node) and TROUBLE in object_.metadata.annotations:
        raise InputError(f"{FAILING} for ever; say when to stop with `until`", path=_path(".metadata", TROUBLE))
    for metadata, path in _pod_metadata(object_):
        for name, which in _ENDLESS.items():
            if name in metadata.annotations and (name == CRASH_AFTER or isinstance(object_, _REPLACING)):
                raise InputError(f"{which} for ever; say when to stop with `until`", path=_path(path, name))


def _path(metadata: str, name: str) -> str:
    return field_path(f"{metadata}.annotations", name)


def _pod_metadata(object_: Kubernetes) -> list[tuple[ObjectMeta, str]]:
    found = pod_template(object_)
    return [] if found is None else [(found[0].metadata, f"{found[1]}.metadata")]
