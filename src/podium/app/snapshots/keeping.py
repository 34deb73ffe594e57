"""Keeps what is read of a cluster in a snapshot."""

from __future__ import annotations

from collections.abc import Sequence

from podium.api.kinds import KEPT_KINDS
from podium.api.snapshot import Snapshot
from podium.app.console.progress import ProgressBar
from podium.app.console.source import ClusterSource
from podium.app.snapshots.cluster import read_cluster
from podium.app.snapshots.file import SnapshotFile
from podium.app.snapshots.slimming import Part, Slimmer, left_out_beside


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
