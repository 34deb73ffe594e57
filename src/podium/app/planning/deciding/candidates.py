"""Changes that may let waiting pods find nodes: of nodes, of the pods' manifests, of claims, priorities and caps."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from podium.api import disruption_policy, errors, resource_requests, storage
from podium.api.meta import Kubernetes, ObjectMeta
from podium.api.node import Node, Taint
from podium.api.pod import Pod, ResourceRequirements, Toleration
from podium.api.policy import NEVER_PREEMPTS, PriorityClass
from podium.api.quantity import CPU, EPHEMERAL_STORAGE, MEMORY, is_bytes, milli_value, whole_value
from podium.app.console.cells import by_key, counted
from podium.app.explaining import obstacles
from podium.app.planning.deciding.attempts import PodKind, kind_of
from podium.app.planning.deciding.capacity import NodeShape, add_nodes
from podium.app.planning.deciding.causes import GATED, SCHEDULER, TURNED_DOWN, BlockedPods
from podium.app.planning.deciding.decisions import CAPPED, Decisions
from podium.app.planning.scenarios import nodes_text
from podium.cluster.nodes import CPU as CPU_INDEX
from podium.cluster.pods import DEFAULT_POLICY, PodRecord
from podium.plugins.node_filters import required_nodes
from podium.store.admission.quotas import written_amount

TYPES = (
    "gate",
    "scheduler",
    "claim",
    "cordon",
    "label",
    "taint",
    "toleration",
    "request",
    "pod",
    "quota",
    "budget",
    "cap",
    "policy",
    "priority",
    "node",
)
"""The types of changes. Of changes that help equally and touch as many objects, the type named first is preferred."""

MAX_PREEMPTING = 500
"""The maximum number of a workload's pods that a change lets preempt."""

_MAX_SHAPES = 20
_MI = 1 << 20
# A pod with less than this part of its request is another pod.
_MAX_REDUCTION = 4
# For other resources a container's request equals its limit.
_OVERCOMMITTED = (CPU, MEMORY, EPHEMERAL_STORAGE)

Key = TypeVar("Key", bound=Hashable)


class ProposedChange(msgspec.Struct, frozen=True):
    """A change to the cluster, or to the manifests of pods.

    ``type`` is one of `TYPES`, ``text`` a noun phrase. ``to_cluster`` makes the change within `Decisions.what_if`;
    ``to_pod`` returns the changed manifest of each pod of ``kinds``, None for any kind. ``objects`` is the number of
    objects that change. With ``preempts`` the pods may preempt others. ``written`` are the objects that ``to_cluster``
    stands for if they differ from those that it adds; [] if they cannot be written.
    """

    type: str
    text: str
    to_cluster: Callable[[Decisions], object] | None = None
    to_pod: Callable[[Pod], Pod] | None = None
    kinds: frozenset[PodKind] | None = None
    objects: int = 1
    preempts: bool = False
    written: Sequence[Kubernetes] | Callable[[Decisions], Sequence[Kubernetes]] | None = None

    def helps(self, pod: PodRecord) -> bool:
        return self.kinds is None or kind_of(pod) in self.kinds

    def apply(self, decisions: Decisions, pods: Iterable[PodRecord]) -> list[PodRecord] | None:
        """Make the change and return the changed pods; None if no API server would accept it."""
        try:
            if self.to_cluster is not None:
                self.to_cluster(decisions)
            if self.to_pod is None:
                return list(pods)
            return [decisions.rewritten(pod, self.to_pod) if self.helps(pod) else pod for pod in pods]
        except (errors.InputError, msgspec.ValidationError):
            return None


def candidates(
    decisions: Decisions, waiting: Sequence[BlockedPods], shapes: Sequence[NodeShape]
) -> Iterator[ProposedChange]:
    """Yield all changes that may help waiting pods."""
    yield from (more_nodes(shape, 1) for shape in shapes[:_MAX_SHAPES])
    columns = decisions.cluster.nodes
    nodes = [columns.node(row) for _, row in sorted(columns.row_of.items())]
    yield from _taints(nodes, waiting)
    yield from _cordons(nodes, waiting)
    for others in (_labels, _claims, _not_attempted, _caps, manifest_changes, _priorities):
        yield from others(decisions, waiting)


def more_nodes(shape: NodeShape, number: int) -> ProposedChange:
    """Return the addition of several nodes of a shape."""
    what = "one more node" if number == 1 else f"{number:,} more nodes"
    add = partial(add_nodes, shape=shape, number=number)
    return ProposedChange("node", f"{what} like {shape.representative}", add, objects=number)


def _grouped(
    waiting: Iterable[BlockedPods], keys: Callable[[BlockedPods], Iterable[Key]]
) -> dict[Key, list[BlockedPods]]:
    return by_key((key, blocked) for blocked in waiting for key in keys(blocked))


def _kinds(held: Iterable[BlockedPods]) -> frozenset[PodKind]:
    return frozenset(kind_of(blocked.pods[0]) for blocked in held)


def _held_before(waiting: Iterable[BlockedPods], type_: str) -> list[BlockedPods]:
    return [blocked for blocked in waiting if blocked.before is not None and blocked.before.type == type_]


def _of_nodes(type_: str, what: str, nodes: Sequence[Node], held: Iterable[BlockedPods]) -> ProposedChange:
    """Return the change of nodes to these forms; ``what`` goes before their names."""

    def change(decisions: Decisions) -> None:
        for node in nodes:
            decisions.put(node)

    text = f"{what} {nodes_text([node.metadata.name for node in nodes])}"
    return ProposedChange(type_, text, change, kinds=_kinds(held), objects=len(nodes))


def _taints(nodes: Sequence[Node], waiting: Sequence[BlockedPods]) -> Iterator[ProposedChange]:
    def tainted(blocked: BlockedPods) -> Iterator[Taint]:
        subjects = (obstacle.subject for obstacle in blocked.obstacles if obstacle.type == obstacles.TAINT)
        return (subject for subject in subjects if isinstance(subject, Taint))

    for taint, held in sorted(_grouped(waiting, tainted).items(), key=lambda item: obstacles.taint_text(item[0])):
        text, some = obstacles.taint_text(taint), [node for node in nodes if taint in node.spec.taints]
        clean = [_with(node, taints=tuple(each for each in node.spec.taints if each != taint)) for node in some]
        yield _of_nodes("taint", f"removal of taint {text} from", clean, held)
        pods = counted(sum(len(blocked.pods) for blocked in held), "pod")
        tolerating = partial(_tolerating, taint=taint)
        added = f"a toleration of {text} for {pods}"
        yield ProposedChange("toleration", added, to_pod=tolerating, kinds=_kinds(held), objects=len(held))


def _cordons(nodes: Sequence[Node], waiting: Sequence[BlockedPods]) -> Iterator[ProposedChange]:
    held = [
        blocked for blocked in waiting if any(obstacle.type == obstacles.CORDONED for obstacle in blocked.obstacles)
    ]
    opened = [_with(node, unschedulable=False) for node in nodes if node.spec.unschedulable]
    for some in [opened, *([node] for node in opened[:8] if len(opened) > 1)] if held else ():
        yield _of_nodes("cordon", "uncordoning of", some, held)


def _labels(decisions: Decisions, waiting: Sequence[BlockedPods]) -> Iterator[ProposedChange]:
    """Yield the labels that pods select, on the nodes that lack nothing else: on the emptiest, and on all."""
    columns = decisions.cluster.nodes

    def free(node: Node) -> int:
        row = columns.row_of[node.metadata.name]
        return int(columns.allocatable[CPU_INDEX, row] - columns.requested[CPU_INDEX, row])

    for labels, held in sorted(_grouped(waiting, _wanted_labels).items()):
        rows = {
            int(row)
            for blocked in held
            for group in blocked.nodes
            if all(obstacle.type == obstacles.SELECTION for obstacle in group.obstacles)
            for row in group.rows
        }
        nodes = [
            node
            for node in sorted(map(columns.node, rows), key=lambda node: node.metadata.name)
            if all(node.metadata.labels.get(key, value) == value for key, value in labels)
        ]
        text = ",".join(f"{key}={value}" if value else key for key, value in labels)
        emptiest = max(nodes, key=free, default=None)
        for some in ([emptiest], nodes) if emptiest is not None and len(nodes) > 1 else ([nodes] if nodes else []):
            labelled = [
                replace(node, metadata=replace(node.metadata, labels={**node.metadata.labels, **dict(labels)}))
                for node in some
            ]
            yield _of_nodes("label", f"label {text} on", labelled, held)


def _wanted_labels(blocked: BlockedPods) -> list[tuple[tuple[str, str], ...]]:
    """Return the labels of a node that the pods would select: the first value of each condition."""
    if not any(obstacle.type == obstacles.SELECTION for obstacle in blocked.obstacles):
        return []
    required = required_nodes(blocked.pods[0].pod_class)
    conditions = [*required.selector.requirements, *(required.terms[0].labels if required.terms else ())]
    wanted = [condition for condition in conditions if condition.operator in ("In", "Exists")]
    labels = tuple(sorted((each.key, each.values[0] if each.operator == "In" else "") for each in wanted))
    return [labels] if labels else []


def _claims(decisions: Decisions, waiting: Sequence[BlockedPods]) -> Iterator[ProposedChange]:
    """Yield each claim that pods wait for, bound to a volume that every node reaches."""
    claims = decisions.cluster.storage.claims

    def unbound(blocked: BlockedPods) -> list[str]:
        keys = [f"{blocked.pods[0].namespace}/{name}" for name in blocked.pods[0].pod_class.claims]
        return [key for key in keys if (known := claims.get(key)) is None or known.status.phase != "Bound"]

    for key, held in sorted(_grouped(_held_before(waiting, TURNED_DOWN), unbound).items()):
        what = "created and bound" if key not in claims else "bound"
        text = f"PersistentVolumeClaim {key} {what} to a volume"
        yield ProposedChange("claim", text, partial(_bind, key=key), kinds=_kinds(held), objects=2)


def _bind(decisions: Decisions, key: str) -> None:
    """Bind a claim, made if there is none, to a volume of its own."""
    namespace, _, name = key.partition("/")
    known = decisions.cluster.storage.claims.get(key)
    if known is None:
        wanted = storage.PersistentVolumeClaimSpec(access_modes=("ReadWriteOnce",))
        known = storage.PersistentVolumeClaim(metadata=ObjectMeta(name=name, namespace=namespace), spec=wanted)
    spec = storage.PersistentVolumeSpec(
        access_modes=known.spec.access_modes,
        storage_class_name=known.spec.storage_class_name or "",
        volume_mode=known.spec.volume_mode,
    )
    meta = ObjectMeta(name=f"plan-volume-{namespace}-{name}")
    decisions.bind(known, storage.PersistentVolume(metadata=meta, spec=spec))


def _not_attempted(decisions: Decisions, waiting: Sequence[BlockedPods]) -> Iterator[ProposedChange]:
    """Yield the removal of scheduling gates, and a scheduler that is configured."""
    gates = _grouped(_held_before(waiting, GATED), lambda blocked: filter(None, [blocked.pods[0].gates]))
    for names, held in sorted(gates.items()):
        noun, ungated = "gate" if len(names) == 1 else "gates", partial(_with, scheduling_gates=())
        text = f"removal of scheduling {noun} {', '.join(names)}"
        yield ProposedChange("gate", text, to_pod=ungated, kinds=_kinds(held), objects=len(held))
    known = sorted(decisions.runners)[0]
    unknown = _grouped(_held_before(waiting, SCHEDULER), lambda blocked: [blocked.pods[0].scheduler_name])
    for name, held in sorted(unknown.items()):
        text, moved = f"schedulerName {known} in place of {name}", partial(_with, scheduler_name=known)
        yield ProposedChange("scheduler", text, to_pod=moved, kinds=_kinds(held), objects=len(held))


def _caps(decisions: Decisions, waiting: Sequence[BlockedPods]) -> Iterator[ProposedChange]:
    """Yield the removal of the caps on schedulers' disruptions if preemptions wait for them."""
    held = _held_before(waiting, CAPPED)
    policy = next((item for item in decisions.objects if isinstance(item, disruption_policy.DisruptionPolicy)), None)
    if held and policy is not None:
        text = f"DisruptionPolicy {policy.metadata.name} without a cap on schedulers"

        def lift(decisions: Decisions) -> None:
            caps, before = decisions.cluster.caps, dict(decisions.cluster.caps.full)
            decisions.scratch.on_roll_back(lambda: caps.assume(before))
            decisions.scratch.on_roll_back(lambda: caps.observe(policy))
            caps.observe(None)

        yield ProposedChange("cap", text, lift, kinds=_kinds(held), preempts=True, written=(_with(policy, caps=()),))


def _priorities(decisions: Decisions, waiting: Sequence[BlockedPods]) -> Iterator[ProposedChange]:
    """Yield for each workload with waiting pods the next higher priority classes; the pods may then preempt.

    The class applies to the workload's other pods as well, which the waiting ones preempt no more than before.
    """
    on_nodes = [blocked for blocked in waiting if blocked.before is None]
    classes = sorted(
        (
            item
            for item in decisions.objects
            if isinstance(item, PriorityClass) and item.preemption_policy not in NEVER_PREEMPTS
        ),
        key=lambda item: (item.value, item.metadata.name),
    )
    for workload, held in _grouped(on_nodes, lambda blocked: [decisions.workloads.of_kind(blocked.pods)]).items():
        if sum(len(blocked.pods) for blocked in held) > MAX_PREEMPTING:
            continue
        kinds, pod = _kinds(held), held[0].pods[0]
        if pod.preemption_policy in NEVER_PREEMPTS:
            text = f"preemptionPolicy {DEFAULT_POLICY} for {workload}"
            to_pod = partial(_with, preemption_policy=DEFAULT_POLICY)
            yield ProposedChange("policy", text, to_pod=to_pod, kinds=kinds, preempts=True)
        for item in [item for item in classes if item.value > pod.priority][:3]:
            text = f"priorityClassName {item.metadata.name} ({item.value}) for {workload}"
            raised = partial(_raise, workload=workload, wanted=item)
            written = partial(_raised_pods, workload=workload, wanted=item)
            of_class = partial(_of_class, wanted=item)
            yield ProposedChange("priority", text, raised, of_class, kinds, preempts=True, written=written)


def _raise(decisions: Decisions, workload: str, wanted: PriorityClass) -> None:
    for pod in decisions.workloads.placed(workload):
        if pod.priority < wanted.value:
            decisions.scratch.replace_pod(replace(pod, priority=wanted.value))


def _raised_pods(decisions: Decisions, workload: str, wanted: PriorityClass) -> list[Pod]:
    records = (record for record in decisions.workloads.placed(workload) if record.priority < wanted.value)
    return [_of_class(decisions.pods[record.key], wanted) for record in records if record.key in decisions.pods]


def _of_class(pod: Pod, wanted: PriorityClass) -> Pod:
    name, policy = wanted.metadata.name, wanted.preemption_policy
    return _with(pod, priority=wanted.value, priority_class_name=name, preemption_policy=policy)


def manifest_changes(decisions: Decisions, waiting: Sequence[BlockedPods]) -> Iterator[ProposedChange]:
    """Yield for each workload with waiting pods the ways in which its pods could ask for less."""
    by_workload = _grouped(waiting, lambda blocked: [decisions.workloads.of_kind(blocked.pods)])
    for workload, held in by_workload.items():
        yield from _requests(decisions, workload, held)
        looser: dict[str, Callable[[Pod], Pod]] = {}
        for blocked in held:
            for obstacle in sorted(blocked.obstacles, key=lambda each: each.order):
                found = _looser(workload, blocked, obstacle)
                if found is not None:
                    looser.setdefault(*found)
        for text, to_pod in looser.items():
            yield ProposedChange("pod", text, to_pod=to_pod, kinds=_kinds(held))


def _requests(decisions: Decisions, workload: str, held: Sequence[BlockedPods]) -> Iterator[ProposedChange]:
    """Yield smaller requests with which all of the workload's pods may fit, or else one."""
    nodes = decisions.cluster.nodes
    for resource, some in _grouped(held, lambda blocked: sorted(_short_rows(blocked))).items():
        pods = [pod for blocked in some for pod in blocked.pods]
        index = nodes.resource_index.get(resource)
        requested = 0 if index is None else pods[0].pod_class.requests.get(index, 0)
        if index is None or not requested:
            continue
        rows = sorted(set().union(*(_short_rows(blocked).get(resource, ()) for blocked in some)))
        free = [int(amount) for amount in nodes.allocatable[index, rows] - nodes.requested[index, rows]]
        # For all pods, and for one: of the amounts from 1, as many let them fit as the largest such one says.
        largest = (
            bisect_left(
                range(1, requested), True, key=lambda amount: sum(max(left, 0) // amount for left in free) < number
            )
            for number in (len(pods), 1)
        )
        amounts = {rounded(amount, resource) for amount in largest}
        for amount in sorted(amount for amount in amounts if amount >= max(requested // _MAX_REDUCTION, 1)):
            written = f"{written_amount(resource, requested)} -> {written_amount(resource, amount)}"
            to_pod = partial(with_request, resource=resource, amount=amount)
            text = f"{workload} requests.{resource} {written}"
            yield ProposedChange("request", text, to_pod=to_pod, kinds=_kinds(some))


def _short_rows(blocked: BlockedPods) -> dict[str, set[int]]:
    """Return by resource the rows on which too little of it is the only obstacle."""
    found: dict[str, set[int]] = {}
    for group in blocked.nodes:
        if len(group.obstacles) == 1:
            (obstacle,) = group.obstacles
            if obstacle.type in (obstacles.RESOURCE, obstacles.TOO_LARGE):
                found.setdefault(str(obstacle.subject), set()).update(group.rows.tolist())
    return found


def with_request(pod: Pod, resource: str, amount: int) -> Pod:
    """Return the pod with this request (cpu in milli); the largest containers give up the rest.

    Returns the pod itself if that is impossible.
    """
    left = resource_requests.pod_requests(pod.spec).get(resource, 0) - amount
    containers = list(pod.spec.containers)
    for place in sorted(range(len(containers)), key=lambda place: (-_requested(pod, place, resource), place)):
        less = min(left, max(_requested(pod, place, resource) - 1, 0))
        if less <= 0:
            continue
        resources = containers[place].resources
        wanted = written_amount(resource, _requested(pod, place, resource) - less)
        limits = dict(resources.limits)
        if resource in limits and resource not in _OVERCOMMITTED:
            limits[resource] = wanted
        lower = ResourceRequirements(requests={**resources.requests, resource: wanted}, limits=limits)
        containers[place] = replace(containers[place], resources=lower)
        left -= less
    changed = _with(pod, containers=tuple(containers))
    return changed if resource_requests.pod_requests(changed.spec).get(resource, 0) == amount else pod


def _requested(pod: Pod, place: int, resource: str) -> int:
    resources = pod.spec.containers[place].resources
    value = resources.requests.get(resource, resources.limits.get(resource, 0))
    return milli_value(value) if resource == CPU else whole_value(value)


def rounded(amount: int, resource: str) -> int:
    """Return a round amount, at most a tenth below this one."""
    step = 1 if not is_bytes(resource) else _MI
    while step * 100 <= amount:
        step *= 10 if not is_bytes(resource) else 2
    return amount // step * step if amount >= step else amount


def _looser(
    workload: str, blocked: BlockedPods, obstacle: obstacles.Obstacle
) -> tuple[str, Callable[[Pod], Pod]] | None:
    """Return the change that removes the condition behind an obstacle, with its text; None if there is none."""
    if obstacle.type == obstacles.SELECTION:
        return f"{workload} without its {obstacles.required_text(blocked.pods[0])}", _on_any_node
    spec = blocked.pods[0].spec
    match obstacle.plugin if obstacle.type == obstacles.OTHER else "":
        case "PodTopologySpread" if spec.topology_spread_constraints:
            return f"{workload} spread with ScheduleAnyway", _spread_anyway
        case "InterPodAffinity" if spec.affinity is not None:
            return f"{workload} without required affinity to other pods", _near_any_pod
        case "NodePorts":
            return f"{workload} without host ports", _without_ports
    return None


def _tolerating(pod: Pod, taint: Taint) -> Pod:
    more = Toleration(key=taint.key, operator="Equal", value=taint.value, effect=taint.effect)
    return _with(pod, tolerations=(*pod.spec.tolerations, more))


def _on_any_node(pod: Pod) -> Pod:
    affinity = pod.spec.affinity
    if affinity is not None and affinity.node_affinity is not None:
        affinity = replace(affinity, node_affinity=replace(affinity.node_affinity, required=None))
    return _with(pod, node_selector={}, affinity=affinity)


def _spread_anyway(pod: Pod) -> Pod:
    constraints = pod.spec.topology_spread_constraints
    soft = tuple(replace(constraint, when_unsatisfiable="ScheduleAnyway") for constraint in constraints)
    return _with(pod, topology_spread_constraints=soft)


def _near_any_pod(pod: Pod) -> Pod:
    affinity = pod.spec.affinity
    if affinity is None:
        return pod
    near, far = (
        None if some is None else replace(some, required=())
        for some in (affinity.pod_affinity, affinity.pod_anti_affinity)
    )
    return _with(pod, affinity=replace(affinity, pod_affinity=near, pod_anti_affinity=far))


def _without_ports(pod: Pod) -> Pod:
    containers = tuple(
        replace(container, ports=tuple(replace(port, host_port=0) for port in container.ports))
        for container in pod.spec.containers
    )
    return _with(pod, containers=containers, host_network=False)


Object = TypeVar("Object", Pod, Node, disruption_policy.DisruptionPolicy)


def _with(object_: Object, **fields: object) -> Object:
    return replace(object_, spec=replace(object_.spec, **fields))
