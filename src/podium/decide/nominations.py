"""Which nominations give way to a more important pod.

Source: pod-preemption.md, "Changes to the preemption workflow": when a pod is nominated, lower nominations on its node
are looked at again. kube-scheduler clears all of them (framework/preemption/executor.go,
getLowerPriorityNominatedPods); the design clears those that no longer fit.
"""

from __future__ import annotations

from collections.abc import Mapping

from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.decide.fitting import fits_without
from podium.framework.errors import PluginError
from podium.framework.runner import Runner


def lower_nominations(cluster: Cluster, node_name: str, priority: int) -> list[PodRecord]:
    """The pods nominated to a node with less than ``priority``, highest first."""
    nominations = cluster.nominations
    return [pod for pod in nominations.on(node_name) if nominations.priority(pod) < priority]


def unfit_nominations(
    cluster: Cluster, runners: Mapping[str, Runner], node_name: str, priority: int, leaving: frozenset[str]
) -> list[PodRecord]:
    """The pods nominated to a node with less than ``priority`` that no longer fit there, highest priority first.

    Pods of ``leaving`` (uids), and pods that were preempted and are terminating, count as gone. A pod found unfit makes
    no claim on the node when those below it are looked at. A pod over which a plugin fails keeps its nomination: its
    own attempt will tell. Nothing is ended here: that is for who asked.
    """
    nominations, lower = cluster.nominations, lower_nominations(cluster, node_name, priority)
    row = cluster.nodes.row_of.get(node_name)
    if row is None:
        return lower
    unfit: list[PodRecord] = []
    victims = dict(nominations.victims())
    try:
        for pod in lower:
            if not _may_fit(runners[pod.scheduler_name], pod, row, leaving):
                unfit.append(pod)
                nominations.remove(pod.uid)
    finally:
        for pod in unfit:
            nominations.put(pod, node_name, victims.get(pod.uid, ()))
    return unfit


def _may_fit(runner: Runner, pod: PodRecord, row: int, leaving: frozenset[str]) -> bool:
    others = runner.cluster.pods_on(row)
    gone = [other for other in others if other.uid in leaving or (other.terminating and other.preempted)]
    try:
        return fits_without(runner, pod, row, gone)
    except PluginError:
        return True
