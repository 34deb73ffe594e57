"""How the items of a List are read that is taken apart: in JSON, and in YAML."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from podium.api.errors import InputError
from podium.api.input.documents import Encoded
from podium.api.input.dumped_pods import DumpedPods
from podium.api.input.exact_json import UncertainError, without_nulls
from podium.api.input.exact_json import decode as decode_json
from podium.api.input.pod_gaps import YAML
from podium.api.input.pod_stencil import FilledStencil, ReadPod
from podium.api.input.pod_stencils import PodStencils
from podium.api.input.yaml import parse_part
from podium.api.meta import Raw
from podium.api.pod import Pod

# An item lies in the list that lies in the List.
_LIST_DEPTH = 1


class ListText(Protocol):
    """A text that is a List of at least one item."""

    @property
    def envelope(self) -> Raw:
        """The List without its items."""
        ...

    @property
    def share(self) -> float:
        """How much of the text has been taken apart, from 0 to 1."""
        ...

    def items(self) -> Iterator[bytes]:
        """The text of each item, of which none was looked at yet. Raises UncertainError where that takes the whole."""
        ...


class ItemReader(Protocol):
    """Reads items one by one; `common` is what the List says of each of them."""

    def pod(self, item: bytes, common: Raw) -> ReadPod | None:
        """The pod that an item is, of which there is certainly nothing to say; None for every other item."""
        ...

    def value(self, item: bytes) -> Any:
        """What the item holds, without nulls but in lists. Raises UncertainError where that takes the whole text."""
        ...

    def written(self, item: bytes | FilledStencil, common: Raw, raw: Raw | None) -> Raw | Encoded:
        """What is kept of the item's wire form; `raw` is that, where it is known."""
        ...

    def learn(self, item: bytes, common: Raw, pod: Pod) -> None:
        """There is nothing to say of a pod that `pod` did not read."""
        ...


class JSONItems:
    """Reads items in JSON."""

    def __init__(self) -> None:
        self._pods = DumpedPods()

    def pod(self, item: bytes, common: Raw) -> ReadPod | None:
        return self._pods.read(item, common)

    def value(self, item: bytes) -> Any:
        return decode_json(item)

    def written(self, item: bytes | FilledStencil, common: Raw, raw: Raw | None) -> Encoded:
        return _EncodedJSON(item, common)

    def learn(self, item: bytes, common: Raw, pod: Pod) -> None:
        pass


class YAMLItems:
    """Reads items in YAML: most pods through stencils, since to read YAML takes ten times what JSON does."""

    def __init__(self) -> None:
        self._stencils = PodStencils(YAML)

    def pod(self, item: bytes, common: Raw) -> ReadPod | None:
        return self._stencils.of(item, common).read(item)

    def value(self, item: bytes) -> Any:
        try:
            (value,) = parse_part(item.decode(), _LIST_DEPTH)
        except (InputError, UnicodeDecodeError, TypeError, ValueError, RecursionError):
            raise UncertainError from None
        return value

    def written(self, item: bytes | FilledStencil, common: Raw, raw: Raw | None) -> Raw | Encoded:
        return _EncodedYAML(item, common) if raw is None else raw

    def learn(self, item: bytes, common: Raw, pod: Pod) -> None:
        self._stencils.of(item, common).learn(item, pod)


@dataclass(frozen=True, slots=True)
class _EncodedJSON:
    text: bytes | FilledStencil
    common: Raw

    def decode(self) -> Raw:
        return {**self.common, **without_nulls(msgspec.json.decode(bytes(self.text)))}


@dataclass(frozen=True, slots=True)
class _EncodedYAML:
    text: bytes | FilledStencil
    common: Raw

    def decode(self) -> Raw:
        (value,) = parse_part(bytes(self.text).decode(), _LIST_DEPTH)
        return {**self.common, **value}
