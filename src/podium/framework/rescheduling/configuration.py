"""The reader of ReschedulerConfiguration (podium.dev/v1alpha1), strict and with checks.

Files, ConfigMaps and scenarios share this reader. A DeschedulerPolicy is accepted in a file or a ConfigMap.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from podium.api.basis import Caveat
from podium.api.errors import locating
from podium.api.input.codec import load_files, load_text, only_one
from podium.api.input.documents import API_VERSION
from podium.api.input.files import shown_name
from podium.framework.rescheduling.descheduler import KIND as DESCHEDULER_KIND
from podium.framework.rescheduling.descheduler import read_descheduler_policy
from podium.framework.rescheduling.settings import ReschedulerSettings, Written, settings_of
from podium.framework.settings.arguments import read_strictly
from podium.framework.settings.configuration import require_kind

KIND = "ReschedulerConfiguration"
CONFIG_MAP_KEY = "config.yaml"
"""The key of a ConfigMap that holds the configuration as text."""


@dataclass(frozen=True, slots=True)
class ReschedulerConfiguration:
    """The configuration of a rescheduler; ``source`` is the file, or "".

    ``caveats`` name requested features that Podium does not have.
    """

    source: str
    settings: ReschedulerSettings
    caveats: tuple[Caveat, ...] = ()


def load_rescheduler(path: str) -> ReschedulerConfiguration:
    """Return the configuration in a YAML or JSON file ("-": standard input) that holds nothing else.

    Raises InputError.
    """
    document = only_one(load_files([path]), KIND, shown_name(path))
    return read_rescheduler(document.raw, document.source)


def parse_rescheduler(text: str, source: str) -> ReschedulerConfiguration:
    """Return the configuration in a text, such as a ConfigMap's under `CONFIG_MAP_KEY`. Raises InputError."""
    return read_rescheduler(only_one(load_text(text, source), KIND, source).raw, source)


def default_rescheduler() -> ReschedulerConfiguration:
    """Return the default configuration."""
    return ReschedulerConfiguration("", read_settings({}))


def read_settings(raw: Mapping[str, Any]) -> ReschedulerSettings:
    """Return the settings in an object with the fields of a configuration, without ``apiVersion`` and ``kind``.

    The object consists of dicts, lists and scalars, without nulls. Raises InputError with the field's path within it.
    """
    return settings_of(read_strictly(raw, Written))


def read_rescheduler(raw: Mapping[str, Any], source: str) -> ReschedulerConfiguration:
    """Return the configuration in a document of either kind, made of dicts, lists and scalars, without nulls.

    Raises InputError with ``source`` and the field's path for any invalid field.
    """
    with locating(source=source):
        if raw.get("kind") == DESCHEDULER_KIND:
            settings, caveats = read_descheduler_policy(raw)
            return ReschedulerConfiguration(source, settings, caveats)
        require_kind(raw, KIND, API_VERSION, DESCHEDULER_KIND)
        fields = {key: value for key, value in raw.items() if key not in ("apiVersion", "kind")}
        return ReschedulerConfiguration(source, read_settings(fields))
