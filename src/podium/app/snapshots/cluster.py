"""Reading of a cluster with only rights to list, and the file of a snapshot.

The file is a List in JSON, compressed with gzip, of the objects and of a Snapshot about them. Pods are in tables, which
`-f` reads fastest (`podium.api.input.pod_table`).
"""

from __future__ import annotations

import asyncio
import gzip
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, nullcontext
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

import msgspec

from podium.api.errors import InputError
from podium.api.input.pod_table import PodTableWriter
from podium.api.kinds import KEPT_KINDS, KINDS, Kind
from podium.api.meta import ObjectMeta, Raw
from podium.api.snapshot import HiddenKind, Snapshot
from podium.api.times import format_time
from podium.app.console.options import ClusterSource
from podium.app.console.progress import ProgressBar
from podium.app.snapshots.slimming import Part, Slimmer, left_out_beside
from podium.client.credentials import Credentials
from podium.client.kubeconfig import find_access
from podium.client.session import NoAnswerError, Session, read_list, server_version
from podium.store.api_resources import APIResources
from podium.store.errors import StoreError

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
    progress: Progress | None = None,
) -> ClusterRead:
    """Read all kinds that Podium uses (or the `kinds`), and `further` ones, each object reduced by `slim`.

    Raises PodiumError if no cluster is named or reached, and if the user is not allowed to list nodes or pods.
    """
    return asyncio.run(_read(source, slim, (*kinds, *further), left_out, progress or (lambda _: None)))


async def _read(
    source: ClusterSource, slim: Slim, kinds: Sequence[Kind], left_out: tuple[str, ...], progress: Progress
) -> ClusterRead:
    taken_ns = time.time_ns()
    async with open_session(source, "podium-snapshot", _TIMEOUT_S) as session:
        access = session.access
        version = await server_version(session)
        found = await _read_kinds(session, kinds, slim, progress)
    place, hidden, absent = f"context {access.name}", [], []
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
        metadata=ObjectMeta(name=access.name),
        context=access.name,
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
    done = 0

    async def read(kind: Kind) -> _Listed:
        nonlocal done
        common = {"apiVersion": kind.api_version, "kind": kind.name}

        def page(items: list[Raw]) -> list[bytes]:
            # The items of a list have no apiVersion and kind.
            return [msgspec.json.encode(slim({**common, **item})) for item in items]

        async with at_once:
            try:
                pages = await read_list(session, kind.name, page)
                found: _Listed = (kind, [text for texts in pages for text in texts], None)
            except (NoAnswerError, StoreError) as error:
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
    """A writer of objects, one after another, and of their Snapshot; "-" is standard output.

    The file is readable by its owner alone.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._shown = ExitStack()
        self._part: Path | None = None
        self._separator = b""
        self._pods = PodTableWriter()
        self.count = 0
        """How many objects were written."""
        self.size = 0
        """How many bytes there are to read, unpacked."""

    def __enter__(self) -> Self:
        file: AbstractContextManager[BinaryIO] = nullcontext(sys.stdout.buffer)
        if self._name != "-":
            target = Path(self._name)
            # Created for its owner alone, beside the file that it is to be.
            try:
                descriptor, part = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
            except OSError as error:
                raise InputError(f"cannot be written: {error.strerror or error}", source=self._name) from None
            self._part, file = Path(part), os.fdopen(descriptor, "wb")
        stream = self._shown.enter_context(file)
        # Neither a name nor a time: the same objects give the same bytes.
        packed = gzip.GzipFile(filename="", mode="wb", compresslevel=_LEVEL, fileobj=stream, mtime=0)
        self._packed = self._shown.enter_context(packed)
        self._packed.write(_OPENS)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._write_pods()
                self._packed.write(_ENDS)
            self._shown.close()
            if kind is None and self._part is not None:
                self._part.replace(self._name)
        finally:
            # Remove an incomplete file, even if only its last bytes could not be written.
            if self._part is not None:
                self._part.unlink(missing_ok=True)

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
