"""The cpu that pods get on a shared node."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from podium.decide.kubelet import CPUWant, cpu_pressure, shared_cpu

wants = st.lists(
    st.builds(
        CPUWant,
        st.integers(0, 8_000),
        st.integers(0, 4_000),
        st.none() | st.integers(0, 4_000),
    ),
    max_size=8,
)


def test_all_get_what_they_want_where_there_is_enough() -> None:
    assert shared_cpu([CPUWant(1000, 100), CPUWant(500, 0)], 2000) == [1000, 500]


def test_scarce_cpu_is_shared_by_requests() -> None:
    assert shared_cpu([CPUWant(4000, 1000), CPUWant(4000, 3000)], 4000) == [1000, 3000]


def test_unneeded_cpu_goes_to_other_pods() -> None:
    assert shared_cpu([CPUWant(500, 2000), CPUWant(4000, 1000), CPUWant(4000, 1000)], 3500) == [500, 1500, 1500]


def test_a_limit_holds_though_there_is_more() -> None:
    assert shared_cpu([CPUWant(3000, 500, 1000)], 4000) == [1000]


def test_without_a_request_hardly_anything_is_left() -> None:
    hog, plain = shared_cpu([CPUWant(4000, 2000), CPUWant(1000, 0)], 2000)
    assert hog > 1990
    assert plain < 10


def test_pressure_is_the_share_of_what_is_wanted_and_not_got() -> None:
    assert cpu_pressure(CPUWant(2000, 1000), 500) == 0.75
    assert cpu_pressure(CPUWant(2000, 1000), 2000) == 0
    assert cpu_pressure(CPUWant(0, 1000), 0) == 0


@given(wants, st.integers(-10, 10_000))
def test_cpu_sharing_respects_limits_and_wastes_nothing(given: list[CPUWant], capacity: int) -> None:
    got = shared_cpu(given, capacity)
    usable = [want.usable_milli for want in given]
    assert all(0 <= amount <= most for amount, most in zip(got, usable, strict=True))
    assert sum(got) == min(sum(usable), max(capacity, 0))


@given(wants, st.integers(0, 10_000))
def test_unsatisfied_pods_share_cpu_by_weight(given: list[CPUWant], capacity: int) -> None:
    got = shared_cpu(given, capacity)
    for want, amount in zip(given, got, strict=True):
        if amount < want.usable_milli:
            # One thousandth of rounding for each who shares.
            most = max(Fraction(other, each.shares) for each, other in zip(given, got, strict=True))
            assert Fraction(amount + len(given), want.shares) >= most - Fraction(
                len(given), min(w.shares for w in given)
            )
