"""The rules by which feature gates are read."""

from __future__ import annotations

import pytest

from podium.api.errors import InputError
from podium.framework.settings.feature_gates import FeatureGates, read_feature_gates

OFF = FeatureGates(non_preempting_priority=False)


@pytest.mark.parametrize(
    ("text", "gates"),
    [
        ("", FeatureGates()),
        ("NonPreemptingPriority=true", FeatureGates()),
        ("NonPreemptingPriority=false", OFF),
        (" NonPreemptingPriority=False , ", OFF),
        ("NonPreemptingPriority=true,NonPreemptingPriority=false", OFF),
    ],
)
def test_gates_that_are_not_named_are_on_and_the_last_word_counts(text: str, gates: FeatureGates) -> None:
    assert read_feature_gates(text) == gates


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Preempting=false", 'there is no feature gate "Preempting"; did you mean NonPreemptingPriority?'),
        ("A=true", 'there is no feature gate "A"; known are: NonPreemptingPriority'),
        ("NonPreemptingPriority", 'feature gate NonPreemptingPriority is ""; it must be true or false'),
        ("NonPreemptingPriority=off", 'feature gate NonPreemptingPriority is "off"; it must be true or false'),
    ],
)
def test_an_error_says_what_would_be_right(text: str, says: str) -> None:
    with pytest.raises(InputError) as refused:
        read_feature_gates(text)
    assert str(refused.value) == says
