import contextlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from podium.api.input import yaml as own_yaml
from podium.app.console import output
from podium.app.console.output import draft_of, in_json, in_yaml, json_parts, new_page, write_private
from podium.app.console.page import WIDTH, Cell, Page

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**62), 2**62) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(VALUES)
def test_yaml_reads_back_as_the_same_value(value: Any) -> None:
    assert yaml.load(in_yaml(value), yaml.CSafeLoader) == value


@pytest.mark.parametrize(
    "text",
    ["no", "yes", "y", "N", "on", "true", "null", "~", "", "1", "1e3", "0o17", "0x1F", "1:30", ".5", "2026-01-01"],
)
def test_text_that_a_reader_may_take_for_something_else_is_quoted(text: str) -> None:
    written = in_yaml({"key": text})

    assert written.partition(": ")[2][0] in "'\""
    assert list(own_yaml.parse_documents(written)) == [(1, {"key": text})]


def test_a_value_that_stands_in_two_places_is_written_out_twice() -> None:
    shared = {"a": 1}

    assert in_yaml([shared, shared]) == "- a: 1\n- a: 1\n"


def test_json_is_indented_keeps_the_order_of_keys_and_holds_nothing_that_a_terminal_acts_on() -> None:
    written = in_json({"b": "\x1b[31m\x9b\u202e", "a": [1.5, None]})

    assert written.startswith('{\n  "b": ')
    assert written.isascii()
    assert all(line.isprintable() for line in written.splitlines())
    assert json.loads(written) == {"b": "\x1b[31m\x9b\u202e", "a": [1.5, None]}


@given(VALUES)
def test_json_is_what_the_standard_library_writes(value: Any) -> None:
    assert in_json(value) == f"{json.dumps(value, indent=2)}\n"


@pytest.mark.parametrize(
    "value", [2**70, "\ud800", {"\x7f": "\x7f\xe9\U0001f600\u2028"}, 1.5, -0.0, [], {}, [[]], True]
)
def test_json_of_what_few_values_hold_is_what_the_standard_library_writes(value: Any) -> None:
    assert in_json(value) == f"{json.dumps(value, indent=2)}\n"


@given(st.dictionaries(st.text(), VALUES))
def test_json_is_the_same_in_parts(value: dict[str, Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(output, "_AT_A_TIME", 1)

        assert "".join(json_parts(value)) == f"{json.dumps(value, indent=2)}\n"


@pytest.mark.parametrize("depth", range(3))
def test_a_long_list_is_written_part_by_part_at_any_depth(depth: int) -> None:
    value: dict[str, Any] = {"a": 1, "many": list(range(25_000)), "b": {}}
    for _ in range(depth):
        value = {"before": [1], "result": value}

    parts = list(json_parts(value))

    assert max(part.count("\n") for part in parts) == 10_000
    assert "".join(parts) == f"{json.dumps(value, indent=2)}\n"


def test_a_page_for_a_pipe_has_a_width_of_its_own_whole_names_and_no_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "70")

    assert _drawn(new_page()) == (WIDTH, "taken\n")
    assert not new_page().is_shortened


@pytest.mark.parametrize(("columns", "width"), [("30", 40), ("70", 70), ("300", 300)])
def test_a_page_for_a_terminal_is_coloured_and_as_wide_as_that_if_it_is_not_too_narrow(
    columns: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.delenv("NO_COLOR", raising=False)

    assert _drawn(new_page()) == (width, "\x1b[32mtaken\x1b[0m\n")


def test_with_no_color_a_page_for_a_terminal_is_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")

    assert _drawn(new_page())[1] == "taken\n"


def test_a_dumb_terminal_has_no_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "dumb")

    assert _drawn(new_page())[1] == "taken\n"


@pytest.mark.parametrize(("no_color", "text"), [("", "\x1b[32mtaken\x1b[0m\n"), ("1", "taken\n")])
def test_with_force_color_a_pipe_gets_colours_unless_no_color_is_set(
    no_color: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", no_color)

    assert _drawn(new_page()) == (WIDTH, text)


def _drawn(page: Page) -> tuple[int, str]:
    page.line(Cell("taken", "good"))
    return page.width, page.text


def test_a_private_file_takes_the_place_of_an_old_one_only_when_it_is_complete(tmp_path: Path) -> None:
    file, link = tmp_path / "plan", tmp_path / "link"
    file.write_text("old")
    link.symlink_to(file)

    with contextlib.suppress(KeyboardInterrupt), draft_of(str(file)) as draft:
        draft.write(b"half")
        raise KeyboardInterrupt
    assert (file.read_text(), sorted(tmp_path.iterdir())) == ("old", [link, file])

    write_private(link, "new")
    assert (link.is_symlink(), file.read_text(), file.stat().st_mode & 0o777) == (True, "new", 0o600)


def test_a_pipe_is_written_and_stays_and_a_folder_is_an_error(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_private(pipe, "plan")
        assert (os.read(reader, 9), pipe.is_fifo()) == (b"plan", True)
    finally:
        os.close(reader)

    with pytest.raises(IsADirectoryError):
        write_private(tmp_path, "plan")
