"""Texts in quotes: what their escapes stand for, and what stands outside of them."""

from __future__ import annotations

import re

_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))", re.DOTALL)
_PLAIN = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_KEPT = frozenset("\\\"'`?")


def unquoted(text: str) -> str | bytes:
    """The text or the bytes that a literal stands for. Raises ValueError."""
    prefix = ""
    while text[0] in "rRbB":
        prefix, text = prefix + text[0].lower(), text[1:]
    quote = text[:3] if text[:3] in ('"""', "'''") and len(text) >= 6 else text[0]
    body = text[len(quote) : -len(quote)]
    is_bytes = "b" in prefix
    if "r" in prefix:
        return body.encode() if is_bytes else body
    if not is_bytes:
        return _ESCAPE.sub(_unescaped, body)
    found = bytearray()
    position = 0
    for match in _ESCAPE.finditer(body):
        found += body[position : match.start()].encode()
        # \x41 and \101 are single bytes in a literal of bytes.
        octet = match[1] or match[4]
        found += bytes([int(octet, 16 if match[1] else 8)]) if octet else _unescaped(match).encode()
        position = match.end()
    return bytes(found + body[position:].encode())


def _unescaped(match: re.Match[str]) -> str:
    code = match[1] or match[2] or match[3]
    if code:
        return chr(int(code, 16))
    if match[4]:
        return chr(int(match[4], 8))
    if match[5] in _KEPT:
        return match[5]
    if match[5] not in _PLAIN:
        raise ValueError(f"unknown escape \\{match[5]}")
    return _PLAIN[match[5]]


_TOKEN = re.compile(
    r'''(?P<text>[bB]?[rR]?(?:"""[\s\S]*?"""|\'\'\'[\s\S]*?\'\'\'|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'))'''
    r"|//[^\n]*|(?P<mark>[.\[]\s*\?)\s*"
)


def without_marks(text: str) -> tuple[str, set[int]]:
    """The expression without the marks of what need not be there (`.?`, `[?`), and where that begins.

    It is as long as before, so that all else stays in its place.
    """
    places: set[int] = set()
    parts: list[str] = []
    position = 0
    for match in _TOKEN.finditer(text):
        if match["mark"] is None:
            continue
        question = match.end("mark") - 1
        parts += [text[position:question], " "]
        position = question + 1
        places.add(match.end())
    parts.append(text[position:])
    return "".join(parts), places
