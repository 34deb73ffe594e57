"""The status of budgets that have none, as the disruption controller would write it.

Manifests have no status, and without one a budget would seem to allow nothing: kube-scheduler goes by the status alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from podium.api.basis import lacks_status
from podium.api.input.codec import Document
from podium.api.meta import Kubernetes
from podium.api.policy import PodDisruptionBudget, PodDisruptionBudgetStatus
from podium.api.present import as_running
from podium.api.reading import read


def with_budget_statuses(documents: Sequence[Document]) -> list[Kubernetes]:
    """The objects of the documents, with the status of each budget that has none computed from the pods."""
    statuses = dict(_computed(documents)) if any(map(lacks_status, documents)) else {}
    found: list[Kubernetes] = []
    for document in documents:
        object_ = document.object
        if isinstance(object_, PodDisruptionBudget) and lacks_status(document):
            object_ = replace(object_, status=statuses.get(object_.key, object_.status))
        if object_ is not None:
            found.append(object_)
    return found


def _computed(documents: Sequence[Document]) -> Iterator[tuple[str, PodDisruptionBudgetStatus]]:
    """By key, the statuses that a disruption controller writes that sees the objects for the first time."""
    from podium.machines.actions import ReplaceStatus
    from podium.machines.disruption.disruption_controller import DisruptionController
    from podium.machines.observations import Changed, Tick
    from podium.store.stored import reread

    controller = DisruptionController()
    for document in documents:
        if document.object is not None:
            raw = as_running(document.raw, document.object, 0)
            if lacks_status(document):
                # Of one that was never stored it could not be told whether a status speaks of it.
                raw = {**raw, "metadata": {"generation": 1, **raw["metadata"]}}
            controller.handle(Changed(reread(document.object, document.raw, raw), raw), 0)
    for action in controller.handle(Tick(), 0):
        if isinstance(action, ReplaceStatus) and action.raw["kind"] == "PodDisruptionBudget":
            budget = read(action.raw, PodDisruptionBudget)
            yield budget.key, budget.status
