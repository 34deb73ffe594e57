"""How often the pods of each budget were disrupted, told apart by who wanted it.

Source: controlled-rescheduling.md, Disruption budget ("the current disruption rate that the collection of pods is
experiencing"; "down due to voluntary action" and "due to unplanned outage").
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Literal

from podium.api.meta import Kubernetes
from podium.api.pod import Pod
from podium.api.policy import PodDisruptionBudget
from podium.api.selectors import compile_label_selector
from podium.machines.disruption.covered_pods import is_healthy
from podium.store.log.watch_event import WatchEvent

Origin = Literal["voluntary", "unplanned"]


@dataclass(slots=True)
class Disruptions:
    """When pods of a budget were disrupted, in nanoseconds, ascending."""

    voluntary: list[int] = field(default_factory=list)
    unplanned: list[int] = field(default_factory=list)

    def since(self, time_ns: int) -> tuple[int, int]:
        """How many voluntary and unplanned ones there were after a time."""
        voluntary, unplanned = (len(times) - bisect_right(times, time_ns) for times in (self.voluntary, self.unplanned))
        return voluntary, unplanned


class DisruptionCounts:
    """Takes in every write, and notes when a healthy pod with a budget is one no more.

    That is voluntary where its graceful end is begun through the API: an eviction, a preemption, a deletion. It is
    unplanned where it fails, is not ready any more, or disappears without that. A pod that succeeds is not disrupted.
    """

    def __init__(self) -> None:
        # By namespace and name.
        self._budgets: dict[str, dict[str, PodDisruptionBudget]] = {}
        self._found: dict[str, Disruptions] = {}

    @property
    def has_budgets(self) -> bool:
        """Whether there are budgets; without them pods are nothing to it."""
        return bool(self._budgets)

    def observe(self, event: WatchEvent, now: int) -> None:
        """Take in a write at ``now``; times do not go back."""
        object_ = event.stored.object
        if isinstance(object_, PodDisruptionBudget):
            in_namespace = self._budgets.setdefault(object_.metadata.namespace, {})
            if event.type == "DELETED":
                in_namespace.pop(object_.metadata.name, None)
                self._found.pop(object_.key, None)
                if not in_namespace:
                    del self._budgets[object_.metadata.namespace]
            else:
                in_namespace[object_.metadata.name] = object_
        elif self._budgets and isinstance(object_, Pod) and event.type != "ADDED":
            before = event.previous.object if event.previous is not None else object_
            origin = _origin(before, object_, is_gone=event.type == "DELETED")
            if origin is not None:
                self._note(object_, origin, now)

    def of(self, budget: str) -> Disruptions:
        """The disruptions that a budget's pods have seen while it was there."""
        return self._found.get(budget, Disruptions())

    def _note(self, pod: Pod, origin: Origin, now: int) -> None:
        for budget in self._budgets.get(pod.metadata.namespace, {}).values():
            if compile_label_selector(budget.spec.selector).matches(pod.metadata.labels):
                found = self._found.setdefault(budget.key, Disruptions())
                (found.voluntary if origin == "voluntary" else found.unplanned).append(now)


def _origin(before: Kubernetes, after: Pod, *, is_gone: bool) -> Origin | None:
    """Who wanted the disruption that a write is; None where it is none."""
    if not isinstance(before, Pod) or before.is_terminal or not is_healthy(before):
        return None
    if after.is_terminating:
        return "voluntary"
    if is_gone or (not is_healthy(after) and after.status.phase != "Succeeded"):
        return "unplanned"
    return None
