"""The components of a simulation that differ from scenario to scenario: schedulers, an autoscaler, a rescheduler."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import msgspec

from podium.api.errors import InputError
from podium.driver.component import Component
from podium.framework.settings.configuration import Configuration, default_configuration
from podium.plane.component_names import SCHEDULER
from podium.plane.components import autoscaler, rescheduler, scheduler
from podium.sim.run_options import RunOptions
from podium.sim.scenario.scenario import Scenario


def components_of(scenario: Scenario, options: RunOptions) -> list[Component]:
    """All of them. Raises InputError for what is wrong with them."""
    return [
        *schedulers_of(scenario, options),
        *autoscalers_of(scenario, options),
        *reschedulers_of(scenario, options),
    ]


def schedulers_of(scenario: Scenario, options: RunOptions) -> list[Component]:
    """The schedulers of a scenario, each a component of its own, or the one of the configuration.

    Each has the profile of its name, the default one without a configuration. Raises InputError where the
    configuration has none of that name.
    """
    if not scenario.schedulers:
        return [_scheduler(SCHEDULER, options)]
    return [
        _scheduler(named.name, replace(options, configuration=configuration_of(named.name, options.configuration)))
        for named in scenario.schedulers
    ]


def autoscalers_of(scenario: Scenario, options: RunOptions) -> list[Component]:
    """The cluster autoscaler that a scenario asks for, if any. Raises InputError for a cut-off of none."""
    wanted, cutoff = scenario.autoscaling, options.priority_cutoff
    if wanted is None:
        if cutoff is not None:
            raise InputError("a priority cut-off is given, and the scenario has no autoscaler")
        return []
    settings = wanted.settings if cutoff is None else replace(wanted.settings, priority_cutoff=cutoff)
    return [autoscaler(wanted.groups, settings, options.configuration, seed=options.seed)]


def reschedulers_of(scenario: Scenario, options: RunOptions) -> list[Component]:
    """The rescheduler that a scenario asks for, if any: it knows what each of its schedulers would do."""
    if scenario.rescheduling is None:
        return []
    configuration = options.configuration or default_configuration()
    if scenario.schedulers:
        named = [configuration_of(found.name, options.configuration) for found in scenario.schedulers]
        configuration = replace(configuration, profiles=tuple(chain.from_iterable(one.profiles for one in named)))
    return [rescheduler(scenario.rescheduling, configuration, seed=options.seed)]


def configuration_of(name: str, configuration: Configuration | None) -> Configuration:
    """What is configured for the scheduler of a name: the profile of that name, or the default one under it."""
    if configuration is None:
        plain = default_configuration()
        return replace(plain, profiles=(msgspec.structs.replace(plain.profiles[0], scheduler_name=name),))
    profiles = tuple(profile for profile in configuration.profiles if profile.scheduler_name == name)
    if not profiles:
        problem = f'the scenario has a scheduler "{name}", and the configuration no profile of that name'
        raise InputError(problem, source=configuration.source)
    return replace(configuration, profiles=profiles)


def _scheduler(name: str, options: RunOptions) -> Component:
    return scheduler(
        name,
        options.configuration,
        seed=options.scheduler_seed,
        feature_gates=options.feature_gates,
        on_attempt=options.on_attempt,
    )
