"""Reading a YAML dump item by item gives the same result as reading it as a whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from podium.api.errors import Validation
from podium.api.input import codec
from podium.api.input.codec import load_text
from podium.api.input.listed_items import yaml_list
from podium.api.input.pod_gaps import YAML
from tests.api.dumps import Raw, dump
from tests.api.test_dumps import as_a_whole, outcome
from tests.api.test_pod_stencils import pod_of
from tests.app.test_fuzzed_manifests import MANIFESTS, VALIDATIONS, mutated, mutations, paths_of
from tests.fuzzing import Effort, efforts

PODS = [pod_of(number) for number in range(4)]
WHOLE = dump(*PODS, MANIFESTS[0])
PATHS = list(paths_of(WHOLE))[1:]
# What takes a closer look, in place of a line or behind one.
LINES = (
    *("---", "...", "# a comment", "- a: 1", "items: []", "  x: &a 1", "  y: *a", "  z: 'open", '  z: "open', "  - 1"),
    *("a: |", "    text", "", "\t", "kind: Pod", "    name: 1e5", "    uid: null", "    name: web:", "    name: 0x10"),
    *("    name: web # web", "    resourceVersion: 12", "    uid: [1", "%YAML 1.1", "    uid: ~", "    uid: '1'''"),
)


def written(value: Any) -> str:
    """Return the text as kubectl writes it: without aliases for repeated values, and with lines of any length."""
    apart = json.loads(json.dumps(value))
    text: str = yaml.dump(apart, Dumper=yaml.CSafeDumper, default_flow_style=False, allow_unicode=True, width=1_000)
    return text


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Draw a dump with anything wrong in any place."""
    lines = written(mutated(WHOLE, draw(st.lists(mutations(PATHS), max_size=2)))).split("\n")
    for _ in range(draw(st.integers(0, 2))):
        place = draw(st.integers(0, len(lines) - 1))
        lines[place : place + draw(st.integers(0, 1))] = [draw(st.sampled_from(LINES))]
    return draw(st.sampled_from(("\n", "\n", "\n", "\r\n"))).join(lines)


@pytest.fixture
def eager() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codec, "YAML", replace(YAML, patience=1))
        yield


@efforts(50)
def test_a_dump_says_the_same_read_item_by_item_and_as_a_whole(effort: Effort) -> None:
    @effort
    @given(texts(), VALIDATIONS)
    def check_same(text: str, validation: Validation | None) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(codec, "YAML", replace(YAML, patience=1))
            found = outcome(text, validation)
        assert found == as_a_whole(text, validation)

    check_same()


@pytest.mark.usefixtures("eager")
def test_alike_pods_are_not_parsed_until_their_wire_form_is_used() -> None:
    text = written(dump(*PODS))

    documents = load_text(text, "dump")

    assert [isinstance(document.written, dict) for document in documents] == [True, False, False, False]
    assert documents == as_a_whole(text)
    assert documents[3].raw["spec"]["nodeName"] == "node-3"


def other(**metadata: Any) -> Raw:
    pod = pod_of(1)
    pod["metadata"].update(metadata)
    return pod


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("uid", ["1e5", "null", "true", "012", "0x1f", "1_0", "12.5", ".5", "a:", "-", "1:30", "x y"])
@pytest.mark.parametrize("quote", ["", "'", '"'])
def test_an_unquoted_non_string_is_reported_though_another_pod_has_a_string_there(uid: str, quote: str) -> None:
    text = written(dump(PODS[0], other(uid="UID"))).replace("uid: UID", f"uid: {quote}{uid}{quote}")

    for validation in (None, "strict"):
        assert outcome(text, validation) == as_a_whole(text, validation)


HEAD = "apiVersion: v1\nkind: List\nitems:\n"
ITEM = "- apiVersion: v1\n  kind: Namespace\n  metadata: {name: a}\n"


@pytest.mark.parametrize(
    "text",
    [
        # The items are part of a text.
        f'a: "x\n{HEAD}{ITEM}y"\nitems: []\nkind: List\napiVersion: v1\n',
        f"{HEAD}{ITEM}items: []\n",
        f"{HEAD}{ITEM}other:\n{ITEM}",
        f'{HEAD}- "x\n{ITEM}y"\n',
        f"{HEAD}- [\n{ITEM}]\n",
        f"{HEAD}{ITEM}--- \n{ITEM}",
        f"--- \n{HEAD}{ITEM}",
        f"{HEAD}- &a {{apiVersion: v1, kind: Namespace, metadata: {{name: b}}}}\n- *a\n",
        f"x: &a {{name: b}}\n{HEAD}- apiVersion: v1\n  kind: Namespace\n  metadata: *a\n",
        f"{HEAD}{ITEM}".replace("\n", "\r\n"),
        f"{HEAD}{ITEM}".replace("\n", "\u2028"),
        f"{HEAD}{ITEM}# end\n{ITEM}",
        f"{HEAD}- |\n{ITEM}",
        f"{HEAD}- x\n y\n{ITEM}",
        f"{HEAD}-\n{ITEM}",
        f"{HEAD}{ITEM}podium.items: 1\n",
        f"items:\n{ITEM}",
        f"\ufeff{HEAD}{ITEM}",
        f"{HEAD}- {'[' * 199}{']' * 199}\n",
        f"{HEAD}- apiVersion: v1\n  kind: Namespace\n  metadata: {{name: a}}\n  x: {'[' * 197}{']' * 197}\n",
        f"{HEAD}- null\n{ITEM}",
        f"{HEAD}- apiVersion: v1\n  kind: Pod\n  metadata: {{name: a}}\n{ITEM}- x: 'a\n",
        f"{HEAD}{ITEM}- apiVersion: v1\n  kind: List\n  items:\n  - apiVersion: v1\n    kind: Pod\n",
        f"{HEAD}- apiVersion: v1\n  kind: Namespace\n  metadata: {{generateName: a-}}\n{ITEM}",
    ],
)
def test_a_list_that_is_not_written_as_kubectl_writes_it_says_what_it_says_as_a_whole(text: str) -> None:
    for validation in (None, "strict"):
        assert outcome(text, validation) == as_a_whole(text, validation)
        assert outcome(text.encode(), validation) == as_a_whole(text.encode(), validation)


def test_a_list_of_one_kind_says_it_of_its_items() -> None:
    items = [{key: value for key, value in pod.items() if key not in ("apiVersion", "kind")} for pod in PODS]
    text = written(dump(*items, kind="PodList"))

    assert yaml_list(text.encode()) is not None
    assert load_text(text, "dump") == as_a_whole(text)


def test_items_are_cut_where_kubectl_begins_them() -> None:
    text = f"{HEAD}{ITEM}- b: |\n    - c\n\n    d\nmetadata:\n  resourceVersion: ''\n"

    found = yaml_list(text.encode())

    assert found is not None
    assert [item for item, _ in found.items] == [ITEM.encode(), b"- b: |\n    - c\n\n    d\n"]
    assert found.envelope["metadata"] == {"resourceVersion": ""}
