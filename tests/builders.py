"""Short constructors of Kubernetes objects, clusters and schedulers, for tests of any layer.

Objects are typed readings, as `podium.api.input.codec` makes them. What a test does not name has the plainest value: a
pod without requests, in namespace `default`, of priority 0, whose uid is its key; a node with room for 110 pods and no
labels. Label selectors and taints are written as kubectl takes them: `app=web,tier in (a,b)`, `gpu=yes:NoSchedule`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from podium.api.avoid_list import (
    PREFER_AVOID_PODS,
    AvoidList,
    EvictedPod,
    EvictionHints,
    Replacement,
    avoid_entry,
    replacement,
)
from podium.api.disruption_policy import (
    MAX_DISRUPTIONS,
    POLICY_NAME,
    SCHEDULER,
    Cap,
    CapStatus,
    DisruptionPolicy,
    DisruptionPolicySpec,
    DisruptionPolicyStatus,
    parse_rate,
)
from podium.api.meta import Kubernetes, ObjectMeta, OwnerReference, Raw
from podium.api.node import ContainerImage, Namespace, Node, NodeSpec, NodeStatus, Taint
from podium.api.pod import (
    Affinity,
    Container,
    ContainerPort,
    NodeAffinity,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodCondition,
    PodSchedulingGate,
    PodSchedulingGroup,
    PodSpec,
    PodStatus,
    Quantity,
    ResourceRequirements,
    Toleration,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from podium.api.pod_group import (
    BasicSchedulingPolicy,
    GangSchedulingPolicy,
    PodGroup,
    PodGroupSchedulingConstraints,
    PodGroupSchedulingPolicy,
    PodGroupSpec,
    TopologyConstraint,
)
from podium.api.policy import (
    DisruptionRateStatus,
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
)
from podium.api.selectors import (
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
    parse_label_selector,
)
from podium.api.times import format_exact_time, format_time
from podium.api.versions.release import DEFAULT_RELEASE, Release
from podium.api.workloads import ReplicaSet, ReplicaSetSpec, Service, ServiceSpec
from podium.app.explaining.explainer import Explainer
from podium.app.explaining.explanation import Explanation
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.controllers.observations import Changed
from podium.controllers.workloads.owned_pods import OwnedPod
from podium.framework.plugin import Plugin, PluginContext
from podium.framework.runner import Runner
from podium.framework.settings.configuration import API_VERSION, KIND, Configuration, read_configuration
from podium.framework.settings.registry import EXTENSION_POINTS, Profile, Registry, build_profiles, takes_part
from podium.plugins.registry import IN_TREE

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
# 2026-01-01T00:00:00Z: times of pods are given in seconds after it.
DAY_ONE_NS = 1_767_225_600 * 10**9


def node(  # noqa: PLR0913 - one argument for each thing a test may want to say
    name: str,
    *,
    cpu: Quantity = "8",
    memory: Quantity = "32Gi",
    pods: int = 110,
    zone: str | None = None,
    labels: Mapping[str, str] | None = None,
    taints: Iterable[str] = (),
    unschedulable: bool = False,
    images: Mapping[str, int] | None = None,
    avoids: Iterable[str] = (),
    leaves: Iterable[Replacement] = (),
    **resources: Quantity,
) -> Node:
    """Return a node. ``zone`` gives it the zone and the hostname label; ``images`` maps names to bytes.

    ``avoids`` are the controllers on its avoid list, written as a pod's owner: "ReplicaSet/web"; ``leaves`` is what
    evictions left there for replacements.

    Further resources are written with underscores: ``example_com__gpu=4`` is four of example.com/gpu.
    """
    places = {} if zone is None else {ZONE: zone, HOSTNAME: name}
    amounts: dict[str, Quantity] = {"cpu": cpu, "memory": memory, "pods": pods, **_resources(resources)}
    avoided = AvoidList(tuple(avoid_entry(_owner(one), "", "", DAY_ONE_NS) for one in avoids), tuple(leaves))
    return Node(
        metadata=ObjectMeta(
            name=name,
            labels={**places, **(labels or {})},
            annotations={PREFER_AVOID_PODS: avoided.written()} if avoided else {},
        ),
        spec=NodeSpec(unschedulable=unschedulable, taints=tuple(taint(text) for text in taints)),
        status=NodeStatus(
            allocatable=amounts,
            images=tuple(ContainerImage(names=(image,), size_bytes=size) for image, size in (images or {}).items()),
        ),
    )


def pod(  # noqa: PLR0913 - one argument for each thing a test may want to say
    name: str,
    *,
    namespace: str = "default",
    on: str = "",
    priority: int | None = None,
    cpu: Quantity | None = None,
    memory: Quantity | None = None,
    limits: Mapping[str, Quantity] | None = None,
    labels: Mapping[str, str] | None = None,
    uid: str | None = None,
    created: int | None = None,
    started: int | None = None,
    ready: bool = False,
    terminating: bool = False,
    preempted: bool = False,
    nominated: str = "",
    policy: str | None = None,
    ports: Iterable[int | str] = (),
    image: str = "",
    tolerations: Iterable[Toleration] = (),
    node_selector: Mapping[str, str] | None = None,
    needs_nodes: Sequence[NodeSelectorTerm] | None = None,
    likes_nodes: Iterable[tuple[int, NodeSelectorTerm]] = (),
    near: Iterable[PodAffinityTerm] = (),
    apart: Iterable[PodAffinityTerm] = (),
    likes: Iterable[tuple[int, PodAffinityTerm]] = (),
    dislikes: Iterable[tuple[int, PodAffinityTerm]] = (),
    spread: Iterable[TopologySpreadConstraint] = (),
    owner: str = "",
    gates: Iterable[str] = (),
    scheduler: str = "default-scheduler",
    spec: Mapping[str, Any] | None = None,
    **resources: Quantity,
) -> Pod:
    """Return a pod with one container; on a node (``on``) it runs, else it is pending.

    ``created`` and ``started`` are seconds after the first day. ``terminating`` pods were deleted; ``preempted`` ones
    carry the condition of a scheduler's preemption. ``ports`` are host ports: 80, or "10.0.0.1/UDP/53". ``owner`` is
    the controller: "ReplicaSet/web". ``near`` and ``apart`` are required pod affinity and anti-affinity, ``likes`` and
    ``dislikes`` preferred ones with their weights. ``spec`` sets any other field of the spec; further resources are
    written as for `node`.
    """
    requests = {"cpu": cpu, "memory": memory, **_resources(resources)}
    container = Container(
        name="main",
        image=image,
        resources=ResourceRequirements(
            requests={key: amount for key, amount in requests.items() if amount is not None}, limits=dict(limits or {})
        ),
        ports=tuple(_host_port(port) for port in ports),
    )
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=f"{namespace}/{name}" if uid is None else uid,
            labels=dict(labels or {}),
            creation_timestamp=None if created is None else at(created),
            deletion_timestamp=at(10**6) if terminating else None,
            owner_references=(_owner(owner),) if owner else (),
        ),
        spec=replace(
            PodSpec(
                node_name=on,
                scheduler_name=scheduler,
                priority=priority,
                preemption_policy=policy,
                containers=(container,),
                node_selector=dict(node_selector or {}),
                affinity=_affinity(needs_nodes, likes_nodes, (near, likes), (apart, dislikes)),
                tolerations=tuple(tolerations),
                topology_spread_constraints=tuple(spread),
                scheduling_gates=tuple(PodSchedulingGate(name=gate) for gate in gates),
            ),
            **(spec or {}),
        ),
        status=PodStatus(
            phase="Running" if on else "Pending",
            nominated_node_name=nominated,
            start_time=None if started is None else at(started),
            conditions=(*((READY,) if ready else ()), *((PREEMPTED,) if preempted else ())),
        ),
    )


READY = PodCondition(type="Ready", status="True")
PREEMPTED = PodCondition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")


def left(
    evicted: str,
    seconds: int = 0,
    *,
    owner: str = "ReplicaSet/web",
    first: bool = True,
    hint: str = "",
    grace: int = 30,
    uid: str = "",
) -> Replacement:
    """Return what the eviction of a pod left at a time for its replacement: the front of the queue, a node to try."""
    pod = EvictedPod(name=evicted, uid=uid or evicted)
    return replacement(
        _owner(owner), pod, EvictionHints(first=first, node_name=hint), grace, DAY_ONE_NS + seconds * 10**9
    )


def at(seconds: int) -> str:
    """Return a moment on or after the first day, as the API writes it."""
    return format_time(DAY_ONE_NS + seconds * 10**9)


def taint(text: str) -> Taint:
    """Return a taint from `key=value:Effect` or `key:Effect`."""
    marked, _, effect = text.rpartition(":")
    key, _, value = marked.partition("=")
    return msgspec.convert({"key": key, "value": value, "effect": effect}, Taint)


def tolerate(text: str = "", *, seconds: int | None = None) -> Toleration:
    """Return a toleration from `key=value:Effect`, `key:Effect`, `key=value`, `key`; "" tolerates everything."""
    marked, _, effect = text.partition(":")
    key, equals, value = marked.partition("=")
    operator = "Equal" if equals else "Exists"
    fields = {"key": key, "operator": operator, "value": value, "effect": effect, "tolerationSeconds": seconds}
    return msgspec.convert(fields, Toleration)


def selector(text: str) -> LabelSelector:
    """Return a label selector as kubectl's -l takes it; "" selects everything."""
    expressions = tuple(
        LabelSelectorRequirement(key=one.key, operator=one.operator, values=one.values)  # type: ignore[arg-type]
        for one in parse_label_selector(text).requirements
    )
    return LabelSelector(match_expressions=expressions)


def term(
    match: str | None, key: str = HOSTNAME, *, namespaces: Iterable[str] = (), in_namespaces: str | None = None
) -> PodAffinityTerm:
    """Return a pod affinity term: pods that ``match``, in the domain of a topology key.

    ``in_namespaces`` is a selector of namespaces. None selects nothing, in either place.
    """
    return PodAffinityTerm(
        topology_key=key,
        label_selector=None if match is None else selector(match),
        namespaces=tuple(namespaces),
        namespace_selector=None if in_namespaces is None else selector(in_namespaces),
    )


def spread_over(  # noqa: PLR0913 - as many as the constraint has fields
    key: str,
    match: str | None,
    max_skew: int = 1,
    *,
    soft: bool = False,
    min_domains: int | None = None,
    honors_affinity: bool = True,
    honors_taints: bool = False,
    match_label_keys: Iterable[str] = (),
) -> TopologySpreadConstraint:
    """Return a topology spread constraint; ``soft`` ones only score. None selects nothing."""
    return TopologySpreadConstraint(
        max_skew=max_skew,
        topology_key=key,
        when_unsatisfiable="ScheduleAnyway" if soft else "DoNotSchedule",
        label_selector=None if match is None else selector(match),
        min_domains=min_domains,
        node_affinity_policy="Honor" if honors_affinity else "Ignore",
        node_taints_policy="Honor" if honors_taints else "Ignore",
        match_label_keys=tuple(match_label_keys),
    )


def node_term(match: str = "", *, name: str | None = None) -> NodeSelectorTerm:
    """Return a node selector term: labels that ``match``, and the node of that name."""
    expressions = tuple(
        NodeSelectorRequirement(key=one.key, operator=one.operator, values=one.values)  # type: ignore[arg-type]
        for one in parse_label_selector(match).requirements
    )
    fields = () if name is None else (NodeSelectorRequirement(key="metadata.name", operator="In", values=(name,)),)
    return NodeSelectorTerm(match_expressions=expressions, match_fields=fields)


def budget(
    name: str,
    match: str | None,
    allowed: int,
    *,
    disrupted: Iterable[str] = (),
    namespace: str = "default",
    rate: str = "",
    used: int = 0,
) -> PodDisruptionBudget:
    """Return a disruption budget that allows so many more disruptions; ``disrupted`` names pods it has counted already.

    With a ``rate``, such as "2/1h", so many of its tokens are ``used`` at time 0.
    """
    status = PodDisruptionBudgetStatus(disruptions_allowed=allowed, disrupted_pods={one: at(0) for one in disrupted})
    if used:
        full = format_exact_time(used * parse_rate(rate).interval_ns)
        status = replace(status, disruption_rate=DisruptionRateStatus(max=rate, full_time=full))
    return PodDisruptionBudget(
        metadata=ObjectMeta(name=name, namespace=namespace, annotations={MAX_DISRUPTIONS: rate} if rate else {}),
        spec=PodDisruptionBudgetSpec(selector=None if match is None else selector(match)),
        status=status,
    )


def scheduler_cap(rate: str, *, used: int = 0) -> DisruptionPolicy:
    """Return a policy with a cap on schedulers, of whose tokens so many are used at time 0."""
    full = format_exact_time(used * parse_rate(rate).interval_ns)
    return DisruptionPolicy(
        metadata=ObjectMeta(name=POLICY_NAME),
        spec=DisruptionPolicySpec(caps=(Cap(component=SCHEDULER, max=rate),)),
        status=DisruptionPolicyStatus(caps=(CapStatus(component=SCHEDULER, full_time=full),) if used else ()),
    )


def pod_group(
    name: str,
    least: int | None = None,
    *,
    topology: str = "",
    together: bool = False,
    annotations: Mapping[str, str] | None = None,
) -> PodGroup:
    """Return a group of which so many pods at ``least`` are placed together; without a number it is no gang."""
    gang = None if least is None else GangSchedulingPolicy(min_count=least)
    policy = PodGroupSchedulingPolicy(gang=gang, basic=BasicSchedulingPolicy() if gang is None else None)
    constraints = PodGroupSchedulingConstraints(topology=(TopologyConstraint(key=topology),)) if topology else None
    return PodGroup(
        api_version="scheduling.k8s.io/v1alpha2",
        kind="PodGroup",
        metadata=ObjectMeta(name=name, namespace="default", uid=f"group-{name}", annotations=dict(annotations or {})),
        spec=PodGroupSpec(
            scheduling_policy=policy,
            scheduling_constraints=constraints,
            disruption_mode="PodGroup" if together else "",
        ),
    )


def member(group: str, name: str, **traits: Any) -> Pod:
    """Return a pod of a group; otherwise as `pod`."""
    spec = {"scheduling_group": PodSchedulingGroup(pod_group_name=group), **traits.pop("spec", {})}
    return pod(name, spec=spec, **traits)


def namespace(name: str, **labels: str) -> Namespace:
    """Return a namespace; its name label comes with it."""
    return Namespace(metadata=ObjectMeta(name=name, labels={"kubernetes.io/metadata.name": name, **labels}))


def service(name: str, *, namespace: str = "default", **match: str) -> Service:
    """Return a service that fronts the pods with these labels."""
    return Service(metadata=ObjectMeta(name=name, namespace=namespace), spec=ServiceSpec(selector=match))


def replica_set(name: str, match: str, *, namespace: str = "default") -> ReplicaSet:
    """Return a replica set that owns the pods that match."""
    meta = ObjectMeta(name=name, namespace=namespace)
    return ReplicaSet(metadata=meta, spec=ReplicaSetSpec(selector=selector(match)))


def cluster_of(*objects: Kubernetes, release: Release = DEFAULT_RELEASE) -> Cluster:
    """Return a cluster that holds the objects: pods with a node are placed, pending ones with a nominated node
    nominated.
    """
    cluster = Cluster(release)
    for item in objects:
        if isinstance(item, Pod):
            record = cluster.read(item)
            if record.node_name:
                cluster.add_pod(record)
            elif record.nominated_node_name:
                cluster.nominations.put(record, record.nominated_node_name)
        else:
            cluster.put(item)
    return cluster


def pending_in(cluster: Cluster, item: Pod) -> PodRecord:
    """Return the record of a pending pod; the one that the nominations hold, where the pod is nominated."""
    known = (record for record, _ in cluster.nominations.all() if record.key == item.key)
    return next(known, None) or cluster.read(item)


def configuration(
    args: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    only: Iterable[str] | None = None,
    plugins: Mapping[str, Mapping[str, Iterable[str]]] | None = None,
    **profile: Any,
) -> Configuration:
    """Return a configuration with one profile, the default one but for what is said.

    ``args`` gives the arguments of plugins. ``only`` leaves these plugins alone, with the two that every profile needs.
    ``plugins`` names those that are enabled and disabled at each point. ``profile`` sets other fields of the profile.
    """
    written = {
        "pluginConfig": [{"name": name, "args": dict(values)} for name, values in (args or {}).items()],
        **profile,
    }
    if plugins is not None:
        written["plugins"] = {
            point: {change: [{"name": name} for name in names] for change, names in changes.items()}
            for point, changes in plugins.items()
        }
    if only is not None:
        kept = dict.fromkeys(["PrioritySort", *only, "DefaultBinder"])
        written["plugins"] = {"multiPoint": {"enabled": [{"name": name} for name in kept], "disabled": [{"name": "*"}]}}
    return read_configuration({"apiVersion": API_VERSION, "kind": KIND, "profiles": [written]}, "test")


def runner_on(cluster: Cluster, settings: Configuration) -> Runner:
    """Return the first profile of a configuration at work on a cluster."""
    profiles = build_profiles(settings, Registry(IN_TREE), cluster)
    return Runner(next(iter(profiles.values())), cluster)


def plain_runner(
    cluster: Cluster, *only: str, args: Mapping[str, Any] | None = None, extra: Iterable[Plugin] = ()
) -> Runner:
    """Return the in-tree plugins (all, or ``only`` some) at work on a cluster, then ``extra`` ones, each with weight 1.

    All get the same ``args``. It is made without a configuration, and quickly.
    """
    made: list[Any] = [IN_TREE[name](PluginContext(args or {}, cluster)) for name in only or IN_TREE]
    made += extra
    at = {point: [one for one in made if takes_part(one, point)] for point in EXTENSION_POINTS}
    profile = Profile(
        "default-scheduler",
        pre_filter=at["preFilter"],
        filter=at["filter"],
        post_filter=at["postFilter"],
        pre_score=at["preScore"],
        score=at["score"],
        weights={one.name: 1 for one in at["score"]},
    )
    return Runner(profile, cluster)


def explain(
    objects: Iterable[Kubernetes], key: str = "default/p", settings: Configuration | None = None, now_ns: int = 0
) -> Explanation:
    """Return what the scheduler decides about one pending pod of the objects."""
    return Explainer(objects, settings, now_ns=now_ns).explain(key)


def _resources(named: Mapping[str, Quantity]) -> dict[str, Quantity]:
    """Resource names from arguments: `hugepages_2Mi` is hugepages-2Mi, `example_com__gpu` example.com/gpu."""
    found: dict[str, Quantity] = {}
    for name, amount in named.items():
        domain, slash, rest = name.rpartition("__")
        found[f"{domain.replace('_', '.')}{'/' if slash else ''}{rest.replace('_', '-')}"] = amount
    return found


def _host_port(port: int | str) -> ContainerPort:
    if isinstance(port, int):
        return ContainerPort(container_port=port, host_port=port)
    address, protocol, number = port.split("/")
    return ContainerPort(container_port=int(number), host_port=int(number), host_ip=address, protocol=protocol)


def _owner(text: str) -> OwnerReference:
    kind, _, name = text.partition("/")
    return OwnerReference(api_version="apps/v1", kind=kind, name=name, uid=text, controller=True)


def owned_pod(pod: Pod, status: Raw) -> OwnedPod:
    """Return a pod as controllers of workloads know it, whose wire form has that status."""
    return OwnedPod(pod, Changed(pod, {"status": status}))


def _affinity(
    needs_nodes: Sequence[NodeSelectorTerm] | None,
    likes_nodes: Iterable[tuple[int, NodeSelectorTerm]],
    near: tuple[Iterable[PodAffinityTerm], Iterable[tuple[int, PodAffinityTerm]]],
    apart: tuple[Iterable[PodAffinityTerm], Iterable[tuple[int, PodAffinityTerm]]],
) -> Affinity | None:
    preferred = tuple(PreferredSchedulingTerm(weight=weight, preference=one) for weight, one in likes_nodes)
    required = None if needs_nodes is None else NodeSelector(node_selector_terms=tuple(needs_nodes))
    nodes = NodeAffinity(required=required, preferred=preferred) if preferred or required is not None else None
    affinity = Affinity(node_affinity=nodes, pod_affinity=_terms(*near), pod_anti_affinity=_terms(*apart))
    return None if affinity == Affinity() else affinity


def _terms(required: Iterable[PodAffinityTerm], preferred: Iterable[tuple[int, PodAffinityTerm]]) -> PodAffinity | None:
    terms = PodAffinity(
        required=tuple(required),
        preferred=tuple(WeightedPodAffinityTerm(weight=weight, pod_affinity_term=one) for weight, one in preferred),
    )
    return None if terms == PodAffinity() else terms
