"""Incrementally sorted keys, against sorting them each time."""

from hypothesis import given
from hypothesis import strategies as st

from podium.store import revisions as sorted_keys
from podium.store.revisions import SortedKeys

KEYS = st.sampled_from([f"{namespace}{name}" for namespace in ("", "a/", "a-b/", "a0/", "b/") for name in "xyz"])
# Keys that come where they are not and go where they are, and the question for the order in between.
STEPS = st.lists(st.one_of(KEYS, st.none()), max_size=60)


def inside(key: str, namespace: str, after: str) -> bool:
    return key > after and (not namespace or key.startswith(f"{namespace}/"))


@given(
    steps=STEPS,
    few=st.integers(0, 4),
    namespace=st.sampled_from(["", "a", "a-b", "c"]),
    after=st.sampled_from(["", "a/x", "a0/y", "zz"]),
)
def test_added_and_not_removed_keys_are_in_order(steps: list[str | None], few: int, namespace: str, after: str) -> None:
    kept, plain = SortedKeys(), set[str]()
    before, sorted_keys._FEW = sorted_keys._FEW, few
    try:
        for key in [*steps, None]:
            if key is None:
                expected = sorted(one for one in plain if inside(one, namespace, after))
                span = kept.span(namespace, after)
                assert kept.between(*span) == list(kept.walk(*span)) == expected
            elif key in plain:
                plain.remove(key)
                kept.remove(key)
            else:
                plain.add(key)
                kept.add(key)
    finally:
        sorted_keys._FEW = before


def test_keys_added_and_removed_between_reads_leave_no_trace() -> None:
    keys = SortedKeys()
    for number in range(1_000):
        keys.add(f"a/{number}")
        keys.remove(f"a/{number}")

    assert not keys._changes
