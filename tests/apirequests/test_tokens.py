"""Tokens of service accounts: what they say, and how long they are valid."""

from __future__ import annotations

import pytest

from podium.apirequests.authorization import ISSUER, User, token_user
from podium.apirequests.context import RequestRules
from podium.apirequests.request import Request
from podium.apirequests.router import Router
from podium.store.store import Store
from tests.store.objects import SECOND, Raw, pod

KEY = b"a key that only the server knows"
NOW = 1_000 * SECOND
ROBOT: Raw = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot", "namespace": "default"}}


class Cluster:
    def __init__(self) -> None:
        self.store = Store()
        self.store.create(ROBOT, now=0)
        self.store.create(pod("web"), now=0)
        self._router = Router(self.store, rules=RequestRules(token_key=KEY))

    def ask(self, **spec: object) -> Raw:
        request = Request(
            verb="create", kind="ServiceAccount", key="default/robot", subresource="token", body={"spec": spec}
        )
        return self._router.answer(request, NOW).to_dict()

    def token(self, **spec: object) -> str:
        return str(self.ask(**spec)["status"]["token"])

    def user(self, token: str, after: int = 0, key: bytes = KEY, audience: str = ISSUER) -> User | None:
        return token_user(self.store, key, token, NOW + after * SECOND, (audience,))


def test_a_token_identifies_its_account() -> None:
    cluster = Cluster()
    user = cluster.user(cluster.token())

    assert user is not None
    assert user.name == "system:serviceaccount:default:robot"
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated")
    assert user.uid == cluster.store.get("ServiceAccount", "default/robot").uid


def test_a_token_is_valid_until_it_expires() -> None:
    cluster = Cluster()
    token = cluster.token(expirationSeconds=600)

    assert cluster.user(token, after=599) is not None
    assert cluster.user(token, after=600) is None


def test_a_token_with_another_signature_is_invalid() -> None:
    cluster = Cluster()
    token = cluster.token()

    for other in (token[:-2], token + "x", "a.b.c", "", token.rpartition(".")[0] + "."):
        assert cluster.user(other) is None
    assert cluster.user(token, key=b"another key") is None
    assert cluster.user(token, key=b"") is None


def test_a_token_is_valid_for_its_audiences_alone() -> None:
    cluster = Cluster()
    token = cluster.token(audiences=["vault"])

    assert cluster.user(token) is None
    assert cluster.user(token, audience="vault") is not None


def test_a_token_ends_with_its_account() -> None:
    cluster = Cluster()
    token = cluster.token()
    cluster.store.delete("ServiceAccount", "default/robot", now=0)
    cluster.store.create(ROBOT, now=0)

    assert cluster.user(token) is None


def test_a_token_of_a_pod_names_its_node() -> None:
    cluster = Cluster()
    node = cluster.store.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}, now=0)
    cluster.store.create(pod("bound", node="n1"), now=0)

    user = cluster.user(cluster.token(boundObjectRef={"kind": "Pod", "apiVersion": "v1", "name": "bound"}))

    assert user is not None
    assert user.extra["authentication.kubernetes.io/node-name"] == ["n1"]
    assert user.extra["authentication.kubernetes.io/node-uid"] == [node.uid]


def test_a_bound_token_ends_with_its_pod() -> None:
    cluster = Cluster()
    token = cluster.token(boundObjectRef={"kind": "Pod", "apiVersion": "v1", "name": "web"})

    user = cluster.user(token)
    assert user is not None
    assert user.extra["authentication.kubernetes.io/pod-name"] == ["web"]
    cluster.store.delete("Pod", "default/web", now=0)
    assert cluster.user(token) is None


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        ({"expirationSeconds": 599}, 422),
        ({"expirationSeconds": 2**33}, 422),
        ({"boundObjectRef": {"kind": "Pod", "name": "none"}}, 404),
        ({"boundObjectRef": {"kind": "Pod", "name": "web", "uid": "other"}}, 409),
        ({"boundObjectRef": {"kind": "Deployment", "name": "web"}}, 400),
    ],
)
def test_requests_for_tokens_that_cannot_be_issued_are_refused(spec: Raw, code: int) -> None:
    assert Cluster().ask(**spec)["code"] == code
