"""What was read: objects, each with its place in a file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from podium.api.errors import InputError
from podium.api.input.exact_json import without_nulls
from podium.api.kinds import group_of, may_create_pods
from podium.api.meta import Kubernetes, Raw
from podium.api.objects import label_of
from podium.api.pod import Pod
from podium.api.warnings import InputWarning, PassedOver, Validation

# What speaks to Podium or to a scheduler is no object of a cluster.
_NOT_OF_A_CLUSTER = ("podium.dev", "kubescheduler.config.k8s.io")


@dataclass(frozen=True, slots=True)
class Encoded:
    """An object that is an item of a JSON List, as the text it is; `common` is what the List says of its items."""

    text: msgspec.Raw
    common: Raw

    def decode(self) -> Raw:
        """The object, without nulls but in lists."""
        return {**self.common, **without_nulls(msgspec.json.decode(self.text))}


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """One object of the input.

    `source` is the file's name and `index` the 1-based number of the document in it, which the items of a
    list share. `written` is the object as it is written, or the text from which it is read when somebody asks for it.
    `object` is its typed reading, None for kinds that Podium does not read. Objects within it, as in the steps of a
    scenario, are judged by the same `validation`.
    """

    source: str
    index: int
    written: Raw | Encoded
    object: Kubernetes | None
    warnings: tuple[InputWarning, ...] = ()
    validation: Validation | None = None

    @property
    def raw(self) -> Raw:
        """The object as written: without nulls but in lists, with its namespace filled in, and a generated name.

        What was asked for once is kept, and the text is not.
        """
        written = self.written
        if isinstance(written, Encoded):
            written = written.decode()
            # The same value in another form.
            object.__setattr__(self, "written", written)
        return written

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, Document):
            return NotImplemented
        return self._compared() == other._compared()

    def __hash__(self) -> int:
        return hash((self.source, self.index))

    def _compared(self) -> tuple[Any, ...]:
        return self.source, self.index, self.raw, self.object, self.warnings, self.validation


@dataclass(frozen=True, slots=True)
class Input:
    """Everything that was read, in order, and what was left out on the way."""

    documents: list[Document]
    left_out: tuple[InputWarning, ...] = ()

    @property
    def warnings(self) -> list[InputWarning]:
        """What there is to say about files, and about the objects in them."""
        return [*self.left_out, *(warning for document in self.documents for warning in document.warnings)]

    @property
    def passed_over(self) -> list[PassedOver]:
        """The kinds that Podium does not read."""
        return passed_over(self.documents)


def refuse_empty_pods(documents: Iterable[Document]) -> None:
    """Raises InputError for a pod that a person wrote without containers: an answer about it would mislead."""
    for document in documents:
        if (
            isinstance(document.object, Pod)
            and not document.object.spec.containers
            and not document.object.metadata.uid
        ):
            error = InputError("Required value: a pod has at least one container", path=".spec.containers")
            raise error.located(source=document.source, document=document.index, object=label_of(document.raw))


def passed_over(documents: Iterable[Document]) -> list[PassedOver]:
    """The kinds among the documents that Podium does not read, by group and name."""
    found: dict[tuple[str, str], list[Document]] = {}
    for document in documents:
        if document.object is None and (group := group_of(document.raw["apiVersion"])) not in _NOT_OF_A_CLUSTER:
            found.setdefault((group, document.raw["kind"]), []).append(document)
    return [
        PassedOver(
            kind=kind,
            api_version=of_kind[0].raw["apiVersion"],
            count=len(of_kind),
            may_create_pods=may_create_pods(group, kind),
            sources=tuple(dict.fromkeys(document.source for document in of_kind)),
        )
        for (group, kind), of_kind in sorted(found.items())
    ]


def without_repeats(documents: Iterable[Document]) -> list[Document]:
    """The documents, without those that a dump lists again. Raises InputError for two that are not the same."""
    first: dict[tuple[str, str, str, str], Document] = {}
    kept: list[Document] = []
    for document in documents:
        typed = document.object
        if typed is None:
            kept.append(document)
            continue
        metadata = typed.metadata
        key = (group_of(typed.api_version), typed.kind, metadata.namespace, metadata.name)
        other = first.setdefault(key, document)
        if other is document:
            kept.append(document)
        elif not metadata.uid or other.raw != document.raw:
            raise InputError(
                f"is given twice, first in {other.source}, document {other.index}; remove one",
                source=document.source,
                document=document.index,
                object=label_of(document.raw),
            )
    return kept
