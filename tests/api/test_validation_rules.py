"""The notation of rules (`podium.api.validation.rules`); every declared rule follows it."""

from __future__ import annotations

from typing import Any

import pytest

from podium.api.errors import InputError
from podium.api.validation import objects, rules
from podium.api.validation.findings import Findings, Place

DECLARED = sorted({*rules._RULES, *rules._LIMITS})


def test_every_declared_rule_can_be_interpreted() -> None:
    for type_ in DECLARED:
        for is_usability in (False, True):
            rules._compiled(type_, is_usability)


def test_every_check_is_part_of_a_rule() -> None:
    tokens = [token for table in (rules._RULES, rules._LIMITS) for tokens in table.values() for token in tokens]
    assert {token[1:].removesuffix("*") for token in tokens if token.startswith("@")} == set(rules._CHECKS)


def test_a_type_without_rules_is_never_taken_for_one_that_needs_none() -> None:
    with pytest.raises(AssertionError, match="no rules for the type ServiceAccount"):
        rules.check_type(Place({}, Findings()), "ServiceAccount")


def problems(type_: str, value: dict[str, Any]) -> list[str]:
    findings = Findings()
    rules.check_type(Place(value, findings), type_)
    return [f"{finding.path} {finding.cause}" for finding in findings]


@pytest.mark.parametrize(
    ("type_", "value", "expected"),
    [
        ("HTTPGetAction", {"port": 80, "scheme": "HTTP"}, []),
        ("HTTPGetAction", {"port": 80, "scheme": "FTP"}, [".scheme FieldValueNotSupported"]),
        ("HTTPGetAction", {"port": 80, "httpHeaders": [{}]}, [".httpHeaders[0].name FieldValueInvalid"]),
        ("KeyToPath", {"key": "a", "path": "b", "mode": 0o777}, []),
        ("KeyToPath", {"path": "../b"}, [".key FieldValueRequired", ".path FieldValueInvalid"]),
        ("PreferredSchedulingTerm", {"weight": 1}, []),
        ("NodeSelector", {}, [".nodeSelectorTerms FieldValueRequired"]),
        ("StatefulSetOrdinals", {"start": -1}, [".start FieldValueInvalid"]),
        # An empty text counts as set in a field that may say nothing.
        ("DeviceAttribute", {"string": ""}, []),
        ("DeviceAttribute", {"string": "", "int": 1}, [" FieldValueInvalid"]),
        ("FlockerVolumeSource", {"datasetName": "", "datasetUUID": "x"}, []),
        ("HostAlias", {"ip": "10.0.0.1", "hostnames": ["a", "-"]}, [".hostnames[1] FieldValueInvalid"]),
    ],
)
def test_rules_are_checked_in_the_order_in_which_they_are_written(
    type_: str, value: dict[str, Any], expected: list[str]
) -> None:
    assert problems(type_, value) == expected


def test_only_marked_rules_and_limits_decide_whether_an_object_can_be_used() -> None:
    spec: dict[str, Any] = {"restartPolicy": "Sometimes", "dnsPolicy": "Sometimes"}
    with pytest.raises(InputError, match="restartPolicy"):
        objects.check_usable(Place(spec, Findings()), "PodSpec")
    objects.check_usable(Place({"dnsPolicy": "Sometimes"}, Findings()), "PodSpec")
    with pytest.raises(InputError, match="Too many: 1001: must have at most 1000 items"):
        objects.check_usable(Place({"tolerations": [{}] * 1_001}, Findings()), "PodSpec")
