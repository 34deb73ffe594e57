"""The plugins that run between the decision and the binding."""

import pytest

from podium.cluster.pods import PodRecord
from podium.controllers.scheduling.binding_stages import BindingPlugins
from podium.framework.handle import CycleState
from podium.framework.plugin import PluginContext, PreparingPlugin, ReservePlugin
from podium.framework.runner import Runner
from podium.framework.settings.registry import Profile
from podium.framework.verdicts import SUCCESS, Status
from podium.plugins.dynamic_resources.plugin import DynamicResources
from podium.plugins.volumes.binding import VolumeBinding
from tests.builders import cluster_of, node, pod


class Stateful:
    """Has nothing to do for pods for which it left nothing in the state."""

    name = "Stateful"
    needs_state = True

    def reserve(self, _state: CycleState, _pod: PodRecord, _node_name: str) -> Status:
        return SUCCESS

    def unreserve(self, _state: CycleState, _pod: PodRecord, _node_name: str) -> None:
        pass


class Derived(Stateful):
    """May do more than what it is derived from."""


class Unstated:
    """Says nothing about it."""

    name = "Unstated"

    def reserve(self, _state: CycleState, _pod: PodRecord, _node_name: str) -> Status:
        return SUCCESS

    def unreserve(self, _state: CycleState, _pod: PodRecord, _node_name: str) -> None:
        pass


def between(*reserve: ReservePlugin) -> BindingPlugins:
    return BindingPlugins(Runner(Profile("s", reserve=reserve), cluster_of()))


def state_with(**values: object) -> CycleState:
    state = CycleState()
    for name, value in values.items():
        state[name] = value
    return state


def test_without_any_plugin_a_pod_goes_straight_to_its_binding() -> None:
    assert not between().concern(CycleState())


def test_a_plugin_that_needs_state_is_passed_over_where_it_left_none() -> None:
    plugins = between(Stateful())

    assert not plugins.concern(CycleState())
    assert not plugins.concern(state_with(Stateful=None))
    assert not plugins.concern(state_with(Other=1))
    assert plugins.concern(state_with(Stateful=1))


@pytest.mark.parametrize("plugin", [Unstated(), Derived()], ids=["unstated", "derived"])
def test_a_plugin_without_a_declared_scope_is_always_called(plugin: ReservePlugin) -> None:
    assert between(plugin, Stateful()).concern(CycleState())


@pytest.mark.parametrize("made", [VolumeBinding, DynamicResources])
def test_plugins_that_need_state_would_do_nothing_without_it(made: type[VolumeBinding | DynamicResources]) -> None:
    cluster = cluster_of(node("n", cpu=1))
    plugin, record = made(PluginContext({}, cluster)), cluster.read(pod("p", cpu=1))

    for state in (CycleState(), state_with(**{plugin.name: None})):
        assert plugin.reserve(state, record, "n").is_success
        assert not plugin.pre_bind(state, record, "n")
        plugin.unreserve(state, record, "n")
        if isinstance(plugin, PreparingPlugin):
            assert plugin.prepared(state, record, "n").status.is_success
