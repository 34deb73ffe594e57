"""The steps of a scenario: what happens at which time, and how it is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from podium.api.avoid_list import AvoidFor
from podium.api.errors import InputError, shown
from podium.api.input.codec import Document
from podium.api.kinds import KINDS
from podium.api.meta import Kubernetes, Raw
from podium.api.names import subdomain_problem
from podium.api.objects import read_object
from podium.api.replacements import ForReplacement
from podium.api.warnings import InputWarning
from podium.machines.disruption.drain import DrainSettings
from podium.sim.annotations import check_annotations
from podium.sim.scenario.fields import Fields

SCENARIO = "scenario"
"""Who carries out the steps; the component of evictions that name none."""

_NAMESPACED = {kind.name: kind.namespaced for kind in KINDS.values()}
_APPLY = "apply"
WORKLOADS = ("CronJob", "DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet")
"""The kinds whose pods a step can mean without naming one."""

_SCALABLE = sorted(kind.name for kind in KINDS.values() if kind.has_scale)


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
class UseMemory:
    """Let a pod use so much memory from now on."""

    pod: str
    memory: str


@dataclass(frozen=True, slots=True)
class Cordon:
    """Mark a node as unschedulable, or schedulable again."""

    node: str
    unschedulable: bool


@dataclass(frozen=True, slots=True)
class DrainNode:
    """Cordon a node and evict its pods."""

    node: str
    settings: DrainSettings


@dataclass(frozen=True, slots=True)
class NodeDown:
    """Let a node's machine stop, with all that runs on it; nobody is told."""

    node: str


@dataclass(frozen=True, slots=True)
class NodeUp:
    """Let a node's machine start again."""

    node: str


Change = Apply | Remove | EvictPod | Scale | Finish | UseMemory | Cordon | DrainNode | NodeDown | NodeUp
# What a step does, each change with the path of its field.
Changes = Sequence[tuple[Change, str]]


@dataclass(frozen=True, slots=True)
class Step:
    """What happens `at_ns` after the start; `place` locates it in errors, with `path` for the field."""

    at_ns: int
    change: Change
    place: Document
    path: str

    def error(self, problem: str) -> InputError:
        """An error at this step."""
        return located(self.place, self.path, problem)


def read_steps(step: Fields, document: Document) -> list[Step]:
    """What one entry of a scenario's steps makes happen. Raises InputError with the field's path."""
    at_ns = step.duration_ns("at")
    names = [_APPLY, *_STEPS]
    named = [name for name in names if step.has(name)]
    if len(named) != 1:
        what = f"has {' and '.join(named)}" if named else "does nothing"
        *names, last = names
        raise InputError(f"{what}; a step has exactly one of {', '.join(names)} and {last}", path=step.path)
    changes = _applies(step, document) if named[0] == _APPLY else _STEPS[named[0]](step, named[0])
    step.refuse_others()
    return [Step(at_ns, change, document, path) for change, path in changes]


def check_played(raw: Raw, object_: Kubernetes) -> None:
    """Raise InputError for what the codec does not read of an object and a simulation does."""
    check_annotations(object_)
    if not isinstance(raw.get("status", {}), dict):
        raise InputError(f"{shown(raw['status'])} is not an object", path=".status")


def located(document: Document, path: str, problem: str) -> InputError:
    """An error in a scenario's document, at a field."""
    return InputError(problem, source=document.source, document=document.index, object=label_of(document), path=path)


def label_of(document: Document) -> str:
    """The document as errors name it."""
    metadata = document.raw.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return f"{document.raw.get('kind')} {name}" if isinstance(name, str) else str(document.raw.get("kind"))


def _applies(step: Fields, document: Document) -> Changes:
    return [(_apply(raw, path, document), path) for raw, path in step.list_of_objects(_APPLY)]


def _apply(raw: dict[str, Any], path: str, document: Document) -> Apply:
    try:
        read = read_object(raw, document.validation)
        object_ = read.object
        if object_ is None:
            raise InputError(f"the kind {shown(raw['kind'])} is not simulated", path=".kind")
        check_played(read.raw, object_)
    except InputError as error:
        problem = f"{error.object}: {error.problem}" if error.object else error.problem
        raise InputError(problem, path=path + error.path) from None
    warnings = (
        replace(warning, source=document.source, document=document.index, path=path + warning.path)
        for warning in read.warnings
    )
    return Apply(read.raw, object_, tuple(warnings))


def _single(read_change: Callable[[Fields], Change]) -> Callable[[Fields, str], Changes]:
    """The reader of a step whose field is one object."""

    def read_step(step: Fields, name: str) -> Changes:
        target = step.fields(name)
        change = read_change(target)
        target.refuse_others()
        return [(change, target.path)]

    return read_step


def _remove(target: Fields) -> Change:
    kind = target.text("kind")
    if kind not in _NAMESPACED:
        raise InputError(f"the kind {shown(kind)} is not simulated", path=f"{target.path}.kind")
    key = target.key() if _NAMESPACED[kind] else target.text("name")
    return Remove(kind, key, target.boolean("outright", default=False) if kind == "Pod" else False)


def _scale(target: Fields) -> Change:
    kind = target.text("kind", "Deployment")
    if kind not in _SCALABLE:
        problem = f"the kind {shown(kind)} has no scale; one of {', '.join(_SCALABLE)} has"
        raise InputError(problem, path=f"{target.path}.kind")
    return Scale(kind, target.key(), target.number("replicas", least=0))


def _drain(target: Fields) -> Change:
    plain = DrainSettings()
    return DrainNode(
        target.text("name"),
        DrainSettings(
            timeout_ns=target.duration_ns("timeout") if target.has("timeout") else plain.timeout_ns,
            grace_seconds=target.number("gracePeriodSeconds", least=0) if target.has("gracePeriodSeconds") else None,
            force=target.boolean("force", plain.force),
            delete_empty_dir_data=target.boolean("deleteEmptyDirData", plain.delete_empty_dir_data),
            ignore_daemon_sets=target.boolean("ignoreDaemonSets", plain.ignore_daemon_sets),
            disable_eviction=target.boolean("disableEviction", plain.disable_eviction),
        ),
    )


def _evict(target: Fields) -> EvictPod:
    avoid_node, avoid_for = _avoiding(target)
    return EvictPod(
        target.key(),
        target.number("gracePeriodSeconds", least=0) if target.has("gracePeriodSeconds") else None,
        target.text("component", SCENARIO),
        avoid_node,
        avoid_for,
        _pod_or_workload(target),
        _for_replacement(target),
    )


def _pod_or_workload(target: Fields) -> str:
    kind = target.text("kind", "Pod")
    if kind != "Pod" and kind not in WORKLOADS:
        problem = f"the kind {shown(kind)} has no pods; one of Pod, {', '.join(WORKLOADS)} is expected"
        raise InputError(problem, path=f"{target.path}.kind")
    return kind


def _avoiding(target: Fields) -> tuple[bool, AvoidFor]:
    """`avoidNode`: true or false, or an object that says for how long."""
    if not target.has_object("avoidNode"):
        return target.boolean("avoidNode", default=False), AvoidFor()
    given = target.fields("avoidNode")
    expire_after_ns = given.duration_ns("expireAfter") if given.has("expireAfter") else None
    until = ""
    if given.has("untilScheduled"):
        awaited = given.fields("untilScheduled")
        until = awaited.key()
        awaited.refuse_others()
    given.refuse_others()
    return True, AvoidFor(expire_after_ns, until)


def _for_replacement(target: Fields) -> ForReplacement:
    if not target.has("replacement"):
        return ForReplacement()
    given = target.fields("replacement")
    found = ForReplacement(given.boolean("first", default=False), given.text("nodeName", ""))
    problem = subdomain_problem(found.node_name) if found.node_name else None
    if problem:
        raise InputError(problem, path=f"{given.path}.nodeName")
    given.refuse_others()
    return found


_STEPS: Mapping[str, Callable[[Fields, str], Changes]] = {
    "delete": _single(_remove),
    "evict": _single(_evict),
    "scale": _single(_scale),
    "finish": _single(lambda target: Finish(target.key(), _pod_or_workload(target))),
    "usage": _single(lambda target: UseMemory(target.key(), target.memory("memory"))),
    "cordon": _single(lambda target: Cordon(target.text("name"), unschedulable=True)),
    "uncordon": _single(lambda target: Cordon(target.text("name"), unschedulable=False)),
    "drain": _single(_drain),
    "nodeDown": _single(lambda target: NodeDown(target.text("name"))),
    "nodeUp": _single(lambda target: NodeUp(target.text("name"))),
}
"""What a step may do beside `apply`, and how it is read."""
