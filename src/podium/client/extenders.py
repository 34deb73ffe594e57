"""The configured extenders, called over HTTP by a scheduler that runs on its own thread.

A call blocks the scheduling attempt until the answer arrives, as in kube-scheduler, but nothing else: the event loop on
another thread serves the connections. Webhooks of admission and conversion are called on that loop.

Source: pkg/scheduler/extender.go (HTTPExtender), pkg/scheduler/schedule_one.go (extendersBinding).
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError
from typing import Any, TypeVar

import aiohttp
import msgspec
from yarl import URL

from podium.api.errors import InputError
from podium.api.meta import Raw
from podium.api.pod import Pod
from podium.client.credentials import ClusterAccess, Credentials, Identity, decoded_base64
from podium.client.session import NoAnswerError, body_of, usual_proxy
from podium.cluster.pods import PodRecord
from podium.controllers.actions import Bind
from podium.controllers.observations import Problem
from podium.framework import extenders
from podium.store.stored import Stored
from podium.store.webhook_calls import WebhookAnswer, WebhookCall

Value = TypeVar("Value")

Find = Callable[[str, str], Stored | None]
"""A function that returns an object from the API server by kind and key, or None."""


_CONNECTIONS = 32
_MOST_BYTES = 10 * 1024 * 1024

Fields = Mapping[str, Any]
_MOST_INTEGER = 1 << 63
_TYPES: Mapping[type, str] = {dict: "object", list: "list", str: "string"}


class UnansweredError(extenders.ExtenderError):
    """An error for a missing answer. ``was_sent``: the extender may have received and processed the request."""

    def __init__(self, message: str, *, was_sent: bool) -> None:
        super().__init__(message)
        self.was_sent = was_sent


class HTTPExtender:
    """An extender (see `podium.framework.extenders.Extender`), which may bind pods, too.

    Each call is limited to the configured timeout in total. ``name`` is the URL, without any password. A scheduler
    calls it on another thread than the event loop's; ``find`` and ``loop`` must be set before.
    """

    def __init__(self, settings: extenders.ExtenderSettings, source: str, now: Callable[[], int]) -> None:
        """Prepare the calls. Raises InputError for an unusable URL or certificate."""
        self.settings = settings
        try:
            url = URL(settings.url_prefix)
        except ValueError:
            url = URL()
        self.name = str(url.with_user(None)) if url.host else settings.url_prefix
        if url.scheme not in ("http", "https") or not url.host:
            raise InputError(f"{self.name!r} is not an http or https URL", path=".extenders.urlPrefix", source=source)
        self.is_ignorable = settings.ignorable
        self.weight = settings.weight
        self.filters = bool(settings.filter_verb)
        self.prioritizes = bool(settings.prioritize_verb)
        self.preempts = bool(settings.preempt_verb)
        self.find: Find = lambda kind, key: None
        self.loop: asyncio.AbstractEventLoop | None = None
        self._prefix = settings.url_prefix.rstrip("/")
        self._timeout_s = extenders.timeout_ns(settings) / 1e9
        self._proxy = usual_proxy(url)
        access = _access(settings, self.name, source)
        self._server_name = access.server_name
        self.is_unchecked = url.scheme == "https" and access.is_insecure
        self._credentials = Credentials(access, now)
        self._credentials.tls()
        self._http: aiohttp.ClientSession | None = None

    def open(self) -> None:
        """Open the connections on the event loop that makes the calls."""
        self._http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=_CONNECTIONS),
            timeout=aiohttp.ClientTimeout(total=None),
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
        )

    async def close(self) -> None:
        if self._http is not None:
            await self._http.close()

    # Calls of a scheduler

    def is_interested(self, pod: PodRecord) -> bool:
        return extenders.is_interested(self.settings, pod.spec)

    def filter(self, pod: PodRecord, names: Sequence[str]) -> extenders.FilterAnswer:
        takes_names = self.settings.node_cache_capable
        args = self._about_nodes(pod, names)
        return self._ask(self.settings.filter_verb, args, lambda answer: read_filter(answer, takes_names=takes_names))

    def prioritize(self, pod: PodRecord, names: Sequence[str]) -> Mapping[str, int]:
        return self._ask(self.settings.prioritize_verb, self._about_nodes(pod, names), read_priorities)

    def preempt(self, pod: PodRecord, victims: Mapping[str, extenders.Victims]) -> Mapping[str, extenders.VictimIds]:
        takes_names = self.settings.node_cache_capable
        about = {
            name: {
                "Pods": [{"UID": victim.uid} if takes_names else self._object("Pod", victim.key) for victim in of.pods],
                "NumPDBViolations": of.budget_violations,
            }
            for name, of in victims.items()
        }
        args = {
            "Pod": self._object("Pod", pod.key),
            "NodeNameToVictims": None if takes_names else about,
            "NodeNameToMetaVictims": about if takes_names else None,
        }
        return self._ask(self.settings.preempt_verb, args, read_victims)

    def _about_nodes(self, pod: PodRecord, names: Sequence[str]) -> dict[str, Any]:
        """Return ExtenderArgs: names for an extender with a node cache, whole nodes for others."""
        about = {"Pod": self._object("Pod", pod.key), "Nodes": None, "NodeNames": None}
        if self.settings.node_cache_capable:
            return about | {"NodeNames": list(names)}
        return about | {"Nodes": {"metadata": {}, "items": [self._object("Node", name) for name in names]}}

    def _object(self, kind: str, key: str) -> Raw:
        found = self.find(kind, key)
        if found is None:
            raise extenders.ExtenderError(f"extender {self.name} cannot be asked: {kind} {key} is gone")
        return found.raw

    def _ask(self, verb: str, args: Mapping[str, Any], read: Callable[[object], Value]) -> Value:
        if self.loop is None:
            raise AssertionError("an extender is asked before its event loop is known")
        future = asyncio.run_coroutine_threadsafe(self._call(verb, args, read), self.loop)
        try:
            return future.result()
        except CancelledError:
            raise extenders.ExtenderError(f"extender {self.name} is not asked any more: the scheduler ends") from None

    # Bindings, on the event loop

    def binds(self, action: Bind) -> bool:
        found = self.find("Pod", action.pod)
        pod = None if found is None else found.object
        return isinstance(pod, Pod) and extenders.is_interested(self.settings, pod.spec)

    async def bind(self, action: Bind, most_s: float) -> Problem | None:
        """Bind a pod within ``most_s``; return None, or the problem: one of code 0 if the outcome is unknown."""
        namespace, _, name = action.pod.rpartition("/")
        args = {"PodName": name, "PodNamespace": namespace, "PodUID": action.uid, "Node": action.node_name}
        try:
            await self._call(self.settings.bind_verb, args, read_binding, most_s)
        except UnansweredError as error:
            return Problem(0, "", str(error)) if error.was_sent else Problem(503, "ServiceUnavailable", str(error))
        except extenders.ExtenderError as error:
            return Problem(500, "ExtenderError", str(error))
        return None

    # HTTP

    async def _call(
        self, verb: str, args: Mapping[str, Any], read: Callable[[object], Value], most_s: float = float("inf")
    ) -> Value:
        """Send a call and return its answer; it takes at most ``most_s``.

        Raises ExtenderError with the extender's name, also for its own error and for a malformed answer.
        """
        timeout_s = min(self._timeout_s, most_s)
        try:
            async with asyncio.timeout(timeout_s):
                code, answer = await self._post(verb, msgspec.json.encode(args))
        except (aiohttp.ClientConnectorError, aiohttp.InvalidURL) as error:
            raise UnansweredError(self._failed(verb, str(error)), was_sent=False) from None
        except TimeoutError:
            raise UnansweredError(self._failed(verb, f"no answer in {timeout_s:.3g}s"), was_sent=True) from None
        except (aiohttp.ClientError, OSError, NoAnswerError) as error:
            raise UnansweredError(self._failed(verb, str(error) or type(error).__name__), was_sent=True) from None
        if code != 200:
            raise extenders.ExtenderError(self._failed(verb, f"code {code}"))
        try:
            return read(msgspec.json.decode(answer))
        except extenders.ExtenderError as error:
            raise extenders.ExtenderError(self._failed(verb, str(error))) from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise extenders.ExtenderError(self._failed(verb, "the response is not JSON")) from None

    async def _post(self, verb: str, body: bytes) -> tuple[int, bytes]:
        if self._http is None:
            raise AssertionError("an extender is asked before its client is open")
        try:
            tls = self._credentials.tls()
        except InputError as error:
            raise UnansweredError(self._failed(verb, str(error)), was_sent=False) from None
        request = self._http.post(
            URL(f"{self._prefix}/{verb}"),
            data=body,
            headers={"Content-Type": "application/json"},
            ssl=True if tls is None else tls,
            server_hostname=self._server_name or None,
            proxy=self._proxy,
            allow_redirects=False,
        )
        async with request as response:
            return response.status, await body_of(response)

    def _failed(self, verb: str, problem: str) -> str:
        return f"failed {verb} with extender at URL {self.name}: {problem}"


class HTTPExtenders:
    """All extenders of a configuration."""

    def __init__(self, settings: Sequence[extenders.ExtenderSettings], source: str, now: Callable[[], int]) -> None:
        """Prepare the extenders. Raises InputError for an unusable configuration."""
        self._extenders = [HTTPExtender(extender, source, now) for extender in settings]

    @property
    def unchecked(self) -> list[str]:
        """The extenders whose certificates are not verified."""
        return [extender.name for extender in self._extenders if extender.is_unchecked]

    def open(self, find: Find) -> None:
        """Open the connections on the running event loop, for schedulers on other threads."""
        for extender in self._extenders:
            extender.find, extender.loop = find, asyncio.get_running_loop()
            extender.open()

    async def close(self) -> None:
        for extender in self._extenders:
            await extender.close()

    @property
    def asked(self) -> extenders.Extenders:
        """The extenders as schedulers ask them."""
        return extenders.Extenders(self._extenders)

    @property
    def binder(self) -> HTTPExtender | None:
        """The extender that binds, or None. A configuration has at most one."""
        return next((extender for extender in self._extenders if extender.settings.bind_verb), None)


def read_filter(answer: object, *, takes_names: bool) -> extenders.FilterAnswer:
    """Return an ExtenderFilterResult. Raises ExtenderError for the extender's own error, and for a malformed result."""
    fields = _fields(answer, "its answer")
    _raise_reported(fields)
    names, nodes = fields.get("nodenames"), fields.get("nodes")
    left: list[str] = []
    if takes_names and names is not None:
        left = [_of(str, name, "NodeNames") for name in _of(list, names, "NodeNames")]
    elif nodes is not None:
        for node in _of(list, _fields(nodes, "Nodes").get("items"), "Nodes.items"):
            metadata = _fields(_fields(node, "a Node").get("metadata"), "metadata")
            left.append(_of(str, metadata.get("name"), "metadata.name"))
    failed, unresolvable = fields.get("failednodes"), fields.get("failedandunresolvablenodes")
    return extenders.FilterAnswer(
        left, _texts(failed, "FailedNodes"), _texts(unresolvable, "FailedAndUnresolvableNodes")
    )


def read_priorities(answer: object) -> dict[str, int]:
    """Return the scores of a HostPriorityList; scores of the same host are added."""
    scores: dict[str, int] = {}
    for item in _of(list, answer, "its answer"):
        fields = _fields(item, "a HostPriority")
        host = _of(str, fields.get("host"), "Host")
        scores[host] = scores.get(host, 0) + _integer(fields.get("score"), "Score")
    return scores


def read_victims(answer: object) -> dict[str, extenders.VictimIds]:
    """Return the victims of an ExtenderPreemptionResult."""
    nodes = _of(dict, _fields(answer, "its answer").get("nodenametometavictims"), "NodeNameToMetaVictims")
    found = {}
    for name, victims in nodes.items():
        fields = _fields(victims, "MetaVictims")
        pods = _of(list, fields.get("pods"), "Pods")
        uids = tuple(_of(str, _fields(pod, "a MetaPod").get("uid"), "UID") for pod in pods)
        found[name] = extenders.VictimIds(uids, _integer(fields.get("numpdbviolations"), "NumPDBViolations"))
    return found


def read_binding(answer: object) -> None:
    """Check an ExtenderBindingResult. Raises ExtenderError for its error."""
    _raise_reported(_fields(answer, "its answer"))


def _raise_reported(fields: Fields) -> None:
    problem = _of(str, fields.get("error"), "Error")
    if problem:
        raise extenders.ExtenderError(problem)


def _fields(value: object, what: str) -> Fields:
    """Return the fields of an object by their names in lower case."""
    return {name.lower(): field for name, field in _of(dict, value, what).items()}


def _of(type_: type[Value], value: object, what: str) -> Value:
    """Return a value of a type, or its empty value for None."""
    if value is None:
        return type_()
    if not isinstance(value, type_):
        raise extenders.ExtenderError(f"{what} is not of type {_TYPES[type_]}")
    return value


def _texts(value: object, what: str) -> dict[str, str]:
    return {name: _of(str, text, what) for name, text in _of(dict, value, what).items()}


def _integer(value: object, what: str) -> int:
    if value is None:
        return 0
    if not isinstance(value, int) or isinstance(value, bool) or not -_MOST_INTEGER <= value < _MOST_INTEGER:
        raise extenders.ExtenderError(f"{what} is not a 64-bit integer")
    return value


def _access(settings: extenders.ExtenderSettings, name: str, source: str) -> ClusterAccess:
    """Return the connection's security; HTTPS without a CA in the configuration is not verified."""
    tls = settings.tls_config or extenders.ExtenderTLSConfig()
    data = {
        field: decoded_base64(getattr(tls, field), source=source, path=f".extenders.tlsConfig.{written}")
        for field, written in (("ca_data", "caData"), ("cert_data", "certData"), ("key_data", "keyData"))
    }
    has_authority = bool(tls.ca_file or tls.ca_data)
    return ClusterAccess(
        name=name,
        server=settings.url_prefix,
        source=source,
        authority_file=tls.ca_file,
        authority_data=data["ca_data"],
        server_name=tls.server_name,
        is_insecure=tls.insecure or (settings.enable_https and not has_authority),
        identity=Identity(
            certificate_file=tls.cert_file,
            certificate_data=data["cert_data"],
            key_file=tls.key_file,
            key_data=data["key_data"],
        ),
    )


async def call_webhook(call: WebhookCall) -> WebhookAnswer:
    """Call a webhook; a call that fails is an answer with a problem.

    As kube-apiserver, it follows no redirects, and verifies the certificate by the webhook's own authority, if any.
    """
    where = f'Post "{call.url}"'
    try:
        context = ssl.create_default_context(cadata=call.authority or None)
        async with (
            asyncio.timeout(call.seconds),
            aiohttp.ClientSession() as session,
            session.post(
                call.url,
                data=msgspec.json.encode(call.body),
                headers={"Content-Type": "application/json", "Accept": "application/json"},
                ssl=context,
                server_hostname=call.server_name or None,
                allow_redirects=False,
            ) as response,
        ):
            body = await response.content.read(_MOST_BYTES)
            if response.status != 200:
                return WebhookAnswer(problem=f"{where}: the server answers with code {response.status}")
            return WebhookAnswer(msgspec.json.decode(body))
    except TimeoutError:
        return WebhookAnswer(problem=f"{where}: context deadline exceeded")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return WebhookAnswer(problem=f"{where}: the answer is not JSON")
    except (aiohttp.ClientError, OSError, ValueError) as error:
        return WebhookAnswer(problem=f"{where}: {error}")
