"""The order of two resource versions."""

import pytest

from podium.api.meta import is_comparable, is_older


@pytest.mark.parametrize("version", ["", "0", "07", "-1", "1.5", "abc", "12a", "\uff11\uff12", "\u00b2"])
def test_non_numeric_resource_versions_cannot_be_compared(version: str) -> None:
    assert not is_comparable(version)
    assert not is_older("1", version)


@pytest.mark.parametrize(
    ("version", "other", "is_so"),
    [
        ("9", "10", True),
        ("10", "9", False),
        ("10", "10", False),
        ("19", "20", True),
        ("9" * 6_000, "1" + "0" * 6_000, True),
        ("1" + "0" * 6_000, "9" * 6_000, False),
        ("", "1", True),
        ("abc", "1", False),
        ("", "abc", False),
    ],
)
def test_the_smaller_resource_version_was_written_first(version: str, other: str, is_so: bool) -> None:
    assert is_older(version, other) is is_so
