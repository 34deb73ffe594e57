"""A control plane for tests: created in milliseconds, in virtual or real time, with or without a network."""

from __future__ import annotations

import asyncio
import tempfile
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar

import msgspec

from podium.api.clock_inference import DEFAULT_START_NS
from podium.api.errors import PodiumError
from podium.api.input.codec import Document, Reader
from podium.api.meta import Raw
from podium.api.times import SECOND, format_duration, parse_duration, parse_time
from podium.api.versions.choice import read_choice
from podium.apirequests.context import RequestRules
from podium.apirequests.request import Request, Response
from podium.app.serving.serving import write_kubeconfig
from podium.client.extenders import call_webhook
from podium.controllers.kubelets.host import KubeletSettings
from podium.controlplane.assembly import DEFAULT_TEMPLATE, InitialContent, assemble, check_template, open_store
from podium.controlplane.component_names import SWITCHABLE
from podium.controlplane.components import ControlPlaneSettings
from podium.controlplane.control_plane import ControlPlaneRunner, EmbeddedControlPlane
from podium.framework.rescheduling.configuration import load_rescheduler, read_settings
from podium.framework.settings.configuration import Configuration, load_configuration
from podium.runtime.clock import Clock, SystemClock, VirtualClock
from podium.server.http.server import Server
from podium.store.api_resources import APIResource
from podium.store.listing import ListOptions
from podium.store.patching import PatchType

Result = TypeVar("Result")


class Served:
    """A server on loopback until it is stopped; ``url`` is its address, ``kubeconfig`` a file for clients.

    The control plane belongs to the server's thread; `call` runs functions there.
    """

    def __init__(self, plane: EmbeddedControlPlane, pace: Clock) -> None:
        """Start the server; return when it accepts clients."""
        self._plane = plane
        self._pace = pace
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="podium-server", daemon=True)
        self._folder = tempfile.TemporaryDirectory(prefix="podium-")
        self.kubeconfig = Path(self._folder.name) / "kubeconfig"
        self._thread.start()
        try:
            self._server, self._running = self._await(self._start())
            self.url = self._server.address
            write_kubeconfig(self.kubeconfig, self.url)
        except BaseException:
            self._end_loop()
            raise

    @property
    def is_here(self) -> bool:
        """Return whether the caller is on the server's thread."""
        return threading.current_thread() is self._thread

    def call(self, work: Callable[[], Result]) -> Result:
        """Run a function on the server's thread, and return its result or raise its error."""

        async def done() -> Result:
            await self._plane.idle()
            return work()

        return self._await(done())

    def stop(self) -> None:
        """Stop the server and its thread. Raises the control plane's error if it has failed."""
        try:
            self._await(self._stop())
        finally:
            self._end_loop()

    async def _start(self) -> tuple[Server, asyncio.Task[None]]:
        server = Server(self._plane)
        await server.start()
        return server, asyncio.ensure_future(ControlPlaneRunner(self._plane, self._pace).run())

    async def _stop(self) -> None:
        await self._server.stop()
        has_failed = self._running.done()
        self._running.cancel()
        found = await asyncio.gather(self._running, return_exceptions=True)
        if has_failed and isinstance(found[0], BaseException):
            raise found[0]

    def _await(self, work: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _end_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._folder.cleanup()


Duration = str | int | float
"""Text such as "90s" or "1h30m", or seconds."""

# The field manager of tests.
_NAME = "podium-testing"
# The polling interval of a condition in real time.
_LOOK_SECONDS = 0.005
# Clients count as idle after so long without writes.
_QUIET_SECONDS = 0.05
Given = ParamSpec("Given")

Objects = str | Path | Raw | Iterable[Raw]
"""Kubernetes objects: one or several dictionaries, YAML or JSON text, or the path of a file or directory."""


def _there(
    method: Callable[Concatenate[ControlPlane, Given], Result],
) -> Callable[Concatenate[ControlPlane, Given], Result]:
    """Run a method on the thread that owns the control plane."""

    @wraps(method)
    def run(self: ControlPlane, /, *args: Given.args, **kwargs: Given.kwargs) -> Result:
        served = self._served
        if served is None or served.is_here:
            return method(self, *args, **kwargs)
        return served.call(partial(method, self, *args, **kwargs))

    return run


class RefusedError(PodiumError):
    """A request that the API server refused, with the `code` and `reason` of its Status."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason


class ControlPlane:
    """A Kubernetes control plane with simulated nodes, for tests of operators, plugins and configurations.

    Time is virtual: it passes only in `advance` and `run_until`, and components have done everything that is due when a
    method returns. Equal calls give equal results. In `real_time` it passes by itself, `speed` times as fast as the
    clock; then the control plane runs on its own thread and is served over HTTP.

    `nodes` are created from `node_template`, a Node without a name; `objects` exist from the start, with bound pods
    running. `configuration` is a KubeSchedulerConfiguration or its file. `rescheduler`, the fields of a
    ReschedulerConfiguration or its file, enables a rescheduler. `without` names components to leave out, such as
    "scheduler" (`podium.controlplane.component_names.SWITCHABLE`). A pod starts `start_delay` after it is bound, and
    takes `termination` to end when it is deleted, at most its grace period. With `evict_on_delete`, deleting a pod
    evicts it.
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
        kubernetes_version: str = "",
        feature_gates: str = "",
        without: Iterable[str] = (),
        start_delay: Duration = 0,
        termination: Duration = "1s",
        evict_on_delete: bool = False,
    ) -> None:
        """Start the control plane. Raises PodiumError for invalid objects or configurations."""
        start_ns = DEFAULT_START_NS if start is None else parse_time(start)
        self._clock: Clock = SystemClock(speed) if real_time else VirtualClock(start_ns)
        self._served: Served | None = None
        if isinstance(configuration, str | Path):
            configuration = load_configuration(str(configuration))
        rescheduling = read_settings(rescheduler) if isinstance(rescheduler, dict) else None
        if isinstance(rescheduler, str | Path):
            rescheduling = load_rescheduler(str(rescheduler)).settings
        left_out = frozenset(without)
        if unknown := sorted(left_out - frozenset(SWITCHABLE)):
            raise PodiumError(f"there is no component {unknown[0]}; there are {', '.join(SWITCHABLE)}")
        settings = ControlPlaneSettings(
            seed=seed,
            configuration=configuration,
            release=read_choice(kubernetes_version, feature_gates).of(),
            kubelets=KubeletSettings(
                start_delay_ns=parse_duration(start_delay), termination_ns=parse_duration(termination)
            ),
            rescheduling=rescheduling,
            without=left_out,
            rules=RequestRules(deletes_by_eviction=evict_on_delete),
        )
        template = DEFAULT_TEMPLATE if node_template is None else check_template(node_template, "node_template")
        beginning = InitialContent(read_objects(objects), nodes, template)
        self.plane = assemble(open_store(seed), self._clock, settings, beginning).plane
        self.plane.call = call_webhook
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
        """Serve the control plane over HTTP for clients such as kubectl and operators; virtual time does not pass."""
        if self._served is not None:
            yield self._served
            return
        served = self._served = Served(self.plane, self._clock)
        try:
            yield served
        finally:
            self._served = None
            served.stop()

    @property
    def now_ns(self) -> int:
        """Return the time in nanoseconds since 1970."""
        return self._clock.now()

    @_there
    def settle(self) -> None:
        """Let components do everything that is due now."""
        while (next_ns := self.plane.turn()) is not None and next_ns <= self._clock.now():
            pass

    def advance(self, duration: Duration) -> None:
        """Let time pass."""
        end_ns = self._clock.now() + parse_duration(duration)
        while self._pass_time(end_ns):
            pass

    def run_until(self, condition: Callable[[], object], within: Duration = "10m") -> float:
        """Let time pass until a condition holds; return the seconds. Raises TimeoutError.

        While clients are served, virtual time waits until they have written nothing for 50 ms.
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
        return (self._clock.now() - begun_ns) / SECOND

    def _pass_time(self, end_ns: int) -> bool:
        """Advance to the next due time, at most ``end_ns``; return False if that is reached."""
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
        """Return whether clients make a condition true while the virtual time stands still."""
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

    @_there
    def apply(self, objects: Objects) -> list[Raw]:
        """Create or update objects, and return their new state.

        Raises InputError for invalid objects, and RefusedError.
        """
        applied = [self._apply(document.raw) for document in read_objects(objects)]
        self.settle()
        return applied

    @_there
    def get(self, kind: str, name: str, namespace: str = "default") -> Raw | None:
        """Return an object; None if there is none. Raises RefusedError for an unknown kind.

        Here and below, `kind` is a kind such as "Pod" or, for a custom resource, "Widget"; if it is ambiguous,
        "Widget.example.com".
        """
        resource = self._resource(kind)
        stored = self.plane.store.find(resource.name, _key(resource, name, namespace))
        return None if stored is None else stored.raw

    @_there
    def objects(
        self, kind: str, namespace: str = "", *, label_selector: str = "", field_selector: str = ""
    ) -> list[Raw]:
        """Return the objects of a kind, of one namespace or all, by key. Raises RefusedError."""
        options = ListOptions(label_selector=label_selector, field_selector=field_selector)
        kind = self._resource(kind).name
        return self.request(Request(verb="list", kind=kind, namespace=namespace, options=options)).objects()

    def pods(self, namespace: str = "", *, label_selector: str = "") -> list[Raw]:
        """Return the pods of one namespace or all, by key."""
        return self.objects("Pod", namespace, label_selector=label_selector)

    def node_of(self, pod: str, namespace: str = "default") -> str:
        """Return the node that a pod is bound to; "" if there is none."""
        raw = self.get("Pod", pod, namespace)
        return "" if raw is None else str(raw["spec"].get("nodeName", ""))

    def events(self, reason: str = "") -> list[Raw]:
        """Return the Events of one reason or all, by the time of their last occurrence."""
        found = [event for event in self.objects("Event") if reason in ("", event.get("reason"))]
        return sorted(found, key=lambda event: (event.get("lastTimestamp", ""), event["metadata"]["name"]))

    @_there
    def patch(self, kind: str, name: str, patch: Raw, namespace: str = "default", subresource: str = "") -> Raw:
        """Apply a merge patch to an object, and return its new state. Raises RefusedError."""
        resource = self._resource(kind)
        key = _key(resource, name, namespace)
        answer = self.request(Request(verb="patch", kind=resource.name, key=key, body=patch, subresource=subresource))
        self.settle()
        return answer.object or {}

    @_there
    def delete(self, kind: str, name: str, namespace: str = "default", *, grace_seconds: int | None = None) -> None:
        """Delete an object, and in the background what it owns, as kubectl does. Raises RefusedError."""
        body: Raw = {} if grace_seconds is None else {"gracePeriodSeconds": grace_seconds}
        body["propagationPolicy"] = "Background"
        resource = self._resource(kind)
        key = _key(resource, name, namespace)
        self.request(Request(verb="delete", kind=resource.name, key=key, body=body, field_manager=_NAME))
        self.settle()

    @_there
    def evict(self, pod: str, namespace: str = "default") -> None:
        """Evict a pod. Raises RefusedError, with code 429 if a disruption budget does not allow it."""
        key = f"{namespace}/{pod}"
        metadata = {"name": pod, "namespace": namespace}
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
        self.request(Request(verb="create", kind="Pod", key=key, subresource="eviction", body=body))
        self.settle()

    @_there
    def request(self, request: Request) -> Response:
        """Send a request to the API server.

        Its effects follow with `settle` or when time passes. Raises RefusedError.
        """
        response = self.plane.answer(request)
        if response.error is not None:
            raise RefusedError(response.error.code, response.error.reason, response.error.message)
        return response

    @_there
    def stop_node(self, name: str) -> None:
        """Stop a node's machine, with everything on it; only missing heartbeats show that."""
        self.plane.change_power(name, is_up=False)
        self.settle()

    @_there
    def start_node(self, name: str) -> None:
        """Start a stopped node's machine."""
        self.plane.change_power(name, is_up=True)
        self.settle()

    @_there
    def finish_pod(self, name: str, namespace: str = "default") -> None:
        """Let the containers of a pod exit with success."""
        self.plane.finish_pod(f"{namespace}/{name}")
        self.settle()

    def _apply(self, raw: Raw) -> Raw:
        resource = self.plane.resources.of(raw)
        metadata: Raw = raw.get("metadata", {})
        key = _key(resource, str(metadata.get("name", "")), str(metadata.get("namespace") or "default"))
        if metadata.get("name") and self.plane.store.find(resource.name, key) is not None:
            # Keep what admission added to the containers of a pod; replace the lists of other kinds.
            patch_type: PatchType = "strategic" if resource.name == "Pod" else "merge"
            request = Request(verb="patch", kind=resource.name, key=key, body=raw, patch_type=patch_type)
        else:
            request = Request(verb="create", kind=resource.name, body=raw)
        return self.request(request).object or {}

    def _resource(self, kind: str) -> APIResource:
        """Return the resource of a kind: built-in, or custom by name or kind."""
        resources = self.plane.resources.all()
        found = [each for each in resources if each.name == kind] or [each for each in resources if each.kind == kind]
        if len(found) > 1:
            raise RefusedError(
                400, "BadRequest", f"{kind} may be {' or '.join(each.name for each in found)}; say which"
            )
        if not found:
            raise RefusedError(404, "NotFound", f"the kind {kind} is not served; apply its CustomResourceDefinition")
        return found[0]


def _key(resource: APIResource, name: str, namespace: str) -> str:
    return f"{namespace}/{name}" if resource.namespaced else name


def read_objects(objects: Objects) -> list[Document]:
    """Return the objects, validated like a file's. Raises InputError."""
    with Reader() as reader:
        if isinstance(objects, Path):
            reader.read_all([objects])
        elif isinstance(objects, str):
            if "\n" in objects or objects.lstrip().startswith("{"):
                reader.read_text(objects, "objects")
            else:
                reader.read_all([objects])
        else:
            listed = [objects] if isinstance(objects, dict) else list(objects)
            if listed:
                # Read like a file, to find the same mistakes.
                text = msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": listed})
                reader.read_text(text, "objects")
        return reader.input().documents
