"""The selector index returns every selector that matches, among its candidates."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from podium.api.pod import Pod
from podium.cluster.cluster import Cluster
from podium.cluster.matchers import Predicate
from podium.cluster.selector_index import ObjectIndex, QueryIndex, required_keys_of
from tests.cluster.changing_cluster import NAMES, predicates
from tests.generators import EVERYTHING, pods

SOME_MARKS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz")), unique=True, max_size=4)
SOME_NEEDS = st.lists(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz")), max_size=2), max_size=3)


@given(st.lists(SOME_MARKS, max_size=6), st.lists(SOME_NEEDS, max_size=6), st.data())
def test_things_and_questions_find_one_another(
    index_keys: list[list[tuple[str, str]]], required_keys: list[list[list[tuple[str, str]]]], data: st.DataObject
) -> None:
    things: ObjectIndex[int] = ObjectIndex()
    questions: QueryIndex[int] = QueryIndex()
    for number, some in enumerate(index_keys):
        things.put(number, some)
    for number, groups in enumerate(required_keys):
        questions.put(number, groups)
    there = set(range(len(index_keys)))
    asked = set(range(len(required_keys)))
    for number in data.draw(st.lists(st.sampled_from(range(6)), max_size=4)):
        things.remove(number)
        there.discard(number)
    for number in data.draw(st.lists(st.sampled_from(range(6)), max_size=4)):
        questions.remove(number)
        asked.discard(number)

    def fits(thing: int, question: int) -> bool:
        return all(any(mark in index_keys[thing] for mark in group) for group in required_keys[question])

    for question in asked:
        found = things.candidates(required_keys[question])
        assert len(found) == len(set(found))
        assert {one for one in there if fits(one, question)} <= set(found) <= there
    for thing in there:
        found = questions.candidates(index_keys[thing])
        assert len(found) == len(set(found))
        assert {one for one in asked if fits(thing, one)} <= set(found) <= asked


@given(predicates(), pods("p", NAMES, EVERYTHING, []))
def test_a_class_that_matches_has_what_is_needed(predicate: Predicate, one: Pod) -> None:
    cluster = Cluster()
    pod_class = cluster.read(one).pod_class

    if predicate.matches(pod_class, cluster.namespaces):
        assert all(any(mark in pod_class.index_keys for mark in group) for group in required_keys_of(predicate))
