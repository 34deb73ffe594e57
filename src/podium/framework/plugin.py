"""The extension points of a scheduling profile: one Protocol each.

A plugin is any object with a ``name`` and the methods of the points where it takes part; no base class is needed. At
Filter and Score there are two forms. In the simple form a plugin answers for one node; in the array form it answers for
all positions of a view at once. The runner calls the array form where a plugin has both.

Source: staging/src/k8s.io/kube-scheduler/framework/interface.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol, runtime_checkable

import msgspec

from podium.cluster.arrays import Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pod_class import PodClass
from podium.cluster.pods import PodRecord
from podium.cluster.view import NodeView, View
from podium.framework.claims import ClaimBinding, ClaimRelease, DeviceReservation
from podium.framework.cycle_state import CycleState
from podium.framework.events import EventToRegister
from podium.framework.handle import Handle
from podium.framework.kept.cells import CellFilter, CellScore
from podium.framework.status import Status
from podium.framework.verdicts import Outcome, Verdicts
from podium.framework.waiting_pods import WaitingPods

MAX_NODE_SCORE = 100

FitsRow = Callable[[PodRecord, int], bool]
"""Whether a pod, of a class that is fixed, fits the node in a row."""
ScoreRow = Callable[[PodRecord, int], int]
"""What the node in a row is worth to a pod of a class that is fixed."""
TotalOfRow = Callable[[PodRecord, int], int]
"""The sum of weighted scores of the node in a row for a pod of a class that is fixed, `NO_FIT` where it does not fit.

It is right for as long as the class lives and `podium.cluster.nodes.Entries` shows the same arrays.
"""
NO_FIT = -1


class Scope(Enum):
    """What a filter's or score's answer for a row depends on, so that the runner knows when it may keep it.

    NODE: the node object and the pod's class. ROW: also the pods on that node. CLUSTER: anything. A plugin in the array
    form has an attribute ``scope``, one of these or its value; one in the simple form may have it, and is CLUSTER
    without. What is kept is asked about every node, also where the pod does not fit.
    """

    NODE = "node"
    ROW = "row"
    CLUSTER = "cluster"


def is_own(plugin: object) -> bool:
    """Whether a plugin is one of Podium's. What others answer is checked, so they are asked in few ways."""
    return type(plugin).__module__.startswith("podium.")


class Plugin(Protocol):
    """What all plugins have."""

    @property
    def name(self) -> str: ...


@runtime_checkable
class PreEnqueuePlugin(Plugin, Protocol):
    """Holds pods out of the active queue. Anything but success gates the pod."""

    def pre_enqueue(self, pod: PodRecord) -> Status: ...


@runtime_checkable
class QueueSortPlugin(Plugin, Protocol):
    """Orders the active queue. ``queued_ns`` is when the pod entered the queue for this attempt.

    The smallest key goes first; keys of one plugin must be comparable. The queue adds the pod's key as the last word.
    """

    def sort_key(self, pod: PodRecord, queued_ns: int) -> tuple[int, ...]: ...


@dataclass(frozen=True, slots=True)
class PreFilterResult:
    """A PreFilter's answer. ``node_names`` None leaves all nodes in; otherwise only those are looked at further."""

    status: Status
    node_names: frozenset[str] | None = None


@runtime_checkable
class PreFilterPlugin(Plugin, Protocol):
    """Prepares Filter once per attempt, or turns the pod down, or skips its own Filter, before nodes are looked at."""

    def pre_filter(self, state: CycleState, pod: PodRecord, cluster: Cluster) -> PreFilterResult | Status: ...


@runtime_checkable
class PodChangePlugin(Plugin, Protocol):
    """Keeps the PreFilter state true while preemption tries a node with other pods added or removed.

    Called on a cloned state, once for each pod that joins or leaves ``node``, in order; ``node`` shows it with all of
    these changes made.
    """

    def add_pod(self, state: CycleState, pod: PodRecord, added: PodRecord, node: NodeView) -> None: ...

    def remove_pod(self, state: CycleState, pod: PodRecord, removed: PodRecord, node: NodeView) -> None: ...


@runtime_checkable
class FilterPlugin(Plugin, Protocol):
    """Says whether a node can take the pod (simple form). It may state a `Scope`."""

    def filter(self, state: CycleState, pod: PodRecord, node: NodeView) -> Status: ...


@runtime_checkable
class ArrayFilterPlugin(Plugin, Protocol):
    """Says which nodes can take the pod (array form). Free rows may be answered for in any way.

    The view may consist of worlds: read pods through its methods only, never from the cluster. ``scope`` may depend on
    nothing but the plugin. Answers in the scopes NODE and ROW are kept for the pod's class: a code must mean the same
    for it from one call to the next. A plugin with an attribute ``after_others`` that is true is asked about those
    positions alone that no filter before it refused.
    """

    @property
    def scope(self) -> Scope: ...

    def filter_rows(self, state: CycleState, pod: PodRecord, view: View) -> Verdicts: ...


@runtime_checkable
class OneRowFilterPlugin(ArrayFilterPlugin, Protocol):
    """An array filter of scope ROW that also answers for one row, with the code that `filter_rows` has for it.

    ``gone`` are pods on the row, ``joined`` others: it answers as if these were there and those were not. `explain`
    turns codes into reasons, as `Verdicts.status` does. So single rows that change are asked without arrays.
    """

    def filter_row(self, pod: PodRecord, row: int, gone: Sequence[PodRecord], joined: Sequence[PodRecord]) -> int: ...

    def explain(self, pod: PodRecord) -> Callable[[int], Status]: ...


@runtime_checkable
class RowFilterPlugin(ArrayFilterPlugin, Protocol):
    """An array filter of scope ROW that also says of one row of the cluster as it is whether the pod fits.

    It says what `filter_rows` says, without arrays: after one pod is placed, one row has changed. For a class of pods
    it gives the function that says so, which is right for as long as the class lives. This, and what is said of classes
    and cells below, is asked of Podium's own plugins alone (`is_own`).
    """

    def row_filter(self, pod_class: PodClass) -> FitsRow: ...


@runtime_checkable
class JoiningPlugin(RowFilterPlugin, Protocol):
    """Says of a row at once whether a pod fits, and what some scores rate it: who is asked often reads the row once.

    Of some scores with their weights it takes along those that it knows, and gives the others back; None where it
    knows none. ``of_nodes`` is by row what to add to its scores, negative where the pod does not fit in any case. What
    it gives must not keep the class, which ends with its pods.
    """

    def join(
        self, pod_class: PodClass, scores: Sequence[WeightedRowScore], of_nodes: memoryview
    ) -> tuple[TotalOfRow, Sequence[WeightedRowScore]] | None: ...


@runtime_checkable
class ClassFilterPlugin(PreFilterPlugin, Protocol):
    """Knows of whole classes of pods that its PreFilter skips them, whatever else there is in the cluster.

    It is then not asked at PreFilter.
    """

    def never_filters(self, pod_class: PodClass) -> bool: ...


class PostFilterResult(msgspec.Struct, frozen=True):
    """What a PostFilter proposes. ``plan`` is a value that says everything, None for plugins that make none.

    ``nominated_node`` None leaves the pod's nomination as it is, "" clears it. A plugin answers SUCCESS when it found a
    way out, UNSCHEDULABLE when the next one may try, UNSCHEDULABLE_AND_UNRESOLVABLE when none need try, and ERROR when
    it cannot tell. ``answers`` is filled in by `decide.post_filter`: what each plugin that was asked said. ``retry_ns``
    is when the pod is worth another attempt though nothing else may have happened, None where time alone will not help.
    ``releases`` are claims that are to give their devices back. ``evicts``: the victims go by eviction, which budgets
    may refuse; otherwise they are deleted. ``binds_to`` is a node that the pod is bound to at once, though it has no
    room yet: its kubelet holds the pod until it has. ``binds_first``: so that is asked for as soon as the victims'
    deletions have begun.
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


@runtime_checkable
class PostFilterPlugin(Plugin, Protocol):
    """Looks for a way out when no node fits; it proposes, and the scheduler carries out.

    ``handle`` is what it may ask the scheduler, ``outcome`` what the Filters said of each row.
    """

    def post_filter(
        self, state: CycleState, pod: PodRecord, handle: Handle, cluster: Cluster, outcome: Outcome
    ) -> PostFilterResult: ...


@runtime_checkable
class PreScorePlugin(Plugin, Protocol):
    """Prepares Score once per attempt; ``feasible`` shows the nodes that passed.

    A plugin with an attribute ``needs_pre_score`` that is true fails at Score in a profile that enables it there and
    not at PreScore.
    """

    def pre_score(self, state: CycleState, pod: PodRecord, feasible: View) -> Status: ...


@runtime_checkable
class ScorePlugin(Plugin, Protocol):
    """Rates a node (simple form); the higher the better. Raw scores are integers of any size.

    It may state a `Scope`.
    """

    def score(self, state: CycleState, pod: PodRecord, node: NodeView) -> int: ...


@runtime_checkable
class ArrayScorePlugin(Plugin, Protocol):
    """Rates nodes (array form): ``[n]`` raw scores for the positions of a view."""

    @property
    def scope(self) -> Scope: ...

    def score_rows(self, state: CycleState, pod: PodRecord, view: View) -> Int64s: ...


@runtime_checkable
class RowScorePlugin(ArrayScorePlugin, Protocol):
    """An array score of scope ROW that also rates one row of the cluster as it is, as `score_rows` does.

    For a class of pods it gives the function that does so, which is right for as long as the class lives.
    """

    def row_score(self, pod_class: PodClass) -> ScoreRow: ...


WeightedRowScore = tuple[RowScorePlugin, int]
"""A score with the weight that the profile gives it."""


@runtime_checkable
class ClassScorePlugin(PreScorePlugin, Protocol):
    """Knows of whole classes of pods whether its PreScore skips them, whatever else there is in the cluster.

    Where it does not, its PreScore answers SUCCESS and prepares nothing.
    """

    def never_scores(self, pod_class: PodClass) -> bool: ...


@runtime_checkable
class NormalizePlugin(Plugin, Protocol):
    """Brings raw scores of the feasible nodes into 0..100. Without it raw scores must be in that range."""

    def normalize(self, state: CycleState, pod: PodRecord, scores: Int64s, feasible: View) -> Int64s: ...


@runtime_checkable
class RangeNormalizePlugin(NormalizePlugin, Protocol):
    """Normalises a raw score by the lowest and the highest one of the feasible nodes, and by nothing else."""

    def normalize_within(self, raw: int, lowest: int, highest: int) -> int: ...


@runtime_checkable
class CellFilterPlugin(ArrayFilterPlugin, Protocol):
    """A filter of scope CLUSTER that answers alike for whole groups of rows (see `podium.framework.kept.cells`).

    None where it does not, or not now.
    """

    def filter_cells(self, pod: PodRecord) -> CellFilter | None: ...


@runtime_checkable
class CellScorePlugin(ArrayScorePlugin, Protocol):
    """A score of scope CLUSTER that answers alike for whole groups of rows (see `podium.framework.kept.cells`).

    None where it does not, or not now.
    """

    def score_cells(self, pod: PodRecord) -> CellScore | None: ...


@runtime_checkable
class ReservePlugin(Plugin, Protocol):
    """Notes that the pod takes the node, and forgets it when anything later fails. `unreserve` never fails.

    A plugin whose class has an attribute ``needs_state`` that is true need not be asked from here to PreBind about a
    pod for which it has left nothing in the state under its name. What a class states does not hold for its subclasses.
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
    """The last word before binding: allow, reject or wait."""

    def permit(self, state: CycleState, pod: PodRecord, node_name: str) -> PermitResult | Status: ...


@runtime_checkable
class PreBindPlugin(Plugin, Protocol):
    """Has claims bound before the pod is; it returns what must be done, and the binding waits until that is done."""

    def pre_bind(
        self, state: CycleState, pod: PodRecord, node_name: str
    ) -> Sequence[ClaimBinding | DeviceReservation] | Status: ...


@runtime_checkable
class PreparingPlugin(Plugin, Protocol):
    """Says whether what its PreBind had done is ready for the pod: SUCCESS, WAIT for at most the timeout, or an error.

    It is asked once all of that has been done, and again when volumes or their claims change, and from time to time;
    `give_up` tells it that the time is over, and says what that is to the pod.
    """

    def prepared(self, state: CycleState, pod: PodRecord, node_name: str) -> PermitResult: ...

    def give_up(self, state: CycleState, pod: PodRecord, node_name: str) -> Status: ...


@runtime_checkable
class BindPlugin(Plugin, Protocol):
    """Decides how the pod is bound: SUCCESS has it bound through the API, SKIP leaves it to the next plugin."""

    def bind(self, state: CycleState, pod: PodRecord, node_name: str) -> Status: ...


@runtime_checkable
class PostBindPlugin(Plugin, Protocol):
    """Is told that the pod was bound."""

    def post_bind(self, state: CycleState, pod: PodRecord, node_name: str) -> None: ...


@runtime_checkable
class EnqueuePlugin(Plugin, Protocol):
    """Names the events after which a pod that this plugin turned down is worth another attempt."""

    def events_to_register(self) -> Sequence[EventToRegister]: ...


@dataclass(frozen=True, slots=True)
class PluginContext:
    """What a plugin is made with.

    ``args`` come from the configuration and are checked by the plugin itself; ``cluster`` is what it may read;
    ``waiting_pods`` are the pods that Permit plugins hold; ``seed`` is for choices that must look random but repeat.
    """

    args: Mapping[str, Any]
    cluster: Cluster
    waiting_pods: WaitingPods = field(default_factory=WaitingPods)
    seed: int = 0
