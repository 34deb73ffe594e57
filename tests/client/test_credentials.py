"""Credentials of a client: rotating tokens, exec plugins, certificates, and refusals."""

import asyncio
import json
import os
import select
import ssl
import stat
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trustme

from podium.api.errors import InputError
from podium.apirequests.request import Request
from podium.client.credentials import ClusterAccess, Credentials, ExecError, ExecPlugin, Identity
from podium.client.session import NoAnswerError, Session
from podium.store.api_resources import APIResources
from tests.client.api_server import APIServer, refusal
from tests.store.objects import SECOND
from tests.waiting import GUARD_SECONDS

ACCESS = ClusterAccess(name="test", server="https://127.0.0.1:1")
NODES = Request(verb="list", kind="Node")


def of(identity: Identity, now: Any = time.time_ns, *, allows_exec: bool = False) -> Credentials:
    return Credentials(msgspec.structs.replace(ACCESS, identity=identity), now, allows_exec=allows_exec)


def plugin(folder: Path, status: Any, *, code: int = 0, count: bool = False) -> ExecPlugin:
    """Return a program that gives out a credential, or what the test wants."""
    answer = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    text = json.dumps(answer) if not isinstance(status, str) else status
    script = folder / "plugin.py"
    script.write_text(f"import sys\nopen({str(folder / 'runs')!r}, 'a').write('x')\nprint({text!r})\nsys.exit({code})")
    return ExecPlugin(command=sys.executable, args=(str(script),))


def test_a_token_in_a_file_is_read_again_after_a_minute_and_when_it_is_refused(tmp_path: Path) -> None:
    file, now = tmp_path / "token", [0]
    file.write_text("first\n")
    credentials = of(Identity(token_file=str(file)), lambda: now[0])

    async def story() -> None:
        assert await credentials.headers() == {"Authorization": "Bearer first"}
        file.write_text("second")
        now[0] = 59 * SECOND
        assert await credentials.headers() == {"Authorization": "Bearer first"}
        now[0] = 60 * SECOND
        assert await credentials.headers() == {"Authorization": "Bearer second"}
        file.write_text("third")
        assert await credentials.renew(credentials.changes)
        assert await credentials.headers() == {"Authorization": "Bearer third"}
        assert not await credentials.renew(credentials.changes)

    asyncio.run(story())


def test_a_name_and_a_password_are_shown_as_http_has_it() -> None:
    headers = asyncio.run(of(Identity(username="me", password="secret")).headers())

    assert headers == {"Authorization": "Basic bWU6c2VjcmV0"}


def test_no_program_is_run_unless_that_is_allowed(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--allow-exec-plugins"):
        of(Identity(exec_plugin=plugin(tmp_path, {"token": "t"})))

    assert not (tmp_path / "runs").exists()


def test_a_program_is_run_once_and_again_shortly_before_its_token_expires(tmp_path: Path) -> None:
    now = [0]
    given = plugin(tmp_path, {"token": "given", "expirationTimestamp": "1970-01-01T00:10:00Z"})
    credentials = of(Identity(exec_plugin=given), lambda: now[0], allows_exec=True)

    async def story() -> None:
        for seconds, runs in ((0, 1), (300, 1), (539, 1), (541, 2)):
            now[0] = seconds * SECOND
            assert await credentials.headers() == {"Authorization": "Bearer given"}
            assert len((tmp_path / "runs").read_text()) == runs

    asyncio.run(story())


@pytest.mark.parametrize(
    ("status", "code", "problem"),
    [
        ({"token": "t0psecret"}, 3, "ended with code 3"),
        ("t0psecret", 0, "is not an ExecCredential"),
        ({}, 0, "neither a token nor a certificate"),
        ({"token": "t0psecret", "expirationTimestamp": "soon"}, 0, "is not an ExecCredential"),
    ],
)
def test_errors_of_a_credential_program_omit_its_output(tmp_path: Path, status: Any, code: int, problem: str) -> None:
    credentials = of(Identity(exec_plugin=plugin(tmp_path, status, code=code)), allows_exec=True)

    with pytest.raises(ExecError, match=problem) as raised:
        asyncio.run(credentials.headers())

    assert "t0psecret" not in str(raised.value)


def test_a_missing_credential_program_is_reported_with_its_install_hint() -> None:
    missing = ExecPlugin(command="/not/there", install_hint="install it from example.com")

    with pytest.raises(ExecError, match="install it from example"):
        asyncio.run(of(Identity(exec_plugin=missing), allows_exec=True).headers())


class Authority:
    """An authority with a server's certificate and a client's."""

    def __init__(self, folder: Path) -> None:
        self.authority = trustme.CA()
        self.server, self.client = self.authority.issue_cert("127.0.0.1"), self.authority.issue_cert("me@example.com")
        self.pem = self.authority.cert_pem.bytes()
        self.folder = folder

    def context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.server.configure_cert(context)
        self.authority.configure_trust(context)
        context.verify_mode = ssl.CERT_OPTIONAL
        return context


def list_nodes(access: ClusterAccess, **options: Any) -> int:
    async def ask() -> int:
        session = Session(access, Credentials(access, time.time_ns), APIResources(), **options)
        try:
            return (await session.answer(NODES)).code
        finally:
            await session.close()

    return asyncio.run(ask())


def test_a_server_is_trusted_by_its_authority_alone_and_sees_the_clients_certificate(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    identity = Identity(
        certificate_data=authority.client.cert_chain_pems[0].bytes(), key_data=authority.client.private_key_pem.bytes()
    )

    async def story() -> None:
        async with APIServer(ssl=authority.context()) as server:
            access = ClusterAccess(name="test", server=server.url, authority_data=authority.pem, identity=identity)
            assert await asyncio.to_thread(list_nodes, access) == 200
            stranger = msgspec.structs.replace(access, authority_data=trustme.CA().cert_pem.bytes())
            with pytest.raises(NoAnswerError, match="certificate verify failed") as raised:
                await asyncio.to_thread(list_nodes, stranger)
            assert not raised.value.was_sent
            unsure = msgspec.structs.replace(stranger, is_insecure=True)
            assert await asyncio.to_thread(list_nodes, unsure) == 200

    asyncio.run(story())


def test_keys_lie_in_no_file_longer_than_it_takes_to_read_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = Authority(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    seen: list[int] = []
    load = ssl.SSLContext.load_cert_chain

    def watched(self: ssl.SSLContext, certificate: str, key: str) -> None:
        seen.extend(stat.S_IMODE(Path(path).stat().st_mode) for path in (certificate, key, Path(key).parent))
        load(self, certificate, key)

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", watched)
    pems = authority.client.cert_chain_pems[0].bytes(), authority.client.private_key_pem.bytes()

    assert of(Identity(certificate_data=pems[0], key_data=pems[1])).tls() is not None

    assert seen == [0o600, 0o600, 0o700]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("identity", [{"certificate_data": b"none"}, {"certificate_file": "/not/there"}])
def test_invalid_certificates_are_rejected(identity: Any) -> None:
    with pytest.raises(InputError, match="is not a certificate"):
        of(Identity(**identity)).tls()


def test_a_request_that_is_refused_for_its_token_is_sent_again_with_a_newer_one(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("old")

    async def story() -> None:
        async with APIServer() as server:

            async def fault(request: Request) -> Any:
                if server.headers[-1]["Authorization"] != "Bearer new":
                    file.write_text("new")
                    return refusal(401, "Unauthorized")
                return None

            server.before = fault
            access = ClusterAccess(name="test", server=server.url, identity=Identity(token_file=str(file)))
            assert await asyncio.to_thread(list_nodes, access) == 200
            assert [each["Authorization"] for each in server.headers] == ["Bearer old", "Bearer new"]

    asyncio.run(story())


def test_a_proxy_of_the_environment_is_used_but_for_hosts_that_it_excepts(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        async with APIServer() as proxy:
            monkeypatch.setenv("http_proxy", proxy.url)
            monkeypatch.setenv("no_proxy", "")
            access = ClusterAccess(name="test", server="http://cluster.example:8080")
            assert await asyncio.to_thread(list_nodes, access) == 200
            assert proxy.headers[0]["Host"] == "cluster.example:8080"
            monkeypatch.setenv("no_proxy", "127.0.0.1")
            direct = ClusterAccess(name="test", server="http://127.0.0.1:9")
            with pytest.raises(NoAnswerError):
                await asyncio.to_thread(list_nodes, direct)
            assert len(proxy.headers) == 1

    asyncio.run(story())


def test_a_redirect_is_not_followed_with_the_credentials() -> None:
    async def story() -> None:
        async with APIServer() as server, APIServer() as elsewhere:

            async def fault(request: Request) -> Any:
                response = refusal(307, "Moved")
                response.headers["Location"] = f"{elsewhere.url}/api/v1/nodes"
                return response

            server.before = fault
            access = ClusterAccess(name="test", server=server.url, identity=Identity(token="t"))
            await asyncio.to_thread(list_nodes, access)
            assert elsewhere.headers == []

    asyncio.run(story())


def test_many_requests_at_once_have_a_program_run_once_and_once_more_where_all_are_refused(tmp_path: Path) -> None:
    credentials = of(Identity(exec_plugin=plugin(tmp_path, {"token": "given"})), allows_exec=True)

    async def story() -> None:
        await asyncio.gather(*(credentials.headers() for _ in range(8)))
        assert (tmp_path / "runs").read_text() == "x"
        plugin(tmp_path, {"token": "newer"})
        shown = credentials.changes
        assert await asyncio.gather(*(credentials.renew(shown) for _ in range(8))) == [True] * 8
        assert (tmp_path / "runs").read_text() == "xx"
        assert await credentials.headers() == {"Authorization": "Bearer newer"}

    asyncio.run(story())


def test_while_a_newer_certificate_is_asked_for_the_one_there_is_is_shown(tmp_path: Path) -> None:
    client = Authority(tmp_path).client
    status = {
        "clientCertificateData": client.cert_chain_pems[0].bytes().decode(),
        "clientKeyData": client.private_key_pem.bytes().decode(),
    }
    credentials = of(Identity(exec_plugin=plugin(tmp_path, status)), allows_exec=True)

    async def story() -> None:
        await credentials.headers()
        context = credentials.tls()
        renewing = asyncio.ensure_future(credentials.renew(credentials.changes))
        while not renewing.done():
            assert credentials.tls() is context
            await asyncio.sleep(0)
        assert not renewing.result()

    asyncio.run(story())


@pytest.mark.parametrize("is_starting", [False, True])
def test_an_abandoned_credential_program_ends_with_all_its_children(
    is_starting: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, lives = tmp_path / "began", tmp_path / "lives"
    os.mkfifo(began)
    os.mkfifo(lives)
    ended = os.open(lives, os.O_RDONLY | os.O_NONBLOCK)
    script = tmp_path / "plugin.sh"
    # Its child has all pipes open for as long as it lives.
    script.write_text(f"(exec 3> {lives}; echo $$ > {began}; sleep 600) &\nwait")
    credentials = of(Identity(exec_plugin=ExecPlugin(command="/bin/sh", args=(str(script),))), allows_exec=True)
    is_abandoned = asyncio.Event()
    create = asyncio.create_subprocess_exec

    async def create_slowly(*command: Any, **options: Any) -> asyncio.subprocess.Process:
        process = await create(*command, **options)
        if is_starting:
            await is_abandoned.wait()
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", create_slowly)

    async def story() -> int:
        asking = asyncio.ensure_future(credentials.headers())
        process_id = int(await asyncio.to_thread(began.read_text))
        asking.cancel()
        asyncio.get_running_loop().call_soon(is_abandoned.set)
        await asyncio.gather(asking, return_exceptions=True)
        return process_id

    process_id = asyncio.run(story())

    with pytest.raises(ProcessLookupError):
        os.kill(process_id, 0)
    assert select.select([ended], [], [], GUARD_SECONDS)[0]
    os.close(ended)
