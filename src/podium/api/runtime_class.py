"""How pods of a sort run, what that takes, and where they can: RuntimeClass (node.k8s.io/v1)."""

from __future__ import annotations

from podium.api.meta import Kubernetes, Narrow
from podium.api.pod import ResourceList, Toleration


class RuntimeOverhead(Narrow, frozen=True, kw_only=True):
    """What a pod takes beside its containers."""

    pod_fixed: ResourceList = {}


class RuntimeScheduling(Narrow, frozen=True, kw_only=True):
    """The nodes that have the runtime, and the taints of those that are kept for it."""

    node_selector: dict[str, str] = {}
    tolerations: tuple[Toleration, ...] = ()


class RuntimeClass(Kubernetes, frozen=True, kw_only=True):
    """A sort of container runtime (node.k8s.io/v1)."""

    handler: str = ""
    overhead: RuntimeOverhead | None = None
    scheduling: RuntimeScheduling | None = None
