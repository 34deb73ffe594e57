"""A workload's pods among the objects of an input, and the pod that it would make next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from podium.api.input.codec import Document, decode
from podium.api.kinds import WORKLOADS
from podium.api.meta import Kubernetes, Raw
from podium.api.pod import Pod
from podium.api.storage import PersistentVolumeClaim
from podium.api.workloads import CronJob, DaemonSet, Deployment, Job, ReplicaSet, StatefulSet
from podium.app.explaining.explanation import SCHEMA_VERSION, Explanation
from podium.app.explaining.target import POD, Target
from podium.app.shown import Shown
from podium.machines.workloads.daemons.pods import daemon_spec
from podium.machines.workloads.stateful.pods import claims_of, numbered_pod, ordinal_of
from podium.machines.workloads.workload import Workload, label_of

if TYPE_CHECKING:
    from podium.app.console.page import Page
    from podium.app.frames import Frame

# A CronJob has Jobs, a Deployment ReplicaSets, and these have pods.
_MOST_OWNERS = 3
_REVISION = "deployment.kubernetes.io/revision"
# Stands for what nobody knows before the pod is made.
_NEXT = "next"


@dataclass(frozen=True, slots=True)
class MadePod:
    """A pod that does not exist, and the claims that would be made for it."""

    pod: Pod
    claims: tuple[PersistentVolumeClaim, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class WorkloadExplanation(Shown):
    """How a workload's pods stand, by name, and the decision about one of them.

    `explanation` is about the first of those that are pending, or else, if `is_next`, about one more that the workload
    would make. `wanted` is how many pods it asks for, None where it does not say so.
    """

    kind: str
    key: str
    wanted: int | None
    pods: tuple[Pod, ...]
    explanation: Explanation
    is_next: bool

    @property
    def headline(self) -> str:
        """What becomes of the pod that is explained, in a line."""
        return f"{self.kind} {self.key}: {self.explanation.headline}"

    def _in_a_line(self) -> str:
        return self.headline

    def write(self, page: Page) -> None:
        """Write it as `podium explain` does."""
        from podium.app.explaining.workload_text import write_workload

        write_workload(page, self)
        self.explanation.write(page)

    def frame(self, name: str = "nodes") -> Frame:
        """A table of the explanation: see `Explanation.frame`."""
        return self.explanation.frame(name)

    @property
    def pending(self) -> list[str]:
        """The pods that wait for a node."""
        return [pod.key for pod in self.pods if not pod.spec.node_name]

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain values."""
        return {
            "schemaVersion": SCHEMA_VERSION,
            "workload": {"kind": self.kind, "key": self.key, "wanted": self.wanted},
            "pods": [{"pod": pod.key, "node": pod.spec.node_name or None} for pod in self.pods],
            "explained": _NEXT if self.is_next else "pending",
            "explanation": self.explanation.to_dict(),
        }


def find_workload(documents: Iterable[Document], target: Target) -> Document | None:
    """The document of a workload; None where there is none."""
    for document in documents:
        found = document.object
        if found is not None and found.kind == target.kind and found.key == target.key:
            return document
    return None


def pods_of(objects: Sequence[Kubernetes], workload: Kubernetes) -> tuple[Pod, ...]:
    """The pods that a workload controls and that have not ended, through ReplicaSets and Jobs of it, by name."""
    by_owner: dict[str, list[Kubernetes]] = {}
    for found in objects:
        controller = found.metadata.controller if found.kind == POD or found.kind in WORKLOADS else None
        if controller is not None:
            place = f"{controller.kind} {found.metadata.namespace}/{controller.name}"
            by_owner.setdefault(place, []).append(found)
    pods: list[Pod] = []
    owners = [workload]
    for _ in range(_MOST_OWNERS):
        owned = [item for owner in owners for item in by_owner.get(label_of(owner), ()) if _is_of(item, owner)]
        pods += [item for item in owned if isinstance(item, Pod) and not item.is_terminal]
        owners = [item for item in owned if item.kind != POD]
    return tuple(sorted(pods, key=lambda pod: pod.key))


def _is_of(item: Kubernetes, owner: Kubernetes) -> bool:
    """Whether the controller that an object names is this one, and not one that had its name before."""
    controller, uid = item.metadata.controller, owner.metadata.uid
    return controller is not None and (controller.uid == uid or not (controller.uid and uid))


def wanted_of(workload: Kubernetes) -> int | None:
    """How many pods a workload asks for; None for DaemonSets and CronJobs, which count by nodes and time."""
    spec = getattr(workload, "spec", None)
    if isinstance(workload, Job):
        parallelism: int = workload.spec.parallelism
        return parallelism
    replicas: int | None = getattr(spec, "replicas", None)
    return replicas


def maker_of(documents: Iterable[Document], workload: Document) -> Document:
    """Who makes a workload's pods: of a Deployment its newest ReplicaSet, where it has one; all others do it."""
    owner = workload.object
    if not isinstance(owner, Deployment):
        return workload
    mine = (
        (_age(document.object), document)
        for document in documents
        if isinstance(document.object, ReplicaSet) and _is_controlled(document.object, owner)
    )
    return max(mine, key=lambda found: found[0], default=(None, workload))[1]


def _is_controlled(item: Kubernetes, owner: Kubernetes) -> bool:
    controller = item.metadata.controller
    if controller is None or item.metadata.namespace != owner.metadata.namespace:
        return False
    return (controller.kind, controller.name) == (owner.kind, owner.metadata.name) and _is_of(item, owner)


def _age(replica_set: ReplicaSet) -> tuple[int, str, str]:
    """The newest comes last: by revision, then by time of creation, then by name."""
    meta = replica_set.metadata
    revision = meta.annotations.get(_REVISION, "")
    return int(revision) if revision.isdecimal() else 0, meta.creation_timestamp or "", meta.name


def next_pod(document: Document, pods: Sequence[Pod]) -> MadePod:
    """The pod that a workload would make next, beside those that it has.

    That of a DaemonSet is for no node in particular: what the nodes say of it is what they say of its pods.
    """
    workload, made = _made(document.object, document.raw, pods)
    typed = decode(made)
    if not isinstance(typed, Pod):
        raise AssertionError(f"{workload.label} makes no pod")
    if not isinstance(workload.object, StatefulSet):
        return MadePod(typed)
    claims = (decode(raw) for raw in claims_of(workload, _ordinal(workload, pods)).values())
    return MadePod(typed, tuple(claim for claim in claims if isinstance(claim, PersistentVolumeClaim)))


def _made(typed: Kubernetes | None, raw: Raw, pods: Sequence[Pod]) -> tuple[Workload[Any], Raw]:
    """The workload, and the pod that it makes as it sends it to the API server, under a name of its own."""
    if typed is None:
        raise AssertionError("a workload of a kind that is not read")
    workload: Workload[Any] = Workload(typed, raw)
    if isinstance(typed, StatefulSet):
        return workload, numbered_pod(workload, _ordinal(workload, pods), workload.template, "")
    template, metadata = workload.template, {"name": f"{typed.metadata.name}-{_NEXT}"}
    if isinstance(typed, CronJob):
        template = workload.spec.get("jobTemplate", {}).get("spec", {}).get("template", {})
    spec = template.get("spec", {})
    if isinstance(typed, DaemonSet):
        spec = {**spec, "tolerations": daemon_spec(spec, "")["tolerations"]}
    return workload, workload.new_pod(template, metadata, {}, spec)


def _ordinal(workload: Workload[StatefulSet], pods: Sequence[Pod]) -> int:
    """The least number that no pod of a StatefulSet has."""
    meta = workload.object.metadata
    taken = {ordinal_of(meta.name, pod.metadata.name) for pod in pods}
    ordinal = workload.object.spec.ordinals.start
    while ordinal in taken:
        ordinal += 1
    return ordinal
