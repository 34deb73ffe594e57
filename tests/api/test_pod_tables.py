"""The pods of a snapshot's tables equal the pods that the tables were made of."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.api.errors import InputError, Validation
from podium.api.input.codec import Document, load_text, read_input
from podium.api.input.pod_table import FORMAT, PodTableWriter
from tests.api.dumps import Raw, dump, dumped_pod
from tests.api.test_dumps import EKS_PODS, outcome
from tests.app.test_fuzzed_manifests import VALIDATIONS, mutated, mutations, paths_of
from tests.fuzzing import Effort, efforts

# Two thirds of these are of one template.
PODS = [*(dumped_pod(number) for number in range(8)), *EKS_PODS] * 2


def distinct(pods: list[Raw]) -> list[Raw]:
    """Return the pods with names of their own."""
    named = [(pod, {**pod["metadata"], "name": f"{pod['metadata']['name']}-{n}"}) for n, pod in enumerate(pods)]
    return [{**pod, "metadata": metadata} for pod, metadata in named]


def items_of(pods: list[Any]) -> list[bytes]:
    """Return what a snapshot has of the pods: a table, if there are enough."""
    writer = PodTableWriter()
    others = [text for text in map(msgspec.json.encode, pods) if not writer.add(text)]
    return [*writer.take(), *others]


def table_of(pods: list[Any]) -> bytes:
    (table,) = items_of(pods)
    return table


def listed(*items: bytes) -> bytes:
    return b'{"apiVersion":"v1","kind":"List","items":[%b]}' % b",\n".join(items)


def without_place(found: list[Document] | str) -> Any:
    """Return what was read, whatever the places of the objects in the list."""
    if isinstance(found, str):
        return re.sub(r"\.items\[\d+\]", ".items[]", found)
    return sorted(found, key=lambda document: json.dumps(document.raw))


@efforts(50)
def test_pods_of_a_table_are_the_pods_that_it_was_made_of(effort: Effort) -> None:
    whole = dump(*distinct(PODS))

    @effort
    @given(
        st.lists(mutations([path for path in paths_of(whole) if path[:1] == ("items",) and len(path) > 2]), max_size=3),
        VALIDATIONS,
    )
    def check_same(deeds: list[Any], validation: Validation | None) -> None:
        value: Any = mutated(whole, deeds)
        items = list(map(msgspec.json.encode, value["items"]))
        if not all(item.startswith(b'{"apiVersion":"v1","kind":"Pod","metadata"') for item in items):
            return
        plain = outcome(listed(*items), validation)
        found = outcome(listed(*items_of(value["items"])), validation)
        assert without_place(found) == without_place(plain)

    check_same()


def test_most_rows_are_read_without_being_decoded(decoded_items: list[bytes]) -> None:
    pods = distinct([dumped_pod(number) for number in range(8)] * 4)
    for pod in pods:
        pod["status"]["containerStatuses"][0]["restartCount"] = 0

    documents = load_text(listed(table_of(pods)), "dump")

    assert [document.raw["metadata"]["name"] for document in documents] == [pod["metadata"]["name"] for pod in pods]
    assert len(decoded_items) == 1


def test_few_pods_are_written_as_they_are() -> None:
    pods = distinct(PODS)[:3]

    assert items_of(pods) == [msgspec.json.encode(pod) for pod in pods]


def test_a_reformatted_table_is_read_like_the_original() -> None:
    table = table_of(distinct(PODS))
    formatted = json.dumps(json.loads(listed(table)), indent=2)

    assert without_place(load_text(formatted, "dump")) == without_place(load_text(listed(table), "dump"))


def test_tables_of_a_newer_podium_are_refused() -> None:
    table = msgspec.json.encode({**msgspec.json.decode(table_of(distinct(PODS))), "format": FORMAT + 1, "more": 1})

    with pytest.raises(InputError, match=r"format: 2 is written by a newer Podium; this one reads 1"):
        load_text(listed(table), "a.podium")


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ([99, ""], r"\.rows\[0\]: names stencil 99, and there are"),
        ([-2, ""], r"\.rows\[0\]: names stencil -2, and there are"),
        ([0, "web"], r"\.rows\[0\]: has not the values of a pod"),
        ([0, "a b c     "], r"\.rows\[0\]: has not the values of a pod"),
        ([0], r"\.rows\[0\]: is neither a pod nor the values of one"),
        ([0, "", 3], r"\.rows\[0\]: is neither a pod nor the values of one"),
        (["0", ""], r"\.rows\[0\]: is neither a pod nor the values of one"),
        ({"kind": "PodTable"}, r"\.rows\[0\]: is neither a pod nor the values of one"),
        ({"apiVersion": "v1", "kind": "Pod", "metadata": 1}, "dump"),
    ],
)
def test_a_damaged_row_is_refused_with_its_place(row: Any, problem: str) -> None:
    table = {**msgspec.json.decode(table_of(distinct(PODS))), "rows": [row]}

    with pytest.raises(InputError, match=problem):
        load_text(listed(msgspec.json.encode(table)), "dump")


@pytest.mark.parametrize(
    "change",
    [
        lambda values: values.replace("web-5d4f", "Web_5d4f", 1),
        lambda values: values.replace("web-5d4f", "podium.gap.1", 1),
        lambda values: values.replace("uid-", "uid\\u0022,"),
        lambda values: values.replace("node-1", "2000-01-01T00:00:00Z", 1),
        lambda values: values.replace("2026-01-01", "2026-13-01"),
        lambda values: values.replace("10.1.0.1", "10.0.1.7"),
        lambda values: values.replace("kube-api-access-", "", 1),
        lambda values: values.replace(" ", "|", 1),
    ],
)
def test_unusual_values_say_what_the_text_says_that_they_stand_for(change: Any) -> None:
    table = msgspec.json.decode(table_of(distinct(PODS)))
    first, (stencil, values), *_ = table["rows"]
    assert change(values) != values

    found = outcome(listed(msgspec.json.encode({**table, "rows": [first, [stencil, change(values)]]})))

    if not isinstance(found, str):
        texts = [msgspec.json.encode(document.raw) for document in found]
        assert without_place(found) == without_place(outcome(listed(*texts)))


@efforts(50)
def test_changed_bytes_are_an_error_or_other_pods(effort: Effort) -> None:
    table = table_of(distinct(PODS))

    @effort
    @given(st.integers(0, len(table) - 1), st.integers(0, 255), st.booleans())
    def check_clear(place: int, byte: int, is_cut: bool) -> None:
        rest = b"" if is_cut else table[place + 1 :]
        # Any other exception fails the test.
        outcome(listed(table[:place] + bytes([byte]) + rest))

    check_clear()


def test_a_file_that_is_cut_or_has_a_flipped_bit_is_refused(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(listed(table_of(distinct(PODS))), mtime=0))
    cut, flipped = tmp_path / "cut.podium", tmp_path / "flipped.podium"
    cut.write_bytes(packed[:-9])
    packed[len(packed) // 2] ^= 4
    flipped.write_bytes(packed)

    for file in (cut, flipped):
        with pytest.raises(InputError, match="is not a complete gzip file"):
            read_input([file])
