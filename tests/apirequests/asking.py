"""A store behind a router, and helpers that send requests to it."""

from __future__ import annotations

from typing import Any

from podium.apirequests.request import Request, Response, Verb
from podium.apirequests.router import Router
from podium.store.store import Store
from tests.store.objects import SECOND, Raw

NOW = 100 * SECOND


class API:
    """An API server with these objects; `sent` are the requests since, in their order."""

    def __init__(self, *objects: Raw, takes_history: bool = False) -> None:
        self.store = Store()
        for raw in objects:
            self.store.create(raw, now=0)
        self.router = Router(self.store, takes_history=takes_history)
        self.sent: list[Request] = []

    def answer(self, request: Request, now: int = NOW) -> Response:
        """Answer a request, and take note of it."""
        self.sent.append(request)
        return self.router.answer(request, now)

    def ask(self, verb: Verb, kind: str = "Pod", key: str = "", **more: Any) -> Response:
        """Ask for something."""
        return self.answer(Request(verb=verb, kind=kind, key=key, **more))

    def uid(self, kind: str, key: str) -> str:
        """Return the uid of an object."""
        return self.store.get(kind, key).uid

    def raw(self, kind: str, key: str) -> Raw:
        """Return the wire form of an object."""
        return self.store.get(kind, key).raw
