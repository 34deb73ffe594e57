"""The extension points of a scheduling profile: one Protocol each.

A plugin is any object with a ``name`` and the methods of its extension points; no base class is needed. Filter and
Score have two forms. In the simple form a plugin answers for one node; in the array form it answers for all positions
of a view at once. The runner prefers the array form if a plugin has both.

Source: staging/src/k8s.io/kube-scheduler/framework/interface.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol, runtime_checkable

import msgspec

from podium.api.devices import AllocationResult, ResourceClaim
from podium.api.meta import Raw
from podium.cluster.arrays import Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pod_classes import PodClass
from podium.cluster.pods import PodRecord
from podium.cluster.view import NodeView, View
from podium.framework.cache.class_cache import CellFilter, CellScore
from podium.framework.events import EventToRegister
from podium.framework.handle import CycleState, Handle, WaitingPods
from podium.framework.verdicts import Outcome, Status, Verdicts


@dataclass(frozen=True, slots=True)
class ClaimBinding:
    """A request to bind a claim to a volume, or (``volume`` "") to have one provisioned that ``node_name`` can reach.

    ``claim`` is the claim's `namespace/name` and ``uid`` its uid. ``timeout_ns`` is how long that may take, None for no
    limit; afterwards the pod returns to the queue.
    """

    claim: str
    uid: str
    volume: str
    node_name: str
    timeout_ns: int | None = None


class DeviceReservation(msgspec.Struct, frozen=True, eq=False):
    """A request to reserve a claim for devices for a pod, and to allocate it with the same write if it is unallocated.

    ``allocation`` is the allocation to write, None if the claim has one. If ``made`` is given, the claim is created
    first; the pod's status then records which of its requests serve which extended resources, by ``mappings``.
    """

    claim: str
    uid: str
    allocation: Raw | None = None
    made: Raw | None = None
    mappings: tuple[Raw, ...] = ()
    timeout_ns: int | None = None


class ClaimRelease(msgspec.Struct, frozen=True):
    """A request to deallocate a claim that only the pod uses; one made for its extended resources is deleted."""

    claim: str
    uid: str


@runtime_checkable
class DeviceGiver(Protocol):
    """A plugin that finds devices for claims at Filter."""

    def allocations(self, state: CycleState, node_name: str) -> list[tuple[ResourceClaim, AllocationResult]]:
        """Return the allocations that the pod's unallocated claims would get on a node that passed the filters."""


MAX_NODE_SCORE = 100

FitsRow = Callable[[PodRecord, int], bool]
"""Returns whether a pod of a fixed class fits the node in a row."""
ScoreRow = Callable[[PodRecord, int], int]
"""Returns the score of the node in a row for a pod of a fixed class."""


class Scope(Enum):
    """The data that a filter's or score's answer for a row depends on, which decides how the runner caches it.

    NODE: the node object and the pod's class. ROW: also the pods on that node. CLUSTER: anything. A plugin in the array
    form has an attribute ``scope``, one of these or its value; a plugin in the simple form may have it, and is CLUSTER
    otherwise. Cached answers are computed for every node, even if the pod does not fit there.
    """

    # See `podium.framework.plugin`.
    __hash__ = object.__hash__

    NODE = "node"
    ROW = "row"
    CLUSTER = "cluster"


def is_own(plugin: object) -> bool:
    """Return whether a plugin is one of Podium's. Answers of others are checked, so they are called in fewer ways."""
    return type(plugin).__module__.startswith("podium.")


class Plugin(Protocol):
    """The members that all plugins share."""

    @property
    def name(self) -> str: ...


class StatelessPlugin:
    """The base of in-tree plugins without arguments and state."""

    def __init__(self, context: PluginContext) -> None:
        pass


@runtime_checkable
class PreEnqueuePlugin(Plugin, Protocol):
    """Holds pods out of the active queue. Any status but success gates the pod."""

    def pre_enqueue(self, pod: PodRecord) -> Status: ...


@runtime_checkable
class QueueSortPlugin(Plugin, Protocol):
    """Orders the active queue. ``queued_ns`` is when the pod entered the queue for this attempt.

    The smallest key goes first; keys of one plugin must be comparable. The queue breaks ties by the pod's key.
    """

    def sort_key(self, pod: PodRecord, queued_ns: int) -> tuple[int, ...]: ...


@dataclass(frozen=True, slots=True)
class PreFilterResult:
    """A PreFilter's result. ``node_names`` None accepts all nodes; otherwise only these are considered further."""

    status: Status
    node_names: frozenset[str] | None = None


@runtime_checkable
class PreFilterPlugin(Plugin, Protocol):
    """Prepares Filter once per attempt, rejects the pod, or skips its own Filter, before nodes are filtered."""

    def pre_filter(self, state: CycleState, pod: PodRecord, cluster: Cluster) -> PreFilterResult | Status: ...


@runtime_checkable
class PodChangePlugin(Plugin, Protocol):
    """Updates the PreFilter state while preemption tries a node with other pods added or removed.

    Called on a cloned state, once for each pod that is added to or removed from ``node``, in order; ``node`` shows it
    with all of these changes.
    """

    def add_pod(self, state: CycleState, pod: PodRecord, added: PodRecord, node: NodeView) -> None: ...

    def remove_pod(self, state: CycleState, pod: PodRecord, removed: PodRecord, node: NodeView) -> None: ...


@runtime_checkable
class FilterPlugin(Plugin, Protocol):
    """Decides whether a node can take the pod (simple form). It may state a `Scope`."""

    def filter(self, state: CycleState, pod: PodRecord, node: NodeView) -> Status: ...


@runtime_checkable
class ArrayFilterPlugin(Plugin, Protocol):
    """Decides which nodes can take the pod (array form). Answers for free rows are ignored.

    The view may consist of what-if views: read pods through its methods only, never from the cluster. ``scope`` must be
    constant. Answers in the scopes NODE and ROW are cached for the pod's class: a code must keep its meaning from one
    call to the next. A plugin with a true attribute ``after_others`` is called only for positions that no earlier
    filter rejected.
    """

    @property
    def scope(self) -> Scope: ...

    def filter_rows(self, state: CycleState, pod: PodRecord, view: View) -> Verdicts: ...


@runtime_checkable
class OneRowFilterPlugin(ArrayFilterPlugin, Protocol):
    """An array filter of scope ROW that also answers for one row, with the code that `filter_rows` returns for it.

    ``gone`` are pods on the row, ``joined`` others: it answers as if the latter were there and the former were not.
    `explain` turns codes into reasons, like `Verdicts.status`. Single rows that change are thus evaluated without
    arrays.
    """

    def filter_row(self, pod: PodRecord, row: int, gone: Sequence[PodRecord], joined: Sequence[PodRecord]) -> int: ...

    def explain(self, pod: PodRecord) -> Callable[[int], Status]: ...


@runtime_checkable
class RowFilterPlugin(ArrayFilterPlugin, Protocol):
    """An array filter of scope ROW that can also check a single row of the live cluster.

    It agrees with `filter_rows`, without arrays: after one pod is placed, one row has changed. It returns a function
    for a class of pods, which is valid as long as the class exists. This form, and those for classes and cells below,
    are used for Podium's own plugins only (`is_own`).
    """

    def row_filter(self, pod_class: PodClass) -> FitsRow: ...


@runtime_checkable
class ClassFilterPlugin(PreFilterPlugin, Protocol):
    """Knows classes of pods that its PreFilter skips, whatever else is in the cluster.

    It is then not called at PreFilter.
    """

    def never_filters(self, pod_class: PodClass) -> bool: ...


class PostFilterResult(msgspec.Struct, frozen=True):
    """The proposal of a PostFilter plugin. ``plan`` is a value with all details, None for plugins that make none.

    ``nominated_node`` None leaves the pod's nomination unchanged, "" clears it. Victims need SUCCESS and a node, in
    ``nominated_node`` or ``binds_to``; the scheduler refuses others. A plugin returns SUCCESS for a proposal,
    UNSCHEDULABLE to let the next plugin try, UNSCHEDULABLE_AND_UNRESOLVABLE if none need try, and ERROR if it
    fails. ``answers`` is filled in by `decide.post_filter` with the answer of each plugin that was called. ``retry_ns``
    is when the pod deserves another attempt even if nothing else happens, None if time alone does not help.
    ``releases`` are claims to deallocate. ``evicts``: the victims are evicted, which budgets may refuse; otherwise they
    are deleted. ``binds_to`` is a node to bind the pod to at once although it has no room yet: its kubelet holds the
    pod until there is. ``binds_first``: do that as soon as the victims' deletions have begun. ``waits_for`` names
    plugins, such as the one that answers, whose registered events wake the pod as well (`EnqueuePlugin`); the events of
    the plugins that rejected the nodes always do.
    """

    status: Status
    nominated_node: str | None = None
    victims: tuple[PodRecord, ...] = ()
    plan: Any = None
    answers: tuple[Status, ...] = ()
    retry_ns: int | None = None
    releases: tuple[ClaimRelease, ...] = ()
    evicts: bool = False
    binds_to: str = ""
    binds_first: bool = False
    waits_for: tuple[str, ...] = ()


@runtime_checkable
class PostFilterPlugin(Plugin, Protocol):
    """Looks for a solution if no node fits; it proposes, and the scheduler executes.

    ``handle`` is its interface to the scheduler, ``outcome`` the Filter plugins' verdict for each row.
    """

    def post_filter(
        self, state: CycleState, pod: PodRecord, handle: Handle, cluster: Cluster, outcome: Outcome
    ) -> PostFilterResult: ...


@runtime_checkable
class NominationPlugin(PostFilterPlugin, Protocol):
    """A PostFilter plugin that decides from which pods its nominated pods keep the capacity that they wait for.

    Without one, a nominated pod keeps capacity from pods of at most its own priority, which suits only preemption by
    priority. ``nominated`` is a pod of the plugin's own profile, ``pod`` one of any profile of the scheduler. Return
    True if ``pod`` must leave the capacity to ``nominated``. At most one PostFilter plugin of a profile may have this
    method.
    """

    def holds_room(self, nominated: PodRecord, pod: PodRecord) -> bool: ...


@runtime_checkable
class PreScorePlugin(Plugin, Protocol):
    """Prepares Score once per attempt; ``feasible`` shows the nodes that passed.

    A plugin with a true attribute ``needs_pre_score`` fails at Score in a profile that enables it there and not at
    PreScore.
    """

    def pre_score(self, state: CycleState, pod: PodRecord, feasible: View) -> Status: ...


@runtime_checkable
class ScorePlugin(Plugin, Protocol):
    """Scores a node (simple form); higher is better. Raw scores are integers of any size.

    It may state a `Scope`.
    """

    def score(self, state: CycleState, pod: PodRecord, node: NodeView) -> int: ...


@runtime_checkable
class ArrayScorePlugin(Plugin, Protocol):
    """Scores nodes (array form): ``[n]`` raw scores for the positions of a view."""

    @property
    def scope(self) -> Scope: ...

    def score_rows(self, state: CycleState, pod: PodRecord, view: View) -> Int64s: ...


@runtime_checkable
class RowScorePlugin(ArrayScorePlugin, Protocol):
    """An array score of scope ROW that also scores one row of the live cluster, with the result of `score_rows`.

    It returns a function for a class of pods, which is valid as long as the class exists.
    """

    def row_score(self, pod_class: PodClass) -> ScoreRow: ...


@runtime_checkable
class ClassScorePlugin(PreScorePlugin, Protocol):
    """Knows for classes of pods whether its PreScore skips them, whatever else is in the cluster.

    If it does not, its PreScore returns SUCCESS and prepares nothing.
    """

    def never_scores(self, pod_class: PodClass) -> bool: ...


@runtime_checkable
class NormalizePlugin(Plugin, Protocol):
    """Maps raw scores of the feasible nodes to 0..100. Without it raw scores must be in that range."""

    def normalize(self, state: CycleState, pod: PodRecord, scores: Int64s, feasible: View) -> Int64s: ...


@runtime_checkable
class RangeNormalizePlugin(NormalizePlugin, Protocol):
    """Normalizes a raw score by the lowest and the highest one of the feasible nodes only."""

    def normalize_within(self, raw: int, lowest: int, highest: int) -> int: ...


@runtime_checkable
class CellFilterPlugin(ArrayFilterPlugin, Protocol):
    """A filter of scope CLUSTER that gives groups of rows one answer (see `podium.framework.cache.class_cache`).

    Returns None if it does not, or not now.
    """

    def filter_cells(self, pod: PodRecord) -> CellFilter | None: ...


@runtime_checkable
class CellScorePlugin(ArrayScorePlugin, Protocol):
    """A score of scope CLUSTER that gives groups of rows one answer (see `podium.framework.cache.class_cache`).

    Returns None if it does not, or not now.
    """

    def score_cells(self, pod: PodRecord) -> CellScore | None: ...


@runtime_checkable
class ReservePlugin(Plugin, Protocol):
    """Reserves resources of the node for the pod, and releases them if a later step fails. `unreserve` never fails.

    A plugin whose class has a true attribute ``needs_state`` is not called from here to PreBind for a pod for which it
    left nothing in the state under its name. The attribute does not apply to subclasses.
    """

    def reserve(self, state: CycleState, pod: PodRecord, node_name: str) -> Status: ...

    def unreserve(self, state: CycleState, pod: PodRecord, node_name: str) -> None: ...


@dataclass(frozen=True, slots=True)
class PermitResult:
    """Success, a rejection, or WAIT for at most ``timeout_ns``."""

    status: Status
    timeout_ns: int = 0


@runtime_checkable
class PermitPlugin(Plugin, Protocol):
    """Allows, rejects or delays the binding."""

    def permit(self, state: CycleState, pod: PodRecord, node_name: str) -> PermitResult | Status: ...


@runtime_checkable
class PreBindPlugin(Plugin, Protocol):
    """Requests that claims are bound before the pod; the binding waits until that is done."""

    def pre_bind(
        self, state: CycleState, pod: PodRecord, node_name: str
    ) -> Sequence[ClaimBinding | DeviceReservation] | Status: ...


@runtime_checkable
class PreparingPlugin(Plugin, Protocol):
    """Reports whether what its PreBind requested is ready: SUCCESS, WAIT for at most the timeout, or an error.

    It is called once everything requested is done, again when volumes or their claims change, and periodically;
    `give_up` reports the timeout, and returns what that means for the pod.
    """

    def prepared(self, state: CycleState, pod: PodRecord, node_name: str) -> PermitResult: ...

    def give_up(self, state: CycleState, pod: PodRecord, node_name: str) -> Status: ...


@runtime_checkable
class BindPlugin(Plugin, Protocol):
    """Decides how the pod is bound: SUCCESS binds it through the API, SKIP leaves it to the next plugin."""

    def bind(self, state: CycleState, pod: PodRecord, node_name: str) -> Status: ...


@runtime_checkable
class PostBindPlugin(Plugin, Protocol):
    """Receives a notification that the pod was bound."""

    def post_bind(self, state: CycleState, pod: PodRecord, node_name: str) -> None: ...


@runtime_checkable
class EnqueuePlugin(Plugin, Protocol):
    """Names the events after which a pod that this plugin rejected deserves another attempt."""

    def events_to_register(self) -> Sequence[EventToRegister]: ...


@dataclass(frozen=True, slots=True)
class PluginContext:
    """The arguments of a plugin's constructor.

    ``args`` come from the configuration and are checked by the plugin itself; ``cluster`` is read-only;
    ``waiting_pods`` are the pods that Permit plugins hold; ``seed`` is for choices that should look random but repeat;
    ``is_sampling`` if kube-scheduler's limits on the nodes to examine apply (`podium.decide.placement`).
    """

    args: Mapping[str, Any]
    cluster: Cluster
    waiting_pods: WaitingPods = field(default_factory=WaitingPods)
    seed: int = 0
    is_sampling: bool = False
