"""An HTTP request in processing: its target, its caller, and its body."""

from __future__ import annotations

import asyncio
import json
import math
import re
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple, Protocol
from urllib.parse import parse_qsl, unquote

from aiohttp import HttpVersion11, hdrs
from aiohttp.web import BaseRequest, StreamResponse
from multidict import CIMultiDictProxy

from podium.api.errors import InputError, escape, field_path, shown
from podium.api.input.json import UncertainError, decode_with_nulls
from podium.api.input.yaml import MAX_DEPTH, parse_documents
from podium.api.times import SECOND, parse_duration
from podium.apirequests.http_mapping import JSON, YAML, ResourcePath
from podium.server.http.metrics import Subject, subject_of_method
from podium.server.http.security import Caller
from podium.server.protobuf import decode as decode_protobuf
from podium.store.errors import StoreError, bad_request

_LONGEST_MANAGER = 128
_MOST_PARAMETERS = 1_000
_SHOWN = 200
_MOST_REPORTED = 10


@dataclass(slots=True)
class Exchange:
    """A request: its decoded path and query, caller, subject, and response headers.

    `place` is its place among the API objects, None for other paths. `audited` are annotations of its audit Event.
    """

    request: BaseRequest
    path: str
    query: list[tuple[str, str]]
    caller: Caller
    reply_headers: dict[str, str]
    place: ResourcePath | None = None
    audited: Mapping[str, str] = field(default_factory=dict)
    method: str = field(init=False)
    headers: CIMultiDictProxy[str] = field(init=False)
    subject: Subject = field(init=False)

    def __post_init__(self) -> None:
        self.method, self.headers = self.request.method, self.request.headers
        self.subject = subject_of_method(self.method)

    def accepts(self) -> str:
        found = self.headers.getall("Accept", ())
        return found[0] if len(found) == 1 else ",".join(found)


def seconds_of(timeout: str, most: float) -> float:
    """Return the timeout that a client states, in seconds. Raises StoreError 400 for an invalid duration."""
    if not timeout:
        return most
    try:
        seconds = parse_duration(timeout) / SECOND
    except ValueError as error:
        raise bad_request(f"invalid timeout specified in the request URL: {error}") from None
    return min(seconds, most) if seconds > 0 else most


def check_timeout(query: list[tuple[str, str]]) -> None:
    """Raise StoreError 400 for a query with an invalid timeout."""
    seconds_of(next((value for name, value in query if name == "timeout"), ""), 0.0)


@lru_cache(maxsize=256)
def program_of(user_agent: str) -> str:
    """Return the program's name in a User-Agent header, `unknown` if it names none.

    Source: apiserver's handlers/create.go (prefixFromUserAgent), apimachinery's managedfields/internal/
    buildmanagerinfo.go.
    """
    name = user_agent.partition("/")[0]
    return "".join(letter for letter in name if letter.isprintable())[:_LONGEST_MANAGER] or "unknown"


def read_target(raw: str) -> tuple[str, list[tuple[str, str]]]:
    """Return the path and query of a request line's target. Raises StoreError 400."""
    path, _, query = raw.partition("?")
    if path[:1] != "/":
        # Requests to proxies contain absolute URLs.
        path = "/" + path.partition("://")[2].partition("/")[2]
    if "%" in path:
        path = unquote(path)
    if not query:
        return path, []
    try:
        return path, parse_qsl(query, keep_blank_values=True, max_num_fields=_MOST_PARAMETERS)
    except ValueError:
        raise bad_request(f"the query has more than {_MOST_PARAMETERS} parameters") from None


class Pages(Protocol):
    """An interface to web pages and their assets, under paths of their own."""

    def has(self, path: str) -> bool: ...

    def is_public(self, method: str, path: str) -> bool:
        """Return whether the path needs no authentication because it shows nothing of the cluster."""

    async def answer(self, exchange: Exchange) -> StreamResponse:
        """Answer a request at such a path. Raises StoreError for a request that is refused."""


class Body(NamedTuple):
    """The content of a body, and the problems of its repeated fields."""

    value: Any
    repeated: tuple[str, ...] = ()


class _Entries(list[tuple[str, Any]]):
    """The entries of an object in their written order."""


def read_json(data: bytes) -> Body:
    """Return the content of a body, including nulls. Raises StoreError 400."""
    with suppress(UncertainError):
        return Body(decode_with_nulls(data)[0])
    try:
        written = json.loads(data.decode("utf-8"), **_READER)
        repeated: list[str] = []
        value = _value(written, "", MAX_DEPTH, repeated)
        json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise bad_request(f"the body is nested too deep; at most {MAX_DEPTH} levels are allowed") from None
    except UnicodeEncodeError:
        raise bad_request("the body has half a surrogate pair, which is not a character") from None
    except UnicodeDecodeError:
        raise bad_request("the body is not in UTF-8") from None
    except ValueError as error:
        raise bad_request(f"the body is not valid JSON: {escape(str(error), _SHOWN)}") from None
    return Body(value, tuple(f'duplicate field "{field}"' for field in repeated[:_MOST_REPORTED]))


def _value(written: Any, path: str, levels: int, repeated: list[str]) -> Any:
    """Return the parsed value, and append the paths of repeated fields to `repeated`."""
    if levels == 0:
        raise RecursionError
    if isinstance(written, _Entries):
        found: dict[str, Any] = {}
        for key, value in written:
            inner = field_path(path, key)
            if key in found:
                repeated.append(inner.removeprefix("."))
                # The last one counts, and so does its place.
                del found[key]
            found[key] = _value(value, inner, levels - 1, repeated)
        return found
    if isinstance(written, list):
        return [_value(item, f"{path}[{index}]", levels - 1, repeated) for index, item in enumerate(written)]
    return written


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text} is too large for a number")
    return number


def _constant(text: str) -> float:
    raise ValueError(f"{text} is not a number that objects can hold")


_READER: dict[str, Any] = {"object_pairs_hook": _Entries, "parse_float": _float, "parse_constant": _constant}


_LONG_NUMBER = re.compile(rb"\d{19}")


def with_floats(value: Any, data: bytes) -> Any:
    """Return a value from these bytes with floats for integers beyond 64 bits, as kube-apiserver reads them.

    Raises StoreError 400 for a number that is too large for that.
    """
    if not _LONG_NUMBER.search(data):
        return value
    try:
        return _with_floats(value)
    except OverflowError:
        raise bad_request("the body has a number that is too large") from None


def _with_floats(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_floats(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_with_floats(inner) for inner in value]
    return float(value) if isinstance(value, int) and not -(2**63) <= value < 2**63 else value


# Larger bodies are decoded in a thread, off the event loop. YAML takes fifty times as long as JSON.
_LARGE = 64 * 1024
_LARGE_YAML = 2 * 1024
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_NO_BODY = Body(None)


async def read_body(request: BaseRequest, most_bytes: int, seconds: float) -> bytes:
    """Return the whole body. Raises StoreError 413 for more than `most_bytes`, 504 after `seconds`."""
    length = request.content_length
    if length is not None and length > most_bytes:
        raise _too_large(most_bytes)
    content = request.content
    if content.is_eof() and content.total_bytes <= most_bytes:
        data = content.read_nowait() if content.total_bytes else b""
    else:
        try:
            async with asyncio.timeout(seconds):
                if request.headers.get(hdrs.EXPECT, "").lower() == "100-continue" and request.version == HttpVersion11:
                    await request.writer.write(_CONTINUE)
                    # The interim response does not count as a part of the response.
                    request.writer.output_size = 0
                data = await _read(request, most_bytes)
        except TimeoutError:
            problem = "Timeout: request did not complete within the allotted timeout"
            raise StoreError(504, "Timeout", problem) from None
    encoding = request.headers.get(hdrs.CONTENT_ENCODING)
    return data if encoding is None else _unpacked(data, encoding, most_bytes)


async def decode(data: bytes, content_type: str) -> Body:
    """Return the decoded body of a content type; no content for no bytes. Raises StoreError 400."""
    if not data:
        return _NO_BODY
    if len(data) <= (_LARGE_YAML if content_type == YAML else _LARGE):
        return _decode(data, content_type)
    return await asyncio.get_running_loop().run_in_executor(None, _decode, data, content_type)


def _decode(data: bytes, content_type: str) -> Body:
    if content_type == JSON:
        return read_json(data)
    if content_type != YAML:
        try:
            return Body(decode_protobuf(data))
        except ValueError as error:
            raise bad_request(str(error)) from None
    if data[:1] == b"{":
        # JSON is also YAML, and is parsed many times faster as JSON. Repeated fields are reported with their lines.
        with suppress(StoreError):
            if not (body := read_json(data)).repeated:
                return body
    repeated: list[str] = []
    try:
        documents = list(parse_documents(data.decode("utf-8"), repeated=repeated))
    except UnicodeDecodeError:
        raise bad_request("the body is not in UTF-8") from None
    except InputError as error:
        raise bad_request(str(error)) from None
    if len(documents) > 1:
        raise bad_request("the body has more than one document")
    return Body(documents[0][1], tuple(repeated[:_MOST_REPORTED])) if documents else _NO_BODY


async def _read(request: BaseRequest, most_bytes: int) -> bytes:
    content = request.content
    chunks: list[bytes] = []
    size = 0
    while True:
        chunk = await content.readany()
        if not chunk and content.at_eof():
            return b"".join(chunks)
        size += len(chunk)
        if size > most_bytes:
            raise _too_large(most_bytes)
        chunks.append(chunk)


def _unpacked(data: bytes, encoding: str, most_bytes: int) -> bytes:
    """Return the bytes of a gzip-encoded body, decompressing no more than the limit."""
    if encoding.lower() == "identity":
        return data
    if encoding.lower() != "gzip":
        raise StoreError(415, "UnsupportedMediaType", f"the content encoding {shown(encoding)} is not read; gzip is")
    unpacking = zlib.decompressobj(wbits=31)
    try:
        unpacked = unpacking.decompress(data, most_bytes + 1)
    except zlib.error as error:
        raise bad_request(f"the body is not in gzip: {error}") from None
    if len(unpacked) > most_bytes:
        raise _too_large(most_bytes)
    if not unpacking.eof or unpacking.unused_data:
        raise bad_request("the body is not one whole piece of gzip")
    return unpacked


def _too_large(most_bytes: int) -> StoreError:
    return StoreError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {most_bytes}")
