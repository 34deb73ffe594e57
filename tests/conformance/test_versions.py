"""Podium against the decisions and event messages of kube-scheduler 1.31 to 1.36.

v1.36.2's own decisions are in `test_conformance` and `test_dynamic_resources`; of it, only the extra cases and the
messages are here.
"""

from __future__ import annotations

import pytest

from tests.conformance.measured import EXTRA, VERSIONS, all_cases, judged, messages, sets_of

ALL = [(version, set_) for version in VERSIONS for set_ in sets_of(version)]


@pytest.mark.parametrize(("version", "set_"), ALL)
def test_every_decision_and_message_is_that_of_the_version(version: str, set_: str) -> None:
    cases = all_cases(set_, version)
    found = [(case, what, wrong) for case in cases for what, wrong in judged(case, set_, version)]
    wrong = [wrong for _, _, wrong in found if wrong]

    assert len([what for _, what, _ in found if what == "decision"]) == len(cases)
    assert not wrong, f"{len(wrong)} of {len(found)} differ:\n" + "\n".join(wrong)


def test_every_version_has_extra_cases_and_messages() -> None:
    assert {len(all_cases(EXTRA, version)) for version in VERSIONS} == {34}
    assert [len(messages(version)) for version in VERSIONS] == [965, 965, 967, 967, 967, 968]
