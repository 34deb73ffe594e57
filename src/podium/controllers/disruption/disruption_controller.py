"""The disruption controller: the status of PodDisruptionBudgets, and disruptions that do not happen.

Source: pkg/controller/disruption/disruption.go; controlled-rescheduling.md, Disruption budget (the rate limit).
"""

from __future__ import annotations

from collections.abc import Iterable

from podium.api.disruption_policy import DisruptionPolicy, DisruptionPolicySpec
from podium.api.meta import Kubernetes, Raw
from podium.api.pod import Pod
from podium.api.policy import PodDisruptionBudget
from podium.api.times import time_of
from podium.controllers import controller, deadlines, observations
from podium.controllers.actions import Action, Record, ReplaceStatus
from podium.controllers.controller import CUSTOM_KINDS, DISRUPTED, NO_CHANGE, IdleDeferral
from podium.controllers.disruption.budget import Scales, TrackedBudget, controller_uid
from podium.controllers.indexes import LabelIndex, MultiMap, SelectorIndex, exchange
from podium.store.stored import condition_of, with_conditions

_CAUSE = "disruption-controller"
RATE_USED_UP = "DisruptionRateUsedUp"
"""The reason of the event about a budget whose rate is exhausted."""

STALE_AFTER_NS = 120 * 10**9
"""How long a pod may be a disruption target without being deleted."""

_BUDGET, _POD = "PodDisruptionBudget", "Pod"
_TARGET = "DisruptionTarget"

_Key = tuple[str, str]
"""The kind and the key of an object."""


class DisruptionController(controller.Reconciler[_Key]):
    """Writes the status of each budget that a change affects, and ends disruptions that do not happen.

    The API server debits a budget in its status when it accepts an eviction. The status is computed from the newest
    known version, and written on condition of that version: after newer debits the write fails, and is repeated from a
    version with them. Each version is the base of one successful write. Debits in a newer budget outweigh older states
    of pods: see `TrackedBudget`.

    The condition DisruptionTarget of pods that are not deleted for `STALE_AFTER_NS` becomes False. Kubelets' own
    disruptions are never stale: such a pod may take any time, and is not deleted.
    """

    # Pods, budgets, the policy, and everything with a scale.
    watches = frozenset(
        {
            "DisruptionPolicy",
            _POD,
            _BUDGET,
            "Deployment",
            "ReplicaSet",
            "ReplicationController",
            "StatefulSet",
            CUSTOM_KINDS,
        }
    )
    idle_deferral = IdleDeferral(watches - {"DisruptionPolicy", _BUDGET}, unless=DISRUPTED)

    def __init__(self) -> None:
        super().__init__()
        self._coverage = Coverage()
        self._scales = Scales()
        self._policy = DisruptionPolicySpec()
        # The pods that are disruption targets, with their wire form.
        self._targets: dict[_Key, tuple[Pod, Raw]] = {}
        # The version on which the last write of an object was based, unless that failed.
        self._written: dict[_Key, str] = {}

    @property
    def is_idle(self) -> bool:
        """Return whether there are no budgets and no disruption targets."""
        return not self._coverage.budgets and not self._targets

    def _observe(self, object_: Kubernetes, shown: observations.Changed | None, now: int) -> list[Action]:
        if isinstance(object_, Pod) and shown is not None:
            budgets = self._coverage.put_pod(object_)
            self._touch(budgets)
            return [] if self._target_changed(object_, shown) or budgets else NO_CHANGE
        if isinstance(object_, Pod):
            self._touch(self._coverage.remove_pod(object_))
            key = _POD, object_.key
            if key in self._targets and self._targets[key][0].metadata.uid == object_.metadata.uid:
                self._forget(key)
        elif isinstance(object_, PodDisruptionBudget):
            known = self._coverage.budgets.get(object_.key)
            events = [] if known is None or shown is None else _used_up(known.object, object_)
            if shown is None:
                self._coverage.remove_budget(object_)
            else:
                self._coverage.put_budget(object_, shown.raw)
            self._touch([object_.key])
            return events
        elif isinstance(object_, DisruptionPolicy):
            before, self._policy = self._policy, DisruptionPolicySpec() if shown is None else object_.spec
            if before.budget_bounds != self._policy.budget_bounds:
                self._touch(self._coverage.budgets)
        else:
            uids = self._scales.remove(object_) if shown is None else self._scales.put(object_, shown.raw)
            # By key, because workloads and pods may have come in any order.
            self._touch(sorted({key for uid in uids for key in self._coverage.change_scale(uid)}))
        return []

    def _touch(self, budgets: Iterable[str]) -> None:
        self._queue.add_all((_BUDGET, key) for key in budgets)

    def _target_changed(self, pod: Pod, shown: observations.Changed) -> bool:
        """Take in a pod; return whether it is or was a disruption target."""
        condition = pod.status.condition(_TARGET)
        is_target = condition is not None and condition.status == "True" and condition.reason != "TerminationByKubelet"
        key = _POD, pod.key
        if not is_target or pod.is_terminating or pod.is_terminal:
            if key not in self._targets:
                return False
            self._forget(key)
            return True
        self._targets[key] = pod, shown.raw
        self._queue.add_at(key, _since_ns(shown.raw) + STALE_AFTER_NS)
        return True

    def _handle_answer(self, key: _Key, finished: observations.ActionFinished, now: int) -> list[Action]:
        action = finished.action
        if not isinstance(action, ReplaceStatus) or self._written.get(key) != action.raw["metadata"]["resourceVersion"]:
            # A newer version was written meanwhile.
            return []
        if finished.problem is not None:
            del self._written[key]
        return super()._handle_answer(key, finished, now)

    def _forget(self, key: _Key) -> None:
        super()._forget(key)
        self._targets.pop(key, None)
        self._written.pop(key, None)

    def _reconcile(self, key: _Key, now: int) -> list[Action]:
        if key[0] == _POD:
            return self._end_disruption(key, now)
        budget = self._coverage.budgets.get(key[1])
        if budget is None:
            self._forget(key)
            return []
        status = budget.status(self._scales, now, self._policy)
        is_current = status == budget.raw.get("status")
        if is_current:
            self._queue.forget(key)
        expiry_ns, upkeep_ns = budget.next_expiry_ns(now, counts=True), budget.next_upkeep_ns(now)
        # Only changes of limits keep a simulation running.
        self._queue.add_at(key, deadlines.earliest((expiry_ns, upkeep_ns)), recurs=expiry_ns is None)
        if is_current or self._is_written(key, budget.object):
            return []
        write = ReplaceStatus({**budget.raw, "status": status}, _CAUSE)
        warning = budget.warning(status, self._scales)
        return [write] if warning is None else [write, warning]

    def _end_disruption(self, key: _Key, now: int) -> list[Action]:
        """Set the condition DisruptionTarget of a pod that is not deleted to False."""
        if key not in self._targets:
            return []
        pod, raw = self._targets[key]
        if _since_ns(raw) + STALE_AFTER_NS > now or self._is_written(key, pod):
            return []
        status = raw["status"]
        conditions = with_conditions(status["conditions"], ({"type": _TARGET, "status": "False"},), now)
        return [ReplaceStatus({**raw, "status": {**status, "conditions": conditions}}, _CAUSE)]

    def _is_written(self, key: _Key, object_: Kubernetes) -> bool:
        """Return whether a version of an object was written already; if not, it is about to be."""
        version = object_.metadata.resource_version
        before, self._written[key] = self._written.get(key), version
        return before == version


def _used_up(before: PodDisruptionBudget, after: PodDisruptionBudget) -> list[Action]:
    """Return the event about a rate that has just been exhausted, with the pods that used it."""
    earlier, rate = before.status.disruption_rate, after.status.disruption_rate
    if earlier is None or rate is None or not earlier.available or rate.available:
        return []
    used = f": {'; '.join(rate.last_disruptions)}" if rate.last_disruptions else ""
    message = f"the rate of {rate.max} disruptions is used up{used}; evictions are refused until one comes back"
    about = f"PodDisruptionBudget {after.key}"
    return [Record("", after.metadata.uid, "Normal", RATE_USED_UP, message, workload=about)]


def _since_ns(raw: Raw) -> int:
    """Return since when the pod is a target, 0 if that cannot be read."""
    return time_of(condition_of(raw["status"]["conditions"], _TARGET).get("lastTransitionTime")) or 0


class Coverage:
    """The budgets and pods by key; each budget counts its covered pods."""

    def __init__(self) -> None:
        self.budgets: dict[str, TrackedBudget] = {}
        self.pods: dict[str, Pod] = {}
        self._selectors: SelectorIndex[str] = SelectorIndex()
        self._labels: LabelIndex[str] = LabelIndex()
        # The keys of the budgets of each pod, and of the pods of each controller.
        self._covering: dict[str, list[str]] = {}
        self._of_controller: MultiMap[str, str] = MultiMap()

    def put_pod(self, pod: Pod) -> list[str]:
        """Take in a pod; return the keys of the affected budgets."""
        key, namespace, labels = pod.key, pod.metadata.namespace, pod.metadata.labels
        old = self.pods.get(key)
        self.pods[key] = pod
        if pod.metadata.owner_references or (old is not None and old.metadata.owner_references):
            self._note_controller(key, old, pod)
        is_labelled_anew = old is None or old.metadata.labels != labels
        if is_labelled_anew:
            self._labels.put(key, labels, namespace)
        if not self.budgets:
            return []
        before = after = self._covering.get(key, [])
        if is_labelled_anew:
            after = sorted(self._selectors.matching(labels, namespace))
            exchange(self._covering, key, after or None)
        if not before and not after:
            return []
        left = [budget for budget in before if budget not in after]
        for budget in left:
            self.budgets[budget].remove(key)
        for budget in after:
            self.budgets[budget].put(pod)
        return left + after

    def remove_pod(self, pod: Pod) -> list[str]:
        """Forget a pod; return the keys of the affected budgets."""
        key = pod.key
        known = self.pods.get(key)
        if known is None or known.metadata.uid != pod.metadata.uid:
            return []
        del self.pods[key]
        self._note_controller(key, known, None)
        self._labels.remove(key)
        covering = self._covering.pop(key, [])
        for budget in covering:
            self.budgets[budget].lose(pod)
        return covering

    def put_budget(self, object_: PodDisruptionBudget, raw: Raw) -> None:
        key, namespace = object_.key, object_.metadata.namespace
        known = self.budgets.get(key)
        if known is not None and known.object.spec.selector == object_.spec.selector:
            known.replace(object_, raw)
            return
        self._remove(key)
        budget = self.budgets[key] = TrackedBudget(object_, raw)
        self._selectors.put(key, budget.selector, namespace)
        for covered in self._labels.matching(budget.selector, namespace):
            self._covering[covered] = sorted((*self._covering.get(covered, ()), key))
            budget.put(self.pods[covered])

    def remove_budget(self, object_: PodDisruptionBudget) -> None:
        known = self.budgets.get(object_.key)
        if known is not None and known.object.metadata.uid == object_.metadata.uid:
            self._remove(object_.key)

    def change_scale(self, uid: str) -> list[str]:
        """Record the changed scale of a controller; return the keys of the affected budgets."""
        pods = self._of_controller.get(uid, ())
        keys = dict.fromkeys(key for pod in pods for key in self._covering.get(pod, ()))
        for key in keys:
            self.budgets[key].forget_scale()
        return [key for key in keys if self.budgets[key].is_relative]

    def _remove(self, key: str) -> None:
        budget = self.budgets.pop(key, None)
        self._selectors.remove(key)
        for pod in budget.pods if budget is not None else ():
            exchange(self._covering, pod, [other for other in self._covering[pod] if other != key] or None)

    def _note_controller(self, key: str, old: Pod | None, new: Pod | None) -> None:
        before = "" if old is None else controller_uid(old)
        after = "" if new is None else controller_uid(new)
        if before != after:
            self._of_controller.replace(key, [before] if before else (), [after] if after else ())
