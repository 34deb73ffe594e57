"""The inputs of the library: objects, configurations and settings in several forms."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from podium.api.basis import Caveat
from podium.api.errors import InputError, Validation, shown
from podium.api.input.codec import Document, Input, Reader, load_text
from podium.api.input.files import FileName
from podium.api.kinds import KIND_OF
from podium.api.meta import Kubernetes
from podium.api.versions.choice import CLUSTER_RELEASE, ReleaseChoice, read_choice
from podium.framework.extenders import without_extenders
from podium.framework.settings.configuration import (
    API_VERSION,
    KIND,
    Configuration,
    default_configuration,
    load_document,
    read_configuration,
    upstream_departures,
    with_plugins,
)
from podium.plugins.registry import IN_TREE


def in_one_line(value: Any, source: str = "") -> str:
    """Return the value as JSON. Raises InputError for values without a JSON form, such as NaN."""
    try:
        text = msgspec.json.encode(value).decode()
        # NaN is encoded as `null`, which would mean a missing value.
        if "null" in text and not _has_numbers(value):
            raise ValueError("a number in it is not finite")
        return text
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"is not plain JSON: {error}", source=source) from None


def _has_numbers(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, Mapping):
        return all(map(_has_numbers, value.values()))
    return not isinstance(value, list | tuple) or all(map(_has_numbers, value))


def as_document(given: dict[str, Any], source: str) -> Document:
    """Parse the dictionary like a file, with the same checks. Raises InputError."""
    documents = load_text(in_one_line(given, source), source)
    if len(documents) != 1:
        raise InputError(f"holds {len(documents)} objects; one configuration is needed", source=source)
    return documents[0]


def assignments_of(fields: Mapping[str, Any]) -> list[str]:
    """Return the assignments of `podium plan change`: `replicas=5` to set a field, `replicas-` for None.

    Raises InputError.
    """
    if not isinstance(fields, Mapping):
        raise InputError(f"fields: {shown(fields)} is not a mapping of fields to values, such as {{'replicas': 5}}")
    return [
        f"{name}-" if value is None else f"{name}={value if isinstance(value, str) else in_one_line(value, name)}"
        for name, value in fields.items()
    ]


Given = Kubernetes | dict[str, Any] | Document | FileName
"""An object: typed, as a dictionary (a List too), or as a document; or the name of a file or directory of objects."""

_NEEDED = "a dictionary, a typed object, or the name of a file or directory is needed"

Objects = Given | Iterable[Given]
"""One such object, or several."""


def read_objects(
    objects: Objects, validation: Validation | None = None, progress: Callable[[float], None] | None = None
) -> Input:
    """Return the objects as an input, in order. Raises InputError for wrong objects and duplicates."""
    given = _each(objects)
    names = [item for item in given if isinstance(item, str | Path)]
    with Reader(validation) as reader:
        if len(names) == len(given):
            reader.read_all(names, progress)
            return reader.input()
        for index, item in enumerate(given):
            if isinstance(item, Document):
                reader.add(item)
            elif isinstance(item, Kubernetes | dict):
                # Parsed like a file, with the same checks.
                raw, source = item, f"objects[{index}]"
                if isinstance(item, Kubernetes):
                    kind = KIND_OF[type(item)]
                    raw = {"apiVersion": kind.api_version, "kind": kind.name, **msgspec.to_builtins(item)}
                reader.read_text(in_one_line(raw, source).encode(), source)
            else:
                reader.read_all([item])
        return reader.input()


def _each(objects: Objects) -> list[Given]:
    of_one = (str, Path, dict, Kubernetes, Document)
    if isinstance(objects, of_one):
        return [objects]
    if not isinstance(objects, Iterable):
        raise InputError(f"objects: {shown(objects)} is not an object; {_NEEDED}")
    given = list(objects)
    for index, item in enumerate(given):
        if not isinstance(item, of_one):
            raise InputError(f"{shown(item)} is not an object; {_NEEDED}", source=f"objects[{index}]")
    return given


def several(names: str | Iterable[str]) -> list[str]:
    """Return the names as a sequence; a program may pass a single name."""
    return [names] if isinstance(names, str) else list(names)


ConfigurationGiven = Configuration | dict[str, Any] | FileName
"""A KubeSchedulerConfiguration: parsed, as a dictionary, or the name of its file."""

_SOURCE = "configuration"


@dataclass(frozen=True, slots=True)
class DecisionSettings:
    """The settings of schedulers: a configuration (None: the default one), a version, and a program's plugins.

    A configuration with extenders is refused unless they are ignored. `document` is the configuration as written, None
    if unknown.
    """

    configuration: Configuration | None = None
    release: ReleaseChoice = CLUSTER_RELEASE
    ignore_extenders: bool = False
    plugins: tuple[type[Any], ...] = ()
    document: Document | None = None

    def __post_init__(self) -> None:
        """Raise InputError for a configuration with extenders that are not ignored, and for invalid plugins."""
        without_extenders(self.configuration, ignore=self.ignore_extenders)
        self.deciding()

    def deciding(self, schedulers: Sequence[str] = ()) -> Configuration | None:
        """Return the configuration with the plugins; None without both.

        Without a configuration, each of the `schedulers` has the default profile with the plugins.
        """
        if not self.plugins:
            return self.configuration
        configuration = self.configuration
        if configuration is None:
            names = dict.fromkeys((default_configuration().profiles[0].scheduler_name, *schedulers))
            profiles = [{"schedulerName": name} for name in names]
            configuration = read_configuration({"apiVersion": API_VERSION, "kind": KIND, "profiles": profiles}, "")
        return with_plugins(configuration, self.plugins, IN_TREE)

    def caveats(self) -> tuple[Caveat, ...]:
        """Return the caveats of answers with these settings."""
        ignored = without_extenders(self.configuration, ignore=self.ignore_extenders)
        return (*ignored, *upstream_departures(self.configuration or default_configuration()))

    def changed(
        self,
        configuration: ConfigurationGiven | None = None,
        feature_gates: str | None = None,
        plugins: Iterable[type[Any]] | None = None,
        *,
        kubernetes_version: str | None = None,
        ignore_extenders: bool | None = None,
    ) -> DecisionSettings:
        """Return these settings with changes. Raises PodiumError as `read_settings` does."""
        version = self.release.version if kubernetes_version is None else kubernetes_version
        read = read_settings(
            *(configuration, feature_gates or "", plugins or ()), kubernetes_version=version, ignore_extenders=True
        )
        return replace(
            self,
            configuration=self.configuration if configuration is None else read.configuration,
            document=self.document if configuration is None else read.document,
            release=read.release if feature_gates is not None else replace(read.release, gates=self.release.gates),
            plugins=self.plugins if plugins is None else read.plugins,
            ignore_extenders=self.ignore_extenders if ignore_extenders is None else ignore_extenders,
        )


def read_settings(
    configuration: ConfigurationGiven | None = None,
    feature_gates: str = "",
    plugins: Iterable[type[Any]] = (),
    *,
    kubernetes_version: str = "",
    ignore_extenders: bool = False,
) -> DecisionSettings:
    """Return the settings. Raises PodiumError for invalid ones."""
    document: Document | None = None
    if isinstance(configuration, str | Path):
        document = load_document(str(configuration))
    elif isinstance(configuration, dict):
        document = as_document(configuration, _SOURCE)
    if document is not None:
        configuration = read_configuration(document.raw, document.source)
    if configuration is not None and not isinstance(configuration, Configuration):
        problem = f"{shown(configuration)} is not a configuration: give a file name, a dictionary or a Configuration"
        raise InputError(problem, source=_SOURCE)
    release = read_choice(kubernetes_version, feature_gates)
    return DecisionSettings(configuration, release, ignore_extenders, tuple(plugins), document)
