"""Values of ConfigMaps and Secrets that kube-apiserver refuses, one rule per row, and values that it accepts."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from podium.api.schemas.schema import findings
from podium.api.validation.objects import find_problems
from tests.api.manifests import Raw, of
from tests.apirequests.asking import API

BYTES = b64encode(b"x").decode()
SETTINGS = b64encode(b"{}").decode()
MUCH = "x" * (1024 * 1024 + 1)
OF_ACCOUNT = {"annotations": {"kubernetes.io/service-account.name": "default"}, "name": "a", "namespace": "b"}


def secret(type_: str = "Opaque", **data: str) -> Raw:
    return of("v1", "Secret", type=type_, data=data)


def problems(raw: Raw) -> list[str]:
    return [str(one) for one in find_problems(raw)]


VALID = [
    of("v1", "ConfigMap", data={"a.b-c_D": "1", ".hidden": "2"}, binaryData={"c": BYTES}),
    of("v1", "ConfigMap"),
    of("v1", "ConfigMap", data={"a": MUCH[1:]}),
    secret(a=BYTES),
    secret("kubernetes.io/tls", **{"tls.crt": "", "tls.key": ""}),
    secret("kubernetes.io/basic-auth", password=BYTES),
    secret("kubernetes.io/dockerconfigjson", **{".dockerconfigjson": SETTINGS}),
    {**secret("kubernetes.io/service-account-token"), "metadata": OF_ACCOUNT},
]


@pytest.mark.parametrize("raw", VALID, ids=range(len(VALID)))
def test_valid_contents_have_no_findings(raw: Raw) -> None:
    assert problems(raw) == []


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (of("v1", "ConfigMap", data={"a b": "1"}), '.data["a b"]: Invalid value: "a b": a valid config key'),
        (of("v1", "ConfigMap", data={"..a": "1"}), '.data["..a"]: Invalid value'),
        (of("v1", "ConfigMap", binaryData={"": BYTES}), "Invalid value: "),
        (of("v1", "ConfigMap", data={"a": ""}, binaryData={"a": ""}), "duplicate of key present in binaryData"),
        (of("v1", "ConfigMap", data={"a": MUCH}), "Too long: may not be more than 1048576 bytes"),
        (of("v1", "ConfigMap", binaryData={"a": b64encode(MUCH.encode()).decode()}), "Too long"),
        (secret(**{"a/b": BYTES}), '.data["a/b"]: Invalid value'),
        (secret(a=b64encode(MUCH.encode()).decode()), ".data: Too long"),
        (secret("kubernetes.io/tls", **{"tls.crt": BYTES}), '.data["tls.key"]: Required value'),
        (secret("kubernetes.io/ssh-auth"), '.data["ssh-privatekey"]: Required value'),
        (secret("kubernetes.io/basic-auth"), ".data.username: Required value"),
        (secret("kubernetes.io/dockercfg"), '.data[".dockercfg"]: Required value'),
        (secret("kubernetes.io/dockerconfigjson", **{".dockerconfigjson": BYTES}), "<secret contents redacted>"),
        (secret("kubernetes.io/service-account-token"), '["kubernetes.io/service-account.name"]: Required value'),
    ],
)
def test_contents_that_kube_apiserver_rejects_are_found_with_their_place(raw: Raw, problem: str) -> None:
    assert any(problem in one for one in problems(raw))


@pytest.mark.parametrize("raw", VALID, ids=range(len(VALID)))
@pytest.mark.parametrize("junk", [5, "x", [5], [[]], {"x": 5}], ids=str)
def test_junk_in_any_field_is_reported_without_a_traceback(raw: Raw, junk: Any) -> None:
    for field in ("data", "binaryData", "type"):
        problems({**raw, field: junk})


@pytest.mark.parametrize("encoded", ["not base64!", "YQ", "YQ=", "é"])
def test_invalid_base64_is_reported_without_its_content(encoded: str) -> None:
    response = API().ask("create", "Secret", namespace="default", body=secret(a=encoded), field_validation="Warn")

    message = response.to_dict()["message"]
    assert response.code == 400
    assert "data.a: the text is not in base64" in message
    assert encoded not in message


def test_line_ends_are_passed_over_in_base64() -> None:
    assert findings(secret(a="YWFh\nYWFh\r\n")) == []
