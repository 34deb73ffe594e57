"""The objects of a cluster by what names them, and copies of them in which some are others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from podium.api.input.codec import Document, Input, load_text
from podium.api.input.overrides import in_place_of, place_of
from podium.api.kinds import KINDS
from podium.api.meta import Raw
from podium.api.warnings import InputWarning
from podium.app.plain import assignments_of

Place = tuple[str | int, ...]
_DEFAULT = "default"


class KeyedObjects:
    """The documents of an input in their order, found by group, kind, namespace and name. Copies share them.

    Of a copy, `gone` are those that the original had and that were left out or replaced, `come` those that it had not.
    """

    def __init__(
        self,
        documents: dict[Place, Document],
        left_out: tuple[InputWarning, ...],
        gone: tuple[Document, ...] = (),
        come: tuple[Document, ...] = (),
    ) -> None:
        self._documents = documents
        self._left_out = left_out
        self.gone = gone
        self.come = come

    @classmethod
    def of(cls, read: Input) -> KeyedObjects:
        """Those of an input. Documents that share a name, as those of unknown kinds may, are told apart by number."""
        documents: dict[Place, Document] = {}
        for number, document in enumerate(read.documents):
            place: Place = place_of(document)
            documents[(*place, number) if place in documents else place] = document
        return cls(documents, read.left_out)

    def copy(self) -> KeyedObjects:
        """The same, of which nothing has come or gone."""
        return KeyedObjects(self._documents, self._left_out)

    @property
    def input(self) -> Input:
        """The documents as an input."""
        return Input(list(self._documents.values()), self._left_out)

    def find(self, text: str) -> Document:
        """The document of the object that `kind/name` or `kind/namespace/name` means. Raises InputError."""
        return self._documents[self._place_named(text)]

    def without(self, names: Iterable[str]) -> KeyedObjects:
        """The others. Raises InputError for an object that is not there."""
        places = [self._place_named(name) for name in names]
        documents, gone = self._documents.copy(), list(self.gone)
        for place in dict.fromkeys(places):
            gone.append(documents.pop(place))
        return KeyedObjects(documents, self._left_out, tuple(gone), self.come)

    def with_documents(self, later: Iterable[Document]) -> KeyedObjects:
        """These, each in its place replaced by the later one of its kind and name; others come behind.

        What an object keeps is told in `podium.api.input.overrides`.
        """
        documents, gone, come = self._documents.copy(), list(self.gone), list(self.come)
        for document in later:
            place = place_of(document)
            earlier = documents.get(place)
            documents[place] = document if earlier is None else in_place_of(earlier, document)
            come.append(documents[place])
            if earlier is not None:
                gone.append(earlier)
        return KeyedObjects(documents, self._left_out, tuple(gone), tuple(come))

    def with_fields(self, fields: Mapping[str, Mapping[str, Any]]) -> KeyedObjects:
        """These, with fields of objects set as `podium plan set` does it; None takes one away. Raises InputError."""
        from podium.app.planning.questions.change import changes_set

        found = self
        for target, values in fields.items():
            document = found.find(target)
            changes = changes_set(Input([document]), _named(document.raw), assignments_of(values))
            later = (load_text(msgspec.json.encode(change.after), document.source) for change in changes)
            found = found.with_documents(document for documents in later for document in documents)
        return found

    def _place_named(self, text: str) -> Place:
        from podium.app.planning.objects import kind_named, object_named

        word, _, name = text.partition("/")
        kind = kind_named(word) if name else ""
        namespace, slash, rest = name.partition("/")
        keys = [(namespace, rest)] if slash else [(_DEFAULT, name), ("", name)]
        for group in (group for group, known in KINDS if known == kind):
            for key in keys:
                if (group, kind, *key) in self._documents:
                    return (group, kind, *key)
        # In another namespace; or it is not there, and what was probably meant is told.
        return place_of(object_named(self.input, text))


def _named(raw: Raw) -> str:
    """How a person names the object."""
    metadata = raw["metadata"]
    return "/".join(filter(None, (raw["kind"], metadata.get("namespace"), metadata["name"])))
