"""The table of built-in policies."""

from __future__ import annotations

from podium.cluster.cluster import Cluster
from podium.framework.rescheduling.policy import PolicyRegistry, make_policies
from podium.framework.rescheduling.settings import DEFAULT_POLICIES, PolicySettings
from podium.plugins.rescheduling.registry import IN_TREE

# What has no sensible value of its own.
NEEDED = {"ReplaceOldPods": {"maxAge": "720h"}}


def test_every_policy_has_the_name_that_it_is_found_by_and_needs_hardly_any_arguments() -> None:
    written = [PolicySettings(name, args=NEEDED.get(name, {})) for name in IN_TREE]
    made = make_policies(written, PolicyRegistry(IN_TREE), Cluster())
    assert [policy.name for policy, _ in made] == list(IN_TREE)


def test_the_table_is_in_order() -> None:
    assert list(IN_TREE) == sorted(IN_TREE)


def test_the_usual_policies_are_in_the_table() -> None:
    assert set(DEFAULT_POLICIES) <= set(IN_TREE)
    assert not set(DEFAULT_POLICIES) & set(NEEDED)
