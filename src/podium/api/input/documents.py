"""What was read: objects, each with its place in a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from podium.api.errors import InputError
from podium.api.kinds import group_of, may_create_pods
from podium.api.meta import Kubernetes, Raw
from podium.api.objects import label_of
from podium.api.pod import Pod
from podium.api.snapshot import Snapshot, is_snapshot, read_snapshot
from podium.api.warnings import InputWarning, PassedOver, Validation

Read = TypeVar("Read")

# What speaks to Podium or to a scheduler is no object of a cluster.
_NOT_OF_A_CLUSTER = ("podium.dev", "kubescheduler.config.k8s.io")


class Encoded(Protocol):
    """An object that is an item of a List, as the text it is."""

    def decode(self) -> Raw:
        """The object, without nulls but in lists."""
        ...


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
        if not isinstance(written, dict):
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

    @property
    def snapshots(self) -> list[Snapshot]:
        """What is said of where the objects are from. Raises InputError for a Snapshot that cannot be read."""
        return [snapshot for snapshot, _ in snapshots_of(self.documents)]


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


def snapshots_of(documents: Iterable[Document]) -> Iterator[tuple[Snapshot, Document]]:
    """The Snapshots among the documents. Raises InputError for one that cannot be read."""
    return read_among(documents, is_snapshot, read_snapshot)


def read_among(
    documents: Iterable[Document], is_wanted: Callable[[Raw], bool], reading: Callable[[Raw], Read]
) -> Iterator[tuple[Read, Document]]:
    """The documents that are no objects of a cluster and are wanted, each as it is read.

    Raises InputError, with its place, for one that cannot be read.
    """
    for document in documents:
        if document.object is None and is_wanted(document.raw):
            try:
                yield reading(document.raw), document
            except InputError as error:
                label = label_of(document.raw)
                raise error.located(source=document.source, document=document.index, object=label) from None


def passed_over(documents: Iterable[Document]) -> list[PassedOver]:
    """The kinds among the documents that Podium does not read, by group and name; those of snapshots, too."""
    documents = list(documents)
    found: dict[tuple[str, str], PassedOver] = {}
    for document in documents:
        if document.object is None and (group := group_of(document.raw["apiVersion"])) not in _NOT_OF_A_CLUSTER:
            version, kind = document.raw["apiVersion"], document.raw["kind"]
            _count(found, PassedOver(kind, version, 1, may_create_pods(group, kind), (document.source,)))
    for snapshot, document in snapshots_of(documents):
        for kinds in snapshot.passed_over_kinds(document.source):
            _count(found, kinds)
    return [found[key] for key in sorted(found)]


def _count(found: dict[tuple[str, str], PassedOver], more: PassedOver) -> None:
    """Add objects of a kind to those that were found."""
    key = (group_of(more.api_version), more.kind)
    known = found.get(key)
    if known is None:
        found[key] = more
    else:
        sources = tuple(dict.fromkeys((*known.sources, *more.sources)))
        found[key] = replace(known, count=known.count + more.count, sources=sources)


def without_repeats(documents: Iterable[Document]) -> list[Document]:
    """The documents, without those that a dump lists again. Raises InputError for two that are not the same."""
    first: dict[tuple[str, ...], Document] = {}
    kept: list[Document] = []
    for document in documents:
        typed = document.object
        if typed is None:
            kept.append(document)
            continue
        metadata = typed.metadata
        other = first.setdefault(identity_of(typed), document)
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


def identity_of(typed: Kubernetes) -> tuple[str, ...]:
    """What no two objects of a cluster share: group, kind, namespace and name."""
    metadata = typed.metadata
    return group_of(typed.api_version), typed.kind, metadata.namespace, metadata.name
