"""The rescheduler of a scenario: what a ReschedulerConfiguration says, but for its apiVersion and kind.

spec:
  rescheduler:
    aggressiveness: Moderate
    policies:
    - {name: MoveToUnderusedNodes}
"""

from __future__ import annotations

from podium.api.errors import InputError
from podium.api.meta import Raw
from podium.cluster.cluster import Cluster
from podium.framework.rescheduling.configuration import read_settings
from podium.framework.rescheduling.policy_registry import PolicyRegistry, make_policies
from podium.framework.rescheduling.settings import PolicySettings, ReschedulerSettings
from podium.plugins.rescheduling.registry import IN_TREE
from podium.sim.scenario.fields import Fields


def read_rescheduling(given: Fields) -> ReschedulerSettings:
    """What a scenario says of its rescheduler. Raises InputError with the field's path for what is wrong or unknown."""
    raw = given.rest()
    try:
        settings = read_settings(raw)
    except InputError as error:
        raise InputError(error.problem, path=given.path + error.path) from None
    for policy in settings.policies:
        _check_policy(policy, raw, given.path)
    return settings


def _check_policy(policy: PolicySettings, raw: Raw, path: str) -> None:
    """Raise InputError for a policy that cannot be made, at its place."""
    try:
        make_policies([policy], PolicyRegistry(IN_TREE), Cluster())
    except InputError as error:
        names = [written.get("name") for written in raw.get("policies", ())]
        place = f".policies[{names.index(policy.name)}]{error.path}" if policy.name in names else ".policies"
        raise InputError(error.problem, path=path + place) from error.__cause__
