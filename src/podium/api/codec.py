"""From files to objects: YAML and JSON documents, lists flattened, each object read and validated."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from podium.api import json, yaml
from podium.api.errors import InputError, shown
from podium.api.files import FileName, files_of, read_bytes, shown_name
from podium.api.kinds import KINDS, Kind, group_of, right_group
from podium.api.meta import Kubernetes
from podium.api.reading import read
from podium.api.validate import validate

_LOOKS_LIKE_JSON = re.compile(r"\s*[{\[]")


@dataclass(frozen=True, slots=True)
class Document:
    """One object of the input.

    `source` is the file's name and `index` the 1-based number of the document in it, which the items of a
    list share. `raw` is the object as written, without nulls, with its namespace filled in. `object` is its
    typed reading, None for kinds that Podium does not read.
    """

    source: str
    index: int
    raw: dict[str, Any]
    object: Kubernetes | None


def load_files(paths: Sequence[FileName]) -> list[Document]:
    """The objects of the files, in order.

    "-" is standard input; a directory gives its .yaml, .yml and .json files, sorted by name. Raises InputError
    for a file that cannot be read, for anything wrong in one, and for an object that is given twice.
    """
    with _collector_paused():
        documents: list[Document] = []
        for path in paths:
            for file in files_of(path):
                documents.extend(_documents(read_bytes(file), shown_name(file)))
        _refuse_duplicates(documents)
        return documents


def load_text(text: str | bytes, source: str) -> list[Document]:
    """The objects of a text: JSON or YAML. Raises as `load_files` does."""
    with _collector_paused():
        documents = list(_documents(text, source))
        _refuse_duplicates(documents)
        return documents


def decode(raw: dict[str, Any], source: str = "", document: int | None = None) -> Kubernetes | None:
    """The typed reading of one object, validated; None for kinds that Podium does not read.

    `raw` holds no nulls, as documents are given. Without a namespace, an object of a kind that needs one is in
    `default`. Raises InputError, with `source` and `document` as its place.
    """
    try:
        return _typed(raw)[1]
    except InputError as error:
        raise error.located(source=source, document=document, object=_label(raw)) from None


def _typed(raw: dict[str, Any]) -> tuple[dict[str, Any], Kubernetes | None]:
    """The object with its namespace filled in, and its typed reading."""
    kind = _kind(raw)
    if kind is None:
        return raw, None
    raw = _with_namespace(raw, kind)
    try:
        typed = read(raw, kind.type)
        validate(typed)
    except InputError as error:
        raise error.located(object=_label(raw)) from None
    return raw, typed


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


def _documents(text: str | bytes, source: str) -> Iterator[Document]:
    try:
        content = _text(text)
        for index, root in _roots(content):
            yield from _document(root, source, index)
    except InputError as error:
        raise error.located(source=source) from None


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


def _document(root: Any, source: str, index: int) -> Iterator[Document]:
    try:
        for raw, path in _objects(root, ""):
            yield Document(source, index, *_item(raw, path))
    except InputError as error:
        raise error.located(document=index) from None


def _item(raw: dict[str, Any], path: str) -> tuple[dict[str, Any], Kubernetes | None]:
    """As `_typed`; the errors of an object without a name give the whole path in the document instead."""
    try:
        return _typed(raw)
    except InputError as error:
        if not _metadata(raw).get("name"):
            error.path = path + error.path
        raise error.located(object=_label(raw)) from None


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
        yield root, path
        return
    items = root.get("items", [])
    if not isinstance(items, list):
        raise InputError(f"{shown(items)} is not a list", path=f"{path}.items")
    of_kind = {} if kind == "List" else {"apiVersion": root.get("apiVersion", ""), "kind": kind[:-4]}
    for index, item in enumerate(items):
        yield from _objects({**of_kind, **item} if isinstance(item, dict) else item, f"{path}.items[{index}]")


def _kind(raw: dict[str, Any]) -> Kind | None:
    """The kind of the object, None when Podium does not read it. Raises InputError when it names none."""
    for field in ("apiVersion", "kind"):
        value = raw.get(field)
        if not isinstance(value, str) or not value:
            raise InputError(
                f"{shown(value)} is not text" if value else "is missing, and must be given", path=f".{field}"
            )
    group, name = group_of(raw["apiVersion"]), raw["kind"]
    right = right_group(group, name)
    if right is not None:
        raise InputError(
            f"{shown(raw['apiVersion'])} has no kind {name}; write {right + '/v1' if right else 'v1'}",
            path=".apiVersion",
        )
    return KINDS.get((group, name))


def _metadata(raw: dict[str, Any]) -> dict[str, Any]:
    metadata = raw.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _with_namespace(raw: dict[str, Any], kind: Kind) -> dict[str, Any]:
    """The object with the namespace `default` where it needs one and has none; the argument is not changed."""
    metadata = raw.get("metadata", {})
    if not kind.namespaced or not isinstance(metadata, dict) or metadata.get("namespace"):
        return raw
    return {**raw, "metadata": {**metadata, "namespace": "default"}}


def _label(raw: dict[str, Any]) -> str:
    """The object as errors name it: `Pod default/web`, or the kind alone for one without a name."""
    kind, metadata = raw.get("kind"), _metadata(raw)
    if not isinstance(kind, str):
        return ""
    name, namespace = metadata.get("name"), metadata.get("namespace")
    if not isinstance(name, str) or not name:
        return kind
    return f"{kind} {namespace}/{name}" if isinstance(namespace, str) and namespace else f"{kind} {name}"


def _refuse_duplicates(documents: Iterable[Document]) -> None:
    first: dict[tuple[str, str, Any, str], Document] = {}
    for document in documents:
        metadata = _metadata(document.raw)
        name = metadata.get("name")
        if not isinstance(name, str) or not name:
            continue
        raw = document.raw
        key = (group_of(raw["apiVersion"]), raw["kind"], str(metadata.get("namespace", "")), name)
        other = first.setdefault(key, document)
        if other is not document:
            raise InputError(
                f"is given twice, first in {other.source}, document {other.index}; remove one",
                source=document.source,
                document=document.index,
                object=_label(raw),
            )
