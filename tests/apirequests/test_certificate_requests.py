"""Certificate requests: clients approve or deny them, and no component signs them."""

from __future__ import annotations

from typing import Any

import pytest

from podium.api.times import format_time
from podium.apirequests.authorization import User
from podium.apirequests.request import Response
from podium.store.listing import ListOptions
from tests.apirequests.asking import API, NOW
from tests.store.objects import Raw

KIND = "CertificateSigningRequest"
REQUEST = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K"


def requested() -> API:
    """Return an API with the request `web`."""
    api = API()
    spec = {"request": REQUEST, "signerName": "example.com/web", "usages": ["client auth"]}
    raw = {"apiVersion": "certificates.k8s.io/v1", "kind": KIND, "metadata": {"name": "web"}, "spec": spec}
    response = api.ask("create", KIND, body=raw)
    assert response.code == 201, response.to_dict()
    return api


def decide(api: API, type_: str, status: str = "True", **fields: Any) -> Response:
    """Add a condition by an update of the approval, as `kubectl certificate` does."""
    raw: Raw = api.ask("get", KIND, "web").to_dict()
    conditions = [*raw["status"].get("conditions", []), {"type": type_, "status": status, "reason": "Test"}]
    return api.ask(
        "update", KIND, "web", body={**raw, "status": {"conditions": conditions, **fields}}, subresource="approval"
    )


def test_an_approval_writes_conditions_with_times_and_nothing_else_of_the_status() -> None:
    api = requested()

    response = decide(api, "Approved", certificate=REQUEST)

    status = response.to_dict()["status"]
    [approval] = status["conditions"]
    assert (approval["type"], approval["status"]) == ("Approved", "True")
    assert approval["lastUpdateTime"] == approval["lastTransitionTime"] == format_time(NOW)
    assert "certificate" not in status


def test_an_approval_takes_annotations_and_keeps_the_spec() -> None:
    api = requested()
    body = {"metadata": {"annotations": {"a": "b"}}, "spec": {"signerName": "other.example.com/x"}}

    patched = api.ask("patch", KIND, "web", body=body, subresource="approval").to_dict()

    assert patched["metadata"]["annotations"] == {"a": "b"}
    assert patched["spec"]["signerName"] == "example.com/web"
    assert (
        api.ask("get", KIND, "web", subresource="approval").to_dict()["metadata"]["uid"] == patched["metadata"]["uid"]
    )


@pytest.mark.parametrize(
    ("first", "second", "field", "problem"),
    [
        ("Approved", ("Denied", "True"), "status.conditions", "mutually exclusive"),
        ("Other", ("Approved", "False"), "status.conditions[1].status", 'supported values: "True"'),
    ],
)
def test_contradictory_decisions_are_refused(first: str, second: tuple[str, str], field: str, problem: str) -> None:
    api = requested()
    decide(api, first)

    refused = decide(api, *second).to_dict()

    assert (refused["code"], refused["details"]["causes"][0]["field"]) == (422, field)
    assert problem in refused["message"]


def test_a_decision_is_final() -> None:
    api = requested()
    decide(api, "Denied")

    refused = api.ask("patch", KIND, "web", body={"status": {"conditions": []}}, subresource="approval").to_dict()

    assert 'updates may not remove a condition of type "Denied"' in refused["message"]


def test_a_signer_writes_the_certificate_to_the_status() -> None:
    api = requested()

    patched = api.ask("patch", KIND, "web", body={"status": {"certificate": REQUEST}}, subresource="status").to_dict()

    assert patched["status"]["certificate"] == REQUEST


def by_status(api: API, **status: Any) -> Raw:
    """Write the status of the request `web` as a signer does."""
    raw: Raw = api.ask("get", KIND, "web").to_dict()
    return api.ask("update", KIND, "web", body={**raw, "status": status}, subresource="status").to_dict()


@pytest.mark.parametrize("type_", ["Approved", "Denied"])
def test_a_status_update_cannot_decide_a_request(type_: str) -> None:
    api = requested()

    refused = by_status(api, conditions=[{"type": type_, "status": "True"}])

    assert (refused["code"], refused["details"]["causes"][0]["field"]) == (422, "status.conditions")
    assert f'updates may not add a condition of type "{type_}"' in refused["message"]


def test_a_status_update_keeps_the_decision_as_it_is_and_may_report_a_failure() -> None:
    api = requested()
    [approval] = decide(api, "Approved").to_dict()["status"]["conditions"]
    failed = {"type": "Failed", "status": "True", "reason": "Test"}

    changed = by_status(api, conditions=[{**approval, "reason": "Other"}, failed])
    refused = by_status(api, conditions=[failed])

    assert [changed["status"]["conditions"][0], changed["status"]["conditions"][1]["type"]] == [approval, "Failed"]
    assert 'updates may not remove a condition of type "Approved"' in refused["message"]


def test_an_issued_certificate_cannot_be_replaced() -> None:
    api = requested()
    by_status(api, certificate=REQUEST)

    refused = by_status(api, certificate="b3RoZXI=")

    assert refused["details"]["causes"][0]["field"] == "status.certificate"
    assert "updates may not modify existing certificate content" in refused["message"]


def test_requests_are_selected_by_their_signer() -> None:
    api = requested()

    def listed(signer: str) -> int:
        page = api.ask("list", KIND, options=ListOptions(field_selector=f"spec.signerName={signer}")).page
        return 0 if page is None else len(page.items)

    assert (listed("example.com/web"), listed("example.com/other")) == (1, 0)


def test_a_request_names_the_user_who_sent_it_and_no_other() -> None:
    spec = {"request": REQUEST, "signerName": "example.com/web", "usages": ["client auth"], "username": "eve"}
    raw = {"apiVersion": "certificates.k8s.io/v1", "kind": KIND, "metadata": {"name": "web"}, "spec": spec}
    user = User("ada", ("writers",), "7", {"from": ["home"]})

    made = API().ask("create", KIND, body=raw, identity=user).to_dict()

    who = {"username": "ada", "groups": ["writers"], "uid": "7", "extra": {"from": ["home"]}}
    assert made["spec"] == {**spec, **who}
