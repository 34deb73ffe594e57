"""The public names of `import podium`."""

import doctest
import inspect
from collections.abc import Callable
from functools import partial

import pytest

import podium
import podium.plugin
import podium.policy
from podium.app.cluster import Cluster
from podium.app.library import LoadArguments
from podium.app.planning.command import plan as plan_command
from podium.app.planning.plans import Plans
from tests.docs.blocks import ROOT


def test_all_public_names_are_exported_and_documented() -> None:
    assert set(dir(podium)) >= {*podium.__all__, "plugin", "policy", "testing"}
    for name in podium.__all__:
        assert inspect.getdoc(getattr(podium, name)), name
    assert podium.plugin is getattr(podium, "plugin")  # noqa: B009


def test_each_question_of_the_command_is_a_method() -> None:
    methods = {name for name in vars(Plans) if not name.startswith("_")}

    assert methods == plan_command.commands.keys() - {"check"}
    assert all(inspect.getdoc(getattr(Plans, name)) for name in methods)


def test_every_method_of_a_cluster_is_documented() -> None:
    public = [name for name in vars(Cluster) if not name.startswith("_")]

    assert all(inspect.getdoc(getattr(Cluster, name)) for name in public)


def test_the_functions_take_the_arguments_of_load() -> None:
    taken = set(inspect.signature(podium.load).parameters) - {"objects", "progress"}

    assert set(LoadArguments.__annotations__) == taken


@pytest.mark.parametrize("ask", [podium.simulate, podium.plan, partial(podium.sweep, vary={"until": ["1s"]})])
def test_an_unknown_argument_is_refused(ask: Callable[..., object]) -> None:
    with pytest.raises(TypeError, match="untill"):
        ask([], untill="1s")


def test_a_sweep_refuses_a_single_seed() -> None:
    with pytest.raises(TypeError, match="first_seed"):
        podium.sweep([], {"until": ["1s"]}, seed=1)  # type: ignore[call-arg]  # what is tested


def test_the_modules_for_authors_have_what_they_name_and_their_examples_work() -> None:
    for module in (podium.plugin, podium.policy):
        assert sorted(module.__all__, key=lambda name: (not name.isupper(), name)) == module.__all__
        assert all(hasattr(module, name) for name in module.__all__)
    assert doctest.testmod(podium.plugin, extraglobs={}).failed == 0


def test_the_examples_need_no_other_module() -> None:
    for file in sorted((ROOT / "examples/plugins").glob("*.py")):
        named = [line.split()[1] for line in file.read_text().splitlines() if line.startswith("from podium")]

        assert set(named) <= {"podium.plugin", "podium.policy"}, file.name
