"""What a ReschedulerConfiguration (podium.dev/v1alpha1) says, read strictly and checked.

It stands in a file, under a key of a ConfigMap, or in a scenario: one reader for all. A DeschedulerPolicy is read in
the place of a file or a ConfigMap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from podium.api.basis import Caveat
from podium.api.errors import InputError, shown
from podium.api.input.codec import Document, load_files, load_text
from podium.framework.rescheduling.descheduler.policy import KIND as DESCHEDULER_KIND
from podium.framework.rescheduling.descheduler.policy import is_descheduler_policy, read_descheduler_policy
from podium.framework.rescheduling.settings import ReschedulerSettings
from podium.framework.rescheduling.written import Written, settings_of
from podium.framework.settings.strict import read_strictly

API_VERSION = "podium.dev/v1alpha1"
KIND = "ReschedulerConfiguration"
CONFIG_MAP_KEY = "config.yaml"
"""Under which key a ConfigMap holds the configuration as text."""


@dataclass(frozen=True, slots=True)
class ReschedulerConfiguration:
    """How a rescheduler is to work; ``source`` is the file, or "".

    ``caveats`` are what was asked for and is not done.
    """

    source: str
    settings: ReschedulerSettings
    caveats: tuple[Caveat, ...] = ()


def load_rescheduler(path: str) -> ReschedulerConfiguration:
    """The configuration in a file of YAML or JSON ("-": standard input) that holds nothing else. Raises InputError."""
    return _of_documents(load_files([path]), path)


def parse_rescheduler(text: str, source: str) -> ReschedulerConfiguration:
    """The configuration in a text, such as a ConfigMap's under `CONFIG_MAP_KEY`. Raises InputError."""
    return _of_documents(load_text(text, source), source)


def default_rescheduler() -> ReschedulerConfiguration:
    """The configuration of somebody who configures nothing."""
    return ReschedulerConfiguration("", read_settings({}))


def read_settings(raw: Mapping[str, Any]) -> ReschedulerSettings:
    """The settings in an object with the fields of a configuration, and without ``apiVersion`` and ``kind``.

    It consists of dicts, lists and scalars, without nulls. Raises InputError with the field's path within it.
    """
    return settings_of(read_strictly(raw, Written))


def read_rescheduler(raw: Mapping[str, Any], source: str) -> ReschedulerConfiguration:
    """The configuration in a document of dicts, lists and scalars, without nulls, of either kind.

    Raises InputError, with ``source`` and the field's path, for anything that is not right in it.
    """
    try:
        if is_descheduler_policy(raw):
            settings, caveats = read_descheduler_policy(raw)
            return ReschedulerConfiguration(source, settings, caveats)
        _require_kind(raw)
        fields = {key: value for key, value in raw.items() if key not in ("apiVersion", "kind")}
        return ReschedulerConfiguration(source, read_settings(fields))
    except InputError as error:
        raise error.located(source=source) from None


def _of_documents(documents: Sequence[Document], source: str) -> ReschedulerConfiguration:
    if len(documents) != 1:
        raise InputError(f"holds {len(documents)} objects; one {KIND} is needed, and nothing else", source=source)
    return read_rescheduler(documents[0].raw, documents[0].source)


def _require_kind(raw: Mapping[str, Any]) -> None:
    """Raise for a document of another kind, so that its fields are not called unknown instead."""
    for key, wanted in (("kind", KIND), ("apiVersion", API_VERSION)):
        if raw.get(key) != wanted:
            found = shown(raw[key]) if key in raw else "missing"
            either = f" or {DESCHEDULER_KIND}" if key == "kind" else ""
            raise InputError(f"is {found}; {wanted}{either} is needed", path=f".{key}")
