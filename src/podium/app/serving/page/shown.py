"""What a page shows: of which cluster, and how questions about it are played."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from podium.api.kinds import KINDS
from podium.api.versions.choice import ReleaseChoice
from podium.controlplane.components import ControlPlaneSettings
from podium.controlplane.control_plane import ControlPlane
from podium.store.stored import Stored

if TYPE_CHECKING:
    from podium.sim.run_options import RunOptions

Mode = Literal["control-plane", "component"]
"""A control plane is asked for objects by its API, and objects can be changed there; a component is looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A cluster as a page shows it, with a ``title`` in its head.

    ``objects`` are those that questions are about, and ``options`` how a question is played, from the time ``now`` on.
    Its time passes ``speed`` times as fast as the clock, and nodes and pods are watched at ``nodes_path`` and
    ``pods_path``.
    """

    mode: Mode
    title: str
    objects: Callable[[], list[Stored]]
    now: Callable[[], int]
    options: RunOptions
    speed: float = 1.0
    nodes_path: str = "/api/v1/nodes"
    pods_path: str = "/api/v1/pods"

    def options_now(self) -> RunOptions:
        """How a question is played that is asked at this time."""
        return replace(self.options, start_ns=self.now())


def of_plane(plane: ControlPlane, settings: ControlPlaneSettings, speed: float = 1.0) -> Shown:
    """What the page of a control plane shows, whose time passes so many times as fast as the clock."""
    # Most control planes are asked nothing by their page.
    from podium.sim.run_options import RunOptions

    options = RunOptions(
        start_delay_ns=settings.kubelets.start_delay_ns,
        termination_ns=settings.kubelets.termination_ns,
        configuration=settings.configuration,
        release=ReleaseChoice.exactly(settings.release),
        ignore_extenders=True,
    )

    def objects() -> list[Stored]:
        served = {(resource.group, resource.kind): resource.name for resource in plane.resources.all()}
        kinds = [served[kind] for kind in KINDS if kind in served]
        return [stored for kind in kinds for stored in plane.store.objects(kind)]

    return Shown(mode="control-plane", title="podium up", objects=objects, now=plane.now, options=options, speed=speed)
