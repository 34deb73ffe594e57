"""From files to objects: YAML and JSON documents, lists flattened, each object read and validated."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from podium.api import json, yaml
from podium.api.errors import InputError, shown
from podium.api.files import FileName, read_bytes, shown_name
from podium.api.folders import files_of
from podium.api.generated_names import generated_names
from podium.api.helm import HELM_ADVICE, looks_like_template
from podium.api.kinds import group_of, may_create_pods
from podium.api.meta import Kubernetes, Raw
from podium.api.objects import ReadObject, label_of, metadata_of, read_object
from podium.api.pod import Pod
from podium.api.warnings import InputWarning, PassedOver, Validation

_LOOKS_LIKE_JSON = re.compile(r"\s*[{\[]")
# What speaks to Podium or to a scheduler is no object of a cluster.
_NOT_OF_A_CLUSTER = ("podium.dev", "kubescheduler.config.k8s.io")


@dataclass(frozen=True, slots=True)
class Document:
    """One object of the input.

    `source` is the file's name and `index` the 1-based number of the document in it, which the items of a
    list share. `raw` is the object as written, without nulls but in lists, with its namespace filled in, and its name
    where it is to be generated. `object` is its typed reading, None for kinds that Podium does not read. Objects within
    it, as in the steps of a scenario, are judged by the same `validation`.
    """

    source: str
    index: int
    raw: dict[str, Any]
    object: Kubernetes | None
    warnings: tuple[InputWarning, ...] = ()
    validation: Validation | None = None


@dataclass(frozen=True, slots=True)
class Input:
    """Everything that was read, in order, and what was left out on the way."""

    documents: list[Document]
    left_out: tuple[InputWarning, ...] = ()

    @property
    def warnings(self) -> list[InputWarning]:
        """What there is to say about files, and about the objects in them."""
        return [*self.left_out, *(warning for one in self.documents for warning in one.warnings)]

    @property
    def passed_over(self) -> list[PassedOver]:
        """The kinds that Podium does not read."""
        return passed_over(self.documents)


def read_input(paths: Sequence[FileName], validation: Validation | None = None) -> Input:
    """The objects of the files, in order, and what there is to say about them.

    "-" is standard input; a directory gives the files in it and in its folders (`podium.api.folders`). `validation`
    says what is an error, and what a warning (`podium.api.objects.read_object`). Raises InputError for a file that
    cannot be read, for anything wrong in one, and for an object that is given twice.
    """
    with Reader(validation) as reader:
        for path in paths:
            reader.read_files(path)
        return reader.input()


def load_files(paths: Sequence[FileName], validation: Validation | None = None) -> list[Document]:
    """The objects of the files alone; see `read_input`."""
    return read_input(paths, validation).documents


def load_text(text: str | bytes, source: str, validation: Validation | None = None) -> list[Document]:
    """The objects of a text: JSON or YAML. Raises as `read_input` does."""
    with Reader(validation) as reader:
        reader.read_text(text, source)
        return reader.input().documents


def decode(raw: dict[str, Any], source: str = "", document: int | None = None) -> Kubernetes | None:
    """The typed reading of one object, validated; None for kinds that Podium does not read.

    `raw` holds no nulls, as documents are given. Without a namespace, an object of a kind that needs one is in
    `default`. Raises InputError, with `source` and `document` as its place.
    """
    try:
        return read_object(raw).object
    except InputError as error:
        raise error.located(source=source, document=document, object=label_of(raw)) from None


def refuse_empty_pods(documents: Iterable[Document]) -> None:
    """Raises InputError for a pod that a person wrote without containers: an answer about it would mislead."""
    for one in documents:
        if isinstance(one.object, Pod) and not one.object.spec.containers and not one.object.metadata.uid:
            error = InputError("Required value: a pod has at least one container", path=".spec.containers")
            raise error.located(source=one.source, document=one.index, object=label_of(one.raw))


def passed_over(documents: Iterable[Document]) -> list[PassedOver]:
    """The kinds among the documents that Podium does not read, by group and name."""
    found: dict[tuple[str, str], list[Document]] = {}
    for one in documents:
        group = group_of(one.raw["apiVersion"])
        if one.object is None and group not in _NOT_OF_A_CLUSTER:
            found.setdefault((group, one.raw["kind"]), []).append(one)
    return [
        PassedOver(
            kind=kind,
            api_version=of_kind[0].raw["apiVersion"],
            count=len(of_kind),
            may_create_pods=may_create_pods(group, kind),
            sources=tuple(dict.fromkeys(one.source for one in of_kind)),
        )
        for (group, kind), of_kind in sorted(found.items())
    ]


@dataclass
class Reader:
    """Reads one input, text by text. Used in a `with`, which keeps the cyclic garbage collector out of the way."""

    validation: Validation | None = None
    _documents: list[Document] = field(default_factory=list)
    _left_out: list[InputWarning] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._name = generated_names()
        self._pause = _collector_paused()

    def __enter__(self) -> Reader:
        self._pause.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._pause.__exit__(None, None, None)

    def read_files(self, path: FileName) -> None:
        """Read a file, or those of a directory. Raises InputError."""
        files, left_out = files_of(path)
        self._left_out.extend(left_out)
        for file in files:
            self.read_text(read_bytes(file), shown_name(file))

    def read_text(self, text: str | bytes, source: str) -> None:
        """Read the objects of a text. Raises InputError."""
        content = ""
        try:
            content = _text(text)
            for index, root in _roots(content):
                self._documents.extend(self._document(root, source, index))
        except InputError as error:
            if looks_like_template(content):
                error.problem = f"{error.problem}; {HELM_ADVICE}"
            raise error.located(source=source) from None

    def add(self, document: Document) -> None:
        """Take in an object that was read already."""
        self._documents.append(document)

    def input(self) -> Input:
        """All that was read. Raises InputError for an object that was given twice."""
        return Input(_without_repeats(self._documents), tuple(self._left_out))

    def _document(self, root: Any, source: str, index: int) -> Iterator[Document]:
        try:
            for raw, path in _objects(root, ""):
                read = self._item(raw, path)
                warnings = tuple(
                    one.located(source=source, document=index, object=label_of(read.raw)) for one in read.warnings
                )
                yield Document(source, index, read.raw, read.object, warnings, self.validation)
        except InputError as error:
            raise error.located(document=index) from None

    def _item(self, raw: Raw, path: str) -> ReadObject:
        """The object; the errors of one without a name give the whole path in the document instead."""
        try:
            return read_object(self._named(raw), self.validation)
        except InputError as error:
            if not metadata_of(raw).get("name"):
                error.path = path + error.path
            raise error.located(object=label_of(raw)) from None

    def _named(self, raw: Raw) -> Raw:
        """The object with the name that the API server would make of its `generateName`."""
        metadata = metadata_of(raw)
        prefix = metadata.get("generateName")
        if metadata.get("name") or not isinstance(prefix, str) or not prefix:
            return raw
        return {**raw, "metadata": {**metadata, "name": self._name(prefix)}}


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Without the cyclic garbage collector, which finds nothing in a load and triples its time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _roots(content: str) -> Iterable[tuple[int, Any]]:
    """What the documents hold, each with its number; a text in brackets that is not JSON may be YAML in flow style."""
    if not _LOOKS_LIKE_JSON.match(content):
        return yaml.parse_documents(content)
    try:
        return list(json.parse_documents(content))
    except json.NotJSONError as error:
        try:
            return list(yaml.parse_documents(content))
        except InputError:
            raise error from None


def _text(content: str | bytes) -> str:
    """The content as text that is neither empty nor binary."""
    if isinstance(content, str):
        try:
            content = content.encode()
        except UnicodeEncodeError:
            raise InputError("has half a surrogate pair, which is no character") from None
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError("is encoded as UTF-16; save it as UTF-8")
    if (position := content.find(b"\0")) >= 0:
        raise InputError(f"has a NUL character at byte {position}; is it a binary file?")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"is not UTF-8: byte {error.start} does not fit; save it as UTF-8") from None
    if not text or text.isspace():
        raise InputError("is empty")
    return text


def _objects(root: Any, path: str) -> Iterator[tuple[dict[str, Any], str]]:
    """The objects that a document holds, each with its path in it: itself, or the items of a list."""
    if not isinstance(root, dict):
        raise InputError(f"an object with apiVersion and kind is expected, not {shown(root)}", path=path)
    kind = root.get("kind")
    if not isinstance(kind, str) or not kind.endswith("List") or not ("items" in root or kind == "List"):
        if isinstance(kind, str) and kind.lower() == "list":
            raise InputError(f"there is no kind {shown(kind)}; write List", path=f"{path}.kind")
        yield root, path
        return
    items = root.get("items", [])
    if not isinstance(items, list):
        raise InputError(f"{shown(items)} is not a list", path=f"{path}.items")
    of_kind = {} if kind == "List" else {"apiVersion": root.get("apiVersion", ""), "kind": kind[:-4]}
    for index, item in enumerate(items):
        yield from _objects({**of_kind, **item} if isinstance(item, dict) else item, f"{path}.items[{index}]")


def _without_repeats(documents: Iterable[Document]) -> list[Document]:
    """The documents, without those that a dump lists again. Raises InputError for two that are not the same."""
    first: dict[tuple[str, str, Any, str], Document] = {}
    kept: list[Document] = []
    for document in documents:
        metadata = metadata_of(document.raw)
        name = metadata.get("name")
        if document.object is None or not isinstance(name, str):
            kept.append(document)
            continue
        raw = document.raw
        key = (group_of(raw["apiVersion"]), raw["kind"], str(metadata.get("namespace", "")), name)
        other = first.setdefault(key, document)
        if other is document:
            kept.append(document)
        elif not metadata.get("uid") or other.raw != raw:
            raise InputError(
                f"is given twice, first in {other.source}, document {other.index}; remove one",
                source=document.source,
                document=document.index,
                object=label_of(raw),
            )
    return kept
