"""An API server that allows what a set of rights allows, and nothing else."""

from __future__ import annotations

from aiohttp import web

from podium.apirequests.request import Request, Response
from podium.store.api_resources import BUILT_IN
from podium.store.errors import StoreError
from podium.store.store import Store
from tests.client.api_server import said
from tools.asked_rights import Right, implied_rights

_GROUPS = {kind: group for group, kind in BUILT_IN}
LEASE_RIGHTS = {Right("coordination.k8s.io", "leases", verb) for verb in ("create", "get", "update")}


class Guard:
    """Refuses requests that need other rights; `refused` are these rights, `used` those that were needed.

    With the `store` behind the server, a request needs the rights, too, that kube-apiserver's strategies and admission
    ask for.
    """

    def __init__(self, rights: set[Right]) -> None:
        self.rights = rights
        self.store: Store | None = None
        self.refused: set[Right] = set()
        self.used: set[Right] = set()

    async def __call__(self, request: Request) -> web.StreamResponse | None:
        resource = BUILT_IN[_GROUPS[request.kind], request.kind]
        name = f"{resource.plural}/{request.subresource}" if request.subresource else resource.plural
        needed = {Right(resource.group, name, request.verb)}
        if self.store is not None:
            needed |= implied_rights(request, self.store)
        missing = needed - self.rights
        self.used |= needed - missing
        if not missing:
            return None
        self.refused |= missing
        error = StoreError(403, "Forbidden", f"{min(missing)} is forbidden")
        return said(Response(code=403, error=error))
