"""The interface between the HTTP server and the API server behind it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec

from podium.api.versions.release import DEFAULT_RELEASE, Release
from podium.apirequests.request import Request, Response
from podium.store.api_resources import APIResources
from podium.store.webhook_calls import CallNeededError, WebhookCall


class Backend(Protocol):
    """An API server without HTTP: the served kinds, and responses.

    All methods are called on the event loop's thread.
    """

    @property
    def resources(self) -> APIResources: ...

    @property
    def release(self) -> Release:
        """The Kubernetes version whose API server this is."""
        return DEFAULT_RELEASE

    def answer(self, request: Request) -> Response:
        """Answer a request immediately. A refusal is a response. Send no response before it `is_kept`."""

    async def respond(self, request: Request, size: int) -> Response:
        """Answer a request with a body of `size` bytes; one that takes long leaves the event loop meanwhile."""
        return self.answer(request)

    async def continue_with(self, call: WebhookCall, work: Callable[[], None]) -> None:
        """Call a webhook, and do what needs its answer."""
        raise CallNeededError(call)

    @property
    def is_busy(self) -> bool:
        """Whether a request is answered off the event loop; nothing else may use the backend until it is `idle`."""
        return False

    async def idle(self) -> None:
        """Wait until no request is answered off the event loop."""
        if self.is_busy:
            raise NotImplementedError("a backend that leaves the event loop has to say until when")

    @property
    def is_kept(self) -> bool:
        """Whether all answered writes are durable."""
        return True

    def keep(self) -> None:
        """Return when all answered writes are durable. Raises PodiumError if they cannot be persisted."""
        if not self.is_kept:
            raise NotImplementedError("a backend that keeps something later has to say how")

    def now(self) -> int:
        """Return the time in nanoseconds since 1970."""


class ServedDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A prepared response; `etag` identifies its content, "" if it must not be cached."""

    body: bytes
    content_type: str = "application/json"
    code: int = 200
    etag: str = ""
