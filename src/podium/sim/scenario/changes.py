"""What the steps of a scenario change, each kind of change as a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from podium.api.avoid_list import AvoidFor
from podium.api.meta import Kubernetes, Raw
from podium.api.replacements import ForReplacement
from podium.api.warnings import InputWarning
from podium.machines.disruption.drain import DrainSettings

StepPatchType = Literal["strategic", "merge", "json"]
"""The ways in which a step patches an object, which are the API's."""

SCENARIO = "scenario"
"""Who carries out the steps; the component of evictions that name none."""


@dataclass(frozen=True, slots=True)
class Apply:
    """Create an object, or bring an existing one to what `raw` says; `warnings` are what its reading had to say."""

    raw: Raw
    object: Kubernetes
    warnings: tuple[InputWarning, ...] = ()


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete an object, with its own grace period; a pod within its budgets, unless `outright`."""

    kind: str
    key: str
    outright: bool = False


@dataclass(frozen=True, slots=True)
class EvictPod:
    """Evict a pod, as the API's subresource takes it.

    Where ``kind`` is a workload's, ``pod`` is its key, and the first of its pods is meant. `grace_seconds` None leaves
    it its own period. `component` is whose cap counts. With `avoid_node`, its controller goes on its node's avoid list,
    `avoid_for` as long as that says. `for_replacement` is left there for the pod that comes in its place.
    """

    pod: str
    grace_seconds: int | None = None
    component: str = SCENARIO
    avoid_node: bool = False
    avoid_for: AvoidFor = AvoidFor()  # noqa: RUF009 - an immutable value
    kind: str = "Pod"
    for_replacement: ForReplacement = ForReplacement()  # noqa: RUF009 - an immutable value


@dataclass(frozen=True, slots=True)
class Scale:
    """Let a workload have so many pods."""

    kind: str
    key: str
    replicas: int


@dataclass(frozen=True, slots=True)
class Finish:
    """Let a pod's containers exit by themselves, with success.

    Where ``kind`` is a workload's, ``pod`` is its key, and the first of its pods that run is meant.
    """

    pod: str
    kind: str = "Pod"


@dataclass(frozen=True, slots=True)
class Use:
    """Let a pod use so much memory and cpu from now on; None leaves it at what it was.

    Where ``kind`` is a workload's, ``pod`` is its key, and the first of its pods that run is meant.
    """

    pod: str
    memory: str | None = None
    cpu: str | None = None
    kind: str = "Pod"


@dataclass(frozen=True, slots=True)
class Cordon:
    """Mark a node as unschedulable, or schedulable again."""

    node: str
    unschedulable: bool


@dataclass(frozen=True, slots=True)
class DrainNode:
    """Cordon a node and evict its pods.

    It begins when the drain of the node `after` is over, where one has begun or waits to. A node that is drained is
    deleted if it `removes` it.
    """

    node: str
    settings: DrainSettings
    after: str = ""
    removes: bool = False


@dataclass(frozen=True, slots=True)
class NodeDown:
    """Let a node's machine stop, with all that runs on it; nobody is told."""

    node: str


@dataclass(frozen=True, slots=True)
class NodeUp:
    """Let a node's machine start again."""

    node: str


@dataclass(frozen=True, slots=True)
class TroubleNode:
    """Let containers fail on a node, as its annotation has it; None: no more."""

    node: str
    trouble: str | None


@dataclass(frozen=True, slots=True)
class Announce:
    """Announce that a node goes down so long after the step; None: that it is over."""

    node: str
    after_ns: int | None


@dataclass(frozen=True, slots=True)
class Patch:
    """Change an object by a patch of a type; with the `subresource` status, its status and nothing else."""

    kind: str
    key: str
    type: StepPatchType
    patch: Any
    subresource: Literal["", "status"] = ""


@dataclass(frozen=True, slots=True)
class Selected:
    """A change to each object of a kind, by key, whose labels match as the step is played.

    `selector` is a label selector as kubectl's -l takes it; `namespace` "" stands for all of them, and for objects that
    have none. Of `change` all but whom it is about holds.
    """

    kind: str
    namespace: str
    selector: str
    change: Remove | Cordon | DrainNode | NodeDown | NodeUp


Change = (
    Apply
    | Remove
    | EvictPod
    | Scale
    | Finish
    | Use
    | Cordon
    | DrainNode
    | NodeDown
    | NodeUp
    | TroubleNode
    | Announce
    | Patch
    | Selected
)
