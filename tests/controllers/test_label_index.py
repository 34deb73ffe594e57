"""The indexes of labels and selectors against checking every object."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.api.selectors import NOTHING, Requirement, Selector
from podium.controllers.indexes import LabelIndex, SelectorIndex

KEYS = st.sampled_from(["app", "tier"])
VALUES = st.sampled_from(["web", "db", "front"])
LABELS = st.dictionaries(KEYS, VALUES)
REQUIREMENTS = st.one_of(
    st.builds(Requirement, KEYS, st.sampled_from(["In", "NotIn"]), st.lists(VALUES, min_size=1).map(tuple)),
    st.builds(Requirement, KEYS, st.sampled_from(["Exists", "DoesNotExist"])),
)
SELECTORS = st.one_of(st.lists(REQUIREMENTS, max_size=3).map(tuple).map(Selector), st.just(NOTHING))
NAMES = st.sampled_from(["a", "b", "c", "d"])


@given(st.lists(st.tuples(NAMES, st.none() | LABELS)), SELECTORS)
def test_a_selector_finds_the_labels_that_it_matches(
    changes: list[tuple[str, dict[str, str] | None]], one: Selector
) -> None:
    index: LabelIndex[str] = LabelIndex()
    there: dict[str, dict[str, str]] = {}
    for name, labels in changes:
        there.pop(name, None)
        if labels is None:
            index.remove(name)
        else:
            index.put(name, labels)
            there[name] = labels

    assert sorted(index.matching(one)) == sorted(name for name, labels in there.items() if one.matches(labels))


@given(st.lists(st.tuples(NAMES, st.none() | SELECTORS)), LABELS)
def test_labels_find_the_selectors_that_match_them(
    changes: list[tuple[str, Selector | None]], labels: dict[str, str]
) -> None:
    index: SelectorIndex[str] = SelectorIndex()
    there: dict[str, Selector] = {}
    for name, selector in changes:
        there.pop(name, None)
        if selector is None:
            index.remove(name)
        else:
            index.put(name, selector)
            there[name] = selector

    assert sorted(index.matching(labels)) == sorted(name for name, one in there.items() if one.matches(labels))


def test_another_selector_takes_the_place_of_the_one_before() -> None:
    index: SelectorIndex[str] = SelectorIndex()

    index.put("a", Selector((Requirement("app", "In", ("web",)),)))
    index.put("a", Selector((Requirement("tier", "In", ("front",)),)))

    assert index.matching({"app": "web", "tier": "front"}) == ["a"]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Mapping[str, str]]:
    """Provide the labels that selectors were asked about."""
    found: list[Mapping[str, str]] = []
    matches = Selector.matches

    def spied(one: Selector, labels: Mapping[str, str]) -> bool:
        found.append(labels)
        return matches(one, labels)

    monkeypatch.setattr(Selector, "matches", spied)
    return found


def needing(number: int) -> Selector:
    return Selector((Requirement("app", "In", (f"{number}",)), Requirement("team", "In", ("all",))))


def test_only_selectors_that_may_match_are_asked(asked: list[Mapping[str, str]]) -> None:
    index: SelectorIndex[int] = SelectorIndex()
    for number in range(100):
        index.put(number, needing(number))

    assert index.matching({"app": "7", "team": "all"}) == [7]
    assert len(asked) <= 2


def test_only_things_that_may_match_are_asked(asked: list[Mapping[str, str]]) -> None:
    index: LabelIndex[int] = LabelIndex()
    for number in range(100):
        index.put(number, {"app": f"{number}", "team": "all"})

    assert index.matching(needing(7)) == [7]
    assert len(asked) == 1
