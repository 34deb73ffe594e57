"""What a server shows to browsers beside the API: who answers for it is somebody else."""

from __future__ import annotations

from typing import Protocol

from aiohttp.web import StreamResponse

from podium.server.http.exchange import Exchange


class Pages(Protocol):
    """Pages with what belongs to them, under paths of their own."""

    def has(self, path: str) -> bool:
        """Whether a path is theirs."""
        ...

    def is_public(self, method: str, path: str) -> bool:
        """Whether anybody may ask for that, whoever they are: nothing of the cluster is in it."""
        ...

    async def answer(self, exchange: Exchange) -> StreamResponse:
        """Answer a request at such a path. Raises StoreError for what is not to be answered."""
        ...
