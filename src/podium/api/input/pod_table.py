"""Tables of pods in snapshots: the shared text once, and the values of each pod.

A table is an object of podium.dev among the others of the file:

    {"apiVersion": "podium.dev/v1alpha1", "kind": "PodTable", "format": 1,
     "stencils": [[TEXT, 0, TEXT, 1, TEXT, 0, TEXT], ...],
     "rows": [[0, "VALUE VALUE"], {"apiVersion": "v1", "kind": "Pod", ...}, ...]}

A stencil is the text of a pod around its own values (`podium.api.input.pod_stencil`), with their numbers. A row is the
number of a stencil and the values, or a pod. The first pod of a stencil is validated like those of a dump, and the
values of all others by their form; a row with anything unusual is read as the pod that it stands for.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import zip_longest
from typing import Any

import msgspec

from podium.api.checks import check_format
from podium.api.errors import InputError
from podium.api.input.documents import API_VERSION
from podium.api.input.json import UncertainError, decode
from podium.api.input.pod_gaps import JSON
from podium.api.input.pod_stencil import BETWEEN, FilledStencil, PodStencil, PodStencils, ReadPod, filled
from podium.api.pod import Pod

KIND = "PodTable"
FORMAT = 1
"""The version of the table format. A higher number is for one that this Podium would misunderstand."""

OPENING = b'{"apiVersion":"%b","kind":"%b",' % (API_VERSION.encode(), KIND.encode())
"""The beginning of a table as a snapshot has it."""

_POD = b'{"apiVersion":"v1","kind":"Pod",'
# A table of fewer pods saves nothing.
_FEWEST_ROWS = 16
_MOST_ROWS = 16_384


class _Row(msgspec.Struct, array_like=True, forbid_unknown_fields=True, gc=False, frozen=True):
    stencil: int
    values: str


class _PodTable(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    api_version: str
    kind: str
    stencils: list[list[str | int]]
    rows: list[msgspec.Raw]
    format: int = FORMAT


class _Format(msgspec.Struct):
    format: int = FORMAT


_ROW = msgspec.json.Decoder(_Row)


class _Stencil:
    """A stencil as a table has it: the text around the gaps, and the number of the value in each."""

    __slots__ = ("around", "count", "is_sound", "known", "numbers")

    def __init__(self, parts: list[str | int]) -> None:
        self.around = tuple(part.encode() for part in parts if isinstance(part, str))
        self.numbers = [part for part in parts if isinstance(part, int)]
        self.count = len({*self.numbers})
        self.is_sound = len(self.numbers) + 1 == len(self.around) and {*self.numbers} == {*range(self.count)}
        # The stencil of the reader, once it has learned a pod with this text.
        self.known: PodStencil | None = None

    def gaps(self, values: str) -> bytes:
        """Return the content of the gaps. Raises ValueError for values that are not those of a pod."""
        found = values.encode().split(BETWEEN)
        if not self.is_sound or len(found) != self.count:
            raise ValueError(values)
        return BETWEEN.join([found[number] for number in self.numbers])


class PodTableWriter:
    """A writer of tables, from the texts of pods one after another."""

    def __init__(self) -> None:
        self._stencils = PodStencils(JSON)
        self._rows: list[bytes | FilledStencil] = []

    def add(self, text: bytes) -> bool:
        """Add a pod in compact JSON; return False for any other object."""
        if not text.startswith(_POD):
            return False
        row = self._row(text)
        if row is text:
            # A pod that cannot be read is no stencil.
            with suppress(msgspec.ValidationError, RecursionError):
                self._stencils.of(text, {}).learn(text, msgspec.json.decode(text, type=Pod))
        self._rows.append(row)
        return True

    @property
    def is_full(self) -> bool:
        """Return whether the table should be taken before more pods are added."""
        return len(self._rows) >= _MOST_ROWS

    def take(self) -> list[bytes]:
        """Return the items for the pods since the last call: a table, or few pods as they are."""
        taken, self._rows = self._rows, []
        if len(taken) < _FEWEST_ROWS:
            return [bytes(row) for row in taken]
        numbers: dict[PodStencil, int] = {}
        rows: list[_Row | msgspec.Raw] = []
        for early in taken:
            # The pod that a stencil was made of came before it.
            row = self._row(early) if isinstance(early, bytes) else early
            if isinstance(row, bytes):
                rows.append(msgspec.Raw(row))
            else:
                number = numbers.setdefault(row.stencil, len(numbers))
                rows.append(_Row(number, row.stencil.distinct(row.gaps).decode()))
        stencils = [
            [part for pair in zip_longest(map(bytes.decode, stencil.around), stencil.numbers) for part in pair][:-1]
            for stencil in numbers
        ]
        table = {"apiVersion": API_VERSION, "kind": KIND, "format": FORMAT, "stencils": stencils, "rows": rows}
        return [msgspec.json.encode(table)]

    def _row(self, text: bytes) -> bytes | FilledStencil:
        """Return the pod in terms of a stencil if there is one, otherwise the text."""
        found = self._stencils.of(text, {}).read(text)
        return text if found is None or not isinstance(found.text, FilledStencil) else found.text


def is_table(raw: dict[str, Any]) -> bool:
    """Return whether an object is a table of pods."""
    return raw.get("kind") == KIND and raw.get("apiVersion") == API_VERSION


def read_table(table: bytes, stencils: PodStencils) -> Iterator[ReadPod | bytes]:
    """Yield the pods of a table; of one that may have findings, the text instead, which the stencils may learn.

    Raises InputError for a table that is damaged, or written by a newer Podium.
    """
    for item, stencil, gaps in _rows(_decoded(table)):
        if stencil is None:
            yield item
            continue
        pod = None if stencil.known is None else stencil.known.read_gaps(gaps)
        if pod is not None:
            yield pod
            continue
        text = filled(stencil.around, gaps)
        yield text
        stencil.known = stencils.of(text, {}).like(stencil.around)


def decoded_rows(raw: dict[str, Any]) -> Iterator[Any]:
    """Yield the pods of a table, as written. Raises InputError as `read_table` does."""
    for number, (item, stencil, gaps) in enumerate(_rows(_decoded(msgspec.json.encode(raw)))):
        try:
            yield decode(item if stencil is None else filled(stencil.around, gaps))
        except UncertainError:
            raise _damaged_row(number, "is not the JSON of a pod") from None


def _decoded(table: bytes) -> _PodTable:
    try:
        check_format(msgspec.json.decode(table, type=_Format).format, FORMAT)
        return msgspec.json.decode(table, type=_PodTable)
    except InputError as error:
        raise error.located(object=KIND) from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"the table of pods is damaged: {error}; take the snapshot again", object=KIND) from None


def _rows(table: _PodTable) -> Iterator[tuple[bytes, _Stencil | None, bytes]]:
    """Yield the rows: each with its stencil and the content of the gaps, None and "" for a pod as it is.

    Raises InputError for anything else.
    """
    stencils = [_Stencil(parts) for parts in table.stencils]
    for number, item in enumerate(table.rows):
        text = bytes(item)
        if text.startswith(_POD):
            yield text, None, b""
            continue
        try:
            row = _ROW.decode(text)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise _damaged_row(number, "is neither a pod nor the values of one") from None
        if not 0 <= row.stencil < len(stencils):
            raise _damaged_row(number, f"names stencil {row.stencil}, and there are {len(stencils)}")
        stencil = stencils[row.stencil]
        try:
            yield text, stencil, stencil.gaps(row.values)
        except ValueError:
            raise _damaged_row(number, "has not the values of a pod") from None


def _damaged_row(number: int, problem: str) -> InputError:
    return InputError(f"{problem}; take the snapshot again", path=f".rows[{number}]", object=KIND)
