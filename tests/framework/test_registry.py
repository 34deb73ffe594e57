"""Finding plugins, and the requirements on their classes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from podium.cluster.cluster import Cluster
from podium.framework.plugin import Plugin, PluginContext
from podium.framework.settings.registry import Registry, refusing_new_classes
from podium.framework.verdicts import PluginError
from tests.framework.extensions import Write, install

FILTER = "    def filter(self, state, pod, node): ..."


def made(name: str, args: dict[str, Any] | None = None) -> Any:
    return Registry({}).resolve(name)(PluginContext(args or {}, Cluster()))


def refusal(name: str, in_tree: tuple[str, ...] = ()) -> str:
    with pytest.raises(PluginError) as refused:
        Registry(dict.fromkeys(in_tree, PlainPlugin)).resolve(name)
    return str(refused.value)


class PlainPlugin:
    """A plugin of the table."""

    name = "PlainPlugin"

    def __init__(self, context: PluginContext) -> None:
        self.args = context.args

    def filter(self, state: Any, pod: Any, node: Any) -> Any: ...


def test_a_name_in_the_table_is_the_factory_there() -> None:
    assert Registry({"PlainPlugin": PlainPlugin}).resolve("PlainPlugin") is PlainPlugin


def test_an_unknown_name_is_refused_with_the_near_ones() -> None:
    assert refusal("NodeAfinity", ("NodeAffinity", "NodeName")) == (
        'there is no plugin "NodeAfinity" (did you mean NodeAffinity?); '
        "a class of your own is written package.module:Class"
    )


def test_a_name_like_none_is_refused_with_all_that_are_known() -> None:
    assert "(known are: NodeAffinity, NodeName)" in refusal("Zzz", ("NodeAffinity", "NodeName"))


def test_a_class_is_loaded_from_the_module_that_its_name_says(module: Write) -> None:
    name = module(f"class Own:\n    name = 'Mine'\n{FILTER}\n")
    assert made(f"{name}:Own").name == "Mine"


def test_over_the_network_only_classes_that_were_loaded_before_are_found(module: Write) -> None:
    known, unknown = (module(f"class Own:\n    name = 'Mine'\n{FILTER}\n") for _ in range(2))
    assert made(f"{known}:Own").name == "Mine"

    with refusing_new_classes():
        assert made(f"{known}:Own").name == "Mine"
        assert "was not loaded at the start" in refusal(f"{unknown}:Own")
        assert unknown not in sys.modules
    assert made(f"{unknown}:Own").name == "Mine"


def test_a_class_without_a_name_is_called_as_the_class(module: Write) -> None:
    name = module(f"class Own:\n{FILTER}\n")
    assert made(f"{name}:Own").name == "Own"


def test_a_class_that_inherits_a_protocol_without_a_name_is_called_as_the_class(module: Write) -> None:
    imports = "from podium.framework.plugin import FilterPlugin\n"
    name = module(f"{imports}class Own(FilterPlugin):\n{FILTER}\n")
    assert made(f"{name}:Own").name == "Own"


def test_a_name_given_in_the_constructor_is_kept(module: Write) -> None:
    name = module(f"class Own:\n    def __init__(self): self.name = 'Mine'\n{FILTER}\n")
    assert made(f"{name}:Own").name == "Mine"


@pytest.mark.parametrize(
    "parameters", ["self, context", "self, context=None", "self, context, /", "self, context, *more"]
)
def test_a_constructor_with_a_parameter_is_given_the_context(module: Write, parameters: str) -> None:
    name = module(f"class Own:\n    def __init__({parameters}): self.args = context.args\n{FILTER}\n")
    assert made(f"{name}:Own", {"limit": 1}).args == {"limit": 1}


@pytest.mark.parametrize("parameters", ["self", "self, *more", "self, *, limit=3", "self, **more"])
def test_a_constructor_without_a_place_for_the_context_is_called_without(module: Write, parameters: str) -> None:
    name = module(f"class Own:\n    def __init__({parameters}): self.received = [*locals()]\n{FILTER}\n")
    assert "context" not in made(f"{name}:Own").received


@pytest.mark.parametrize("parameters", ["self, context, limit", "self, *, limit"])
def test_a_constructor_that_needs_more_is_refused(module: Write, parameters: str) -> None:
    name = module(f"class Own:\n    def __init__({parameters}): ...\n{FILTER}\n")
    assert refusal(f"{name}:Own") == "the constructor of Own needs limit; it is given a PluginContext, or nothing"


def test_a_class_without_any_methods_of_a_plugin_is_refused_with_those_it_could_have(module: Write) -> None:
    name = module("class Own:\n    def filters(self, state, pod, node): ...\n")
    message = refusal(f"{name}:Own")
    assert message.startswith(
        "class Own is not a plugin: it has none of the methods pre_enqueue, sort_key, pre_filter, "
    )
    assert "filter_rows" in message


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import no_such_module_anywhere", "ModuleNotFoundError: No module named 'no_such_module_anywhere'"),
        ("class Own(", "SyntaxError"),
        ("raise RuntimeError('no')", "RuntimeError: no"),
        ("import sys\nsys.exit(3)", "SystemExit: 3"),
        ("class Stop(BaseException): ...\nraise Stop", "Stop: "),
        ("class Owm:\n    pass", "has no class Own; did you mean Owm?"),
        ("Own = 3", "has no class Own; known are: none"),
    ],
)
def test_a_module_that_does_not_load_or_lacks_the_class_is_refused_with_the_reason(
    module: Write, text: str, says: str
) -> None:
    name = module(text)
    message = refusal(f"{name}:Own")
    assert f"module {name} " in message
    assert says in message


def test_ctrl_c_while_a_module_loads_is_no_failure_of_it(module: Write) -> None:
    name = module("raise KeyboardInterrupt")

    with pytest.raises(KeyboardInterrupt):
        Registry({}).resolve(f"{name}:Own")


def test_a_module_that_is_not_there_is_refused() -> None:
    assert "is it installed, or its folder on PYTHONPATH?" in refusal("no_such_module_anywhere:Own")


@pytest.mark.parametrize("name", [":Own", "a:", ".a:Own", "a..b:Own", "a:b:c", "/etc/passwd:Own", "a b:Own", "a:Own()"])
def test_only_a_module_and_a_class_are_a_place(name: str) -> None:
    assert "write it as in package.module:Class" in refusal(name)


def test_an_installed_package_offers_plugins_by_entry_points(module: Write, tmp_path: Path) -> None:
    name = module(f"class Own:\n{FILTER}\n")
    install(tmp_path, "some-plugins", "podium.plugins", "OwnPlugin", f"{name}:Own")
    assert made("OwnPlugin").name == "Own"


def test_the_table_comes_before_installed_packages(module: Write, tmp_path: Path) -> None:
    install(tmp_path, "other-plugins", "podium.plugins", "PlainPlugin", f"{module('')}:Missing")
    assert Registry({"PlainPlugin": PlainPlugin}).resolve("PlainPlugin") is PlainPlugin


def test_a_plugin_that_two_packages_offer_is_refused_with_the_places(module: Write, tmp_path: Path) -> None:
    name = module(f"class Own:\n{FILTER}\nclass Other(Own): ...\n")
    install(tmp_path, "some-plugins", "podium.plugins", "OwnPlugin", f"{name}:Own")
    install(tmp_path, "other-plugins", "podium.plugins", "OwnPlugin", f"{name}:Other")
    assert refusal("OwnPlugin").endswith(f"write which: {name}:Other or {name}:Own")


def plugin(name: object = "Own", **members: object) -> Plugin:
    """Return a plugin of some members; all its methods do nothing."""
    return type("Own", (), {"name": name, **members})()  # type: ignore[no-any-return]


def nothing(self: object) -> None: ...


@pytest.mark.parametrize(
    ("members", "lacks"),
    [
        ({"reserve": nothing}, "has reserve but no unreserve; ReservePlugin needs all of them"),
        ({"filter_rows": nothing}, "has filter_rows but no scope"),
        ({"score_rows": nothing}, "has score_rows but no scope"),
        ({"pre_filter": nothing, "add_pod": nothing}, "has add_pod but no remove_pod"),
    ],
)
def test_a_plugin_with_half_of_what_a_point_needs_is_refused(members: dict[str, object], lacks: str) -> None:
    with pytest.raises(PluginError, match=f"plugin Own {lacks}"):
        Registry({}).require_whole(plugin(**members))


def test_a_custom_scope_needs_no_array_methods() -> None:
    Registry({}).require_whole(plugin(scope="anything", filter=nothing))


@pytest.mark.parametrize("name", ["", None, 3])
def test_the_name_of_a_plugin_is_text(name: object) -> None:
    with pytest.raises(PluginError, match="text is needed"):
        Registry({}).require_whole(plugin(name, filter=nothing))
