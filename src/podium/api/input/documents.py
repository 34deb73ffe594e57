"""Documents: objects with their locations in files, those that replace others, and Snapshots.

A Snapshot states the origin of a cluster's objects, and their omissions. A file of `podium snapshot` contains one among
its objects, and objects read from a cluster get one. Answers repeat its limitations, since they depend on the input's
completeness.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, SupportsBytes, TypeVar

import msgspec
from msgspec import Struct, structs

from podium.api import checks, times, workloads
from podium.api.errors import InputError, InputWarning, Validation
from podium.api.input.json import without_nulls
from podium.api.input.pod_gaps import TextForm
from podium.api.input.pod_stencil import FilledStencil, WireTemplate, times_in
from podium.api.kinds import group_of
from podium.api.meta import APIStruct, Kubernetes, Raw
from podium.api.objects import label_of, metadata_of, read_object
from podium.api.reading import read

Read = TypeVar("Read")

_KEPT = ("uid", "creationTimestamp")
# Kinds of which an input has at most one, whatever its name.
_SINGLE = ("Scenario",)
# Objects that configure Podium or a scheduler are not part of a cluster.
_NOT_OF_A_CLUSTER = ("podium.dev", "kubescheduler.config.k8s.io")


class Encoded(Struct, frozen=True, gc=False):
    """An object that is an item of a List, in the form of its text; `common` is what the List states for its items.

    The decoded objects of similar pods share parts and must not be changed.
    """

    text: SupportsBytes
    common: Raw
    form: TextForm

    def decode(self) -> Raw:
        """Return the object, without nulls except in lists."""
        template = self.template()
        if template is not None and isinstance(self.text, FilledStencil):
            return {**self.common, **template.of(self.text.values)}
        text = bytes(self.text)
        raw = self.form.decode(text)
        # Most texts have no null, which a search shows faster than a traversal of the object.
        return {**self.common, **(without_nulls(raw) if b"null" in text else raw)}

    def template(self) -> WireTemplate | None:
        """Return the template of a pod that a stencil read; None for any other object."""
        return self.text.stencil.template(self.form) if isinstance(self.text, FilledStencil) else None


class Document(Struct, frozen=True, eq=False):
    """An object of the input.

    `source` is the file's name and `index` the 1-based number of the document in it, which the items of a list share.
    `written` is the object in its wire form, or the text from which that is read on demand. `object` is its typed
    reading, None for kinds that Podium does not read. Nested objects, as in the steps of a scenario, have the same
    `validation`. `other_version` is the `apiVersion` in the file if it is not that of the wire form, else "".
    """

    source: str
    index: int
    written: Raw | Encoded
    object: Kubernetes | None
    warnings: tuple[InputWarning, ...] = ()
    validation: Validation | None = None
    other_version: str = ""

    @property
    def raw(self) -> Raw:
        """The object as written: without nulls except in lists, with its namespace, and with a generated name.

        The result is cached and replaces the text.
        """
        written = self.written
        if not isinstance(written, dict):
            written = written.decode()
            # The same value in another form.
            structs.force_setattr(self, "written", written)
        return written

    def read_raw(self) -> Raw:
        """Return the same as `raw` without caching it: the text takes much less memory."""
        return self.written if isinstance(self.written, dict) else self.written.decode()

    def condition_times(self) -> Iterable[str]:
        """Return the times in the conditions of the object's status."""
        written, filled = self.written, self.filled
        if isinstance(written, dict):
            return times_in(written.get("status", {}).get("conditions", ()))
        if filled is not None and (template := written.template()) is not None:
            return template.condition_times(filled.values)
        return times_in(written.form.status(bytes(written.text)).get("conditions", ()))

    @property
    def filled(self) -> FilledStencil | None:
        """The text of a pod that a stencil read: those of one stencil have the same fields. None for others."""
        text = None if isinstance(self.written, dict) else self.written.text
        return text if isinstance(text, FilledStencil) else None

    def located(self, error: InputError) -> InputError:
        """Return an error about the object with its location."""
        return error.located(source=self.source, document=self.index, object=label_of(self.raw))

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Document) and self._compared() == other._compared()

    __ne__ = builtins.object.__ne__

    def __hash__(self) -> int:
        return hash((self.source, self.index))

    def _compared(self) -> tuple[Any, ...]:
        return self.source, self.index, self.raw, self.object, self.warnings, self.validation


@dataclass(frozen=True, slots=True)
class Input:
    """The documents that were read, in order, and warnings about skipped ones."""

    documents: list[Document]
    left_out: tuple[InputWarning, ...] = ()

    def of_kind(self, kind: str) -> dict[str, Document]:
        """Return the documents of the objects of a kind, by key."""
        found = ((document.object, document) for document in self.documents)
        return {item.key: document for item, document in found if item is not None and type(item).__name__ == kind}

    @property
    def warnings(self) -> list[InputWarning]:
        """The warnings about files, and about the objects in them."""
        return [*self.left_out, *(warning for document in self.documents for warning in document.warnings)]

    @property
    def snapshots(self) -> list[Snapshot]:
        """The Snapshots, which describe the origin of objects. Raises InputError for an unreadable one."""
        return [snapshot for snapshot, _ in snapshots_of(self.documents)]


def refuse_empty_pods(documents: Iterable[Document]) -> None:
    """Raise InputError for a user's pod or pod template without containers."""
    for document in documents:
        if document.object is not None and not document.object.metadata.uid:
            try:
                refuse_empty_pod(document.object)
            except InputError as error:
                raise document.located(error) from None


def refuse_empty_pod(object_: Kubernetes) -> None:
    """Raise InputError for a pod or pod template without containers, as kube-apiserver refuses it."""
    found = workloads.pod_template(object_)
    if found is not None and not found[0].spec.containers:
        raise InputError("Required value: a pod has at least one container", path=f"{found[1]}.spec.containers")


def snapshots_of(documents: Iterable[Document]) -> Iterator[tuple[Snapshot, Document]]:
    """Yield the Snapshots among the documents. Raises InputError for an unreadable one."""
    return read_among(documents, is_snapshot, read_snapshot)


def read_among(
    documents: Iterable[Document], is_wanted: Callable[[Raw], bool], reading: Callable[[Raw], Read]
) -> Iterator[tuple[Read, Document]]:
    """Yield the wanted documents that are not part of a cluster, each with its reading.

    Raises InputError, with its location, for an unreadable one.
    """
    for document in documents:
        if document.object is None and is_wanted(document.raw):
            try:
                yield reading(document.raw), document
            except InputError as error:
                raise document.located(error) from None


def passed_over(documents: Iterable[Document]) -> list[KindCount]:
    """Return the kinds that Podium does not read, by group and name, including those of snapshots."""
    documents = list(documents)
    raws = (document.raw for document in documents if document.object is None)
    single = (KindCount(api_version=raw["apiVersion"], kind=raw["kind"], count=1) for raw in raws)
    found: dict[tuple[str, str], KindCount] = {}
    for one in (*single, *(each for snapshot, _ in snapshots_of(documents) for each in snapshot.passed_over)):
        key = group_of(one.api_version), one.kind
        if key[0] not in _NOT_OF_A_CLUSTER:
            found[key] = structs.replace(found[key], count=found[key].count + one.count) if key in found else one
    return [found[key] for key in sorted(found)]


def without_repeats(documents: Sequence[Document]) -> list[Document]:
    """Return the documents without repetitions in a dump. Raises InputError for two that differ."""
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
            snapshots = {each.source for _, each in snapshots_of(documents)}
            if document.source != other.source and {document.source, other.source} <= snapshots:
                problem = f"is a snapshot or recording of a cluster, as is {other.source}; give one of them"
                raise InputError(problem, source=document.source)
            problem = f"is given twice, first in {other.source}, document {other.index}; remove one"
            raise document.located(InputError(problem))
    return kept


def identity_of(typed: Kubernetes) -> tuple[str, ...]:
    """Return the identity of an object in a cluster: group, kind, namespace and name."""
    metadata = typed.metadata
    return group_of(typed.api_version), typed.kind, metadata.namespace, metadata.name


def overridden(documents: Sequence[Document], later: Sequence[Document]) -> list[Document]:
    """Return the documents, each replaced by the one of ``later`` with its kind and name; others are appended.

    As with `kubectl replace`, the object keeps its uid, its creation time, and its status if the later file has none,
    so that references to it stay valid. A Scenario replaces any other Scenario. Raises InputError if the result is
    unreadable.
    """
    by_place = {place_of(document): document for document in later}
    found: list[Document] = []
    for document in documents:
        other = by_place.pop(place_of(document), None)
        found.append(document if other is None else in_place_of(document, other))
    return [*found, *by_place.values()]


def place_of(document: Document) -> tuple[str, ...]:
    """Return the key under which a document replaces another: group, kind, and usually namespace and name."""
    if document.object is not None:
        return identity_of(document.object)
    raw = document.raw
    group, kind = group_of(str(raw.get("apiVersion", ""))), str(raw.get("kind", ""))
    metadata = metadata_of(raw)
    named = () if kind in _SINGLE else (str(metadata.get("namespace", "")), str(metadata.get("name", "")))
    return group, kind, *named


def in_place_of(earlier: Document, later: Document) -> Document:
    """Return the later document with what the earlier object keeps. Raises InputError as `overridden` does."""
    if later.object is None:
        return later
    before, after = earlier.raw, later.raw
    given = metadata_of(after)
    kept: dict[str, Any] = {
        name: value for name, value in metadata_of(before).items() if name in _KEPT and name not in given
    }
    raw: Raw = {**after, "metadata": {**given, **kept}}
    if "status" in before and "status" not in after:
        raw["status"] = before["status"]
    if raw == after:
        return later
    try:
        read = read_object(raw, later.validation)
    except InputError as error:
        raise later.located(error) from None
    place = {"source": later.source, "document": later.index, "object": label_of(raw)}
    warnings = tuple(replace(warning, **place) for warning in read.warnings)  # type: ignore[arg-type]
    return structs.replace(later, written=read.raw, object=read.object, warnings=warnings)


API_VERSION = "podium.dev/v1alpha1"

SNAPSHOT = "Snapshot"
"""The name of the kind."""

FORMAT = 2
"""The version of the snapshot format. A higher number is for one that this Podium would misunderstand.

Since 2, pods may be in tables (`podium.api.input.pod_table`). Files of format 1 are read, too."""


class HiddenKind(APIStruct, frozen=True, kw_only=True):
    """A kind whose objects could not be read for lack of permission, with the server's reason."""

    api_version: str = ""
    kind: str = ""
    message: str = ""


class KindCount(APIStruct, frozen=True, kw_only=True):
    """The number of skipped objects of a kind that Podium does not read."""

    api_version: str = ""
    kind: str = ""
    count: int = 0


class Snapshot(Kubernetes, frozen=True, kw_only=True):
    """The origin of a cluster's objects (podium.dev/v1alpha1).

    `left_out` are descriptions of the omitted parts of objects; `not_served` are the kinds, as `Kind (apiVersion)`,
    that the cluster does not serve.
    """

    format: int = FORMAT
    context: str = ""
    server_version: str = ""
    taken_at: str = ""
    hidden: tuple[HiddenKind, ...] = ()
    not_served: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    passed_over: tuple[KindCount, ...] = ()

    @property
    def taken_ns(self) -> int | None:
        """The time when the objects were read, None if unknown."""
        return times.parse_time(self.taken_at) if self.taken_at else None

    @property
    def origin(self) -> str:
        """A text with the cluster and the time."""
        where = f"of {self.context}" if self.context else "of files"
        version = f" ({self.server_version})" if self.server_version else ""
        return f"{where}{version}" + (f" at {self.taken_at}" if self.taken_at else "")

    def to_dict(self) -> Raw:
        found: Raw = msgspec.json.decode(msgspec.json.encode(self))
        return {"apiVersion": API_VERSION, "kind": SNAPSHOT, "format": self.format, **found}


def is_snapshot(raw: Raw) -> bool:
    """Return whether an object is a Snapshot."""
    return raw.get("kind") == SNAPSHOT and group_of(str(raw.get("apiVersion"))) == group_of(API_VERSION)


def read_snapshot(raw: Raw) -> Snapshot:
    """Return the content of a Snapshot. Raises InputError for an unreadable one, and for an unknown format."""
    checks.check_format(raw.get("format"), FORMAT)
    found = read(raw, Snapshot)
    checks.check_time(found.taken_at or None, ".takenAt")
    return found
