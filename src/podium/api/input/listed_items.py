"""How the items of a List are read that is taken apart: in JSON, and in YAML."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from podium.api.errors import InputError
from podium.api.input.documents import Encoded
from podium.api.input.dumped_pods import DumpedPods
from podium.api.input.exact_json import UncertainError, without_nulls
from podium.api.input.exact_json import decode as decode_json
from podium.api.input.pod_gaps import YAML
from podium.api.input.pod_stencils import PodStencils
from podium.api.input.yaml import parse_part
from podium.api.meta import Raw
from podium.api.pod import Pod

Item = bytes | msgspec.Raw
"""The text of an item."""

# An item lies in the list that lies in the List.
_LIST_DEPTH = 1


class ItemReader(Protocol):
    """Reads items one by one; `common` is what the List says of each of them."""

    def pod(self, item: Item, common: Raw) -> Pod | None:
        """The pod that an item is, of which there is certainly nothing to say; None for every other item."""
        ...

    def value(self, item: Item) -> Any:
        """What the item holds, without nulls but in lists. Raises UncertainError where that takes the whole text."""
        ...

    def written(self, item: Item, common: Raw, raw: Raw | None) -> Raw | Encoded:
        """What is kept of the item's wire form; `raw` is that, where it is known."""
        ...

    def learn(self, item: Item, common: Raw, pod: Pod) -> None:
        """There is nothing to say of a pod that `pod` did not read."""
        ...


class JSONItems:
    """Reads items in JSON."""

    def __init__(self) -> None:
        self._pods = DumpedPods()

    def pod(self, item: Item, common: Raw) -> Pod | None:
        return self._pods.read(item, common)

    def value(self, item: Item) -> Any:
        return decode_json(item)

    def written(self, item: Item, common: Raw, raw: Raw | None) -> Encoded:
        return _EncodedJSON(item, common)

    def learn(self, item: Item, common: Raw, pod: Pod) -> None:
        pass


class YAMLItems:
    """Reads items in YAML: most pods through stencils, since to read YAML takes ten times what JSON does."""

    def __init__(self) -> None:
        self._stencils = PodStencils(YAML)

    def pod(self, item: Item, common: Raw) -> Pod | None:
        text = bytes(item)
        return self._stencils.of(text, common).read(text)

    def value(self, item: Item) -> Any:
        try:
            (value,) = parse_part(bytes(item).decode(), _LIST_DEPTH)
        except (InputError, UnicodeDecodeError, TypeError, ValueError, RecursionError):
            raise UncertainError from None
        return value

    def written(self, item: Item, common: Raw, raw: Raw | None) -> Raw | Encoded:
        return _EncodedYAML(item, common) if raw is None else raw

    def learn(self, item: Item, common: Raw, pod: Pod) -> None:
        text = bytes(item)
        self._stencils.of(text, common).noted(text, pod)


@dataclass(frozen=True, slots=True)
class _EncodedJSON:
    text: Item
    common: Raw

    def decode(self) -> Raw:
        return {**self.common, **without_nulls(msgspec.json.decode(self.text))}


@dataclass(frozen=True, slots=True)
class _EncodedYAML:
    text: Item
    common: Raw

    def decode(self) -> Raw:
        (value,) = parse_part(bytes(self.text).decode(), _LIST_DEPTH)
        return {**self.common, **value}
