"""Bodies in JSON, read as kube-apiserver reads them.

Of a field that is given twice the last counts, and there is something to say about it. What no object can hold is
refused: numbers beyond all bounds, half characters, and what lies too deep.
"""

from __future__ import annotations

import json
import math
from typing import Any, NamedTuple

from podium.api.errors import escape, field_path
from podium.api.input.exact_json import UncertainError, decode_with_nulls
from podium.api.input.yaml import MAX_DEPTH
from podium.store.errors import bad_request

_SHOWN = 200
_MOST_TOLD = 10


class Body(NamedTuple):
    """What a body holds, and the fields that are in it twice."""

    value: Any
    repeated: tuple[str, ...] = ()


class _Entries(list[tuple[str, Any]]):
    """The entries of an object as they were written."""


def read_json(data: bytes) -> Body:
    """What a body holds, with its nulls. Raises StoreError 400."""
    try:
        return Body(decode_with_nulls(data)[0])
    except UncertainError:
        return _read_closely(data)


def _read_closely(data: bytes) -> Body:
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
    return Body(value, tuple(repeated[:_MOST_TOLD]))


def _value(written: Any, path: str, levels: int, repeated: list[str]) -> Any:
    """What was written, and into `repeated` the paths of the fields that were given more than once."""
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


_READER: dict[str, Any] = {
    "object_pairs_hook": _Entries,
    "parse_float": _float,
    "parse_constant": _constant,
}
