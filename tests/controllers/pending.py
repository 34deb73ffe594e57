"""Pending pods for the tests of the scheduling queue."""

from collections.abc import Iterable, Mapping

from podium.api.meta import ObjectMeta
from podium.api.pod import Container, Pod, PodSchedulingGate, PodSpec, ResourceRequirements, Toleration
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord

CLUSTER = Cluster()


def pending(
    name: str,
    priority: int = 0,
    *,
    scheduler_name: str = "default-scheduler",
    labels: Mapping[str, str] | None = None,
    requests: Mapping[str, str] | None = None,
    tolerated: Iterable[str] = (),
    gates: Iterable[str] = (),
) -> PodRecord:
    """Return a reading of a pending pod whose uid is its name."""
    spec = PodSpec(
        priority=priority,
        scheduler_name=scheduler_name,
        containers=(Container(name="main", resources=ResourceRequirements(requests=dict(requests or {}))),),
        tolerations=tuple(Toleration(key=key, operator="Exists") for key in tolerated),
        scheduling_gates=tuple(PodSchedulingGate(name=gate) for gate in gates),
    )
    meta = ObjectMeta(name=name, namespace="shop", uid=name, labels=dict(labels or {}))
    return CLUSTER.read(Pod(metadata=meta, spec=spec))
