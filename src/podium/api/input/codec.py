"""From files to objects: YAML and JSON documents, lists flattened, each object read and validated."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from typing import Any, BinaryIO

from podium.api.collector import collector_paused
from podium.api.errors import InputError, shown
from podium.api.input.content import as_bytes, documents_in, is_template, looks_like_json, text_of
from podium.api.input.documents import Document, Input, refuse_empty_pods, without_repeats
from podium.api.input.exact_json import UncertainError
from podium.api.input.files import FileName, opened, shown_name, size_of
from podium.api.input.folders import files_of
from podium.api.input.generated_names import generated_names
from podium.api.input.helm import HELM_ADVICE
from podium.api.input.json_list import json_list
from podium.api.input.listed_items import ItemReader, JSONItems, ListText, YAMLItems
from podium.api.input.yaml_list import yaml_list
from podium.api.meta import Kubernetes, Raw
from podium.api.objects import ReadObject, label_of, metadata_of, read_object
from podium.api.pod import Pod
from podium.api.warnings import InputWarning, Validation

__all__ = [
    "Document",
    "Input",
    "Progress",
    "Reader",
    "decode",
    "load_files",
    "load_text",
    "read_input",
    "refuse_empty_pods",
]

_ONLY_DOCUMENT = 1
_TOLD_EVERY = 256
# So much is looked at to see whether a text is JSON.
_HEAD = 1_024


Progress = Callable[[float], None]
"""Is told the share of the files that has been read, from 0 to 1."""


def read_input(
    paths: Sequence[FileName], validation: Validation | None = None, progress: Progress | None = None
) -> Input:
    """The objects of the files, in order, and what there is to say about them.

    "-" is standard input; a directory gives the files in it and in its folders (`podium.api.input.folders`).
    `validation` says what is an error, and what a warning (`podium.api.objects.read_object`). Raises InputError for a
    file that cannot be read, for anything wrong in one, and for an object that is given twice.
    """
    with Reader(validation) as reader:
        reader.read_all(paths, progress)
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


@dataclass
class Reader:
    """Reads one input, text by text. Used in a `with`, which keeps the cyclic garbage collector out of the way."""

    validation: Validation | None = None
    _documents: list[Document] = field(default_factory=list)
    _left_out: list[InputWarning] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._name = generated_names()
        self._json, self._yaml = JSONItems(), YAMLItems()
        self._pause = collector_paused()

    def __enter__(self) -> Reader:
        self._pause.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._pause.__exit__(None, None, None)

    def read_files(self, path: FileName) -> None:
        """Read a file, or those of a directory. Raises InputError."""
        self.read_all([path])

    def read_all(self, paths: Iterable[FileName], progress: Progress | None = None) -> None:
        """Read files, and those of directories. Raises InputError."""
        files: list[FileName] = []
        failure: InputError | None = None
        for path in paths:
            try:
                found, left_out = files_of(path)
            except InputError as error:
                # What is wrong in files before it is told first.
                failure = error
                break
            files += found
            self._left_out.extend(left_out)
        sizes = [size_of(file) for file in files]
        for place, file in enumerate(files):
            part = None if progress is None else _part_of(progress, sizes, place)
            with opened(file) as stream:
                self._read(stream, shown_name(file), part)
        if failure is not None:
            raise failure

    def read_text(self, text: str | bytes, source: str, progress: Progress | None = None) -> None:
        """Read the objects of a text. Raises InputError."""
        try:
            content = as_bytes(text)
        except InputError as error:
            raise error.located(source=source) from None
        self._read(BytesIO(content), source, progress)

    def _read(self, stream: BinaryIO, source: str, progress: Progress | None) -> None:
        """Read the objects of a stream, which can be read from any place on. Raises InputError."""
        told = progress or _untold
        try:
            documents = self._read_listed(stream, source, told)
            if documents is None:
                documents = self._read_whole(_whole(stream), source, told)
        except InputError as error:
            if is_template(_whole(stream)):
                error.problem = f"{error.problem}; {HELM_ADVICE}"
            raise error.located(source=source) from None
        self._documents.extend(documents)

    def add(self, document: Document) -> None:
        """Take in an object that was read already."""
        self._documents.append(document)

    def input(self) -> Input:
        """All that was read. Raises InputError for an object that was given twice."""
        return Input(without_repeats(self._documents), tuple(self._left_out))

    def _read_listed(self, stream: BinaryIO, source: str, progress: Progress) -> list[Document] | None:
        """The objects of a text that is a List, read one by one; None for every other text."""
        if looks_like_json(stream.read(_HEAD).removeprefix(codecs.BOM_UTF8).decode("latin-1")):
            in_json = json_list(stream)
            return None if in_json is None else self._listed(in_json, self._json, source, progress)
        in_yaml = yaml_list(_whole(stream).removeprefix(codecs.BOM_UTF8))
        return None if in_yaml is None else self._listed(in_yaml, self._yaml, source, progress)

    def _read_whole(self, content: bytes, source: str, progress: Progress) -> list[Document]:
        """The objects of a text that is held in memory as plain values first."""
        roots = documents_in(text_of(content), progress)
        return [document for index, root in roots for document in self._document(_objects(root, ""), source, index)]

    def _listed(self, found: ListText, reader: ItemReader, source: str, progress: Progress) -> list[Document] | None:
        """The objects of a List, read one by one; None where that takes the text around them.

        Raises InputError for what is wrong with an object.
        """
        common = _common(found.envelope)
        if common is None:
            return None
        documents: list[Document] = []
        items = found.items()
        try:
            for place, item in enumerate(items):
                documents.extend(self._list_item(item, reader, common, source, place))
                if place % _TOLD_EVERY == 0:
                    progress(found.share)
        except UncertainError:
            return None
        except InputError:
            # Before something wrong with an object is told what is wrong with the text, wherever that is.
            if not _are_certain(items, reader):
                return None
            raise
        return documents

    def _list_item(self, item: bytes, reader: ItemReader, common: Raw, source: str, place: int) -> Iterator[Document]:
        """The object that an item is, or those of the List that it is. Raises UncertainError."""
        pod = reader.pod(item, common)
        if pod is not None:
            written = reader.written(pod.text, common, None)
            yield Document(source, _ONLY_DOCUMENT, written, pod.pod, (), self.validation)
            return
        value = reader.value(item)
        if not isinstance(value, dict) or not metadata_of(value).get("name"):
            # Where names are made they are counted, so that nothing may be read again.
            raise UncertainError
        raw = {**common, **value}
        for document in self._document(_objects(raw, f".items[{place}]"), source, _ONLY_DOCUMENT):
            if document.written is not raw:
                yield document
                continue
            if isinstance(document.object, Pod) and not document.warnings:
                reader.learn(item, common, document.object)
            yield replace(document, written=reader.written(item, common, raw))

    def _document(self, found: Iterable[tuple[Raw, str]], source: str, index: int) -> Iterator[Document]:
        """The objects of a document, which come with their paths in it."""
        try:
            for raw, path in found:
                read = self._item(raw, path)
                warnings = tuple(
                    warning.located(source=source, document=index, object=label_of(read.raw))
                    for warning in read.warnings
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


def _untold(_share: float) -> None:
    """Nobody wants to know."""


def _part_of(progress: Progress, sizes: Sequence[int], place: int) -> Progress:
    """The progress within one of the files, told as progress with all of them."""
    before, total = sum(sizes[:place]), max(sum(sizes), 1)
    return lambda share: progress((before + share * sizes[place]) / total)


def _objects(root: Any, path: str) -> Iterator[tuple[dict[str, Any], str]]:
    """The objects that a document holds, each with its path in it: itself, or the items of a list."""
    if not isinstance(root, dict):
        raise InputError(f"an object with apiVersion and kind is expected, not {shown(root)}", path=path)
    common = _common(root)
    if common is None:
        kind = root.get("kind")
        if isinstance(kind, str) and kind.lower() == "list":
            raise InputError(f"there is no kind {shown(kind)}; write List", path=f"{path}.kind")
        yield root, path
        return
    items = root.get("items", [])
    if not isinstance(items, list):
        raise InputError(f"{shown(items)} is not a list", path=f"{path}.items")
    for index, item in enumerate(items):
        yield from _objects({**common, **item} if isinstance(item, dict) else item, f"{path}.items[{index}]")


def _common(root: Raw) -> Raw | None:
    """What a List says of each of its items, such as their kind in a PodList; None for what is no List."""
    kind = root.get("kind")
    if not isinstance(kind, str) or not kind.endswith("List") or not ("items" in root or kind == "List"):
        return None
    return {} if kind == "List" else {"apiVersion": root.get("apiVersion", ""), "kind": kind[:-4]}


def _are_certain(items: Iterator[bytes], reader: ItemReader) -> bool:
    """Whether each of them says by itself what it holds."""
    try:
        for item in items:
            reader.value(item)
    except UncertainError:
        return False
    return True


def _whole(stream: BinaryIO) -> bytes:
    stream.seek(0)
    return stream.read()
