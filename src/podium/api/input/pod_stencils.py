"""The stencils by which pods of a dump are read, by who owns them: pods of one owner are mostly alike."""

from __future__ import annotations

from podium.api.input.pod_gaps import Form
from podium.api.input.pod_stencil import PodStencil, ReadPod, stencil_of
from podium.api.meta import Raw
from podium.api.pod import Pod

_MAX_OWNERS = 1_024
_MAX_STENCILS = 2
# To make a stencil takes as long as to look into a few pods. Where it helps nobody, more have to come before the next.
_PATIENCE = 3


class PodStencils:
    """The stencils of the owners whose pods came last."""

    def __init__(self, form: Form) -> None:
        self._form = form
        self._by_owner: dict[tuple[bytes, object, object], OwnerStencils] = {}

    def of(self, text: bytes, common: Raw) -> OwnerStencils:
        """Those of the owner of the pod that the text is, in a List that says so much of its items."""
        opening, closing = self._form.owners
        start = text.find(opening)
        owner = b"" if start < 0 else text[start : text.find(closing, start)]
        key = owner, common.get("apiVersion"), common.get("kind")
        # Whoever was asked for last is the last to go.
        found = self._by_owner.pop(key, None)
        if found is None:
            found = OwnerStencils(self._form)
            if len(self._by_owner) == _MAX_OWNERS:
                del self._by_owner[next(iter(self._by_owner))]
        self._by_owner[key] = found
        return found


class OwnerStencils:
    """The stencils of the pods of one owner, the newest first."""

    __slots__ = ("_form", "_patience", "_stencils", "_unlike")

    def __init__(self, form: Form) -> None:
        self._form = form
        self._stencils: list[PodStencil] = []
        self._unlike = 0
        self._patience = _PATIENCE

    def read(self, text: bytes) -> ReadPod | None:
        """The pod that the text is; None for one that is not certainly like those before it."""
        for stencil in self._stencils:
            found = stencil.read(text)
            if found is not None:
                return found
        return None

    def learn(self, text: bytes, pod: Pod) -> None:
        """No stencil read the text, which is this pod: after some of them there is one by it."""
        self._unlike += 1
        if self._unlike == self._patience:
            self._unlike = 0
            self._patience *= 2
            stencil = stencil_of(text, pod, self._form)
            if stencil is not None:
                self._stencils = [stencil, *self._stencils][:_MAX_STENCILS]
