"""The reader of files: YAML and JSON text, its documents with lists flattened, and each object read and validated."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from io import BytesIO
from itertools import count
from typing import Any, BinaryIO, TypeVar

from msgspec import structs

from podium.api.collector import collector_paused
from podium.api.errors import InputError, InputWarning, Validation, shown
from podium.api.input import json, yaml
from podium.api.input.documents import Document, Input, refuse_empty_pods, without_repeats
from podium.api.input.files import FileName, files_of, opened, shown_name, size_of
from podium.api.input.json import UncertainError
from podium.api.input.listed_items import ItemReader, ListText, json_list, yaml_list
from podium.api.input.pod_gaps import JSON, YAML
from podium.api.input.pod_stencil import ReadPod
from podium.api.input.pod_table import OPENING, decoded_rows, is_table, read_table
from podium.api.meta import Kubernetes, Raw
from podium.api.objects import ReadObject, label_of, metadata_of, read_object
from podium.api.pod import Pod

__all__ = ["Document", "Input", "refuse_empty_pods"]

Value = TypeVar("Value")
_ONLY_DOCUMENT = 1
_PROGRESS_EVERY = 256
# The number of bytes that are inspected to detect JSON.
_HEAD = 1_024


Progress = Callable[[float], None]
"""A callback for the share of the files that has been read, from 0 to 1."""


def read_input(
    paths: Sequence[FileName], validation: Validation | None = None, progress: Progress | None = None
) -> Input:
    """Return the objects of the files, in order, and the warnings about them.

    "-" is standard input; a directory means the files in it and in its folders (`podium.api.input.files`).
    `validation` selects errors or warnings (`podium.api.objects.read_object`). Raises InputError for a file that cannot
    be read, for any error in one, and for an object that occurs twice.
    """
    with Reader(validation) as reader:
        reader.read_all(paths, progress)
        return reader.input()


def load_files(paths: Sequence[FileName], validation: Validation | None = None) -> list[Document]:
    """Return only the objects of the files; see `read_input`."""
    return read_input(paths, validation).documents


def load_text(text: str | bytes, source: str, validation: Validation | None = None) -> list[Document]:
    """Return the objects of a text: JSON or YAML. Raises as `read_input` does."""
    with Reader(validation) as reader:
        reader.read_text(text, source)
        return reader.input().documents


def decode(raw: dict[str, Any], source: str = "", document: int | None = None) -> Kubernetes | None:
    """Return the validated typed reading of one object; None for kinds that Podium does not read.

    `raw` holds no nulls, as in documents. Without a namespace, a namespaced object is in `default`. Raises InputError,
    with `source` and `document` as its location.
    """
    try:
        return read_object(raw).object
    except InputError as error:
        raise error.located(source=source, document=document, object=label_of(raw)) from None


@dataclass
class Reader:
    """A reader of one input, text by text. As a context manager, it pauses the cyclic garbage collector."""

    validation: Validation | None = None
    _documents: list[Document] = field(default_factory=list)
    _left_out: list[InputWarning] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._name = generated_names()
        self._json, self._yaml = ItemReader(JSON), ItemReader(YAML)
        self._pause = collector_paused()

    def __enter__(self) -> Reader:
        self._pause.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._pause.__exit__(None, None, None)

    def read_all(self, paths: Iterable[FileName], progress: Progress | None = None) -> None:
        """Read files, and those of directories. Raises InputError."""
        files: list[FileName] = []
        failure: InputError | None = None
        for path in paths:
            try:
                found, left_out = files_of(path)
            except InputError as error:
                # Errors in files before it are reported first.
                failure = error
                break
            files += found
            self._left_out.extend(left_out)
        sizes = [size_of(file) for file in files]
        total = max(sum(sizes), 1)
        before = size = 0

        def report_part(share: float) -> None:
            if progress is not None:
                progress((before + share * size) / total)

        report_part(0)
        for file, size in zip(files, sizes, strict=True):
            with opened(file) as stream:
                self._read(stream, shown_name(file), report_part)
            before += size
        if failure is not None:
            raise failure

    def read_text(self, text: str | bytes, source: str, progress: Progress | None = None) -> None:
        """Read the objects of a text. Raises InputError."""
        try:
            content = text.encode() if isinstance(text, str) else text
        except UnicodeEncodeError:
            raise InputError("has half a surrogate pair, which is not a character", source=source) from None
        self._read(BytesIO(content), source, progress or (lambda _share: None))

    def _read(self, stream: BinaryIO, source: str, report: Progress) -> None:
        """Read the objects of a seekable stream. Raises InputError."""
        try:
            if looks_like_json(stream.read(_HEAD).removeprefix(codecs.BOM_UTF8).decode("latin-1")):
                found, reader = json_list(stream), self._json
            else:
                found, reader = yaml_list(_whole(stream).removeprefix(codecs.BOM_UTF8)), self._yaml
            documents = None if found is None else self._listed(found, reader, source, report)
            if documents is None:
                roots = documents_in(text_of(_whole(stream)), report)
                documents = [one for index, root in roots for one in self._document(objects_of(root), source, index)]
        except InputError as error:
            if is_template(_whole(stream)):
                error.problem = f"{error.problem}; {HELM_ADVICE}"
            raise error.located(source=source) from None
        self._documents.extend(documents)

    def add(self, document: Document) -> None:
        """Add an object that was read already."""
        self._documents.append(document)

    def input(self) -> Input:
        """Return everything that was read. Raises InputError for an object that occurs twice."""
        return Input(without_repeats(self._documents), tuple(self._left_out))

    def _listed(self, found: ListText, reader: ItemReader, source: str, progress: Progress) -> list[Document] | None:
        """Return the objects of a List, read one by one; None if that needs the surrounding text.

        Raises InputError for an invalid object.
        """
        common = _common(found.envelope)
        if common is None:
            return None
        documents: list[Document] = []
        try:
            for place, (item, share) in enumerate(found.items):
                documents.extend(self._list_item(item, reader, common, source, place))
                if place % _PROGRESS_EVERY == 0:
                    progress(share)
        except UncertainError:
            return None
        except InputError:
            # Syntax errors anywhere in the text are reported before problems of an object.
            try:
                for item, _ in found.items:
                    reader.value(item)
            except UncertainError:
                return None
            raise
        return documents

    def _list_item(self, item: bytes, reader: ItemReader, common: Raw, source: str, place: int) -> Iterator[Document]:
        """Yield the object of an item, or the objects of a nested List. Raises UncertainError."""
        if item.startswith(OPENING):
            for row in read_table(item, reader.stencils):
                if isinstance(row, bytes):
                    yield from self._list_item(row, reader, {}, source, place)
                else:
                    yield self._pod_document(row, reader, {}, source)
            return
        # A pod that certainly has no findings.
        pod = reader.stencils.of(item, common).read(item)
        if pod is not None:
            yield self._pod_document(pod, reader, common, source)
            return
        value = reader.value(item)
        if not isinstance(value, dict) or not metadata_of(value).get("name"):
            # Generated names are numbered, so nothing may be read twice.
            raise UncertainError
        raw = {**common, **value}
        for document in self._document(objects_of(raw, f".items[{place}]"), source, _ONLY_DOCUMENT):
            if document.written is not raw:
                yield document
                continue
            if isinstance(document.object, Pod) and not document.warnings:
                reader.stencils.of(item, common).learn(item, document.object)
            yield structs.replace(document, written=reader.written(item, common, raw))

    def _pod_document(self, pod: ReadPod, reader: ItemReader, common: Raw, source: str) -> Document:
        return Document(source, _ONLY_DOCUMENT, reader.written(pod.text, common, None), pod.pod, (), self.validation)

    def _document(self, found: Iterable[tuple[Raw, str]], source: str, index: int) -> Iterator[Document]:
        """Yield the documents for objects with their paths within a document."""
        try:
            for raw, path in found:
                read = self._item(raw, path)
                warnings = tuple(
                    warning.located(source=source, document=index, object=label_of(read.raw))
                    for warning in read.warnings
                )
                other = "" if raw.get("apiVersion") == read.raw["apiVersion"] else str(raw["apiVersion"])
                yield Document(source, index, read.raw, read.object, warnings, self.validation, other)
        except InputError as error:
            raise error.located(document=index) from None

    def _item(self, raw: Raw, path: str) -> ReadObject:
        """Return the object, with a generated name as the API server generates one for `generateName`.

        Errors of an object without a name contain the whole path in the document instead.
        """
        metadata, named = metadata_of(raw), raw
        prefix, is_named = metadata.get("generateName"), bool(metadata.get("name"))
        if not is_named and isinstance(prefix, str) and prefix:
            named = {**raw, "metadata": {**metadata, "name": self._name(prefix)}}
        try:
            return read_object(named, self.validation)
        except InputError as error:
            if not is_named:
                error.path = path + error.path
            raise error.located(object=label_of(raw)) from None


def objects_of(root: Any, path: str = "") -> Iterator[tuple[dict[str, Any], str]]:
    """Yield the objects of a document, each with its path in it: the root itself, or the items of a list."""
    if not isinstance(root, dict):
        raise InputError(f"an object with apiVersion and kind is expected, not {shown(root)}", path=path)
    if is_table(root):
        for pod in decoded_rows(root):
            yield from objects_of(pod, path)
        return
    common = _common(root)
    if common is None:
        kind = root.get("kind")
        if isinstance(kind, str) and kind.lower() == "list":
            raise InputError(f"there is no kind {shown(kind)}; write List", path=f"{path}.kind")
        if kind == "Status" and root.get("apiVersion") == "v1":
            raise InputError(f"a server answered this instead of objects: {shown(root.get('message', ''))}", path=path)
        yield root, path
        return
    items = root.get("items", [])
    if not isinstance(items, list):
        raise InputError(f"{shown(items)} is not a list", path=f"{path}.items")
    for index, item in enumerate(items):
        yield from objects_of({**common, **item} if isinstance(item, dict) else item, f"{path}.items[{index}]")


def _common(root: Raw) -> Raw | None:
    """Return what a List states for all items, such as the kind in a PodList; None if it is not a List."""
    kind = root.get("kind")
    if not isinstance(kind, str) or not kind.endswith("List") or not ("items" in root or kind == "List"):
        return None
    return {} if kind == "List" else {"apiVersion": root.get("apiVersion", ""), "kind": kind[:-4]}


def _whole(stream: BinaryIO) -> bytes:
    stream.seek(0)
    return stream.read()


NAME_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_LENGTH = 5
_MAX_PREFIX = 58
_NAMES = len(NAME_LETTERS) ** _LENGTH
# Coprime to the number of names, so that none repeats; large, so that successive names differ visibly.
_STRIDE = 6_700_417


def generated_names() -> Callable[[str], str]:
    """Return a function that returns the next generated name for a prefix."""
    numbers = count(1)

    def name(prefix: str) -> str:
        rest, letters = next(numbers) * _STRIDE % _NAMES, ""
        for _ in range(_LENGTH):
            rest, letter = divmod(rest, len(NAME_LETTERS))
            letters += NAME_LETTERS[letter]
        return f"{prefix[:_MAX_PREFIX]}{letters}"

    return name


_BRACKET = re.compile(r"\s*[{\[]")
# JSON's white space.
_WHITE_SPACE = b" \t\r\n"


def looks_like_json(text: str) -> bool:
    """Return whether a text is in brackets: JSON, or YAML in flow style."""
    return _BRACKET.match(text) is not None


def documents_in(content: str, progress: Callable[[float], None]) -> Iterable[tuple[int, Any]]:
    """Return the numbered values of the documents; bracketed text that is not JSON may be YAML in flow style."""
    if not looks_like_json(content):
        return yaml.parse_documents(content, progress)
    # Line by line, as programs write them: most other texts fail at the first line.
    lines = (line for line in BytesIO(content.encode()) if line.strip(_WHITE_SPACE))
    with suppress(json.UncertainError):
        return [(number, json.decode(line)) for number, line in enumerate(lines, start=1)]
    try:
        return list(json.parse_documents(content))
    except json.NotJSONError as error:
        try:
            return list(yaml.parse_documents(content))
        except InputError:
            raise error from None


def text_of(content: bytes) -> str:
    """Return the content as text. Raises InputError for empty or binary content."""
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


def objects_in(content: bytes, source: str) -> list[dict[str, Any]]:
    """Return the documents of YAML or JSON, which need not be whole objects of Kubernetes, such as patches.

    Raises InputError with the source for other content, and for a document that is not an object.
    """
    try:
        documents = [(index, value) for index, value in yaml.parse_documents(text_of(content)) if value is not None]
    except InputError as error:
        raise error.located(source=source) from None
    for index, value in documents:
        if not isinstance(value, dict):
            raise InputError("is not an object", source=source, document=index)
    return [value for _, value in documents]


def only_one(found: Sequence[Value], kind: str, source: str) -> Value:
    """Return the one object of a file, which is of a kind. Raises InputError for none and for several."""
    if len(found) != 1:
        raise InputError(f"holds {len(found)} objects; one {kind} is needed, and nothing else", source=source)
    return found[0]


def is_template(text: bytes) -> bool:
    """Return whether unreadable content is a template; binary content is not."""
    try:
        return _ACTION.search(text_of(text)) is not None
    except InputError:
        return False


HELM_ADVICE = (
    "it looks like a template of a Helm chart: run `helm template CHART > objects.yaml`, and give that file instead"
)
"""The advice for a Helm template."""

# The beginnings of template actions; other languages with double braces rarely use them.
_ACTION = re.compile(
    r"\{\{-?\s*(?:[.$]|/\*|(?:block|define|else|end|if|include|range|required|template|toYaml|tpl|with)\b)"
)
