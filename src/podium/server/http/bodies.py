"""Request bodies: size limits and decoding."""

from __future__ import annotations

import asyncio
import json
import math
import re
import zlib
from contextlib import suppress
from typing import Any, NamedTuple

from aiohttp import HttpVersion11, hdrs
from aiohttp.web import BaseRequest

from podium.api.errors import InputError, escape, field_path, shown
from podium.api.input.json import UncertainError, decode_with_nulls
from podium.api.input.yaml import MAX_DEPTH, parse_documents
from podium.apirequests.http_mapping import JSON, YAML
from podium.server.protobuf import decode as decode_protobuf
from podium.store.errors import StoreError, bad_request

_SHOWN = 200
_MOST_REPORTED = 10


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
        raise bad_request(f"the body is nested too deep; at most {MAX_DEPTH} levels are taken") from None
    except UnicodeEncodeError:
        raise bad_request("the body has half a surrogate pair, which is no character") from None
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


async def decoded(data: bytes, content_type: str) -> Body:
    """Return the decoded body of a content type; no content for no bytes. Raises StoreError 400."""
    if not data:
        return _NO_BODY
    if len(data) <= (_LARGE_YAML if content_type == YAML else _LARGE):
        return _decoded(data, content_type)
    return await asyncio.get_running_loop().run_in_executor(None, _decoded, data, content_type)


def _decoded(data: bytes, content_type: str) -> Body:
    if content_type == JSON:
        return read_json(data)
    if content_type != YAML:
        try:
            return Body(decode_protobuf(data))
        except ValueError as error:
            raise bad_request(str(error)) from None
    if data[:1] == b"{":
        # JSON is also YAML, and is parsed many times faster as JSON.
        with suppress(StoreError):
            return read_json(data)
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
