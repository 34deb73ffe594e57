"""The effect of a profile's plugin sets on the defaults, and of multiPoint on the extension points."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from podium.framework.settings.configuration import DEFAULT_PLUGINS, PluginEntry, Plugins, PluginSet

NAMES = ["A", "B", "C", "D", "E"]


def some(*enabled: str, disabled: str = "") -> PluginSet:
    """Return a set of plugins written as "A" or "A:3", with the names of those disabled in one text."""
    pairs = (text.partition(":") for text in enabled)
    return PluginSet(
        enabled=tuple(PluginEntry(name=name, weight=int(weight) if weight else None) for name, _, weight in pairs),
        disabled=tuple(PluginEntry(name=name) for name in disabled.split()),
    )


def weights(plugins: PluginSet) -> list[tuple[str, int | None]]:
    return [(entry.name, entry.weight) for entry in plugins.enabled]


def test_enabled_plugins_follow_the_defaults() -> None:
    assert some("A", "B").merged_with(some("C")).names() == ["A", "B", "C"]


def test_a_disabled_default_is_left_out() -> None:
    assert some("A", "B").merged_with(some(disabled="A")).names() == ["B"]


def test_disabling_a_non_default_plugin_changes_nothing() -> None:
    assert some("A", "B").merged_with(some(disabled="Z")).names() == ["A", "B"]


def test_a_star_disables_all_defaults_and_nothing_that_is_enabled() -> None:
    assert some("A", "B").merged_with(some("B", "A", "C", disabled="*")).names() == ["B", "A", "C"]


def test_a_default_disabled_and_enabled_again_moves_to_the_place_it_is_given() -> None:
    assert some("A", "B").merged_with(some("C", "A", disabled="A")).names() == ["B", "C", "A"]


def test_a_default_enabled_again_keeps_its_place_and_takes_the_new_weight() -> None:
    merged = some("A:3", "B", "C").merged_with(some("C:5", "A:7"))
    assert weights(merged) == [("A", 7), ("B", None), ("C", 5)]


def test_a_default_enabled_again_without_weight_loses_the_one_it_had() -> None:
    assert weights(some("A:3").merged_with(some("A"))) == [("A", None)]


def test_merging_remembers_what_is_disabled() -> None:
    merged = some("A", disabled="X").merged_with(some(disabled="Y"))
    assert {entry.name for entry in merged.disabled} == {"X", "Y"}


def expanded(point: PluginSet, multi_point: PluginSet, without: str = "") -> list[str]:
    """Return the order at a point where all plugins take part but those named."""
    return point.expanded(multi_point, lambda name: name not in without)


def test_multipoint_plugins_stand_where_they_take_part() -> None:
    assert expanded(some(), some("A", "B", "C"), without="B") == ["A", "C"]


def test_a_plugin_of_the_point_alone_comes_behind_those_of_multipoint() -> None:
    assert expanded(some("C"), some("A", "B")) == ["A", "B", "C"]


def test_multipoint_plugins_enabled_at_the_point_too_come_first_in_the_order_given_there() -> None:
    assert expanded(some("D", "C", "A"), some("A", "B", "C")) == ["C", "A", "B", "D"]


def test_a_plugin_disabled_at_the_point_is_not_spread_to_it() -> None:
    assert expanded(some(disabled="A"), some("A", "B")) == ["B"]


def test_a_plugin_disabled_and_enabled_at_the_point_comes_last() -> None:
    assert expanded(some("A", disabled="A"), some("A", "B")) == ["B", "A"]


def test_a_star_at_the_point_keeps_all_multipoint_plugins_out() -> None:
    assert expanded(some("C", "A", disabled="*"), some("A", "B")) == ["C", "A"]


def test_a_weight_at_score_counts_before_that_of_multipoint() -> None:
    plugins = Plugins(multi_point=some("A:2", "B:2"), score=some("A:9"))
    assert [plugins.score_weight("A"), plugins.score_weight("B")] == [9, 2]


def test_a_plugin_enabled_at_score_without_weight_weighs_one() -> None:
    assert Plugins(multi_point=some("A:2"), score=some("A")).score_weight("A") == 1


def test_a_plugin_that_usually_outweighs_all_others_does_so_unless_a_weight_is_given() -> None:
    usual = Plugins(score=some("NodePreferAvoidPods")).score_weight("NodePreferAvoidPods")
    others = [one.weight or 0 for one in DEFAULT_PLUGINS.multi_point.enabled if one.name != "NodePreferAvoidPods"]

    assert usual == 10_000 > sum(others)
    assert Plugins(score=some("NodePreferAvoidPods:5")).score_weight("NodePreferAvoidPods") == 5


def test_all_sets_of_the_defaults_can_be_changed() -> None:
    custom = Plugins(filter=some("Own"), multi_point=some("NodeAffinity:8", disabled="ImageLocality"))
    merged = DEFAULT_PLUGINS.merged_with(custom)
    assert merged.filter.names() == ["Own"]
    assert merged.score_weight("NodeAffinity") == 8
    assert "ImageLocality" not in merged.names()


names = st.lists(st.sampled_from(NAMES), unique=True)


@given(names, names, names, names)
def test_an_expanded_point_has_each_plugin_once_and_all_that_are_not_disabled(
    own: list[str], disabled: list[str], multi_point: list[str], taking_part: list[str]
) -> None:
    order = some(*own, disabled=" ".join(disabled)).expanded(some(*multi_point), taking_part.__contains__)
    assert sorted(order) == sorted(
        {*own, *(name for name in multi_point if name in taking_part)} - ({*disabled} - {*own})
    )
