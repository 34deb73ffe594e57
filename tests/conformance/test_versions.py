"""Podium against the decisions and event messages of kube-scheduler 1.31 to 1.36.

The normal run judges enough cases by each version (`in_turn`): here those of devices and the extra ones, and in
`test_conformance` the others. All that v1.36.2 decided is there and in `test_dynamic_resources`. A run marked `fuzz`
judges every case by every version.
"""

from __future__ import annotations

from collections import defaultdict

import pytest

from tests.conformance.measured import (
    DEVICES,
    EXTRA,
    SETS,
    VERSIONS,
    Case,
    all_cases,
    in_turn,
    judged,
    messages,
    sets_of,
)

ALL = [(version, set_) for version in VERSIONS for set_ in sets_of(version)]
HERE = [one for one in ALL if one[1] == EXTRA or (one[1] == DEVICES and one[0] != VERSIONS[-1])]


def differences(cases: list[Case], set_: str, version: str) -> list[str]:
    """Return what differs from the version's decisions and messages. Every case must have come to a decision."""
    found = [(what, wrong) for case in cases for what, wrong in judged(case, set_, version)]

    assert len([what for what, _ in found if what == "decision"]) == len(cases)
    return [wrong for _, wrong in found if wrong]


@pytest.mark.parametrize(("version", "set_"), HERE)
def test_decisions_and_messages_are_those_of_the_version(version: str, set_: str) -> None:
    wrong = differences(in_turn(set_)[version], set_, version)

    assert not wrong, f"{len(wrong)} differ:\n" + "\n".join(wrong)


@pytest.mark.fuzz
@pytest.mark.parametrize(("version", "set_"), ALL)
def test_every_decision_and_message_is_that_of_the_version(version: str, set_: str) -> None:
    wrong = differences(all_cases(set_, version), set_, version)

    assert not wrong, f"{len(wrong)} differ:\n" + "\n".join(wrong)


@pytest.mark.parametrize("set_", SETS)
def test_every_version_judges_many_cases_and_each_kind_of_change(set_: str) -> None:
    judged_cases = in_turn(set_)
    versions = [version for version in VERSIONS if set_ in sets_of(version)]
    changes = defaultdict(set)
    for one, *others in zip(*(all_cases(set_, version) for version in versions), strict=True):
        changes[tuple(other.expected == one.expected for other in others)].add(one.name)
    judged_names = [{case.name for case in cases} for cases in judged_cases.values()]

    assert len(changes) > 1
    assert all(names & judged for names in changes.values() for judged in judged_names)
    assert min(map(len, judged_names)) >= len(all_cases(set_)) / (3 * len(judged_cases))


def test_every_version_has_extra_cases_and_messages() -> None:
    assert {len(all_cases(EXTRA, version)) for version in VERSIONS} == {34}
    assert [len(messages(version)) for version in VERSIONS] == [965, 965, 967, 967, 967, 968]
