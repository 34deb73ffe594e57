"""What extenders make of the candidates for preemption.

Source: pkg/scheduler/framework/preemption/preemption.go (callExtenders), pkg/scheduler/extender.go (ProcessPreemption,
convertToVictims).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.decide.preempting.costs.upstream import cost_of
from podium.decide.preempting.trial_table import CRITERIA, TrialTable, VictimLists
from podium.framework.extenders import Extender, ExtenderError, VictimIds, Victims

NO_CANDIDATE = "preemption: no candidate node for preemption"
"""What is said where extenders leave none."""


def ask_extenders(cluster: Cluster, extenders: Sequence[Extender], pod: PodRecord, table: TrialTable) -> TrialTable:
    """Let one extender after the other choose among a table's candidates, and change their victims.

    Victims are pods of the node that ``pod`` may preempt: less important ones, or as important as the most important
    victim that was proposed there; or pods of other nodes that were proposed. Raises ExtenderError where one that is
    not ignorable gives no such answer.
    """
    row_of = cluster.nodes.row_of
    victims = _proposed(cluster, table)
    for extender in extenders:
        if not victims:
            break
        try:
            victims = _agreed(cluster, extender, pod, victims)
        except ExtenderError:
            if not extender.is_ignorable:
                raise
    return _table(table, {row_of[name]: agreed for name, agreed in victims.items()})


def _proposed(cluster: Cluster, table: TrialTable) -> dict[str, Victims]:
    found = {}
    for position in table.candidates.tolist():
        pods = tuple(map(cluster.pods.record, table.victims(position)))
        found[cluster.nodes.name(int(table.rows[position]))] = Victims(pods, int(table.budget_violations[position]))
    return found


def _agreed(cluster: Cluster, extender: Extender, pod: PodRecord, victims: Mapping[str, Victims]) -> dict[str, Victims]:
    """What an extender leaves. An ignorable one that names a node without victims leaves that node out."""
    agreed: dict[str, Victims] = {}
    for name, told in sorted(extender.preempt(pod, victims).items()):
        if name not in victims:
            raise ExtenderError(f"extender {extender.name} names node {name}, which is no candidate for preemption")
        if told.uids:
            agreed[name] = _victims(cluster, extender, pod, name, victims[name], told)
        elif not extender.is_ignorable:
            raise ExtenderError(f"expected at least one victim pod on node {name!r}")
    return agreed


def _victims(
    cluster: Cluster, extender: Extender, pod: PodRecord, name: str, proposed: Victims, told: VictimIds
) -> Victims:
    most = max(pod.priority - 1, proposed.pods[0].priority)
    there = {other.uid: other for other in (*proposed.pods, *cluster.pods_on(cluster.nodes.row_of[name]))}
    for uid in told.uids:
        victim = there.get(uid)
        if victim is None:
            problem = f"claims to preempt pod (UID: {uid}) on node {name}, but the pod is not found on that node"
            raise ExtenderError(f"extender {extender.name} {problem}")
        if victim.priority > most or not victim.is_preemptible:
            problem = f"claims to preempt pod {victim.key} on node {name}, which pod {pod.key} may not preempt"
            raise ExtenderError(f"extender {extender.name} {problem}")
    pods = sorted((there[uid] for uid in set(told.uids)), key=lambda one: (-one.priority, one.start_ns, one.uid))
    return Victims(tuple(pods), max(0, told.budget_violations))


def _table(table: TrialTable, victims: Mapping[int, Victims]) -> TrialTable:
    """The trials as if these had been the only candidates, by row."""
    rows = np.array(sorted(victims), dtype=np.int64)
    agreed = [victims[row] for row in rows.tolist()]
    lengths = np.array([len(found.pods) for found in agreed], dtype=np.int64)
    slots = np.array([victim.slot for found in agreed for victim in found.pods], dtype=np.int64)
    keys = [cost_of(found.pods, found.budget_violations) for found in agreed]
    criteria = np.array(keys, dtype=np.int64).reshape(len(rows), len(CRITERIA)).T
    lists = VictimLists(rows, np.concatenate([[0], np.cumsum(lengths)]), slots)
    refused = np.zeros(len(rows), dtype=np.int64)
    return replace(
        table,
        rows=rows,
        refused=refused,
        criteria=criteria,
        lists=lists,
        own_row=-1,
        limited_to=None,
        criteria_names=CRITERIA,
        violations=None,
        is_stated=False,
    )
