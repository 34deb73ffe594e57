"""A control plane for a test: fresh in a few milliseconds, in virtual time, without a network."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from podium.api.errors import PodiumError
from podium.api.input.codec import Input, Reader
from podium.api.meta import Raw
from podium.api.present import DEFAULT_START_NS
from podium.api.times import format_duration, parse_duration, parse_time
from podium.framework.settings.configuration import Configuration, load_configuration
from podium.framework.settings.feature_gates import read_feature_gates
from podium.machines.kubelets.kubelet import KubeletSettings
from podium.plane.assembly import Beginning, assemble, open_store
from podium.plane.control_plane import PlaneSettings
from podium.plane.nodes import DEFAULT_TEMPLATE, check_template
from podium.plane.switches import SWITCHABLE
from podium.plane.virtual_clock import VirtualClock
from podium.requests.request import Request, Response
from podium.store.reads.listing import ListOptions

Objects = str | Path | Raw | Iterable[Raw]
"""Kubernetes objects: dictionaries, one or several; YAML or JSON as text; or the path of a file or a directory."""

Duration = str | int | float
"""Text such as "90s" or "1h30m", or seconds."""

_SECOND = 10**9


class RefusedError(PodiumError):
    """The API server does not do what a test asked for; `code` and `reason` are those of its Status."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason


class ControlPlane:
    """A Kubernetes control plane with simulated nodes, to test operators, plugins and configurations with.

    Time is virtual: it stands still but for `advance` and `run_until`, and what components have to do at one instant
    they have done when a method returns. The same calls come to the same end.

    `nodes` are made by `node_template`, a Node without a name; `objects` are there from the start, pods with a node
    running. `configuration` is a KubeSchedulerConfiguration or its file. `without` names components that are left out,
    such as "scheduler" (`podium.plane.switches.SWITCHABLE`). A pod starts `start_delay` after it is bound, and takes
    `termination` to end when it is deleted, at most its grace period.
    """

    def __init__(  # noqa: PLR0913 - each is an option that people set on its own
        self,
        *,
        nodes: int = 0,
        node_template: Raw | None = None,
        objects: Objects = (),
        start: str | None = None,
        seed: int = 0,
        configuration: Configuration | str | Path | None = None,
        feature_gates: str = "",
        without: Iterable[str] = (),
        start_delay: Duration = 0,
        termination: Duration = "1s",
    ) -> None:
        """Begin. Raises PodiumError for what is wrong with the objects or the configuration."""
        self._clock = VirtualClock(DEFAULT_START_NS if start is None else parse_time(start))
        if isinstance(configuration, str | Path):
            configuration = load_configuration(str(configuration))
        settings = PlaneSettings(
            seed=seed,
            configuration=configuration,
            feature_gates=read_feature_gates(feature_gates),
            kubelets=KubeletSettings(
                start_delay_ns=parse_duration(start_delay), termination_ns=parse_duration(termination)
            ),
            without=_known(without),
        )
        template = DEFAULT_TEMPLATE if node_template is None else check_template(node_template, "node_template")
        beginning = Beginning(_read(objects).documents, nodes, template)
        self.plane = assemble(open_store(seed), self._clock, settings, beginning).plane
        self.settle()

    def __enter__(self) -> ControlPlane:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.plane.close()

    # Time

    @property
    def now_ns(self) -> int:
        """The time, in nanoseconds since 1970."""
        return self._clock.now()

    def settle(self) -> None:
        """Let components do everything that is due by now."""
        while (next_ns := self.plane.turn()) is not None and next_ns <= self._clock.now():
            pass

    def advance(self, duration: Duration) -> None:
        """Let time pass, with all that happens meanwhile."""
        end_ns = self._clock.now() + parse_duration(duration)
        while self._pass_time(end_ns):
            pass
        self._clock.set(end_ns)
        self.settle()

    def run_until(self, condition: Callable[[], object], within: Duration = "10m") -> float:
        """Let time pass until a condition holds; the seconds that it took. Raises TimeoutError where it does not."""
        begun_ns = self._clock.now()
        end_ns = begun_ns + parse_duration(within)
        self.settle()
        while not condition():
            if not self._pass_time(end_ns):
                raise TimeoutError(f"it does not come about within {format_duration(end_ns - begun_ns)}")
        return (self._clock.now() - begun_ns) / _SECOND

    def _pass_time(self, end_ns: int) -> bool:
        """Go on to the next time at which something is due, no later than the end; False where nothing is."""
        next_ns = self.plane.turn()
        if next_ns is None or next_ns > end_ns:
            return False
        self._clock.set(max(next_ns, self._clock.now()))
        self.settle()
        return True

    # Objects

    def apply(self, objects: Objects) -> list[Raw]:
        """Create objects, or bring those that are there to what is given; what they are then.

        Raises InputError for what cannot be read, and RefusedError.
        """
        applied = [self._apply(document.raw) for document in _read(objects).documents]
        self.settle()
        return applied

    def get(self, kind: str, name: str, namespace: str = "default") -> Raw | None:
        """An object as it is now; None where there is none."""
        stored = self.plane.store.find(kind, self._key(kind, name, namespace))
        return None if stored is None else stored.raw

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

    def patch(self, kind: str, name: str, patch: Raw, namespace: str = "default", subresource: str = "") -> Raw:
        """Change an object by a merge patch; what it is then. Raises RefusedError."""
        key = self._key(kind, name, namespace)
        answer = self.request(Request(verb="patch", kind=kind, key=key, body=patch, subresource=subresource))
        self.settle()
        return answer.object or {}

    def delete(self, kind: str, name: str, namespace: str = "default", *, grace_seconds: int | None = None) -> None:
        """Delete an object. Raises RefusedError."""
        body = {} if grace_seconds is None else {"gracePeriodSeconds": grace_seconds}
        self.request(Request(verb="delete", kind=kind, key=self._key(kind, name, namespace), body=body))
        self.settle()

    def evict(self, pod: str, namespace: str = "default") -> None:
        """Delete a pod if its disruption budgets allow it. Raises RefusedError, with code 429 where they do not."""
        key = f"{namespace}/{pod}"
        metadata = {"name": pod, "namespace": namespace}
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
        self.request(Request(verb="create", kind="Pod", key=key, subresource="eviction", body=body))
        self.settle()

    def request(self, request: Request) -> Response:
        """Ask the API server for anything. What follows from it comes with `settle` or when time passes.

        Raises RefusedError.
        """
        response = self.plane.answer(request)
        if response.error is not None:
            raise RefusedError(response.error.code, response.error.reason, response.error.message)
        return response

    # What no request says

    def stop_node(self, name: str) -> None:
        """A node's machine stops, with all that runs there. Nobody is told but by the heartbeats that stay away."""
        self.plane.stop_node(name)
        self.settle()

    def start_node(self, name: str) -> None:
        """A node's machine that had stopped runs again."""
        self.plane.start_node(name)
        self.settle()

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


def _known(names: Iterable[str]) -> frozenset[str]:
    found = frozenset(names)
    if unknown := sorted(found - frozenset(SWITCHABLE)):
        raise PodiumError(f"there is no component {unknown[0]}; there are {', '.join(SWITCHABLE)}")
    return found


def _read(objects: Objects) -> Input:
    with Reader() as reader:
        if isinstance(objects, Path):
            reader.read_files(objects)
        elif isinstance(objects, str):
            if "\n" in objects or objects.lstrip().startswith("{"):
                reader.read_text(objects, "objects")
            else:
                reader.read_files(objects)
        else:
            listed: Sequence[Any] = [objects] if isinstance(objects, dict) else list(objects)
            if listed:
                # Read as a file would be, so that the same mistakes are found.
                text = msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": listed})
                reader.read_text(text, "objects")
        return reader.input()
