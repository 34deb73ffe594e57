"""Replies: what they are made of, and how they are sent."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
import yaml
from aiohttp.web import BaseRequest, Response, StreamResponse
from multidict import CIMultiDict

from podium.requests.wire.content_types import JSON, YAML
from podium.store.encoding import encoded
from podium.store.errors import StoreError

GZIP_FROM = 128 * 1024
"""Replies of so many bytes are compressed for those who take that (apiserver's handlers/responsewriters)."""

_PIECE = 256 * 1024
_LONGEST_WARNING = 2_000
_BROWSERS = ("curl", "Wget", "Mozilla/5.0")


class Reply(msgspec.Struct, kw_only=True):
    """A reply: its code, the pieces of its body, what they are, and further headers."""

    code: int = 200
    pieces: Sequence[bytes] = ()
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()
    may_be_compressed: bool = False
    closes: bool = False

    @property
    def size(self) -> int:
        """How many bytes the body has."""
        return sum(map(len, self.pieces))


def of_object(raw: Any, code: int = 200, content_type: str = JSON) -> Reply:
    """An object in JSON or in YAML; `content_type` may have parameters."""
    if content_type.startswith(YAML):
        text = yaml.dump(raw, Dumper=yaml.CSafeDumper, allow_unicode=True)
        return Reply(code=code, pieces=(text.encode(),), content_type=content_type)
    return Reply(code=code, pieces=(encoded(raw),), content_type=content_type)


def of_error(error: StoreError) -> Reply:
    """A refusal, as a Status."""
    seconds = error.details.get("retryAfterSeconds")
    headers = (("Retry-After", str(seconds)),) if seconds else ()
    closes = error.code in (413, 504)
    return Reply(code=error.code, pieces=(encoded(error.to_dict()),), headers=headers, closes=closes)


def of_text(text: str, code: int = 200, content_type: str = "text/plain; charset=utf-8") -> Reply:
    """Something for people, or for those who read another form."""
    return Reply(code=code, pieces=(text.encode(),), content_type=content_type)


def warned(reply: Reply, warnings: Iterable[str]) -> Reply:
    """The reply with a header for each warning (RFC 7234, 5.5; apimachinery's util/net NewWarningHeader)."""
    headers = tuple(("Warning", f'299 - "{_quotable(text)}"') for text in warnings)
    return msgspec.structs.replace(reply, headers=reply.headers + headers) if headers else reply


def is_pretty(said: bool | None, user_agent: str) -> bool:
    """Whether JSON is for the eyes: where that is said, or it goes to a program that shows what it gets."""
    return user_agent.startswith(_BROWSERS) if said is None else said


def prettified(reply: Reply) -> Reply:
    """The reply with its JSON in lines."""
    if not reply.content_type.startswith(JSON):
        return reply
    return msgspec.structs.replace(reply, pieces=(msgspec.json.format(b"".join(reply.pieces), indent=2) + b"\n",))


async def send(request: BaseRequest, reply: Reply, head: dict[str, str]) -> StreamResponse:
    """Send a reply with the headers that all have."""
    headers: CIMultiDict[str] = CIMultiDict(head)
    headers["Content-Type"] = reply.content_type
    headers.extend(reply.headers)
    pieces, size = reply.pieces, reply.size
    if size > GZIP_FROM and reply.may_be_compressed and "gzip" in request.headers.get("Accept-Encoding", ""):
        pieces = await asyncio.get_running_loop().run_in_executor(None, _compressed, pieces)
        size = sum(map(len, pieces))
        headers["Content-Encoding"] = "gzip"
        headers["Vary"] = "Accept-Encoding"
    if size <= _PIECE:
        response: StreamResponse = Response(body=b"".join(pieces), status=reply.code, headers=headers)
        if reply.closes:
            response.force_close()
        return response
    response = StreamResponse(status=reply.code, headers=headers)
    response.content_length = size
    if reply.closes:
        response.force_close()
    await response.prepare(request)
    for piece in _sized(pieces):
        await response.write(piece)
    return response


def _sized(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces of a size that is good to send."""
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
    """The bytes in gzip, done quickly rather than well."""
    compressor = zlib.compressobj(level=1, wbits=31)
    found = [compressor.compress(piece) for piece in _sized(pieces)]
    return [*filter(None, found), compressor.flush()]


def _quotable(text: str) -> str:
    """The text as it can stand between quotes in a header."""
    plain = "".join(letter if letter.isprintable() else "?" for letter in text[:_LONGEST_WARNING])
    return plain.replace("\\", "\\\\").replace('"', '\\"')
