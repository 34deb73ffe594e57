"""The bodies of requests: as many bytes as may be, and what they say."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable

from aiohttp import HttpVersion11, hdrs
from aiohttp.web import BaseRequest

from podium.api.errors import InputError, shown
from podium.api.input.yaml import parse_documents
from podium.requests.wire.content_types import JSON, YAML
from podium.server.http.json_body import Body, read_json
from podium.store.errors import StoreError, bad_request

# Above this, what takes long is done beside the loop.
_LARGE = 64 * 1024
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_NO_BODY = Body(None)


async def read_body(request: BaseRequest, most_bytes: int, seconds: float) -> bytes:
    """All bytes of the body. Raises StoreError 413 for more than `most_bytes`, 504 where they take too long."""
    length = request.content_length
    if length is not None and length > most_bytes:
        raise _too_large(most_bytes)
    content = request.content
    if content.is_eof() and content.total_bytes <= most_bytes:
        data = content.read_nowait() if content.total_bytes else b""
    else:
        try:
            async with asyncio.timeout(seconds):
                await _say_go_on(request)
                data = await _read(request, most_bytes)
        except TimeoutError:
            raise timed_out() from None
    encoding = request.headers.get(hdrs.CONTENT_ENCODING)
    return data if encoding is None else _unpacked(data, encoding, most_bytes)


async def decoded(data: bytes, content_type: str, protobuf: Callable[[bytes], object]) -> Body:
    """What a body says that is written in a type of content; nothing for no bytes. Raises StoreError 400."""
    if not data:
        return _NO_BODY
    if len(data) <= _LARGE:
        return _decoded(data, content_type, protobuf)
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(None, _decoded, data, content_type, protobuf)


def _decoded(data: bytes, content_type: str, protobuf: Callable[[bytes], object]) -> Body:
    if content_type == JSON:
        return read_json(data)
    if content_type == YAML:
        return _read_yaml(data)
    try:
        return Body(protobuf(data))
    except ValueError as error:
        raise bad_request(str(error)) from None


def timed_out() -> StoreError:
    """The request has taken longer than it may."""
    return StoreError(504, "Timeout", "Timeout: request did not complete within the allotted timeout")


async def _say_go_on(request: BaseRequest) -> None:
    """Let a client begin that waits until it is told to."""
    expected = request.headers.get(hdrs.EXPECT, "")
    if expected.lower() == "100-continue" and request.version == HttpVersion11:
        await request.writer.write(_CONTINUE)
        # What follows is the first that is sent of the reply.
        request.writer.output_size = 0


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


def _read_yaml(data: bytes) -> Body:
    if data[:1] == b"{":
        # JSON is YAML too, and read many times faster.
        try:
            return read_json(data)
        except StoreError:
            pass
    try:
        documents = list(parse_documents(data.decode("utf-8")))
    except UnicodeDecodeError:
        raise bad_request("the body is not in UTF-8") from None
    except InputError as error:
        raise bad_request(str(error)) from None
    if len(documents) > 1:
        raise bad_request("the body has more than one document")
    return Body(documents[0][1]) if documents else _NO_BODY


def _unpacked(data: bytes, encoding: str, most_bytes: int) -> bytes:
    """The bytes of a body that is packed in gzip. No more of it is unpacked than may be."""
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
