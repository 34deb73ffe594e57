"""The rescheduler of a scenario: a ReschedulerConfiguration without apiVersion and kind.

spec:
  rescheduler:
    aggressiveness: Moderate
    policies:
    - {name: MoveToUnderusedNodes}
"""

from __future__ import annotations

from collections.abc import Sequence

from podium.api.errors import InputError
from podium.cluster.cluster import Cluster
from podium.framework.rescheduling.configuration import read_settings
from podium.framework.rescheduling.policy import PolicyRegistry, make_policies
from podium.framework.rescheduling.settings import ReschedulerSettings
from podium.plugins.rescheduling.registry import IN_TREE
from podium.sim.scenario.fields import Fields


def read_rescheduling(given: Fields) -> ReschedulerSettings:
    """Return a scenario's rescheduler settings. Raises InputError with the field's path."""
    raw = given.rest()
    try:
        settings = read_settings(raw)
    except InputError as error:
        raise InputError(error.problem, path=given.path + error.path) from None
    names = [written["name"] for written in raw.get("policies", ())]
    try:
        check_policies(settings, names)
    except InputError as error:
        raise InputError(error.problem, path=given.path + error.path) from error.__cause__
    return settings


def check_policies(settings: ReschedulerSettings, written: Sequence[str] = ()) -> None:
    """Raise InputError for an invalid policy, with its index in ``written``."""
    for policy in settings.policies:
        try:
            make_policies([policy], PolicyRegistry(IN_TREE), Cluster())
        except InputError as error:
            place = f"[{written.index(policy.name)}]" if policy.name in written else ""
            path = f".policies{place}{error.path}"
            raise InputError(error.problem, object=error.object, path=path) from error.__cause__
