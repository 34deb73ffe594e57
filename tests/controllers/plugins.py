"""Plugins with scripted answers that record their calls."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.cluster.view import NodeView
from podium.framework.events import ActionType, ClusterEvent, EventResource, EventToRegister
from podium.framework.handle import CycleState, Handle
from podium.framework.plugin import ClaimBinding, PermitResult, PluginContext, PostFilterResult
from podium.framework.verdicts import SUCCESS, Outcome, Status, unschedulable

NUMBERS = count()


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a plugin; ``number`` grows over all plugins."""

    number: int
    point: str
    pod: str
    node: str


class Spy:
    """Takes part from Reserve to PostBind. ``answers`` says what to answer at a point, or what error to raise."""

    name = "Spy"

    def __init__(self, context: PluginContext) -> None:
        self.waiting_pods = context.waiting_pods
        self.answers: dict[str, Status | PermitResult | Exception] = {}
        self.claims: tuple[ClaimBinding, ...] = ()
        self.calls: list[Call] = []

    def reserve(self, state: CycleState, pod: PodRecord, node_name: str) -> Status:
        return self._status("reserve", pod, node_name)

    def unreserve(self, state: CycleState, pod: PodRecord, node_name: str) -> None:
        self._status("unreserve", pod, node_name)

    def permit(self, state: CycleState, pod: PodRecord, node_name: str) -> PermitResult | Status:
        answer = self._answer("permit", pod, node_name)
        return SUCCESS if answer is None else answer

    def pre_bind(self, state: CycleState, pod: PodRecord, node_name: str) -> Sequence[ClaimBinding] | Status:
        status = self._status("pre_bind", pod, node_name)
        return self.claims if status.is_success else status

    def post_bind(self, state: CycleState, pod: PodRecord, node_name: str) -> None:
        self._status("post_bind", pod, node_name)

    @property
    def points(self) -> list[str]:
        """The points at which it was called."""
        return [call.point for call in self.calls]

    def _status(self, point: str, pod: PodRecord, node_name: str) -> Status:
        answer = self._answer(point, pod, node_name)
        return answer if isinstance(answer, Status) else SUCCESS

    def _answer(self, point: str, pod: PodRecord, node_name: str) -> Status | PermitResult | None:
        self.calls.append(Call(next(NUMBERS), point, pod.name, node_name))
        answer = self.answers.get(point)
        if isinstance(answer, Exception):
            raise answer
        return answer


class First(Spy):
    """Comes before `Second`."""

    name = "First"


class Second(Spy):
    """Comes after `First`."""

    name = "Second"


class ByLabel:
    """Sorts by the number in a label; without one it fails, and one that is no number is its answer all the same."""

    name = "ByLabel"

    def __init__(self, context: PluginContext) -> None:
        pass

    def sort_key(self, pod: PodRecord, queued_ns: int) -> tuple[Any, ...]:
        label = pod.labels["order"]
        return (int(label) if label.isdigit() else label,)


class Binder:
    """Binds pods at the Bind point as a test says."""

    def __init__(self) -> None:
        self.answer: Status | Exception = SUCCESS

    def bind(self, state: CycleState, pod: PodRecord, node_name: str) -> Status:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Broken:
    """Raises, at one point, for pods with a label that names the point."""

    def pre_enqueue(self, pod: PodRecord) -> Status:
        return self._break("PreEnqueue", pod)

    def pre_filter(self, state: CycleState, pod: PodRecord, cluster: Cluster) -> Status:
        return self._break("PreFilter", pod)

    def filter(self, state: CycleState, pod: PodRecord, node: NodeView) -> Status:
        if pod.labels.get("refused"):
            return unschedulable("refused")
        return self._break("Filter", pod)

    def post_filter(
        self, state: CycleState, pod: PodRecord, handle: Handle, cluster: Cluster, outcome: Outcome
    ) -> PostFilterResult:
        return PostFilterResult(self._break("PostFilter", pod))

    def score(self, state: CycleState, pod: PodRecord, node: NodeView) -> int:
        self._break("Score", pod)
        return 0

    def events_to_register(self) -> Sequence[EventToRegister]:
        return [EventToRegister(EventResource.NODE, ActionType.ADD, self._hint)]

    def _hint(self, pod: PodRecord, event: ClusterEvent) -> bool:
        self._break("hint", pod)
        return False

    def _break(self, point: str, pod: PodRecord) -> Status:
        if pod.labels.get("breaks") == point:
            raise ValueError("oh dear")
        return SUCCESS
