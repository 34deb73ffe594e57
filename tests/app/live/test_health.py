"""Health reports of a scheduler: their endpoints and readers."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import trustme

from podium.api.errors import InputError
from podium.app.live.metrics import Health, HealthSettings

TOKEN = "0123456789abcdef"


def play(
    settings: HealthSettings, story: Callable[[aiohttp.ClientSession, str, dict[str, str]], Awaitable[None]]
) -> None:
    async def run() -> None:
        problems: dict[str, str] = {}
        health = Health(settings, {"/metrics": lambda: (b"metric 1\n", "text/plain")}, lambda: problems)
        url = await health.start()
        try:
            async with aiohttp.ClientSession() as client:
                await story(client, url, problems)
        finally:
            await health.stop()

    asyncio.run(run())


async def asked(client: aiohttp.ClientSession, url: str, **how: Any) -> tuple[int, str]:
    async with client.get(url, **how) as response:
        return response.status, await response.text()


def test_unhealthy_checks_are_named() -> None:
    async def story(client: aiohttp.ClientSession, url: str, problems: dict[str, str]) -> None:
        assert await asked(client, f"{url}/readyz") == (200, "ok")
        assert (await asked(client, f"{url}/readyz?verbose")) == (200, "readyz check passed\n")
        problems["informer-sync"] = "watch caches are not synced: Pod"
        code, text = await asked(client, f"{url}/readyz")
        assert (code, text.splitlines()[0]) == (500, "[-]informer-sync failed: watch caches are not synced: Pod")
        assert await asked(client, f"{url}/livez") == (200, "ok")
        assert (await asked(client, f"{url}/metrics")) == (200, "metric 1\n")
        assert (await asked(client, f"{url}/debug/pprof"))[0] == 404

    play(HealthSettings(port=0), story)


def test_health_requests_for_foreign_hosts_are_rejected() -> None:
    async def story(client: aiohttp.ClientSession, url: str, problems: dict[str, str]) -> None:
        for path in ("/metrics", "/healthz"):
            assert (await asked(client, f"{url}{path}", headers={"Host": "evil.example:80"}))[0] == 403
            assert (await asked(client, f"{url}{path}", headers={"Host": "localhost:80"}))[0] == 200

    play(HealthSettings(port=0), story)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.com", ""])
def test_serving_other_hosts_requires_tls_and_a_token(host: str) -> None:
    with pytest.raises(InputError, match="--tls-cert-file"):
        HealthSettings(host=host, port=0).check()
    with pytest.raises(InputError, match="--metrics-token-file"):
        HealthSettings(host=host, port=0, certificate_file="c", key_file="k").check()
    HealthSettings(host=host, port=0, certificate_file="c", key_file="k", token_file="t").check()
    HealthSettings(host=host).check()


def test_metrics_want_the_token_and_health_does_not(tmp_path: Path) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    files = {name: tmp_path / name for name in ("cert", "key", "token")}
    files["cert"].write_bytes(certificate.cert_chain_pems[0].bytes())
    files["key"].write_bytes(certificate.private_key_pem.bytes())
    files["token"].write_text(f"{TOKEN}\n")
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)

    async def story(client: aiohttp.ClientSession, url: str, problems: dict[str, str]) -> None:
        assert url.startswith("https://")
        assert (await asked(client, f"{url}/healthz", ssl=trusting))[0] == 200
        assert (await asked(client, f"{url}/metrics", ssl=trusting))[0] == 401
        for shown, code in ((TOKEN, 200), ("x" * 16, 401), ("é", 401)):
            headers = {"Authorization": f"Bearer {shown}"}
            assert (await asked(client, f"{url}/metrics", ssl=trusting, headers=headers))[0] == code

    play(
        HealthSettings(
            port=0, certificate_file=str(files["cert"]), key_file=str(files["key"]), token_file=str(files["token"])
        ),
        story,
    )


def test_a_health_server_that_cannot_start_is_reported(tmp_path: Path) -> None:
    short = tmp_path / "token"
    short.write_text("short")
    for settings, problem in (
        (HealthSettings(port=0, token_file=str(short)), "less than 16 letters"),
        (HealthSettings(port=0, token_file="/not/there"), "cannot be read"),
        (HealthSettings(port=0, certificate_file=str(short)), "is not a valid certificate with its key in PEM"),
    ):
        with pytest.raises(InputError, match=problem):
            asyncio.run(Health(settings, {}, dict).start())


def test_a_port_in_use_is_reported() -> None:
    async def story(client: aiohttp.ClientSession, url: str, problems: dict[str, str]) -> None:
        port = int(url.rpartition(":")[2])
        with pytest.raises(InputError, match=f"cannot listen on 127.0.0.1 port {port}"):
            await Health(HealthSettings(port=port), {}, dict).start()

    play(HealthSettings(port=0), story)
