"""How the schedulers decide that are asked about a cluster, in whatever form a program has that at hand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from podium.api.basis import Caveat
from podium.api.errors import InputError, shown
from podium.api.input.codec import Document
from podium.api.input.files import FileName
from podium.app.plain import as_document
from podium.framework.settings.configuration import (
    API_VERSION,
    KIND,
    Configuration,
    default_configuration,
    load_document,
    read_configuration,
)
from podium.framework.settings.departures import departures
from podium.framework.settings.extenders import without_extenders
from podium.framework.settings.feature_gates import FeatureGates, read_feature_gates
from podium.framework.settings.handed_over import with_plugins
from podium.plugins.registry import IN_TREE

ConfigurationGiven = Configuration | dict[str, Any] | FileName
"""A KubeSchedulerConfiguration: as it was read, as a dictionary, or the name of its file."""

_SOURCE = "configuration"


@dataclass(frozen=True, slots=True)
class DecisionSettings:
    """A configuration, None for that of a default kube-scheduler, feature gates, and plugins that were handed over.

    A configuration with extenders is refused unless they are to be ignored. `document` is the configuration as it is
    written, None where that is not known.
    """

    configuration: Configuration | None = None
    feature_gates: FeatureGates = field(default_factory=FeatureGates)
    ignore_extenders: bool = False
    plugins: tuple[type[Any], ...] = ()
    document: Document | None = None

    def __post_init__(self) -> None:
        """Raises InputError for a configuration with extenders that are not to be ignored, and for plugins."""
        self.without_extenders()
        self.deciding()

    def deciding(self, schedulers: Sequence[str] = ()) -> Configuration | None:
        """The configuration with the plugins; None where there is neither.

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
        """What an answer rests on that goes by these settings."""
        return (*self.without_extenders(), *departures(self.configuration or default_configuration()))

    def without_extenders(self) -> tuple[Caveat, ...]:
        """What is to be said of the configuration's extenders. Raises InputError where they are not to be ignored."""
        settings = self.configuration or default_configuration()
        return without_extenders(settings.extenders, settings.source, ignore=self.ignore_extenders)

    def changed(
        self,
        configuration: ConfigurationGiven | None = None,
        feature_gates: FeatureGates | str | None = None,
        plugins: Iterable[type[Any]] | None = None,
        *,
        ignore_extenders: bool | None = None,
    ) -> DecisionSettings:
        """These settings, but for what is given. Raises PodiumError as `read_settings` does."""
        read = read_settings(configuration, feature_gates or "", plugins or (), ignore_extenders=True)
        return replace(
            self,
            configuration=self.configuration if configuration is None else read.configuration,
            document=self.document if configuration is None else read.document,
            feature_gates=self.feature_gates if feature_gates is None else read.feature_gates,
            plugins=self.plugins if plugins is None else read.plugins,
            ignore_extenders=self.ignore_extenders if ignore_extenders is None else ignore_extenders,
        )


def read_settings(
    configuration: ConfigurationGiven | None = None,
    feature_gates: FeatureGates | str = "",
    plugins: Iterable[type[Any]] = (),
    *,
    ignore_extenders: bool = False,
) -> DecisionSettings:
    """The settings as they are given. Raises PodiumError for what is wrong with any of them."""
    document: Document | None = None
    if isinstance(configuration, str | Path):
        document = load_document(str(configuration))
    elif isinstance(configuration, dict):
        document = as_document(configuration, _SOURCE)
    if document is not None:
        configuration = read_configuration(document.raw, document.source)
    if configuration is not None and not isinstance(configuration, Configuration):
        problem = f"{shown(configuration)} is none; a file's name, a dictionary or a Configuration is needed"
        raise InputError(problem, source=_SOURCE)
    gates = read_feature_gates(feature_gates) if isinstance(feature_gates, str) else feature_gates
    return DecisionSettings(configuration, gates, ignore_extenders, tuple(plugins), document)
