"""Building profiles from a configuration."""

from __future__ import annotations

from typing import Any

import pytest

from podium.api.errors import InputError
from podium.cluster.cluster import Cluster
from podium.framework.plugin import PluginContext
from podium.framework.settings.arguments import Arguments, read_arguments
from podium.framework.settings.configuration import DEFAULT_PLUGINS, FIELDS, read_configuration
from podium.framework.settings.registry import Factory, Profile, Registry, build_profiles

TYPE = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
METHODS = {
    "preEnqueue": ["pre_enqueue"],
    "queueSort": ["sort_key"],
    "preFilter": ["pre_filter"],
    "filter": ["filter"],
    "postFilter": ["post_filter"],
    "preScore": ["pre_score"],
    "score": ["score"],
    "reserve": ["reserve", "unreserve"],
    "permit": ["permit"],
    "preBind": ["pre_bind"],
    "bind": ["bind"],
    "postBind": ["post_bind"],
}


class LimitArgs(Arguments, frozen=True, kw_only=True):
    limit: int = 3


def dummy(name: str, *points: str) -> Factory:
    """Return a plugin with the methods of some extension points, and one argument."""

    def make(self: Any, context: PluginContext) -> None:
        self.limit = read_arguments(context.args, LimitArgs, name).limit

    methods = {method: lambda *_: None for point in points for method in METHODS[point]}
    return type(name, (), {"name": name, "__init__": make, **methods})


def failing(context: PluginContext) -> Any:
    raise ZeroDivisionError("there is nothing to share")


REGISTRY = Registry(
    {name: dummy(name, "filter") for name in DEFAULT_PLUGINS.names()}
    | {
        "PrioritySort": dummy("PrioritySort", "queueSort"),
        "DefaultBinder": dummy("DefaultBinder", "bind"),
        "NodeAffinity": dummy("NodeAffinity", "preFilter", "filter", "score"),
        "Everything": dummy("Everything", *(point for point in METHODS if point != "queueSort")),
        "Scorer": dummy("Scorer", "score"),
        "ReverseSort": dummy("ReverseSort", "queueSort"),
        "Failing": failing,
        "Twin": dummy("NodeAffinity", "filter"),
    }
)


def built(*profiles: dict[str, Any]) -> dict[str, Profile]:
    configuration = read_configuration({**TYPE, "profiles": list(profiles)}, "scheduler.yaml")
    return build_profiles(configuration, REGISTRY, Cluster())


def profile(plugins: dict[str, Any], **fields: Any) -> Profile:
    """Return the one profile of a configuration that leaves no default but PrioritySort and DefaultBinder."""
    multi_point = plugins.get("multiPoint", [])
    sets = {point: {"enabled": entries} for point, entries in plugins.items()}
    bare = [{"name": "PrioritySort"}, {"name": "DefaultBinder"}, *multi_point]
    sets["multiPoint"] = {"enabled": bare, "disabled": [{"name": "*"}]}
    return built({"plugins": sets, **fields})["default-scheduler"]


def refusal(*profiles: dict[str, Any]) -> str:
    with pytest.raises(InputError) as refused:
        built(*profiles)
    return str(refused.value)


def names(profile: Profile, point: str) -> list[str]:
    found = getattr(profile, FIELDS[point])
    return [found.name] if point == "queueSort" else [plugin.name for plugin in found]


def test_a_multipoint_plugin_runs_at_each_point_that_it_implements() -> None:
    made = profile({"multiPoint": [{"name": "Everything"}]})
    assert [point for point in METHODS if "Everything" in names(made, point)] == [
        point for point in METHODS if point != "queueSort"
    ]


def test_a_plugin_is_one_instance_at_all_points_of_a_profile() -> None:
    made: Any = profile({"multiPoint": [{"name": "NodeAffinity"}]})
    assert made.pre_filter[0] is made.filter[0] is made.score[0]


def test_each_profile_has_its_own_instances() -> None:
    made = built({"schedulerName": "one"}, {"schedulerName": "two"})
    assert list(made) == ["one", "two"]
    assert made["one"].filter[0] is not made["two"].filter[0]


def test_a_plugin_enabled_at_one_point_runs_there_alone() -> None:
    made = profile({"filter": [{"name": "NodeAffinity"}]})
    assert [names(made, point) for point in ("preFilter", "filter", "score")] == [[], ["NodeAffinity"], []]


def test_multipoint_plugins_enabled_at_a_point_come_first() -> None:
    multi_point = [{"name": "NodeAffinity"}, {"name": "Everything"}]
    made = profile({"multiPoint": multi_point, "score": [{"name": "Scorer"}, {"name": "Everything", "weight": 7}]})
    assert names(made, "score") == ["Everything", "NodeAffinity", "Scorer"]
    assert names(made, "filter") == ["NodeAffinity", "Everything"]
    assert made.weights == {"Everything": 7, "NodeAffinity": 1, "Scorer": 1}


def test_a_default_disabled_at_a_point_keeps_its_other_points() -> None:
    made = built({"plugins": {"score": {"disabled": [{"name": "NodeAffinity"}]}}})["default-scheduler"]
    assert "NodeAffinity" in names(made, "filter")
    assert names(made, "score") == []
    assert made.weights == {}


def test_a_profile_has_its_percentage() -> None:
    assert profile({}, percentageOfNodesToScore=30).percentage_of_nodes_to_score == 30


def test_a_plugin_is_made_with_its_arguments() -> None:
    made: Any = profile({"filter": [{"name": "NodeName"}]}, pluginConfig=[{"name": "NodeName", "args": {"limit": 5}}])
    assert made.filter[0].limit == 5


def test_a_plugin_without_arguments_takes_its_own_defaults() -> None:
    made: Any = profile({"filter": [{"name": "NodeName"}]})
    assert made.filter[0].limit == 3


def test_wrong_arguments_are_refused_at_their_place() -> None:
    config = [{"name": "NodeName"}, {"name": "NodePorts", "args": {"limit": "5"}}]
    assert refusal({"pluginConfig": config}) == (
        'scheduler.yaml, plugin NodePorts, .profiles[0].pluginConfig[1].args.limit: "5" is not a whole number'
    )


def test_arguments_of_a_disabled_plugin_are_left_alone() -> None:
    disabled = {"multiPoint": {"disabled": [{"name": "NodePorts"}]}}
    assert built({"plugins": disabled, "pluginConfig": [{"name": "NodePorts", "args": {"limit": "5"}}]})


def test_arguments_of_a_plugin_that_is_nowhere_are_refused() -> None:
    assert refusal({"pluginConfig": [{"name": "NodePort", "args": {}}]}) == (
        "scheduler.yaml, profile default-scheduler, .profiles[0].pluginConfig[0].name: "
        'no plugin "NodePort" is enabled in this profile; did you mean NodePorts?'
    )


def test_refused_arguments_are_located_in_the_plugin_config_and_unknown_plugins_where_they_are_enabled() -> None:
    def place(name: str) -> str:
        given = {"plugins": {"filter": {"enabled": [{"name": name}]}}, "pluginConfig": [{"name": name, "args": {}}]}
        return refusal(given).partition(": ")[0].rpartition(", ")[2]

    assert place("Failing") == ".profiles[0].pluginConfig[0].args"
    assert place("NodePort") == ".profiles[0].plugins.filter.enabled"


@pytest.mark.parametrize(
    ("plugins", "says"),
    [
        (
            {"filter": {"enabled": [{"name": "NodePort"}]}},
            '.profiles[0].plugins.filter.enabled: there is no plugin "NodePort" (did you mean NodePorts',
        ),
        (
            {"score": {"enabled": [{"name": "NodeName"}]}},
            '.profiles[0].plugins.score.enabled: plugin "NodeName" has no methods for score; it has those for filter',
        ),
        (
            {"multiPoint": {"enabled": [{"name": "Failing"}]}},
            '.profiles[0].plugins.multiPoint.enabled: plugin "Failing" failed while it was made: ZeroDivisionError: ',
        ),
        (
            {"filter": {"enabled": [{"name": "Twin"}]}},
            '.profiles[0].plugins.filter.enabled: two plugins here are called "NodeAffinity"; disable one',
        ),
        (
            {"queueSort": {"enabled": [{"name": "ReverseSort"}]}},
            ".profiles[0].plugins.queueSort: exactly one plugin must sort the queue; enabled: PrioritySort, Rev",
        ),
        (
            {"queueSort": {"disabled": [{"name": "*"}]}},
            ".profiles[0].plugins.queueSort: exactly one plugin must sort the queue; enabled: none",
        ),
        (
            {"bind": {"disabled": [{"name": "DefaultBinder"}]}},
            ".profiles[0].plugins.bind: no plugin binds pods",
        ),
    ],
)
def test_a_profile_that_cannot_be_is_refused_with_file_profile_and_place(plugins: dict[str, Any], says: str) -> None:
    assert refusal({"plugins": plugins}).startswith(f"scheduler.yaml, profile default-scheduler, {says}")


@pytest.mark.parametrize("point", ["preFilter", "preScore"])
def test_a_plugin_of_podium_that_prepares_nothing_may_be_listed_where_kube_schedulers_prepares(point: str) -> None:
    made = profile({point: [{"name": "NodeName"}, {"name": "Everything"}]})
    assert names(made, point) == ["Everything"]


def test_disabling_a_plugin_that_is_not_there_is_allowed() -> None:
    assert built({"plugins": {"multiPoint": {"disabled": [{"name": "DynamicResources"}]}}})


REVERSED = {"queueSort": {"enabled": [{"name": "ReverseSort"}], "disabled": [{"name": "*"}]}}


def test_profiles_that_sort_the_queue_by_different_plugins_are_refused() -> None:
    assert refusal({"schedulerName": "one"}, {"schedulerName": "two", "plugins": REVERSED}) == (
        "scheduler.yaml, profile two, .profiles[1].plugins.queueSort: "
        "must be the same, with the same arguments, in all profiles"
    )


def test_profiles_that_sort_the_queue_by_different_arguments_are_refused() -> None:
    config = {"pluginConfig": [{"name": "PrioritySort", "args": {"limit": 4}}]}
    assert ".profiles[1].plugins.queueSort" in refusal({"schedulerName": "one"}, {"schedulerName": "two", **config})


def test_profiles_may_all_sort_the_queue_in_another_way() -> None:
    made = built({"schedulerName": "one", "plugins": REVERSED}, {"schedulerName": "two", "plugins": REVERSED})
    assert [names(each, "queueSort") for each in made.values()] == [["ReverseSort"], ["ReverseSort"]]
