import pytest

from podium.app.console.cells import NODES, Name, grouped_by_text, names_of
from podium.app.console.page import Cell, Page, counted, fitted, listed


def test_columns_are_aligned_and_the_last_one_wraps_under_itself() -> None:
    page = Page(40)

    page.columns([["a", "1", "one two three four five six seven eight"], ["bb", "22", "short"]], indent=2, right=(1,))

    assert page.text.splitlines() == [
        "  a    1  one two three four five six",
        "          seven eight",
        "  bb  22  short",
    ]


def test_a_paragraph_wraps_with_its_later_lines_set_in() -> None:
    page = Page(30)

    page.paragraph("one two three four five six seven", indent=2, hanging=2)

    assert page.text.splitlines() == ["  one two three four five six", "    seven"]


def test_styles_become_colours_only_on_a_coloured_page() -> None:
    plain, coloured = Page(), Page(coloured=True)

    for page in (plain, coloured):
        page.line(Cell("taken", "good"), " ", "free")

    assert plain.text == "taken free\n"
    assert coloured.text == "\x1b[32mtaken\x1b[0m free\n"


@pytest.mark.parametrize("hostile", ["\x1b[31mred", "two\nlines", "back\u202eward", "bell\x07", "\x9b1m"])
def test_control_characters_are_escaped_in_the_page(hostile: str) -> None:
    page = Page()

    page.line(hostile)
    page.paragraph(hostile)
    page.columns([[hostile, hostile]])
    page.columns([[Name(hostile, hostile, before=hostile, after=hostile), names_of([hostile], NODES)]])

    assert page.text.isascii()
    assert all(line.isprintable() for line in page.text.splitlines())
    assert len(page.text.splitlines()) == 4


def test_markup_of_rich_is_plain_text() -> None:
    page = Page()

    page.line("[red]name[/red] :smile:")

    assert page.text == "[red]name[/red] :smile:\n"


def test_names_beyond_a_number_are_counted_and_one_more_is_as_good_as_a_count() -> None:
    assert listed(["a", "b", "c"], 2) == "a, b, c"
    assert listed(["a", "b", "c", "d"], 2) == "a, b and 2 more"


@pytest.mark.parametrize("width", range(20, 60))
def test_as_many_names_are_given_as_fit(width: int) -> None:
    names = [f"node-{number}" for number in range(9)]

    text = fitted(names, width)

    assert len(text) <= width
    given, _, rest = text.partition(" and ")
    assert len(given.split(", ")) + (int(rest.removesuffix(" more")) if rest else 0) == len(names)


def test_the_first_name_is_whole_even_where_it_does_not_fit_and_the_last_where_no_count_has_room() -> None:
    assert fitted(["a" * 50, "b"], 30) == f"{'a' * 50} and 1 more"
    assert fitted(["a", "b", "c"], 7) == "a, b, c"


def test_the_page_counts_names_beyond_its_limit() -> None:
    assert fitted(["a", "b", "c", "d"], 100, 2) == "a, b and 2 more"
    assert fitted(["a", "b", "c"], 100, 2) == "a, b, c"


def test_more_than_two_equal_entries_are_grouped_by_text() -> None:
    named = [("a", "x"), ("b", "y"), ("c", "x"), ("d", "x"), ("e", "y")]

    assert grouped_by_text(named) == [(["a", "c", "d"], "x"), (["b"], "y"), (["e"], "y")]


def test_a_number_has_its_noun_in_the_right_form() -> None:
    assert [counted(number, "node") for number in (0, 1, 1500)] == ["0 nodes", "1 node", "1,500 nodes"]
