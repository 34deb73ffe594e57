"""The reading of files and clusters with a progress bar."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import chdir
from dataclasses import replace

import msgspec

from podium.api.collector import collector_paused, settle_collector
from podium.api.errors import Validation
from podium.api.input import codec
from podium.api.input.documents import overridden
from podium.api.input.files import FileName
from podium.app.cluster import Cluster
from podium.app.console.options import Source
from podium.app.console.progress import ProgressBar
from podium.app.inputs import DecisionSettings
from podium.app.using import client

# The share of listing a cluster; the rest is parsing the lists.
_LISTING_SHARE = 0.5


def read_shown(source: Source | Sequence[FileName], validation: Validation | None) -> codec.Input:
    """Return the input read from an optional cluster and then from files, with a progress bar.

    The objects stay until the process ends: the garbage collector does not look at them again.
    """
    # The collector is settled before it is enabled again, or it would examine all objects once.
    with collector_paused():
        found = _read_shown(source, validation)
        settle_collector()
    return found


def cluster_of(read: codec.Input, settings: DecisionSettings) -> Cluster:
    """Return the cluster of an input and settings, that of the session if they are its own."""
    held = None if client.answering is None else client.answering.cluster
    return held if held is not None and held.read is read and held.settings == settings else Cluster(read, settings)


def _read_shown(source: Source | Sequence[FileName], validation: Validation | None) -> codec.Input:
    if isinstance(source, Source) and source.overrides:
        found = _read_shown(replace(source, overrides=()), validation)
        later = codec.read_input(source.overrides, validation)
        return codec.Input(overridden(found.documents, later.documents), (*found.left_out, *later.left_out))
    session = client.answering
    if session is not None and isinstance(source, Source):
        if validation == session.use.validation:
            return session.cluster.read
        client.answering, source = None, session.use.source
        with chdir(session.use.folder):
            return _read_shown(source, validation)
    files, cluster = (source.files, source.cluster) if isinstance(source, Source) else (source, None)
    with ProgressBar("reading") as bar:
        if cluster is None:
            return codec.read_input(files, validation, lambda share: bar.update(share, lambda: "reading"))
        with codec.Reader(validation) as reader:
            from podium.app.snapshots.cluster import Slimmer, read_cluster

            def progress(share: float) -> None:
                bar.update(share, lambda: f"reading {cluster.context}")

            # Like a dump of the cluster, without managed fields.
            slim = Slimmer(kept=("annotations", "env", "secrets")).slim
            snapshot, listed = read_cluster(cluster, slim, progress=lambda share: progress(share * _LISTING_SHARE))
            place = f"context {snapshot.context}"
            for index, (kind, objects) in enumerate(listed, start=1):
                text = b'{"apiVersion":"v1","kind":"List","items":[' + b",".join(objects) + b"]}"
                reader.read_text(text, f"{place}, {kind}")
                progress(_LISTING_SHARE + (1 - _LISTING_SHARE) * index / len(listed))
            reader.read_text(msgspec.json.encode(snapshot.to_dict()), place)
            reader.read_all(files)
            return reader.input()
