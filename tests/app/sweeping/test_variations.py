import pytest

from podium.api.errors import PodiumError
from podium.app.sweeping.sweep import combinations, options_of, read_variations
from podium.sim.run_options import RunOptions

PREEMPTION = "DefaultPreemption"


def test_every_value_of_each_goes_with_every_value_of_the_others_and_the_last_changes_first() -> None:
    variations = read_variations(["until=1m,2m", "bind-delay=0,5s"])

    assert [tuple(each.values()) for each in combinations(variations)] == [
        ("1m", "0"),
        ("1m", "5s"),
        ("2m", "0"),
        ("2m", "5s"),
    ]


def test_without_variations_there_is_one_combination() -> None:
    assert combinations({}) == [{}]


def test_values_of_one_name_come_together() -> None:
    variations = read_variations(
        ["feature-gates=NonPreemptingPriority=false", "feature-gates=NonPreemptingPriority=true"]
    )

    assert variations == {"feature-gates": ["NonPreemptingPriority=false", "NonPreemptingPriority=true"]}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("until", "write it as NAME=VALUE,VALUE"),
        ("until=", "write it as NAME=VALUE,VALUE"),
        ("seed=1,2", "cannot be varied; these can: filename, config, until"),
        ("until=1m,1m", "1m is given twice"),
    ],
)
def test_an_unsupported_sweep_variation_is_reported(text: str, problem: str) -> None:
    with pytest.raises(PodiumError, match=problem):
        read_variations([text])


def test_too_many_combinations_are_rejected() -> None:
    variations = read_variations([f"{name}={','.join(map(str, range(1000)))}" for name in ("until", "bind-delay")])

    with pytest.raises(PodiumError, match="1,000,000 combinations of settings; a sweep may have 100,000"):
        combinations(variations)


def test_options_are_set() -> None:
    options = options_of(
        {"until": "1m", "start-delay": "5s", "expendable-pods-priority-cutoff": "-5"}, RunOptions(), None
    )

    assert (options.until_ns, options.start_delay_ns, options.priority_cutoff) == (60 * 10**9, 5 * 10**9, -5)
    assert options.configuration is None


def test_a_field_and_an_argument_are_set_in_the_profile_of_each_scheduler() -> None:
    wanted = {"maxFutilePreemptions": "3", f"{PREEMPTION}.spareMirrorPods": "true"}

    configuration = options_of(wanted, RunOptions(), None, ["a", "b"]).configuration

    assert configuration is not None
    assert configuration.max_futile_preemptions == 3
    assert [profile.scheduler_name for profile in configuration.profiles] == ["a", "b"]
    assert [profile.plugin_config[0].args for profile in configuration.profiles] == [{"spareMirrorPods": True}] * 2


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        (("until", "soon"), "--vary until=soon: "),
        (("until", "-1s"), '--vary until=-1s: "-1s" is negative; write 0s or more'),
        (("expendable-pods-priority-cutoff", "high"), "--vary expendable-pods-priority-cutoff=high: "),
        (("maxFutilePreemptions", "many"), "the default configuration with maxFutilePreemptions=many"),
    ],
)
def test_an_invalid_value_is_reported_with_its_setting(setting: tuple[str, str], problem: str) -> None:
    with pytest.raises(PodiumError, match=problem):
        options_of(dict([setting]), RunOptions(), None)
