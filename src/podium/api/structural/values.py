"""The conversion of an object's values to CEL values, by the types of its schema.

Source: apiserver (pkg/cel/common/values.go, pkg/cel/common/schemas.go), apiserver (pkg/cel/escaping.go).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Any

from podium.api.cel.moments import Duration, Timestamp
from podium.api.cel.values import EvaluationError, Value
from podium.api.structural.rules import escaped
from podium.api.structural.structural import ANYTHING, Structural


def seen(value: Any, node: Structural) -> Value:
    """Return the CEL value at a location of a schema. Text that does not match its format stays text."""
    if isinstance(value, Mapping):
        return _object(value, node)
    if isinstance(value, list):
        items = node.items or ANYTHING
        return tuple([seen(item, items) for item in value])
    if isinstance(value, str):
        return _text(value, node)
    if node.type == "number" and type(value) is int:
        try:
            return float(value)
        except OverflowError:
            return value
    return value


def _object(value: Mapping[str, Any], node: Structural) -> Value:
    if node.values is not None and not node.properties:
        values = node.values
        return {key: seen(inner, values) for key, inner in value.items()}
    return {escaped(key): seen(inner, node.properties.get(key, ANYTHING)) for key, inner in value.items()}


def _text(value: str, node: Structural) -> Value:
    read = _FORMATS.get(node.said.get("format", "")) if node.type == "string" else None
    if read is None:
        return value
    try:
        return read(value)
    except (EvaluationError, binascii.Error, ValueError):
        return value


_FORMATS: Mapping[str, Callable[[str], Value]] = {
    "byte": lambda text: base64.b64decode(text, validate=True),
    "date": lambda text: Timestamp.of(f"{text}T00:00:00Z"),
    "date-time": Timestamp.of,
    "duration": Duration.of,
}
