"""What the server of the API stands on."""

from __future__ import annotations

from typing import Protocol

from podium.requests.request import Request, Response
from podium.store.api_resources import APIResources


class Backend(Protocol):
    """An API server without HTTP: what it serves, and its answers. All of it is called on the event loop's thread."""

    @property
    def resources(self) -> APIResources:
        """The kinds that are served."""
        ...

    def answer(self, request: Request) -> Response:
        """Do what a request asks for, at once. A refusal is an answer. Nobody may be told of it before it `is_kept`."""
        ...

    @property
    def is_kept(self) -> bool:
        """Whether all that was answered is kept, as well as anything is."""
        return True

    def keep(self) -> None:
        """Return when all that was answered is kept. Raises PodiumError where it cannot be."""
        if not self.is_kept:
            raise NotImplementedError("a backend that keeps something later has to say how")

    def now(self) -> int:
        """The time, in nanoseconds since 1970."""
        ...
