"""Reading the arguments of plugins."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from podium.api.errors import InputError
from podium.framework.settings.arguments import Arguments, read_arguments


class Weighted(Arguments, frozen=True, kw_only=True):
    name: str
    weight: int = 1


class Own(Arguments, frozen=True, kw_only=True):
    scoring_type: Literal["Least", "Most"] = "Least"
    resources: tuple[Weighted, ...] = ()
    limit: int | None = None

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit > 9:
            raise ValueError("limit must be at most 9")


def refusal(args: dict[str, Any]) -> str:
    with pytest.raises(InputError) as refused:
        read_arguments(args, Own, "OwnPlugin")
    return str(refused.value)


def test_omitted_arguments_have_their_defaults() -> None:
    assert read_arguments({"limit": 3}, Own, "OwnPlugin") == Own(limit=3)


def test_arguments_may_say_what_they_are() -> None:
    args = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "OwnPluginArgs", "scoringType": "Most"}
    assert read_arguments(args, Own, "OwnPlugin") == Own(scoring_type="Most")


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({"scoringTyp": "Most"}, 'plugin OwnPlugin: there is no field "scoringTyp"; did you mean scoringType?'),
        ({"scoring_type": "Most"}, 'plugin OwnPlugin: there is no field "scoring_type"; did you mean scoringType?'),
        ({"kind": "OtherArgs"}, 'plugin OwnPlugin, .kind: is "OtherArgs"; OwnPluginArgs is needed'),
        ({"scoringType": "Best"}, 'plugin OwnPlugin, .scoringType: "Best" is not one of "Least", "Most"'),
        ({"limit": "3"}, 'plugin OwnPlugin, .limit: "3" is not a whole number'),
        ({"resources": [{"name": "cpu", "weigth": 2}]}, 'plugin OwnPlugin, .resources[0]: there is no field "weigth"'),
        ({"resources": [{"weight": 2}]}, "plugin OwnPlugin, .resources[0].name: is missing"),
        ({"limit": 10}, "plugin OwnPlugin: limit must be at most 9"),
    ],
)
def test_a_refusal_names_the_plugin_the_field_and_what_would_be_right(args: dict[str, Any], says: str) -> None:
    assert refusal(args).startswith(says)


def test_an_unknown_field_like_none_of_the_known_has_them_all_listed() -> None:
    assert refusal({"zzz": 1}).endswith("known are: scoringType, resources, limit")


def test_a_hostile_field_name_cannot_write_to_the_terminal() -> None:
    report = refusal({"\x1b[31m\n" + "x" * 100_000: 1})
    assert report.isprintable()
    assert len(report) < 1_000
