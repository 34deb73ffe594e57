"""SpreadDuplicates: pods of one owner leave nodes that have several of them for nodes that have fewer.

Source: kubernetes-sigs/descheduler, pkg/framework/plugins/removeduplicates.
"""

from __future__ import annotations

from collections.abc import Sequence

from podium.cluster.pods import PodRecord
from podium.framework.plugin import PluginContext
from podium.framework.rescheduling.picture import Picture
from podium.framework.settings.arguments import Arguments, read_arguments
from podium.plugins.rescheduling.demands.demand_policy import DemandPolicy
from podium.plugins.rescheduling.demands.demands import Demands
from podium.plugins.rescheduling.demands.owned import Owned


class SpreadDuplicatesArgs(Arguments, frozen=True, kw_only=True):
    """Arguments: ``excludeOwnerKinds``: owners of these kinds, as ``ReplicaSet``, may have their pods where they are.

    Those of DaemonSets may in any case.
    """

    exclude_owner_kinds: tuple[str, ...] = ()


class SpreadDuplicates(DemandPolicy):
    """Proposes pods of owners that have more of them on a node than its part.

    A node's part of an owner's pods is their number for each node that may take them, by labels and taints, rounded up.
    The objective is how many pods lie beyond the parts of their nodes. Nodes that take in nobody do not count.
    """

    name = "SpreadDuplicates"

    def __init__(self, context: PluginContext) -> None:
        arguments = read_arguments(context.args, SpreadDuplicatesArgs, self.name)
        super().__init__(Demands(Owned(arguments.exclude_owner_kinds)), _reason)


def _reason(picture: Picture, pod: PodRecord, complaints: Sequence[str]) -> str:
    return f"{pod.key} should leave {picture.node_name(pod.row)}: {'; '.join(complaints)}"
