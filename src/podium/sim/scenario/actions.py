"""The steps of a scenario as written, and their conversion to changes.

A step has a time and one action. The structs also define the JSON Schema of a Scenario.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal, Self

import msgspec
from msgspec import Meta

from podium.api.avoid_list import AwaitedPod, EvictionHints
from podium.api.errors import InputError, locating, shown
from podium.api.input.codec import Document
from podium.api.kinds import KINDS
from podium.api.names import subdomain_problem
from podium.api.objects import read_object
from podium.api.quantity import parse_quantity
from podium.api.reading import Duration, Interval, Text
from podium.api.selectors import parse_label_selector
from podium.api.times import format_duration
from podium.controllers.actions import Evict
from podium.controllers.disruption.drain import DrainSettings
from podium.controllers.kubelets.pod_run import CPU_USAGE, MEMORY_USAGE, TROUBLE, read_trouble
from podium.framework.settings.arguments import Strict
from podium.sim.scenario import steps

MOST_STEPS = 1_000_000
"""The largest number of changes in a scenario."""

_MOST_TIMES = 100_000
_LONGEST_PATCH = 1_000_000
_NAMESPACED = {kind.name: kind.namespaced for kind in KINDS.values()}
_SCALABLE = sorted(kind.name for kind in KINDS.values() if kind.has_scale)
_DRAIN = DrainSettings()

Count = Annotated[int, Meta(ge=0)]
PodsOf = Literal[
    "Pod", "CronJob", "DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"
]
"""The kinds that a pod can be named by: its own, and those of workloads, which stand for one of their pods."""


class Amount(str):
    """A quantity of 0 or more, as written."""

    __slots__ = ()
    SCHEMA: ClassVar[dict[str, Any]] = {"type": ["string", "number"]}

    @classmethod
    def from_written(cls, written: Any) -> Self:
        """Return the amount that a field holds. Raises ValueError."""
        if not isinstance(written, str | int | float):
            raise ValueError(f'{shown(written)} is not a quantity; write it as in "500m" or "1Gi"')
        if parse_quantity(written) < 0:
            raise ValueError(f"{shown(written)} is negative; write 0 or more")
        return cls(written)


class Manifest:
    """An object to apply, as written."""

    __slots__ = ("raw",)
    SCHEMA: ClassVar[dict[str, Any]] = {"$ref": "#/$defs/ScenarioObject"}

    def __init__(self, raw: dict[str, Any]) -> None:
        self.raw = raw

    @classmethod
    def from_written(cls, written: Any) -> Self:
        """Return the object that a list holds. Raises ValueError."""
        if not isinstance(written, dict):
            raise ValueError(f"{shown(written)} is not an object")
        return cls(written)

    def applied(self, path: str, document: Document) -> steps.Apply:
        """Return the change that applies the object. Raises InputError."""
        try:
            read = read_object(self.raw, document.validation)
            if read.object is None:
                raise InputError(f"the kind {shown(self.raw['kind'])} is not simulated", path=".kind")
            steps.check_played(read.object)
        except InputError as error:
            problem = f"{error.object}: {error.problem}" if error.object else error.problem
            raise InputError(problem, path=path + error.path) from None
        file, place = document.source, document.index
        warnings = (replace(each, source=file, document=place, path=path + each.path) for each in read.warnings)
        return steps.Apply(read.raw, read.object, tuple(warnings))


class NamedObject(Strict, frozen=True, kw_only=True):
    """The name of an object."""

    name: Text
    namespace: Text | None = None

    @property
    def key(self) -> str:
        """The namespace, by default `default`, and the name."""
        return f"{self.namespace or 'default'}/{self.name}"


class Action(Strict, frozen=True, kw_only=True):
    """The base of actions. The paths of InputErrors are within the action."""

    def changes(self, action: str) -> Sequence[tuple[steps.Change, int]]:
        """Return the changes of the action of a name, each with its delay after the step. Raises InputError."""
        return [(self._change(action), 0)]

    def _change(self, action: str) -> steps.Change:
        """Return the only change. Raises InputError."""
        raise NotImplementedError


class SelectingAction(Action, frozen=True, kw_only=True):
    """An action on a named object, or on those that a label selector matches."""

    name: Text | None = None
    selector: Text | None = None

    def _chosen_name(self) -> str:
        """Return the name, "" with a selector. Raises InputError unless there is exactly one of them."""
        if self.selector is None:
            if self.name is None:
                raise InputError("is missing, and must be given", path=".name")
            return self.name
        if self.name is not None:
            raise InputError("has a name and a selector; give one of them")
        if problem := _selector_problem(self.selector):
            raise InputError(problem, path=".selector")
        return ""


class Delete(SelectingAction, frozen=True, kw_only=True):
    """Delete objects; pods by eviction unless outright."""

    kind: Text
    namespace: Text | None = None
    outright: bool = False

    def _change(self, _: str) -> steps.Change:
        key = _key(self.kind, self.namespace, self._chosen_name())
        if self.outright and self.kind != "Pod":
            raise InputError("is for pods; other objects are always deleted outright", path=".outright")
        if self.selector is None:
            return steps.Remove(self.kind, key, self.outright)
        namespace = key.partition("/")[0]
        return steps.SelectedObjects(self.kind, namespace, self.selector, steps.Remove(self.kind, "", self.outright))


class AvoidNode(Strict, frozen=True, kw_only=True):
    """The time for which the node of an evicted pod is avoided."""

    expire_after: Duration | None = None
    until_scheduled: NamedObject | None = None
    until_replaced: NamedObject | None = None

    def as_hints(self) -> EvictionHints:
        """Return the hints to avoid the node. Raises InputError."""
        until, replaced = self.until_scheduled, self.until_replaced
        if until is not None and replaced is not None:
            problem = "cannot be combined with untilScheduled"
            raise InputError(problem, path=".avoidNode.untilReplaced")
        awaited = None
        if replaced is not None:
            awaited = AwaitedPod(namespace=replaced.namespace or "default", name=replaced.name)
        key = "" if until is None else until.key
        return EvictionHints(
            avoid_node=True, avoid_for_ns=self.expire_after, until_scheduled=key, until_replaced=awaited
        )


class ReplacementHints(Strict, frozen=True, kw_only=True):
    """The hints that an eviction leaves for the replacement of the pod."""

    first: bool = False
    node_name: str = ""
    awaited: bool = False


class EvictAction(NamedObject, Action, frozen=True, kw_only=True):
    """Evict a pod through the API's subresource."""

    kind: PodsOf = "Pod"
    grace_period_seconds: Count | None = None
    component: Text = steps.SCENARIO
    avoid_node: bool | AvoidNode = False
    replacement: ReplacementHints = ReplacementHints()

    def _change(self, _: str) -> steps.Change:
        avoid, replacement = self.avoid_node, self.replacement
        hints = avoid.as_hints() if isinstance(avoid, AvoidNode) else EvictionHints(avoid_node=avoid)
        if replacement.node_name and (problem := subdomain_problem(replacement.node_name)):
            raise InputError(problem, path=".replacement.nodeName")
        hints = replace(hints, first=replacement.first, node_name=replacement.node_name, is_awaited=replacement.awaited)
        eviction = Evict("", "", steps.SCENARIO, self.component, self.grace_period_seconds, hints)
        return steps.EvictPod(self.key, self.kind, eviction)


class Scale(NamedObject, Action, frozen=True, kw_only=True):
    """Set the number of a workload's replicas."""

    kind: Text = "Deployment"
    replicas: Count

    def _change(self, _: str) -> steps.Change:
        if self.kind not in _SCALABLE:
            problem = f"the kind {shown(self.kind)} has no scale; one of {', '.join(_SCALABLE)} has"
            raise InputError(problem, path=".kind")
        return steps.Edit(self.kind, self.key, {"spec": {"replicas": self.replicas}})


class FinishAction(NamedObject, Action, frozen=True, kw_only=True):
    """Let the containers of a pod exit with success."""

    kind: PodsOf = "Pod"
    pod: str = ""
    after: Duration | None = None

    def _change(self, _: str) -> steps.Change:
        return steps.Finish(self.key, self.kind, self.pod, self.after)


class Usage(NamedObject, Action, frozen=True, kw_only=True):
    """Set the memory or the cpu that a pod uses."""

    kind: PodsOf = "Pod"
    memory: Amount | None = None
    cpu: Amount | None = None

    def _change(self, _: str) -> steps.Change:
        if self.memory is None and self.cpu is None:
            raise InputError("is missing, and must be given", path=".memory")
        used = ((MEMORY_USAGE, self.memory), (CPU_USAGE, self.cpu))
        annotations = {name: str(amount) for name, amount in used if amount is not None}
        return steps.Edit(self.kind, self.key, {"metadata": {"annotations": annotations}}, of_pod=True)


class PatchAction(NamedObject, Action, frozen=True, kw_only=True):
    """Patch an object as a client does, or with a subresource its status only."""

    kind: Text
    type: steps.StepPatchType = "strategic"
    subresource: Literal["", "status"] = ""
    patch: dict[str, Any] | list[Any] | str

    def _change(self, _: str) -> steps.Change:
        key = _key(self.kind, self.namespace, self.name)
        body: Any = self.patch
        is_text = isinstance(body, str)
        if is_text:
            if len(body) > _LONGEST_PATCH:
                raise InputError(f"has more than {_LONGEST_PATCH:,} characters", path=".patch")
            try:
                body = msgspec.json.decode(body)
            except (msgspec.DecodeError, RecursionError) as error:
                raise InputError(f"is text, but not JSON: {error}", path=".patch") from None
        wanted, what = (list, "a list of operations") if self.type == "json" else (dict, "an object")
        if not isinstance(body, wanted):
            raise InputError(f"{shown(body)} is not {what}, as a patch of type {self.type} is", path=".patch")
        if not is_text and self.type != "json" and _has_empty(body):
            example = '\'{"metadata": {"labels": {"app": null}}}\''
            raise InputError(f"has an empty object; to remove fields write text, as in {example}", path=".patch")
        return steps.Patch(self.kind, key, self.type, body, self.subresource)


class NodesAction(SelectingAction, frozen=True, kw_only=True):
    """A change of a node, or of the nodes that a label selector matches."""

    def _change(self, action: str) -> steps.Change:
        change = self._of_node(self._chosen_name(), action)
        return change if self.selector is None else steps.SelectedObjects("Node", "", self.selector, change)

    def _of_node(self, node: str, action: str) -> steps.Edit | steps.DrainNode | steps.SetPower:
        if action in ("nodeDown", "nodeUp"):
            return steps.SetPower(node, is_up=action == "nodeUp")
        return steps.Edit("Node", node, {"spec": {"unschedulable": action == "cordon"}}, f"{action}ed")


class Drain(NodesAction, frozen=True, kw_only=True):
    """Drain nodes."""

    timeout: Duration | None = None
    grace_period_seconds: Count | None = None
    force: bool = _DRAIN.force
    delete_empty_dir_data: bool = _DRAIN.delete_empty_dir_data
    ignore_daemon_sets: bool = _DRAIN.ignore_daemon_sets
    disable_eviction: bool = _DRAIN.disable_eviction
    after: str = ""
    remove_node: bool = False

    def _of_node(self, node: str, _: str) -> steps.DrainNode:
        settings = DrainSettings(
            timeout_ns=self.timeout,
            grace_seconds=self.grace_period_seconds,
            force=self.force,
            delete_empty_dir_data=self.delete_empty_dir_data,
            ignore_daemon_sets=self.ignore_daemon_sets,
            disable_eviction=self.disable_eviction,
        )
        return steps.DrainNode(node, settings, self.after, self.remove_node)


class Trouble(Action, frozen=True, kw_only=True):
    """Let containers on a node crash, or its pods be rejected; without either the trouble ends."""

    name: Text
    crash_after: Duration | None = None
    reject_after: Duration | None = None
    pods: str = ""

    def _change(self, _: str) -> steps.Change:
        if self.crash_after is not None and self.reject_after is not None:
            raise InputError("cannot be combined with crashAfter", path=".rejectAfter")
        after = self.reject_after if self.crash_after is None else self.crash_after
        if after is None:
            if self.pods:
                raise InputError("needs crashAfter or rejectAfter", path=".pods")
            return steps.annotation(self.name, TROUBLE, None, "trouble is over")
        trouble = f"{'reject ' if self.crash_after is None else ''}{format_duration(after)} {self.pods}".strip()
        try:
            read_trouble(trouble)
        except ValueError as error:
            kind = "rejectAfter" if self.crash_after is None else "crashAfter"
            raise InputError(str(error), path=f".{'pods' if _selector_problem(self.pods) else kind}") from None
        return steps.annotation(self.name, TROUBLE, trouble, f"trouble: {trouble}")


class Maintenance(Action, frozen=True, kw_only=True):
    """Announce that a node goes down after some time; it is up again so long later, or never."""

    name: Text
    in_: Duration = msgspec.field(name="in")
    for_: Duration | None = msgspec.field(name="for", default=None)

    def changes(self, _: str) -> Sequence[tuple[steps.Change, int]]:
        """Return the announcement, the end of the node, and its return with the end of the announcement."""
        node, down_ns = self.name, self.in_
        down = ((steps.Announce(node, down_ns), 0), (steps.SetPower(node, is_up=False), down_ns))
        if self.for_ is None:
            return down
        over_ns = down_ns + self.for_
        return (*down, (steps.SetPower(node, is_up=True), over_ns), (steps.Announce(node, None), over_ns))


class Repeat(Strict, frozen=True, kw_only=True):
    """The repetition of a step: so many times, by default until the scenario ends."""

    every: Interval
    times: Annotated[int, Meta(ge=1)] | None = None


class Step(Strict, frozen=True, kw_only=True):
    """A step: a time and one action."""

    at: Duration
    repeat: Repeat | None = None
    apply: tuple[Manifest, ...] | None = None
    delete: Delete | None = None
    evict: EvictAction | None = None
    scale: Scale | None = None
    finish: FinishAction | None = None
    usage: Usage | None = None
    patch: PatchAction | None = None
    cordon: NodesAction | None = None
    uncordon: NodesAction | None = None
    drain: Drain | None = None
    node_down: NodesAction | None = None
    node_up: NodesAction | None = None
    trouble: Trouble | None = None
    maintenance: Maintenance | None = None


_FIELDS = {field.encode_name: field.name for field in msgspec.structs.fields(Step)}
STEP_NAMES = tuple(name for name in _FIELDS if name not in ("at", "repeat"))
"""The names of actions; a step has exactly one."""


def played_steps(step: Step, path: str, document: Document, until_ns: int | None) -> Iterator[steps.ScenarioStep]:
    """Yield the changes of the step at a path, repeated until ``until_ns``. Raises InputError."""
    times = _times(step, f"{path}.repeat", until_ns)
    named = [name for name in STEP_NAMES if getattr(step, _FIELDS[name]) is not None]
    if len(named) != 1:
        what = f"has {' and '.join(named)}" if named else "does nothing"
        *names, last = STEP_NAMES
        raise InputError(f"{what}; a step has exactly one of {', '.join(names)} and {last}", path=path)
    changes = list(_changes(getattr(step, _FIELDS[named[0]]), named[0], f"{path}.{named[0]}", document))
    if len(times) * len(changes) > MOST_STEPS:
        raise InputError(f"{len(times) * len(changes):,} things happen; at most {MOST_STEPS:,} may", path=path)
    for at_ns in times:
        for change, delay_ns, at in changes:
            yield steps.ScenarioStep(at_ns + delay_ns, change, document, at)


def _times(step: Step, path: str, until_ns: int | None) -> list[int]:
    """Return the times at which a step is played. Raises InputError for endless repetitions."""
    repeat, at_ns = step.repeat, step.at
    if repeat is None:
        return [at_ns]
    times = repeat.times
    if times is None:
        if until_ns is None:
            raise InputError("has no end; give times, or the scenario's until", path=path)
        times = max(0, (until_ns - at_ns) // repeat.every) + 1
    if times > _MOST_TIMES:
        raise InputError(f"is played {times:,} times; at most {_MOST_TIMES:,} are allowed", path=path)
    return [at_ns + number * repeat.every for number in range(times)]


def _changes(
    given: tuple[Manifest, ...] | Action, action: str, path: str, document: Document
) -> Iterator[tuple[steps.Change, int, str]]:
    """Yield the changes of an action at a path, each with its delay and its own path. Raises InputError."""
    if isinstance(given, tuple):
        for index, manifest in enumerate(given):
            place = f"{path}[{index}]"
            yield manifest.applied(place, document), 0, place
        return
    with locating(path):
        yield from ((change, delay_ns, path) for change, delay_ns in given.changes(action))


def _key(kind: str, namespace: str | None, name: str) -> str:
    """Return the key of an object of a kind that Podium simulates. Raises InputError for other kinds."""
    if kind not in _NAMESPACED:
        raise InputError(f"the kind {shown(kind)} is not simulated", path=".kind")
    if _NAMESPACED[kind]:
        return f"{namespace or 'default'}/{name}"
    if namespace is not None:
        raise InputError(f"is not needed; a {kind} is in no namespace", path=".namespace")
    return name


def _selector_problem(selector: str) -> str:
    """Return what is wrong with a label selector; "" if it is valid."""
    try:
        parse_label_selector(selector)
    except InputError as error:
        return error.problem
    return ""


def _has_empty(value: Any) -> bool:
    """Return whether nulls may have been dropped when the object was parsed."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return value == {} or any(map(_has_empty, inner))
