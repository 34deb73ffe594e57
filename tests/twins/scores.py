"""Reference implementations of the Score plugins: the normalised score of each feasible node, None without an opinion.

Sources: as the plugins name them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from podium.api.pod import NodeAffinity, Pod, PodAffinityTerm, TopologySpreadConstraint, WeightedPodAffinityTerm
from podium.api.resource_requests import nonzero_requests, pod_requests
from podium.api.versions.release import Behavior
from tests.twins.filters import count_matching, counts, term_matches
from tests.twins.plain import PlainCluster, tolerates

HOSTNAME = "kubernetes.io/hostname"
MEBIBYTE = 1024 * 1024

Scores = dict[str, int]
Score = Callable[[PlainCluster, Pod, Sequence[str]], Scores | None]


def taint_toleration(cluster: PlainCluster, pod: Pod, feasible: Sequence[str]) -> Scores | None:
    """Return the fewer PreferNoSchedule taints that the pod does not tolerate, the better."""
    tolerations = [one for one in pod.spec.tolerations if one.effect in ("", "PreferNoSchedule")]
    disliked = {
        name: sum(
            taint.effect == "PreferNoSchedule" and not tolerates(tolerations, taint)
            for taint in cluster.nodes[name].spec.taints
        )
        for name in feasible
    }
    most = max(disliked.values())
    return {name: 100 - (100 * number // most if most else 0) for name, number in disliked.items()}


def node_affinity(cluster: PlainCluster, pod: Pod, feasible: Sequence[str]) -> Scores | None:
    """Return the weights of the preferred terms that match, in percent of the most preferred node."""
    affinity = (pod.spec.affinity and pod.spec.affinity.node_affinity) or NodeAffinity()
    if not affinity.preferred:
        return None
    liked = {
        name: sum(one.weight for one in affinity.preferred if term_matches(one.preference, cluster.nodes[name]))
        for name in feasible
    }
    most = max(liked.values())
    return {name: 100 * weight // most if most else weight for name, weight in liked.items()}


def least_allocated(has: int, wanted: int) -> int:
    """Return the free share in percent; 0 where more is wanted than there is."""
    return (has - wanted) * 100 // has if wanted <= has else 0


def most_allocated(has: int, wanted: int) -> int:
    """Return the used share in percent; what is over the top counts as full."""
    return min(wanted, has) * 100 // has


def on_a_line(points: Sequence[tuple[int, int]]) -> Callable[[int, int], int]:
    """Return the score of a use in percent, by straight lines between points of (percent, 0 to 10)."""

    def score(has: int, wanted: int) -> int:
        use = 100 if wanted > has else wanted * 100 // has
        if use <= points[0][0]:
            return points[0][1] * 10
        for (left, low), (right, high) in pairwise(points):
            if use <= right:
                return low * 10 + math.trunc((high - low) * 10 * (use - left) / (right - left))
        return points[-1][1] * 10

    return score


def resources_by(score: Callable[[int, int], int], weights: Mapping[str, int], *, only_positive: bool = False) -> Score:
    """Return the weighted mean over the resources that a node has; a resource of its own counts if the pod requests it.

    ``only_positive`` leaves scores of 0 out of the mean and rounds it.
    """

    def scores(cluster: PlainCluster, pod: Pod, feasible: Sequence[str]) -> Scores | None:
        found = {}
        for name in feasible:
            total = weight_sum = 0
            for resource, weight in weights.items():
                has = cluster.allocatable(name).get(resource, 0)
                own = pod_requests(pod.spec).get(resource, 0)
                if not has or (resource not in ("cpu", "memory", "ephemeral-storage") and not own):
                    continue
                value = score(has, _with_defaults(cluster, name, pod, resource))
                if value > 0 or not only_positive:
                    total, weight_sum = total + value * weight, weight_sum + weight
            mean = total / weight_sum if weight_sum else 0
            found[name] = math.floor(mean + 0.5) if only_positive else math.floor(mean)
        return found

    return scores


def _with_defaults(cluster: PlainCluster, name: str, pod: Pod, resource: str) -> int:
    """Return what would be taken of a resource with the pod there; containers that request no cpu or memory count
    some.
    """
    everyone = [*cluster.pods_on[name], pod]
    if resource in ("cpu", "memory"):
        place = ("cpu", "memory").index(resource)
        return sum(nonzero_requests(one.spec)[place] for one in everyone)
    return sum(pod_requests(one.spec).get(resource, 0) for one in everyone)


def balanced_allocation(cluster: PlainCluster, pod: Pod, feasible: Sequence[str]) -> Scores | None:
    """Return how much more even the use of cpu and memory becomes with the pod: 75 for no difference.

    Up to 1.35 it is how even the use is with the pod.
    """
    wanted = pod_requests(pod.spec)
    has_requests = bool(wanted.get("cpu") or wanted.get("memory"))
    if not has_requests and cluster.release.has(Behavior.BALANCE_NEEDS_REQUESTS):
        return None
    found = {}
    for name in feasible:
        has, taken = cluster.allocatable(name), cluster.requested(name)
        before = _evenness([(taken.get(one, 0), has.get(one, 0)) for one in ("cpu", "memory")])
        after = _evenness([(taken.get(one, 0) + wanted.get(one, 0), has.get(one, 0)) for one in ("cpu", "memory")])
        scores_gain = cluster.release.has(Behavior.BALANCE_GAIN_SCORED)
        found[name] = 50 + (50 + after - before) // 2 if scores_gain else after
    return found


def _evenness(used_of: Sequence[tuple[int, int]]) -> int:
    shares = [min(used / has, 1.0) for used, has in used_of if has]
    deviation = abs((shares[0] - shares[1]) / 2) if len(shares) == 2 else 0.0
    return int((1 - deviation) * 100)


def image_locality(cluster: PlainCluster, pod: Pod, feasible: Sequence[str]) -> Scores | None:
    """Return the sizes of the pod's images, as the first node tells them, each in proportion to the nodes that have
    it.
    """
    containers = [*pod.spec.init_containers, *pod.spec.containers]
    found = {}
    for name in feasible:
        total = 0
        for container in containers:
            image = container.image if ":" in container.image.rpartition("/")[2] else f"{container.image}:latest"
            sizes = {
                where: one.size_bytes
                for where, node in cluster.nodes.items()
                for one in node.status.images
                if image in one.names
            }
            if name in sizes:
                total += int(next(iter(sizes.values())) * (len(sizes) / len(cluster.nodes)))
        least, most = 23 * MEBIBYTE, 1000 * MEBIBYTE * len(containers)
        found[name] = 100 * (min(max(total, least), most) - least) // (most - least)
    return found


def inter_pod_affinity(cluster: PlainCluster, pod: Pod, feasible: Sequence[str]) -> Scores | None:
    """Return the weights of all preferences between the pod and each pod in the node's domain, spread from 0 to 100.

    The required affinity of a pod that is there counts 1 in favour.
    """
    totals = dict.fromkeys(feasible, 0)
    found = False
    for where, others in cluster.pods_on.items():
        for other in others:
            liked = [
                (weight, term) for weight, term in _likes(pod) if cluster.selects(term, pod, other, is_scheduled=True)
            ]
            liked += [(weight, term) for weight, term in _likes(other) if cluster.selects(term, other, pod)]
            liked += [(1, term) for term in _required(other) if cluster.selects(term, other, pod)]
            for weight, term in liked:
                near = cluster.domain(where, term.topology_key) or ()
                found |= bool(near)
                for name in feasible:
                    totals[name] += weight if name in near else 0
    if not found:
        return None
    least, most = min(totals.values()), max(totals.values())
    return {name: int(100 * ((one - least) / (most - least))) if most > least else 0 for name, one in totals.items()}


def _likes(pod: Pod) -> list[tuple[int, PodAffinityTerm]]:
    affinity = pod.spec.affinity
    near = affinity.pod_affinity.preferred if affinity and affinity.pod_affinity else ()
    apart = affinity.pod_anti_affinity.preferred if affinity and affinity.pod_anti_affinity else ()
    return [*_weighted(near, 1), *_weighted(apart, -1)]


def _weighted(terms: Sequence[WeightedPodAffinityTerm], sign: int) -> list[tuple[int, PodAffinityTerm]]:
    return [(sign * one.weight, one.pod_affinity_term) for one in terms]


def _required(pod: Pod) -> tuple[PodAffinityTerm, ...]:
    affinity = pod.spec.affinity
    return affinity.pod_affinity.required if affinity and affinity.pod_affinity else ()


def pod_topology_spread(cluster: PlainCluster, pod: Pod, feasible: Sequence[str]) -> Scores | None:
    """Return scores that decrease with the matching pods around a node; nodes without all of the keys get 0."""
    soft = [one for one in pod.spec.topology_spread_constraints if one.when_unsatisfiable == "ScheduleAnyway"]
    if not soft:
        return None
    keys = {one.topology_key for one in soft}
    complete = [name for name in cluster.nodes if keys <= cluster.nodes[name].metadata.labels.keys()]
    rated = [name for name in feasible if name in complete]
    return dict.fromkeys(feasible, 0) | spread_scores(cluster, pod, soft, complete, rated)


def spread_scores(
    cluster: PlainCluster,
    pod: Pod,
    soft: Sequence[TopologySpreadConstraint],
    counted: Sequence[str],
    rated: Sequence[str],
) -> Scores:
    """Return the scores of the nodes ``rated``, by the pods on the nodes ``counted``; domains of finer keys weigh
    more.
    """
    crowds = dict.fromkeys(rated, 0.0)
    for constraint in soft:
        key, fine = constraint.topology_key, constraint.topology_key == HOSTNAME
        value_of = {name: cluster.nodes[name].metadata.labels.get(key) for name in cluster.nodes}
        domains = len(rated) if fine else len({value_of[name] for name in rated})
        for name in rated:
            if value_of[name] is not None:
                around = [name] if fine else [one for one in counted if value_of[one] == value_of[name]]
                number = sum(
                    count_matching(cluster, constraint, pod, one)
                    for one in around
                    if fine or counts(constraint, pod, cluster.nodes[one])
                )
                crowds[name] += number * math.log(domains + 2) + (constraint.max_skew - 1)
    raw = {name: math.floor(crowd + 0.5) for name, crowd in crowds.items()}
    least, most = min(raw.values(), default=0), max(raw.values(), default=0)
    return {name: 100 * (most + least - one) // most if most else 100 for name, one in raw.items()}


def node_prefer_avoid_pods(cluster: PlainCluster, pod: Pod, feasible: Sequence[str]) -> Scores | None:
    """Nothing where the node's avoid list names the pod's controller, all elsewhere; or no list names it."""
    owners = {one.uid for one in pod.metadata.owner_references if one.controller}
    avoided = set()
    for name, node in cluster.nodes.items():
        text = node.metadata.annotations.get("scheduler.alpha.kubernetes.io/preferAvoidPods")
        entries = json.loads(text)["preferAvoidPods"] if text else []
        if owners & {entry["podSignature"]["podController"]["uid"] for entry in entries}:
            avoided.add(name)
    return {name: 0 if name in avoided else 100 for name in feasible} if avoided else None


SCORES: dict[str, Score] = {
    "TaintToleration": taint_toleration,
    "NodeAffinity": node_affinity,
    "NodeResourcesFit": resources_by(least_allocated, {"cpu": 1, "memory": 1}),
    "NodeResourcesBalancedAllocation": balanced_allocation,
    "ImageLocality": image_locality,
    "InterPodAffinity": inter_pod_affinity,
    "PodTopologySpread": pod_topology_spread,
    "NodePreferAvoidPods": node_prefer_avoid_pods,
}
