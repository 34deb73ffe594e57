"""What containers of a namespace get where they say nothing, and may ask for: LimitRange (core/v1)."""

from __future__ import annotations

from podium.api.meta import Kubernetes, Narrow
from podium.api.pod import ResourceList


class LimitRangeItem(Narrow, frozen=True, kw_only=True):
    """Bounds and defaults for one type of thing: Container, Pod or PersistentVolumeClaim.

    `max_limit_request_ratio` is how much larger than its request a limit may be.
    """

    type: str = ""
    max: ResourceList = {}
    min: ResourceList = {}
    default: ResourceList = {}
    default_request: ResourceList = {}
    max_limit_request_ratio: ResourceList = {}

    @property
    def default_limits(self) -> ResourceList:
        """The limits of containers that name none; the maximum where there is no default."""
        return {**self.max, **self.default} if self.type == "Container" else {}

    @property
    def default_requests(self) -> ResourceList:
        """The requests of containers that name none: else the default limit, else the minimum."""
        return {**self.min, **self.default_limits, **self.default_request} if self.type == "Container" else {}


class LimitRangeSpec(Narrow, frozen=True, kw_only=True):
    """The bounds by type."""

    limits: tuple[LimitRangeItem, ...] = ()


class LimitRange(Kubernetes, frozen=True, kw_only=True):
    """Bounds and defaults of what the pods and claims of a namespace ask for (core/v1)."""

    spec: LimitRangeSpec = LimitRangeSpec()
