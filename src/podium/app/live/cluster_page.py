"""The page of a program at a cluster: what it knows of the cluster, to look at."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from podium.api.kinds import KINDS
from podium.app.serving.page.live_page import LivePage
from podium.app.serving.page.shown import Shown
from podium.app.serving.page.watching import Watching
from podium.client.live_cluster import LiveCluster
from podium.store.errors import StoreError
from podium.store.stored import Stored

if TYPE_CHECKING:
    from podium.sim.run_options import RunOptions


def cluster_page(
    cluster: LiveCluster, title: str, now: Callable[[], int], options: Callable[[], RunOptions]
) -> LivePage:
    """A page that shows what is known of a cluster once all of it is; ``options`` are how questions are played."""
    watching = Watching(lambda kind: cluster.reflectors[kind].machine.known)
    cluster.on_seen = watching.saw

    def objects() -> list[Stored]:
        known = [reflector.machine for reflector in cluster.reflectors.values()]
        read = [machine for machine in known if (machine.resource.group, machine.resource.kind) in KINDS]
        return [stored for machine in read for stored in machine.known.values()]

    def shown() -> Shown:
        if cluster.unsynced:
            # It is asked for again.
            raise StoreError(503, "ServiceUnavailable", f"not all is known yet of {', '.join(cluster.unsynced)}")
        return Shown(
            mode="component",
            title=title,
            objects=objects,
            now=now,
            options=options(),
            nodes_path="/ui/watch/nodes",
            pods_path="/ui/watch/pods",
        )

    return LivePage(shown, watching=watching)
