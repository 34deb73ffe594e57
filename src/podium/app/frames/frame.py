"""A table of an answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from podium.app.frames.column import Column, Kind, Value, column_of

if TYPE_CHECKING:
    from podium.app.frames.interchange import InterchangeFrame

Row = Mapping[str, Value]
_MOST_ROWS = 20


class Frame:
    """A table with named columns, each of whole numbers, numbers, truths or text; None where there is no value.

    Other programs take it as it is: `polars.DataFrame(frame)`, `pyarrow.table(frame)` and `pandas.DataFrame.from_arrow`
    by Arrow's PyCapsule protocol, `pandas.api.interchange.from_dataframe(frame)` by the dataframe interchange
    protocol. Nothing has to be installed for either. `list(frame)` are its rows as dictionaries.
    """

    def __init__(self, name: str, columns: Sequence[Column]) -> None:
        self.name = name
        self._columns = {column.name: column for column in columns}

    @classmethod
    def of_rows(cls, name: str, rows: Sequence[Row], columns: Mapping[str, Kind | None] | None = None) -> Frame:
        """The table of these rows, with the given columns first and of their kinds, whether a row has them or not.

        A kind of None is that of the values.
        """
        kinds = columns or {}
        names = dict.fromkeys([*kinds, *(key for row in rows for key in row)])
        return cls(name, [column_of(each, [row.get(each) for row in rows], kinds.get(each)) for each in names])

    @property
    def columns(self) -> list[str]:
        """The names of the columns in their order."""
        return list(self._columns)

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()), ()))

    def __iter__(self) -> Iterator[dict[str, Value]]:
        values = [column.values for column in self._columns.values()]
        return (dict(zip(self._columns, row, strict=True)) for row in zip(*values, strict=True))

    def __getitem__(self, column: str) -> list[Value]:
        """The values of a column. Raises KeyError."""
        return list(self._columns[column].values)

    def __repr__(self) -> str:
        return f"<Frame {self.name}: {len(self):,} rows of {', '.join(self._columns)}>"

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> InterchangeFrame:
        """The table by the dataframe interchange protocol."""
        from podium.app.frames.interchange import InterchangeFrame

        return InterchangeFrame(list(self._columns.values()))

    def __arrow_c_schema__(self) -> Any:
        """The columns' names and kinds, by Arrow's PyCapsule protocol."""
        from podium.app.frames.arrow import schema_capsule

        return schema_capsule(list(self._columns.values()))

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """The table by Arrow's PyCapsule protocol, in its own kinds, whatever is requested."""
        from podium.app.frames.arrow import stream_capsule

        return stream_capsule(list(self._columns.values()))

    def _repr_html_(self) -> str:
        """The first rows, for notebooks."""
        head = "".join(f"<th>{escape(name)}</th>" for name in self._columns)
        body = "".join(_html_row(row) for _, row in zip(range(_MOST_ROWS), self, strict=False))
        rest = len(self) - _MOST_ROWS
        more = f"<p>and {rest:,} more rows</p>" if rest > 0 else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _html_row(row: Mapping[str, Value]) -> str:
    cells = "".join(f"<td>{'' if value is None else escape(str(value))}</td>" for value in row.values())
    return f"<tr>{cells}</tr>"
