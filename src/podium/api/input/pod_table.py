"""Tables of pods, as snapshots have them: what pods share once, and beside it each pod's own values.

A table is an object of podium.dev among the others of the file:

    {"apiVersion": "podium.dev/v1alpha1", "kind": "PodTable", "format": 1,
     "parts": [METADATA, SPEC, STATUS, ...],
     "rows": [[0, 1, 2, "VALUES"], ...]}

A row names its parts by number (-1 for no status). If it names none (-1, -1, -1), its text is the pod's JSON. Markers
in a part stand for the values of each pod (`podium.api.input.dumped_pods`). Each combination of parts is validated
once, like the pods of a dump, and each pod's values by their form; a row with anything unusual is read as the pod that
it stands for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from podium.api.errors import InputError
from podium.api.input.dumped_pods import DumpedPods, PodForm, SharedText
from podium.api.input.exact_json import UncertainError, decode
from podium.api.input.pod_stencil import ReadPod
from podium.api.snapshot import API_VERSION

KIND = "PodTable"
FORMAT = 1
"""The version of the table format. A higher number is for one that this Podium would misunderstand."""

_OPENING = b'{"apiVersion":"%b","kind":"%b",' % (API_VERSION.encode(), KIND.encode())
# The text around the parts of a pod, without and with a status.
_BEFORE, _SPEC, _STATUS, _AFTER = b'{"apiVersion":"v1","kind":"Pod","metadata":', b',"spec":', b',"status":', b"}"
_FRAMES = {2: (_BEFORE, _SPEC, _AFTER), 3: (_BEFORE, _SPEC, _STATUS, _AFTER)}
_NO_PART = -1
_NO_PARTS = (_NO_PART, _NO_PART, _NO_PART)
# Values of a row: of these, each once; then addresses and container ids; then the times of each part.
_FIXED_VALUES = 6
_KINDS = 3
# A table of fewer pods saves nothing.
_FEWEST_ROWS = 16
_MOST_ROWS = 16_384


class _Row(msgspec.Struct, array_like=True, forbid_unknown_fields=True, gc=False, frozen=True):
    metadata: int
    spec: int
    status: int
    values: str


class _PodTable(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    api_version: str
    kind: str
    parts: list[msgspec.Raw]
    rows: list[_Row]
    format: int = FORMAT


class _Format(msgspec.Struct):
    format: int = FORMAT


class PodTableWriter:
    """A writer of tables, from the texts of pods one after another."""

    def __init__(self) -> None:
        self._pods = DumpedPods()
        self._parts: dict[bytes, int] = {}
        self._rows: list[_Row] = []

    def add(self, text: bytes) -> bool:
        """Add a pod in compact JSON; return False for any other object."""
        if not text.startswith(_BEFORE):
            return False
        shared = self._pods.shared_text(text)
        if shared is None or shared.frame != _FRAMES[len(shared.parts)] or bytes(shared) != text:
            self._rows.append(_Row(*_NO_PARTS, text.decode()))
            return True
        numbers = [self._parts.setdefault(part, len(self._parts)) for part in shared.parts]
        metadata, spec, status = (*numbers, _NO_PART)[:3]
        self._rows.append(_Row(metadata, spec, status, shared.values))
        return True

    @property
    def is_full(self) -> bool:
        """Whether the table should be taken before more pods are added."""
        return len(self._rows) >= _MOST_ROWS

    def take(self) -> list[bytes]:
        """Return the items for the pods since the last call: a table, or few pods as they are."""
        rows, parts = self._rows, list(self._parts)
        self._rows, self._parts = [], {}
        if len(rows) < _FEWEST_ROWS:
            return [_text_of(row, parts, number) for number, row in enumerate(rows)]
        table = {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "format": FORMAT,
            "parts": [msgspec.Raw(part) for part in parts],
        }
        return [msgspec.json.encode({**table, "rows": rows})]


def is_table(raw: dict[str, Any]) -> bool:
    """Return whether an object is a table of pods."""
    return raw.get("kind") == KIND and raw.get("apiVersion") == API_VERSION


def is_table_text(item: bytes) -> bool:
    """Return whether the text is that of a table as a snapshot has it."""
    return item.startswith(_OPENING)


def read_table(table: bytes, pods: DumpedPods) -> Iterator[ReadPod | bytes]:
    """Yield the pods of a table; of one that may have findings, the text instead.

    Raises InputError for a table that is damaged, or written by a newer Podium.
    """
    found = _decoded(table)
    parts = [bytes(part) for part in found.parts]
    forms: dict[tuple[int, int, int], PodForm | None] = {_NO_PARTS: None}
    for number, row in enumerate(found.rows):
        key = (row.metadata, row.spec, row.status)
        if key not in forms:
            forms[key] = pods.form(*_shared_of(row, parts, number))
        form = forms[key]
        pod = None if form is None else form.read(row.values)
        yield _text_of(row, parts, number) if pod is None else pod


def decoded_rows(raw: dict[str, Any]) -> Iterator[Any]:
    """Yield the pods of a table, as written. Raises InputError as `read_table` does."""
    found = _decoded(msgspec.json.encode(raw))
    parts = [bytes(part) for part in found.parts]
    for number, row in enumerate(found.rows):
        try:
            yield decode(_text_of(row, parts, number))
        except UncertainError:
            problem = "is not the JSON of a pod; take the snapshot again"
            raise InputError(problem, path=f".rows[{number}]", object=KIND) from None


def _decoded(table: bytes) -> _PodTable:
    try:
        written = msgspec.json.decode(table, type=_Format).format
        if written > FORMAT:
            problem = (
                f"{written} is written by a newer Podium; this one reads {FORMAT}: take the snapshot with this one"
            )
            raise InputError(problem, path=".format", object=KIND)
        return msgspec.json.decode(table, type=_PodTable)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"the table of pods is damaged: {error}; take the snapshot again", object=KIND) from None


def _shared_of(row: _Row, parts: list[bytes], number: int) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
    """Return the frame and the parts of a row. Raises InputError for parts that are not there."""
    named = (row.metadata, row.spec) if row.status == _NO_PART else (row.metadata, row.spec, row.status)
    if not all(0 <= part < len(parts) for part in named):
        problem = f"names parts {', '.join(map(str, named))}, and there are {len(parts)}; take the snapshot again"
        raise InputError(problem, path=f".rows[{number}]", object=KIND)
    return _FRAMES[len(named)], tuple(parts[part] for part in named)


def _text_of(row: _Row, parts: list[bytes], number: int) -> bytes:
    """Return the text of the pod that a row stands for. Raises InputError for values that are not those of a pod."""
    if (row.metadata, row.spec, row.status) == _NO_PARTS:
        return row.values.encode()
    frame, shared = _shared_of(row, parts, number)
    kinds = row.values.split("|")
    if len(kinds) != _KINDS + len(shared) or len(kinds[0].split(" ")) != _FIXED_VALUES:
        raise InputError("has not the values of a pod; take the snapshot again", path=f".rows[{number}]", object=KIND)
    return bytes(SharedText(frame, shared, row.values))
