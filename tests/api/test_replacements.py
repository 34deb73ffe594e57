"""Hints for replacements, recorded beside a node's avoid list."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.api.avoid_list import (
    EVICTED,
    AvoidList,
    EvictedPod,
    EvictionHints,
    RecordedHints,
    Replacement,
    avoid_entry,
    avoid_list,
    hints_to_record,
    replacement,
    replacement_in_words,
)
from podium.api.disruption_policy import AvoidLists
from podium.api.meta import OwnerReference
from tests.builders import DAY_ONE_NS, pod

SECOND, MINUTE = 10**9, 60 * 10**9
FIRST = EvictionHints(first=True, node_name="n7")
LIMITS = AvoidLists(max_entries=2)


def controller(name: str, kind: str = "ReplicaSet") -> OwnerReference:
    return OwnerReference(api_version="apps/v1", kind=kind, name=name, uid=f"uid-{name}", controller=True)


def left(name: str, seconds: int = 0, *, owner: str = "web", kind: str = "ReplicaSet") -> Replacement:
    evicted = EvictedPod(name=name, uid=f"uid-{name}")
    return replacement(controller(owner, kind), evicted, FIRST, 30, DAY_ONE_NS + seconds * SECOND)


def test_replacement_hints_are_stored_beside_entries_and_read_back() -> None:
    entry = avoid_entry(controller("web"), "rescheduler", "", DAY_ONE_NS)
    text = AvoidList((entry,), (left("web-1"),)).written()

    assert json.loads(text)["replacements"] == [
        {
            "podController": {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": "web",
                "uid": "uid-web",
                "controller": True,
            },
            "evictedPod": {"name": "web-1", "uid": "uid-web-1"},
            "evictionTime": "2026-01-01T00:00:00Z",
            "expireAfter": "10m30s",
            "first": True,
            "nodeName": "n7",
        }
    ]
    assert avoid_list(text) == AvoidList((entry,), (left("web-1"),))


def test_a_list_without_replacements_says_nothing_of_them() -> None:
    assert "replacements" not in AvoidList((avoid_entry(controller("web"), "", "", 0),)).written()


GOOD: dict[str, Any] = json.loads(AvoidList((), (left("web-1"),)).written())["replacements"][0]


@pytest.mark.parametrize(
    "wrong",
    [
        {"podController": {"kind": "ReplicaSet", "name": "web"}},
        {"podController": "web"},
        {"evictedPod": {"name": "web-1", "uid": ""}},
        {"evictedPod": {}},
        {"evictionTime": "yesterday"},
        {"evictionTime": None},
        {"expireAfter": "long"},
        {"expireAfter": "-1h"},
        {"first": "yes"},
        {"nodeName": 7},
        {"nodeName": ["n1"]},
    ],
)
def test_unreadable_replacement_entries_are_skipped(wrong: dict[str, Any]) -> None:
    text = json.dumps({"replacements": [{**GOOD, **wrong}, "x", None, GOOD]})

    assert avoid_list(text) == AvoidList((), (left("web-1"),))


@pytest.mark.parametrize("text", ['{"replacements": {}}', '{"replacements": 7}', "[]", "7", "{", "[" * 100_000])
def test_text_that_is_not_an_avoid_list_is_ignored(text: str) -> None:
    assert not avoid_list(text)


def test_repeated_hints_of_one_eviction_are_read_once() -> None:
    text = json.dumps({"replacements": [GOOD] * 3})

    assert avoid_list(text).replacements == (left("web-1"),)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(sorted(GOOD)), inner),
    )
)
def test_no_text_is_too_strange(found: Any) -> None:
    avoid_list(json.dumps({"replacements": found}))
    avoid_list(json.dumps({"replacements": [found]}))


def test_the_replacement_is_awaited_for_ten_minutes_after_the_pod_has_had_its_time_to_end() -> None:
    short, long = left("web-1"), replacement(controller("web"), EvictedPod(name="a", uid="a"), FIRST, 3600, 0)

    before, limits = AvoidList((), (short,)), AvoidLists()
    assert RecordedHints().added_to(before, limits, DAY_ONE_NS + 630 * SECOND - 1) == before
    assert RecordedHints().added_to(before, limits, DAY_ONE_NS + 630 * SECOND) == AvoidList()
    assert long.expiry_ns == 70 * MINUTE
    assert replacement(controller("web"), EvictedPod(name="a", uid="a"), FIRST, 2**63 - 1, 0).expiry_ns < 2**62


def test_only_pods_of_its_time_are_replacements_and_never_the_evicted_one() -> None:
    one = left("web-1", 60)
    minute, end = DAY_ONE_NS + 60 * SECOND, DAY_ONE_NS + 690 * SECOND

    assert one.serves("web-2", "b", minute)
    assert one.serves("web-2", "b", end)
    assert not one.serves("web-2", "b", minute - SECOND)
    assert not one.serves("web-2", "b", end + SECOND)
    assert not one.serves("web-1", "uid-web-1", minute)


def test_in_place_of_a_pod_of_a_stateful_set_comes_one_of_its_name() -> None:
    one = left("db-1", kind="StatefulSet")

    assert one.serves("db-1", "b", DAY_ONE_NS)
    assert not one.serves("db-2", "b", DAY_ONE_NS)


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (EvictionHints(is_awaited=True), "the replacement of pod a is awaited"),
        (EvictionHints(first=True), "the front of the queue for the replacement of pod a"),
        (EvictionHints(node_name="n7"), "a try at n7 for the replacement of pod a"),
        (FIRST, "the front of the queue and a try at n7 for the replacement of pod a"),
    ],
)
def test_a_replacement_hint_has_a_text_form(wanted: EvictionHints, words: str) -> None:
    one = replacement(controller("web"), EvictedPod(name="a", uid="a"), wanted, 0, 0)

    assert replacement_in_words(one) == words


# What an eviction leaves


def test_an_eviction_leaves_what_is_wished_for() -> None:
    web = pod("web-1", owner="ReplicaSet/web", on="n1")

    plain = hints_to_record(web, EvictionHints(), None, "", None, DAY_ONE_NS)
    avoided = hints_to_record(web, EvictionHints(avoid_node=True), None, "", None, DAY_ONE_NS)
    both = hints_to_record(web, replace(FIRST, avoid_node=True), None, "mine", 5, DAY_ONE_NS)

    assert not plain
    assert avoided.replacement is None
    assert avoided.entry is not None
    assert avoided.entry.reason == EVICTED
    assert both.entry is not None
    assert both.replacement is not None
    assert (both.entry.reason, both.replacement.expire_after) == ("mine", "10m5s")


def test_nothing_is_left_of_a_pod_without_a_controller() -> None:
    assert not hints_to_record(pod("a", on="n1"), replace(FIRST, avoid_node=True), None, "", None, 0)


def test_a_pod_that_is_ending_leaves_nothing_more_to_its_replacement() -> None:
    """The first eviction has recorded its hints; an eviction that is requested twice counts once."""
    ending = pod("web-1", owner="ReplicaSet/web", on="n1", terminating=True)

    found = hints_to_record(ending, replace(FIRST, avoid_node=True), None, "", None, 0)

    assert found.entry is not None
    assert found.replacement is None


def test_hints_do_not_block_nodes_for_a_pod_that_has_a_node() -> None:
    web, big = pod("web-1", owner="ReplicaSet/web", on="n1"), pod("big", on="n1")
    hints = replace(FIRST, avoid_node=True, until_scheduled=big.key)

    found = hints_to_record(web, hints, big, "", None, 0)

    assert found.entry is None
    assert found.replacement is not None


def test_evictions_of_one_controller_add_up_to_as_many_as_there_may_be() -> None:
    found = AvoidList()
    for number in range(4):
        entry = avoid_entry(controller("web"), "", "", DAY_ONE_NS + number * SECOND)
        behind = RecordedHints(entry, left(f"web-{number}", number))
        found = behind.added_to(found, LIMITS, DAY_ONE_NS + number * SECOND)

    assert [one.evicted_pod.name for one in found.replacements] == ["web-2", "web-3"]
    assert [one.eviction_ns for one in found.entries] == [DAY_ONE_NS + 3 * SECOND]


def test_expired_entries_are_removed_when_one_is_added() -> None:
    before = RecordedHints(None, left("web-0")).added_to(AvoidList(), LIMITS, DAY_ONE_NS)

    after = RecordedHints(None, left("web-1", 700)).added_to(before, LIMITS, DAY_ONE_NS + 700 * SECOND)

    assert [one.evicted_pod.name for one in after.replacements] == ["web-1"]


def test_hints_of_a_failed_eviction_are_removed() -> None:
    old, new = (avoid_entry(controller("web"), "", "", DAY_ONE_NS + seconds * SECOND) for seconds in (0, 60))
    other = avoid_entry(controller("db"), "", "", DAY_ONE_NS)
    before = AvoidList((old, other), (left("web-0"),))
    behind = RecordedHints(new, left("web-1", 60))

    after = behind.added_to(before, AvoidLists(), DAY_ONE_NS + 60 * SECOND)

    assert set(behind.taken_off(after, before).entries) == {old, other}
    assert behind.taken_off(after, before).replacements == (left("web-0"),)
    assert behind.taken_off(before, before) == before
