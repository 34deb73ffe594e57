"""The reader for the items of a split List."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, SupportsBytes

import msgspec

from podium.api.input.documents import Encoded
from podium.api.input.exact_json import UncertainError
from podium.api.input.pod_stencil import PodStencils, ReadPod
from podium.api.input.pod_table import is_table_text, read_table
from podium.api.input.text_forms import UNREADABLE, TextForm
from podium.api.meta import Raw
from podium.api.pod import Pod


class ListText(Protocol):
    """The text of a List with at least one item."""

    @property
    def envelope(self) -> Raw:
        """The List without its items."""
        ...

    @property
    def share(self) -> float:
        """The share of the text that has been split, from 0 to 1."""
        ...

    def items(self) -> Iterator[bytes]:
        """Yield the unparsed text of each item. Raises UncertainError if the whole text is needed."""
        ...


class ItemReader:
    """A reader of single items; `common` is what the List states for each of them."""

    def __init__(self, form: TextForm) -> None:
        self._form = form
        self._stencils = PodStencils(form)

    def pod(self, item: bytes, common: Raw) -> ReadPod | None:
        """Return the pod of an item that certainly has no findings; None for any other item."""
        return self._stencils.of(item, common).read(item)

    def pods_of_table(self, item: bytes) -> Iterator[ReadPod | bytes] | None:
        """Yield the pods of a table, see `podium.api.input.pod_table`; return None for any other item."""
        return read_table(item, self._stencils) if is_table_text(item) else None

    def value(self, item: bytes) -> Any:
        """Return the item's value, without nulls except in lists. Raises UncertainError if the whole text is needed."""
        try:
            return self._form.read(item)
        except UNREADABLE:
            raise UncertainError from None

    def written(self, item: SupportsBytes, common: Raw, raw: Raw | None) -> Raw | Encoded:
        """Return the stored form of the item; `raw` is its wire form, if known."""
        if raw is not None and self._form.keeps_values:
            return raw
        # A dump for people is twice as long as it needs to be.
        text = msgspec.json.format(item, indent=-1) if isinstance(item, bytes) else item
        return Encoded(text, common, self._form)

    def learn(self, item: bytes, common: Raw, pod: Pod) -> None:
        """Record a pod without findings that `pod` did not read."""
        self._stencils.of(item, common).learn(item, pod)
