"""Which taints a pod's tolerations accept.

Source: component-helpers/scheduling/corev1 (ToleratesTaint, FindMatchingUntoleratedTaint).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from podium.api.node import Taint
from podium.api.pod import Toleration
from podium.cluster.arrays import Bools
from podium.cluster.view import View

UNSCHEDULABLE_TAINT = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
KEEPS_OFF = ("NoSchedule", "NoExecute")


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether one toleration accepts one taint."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == taint.value
        case "Exists":
            return True
        case _:
            return False


def tolerated(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Whether any of the tolerations accepts the taint."""
    return any(tolerates(toleration, taint) for toleration in tolerations)


def kept_off(tolerations: tuple[Toleration, ...], view: View) -> Bools:
    """``[n]``: nodes with a NoSchedule or NoExecute taint that the tolerations do not accept."""
    groups = view.cluster.nodes.taint_groups
    table = np.fromiter(
        (any(taint.effect in KEEPS_OFF and not tolerated(tolerations, taint) for taint in taints) for taints in groups),
        dtype=np.bool_,
        count=len(groups),
    )
    refused: Bools = table[view.take(view.cluster.nodes.taint_group)]
    return refused
