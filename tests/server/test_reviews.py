"""Reviews: of clients, of tokens, and of what users may do."""

from __future__ import annotations

from typing import Any

import pytest

from podium.apirequests.authorization import Authorizer, User
from podium.server.discovery import REVIEWS
from podium.server.reviews import Reviews
from podium.store.errors import StoreError
from tests.apirequests.test_authorization import bound, role, store_with
from tests.store.objects import Raw

ANNA = User("anna", ("drivers",))
CAN_CREATE_PODS: Raw = {"resourceAttributes": {"namespace": "default", "verb": "create", "resource": "pods"}}


def identify(token: str, _audiences: Any) -> User | None:
    return ANNA if token == "abc" else None


def answer(kind: str, body: Any, user: User = ANNA, authorizer: Authorizer | None = None) -> Raw:
    return Reviews(identify, authorizer).reviewed(kind, body, user)


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


def test_a_token_review_names_the_user_of_the_token() -> None:
    status = answer("TokenReview", {"spec": {"token": "abc"}})["status"]

    assert (status["authenticated"], status["user"]["username"]) == (True, "anna")
    assert answer("TokenReview", {"spec": {"token": "other"}})["status"] == {
        "user": {},
        "error": "invalid bearer token",
    }


def test_with_roles_a_review_says_what_the_bindings_allow() -> None:
    authorizer = Authorizer(
        store_with(
            role("reader", {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}), bound("reader", "anna")
        )
    )
    may = {"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "shop"}}
    may_not = {"resourceAttributes": {"verb": "delete", "resource": "pods", "namespace": "shop"}}

    for spec, allowed in ((may, True), (may_not, False)):
        assert answer("SelfSubjectAccessReview", {"spec": spec}, ANNA, authorizer)["status"]["allowed"] is allowed
        other = {"spec": {**spec, "user": "anna"}}
        assert answer("SubjectAccessReview", other, User(), authorizer)["status"]["allowed"] is allowed
    rules = answer("SelfSubjectRulesReview", {"spec": {"namespace": "shop"}}, ANNA, authorizer)["status"]
    assert [rule["resources"] for rule in rules["resourceRules"]] == [["pods"]]


def test_other_kinds_are_not_reviews() -> None:
    with pytest.raises(KeyError):
        answer("Pod", {})


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
        answer("SelfSubjectAccessReview", body)
    assert refused.value.code == 400
