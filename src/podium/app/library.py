"""Podium's functions for programs, which take objects in whatever form they are at hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from podium.api.errors import InputError
from podium.api.input.codec import Document, Input, Reader, load_text
from podium.api.input.files import FileName
from podium.api.kinds import KIND_OF
from podium.api.meta import Kubernetes
from podium.api.warnings import Validation
from podium.app.explaining.explanation import Explanation
from podium.app.loaded import LoadedCluster
from podium.framework.settings.configuration import Configuration, load_configuration, read_configuration
from podium.framework.settings.feature_gates import FeatureGates, read_feature_gates

if TYPE_CHECKING:
    from podium.sim.limits import Limits
    from podium.sim.results.result import Result
    from podium.sim.run import Duration, Progress

Given = Kubernetes | dict[str, Any] | Document | FileName
"""An object: typed, as a dictionary (a List too), or as a document; or the name of a file or directory of objects."""


def load(
    objects: FileName | Iterable[Given],
    configuration: Configuration | dict[str, Any] | FileName | None = None,
    feature_gates: FeatureGates | str = "",
    *,
    ignore_extenders: bool = False,
    validation: Validation | None = None,
    progress: Callable[[float], None] | None = None,
) -> LoadedCluster:
    """Read the objects once, for any number of questions.

    `configuration` is a KubeSchedulerConfiguration, as a dictionary too, or its file; one with extenders is refused
    unless they are to be ignored. `feature_gates` are such as "NonPreemptingPriority=false". `validation` says what is
    an error, and what a warning (`podium.api.objects.read_object`). `progress` is told the share of the files that has
    been read. Raises PodiumError for what is wrong with any of them.
    """
    return LoadedCluster(
        read_objects(objects, validation, progress),
        _configuration(configuration),
        _feature_gates(feature_gates),
        ignore_extenders=ignore_extenders,
    )


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

    For more than one question `load` them once. The arguments are those of `load`, and so is what it raises.
    """
    loaded = load(objects, configuration, feature_gates, ignore_extenders=ignore_extenders, validation=validation)
    return loaded.explain(pod)


def simulate(
    objects: FileName | Iterable[Given],
    *,
    until: Duration | None = None,
    seed: int = 0,
    start: str | None = None,
    start_delay: Duration = 0,
    bind_delay: Duration = 0,
    termination: Duration | None = None,
    configuration: Configuration | dict[str, Any] | FileName | None = None,
    feature_gates: FeatureGates | str = "",
    ignore_extenders: bool = False,
    limits: Limits | None = None,
    priority_cutoff: int | None = None,
    progress: Progress | None = None,
    validation: Validation | None = None,
) -> Result:
    """Play what happens to the objects in virtual time; a Scenario may be among them. See `podium.sim.run.simulate`."""
    return load(
        objects, configuration, feature_gates, ignore_extenders=ignore_extenders, validation=validation
    ).simulate(
        until=until,
        seed=seed,
        start=start,
        start_delay=start_delay,
        bind_delay=bind_delay,
        termination=termination,
        limits=limits,
        priority_cutoff=priority_cutoff,
        progress=progress,
    )


def read_objects(
    objects: FileName | Iterable[Given],
    validation: Validation | None = None,
    progress: Callable[[float], None] | None = None,
) -> Input:
    """The objects as an input, in order. Raises InputError for what is wrong in one, and for one given twice."""
    given: list[Given] = [objects] if isinstance(objects, str | Path) else list(objects)
    names = [item for item in given if isinstance(item, str | Path)]
    with Reader(validation) as reader:
        if len(names) == len(given):
            reader.read_all(names, progress)
            return reader.input()
        for index, item in enumerate(given):
            if isinstance(item, Document):
                reader.add(item)
            elif isinstance(item, Kubernetes | dict):
                # Read as a file would be, so that the same mistakes are found.
                raw = _raw(item) if isinstance(item, Kubernetes) else item
                reader.read_text(msgspec.json.encode(raw), f"objects[{index}]")
            else:
                reader.read_files(item)
        return reader.input()


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
