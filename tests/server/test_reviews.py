"""Access reviews: every client is an administrator."""

from __future__ import annotations

from typing import Any

import pytest

from podium.server.discovery import REVIEWS
from podium.server.kubernetes_documents import User, reviewed
from podium.store.errors import StoreError
from tests.store.objects import Raw

ANNA = User("anna", ("drivers",))
CAN_CREATE_PODS: Raw = {"resourceAttributes": {"namespace": "default", "verb": "create", "resource": "pods"}}


def answer(kind: str, body: Any, user: User = ANNA, **more: bool) -> Raw:
    return reviewed(kind, body, user, **more)


@pytest.mark.parametrize("kind", [review.kind for review in REVIEWS if review.kind.endswith("AccessReview")])
def test_everything_is_allowed(kind: str) -> None:
    found = answer(kind, {"kind": kind, "spec": CAN_CREATE_PODS})
    assert found["status"]["allowed"] is True
    assert found["spec"] == CAN_CREATE_PODS
    assert found["apiVersion"] == "authorization.k8s.io/v1"


def test_the_rules_are_those_of_an_administrator() -> None:
    status = answer("SelfSubjectRulesReview", {"spec": {"namespace": "default"}})["status"]
    assert status["resourceRules"] == [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
    assert status["incomplete"] is False


def test_a_self_review_returns_the_caller() -> None:
    found = answer("SelfSubjectReview", {"kind": "SelfSubjectReview"})
    assert found["status"]["userInfo"] == {"username": "anna", "groups": ["drivers"]}


def test_a_token_review_accepts_only_the_servers_token() -> None:
    body = {"spec": {"token": "abc"}}
    assert answer("TokenReview", body, is_authenticated=True)["status"]["authenticated"] is True
    assert "authenticated" not in answer("TokenReview", body)["status"]


def test_other_kinds_are_not_reviews() -> None:
    with pytest.raises(KeyError):
        reviewed("Pod", {})


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        "text",
        {"kind": "Pod"},
        {"spec": []},
        {"spec": {}},
        {"spec": {"resourceAttributes": {"verb": "get"}, "nonResourceAttributes": {"verb": "get"}}},
    ],
)
def test_an_invalid_review_is_rejected(body: Any) -> None:
    with pytest.raises(StoreError) as refused:
        reviewed("SelfSubjectAccessReview", body)
    assert refused.value.code == 400
