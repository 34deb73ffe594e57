"""The targets and answers of `podium explain`: pods, workloads, and the pod that a workload would create next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from podium.api.errors import PodiumError, shown
from podium.api.input.codec import Document, decode
from podium.api.kinds import KINDS, WORKLOADS
from podium.api.meta import Kubernetes, Raw
from podium.api.pod import Pod
from podium.api.policy import PRIORITY_RULE_ANNOTATION
from podium.api.schemas.suggestion import likely
from podium.api.storage import PersistentVolumeClaim
from podium.api.times import format_time
from podium.api.workloads import CronJob, DaemonSet, Deployment, Job, ReplicaSet, StatefulSet
from podium.app.answers import Frame, Shown, Value, filled, kinds
from podium.app.console.page import Cell, Page, counted, fitted, listed
from podium.app.explaining.on_node import NodeAnswer, answer_on, write_on_node
from podium.app.explaining.outcomes import outcomes_dict, outcomes_of
from podium.app.explaining.pod_decision import SCHEMA_VERSION, PlacedPodFacts, PodDecision
from podium.app.explaining.remedies import remedies_dict
from podium.app.explaining.text import headline_of, write_explanation
from podium.controllers.workloads.daemon_sets import daemon_spec
from podium.controllers.workloads.owned_pods import WorkloadObject, label_of
from podium.controllers.workloads.stateful_sets import claims_of, numbered_pod, ordinal_of
from podium.sim.results.disruption_state import DisruptionState

POD = "Pod"
_MAX_PARTS = 3
_MAX_PODS = 3
# A CronJob owns Jobs, a Deployment ReplicaSets, and these own pods.
_MAX_OWNERS = 3
_REVISION = "deployment.kubernetes.io/revision"
# Replaces the random part of the name of a pod that does not exist.
_NEXT = "next"


@dataclass(frozen=True, slots=True)
class ExplainTarget:
    """A pod or workload, by kind and `namespace/name`."""

    kind: str
    key: str


KIND_OF_WORD = {
    word: kind.name for kind in KINDS.values() if kind.name == POD or kind.name in WORKLOADS for word in kind.words
}
"""The kinds of pods and workloads, by each of the words that kubectl knows for them."""


def read_target(text: str, namespace: str, is_pod: Callable[[str], bool]) -> ExplainTarget:
    """Return the target of `name`, `namespace/name`, `kind/name` or `kind/namespace/name`.

    ``namespace`` is the default. If a namespace has the name of a kind, an existing pod (``is_pod`` of its key) is
    preferred to a workload. Raises PodiumError for other text.
    """
    first, *rest = parts = text.split("/")
    if len(parts) > _MAX_PARTS or not all(parts):
        raise PodiumError(f"{shown(text)} is neither a pod, as in shop/web, nor a workload, as in deploy/web")
    if not rest:
        return ExplainTarget(POD, f"{namespace}/{first}")
    kind = KIND_OF_WORD.get(first.lower().partition(".")[0])
    if len(parts) == _MAX_PARTS:
        if kind is None:
            known = ", ".join(("pod", *map(str.lower, WORKLOADS)))
            raise PodiumError(f"{shown(text)} begins with no kind that has pods; known are {known}")
        return ExplainTarget(kind, "/".join(rest))
    if kind is None or is_pod(text):
        return ExplainTarget(POD, text)
    return ExplainTarget(kind, f"{namespace}/{rest[0]}")


@dataclass(frozen=True, slots=True)
class MadePod:
    """A pod that does not exist, and the claims that would be created for it."""

    pod: Pod
    claims: tuple[PersistentVolumeClaim, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class WorkloadExplanation(Shown):
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
        """Write it as `podium explain` does."""
        write_workload(page, self)
        self.explanation.write(page)

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


def find_workload(documents: Iterable[Document], target: ExplainTarget) -> tuple[Document, Kubernetes]:
    """Return the document and the object of a workload. Raises PodiumError if there is none."""
    known = []
    for document in documents:
        found = document.object
        if found is not None and found.kind == target.kind:
            if found.key == target.key:
                return document, found
            known.append(found.key)
    near = likely(target.key, sorted(known)) or sorted(known)[:3]
    hint = f"; there is: {', '.join(near)}" if near else ""
    raise PodiumError(f"{target.kind} {target.key} is not in the input{hint}")


def pods_of(objects: Sequence[Kubernetes], workload: Kubernetes) -> tuple[Pod, ...]:
    """Return the live pods that a workload controls, directly or through ReplicaSets and Jobs, by name."""
    by_owner: dict[str, list[Kubernetes]] = {}
    for found in objects:
        controller = found.metadata.controller if found.kind == POD or found.kind in WORKLOADS else None
        if controller is not None:
            place = f"{controller.kind} {found.metadata.namespace}/{controller.name}"
            by_owner.setdefault(place, []).append(found)
    pods: list[Pod] = []
    owners = [workload]
    for _ in range(_MAX_OWNERS):
        owned = [item for owner in owners for item in by_owner.get(label_of(owner), ()) if _is_of(item, owner)]
        pods += [item for item in owned if isinstance(item, Pod) and not item.is_terminal]
        owners = [item for item in owned if item.kind != POD]
    return tuple(sorted(pods, key=lambda pod: pod.key))


def _is_of(item: Kubernetes, owner: Kubernetes) -> bool:
    """Return whether the object's controller is this one, and not an earlier one of the same name."""
    controller, uid = item.metadata.controller, owner.metadata.uid
    return controller is not None and (controller.uid == uid or not (controller.uid and uid))


def wanted_of(workload: Kubernetes) -> int | None:
    """Return how many pods a workload requests; None for DaemonSets and CronJobs."""
    if isinstance(workload, Job):
        parallelism: int = workload.spec.parallelism
        return parallelism
    replicas: int | None = getattr(getattr(workload, "spec", None), "replicas", None)
    return replicas


def maker_of(documents: Iterable[Document], workload: Document) -> Document:
    """Return the creator of a workload's pods: a Deployment's newest ReplicaSet, if it has one, or the workload."""
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
    """Return a sort key: revision, then creation time, then name."""
    meta = replica_set.metadata
    revision = meta.annotations.get(_REVISION, "")
    return int(revision) if revision.isdecimal() else 0, meta.creation_timestamp or "", meta.name


def next_pod(document: Document, pods: Sequence[Pod]) -> MadePod:
    """Return the pod that a workload would create next; a DaemonSet's is for any node."""
    workload, made = _made(document.object, document.raw, pods)
    typed = decode(made)
    if not isinstance(typed, Pod):
        raise AssertionError(f"{workload.label} makes no pod")
    if not isinstance(workload.object, StatefulSet):
        return MadePod(typed)
    claims = (decode(raw) for raw in claims_of(workload, _ordinal(workload, pods)).values())
    return MadePod(typed, tuple(claim for claim in claims if isinstance(claim, PersistentVolumeClaim)))


def _made(typed: Kubernetes | None, raw: Raw, pods: Sequence[Pod]) -> tuple[WorkloadObject[Any], Raw]:
    """Return the workload, and the manifest of its next pod as it sends it to the API server, with a name."""
    if typed is None:
        raise AssertionError("a workload of a kind that is not read")
    workload: WorkloadObject[Any] = WorkloadObject(typed, raw)
    if isinstance(typed, StatefulSet):
        return workload, numbered_pod(workload, _ordinal(workload, pods), workload.template, "")
    template, metadata = workload.template, {"name": f"{typed.metadata.name}-{_NEXT}"}
    if isinstance(typed, CronJob):
        template = workload.spec.get("jobTemplate", {}).get("spec", {}).get("template", {})
    spec = template.get("spec", {})
    if isinstance(typed, DaemonSet):
        spec = {**spec, "tolerations": daemon_spec(spec, "")["tolerations"]}
    return workload, workload.new_pod(template, metadata, {}, spec)


def _ordinal(workload: WorkloadObject[StatefulSet], pods: Sequence[Pod]) -> int:
    """Return the lowest ordinal that no pod of a StatefulSet has."""
    meta = workload.object.metadata
    taken = {ordinal_of(meta.name, pod.metadata.name) for pod in pods}
    ordinal = workload.object.spec.ordinals.start
    while ordinal in taken:
        ordinal += 1
    return ordinal


def write_workload(page: Page, answer: WorkloadExplanation) -> None:
    """Write the nodes of a workload's pods, and which pod the explanation is about."""
    pending = answer.pending
    placed = len(answer.pods) - len(pending)
    wanted = "" if answer.wanted is None else f" of {answer.wanted:,} wanted"
    style = "bad" if pending else "good"
    page.paragraph(Cell(f"{answer.kind} {answer.key}: {placed:,}{wanted} have a node", style), hanging=2)
    nodes = Counter(pod.spec.node_name for pod in answer.pods if pod.spec.node_name)
    if nodes:
        names = [f"{node} ({number})" if number > 1 else node for node, number in sorted(nodes.items())]
        page.paragraph(f"on {counted(len(nodes), 'node')}: {fitted(names, page.names_width)}", indent=2, hanging=2)
    if pending:
        page.paragraph(f"{counted(len(pending), 'pod')} pending: {listed(pending, _MAX_PODS)}", indent=2, hanging=2)
    page.line()
    if answer.is_next:
        page.paragraph("One more pod of it:", hanging=2)


def write_answer(
    page: Page,
    answer: PodDecision | WorkloadExplanation,
    on_node: NodeAnswer | None,
    *,
    all_nodes: bool,
    outcomes: bool = False,
) -> None:
    """Write a workload's pods, then the decision: about one node if one is given, or about all."""
    if isinstance(answer, WorkloadExplanation):
        write_workload(page, answer)
        answer = answer.explanation
    if on_node is not None:
        write_on_node(page, on_node)
    else:
        write_explanation(page, answer, all_nodes=all_nodes, outcomes=outcomes)


_COLUMNS = kinds("node status plugin reasons", "total")


@dataclass(frozen=True, slots=True, repr=False)
class Explanation(PodDecision, Shown):
    """The decision about one pod of a loaded cluster."""

    @classmethod
    def of(cls, decision: PodDecision, disruptions: Callable[[], DisruptionState] = DisruptionState) -> Explanation:
        """Return the explanation of a decision."""
        values = {field.name: getattr(decision, field.name) for field in fields(decision)}
        return cls(**{**values, "disruptions_found": disruptions})

    @property
    def headline(self) -> str:
        """The outcome for the pod, in one line."""
        return headline_of(self)

    def on_node(self, node: str) -> NodeAnswer:
        """Return every plugin's verdict on one node: "why not there?". Raises PodiumError for an unknown node."""
        return answer_on(self, node)

    def write(self, page: Page) -> None:
        """Write it as `podium explain` does."""
        write_explanation(page, self)

    def frame(self, name: str = "nodes") -> Frame:
        """Return a table of the explanation: `nodes`, the only one. Raises PodiumError for another.

        A row for each node, by name: `node`, `status` as kube-scheduler names it, the `plugin` that rejected it, its
        `reasons`; the `total` score and the weighted one of each plugin, as `score.PLUGIN`, if the pod fits; and if
        preemption was tried the number of `victims`, and of these those that violate a budget.
        """
        if name != "nodes":
            raise PodiumError(f"an explanation has no table {name}; it has: nodes")
        return Frame.of_rows("nodes", [self._row(node) for node in self.nodes], _COLUMNS)

    def _row(self, node: str) -> dict[str, Value]:
        status = self.nodes[node]
        row: dict[str, Value] = {
            "node": node,
            "status": status.code.value,
            "plugin": status.plugin or None,
            "reasons": ", ".join(status.reasons) or None,
            "total": self.totals.get(node),
        }
        row |= {f"score.{plugin}": score for plugin, score in self.scores.get(node, {}).items()}
        candidate = None if self.plan is None else self.plan.candidates.get(node)
        if candidate is not None:
            row |= {"victims": len(candidate.victims), "pdbViolations": candidate.budget_violations}
        return row

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values: the decision, equal outcomes, what would have to change, the caveats."""
        record, outcomes = self.record, outcomes_of(self)
        found = {"schemaVersion": SCHEMA_VERSION, **self.decision(), "priority": record.priority}
        if PRIORITY_RULE_ANNOTATION in record.annotations:
            found["priorityRule"] = record.annotations[PRIORITY_RULE_ANNOTATION]
        found |= filled(nominatedNode=record.nominated_node_name, gates=list(record.gates))
        if self.plan is not None and self.plan.criterion:
            found["preemption"] = {**found["preemption"], "decidedBy": self.plan.criterion}
        if sum(len(outcome.victims) for outcome in outcomes) > 1:
            found |= outcomes_dict(outcomes)
        return {
            **found,
            **filled(
                remedies=remedies_dict(self),
                placed=self.placed and _placed_dict(self.placed),
                disruptions=self.disruptions and self.disruptions.to_dict(),
            ),
            "caveats": [caveat.to_dict() for caveat in self.caveats],
        }


def _placed_dict(placed: PlacedPodFacts) -> dict[str, Any]:
    return {
        "placedBy": placed.by,
        "since": None if placed.since_ns is None else format_time(placed.since_ns),
        "rank": placed.rank,
        "ifEvicted": {"outcome": placed.then, "node": placed.then_node, "replacedBy": placed.controller or None},
        "preemptors": [
            {"pod": each.pod.key, "priority": each.pod.priority, "now": each.is_chosen} for each in placed.preemptors
        ],
        "preemptorsNotAsked": placed.not_asked,
        "budgets": [{"budget": name, "allowed": allowed} for name, allowed in placed.budgets],
    }
