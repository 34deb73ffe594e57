"""Which disruption budgets cover which pods of a namespace."""

from __future__ import annotations

from podium.api.meta import Raw
from podium.api.pod import Pod
from podium.api.policy import PodDisruptionBudget
from podium.machines.disruption.budget import TrackedBudget
from podium.machines.disruption.covered_pods import controller_uid
from podium.machines.disruption.label_index import LabelIndex, SelectorIndex


class Coverage:
    """The budgets and the pods of one namespace, by name; each budget counts the pods that it covers."""

    def __init__(self) -> None:
        self.budgets: dict[str, TrackedBudget] = {}
        self._selectors: SelectorIndex[str] = SelectorIndex()
        self._pods: dict[str, Pod] = {}
        # The pods by their labels, kept from the first budget on: nobody asks before.
        self._labels: LabelIndex[str] | None = None
        # The names of the budgets over each pod, and of the pods of each controller.
        self._covering: dict[str, list[str]] = {}
        self._of_controller: dict[str, dict[str, None]] = {}

    @property
    def is_empty(self) -> bool:
        """Whether there is neither a budget nor a pod."""
        return not self.budgets and not self._pods

    def put_pod(self, pod: Pod) -> list[str]:
        """Take in a pod as it is now; the names of the budgets that this concerns."""
        name, labels = pod.metadata.name, pod.metadata.labels
        old = self._pods.get(name)
        self._pods[name] = pod
        if pod.metadata.owner_references or (old is not None and old.metadata.owner_references):
            self._note_controller(name, old, pod)
        is_labelled_anew = old is None or old.metadata.labels != labels
        if is_labelled_anew and self._labels is not None:
            self._labels.put(name, labels)
        return self._put_covered(pod, is_labelled_anew=is_labelled_anew) if self.budgets else []

    def _put_covered(self, pod: Pod, *, is_labelled_anew: bool) -> list[str]:
        """Tell the budgets over a pod of it; their names, with those of budgets that cover it no more."""
        name = pod.metadata.name
        before = after = self._covering.get(name, [])
        if is_labelled_anew:
            after = sorted(self._selectors.matching(pod.metadata.labels))
            self._cover(name, after)
        if not before and not after:
            return []
        left = [budget for budget in before if budget not in after]
        for budget in left:
            self.budgets[budget].remove(name)
        for budget in after:
            self.budgets[budget].put(pod)
        return left + after

    def remove_pod(self, pod: Pod) -> list[str]:
        """Forget a pod that is gone; the names of the budgets that this concerns."""
        name = pod.metadata.name
        known = self._pods.get(name)
        if known is None or known.metadata.uid != pod.metadata.uid:
            return []
        del self._pods[name]
        self._note_controller(name, known, None)
        if self._labels is not None:
            self._labels.remove(name)
        covering = self._covering.pop(name, [])
        for budget in covering:
            self.budgets[budget].lose(pod)
        return covering

    def put_budget(self, object_: PodDisruptionBudget, raw: Raw) -> None:
        """Take in a budget as it is now."""
        meta = object_.metadata
        known = self.budgets.get(meta.name)
        if known is not None and known.object.spec.selector == object_.spec.selector:
            known.replace(object_, raw)
            return
        self._remove(meta.name)
        budget = self.budgets[meta.name] = TrackedBudget(object_, raw)
        self._selectors.put(meta.name, budget.selector)
        if self._labels is None:
            self._labels = LabelIndex()
            for name, pod in self._pods.items():
                self._labels.put(name, pod.metadata.labels)
        for name in self._labels.matching(budget.selector):
            self._cover(name, sorted((*self._covering.get(name, ()), meta.name)))
            budget.put(self._pods[name])

    def remove_budget(self, object_: PodDisruptionBudget) -> None:
        """Forget a budget that is gone."""
        known = self.budgets.get(object_.metadata.name)
        if known is not None and known.object.metadata.uid == object_.metadata.uid:
            self._remove(object_.metadata.name)

    def change_scale(self, uid: str) -> list[str]:
        """The scale of a controller has changed; the names of the budgets that this concerns."""
        pods = self._of_controller.get(uid, ())
        names = dict.fromkeys(name for pod in pods for name in self._covering.get(pod, ()))
        for name in names:
            self.budgets[name].pods.forget_scale()
        return [name for name in names if self.budgets[name].is_relative]

    def _remove(self, name: str) -> None:
        budget = self.budgets.pop(name, None)
        self._selectors.remove(name)
        for pod in budget.pods.names if budget is not None else ():
            self._cover(pod, [budget for budget in self._covering[pod] if budget != name])

    def _note_controller(self, name: str, old: Pod | None, new: Pod | None) -> None:
        before = "" if old is None else controller_uid(old)
        after = "" if new is None else controller_uid(new)
        if before == after:
            return
        if before:
            pods = self._of_controller[before]
            del pods[name]
            if not pods:
                del self._of_controller[before]
        if after:
            self._of_controller.setdefault(after, {})[name] = None

    def _cover(self, pod: str, budgets: list[str]) -> None:
        if budgets:
            self._covering[pod] = budgets
        else:
            self._covering.pop(pod, None)
