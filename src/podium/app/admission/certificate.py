"""The admission webhook's own certificate, which openssl makes, and which the webhook's configuration trusts."""

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
# The certificate in use, and those of instances that still run or that were restarted.
_MAX_TRUSTED = 4


@dataclass(slots=True)
class OwnCertificate:
    """A certificate that signs itself and is renewed; the ``configuration`` is the name of the webhook's.

    API servers trust the certificates in the configuration. A new one is added there before it is used.
    """

    folder: Path
    configuration: str
    session: Session
    certificate: str = ""

    async def renew(self) -> None:
        """Make a certificate for the hosts of the configuration, and publish it there.

        Raises PodiumError without openssl, without the configuration, or if the API server refuses to change it.
        """
        hosts = _hosts(await self._configured())
        if not hosts:
            raise PodiumError(f"{_KIND} {self.configuration} has no webhook with a service or a URL")
        self.certificate, key = await asyncio.to_thread(_make, self.folder, hosts)
        await self.publish()
        # The key first: a certificate without its key cannot be loaded, and is tried again.
        for name, text in ((KEY, key), (CERTIFICATE, self.certificate)):
            write_private(self.folder / name, text)

    async def publish(self) -> bool:
        """Write the certificate into the configuration, unless it is there; return whether it was missing."""
        webhooks, wanted = [], False
        for hook in objects_at(await self._configured(), "webhooks"):
            given = object_at(hook, "clientConfig").get("caBundle") or ""
            known = _PEM.findall(base64.b64decode(given).decode("ascii", "replace"))
            wanted |= self.certificate not in known
            bundle = "".join([self.certificate, *(each for each in known if each != self.certificate)][:_MAX_TRUSTED])
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


def _make(folder: Path, hosts: Sequence[str]) -> tuple[str, str]:
    """Return a new certificate for the hosts, which signs itself, and its key, in PEM."""
    openssl = shutil.which("openssl")
    if openssl is None:
        raise InputError("--self-signed needs the program openssl; or give --tls-cert-file and --tls-private-key-file")
    names = ",".join(f"{'IP' if _ADDRESS.fullmatch(host) else 'DNS'}:{host}" for host in hosts)
    made = [folder / name for name in ("made", "made-key")]
    arguments = ["-x509", "-days", str(VALID_DAYS), *_CURVE, "-batch", "-subj", "/CN=podium-admission"]
    for extension in (f"subjectAltName={names}", "basicConstraints=critical,CA:FALSE"):
        arguments += ["-addext", extension]
    try:
        # The arguments are host names and files of this process; no shell reads them.
        command = [openssl, "req", *arguments, "-out", str(made[0]), "-keyout", str(made[1])]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode:
            raise PodiumError(f"openssl cannot make a certificate: {done.stderr.strip()}")
        return made[0].read_text(encoding="ascii"), made[1].read_text(encoding="ascii")
    finally:
        for file in made:
            file.unlink(missing_ok=True)
