"""Small Kubernetes objects, clusters and schedulers in few words, for tests of any layer.

Objects are typed readings, as `podium.api.codec` makes them. What a test does not name has the plainest value: a pod
without requests, in namespace `default`, of priority 0, whose uid is its key; a node with room for 110 pods and no
labels. Label selectors and taints are written as kubectl takes them: `app=web,tier in (a,b)`, `gpu=yes:NoSchedule`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from podium.api.meta import Kubernetes, ObjectMeta, OwnerReference
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
    PodSpec,
    PodStatus,
    Quantity,
    ResourceRequirements,
    Toleration,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from podium.api.policy import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from podium.api.selection import (
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
)
from podium.api.selectors import parse_label_selector
from podium.api.times import format_time
from podium.api.workloads import ReplicaSet, ReplicaSetSpec, Service, ServiceSpec
from podium.app.explain import Explainer, Explanation
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.framework.configuration import API_VERSION, KIND, Configuration, read_configuration
from podium.framework.plugin import Plugin
from podium.framework.profile_builder import build_profiles
from podium.framework.registry import Registry
from podium.framework.runner import Runner
from podium.plugins.registry import IN_TREE

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
# 2026-01-01T00:00:00Z: times of pods are given in seconds after it.
DAY_ONE_NS = 1_767_225_600 * 10**9


def node(
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
    **resources: Quantity,
) -> Node:
    """A node. ``zone`` gives it the zone and the hostname label; ``images`` maps names to bytes.

    Further resources are written with underscores: ``example_com__gpu=4`` is four of example.com/gpu.
    """
    places = {} if zone is None else {ZONE: zone, HOSTNAME: name}
    amounts: dict[str, Quantity] = {"cpu": cpu, "memory": memory, "pods": pods, **_resources(resources)}
    return Node(
        metadata=ObjectMeta(name=name, labels={**places, **(labels or {})}),
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
    """A pod with one container; on a node (``on``) it runs, else it is pending.

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
        spec=msgspec.structs.replace(
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
            conditions=(PREEMPTED,) if preempted else (),
        ),
    )


PREEMPTED = PodCondition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")


def at(seconds: int) -> str:
    """A moment on or after the first day, as the API writes it."""
    return format_time(DAY_ONE_NS + seconds * 10**9)


def taint(text: str) -> Taint:
    """A taint from `key=value:Effect` or `key:Effect`."""
    marked, _, effect = text.rpartition(":")
    key, _, value = marked.partition("=")
    return msgspec.convert({"key": key, "value": value, "effect": effect}, Taint)


def tolerate(text: str = "", *, seconds: int | None = None) -> Toleration:
    """A toleration from `key=value:Effect`, `key:Effect`, `key=value`, `key`; "" tolerates everything."""
    marked, _, effect = text.partition(":")
    key, equals, value = marked.partition("=")
    operator = "Equal" if equals else "Exists"
    fields = {"key": key, "operator": operator, "value": value, "effect": effect, "tolerationSeconds": seconds}
    return msgspec.convert(fields, Toleration)


def selector(text: str) -> LabelSelector:
    """A label selector as kubectl's -l takes it; "" selects everything."""
    expressions = tuple(
        LabelSelectorRequirement(key=one.key, operator=one.operator, values=one.values)  # type: ignore[arg-type]
        for one in parse_label_selector(text).requirements
    )
    return LabelSelector(match_expressions=expressions)


def term(
    match: str | None, key: str = HOSTNAME, *, namespaces: Iterable[str] = (), in_namespaces: str | None = None
) -> PodAffinityTerm:
    """A pod affinity term: pods that ``match``, in the domain of a topology key.

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
    """A topology spread constraint; ``soft`` ones only score. None selects nothing."""
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
    """A node selector term: labels that ``match``, and the node of that name."""
    expressions = tuple(
        NodeSelectorRequirement(key=one.key, operator=one.operator, values=one.values)  # type: ignore[arg-type]
        for one in parse_label_selector(match).requirements
    )
    fields = () if name is None else (NodeSelectorRequirement(key="metadata.name", operator="In", values=(name,)),)
    return NodeSelectorTerm(match_expressions=expressions, match_fields=fields)


def budget(
    name: str, match: str | None, allowed: int, *, disrupted: Iterable[str] = (), namespace: str = "default"
) -> PodDisruptionBudget:
    """A disruption budget that allows so many more disruptions; ``disrupted`` names pods it has counted already."""
    return PodDisruptionBudget(
        metadata=ObjectMeta(name=name, namespace=namespace),
        spec=PodDisruptionBudgetSpec(selector=None if match is None else selector(match)),
        status=PodDisruptionBudgetStatus(disruptions_allowed=allowed, disrupted_pods={one: at(0) for one in disrupted}),
    )


def namespace(name: str, **labels: str) -> Namespace:
    """A namespace; its name label comes with it."""
    return Namespace(metadata=ObjectMeta(name=name, labels={"kubernetes.io/metadata.name": name, **labels}))


def service(name: str, *, namespace: str = "default", **match: str) -> Service:
    """A service that fronts the pods with these labels."""
    return Service(metadata=ObjectMeta(name=name, namespace=namespace), spec=ServiceSpec(selector=match))


def replica_set(name: str, match: str, *, namespace: str = "default") -> ReplicaSet:
    """A replica set that owns the pods that match."""
    meta = ObjectMeta(name=name, namespace=namespace)
    return ReplicaSet(metadata=meta, spec=ReplicaSetSpec(selector=selector(match)))


def cluster_of(*objects: Kubernetes) -> Cluster:
    """A cluster that holds the objects: pods with a node are placed, pending ones with a nominated node nominated."""
    cluster = Cluster()
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
    """The record of a pending pod; the one that the nominations hold, where the pod is nominated."""
    known = (record for record, _ in cluster.nominations.all() if record.key == item.key)
    return next(known, None) or cluster.read(item)


def configuration(
    args: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    plugins: Mapping[str, Mapping[str, Sequence[str]]] | None = None,
    **profile: Any,
) -> Configuration:
    """A configuration with one profile, the default one but for what is said.

    ``args`` gives the arguments of plugins; ``plugins`` what is enabled and disabled at an extension point, as in
    ``{"multiPoint": {"enabled": ["Mine"]}}``; ``profile`` other fields of the profile.
    """
    sets = {
        point: {key: [{"name": name} for name in names] for key, names in sets.items()}
        for point, sets in (plugins or {}).items()
    }
    config = [{"name": name, "args": dict(values)} for name, values in (args or {}).items()]
    written = {"pluginConfig": config, "plugins": sets, **profile}
    return read_configuration({"apiVersion": API_VERSION, "kind": KIND, "profiles": [written]}, "test")


def runner_on(
    cluster: Cluster,
    settings: Configuration | None = None,
    *,
    extra: Iterable[Plugin] = (),
    only: Iterable[str] | None = None,
    seed: int = 0,
) -> Runner:
    """The first profile of a configuration at work on a cluster; the default profile unless one is given.

    ``extra`` are plugin objects that are added behind the others at every point where they take part. ``only``
    leaves the in-tree plugins of these names alone (with PrioritySort and DefaultBinder, which every profile needs).
    """
    table = {**IN_TREE, **{plugin.name: lambda _context, made=plugin: made for plugin in extra}}
    settings = settings or configuration()
    written = settings.profiles[0]
    sets: dict[str, Any] = {"enabled": [{"name": name} for name in table if name not in IN_TREE]}
    if only is not None:
        kept = ["PrioritySort", *only, *(name for name in table if name not in IN_TREE), "DefaultBinder"]
        sets = {"enabled": [{"name": name} for name in kept], "disabled": [{"name": "*"}]}
    if only is not None or sets["enabled"]:
        plugins = msgspec.structs.replace(written.plugins, multi_point=msgspec.convert(sets, PLUGIN_SET))
        written = msgspec.structs.replace(written, plugins=plugins)
        settings = Configuration(
            source=settings.source,
            parallelism=settings.parallelism,
            pod_initial_backoff_ns=settings.pod_initial_backoff_ns,
            pod_max_backoff_ns=settings.pod_max_backoff_ns,
            profiles=(written,),
        )
    profiles = build_profiles(settings, Registry(table), cluster, seed=seed)
    return Runner(next(iter(profiles.values())), cluster)
