"""TaintToleration: tainted nodes keep off pods that do not tolerate the taint, or are liked less.

Source: pkg/scheduler/framework/plugins/tainttoleration/taint_toleration.go.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from podium.cluster.arrays import Bools, Int64s
from podium.cluster.pod_class import PodClass
from podium.cluster.pods import PodRecord
from podium.cluster.taints import KEEPS_OFF, kept_off, tolerated
from podium.cluster.view import View
from podium.framework.cycle_state import CycleState
from podium.framework.events import ActionType, ClusterEvent, EventResource, EventToRegister
from podium.framework.plugin import MAX_NODE_SCORE, PluginContext, Scope
from podium.framework.scoring import default_normalize
from podium.framework.status import SUCCESS, Status, unresolvable
from podium.framework.verdicts import Verdicts

_REFUSAL = unresolvable("node(s) had untolerated taint(s)")


class TaintToleration:
    """Filters by NoSchedule and NoExecute taints, scores by PreferNoSchedule ones."""

    name = "TaintToleration"
    scope = Scope.NODE
    needs_pre_score = True

    def __init__(self, context: PluginContext) -> None:
        pass

    def filter_rows(self, state: CycleState, pod: PodRecord, view: View) -> Verdicts:
        """Refuse nodes with a taint that the pod does not tolerate."""
        return Verdicts.where(self.refused(pod.pod_class, view), _REFUSAL)

    def refused(self, pod_class: PodClass, view: View) -> Bools:
        """`[n]`: the nodes that `filter_rows` refuses."""
        return kept_off(pod_class.spec.tolerations, view)

    def pre_score(self, state: CycleState, pod: PodRecord, feasible: View) -> Status:
        """Every pod is rated."""
        return SUCCESS

    def never_scores(self, pod_class: PodClass) -> bool:
        """None."""
        return False

    def score_rows(self, state: CycleState, pod: PodRecord, view: View) -> Int64s:
        """Count the PreferNoSchedule taints that the pod does not tolerate."""
        tolerations = [t for t in pod.spec.tolerations if t.effect in ("", "PreferNoSchedule")]
        counts = np.array(
            [
                sum(taint.effect == "PreferNoSchedule" and not tolerated(tolerations, taint) for taint in taints)
                for taints in view.cluster.nodes.taint_groups
            ],
            dtype=np.int64,
        )
        scores: Int64s = counts[view.take(view.cluster.nodes.taint_group)]
        return scores

    def normalize(self, state: CycleState, pod: PodRecord, scores: Int64s, feasible: View) -> Int64s:
        """The fewer such taints the better."""
        return default_normalize(scores, reverse=True)

    def normalize_within(self, raw: int, lowest: int, highest: int) -> int:
        """The same for one score."""
        return MAX_NODE_SCORE - (MAX_NODE_SCORE * raw // highest if highest else 0)

    def events_to_register(self) -> Sequence[EventToRegister]:
        """A node may come or lose taints, or the pod may learn to tolerate."""
        return (
            EventToRegister(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT, _is_tolerated),
            EventToRegister(EventResource.POD, ActionType.UPDATE_POD_TOLERATION),
        )


def _is_tolerated(pod: PodRecord, event: ClusterEvent) -> bool:
    taints = event.new.spec.taints if event.new is not None else ()
    return all(taint.effect not in KEEPS_OFF or tolerated(pod.spec.tolerations, taint) for taint in taints)
