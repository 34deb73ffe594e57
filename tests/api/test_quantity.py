import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.api.quantity import canonical_quantity, format_quantity, milli_value, parse_quantity, whole_value

NANO = 10**9
LARGEST = 2**63 - 1
SUFFIXES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 10**3),
    "": Fraction(1),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
}


def away_from_zero(amount: Fraction) -> int:
    return math.ceil(amount) if amount >= 0 else math.floor(amount)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_suffix_of_kubernetes_is_taken(suffix: str) -> None:
    assert parse_quantity(f"3{suffix}") == 3 * SUFFIXES[suffix] * NANO


@pytest.mark.parametrize(
    ("text", "amount"),
    [("1e3", 1_000), ("1E3", 1_000), ("1e+3", 1_000), ("12e-2", Fraction(12, 100)), ("5E-0", 5), ("1E", 10**18)],
)
def test_exponents_are_powers_of_ten_and_a_bare_capital_e_is_exa(text: str, amount: Fraction) -> None:
    assert parse_quantity(text) == amount * NANO


@pytest.mark.parametrize("text", ["+1", "1.", "01", "1.0", "1.000", " 1 ", "1\n"])
def test_signs_points_zeros_and_white_space_around_are_taken(text: str) -> None:
    assert parse_quantity(text) == NANO


def test_numbers_of_json_and_yaml_are_taken() -> None:
    assert parse_quantity(2) == 2 * NANO
    assert parse_quantity(0.1) == NANO // 10
    assert parse_quantity(1e-7) == 100
    assert parse_quantity(-1.5) == -3 * NANO // 2


def test_less_than_a_nano_unit_counts_as_one_away_from_zero() -> None:
    assert parse_quantity("0.1n") == 1
    assert parse_quantity("-0.1n") == -1
    assert parse_quantity("0.0n") == 0


@pytest.mark.parametrize("text", ["8Ei", "9999999Ei", "10E", "1e30", "9223372036854775808"])
def test_amounts_saturate_at_the_largest_64_bit_integer(text: str) -> None:
    assert parse_quantity(text) == LARGEST * NANO
    assert parse_quantity(f"-{text}") == -LARGEST * NANO


@pytest.mark.parametrize("value", [True, False, math.nan, math.inf, -math.inf, 10**64])
def test_invalid_quantities_are_rejected(value: float) -> None:
    with pytest.raises(ValueError, match="quantity"):
        parse_quantity(value)


def test_an_integer_of_thousands_of_digits_is_refused() -> None:
    with pytest.raises(ValueError, match="at most 64 characters"):
        parse_quantity(-(10**5_000))


def test_a_boolean_is_refused_even_after_the_number_that_it_equals() -> None:
    parse_quantity(1)

    with pytest.raises(ValueError, match="true is not a quantity"):
        parse_quantity(True)


def test_an_error_says_which_units_there_are() -> None:
    with pytest.raises(ValueError, match='"1gi" has the unit "gi"; known units are n u m k M'):
        parse_quantity("1gi")


def test_milli_and_whole_values_are_rounded_away_from_zero() -> None:
    assert (milli_value("1.0001"), whole_value("1.0001")) == (1_001, 2)
    assert (milli_value("-1.0001"), whole_value("-1.0001")) == (-1_001, -2)
    assert (milli_value("1500m"), whole_value("1500m")) == (1_500, 2)


@given(
    st.sampled_from(["", "+", "-"]),
    st.integers(0, 10**12),
    st.text("0123456789", max_size=12),
    st.sampled_from([*SUFFIXES, *(f"{letter}{power}" for letter in "eE" for power in range(-30, 31))]),
)
def test_every_quantity_is_its_fraction_rounded_to_nano_and_capped(
    sign: str, whole: int, decimals: str, suffix: str
) -> None:
    scale = SUFFIXES[suffix] if suffix in SUFFIXES else Fraction(10) ** int(suffix[1:])
    exact = Fraction(f"{whole}.{decimals}0") * scale * (-1 if sign == "-" else 1)
    limit = LARGEST * NANO
    nano = max(-limit, min(limit, away_from_zero(exact * NANO)))

    text = f"{sign}{whole}.{decimals}{suffix}"

    assert parse_quantity(text) == nano
    assert milli_value(text) == away_from_zero(Fraction(nano, 10**6))
    assert whole_value(text) == away_from_zero(Fraction(nano, NANO))


@given(st.text())
def test_any_text_is_an_amount_or_refused(text: str) -> None:
    try:
        amount = parse_quantity(text)
    except ValueError:
        return

    assert abs(amount) <= LARGEST * NANO


def test_cpu_is_shown_in_cores_or_milli() -> None:
    assert [format_quantity(milli, "cpu") for milli in (2_000, 1_500, 0, -500)] == ["2", "1500m", "0", "-500m"]


def test_bytes_are_shown_in_the_largest_unit_that_they_fill() -> None:
    amounts = [0, 1_023, 2**10, 3 * 2**29, -3 * 2**29, 10**9, 2**53]

    shown = [format_quantity(amount, "memory") for amount in amounts]

    assert shown == ["0", "1023", "1Ki", "1.5Gi", "-1.5Gi", "953.67Mi", "8Pi"]
    assert format_quantity(2**21, "hugepages-2Mi") == "2Mi"


def test_other_resources_are_plain_numbers() -> None:
    assert format_quantity(4_096, "example.com/gpu") == "4096"


@given(st.integers(-(2**53), 2**53), st.sampled_from(["cpu", "memory", "ephemeral-storage", "pods"]))
def test_displayed_quantities_parse_to_nearly_the_same_amount(amount: int, resource: str) -> None:
    read = milli_value if resource == "cpu" else whole_value

    shown = read(format_quantity(amount, resource))

    # Two decimals of a unit that is filled are off by half a percent at most, and reading rounds up by one.
    assert (abs(shown - amount) - 1) * 200 <= abs(amount)


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("4294967296", "4294967296"),
        ("4096Mi", "4Gi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("0.3Gi", "322122547200m"),
        ("1024", "1024"),
        ("2000M", "2G"),
        ("0.5", "500m"),
        ("1500m", "1500m"),
        ("0Gi", "0"),
        ("-2048Ki", "-2Mi"),
        ("5000e3", "5e6"),
        ("7e0", "7"),
        (3000, "3k"),
    ],
)
def test_the_canonical_form_of_a_quantity_has_the_largest_unit_of_its_kind(written: str | int, canonical: str) -> None:
    assert canonical_quantity(written) == canonical
    assert parse_quantity(canonical) == parse_quantity(written)
