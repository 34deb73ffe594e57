"""A pod that has a node: what would be decided about it now, and which pending pods could take its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from podium.api.policy import NEVER_PREEMPTS
from podium.app.explaining.explanation import Explanation, Placed, Taker
from podium.cluster.cluster import Cluster
from podium.cluster.pods import NOT_STARTED_NS, PodRecord
from podium.framework.runner import Runner
from podium.plugins.default_preemption import DefaultPreemption

MOST_ASKED = 100
"""So many pending pods that differ are asked whether they would preempt a placed one."""

Decide = Callable[[Runner, PodRecord], Explanation]


def explain_placed(
    runner: Runner, record: PodRecord, pending: Sequence[PodRecord], runners: Mapping[str, Runner], decide: Decide
) -> Explanation:
    """Say why a pod is where it is, where it would go if evicted, and who of those pending could take its place.

    What was decided when it was placed is not known; what would be decided now, were it not there, is.
    """
    takers, further = _takers(record, pending, runners, decide)
    as_decided = partial(_without, runner.cluster, record)
    with as_decided():
        waiting = record.without_node(terminating=False)
        then = decide(runner, waiting)
        # What is written out when somebody looks at it is about the cluster as it is here.
        nodes, scores, totals = dict(then.nodes), dict(then.scores), dict(then.totals)
        devices = replace(then.devices, claims=dict(then.devices.claims))
    found = Placed(
        node=record.node_name,
        then=then.outcome,
        then_node=then.node,
        by="kubelet" if record.is_mirror else "scheduler",
        since_ns=None if record.start_ns == NOT_STARTED_NS else record.start_ns,
        controller=_controller(record),
        rank=_rank(totals, then.best, record.node_name),
        takers=takers,
        further=further,
        budgets=_budgets(runner.cluster, record),
    )
    return replace(
        then,
        outcome="placed",
        node=record.node_name,
        nodes=nodes,
        scores=scores,
        totals=totals,
        devices=devices,
        placed=found,
        as_decided=as_decided,
    )


def may_take_from(runners: Mapping[str, Runner], pod: PodRecord, priority: int) -> bool:
    """Whether the pod may preempt others of that priority: a lower one, or its own where its scheduler allows that."""
    if pod.priority == priority:
        return pod.preemption_policy not in NEVER_PREEMPTS and takes_from_equals(runners.get(pod.scheduler_name))
    return pod.priority > priority and pod.preemption_policy not in NEVER_PREEMPTS


def takes_from_equals(runner: Runner | None) -> bool:
    """Whether pods of a scheduler may preempt others of equal priority."""
    plugins = () if runner is None else runner.profile.post_filter
    return any(isinstance(plugin, DefaultPreemption) and plugin.takes_from_equals for plugin in plugins)


@contextmanager
def _without(cluster: Cluster, record: PodRecord) -> Iterator[None]:
    """The cluster as it is without a pod."""
    cluster.remove_pod(record.uid)
    try:
        yield
    finally:
        cluster.add_pod(record)


def _takers(
    record: PodRecord, pending: Sequence[PodRecord], runners: Mapping[str, Runner], decide: Decide
) -> tuple[tuple[Taker, ...], int]:
    """The pending pods that would preempt the pod, or might, the most important first; and how many were not asked.

    Pods that differ in nothing that counts are asked once.
    """
    if not record.is_preemptible or record.is_mirror:
        return (), 0
    above = (pod for pod in pending if may_take_from(runners, pod, record.priority))
    found: list[Taker] = []
    answers: dict[tuple[object, ...], bool | None] = {}
    further = 0
    for pod in sorted(above, key=lambda pod: (-pod.priority, pod.key)):
        runner = runners.get(pod.scheduler_name)
        if runner is None or pod.gates:
            continue
        kind = (pod.pod_class, pod.priority, pod.preemption_policy, pod.scheduler_name, pod.nominated_node_name)
        if kind not in answers:
            if len(answers) == MOST_ASKED:
                further += 1
                continue
            answers[kind] = _takes(decide(runner, pod), record)
        is_chosen = answers[kind]
        if is_chosen is not None:
            found.append(Taker(pod, is_chosen))
    return tuple(found), further


def _takes(explanation: Explanation, record: PodRecord) -> bool | None:
    """Whether the pod would go for the explained one: true now, false on a node that is not the best; None: never."""
    plan = explanation.plan
    if plan is None:
        return None
    if plan.chosen is not None and any(victim.uid == record.uid for victim in plan.chosen.victims):
        return True
    found = [candidate] if (candidate := plan.candidates.get(record.node_name)) else []
    # Victims may be on other nodes than the one that the pod would take.
    candidates = found if plan.search is None else plan.candidates.values()
    return False if any(victim.uid == record.uid for each in candidates for victim in each.victims) else None


def _controller(record: PodRecord) -> str:
    """Who makes the pod again."""
    controller = record.controller
    return "" if controller is None else f"{controller.kind} {record.namespace}/{controller.name}"


def _rank(totals: Mapping[str, int], best: Sequence[str], node: str) -> int | None:
    """The node's place by score, 1 for the best."""
    if not totals:
        return 1 if node in best else None
    return None if node not in totals else 1 + sum(total > totals[node] for total in totals.values())


def _budgets(cluster: Cluster, record: PodRecord) -> tuple[tuple[str, int], ...]:
    """The budgets that cover the pod, with how many disruptions each allows now."""
    covering = cluster.budgets.covering([record.pod_class])
    return tuple(sorted((budget.key, budget.disruptions_allowed) for budget in covering))
