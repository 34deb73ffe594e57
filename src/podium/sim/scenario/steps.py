"""The steps of a scenario: what happens at which time, and how it is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from podium.api.avoid_list import AvoidFor, AwaitedPod
from podium.api.errors import InputError, shown
from podium.api.input.codec import Document
from podium.api.kinds import KINDS, WORKLOADS
from podium.api.meta import Kubernetes, Raw
from podium.api.names import subdomain_problem
from podium.api.objects import read_object
from podium.api.replacements import ForReplacement
from podium.api.selectors import parse_label_selector
from podium.api.times import format_duration
from podium.machines.disruption.drain import DrainSettings
from podium.machines.kubelets.node_trouble import read_trouble
from podium.sim.annotations import check_annotations
from podium.sim.scenario.changes import (
    SCENARIO,
    Announce,
    Apply,
    Change,
    Cordon,
    DrainNode,
    EvictPod,
    Finish,
    NodeDown,
    NodeUp,
    Remove,
    Scale,
    Selected,
    TroubleNode,
    Use,
)
from podium.sim.scenario.fields import Fields
from podium.sim.scenario.patching import read_patch
from podium.sim.scenario.repeating import MOST_STEPS, read_repeat

_NAMESPACED = {kind.name: kind.namespaced for kind in KINDS.values()}
_APPLY = "apply"
_SCALABLE = sorted(kind.name for kind in KINDS.values() if kind.has_scale)


# What a step does, each change with the path of its field, and how long after the step it happens.
Changes = Sequence[tuple[Change, str, int]]


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


def read_steps(step: Fields, document: Document, until_ns: int | None = None) -> list[Step]:
    """What one entry of a scenario's steps makes happen, which ends after ``until_ns``.

    Raises InputError with the field's path.
    """
    times = read_repeat(step, step.duration_ns("at"), until_ns)
    named = step.those_of(STEP_NAMES)
    if len(named) != 1:
        what = f"has {' and '.join(named)}" if named else "does nothing"
        *names, last = STEP_NAMES
        raise InputError(f"{what}; a step has exactly one of {', '.join(names)} and {last}", path=step.path)
    changes = _applies(step, document) if named[0] == _APPLY else _STEPS[named[0]](step, named[0])
    step.refuse_others()
    if len(times) * len(changes) > MOST_STEPS:
        raise InputError(f"{len(times) * len(changes):,} things happen; at most {MOST_STEPS:,} may", path=step.path)
    return [Step(at_ns + delay_ns, change, document, path) for at_ns in times for change, path, delay_ns in changes]


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
    return [(_apply(raw, path, document), path, 0) for raw, path in step.list_of_objects(_APPLY)]


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
        return [(change, target.path, 0)]

    return read_step


def _remove(target: Fields) -> Change:
    kind = target.text("kind")
    if kind not in _NAMESPACED:
        raise InputError(f"the kind {shown(kind)} is not simulated", path=f"{target.path}.kind")
    selected = _selection(target)
    namespace = "" if selected is None or not _NAMESPACED[kind] else target.text("namespace", "default")
    key = _key(target, kind) if selected is None else ""
    remove = Remove(kind, key, target.boolean("outright", default=False) if kind == "Pod" else False)
    return remove if selected is None else Selected(kind, namespace, selected, remove)


def _key(target: Fields, kind: str) -> str:
    """The object of a kind that fields name."""
    return target.key() if _NAMESPACED[kind] else target.text("name")


def _selection(target: Fields) -> str | None:
    """The label selector that stands in the place of a name; None where there is none."""
    if not target.has("selector"):
        return None
    if target.has("name"):
        raise InputError("has a name and a selector; give one of them", path=target.path)
    selector = target.text("selector")
    try:
        parse_label_selector(selector)
    except InputError as error:
        raise InputError(error.problem, path=f"{target.path}.selector") from None
    return selector


def _on_nodes(make: Callable[[str, Fields], Cordon | DrainNode | NodeDown | NodeUp]) -> Callable[[Fields], Change]:
    """The reader of what happens to the node of a name, or to those that a selector matches."""

    def read_change(target: Fields) -> Change:
        selector = _selection(target)
        if selector is None:
            return make(target.text("name"), target)
        return Selected("Node", "", selector, make("", target))

    return read_change


def _scale(target: Fields) -> Change:
    kind = target.text("kind", "Deployment")
    if kind not in _SCALABLE:
        problem = f"the kind {shown(kind)} has no scale; one of {', '.join(_SCALABLE)} has"
        raise InputError(problem, path=f"{target.path}.kind")
    return Scale(kind, target.key(), target.number("replicas", least=0))


def _drain(node: str, target: Fields) -> DrainNode:
    plain = DrainSettings()
    return DrainNode(
        node,
        DrainSettings(
            timeout_ns=target.duration_ns("timeout") if target.has("timeout") else plain.timeout_ns,
            grace_seconds=target.number("gracePeriodSeconds", least=0) if target.has("gracePeriodSeconds") else None,
            force=target.boolean("force", plain.force),
            delete_empty_dir_data=target.boolean("deleteEmptyDirData", plain.delete_empty_dir_data),
            ignore_daemon_sets=target.boolean("ignoreDaemonSets", plain.ignore_daemon_sets),
            disable_eviction=target.boolean("disableEviction", plain.disable_eviction),
        ),
        target.text("after", ""),
        target.boolean("removeNode", default=False),
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


def _usage(target: Fields) -> Change:
    cpu = target.cpu("cpu") if target.has("cpu") else None
    memory = target.memory("memory") if cpu is None or target.has("memory") else None
    return Use(target.key(), memory, cpu, _pod_or_workload(target))


def _trouble(target: Fields) -> Change:
    """`crashAfter` or `rejectAfter`, and whose `pods`, as a label selector; without either it is over."""
    node = target.text("name")
    kind = next((name for name in ("crashAfter", "rejectAfter") if target.has(name)), "")
    if not kind:
        return TroubleNode(node, None)
    after = f"{'reject ' if kind == 'rejectAfter' else ''}{format_duration(target.duration_ns(kind))}"
    selector = target.text("pods", "")
    trouble = f"{after} {selector}".strip()
    try:
        read_trouble(trouble)
    except ValueError as error:
        field = "pods" if _is_selector_wrong(selector) else kind
        raise InputError(str(error), path=f"{target.path}.{field}") from None
    return TroubleNode(node, trouble)


def _is_selector_wrong(selector: str) -> bool:
    try:
        parse_label_selector(selector)
    except InputError:
        return True
    return False


def _maintenance(step: Fields, name: str) -> Changes:
    """Announced with the step, down `in` so long, up again `for` so long after that; without it, down for good."""
    target = step.fields(name)
    node, after_ns = target.text("name"), target.duration_ns("in")
    changes: list[tuple[Change, str, int]] = [
        (Announce(node, after_ns), target.path, 0),
        (NodeDown(node), target.path, after_ns),
    ]
    if target.has("for"):
        over_ns = after_ns + target.duration_ns("for")
        changes += [(NodeUp(node), target.path, over_ns), (Announce(node, None), target.path, over_ns)]
    target.refuse_others()
    return changes


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
    if not target.has("replacement"):
        return ForReplacement()
    given = target.fields("replacement")
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


_STEPS: Mapping[str, Callable[[Fields, str], Changes]] = {
    "delete": _single(_remove),
    "evict": _single(_evict),
    "scale": _single(_scale),
    "finish": _single(lambda target: Finish(target.key(), _pod_or_workload(target))),
    "usage": _single(_usage),
    "patch": _single(lambda target: read_patch(target, _key, _NAMESPACED)),
    "cordon": _single(_on_nodes(lambda node, _: Cordon(node, unschedulable=True))),
    "uncordon": _single(_on_nodes(lambda node, _: Cordon(node, unschedulable=False))),
    "drain": _single(_on_nodes(_drain)),
    "nodeDown": _single(_on_nodes(lambda node, _: NodeDown(node))),
    "nodeUp": _single(_on_nodes(lambda node, _: NodeUp(node))),
    "trouble": _single(_trouble),
    "maintenance": _maintenance,
}
"""What a step may do beside `apply`, and how it is read."""

STEP_NAMES = (_APPLY, *_STEPS)
"""What a step may do; it does one thing."""
