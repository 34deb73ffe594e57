"""HTTP responses: their content, and how they are sent."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from http import HTTPStatus
from typing import Any

import msgspec
import yaml
from aiohttp.web import BaseRequest, Response, StreamResponse
from multidict import CIMultiDict

from podium.api.input.yaml import Dumper
from podium.api.meta import Raw
from podium.apirequests.http_mapping import JSON, PROTOBUF, YAML
from podium.server.protobuf import encode, encode_item, encode_list, message_of
from podium.store.api_resources import APIResource
from podium.store.errors import StoreError
from podium.store.listing import ListPage
from podium.store.stored import encoded
from podium.store.verbs.updates import SCALE

GZIP_FROM = 128 * 1024
"""The size in bytes from which responses are compressed (apiserver's handlers/responsewriters)."""

_PIECE = 256 * 1024
_LONGEST_WARNING = 2_000
_BROWSERS = ("curl", "Wget", "Mozilla/5.0")
_META = "meta.k8s.io"
_TABLE = "Table"
_META_VERSIONS = ("v1", "v1beta1")
_PARTIAL, _PARTIAL_LIST = "PartialObjectMetadata", "PartialObjectMetadataList"
_KINDS = dict.fromkeys((_TABLE, _PARTIAL, _PARTIAL_LIST), _META_VERSIONS)
_GIVEN = {JSON: JSON, YAML: YAML, PROTOBUF: PROTOBUF, "*/*": JSON, "application/*": JSON}
# The number of objects that are encoded before the event loop runs other tasks.
_AT_A_TIME = 500
_ENCODED_AT_A_TIME = 20

MakeTable = Callable[[APIResource, list[Raw]], Raw]


class Reply(msgspec.Struct, kw_only=True):
    """A response: its code, the pieces of its body, their content type, and further headers."""

    code: int = 200
    pieces: Sequence[bytes] = ()
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()
    may_be_compressed: bool = False
    may_be_indented: bool = False
    closes: bool = False


def of_object(raw: Any, code: int = 200, content_type: str = JSON) -> Reply:
    """Return an object as JSON, YAML or protobuf, if it has that form; `content_type` may have parameters."""
    if content_type.startswith(PROTOBUF):
        if message_of(str(raw.get("apiVersion")), str(raw.get("kind"))):
            return Reply(code=code, pieces=(encode(raw),), content_type=content_type)
        content_type = JSON
    if content_type.startswith(YAML):
        text = yaml.dump(raw, Dumper=Dumper, allow_unicode=True)
        return Reply(code=code, pieces=(text.encode(),), content_type=content_type)
    return Reply(code=code, pieces=(encoded(raw),), content_type=content_type, may_be_indented=True)


def of_error(error: StoreError, content_type: str = JSON) -> Reply:
    """Return a refusal as a Status, in JSON or protobuf.

    The refusal of a pod's disruption has no Retry-After header: kubectl waits for it silently, even past its --timeout.
    Without the header kubectl shows the message and tries again every five seconds. The time to wait is in the details.
    """
    is_judged = error.details.get("kind") == "pods" and error.code == HTTPStatus.TOO_MANY_REQUESTS
    seconds = 0 if is_judged else error.details.get("retryAfterSeconds")
    headers = (("Retry-After", str(seconds)),) if seconds else ()
    reply = of_object(error.to_dict(), error.code, content_type if content_type == PROTOBUF else JSON)
    return msgspec.structs.replace(reply, headers=headers, closes=error.code in (413, 504))


def error_type(accept: str) -> str:
    """Return the content type of a refusal for an Accept header."""
    try:
        return negotiated(accept, has_protobuf=True).content_type
    except StoreError:
        return JSON


def of_text(text: str, code: int = 200, content_type: str = "text/plain; charset=utf-8") -> Reply:
    """Return a response with text, for people or in another format."""
    return Reply(code=code, pieces=(text.encode(),), content_type=content_type)


def warned(reply: Reply, warnings: Iterable[str]) -> Reply:
    """Return the response with a header for each warning (RFC 7234, 5.5; apimachinery's util/net NewWarningHeader)."""
    headers = [*reply.headers]
    for text in warnings:
        plain = "".join(letter if letter.isprintable() else "?" for letter in text[:_LONGEST_WARNING])
        quoted = plain.replace("\\", "\\\\").replace('"', '\\"')
        headers.append(("Warning", f'299 - "{quoted}"'))
    return msgspec.structs.replace(reply, headers=tuple(headers)) if len(headers) > len(reply.headers) else reply


async def send(request: BaseRequest, reply: Reply, head: dict[str, str]) -> StreamResponse:
    """Send a response with the common headers.

    An object is indented on request, or for a program that shows it to people.
    """
    pretty = request.query.get("pretty") if "pretty=" in request.raw_path else None
    is_shown = (
        request.headers.get("User-Agent", "").startswith(_BROWSERS) if pretty is None else pretty not in ("0", "false")
    )
    if is_shown and reply.may_be_indented and reply.pieces and reply.content_type.startswith(JSON):
        indented = msgspec.json.format(b"".join(reply.pieces), indent=2)
        reply = msgspec.structs.replace(reply, pieces=(indented + b"\n",))
    headers: CIMultiDict[str] = CIMultiDict(head)
    headers["Content-Type"] = reply.content_type
    headers.extend(reply.headers)
    pieces, size = reply.pieces, sum(map(len, reply.pieces))
    if size > GZIP_FROM and reply.may_be_compressed and "gzip" in request.headers.get("Accept-Encoding", ""):
        pieces = await asyncio.get_running_loop().run_in_executor(None, _compressed, pieces)
        size = sum(map(len, pieces))
        headers["Content-Encoding"] = "gzip"
        headers["Vary"] = "Accept-Encoding"
    response: StreamResponse
    if is_small := size <= _PIECE:
        response = Response(body=b"".join(pieces), status=reply.code, headers=headers)
    else:
        response = StreamResponse(status=reply.code, headers=headers)
    if reply.closes:
        response.force_close()
    if is_small:
        return response
    response.content_length = size
    await response.prepare(request)
    for piece in _sized(pieces):
        await response.write(piece)
    return response


def _sized(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the same bytes in pieces of a suitable size."""
    waiting: list[bytes] = []
    size = 0
    for piece in pieces:
        waiting.append(piece)
        size += len(piece)
        if size >= _PIECE:
            yield b"".join(waiting)
            waiting.clear()
            size = 0
    if waiting:
        yield b"".join(waiting)


def _compressed(pieces: Iterable[bytes]) -> list[bytes]:
    """Return the bytes in gzip, with the fastest compression level."""
    compressor = zlib.compressobj(level=1, wbits=31)
    return [*filter(None, [compressor.compress(piece) for piece in _sized(pieces)]), compressor.flush()]


class ResponseForm(msgspec.Struct, frozen=True):
    """The content type, and the target type of a response: "" for no conversion, Table, or metadata alone."""

    content_type: str = JSON
    kind: str = ""
    version: str = "v1"

    @property
    def is_table(self) -> bool:
        return self.kind == _TABLE

    @property
    def is_protobuf(self) -> bool:
        return self.content_type == PROTOBUF

    @property
    def meta_version(self) -> str:
        """The API version of tables and of metadata alone."""
        return f"{_META}/{self.version}"

    @property
    def header(self) -> str:
        plain = self.content_type
        return f"{plain};as={self.kind};v={self.version};g={_META}" if self.is_table else plain

    def check(self, *, is_list: bool) -> None:
        """Raise StoreError 406 for the metadata of one object that is to be a list, or the reverse."""
        if self.kind == (_PARTIAL if is_list else _PARTIAL_LIST):
            problem = f"you requested {self.kind}, but the requested object is {'a list' if is_list else 'not a list'}"
            raise StoreError(406, "NotAcceptable", problem)


PLAIN_FORM = ResponseForm()


@lru_cache(maxsize=256)
def negotiated(
    accept: str, *, has_protobuf: bool = False, prefers_json: bool = False, has_tables: bool = True
) -> ResponseForm:
    """Return the first supported format in an Accept header. Raises StoreError 406 if there is none.

    With `prefers_json`, protobuf comes after all others. `has_protobuf` says whether the objects have that form;
    metadata alone always has it, and tables never.
    """
    forms = [PLAIN_FORM] if not accept else [_form(clause, has_protobuf) for clause in accept.split(",")]
    found = [form for form in forms if form is not None and (has_tables or not form.is_table)]
    if not found:
        types = (JSON, YAML, PROTOBUF) if has_protobuf else (JSON, YAML)
        problem = f"only the following media types are accepted: {', '.join(types)}"
        raise StoreError(406, "NotAcceptable", problem)
    return min(found, key=lambda form: form.is_protobuf) if prefers_json else found[0]


def _form(clause: str, has_protobuf: bool) -> ResponseForm | None:
    name, *rest = (part.strip() for part in clause.split(";"))
    content_type = _GIVEN.get(name.lower())
    if content_type is None:
        return None
    parameters = dict(part.partition("=")[::2] for part in rest)
    kind = parameters.get("as", "")
    if not kind and not parameters.keys() & {"g", "v"}:
        return ResponseForm(content_type) if has_protobuf or content_type != PROTOBUF else None
    version = parameters.get("v", "")
    is_known = parameters.get("g") == _META and version in _KINDS.get(kind, ())
    if not is_known or (kind == _TABLE and content_type == PROTOBUF):
        return None
    return ResponseForm(content_type, kind, version)


def in_format(raw: Raw, resource: APIResource, form: ResponseForm, make_table: MakeTable) -> Raw:
    """Return an object or its scale in the requested format; other types, such as a Status, are returned unchanged."""
    resource = SCALE if raw.get("kind") == SCALE.kind else resource
    if not form.kind or raw.get("kind") != resource.kind:
        return raw
    form.check(is_list=False)
    if not form.is_table:
        return metadata_of(raw, form)
    version = raw["metadata"].get("resourceVersion", "")
    table = make_table(resource, [raw])
    return {**table, "metadata": {"resourceVersion": version}} if version else table


async def list_reply(page: ListPage, form: ResponseForm, make_table: MakeTable) -> Reply:
    """Return the response for a page of a list; a long one is encoded in batches."""
    form.check(is_list=True)
    head = page.head()
    if form.is_table:
        table = make_table(page.selector.resource, [stored.raw for stored in page.items])
        return of_object({**table, "metadata": head["metadata"]}, content_type=form.header)
    if form.kind:
        head |= {"kind": _PARTIAL_LIST, "apiVersion": form.meta_version}
    if form.is_protobuf:
        encoded_items: list[bytes] = []
        for index, stored in enumerate(page.items):
            if index % _ENCODED_AT_A_TIME == 0:
                await asyncio.sleep(0)
            encoded_items.append(encode_item(metadata_of(stored.raw, form) if form.kind else stored.raw))
        return Reply(pieces=(encode_list(head, encoded_items),), content_type=PROTOBUF)
    if form.kind or form.content_type != JSON:
        items = [metadata_of(stored.raw, form) if form.kind else stored.raw for stored in page.items]
        return of_object({**head, "items": items}, content_type=form.header)
    pieces = [encoded(head)[:-1] + b',"items":[']
    for index, stored in enumerate(page.items):
        if index:
            pieces.append(b",")
            if index % _AT_A_TIME == 0:
                await asyncio.sleep(0)
        pieces.append(stored.encoded)
    pieces.append(b"]}")
    return Reply(pieces=pieces, content_type=form.header, may_be_indented=True)


def metadata_of(raw: Raw, form: ResponseForm) -> Raw:
    """Return only the metadata of an object (meta/v1 PartialObjectMetadata)."""
    return {"kind": _PARTIAL, "apiVersion": form.meta_version, "metadata": raw["metadata"]}
