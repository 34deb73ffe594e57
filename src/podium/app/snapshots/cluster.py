"""Reading of a cluster with only rights to list, the file of a snapshot, and the parts of objects that it omits.

The file is a List in JSON, compressed with gzip, of the objects and of a Snapshot about them. Pods are in tables, which
`-f` reads fastest (`podium.api.input.pod_table`).

Environment, commands and hooks of containers, and annotations that Podium does not read, affect no decision, may hold
secrets, and are most of a dump. In pod templates, which are compared with each other, numbers replace the omitted
parts: equal numbers for equal parts, counted from 1 in order of appearance. A number reveals nothing of the part.
"""

from __future__ import annotations

import asyncio
import gzip
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from functools import partial
from hashlib import blake2b
from typing import BinaryIO, Literal

import msgspec

from podium.api.errors import InputError, os_error_as
from podium.api.input.documents import HiddenKind, Snapshot
from podium.api.input.pod_table import PodTableWriter
from podium.api.kinds import KEPT_KINDS, KINDS, Kind
from podium.api.meta import ObjectMeta, Raw, objects_at
from podium.api.times import format_time
from podium.api.workloads import POD_PATHS
from podium.app.console.options import ClusterSource
from podium.app.console.output import draft_of
from podium.app.console.progress import ProgressBar
from podium.client.credentials import Credentials
from podium.client.kubeconfig import find_access
from podium.client.session import NoAnswerError, Session, read_list, server_version
from podium.store.api_resources import APIResources
from podium.store.errors import StoreError

Part = Literal["annotations", "env", "managed-fields", "secrets"]
"""The parts that can be included."""

PARTS: dict[Part, str] = {
    "annotations": "annotations that Podium does not read",
    "env": "environment, commands, probes and hooks of containers",
    "managed-fields": "managed fields",
    "secrets": "secrets",
}
"""The parts in words, in the order of messages."""

LEFT_OUT_ANNOTATION = "podium.dev/left-out"
"""The annotation of a template that replaces the omitted ones."""

LEFT_OUT_VARIABLE = "PODIUM_LEFT_OUT"
"""The variable of a template's container that replaces its omitted settings."""

# Podium reads all annotations of its own, and these of Kubernetes and of other programs.
_OWN = "podium.dev/"
_ANNOTATIONS = """
batch.kubernetes.io/cronjob-scheduled-timestamp batch.kubernetes.io/job-completion-index
batch.kubernetes.io/job-index-failure-count cluster-autoscaler.kubernetes.io/daemonset-pod
cluster-autoscaler.kubernetes.io/safe-to-evict cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes
cluster-autoscaler.kubernetes.io/scale-down-disabled controller.kubernetes.io/pod-deletion-cost
deployment.kubernetes.io/revision deployment.kubernetes.io/revision-history
descheduler.alpha.kubernetes.io/prefer-no-eviction karpenter.sh/do-not-disrupt karpenter.sh/do-not-evict
kubernetes.io/config.mirror kubernetes.io/config.source kubernetes.io/service-account.name
pv.kubernetes.io/bind-completed pv.kubernetes.io/bound-by-controller pv.kubernetes.io/provisioned-by
resource.kubernetes.io/extended-resource-claim resource.kubernetes.io/pod-claim-name
scheduler.alpha.kubernetes.io/preferAvoidPods scheduler.kubernetes.io/nominated-node-name
storage.alpha.kubernetes.io/migrated-plugins volume.beta.kubernetes.io/storage-class volume.kubernetes.io/selected-node
"""
_READ = frozenset(_ANNOTATIONS.split())
_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")
_SETTINGS = ("args", "command", "env", "envFrom", "lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
_TEMPLATE = ("spec", "template")
_TEMPLATES = {**POD_PATHS, "ControllerRevision": ("data", *_TEMPLATE)}
_STATUSES = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
_ENDED = ("state", "lastState")


class Slimmer:
    """Omits parts of objects except those `kept`. Its arguments are not changed."""

    def __init__(self, kept: Collection[Part] = ()) -> None:
        self._kept = kept
        self._numbers: dict[bytes, int] = {}

    def slim(self, raw: Raw) -> Raw:
        """Return the object without the omitted parts."""
        kind, spec = raw.get("kind"), raw.get("spec")
        if kind == "Pod":
            return self._pod(raw, is_template=False)
        slim = self._with_metadata(raw, is_template=False)
        if kind == "Scenario" and isinstance(spec, dict):
            if "steps" in spec:
                steps = [
                    {**step, "apply": list(map(self.slim, objects_at(step, "apply")))} if "apply" in step else step
                    for step in objects_at(spec, "steps")
                ]
                slim["spec"] = {**spec, "steps": steps}
            return slim
        slim = _changed_at(slim, _TEMPLATES.get(str(kind), _TEMPLATE), partial(self._pod, is_template=True))
        if kind == "CronJob":
            slim = _changed_at(slim, ("spec", "jobTemplate"), partial(self._with_metadata, is_template=True))
        return slim

    def _pod(self, pod: Raw, *, is_template: bool) -> Raw:
        """Return a pod or a template of pods without the omitted parts."""
        slim = self._with_metadata(pod, is_template=is_template)
        for field, names, change in (
            ("spec", _CONTAINERS, partial(self._container, is_template=is_template)),
            ("status", _STATUSES, _without_message),
        ):
            if "env" not in self._kept and isinstance(pod.get(field), dict):
                within = slim[field] = dict(pod[field])
                within |= {
                    name: list(map(change, objects_at(within, name)))
                    for name in names
                    if isinstance(within.get(name), list)
                }
        return slim

    def _with_metadata(self, value: Raw, *, is_template: bool) -> Raw:
        slim = dict(value)
        if not isinstance(slim.get("metadata"), dict):
            return slim
        metadata = slim["metadata"] = dict(slim["metadata"])
        if "managed-fields" not in self._kept:
            metadata.pop("managedFields", None)
        if "annotations" not in self._kept and isinstance(metadata.get("annotations"), dict):
            annotations = metadata.pop("annotations")
            kept = {name: value for name, value in annotations.items() if is_read(name)}
            others = {name: value for name, value in annotations.items() if name not in kept}
            if others and is_template:
                kept[LEFT_OUT_ANNOTATION] = self._number(others)
            if kept:
                metadata["annotations"] = kept
        return slim

    def _container(self, container: Raw, *, is_template: bool) -> Raw:
        settings = {name: container[name] for name in _SETTINGS if name in container}
        if not settings:
            return container
        slim = {name: value for name, value in container.items() if name not in settings}
        if is_template:
            slim["env"] = [{"name": LEFT_OUT_VARIABLE, "value": self._number(settings)}]
        return slim

    def _number(self, left_out: Raw) -> str:
        digest = blake2b(msgspec.json.encode(left_out, order="deterministic"), digest_size=16).digest()
        return str(self._numbers.setdefault(digest, len(self._numbers) + 1))


def is_read(annotation: str) -> bool:
    """Return whether Podium reads an annotation."""
    return annotation in _READ or (annotation.startswith(_OWN) and annotation != LEFT_OUT_ANNOTATION)


def left_out_beside(kept: Collection[Part]) -> tuple[str, ...]:
    """Return the omitted parts in words."""
    return tuple(words for part, words in PARTS.items() if part not in kept)


def _changed_at(value: Raw, path: Sequence[str], change: Callable[[Raw], Raw]) -> Raw:
    """Return the object with a change of the object at the path, if there is one."""
    name, *rest = path
    within = value.get(name)
    if not isinstance(within, dict):
        return value
    return {**value, name: _changed_at(within, rest, change) if rest else change(within)}


def _without_message(container: Raw) -> Raw:
    """Return a container's status without its termination messages, which may hold anything."""
    for name in _ENDED:
        ended = container[name].get("terminated") if isinstance(container.get(name), dict) else None
        if isinstance(ended, dict) and "message" in ended:
            ended = {key: value for key, value in ended.items() if key != "message"}
            container = {**container, name: {**container[name], "terminated": ended}}
    return container


# kube-apiserver serves this many lists of one client at once without delaying others.
_AT_ONCE = 4
_TIMEOUT_S = 120.0
_FORBIDDEN, _NOT_FOUND = 403, 404
# The kinds without which no answer is possible.
_NEEDED = ("Node", "Pod")

Progress = Callable[[float], None]
Slim = Callable[[Raw], Raw]


ClusterRead = tuple[Snapshot, list[tuple[str, list[bytes]]]]
"""The Snapshot that describes a cluster, and its objects by kind, as JSON."""

_Listed = tuple[Kind, list[bytes], StoreError | NoAnswerError | None]
"""The objects of a kind, and the error if they could not be listed."""


def read_cluster(
    source: ClusterSource,
    slim: Slim,
    *,
    kinds: Iterable[Kind] = KINDS.values(),
    further: Iterable[Kind] = (),
    left_out: tuple[str, ...] = (),
    progress: Progress = lambda _: None,
) -> ClusterRead:
    """Read all kinds that Podium uses (or the `kinds`), and `further` ones, each object reduced by `slim`.

    Raises PodiumError if no cluster is named or reached, and if the user is not allowed to list nodes or pods.
    """
    taken_ns, wanted = time.time_ns(), (*kinds, *further)

    async def read() -> tuple[str, str, list[_Listed]]:
        async with open_session(source, "podium-snapshot", _TIMEOUT_S) as session:
            version = await server_version(session)
            return session.access.name, version, await _read_kinds(session, wanted, slim, progress)

    context, version, found = asyncio.run(read())
    place, hidden, absent = f"context {context}", [], []
    for kind, _, refusal in found:
        if refusal is None:
            continue
        code = refusal.code if isinstance(refusal, StoreError) else 0
        if code not in (_FORBIDDEN, _NOT_FOUND):
            raise InputError(f"{kind.plural} cannot be listed: {refusal}", source=place)
        if kind.name in _NEEDED:
            problem = f"you are not allowed to list {kind.plural}, which every answer needs: {refusal}"
            raise InputError(problem, source=place)
        if code == _FORBIDDEN:
            hidden.append(HiddenKind(api_version=kind.api_version, kind=kind.name, message=str(refusal)))
        else:
            absent.append(f"{kind.name} ({kind.api_version})")
    snapshot = Snapshot(
        metadata=ObjectMeta(name=context),
        context=context,
        server_version=version,
        taken_at=format_time(taken_ns),
        hidden=tuple(hidden),
        not_served=tuple(absent),
        left_out=left_out,
    )
    return (snapshot, [(kind.name, objects) for kind, objects, _ in found if objects])


@asynccontextmanager
async def open_session(cluster: ClusterSource, user_agent: str, timeout_s: float = 30.0) -> AsyncIterator[Session]:
    """Connect to a cluster for as long as the context lasts. Raises PodiumError if none is named."""
    access = find_access(os.environ, cluster.kubeconfig, cluster.context)
    credentials = Credentials(access, time.time_ns, allows_exec=cluster.allows_exec_plugins)
    session = Session(access, credentials, APIResources(), user_agent=user_agent, timeout_s=timeout_s)
    try:
        yield session
    finally:
        await session.close()


async def _read_kinds(session: Session, kinds: Sequence[Kind], slim: Slim, progress: Progress) -> list[_Listed]:
    at_once = asyncio.Semaphore(_AT_ONCE)
    done, unanswered = 0, list[NoAnswerError]()

    async def read(kind: Kind) -> _Listed:
        nonlocal done
        common = {"apiVersion": kind.api_version, "kind": kind.name}

        def page(items: list[Raw]) -> list[bytes]:
            # The items of a list have no apiVersion and kind.
            return [msgspec.json.encode(slim({**common, **item})) for item in items]

        async with at_once:
            try:
                # A server that has answered none of several tries is not asked for the other kinds.
                if unanswered:
                    raise unanswered[0]
                pages = await read_list(session, kind.name, page)
                found: _Listed = (kind, [text for texts in pages for text in texts], None)
            except NoAnswerError as error:
                unanswered.append(error)
                found = (kind, [], error)
            except StoreError as error:
                found = (kind, [], error)
        done += 1
        progress(done / len(kinds))
        return found

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(read(kind)) for kind in kinds]
    return [task.result() for task in tasks]


def keep_cluster(file: SnapshotFile, cluster: ClusterSource, kept: Sequence[Part] = ()) -> Snapshot:
    """Read a cluster, with a progress bar, and add its objects to a file, with the ``kept`` parts.

    Return the Snapshot that must end the file.
    """
    further = [kind for kind in KEPT_KINDS if kind.name == "Secret" and "secrets" in kept]
    with ProgressBar("reading") as bar:
        snapshot, objects = read_cluster(
            cluster,
            Slimmer(kept).slim,
            further=further,
            left_out=left_out_beside(kept),
            progress=lambda share: bar.update(share, lambda: "reading"),
        )
    for _, texts in objects:
        for text in texts:
            file.add_text(text)
    return snapshot


_OPENS = b'{"apiVersion":"v1","kind":"List","items":[\n'
_BETWEEN = b",\n"
_ENDS = b"\n]}\n"
# zlib's own: the highest level takes several times as long for little less.
_LEVEL = 6


class SnapshotFile:
    """A writer of objects, one after another, and of their Snapshot."""

    def __init__(self, packed: gzip.GzipFile) -> None:
        self._packed = packed
        self._separator = b""
        self._pods = PodTableWriter()
        self.count = 0
        """How many objects were written."""
        self.size = 0
        """How many bytes there are to read, unpacked."""
        self._packed.write(_OPENS)

    def add(self, raw: Raw) -> None:
        self.add_text(msgspec.json.encode(raw))

    def add_text(self, text: bytes) -> None:
        self.count += 1
        if not self._pods.add(text):
            self._begin(text)
        elif self._pods.is_full:
            self._write_pods()

    def begin(self, text: bytes) -> None:
        """Write the beginning of an object; `go_on` writes the rest."""
        self._write_pods()
        self._begin(text)

    def _write_pods(self) -> None:
        """Write the buffered pods as a table."""
        for item in self._pods.take():
            self._begin(item)

    def _begin(self, text: bytes) -> None:
        self.go_on(self._separator + text)
        self._separator = _BETWEEN

    def go_on(self, text: bytes) -> None:
        """Write a further part of an object."""
        self._packed.write(text)
        self.size += len(text)

    def end(self, snapshot: Snapshot) -> None:
        self._write_pods()
        self.add(snapshot.to_dict())
        self.count -= 1

    def close(self) -> None:
        self._write_pods()
        self._packed.write(_ENDS)


@contextmanager
def snapshot_file(name: str) -> Iterator[SnapshotFile]:
    """Open a snapshot's file, readable by its owner alone; "-" is standard output."""
    with ExitStack() as opened:
        stream: BinaryIO = sys.stdout.buffer
        if name != "-":
            opened.enter_context(os_error_as("cannot be written", name))
            stream = opened.enter_context(draft_of(name))
        # Neither a name nor a time: the same objects give the same bytes.
        packed = gzip.GzipFile(filename="", mode="wb", compresslevel=_LEVEL, fileobj=stream, mtime=0)
        file = SnapshotFile(opened.enter_context(packed))
        yield file
        file.close()
