"""From what is varied to a sweep: everything read and checked before any run has taken its time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from podium.api.errors import PodiumError
from podium.api.input.codec import Document, Input
from podium.app.decision_settings import DecisionSettings
from podium.app.sweeping.sweep import Sweep, Variant
from podium.app.sweeping.variations import CONFIG, FILENAME, Combination, Variation, combinations, options_of
from podium.framework.settings.configuration import load_document
from podium.sim.run_options import RunOptions
from podium.sim.scenario.scenario import split_documents


def make_sweep(
    variations: Sequence[Variation],
    read: Callable[[str], Input],
    settings: DecisionSettings,
    options: RunOptions,
    seeds: range,
) -> Sweep:
    """The runs with every combination of settings and every seed. Raises PodiumError for what no run can begin with.

    `read` gives the input with a further file, "" for none; `settings` are those of schedulers where nothing is varied.
    """
    chosen = combinations(variations)
    files = list(dict.fromkeys(combination.get(FILENAME, "") for combination in chosen))
    configs = {file: load_document(file) for file in _configs(chosen)}
    inputs = tuple(read(file) for file in files)
    names = [[scheduler.name for scheduler in split_documents(found.documents)[1].schedulers] for found in inputs]

    def variant(combination: Combination) -> Variant:
        place = files.index(combination.get(FILENAME, ""))
        document = configs[combination[CONFIG]] if CONFIG in combination else settings.document
        varied = options_of(combination, options, document, names[place])
        return Variant(combination, place, _deciding(varied, document, settings, names[place]))

    sweep = Sweep(inputs, tuple(map(variant, chosen)), seeds)
    sweep.check()
    return sweep


def _deciding(
    options: RunOptions, document: Document | None, settings: DecisionSettings, schedulers: Sequence[str]
) -> RunOptions:
    """The options with the plugins that were handed over, and the configuration, if only its reading is known."""
    if document is None and settings.configuration is not None:
        if options.configuration is not None:
            raise PodiumError(
                "a configuration that was read is not varied: give it as a dictionary or a file, whose fields are"
            )
        options = replace(options, configuration=settings.configuration)
    decided = replace(settings, configuration=options.configuration).deciding(schedulers)
    return replace(options, configuration=decided)


def _configs(chosen: Iterable[Combination]) -> dict[str, None]:
    """The files of all configurations that are varied, each once."""
    return dict.fromkeys(combination[CONFIG] for combination in chosen if CONFIG in combination)
