"""Plugins passed as objects by a program."""

from typing import Any

import pytest

import podium
from podium.api.errors import InputError, PodiumError
from podium.plugin import (
    SUCCESS,
    Arguments,
    CycleState,
    NodeView,
    PluginContext,
    PodRecord,
    Status,
    read_arguments,
    unschedulable,
)
from podium.plugin import DefaultPreemption as Own

CONFIGURATION: dict[str, Any] = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
}


def node(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"allocatable": {"cpu": "4", "pods": "10"}},
    }


def pod(scheduler: str = "default-scheduler") -> dict[str, Any]:
    spec = {"schedulerName": scheduler, "containers": [{"name": "main", "image": "i"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec}


class NotThereArgs(Arguments, frozen=True, kw_only=True):
    node: str = "a"


class NotThere:
    """Refuses one node."""

    def __init__(self, context: PluginContext) -> None:
        self._node = read_arguments(context.args, NotThereArgs, "NotThere").node

    def filter(self, state: CycleState, pod: PodRecord, node: NodeView) -> Status:
        return unschedulable(f"node(s) were {self._node}") if node.name == self._node else SUCCESS


class Better:
    """Likes one node."""

    name = "Liking"

    def score(self, state: CycleState, pod: PodRecord, node: NodeView) -> int:
        return 100 if node.name == "b" else 0


OBJECTS = [node("a"), node("b"), node("c"), pod()]


def test_a_class_that_no_profile_mentions_decides_in_all_of_them() -> None:
    explanation = podium.explain(OBJECTS, "web", plugins=[NotThere, Better])

    assert explanation.nodes["a"].reasons == ("node(s) were a",)
    assert explanation.node == "b"
    assert {found["node"] for found in podium.simulate(OBJECTS, plugins=[NotThere, Better]).pods} == {"b"}


def test_weight_arguments_and_points_are_the_configurations_to_say() -> None:
    profile = {
        "plugins": {
            "multiPoint": {"enabled": [{"name": "Liking", "weight": 7}], "disabled": [{"name": "ImageLocality"}]}
        },
        "pluginConfig": [{"name": "NotThere", "args": {"node": "c"}}],
    }

    explanation = podium.explain(OBJECTS, "web", {**CONFIGURATION, "profiles": [profile]}, plugins=[NotThere, Better])

    assert explanation.nodes["c"].reasons == ("node(s) were c",)
    assert explanation.scores["b"]["Liking"] == 700


def test_a_class_that_a_profile_disables_does_not_decide_there() -> None:
    profiles = [
        {"schedulerName": "plain", "plugins": {"multiPoint": {"disabled": [{"name": "NotThere"}]}}},
        {"schedulerName": "other"},
    ]
    configuration = {**CONFIGURATION, "profiles": profiles}
    given = [*OBJECTS[:3], pod("plain"), {**pod("other"), "metadata": {"name": "job"}}]

    cluster = podium.load(given, configuration, plugins=[NotThere])

    assert all(status.is_success for status in cluster.explain("web").nodes.values())
    assert not cluster.explain("job").nodes["a"].is_success


def test_every_scheduler_of_a_scenario_has_the_class() -> None:
    scenario = {
        "apiVersion": "podium.dev/v1alpha1",
        "kind": "Scenario",
        "spec": {"schedulers": [{"name": "mine"}], "until": "10s"},
    }

    result = podium.simulate([*OBJECTS[:3], pod("mine"), scenario], plugins=[NotThere, Better])

    assert [found["node"] for found in result.pods] == ["b"]


class Nameless(Own):
    """Inherits the name of Podium's own."""


class Twice:
    name = "Liking"

    def score(self, state: CycleState, pod: PodRecord, node: NodeView) -> int:
        return 0


class Nothing:
    pass


@pytest.mark.parametrize(
    ("plugins", "says"),
    [
        ([Nameless], r"plugins\[0\]: Nameless has the name of Podium's own plugin DefaultPreemption"),
        ([Better, Twice], r'plugins\[1\]: two plugins are called "Liking"'),
        ([Better()], r"plugins\[0\]: .* is not a class"),
        (["module:Class"], r'plugins\[0\]: "module:Class" is not a class'),
    ],
)
def test_invalid_plugins_are_reported(plugins: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        podium.load(OBJECTS, plugins=plugins)


def test_a_class_without_methods_of_a_plugin_is_refused() -> None:
    with pytest.raises(PodiumError, match="class Nothing is not a plugin"):
        podium.explain(OBJECTS, "web", plugins=[Nothing])
