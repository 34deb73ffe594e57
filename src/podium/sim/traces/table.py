"""CSV files with a header, read strictly."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from podium.api.errors import InputError, shown
from podium.api.input.files import FileName, read_bytes, shown_name

MAX_ROWS = 1_000_000
"""How many rows a file may have."""

_MAX_DIGITS = 15


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a file: the values by column, and the line it stands on."""

    source: str
    line: int
    values: dict[str, str]

    def text(self, column: str) -> str:
        """The value as it is written, "" where there is none."""
        return self.values[column]

    def whole(self, column: str) -> int:
        """The value, which must be a whole number of 0 or more. Raises InputError."""
        text = self.values[column]
        if text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS:
            return int(text)
        raise self.error(column, f"{shown(text)} is not a whole number of 0 or more, of at most {_MAX_DIGITS} digits")

    def whole_or_none(self, column: str) -> int | None:
        """As `whole`; None for an empty value."""
        return self.whole(column) if self.values[column] else None

    def error(self, column: str, problem: str) -> InputError:
        """An error that says where in the file the fault is."""
        return InputError(f"line {self.line}, column {column}: {problem}", source=self.source)


def read_table(name: FileName, columns: Sequence[str]) -> Iterator[Row]:
    """The rows of a file that has these columns, in any order; others are left aside.

    Raises InputError for a file that cannot be read, that has no such columns, too many rows, or a row of another
    length than the header.
    """
    source = shown_name(name)
    try:
        text = read_bytes(name).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"is not UTF-8: byte {error.start} does not fit; save it as UTF-8", source=source) from None
    reader = csv.reader(text.splitlines(), strict=True)
    try:
        header = next(reader, [])
        missing = [column for column in columns if column not in header]
        if missing:
            raise InputError(
                f"line 1: the column {missing[0]} is missing; needed are {', '.join(columns)}", source=source
            )
        if len(set(header)) != len(header):
            raise InputError("line 1: a column is given twice", source=source)
        for number, values in enumerate(reader, start=1):
            if number > MAX_ROWS:
                raise InputError(f"has more than {MAX_ROWS} rows; split it", source=source)
            if len(values) != len(header):
                problem = f"line {reader.line_num}: {len(values)} values where the header has {len(header)} columns"
                raise InputError(problem, source=source)
            yield Row(source, reader.line_num, dict(zip(header, values, strict=True)))
    except csv.Error as error:
        raise InputError(f"line {reader.line_num}: not valid CSV: {error}", source=source) from None
