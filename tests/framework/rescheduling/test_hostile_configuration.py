"""Any text is read as a configuration, or refused with a message."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.api.errors import InputError
from podium.framework.rescheduling.configuration import parse_rescheduler, read_rescheduler
from podium.framework.rescheduling.descheduler import COUNTERPARTS
from podium.framework.rescheduling.settings import ReschedulerSettings

ODD = st.recursive(
    st.one_of(
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=8),
        st.sampled_from(["Cautious", "Unlimited", "10s", "-1h", "1e9h", "AvoidList", "kube-system", "a=b", "a in (b"]),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
FIELDS = (
    *("aggressiveness", "paused", "policies", "interval", "threshold", "limits", "budgets", "scope", "guidance"),
    *("judgement", "steering", "goesFirst", "moveTimeout", "coolDown", "maxTrials", "something"),
)
LIMITS = st.dictionaries(st.sampled_from(["total", "node", "namespace", "owner"]), ODD, max_size=2)
SCOPE = st.dictionaries(
    st.sampled_from(
        ["namespaces", "podSelector", "nodeSelector", "allow", "spare", "priorityBelow", "minimumAge", "maxLostWork"]
    ),
    ODD | st.dictionaries(st.sampled_from(["include", "exclude", "matchLabels", "matchExpressions"]), ODD, max_size=2),
    max_size=3,
)
NEAR = st.fixed_dictionaries(
    {},
    optional={
        "scope": SCOPE,
        "limits": st.dictionaries(st.sampled_from(["inFlight", "hourly", "withoutBudget"]), LIMITS, max_size=2),
        "policies": st.lists(st.fixed_dictionaries({"name": ODD}, optional={"weight": ODD, "args": ODD}), max_size=3),
    },
)


def settings_or_words(raw: dict[str, Any]) -> ReschedulerSettings | str:
    try:
        return read_rescheduler(raw, "given").settings
    except InputError as error:
        return str(error)


@given(st.dictionaries(st.sampled_from(FIELDS), ODD, max_size=4), NEAR)
def test_a_configuration_is_read_or_refused_on_one_line(odd: dict[str, Any], near: dict[str, Any]) -> None:
    raw = {"apiVersion": "podium.dev/v1alpha1", "kind": "ReschedulerConfiguration", **odd, **near}
    found = settings_or_words(raw)
    if isinstance(found, str):
        assert found.startswith("given")
        assert "\n" not in found
        assert len(found) < 3_000
    else:
        assert found.threshold > 0
        assert found.interval_ns > 0
        assert all(policy.weight > 0 for policy in found.policies)


@given(
    st.dictionaries(st.sampled_from(["thresholds", "namespaces", "labelSelector", "nodeAffinityType"]), ODD, max_size=3)
)
@pytest.mark.parametrize("plugin", [*COUNTERPARTS, "DefaultEvictor"])
def test_a_hostile_descheduler_policy_is_read_or_refused(plugin: str, args: dict[str, Any]) -> None:
    profile = {"pluginConfig": [{"name": plugin, "args": args}], "plugins": {"balance": {"enabled": [plugin]}}}
    raw = {"apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy", "profiles": [profile]}
    found = settings_or_words(raw)
    assert not isinstance(found, str) or found.startswith("given")


def test_a_text_that_is_larger_inside_than_outside_is_refused() -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    lines += [
        f"{name}: &{name} [*{last}, *{last}, *{last}, *{last}]"
        for last, name in zip("abcdefghij", "bcdefghijk", strict=True)
    ]
    with pytest.raises(InputError):
        parse_rescheduler("\n".join(lines), "ConfigMap podium/rescheduler")
