"""Podium's functions for programs, which take objects in whatever form they are at hand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from podium.api.basis import Basis
from podium.api.codec import Document, load_files, load_text
from podium.api.errors import InputError
from podium.api.files import FileName
from podium.api.kinds import KIND_OF
from podium.api.meta import Kubernetes
from podium.app.budget_statuses import with_budget_statuses
from podium.app.explain import Explainer, Explanation
from podium.framework.configuration import Configuration, load_configuration
from podium.framework.feature_gates import FeatureGates, read_feature_gates
from podium.sim.limits import Limits
from podium.sim.result import Result
from podium.sim.run import Duration, Progress
from podium.sim.run import simulate as run_simulation

Given = Kubernetes | dict[str, Any] | Document | FileName
"""An object: typed, as a dictionary (a List too), or as a document; or the name of a file or directory of objects."""


def explain(
    objects: FileName | Iterable[Given],
    pod: str,
    configuration: Configuration | FileName | None = None,
    feature_gates: FeatureGates | str = "",
) -> Explanation:
    """Say what would happen to the pending pod `namespace/name` (or `name`, in `default`) among the objects, and why.

    `configuration` is a KubeSchedulerConfiguration or its file, `feature_gates` such as "NonPreemptingPriority=false".
    Raises PodiumError for what is wrong with any of them.
    """
    wanted = pod if "/" in pod else f"default/{pod}"
    return explanation_of(documents(objects), wanted, _configuration(configuration), _feature_gates(feature_gates))


def explanation_of(
    found: Sequence[Document],
    pod: str,
    configuration: Configuration | None,
    feature_gates: FeatureGates,
    scheduler: str = "",
) -> Explanation:
    """The decision about the pending pod `namespace/name` of the documents, and what it rests on.

    `scheduler` names the profile that decides, "" for the one that the pod asks for. Raises PodiumError as
    `Explainer.explain` does.
    """
    explainer = Explainer(with_budget_statuses(found), configuration, feature_gates)
    explanation = explainer.explain(pod, scheduler)
    return replace(explanation, rests_on=Basis(found, explainer.schedulers, simulates=False).caveats())


def simulate(
    objects: FileName | Iterable[Given],
    *,
    until: Duration | None = None,
    seed: int = 0,
    start: str | None = None,
    start_delay: Duration = 0,
    bind_delay: Duration = 0,
    configuration: Configuration | FileName | None = None,
    feature_gates: FeatureGates | str = "",
    limits: Limits | None = None,
    progress: Progress | None = None,
) -> Result:
    """Play what happens to the objects in virtual time; a Scenario may be among them. See `podium.sim.simulate`."""
    return run_simulation(
        documents(objects),
        until=until,
        seed=seed,
        start=start,
        start_delay=start_delay,
        bind_delay=bind_delay,
        configuration=_configuration(configuration),
        feature_gates=_feature_gates(feature_gates),
        limits=limits,
        progress=progress,
    )


def documents(objects: FileName | Iterable[Given]) -> list[Document]:
    """The objects as documents, in order. Raises InputError for what is wrong in one, and for one given twice."""
    given: list[Given] = [objects] if isinstance(objects, str | Path) else list(objects)
    found: list[Document] = []
    for index, one in enumerate(given):
        source = f"objects[{index}]"
        if isinstance(one, Document):
            found.append(one)
        elif isinstance(one, Kubernetes | dict):
            # Read as a file would be, so that the same mistakes are found.
            raw = _raw(one) if isinstance(one, Kubernetes) else one
            found.extend(load_text(msgspec.json.encode(raw), source))
        else:
            found.extend(load_files([one]))
    _refuse_twice(found)
    return found


def _raw(typed: Kubernetes) -> dict[str, Any]:
    """The object as a dictionary, with the kind that its type stands for."""
    kind = KIND_OF[type(typed)]
    return {"apiVersion": kind.api_version, "kind": kind.name, **msgspec.to_builtins(typed)}


def _refuse_twice(found: list[Document]) -> None:
    seen: dict[tuple[str, str], Document] = {}
    for document in found:
        if document.object is None or not document.object.metadata.name:
            continue
        key = (document.object.kind, document.object.key)
        first = seen.setdefault(key, document)
        if first is not document:
            raise InputError(
                f"is given twice, first in {first.source}; remove one",
                source=document.source,
                object=" ".join(key),
            )


def _configuration(given: Configuration | FileName | None) -> Configuration | None:
    return load_configuration(str(given)) if isinstance(given, str | Path) else given


def _feature_gates(given: FeatureGates | str) -> FeatureGates:
    return read_feature_gates(given) if isinstance(given, str) else given
