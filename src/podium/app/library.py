"""Podium's functions for programs, which take objects in whatever form they are at hand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from podium.api.basis import basis_of
from podium.api.codec import Document, Input, Reader, load_text, refuse_empty_pods
from podium.api.errors import InputError
from podium.api.files import FileName
from podium.api.kinds import KIND_OF
from podium.api.meta import Kubernetes
from podium.api.warnings import Validation
from podium.app.budget_statuses import with_budget_statuses
from podium.app.explain import Explainer
from podium.app.explanation import Explanation
from podium.framework.configuration import Configuration, default_configuration, load_configuration, read_configuration
from podium.framework.departures import departures
from podium.framework.extenders import without_extenders
from podium.framework.feature_gates import FeatureGates, read_feature_gates

if TYPE_CHECKING:
    from podium.sim.limits import Limits
    from podium.sim.result import Result
    from podium.sim.run import Duration, Progress

Given = Kubernetes | dict[str, Any] | Document | FileName
"""An object: typed, as a dictionary (a List too), or as a document; or the name of a file or directory of objects."""


def explain(
    objects: FileName | Iterable[Given],
    pod: str,
    configuration: Configuration | dict[str, Any] | FileName | None = None,
    feature_gates: FeatureGates | str = "",
    *,
    ignore_extenders: bool = False,
    validation: Validation | None = None,
) -> Explanation:
    """Say what would happen to the pending pod `namespace/name` (or `name`, in `default`) among the objects, and why.

    `configuration` is a KubeSchedulerConfiguration, as a dictionary too, or its file; one with extenders is refused
    unless they are to be ignored. `feature_gates` are such as "NonPreemptingPriority=false". `validation` says what is
    an error, and what a warning (`podium.api.objects.read_object`). Raises PodiumError for what is wrong with any of
    them.
    """
    wanted = pod if "/" in pod else f"default/{pod}"
    return explanation_of(
        read_objects(objects, validation),
        wanted,
        _configuration(configuration),
        _feature_gates(feature_gates),
        ignore_extenders=ignore_extenders,
    )


def explanation_of(
    found: Input,
    pod: str,
    configuration: Configuration | None,
    feature_gates: FeatureGates,
    scheduler: str = "",
    *,
    ignore_extenders: bool = False,
) -> Explanation:
    """The decision about the pending pod `namespace/name` of the input, and what it rests on.

    `scheduler` names the profile that decides, "" for the one that the pod asks for. Raises PodiumError as
    `Explainer.explain` does, and for a configuration with extenders that are not to be ignored.
    """
    settings = configuration or default_configuration()
    without = without_extenders(settings.extenders, settings.source, ignore=ignore_extenders)
    refuse_empty_pods(found.documents)
    try:
        explainer = Explainer(with_budget_statuses(found.documents), configuration, feature_gates)
    except InputError as error:
        raise _located(error, found.documents) from None
    explanation = explainer.explain(pod, scheduler)
    basis = basis_of(found, explainer.schedulers, simulates=False, further=(*without, *departures(settings)))
    return replace(explanation, rests_on=basis.caveats())


def simulate(
    objects: FileName | Iterable[Given],
    *,
    until: Duration | None = None,
    seed: int = 0,
    start: str | None = None,
    start_delay: Duration = 0,
    bind_delay: Duration = 0,
    configuration: Configuration | dict[str, Any] | FileName | None = None,
    feature_gates: FeatureGates | str = "",
    ignore_extenders: bool = False,
    limits: Limits | None = None,
    priority_cutoff: int | None = None,
    progress: Progress | None = None,
    validation: Validation | None = None,
) -> Result:
    """Play what happens to the objects in virtual time; a Scenario may be among them. See `podium.sim.run.simulate`."""
    from podium.sim.run import simulate as run_simulation

    return run_simulation(
        read_objects(objects, validation),
        until=until,
        seed=seed,
        start=start,
        start_delay=start_delay,
        bind_delay=bind_delay,
        configuration=_configuration(configuration),
        feature_gates=_feature_gates(feature_gates),
        ignore_extenders=ignore_extenders,
        limits=limits,
        priority_cutoff=priority_cutoff,
        progress=progress,
    )


def read_objects(objects: FileName | Iterable[Given], validation: Validation | None = None) -> Input:
    """The objects as an input, in order. Raises InputError for what is wrong in one, and for one given twice."""
    given: list[Given] = [objects] if isinstance(objects, str | Path) else list(objects)
    with Reader(validation) as reader:
        for index, one in enumerate(given):
            if isinstance(one, Document):
                reader.add(one)
            elif isinstance(one, Kubernetes | dict):
                # Read as a file would be, so that the same mistakes are found.
                raw = _raw(one) if isinstance(one, Kubernetes) else one
                reader.read_text(msgspec.json.encode(raw), f"objects[{index}]")
            else:
                reader.read_files(one)
        return reader.input()


def _located(error: InputError, documents: Iterable[Document]) -> InputError:
    """The error with the place of the object that it names."""
    for one in documents:
        if one.object is not None and error.object == f"{one.raw.get('kind')} {one.object.key}":
            return error.located(source=one.source, document=one.index)
    return error


def _raw(typed: Kubernetes) -> dict[str, Any]:
    """The object as a dictionary, with the kind that its type stands for."""
    kind = KIND_OF[type(typed)]
    return {"apiVersion": kind.api_version, "kind": kind.name, **msgspec.to_builtins(typed)}


def _configuration(given: Configuration | dict[str, Any] | FileName | None) -> Configuration | None:
    if isinstance(given, str | Path):
        return load_configuration(str(given))
    if isinstance(given, dict):
        # Read as a file would be, so that the same mistakes are found.
        return read_configuration(_as_read(given), "configuration")
    return given


def _as_read(given: dict[str, Any]) -> dict[str, Any]:
    try:
        text = msgspec.json.encode(given)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"is no plain JSON: {error}", source="configuration") from None
    documents = load_text(text, "configuration")
    if len(documents) != 1:
        raise InputError(f"holds {len(documents)} objects; one configuration is needed", source="configuration")
    return documents[0].raw


def _feature_gates(given: FeatureGates | str) -> FeatureGates:
    return read_feature_gates(given) if isinstance(given, str) else given
