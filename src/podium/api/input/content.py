"""The content of a file: JSON or YAML text, and the values of its documents."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from io import BytesIO
from typing import Any

from podium.api.errors import InputError
from podium.api.input import json, yaml

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
