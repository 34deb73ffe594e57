"""A control plane for a test: fresh in a few milliseconds, in virtual time or real, without a network or with one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from pathlib import Path
from types import TracebackType
from typing import Concatenate, ParamSpec, TypeVar

from podium.api.errors import PodiumError
from podium.api.meta import Raw
from podium.api.present import DEFAULT_START_NS
from podium.api.times import format_duration, parse_duration, parse_time
from podium.driver.clock import SystemClock
from podium.framework.rescheduling.configuration import load_rescheduler, read_settings
from podium.framework.rescheduling.settings import ReschedulerSettings
from podium.framework.settings.configuration import Configuration, load_configuration
from podium.framework.settings.feature_gates import read_feature_gates
from podium.machines.kubelets.kubelet_settings import KubeletSettings
from podium.plane.assembly import Beginning, assemble, open_store
from podium.plane.component_names import SWITCHABLE
from podium.plane.nodes import DEFAULT_TEMPLATE, check_template
from podium.plane.plane_settings import PlaneSettings
from podium.plane.virtual_clock import VirtualClock
from podium.requests.answering.rules import Rules
from podium.requests.request import Request, Response
from podium.store.reads.listing import ListOptions
from podium.testing.objects import Objects, read_objects
from podium.testing.served import Served

Duration = str | int | float
"""Text such as "90s" or "1h30m", or seconds."""

_SECOND = 10**9
# As whom a test asks.
_NAME = "podium-testing"
# How often a condition is looked at that comes about by itself.
_LOOK_SECONDS = 0.005
# So long nothing has to be written until clients are taken to have done all that they do at an instant.
_QUIET_SECONDS = 0.05
Given = ParamSpec("Given")
Result = TypeVar("Result")


def _there(
    method: Callable[Concatenate[ControlPlane, Given], Result],
) -> Callable[Concatenate[ControlPlane, Given], Result]:
    """Let a method run on the thread to which the plane belongs."""

    @wraps(method)
    def run(self: ControlPlane, /, *args: Given.args, **kwargs: Given.kwargs) -> Result:
        served = self._served
        if served is None or served.is_here:
            return method(self, *args, **kwargs)
        return served.call(partial(method, self, *args, **kwargs))

    return run


class RefusedError(PodiumError):
    """The API server does not do what a test asked for; `code` and `reason` are those of its Status."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason


class ControlPlane:
    """A Kubernetes control plane with simulated nodes, to test operators, plugins and configurations with.

    Time is virtual: it stands still but for `advance` and `run_until`, and what components have to do at one instant
    they have done when a method returns. The same calls come to the same end. In `real_time` it passes by itself,
    `speed` times as fast as the clock; then the control plane runs on a thread of its own, and is served over HTTP.

    `nodes` are made by `node_template`, a Node without a name; `objects` are there from the start, pods with a node
    running. `configuration` is a KubeSchedulerConfiguration or its file, and with `rescheduler`, the fields of a
    ReschedulerConfiguration or its file, there is a rescheduler. `without` names components that are left out, such as
    "scheduler" (`podium.plane.component_names.SWITCHABLE`). A pod starts `start_delay` after it is bound, and takes
    `termination` to end when it is deleted, at most its grace period. With `evict_on_delete` people who delete a pod
    evict it; a test is one of them.
    """

    def __init__(  # noqa: PLR0913 - each is an option that people set on its own
        self,
        *,
        nodes: int = 0,
        node_template: Raw | None = None,
        objects: Objects = (),
        start: str | None = None,
        real_time: bool = False,
        speed: float = 1.0,
        seed: int = 0,
        configuration: Configuration | str | Path | None = None,
        rescheduler: Raw | str | Path | None = None,
        feature_gates: str = "",
        without: Iterable[str] = (),
        start_delay: Duration = 0,
        termination: Duration = "1s",
        evict_on_delete: bool = False,
    ) -> None:
        """Begin. Raises PodiumError for what is wrong with the objects or the configuration."""
        start_ns = DEFAULT_START_NS if start is None else parse_time(start)
        self._clock: VirtualClock | SystemClock = SystemClock(speed) if real_time else VirtualClock(start_ns)
        self._served: Served | None = None
        if isinstance(configuration, str | Path):
            configuration = load_configuration(str(configuration))
        settings = PlaneSettings(
            seed=seed,
            configuration=configuration,
            feature_gates=read_feature_gates(feature_gates),
            kubelets=KubeletSettings(
                start_delay_ns=parse_duration(start_delay), termination_ns=parse_duration(termination)
            ),
            rescheduling=None if rescheduler is None else _rescheduling(rescheduler),
            without=_known(without),
            rules=Rules(deletes_by_eviction=evict_on_delete),
        )
        template = DEFAULT_TEMPLATE if node_template is None else check_template(node_template, "node_template")
        beginning = Beginning(read_objects(objects), nodes, template)
        self.plane = assemble(open_store(seed), self._clock, settings, beginning).plane
        self.settle()

    def __enter__(self) -> ControlPlane:
        if isinstance(self._clock, SystemClock):
            self._served = Served(self.plane, self._clock)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        served, self._served = self._served, None
        try:
            if served is not None:
                served.stop()
        finally:
            self.plane.close()

    @contextmanager
    def serve(self) -> Iterator[Served]:
        """Serve it over HTTP meanwhile, for kubectl, operators and other clients; virtual time stands still as ever."""
        if self._served is not None:
            yield self._served
            return
        served = self._served = Served(self.plane, self._clock)
        try:
            yield served
        finally:
            self._served = None
            served.stop()

    # Time

    @property
    def now_ns(self) -> int:
        """The time, in nanoseconds since 1970."""
        return self._clock.now()

    @_there
    def settle(self) -> None:
        """Let components do everything that is due by now."""
        while (next_ns := self.plane.turn()) is not None and next_ns <= self._clock.now():
            pass

    def advance(self, duration: Duration) -> None:
        """Let time pass, with all that happens meanwhile."""
        end_ns = self._clock.now() + parse_duration(duration)
        while self._pass_time(end_ns):
            pass

    def run_until(self, condition: Callable[[], object], within: Duration = "10m") -> float:
        """Let time pass until a condition holds; the seconds that it took. Raises TimeoutError where it does not.

        While clients are served, virtual time waits for them until they have written nothing for 50 ms.
        """
        begun_ns = self._clock.now()
        end_ns = begun_ns + parse_duration(within)
        self.settle()
        while not condition():
            if self._served is not None and self._is_used(condition):
                break
            if not self._pass_time(end_ns):
                if condition():
                    break
                raise TimeoutError(f"it does not come about within {format_duration(end_ns - begun_ns)}")
        return (self._clock.now() - begun_ns) / _SECOND

    def _pass_time(self, end_ns: int) -> bool:
        """Go on to the next time at which something is due, or to the end; False where that has come."""
        clock = self._clock
        if clock.now() >= end_ns:
            return False
        if isinstance(clock, SystemClock):
            time.sleep(min(_LOOK_SECONDS, clock.seconds_until(end_ns)))
        else:
            self._jump(clock, end_ns)
        return True

    @_there
    def _jump(self, clock: VirtualClock, end_ns: int) -> None:
        next_ns = self.plane.turn()
        clock.set(end_ns if next_ns is None else min(max(next_ns, clock.now()), end_ns))
        self.settle()

    def _is_used(self, condition: Callable[[], object]) -> bool:
        """Whether clients bring a condition about, while the virtual time stands still."""
        if isinstance(self._clock, SystemClock):
            return False
        version, since = self.plane.store.version, time.monotonic()
        while time.monotonic() < since + _QUIET_SECONDS:
            time.sleep(_LOOK_SECONDS)
            if condition():
                return True
            if self.plane.store.version != version:
                version, since = self.plane.store.version, time.monotonic()
        return False

    # Objects

    @_there
    def apply(self, objects: Objects) -> list[Raw]:
        """Create objects, or bring those that are there to what is given; what they are then.

        Raises InputError for what cannot be read, and RefusedError.
        """
        applied = [self._apply(document.raw) for document in read_objects(objects)]
        self.settle()
        return applied

    @_there
    def get(self, kind: str, name: str, namespace: str = "default") -> Raw | None:
        """An object as it is now; None where there is none."""
        stored = self.plane.store.find(kind, self._key(kind, name, namespace))
        return None if stored is None else stored.raw

    @_there
    def objects(
        self, kind: str, namespace: str = "", *, label_selector: str = "", field_selector: str = ""
    ) -> list[Raw]:
        """The objects of a kind, of one namespace or of all, by key. Raises RefusedError."""
        options = ListOptions(label_selector=label_selector, field_selector=field_selector)
        return self.request(Request(verb="list", kind=kind, namespace=namespace, options=options)).objects()

    def pods(self, namespace: str = "", *, label_selector: str = "") -> list[Raw]:
        """The pods, of one namespace or of all, by key."""
        return self.objects("Pod", namespace, label_selector=label_selector)

    def node_of(self, pod: str, namespace: str = "default") -> str:
        """The node to which a pod is bound; "" for none, and for a pod that is not there."""
        raw = self.get("Pod", pod, namespace)
        return "" if raw is None else str(raw["spec"].get("nodeName", ""))

    def events(self, reason: str = "") -> list[Raw]:
        """The Events, of one reason or of all, by the time at which they last happened."""
        found = [event for event in self.objects("Event") if reason in ("", event.get("reason"))]
        return sorted(found, key=lambda event: (event.get("lastTimestamp", ""), event["metadata"]["name"]))

    @_there
    def patch(self, kind: str, name: str, patch: Raw, namespace: str = "default", subresource: str = "") -> Raw:
        """Change an object by a merge patch; what it is then. Raises RefusedError."""
        key = self._key(kind, name, namespace)
        answer = self.request(Request(verb="patch", kind=kind, key=key, body=patch, subresource=subresource))
        self.settle()
        return answer.object or {}

    @_there
    def delete(self, kind: str, name: str, namespace: str = "default", *, grace_seconds: int | None = None) -> None:
        """Delete an object. Raises RefusedError."""
        body = {} if grace_seconds is None else {"gracePeriodSeconds": grace_seconds}
        key = self._key(kind, name, namespace)
        self.request(Request(verb="delete", kind=kind, key=key, body=body, field_manager=_NAME))
        self.settle()

    @_there
    def evict(self, pod: str, namespace: str = "default") -> None:
        """Delete a pod if its disruption budgets allow it. Raises RefusedError, with code 429 where they do not."""
        key = f"{namespace}/{pod}"
        metadata = {"name": pod, "namespace": namespace}
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
        self.request(Request(verb="create", kind="Pod", key=key, subresource="eviction", body=body))
        self.settle()

    @_there
    def request(self, request: Request) -> Response:
        """Ask the API server for anything. What follows from it comes with `settle` or when time passes.

        Raises RefusedError.
        """
        response = self.plane.answer(request)
        if response.error is not None:
            raise RefusedError(response.error.code, response.error.reason, response.error.message)
        return response

    # What no request says

    @_there
    def stop_node(self, name: str) -> None:
        """A node's machine stops, with all that runs there. Nobody is told but by the heartbeats that stay away."""
        self.plane.stop_node(name)
        self.settle()

    @_there
    def start_node(self, name: str) -> None:
        """A node's machine that had stopped runs again."""
        self.plane.start_node(name)
        self.settle()

    @_there
    def finish_pod(self, name: str, namespace: str = "default") -> None:
        """The containers of a pod exit by themselves, with success."""
        self.plane.finish_pod(f"{namespace}/{name}")
        self.settle()

    def _apply(self, raw: Raw) -> Raw:
        resource = self.plane.resources.of(raw)
        metadata: Raw = raw.get("metadata", {})
        key = self._key(resource.name, str(metadata.get("name", "")), str(metadata.get("namespace") or "default"))
        if metadata.get("name") and self.plane.store.find(resource.name, key) is not None:
            request = Request(verb="patch", kind=resource.name, key=key, body=raw, patch_type="merge")
        else:
            request = Request(verb="create", kind=resource.name, body=raw)
        return self.request(request).object or {}

    def _key(self, kind: str, name: str, namespace: str) -> str:
        return f"{namespace}/{name}" if self.plane.resources.named(kind).namespaced else name


def _rescheduling(given: Raw | str | Path) -> ReschedulerSettings:
    return read_settings(given) if isinstance(given, dict) else load_rescheduler(str(given)).settings


def _known(names: Iterable[str]) -> frozenset[str]:
    found = frozenset(names)
    if unknown := sorted(found - frozenset(SWITCHABLE)):
        raise PodiumError(f"there is no component {unknown[0]}; there are {', '.join(SWITCHABLE)}")
    return found
