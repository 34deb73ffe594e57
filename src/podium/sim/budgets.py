"""The controller that keeps the status of PodDisruptionBudgets (pkg/controller/disruption)."""

from __future__ import annotations

from podium.api.pod import Pod
from podium.api.policy import PodDisruptionBudget
from podium.machines.agenda import Agenda
from podium.sim.budget import Budget
from podium.sim.scales import Scales
from podium.sim.writes import ReplaceStatus, Write
from podium.store.watch_log import WatchEvent

_CONTROLLER = "disruption-controller"


class Budgets:
    """Writes the status of each budget that a change concerns: of its pods, of their workloads, or of itself."""

    def __init__(self) -> None:
        self._budgets: dict[str, dict[str, Budget]] = {}
        self._pods: dict[str, dict[str, Pod]] = {}
        # The budgets over each pod, by the pod's uid.
        self._covering: dict[str, list[Budget]] = {}
        self._scales = Scales()
        # Budgets by namespace and uid whose status may be out of date.
        self._dirty: dict[tuple[str, str], None] = {}
        self._rechecks: Agenda[tuple[str, str]] = Agenda()

    def observe(self, event: WatchEvent, now: int) -> None:
        object_ = event.stored.object
        if isinstance(object_, Pod):
            self._observe_pod(object_, event)
        elif isinstance(object_, PodDisruptionBudget):
            self._observe_budget(object_, event)
        elif self._scales.observe(object_, event):
            for budget in self._in_namespace(object_.metadata.namespace):
                self._touch(budget)

    def reconcile(self, now: int) -> list[Write]:
        while (key := self._rechecks.take_due(now)) is not None:
            self._dirty[key] = None
        dirty, self._dirty = self._dirty, {}
        budgets = (self._budgets.get(namespace, {}).get(uid) for namespace, uid in dirty)
        return [write for budget in budgets if budget is not None for write in self._sync(budget, now)]

    def next_deadline(self) -> int | None:
        return self._rechecks.next_time()

    def _sync(self, budget: Budget, now: int) -> list[Write]:
        recheck = budget.recheck_ns(now)
        if recheck is not None:
            self._rechecks.add(recheck, _key(budget))
        status = budget.status(self._scales.of, now)
        if status == budget.stored.raw.get("status"):
            return []
        return [ReplaceStatus({**budget.stored.raw, "status": status}, _CONTROLLER)]

    def _in_namespace(self, namespace: str) -> list[Budget]:
        return list(self._budgets.get(namespace, {}).values())

    def _touch(self, budget: Budget) -> None:
        self._dirty[_key(budget)] = None

    def _observe_pod(self, pod: Pod, event: WatchEvent) -> None:
        meta = pod.metadata
        pods = self._pods.setdefault(meta.namespace, {})
        if event.type == "DELETED":
            del pods[meta.name]
            self._cover(pod, [])
            return
        pods[meta.name] = pod
        old = event.previous
        if old is not None and old.object.metadata.labels == meta.labels:
            covering = self._covering.get(meta.uid, [])
        else:
            covering = [budget for budget in self._in_namespace(meta.namespace) if budget.covers(pod)]
        self._cover(pod, covering)

    def _cover(self, pod: Pod, covering: list[Budget]) -> None:
        """Count the pod in these budgets, as it is now, and in no other."""
        uid = pod.metadata.uid
        for budget in self._covering.pop(uid, ()):
            if budget not in covering:
                budget.remove(pod.metadata.name)
                self._touch(budget)
        for budget in covering:
            budget.put(pod)
            self._touch(budget)
        if covering:
            self._covering[uid] = covering

    def _observe_budget(self, object_: PodDisruptionBudget, event: WatchEvent) -> None:
        namespace = self._budgets.setdefault(object_.metadata.namespace, {})
        old = namespace.get(object_.metadata.uid)
        if old is not None and event.type != "DELETED" and old.budget.spec == object_.spec:
            old.replace(event.stored)
            self._touch(old)
            return
        if event.type == "DELETED":
            del namespace[object_.metadata.uid]
        else:
            namespace[object_.metadata.uid] = Budget(event.stored)
            self._touch(namespace[object_.metadata.uid])
        for pod in self._pods.get(object_.metadata.namespace, {}).values():
            covering = [budget for budget in namespace.values() if budget.covers(pod)]
            self._cover(pod, covering)


def _key(budget: Budget) -> tuple[str, str]:
    return budget.budget.metadata.namespace, budget.stored.uid
