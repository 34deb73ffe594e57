"""Reading of a cluster with rights to list alone: its objects, and the kinds that may not be listed."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import msgspec

from podium.api.errors import InputError
from podium.api.kinds import KEPT_KINDS, KINDS, Kind
from podium.api.meta import ObjectMeta, Raw
from podium.api.snapshot import HiddenKind, Snapshot
from podium.api.times import format_time
from podium.app.console.progress import ProgressBar
from podium.app.console.source import ClusterSource
from podium.app.snapshots.file import SnapshotFile
from podium.app.snapshots.slimming import Part, Slimmer, left_out_beside
from podium.client.credentials import Credentials
from podium.client.kubeconfig import find_access
from podium.client.lists import read_list
from podium.client.session import NoAnswerError, Session, server_version
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


@dataclass(frozen=True, slots=True)
class ClusterRead:
    """The objects of a cluster by kind, as JSON, and the Snapshot that describes them."""

    snapshot: Snapshot
    objects: list[tuple[str, list[bytes]]]


@dataclass(frozen=True, slots=True)
class _Kind:
    kind: Kind
    objects: list[bytes]
    refusal: StoreError | NoAnswerError | None = None

    def is_refused_with(self, code: int) -> bool:
        return isinstance(self.refusal, StoreError) and self.refusal.code == code


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

    Raises PodiumError if no cluster is named or reached, and if nodes or pods may not be listed.
    """
    return asyncio.run(_read(source, slim, (*kinds, *further), left_out, progress or (lambda _: None)))


async def _read(
    source: ClusterSource, slim: Slim, kinds: Sequence[Kind], left_out: tuple[str, ...], progress: Progress
) -> ClusterRead:
    access = find_access(os.environ, source.kubeconfig, source.context)
    credentials = Credentials(access, time.time_ns, allows_exec=source.allows_exec_plugins)
    taken_ns = time.time_ns()
    session = Session(access, credentials, APIResources(), user_agent="podium-snapshot", timeout_s=_TIMEOUT_S)
    try:
        version = await server_version(session)
        found = await _read_kinds(session, kinds, slim, progress)
    finally:
        await session.close()
    _check(found, access.name)
    hidden = tuple(
        HiddenKind(api_version=listed.kind.api_version, kind=listed.kind.name, message=str(listed.refusal))
        for listed in found
        if listed.is_refused_with(_FORBIDDEN)
    )
    absent = tuple(
        f"{listed.kind.name} ({listed.kind.api_version})" for listed in found if listed.is_refused_with(_NOT_FOUND)
    )
    snapshot = Snapshot(
        metadata=ObjectMeta(name=access.name),
        context=access.name,
        server_version=version,
        taken_at=format_time(taken_ns),
        hidden=hidden,
        not_served=absent,
        left_out=left_out,
    )
    return ClusterRead(snapshot, [(listed.kind.name, listed.objects) for listed in found if listed.objects])


async def _read_kinds(session: Session, kinds: Sequence[Kind], slim: Slim, progress: Progress) -> list[_Kind]:
    at_once = asyncio.Semaphore(_AT_ONCE)
    done = 0

    async def read(kind: Kind) -> _Kind:
        nonlocal done
        common = {"apiVersion": kind.api_version, "kind": kind.name}

        def page(items: list[Raw]) -> list[bytes]:
            # The items of a list have no apiVersion and kind.
            return [msgspec.json.encode(slim({**common, **item})) for item in items]

        async with at_once:
            try:
                pages = await read_list(session, kind.name, page)
                found = _Kind(kind, [text for texts in pages for text in texts])
            except (NoAnswerError, StoreError) as error:
                found = _Kind(kind, [], error)
        done += 1
        progress(done / len(kinds))
        return found

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(read(kind)) for kind in kinds]
    return [task.result() for task in tasks]


def _check(found: Sequence[_Kind], name: str) -> None:
    """Raise InputError for needed kinds that may not be listed, and for errors other than missing rights and kinds."""
    place = f"context {name}"
    for listed in found:
        if listed.refusal is None:
            continue
        if not listed.is_refused_with(_FORBIDDEN) and not listed.is_refused_with(_NOT_FOUND):
            raise InputError(f"{listed.kind.plural} cannot be listed: {listed.refusal}", source=place)
        if listed.kind.name in _NEEDED:
            problem = f"{listed.kind.plural} may not be listed, and there is nothing to say without: {listed.refusal}"
            raise InputError(problem, source=place)


def keep_cluster(file: SnapshotFile, cluster: ClusterSource, kept: Sequence[Part] = ()) -> Snapshot:
    """Read a cluster, with a progress bar, and add its objects to a file, with those ``kept`` parts of them.

    What is returned is to end the file.
    """
    further = [kind for kind in KEPT_KINDS if kind.name == "Secret" and "secrets" in kept]
    with ProgressBar("reading") as bar:
        found = read_cluster(
            cluster,
            Slimmer(kept).slim,
            further=further,
            left_out=left_out_beside(kept),
            progress=lambda share: bar.update(share, lambda: "reading"),
        )
    for _, objects in found.objects:
        for text in objects:
            file.add_text(text)
    return found.snapshot
