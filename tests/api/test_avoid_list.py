"""Reading and writing the avoid list of a node."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.api.avoid_list import (
    AvoidEntry,
    AvoidList,
    avoid_entry,
    avoid_list,
    unexpired,
    with_entry,
)
from podium.api.meta import OwnerReference
from podium.api.times import parse_time

SECOND = 10**9


def controller(uid: str) -> OwnerReference:
    return OwnerReference(api_version="apps/v1", kind="ReplicaSet", name=f"set-{uid}", uid=uid)


def entry(uid: str, seconds: int = 0) -> AvoidEntry:
    return avoid_entry(controller(uid), "drain", "evicted", seconds * SECOND)


def timeless(uid: str) -> AvoidEntry:
    signature = {"podController": {"kind": "ReplicationController", "name": "foo", "uid": uid, "controller": True}}
    (read,) = avoid_list(
        json.dumps({"preferAvoidPods": [{"podSignature": signature, "reason": "some reason"}]})
    ).entries
    return read


def uids(entries: Any) -> list[str]:
    return [one.controller.uid for one in entries]


def test_an_entry_is_written_as_kubernetes_writes_it() -> None:
    assert json.loads(AvoidList((entry("u1", 90),)).written()) == {
        "preferAvoidPods": [
            {
                "podSignature": {
                    "podController": {
                        "apiVersion": "apps/v1",
                        "kind": "ReplicaSet",
                        "name": "set-u1",
                        "uid": "u1",
                        "controller": True,
                    }
                },
                "evictionTime": "1970-01-01T00:01:30Z",
                "reason": "drain",
                "message": "evicted",
            }
        ]
    }


@given(st.lists(st.builds(entry, st.text(min_size=1, max_size=3), st.integers(0, 10**6)), max_size=5))
def test_a_written_avoid_list_is_read_back(entries: list[AvoidEntry]) -> None:
    assert avoid_list(AvoidList(tuple(entries)).written()).entries == tuple(entries)


@pytest.mark.parametrize(
    "text",
    ["", "[", "null", "[]", "7", '{"preferAvoidPods": 1}', '{"preferAvoidPods": null}', "[" * 100_000, '"\ud800"'],
)
def test_text_that_is_not_a_list_has_no_entries(text: str) -> None:
    assert avoid_list(text).entries == ()


@pytest.mark.parametrize(
    "item",
    [
        1,
        {},
        {"podSignature": {}},
        {"podSignature": {"podController": {"kind": "ReplicaSet", "name": "web"}}},
        {"podSignature": {"podController": {"uid": "u1"}}, "evictionTime": "yesterday"},
        {"podSignature": {"podController": {"uid": "u1"}}, "evictionTime": 5},
        {"podSignature": {"podController": {"uid": "u1"}}, "earlier": [{"evictionTime": "yesterday"}]},
        {"podSignature": {"podController": {"uid": "u1"}}, "earlier": [{}]},
    ],
)
def test_an_entry_that_cannot_be_read_is_left_out_and_the_others_stay(item: Any) -> None:
    good = json.loads(AvoidList((entry("u2"),)).written())["preferAvoidPods"]

    assert avoid_list(json.dumps({"preferAvoidPods": [item, *good]})).entries == (entry("u2"),)


def test_a_controller_has_one_entry_the_newest() -> None:
    listed = with_entry([entry("u1", 1), entry("u2", 2)], entry("u1", 3), 16)

    assert [(one.controller.uid, one.eviction_ns) for one in listed] == [("u2", 2 * SECOND), ("u1", 3 * SECOND)]


def test_the_newest_entry_of_a_controller_lists_the_evictions_of_the_last_hour() -> None:
    listed: list[AvoidEntry] = []
    for time in (0, 1800, 3601, 3602):
        listed = with_entry(listed, entry("u1", time), 16)

    (newest,) = avoid_list(AvoidList(tuple(listed)).written()).entries
    assert [parse_time(one.eviction_time) // SECOND for one in newest.evictions] == [1800, 3601, 3602]
    assert {one.reason for one in newest.evictions} == {newest.reason}


def test_avoid_list_entries_limit_the_evictions_that_they_name() -> None:
    listed: list[AvoidEntry] = []
    for time in range(100):
        listed = with_entry(listed, entry("u1", time), 16)

    assert [parse_time(one.eviction_time) // SECOND for one in listed[0].evictions] == list(range(67, 100))


def test_a_full_avoid_list_drops_its_oldest_entries() -> None:
    listed = [timeless("u0"), entry("u3", 3), entry("u1", 1), entry("u2", 2)]

    assert uids(with_entry(listed, entry("u4", 4), 3)) == ["u2", "u3", "u4"]


def test_the_new_entry_stays_though_others_are_as_old() -> None:
    assert uids(with_entry([entry("u9", 5), entry("u5", 5)], entry("u1", 5), 2)) == ["u5", "u1"]


def test_entries_expire_after_their_time_and_those_without_one_stay() -> None:
    listed = [entry("u1", 10), timeless("u2"), entry("u3", 20)]

    assert uids(unexpired(listed, 60 * SECOND, 70 * SECOND - 1)) == ["u1", "u2", "u3"]
    assert uids(unexpired(listed, 60 * SECOND, 70 * SECOND)) == ["u2", "u3"]
    assert listed[0].expiry_ns(60 * SECOND) == 70 * SECOND
    assert timeless("u2").expiry_ns(60 * SECOND) is None


@given(added=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 20)), max_size=30), most=st.integers(1, 5))
def test_a_list_never_outgrows_its_bound_nor_names_a_controller_twice(added: list[tuple[int, int]], most: int) -> None:
    listed: list[AvoidEntry] = []
    now = 0
    for who, wait in added:
        now += wait
        listed = with_entry(listed, entry(str(who), now), most)
        assert len(listed) <= most
        assert len(set(uids(listed))) == len(listed)
        assert listed[-1].controller.uid == str(who)
