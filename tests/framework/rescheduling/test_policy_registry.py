"""Finding and creating policies, and the requirements on their classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from podium.api.errors import InputError
from podium.cluster.cluster import Cluster
from podium.framework.plugin import PluginContext
from podium.framework.rescheduling.policy import Policy, PolicyRegistry, make_policies
from podium.framework.rescheduling.settings import PolicySettings
from podium.framework.settings.arguments import Arguments, read_arguments
from podium.framework.verdicts import PluginError
from tests.framework.extensions import Write, install

METHODS = "    def objective(self, picture): return 0.0\n    def proposals(self, picture): return ()\n"


class LimitArguments(Arguments, frozen=True, kw_only=True):
    limit: int = 3


class Limited:
    """A policy of the table, with arguments."""

    name = "Limited"

    def __init__(self, context: PluginContext) -> None:
        self.limit = read_arguments(context.args, LimitArguments, self.name).limit

    def objective(self, picture: Any) -> float:
        return 0.0

    def proposals(self, picture: Any) -> Any:
        return ()


REGISTRY = PolicyRegistry({"Limited": Limited})


def made(*written: PolicySettings) -> list[tuple[Policy, float]]:
    return list(make_policies(written, REGISTRY, Cluster()))


def refusal(*written: PolicySettings) -> str:
    with pytest.raises(InputError) as refused:
        made(*written)
    return str(refused.value)


def test_policies_are_made_in_order_with_their_weights_and_arguments(module: Write) -> None:
    name = module(f"class Own:\n{METHODS}")
    (own, own_weight), (limited, weight) = made(
        PolicySettings(f"{name}:Own", 2.5), PolicySettings("Limited", args={"limit": 7})
    )
    assert (own.name, own_weight, limited.name, weight) == ("Own", 2.5, "Limited", 1.0)
    assert isinstance(limited, Limited)
    assert limited.limit == 7
    assert isinstance(own, Policy)


def test_an_unknown_policy_is_refused_with_the_near_ones() -> None:
    assert refusal(PolicySettings("Limitd")) == (
        'policy Limitd, .name: there is no policy "Limitd" (did you mean Limited?); '
        "a class of your own is written package.module:Class"
    )


def test_argument_errors_name_their_place() -> None:
    assert refusal(PolicySettings("Limited", args={"limit": "x"})) == (
        'policy Limited, .args.limit: "x" is not a whole number'
    )


def test_two_policies_of_one_name_are_refused() -> None:
    assert "two policies are called" in refusal(PolicySettings("Limited"), PolicySettings("Limited"))


@pytest.mark.parametrize(
    ("body", "lacks"),
    [
        ("    def objective(self, picture): ...", "proposals"),
        ("    def proposals(self, picture): ...", "objective"),
        ("    pass", "objective and proposals"),
        (f"{METHODS}    objective = 3", "objective"),
    ],
)
def test_a_class_without_what_a_policy_has_is_refused_in_words(module: Write, body: str, lacks: str) -> None:
    name = module(f"class Own:\n{body}\n")
    assert refusal(PolicySettings(f"{name}:Own")).endswith(f"class Own is not a policy: it lacks {lacks}")


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("    def __init__(self): raise ValueError('no')", "it failed while it was made: ValueError: no"),
        ("    def __init__(self): raise SystemExit(3)", "it failed while it was made: SystemExit: 3"),
        ("    def __init__(self, context, more): ...", "needs more; it is given a PluginContext, or nothing"),
        ("    name = 3", "the name of a Own is 3; text is needed"),
        ("    name = ''", 'the name of a Own is ""; text is needed'),
    ],
)
def test_a_policy_that_cannot_be_made_is_refused_with_the_reason(module: Write, body: str, says: str) -> None:
    name = module(f"class Own:\n{METHODS}\n{body}\n")
    assert says in refusal(PolicySettings(f"{name}:Own"))


def test_a_class_that_inherits_the_protocol_without_a_name_is_called_as_the_class(module: Write) -> None:
    name = module(f"from podium.framework.rescheduling.policy import Policy\nclass Own(Policy):\n{METHODS}")
    assert made(PolicySettings(f"{name}:Own"))[0][0].name == "Own"


def test_an_installed_package_offers_policies_by_entry_points(module: Write, tmp_path: Path) -> None:
    name = module(f"class Own:\n{METHODS}")
    install(tmp_path, "some-policies", "podium.policies", "OwnPolicy", f"{name}:Own")
    assert made(PolicySettings("OwnPolicy"))[0][0].name == "Own"


def test_a_module_that_does_not_load_is_refused() -> None:
    with pytest.raises(PluginError, match="does not load"):
        REGISTRY.resolve("no_such_module_anywhere:Own")
