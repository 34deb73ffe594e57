"""Parsing of the steps of a scenario."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import msgspec

from podium.api.avoid_list import AvoidFor, AwaitedPod, ForReplacement
from podium.api.errors import InputError, field_path, shown
from podium.api.input.codec import Document
from podium.api.kinds import KINDS, WORKLOADS
from podium.api.meta import Kubernetes, ObjectMeta, Raw
from podium.api.names import subdomain_problem
from podium.api.node import Node
from podium.api.objects import read_object
from podium.api.pod import Pod
from podium.api.selectors import parse_label_selector
from podium.api.times import format_duration
from podium.api.warnings import InputWarning
from podium.api.workloads import CronJob, DaemonSet, Deployment, Job, ReplicaSet, ReplicationController, StatefulSet
from podium.controllers.actions import Evict
from podium.controllers.disruption.drain import DrainSettings
from podium.controllers.kubelets.annotations import (
    CPU_USAGE,
    CRASH_AFTER,
    DURATION,
    MEMORY_USAGE,
    TROUBLE,
    node_problems,
    pod_problems,
    read_trouble,
)
from podium.sim.scenario.fields import MOST_STEPS, Fields, read_repeat

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


@dataclass(frozen=True, slots=True)
class Patch:
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


@dataclass(frozen=True, slots=True)
class EvictPod:
    """Evict a pod, or the first pod of a workload, through the API's subresource; `eviction` names no pod yet."""

    key: str
    kind: str = "Pod"
    eviction: Evict = Evict("", "", SCENARIO, SCENARIO)  # noqa: RUF009 - an immutable value


@dataclass(frozen=True, slots=True)
class Finish:
    """Let the containers of a pod, or of the first running pod of a workload, exit with success."""

    key: str
    kind: str = "Pod"


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


@dataclass(frozen=True, slots=True)
class Announce:
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


_NAMESPACED = {kind.name: kind.namespaced for kind in KINDS.values()}
_APPLY = "apply"
_SCALABLE = sorted(kind.name for kind in KINDS.values() if kind.has_scale)


# The changes of a step, each with the path of its field and its delay after the step.
Changes = Sequence[tuple[Change, str, int]]


@dataclass(frozen=True, slots=True)
class ScenarioStep:
    """A change `at_ns` after the start; `place` and `path` locate it in errors."""

    at_ns: int
    change: Change
    place: Document
    path: str

    def error(self, problem: str) -> InputError:
        return located(self.place, self.path, problem)


def read_steps(step: Fields, document: Document, until_ns: int | None = None) -> list[ScenarioStep]:
    """Return the changes of one entry of a scenario's steps, repeated until ``until_ns``. Raises InputError."""
    times = read_repeat(step, step.duration_ns("at"), until_ns)
    named = step.those_of(STEP_NAMES)
    if len(named) != 1:
        what = f"has {' and '.join(named)}" if named else "does nothing"
        *names, last = STEP_NAMES
        raise InputError(f"{what}; a step has exactly one of {', '.join(names)} and {last}", path=step.path)
    if named[0] == _APPLY:
        applied = step.list_of_fields(_APPLY)
        changes: Changes = [(_apply(fields.rest(), fields.path, document), fields.path, 0) for fields in applied]
    else:
        changes = _STEPS[named[0]](step, named[0])
    step.refuse_others()
    if len(times) * len(changes) > MOST_STEPS:
        raise InputError(f"{len(times) * len(changes):,} things happen; at most {MOST_STEPS:,} may", path=step.path)
    return [
        ScenarioStep(at_ns + delay_ns, change, document, path) for at_ns in times for change, path, delay_ns in changes
    ]


def check_played(read_raw: Callable[[], Raw], object_: Kubernetes) -> None:
    """Raise InputError for invalid parts of an object that only a simulation reads.

    ``read_raw`` returns the wire form; pods do not need it, since their status is parsed.
    """
    check_annotations(object_)
    if isinstance(object_, Pod):
        return
    status = read_raw().get("status", {})
    if not isinstance(status, dict):
        raise InputError(f"{shown(status)} is not an object", path=".status")


def located(document: Document, path: str, problem: str) -> InputError:
    """Return an error at a field of a scenario's document."""
    return InputError(problem, source=document.source, document=document.index, object=label_of(document), path=path)


def label_of(document: Document) -> str:
    """Return the name of the document in errors."""
    metadata = document.raw.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return f"{document.raw.get('kind')} {name}" if isinstance(name, str) else str(document.raw.get("kind"))


def _apply(raw: dict[str, Any], path: str, document: Document) -> Apply:
    try:
        read = read_object(raw, document.validation)
        object_ = read.object
        if object_ is None:
            raise InputError(f"the kind {shown(raw['kind'])} is not simulated", path=".kind")
        check_played(lambda: read.raw, object_)
    except InputError as error:
        problem = f"{error.object}: {error.problem}" if error.object else error.problem
        raise InputError(problem, path=path + error.path) from None
    warnings = (
        replace(warning, source=document.source, document=document.index, path=path + warning.path)
        for warning in read.warnings
    )
    return Apply(read.raw, object_, tuple(warnings))


def _single(read_change: Callable[[Fields], Change]) -> Callable[[Fields, str], Changes]:
    """Return the reader of a step whose field is one object."""

    def read_step(step: Fields, name: str) -> Changes:
        target = step.fields(name)
        change = read_change(target)
        target.refuse_others()
        return [(change, target.path, 0)]

    return read_step


def _remove(target: Fields) -> Change:
    kind = _kind(target)
    selected = _selection(target)
    namespace = "" if selected is None or not _NAMESPACED[kind] else target.text("namespace", "default")
    key = _key(target, kind) if selected is None else ""
    remove = Remove(kind, key, target.boolean("outright", default=False) if kind == "Pod" else False)
    return remove if selected is None else SelectedObjects(kind, namespace, selected, remove)


def _kind(target: Fields) -> str:
    kind = target.text("kind")
    if kind not in _NAMESPACED:
        raise InputError(f"the kind {shown(kind)} is not simulated", path=f"{target.path}.kind")
    return kind


def _key(target: Fields, kind: str) -> str:
    """Return the key of the object that the fields name."""
    return target.key() if _NAMESPACED[kind] else target.text("name")


def _selection(target: Fields) -> str | None:
    """Return the label selector given instead of a name; None without one."""
    if not target.has("selector"):
        return None
    if target.has("name"):
        raise InputError("has a name and a selector; give one of them", path=target.path)
    selector = target.text("selector")
    if problem := _selector_problem(selector):
        raise InputError(problem, path=f"{target.path}.selector")
    return selector


def _selector_problem(selector: str) -> str:
    """Return what is wrong with a label selector; "" if it is valid."""
    try:
        parse_label_selector(selector)
    except InputError as error:
        return error.problem
    return ""


def _on_nodes(make: Callable[[str, Fields], Edit | DrainNode | SetPower]) -> Callable[[Fields], Change]:
    """Return the reader of a change of a named node, or of the nodes that a selector matches."""

    def read_change(target: Fields) -> Change:
        selector = _selection(target)
        if selector is None:
            return make(target.text("name"), target)
        return SelectedObjects("Node", "", selector, make("", target))

    return read_change


def _cordon(node: str, *, unschedulable: bool) -> Edit:
    message = "cordoned" if unschedulable else "uncordoned"
    return Edit("Node", node, {"spec": {"unschedulable": unschedulable}}, message)


def _scale(target: Fields) -> Change:
    kind = target.text("kind", "Deployment")
    if kind not in _SCALABLE:
        problem = f"the kind {shown(kind)} has no scale; one of {', '.join(_SCALABLE)} has"
        raise InputError(problem, path=f"{target.path}.kind")
    return Edit(kind, target.key(), {"spec": {"replicas": target.number("replicas", least=0)}})


def _drain(node: str, target: Fields) -> DrainNode:
    plain = DrainSettings()
    return DrainNode(
        node,
        DrainSettings(
            timeout_ns=target.optional("timeout", target.duration_ns, plain.timeout_ns),
            grace_seconds=_grace_seconds(target),
            force=target.boolean("force", plain.force),
            delete_empty_dir_data=target.boolean("deleteEmptyDirData", plain.delete_empty_dir_data),
            ignore_daemon_sets=target.boolean("ignoreDaemonSets", plain.ignore_daemon_sets),
            disable_eviction=target.boolean("disableEviction", plain.disable_eviction),
        ),
        target.text("after", ""),
        target.boolean("removeNode", default=False),
    )


def _grace_seconds(target: Fields) -> int | None:
    return target.number("gracePeriodSeconds", least=0) if target.has("gracePeriodSeconds") else None


def _evict(target: Fields) -> EvictPod:
    avoid_node, avoid_for = _avoiding(target)
    key, grace_seconds, component = target.key(), _grace_seconds(target), target.text("component", SCENARIO)
    kind, left = _pod_or_workload(target), _for_replacement(target)
    return EvictPod(key, kind, Evict("", "", SCENARIO, component, grace_seconds, avoid_node, avoid_for, left))


def _usage(target: Fields) -> Change:
    cpu = target.optional("cpu", target.cpu)
    memory = target.memory("memory") if cpu is None or target.has("memory") else None
    usage = {name: amount for name, amount in ((MEMORY_USAGE, memory), (CPU_USAGE, cpu)) if amount is not None}
    key = target.key()
    return Edit(_pod_or_workload(target), key, {"metadata": {"annotations": usage}}, of_pod=True)


def annotation(node: str, name: str, value: str | None, message: str) -> Edit:
    """Return the change of a node's annotation; None removes it."""
    return Edit("Node", node, {"metadata": {"annotations": {name: value}}}, message)


def _trouble(target: Fields) -> Change:
    """Read `crashAfter` or `rejectAfter` with the label selector `pods`; without either the trouble ends."""
    node = target.text("name")
    kind = next((name for name in ("crashAfter", "rejectAfter") if target.has(name)), "")
    if not kind:
        return annotation(node, TROUBLE, None, "trouble is over")
    after = f"{'reject ' if kind == 'rejectAfter' else ''}{format_duration(target.duration_ns(kind))}"
    selector = target.text("pods", "")
    trouble = f"{after} {selector}".strip()
    try:
        read_trouble(trouble)
    except ValueError as error:
        field = "pods" if _selector_problem(selector) else kind
        raise InputError(str(error), path=f"{target.path}.{field}") from None
    return annotation(node, TROUBLE, trouble, f"trouble: {trouble}")


def _maintenance(step: Fields, name: str) -> Changes:
    """Read a maintenance: announced now, down after `in`, up again `for` so long later; without it down for good."""
    target = step.fields(name)
    node, after_ns = target.text("name"), target.duration_ns("in")
    changes: list[tuple[Change, str, int]] = [
        (Announce(node, after_ns), target.path, 0),
        (SetPower(node, is_up=False), target.path, after_ns),
    ]
    if target.has("for"):
        over_ns = after_ns + target.duration_ns("for")
        changes += [(SetPower(node, is_up=True), target.path, over_ns), (Announce(node, None), target.path, over_ns)]
    target.refuse_others()
    return changes


def _pod_or_workload(target: Fields) -> str:
    kind = target.text("kind", "Pod")
    if kind != "Pod" and kind not in WORKLOADS:
        problem = f"the kind {shown(kind)} has no pods; one of Pod, {', '.join(WORKLOADS)} is expected"
        raise InputError(problem, path=f"{target.path}.kind")
    return kind


def _avoiding(target: Fields) -> tuple[bool, AvoidFor]:
    """Read `avoidNode`: true or false, or an object with its duration."""
    if not target.has_object("avoidNode"):
        return target.boolean("avoidNode", default=False), AvoidFor()
    given = target.fields("avoidNode")
    expire_after_ns = given.optional("expireAfter", given.duration_ns)
    until = ""
    if given.has("untilScheduled"):
        awaited = given.fields("untilScheduled")
        until = awaited.key()
        awaited.refuse_others()
    replaced = None
    if given.has("untilReplaced"):
        if until:
            problem = "is one thing to wait for too many; untilScheduled stands there as well"
            raise InputError(problem, path=f"{given.path}.untilReplaced")
        awaited = given.fields("untilReplaced")
        replaced = AwaitedPod(namespace=awaited.text("namespace", "default"), name=awaited.text("name"))
        awaited.refuse_others()
    given.refuse_others()
    return True, AvoidFor(expire_after_ns, until, replaced)


def _for_replacement(target: Fields) -> ForReplacement:
    given = target.fields("replacement", is_optional=True)
    found = ForReplacement(
        given.boolean("first", default=False),
        given.text("nodeName", ""),
        given.boolean("awaited", default=False),
    )
    problem = subdomain_problem(found.node_name) if found.node_name else None
    if problem:
        raise InputError(problem, path=f"{given.path}.nodeName")
    given.refuse_others()
    return found


_PATCH_TYPES: tuple[StepPatchType, ...] = get_args(StepPatchType)
_SUBRESOURCES: tuple[Literal["", "status"], ...] = ("", "status")
_LONGEST = 1_000_000


def _patch(target: Fields) -> Patch:
    kind = _kind(target)
    key = _key(target, kind)
    type_ = target.choice("type", _PATCH_TYPES, "strategic")
    subresource = target.choice("subresource", _SUBRESOURCES, "")
    return Patch(kind, key, type_, _body(target, type_), subresource)


def _body(target: Fields, type_: StepPatchType) -> Any:
    """Return the patch: an object, or a list for type `json`; or the same as JSON text, which keeps nulls."""
    path = f"{target.path}.patch"
    body = target.take("patch")
    is_text = isinstance(body, str)
    if is_text:
        if len(body) > _LONGEST:
            raise InputError(f"has more than {_LONGEST:,} characters", path=path)
        try:
            body = msgspec.json.decode(body)
        except (msgspec.DecodeError, RecursionError) as error:
            raise InputError(f"is text, and no JSON: {error}", path=path) from None
    wanted = list if type_ == "json" else dict
    if not isinstance(body, wanted):
        what = "a list of operations" if type_ == "json" else "an object"
        raise InputError(f"{shown(body)} is not {what}, as a patch of type {type_} is", path=path)
    if not is_text and type_ != "json" and _has_empty(body):
        problem = 'has an empty object; to remove fields write text, as in \'{"metadata": {"labels": {"app": null}}}\''
        raise InputError(problem, path=path)
    return body


def _has_empty(value: Any) -> bool:
    """Return whether nulls may have been dropped when the object was parsed."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return value == {} or any(map(_has_empty, inner))


_STEPS: Mapping[str, Callable[[Fields, str], Changes]] = {
    "delete": _single(_remove),
    "evict": _single(_evict),
    "scale": _single(_scale),
    "finish": _single(lambda target: Finish(target.key(), _pod_or_workload(target))),
    "usage": _single(_usage),
    "patch": _single(_patch),
    "cordon": _single(_on_nodes(lambda node, _: _cordon(node, unschedulable=True))),
    "uncordon": _single(_on_nodes(lambda node, _: _cordon(node, unschedulable=False))),
    "drain": _single(_on_nodes(_drain)),
    "nodeDown": _single(_on_nodes(lambda node, _: SetPower(node, is_up=False))),
    "nodeUp": _single(_on_nodes(lambda node, _: SetPower(node, is_up=True))),
    "trouble": _single(_trouble),
    "maintenance": _maintenance,
}
"""The readers of all steps but `apply`, by name."""

STEP_NAMES = (_APPLY, *_STEPS)
"""The names of steps; an entry has exactly one."""


Workload = Deployment | ReplicaSet | ReplicationController | StatefulSet | DaemonSet
"""Workloads that replace pods that have ended."""

_REPLACING = frozenset(get_args(Workload))
_Templated = Workload | Job
FAILING = "containers that crash are started again"
"""The reason why a simulation with crashing containers has no end."""

# Reasons why objects with an annotation never become idle.
_ENDLESS = {
    DURATION: "pods that end are replaced",
    MEMORY_USAGE: "pods that may be evicted are replaced",
    CRASH_AFTER: FAILING,
}


def check_annotations(object_: Kubernetes) -> None:
    """Raise InputError for an invalid annotation of a pod, a pod template or a node."""
    judged = [(pod_problems(metadata.annotations), path) for metadata, path in _pod_metadata(object_)]
    if isinstance(object_, Node):
        judged.append((node_problems(object_.metadata.annotations), ".metadata"))
    for problems, path in judged:
        for name, problem in problems.items():
            raise InputError(problem, path=_path(path, name))


def is_endless(change: Change) -> bool:
    """Return whether a change makes containers fail for ever."""
    return isinstance(change, Edit) and bool(change.patch.get("metadata", {}).get("annotations", {}).get(TROUBLE))


def check_end(object_: Kubernetes) -> None:
    """Raise InputError for an object whose pods keep a simulation without an end running forever."""
    if isinstance(object_, Node) and TROUBLE in object_.metadata.annotations:
        raise InputError(f"{FAILING} for ever; say when to stop with `until`", path=_path(".metadata", TROUBLE))
    for metadata, path in _pod_metadata(object_):
        for name, which in _ENDLESS.items():
            if name in metadata.annotations and (name == CRASH_AFTER or type(object_) in _REPLACING):
                raise InputError(f"{which} for ever; say when to stop with `until`", path=_path(path, name))


def _path(metadata: str, name: str) -> str:
    return field_path(f"{metadata}.annotations", name)


def _pod_metadata(object_: Kubernetes) -> list[tuple[ObjectMeta, str]]:
    if isinstance(object_, Pod):
        return [(object_.metadata, ".metadata")]
    if isinstance(object_, CronJob):
        return [(object_.spec.job_template.spec.template.metadata, ".spec.jobTemplate.spec.template.metadata")]
    if isinstance(object_, _Templated):
        return [(object_.spec.template.metadata, ".spec.template.metadata")]
    return []
