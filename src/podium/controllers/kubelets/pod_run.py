"""A pod on its node, as the kubelet tracks it, and the annotations of nodes and pods that define simulated behavior.

Source: for the restart backoff, pkg/kubelet/kuberuntime (doBackOff) and k8s.io/client-go/util/flowcontrol/backoff.go.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from podium.api import errors, selectors, times
from podium.api.meta import Raw, object_at, objects_at, value_at
from podium.api.node import MAINTENANCE_TIME, Node
from podium.api.pod import Pod, Quantity
from podium.api.quantity import CPU, MEMORY, milli_value, whole_value
from podium.api.resource_requests import RESIZE_PENDING, is_resize_deferred, node_allocatable, pod_requests, requests_of
from podium.api.use import Use
from podium.cluster.pod_classes import ALL_COUNTS, CountingRules
from podium.controllers.actions import DeleteObject, ReportStatus
from podium.controllers.deadlines import earliest
from podium.decide.kubelet import CPUWant, Holding, shared_cpu

TROUBLE = "podium.dev/trouble"
"""The annotation of a node on which containers fail: how long after each start, and of which pods.

`20s` is for all pods, `20s app=web` for those that a label selector matches; entries are separated by `;`. With `reject
20s` or `reject 20s app=web`, the kubelet rejects pods so long after their arrival.
"""

_REJECT = "reject "
_MOST = 100
_DAY_NS = 24 * 3600 * times.SECOND
_KEPT = 1_024


class PodTrouble(msgspec.Struct, frozen=True):
    """A fault: containers of the selected pods fail so long after each start, or the pods are rejected."""

    after_ns: int
    pods: selectors.Selector = selectors.EVERYTHING
    is_rejection: bool = False


def read_trouble(text: str) -> tuple[PodTrouble, ...]:
    """Parse the annotation. Raises ValueError if it is invalid."""
    parts = text.split(";", _MOST)
    if len(parts) > _MOST:
        raise ValueError(f"more than {_MOST} kinds of trouble are too much for a node")
    troubles = []
    for part in map(str.strip, parts):
        is_rejection = part.startswith(_REJECT)
        duration, _, selector = part.removeprefix(_REJECT).strip().partition(" ")
        if not duration:
            raise ValueError('a time is missing; write it as in "20s app=web"')
        after_ns = times.parse_nonnegative_duration(duration)
        if is_rejection and not after_ns:
            raise ValueError("pods that are turned away at once would come back at the same instant; 1s is long enough")
        try:
            troubles.append(PodTrouble(after_ns, selectors.parse_label_selector(selector.strip()), is_rejection))
        except errors.InputError as error:
            raise ValueError(error.problem) from None
    return tuple(troubles)


def trouble_after_ns(annotations: Mapping[str, str], pod: Pod, *, is_rejection: bool = False) -> int | None:
    """Return how long after its start a pod fails on a node with these annotations, or None.

    With ``is_rejection``, how long after its arrival it is rejected.
    """
    text = annotations.get(TROUBLE)
    if text is None:
        return None
    of_kind = (each for each in _known_troubles(text) if each.is_rejection is is_rejection)
    return min((each.after_ns for each in of_kind if each.pods.matches(pod.metadata.labels)), default=None)


@lru_cache(maxsize=_KEPT)
def _known_troubles(text: str) -> tuple[PodTrouble, ...]:
    try:
        return read_trouble(text)
    except ValueError:
        return ()


def _problems(annotations: Mapping[str, str], readers: Mapping[str, Callable[[str], object]]) -> dict[str, str]:
    """Return what is wrong with annotations, by name; invalid ones are ignored."""
    found = {}
    for name in sorted(readers.keys() & annotations.keys()):
        try:
            readers[name](annotations[name])
        except ValueError as error:
            found[name] = str(error)
    return found


def node_problems(annotations: Mapping[str, str]) -> dict[str, str]:
    """Return what is wrong with the annotations of a node, by name."""
    return _problems(annotations, {MAINTENANCE_TIME: times.parse_time, TROUBLE: read_trouble})


DURATION = "podium.dev/duration"
"""How long after the start the containers exit with success, whatever the restart policy."""

CRASH_AFTER = "podium.dev/crash-after"
"""How long after each start the containers fail. With restart policy Never the pod fails."""

TERMINATION = "podium.dev/termination"
"""How long a deleted pod takes to end, at most its grace period; or `never`.

With `never`, a pod ends only by forced deletion, or when its node's machine stops.
"""

READY_AFTER = "podium.dev/ready-after"
"""How long after each start the pod becomes ready; by default at once."""

MEMORY_USAGE = "podium.dev/memory-usage"
"""The memory that the pod uses while it runs, as a quantity."""

CPU_USAGE = "podium.dev/cpu-usage"
"""The cpu that the pod would use if it were alone, as a quantity; by default its request."""

NEVER = "never"


def _amount(text: str, read: Callable[[str], int], noun: str) -> int:
    amount = read(text)
    if amount < 0:
        raise ValueError(f'"{text}" is negative; an amount of {noun} is 0 or more')
    return amount


READERS: Mapping[str, tuple[str, Callable[[str], int | None]]] = {
    DURATION: ("duration_ns", times.parse_nonnegative_duration),
    CRASH_AFTER: ("crash_after_ns", times.parse_nonnegative_duration),
    TERMINATION: ("termination_ns", lambda text: None if text == NEVER else times.parse_nonnegative_duration(text)),
    READY_AFTER: ("ready_after_ns", times.parse_nonnegative_duration),
    MEMORY_USAGE: ("memory_bytes", lambda text: _amount(text, whole_value, "memory")),
    CPU_USAGE: ("", lambda text: _amount(text, milli_value, "cpu")),
}
"""By annotation, its field of `PodBehaviour`, "" for none, and its reader, which raises ValueError for invalid text."""

_POD_READERS = {name: read for name, (_, read) in READERS.items()}


def pod_problems(annotations: Mapping[str, str]) -> dict[str, str]:
    """Return what is wrong with the annotations of a pod, by name."""
    return _problems(annotations, _POD_READERS)


def annotated_amount(annotations: Mapping[str, str], name: str) -> int | None:
    """Return the nanoseconds, bytes or milli of cpu in an annotation; None if it is missing, invalid, or `never`."""
    try:
        return READERS[name][1](annotations[name]) if name in annotations else None
    except ValueError:
        return None


def says_use(pod: Pod) -> bool:
    """Return whether the pod has annotations about its use."""
    annotations = pod.metadata.annotations
    return CPU_USAGE in annotations or MEMORY_USAGE in annotations


def is_running(pod: Pod) -> bool:
    """Return whether the pod runs on a node, and so uses resources."""
    return pod.status.phase == "Running" and bool(pod.spec.node_name)


def pod_uses(node: Node | None, running: Collection[Pod]) -> dict[str, Use]:
    """Return the use of the running pods of a node by uid. Without a node, cpu is unlimited."""
    wants = [cpu_want(pod) for pod in running]
    usable = [want.usable_milli for want in wants]
    got = usable if node is None else shared_cpu(wants, node_allocatable(node.status).get(CPU, 0))
    return {uid_of(pod): Use(cpu, memory_used(pod)) for pod, cpu in zip(running, got, strict=True)}


def uid_of(pod: Pod) -> str:
    """Return the uid of a pod, or its key without one."""
    return pod.metadata.uid or pod.key


def cpu_want(pod: Pod) -> CPUWant:
    """Return the cpu that a pod would use if it were alone."""
    usage = annotated_amount(pod.metadata.annotations, CPU_USAGE)
    if usage is None:
        usage = sum(_cpu_milli(requests_of(container.resources)) for container in pod.spec.containers)
    return CPUWant(usage, pod_requests(pod.spec).get(CPU, 0), limit_milli(pod))


def memory_used(pod: Pod) -> int:
    """Return the bytes that a pod uses."""
    if (usage := annotated_amount(pod.metadata.annotations, MEMORY_USAGE)) is not None:
        return usage
    return sum(whole_value(requests_of(container.resources).get(MEMORY, 0)) for container in pod.spec.containers)


def limit_milli(pod: Pod) -> int | None:
    """Return the cpu limit of a pod; None if it or a container has none."""
    limits = [container.resources.limits for container in pod.spec.containers]
    if pod.spec.resources is not None and CPU in pod.spec.resources.limits:
        limits = [pod.spec.resources.limits]
    amounts = [_cpu_milli(limit) for limit in limits]
    return sum(amounts) if amounts and all(amounts) else None


def _cpu_milli(amounts: Mapping[str, Quantity]) -> int:
    return milli_value(amounts.get(CPU, 0))


class PodBehaviour(msgspec.Struct, frozen=True, gc=False):
    """The behavior in a pod's valid annotations. Times in nanoseconds, None if unspecified.

    The containers exit after ``duration_ns``, or fail after ``crash_after_ns``, and are ready after ``ready_after_ns``.
    They take ``termination_ns`` to end, unless the pod ``never_terminates``.
    """

    duration_ns: int | None = None
    crash_after_ns: int | None = None
    ready_after_ns: int | None = None
    termination_ns: int | None = None
    never_terminates: bool = False
    memory_bytes: int = 0


PLAIN = PodBehaviour()
"""The behavior of a pod without annotations."""


def behaviour_of(annotations: Mapping[str, str]) -> PodBehaviour:
    """Return the behavior in the annotations of a pod; invalid ones are ignored."""
    found = ((READERS[name][0], annotated_amount(annotations, name)) for name in annotations if name in READERS)
    fields: dict[str, Any] = {field: value for field, value in found if field and value is not None}
    if annotations.get(TERMINATION) == NEVER:
        fields["never_terminates"] = True
    return PodBehaviour(**fields) if fields else PLAIN


_FIRST_NS = 10 * times.SECOND
_LONGEST_NS = 300 * times.SECOND
# After a longer run, containers count as healthy again.
_HEALTHY_AFTER_NS = 2 * _LONGEST_NS


class CrashBackOff(msgspec.Struct, gc=False):
    """The backoff of a pod's containers: none after the first failure, then 10 s, doubled up to 300 s.

    It starts over after 10 minutes of running. ``crashes`` counts the failures since then.
    """

    crashes: int = 0
    _wait_ns: int = 0
    _restarted_ns: int = 0

    def next_start_ns(self, failed_ns: int) -> int:
        """Return when containers that failed at ``failed_ns`` are restarted."""
        if failed_ns - self._restarted_ns > _HEALTHY_AFTER_NS:
            self.crashes = self._wait_ns = 0
        self.crashes += 1
        self._restarted_ns = failed_ns + self._wait_ns
        self._wait_ns = min(max(2 * self._wait_ns, _FIRST_NS), _LONGEST_NS)
        return self._restarted_ns


class PodRun(msgspec.Struct, eq=False):
    """A pod from its arrival on a node until its containers are gone. Times in nanoseconds, None if unknown.

    ``raw`` is the pod's wire form, ``holding`` its resources on the node. ``is_over_limit``: it exceeds its memory
    limit. ``is_admitted``: it holds its resources. ``is_waiting``: it waits for others to end. ``is_stopping``: its
    containers are being killed. ``is_ended``: they are gone.

    ``start_ns`` is the next (re)start; ``ready_ns``, ``exit_ns`` and ``crash_ns`` are when the containers become ready,
    succeed or fail; ``active_ns`` is when they started first. ``stopped_ns`` is when they are gone; then ``outcome`` is
    reported, None for the end of the deletion. ``wanted`` is the last report. ``last_exit`` is the last ended state.
    ``allocated`` is the specification with the resources that the kubelet has given; None: they are not reported.
    ``trouble_ns`` is how long after each start the node makes them fail. ``termination_ns`` is the default time to end;
    None: the grace period. ``addresses``, of pod and node, are set if everything is reported. ``observed`` is the last
    reported generation; None: not reported.
    """

    pod: Pod
    raw: Raw
    uid: str
    holding: Holding
    behaviour: PodBehaviour
    is_over_limit: bool
    deleted_ns: int | None = None
    restarts: int = 0
    is_admitted: bool = False
    is_waiting: bool = False
    is_ready: bool = False
    is_stopping: bool = False
    is_ended: bool = False
    start_ns: int | None = None
    started_ns: int | None = None
    ready_ns: int | None = None
    exit_ns: int | None = None
    crash_ns: int | None = None
    stopped_ns: int | None = None
    outcome: ReportStatus | None = None
    wanted: ReportStatus | DeleteObject | None = None
    last_exit: Raw | None = None
    trouble_ns: int | None = None
    backoff: CrashBackOff | None = None
    termination_ns: int | None = None
    addresses: tuple[str, str] | None = None
    observed: int | None = None
    active_ns: int | None = None
    allocated: Raw | None = None

    @classmethod
    def of(cls, pod: Pod, raw: Raw, rules: CountingRules = ALL_COUNTS) -> PodRun:
        behaviour = behaviour_of(pod.metadata.annotations)
        holding = Holding.of(pod, rules, as_allocated=is_resize_deferred(pod))
        return cls(pod, raw, pod.metadata.uid, holding, behaviour, _exceeds(pod, behaviour))

    @property
    def is_running(self) -> bool:
        """Return whether its containers have started and not ended."""
        return self.started_ns is not None and not self.is_ended

    @property
    def is_blocked(self) -> bool:
        """Return whether it was admitted, and an object is missing that it needs for its start."""
        is_startable = self.is_admitted and not (self.is_waiting or self.is_stopping or self.is_ended)
        return is_startable and self.start_ns is None and self.started_ns is None

    @property
    def is_behind(self) -> bool:
        """Return whether the last report was about an older specification."""
        return self.observed is not None and self.observed != self.pod.metadata.generation

    @property
    def is_resizing(self) -> bool:
        """Return whether the kubelet has to answer a resize in place."""
        if self.allocated is None:
            return False
        is_pending = self.pod.status.condition(RESIZE_PENDING) is not None
        return is_pending or _resources(self.allocated) != _resources(self.raw["spec"])

    @property
    def is_failing(self) -> bool:
        """Return whether its containers fail whenever they run."""
        return self.is_over_limit or self.trouble_ns is not None or CRASH_AFTER in self.pod.metadata.annotations

    @property
    def is_on_schedule(self) -> bool:
        """Return whether a CronJob made its Job, which then has the minutes from 1970 to that time in its name."""
        meta = self.pod.metadata
        minutes = "" if meta.controller is None or meta.controller.kind != "Job" else meta.controller.name[-8:]
        created_ns = times.time_of(meta.creation_timestamp) or 0
        return minutes.isdecimal() and abs(created_ns - int(minutes) * 60 * times.SECOND) < _DAY_NS

    def due_ns(self) -> int | None:
        """Return when something next happens to it, or None."""
        if self.is_ended:
            return None
        if self.started_ns is None:
            return earliest((self.stopped_ns, self.start_ns, self.deadline_ns()))
        return earliest((self.stopped_ns, self.exit_ns, self.crash_ns, self.ready_ns, self.deadline_ns()))

    def deadline_ns(self) -> int | None:
        """Return when it exceeds its activeDeadlineSeconds, None for never (pkg/kubelet/active_deadline.go)."""
        seconds = self.pod.spec.active_deadline_seconds
        if seconds is None or self.active_ns is None or self.is_stopping:
            return None
        return self.active_ns + seconds * times.SECOND

    def begin(self, started_ns: int) -> None:
        """Record that its containers have started."""
        behaviour = self.behaviour
        self.start_ns, self.started_ns = None, started_ns
        if self.active_ns is None:
            self.active_ns = started_ns
        self.exit_ns = None if behaviour.duration_ns is None else started_ns + behaviour.duration_ns
        self.set_trouble(self.trouble_ns, started_ns)
        if self.is_over_limit:
            self.crash_ns = started_ns
        self.is_ready = not behaviour.ready_after_ns
        self.ready_ns = started_ns + behaviour.ready_after_ns if behaviour.ready_after_ns else None

    def fail(self, exit_: Raw, start_ns: int) -> None:
        """Record that its containers have failed, and restart at ``start_ns``."""
        self.last_exit = exit_
        self.start_ns, self.started_ns = start_ns, None
        self.is_ready = False

    def read(self, pod: Pod, raw: Raw) -> None:
        """Take in a newer state of the pod."""
        annotations, before = pod.metadata.annotations, self.pod.metadata.annotations
        if annotations is not before and annotations != before:
            self.behaviour = behaviour_of(annotations)
        self.is_over_limit = _exceeds(pod, self.behaviour)
        self.pod, self.raw = pod, raw

    def set_trouble(self, trouble_ns: int | None, now: int) -> None:
        """Set how long after each start, and from now, its node makes it fail; None: never."""
        self.trouble_ns = trouble_ns
        if self.started_ns is not None and not self.is_over_limit:
            crash_after_ns = self.behaviour.crash_after_ns
            self.crash_ns = None if crash_after_ns is None else self.started_ns + crash_after_ns
            if trouble_ns is not None:
                self.crash_ns = earliest((self.crash_ns, now + trouble_ns))

    def stop(self, asked_ns: int, grace_seconds: int, *, is_forced: bool = False) -> None:
        """End it when the grace period from ``asked_ns`` is over, or earlier if that was planned.

        Containers that cannot be killed end only if ``is_forced``.
        """
        self.is_stopping = True
        behaviour, end = self.behaviour, asked_ns
        if self.started_ns is not None:
            if behaviour.never_terminates and not is_forced:
                return
            grace, termination = grace_seconds * times.SECOND, behaviour.termination_ns
            if termination is None and not behaviour.never_terminates:
                termination = self.termination_ns
            end += grace if termination is None else min(grace, termination)
        self.stopped_ns = end if self.stopped_ns is None else min(end, self.stopped_ns)


def _exceeds(pod: Pod, behaviour: PodBehaviour) -> bool:
    if not behaviour.memory_bytes:
        return False
    # All memory is used by the first container. The limit of the whole pod applies, too.
    limits = [container.resources.limits for container in pod.spec.containers[:1]]
    limits += [] if pod.spec.resources is None else [pod.spec.resources.limits]
    amounts = (whole_value(limit.get(MEMORY, 0)) for limit in limits)
    return any(amount and amount < behaviour.memory_bytes for amount in amounts)


def _resources(spec: Raw) -> list[Raw]:
    """Return the resources of a pod, of its containers, and of its init containers."""
    return [object_at(each, "resources") for each in (spec, *spec["containers"], *objects_at(spec, "initContainers"))]


def _effective(spec: Raw) -> list[Raw]:
    """Return the resources of the containers; one without a limit of its own has that of the pod."""
    of_pod, *own = _resources(spec)
    return [{**each, "limits": object_at(of_pod, "limits") | object_at(each, "limits")} for each in own]


def restarts_for(before: Raw, after: Raw) -> bool:
    """Return whether the containers restart because one does for a resource that changes (its `resizePolicy`)."""
    return any(
        policy["restartPolicy"] == "RestartContainer"
        and value_at(old, part, policy["resourceName"]) != value_at(new, part, policy["resourceName"])
        for container, old, new in zip(after["containers"], _effective(before), _effective(after), strict=False)
        for policy in objects_at(container, "resizePolicy")
        for part in ("limits", "requests")
    )


def allocated_spec(raw: Raw) -> Raw:
    """Return the specification of a pod with the resources that its status reports, if it has any."""
    spec: Raw = {**raw["spec"]}
    for field, reported in (("containers", "containerStatuses"), ("initContainers", "initContainerStatuses")):
        known = {status.get("name"): status.get("resources") for status in objects_at(raw, "status", reported)}
        if any(known.values()):
            spec[field] = [{**one, "resources": known.get(one["name"]) or {}} for one in spec[field]]
    return spec if spec != raw["spec"] else raw["spec"]
