"""The page where no API is served: beside the health and metrics of a component."""

from __future__ import annotations

import secrets

from aiohttp import web

from podium.app.serving.page.files import HEADERS
from podium.server.http.exchange import Exchange, Pages, read_target
from podium.server.http.handler import AuditIDs
from podium.server.http.replies import of_error, send
from podium.server.http.security import Guard
from podium.server.http.settings import ServerSettings, Token
from podium.store.errors import StoreError

_HEAD = {"Cache-Control": "no-cache, private", "Server": "podium"}


class PageAside:
    """Answers requests for a page by the rules of the API: who is let in, and what pages of others ask in vain."""

    def __init__(self, pages: Pages, host: str, token: str) -> None:
        """With a ``token`` whoever wants to know anything has to show it; "" is for none, on loopback alone."""
        self._pages = pages
        tokens = (Token(text=token),) if token else ()
        self._guard = Guard(ServerSettings(host=host, tokens=tokens))
        self._audit_ids = AuditIDs(secrets.token_bytes(10))

    async def answer(self, request: web.Request) -> web.StreamResponse:
        head = {**_HEAD, **dict(HEADERS), "Audit-Id": self._audit_ids.audit_id(request.headers)}
        try:
            self._guard.check_origin(request.headers)
            path, query = read_target(request.raw_path)
            is_public = self._pages.is_public(request.method, path)
            caller = self._guard.caller(request.headers, None, is_public=is_public)
            return await self._pages.answer(Exchange(request, path, query, caller, head))
        except StoreError as error:
            return await send(request, of_error(error), head)
