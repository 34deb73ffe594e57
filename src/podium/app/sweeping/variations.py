"""What a sweep can vary: options of `podium simulate`, files, and what a KubeSchedulerConfiguration says."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import msgspec

from podium.api.errors import InputError, PodiumError
from podium.api.input.codec import Document
from podium.api.times import parse_duration
from podium.framework.settings.configuration import API_VERSION, KIND, Configuration, read_configuration
from podium.framework.settings.feature_gates import read_feature_gates
from podium.sim.run_options import RunOptions

Combination = Mapping[str, str]
"""One value, as it is written, for each name that is varied, in the order in which they were given."""

MOST_COMBINATIONS = 100_000
"""How many combinations of settings a sweep may have."""

FILENAME, CONFIG = "filename", "config"
_FIELDS = ("percentageOfNodesToScore", "maxFutilePreemptions", "nominationClearing")
# A plugin's name, then the path of a field in its arguments.
_ARGUMENT = re.compile(r"([A-Z]\w*)\.(\w+(?:\.\w+)*)")


@dataclass(frozen=True, slots=True)
class Variation:
    """Something that is varied, and the values that it takes."""

    name: str
    values: tuple[str, ...]


def _duration(text: str) -> int:
    duration_ns = parse_duration(text)
    if duration_ns < 0:
        raise ValueError(f"{text} is negative; write 0s or more")
    return duration_ns


_OPTIONS: dict[str, Callable[[RunOptions, str], RunOptions]] = {
    "until": lambda options, text: replace(options, until_ns=_duration(text)),
    "start-delay": lambda options, text: replace(options, start_delay_ns=_duration(text)),
    "bind-delay": lambda options, text: replace(options, bind_delay_ns=_duration(text)),
    "termination": lambda options, text: replace(options, termination_ns=_duration(text)),
    "expendable-pods-priority-cutoff": lambda options, text: replace(options, priority_cutoff=int(text)),
    "feature-gates": lambda options, text: replace(options, feature_gates=read_feature_gates(text)),
}


def varied_names() -> tuple[str, ...]:
    """All that can be varied, by the name it goes by."""
    return (FILENAME, CONFIG, *_OPTIONS, *_FIELDS, "PLUGIN.ARGUMENT")


def read_variations(texts: Sequence[str]) -> tuple[Variation, ...]:
    """What `NAME=VALUE[,VALUE...]` says, values of one name together. Raises PodiumError for what cannot be varied."""
    values: dict[str, list[str]] = {}
    for text in texts:
        name, equals, listed = text.partition("=")
        if not equals or not listed:
            raise PodiumError(f"--vary {text}: write it as NAME=VALUE,VALUE")
        values.setdefault(name, []).extend(listed.split(","))
    return variations_of(values)


def variations_of(values: Mapping[str, Sequence[str]]) -> tuple[Variation, ...]:
    """What is varied, by name. Raises PodiumError for what cannot be, and for a value that is there twice."""
    for name, found in values.items():
        if not _is_known(name):
            raise PodiumError(f"--vary {name}: cannot be varied; these can: {', '.join(varied_names())}")
        if not found:
            raise PodiumError(f"--vary {name}: has no values")
        for place, value in enumerate(found):
            if value in found[:place]:
                raise PodiumError(f"--vary {name}: {value} is there twice")
    return tuple(Variation(name, tuple(found)) for name, found in values.items())


def combinations(variations: Sequence[Variation]) -> list[Combination]:
    """Every value of each with every value of the others; what was given last changes first.

    Raises PodiumError for more than `MOST_COMBINATIONS`.
    """
    count = 1
    for variation in variations:
        count *= len(variation.values)
    if count > MOST_COMBINATIONS:
        raise PodiumError(f"these are {count:,} combinations of settings; a sweep may have {MOST_COMBINATIONS:,}")
    names = [variation.name for variation in variations]
    return [dict(zip(names, values, strict=True)) for values in product(*(each.values for each in variations))]


def options_of(
    combination: Combination, options: RunOptions, config: Document | None, schedulers: Sequence[str] = ()
) -> RunOptions:
    """The options of runs with the settings.

    `config` is the configuration's document as the file has it, varied or not; None without one, where the `schedulers`
    of the scenario, by name, have a default profile each. Raises PodiumError for a value that is wrong.
    """
    for name, text in combination.items():
        if name in _OPTIONS:
            try:
                options = _OPTIONS[name](options, text)
            except (ValueError, InputError) as error:
                raise PodiumError(f"--vary {name}={text}: {error}") from None
    return replace(options, configuration=_configuration(combination, config, schedulers))


def _is_known(name: str) -> bool:
    return name in varied_names() or _ARGUMENT.fullmatch(name) is not None


def _configuration(
    combination: Combination, config: Document | None, schedulers: Sequence[str]
) -> Configuration | None:
    fields = {name: text for name, text in combination.items() if name in _FIELDS or _ARGUMENT.fullmatch(name)}
    if config is None and not fields:
        return None
    if config is None:
        profiles = [{"schedulerName": name} for name in schedulers]
        raw, source = {"apiVersion": API_VERSION, "kind": KIND, "profiles": profiles}, "the default configuration"
    else:
        raw, source = deepcopy(config.raw), config.source
    plain = read_configuration(raw, source)
    if not fields:
        return plain
    for name, text in fields.items():
        _set(raw, name, _value(text))
    told = ", ".join(f"{name}={text}" for name, text in fields.items())
    return read_configuration(raw, f"{source} with {told}")


def _set(raw: dict[str, Any], name: str, value: Any) -> None:
    """Say it in the configuration: of all profiles, where it is an argument of a plugin."""
    found = _ARGUMENT.fullmatch(name)
    if found is None:
        raw[name] = value
        return
    plugin, path = found.groups()
    profiles = raw.setdefault("profiles", [])
    if not profiles:
        profiles.append({})
    for profile in profiles:
        configs = profile.setdefault("pluginConfig", [])
        mine = next((config for config in configs if config.get("name") == plugin), None)
        if mine is None:
            mine = {"name": plugin}
            configs.append(mine)
        *parents, last = path.split(".")
        place = mine.setdefault("args", {})
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = value


def _value(text: str) -> Any:
    """A number, a boolean, or text."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
