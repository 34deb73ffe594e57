"""The API for scheduler plugins: extension points, their inputs, and their results.

A plugin is a class with a `name` and the methods of the extension points that it implements; no base class is needed.
It is instantiated once for each profile, with a `PluginContext` or without arguments. Names that are not listed here
may change between versions. `docs/tutorial-plugins.md` builds three plugins; this is a complete one, passed in process:

    >>> import podium
    >>> from podium.plugin import NodeView, PodRecord, CycleState, Status, SUCCESS, unschedulable
    >>> class NoSpot:
    ...     name = "NoSpot"
    ...     def filter(self, state: CycleState, pod: PodRecord, node: NodeView) -> Status:
    ...         return unschedulable("node(s) were spot") if "spot" in node.labels else SUCCESS
    >>> cluster = podium.load("cluster.json", plugins=[NoSpot])  # doctest: +SKIP

In a file a configuration names the class as `module:Class`.

Extension points, in order: `PreEnqueuePlugin`, `QueueSortPlugin`, `PreFilterPlugin` (with `PodChangePlugin`),
`FilterPlugin` or `ArrayFilterPlugin` (or `OneRowFilterPlugin`), `PostFilterPlugin`, `PreScorePlugin`, `ScorePlugin` or
`ArrayScorePlugin`, `NormalizePlugin`, `ReservePlugin`, `PermitPlugin`, `PreBindPlugin`, `BindPlugin`, `PostBindPlugin`.
`EnqueuePlugin` lists the events that requeue a pod which the plugin rejected, and `NominationPlugin` the pods from
which a nominated pod keeps its room.

Inputs:

- `PodRecord`: a pod. `key` is `namespace/name`; `labels`, `annotations`, `priority`, `spec`, `controller`;
  `pod_class.requests` has its requests by resource index (below).
- `NodeView`, in the simple form: `name`, `labels`, `node` (the object), `pods` on it, and `allocatable` and
  `requested`, amounts by resource name, 0 for missing ones.
- `View`, in the array form: some rows of the cluster; methods return arrays whose last axis is `[n]`, one entry for
  each of `rows`.
- `Cluster` (not `podium.Cluster`): the columns behind both. `nodes` has a row for each node, `placed` the pods on nodes
  by uid. It changes between attempts; plugins must not modify or keep it.

Amounts are 64-bit integers: `cpu` in thousandths, everything else in whole units (memory in bytes).

`cluster.nodes.allocatable` and `.requested` are tables `[resources, rows]`. The index of a resource is
`cluster.nodes.resource_index[name]`; `CPU`, `MEMORY` and `EPHEMERAL_STORAGE` have fixed indices, others may change.
Look them up in each call, and treat a missing name as 0 everywhere:

    >>> import numpy as np
    >>> def free(view: View, resource: str) -> Int64s:
    ...     number = view.cluster.nodes.resource_index.get(resource)
    ...     if number is None:
    ...         return np.zeros(len(view), dtype=np.int64)
    ...     return view.allocatable(number) - view.requested(number)

Rows of removed nodes stay free until they are reused (`cluster.nodes.present`); results for them are ignored. The
column of a label is `view.codes(key)`: 0 for nodes without the label, otherwise the index of the value in
`cluster.nodes.labels(key).values`.

Results: a `Status` (`SUCCESS`, `SKIP`, `unschedulable(...)`, `unresolvable(...)`), `Verdicts` for all rows at once, and
integer scores, from 0 to `MAX_NODE_SCORE` after normalization. `Scope` says what a result depends on, and so how long
it may be cached. An exception of a plugin fails the attempt, with an error that names file and line.

`podium.policy` is the API for rescheduling policies.
"""

from podium.api.errors import InputError, PodiumError
from podium.cluster.arrays import Bools, Int32s, Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.nodes import CPU, EPHEMERAL_STORAGE, MEMORY, NodeColumns
from podium.cluster.pod_classes import PodClass
from podium.cluster.pods import NO_ROW, NOT_STARTED_NS, PodRecord
from podium.cluster.view import NodeView, View
from podium.framework.events import ActionType, ClusterEvent, EventResource, EventToRegister
from podium.framework.handle import CycleState, Handle
from podium.framework.plugin import (
    MAX_NODE_SCORE,
    ArrayFilterPlugin,
    ArrayScorePlugin,
    BindPlugin,
    EnqueuePlugin,
    FilterPlugin,
    NominationPlugin,
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
from podium.framework.verdicts import SKIP, SUCCESS, Code, Outcome, Status, Verdicts, unresolvable, unschedulable
from podium.plugins.default_preemption import DefaultPreemption

__all__ = ["CPU", "EPHEMERAL_STORAGE", "MAX_NODE_SCORE", "MEMORY", "NOT_STARTED_NS", "NO_ROW", "SKIP", "SUCCESS"]
__all__ += ["ActionType", "Arguments", "ArrayFilterPlugin", "ArrayScorePlugin", "BindPlugin", "Bools", "Cluster"]
__all__ += ["ClusterEvent", "Code", "CycleState", "DefaultPreemption", "EnqueuePlugin", "EventResource"]
__all__ += ["EventToRegister", "FilterPlugin", "Handle", "InputError", "Int32s", "Int64s", "NodeColumns", "NodeView"]
__all__ += ["NominationPlugin", "NormalizePlugin", "OneRowFilterPlugin", "Outcome", "PermitPlugin", "PermitResult"]
__all__ += ["Plugin", "PluginContext", "PodChangePlugin", "PodClass", "PodRecord", "PodiumError", "PostBindPlugin"]
__all__ += ["PostFilterPlugin", "PostFilterResult", "PreBindPlugin", "PreEnqueuePlugin", "PreFilterPlugin"]
__all__ += ["PreFilterResult", "PreScorePlugin", "QueueSortPlugin", "ReservePlugin", "Scope", "ScorePlugin", "Status"]
__all__ += ["Verdicts", "View", "default_normalize", "read_arguments", "unresolvable", "unschedulable"]
