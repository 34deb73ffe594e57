"""The creation of a dump's pods that differ only in their own values: the store completes and checks one of them."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from podium.api.input.documents import Document, Encoded
from podium.api.input.pod_stencil import FilledStencil, PodStencil
from podium.api.input.pod_template import PodTemplate
from podium.api.meta import Raw
from podium.api.pod import Pod
from podium.store.store import Store
from podium.store.stored import Stored

_MOST_SHARED = 4_096
_STATUS = "status"
_VERSION = "resourceVersion"


class SimilarPods:
    """Creates pods that were read with a stencil from the first pod of that stencil.

    Their texts differ only in names, uids, times, addresses and the like, on which neither defaults nor admission of a
    pod from a cluster depend. All pods must be created in one go: the result for the first one holds while no classes
    change.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        # By stencil; None for pods that the store completes.
        self._patterns: dict[PodStencil, _Pattern | None] = {}

    def create(self, document: Document) -> bool:
        """Create the pod; return False if it has to be created like any object. Raises StoreError as `create` does."""
        filled = _filled(document)
        pattern = None if filled is None else self._patterns.get(filled.stencil)
        if pattern is None or filled is None or not isinstance(document.object, Pod):
            return False
        self._store.create_alike(*pattern.pod(document.object, filled.values), pattern.stored)
        return True

    def learn(self, document: Document, stored: Stored) -> None:
        """Record what the store made of a pod."""
        filled = _filled(document)
        if filled is not None and filled.stencil not in self._patterns:
            self._patterns[filled.stencil] = _pattern_of(document, filled, stored)


class _Pattern:
    """A pod as the store created it, and the wire form of all pods like it."""

    def __init__(self, stored: Stored, template: PodTemplate) -> None:
        self.stored = stored
        self._generation = stored.object.metadata.generation
        # Pods that started at the same times share parts of their status: by name of the part and values.
        self._template, self._parts = template.apart(_STATUS)
        self._shared: dict[tuple[str, ...], Any] = {}

    def pod(self, pod: Pod, values: list[str]) -> tuple[Raw, Pod]:
        """Return both forms of a pod with these values."""
        raw: Raw = self._template.of(values)
        for name, part in self._parts.items():
            own = (name, *[values[number] for number in part.numbers])
            found = self._shared.get(own)
            if found is None:
                if len(self._shared) >= _MOST_SHARED:
                    self._shared.clear()
                found = self._shared[own] = part.of(values)
            raw[_STATUS][name] = found
        if pod.metadata.generation != self._generation:
            pod = replace(pod, metadata=replace(pod.metadata, generation=self._generation))
        return raw, pod


def _filled(document: Document) -> FilledStencil | None:
    text = document.written.text if isinstance(document.written, Encoded) else None
    return text if isinstance(text, FilledStencil) else None


def _pattern_of(document: Document, filled: FilledStencil, stored: Stored) -> _Pattern | None:
    """Return the pattern of a pod; None if the store completed its reading, or if the text has no template."""
    template = document.written.template() if isinstance(document.written, Encoded) else None
    pod = document.object
    if template is None or not isinstance(pod, Pod) or not pod.metadata.uid:
        return None
    pattern = _Pattern(stored, template.on(stored.raw))
    raw, reading = pattern.pod(pod, filled.values)
    version = {_VERSION: stored.raw["metadata"][_VERSION]}
    made = replace(reading, metadata=replace(reading.metadata, resource_version=version[_VERSION]))
    is_same = made == stored.object and {**raw, "metadata": {**raw["metadata"], **version}} == stored.raw
    return pattern if is_same else None
