"""The story that a simulation plays: what is applied, deleted and finished at which time.

apiVersion: podium.dev/v1alpha1
kind: Scenario
metadata: {name: example}
spec:
  until: 2m
  steps:
  - at: 0s
    apply: [ ...objects... ]
  - at: 30s
    delete: {kind: Pod, namespace: default, name: a}
  - at: 40s
    finish: {namespace: default, name: b}
  - at: 50s
    usage: {namespace: default, name: c, memory: 1Gi}
  - at: 60s
    cordon: {name: node-1}
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from podium.api.codec import Document, decode
from podium.api.errors import InputError, shown
from podium.api.kinds import KINDS
from podium.api.meta import Kubernetes, Raw
from podium.api.reading import read
from podium.api.times import parse_duration
from podium.api.workloads import Job
from podium.machines.kubelet import KubeletSettings
from podium.machines.pod_annotations import MEMORY_USAGE, memory_usage
from podium.sim.annotations import check_annotations
from podium.sim.fields import Fields
from podium.sim.jobs import JobProgress

API_VERSION = "podium.dev/v1alpha1"
_GROUP = API_VERSION.partition("/")[0]
_NAMESPACED = {kind.name: kind.namespaced for kind in KINDS.values()}


@dataclass(frozen=True, slots=True)
class Apply:
    """Create an object, or bring an existing one to what `raw` says."""

    raw: Raw
    object: Kubernetes


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete an object, with its own grace period."""

    kind: str
    key: str


@dataclass(frozen=True, slots=True)
class Finish:
    """Let a pod's containers exit by themselves, with success."""

    pod: str


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


Change = Apply | Remove | Finish | UseMemory | Cordon
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
        return _error(self.place, self.path, problem)


@dataclass(frozen=True, slots=True)
class SchedulerSettings:
    """One of several schedulers: the `schedulerName` it answers to, and how long a binding takes it, where given."""

    name: str
    bind_delay_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Scenario:
    """The steps by time, then as written; `until_ns` after the start the story ends, None for when all is quiet.

    Without `schedulers` there is one, with the profiles of its configuration.
    """

    name: str = ""
    until_ns: int | None = None
    steps: tuple[Step, ...] = ()
    kubelets: KubeletSettings = field(default_factory=KubeletSettings)
    schedulers: tuple[SchedulerSettings, ...] = ()


def split_documents(documents: Iterable[Document]) -> tuple[list[Document], Scenario]:
    """The cluster's objects and the scenario; kinds that Podium does not read are left out.

    Raises InputError for a second scenario and for anything wrong in one.
    """
    objects: list[Document] = []
    scenarios: list[Document] = []
    for document in documents:
        if document.object is not None:
            objects.append(document)
        elif str(document.raw.get("apiVersion", "")).partition("/")[0] == _GROUP:
            scenarios.append(document)
    if len(scenarios) > 1:
        first = scenarios[0]
        problem = (
            f"is a second scenario; the first is in {first.source or 'document'} {first.index}; play one at a time"
        )
        raise _error(scenarios[1], "", problem)
    return objects, read_scenario(scenarios[0]) if scenarios else Scenario()


def read_scenario(document: Document) -> Scenario:
    """The scenario of a document. Raises InputError with the field's path for what is wrong or unknown."""
    try:
        return _scenario(document)
    except InputError as error:
        raise error.located(source=document.source, document=document.index, object=_label(document)) from None


def _scenario(document: Document) -> Scenario:
    root = Fields(document.raw, "")
    for key, right in (("apiVersion", API_VERSION), ("kind", "Scenario")):
        value = root.take(key)
        if value != right:
            raise InputError(f"{shown(value)} is not {right}", path=f".{key}")
    metadata = root.fields("metadata") if root.has("metadata") else Fields({}, "")
    name = metadata.text("name") if metadata.has("name") else ""
    spec = root.fields("spec")
    until_ns = _duration(spec, "until") if spec.has("until") else None
    kubelets = _kubelets(spec.fields("kubelets")) if spec.has("kubelets") else KubeletSettings()
    schedulers = _schedulers(spec.list_of_fields("schedulers"))
    steps: list[Step] = []
    for step in spec.list_of_fields("steps"):
        steps.extend(_steps(step, document))
    spec.refuse_others()
    root.refuse_others()
    return Scenario(name, until_ns, tuple(sorted(steps, key=lambda step: step.at_ns)), kubelets, schedulers)


def _kubelets(given: Fields) -> KubeletSettings:
    plain = KubeletSettings()
    threshold, transition = plain.memory_threshold_bytes, plain.pressure_transition_ns
    if given.has("memoryThreshold"):
        threshold = memory_usage({MEMORY_USAGE: _memory(given, "memoryThreshold")})
    if given.has("pressureTransition"):
        transition = _duration(given, "pressureTransition")
    waits = given.take("waitForVictims", plain.waits_for_victims)
    if not isinstance(waits, bool):
        raise InputError(f"{shown(waits)} is neither true nor false", path=f"{given.path}.waitForVictims")
    given.refuse_others()
    return KubeletSettings(memory_threshold_bytes=threshold, pressure_transition_ns=transition, waits_for_victims=waits)


def _schedulers(listed: Sequence[Fields]) -> tuple[SchedulerSettings, ...]:
    found: dict[str, SchedulerSettings] = {}
    for one in listed:
        name = one.text("name")
        if name in found:
            raise InputError(f"{shown(name)} is given twice", path=f"{one.path}.name")
        found[name] = SchedulerSettings(name, _duration(one, "bindDelay") if one.has("bindDelay") else None)
        one.refuse_others()
    return tuple(found.values())


def _steps(step: Fields, document: Document) -> list[Step]:
    at_ns = _duration(step, "at")
    named = [name for name in _STEPS if step.has(name)]
    if len(named) != 1:
        what = f"has {' and '.join(named)}" if named else "does nothing"
        *names, last = _STEPS
        raise InputError(f"{what}; a step has exactly one of {', '.join(names)} and {last}", path=step.path)
    changes = _STEPS[named[0]](step)
    step.refuse_others()
    return [Step(at_ns, change, document, path) for change, path in changes]


def _applies(step: Fields) -> Changes:
    return [(_apply(raw, path), path) for raw, path in step.list_of_objects("apply")]


def _apply(raw: dict[str, Any], path: str) -> Apply:
    try:
        object_ = decode(raw)
        if object_ is None:
            raise InputError(f"the kind {shown(raw['kind'])} is not simulated", path=".kind")
        check_played(raw, object_)
    except InputError as error:
        problem = f"{error.object}: {error.problem}" if error.object else error.problem
        raise InputError(problem, path=path + error.path) from None
    return Apply(raw, object_)


def check_played(raw: Raw, object_: Kubernetes) -> None:
    """Raise InputError for what the codec does not read of an object and a simulation does."""
    check_annotations(object_)
    if not isinstance(raw.get("status", {}), dict):
        raise InputError(f"{shown(raw['status'])} is not an object", path=".status")
    if isinstance(object_, Job):
        read(raw, JobProgress)


def _removes(step: Fields) -> Changes:
    target = step.fields("delete")
    kind = target.text("kind")
    if kind not in _NAMESPACED:
        raise InputError(f"the kind {shown(kind)} is not simulated", path=f"{target.path}.kind")
    key = _key(target) if _NAMESPACED[kind] else target.text("name")
    target.refuse_others()
    return [(Remove(kind, key), target.path)]


def _finishes(step: Fields) -> Changes:
    target = step.fields("finish")
    finish = Finish(_key(target))
    target.refuse_others()
    return [(finish, target.path)]


def _uses(step: Fields) -> Changes:
    target = step.fields("usage")
    change = UseMemory(_key(target), _memory(target, "memory"))
    target.refuse_others()
    return [(change, target.path)]


def _cordons(step: Fields) -> Changes:
    return [_cordon(step.fields("cordon"), unschedulable=True)]


def _uncordons(step: Fields) -> Changes:
    return [_cordon(step.fields("uncordon"), unschedulable=False)]


def _cordon(target: Fields, *, unschedulable: bool) -> tuple[Change, str]:
    change = Cordon(target.text("name"), unschedulable)
    target.refuse_others()
    return change, target.path


_STEPS: Mapping[str, Callable[[Fields], Changes]] = {
    "apply": _applies,
    "delete": _removes,
    "finish": _finishes,
    "usage": _uses,
    "cordon": _cordons,
    "uncordon": _uncordons,
}
"""What a step may do, and how it is read."""


def _key(target: Fields) -> str:
    namespace = target.text("namespace") if target.has("namespace") else "default"
    return f"{namespace}/{target.text('name')}"


def _duration(fields: Fields, name: str) -> int:
    value, path = fields.take(name), f"{fields.path}.{name}"
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InputError(f'{shown(value)} is no duration; write it as in "90s"', path=path)
    try:
        duration = parse_duration(value)
    except ValueError as error:
        raise InputError(str(error), path=path) from None
    if duration < 0:
        raise InputError(f"{shown(value)} is before the start; write 0s or more", path=path)
    return duration


def _memory(fields: Fields, name: str) -> str:
    """An amount of memory, as text that `memory_usage` reads."""
    value, path = fields.take(name), f"{fields.path}.{name}"
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InputError(f'{shown(value)} is no amount of memory; write it as in "1Gi"', path=path)
    try:
        memory_usage({MEMORY_USAGE: str(value)})
    except ValueError as error:
        raise InputError(str(error), path=path) from None
    return str(value)


def _label(document: Document) -> str:
    metadata = document.raw.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return f"{document.raw.get('kind')} {name}" if isinstance(name, str) else str(document.raw.get("kind"))


def _error(document: Document, path: str, problem: str) -> InputError:
    return InputError(problem, source=document.source, document=document.index, object=_label(document), path=path)
