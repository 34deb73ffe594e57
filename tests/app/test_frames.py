"""Tables of answers in the form that other programs read."""

from __future__ import annotations

import gc
from typing import Any

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

import podium
from podium.app.answers import Frame, flat
from tests.app.processes import run
from tests.docs.blocks import ROOT

TEXT = st.text(st.characters(codec="utf-8"))
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"))
# Numbers that both kinds of numbers hold.
VALUES = st.one_of(st.none(), st.booleans(), st.integers(-(2**53), 2**53), st.floats(allow_nan=False), TEXT)
KINDS = (st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), TEXT)
COLUMNS = st.sampled_from(KINDS).flatmap(lambda kind: st.lists(st.one_of(st.none(), kind), min_size=5, max_size=5))


@given(
    columns=st.dictionaries(NAMES, COLUMNS, min_size=1, max_size=4),
    count=st.integers(0, 5),
)
def test_arrow_reads_the_rows_of_a_frame(columns: dict[str, list[Any]], count: int) -> None:
    rows = [{name: values[place] for name, values in columns.items()} for place in range(count)]
    frame = Frame.of_rows("any", rows, dict.fromkeys(columns))

    assert list(frame) == rows
    assert pyarrow.table(frame).to_pylist() == rows


@given(values=st.lists(VALUES, min_size=1))
def test_values_of_several_kinds_are_of_the_widest_that_holds_them(values: list[Any]) -> None:
    report = pyarrow.table(Frame.of_rows("any", [{"a": value} for value in values]))["a"].to_pylist()

    if any(isinstance(value, str) for value in values):
        expected = [value if value is None else str(value).encode("utf-8", "replace").decode() for value in values]
        assert report == expected
    else:
        assert report == values


def test_whole_numbers_that_are_too_large_are_floating() -> None:
    assert pyarrow.table(Frame.of_rows("any", [{"a": 2**70}, {"a": 1}]))["a"].to_pylist() == [float(2**70), 1.0]


def test_a_name_ends_nowhere_before_its_end() -> None:
    assert pyarrow.table(Frame.of_rows("any", [{"a\0b": 1}])).column_names == [r"a\0b"]


def test_half_a_surrogate_pair_is_not_text() -> None:
    assert pyarrow.table(Frame.of_rows("any", [{"a": "x\ud800"}]))["a"].to_pylist() == ["x?"]


def test_a_column_outlives_the_frame_and_its_reader() -> None:
    frame = Frame.of_rows("any", [{"a": 1, "b": "x"}])
    taken = [pyarrow.table(frame), pyarrow.schema(frame)]
    capsules = [frame.__arrow_c_stream__(), frame.__arrow_c_schema__()]
    batches = pyarrow.RecordBatchReader.from_stream(frame)
    column = batches.read_next_batch().column(1)
    del frame, taken, capsules, batches
    gc.collect()

    assert column.to_pylist() == ["x"]


def test_a_table_that_is_there_at_the_end_of_the_process_does_no_harm() -> None:
    code = (
        "import pyarrow; from podium.app.answers import Frame; frame = Frame.of_rows('t', [{'a': 'x'}]);"
        " table = pyarrow.table(frame); capsule = frame.__arrow_c_stream__(); print(table.num_rows)"
    )
    ended = run(code=code)

    assert (ended.stdout, ended.stderr) == ("1\n", "")


def test_a_frame_without_columns_is_an_empty_table() -> None:
    assert pyarrow.table(Frame.of_rows("any", [])).num_columns == 0


def test_a_row_has_values_by_their_path() -> None:
    assert flat({"a": {"b": 1, "c": {"d": 2}}, "e": [1, "x"]}) == {"a.b": 1, "a.c.d": 2, "e": "1, x"}


@pytest.fixture(scope="module")
def result() -> Any:
    return podium.simulate(ROOT / "examples/starvation-1.yaml", until="45s")


@pytest.mark.parametrize("name", ["events", "pods", "nodes", "series", "workloads", "readiness"])
def test_each_table_of_a_result_says_what_its_json_says(result: Any, name: str) -> None:
    shown = result.to_dict()
    expected = {
        "workloads": [{**each, "series": None} for each in shown["workloads"]],
        "readiness": [
            {"workload": each["workload"], **point} for each in shown["workloads"] for point in each["series"]
        ],
    }.get(name) or shown[name]
    rows = [{key: value for key, value in flat(row).items() if key != "series"} for row in expected]

    report = pyarrow.table(result.frame(name)).to_pylist()

    assert [{key: value for key, value in row.items() if value is not None} for row in report] == [
        {key: value for key, value in row.items() if value is not None} for row in rows
    ]
    assert report


def test_every_answer_has_tables() -> None:
    plan = podium.plan(ROOT / "examples/plan/cluster.yaml").fail("ip-10-0-1-11.eu-west-1.compute.internal")
    for name in ("impact", "nodes", "findings", "events", "pods", "series", "workloads", "readiness", "all_nodes"):
        assert len(plan.frame(name)), name
    explanation = podium.explain(ROOT / "examples/budget.yaml", "urgent-1")
    assert explanation.frame()["node"] == list(explanation.nodes)
    swept = podium.sweep(ROOT / "examples/starvation-1.yaml", {"start-delay": ["0s", "5s"]}, until="30s")
    assert swept.frame()["start-delay"] == ["0s", "5s"]


def test_an_unknown_result_table_is_rejected(result: Any) -> None:
    with pytest.raises(podium.PodiumError, match="no table weather; it has: events, pods"):
        result.frame("weather")


def test_a_table_is_shown_in_short() -> None:
    frame = Frame.of_rows("pods", [{"name": f"<{number}>"} for number in range(30)])

    assert repr(frame) == "<Frame pods: 30 rows of name>"
    assert "&lt;19&gt;" in frame._repr_html_()
    assert "<20>" not in frame._repr_html_()
    assert "and 10 more rows" in frame._repr_html_()


def schema(frame: Frame) -> dict[str, str]:
    table = pyarrow.table(frame)
    return {name: str(table.schema.field(name).type) for name in table.column_names}


@pytest.mark.parametrize("name", ["events", "pods", "nodes", "series", "workloads", "readiness"])
def test_a_column_is_of_its_kind_however_little_is_in_it(name: str) -> None:
    full = schema(podium.simulate(ROOT / "examples" / "drain.yaml").frame(name))
    empty = schema(podium.simulate([]).frame(name))

    assert empty
    assert {column: kind for column, kind in full.items() if column in empty} == empty


@pytest.mark.parametrize("name", ["impact", "nodes", "findings"])
def test_a_plan_that_does_nothing_has_the_columns_of_one_that_does_much(name: str) -> None:
    cluster = podium.load(ROOT / "examples" / "plan" / "cluster.yaml")
    full = schema(cluster.plan().drain(selector="kubernetes.io/hostname", timeout="10m").frame(name))
    empty = schema(cluster.plan().change("deploy/shop/fe", {"minReadySeconds": 1}).frame(name))

    assert {column: kind for column, kind in full.items() if column in empty} == empty
    assert "double" in empty.values() or name != "impact"


def test_whole_numbers_are_numbers_where_a_column_has_others_elsewhere() -> None:
    frame = Frame.of_rows("any", [{"a": 1, "b": 2}], {"a": "float64", "b": "int64", "c": "bool", "d": None})

    assert schema(frame) == {"a": "double", "b": "int64", "c": "bool", "d": "large_string"}
    assert list(frame) == [{"a": 1, "b": 2, "c": None, "d": None}]
