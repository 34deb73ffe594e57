"""All that a plugin of a scheduler may use: the extension points, what they are shown, and what they answer.

A plugin is a class with a `name` and the methods of the points where it takes part; no base class is needed. It is
made once for each profile, with a `PluginContext` or with nothing. What is not named here may change from one version
to the next. `docs/tutorial-plugins.md` builds three plugins; here is the whole of one, handed over in process:

    >>> import podium
    >>> from podium.plugin import NodeView, PodRecord, CycleState, Status, SUCCESS, unschedulable
    >>> class NoSpot:
    ...     name = "NoSpot"
    ...     def filter(self, state: CycleState, pod: PodRecord, node: NodeView) -> Status:
    ...         return unschedulable("node(s) were spot") if "spot" in node.labels else SUCCESS
    >>> cluster = podium.load("cluster.json", plugins=[NoSpot])  # doctest: +SKIP

In a file a configuration names the class by its place, `module:Class`.

Extension points, in the order in which a pod meets them: `PreEnqueuePlugin`, `QueueSortPlugin`, `PreFilterPlugin` (with
`PodChangePlugin`), `FilterPlugin` or `ArrayFilterPlugin` (or `OneRowFilterPlugin`), `PostFilterPlugin`,
`PreScorePlugin`, `ScorePlugin` or `ArrayScorePlugin`, `NormalizePlugin`, `ReservePlugin`, `PermitPlugin`,
`PreBindPlugin`, `BindPlugin`, `PostBindPlugin`. `EnqueuePlugin` says what wakes a pod that the plugin turned down.

What they are shown:

- `PodRecord`: a pod. `key` is `namespace/name`; `labels`, `annotations`, `priority`, `spec`, `controller`;
  `pod_class.requests` has what it requests: amounts by the number of the resource (below).
- `NodeView`, in the simple form: `name`, `labels`, `node` (the object), `pods` on it, and `allocatable` and
  `requested`, amounts by the resource's name, 0 for one that nobody names.
- `View`, in the array form: some rows of the cluster; every method answers with arrays whose last axis is `[n]`, one
  entry for each of `rows`.
- `Cluster` (not `podium.Cluster`): the columns behind both. `nodes` has a row for each node, `placed` the pods on nodes
  by uid. It changes between attempts, and is not to be changed or kept by a plugin.

Amounts are 64-bit integers: `cpu` in thousandths, everything else in whole units (memory in bytes).

The row of a resource: `cluster.nodes.allocatable` and `.requested` are tables `[resources, rows]`. The number of a
resource is `cluster.nodes.resource_index[name]`; `CPU`, `MEMORY` and `EPHEMERAL_STORAGE` always have the same ones,
others come and go with those who name them, so ask in each call, and take a name that is not there for 0 everywhere:

    >>> import numpy as np
    >>> def free(view: View, resource: str) -> Int64s:
    ...     number = view.cluster.nodes.resource_index.get(resource)
    ...     if number is None:
    ...         return np.zeros(len(view), dtype=np.int64)
    ...     return view.allocatable(number) - view.requested(number)

Rows of nodes that have gone stay free until others come (`cluster.nodes.present`); what is answered for them does not
matter. The column of a label is `view.codes(key)`: 0 where a node lacks it, otherwise the place of the value in
`cluster.nodes.labels(key).values`.

What they answer: a `Status` (`SUCCESS`, `SKIP`, `unschedulable(...)`, `unresolvable(...)`), `Verdicts` for all rows at
once, integers as scores, 0 to `MAX_NODE_SCORE` in the end. `Scope` says what an answer depends on, and so when it may
be kept. What a plugin raises fails the attempt, with an error that names its file and line.

Policies of a rescheduler are told in `podium.policy`.
"""

from podium.api.errors import InputError, PodiumError
from podium.cluster.arrays import Bools, Int32s, Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.node_view import NodeView
from podium.cluster.nodes import CPU, EPHEMERAL_STORAGE, MEMORY, NodeColumns
from podium.cluster.pod_class import PodClass
from podium.cluster.pods import NO_ROW, NOT_STARTED_NS, PodRecord
from podium.cluster.view import View
from podium.framework.cycle_state import CycleState
from podium.framework.events import ActionType, ClusterEvent, EventResource, EventToRegister
from podium.framework.handle import Handle
from podium.framework.plugin import (
    MAX_NODE_SCORE,
    ArrayFilterPlugin,
    ArrayScorePlugin,
    BindPlugin,
    EnqueuePlugin,
    FilterPlugin,
    NormalizePlugin,
    OneRowFilterPlugin,
    PermitPlugin,
    PermitResult,
    Plugin,
    PluginContext,
    PodChangePlugin,
    PostBindPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    Scope,
    ScorePlugin,
)
from podium.framework.scoring import default_normalize
from podium.framework.settings.arguments import Arguments, read_arguments
from podium.framework.status import SKIP, SUCCESS, Code, Status, unresolvable, unschedulable
from podium.framework.verdicts import Outcome, Verdicts
from podium.plugins.default_preemption import DefaultPreemption

__all__ = [
    "CPU",
    "EPHEMERAL_STORAGE",
    "MAX_NODE_SCORE",
    "MEMORY",
    "NOT_STARTED_NS",
    "NO_ROW",
    "SKIP",
    "SUCCESS",
    "ActionType",
    "Arguments",
    "ArrayFilterPlugin",
    "ArrayScorePlugin",
    "BindPlugin",
    "Bools",
    "Cluster",
    "ClusterEvent",
    "Code",
    "CycleState",
    "DefaultPreemption",
    "EnqueuePlugin",
    "EventResource",
    "EventToRegister",
    "FilterPlugin",
    "Handle",
    "InputError",
    "Int32s",
    "Int64s",
    "NodeColumns",
    "NodeView",
    "NormalizePlugin",
    "OneRowFilterPlugin",
    "Outcome",
    "PermitPlugin",
    "PermitResult",
    "Plugin",
    "PluginContext",
    "PodChangePlugin",
    "PodClass",
    "PodRecord",
    "PodiumError",
    "PostBindPlugin",
    "PostFilterPlugin",
    "PostFilterResult",
    "PreBindPlugin",
    "PreEnqueuePlugin",
    "PreFilterPlugin",
    "PreFilterResult",
    "PreScorePlugin",
    "QueueSortPlugin",
    "ReservePlugin",
    "Scope",
    "ScorePlugin",
    "Status",
    "Verdicts",
    "View",
    "default_normalize",
    "read_arguments",
    "unresolvable",
    "unschedulable",
]
