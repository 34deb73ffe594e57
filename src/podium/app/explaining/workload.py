"""The targets and answers of `podium explain`: pods, workloads, and the pod that a workload would create next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from podium.api.errors import PodiumError, likely, shown
from podium.api.input.codec import Document, Input, decode
from podium.api.kinds import KINDS
from podium.api.meta import Kubernetes, Raw, object_at
from podium.api.pod import Pod
from podium.api.storage import PersistentVolumeClaim
from podium.api.workloads import POD_PATHS, WORKLOADS, DaemonSet, Deployment, ReplicaSet, StatefulSet
from podium.app.answers import Frame, Renderable
from podium.app.console.cells import by_key
from podium.app.console.page import Cell, Page, counted, fitted, listed
from podium.app.explaining.explanation import SCHEMA_VERSION, Explanation
from podium.controllers.workloads.daemon_sets import daemon_spec
from podium.controllers.workloads.owned_pods import WorkloadObject
from podium.controllers.workloads.stateful_sets import claims_of, numbered_pod, ordinal_of

POD = "Pod"
_MAX_PARTS = 3
_MAX_PODS = 3
# A CronJob owns Jobs, a Deployment ReplicaSets, and these own pods.
_MAX_OWNERS = 3
# Replaces the random part of the name of a pod that does not exist.
_NEXT = "next"


KIND_OF_WORD = {
    word: kind.name for kind in KINDS.values() if kind.name == POD or kind.name in WORKLOADS for word in kind.words
}
"""The kinds of pods and workloads, by each of the words that kubectl knows for them."""
_WORDS = frozenset(word for kind in KINDS.values() for word in kind.words)


def read_target(text: str, namespace: str, is_pod: Callable[[str], bool]) -> tuple[str, str]:
    """Return the kind and key of the pod or workload `name`, `namespace/name`, `kind/name` or `kind/namespace/name`.

    ``namespace`` is the default. If a namespace has the name of a kind, an existing pod (``is_pod`` of its key) is
    preferred to a workload. Raises PodiumError for other text.
    """
    first, *rest = parts = text.split("/")
    if len(parts) > _MAX_PARTS or not all(parts):
        raise PodiumError(f"{shown(text)} is neither a pod, as in shop/web, nor a workload, as in deploy/web")
    if not rest:
        return POD, f"{namespace}/{first}"
    word = first.lower().partition(".")[0]
    if len(parts) < _MAX_PARTS and (word not in _WORDS or is_pod(text)):
        return POD, text
    kind = KIND_OF_WORD.get(word)
    if kind is None:
        known = ", ".join(("pod", *map(str.lower, WORKLOADS)))
        raise PodiumError(f"{shown(text)} begins with no kind that has pods; known are {known}")
    return kind, "/".join(rest) if len(parts) == _MAX_PARTS else f"{namespace}/{rest[0]}"


@dataclass(frozen=True, slots=True, repr=False)
class WorkloadExplanation(Renderable):
    """A workload's pods, by name, and the decision about one of them.

    `explanation` is about the first pending one, or else, if `is_next`, about one more that the workload would create.
    `wanted` is the number of pods that it requests, None if it has none.
    """

    kind: str
    key: str
    wanted: int | None
    pods: tuple[Pod, ...]
    explanation: Explanation
    is_next: bool

    @property
    def headline(self) -> str:
        """The outcome for the explained pod, in one line."""
        return f"{self.kind} {self.key}: {self.explanation.headline}"

    def write(self, page: Page) -> None:
        self.write_pods(page)
        self.explanation.write(page)

    def write_pods(self, page: Page) -> None:
        """Write the nodes of the workload's pods, and which pod the explanation is about."""
        pending = self.pending
        placed = len(self.pods) - len(pending)
        wanted = "" if self.wanted is None else f" of {self.wanted:,} wanted"
        style = "bad" if pending else "good"
        page.paragraph(Cell(f"{self.kind} {self.key}: {placed:,}{wanted} have a node", style), hanging=2)
        nodes = Counter(pod.spec.node_name for pod in self.pods if pod.spec.node_name)
        if nodes:
            names = [f"{node} ({number})" if number > 1 else node for node, number in sorted(nodes.items())]
            page.paragraph(f"on {counted(len(nodes), 'node')}: {fitted(names, page.names_width)}", indent=2, hanging=2)
        if pending:
            page.paragraph(f"{counted(len(pending), 'pod')} pending: {listed(pending, _MAX_PODS)}", indent=2, hanging=2)
        page.line()
        if self.is_next:
            place = ", if it could go to any node" if self.kind == "DaemonSet" else ""
            page.paragraph(f"One more pod of it{place}:", hanging=2)

    def frame(self, name: str = "nodes") -> Frame:
        """Return a table of the explanation: see `Explanation.frame`."""
        return self.explanation.frame(name)

    @property
    def pending(self) -> list[str]:
        """The pods without a node."""
        return [pod.key for pod in self.pods if not pod.spec.node_name]

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain values."""
        return {
            "schemaVersion": SCHEMA_VERSION,
            "workload": {"kind": self.kind, "key": self.key, "wanted": self.wanted},
            "pods": [{"pod": pod.key, "node": pod.spec.node_name or None} for pod in self.pods],
            "explained": _NEXT if self.is_next else "pending",
            "explanation": self.explanation.to_dict(),
        }


def find_workload(read: Input, kind: str, key: str) -> tuple[Document, Kubernetes]:
    """Return the document and the object of a workload. Raises PodiumError if there is none."""
    known = read.of_kind(kind)
    if key in known and (workload := known[key].object) is not None:
        return known[key], workload
    near = likely(key, sorted(known)) or sorted(known)[:3]
    hint = f"; there is: {', '.join(near)}" if near else ""
    raise PodiumError(f"{kind} {key} is not in the input{hint}")


def pods_of(objects: Sequence[Kubernetes], workload: Kubernetes) -> tuple[Pod, ...]:
    """Return the live pods that a workload controls, directly or through ReplicaSets and Jobs, by name."""
    by_owner = by_key((each.name, item) for item in objects if (each := item.metadata.controller) is not None)
    pods: dict[str, Pod] = {}
    owners = [workload]
    for _ in range(_MAX_OWNERS):
        owned = [item for owner in owners for item in by_owner.get(owner.metadata.name, ()) if _is_of(item, owner)]
        pods |= {item.key: item for item in owned if isinstance(item, Pod) and not item.is_terminal}
        owners = [item for item in owned if item.kind in WORKLOADS]
    return tuple(pod for _, pod in sorted(pods.items()))


def _is_of(item: Kubernetes, owner: Kubernetes) -> bool:
    """Return whether the object's controller is this one, and not an earlier one of the same name."""
    controller, own = item.metadata.controller, owner.metadata
    if controller is None or (controller.kind, controller.name) != (owner.kind, own.name):
        return False
    return item.metadata.namespace == own.namespace and (controller.uid == own.uid or not (controller.uid and own.uid))


def maker_of(documents: Iterable[Document], workload: Document) -> Document:
    """Return the creator of a workload's pods: a Deployment's newest ReplicaSet, if it has one, or the workload."""
    owner = workload.object
    if not isinstance(owner, Deployment):
        return workload
    found = {}
    for document in documents:
        if isinstance(document.object, ReplicaSet) and _is_of(document.object, owner):
            meta = document.object.metadata
            revision = meta.annotations.get("deployment.kubernetes.io/revision", "")
            age = int(revision) if revision.isdecimal() else 0, meta.creation_timestamp or "", meta.name
            found[age] = document
    return found[max(found)] if found else workload


def next_pods(document: Document, known: Iterable[str] = ()) -> Iterator[tuple[Pod, tuple[PersistentVolumeClaim, ...]]]:
    """Yield the pods that a workload would create next beside those of ``known`` names, without end, and their claims.

    Only those of a StatefulSet differ in more than the name. The pod of a DaemonSet is for any node.
    """
    typed = document.object
    if typed is None:
        raise AssertionError("a workload of a kind that is not read")
    workload: WorkloadObject[Any] = WorkloadObject(typed, document.raw)
    template = object_at(document.raw, *POD_PATHS[typed.kind])
    first, taken = 0, set[int | None]()
    if isinstance(typed, StatefulSet):
        first, taken = typed.spec.ordinals.start, {ordinal_of(typed.metadata.name, name) for name in known}
    for ordinal in (number for number in count(first) if number not in taken):
        claims: dict[str, Raw] = {}
        if isinstance(typed, StatefulSet):
            manifest, claims = numbered_pod(workload, ordinal, template, ""), claims_of(workload, ordinal)
        else:
            spec = template.get("spec", {})
            if isinstance(typed, DaemonSet):
                spec = {**spec, "tolerations": daemon_spec(spec, "")["tolerations"]}
            name = f"{typed.metadata.name}-{_NEXT}{f'-{ordinal}' if ordinal else ''}"
            manifest = workload.new_pod(template, {"name": name}, {}, spec)
        made = decode(manifest)
        if not isinstance(made, Pod):
            raise AssertionError(f"{workload.label} makes no pod")
        yield made, tuple(each for each in map(decode, claims.values()) if isinstance(each, PersistentVolumeClaim))
