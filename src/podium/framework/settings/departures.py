"""The settings of a configuration with which a scheduler decides otherwise than kube-scheduler can.

An answer that rests on one of them is not what kube-scheduler would give, and says so. What kube-scheduler can be told
as well, such as the weights of plugins, is no departure.
"""

from __future__ import annotations

from collections.abc import Iterator

from podium.api.basis import MOST_NAMES, Caveat
from podium.framework.settings.configuration import Configuration

# By plugin, the arguments that kube-scheduler does not know, with the value that stands for what it does.
_ARGUMENTS: dict[str, dict[str, object]] = {
    "DefaultPreemption": {
        "bindFirst": False,
        "budgets": "Count",
        "equalPriorityOrder": "StartTime",
        "equalPriorityPreemption": False,
        "minimumRunningTime": "0s",
        "spareMirrorPods": False,
        "victimCost": "Upstream",
        "acrossNodes": False,
        "keepAffinityPartners": False,
        "includeDependents": False,
        "wholeGroups": False,
    },
    "GangScheduling": {
        "preemption": True,
        "releaseAfter": "5m",
        "scheduleTimeout": "5m",
        "maxArrangementSteps": 0,
    },
    "InterPodAffinity": {"nominatedPodsRepel": False},
}


def departures(configuration: Configuration) -> tuple[Caveat, ...]:
    """What an answer says that goes by settings of Podium's own; () where there are none.

    Source of what is compared: docs/differences.md.
    """
    names = tuple(dict.fromkeys(_settings(configuration)))
    if not names:
        return ()
    message = f"settings that kube-scheduler does not have: {', '.join(names)}"
    return (Caveat("own-settings", message, len(names), names[:MOST_NAMES]),)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _settings(configuration: Configuration) -> Iterator[str]:
    if configuration.max_futile_preemptions:
        yield f"maxFutilePreemptions: {configuration.max_futile_preemptions}"
    if configuration.nomination_clearing != "AllLower":
        yield f"nominationClearing: {configuration.nomination_clearing}"
    for profile in configuration.profiles:
        for plugin in profile.plugin_config:
            usual = _ARGUMENTS.get(plugin.name, {})
            for name, value in plugin.args.items():
                if name in usual and value != usual[name]:
                    yield f"{name}: {_shown(value)} of {plugin.name}"
