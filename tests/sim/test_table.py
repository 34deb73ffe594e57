"""Strict reading of CSV files."""

from pathlib import Path

import pytest

from podium.api.errors import InputError
from podium.sim.trace_import import read_table

COLUMNS = ("name", "count")


def table(tmp_path: Path, text: str | bytes) -> Path:
    file = tmp_path / "t.csv"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def test_rows_have_values_by_column_in_any_order_and_know_their_line(tmp_path: Path) -> None:
    rows = list(read_table(table(tmp_path, 'count,extra,name\n1,x,a\n2,,"b, c"\n'), COLUMNS)[1])

    assert [(row.line, row.values["name"], row.whole("count")) for row in rows] == [(2, "a", 1), (3, "b, c", 2)]


def test_a_byte_order_mark_is_not_part_of_the_header(tmp_path: Path) -> None:
    assert [row.whole("count") for row in read_table(table(tmp_path, "\ufeffname,count\na,1\n"), COLUMNS)[1]] == [1]


@pytest.mark.parametrize("value", ["", "-1", "1.5", "x", "1e3", "1_0", "\u0661", "9" * 16])
def test_a_non_integer_is_an_error_with_line_and_column(tmp_path: Path, value: str) -> None:
    (row,) = read_table(table(tmp_path, f"name,count\na,{value}\n"), COLUMNS)[1]

    with pytest.raises(InputError, match=r"t\.csv: line 2, column count: .* is not a whole number"):
        row.whole("count")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "line 1: the column name is missing; needed are name, count"),
        ("name\na\n", "line 1: the column count is missing"),
        ("name,count,name\na,1,b\n", "line 1: a column is given twice"),
        ("name,count\na\n", "line 2: 1 values where the header has 2 columns"),
        ("name,count\na,1,2\n", "line 2: 3 values where the header has 2 columns"),
        ('name,count\n"a"b,1\n', "line 2: not valid CSV"),
        (b"name,count\n\xff,1\n", "is not UTF-8: byte 11 does not fit"),
    ],
)
def test_a_broken_file_is_an_error_with_its_line(tmp_path: Path, text: str | bytes, error: str) -> None:
    with pytest.raises(InputError) as caught:
        list(read_table(table(tmp_path, text), COLUMNS)[1])

    assert error in str(caught.value)


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        list(read_table(tmp_path / "none.csv", COLUMNS)[1])
