"""Detection of schedulers that follow avoid lists."""

from __future__ import annotations

from typing import Any

from podium.app.rescheduling.offline import effective_schedulers, ignoring_avoid_lists
from podium.framework.settings.configuration import (
    API_VERSION,
    KIND,
    Configuration,
    default_configuration,
    read_configuration,
)


def configured(*profiles: dict[str, Any]) -> Configuration:
    return read_configuration({"apiVersion": API_VERSION, "kind": KIND, "profiles": list(profiles)}, "")


def test_an_unknown_scheduler_honours_no_avoid_list() -> None:
    assert ignoring_avoid_lists(effective_schedulers(default_configuration(), honors_avoid_lists=False)) == (
        "default-scheduler",
    )


def test_a_scheduler_declared_to_honour_avoid_lists_does() -> None:
    assert ignoring_avoid_lists(effective_schedulers(default_configuration(), honors_avoid_lists=True)) == ()


def test_a_profile_that_names_the_plugin_is_podiums_own() -> None:
    enabled = {"multiPoint": {"enabled": [{"name": "NodePreferAvoidPods", "weight": 5}]}}
    both = configured({"schedulerName": "ours", "plugins": enabled}, {"schedulerName": "theirs"})
    assert ignoring_avoid_lists(effective_schedulers(both, honors_avoid_lists=False)) == ("theirs",)


def test_a_scheduler_with_the_plugin_disabled_honours_no_avoid_list() -> None:
    disabled = {"multiPoint": {"disabled": [{"name": "NodePreferAvoidPods"}]}}
    assert ignoring_avoid_lists(effective_schedulers(configured({"plugins": disabled}), honors_avoid_lists=True)) == (
        "default-scheduler",
    )


def test_other_profile_fields_are_kept() -> None:
    given = configured({"schedulerName": "a", "plugins": {"multiPoint": {"disabled": [{"name": "ImageLocality"}]}}})
    (profile,) = effective_schedulers(given, honors_avoid_lists=False).profiles
    assert [entry.name for entry in profile.plugins.multi_point.disabled] == ["ImageLocality", "NodePreferAvoidPods"]
