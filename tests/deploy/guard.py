"""An API server that lets through what some rights allow, and nothing else."""

from __future__ import annotations

from aiohttp import web

from podium.requests.request import Request, Response
from podium.store.api_resources import BUILT_IN
from podium.store.errors import StoreError
from tests.client.api_server import said
from tools.asked_rights import Right

_GROUPS = {kind: group for group, kind in BUILT_IN}
LEASE_RIGHTS = {Right("coordination.k8s.io", "leases", verb) for verb in ("create", "get", "update")}


class Guard:
    """Refuses what nobody may; `refused` are these rights, `used` those that were needed."""

    def __init__(self, rights: set[Right]) -> None:
        self._rights = rights
        self.refused: set[Right] = set()
        self.used: set[Right] = set()

    async def __call__(self, request: Request) -> web.StreamResponse | None:
        resource = BUILT_IN[_GROUPS[request.kind], request.kind]
        name = f"{resource.plural}/{request.subresource}" if request.subresource else resource.plural
        right = Right(resource.group, name, request.verb)
        if right in self._rights:
            self.used.add(right)
            return None
        self.refused.add(right)
        error = StoreError(403, "Forbidden", f"{right} is forbidden")
        return said(Response(code=403, error=error))
