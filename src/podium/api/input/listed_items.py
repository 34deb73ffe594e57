"""Readers for the items of a split List: in JSON, and in YAML."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, SupportsBytes

import msgspec

from podium.api.errors import InputError
from podium.api.input.documents import Encoded
from podium.api.input.dumped_pods import DumpedPods
from podium.api.input.exact_json import UncertainError, without_nulls
from podium.api.input.exact_json import decode as decode_json
from podium.api.input.pod_gaps import YAML, gaps_in
from podium.api.input.pod_stencil import ReadPod
from podium.api.input.pod_stencils import PodStencils
from podium.api.input.pod_table import is_table_text, read_table
from podium.api.input.yaml import parse_part
from podium.api.meta import Raw
from podium.api.pod import Pod

# An item is in the list within the List.
_LIST_DEPTH = 1


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


class ItemReader(Protocol):
    """A reader of single items; `common` is what the List states for each of them."""

    def pod(self, item: bytes, common: Raw) -> ReadPod | None:
        """Return the pod of an item that certainly has no findings; None for any other item."""
        ...

    def pods_of_table(self, item: bytes) -> Iterator[ReadPod | bytes] | None:
        """Yield the pods of a table, see `podium.api.input.pod_table`; return None for any other item."""
        ...

    def value(self, item: bytes) -> Any:
        """Return the item's value, without nulls except in lists. Raises UncertainError if the whole text is needed."""
        ...

    def written(self, item: SupportsBytes, common: Raw, raw: Raw | None) -> Raw | Encoded:
        """Return the stored form of the item; `raw` is its wire form, if known."""
        ...

    def learn(self, item: bytes, common: Raw, pod: Pod) -> None:
        """Record a pod without findings that `pod` did not read."""
        ...


class JSONItems:
    """A reader of JSON items."""

    def __init__(self) -> None:
        self._pods = DumpedPods()

    def pod(self, item: bytes, common: Raw) -> ReadPod | None:
        return self._pods.read(item, common)

    def pods_of_table(self, item: bytes) -> Iterator[ReadPod | bytes] | None:
        return read_table(item, self._pods) if is_table_text(item) else None

    def value(self, item: bytes) -> Any:
        return decode_json(item)

    def written(self, item: SupportsBytes, common: Raw, raw: Raw | None) -> Encoded:
        return _EncodedJSON(item, common)

    def learn(self, item: bytes, common: Raw, pod: Pod) -> None:
        pass


class YAMLItems:
    """A reader of YAML items: most pods through stencils, since YAML takes ten times as long as JSON."""

    def __init__(self) -> None:
        self._stencils = PodStencils(YAML)

    def pod(self, item: bytes, common: Raw) -> ReadPod | None:
        return self._stencils.of(item, common).read(item)

    def pods_of_table(self, item: bytes) -> Iterator[ReadPod | bytes] | None:
        return None

    def value(self, item: bytes) -> Any:
        try:
            (value,) = parse_part(item.decode(), _LIST_DEPTH)
        except (InputError, UnicodeDecodeError, TypeError, ValueError, RecursionError):
            raise UncertainError from None
        return value

    def written(self, item: SupportsBytes, common: Raw, raw: Raw | None) -> Raw | Encoded:
        return _EncodedYAML(item, common) if raw is None else raw

    def learn(self, item: bytes, common: Raw, pod: Pod) -> None:
        self._stencils.of(item, common).learn(item, pod, lambda: gaps_in(item, pod, YAML))


class _StatusAlone(msgspec.Struct):
    status: Raw | None = None


_STATUS = msgspec.json.Decoder(_StatusAlone)


@dataclass(frozen=True, slots=True)
class _EncodedJSON:
    text: SupportsBytes
    common: Raw

    def decode(self) -> Raw:
        return {**self.common, **without_nulls(msgspec.json.decode(bytes(self.text)))}

    def status(self) -> Raw:
        return _STATUS.decode(bytes(self.text)).status or {}


@dataclass(frozen=True, slots=True)
class _EncodedYAML:
    text: SupportsBytes
    common: Raw

    def decode(self) -> Raw:
        (value,) = parse_part(bytes(self.text).decode(), _LIST_DEPTH)
        return {**self.common, **value}

    def status(self) -> Raw:
        found: Raw = self.decode().get("status", {})
        return found
