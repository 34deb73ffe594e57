"""The admission webhook's own certificate: openssl makes it, and the webhook's configuration holds its authority."""

from __future__ import annotations

import asyncio
import base64
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from podium.api.errors import InputError, PodiumError
from podium.api.meta import Raw, object_at, objects_at
from podium.apirequests.request import Request
from podium.app.console.output import write_private
from podium.client.session import NoAnswerError, Session

CERTIFICATE, KEY = "tls.crt", "tls.key"
VALID_DAYS = 90
RENEWED_DAYS = 60
_KIND = "ValidatingWebhookConfiguration"
_CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
_PEM = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----\n?", re.DOTALL)
_ADDRESS = re.compile(r"[0-9.]+|[0-9a-f:]*:[0-9a-f:.]*")
# The authority in use, and those of instances that still run or that were restarted.
_MAX_AUTHORITIES = 4


@dataclass(slots=True)
class OwnCertificate:
    """A certificate and its authority, renewed together; the ``configuration`` is the name of the webhook's.

    API servers trust the authorities in the configuration. A new one is added there before its certificate is used. The
    authority's key is deleted at once: it signs one certificate.
    """

    folder: Path
    configuration: str
    session: Session
    authority: str = ""

    async def renew(self) -> None:
        """Make a certificate for the hosts of the configuration, and publish its authority.

        Raises PodiumError without openssl, without the configuration, or if the API server refuses to change it.
        """
        hosts = _hosts(await self._configured())
        if not hosts:
            raise PodiumError(f"{_KIND} {self.configuration} has no webhook with a service or a URL")
        authority, certificate, key = await asyncio.to_thread(_make, self.folder, hosts)
        self.authority = authority
        await self.publish()
        # The key first: a certificate without its key cannot be loaded, and is tried again.
        for name, text in ((KEY, key), (CERTIFICATE, certificate)):
            write_private(self.folder / name, text)

    async def publish(self) -> bool:
        """Write the authority into the configuration, unless it is there; return whether it was missing."""
        webhooks, wanted = [], False
        for hook in objects_at(await self._configured(), "webhooks"):
            given = object_at(hook, "clientConfig").get("caBundle") or ""
            known = _PEM.findall(base64.b64decode(given).decode("ascii", "replace"))
            wanted |= self.authority not in known
            bundle = "".join([self.authority, *(each for each in known if each != self.authority)][:_MAX_AUTHORITIES])
            encoded = base64.b64encode(bundle.encode()).decode()
            webhooks.append({"name": hook["name"], "clientConfig": {"caBundle": encoded}})
        if wanted:
            body = {"webhooks": webhooks}
            await self._answer(
                Request(verb="patch", kind=_KIND, key=self.configuration, body=body, patch_type="strategic")
            )
        return wanted

    async def _configured(self) -> Raw:
        return await self._answer(Request(verb="get", kind=_KIND, key=self.configuration))

    async def _answer(self, request: Request) -> Raw:
        try:
            response = await self.session.answer(request)
        except NoAnswerError as error:
            raise PodiumError(f"{_KIND} {self.configuration}: {error}") from None
        if response.error is not None:
            raise PodiumError(f"{_KIND} {self.configuration}: {response.error.message}")
        return response.object or {}


def _hosts(configuration: Raw) -> list[str]:
    """Return the host names by which API servers call the webhooks of a configuration."""
    found = []
    for hook in objects_at(configuration, "webhooks"):
        config = object_at(hook, "clientConfig")
        service = object_at(config, "service")
        url = urlsplit(str(config.get("url") or ""))
        if service:
            found.append(f"{service.get('name')}.{service.get('namespace')}.svc")
        elif url.hostname:
            found.append(url.hostname)
    return sorted(set(found))


def _make(folder: Path, hosts: Sequence[str]) -> tuple[str, str, str]:
    """Return a new authority, a certificate by it for the hosts, and the certificate's key, in PEM."""
    openssl = shutil.which("openssl")
    if openssl is None:
        raise InputError("--self-signed needs the program openssl; or give --tls-cert-file and --tls-private-key-file")
    names = ",".join(f"{'IP' if _ADDRESS.fullmatch(host) else 'DNS'}:{host}" for host in hosts)
    files = authority, authority_key, certificate, key = [
        folder / name for name in ("ca", "ca-key", "made", "made-key")
    ]
    common = ["-x509", "-days", str(VALID_DAYS), *_CURVE, "-batch"]
    request = (
        ["-subj", "/CN=podium-admission-ca", "-addext", "keyUsage=critical,keyCertSign", "-out", str(authority)],
        ["-subj", "/CN=podium-admission", "-addext", f"subjectAltName={names}", "-out", str(certificate)],
    )
    signed = ["-CA", str(authority), "-CAkey", str(authority_key), "-addext", "basicConstraints=critical,CA:FALSE"]
    try:
        for arguments in (
            [*common, *request[0], "-keyout", str(authority_key)],
            [*common, *request[1], *signed, "-keyout", str(key)],
        ):
            # The arguments are host names and files of this process; no shell reads them.
            done = subprocess.run([openssl, "req", *arguments], capture_output=True, text=True, check=False)  # noqa: S603
            if done.returncode:
                raise PodiumError(f"openssl cannot make a certificate: {done.stderr.strip()}")
        texts = tuple(file.read_text(encoding="ascii") for file in (authority, certificate, key))
        return texts[0], texts[1], texts[2]
    finally:
        for file in files:
            file.unlink(missing_ok=True)
