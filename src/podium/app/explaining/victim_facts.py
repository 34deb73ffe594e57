"""Why a victim has to go: what the preemptor would not get while the victim stays."""

from __future__ import annotations

from podium.api.quantity import format_quantity
from podium.app.explaining.obstacles import NodeObstacles
from podium.cluster.cluster import Cluster
from podium.cluster.matchers import Selected
from podium.cluster.pods import PodRecord
from podium.plugins.spreading.constraints import own_constraints


def victim_facts(cluster: Cluster, pod: PodRecord, victim: PodRecord, obstacles: NodeObstacles | None) -> list[str]:
    """What the victim holds that the pod needs on its node, in words; empty where no filter known here tells."""
    refusing = {status.plugin: status for status in obstacles.refusals} if obstacles else {}
    found = []
    names = cluster.nodes.resources
    short = {shortage.resource for shortage in obstacles.shortages} if obstacles else set()
    if obstacles and obstacles.nominated:
        short |= {names[index] for index in pod.pod_class.requests}
    for index, amount in sorted(victim.pod_class.requests.items()):
        if names[index] in short:
            found.append(f"frees {format_quantity(amount, names[index])} {names[index]}")
    if "NodeResourcesFit" in refusing and "Too many pods" in refusing["NodeResourcesFit"].reasons:
        found.append("frees a place")
    if "NodePorts" in refusing:
        found += [
            f"holds port {held.port}/{held.protocol}"
            for held in victim.pod_class.host_ports
            if any(held.conflicts(wanted) for wanted in pod.pod_class.host_ports)
        ]
    if "InterPodAffinity" in refusing:
        found += _apart(cluster, pod, victim)
    if "PodTopologySpread" in refusing and _counts(cluster, pod, victim):
        found.append("counts for its spread")
    return found


def _apart(cluster: Cluster, pod: PodRecord, victim: PodRecord) -> list[str]:
    def is_apart(victim: PodRecord, other: PodRecord) -> bool:
        terms = victim.pod_class.required_anti_affinity
        return any(Selected((term,)).matches(other.pod_class, cluster.namespaces) for term in terms)

    found = ["is one that its anti-affinity avoids"] if is_apart(pod, victim) else []
    return [*found, "avoids it by anti-affinity"] if is_apart(victim, pod) else found


def _counts(cluster: Cluster, pod: PodRecord, victim: PodRecord) -> bool:
    hard = own_constraints(pod.pod_class, "DoNotSchedule").constraints
    return any(constraint.predicate.matches(victim.pod_class, cluster.namespaces) for constraint in hard)
