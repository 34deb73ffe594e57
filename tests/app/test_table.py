from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.app.console.cells import NODES, PODS, Cell, Name, Part, names_of
from podium.app.console.page import Page
from podium.app.console.table import TextTable
from tests.app.names import MIXED, NAMES

AWS = [f"ip-10-0-12-{number}.eu-west-1.compute.internal" for number in (3, 45, 201)]
TEXT = st.lists(st.text("abcdefgh", min_size=1, max_size=20), max_size=12).map(" ".join)


def shown(rows: Sequence[Sequence[Part]], width: int, *, shortened: bool = True) -> list[str]:
    page = Page(width, shortened=shortened)
    page.columns(rows)
    return page.text.splitlines()


def parts() -> st.SearchStrategy[Part]:
    """Any part of a table."""
    names = (NAMES | MIXED).map(sorted)
    return st.one_of(
        TEXT,
        TEXT.map(Cell),
        names.map(lambda found: Name(found[0], NODES)),
        st.builds(lambda found, after: Name(found[-1], PODS, after=after), names, TEXT),
        st.builds(lambda found, most: names_of(found, PODS, most=most), names, st.none() | st.integers(1, 3)),
    )


ROWS = st.lists(st.lists(parts(), max_size=6), max_size=4)


@given(ROWS, st.integers(40, 220), st.sets(st.integers(0, 8)))
def test_on_a_terminal_no_line_is_longer_than_that(rows: list[list[Part]], width: int, right: set[int]) -> None:
    page = Page(width, shortened=True)

    page.columns(rows, indent=2, right=right)

    assert [line for line in page.text.splitlines() if len(line) > width] == []


@given(NAMES | MIXED, NAMES | MIXED, TEXT, st.integers(40, 220))
def test_different_names_of_a_kind_stay_distinct_in_a_table(
    nodes: set[str], pods: set[str], text: str, width: int
) -> None:
    pairs = list(zip(sorted(pods), sorted(nodes), strict=False))
    rows: list[list[Part]] = [
        [Name(pod, PODS), Name(node, NODES), text, Name(node, NODES, before="to ")] for pod, node in pairs
    ]

    naming = TextTable(rows, width).naming

    assert len({naming.shown(Name(pod, PODS)) for pod, _ in pairs}) == len(pairs)
    assert len({naming.shown(Name(node, NODES)) for _, node in pairs}) == len(pairs)


@given(ROWS)
def test_elsewhere_no_name_is_shortened_and_no_text_lost(rows: list[list[Part]]) -> None:
    text = " ".join(shown(rows, 100, shortened=False))

    assert "…" not in text
    for row in rows:
        for part in row:
            words = part.split() if isinstance(part, str) else part.text.split() if isinstance(part, Cell) else []
            assert [word for word in words if word not in text] == []
            assert not isinstance(part, Name) or part.name in text


@given(NAMES | MIXED, st.integers(40, 220))
def test_the_table_headline_names_omitted_prefixes(names: set[str], width: int) -> None:
    table = TextTable([[Name(name, NODES), "what there is to say about it"] for name in sorted(names)], width)
    shared = table.naming.shared.get(NODES)

    for name in names:
        form = table.naming.shown(Name(name, NODES))
        if "…" not in form.removeprefix("…"):
            begin, end = ("", "") if shared is None else shared
            assert begin + form.removeprefix("…") + end == name


def test_a_table_that_has_room_is_shown_as_it_is() -> None:
    assert shown([[Name(name, NODES), "fits"] for name in AWS], 60) == [
        "ip-10-0-12-3.eu-west-1.compute.internal    fits",
        "ip-10-0-12-45.eu-west-1.compute.internal   fits",
        "ip-10-0-12-201.eu-west-1.compute.internal  fits",
    ]


def test_a_full_domain_is_reported_once_above_the_table() -> None:
    assert shown([[Name(name, NODES), "has 3 of 8 cpu"] for name in AWS], 50) == [
        "nodes end in .eu-west-1.compute.internal",
        "ip-10-0-12-3    has 3 of 8 cpu",
        "ip-10-0-12-45   has 3 of 8 cpu",
        "ip-10-0-12-201  has 3 of 8 cpu",
    ]


def test_a_shared_beginning_goes_next() -> None:
    rows: list[list[Part]] = [
        [Name(f"gke-prod-pool-1-{end}", NODES), "has 3 of 8 cpu", "and 20Gi memory"] for end in ("x7k2", "b4xx")
    ]

    assert shown(rows, 40) == [
        "nodes begin with gke-prod-pool-1-",
        "…x7k2  has 3 of 8 cpu  and 20Gi memory",
        "…b4xx  has 3 of 8 cpu  and 20Gi memory",
    ]


def test_names_of_a_kind_are_shown_in_one_way_in_all_columns() -> None:
    rows = [[Name("web", PODS), Name(AWS[0], NODES), Name(AWS[1], NODES, before="-> ")]]

    assert shown(rows, 60) == [
        "nodes end in .eu-west-1.compute.internal",
        "web  ip-10-0-12-3  -> ip-10-0-12-45",
    ]


def test_a_table_shows_as_many_names_as_fit() -> None:
    names = [f"node-{number}" for number in range(1, 10)]

    assert shown([["9 nodes", names_of(names, NODES)]], 48) == ["9 nodes  node-1, node-2, node-3 and 6 more"]
    assert shown([["9 nodes", names_of(names, NODES)]], 80) == [f"9 nodes  {', '.join(names)}"]
    assert shown([["9 nodes", names_of(names, NODES, most=2)]], 80) == ["9 nodes  node-1, node-2 and 7 more"]


def test_text_does_not_wrap_while_there_is_room_and_wraps_under_itself_where_there_is_none() -> None:
    rows = [["node-1", "one two three four five six seven eight nine", "end"]]

    assert shown(rows, 60) == ["node-1  one two three four five six seven eight nine  end"]
    assert shown(rows, 40) == ["node-1  one two three four five six  end", "        seven eight nine"]


def test_cells_that_fit_no_column_go_below_their_row() -> None:
    rows: list[list[Part]] = [
        ["+0s", "FailedScheduling", Name(name, PODS), "waits for a node"] for name in ("default/web-0", "shop/cart")
    ]

    assert shown(rows, 44) == [
        "+0s  FailedScheduling  default/web-0",
        "    waits for a node",
        "+0s  FailedScheduling  shop/cart",
        "    waits for a node",
    ]


def test_a_row_with_only_a_detail_line_adds_no_empty_line() -> None:
    rows: list[list[Part]] = [[Name("default/web-0", PODS), "a" * 20, "b" * 20], ["", "", "c"]]

    assert shown(rows, 40) == ["default/web-0  aaaaaaaaaaaaaaaaaaaa", "    bbbbbbbbbbbbbbbbbbbb", "    c"]


def test_a_row_that_ends_early_has_the_rest_of_the_line() -> None:
    assert shown([["a", "b"], ["and 100 more of them"]], 40) == ["a  b", "and 100 more of them"]


@pytest.mark.parametrize("width", [60, 100, 220])
def test_a_table_of_five_thousand_nodes_says_each_of_them(width: int) -> None:
    names = [f"ip-10-0-{number // 250}-{number % 250}.eu-west-1.compute.internal" for number in range(5000)]

    lines = shown([[Name(name, NODES), "0", "Insufficient cpu, as long as nothing changes"] for name in names], width)

    assert max(map(len, lines)) <= width
    assert len({line.split()[0] for line in lines if line.startswith(("ip-", "…"))}) == 5000


def test_rows_of_many_columns_have_a_second_line_before_single_names_are_shortened() -> None:
    names = ["Deployment team-0/app-0000", "StatefulSet team-3/app-0003"]
    rows: list[list[Part]] = [
        [Name(name, "workloads"), "10", "10", "10", "4 by drain", f"held by budget team-{place} for 40s"]
        for place, name in enumerate(names)
    ]

    assert shown(rows, 60) == [
        "Deployment team-0/app-0000   10  10  10  4 by drain",
        "    held by budget team-0 for 40s",
        "StatefulSet team-3/app-0003  10  10  10  4 by drain",
        "    held by budget team-1 for 40s",
    ]
