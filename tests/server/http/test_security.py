"""Authentication, and the addresses on which the server may listen."""

from __future__ import annotations

import json
import ssl
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import pytest
import trustme

from podium.api.errors import InputError
from podium.apirequests.authorization import AUTHENTICATED, ISSUER, UNAUTHENTICATED, Authorizer, User, issued_token
from podium.server.http.security import TLS, Guard, ServerSettings, Token, is_loopback
from podium.server.http.server import Server
from podium.store.errors import StoreError
from tests.apirequests.test_authorization import bound, role
from tests.server.serving import PODS, Client, LocalBackend, with_server
from tests.store.objects import pod

TOKEN = "a-token-that-is-long-enough"  # the token of a test
READER = "another-token-that-is-long"


class Authority(NamedTuple):
    """An authority for certificates, and files of the server's."""

    ca: trustme.CA
    tls: TLS
    folder: Path

    def trusting(self, client: str = "") -> ssl.SSLContext:
        """Return what trusts the authority; with a certificate for a client where one is named."""
        context = ssl.create_default_context()
        self.ca.configure_trust(context)
        if client:
            self.ca.issue_cert(f"{client}.example.com", common_name=client).configure_cert(context)
        return context


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    folder = tmp_path_factory.mktemp("certificates")
    ca = trustme.CA()
    certificate = ca.issue_cert("127.0.0.1", "localhost")
    (folder / "server.pem").write_bytes(b"".join(blob.bytes() for blob in certificate.cert_chain_pems))
    (folder / "server.key").write_bytes(certificate.private_key_pem.bytes())
    (folder / "authority.pem").write_bytes(ca.cert_pem.bytes())
    tls = TLS(certificate_file=str(folder / "server.pem"), key_file=str(folder / "server.key"))
    return Authority(ca, tls, folder)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "[::1]", "localhost"])
def test_loopback_is_this_machine_alone(host: str) -> None:
    assert is_loopback(host)
    Server(LocalBackend(), settings=ServerSettings(host=host))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.com", "", "localhost.example.com"])
def test_anywhere_else_nothing_is_served_without_tls_and_a_token(host: str, authority: Authority) -> None:
    assert not is_loopback(host)
    for settings in (
        ServerSettings(host=host),
        ServerSettings(host=host, tokens=(Token(text=TOKEN),)),
        ServerSettings(host=host, tls=authority.tls),
    ):
        with pytest.raises(InputError, match="cannot listen on"):
            Server(LocalBackend(), settings=settings)
    Server(LocalBackend(), settings=ServerSettings(host=host, tls=authority.tls, tokens=(Token(text=TOKEN),)))


@pytest.mark.parametrize("text", ["", "short", "with\na line that is another", "\u00e9" * 20])
def test_a_token_is_long_and_plain(text: str) -> None:
    with pytest.raises(InputError, match="16 plain letters"):
        Server(LocalBackend(), settings=ServerSettings(tokens=(Token(text=text),)))


def test_a_token_is_never_shown() -> None:
    assert TOKEN not in repr(ServerSettings(tokens=(Token(text=TOKEN),)))


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, 401),
        (bearer(TOKEN), 200),
        ({"Authorization": f"bearer {TOKEN}"}, 200),
        (bearer(TOKEN + "x"), 401),
        (bearer(""), 401),
        ({"Authorization": TOKEN}, 401),
        ({"Authorization": f"Basic {TOKEN}"}, 401),
    ],
)
def test_a_server_with_tokens_requires_one(headers: dict[str, str], code: int) -> None:
    async def check(client: Client) -> None:
        answered, body = await client.ask("GET", PODS, headers=headers)
        assert answered == code
        if code == 401:
            assert (body["reason"], body["message"]) == ("Unauthorized", "Unauthorized")
            assert (await client.ask("GET", "/healthz", headers=headers))[0] == 200
            assert (await client.ask("GET", "/version", headers=headers))[0] == 200
            assert (await client.ask("GET", "/metrics", headers=headers))[0] == 401
            assert (await client.ask("GET", f"{PODS}?watch=1", headers=headers))[0] == 401

    with_server(check, settings=ServerSettings(tokens=(Token(text=TOKEN),)))


def test_a_token_may_be_for_reading_alone() -> None:
    async def check(client: Client) -> None:
        reader = bearer(READER)
        assert (await client.ask("GET", PODS, headers=reader))[0] == 200
        for method, path in (("POST", PODS), ("DELETE", f"{PODS}/a"), ("PUT", f"{PODS}/a")):
            code, body = await client.ask(method, path, pod("a"), headers=reader)
            assert (code, body["reason"]) == (403, "Forbidden")
        code, _ = await client.ask("GET", PODS, headers={**reader, "Impersonate-User": "admin"})
        assert code == 403
        assert (await client.ask("POST", PODS, pod("a"), headers=bearer(TOKEN)))[0] == 201

    tokens = (Token(text=TOKEN), Token(text=READER, user="reader", reads_only=True))
    with_server(check, settings=ServerSettings(tokens=tokens))


@pytest.mark.parametrize(
    "host", ["evil.example.com", "evil.example.com:80", "127.0.0.1.evil.com", "10.0.0.1", "[::2]:1"]
)
def test_requests_for_foreign_host_names_are_rejected(host: str) -> None:
    async def check(client: Client) -> None:
        code, body = await client.ask("GET", PODS, headers={"Host": host})
        assert (code, body["reason"]) == (403, "Forbidden")
        for name in ("localhost", "LOCALHOST:1", "127.0.0.1:99", "[::1]:5"):
            assert (await client.ask("GET", PODS, headers={"Host": name}))[0] == 200

    with_server(check)


def test_a_page_of_another_origin_is_rejected() -> None:
    async def check(client: Client) -> None:
        for origin in ("http://evil.example.com", "null", "http://127.0.0.1:1"):
            headers = {"Origin": origin, "Content-Type": "application/json"}
            code, _ = await client.ask("POST", PODS, pod("a"), headers=headers)
            assert code == 403
        response, _ = await client.reply("GET", PODS)
        assert not [name for name in response.headers if name.startswith("Access-Control")]

    with_server(check)


def test_tls_with_a_token(authority: Authority) -> None:
    async def check(client: Client) -> None:
        trusting = authority.trusting()
        assert (await client.ask("GET", PODS, ssl=trusting))[0] == 401
        assert (await client.ask("GET", PODS, ssl=trusting, headers=bearer(TOKEN)))[0] == 200
        async with client.session.get(
            f"{client.server.address}{PODS}?watch=1", ssl=trusting, headers=bearer(TOKEN)
        ) as response:
            assert b"ADDED" in await response.content.readline()
        with pytest.raises(aiohttp.ClientConnectorError):
            await client.ask("GET", PODS, ssl=ssl.create_default_context())

    with_server(check, pod("a"), settings=ServerSettings(tls=authority.tls, tokens=(Token(text=TOKEN),)))


def test_a_client_certificate_identifies_the_user(authority: Authority) -> None:
    tls = TLS(
        certificate_file=authority.tls.certificate_file,
        key_file=authority.tls.key_file,
        client_authority_file=str(authority.folder / "authority.pem"),
    )
    asked: list[str] = []

    class Noting(LocalBackend):
        def answer(self, request: Any) -> Any:
            asked.append(request.user)
            return super().answer(request)

    async def check(client: Client) -> None:
        assert (await client.ask("GET", PODS, ssl=authority.trusting()))[0] == 401
        assert (await client.ask("GET", PODS, ssl=authority.trusting("ada")))[0] == 200
        assert asked == ["ada"]

    with_server(check, backend=Noting(), settings=ServerSettings(tls=tls))


def test_an_administrator_may_impersonate_another_user() -> None:
    asked: list[str] = []

    class Noting(LocalBackend):
        def answer(self, request: Any) -> Any:
            asked.append(request.user)
            return super().answer(request)

    async def check(client: Client) -> None:
        await client.ask("GET", PODS)
        await client.ask("GET", PODS, headers={"Impersonate-User": "descheduler"})
        assert asked == ["kubernetes-admin", "descheduler"]

    with_server(check, backend=Noting())


def test_invalid_certificate_files_are_named(tmp_path: Path) -> None:
    file = tmp_path / "server.pem"
    file.write_text("nothing")

    async def check(client: Client) -> None:
        raise AssertionError

    with pytest.raises(InputError, match=r"server\.pem"):
        with_server(check, settings=ServerSettings(tls=TLS(certificate_file=str(file), key_file=str(file))))


def test_a_port_in_use_is_reported() -> None:
    async def check(client: Client) -> None:
        other = Server(LocalBackend(), settings=ServerSettings(port=client.server.port))
        with pytest.raises(InputError, match="another process listens there"):
            await other.start()

    with_server(check)


def test_mutating_requests_are_logged() -> None:
    lines: list[bytes] = []

    async def check(client: Client) -> None:
        response, _ = await client.reply("POST", f"{PODS}?fieldManager=me", pod("a"), headers={"User-Agent": "test/1"})
        await client.ask("GET", PODS)
        await client.ask("DELETE", f"{PODS}/none")
        created, deleted = map(json.loads, lines)
        assert created["auditID"] == response.headers["Audit-Id"]
        assert (created["kind"], created["verb"], created["responseStatus"]) == ("Event", "create", {"code": 201})
        assert created["user"] == {"username": "kubernetes-admin"}
        assert created["requestURI"] == f"{PODS}?fieldManager=me"
        assert created["objectRef"] == {"resource": "pods", "namespace": "default", "apiVersion": "v1"}
        assert (deleted["objectRef"]["name"], deleted["responseStatus"]) == ("none", {"code": 404})

    with_server(check, settings=ServerSettings(audit=lines.append))


@pytest.mark.parametrize(
    ("headers", "user"),
    [
        ({"Impersonate-User": "anna"}, User("anna", (AUTHENTICATED,))),
        ({"Impersonate-User": "anna", "Impersonate-Group": "dev"}, User("anna", ("dev", AUTHENTICATED))),
        ({"Impersonate-User": "anna", "Impersonate-Group": UNAUTHENTICATED}, User("anna", (UNAUTHENTICATED,))),
        (
            {"Impersonate-User": "anna", "Impersonate-Uid": "7", "Impersonate-Extra-Team%2Fa": "b"},
            User("anna", (AUTHENTICATED,), "7", {"team/a": ["b"]}),
        ),
        (
            {"Impersonate-User": "system:serviceaccount:shop:robot"},
            User(
                "system:serviceaccount:shop:robot",
                ("system:serviceaccounts", "system:serviceaccounts:shop", AUTHENTICATED),
            ),
        ),
    ],
)
def test_an_impersonated_user_has_the_groups_and_extra_values_of_the_request(
    headers: dict[str, str], user: User
) -> None:
    found = Guard(ServerSettings()).caller(headers, None)

    assert found.identity == user


@pytest.mark.parametrize(
    ("header", "part"), [("Group", "group 'x'"), ("Uid", "uid 'x'"), ("Extra-Team", "extra-team 'x'")]
)
def test_parts_of_an_identity_without_a_user_are_refused(header: str, part: str) -> None:
    with pytest.raises(StoreError) as refused:
        Guard(ServerSettings()).caller({f"Impersonate-{header}": "x"}, None)

    assert (refused.value.code, refused.value.reason) == (400, "BadRequest")
    assert refused.value.message == f"requested {part} without impersonating a user name"


def test_an_empty_user_is_not_impersonated() -> None:
    guard = Guard(ServerSettings())

    assert guard.caller({"Impersonate-User": ""}, None) == guard.caller({}, None)


def test_a_token_of_the_cluster_identifies_its_account_or_nobody() -> None:
    token = issued_token(b"key", {"iss": ISSUER})
    robot = User("system:serviceaccount:shop:robot", (AUTHENTICATED,))

    def caller(identify: Any) -> str:
        return Guard(ServerSettings(identify=identify)).caller({"Authorization": f"Bearer {token}"}, None).identity.name

    assert caller(lambda _: robot) == robot.name
    with pytest.raises(StoreError) as refused:
        caller(lambda _: None)
    assert refused.value.code == 401


def test_with_roles_clients_may_do_what_their_bindings_allow() -> None:
    rules = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}
    backend = LocalBackend(role("reader", rules), bound("reader", "anna"))
    anna = {"Impersonate-User": "anna"}

    async def check(client: Client) -> None:
        assert (await client.ask("GET", PODS, headers=anna))[0] == 200
        code, status = await client.ask("GET", f"{PODS}/a", headers=anna)
        assert (code, status["message"]) == (
            403,
            'pods "a" is forbidden: User "anna" cannot get resource "pods" in API group "" in the namespace "default"',
        )
        code, status = await client.ask("GET", "/metrics", headers=anna)
        assert (code, status["message"]) == (403, 'forbidden: User "anna" cannot get path "/metrics"')
        assert (await client.ask("GET", "/metrics"))[0] == 200

    with_server(check, backend=backend, settings=ServerSettings(authorizer=Authorizer(backend.store)))
