"""The base of answers, which are shown as text, in notebooks and as one line, and tables of values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from podium.api.errors import escape as harmless

if TYPE_CHECKING:
    from podium.app.console.page import Page

_LONGEST = 200
_CODE = re.compile(r"\x1b\[([0-9;]+)m(.*?)\x1b\[0m", re.DOTALL)
# The CSS of terminal codes, for light and dark backgrounds.
_STYLES = {
    "1": "font-weight:bold",
    "2": "opacity:.65",
    "31": "color:#c62828",
    "32": "color:#2e7d32",
    "33": "color:#b26a00",
    "36": "color:#00838f",
}
_BLOCK = "white-space:pre;overflow-x:auto;line-height:1.35;font-size:.9em"


class Renderable:
    """The base of answers that can be shown as text on a page, as HTML, and in one line."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def headline(self) -> str:
            """The answer in one line."""

    def _in_a_line(self) -> str:
        return self.headline

    def write(self, page: Page) -> None:
        """Write the answer as its command prints it."""
        raise NotImplementedError

    @property
    def text(self) -> str:
        return _page(self, coloured=False)

    def html(self) -> str:
        from podium.app.reporting import report

        return report(self._with_pictures())

    def _with_pictures(self) -> Any:
        return self

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {harmless(self._in_a_line(), _LONGEST)}>"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        return {"text/plain": self.text, "text/html": in_html(_page(self, coloured=True))}


def in_html(text: str) -> str:
    """Convert the text of a coloured page to HTML."""
    parts, place = [], 0
    for found in _CODE.finditer(text):
        parts.append(escape(text[place : found.start()]))
        style = ";".join(_STYLES[code] for code in found[1].split(";"))
        parts.append(f'<span style="{style}">{escape(found[2])}</span>')
        place = found.end()
    return f'<pre style="{_BLOCK}">{"".join(parts)}{escape(text[place:])}</pre>'


def _page(answer: Renderable, *, coloured: bool) -> str:
    from podium.app.console.page import Page

    page = Page(coloured=coloured)
    answer.write(page)
    return page.text


Kind = Literal["int64", "float64", "bool", "string"]
Value = int | float | bool | str | None
Row = Mapping[str, Value]

# The kinds that hold the values of a kind without loss.
_WIDER: dict[Kind, tuple[Kind, ...]] = {
    "bool": ("bool", "int64", "float64"),
    "int64": ("int64", "float64"),
    "float64": ("float64",),
    "string": ("string",),
}
_MOST_HTML_ROWS = 20


class Column(NamedTuple):
    """Values of one kind; None marks a missing value."""

    kind: Kind
    values: Sequence[Value]


class Frame:
    """A table with named columns of integers, floats, booleans or text; None marks a missing value.

    `polars.DataFrame(frame)`, `pyarrow.table(frame)` and `pandas.DataFrame.from_arrow(frame)` read it through
    Arrow's PyCapsule protocol. ``list(frame)`` returns its rows as dictionaries.
    """

    def __init__(self, name: str, columns: Mapping[str, Column]) -> None:
        self.name = name
        self._columns = dict(columns)

    @classmethod
    def of_rows(cls, name: str, rows: Sequence[Row], columns: Mapping[str, Kind | None] | None = None) -> Frame:
        """Return the table of the rows.

        ``columns`` come first and exist even if no row has them. A column has the given kind if that holds its values
        without loss, otherwise the kind that they need.
        """
        kinds, found = columns or {}, dict[str, Column]()
        for heading in dict.fromkeys([*kinds, *(key for row in rows for key in row)]):
            values, wanted = [row.get(heading) for row in rows], kinds.get(heading)
            kind = _kind_of(values)
            if wanted is not None and (kind is None or wanted in _WIDER[kind]):
                kind = wanted
            if kind is None or kind == "string":
                kind, values = "string", [value if value is None else str(value) for value in values]
            found[heading] = Column(kind, values)
        return cls(name, found)

    @property
    def columns(self) -> list[str]:
        """The names of the columns, in order."""
        return list(self._columns)

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())).values) if self._columns else 0

    def __iter__(self) -> Iterator[dict[str, Value]]:
        values = [column.values for column in self._columns.values()]
        return (dict(zip(self._columns, row, strict=True)) for row in zip(*values, strict=True))

    def __getitem__(self, column: str) -> list[Value]:
        """Return the values of a column. Raises KeyError."""
        return list(self._columns[column].values)

    def __repr__(self) -> str:
        return f"<Frame {self.name}: {len(self):,} rows of {', '.join(self._columns)}>"

    def __arrow_c_schema__(self) -> Any:
        return self._schema().__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """Return a capsule with the table as a stream of one batch; the requested schema is not applied."""
        # nanoarrow is imported when another program reads a table, not at each start of the command line.
        import nanoarrow
        from nanoarrow.c_array_stream import CArrayStream

        schema = self._schema()
        children = [
            nanoarrow.c_array(_arrow_values(column), _arrow_type(column.kind)) for column in self._columns.values()
        ]
        batch = nanoarrow.c_array_from_buffers(schema, len(self), buffers=[None], children=children)
        return CArrayStream.from_c_arrays([batch], schema).__arrow_c_stream__()

    def _schema(self) -> Any:
        import nanoarrow

        # The C interface ends a name at its first NUL.
        fields = {_utf_8(name.replace("\0", "\\0")): _arrow_type(each.kind) for name, each in self._columns.items()}
        return nanoarrow.c_schema(nanoarrow.struct(fields))

    def _repr_html_(self) -> str:
        """Return the first rows as HTML, for notebooks."""
        head = "".join(f"<th>{escape(name)}</th>" for name in self._columns)
        body = ""
        for row in islice(self, _MOST_HTML_ROWS):
            cells = (f"<td>{'' if value is None else escape(str(value))}</td>" for value in row.values())
            body += f"<tr>{''.join(cells)}</tr>"
        rest = len(self) - _MOST_HTML_ROWS
        more = f"<p>and {rest:,} more rows</p>" if rest > 0 else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def kinds(text: str = "", whole: str = "", number: str = "") -> dict[str, Kind]:
    """Return the kinds of columns by name; each argument lists names separated by blanks."""
    found: dict[str, Kind] = dict.fromkeys(text.split(), "string")
    return found | dict.fromkeys(whole.split(), "int64") | dict.fromkeys(number.split(), "float64")


def filled(**fields: Any) -> dict[str, Any]:
    """Return the fields that have a value: neither None nor false or empty."""
    return {name: value for name, value in fields.items() if value}


def flat(shown: Mapping[str, Any], parent: str = "") -> dict[str, Value]:
    """Return the values of nested mappings by dotted path; the items of a list are joined with commas."""
    row: dict[str, Value] = {}
    for name, value in shown.items():
        path = f"{parent}{name}"
        if isinstance(value, Mapping):
            row |= flat(value, f"{path}.")
        else:
            row[path] = ", ".join(map(str, value)) if isinstance(value, list | tuple) else value
    return row


def _kind_of(values: Sequence[Value]) -> Kind | None:
    """Return the narrowest kind that holds the values, None if there are none."""
    types = {type(value) for value in values if value is not None}
    if not types:
        return None
    if types == {bool}:
        return "bool"
    if types <= {int, bool} and all(-(2**63) <= int(value or 0) < 2**63 for value in values):
        return "int64"
    return "float64" if types <= {int, float, bool} else "string"


def _arrow_type(kind: Kind) -> Any:
    import nanoarrow

    # Text has offsets of 64 bits, so that a column may exceed 2 GiB.
    types = {"int64": nanoarrow.int64, "float64": nanoarrow.float64, "bool": nanoarrow.bool_}
    return types.get(kind, nanoarrow.large_string)()


def _arrow_values(column: Column) -> list[Value]:
    """Return the values as nanoarrow accepts them for the column's kind."""
    if column.kind == "string":
        return [value if value is None else _utf_8(str(value)) for value in column.values]
    convert = {"bool": bool, "int64": int, "float64": float}[column.kind]
    return [value if value is None else convert(value) for value in column.values]


def _utf_8(text: str) -> str:
    """Return the text with question marks for lone surrogates, which UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode()
