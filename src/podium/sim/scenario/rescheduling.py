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
from podium.api.meta import Raw
from podium.cluster.cluster import Cluster
from podium.framework.rescheduling.configuration import read_settings
from podium.framework.rescheduling.policy import PolicyRegistry, make_policies
from podium.framework.rescheduling.settings import ReschedulerSettings
from podium.plugins.rescheduling.registry import IN_TREE


def read_rescheduling(raw: Raw, path: str) -> ReschedulerSettings:
    """Return the rescheduler settings in an object at a path. Raises InputError with the field's path."""
    try:
        settings = read_settings(raw)
        check_policies(settings, [written["name"] for written in raw.get("policies", ())])
    except InputError as error:
        raise InputError(error.problem, path=path + error.path) from error.__cause__
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
