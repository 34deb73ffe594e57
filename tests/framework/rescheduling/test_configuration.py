"""Reading the configuration of a rescheduler."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from podium.api.errors import InputError
from podium.api.selectors import parse_label_selector
from podium.framework.rescheduling.configuration import (
    default_rescheduler,
    load_rescheduler,
    parse_rescheduler,
    read_rescheduler,
    read_settings,
)
from podium.framework.rescheduling.settings import (
    DEFAULT_POLICIES,
    SETTINGS_OF,
    Aggressiveness,
    Guidance,
    MoveCriteria,
    MoveLimitSettings,
    PolicySettings,
    ReschedulerSettings,
    ReschedulingScope,
    Steering,
)

_SECOND = 10**9
_HEAD = "apiVersion: podium.dev/v1alpha1\nkind: ReschedulerConfiguration\n"


def refusal(text: str) -> str:
    with pytest.raises(InputError) as refused:
        parse_rescheduler(_HEAD + text, "rescheduler.yaml")
    return str(refused.value)


def settings(text: str) -> ReschedulerSettings:
    return parse_rescheduler(_HEAD + text, "rescheduler.yaml").settings


def test_nothing_said_is_cautious_with_the_policies_that_are_usual() -> None:
    read = default_rescheduler().settings
    assert [policy.name for policy in read.policies] == list(DEFAULT_POLICIES)
    cautious = SETTINGS_OF[Aggressiveness.CAUTIOUS]
    assert (read.threshold, read.in_flight, read.hourly) == (cautious.threshold, cautious.in_flight, cautious.hourly)
    assert read.steering is Steering.AVOID_LIST
    assert not read.is_paused


def test_the_words_go_from_cautious_to_bold_in_every_number() -> None:
    cautious, moderate, bold = (SETTINGS_OF[word] for word in Aggressiveness)
    for less, more in ((cautious, moderate), (moderate, bold)):
        assert less.threshold > more.threshold
        assert less.interval_ns > more.interval_ns
        assert less.budget_reserve_share > more.budget_reserve_share
        assert less.budget_reserve >= more.budget_reserve
        assert less.max_trials < more.max_trials
        for limits, wider in (
            (less.in_flight, more.in_flight),
            (less.hourly, more.hourly),
            (less.without_budget, more.without_budget),
        ):
            for name in ("total", "node", "namespace", "owner"):
                own, other = getattr(limits, name), getattr(wider, name)
                assert (own is None) == (other is None)
                assert own is None or own <= other
            assert limits.total is not None
            assert wider.total is not None
            assert limits.total < wider.total
    assert (bold.budget_reserve, bold.budget_reserve_share) == (0, 0)


def test_any_number_may_be_set_otherwise_and_the_others_stay_the_words() -> None:
    read = settings("aggressiveness: Bold\nthreshold: 2\nlimits: {inFlight: {total: 3}, hourly: {node: Unlimited}}\n")
    bold = SETTINGS_OF[Aggressiveness.BOLD]
    assert read.threshold == 2.0
    assert read.in_flight == MoveLimitSettings(3, bold.in_flight.node, bold.in_flight.namespace, bold.in_flight.owner)
    assert read.hourly.node is None
    assert read.hourly.total == bold.hourly.total
    assert read.interval_ns == bold.interval_ns


def test_every_setting_can_be_written() -> None:
    read = settings(
        """
aggressiveness: Moderate
paused: true
interval: 90s
threshold: 0.7
limits:
  inFlight: {total: 1, node: 2, namespace: 3, owner: 4}
  hourly: {total: 5, node: 6, namespace: 7, owner: 8}
  withoutBudget: {total: 9, node: 10, namespace: 11, owner: 0}
budgets: {reserve: 2, reserveShare: 0.75}
scope:
  namespaces: {include: [shop, kube-system]}
  podSelector: {matchLabels: {app: web}, matchExpressions: [{key: tier, operator: In, values: [a, b]}]}
  nodeSelector: {matchExpressions: [{key: gpu, operator: DoesNotExist}]}
  allow: [SystemCriticalPods, PodsWithoutController, LocalStorage, WorkInProgress]
  spare: [PodsWithVolumeClaims, PodsWithDeviceClaims]
  priorityBelow: 1000
  minimumReplicas: 2
  minimumAge: 0
  maxLostWork: 1h
policies:
- {name: Consolidate, weight: 3, args: {for: {requests: {nvidia.com/gpu: 8}}}}
- {name: SatisfyPreferences, enabled: false}
guidance: Hint
judgement: Blind
steering: SoftTaint
goesFirst: true
moveTimeout: 2m
coolDown: 1h30m
maxTrials: 17
"""
    )
    assert read == ReschedulerSettings(
        policies=(PolicySettings("Consolidate", 3.0, {"for": {"requests": {"nvidia.com/gpu": 8}}}),),
        interval_ns=90 * _SECOND,
        threshold=0.7,
        in_flight=MoveLimitSettings(1, 2, 3, 4),
        hourly=MoveLimitSettings(5, 6, 7, 8),
        without_budget=MoveLimitSettings(9, 10, 11, 0),
        budget_reserve=2,
        budget_reserve_share=0.75,
        scope=ReschedulingScope(
            included=frozenset(("shop", "kube-system")),
            excluded=frozenset(),
            pods=parse_label_selector("app=web,tier in (a,b)"),
            nodes=parse_label_selector("!gpu"),
            allow=("SystemCriticalPods", "PodsWithoutController", "LocalStorage", "WorkInProgress"),
            spare=("PodsWithVolumeClaims", "PodsWithDeviceClaims"),
            priority_below=1_000,
            minimum_replicas=2,
            max_lost_work_ns=3_600 * _SECOND,
            minimum_age_ns=0,
        ),
        guidance=Guidance.HINT,
        judgement=MoveCriteria.BLIND,
        steering=Steering.SOFT_TAINT,
        goes_first=True,
        move_timeout_ns=120 * _SECOND,
        cool_down_ns=5_400 * _SECOND,
        max_trials=17,
        is_paused=True,
    )


def test_the_system_namespace_is_left_out_unless_it_is_named() -> None:
    assert settings("scope: {}\n").scope.excluded == {"kube-system"}
    assert settings("scope: {namespaces: {include: [shop]}}\n").scope.excluded == {"kube-system"}
    assert settings("scope: {namespaces: {include: [kube-system]}}\n").scope.excluded == frozenset()
    assert settings("scope: {namespaces: {exclude: []}}\n").scope.excluded == frozenset()


def test_a_file_a_text_and_a_scenarios_part_say_the_same(tmp_path: Path) -> None:
    text = "interval: 10s\npolicies: [{name: Own}]\n"
    file = tmp_path / "rescheduler.yaml"
    file.write_text(_HEAD + text)
    loaded = load_rescheduler(str(file))
    assert loaded.source == str(file)
    assert loaded.settings == settings(text) == read_settings({"interval": "10s", "policies": [{"name": "Own"}]})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("threshhold: 1\n", 'there is no field "threshhold"; did you mean threshold?'),
        ("aggressiveness: bold\n", '.aggressiveness: "bold" is not one of "Bold", "Cautious", "Moderate"'),
        ("aggressiveness: 3\n", ".aggressiveness: 3 is not"),
        ("threshold: 0\n", ".threshold: 0 is out of range; it must be > 0"),
        ("threshold: -1.5\n", ".threshold: -1.5 is out of range; it must be > 0"),
        ("threshold: .nan\n", ".nan is not a number that objects can hold"),
        ("threshold: 1.0e9\n", "it must be <= 1000000"),
        ("threshold: high\n", '.threshold: "high" is not a number'),
        ("interval: 0s\n", '.interval: "0s" is too short; write more than 0s'),
        ("interval: -5\n", ".interval: -5 is too short"),
        ("interval: soon\n", '.interval: "soon" is not a duration'),
        ("interval: true\n", ".interval: true is not a duration"),
        ("moveTimeout: 0\n", ".moveTimeout: 0 is too short"),
        ("coolDown: 99999999999h\n", ".coolDown: "),
        ("maxTrials: 0\n", ".maxTrials: 0 is out of range"),
        ("limits: {inFlight: {total: -1}}\n", ".limits.inFlight.total: -1 is out of range; it must be >= 0"),
        ("limits: {inFlight: {total: many}}\n", '.limits.inFlight.total: "many" is neither a whole number nor Unlim'),
        ("limits: {inFlight: {total: 1.5}}\n", ".limits.inFlight.total: 1.5 is not a whole number or text"),
        ("limits: {inflight: {}}\n", '.limits: there is no field "inflight"; did you mean inFlight?'),
        ("budgets: {reserveShare: 1.1}\n", ".budgets.reserveShare: 1.1 is out of range; it must be <= 1"),
        ("budgets: {reserve: -1}\n", ".budgets.reserve: -1 is out of range"),
        ("policies: [{name: A}, {name: A}]\n", '.policies[1].name: "A" is listed twice; remove one'),
        ("policies: [{name: ''}]\n", ".policies[0].name: is empty; the name of a policy is needed"),
        ("policies: [{weight: 2}]\n", ".policies[0].name: is missing, and must be given"),
        ("policies: [{name: A, weight: 0}]\n", ".policies[0].weight: 0 is out of range"),
        ("policies: [{name: A, args: 3}]\n", ".policies[0].args: 3 is not an object"),
        ("policies: {A: {}}\n", ".policies: an object is not a list"),
        ("scope: {namespaces: {include: [A_b]}}\n", '.scope.namespaces.include[0]: "A_b" is not a valid name'),
        ("scope: {namespaces: {include: [a], exclude: [a]}}\n", '.scope.namespaces.exclude: "a" is also included'),
        ("scope: {allow: [Everything]}\n", '.scope.allow[0]: "Everything" is not one of'),
        ("scope: {podSelector: {matchlabels: {a: b}}}\n", "did you mean matchLabels?"),
        ("scope: {podSelector: {matchLabels: {'a b': c}}}\n", ".scope.podSelector.matchLabels: "),
        (
            "scope: {nodeSelector: {matchExpressions: [{key: a, operator: In}]}}\n",
            ".scope.nodeSelector.matchExpressions[0].values: In needs at least one value",
        ),
        ("scope: {minimumAge: -1s}\n", '.scope.minimumAge: "-1s" is too short; write 0s or more'),
        ("metadata: {name: x}\n", 'there is no field "metadata"'),
        ("paused: 'yes'\n", '.paused: "yes" is not true or false'),
    ],
)
def test_rescheduler_configuration_errors_name_the_file_and_the_field(text: str, says: str) -> None:
    message = refusal(text)
    assert message.startswith("rescheduler.yaml")
    assert says in message
    assert "\n" not in message


def test_too_many_policies_are_refused() -> None:
    listed = ", ".join(f"{{name: P{number}}}" for number in range(101))
    assert "at most 100 are possible" in refusal(f"policies: [{listed}]\n")


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        ({}, ".kind: is missing; ReschedulerConfiguration or DeschedulerPolicy is needed"),
        ({"kind": "Scenario"}, '.kind: is "Scenario"; ReschedulerConfiguration or DeschedulerPolicy is needed'),
        ({"kind": "ReschedulerConfiguration"}, ".apiVersion: is missing; podium.dev/v1alpha1 is needed"),
    ],
)
def test_a_document_of_another_kind_is_refused(raw: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError) as refused:
        read_rescheduler(raw, "given")
    assert str(refused.value) == f"given, {says}"


@pytest.mark.parametrize("text", ["", "--- {}\n---\n{}\n", "[1]", "\0", "a: &a [*a, *a]\n"])
def test_a_text_that_holds_no_configuration_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        parse_rescheduler(text, "ConfigMap podium/rescheduler")
