"""The stencils for pods of a dump, by owner: pods of one owner are mostly alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from podium.api.input.pod_gaps import Form, Gap
from podium.api.input.pod_stencil import NOT_NAMED, NamedIn, PodStencil, ReadPod, stencil_of
from podium.api.meta import Raw
from podium.api.pod import Pod

_MAX_OWNERS = 1_024
_MAX_STENCILS = 2


class PodStencils:
    """The stencils of the most recent owners."""

    def __init__(self, form: Form) -> None:
        self._form = form
        self._by_owner: dict[tuple[bytes, object, object], OwnerStencils] = {}

    def of(self, text: bytes, common: Raw) -> OwnerStencils:
        """Return those for the owner of the pod in the text, within a List with such common content."""
        opening, closing = self._form.owners
        start = text.find(opening)
        owner = b"" if start < 0 else text[start : text.find(closing, start)]
        key = owner, common.get("apiVersion"), common.get("kind")
        # Least recently used owners are evicted first.
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
        self._patience = form.patience

    def read(self, text: bytes) -> ReadPod | None:
        """Return the pod of the text; None unless it certainly matches an earlier one."""
        for stencil in self._stencils:
            found = stencil.read(text)
            if found is not None:
                return found
        return None

    def learn(self, text: bytes, pod: Pod, gaps: Callable[[], Sequence[Gap]], named_in: NamedIn = NOT_NAMED) -> None:
        """Record a text of this pod that no stencil read; after several, make a stencil of one."""
        self._unlike += 1
        if self._unlike == self._patience:
            # If a stencil matches no other pod, wait longer before making the next.
            self._unlike = 0
            self._patience *= 2
            stencil = stencil_of(text, pod, gaps, named_in)
            if stencil is not None:
                self._stencils = [stencil, *self._stencils][:_MAX_STENCILS]
