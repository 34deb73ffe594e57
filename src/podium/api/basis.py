"""The basis of an answer, and caveats for input that is less complete than users may expect.

Each rule of this module looks for one thing that an answer cannot know. A caveat about no objects is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from typing import Any, TypeVar, get_args

from msgspec import Struct

from podium.api import meta, policy, storage, workloads
from podium.api.devices import ResourceClaim
from podium.api.errors import InputWarning, Reason
from podium.api.input.codec import Document, Input
from podium.api.input.documents import passed_over, snapshots_of
from podium.api.kinds import group_of, may_affect_pods
from podium.api.node import Namespace, Node, is_ready
from podium.api.pod import Pod

Read = TypeVar("Read", bound=meta.Kubernetes)

MOST_NAMES = 20
"""The maximum number of objects that a caveat names."""

SUPPOSED = "podium.dev/supposed"
"""The annotation of nodes that no cluster has; the value says why they are as they are."""

_SHOWN = 3
# The owner of a static pod's mirror pod is its node, whose kubelet recreates it.


class Caveat(Struct, frozen=True):
    """A limitation of an answer.

    ``about`` identifies it for programs; ``message`` is a sentence for people. ``names`` are the first of the ``count``
    objects that it concerns.
    """

    about: str
    message: str
    count: int
    names: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {"about": self.about, "message": self.message, "count": self.count, "names": list(self.names)}


class Basis(Struct, frozen=True, dict=True):
    """The input of an answer.

    ``schedulers`` are the names of the schedulers that take part. ``simulates`` says whether controllers act on the
    objects; otherwise there is a single decision. ``further`` are additional caveats.
    """

    found: Input
    schedulers: Collection[str]
    simulates: bool
    further: Sequence[Caveat] = ()

    def caveats(self, warnings: Sequence[InputWarning] = ()) -> tuple[Caveat, ...]:
        """Return all caveats in a fixed order, with those about ``warnings`` of objects that are added later."""
        return (*self.of_objects, *_input_warnings([*self.found.warnings, *warnings]), *self.further)

    @cached_property
    def of_objects(self) -> tuple[Caveat, ...]:
        """The caveats about the objects of the input."""
        return tuple(caveat for rule in _RULES for caveat in rule(self) if caveat.count)

    def objects(self, type_: type[Read]) -> list[Read]:
        """Return the objects of a kind, in the order of the input."""
        return self._by_type.get(type_, [])

    @cached_property
    def _by_type(self) -> dict[type, list[Any]]:
        found: dict[type, list[Any]] = {}
        for document in self.found.documents:
            found.setdefault(type(document.object), []).append(document.object)
        return found


def caveat_of(about: str, message: str, names: Sequence[str]) -> Caveat:
    """Return a caveat whose message also names the first objects."""
    return Caveat(about, f"{message} ({_listed(names)})", len(names), tuple(names[:MOST_NAMES]))


def lacks_status(document: Document) -> bool:
    """Return whether the object is a budget without a status."""
    is_budget = type(document.object) is policy.PodDisruptionBudget
    return is_budget and "disruptionsAllowed" not in document.raw.get("status", {})


def kinds_passed_over(documents: Sequence[Document]) -> Iterator[Caveat]:
    """Yield a caveat for unsupported kinds whose objects may create pods that are missing in the answer."""
    found = passed_over(documents)
    makers = [each for each in found if may_affect_pods(group_of(each.api_version), each.kind)]
    kinds = sorted(f"{maker.count:,} {maker.kind} ({maker.api_version})" for maker in makers)
    message = f"ignored, although they may create, change or refuse pods: {_listed(kinds)}"
    yield Caveat("kinds-passed-over", message, sum(maker.count for maker in makers), tuple(kinds[:MOST_NAMES]))


def _no_objects(basis: Basis) -> Iterator[Caveat]:
    """Yield a caveat for input without any object, such as a file of comments."""
    yield Caveat("no-objects", "the input holds no objects", int(not basis.found.documents))


def _snapshots(basis: Basis) -> Iterator[Caveat]:
    """Yield caveats for snapshots: their age, and what they omit."""
    for snapshot, document in snapshots_of(basis.found.documents):
        without = f", without {'; '.join(snapshot.left_out)}" if snapshot.left_out else ""
        yield Caveat("snapshot", f"a snapshot {snapshot.origin}{without}", 1, (document.source,))
        kinds = sorted(f"{hidden.kind} ({hidden.api_version})" for hidden in snapshot.hidden)
        message = f"{_listed(kinds)} could not be listed there: assumed to be none"
        yield Caveat("kinds-hidden", message, len(kinds), tuple(kinds[:MOST_NAMES]))


def _missing_owners(basis: Basis) -> Iterator[Caveat]:
    """Yield caveats for missing controllers, without which pods are not replaced or ReplicaSets not scaled."""
    if not basis.simulates:
        return
    uids = {document.object.metadata.uid for document in basis.found.documents if document.object is not None}
    orphans: dict[tuple[str, str], list[str]] = {}
    for object_ in (*basis.objects(Pod), *basis.objects(workloads.ReplicaSet)):
        owner = object_.metadata.controller
        if owner is not None and owner.uid not in uids:
            has_ended = isinstance(object_, Pod) and object_.is_terminal
            if owner.kind != "Node" and not has_ended:
                orphans.setdefault((object_.kind, owner.kind), []).append(object_.key)
    for (kind, owner_kind), keys in sorted(orphans.items()):
        pods = kind == "Pod"
        them = "it" if len(keys) == 1 else "them"
        consequence = f"nothing will replace {them}" if pods else f"nothing will roll {them} out or scale {them}"
        noun = f"{kind.lower() if pods else kind}{'' if len(keys) == 1 else 's'}"
        message = f"{len(keys):,} {noun} of a {owner_kind} that is not in the input: {consequence}"
        yield caveat_of("owners-missing", message, keys)


def _missing_pods(basis: Basis) -> Iterator[Caveat]:
    """Yield a caveat for workloads that want pods, of which none is in the input; a simulation creates them.

    The ReplicaSet of a pod need not be in the input: the name of a Deployment's begins with the Deployment's.
    """
    if basis.simulates:
        return
    live = [pod for pod in basis.objects(Pod) if not pod.is_terminal]
    owners = {(pod.metadata.namespace, owner.kind, owner.name) for pod in live if (owner := pod.metadata.controller)}
    owners |= {(space, "Deployment", name.rpartition("-")[0]) for space, kind, name in owners if kind == "ReplicaSet"}
    found: list[Any] = [item for kind in get_args(workloads.Replicated) for item in basis.objects(kind)]
    names = [
        f"{item.kind} {item.key}"
        for item in found
        if item.metadata.controller is None
        and item.spec.replicas
        and (item.metadata.namespace, item.kind, item.metadata.name) not in owners
    ]
    wanted = f"pods that {'it wants' if len(names) == 1 else 'they want'} are left out, and take no room"
    message = f"{_counted(names, 'workload')} without any pod in the input: {wanted}"
    yield caveat_of("pods-missing", message, names)


def _budgets_without_status(basis: Basis) -> Iterator[Caveat]:
    """Yield a caveat for budgets without a status, which decisions need; a simulation computes it."""
    documents = basis.found.documents
    keys = [each.object.key for each in documents if lacks_status(each) and each.object is not None]
    if keys and not basis.simulates:
        what = "it allows" if len(keys) == 1 else "they allow"
        message = f"{_counted(keys, 'budget')} without a status: what {what} is computed from the pods"
        yield caveat_of("budgets-without-status", message, keys)


def _nodes(basis: Basis) -> Iterator[Caveat]:
    """Yield caveats for nodes that are not ready, and for nodes that are supposed, by the reason."""
    names = [node.metadata.name for node in basis.objects(Node) if not is_ready(node)]
    consequence = "pods there may be lost" if basis.simulates else "pods there still count"
    yield caveat_of("nodes-not-ready", f"{_counted(names, 'node')} not ready: {consequence}", names)
    supposed: dict[str, list[str]] = {}
    for node in basis.objects(Node):
        if SUPPOSED in node.metadata.annotations:
            supposed.setdefault(node.metadata.annotations[SUPPOSED], []).append(node.metadata.name)
    for reason, names in sorted(supposed.items()):
        yield caveat_of("nodes-supposed", f"{_counted(names, 'node')} supposed: {reason}", names)


def _pods_on_missing_nodes(basis: Basis) -> Iterator[Caveat]:
    """Yield a caveat for pods on unknown nodes, which count for spreading and affinity only by the node's name."""
    nodes = {node.metadata.name for node in basis.objects(Node)}
    placed = (pod for pod in basis.objects(Pod) if pod.spec.node_name and not pod.is_terminal)
    keys = [pod.key for pod in placed if pod.spec.node_name not in nodes]
    yield caveat_of("nodes-missing", f"{_counted(keys, 'pod')} on nodes that are not in the input", keys)


def _other_schedulers(basis: Basis) -> Iterator[Caveat]:
    """Yield a caveat for pods of schedulers that do not take part."""
    waiting: dict[str, list[str]] = {}
    for pod in basis.objects(Pod):
        name = pod.spec.scheduler_name
        if not pod.spec.node_name and not pod.is_terminal and name not in basis.schedulers:
            waiting.setdefault(name, []).append(pod.key)
    for name, keys in sorted(waiting.items()):
        message = f"{_counted(keys, 'pending pod')} for scheduler {name}, which takes no part: no scheduler places them"
        yield caveat_of("other-schedulers", message, keys)


def _namespaces_missing(basis: Basis) -> Iterator[Caveat]:
    """Yield a caveat for missing Namespace objects, whose labels a namespaceSelector needs."""
    known = {namespace.metadata.name for namespace in basis.objects(Namespace)}
    pods = basis.objects(Pod)
    terms = (term for pod in pods if pod.spec.affinity is not None for term in pod.spec.affinity.pod_terms)
    selectors = (term.namespace_selector for term in terms if term.namespace_selector is not None)
    if any(selector.match_labels or selector.match_expressions for selector in selectors):
        missing = sorted({pod.metadata.namespace for pod in pods} - known)
        message = f"{_counted(missing, 'namespace')} not in the input: for namespace selectors they have no labels"
        yield caveat_of("namespaces-missing", message, missing)


def _storage_classes_missing(basis: Basis) -> Iterator[Caveat]:
    """Yield a caveat for missing StorageClasses, which determine how claims are bound."""
    known = {storage_class.metadata.name for storage_class in basis.objects(storage.StorageClass)}
    unbound = [claim for claim in basis.objects(storage.PersistentVolumeClaim) if not claim.spec.volume_name]
    missing = sorted({claim.class_name for claim in unbound} - known - {""})
    message = "claims name storage classes that are not in the input: no scheduler binds them"
    yield caveat_of("storage-classes-missing", message, missing)


def _device_claims_missing(basis: Basis) -> Iterator[Caveat]:
    """Yield a caveat for pods on nodes whose ResourceClaims are missing, and with them the devices that they hold."""
    known = {claim.key for claim in basis.objects(ResourceClaim)}

    def lacks_one(pod: Pod) -> bool:
        made = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
        names = (each.resource_claim_name or made.get(each.name, "") for each in pod.spec.resource_claims)
        return any(name is not None and f"{pod.metadata.namespace}/{name}" not in known for name in names)

    users = [pod for pod in basis.objects(Pod) if pod.spec.node_name and pod.spec.resource_claims]
    keys = [pod.key for pod in users if not pod.is_terminal and lacks_one(pod)]
    message = f"{_counted(keys, 'pod')} with ResourceClaims that are not in the input: devices held there count as free"
    yield caveat_of("device-claims-missing", message, keys)


def _input_warnings(warnings: Sequence[InputWarning]) -> Iterator[Caveat]:
    """Yield a caveat for each reason of the warnings."""
    by_reason: dict[Reason, list[str]] = {}
    for warning in warnings:
        by_reason.setdefault(warning.reason, []).append(str(warning))
    for reason, messages in sorted(by_reason.items()):
        rest = len(messages) - _SHOWN
        summary = "; ".join(messages[:_SHOWN]) + (f"; and {rest:,} more" if rest > 0 else "")
        yield Caveat(reason, f"{_WARNED[reason]}: {summary}", len(messages), tuple(messages[:MOST_NAMES]))


_WARNED: dict[Reason, str] = {
    "unknown-field": "fields that Kubernetes does not have are ignored",
    "invalid": "kube-apiserver would refuse parts of the input",
    "slip": "values look like mistakes",
    "left-out": "files were left out",
}
_RULES: tuple[Callable[[Basis], Iterator[Caveat]], ...] = (
    _no_objects,
    _snapshots,
    lambda basis: kinds_passed_over(basis.found.documents),
    _missing_owners,
    _missing_pods,
    _budgets_without_status,
    _nodes,
    _pods_on_missing_nodes,
    _other_schedulers,
    _namespaces_missing,
    _storage_classes_missing,
    _device_claims_missing,
)


def _listed(names: Sequence[str]) -> str:
    rest = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {rest:,} more" if rest > 0 else "")


def _counted(names: Sequence[str], noun: str) -> str:
    return f"{len(names):,} {noun}{'' if len(names) == 1 else 's'}"
